"""An extension: functions that the kernel calls, each registered by a decorator, and the process that serves them."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import os
import signal
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, AsyncIterator, Callable, Dict, List, Optional, Set, Tuple, TypeVar

import grpc
from google.protobuf.descriptor import MethodDescriptor

from switchboard.bus.v1 import bus_pb2 as bus
from switchboard.extension.v1 import extension_pb2 as ext

from . import __version__
from .client import SIZES, Kernel, bounded, kind_of, lane
from .errors import (Conflict, Drop, Ended, Ending, Gone, Invalid, NotFound, SwitchboardError, ToolError, Unavailable,
                     Unknown, reason_of)
from .payloads import CallResult
from .schema import decode, encode, parameters_of
from .types import Draft, Effect, Event, Message, ToolResult, effects_of, receipt, result

CREDIT = 1024  # deliveries that are handled at once
ORPHANED = 30.0  # seconds without Init after which the kernel is gone
F = TypeVar("F", bound=Callable[..., Any])


def _decorator(kind: str) -> Callable[[Extension, F], F]:
    def register(self: Extension, function: F) -> F:
        if self.handlers.setdefault(kind, function) is not function:
            raise ValueError(f"extension {self.id} has two functions for {kind}")
        return function

    return register


class Extension:
    """An extension and its handlers, which run concurrently.

    Handlers are async functions, cancelled when they have to end. Others run in a thread each, which nothing can
    cancel, and cannot await the kernel: they should be short. The id is the manifest's. There may be fewer handlers
    than the manifest provides, never more. A decorated function stays what it was: tests call it directly.
    """

    kernel: Kernel
    """The kernel; from start on. Tests assign a switchboard.testing.FakeKernel."""

    start = _decorator("start")
    """Called with nothing when configuration and secrets have arrived, before the first delivery.

    The extension is active when it returns; an exception fails the start.
    """

    run = _decorator("run")
    """Background work, called with nothing once the extension is active, and cancelled at its end.

    After an exception the extension is offline with the reason, and it is called again after a pause that grows from
    a second to a minute.
    """

    stop = _decorator("stop")
    """Called with nothing at shutdown, after the handlers have ended."""

    send = _decorator("send")
    """A channel: called with a Message, returns a receipt when the platform has it, or more effects with it.

    Messages of one conversation come one at a time. An exception means that it was not sent, unless it is Unknown; see
    Retry and Drop. One that is cancelled is Unknown.
    """

    draft = _decorator("draft")
    """A channel that shows text while it is written: called with a Draft. Updates may be lost."""

    remove_draft = _decorator("remove_draft")
    """Called with a Draft, to remove it because no message replaces it. It is retried like send.

    Without it, draft is called with done.
    """

    handle = _decorator("handle")
    """Called with each Event of the manifest's subscriptions; returns an effect, several or None.

    They are committed with the acknowledgement. An exception retries the event with back-off and counts as a failure,
    unless it is Retry, Drop or Unknown.
    """

    results = _decorator("results")
    """Called with the CallResult of each effect call; returns like handle."""

    agent = _decorator("agent")
    """An agent's run loop: called with the Event of each input, returns effects. See docs/sessions-and-turns.md."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.tools: Dict[str, Tuple[ext.Tool, Callable[..., Any], Callable[[ext.CallRequest], Dict[str, Any]]]] = {}
        self.handlers: Dict[str, Callable[..., Any]] = {}

    def tool(
        self, function: Optional[F] = None, *, name: str = "", description: str = "", schema: Any = None, **options: Any
    ) -> Any:
        """A tool for agents, with the function's name, docstring and type hints, which make the schema.

        It returns a result, or its content: text, or what becomes JSON. The function gets the arguments, and
        the ToolCall in a parameter of that type; with a schema of your own, only the call. Options are those of
        Tool in extension.proto: read_only, idempotent, interruptible, waits, private, approve, final, command.
        """
        if function is None:
            return lambda f: self.tool(f, name=name, description=description, schema=schema, **options)
        name, description = name or function.__name__, description or inspect.getdoc(function) or ""
        if name in self.tools or not description:
            raise ValueError(f"tool {name} needs a name of its own, and a docstring by which the model chooses it")
        found, arguments = (schema, lambda call: {"call": call}) if schema else parameters_of(function, name)
        proto = ext.Tool(name=name, description=description, schema=encode(found), **options)
        self.tools[name] = proto, function, arguments
        return function

    def describe(self) -> ext.Description:
        channel, events = "send" in self.handlers, {"handle", "results", "agent"} & self.handlers.keys()
        return ext.Description(channel=channel, drafts="draft" in self.handlers, events=channel or bool(events),
                               tools=[tool for tool, _, _ in self.tools.values()], sdk=f"python/{__version__}")

    def serve(self) -> None:
        """Serves the extension until the kernel shuts it down or ends. Call it last; it does not return."""
        if os.environ.get("SWITCHBOARD_EXTENSION") != "b81c3d9e5f7a4c20":
            sys.exit("This is a Switchboard extension. Put it beside its manifest.yaml, and Switchboard starts it.")
        if os.environ.get("PLUGIN_CLIENT_CERT"):
            sys.exit("The kernel asks for TLS (go-plugin's AutoMTLS), which the Python SDK does not speak.")
        handshake = os.dup(1)
        os.dup2(2, 1)  # what the program prints is logged
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore
        for level, known in (("WARNING", "WARN"), ("CRITICAL", "ERROR")):
            logging.addLevelName(logging.getLevelName(level), known)
        level = os.environ.get("SWITCHBOARD_LOG_LEVEL", "info").upper().replace("TRACE", "DEBUG")
        logging.basicConfig(format="[%(levelname)s] %(name)s: %(message)s", level=level, force=True)
        asyncio.run(_serve(self, handshake))


async def run(function: Optional[Callable[..., Any]], *args: Any, **named: Any) -> Any:
    """Calls a handler; one that is not async in a thread, which ends by itself."""
    if function is None or inspect.iscoroutinefunction(function):
        return await function(*args, **named) if function else None
    work = asyncio.ensure_future(asyncio.to_thread(function, *args, **named))
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            return await asyncio.shield(work)


class Server:
    """Serves an extension to one kernel: from Init to Shutdown, and perhaps again."""

    def __init__(self, extension: Extension) -> None:
        self.ext, self.id, self.handlers = extension, extension.id, extension.handlers
        self.log = logging.getLogger(extension.id)
        self.kernel: Optional[Kernel] = None  # from Init to Shutdown
        self.background: List[asyncio.Future[Any]] = []
        self.work: Dict[Any, bool] = {}  # what the kernel waits for, and whether a shutdown interrupts it at once
        self.done, self.lock = asyncio.Event(), asyncio.Lock()  # one Init or Shutdown at a time
        self.later = asyncio.get_running_loop().call_later
        self.orphaned = self.later(ORPHANED, self.done.set)

    async def describe(self, request: ext.DescribeRequest, _: Any) -> ext.Description:
        return self.ext.describe()

    async def health(self, request: ext.HealthRequest, _: Any) -> ext.Readiness:
        return self.kernel.readiness if self.kernel else ext.Readiness(state="STATE_OFFLINE", detail="not initialized")

    async def init(self, r: ext.InitRequest, _: Any) -> ext.InitResponse:
        async with self.lock:
            if r.id != self.id:
                raise Invalid(f"the manifest has the id {r.id!r}, the program {self.id!r}")
            self.orphaned.cancel()
            await self.end(1.0)  # the kernel did not learn of an earlier start in time
            kernel = self.ext.kernel = Kernel(r)
            await kernel.connect()
            await run(self.handlers.get("start"))
            self.kernel, kernel.active = kernel, True
            self.background = [asyncio.ensure_future(t) for t in (self.leave_with(kernel), self.keep_running(kernel))]
            return ext.InitResponse(readiness=kernel.readiness)

    async def keep_running(self, kernel: Kernel) -> None:
        """Runs the background work until it returns."""
        pause = 1.0
        while True:
            try:
                return await run(self.handlers.get("run"))
            except Exception as e:
                self.log.exception("background work failed, again after %.0f s", pause)
                before = kernel.readiness
                await kernel.report(ext.Readiness(state="STATE_OFFLINE", detail=reason_of(e)))
            await asyncio.sleep(pause)
            await kernel.report(before)
            pause = min(2 * pause, 60.0)

    async def leave_with(self, kernel: Kernel) -> None:
        """Ends the process when the kernel has ended: nothing can be recorded."""
        await kernel.gone()
        self.interrupt()
        self.ending = asyncio.ensure_future(self.end(0.4))
        self.ending.add_done_callback(lambda _: self.done.set())

    async def shutdown(self, r: ext.ShutdownRequest, _: Any) -> ext.ShutdownResponse:
        async with self.lock:
            await self.end(r.grace_ms / 1000 or 5.0)
        self.later(0.5, lambda: None if self.kernel else self.done.set())  # unless it is started again
        return ext.ShutdownResponse()

    async def end(self, grace: float) -> None:
        """Drains: running handlers may finish in three quarters of the grace; then they are cancelled."""
        kernel, deadline = self.kernel, time.monotonic() + grace
        if not kernel or kernel.draining.is_set():
            return
        kernel.draining.set()
        self.interrupt(at_once=True)
        if await late(self.work, grace * 3 / 4):
            self.interrupt()
            if await late(self.work, grace / 8):
                self.log.warning("handlers ignore that they were cancelled")
        self.background[1].cancel()
        stop = asyncio.ensure_future(run(self.handlers.get("stop")))
        if not await late([stop], max(0.1, deadline - time.monotonic())) and stop.exception():
            self.log.error("stop failed", exc_info=stop.exception())
        self.background[0].cancel()
        await kernel.close()
        self.kernel = None

    def begin(self, work: Any, interruptible: bool = False) -> asyncio.Future[Any]:
        task = asyncio.ensure_future(work)
        self.work[task] = interruptible
        task.add_done_callback(self.work.pop)
        return task

    def interrupt(self, at_once: bool = False) -> None:
        """Cancels work: all, or what a shutdown interrupts at once."""
        for task in [task for task, interruptible in self.work.items() if interruptible >= at_once]:
            task.cancel()

    def running(self) -> Kernel:
        if not self.kernel or self.kernel.draining.is_set():
            raise Unavailable(f"extension {self.id} is not running")
        return self.kernel

    async def handle(self, token: str, work: Any, seconds: Optional[float] = None) -> Any:
        """Does the work of a handler in its lane. When it is cancelled, that is Gone in a shutdown, and else Ended."""
        lane.set(token)
        try:
            return await asyncio.wait_for(work, seconds)
        except asyncio.CancelledError:
            ends = not self.kernel or self.kernel.draining.is_set()
            raise (Gone("the extension is shutting down") if ends else Ended("the handler was cancelled")) from None

    async def deliver(self, requests: AsyncIterator[ext.DeliverFrame], context: Any) -> None:
        """Handles deliveries, each in a task; the kernel keeps those of one key in order."""
        kernel, writing, owed = self.running(), asyncio.Lock(), CREDIT
        tasks: Dict[str, asyncio.Future[None]] = {}

        async def answer(*outcomes: bus.Outcome) -> None:
            nonlocal owed
            async with writing:
                given, owed = (owed, 0) if len(tasks) < CREDIT else (0, owed)
                await context.write(ext.OutcomeFrame(outcomes=outcomes, credit=given))

        async def settle(d: bus.Delivery) -> None:
            outcome = await self.outcome(d)
            del tasks[d.token]
            await answer(outcome)

        await answer()
        async for frame in requests:
            if kernel.draining.is_set():
                continue
            for d in frame.deliveries:
                tasks[d.token] = self.begin(settle(d))
            for token in frame.cancels:
                if token in tasks:
                    tasks[token].cancel()
            owed += len(frame.deliveries)
            await answer()

    async def outcome(self, d: bus.Delivery) -> bus.Outcome:
        """Handles a delivery, and says how that ended."""
        left = d.deadline_us / 1e6 - time.time() if d.deadline_us else None
        try:
            effects = effects_of(await self.handle(d.token, self.dispatch(d), left))
            return bounded(bus.Outcome(token=d.token, kind=bus.Outcome.KIND_ACK, effects=effects), "the effects")
        except Exception as e:
            end = e if isinstance(e, Ending) else Ending()
            if end.kind == bus.Outcome.KIND_FAIL:
                self.log.exception("handler of %s failed", d.event.topic)
            return bus.Outcome(token=d.token, kind=end.kind, retry_after_ms=int(end.after * 1000), reason=reason_of(e),
                               effects=end.effects)

    async def dispatch(self, d: bus.Delivery) -> Any:
        id, topic, has = self.id, d.event.topic, self.handlers.get
        try:
            event = Event.of(d.event, d)
        except ValueError as e:
            raise Drop(f"decode payload of {topic}: {e}") from e
        if topic == f"channel.send.{id}" and has("send"):
            return await self.send(event)
        if topic == f"agent.input.{id}" and has("agent"):
            return await run(has("agent"), event)
        if topic == f"tool.result.{id}" and (has("results") or not has("handle")):
            return await run(has("results"), decode(CallResult, event.payload))
        if has("handle"):
            return await run(has("handle"), event)
        raise Drop(f"extension {id} has no handler for topic {topic}")

    async def send(self, event: Event) -> List[Effect]:
        m = decode(Message, event.payload)
        m.id, m.uncertain, m.created_at = event.id, event.delivery.uncertain, event.created_at
        if not m.text and not m.attachments and m.draft_id:
            draft = Draft(conversation=m.conversation, thread=m.thread, draft_id=m.draft_id, done=True)
            return effects_of(await run(self.handlers.get("remove_draft", self.handlers.get("draft")), draft))
        try:
            effects = effects_of(await run(self.handlers["send"], m))
        except asyncio.CancelledError:
            raise Unknown("cancelled while it was being sent") from None
        return effects if any(e.HasField("receipt") for e in effects) else [receipt(), *effects]

    async def call(self, r: ext.CallRequest, _: Any) -> ToolResult:
        r.timezone = r.timezone or str(self.running().timezone)
        if r.name not in self.ext.tools:
            raise NotFound(f"extension {self.id} has no tool {r.name!r}")
        tool, function, arguments = self.ext.tools[r.name]
        try:
            work = self.handle(r.lane, run(function, **arguments(r)))
            given = await self.begin(work, tool.interruptible or tool.waits)
            return bounded(given if isinstance(given, ToolResult) else result(given), f"result of {r.name}")
        except (Conflict, Ended, Gone):  # after a conflict the kernel calls again
            raise
        except Exception as e:
            if not isinstance(e, (ToolError, SwitchboardError)):
                self.log.exception("tool %s failed", r.name)
            return result(reason_of(e), is_error=True)

    async def draft(self, updates: AsyncIterator[Draft], _: Any) -> ext.DraftResponse:
        """Shows the newest text; a channel that is slower than the model skips some."""
        self.running()
        newest = shown = showing = None

        async def show() -> None:
            nonlocal shown
            while shown is not newest:
                shown = newest
                await run(self.handlers.get("draft"), newest)

        async for newest in updates:
            if showing is None or showing.done():
                showing = self.begin(show())
        return ext.DraftResponse()

    async def check(self, *_: Any) -> bytes:
        return b"\x08\x01"  # SERVING

    async def leave(self, *_: Any) -> bytes:
        self.later(0.05, self.done.set)
        return b""

    def services(self) -> List[grpc.GenericRpcHandler]:
        """The services of the contract, whose methods are those of this class in lower case, and two of go-plugin's."""
        served = {"grpc.health.v1.Health": {"Check": grpc.unary_unary_rpc_method_handler(self.check)},
                  "plugin.GRPCController": {"Shutdown": grpc.unary_unary_rpc_method_handler(self.leave)}}
        for s in ext.DESCRIPTOR.services_by_name.values():
            served[s.full_name] = {m.name: self.method(m) for m in s.methods if hasattr(self, m.name.lower())}
        return [grpc.method_handlers_generic_handler(name, methods) for name, methods in served.items()]

    def method(self, described: MethodDescriptor) -> grpc.RpcMethodHandler:
        async def serve(request: Any, context: Any) -> Any:
            try:
                return await getattr(self, described.name.lower())(request, context)
            except Exception as e:
                if not isinstance(e, SwitchboardError):
                    self.log.error("request %s failed", described.name, exc_info=e)
                await context.abort(getattr(e, "code", grpc.StatusCode.UNKNOWN), reason_of(e))

        take, give = described.input_type._concrete_class, described.output_type._concrete_class
        make = getattr(grpc, f"{kind_of(described)}_rpc_method_handler")
        return make(serve, take.FromString, give.SerializeToString)


async def late(tasks: Any, seconds: float) -> Set[Any]:
    """Waits for tasks, and returns those that have not ended then."""
    return (await asyncio.wait(list(tasks), timeout=seconds))[1] if tasks else set()


async def _serve(extension: Extension, handshake: int) -> None:
    server, loop = Server(extension), asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(256, "handler"))
    rpc = grpc.aio.server(handlers=server.services(), options=SIZES)
    path = os.path.join(os.environ.get("PLUGIN_UNIX_SOCKET_DIR") or tempfile.mkdtemp(), f"plugin{os.getpid()}")
    rpc.add_insecure_port("unix:" + path)
    await rpc.start()
    os.write(handshake, f"1|1|unix|{path}|grpc\n".encode())
    loop.add_signal_handler(signal.SIGINT, lambda: None)  # of a terminal: the kernel decides
    loop.add_signal_handler(signal.SIGTERM, lambda: server.begin(server.shutdown(ext.ShutdownRequest(), None)))
    await server.done.wait()
    await asyncio.wait([loop.create_task(rpc.stop(0.1))], timeout=0.5)  # the kernel waits for two seconds
    os._exit(0)
