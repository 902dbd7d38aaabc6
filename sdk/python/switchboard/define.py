"""An extension: functions that the kernel calls, each registered by a decorator."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Callable, Dict, Optional, TypeVar, cast

from switchboard.extension.v1 import extension_pb2 as ext

from .client import Kernel
from .schema import Signature
from .types import ToolCall, ToolResult, encode

F = TypeVar("F", bound=Callable[..., Any])


@dataclass
class Tool:
    """A tool of an extension, and what it is called with."""

    proto: ext.Tool
    function: Callable[..., Any]
    signature: Optional[Signature]  # None: the function gets the ToolCall

    def arguments(self, call: ToolCall) -> Dict[str, Any]:
        return dict(self.signature.arguments(call)) if self.signature else {"call": call}


class Extension:
    """An extension and its handlers, which are ordinary or async functions and run concurrently.

    The id is the manifest's. It may have fewer handlers than the manifest provides, never more. A decorated
    function stays as it is: tests call it directly.
    """

    def __init__(self, id: str) -> None:
        self.id = id
        self.tools: Dict[str, Tool] = {}
        self.handlers: Dict[str, Callable[..., Any]] = {}
        self._kernel: Optional[Kernel] = None

    @property
    def kernel(self) -> Kernel:
        """The kernel; from start on. Tests assign a switchboard.testing.FakeKernel."""
        if self._kernel is None:
            raise RuntimeError(f"extension {self.id} has no kernel yet: use it in handlers, or assign one in a test")
        return self._kernel

    @kernel.setter
    def kernel(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def _register(self, kind: str, function: F) -> F:
        if kind in self.handlers:
            raise ValueError(f"extension {self.id} has two functions for {kind}")
        self.handlers[kind] = function
        return function

    def start(self, function: F) -> F:
        """Called with nothing when configuration and secrets have arrived, before the first delivery.

        The extension is active when it returns; an exception fails the start.
        """
        return self._register("start", function)

    def run(self, function: F) -> F:
        """Background work, called with nothing once the extension is active.

        It returns when ended() does, or at the first sleep() after that. After an exception the extension is
        OFFLINE with the reason, and it is called again after a pause that grows from a second to a minute.
        """
        return self._register("run", function)

    def stop(self, function: F) -> F:
        """Called with nothing at shutdown, after the handlers have ended."""
        return self._register("stop", function)

    def send(self, function: F) -> F:
        """A channel: called with a Message, returns a Receipt when the platform has it.

        Messages of one conversation come one at a time. An exception means that it was not sent, unless it is
        Unknown; see Retry and Drop.
        """
        return self._register("send", function)

    def draft(self, function: F) -> F:
        """A channel that shows text while it is written: called with a Draft. Updates may be lost."""
        return self._register("draft", function)

    def remove_draft(self, function: F) -> F:
        """Called with a Draft, to remove it because no message replaces it. It is retried like send.

        Without it, draft is called with done.
        """
        return self._register("remove_draft", function)

    def handle(self, function: F) -> F:
        """Called with each Event of the manifest's subscriptions; returns None or effects.

        They are committed with the acknowledgement. An exception retries the event with back-off and counts as
        a failure, unless it is Retry, Drop or Unknown.
        """
        return self._register("handle", function)

    def results(self, function: F) -> F:
        """Called with the CallResult of each effect call; returns None or effects."""
        return self._register("results", function)

    def agent(self, function: F) -> F:
        """An agent's run loop: called with the Event of each input, returns effects. See docs/sessions-and-turns.md."""
        return self._register("agent", function)

    def complete(self, function: F) -> F:
        """A provider of models: called with a CompleteRequest, yields Deltas."""
        return self._register("complete", function)

    def tool(
        self, function: Optional[F] = None, *, name: str = "", description: str = "", schema: Any = None, **options: Any
    ) -> Any:
        """A tool for agents, with the function's name, docstring and type hints, which make the schema.

        It returns a ToolResult, or its content: text, or what becomes JSON. The function gets the arguments, and
        the ToolCall in a parameter of that type; with a schema of your own, only the call. Options are those of
        Tool in extension.proto: read_only, idempotent, interruptible, waits, private, approve, final, command.
        """
        if function is None:
            return lambda f: self.tool(f, name=name, description=description, schema=schema, **options)
        name = name or function.__name__
        if name in self.tools:
            raise ValueError(f"extension {self.id} has two tools named {name}")
        signature = None if schema is not None else Signature(function, name)
        description = description or inspect.getdoc(function) or ""
        if not description:
            raise ValueError(f"tool {name} needs a docstring: the model chooses by it")
        text = encode(signature.schema if signature else schema)
        proto = ext.Tool(name=name, description=description, schema=text, **options)
        self.tools[name] = Tool(proto, function, signature)
        return cast(F, function)

    def describe(self) -> ext.Description:
        from . import __version__

        has = self.handlers.__contains__
        return ext.Description(
            channel=has("send"), drafts=has("draft"), models=has("complete"),
            events=any(map(has, ("send", "handle", "results", "agent"))),
            tools=[t.proto for t in self.tools.values()], sdk=f"python/{__version__}",
        )

    def serve(self) -> None:
        """Serves the extension until the kernel shuts it down or ends. Call it last; it does not return."""
        from .server import serve

        serve(self)


def result_of(value: Any) -> ToolResult:
    """What a tool function has returned, as a result."""
    return value if isinstance(value, ToolResult) else ToolResult(value)
