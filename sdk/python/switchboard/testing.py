"""A kernel for unit tests: it keeps the store in memory and records what was committed."""

from __future__ import annotations

import contextlib
import logging
import threading
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional
from zoneinfo import ZoneInfo

from switchboard.bus.v1 import bus_pb2 as bus

from .errors import Conflict, Ended
from .scope import Scope
from .types import Readiness, UserMessage, Value


class _Over(threading.Event):
    def wait(self, timeout: Optional[float] = None) -> bool:
        return True


def run_once(function: Callable[[], Any]) -> None:
    """Calls background work, which ends at its first sleep() instead of pausing."""
    scope = Scope()
    scope.over = _Over()
    with contextlib.suppress(Ended):
        scope.run(function)


class FakeKernel:
    """Assign it to Extension.kernel, call the extension's functions, and apply what they return with commit."""

    def __init__(self, *, config: Optional[Dict[str, Any]] = None, secrets: Optional[Dict[str, str]] = None,
                 data_dir: str = ".", timezone: str = "UTC") -> None:
        self.config, self.secrets, self.data_dir = config or {}, secrets or {}, Path(data_dir)
        self.timezone, self.log, self.draining = ZoneInfo(timezone), logging.getLogger("test"), threading.Event()
        self.committed: List[bus.Effect] = []  # what is neither put nor delete
        self.received: List[UserMessage] = []
        self.readiness, self.detail = Readiness.READY, ""
        self._store: Dict[str, Value] = {}

    def commit(self, *effects: bus.Effect, id: str = "") -> List[bus.EffectResult]:
        """Applies all effects, or none if a version is not the expected one."""
        for e in effects:
            change = e.put if e.HasField("put") else e.delete
            if change.HasField("version") and change.version != self.get(change.key).version:
                raise Conflict(f"key {change.key!r} has another version")
        for e in effects:
            if e.HasField("put"):
                self._store[e.put.key] = Value(e.put.key, e.put.value, self.get(e.put.key).version + 1)
            elif e.HasField("delete"):
                self._store.pop(e.delete.key, None)
            else:
                self.committed.append(e)
        return [bus.EffectResult(event_id=f"e{i + 1}") for i in range(len(effects))]

    def receive(self, message: UserMessage, dedupe: str = "", *effects: bus.Effect) -> bool:
        self.commit(*effects)
        self.received.append(message)
        return True

    def get(self, key: str) -> Value:
        return self._store.get(key, Value(key, b"", 0))

    def scan(self, prefix: str = "") -> Iterator[Value]:
        return (self._store[k] for k in sorted(self._store) if k.startswith(prefix))

    def set_readiness(self, state: Readiness, detail: str = "") -> None:
        self.readiness, self.detail = state, detail
