"""Switchboard's SDK: channels, tools and everything else that an extension can be, in Python.

An Extension has functions that the kernel calls. What they return, their effects, is committed together with the
acknowledgement of what they handled: all of it or nothing, whatever is killed and when. Anything may be repeated once
after a crash; Event.uncertain, Message.uncertain and ToolCall.repeat say so.
"""

__version__ = "0.1.0"

from .effects import (Effect, append, call, cancel_turn, delete, ensure_session, notify, publish, put, queue_input,
                      when_idle, withdraw)
from .errors import (Conflict, Denied, Drop, Ended, Full, Gone, Invalid, NotFound, Retry, Stale, SwitchboardError,
                     TooLarge, ToolError, Unavailable, Unknown)
from .define import Extension
from .client import Kernel
from .schema import arg
from .scope import ended, sleep
from .types import (Action, Attachment, Blob, CallResult, Draft, Event, Message, Principal, Quote, Readiness, Receipt,
                    ToolCall, ToolResult, UserMessage, Value)

__all__ = [
    "Action", "Attachment", "Blob", "CallResult", "Conflict", "Denied", "Draft", "Drop", "Effect", "Ended", "Event",
    "Extension", "Full", "Gone", "Invalid", "Kernel", "Message", "NotFound", "Principal", "Quote", "Readiness",
    "Receipt", "Retry", "Stale", "SwitchboardError", "TooLarge", "ToolCall", "ToolError", "ToolResult", "Unavailable",
    "Unknown", "UserMessage", "Value", "append", "arg", "call", "cancel_turn", "delete", "ended", "ensure_session",
    "notify", "publish", "put", "queue_input", "sleep", "when_idle", "withdraw",
]
