"""The handler that runs now: its lane token, its deadline and its end."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
import time
from typing import Any, Callable, Optional

from .errors import Ended


class Scope:
    """One run of a handler. When it ends early, what it waits for is cancelled."""

    def __init__(self, lane: str = "", deadline: Optional[float] = None) -> None:
        self.lane = lane
        self.over = threading.Event()
        self.stopped = False  # by a shutdown, or because the kernel has ended
        self._deadline = deadline  # on the monotonic clock
        self._waiting: Optional[Callable[[], Any]] = None
        self._lock = threading.Lock()

    def end(self, stopped: bool = False) -> None:
        self.stopped = self.stopped or stopped
        self.over.set()
        with self._lock:
            if self._waiting is not None:
                self._waiting()

    def remaining(self) -> Optional[float]:
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    def wait(self, future: Any) -> Any:
        """Returns the result of a future, which is cancelled when the scope ends."""
        with self._lock:
            self._waiting = future.cancel
        try:
            if self.over.is_set():
                future.cancel()
            return future.result(timeout=self.remaining())
        finally:
            with self._lock:
                self._waiting = None

    def run(self, function: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Calls a handler, or runs a coroutine function in the loop that all of them share."""
        token = _current.set(self)
        try:
            if not inspect.iscoroutinefunction(function):
                return function(*args, **named)
            try:
                return self.wait(asyncio.run_coroutine_threadsafe(function(*args, **named), _event_loop()))
            except (asyncio.CancelledError, TimeoutError) as e:
                raise Ended("the handler was cancelled") from e
        finally:
            _current.reset(token)


_current: contextvars.ContextVar[Scope] = contextvars.ContextVar("switchboard_scope")
_outside = Scope()
_loop: Optional[asyncio.AbstractEventLoop] = None
_loop_lock = threading.Lock()


def current() -> Scope:
    return _current.get(_outside)


def ended() -> bool:
    """Whether this handler should return: it was cancelled, timed out, or the extension shuts down."""
    return current().over.is_set() or current().remaining() == 0


def sleep(seconds: float) -> None:
    """Pauses a handler or background work. Raises Ended at once when that should return."""
    left = current().remaining()
    if current().over.wait(seconds if left is None else min(seconds, left)) or ended():
        raise Ended("the handler was cancelled")


def _event_loop() -> asyncio.AbstractEventLoop:
    global _loop
    with _loop_lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="asyncio", daemon=True).start()
        return _loop
