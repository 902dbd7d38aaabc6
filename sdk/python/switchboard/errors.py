"""Errors: what the kernel refused and why, and what a handler says about its work."""

from __future__ import annotations

from typing import Any, Dict, Iterable, Sequence, Type

import grpc

from switchboard.bus.v1 import bus_pb2 as bus

_by_code: Dict[int, Type[SwitchboardError]] = {}


class Ending(Exception):
    """How a delivery ends whose handler raises it."""

    kind: Any = bus.Outcome.KIND_FAIL
    after = 0.0  # seconds until the next attempt
    effects: Sequence[bus.Effect] = ()


class SwitchboardError(Ending):
    """The kernel refused something, or it cannot be done."""

    code = grpc.StatusCode.UNKNOWN

    def __init_subclass__(cls, code: grpc.StatusCode, **named: Any) -> None:
        super().__init_subclass__(**named)
        cls.code, _by_code[code.value[0]] = code, cls


class Gone(SwitchboardError, code=grpc.StatusCode.UNAVAILABLE):
    """The kernel has ended, or the extension shuts down. It does not count as a failure."""

    kind = bus.Outcome.KIND_RETRY


class Conflict(SwitchboardError, code=grpc.StatusCode.ABORTED):
    """A version was not the expected one: read again and repeat. A handler that raises it runs again."""

    kind, after = bus.Outcome.KIND_RETRY, 0.02


class Denied(SwitchboardError, code=grpc.StatusCode.PERMISSION_DENIED):
    """The manifest does not grant it."""


class Stale(SwitchboardError, code=grpc.StatusCode.UNAUTHENTICATED):
    """Another attempt has the delivery now: stop."""


class NotFound(SwitchboardError, code=grpc.StatusCode.NOT_FOUND):
    """It does not exist."""


class Invalid(SwitchboardError, code=grpc.StatusCode.INVALID_ARGUMENT):
    """The request is wrong, and repeating it does not help."""


class TooLarge(SwitchboardError, code=grpc.StatusCode.OUT_OF_RANGE):
    """A limit is exceeded, and repeating it does not help."""

    kind = bus.Outcome.KIND_DROP


class Unavailable(SwitchboardError, code=grpc.StatusCode.FAILED_PRECONDITION):
    """It is not possible now."""


class Full(SwitchboardError, code=grpc.StatusCode.RESOURCE_EXHAUSTED):
    """The store accepts nothing new."""


class Ended(SwitchboardError, code=grpc.StatusCode.CANCELLED):
    """It was cancelled, or took too long."""


class ToolError(Exception):
    """A tool call failed. The model reads the text, or the person, of a command."""


class Retry(Ending):
    """Raised by a handler: try again after so many seconds. It does not count as a failure."""

    kind = bus.Outcome.KIND_RETRY

    def __init__(self, after: float, reason: str = "retry") -> None:
        super().__init__(reason)
        self.after = max(0.0, after)


class Drop(Ending):
    """Raised by a handler: never try again. The effects are committed."""

    kind = bus.Outcome.KIND_DROP

    def __init__(self, reason: str, effects: Iterable[bus.Effect] = ()) -> None:
        super().__init__(reason)
        self.effects = list(effects)


class Unknown(Ending):
    """Raised by a handler: it may have had its effect. The next attempt is marked as a repetition."""

    kind = bus.Outcome.KIND_UNKNOWN


def from_code(code: int, message: str) -> SwitchboardError:
    return _by_code.get(code, SwitchboardError)(message)


def reason_of(e: BaseException) -> str:
    """What people read of an error, at most 4 KiB."""
    known = isinstance(e, (Ending, ToolError)) and str(e)
    return (known or f"{type(e).__name__}: {e}".rstrip(": ")).encode(errors="replace")[:4096].decode(errors="ignore")
