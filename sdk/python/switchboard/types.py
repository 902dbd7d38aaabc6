"""What handlers get and give. The fields are those of docs/extensions.md."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from datetime import datetime, timezone
from enum import IntEnum
from typing import Any, List, Mapping, Optional, Type, TypeVar, get_type_hints
from zoneinfo import ZoneInfo

from switchboard.bus.v1 import bus_pb2 as bus

T = TypeVar("T")


@dataclass
class Attachment:
    """A file, or a place or contact, of a message."""

    kind: str  # image, audio, voice, video, document, location, contact, sticker
    name: str = ""
    blob: str = ""  # hash of the stored file; empty: it has none
    mime: str = ""
    size: int = 0


@dataclass
class Quote:
    """An earlier message that a person refers to."""

    message_id: str = ""
    sender: str = ""  # empty: the assistant
    text: str = ""


@dataclass
class Action:
    """A button below a message. To press it is to type its command."""

    label: str
    command: str


@dataclass
class UserMessage:
    """A person's message, which a channel reports with Kernel.receive."""

    text: str
    user_id: str
    conversation_id: str  # the channel's own address
    user_name: str = ""
    language: str = ""  # an IETF tag, such as ru
    thread_id: str = ""
    group: bool = False  # others can read the conversation
    group_name: str = ""
    aside: bool = False  # not the conversation for reminders from elsewhere
    agent_id: str = ""
    message_id: str = ""  # the platform's
    edited: bool = False
    attachments: List[Attachment] = field(default_factory=list)
    forwarded_from: str = ""  # its author, if the person only passed it on
    quote: Optional[Quote] = None
    reaction: bool = False  # text is an emoji on the message in quote
    sent_at: int = 0  # Unix seconds


@dataclass
class Message:
    """A message to send. Its id stays the same when it is sent again."""

    id: str
    text: str  # Markdown; with a mark if people may see it twice
    unmarked: str  # text without the mark, for operations that repeat nothing
    conversation: str = ""  # empty: the default recipient
    thread: str = ""
    owner: str = ""  # user id of the owner on this channel, if known
    language: str = ""
    reply_to: str = ""  # the platform's id of the message that this answers
    draft_id: str = ""  # the draft that it replaces
    part: int = 0
    parts: int = 0
    kind: str = ""  # reply, notice or send
    session: str = ""
    uncertain: bool = False  # an earlier attempt may have sent it
    attachments: List[Attachment] = field(default_factory=list)
    actions: List[Action] = field(default_factory=list)
    created_at: Optional[datetime] = None


@dataclass
class Receipt:
    """The platform's answer to a message. The effects are committed with it."""

    provider_id: str = ""  # the platform's id of the message
    conversation: str = ""  # where it went
    thread: str = ""
    effects: List[bus.Effect] = field(default_factory=list)


@dataclass
class Draft:
    """The text of an answer so far; empty: the assistant is working."""

    conversation: str
    thread: str = ""
    id: str = ""
    text: str = ""
    reply_to: str = ""
    done: bool = False  # the last update


@dataclass
class Event:
    """A fact as the kernel stored it, and this attempt to deliver it."""

    id: str
    topic: str
    payload: Any  # decoded JSON
    source: str = ""
    key: str = ""
    seq: int = 0
    correlation_id: str = ""
    causation_id: str = ""
    hop: int = 0
    created_at: Optional[datetime] = None
    attempt: int = 1
    uncertain: bool = False  # an earlier attempt may have had its effect
    turn: Optional[bus.TurnContext] = None  # of an agent's input


@dataclass
class Principal:
    """For whom something is done. Store it with what people set up, without the accounts: put does."""

    person: str = ""
    conversation: str = ""
    group: str = ""
    confined: bool = False
    own: bool = False
    extension: str = ""
    accounts: List[str] = field(default_factory=list, metadata={"transient": True})

    def sees(self, set_by: "Principal") -> bool:
        """Whether a call for self may use and change what set_by has set up."""
        if self == Principal(conversation=self.conversation) or (self.group and self.group == set_by.group):
            return True
        if self.confined and self.group:
            return False
        if self.confined or set_by.own:
            mine = self.own and self.person == set_by.person
            return bool(set_by.person) and (mine or set_by.person in self.accounts)
        return True


@dataclass
class ToolCall:
    """One call of a tool. A second one with the same id repeats the first."""

    id: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    session: str = ""
    agent: str = ""
    reply_to: str = ""  # opaque handle of the conversation
    channel: str = ""
    timezone: Optional[ZoneInfo] = None
    sender: str = ""
    repeat: bool = False  # an earlier attempt may have run
    memory: List[str] = field(default_factory=list)
    group: bool = False
    thread: str = ""
    input: str = ""
    person: str = ""
    command: str = ""  # the slash command with which a person called it
    principal: Principal = field(default_factory=Principal)
    language: str = ""


@dataclass
class ToolResult:
    """The result of a tool call. Content that is no string becomes JSON. Effects are committed with it."""

    content: Any
    effects: List[bus.Effect] = field(default_factory=list)
    text: str = ""  # of a command: the answer to the person
    is_error: bool = False
    nothing: bool = False  # of a context tool: it has nothing to say, for any arguments and anyone
    blobs: List[str] = field(default_factory=list)  # files that the content names


@dataclass
class CallResult:
    """How a call of another extension's tool ended."""

    id: str
    tool: str
    content: str
    error: bool = False

    def decode(self) -> Any:
        """The content, which must be JSON."""
        return json.loads(self.content)


@dataclass
class Value:
    """An entry of the extension's own store. Version 0: the key does not exist."""

    key: str
    data: bytes
    version: int

    def decode(self, cls: Any = None, default: Any = None) -> Any:
        """The JSON value, as a dataclass if cls is one; default if the key does not exist."""
        if not self.version:
            return default
        return decode(cls, json.loads(self.data)) if cls else json.loads(self.data)


@dataclass
class Blob:
    """A stored file."""

    hash: str
    size: int


class Readiness(IntEnum):
    """Whether an extension can do its work."""

    READY = 1
    UNCONFIGURED = 2  # a person has to provide something
    DEGRADED = 3
    OFFLINE = 4  # recovers by itself


def event_of(e: bus.Event, delivery: Optional[bus.Delivery] = None) -> Event:
    d = delivery or bus.Delivery(attempt=1)
    return Event(
        e.id, e.topic, json.loads(e.payload or b"null"), e.source, e.key, e.seq, e.correlation_id, e.causation_id,
        e.hop,
        datetime.fromtimestamp(e.created_at_us / 1e6, timezone.utc), d.attempt, d.uncertain,
        d.turn if d.HasField("turn") else None,
    )


def encode(value: Any) -> bytes:
    """JSON, of dataclasses too; bytes stay as they are."""
    return value if isinstance(value, bytes) else json.dumps(value, default=_plain, ensure_ascii=False).encode()


_EMPTY = ("", None, False, 0, [])


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kept = [f.name for f in dataclasses.fields(value) if "transient" not in f.metadata]
        return {name: v for name in kept if (v := getattr(value, name)) not in _EMPTY}
    if hasattr(value, "isoformat"):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no JSON form: make it a dict, a list or a dataclass")


def decode(cls: Type[T], data: Mapping[str, Any]) -> T:
    """A dataclass from a JSON object; fields that it does not know are left out."""
    hints = get_type_hints(cls)
    known = {f.name: data[f.name] for f in dataclasses.fields(cls) if f.name in data}  # type: ignore[arg-type]
    return cls(**{k: decode(hints[k], v) if dataclasses.is_dataclass(hints[k]) else v for k, v in known.items()})
