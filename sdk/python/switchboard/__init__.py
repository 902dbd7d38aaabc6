"""Switchboard's SDK: channels, tools and everything else that an extension can be, in Python.

An Extension has functions that the kernel calls. What they return, their effects, is committed together with the
acknowledgement of what they handled: all of it or nothing, whatever is killed and when. Anything may be repeated once
after a crash; Event.delivery.uncertain, Message.uncertain and ToolCall.repeat say so.
"""

__version__ = "0.1.0"

from .errors import *
from .payloads import *
from .types import *
from .schema import arg as arg
from .client import Kernel as Kernel
from .server import Extension as Extension
