"""The stream that brings deliveries and takes their outcomes."""

from __future__ import annotations

import threading
import time
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, TimeoutError as FutureTimeout
from typing import Any, Callable, Dict, Iterator, List

from switchboard.bus.v1 import bus_pb2 as bus
from switchboard.extension.v1 import extension_pb2 as ext

from .errors import Conflict, Drop, Ended, Retry, Unknown
from .client import FRAME, MAX_COMMIT
from .scope import Scope

HANDLERS = 256  # that run at once
CREDIT = 1024  # deliveries that may wait for them
pool = ThreadPoolExecutor(HANDLERS, "handler")
Dispatch = Callable[[Scope, bus.Delivery], List[bus.Effect]]


class Deliveries:
    """One stream. Each delivery is handled in a thread of the pool; the kernel keeps those of one key in order."""

    def __init__(self, dispatch: Dispatch, log: Any) -> None:
        self._dispatch, self._log = dispatch, log
        self._changed = threading.Condition()
        self._futures: Dict[str, Future[None]] = {}  # that no handler has taken, by token
        self._active: Dict[str, Scope] = {}
        self._outcomes: List[bus.Outcome] = []
        self._credit = CREDIT
        self._ending = False

    def frames(self, requests: Iterator[ext.DeliverFrame]) -> Iterator[ext.OutcomeFrame]:
        threading.Thread(target=self._receive, args=(requests,), name="deliveries", daemon=True).start()
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._outcomes or self._idle() or self._credit and not self._ending)
                    if not self._outcomes and self._idle():
                        return
                    frame, size = ext.OutcomeFrame(credit=self._credit), 0
                    while self._outcomes and size < FRAME:
                        outcome = self._outcomes.pop(0)
                        size += outcome.ByteSize()
                        frame.outcomes.append(outcome)
                    self._credit = 0
                yield frame
        finally:
            self.end()
            self.interrupt()  # what still runs then could not be answered

    def _idle(self) -> bool:
        return self._ending and not self._active

    def _receive(self, requests: Iterator[ext.DeliverFrame]) -> None:
        try:
            for frame in requests:
                self._take(frame)
        except Exception as e:  # the stream broke
            self._log.debug("deliveries: %s", e)
            self.interrupt()
        self.end()

    def _take(self, frame: ext.DeliverFrame) -> None:
        with self._changed:
            if not self._ending:
                for d in frame.deliveries:
                    self._futures[d.token] = pool.submit(self._run, d)
            scopes = [self._active[t] for t in frame.cancels if t in self._active]
            for token in frame.cancels:
                if token in self._futures and self._futures[token].cancel():
                    del self._futures[token]
                    self._credit += 1
                    self._answer(bus.Outcome(token=token, kind=bus.Outcome.KIND_RETRY, reason="cancelled"))
        for scope in scopes:
            scope.end()

    def _run(self, d: bus.Delivery) -> None:
        left = d.deadline_us / 1e6 - time.time() if d.deadline_us else None
        scope = Scope(d.token, None if left is None else time.monotonic() + left)
        with self._changed:
            self._futures.pop(d.token, None)
            self._active[d.token] = scope
            self._credit += 1
            if self._credit == 1:
                self._changed.notify()
        outcome = self._settle(scope, d)
        with self._changed:
            del self._active[d.token]
            self._answer(outcome)

    def _answer(self, outcome: bus.Outcome) -> None:
        self._outcomes.append(outcome)
        self._changed.notify()

    def _settle(self, scope: Scope, d: bus.Delivery) -> bus.Outcome:
        o = bus.Outcome(token=d.token)
        try:
            o.effects.extend(self._dispatch(scope, d))
            o.kind = bus.Outcome.KIND_ACK
        except Retry as e:
            o.kind, o.retry_after_ms, o.reason = bus.Outcome.KIND_RETRY, max(0, int(e.after * 1000)), str(e)
        except Drop as e:
            o.kind, o.reason = bus.Outcome.KIND_DROP, str(e)
            o.effects.extend(e.effects)
        except Unknown as e:
            o.kind, o.reason = bus.Outcome.KIND_UNKNOWN, str(e)
        except Conflict as e:
            o.kind, o.retry_after_ms, o.reason = bus.Outcome.KIND_RETRY, 20, str(e)
        except (Ended, CancelledError, FutureTimeout) as e:  # by a shutdown: not counted
            o.kind = bus.Outcome.KIND_RETRY if scope.stopped else bus.Outcome.KIND_FAIL
            o.reason = str(e) or "the handler was cancelled"
        except Exception as e:
            self._log.exception("handler of %s failed", d.event.topic)
            o.kind, o.reason = bus.Outcome.KIND_FAIL, f"{type(e).__name__}: {e}"
        if o.ByteSize() > MAX_COMMIT:
            reason = f"effects of the handler: {o.ByteSize()} bytes (at most {MAX_COMMIT})"
            o = bus.Outcome(token=d.token, kind=bus.Outcome.KIND_DROP, reason=reason)
        o.reason = o.reason.encode(errors="replace")[:4096].decode(errors="ignore")
        return o

    def end(self) -> None:
        """Takes no more deliveries; running handlers may finish."""
        with self._changed:
            self._ending = True
            for token in [t for t, f in self._futures.items() if f.cancel()]:
                del self._futures[token]
            self._changed.notify()

    def interrupt(self) -> None:
        with self._changed:
            scopes = list(self._active.values())
        for scope in scopes:
            scope.end(stopped=True)
