"""A kernel in memory, for unit tests of an extension's functions."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any, AsyncIterator, Callable, Dict, List
from unittest import mock

from switchboard.bus.v1 import bus_pb2 as bus
from switchboard.extension.v1 import extension_pb2 as ext

from .errors import Conflict
from .client import Kernel
from .payloads import UserMessage
from .schema import decode, encode
from .types import Value


async def run_once(function: Callable[[], Any]) -> None:
    """Calls background work, which ends at its first asyncio.sleep() instead of pausing."""
    with contextlib.suppress(asyncio.CancelledError), mock.patch("asyncio.sleep", side_effect=asyncio.CancelledError):
        await function()


class FakeKernel(Kernel):
    """Assign it to Extension.kernel, call the extension's functions, and commit the effects that they return."""

    def __init__(self, *, config: Any = None, secrets: Any = None, data_dir: Any = ".", timezone: str = "UTC") -> None:
        super().__init__(ext.InitRequest(id="test", config=encode(config or {}), secrets=secrets or {},
                                         data_dir=str(data_dir), timezone=timezone))
        self.committed: List[bus.Effect] = []  # what is neither put nor delete
        self._store: Dict[str, Value] = {}

    @property
    def received(self) -> List[UserMessage]:
        events = [e.publish for e in self.committed if e.publish.topic == "user.message"]
        return [decode(UserMessage, json.loads(e.payload)) for e in events]

    async def commit(self, *effects: bus.Effect, id: str = "") -> List[bus.EffectResult]:
        """Applies all effects, or none if a version is not the expected one."""
        for e in effects:
            change = e.put if e.HasField("put") else e.delete
            if change.HasField("version") and change.version != (await self.get(change.key)).version:
                raise Conflict(f"key {change.key!r} has another version")
        for e in effects:
            if e.HasField("put"):
                self._store[e.put.key] = Value(e.put.key, e.put.value, (await self.get(e.put.key)).version + 1)
            elif e.HasField("delete"):
                self._store.pop(e.delete.key, None)
            else:
                self.committed.append(e)
        return [bus.EffectResult(event_id=f"e{i + 1}") for i in range(len(effects))]

    async def get(self, key: str) -> Value:
        return self._store.get(key, Value(key, b"", 0))

    async def scan(self, prefix: str = "", after: str = "") -> AsyncIterator[Value]:
        for key in sorted(k for k in self._store if k.startswith(prefix) and k > after):
            yield self._store[key]
