from switchboard.bus.v1 import bus_pb2 as _bus_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AgentSpec(_message.Message):
    __slots__ = ["completions", "context", "echo", "instructions", "max_steps", "max_tokens", "memory", "model", "no_history", "offers", "turn_timeout_ms", "uses_tools"]
    COMPLETIONS_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    ECHO_FIELD_NUMBER: _ClassVar[int]
    INSTRUCTIONS_FIELD_NUMBER: _ClassVar[int]
    MAX_STEPS_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    NO_HISTORY_FIELD_NUMBER: _ClassVar[int]
    OFFERS_FIELD_NUMBER: _ClassVar[int]
    TURN_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    USES_TOOLS_FIELD_NUMBER: _ClassVar[int]
    completions: int
    context: _containers.RepeatedScalarFieldContainer[str]
    echo: bool
    instructions: str
    max_steps: int
    max_tokens: int
    memory: _containers.RepeatedScalarFieldContainer[str]
    model: str
    no_history: bool
    offers: _containers.RepeatedScalarFieldContainer[str]
    turn_timeout_ms: int
    uses_tools: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, model: _Optional[str] = ..., instructions: _Optional[str] = ..., uses_tools: _Optional[_Iterable[str]] = ..., context: _Optional[_Iterable[str]] = ..., max_steps: _Optional[int] = ..., turn_timeout_ms: _Optional[int] = ..., max_tokens: _Optional[int] = ..., echo: bool = ..., no_history: bool = ..., memory: _Optional[_Iterable[str]] = ..., completions: _Optional[int] = ..., offers: _Optional[_Iterable[str]] = ...) -> None: ...

class CallRequest(_message.Message):
    __slots__ = ["agent", "arguments", "call_id", "channel", "command", "group", "input", "lane", "language", "memory", "name", "person", "principal", "repeat", "reply_to", "sender", "session", "thread", "timezone"]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    LANE_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PERSON_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    REPEAT_FIELD_NUMBER: _ClassVar[int]
    REPLY_TO_FIELD_NUMBER: _ClassVar[int]
    SENDER_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    THREAD_FIELD_NUMBER: _ClassVar[int]
    TIMEZONE_FIELD_NUMBER: _ClassVar[int]
    agent: str
    arguments: bytes
    call_id: str
    channel: str
    command: str
    group: bool
    input: str
    lane: str
    language: str
    memory: _containers.RepeatedScalarFieldContainer[str]
    name: str
    person: str
    principal: Principal
    repeat: bool
    reply_to: str
    sender: str
    session: str
    thread: str
    timezone: str
    def __init__(self, call_id: _Optional[str] = ..., name: _Optional[str] = ..., arguments: _Optional[bytes] = ..., lane: _Optional[str] = ..., session: _Optional[str] = ..., agent: _Optional[str] = ..., reply_to: _Optional[str] = ..., channel: _Optional[str] = ..., timezone: _Optional[str] = ..., sender: _Optional[str] = ..., repeat: bool = ..., memory: _Optional[_Iterable[str]] = ..., group: bool = ..., thread: _Optional[str] = ..., input: _Optional[str] = ..., person: _Optional[str] = ..., command: _Optional[str] = ..., principal: _Optional[_Union[Principal, _Mapping]] = ..., language: _Optional[str] = ...) -> None: ...

class CallResult(_message.Message):
    __slots__ = ["blobs", "content", "effects", "is_error", "nothing", "text", "waiting"]
    BLOBS_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    EFFECTS_FIELD_NUMBER: _ClassVar[int]
    IS_ERROR_FIELD_NUMBER: _ClassVar[int]
    NOTHING_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    blobs: _containers.RepeatedScalarFieldContainer[str]
    content: str
    effects: _containers.RepeatedCompositeFieldContainer[_bus_pb2.Effect]
    is_error: bool
    nothing: bool
    text: str
    waiting: int
    def __init__(self, content: _Optional[str] = ..., is_error: bool = ..., effects: _Optional[_Iterable[_Union[_bus_pb2.Effect, _Mapping]]] = ..., waiting: _Optional[int] = ..., nothing: bool = ..., text: _Optional[str] = ..., blobs: _Optional[_Iterable[str]] = ...) -> None: ...

class CompleteRequest(_message.Message):
    __slots__ = ["agent", "max_tokens", "messages", "model", "purpose", "recording", "session", "tools"]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    RECORDING_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    agent: str
    max_tokens: int
    messages: _containers.RepeatedCompositeFieldContainer[Message]
    model: str
    purpose: str
    recording: Recording
    session: str
    tools: _containers.RepeatedCompositeFieldContainer[Tool]
    def __init__(self, model: _Optional[str] = ..., messages: _Optional[_Iterable[_Union[Message, _Mapping]]] = ..., tools: _Optional[_Iterable[_Union[Tool, _Mapping]]] = ..., max_tokens: _Optional[int] = ..., agent: _Optional[str] = ..., session: _Optional[str] = ..., purpose: _Optional[str] = ..., recording: _Optional[_Union[Recording, _Mapping]] = ...) -> None: ...

class DeliverFrame(_message.Message):
    __slots__ = ["cancels", "deliveries"]
    CANCELS_FIELD_NUMBER: _ClassVar[int]
    DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    cancels: _containers.RepeatedScalarFieldContainer[str]
    deliveries: _containers.RepeatedCompositeFieldContainer[_bus_pb2.Delivery]
    def __init__(self, deliveries: _Optional[_Iterable[_Union[_bus_pb2.Delivery, _Mapping]]] = ..., cancels: _Optional[_Iterable[str]] = ...) -> None: ...

class Delta(_message.Message):
    __slots__ = ["call", "context", "finish", "model", "text", "usage"]
    CALL_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    FINISH_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    call: _bus_pb2.Call
    context: int
    finish: str
    model: str
    text: str
    usage: Usage
    def __init__(self, text: _Optional[str] = ..., call: _Optional[_Union[_bus_pb2.Call, _Mapping]] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., finish: _Optional[str] = ..., model: _Optional[str] = ..., context: _Optional[int] = ...) -> None: ...

class DescribeRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class Description(_message.Message):
    __slots__ = ["channel", "drafts", "events", "models", "sdk", "tools"]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    DRAFTS_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    MODELS_FIELD_NUMBER: _ClassVar[int]
    SDK_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    channel: bool
    drafts: bool
    events: bool
    models: bool
    sdk: str
    tools: _containers.RepeatedCompositeFieldContainer[Tool]
    def __init__(self, channel: bool = ..., drafts: bool = ..., models: bool = ..., events: bool = ..., tools: _Optional[_Iterable[_Union[Tool, _Mapping]]] = ..., sdk: _Optional[str] = ...) -> None: ...

class DraftResponse(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class DraftUpdate(_message.Message):
    __slots__ = ["conversation", "done", "draft_id", "reply_to", "text", "thread"]
    CONVERSATION_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    DRAFT_ID_FIELD_NUMBER: _ClassVar[int]
    REPLY_TO_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    THREAD_FIELD_NUMBER: _ClassVar[int]
    conversation: str
    done: bool
    draft_id: str
    reply_to: str
    text: str
    thread: str
    def __init__(self, conversation: _Optional[str] = ..., thread: _Optional[str] = ..., draft_id: _Optional[str] = ..., text: _Optional[str] = ..., done: bool = ..., reply_to: _Optional[str] = ...) -> None: ...

class HealthRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class Image(_message.Message):
    __slots__ = ["data", "mime"]
    DATA_FIELD_NUMBER: _ClassVar[int]
    MIME_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    mime: str
    def __init__(self, mime: _Optional[str] = ..., data: _Optional[bytes] = ...) -> None: ...

class InitRequest(_message.Message):
    __slots__ = ["agent", "config", "data_dir", "generation", "id", "kernel_address", "kernel_token", "name", "run_dir", "secrets", "timezone"]
    class SecretsEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    AGENT_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    DATA_DIR_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    KERNEL_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    KERNEL_TOKEN_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    RUN_DIR_FIELD_NUMBER: _ClassVar[int]
    SECRETS_FIELD_NUMBER: _ClassVar[int]
    TIMEZONE_FIELD_NUMBER: _ClassVar[int]
    agent: AgentSpec
    config: bytes
    data_dir: str
    generation: int
    id: str
    kernel_address: str
    kernel_token: str
    name: str
    run_dir: str
    secrets: _containers.ScalarMap[str, str]
    timezone: str
    def __init__(self, id: _Optional[str] = ..., generation: _Optional[int] = ..., kernel_address: _Optional[str] = ..., kernel_token: _Optional[str] = ..., config: _Optional[bytes] = ..., secrets: _Optional[_Mapping[str, str]] = ..., run_dir: _Optional[str] = ..., data_dir: _Optional[str] = ..., timezone: _Optional[str] = ..., agent: _Optional[_Union[AgentSpec, _Mapping]] = ..., name: _Optional[str] = ...) -> None: ...

class InitResponse(_message.Message):
    __slots__ = ["readiness"]
    READINESS_FIELD_NUMBER: _ClassVar[int]
    readiness: Readiness
    def __init__(self, readiness: _Optional[_Union[Readiness, _Mapping]] = ...) -> None: ...

class Message(_message.Message):
    __slots__ = ["call_id", "calls", "content", "images", "name", "role"]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    IMAGES_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    calls: _containers.RepeatedCompositeFieldContainer[_bus_pb2.Call]
    content: str
    images: _containers.RepeatedCompositeFieldContainer[Image]
    name: str
    role: str
    def __init__(self, role: _Optional[str] = ..., content: _Optional[str] = ..., calls: _Optional[_Iterable[_Union[_bus_pb2.Call, _Mapping]]] = ..., call_id: _Optional[str] = ..., name: _Optional[str] = ..., images: _Optional[_Iterable[_Union[Image, _Mapping]]] = ...) -> None: ...

class OutcomeFrame(_message.Message):
    __slots__ = ["credit", "outcomes"]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    credit: int
    outcomes: _containers.RepeatedCompositeFieldContainer[_bus_pb2.Outcome]
    def __init__(self, outcomes: _Optional[_Iterable[_Union[_bus_pb2.Outcome, _Mapping]]] = ..., credit: _Optional[int] = ...) -> None: ...

class Principal(_message.Message):
    __slots__ = ["accounts", "confined", "conversation", "extension", "group", "own", "person"]
    ACCOUNTS_FIELD_NUMBER: _ClassVar[int]
    CONFINED_FIELD_NUMBER: _ClassVar[int]
    CONVERSATION_FIELD_NUMBER: _ClassVar[int]
    EXTENSION_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    OWN_FIELD_NUMBER: _ClassVar[int]
    PERSON_FIELD_NUMBER: _ClassVar[int]
    accounts: _containers.RepeatedScalarFieldContainer[str]
    confined: bool
    conversation: str
    extension: str
    group: str
    own: bool
    person: str
    def __init__(self, person: _Optional[str] = ..., conversation: _Optional[str] = ..., group: _Optional[str] = ..., confined: bool = ..., own: bool = ..., accounts: _Optional[_Iterable[str]] = ..., extension: _Optional[str] = ...) -> None: ...

class Readiness(_message.Message):
    __slots__ = ["description", "detail", "state"]
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    STATE_DEGRADED: Readiness.State
    STATE_FIELD_NUMBER: _ClassVar[int]
    STATE_OFFLINE: Readiness.State
    STATE_READY: Readiness.State
    STATE_UNCONFIGURED: Readiness.State
    STATE_UNSPECIFIED: Readiness.State
    description: Description
    detail: str
    state: Readiness.State
    def __init__(self, state: _Optional[_Union[Readiness.State, str]] = ..., detail: _Optional[str] = ..., description: _Optional[_Union[Description, _Mapping]] = ...) -> None: ...

class Recording(_message.Message):
    __slots__ = ["blob", "lane", "mime", "name", "size"]
    BLOB_FIELD_NUMBER: _ClassVar[int]
    LANE_FIELD_NUMBER: _ClassVar[int]
    MIME_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    blob: str
    lane: str
    mime: str
    name: str
    size: int
    def __init__(self, blob: _Optional[str] = ..., name: _Optional[str] = ..., mime: _Optional[str] = ..., size: _Optional[int] = ..., lane: _Optional[str] = ...) -> None: ...

class ShutdownRequest(_message.Message):
    __slots__ = ["grace_ms"]
    GRACE_MS_FIELD_NUMBER: _ClassVar[int]
    grace_ms: int
    def __init__(self, grace_ms: _Optional[int] = ...) -> None: ...

class ShutdownResponse(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class Tool(_message.Message):
    __slots__ = ["approve", "command", "description", "final", "idempotent", "interruptible", "name", "private", "read_only", "schema", "waits"]
    APPROVE_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    FINAL_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENT_FIELD_NUMBER: _ClassVar[int]
    INTERRUPTIBLE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PRIVATE_FIELD_NUMBER: _ClassVar[int]
    READ_ONLY_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    WAITS_FIELD_NUMBER: _ClassVar[int]
    approve: bool
    command: str
    description: str
    final: bool
    idempotent: bool
    interruptible: bool
    name: str
    private: bool
    read_only: bool
    schema: bytes
    waits: bool
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., schema: _Optional[bytes] = ..., read_only: bool = ..., idempotent: bool = ..., interruptible: bool = ..., private: bool = ..., command: _Optional[str] = ..., approve: bool = ..., final: bool = ..., waits: bool = ...) -> None: ...

class Usage(_message.Message):
    __slots__ = ["audio_ms", "cached_tokens", "cost_micros", "currency", "input_tokens", "output_tokens"]
    AUDIO_MS_FIELD_NUMBER: _ClassVar[int]
    CACHED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COST_MICROS_FIELD_NUMBER: _ClassVar[int]
    CURRENCY_FIELD_NUMBER: _ClassVar[int]
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    audio_ms: int
    cached_tokens: int
    cost_micros: int
    currency: str
    input_tokens: int
    output_tokens: int
    def __init__(self, input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., cached_tokens: _Optional[int] = ..., cost_micros: _Optional[int] = ..., currency: _Optional[str] = ..., audio_ms: _Optional[int] = ...) -> None: ...
