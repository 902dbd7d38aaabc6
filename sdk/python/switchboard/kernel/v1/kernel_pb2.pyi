from switchboard.bus.v1 import bus_pb2 as _bus_pb2
from switchboard.extension.v1 import extension_pb2 as _extension_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Blob(_message.Message):
    __slots__ = ["hash", "size"]
    HASH_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    hash: str
    size: int
    def __init__(self, hash: _Optional[str] = ..., size: _Optional[int] = ...) -> None: ...

class CallToolRequest(_message.Message):
    __slots__ = ["arguments", "call_id", "lane", "name"]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    LANE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    arguments: bytes
    call_id: str
    lane: str
    name: str
    def __init__(self, lane: _Optional[str] = ..., call_id: _Optional[str] = ..., name: _Optional[str] = ..., arguments: _Optional[bytes] = ...) -> None: ...

class Channel(_message.Message):
    __slots__ = ["default", "drafts", "formats", "id", "max_length", "name", "readiness"]
    DEFAULT_FIELD_NUMBER: _ClassVar[int]
    DRAFTS_FIELD_NUMBER: _ClassVar[int]
    FORMATS_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    MAX_LENGTH_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    READINESS_FIELD_NUMBER: _ClassVar[int]
    default: bool
    drafts: bool
    formats: _containers.RepeatedScalarFieldContainer[str]
    id: str
    max_length: int
    name: str
    readiness: _extension_pb2.Readiness
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., readiness: _Optional[_Union[_extension_pb2.Readiness, _Mapping]] = ..., max_length: _Optional[int] = ..., formats: _Optional[_Iterable[str]] = ..., drafts: bool = ..., default: bool = ...) -> None: ...

class Command(_message.Message):
    __slots__ = ["description", "name"]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    description: str
    name: str
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ...) -> None: ...

class CommitFrame(_message.Message):
    __slots__ = ["commits"]
    COMMITS_FIELD_NUMBER: _ClassVar[int]
    commits: _containers.RepeatedCompositeFieldContainer[_bus_pb2.Commit]
    def __init__(self, commits: _Optional[_Iterable[_Union[_bus_pb2.Commit, _Mapping]]] = ...) -> None: ...

class CompleteRequest(_message.Message):
    __slots__ = ["lane", "max_tokens", "messages", "model", "purpose", "recording", "tools"]
    LANE_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    RECORDING_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    lane: str
    max_tokens: int
    messages: _containers.RepeatedCompositeFieldContainer[_extension_pb2.Message]
    model: str
    purpose: str
    recording: _extension_pb2.Recording
    tools: _containers.RepeatedCompositeFieldContainer[_extension_pb2.Tool]
    def __init__(self, lane: _Optional[str] = ..., model: _Optional[str] = ..., messages: _Optional[_Iterable[_Union[_extension_pb2.Message, _Mapping]]] = ..., tools: _Optional[_Iterable[_Union[_extension_pb2.Tool, _Mapping]]] = ..., max_tokens: _Optional[int] = ..., purpose: _Optional[str] = ..., recording: _Optional[_Union[_extension_pb2.Recording, _Mapping]] = ...) -> None: ...

class DraftRequest(_message.Message):
    __slots__ = ["lane", "text"]
    LANE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    lane: str
    text: str
    def __init__(self, lane: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class DraftResponse(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class GetBlobRequest(_message.Message):
    __slots__ = ["hash", "lane"]
    HASH_FIELD_NUMBER: _ClassVar[int]
    LANE_FIELD_NUMBER: _ClassVar[int]
    hash: str
    lane: str
    def __init__(self, hash: _Optional[str] = ..., lane: _Optional[str] = ...) -> None: ...

class GetBlobResponse(_message.Message):
    __slots__ = ["blob", "data"]
    BLOB_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    blob: Blob
    data: bytes
    def __init__(self, blob: _Optional[_Union[Blob, _Mapping]] = ..., data: _Optional[bytes] = ...) -> None: ...

class GetRequest(_message.Message):
    __slots__ = ["key"]
    KEY_FIELD_NUMBER: _ClassVar[int]
    key: str
    def __init__(self, key: _Optional[str] = ...) -> None: ...

class HistoryRequest(_message.Message):
    __slots__ = ["after_seq", "before_seq", "lane", "limit", "max_bytes", "session"]
    AFTER_SEQ_FIELD_NUMBER: _ClassVar[int]
    BEFORE_SEQ_FIELD_NUMBER: _ClassVar[int]
    LANE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    after_seq: int
    before_seq: int
    lane: str
    limit: int
    max_bytes: int
    session: str
    def __init__(self, session: _Optional[str] = ..., lane: _Optional[str] = ..., after_seq: _Optional[int] = ..., max_bytes: _Optional[int] = ..., before_seq: _Optional[int] = ..., limit: _Optional[int] = ...) -> None: ...

class HistoryResponse(_message.Message):
    __slots__ = ["entries", "truncated"]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[_bus_pb2.Entry]
    truncated: bool
    def __init__(self, entries: _Optional[_Iterable[_Union[_bus_pb2.Entry, _Mapping]]] = ..., truncated: bool = ...) -> None: ...

class ListChannelsRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class ListChannelsResponse(_message.Message):
    __slots__ = ["channels", "commands"]
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    COMMANDS_FIELD_NUMBER: _ClassVar[int]
    channels: _containers.RepeatedCompositeFieldContainer[Channel]
    commands: _containers.RepeatedCompositeFieldContainer[Command]
    def __init__(self, channels: _Optional[_Iterable[_Union[Channel, _Mapping]]] = ..., commands: _Optional[_Iterable[_Union[Command, _Mapping]]] = ...) -> None: ...

class ListSessionsRequest(_message.Message):
    __slots__ = ["agent", "lane", "limit", "session"]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    LANE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    agent: str
    lane: str
    limit: int
    session: str
    def __init__(self, agent: _Optional[str] = ..., limit: _Optional[int] = ..., lane: _Optional[str] = ..., session: _Optional[str] = ...) -> None: ...

class ListSessionsResponse(_message.Message):
    __slots__ = ["sessions"]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    sessions: _containers.RepeatedCompositeFieldContainer[Session]
    def __init__(self, sessions: _Optional[_Iterable[_Union[Session, _Mapping]]] = ...) -> None: ...

class ListToolsRequest(_message.Message):
    __slots__ = ["lane"]
    LANE_FIELD_NUMBER: _ClassVar[int]
    lane: str
    def __init__(self, lane: _Optional[str] = ...) -> None: ...

class ListToolsResponse(_message.Message):
    __slots__ = ["etag", "tools"]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    etag: str
    tools: _containers.RepeatedCompositeFieldContainer[_extension_pb2.Tool]
    def __init__(self, tools: _Optional[_Iterable[_Union[_extension_pb2.Tool, _Mapping]]] = ..., etag: _Optional[str] = ...) -> None: ...

class PendingRequest(_message.Message):
    __slots__ = ["lane"]
    LANE_FIELD_NUMBER: _ClassVar[int]
    lane: str
    def __init__(self, lane: _Optional[str] = ...) -> None: ...

class PendingResponse(_message.Message):
    __slots__ = ["inputs"]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    inputs: _containers.RepeatedCompositeFieldContainer[_bus_pb2.Event]
    def __init__(self, inputs: _Optional[_Iterable[_Union[_bus_pb2.Event, _Mapping]]] = ...) -> None: ...

class PresenceRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class PresenceResponse(_message.Message):
    __slots__ = ["busy", "user_at_us"]
    BUSY_FIELD_NUMBER: _ClassVar[int]
    USER_AT_US_FIELD_NUMBER: _ClassVar[int]
    busy: bool
    user_at_us: int
    def __init__(self, user_at_us: _Optional[int] = ..., busy: bool = ...) -> None: ...

class PutBlobRequest(_message.Message):
    __slots__ = ["data"]
    DATA_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    def __init__(self, data: _Optional[bytes] = ...) -> None: ...

class ReceiptFrame(_message.Message):
    __slots__ = ["receipts"]
    RECEIPTS_FIELD_NUMBER: _ClassVar[int]
    receipts: _containers.RepeatedCompositeFieldContainer[_bus_pb2.CommitReceipt]
    def __init__(self, receipts: _Optional[_Iterable[_Union[_bus_pb2.CommitReceipt, _Mapping]]] = ...) -> None: ...

class ReportResponse(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class ScanRequest(_message.Message):
    __slots__ = ["after", "limit", "prefix"]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    after: str
    limit: int
    prefix: str
    def __init__(self, prefix: _Optional[str] = ..., after: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class ScanResponse(_message.Message):
    __slots__ = ["more", "values"]
    MORE_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    more: bool
    values: _containers.RepeatedCompositeFieldContainer[Value]
    def __init__(self, values: _Optional[_Iterable[_Union[Value, _Mapping]]] = ..., more: bool = ...) -> None: ...

class Session(_message.Message):
    __slots__ = ["active_at_us", "agent", "channel", "created_at_us", "group", "history_seq", "id", "key", "state", "title", "user_at_us"]
    ACTIVE_AT_US_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_US_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    HISTORY_SEQ_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    USER_AT_US_FIELD_NUMBER: _ClassVar[int]
    active_at_us: int
    agent: str
    channel: str
    created_at_us: int
    group: bool
    history_seq: int
    id: str
    key: str
    state: str
    title: str
    user_at_us: int
    def __init__(self, id: _Optional[str] = ..., agent: _Optional[str] = ..., key: _Optional[str] = ..., state: _Optional[str] = ..., history_seq: _Optional[int] = ..., created_at_us: _Optional[int] = ..., active_at_us: _Optional[int] = ..., channel: _Optional[str] = ..., user_at_us: _Optional[int] = ..., group: bool = ..., title: _Optional[str] = ...) -> None: ...

class SessionRequest(_message.Message):
    __slots__ = ["agent", "key", "lane", "session"]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    LANE_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    agent: str
    key: str
    lane: str
    session: str
    def __init__(self, session: _Optional[str] = ..., lane: _Optional[str] = ..., agent: _Optional[str] = ..., key: _Optional[str] = ...) -> None: ...

class Value(_message.Message):
    __slots__ = ["key", "value", "version"]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: bytes
    version: int
    def __init__(self, key: _Optional[str] = ..., value: _Optional[bytes] = ..., version: _Optional[int] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ["topics"]
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, topics: _Optional[_Iterable[str]] = ...) -> None: ...
