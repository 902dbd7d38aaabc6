"""What handlers get, and the effects that they return: durable changes that are committed together, all or none.

Each kind of effect needs a grant in the manifest. Those without a function here are written as bus.proto has them:
Effect(withdraw={"dedupe_key": "tea"}). payloads.py has the messages of a channel.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, List, Optional, Sequence

from switchboard.bus.v1 import bus_pb2 as bus
from switchboard.extension.v1 import extension_pb2 as ext
from switchboard.kernel.v1.kernel_pb2 import Blob as Blob

from .payloads import ChannelSend, StoredEvent
from .schema import decode, encode

Draft = ext.DraftUpdate
Effect = bus.Effect
Principal = ext.Principal
ToolCall = ext.CallRequest
ToolResult = ext.CallResult


@dataclass
class Event(StoredEvent):
    """A fact, and this attempt to deliver it."""

    payload: Any = None  # decoded JSON
    created_at: datetime = datetime.min
    delivery: bus.Delivery = field(default_factory=bus.Delivery)  # with attempt, uncertain and turn

    @classmethod
    def of(cls, e: bus.Event, delivery: bus.Delivery) -> Event:
        known = {f.name: v for f, v in e.ListFields() if f.name not in ("payload", "created_at_us")}
        at = datetime.fromtimestamp(e.created_at_us / 1e6, timezone.utc)
        return cls(**known, payload=json.loads(e.payload or b"null"), created_at=at, delivery=delivery)


@dataclass
class Message(ChannelSend):
    """A message to send. Its id stays the same when it is sent again."""

    kind: str = "reply"
    id: str = ""
    uncertain: bool = False  # an earlier attempt may have sent it
    created_at = datetime.min

    def __post_init__(self) -> None:
        self.unmarked = self.unmarked or self.text


def result(content: Any, effects: Sequence[bus.Effect] = (), **fields: Any) -> ToolResult:
    """The result of a tool call. Content that is no string becomes JSON. Effects are committed with it.

    Fields are those of CallResult in extension.proto: text, is_error, nothing, blobs.
    """
    text = content if isinstance(content, str) else encode(content).decode()
    return ToolResult(content=text.encode(errors="replace").decode(), effects=effects, **fields)


@dataclass
class Value:
    """An entry of the extension's own store. Version 0: the key does not exist."""

    key: str
    data: bytes
    version: int

    def decode(self, cls: Any = Any, default: Any = None) -> Any:
        """The JSON value, as a dataclass if cls is one; default if the key does not exist."""
        return decode(cls, json.loads(self.data)) if self.version else default


def sees(p: Principal, set_by: Principal) -> bool:
    """Whether a call for the principal p may use and change what set_by has set up; see contract/principal.go."""
    if p == Principal(conversation=p.conversation) or (p.group and p.group == set_by.group):
        return True
    if p.confined and p.group:
        return False
    mine = p.own and p.person == set_by.person or set_by.person in p.accounts
    return bool(set_by.person and mine) if p.confined or set_by.own else True


def publish(topic: str, payload: Any, *, key: str = "", dedupe: str = "", blobs: Sequence[str] = ()) -> Effect:
    """Publishes an event. Events with one key come in order; a dedupe key that was used does nothing."""
    return Effect(publish=bus.Publish(topic=topic, payload=encode(payload), key=key, dedupe_key=dedupe, blobs=blobs))


def put(key: str, value: Any, *, version: Optional[int] = None, blobs: Sequence[str] = ()) -> Effect:
    """Writes a key of the own store, with version only if that is still the current one (0: it does not exist).

    Otherwise the commit is refused with Conflict, and the handler or tool call that returned it runs again.
    """
    return Effect(put=bus.Put(key=key, value=encode(value), version=version, blobs=blobs))


def delete(key: str, *, version: Optional[int] = None) -> Effect:
    """Removes a key of the own store."""
    return Effect(delete=bus.Delete(key=key, version=version))


def receipt(provider_id: str = "", conversation: str = "", thread: str = "") -> Effect:
    """The platform's answer to a message: its id there, and where it went, if that is not what was asked."""
    return Effect(receipt=bus.Receipt(provider_id=provider_id, conversation=conversation, thread=thread))


def call(id: str, tool: str, arguments: Any = None, *, reply_to: str = "") -> Effect:
    """Calls a tool of another extension once, over crashes; the result comes to Extension.results.

    The id is your own: a second call with it changes nothing. reply_to is where the tool's own texts go.
    """
    return Effect(call=bus.CallTool(id=id, tool=tool, arguments=encode(arguments or {}), reply_to=reply_to))


def effects_of(returned: Any) -> List[Effect]:
    """What a handler has returned: one effect, several or None."""
    return [returned] if isinstance(returned, Effect) else list(returned or ())
