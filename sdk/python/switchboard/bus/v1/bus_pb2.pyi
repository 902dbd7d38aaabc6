from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Append(_message.Message):
    __slots__ = ["blobs", "entries", "expected_seq", "session"]
    BLOBS_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_SEQ_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    blobs: _containers.RepeatedScalarFieldContainer[str]
    entries: _containers.RepeatedCompositeFieldContainer[Entry]
    expected_seq: int
    session: str
    def __init__(self, session: _Optional[str] = ..., expected_seq: _Optional[int] = ..., entries: _Optional[_Iterable[_Union[Entry, _Mapping]]] = ..., blobs: _Optional[_Iterable[str]] = ...) -> None: ...

class Attachment(_message.Message):
    __slots__ = ["blob", "kind", "mime", "name", "size"]
    BLOB_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    MIME_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    blob: str
    kind: str
    mime: str
    name: str
    size: int
    def __init__(self, kind: _Optional[str] = ..., name: _Optional[str] = ..., blob: _Optional[str] = ..., mime: _Optional[str] = ..., size: _Optional[int] = ...) -> None: ...

class Call(_message.Message):
    __slots__ = ["arguments", "call_id", "name", "provider_id", "state"]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    arguments: bytes
    call_id: str
    name: str
    provider_id: str
    state: str
    def __init__(self, call_id: _Optional[str] = ..., provider_id: _Optional[str] = ..., name: _Optional[str] = ..., arguments: _Optional[bytes] = ..., state: _Optional[str] = ...) -> None: ...

class CallTool(_message.Message):
    __slots__ = ["arguments", "id", "reply_to", "tool"]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    REPLY_TO_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    arguments: bytes
    id: str
    reply_to: str
    tool: str
    def __init__(self, id: _Optional[str] = ..., tool: _Optional[str] = ..., arguments: _Optional[bytes] = ..., reply_to: _Optional[str] = ...) -> None: ...

class Commit(_message.Message):
    __slots__ = ["effects", "id", "lane"]
    EFFECTS_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    LANE_FIELD_NUMBER: _ClassVar[int]
    effects: _containers.RepeatedCompositeFieldContainer[Effect]
    id: str
    lane: str
    def __init__(self, id: _Optional[str] = ..., lane: _Optional[str] = ..., effects: _Optional[_Iterable[_Union[Effect, _Mapping]]] = ...) -> None: ...

class CommitReceipt(_message.Message):
    __slots__ = ["error", "results"]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    error: Error
    results: _containers.RepeatedCompositeFieldContainer[EffectResult]
    def __init__(self, results: _Optional[_Iterable[_Union[EffectResult, _Mapping]]] = ..., error: _Optional[_Union[Error, _Mapping]] = ...) -> None: ...

class Delete(_message.Message):
    __slots__ = ["key", "version"]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    key: str
    version: int
    def __init__(self, key: _Optional[str] = ..., version: _Optional[int] = ...) -> None: ...

class Delivery(_message.Message):
    __slots__ = ["attempt", "deadline_us", "event", "subscription", "token", "turn", "uncertain"]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_US_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIPTION_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    UNCERTAIN_FIELD_NUMBER: _ClassVar[int]
    attempt: int
    deadline_us: int
    event: Event
    subscription: str
    token: str
    turn: TurnContext
    uncertain: bool
    def __init__(self, token: _Optional[str] = ..., event: _Optional[_Union[Event, _Mapping]] = ..., subscription: _Optional[str] = ..., attempt: _Optional[int] = ..., uncertain: bool = ..., deadline_us: _Optional[int] = ..., turn: _Optional[_Union[TurnContext, _Mapping]] = ...) -> None: ...

class Effect(_message.Message):
    __slots__ = ["append", "call", "delete", "input", "publish", "put", "receipt", "session_ensure", "session_idle", "steer", "turn_cancel", "withdraw"]
    APPEND_FIELD_NUMBER: _ClassVar[int]
    CALL_FIELD_NUMBER: _ClassVar[int]
    DELETE_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    PUBLISH_FIELD_NUMBER: _ClassVar[int]
    PUT_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    SESSION_ENSURE_FIELD_NUMBER: _ClassVar[int]
    SESSION_IDLE_FIELD_NUMBER: _ClassVar[int]
    STEER_FIELD_NUMBER: _ClassVar[int]
    TURN_CANCEL_FIELD_NUMBER: _ClassVar[int]
    WITHDRAW_FIELD_NUMBER: _ClassVar[int]
    append: Append
    call: CallTool
    delete: Delete
    input: Input
    publish: Publish
    put: Put
    receipt: Receipt
    session_ensure: SessionEnsure
    session_idle: SessionIdle
    steer: Steer
    turn_cancel: TurnCancel
    withdraw: Withdraw
    def __init__(self, publish: _Optional[_Union[Publish, _Mapping]] = ..., put: _Optional[_Union[Put, _Mapping]] = ..., delete: _Optional[_Union[Delete, _Mapping]] = ..., session_ensure: _Optional[_Union[SessionEnsure, _Mapping]] = ..., input: _Optional[_Union[Input, _Mapping]] = ..., append: _Optional[_Union[Append, _Mapping]] = ..., steer: _Optional[_Union[Steer, _Mapping]] = ..., turn_cancel: _Optional[_Union[TurnCancel, _Mapping]] = ..., withdraw: _Optional[_Union[Withdraw, _Mapping]] = ..., receipt: _Optional[_Union[Receipt, _Mapping]] = ..., session_idle: _Optional[_Union[SessionIdle, _Mapping]] = ..., call: _Optional[_Union[CallTool, _Mapping]] = ...) -> None: ...

class EffectResult(_message.Message):
    __slots__ = ["calls", "conversation", "duplicate", "event_id", "seq", "session", "too_late", "turn", "version", "waiting"]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    CONVERSATION_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    TOO_LATE_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    calls: _containers.RepeatedCompositeFieldContainer[Call]
    conversation: str
    duplicate: bool
    event_id: str
    seq: int
    session: str
    too_late: bool
    turn: TurnContext
    version: int
    waiting: int
    def __init__(self, event_id: _Optional[str] = ..., duplicate: bool = ..., version: _Optional[int] = ..., session: _Optional[str] = ..., seq: _Optional[int] = ..., calls: _Optional[_Iterable[_Union[Call, _Mapping]]] = ..., too_late: bool = ..., conversation: _Optional[str] = ..., turn: _Optional[_Union[TurnContext, _Mapping]] = ..., waiting: _Optional[int] = ...) -> None: ...

class Entry(_message.Message):
    __slots__ = ["attachments", "backlog", "call_id", "calls", "covers", "created_at_us", "forwarded_from", "input", "input_kind", "is_error", "kind", "model", "preamble", "quote", "sender", "seq", "text", "thread", "turn"]
    ATTACHMENTS_FIELD_NUMBER: _ClassVar[int]
    BACKLOG_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    COVERS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_US_FIELD_NUMBER: _ClassVar[int]
    FORWARDED_FROM_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    INPUT_KIND_FIELD_NUMBER: _ClassVar[int]
    IS_ERROR_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PREAMBLE_FIELD_NUMBER: _ClassVar[int]
    QUOTE_FIELD_NUMBER: _ClassVar[int]
    SENDER_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    THREAD_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    attachments: _containers.RepeatedCompositeFieldContainer[Attachment]
    backlog: bool
    call_id: str
    calls: _containers.RepeatedCompositeFieldContainer[Call]
    covers: int
    created_at_us: int
    forwarded_from: str
    input: str
    input_kind: str
    is_error: bool
    kind: str
    model: str
    preamble: str
    quote: Quote
    sender: str
    seq: int
    text: str
    thread: str
    turn: int
    def __init__(self, kind: _Optional[str] = ..., text: _Optional[str] = ..., sender: _Optional[str] = ..., input: _Optional[str] = ..., calls: _Optional[_Iterable[_Union[Call, _Mapping]]] = ..., call_id: _Optional[str] = ..., is_error: bool = ..., model: _Optional[str] = ..., seq: _Optional[int] = ..., created_at_us: _Optional[int] = ..., turn: _Optional[int] = ..., input_kind: _Optional[str] = ..., backlog: bool = ..., covers: _Optional[int] = ..., thread: _Optional[str] = ..., preamble: _Optional[str] = ..., forwarded_from: _Optional[str] = ..., attachments: _Optional[_Iterable[_Union[Attachment, _Mapping]]] = ..., quote: _Optional[_Union[Quote, _Mapping]] = ...) -> None: ...

class Error(_message.Message):
    __slots__ = ["code", "message"]
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    code: int
    message: str
    def __init__(self, code: _Optional[int] = ..., message: _Optional[str] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ["causation_id", "correlation_id", "created_at_us", "dedupe_key", "hop", "id", "key", "payload", "seq", "source", "topic"]
    CAUSATION_ID_FIELD_NUMBER: _ClassVar[int]
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_US_FIELD_NUMBER: _ClassVar[int]
    DEDUPE_KEY_FIELD_NUMBER: _ClassVar[int]
    HOP_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    causation_id: str
    correlation_id: str
    created_at_us: int
    dedupe_key: str
    hop: int
    id: str
    key: str
    payload: bytes
    seq: int
    source: str
    topic: str
    def __init__(self, seq: _Optional[int] = ..., id: _Optional[str] = ..., topic: _Optional[str] = ..., key: _Optional[str] = ..., source: _Optional[str] = ..., payload: _Optional[bytes] = ..., correlation_id: _Optional[str] = ..., causation_id: _Optional[str] = ..., hop: _Optional[int] = ..., dedupe_key: _Optional[str] = ..., created_at_us: _Optional[int] = ...) -> None: ...

class Input(_message.Message):
    __slots__ = ["agent", "blobs", "dedupe_key", "if_exists", "key", "kind", "meta", "person", "reply_to", "sender", "session", "text", "thread"]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    BLOBS_FIELD_NUMBER: _ClassVar[int]
    DEDUPE_KEY_FIELD_NUMBER: _ClassVar[int]
    IF_EXISTS_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    META_FIELD_NUMBER: _ClassVar[int]
    PERSON_FIELD_NUMBER: _ClassVar[int]
    REPLY_TO_FIELD_NUMBER: _ClassVar[int]
    SENDER_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    THREAD_FIELD_NUMBER: _ClassVar[int]
    agent: str
    blobs: _containers.RepeatedScalarFieldContainer[str]
    dedupe_key: str
    if_exists: bool
    key: str
    kind: str
    meta: bytes
    person: str
    reply_to: str
    sender: str
    session: str
    text: str
    thread: str
    def __init__(self, session: _Optional[str] = ..., agent: _Optional[str] = ..., key: _Optional[str] = ..., kind: _Optional[str] = ..., sender: _Optional[str] = ..., text: _Optional[str] = ..., reply_to: _Optional[str] = ..., meta: _Optional[bytes] = ..., dedupe_key: _Optional[str] = ..., thread: _Optional[str] = ..., if_exists: bool = ..., blobs: _Optional[_Iterable[str]] = ..., person: _Optional[str] = ...) -> None: ...

class Outbound(_message.Message):
    __slots__ = ["kind", "target"]
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    KIND_CONVERSATION: Outbound.Kind
    KIND_EXTENSION: Outbound.Kind
    KIND_FIELD_NUMBER: _ClassVar[int]
    KIND_UNSPECIFIED: Outbound.Kind
    TARGET_FIELD_NUMBER: _ClassVar[int]
    kind: Outbound.Kind
    target: str
    def __init__(self, kind: _Optional[_Union[Outbound.Kind, str]] = ..., target: _Optional[str] = ...) -> None: ...

class Outcome(_message.Message):
    __slots__ = ["effects", "kind", "reason", "retry_after_ms", "token"]
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    EFFECTS_FIELD_NUMBER: _ClassVar[int]
    KIND_ACK: Outcome.Kind
    KIND_DROP: Outcome.Kind
    KIND_FAIL: Outcome.Kind
    KIND_FIELD_NUMBER: _ClassVar[int]
    KIND_RETRY: Outcome.Kind
    KIND_UNKNOWN: Outcome.Kind
    KIND_UNSPECIFIED: Outcome.Kind
    REASON_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    effects: _containers.RepeatedCompositeFieldContainer[Effect]
    kind: Outcome.Kind
    reason: str
    retry_after_ms: int
    token: str
    def __init__(self, token: _Optional[str] = ..., kind: _Optional[_Union[Outcome.Kind, str]] = ..., retry_after_ms: _Optional[int] = ..., reason: _Optional[str] = ..., effects: _Optional[_Iterable[_Union[Effect, _Mapping]]] = ...) -> None: ...

class Publish(_message.Message):
    __slots__ = ["blobs", "dedupe_key", "key", "payload", "topic"]
    BLOBS_FIELD_NUMBER: _ClassVar[int]
    DEDUPE_KEY_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    blobs: _containers.RepeatedScalarFieldContainer[str]
    dedupe_key: str
    key: str
    payload: bytes
    topic: str
    def __init__(self, topic: _Optional[str] = ..., key: _Optional[str] = ..., payload: _Optional[bytes] = ..., dedupe_key: _Optional[str] = ..., blobs: _Optional[_Iterable[str]] = ...) -> None: ...

class Put(_message.Message):
    __slots__ = ["blobs", "key", "value", "version"]
    BLOBS_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    blobs: _containers.RepeatedScalarFieldContainer[str]
    key: str
    value: bytes
    version: int
    def __init__(self, key: _Optional[str] = ..., value: _Optional[bytes] = ..., version: _Optional[int] = ..., blobs: _Optional[_Iterable[str]] = ...) -> None: ...

class Quote(_message.Message):
    __slots__ = ["message_id", "sender", "text"]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    SENDER_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    message_id: str
    sender: str
    text: str
    def __init__(self, message_id: _Optional[str] = ..., sender: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class Receipt(_message.Message):
    __slots__ = ["conversation", "provider_id", "thread"]
    CONVERSATION_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_ID_FIELD_NUMBER: _ClassVar[int]
    THREAD_FIELD_NUMBER: _ClassVar[int]
    conversation: str
    provider_id: str
    thread: str
    def __init__(self, provider_id: _Optional[str] = ..., conversation: _Optional[str] = ..., thread: _Optional[str] = ...) -> None: ...

class SessionEnsure(_message.Message):
    __slots__ = ["agent", "chain", "key", "outbound", "title", "within"]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    CHAIN_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    OUTBOUND_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    WITHIN_FIELD_NUMBER: _ClassVar[int]
    agent: str
    chain: str
    key: str
    outbound: Outbound
    title: str
    within: str
    def __init__(self, agent: _Optional[str] = ..., key: _Optional[str] = ..., outbound: _Optional[_Union[Outbound, _Mapping]] = ..., within: _Optional[str] = ..., chain: _Optional[str] = ..., title: _Optional[str] = ...) -> None: ...

class SessionIdle(_message.Message):
    __slots__ = ["session"]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: str
    def __init__(self, session: _Optional[str] = ...) -> None: ...

class Steer(_message.Message):
    __slots__ = ["inputs", "session"]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    inputs: _containers.RepeatedScalarFieldContainer[str]
    session: str
    def __init__(self, session: _Optional[str] = ..., inputs: _Optional[_Iterable[str]] = ...) -> None: ...

class TurnCancel(_message.Message):
    __slots__ = ["agent", "key", "reason", "session", "waiting"]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    agent: str
    key: str
    reason: str
    session: str
    waiting: bool
    def __init__(self, session: _Optional[str] = ..., reason: _Optional[str] = ..., agent: _Optional[str] = ..., key: _Optional[str] = ..., waiting: bool = ...) -> None: ...

class TurnContext(_message.Message):
    __slots__ = ["below", "channel", "channel_name", "channels_etag", "extension", "group", "history_epoch", "history_seq", "interruptions", "person", "resumed", "session", "timezone", "tools_etag", "turn", "waiting"]
    BELOW_FIELD_NUMBER: _ClassVar[int]
    CHANNELS_ETAG_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_NAME_FIELD_NUMBER: _ClassVar[int]
    EXTENSION_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    HISTORY_EPOCH_FIELD_NUMBER: _ClassVar[int]
    HISTORY_SEQ_FIELD_NUMBER: _ClassVar[int]
    INTERRUPTIONS_FIELD_NUMBER: _ClassVar[int]
    PERSON_FIELD_NUMBER: _ClassVar[int]
    RESUMED_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    TIMEZONE_FIELD_NUMBER: _ClassVar[int]
    TOOLS_ETAG_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    below: int
    channel: str
    channel_name: str
    channels_etag: str
    extension: str
    group: bool
    history_epoch: int
    history_seq: int
    interruptions: int
    person: str
    resumed: bool
    session: str
    timezone: str
    tools_etag: str
    turn: int
    waiting: int
    def __init__(self, session: _Optional[str] = ..., turn: _Optional[int] = ..., history_seq: _Optional[int] = ..., channel: _Optional[str] = ..., channel_name: _Optional[str] = ..., group: bool = ..., timezone: _Optional[str] = ..., resumed: bool = ..., waiting: _Optional[int] = ..., tools_etag: _Optional[str] = ..., channels_etag: _Optional[str] = ..., history_epoch: _Optional[int] = ..., below: _Optional[int] = ..., interruptions: _Optional[int] = ..., person: _Optional[str] = ..., extension: _Optional[str] = ...) -> None: ...

class Withdraw(_message.Message):
    __slots__ = ["dedupe_key", "event_id"]
    DEDUPE_KEY_FIELD_NUMBER: _ClassVar[int]
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    dedupe_key: str
    event_id: str
    def __init__(self, event_id: _Optional[str] = ..., dedupe_key: _Optional[str] = ...) -> None: ...
