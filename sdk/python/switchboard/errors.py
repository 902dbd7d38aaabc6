"""Errors: what the kernel refused and why, and what a handler says about its work."""

from __future__ import annotations

from typing import Any, Dict, Iterable, Type

import grpc


class SwitchboardError(Exception):
    """The kernel refused something, or it cannot be done."""

    code = grpc.StatusCode.UNKNOWN


class Gone(SwitchboardError):
    """The kernel has ended; this process is about to."""

    code = grpc.StatusCode.UNAVAILABLE


class Conflict(SwitchboardError):
    """A version was not the expected one: read again and repeat. A handler that raises it runs again."""

    code = grpc.StatusCode.ABORTED


class Denied(SwitchboardError):
    """The manifest does not grant it."""

    code = grpc.StatusCode.PERMISSION_DENIED


class Stale(SwitchboardError):
    """Another attempt has the delivery now: stop."""

    code = grpc.StatusCode.UNAUTHENTICATED


class NotFound(SwitchboardError):
    """It does not exist."""

    code = grpc.StatusCode.NOT_FOUND


class Invalid(SwitchboardError):
    """The request is wrong, and repeating it does not help."""

    code = grpc.StatusCode.INVALID_ARGUMENT


class TooLarge(SwitchboardError):
    """A limit is exceeded."""

    code = grpc.StatusCode.OUT_OF_RANGE


class Unavailable(SwitchboardError):
    """It is not possible now."""

    code = grpc.StatusCode.FAILED_PRECONDITION


class Full(SwitchboardError):
    """The store accepts nothing new."""

    code = grpc.StatusCode.RESOURCE_EXHAUSTED


class Ended(SwitchboardError):
    """The handler was cancelled, timed out, or the extension shuts down: return or raise."""

    code = grpc.StatusCode.CANCELLED


class ToolError(Exception):
    """A tool call failed. The model reads the text, or the person, of a command."""


class Retry(Exception):
    """Raised by a handler: try again after so many seconds. It does not count as a failure."""

    def __init__(self, after: float, reason: str = "retry") -> None:
        super().__init__(reason)
        self.after = after


class Drop(Exception):
    """Raised by a handler: never try again. The effects are committed."""

    def __init__(self, reason: str, effects: Iterable[Any] = ()) -> None:
        super().__init__(reason)
        self.effects = list(effects)


class Unknown(Exception):
    """Raised by a handler: it may have had its effect. The next attempt is marked as a repetition."""


_BY_CODE: Dict[int, Type[SwitchboardError]] = {
    e.code.value[0]: e
    for e in (Gone, Conflict, Denied, Stale, NotFound, Invalid, TooLarge, Unavailable, Full, Ended)
}
_BY_CODE[grpc.StatusCode.DEADLINE_EXCEEDED.value[0]] = Ended


def from_code(code: int, message: str) -> SwitchboardError:
    return _BY_CODE.get(code, SwitchboardError)(message)


def from_rpc(e: grpc.RpcError) -> SwitchboardError:
    return from_code(e.code().value[0], e.details() or str(e.code()))
