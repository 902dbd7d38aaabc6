"""The process of an extension: go-plugin's handshake, the contract's services, and its end."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import tempfile
import threading
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor, TimeoutError as FutureTimeout
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

import grpc

from switchboard.bus.v1 import bus_pb2 as bus
from switchboard.extension.v1 import extension_pb2 as ext

from . import logs
from .deliver import Deliveries
from .errors import Conflict, Drop, Ended, Gone, Invalid, NotFound, SwitchboardError, ToolError, Unavailable
from .define import Extension, result_of
from .client import MAX_COMMIT, MAX_MESSAGE, Kernel
from .scope import Scope, ended
from .types import (Action, Attachment, CallResult, Draft, Message, Principal, Readiness, Receipt, ToolCall, ToolResult,
                    decode, encode, event_of)

ORPHANED = 30.0  # seconds without Init after which the kernel is gone
GONE_GRACE = 0.4
REQUESTS = 512  # tools that wait have a thread each


class Activation:
    """One run of an extension, from Init to Shutdown."""

    def __init__(self, extension: Extension, init: ext.InitRequest, lost: Callable[[], None]) -> None:
        self.ext, self.kernel = extension, Kernel(init, lost)
        self.log = self.kernel.log
        self.background = Scope()
        self._changed = threading.Condition()
        self._streams: Set[Deliveries] = set()
        self._calls: Set[Tuple[Scope, bool]] = set()  # and whether a drain interrupts it
        self._draining = False
        extension.kernel = self.kernel
        try:
            self._handler("start", self.background)
        except BaseException:
            self.kernel.close()
            raise

    def _handler(self, name: str, scope: Scope, *args: Any) -> Any:
        function = self.ext.handlers.get(name)
        return scope.run(function, *args) if function else None

    def run(self) -> None:
        """Runs the background work until it returns or the extension ends."""
        pause = 1.0
        while True:
            try:
                return self._handler("run", self.background)
            except Exception as e:
                if self.background.over.is_set():
                    return
                self.log.exception("background work failed, again after %.0f s", pause)
                before = self.kernel.readiness
                self.kernel.set_readiness(Readiness.OFFLINE, f"{type(e).__name__}: {e}")
            if self.background.over.wait(pause):
                return
            self.kernel.set_readiness(Readiness(before.state), before.detail)
            pause = min(2 * pause, 60.0)

    def deliver(self, requests: Iterator[ext.DeliverFrame]) -> Iterator[ext.OutcomeFrame]:
        stream = Deliveries(self._dispatch, self.log)
        with self._changed:
            self._refuse_when_draining()
            self._streams.add(stream)
        try:
            yield from stream.frames(requests)
        finally:
            with self._changed:
                self._streams.discard(stream)
                self._changed.notify_all()

    def _refuse_when_draining(self) -> None:
        if self._draining:
            raise Unavailable(f"extension {self.kernel.id} is shutting down")

    def _dispatch(self, scope: Scope, d: bus.Delivery) -> List[bus.Effect]:
        has, topic, id = self.ext.handlers.__contains__, d.event.topic, self.kernel.id
        try:
            event = event_of(d.event, d)
        except ValueError as e:
            raise Drop(f"decode payload of {topic}: {e}") from e
        if topic == f"channel.send.{id}" and has("send"):
            return self._send(scope, event.payload, d)
        if topic == f"agent.input.{id}" and has("agent"):
            return list(self._handler("agent", scope, event) or ())
        if topic == f"tool.result.{id}" and has("results"):
            return list(self._handler("results", scope, decode(CallResult, event.payload)) or ())
        if has("handle"):
            return list(self._handler("handle", scope, event) or ())
        if topic == f"tool.result.{id}":
            return []
        raise Drop(f"extension {id} has no handler for topic {topic}")

    def _send(self, scope: Scope, s: Dict[str, Any], d: bus.Delivery) -> List[bus.Effect]:
        where = {"conversation": s.get("conversation", ""), "thread": s.get("thread", "")}
        attachments = [decode(Attachment, a) for a in s.get("attachments") or ()]
        if not s.get("text") and not attachments and s.get("draft_id"):  # it only removes a draft
            name = "remove_draft" if "remove_draft" in self.ext.handlers else "draft"
            self._handler(name, scope, Draft(**where, id=s["draft_id"], done=True))
            return []
        rest = {k: s[k] for k in s if k not in ("attachments", "actions")}
        m = decode(Message, {"unmarked": s.get("text", ""), "text": "", **rest, "id": d.event.id})
        m.attachments, m.actions = attachments, [decode(Action, a) for a in s.get("actions") or ()]
        m.uncertain, m.created_at = d.uncertain, event_of(d.event).created_at
        r = self._handler("send", scope, m) or Receipt()
        conversation = r.conversation or m.conversation
        receipt = bus.Receipt(provider_id=r.provider_id, conversation=conversation, thread=r.thread)
        return [bus.Effect(receipt=receipt), *r.effects]

    def call(self, r: ext.CallRequest, context: grpc.ServicerContext) -> ext.CallResult:
        tool = self.ext.tools.get(r.name)
        if tool is None:
            raise NotFound(f"extension {self.kernel.id} has no tool {r.name!r}")
        same = ("session agent reply_to channel sender repeat group thread input person command language").split()
        p = r.principal
        call = ToolCall(
            r.call_id, r.name, **{k: getattr(r, k) for k in same}, memory=list(r.memory),
            timezone=_zone(r.timezone) or self.kernel.timezone,
            principal=Principal(p.person, p.conversation, p.group, p.confined, p.own, p.extension, list(p.accounts)),
        )
        scope, interruptible = Scope(r.lane), tool.proto.interruptible or tool.proto.waits
        with self._changed:
            self._refuse_when_draining()
            self._calls.add((scope, interruptible))
        context.add_callback(scope.end)
        try:
            call.arguments = json.loads(r.arguments or b"{}")
            result = result_of(scope.run(tool.function, **tool.arguments(call)))
            content = result.content if isinstance(result.content, str) else encode(result.content).decode()
        except (Conflict, Ended, CancelledError, FutureTimeout) as e:
            if isinstance(e, Conflict):
                raise  # the kernel calls again
            if scope.stopped:
                raise Gone(f"extension {self.kernel.id} is shutting down") from None
            if scope.over.is_set():
                raise Ended("the call was cancelled") from None
            result, content = ToolResult("", is_error=True), str(e) or "timed out"
        except (ToolError, SwitchboardError) as e:
            result, content = ToolResult("", is_error=True), str(e)
        except Exception as e:
            self.log.exception("tool %s failed", r.name)
            result, content = ToolResult("", is_error=True), f"{type(e).__name__}: {e}"
        finally:
            with self._changed:
                self._calls.discard((scope, interruptible))
                self._changed.notify_all()
        out = ext.CallResult(content=content.encode(errors="replace").decode(), is_error=result.is_error,
                             effects=result.effects, nothing=result.nothing, text=result.text, blobs=result.blobs)
        if out.ByteSize() > MAX_COMMIT:
            size = f"result of {r.name} has {out.ByteSize()} bytes (at most {MAX_COMMIT})"
            return ext.CallResult(content=size, is_error=True)
        return out

    def complete(self, r: ext.CompleteRequest) -> Iterator[ext.Delta]:
        if "complete" not in self.ext.handlers:
            raise NotFound(f"extension {self.kernel.id} has no models")
        for i, delta in enumerate(self.ext.handlers["complete"](r)):
            if i == 0 and not delta.model:
                delta.model = f"{self.kernel.id}/{r.model}"
            yield delta

    def draft(self, updates: Iterator[ext.DraftUpdate]) -> None:
        """Shows the newest text of each draft; a channel that is slower than the model skips some."""
        newest: Dict[str, Optional[Draft]] = {}
        lock = threading.Lock()

        def show(key: str) -> None:
            while True:
                with lock:
                    draft, newest[key] = newest[key], None
                    if draft is None:
                        del newest[key]
                        return
                try:
                    self._handler("draft", self.background, draft)
                except Exception:
                    self.log.exception("draft failed")

        for u in updates:
            key = f"{u.conversation}\n{u.thread}\n{u.draft_id}"
            with lock:
                known = key in newest
                newest[key] = Draft(u.conversation, u.thread, u.draft_id, u.text, u.reply_to, u.done)
            if not known:
                threading.Thread(target=show, args=(key,), daemon=True).start()

    def shutdown(self, grace: float) -> None:
        """Drains: running handlers may finish in three quarters of the grace; then they are cancelled."""
        deadline = time.monotonic() + grace
        with self._changed:
            self._draining = True
            streams, calls = list(self._streams), list(self._calls)
        self.kernel.draining.set()
        for stream in streams:
            stream.end()
        for scope, interruptible in calls:
            if interruptible:
                scope.end(stopped=True)
        if not self._wait(grace * 3 / 4):
            self.interrupt()
            if not self._wait(grace / 8):
                self.log.warning("handlers ignore that they were cancelled")
        self.background.end(stopped=True)
        stop = threading.Thread(target=self._stop, daemon=True)
        stop.start()
        stop.join(max(0.1, deadline - time.monotonic()))
        self.kernel.close()

    def _wait(self, seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: not self._streams and not self._calls, seconds)

    def interrupt(self) -> None:
        for stream in list(self._streams):
            stream.interrupt()
        for scope, _ in list(self._calls):
            scope.end(stopped=True)

    def _stop(self) -> None:
        try:
            self._handler("stop", Scope())
        except Exception:
            self.log.exception("stop failed")


def _zone(name: str) -> Any:
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name) if name else None
    except Exception:
        return None


class Server:
    """Serves an extension to one kernel."""

    def __init__(self, extension: Extension) -> None:
        self.ext, self.log = extension, logging.getLogger(extension.id)
        self.activation: Optional[Activation] = None
        self.initialized = threading.Event()
        self.done = threading.Event()
        self._lock = threading.Lock()  # one Init or Shutdown at a time

    def init(self, r: ext.InitRequest, _: Any) -> ext.InitResponse:
        with self._lock:
            if r.id != self.ext.id:
                raise Invalid(f"the manifest has the id {r.id!r}, the program {self.ext.id!r}")
            self.initialized.set()
            self._end(1.0)  # the kernel did not learn of an earlier start in time
            self.activation = a = Activation(self.ext, r, lambda: self.lost(a))
        threading.Thread(target=a.run, name="run", daemon=True).start()
        return ext.InitResponse(readiness=a.kernel.announce())

    def health(self, _: ext.HealthRequest, __: Any) -> ext.Readiness:
        a = self.activation
        if a is None:
            return ext.Readiness(state=ext.Readiness.STATE_OFFLINE, detail="the extension is not initialized")
        return a.kernel.readiness

    def shutdown(self, r: ext.ShutdownRequest, _: Any) -> ext.ShutdownResponse:
        with self._lock:
            self._end(r.grace_ms / 1000 or 5.0)
        threading.Timer(0.5, lambda: self.activation or self.done.set()).start()  # unless it is started again
        return ext.ShutdownResponse()

    def _end(self, grace: float) -> None:
        if self.activation:
            self.activation.shutdown(grace)
            self.activation = None

    def current(self) -> Activation:
        if self.activation is None:
            raise Unavailable("the extension is not initialized")
        return self.activation

    def lost(self, a: Optional[Activation]) -> None:
        """Ends the process: the kernel has ended, and nothing can be recorded."""
        if a is not self.activation:
            return
        self.log.debug("the kernel has ended")

        def end() -> None:
            if a:
                a.interrupt()
                a.shutdown(GONE_GRACE)
            self.done.set()

        threading.Thread(target=end, daemon=True).start()
        threading.Timer(GONE_GRACE + 0.2, self.done.set).start()

    def draft(self, updates: Iterator[ext.DraftUpdate], _: Any) -> ext.DraftResponse:
        self.current().draft(updates)
        return ext.DraftResponse()

    def handlers(self) -> List[grpc.GenericRpcHandler]:
        unary, both = grpc.unary_unary_rpc_method_handler, grpc.stream_stream_rpc_method_handler
        up, down = grpc.stream_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
        leave = unary(lambda _, __: self.done.set() or b"")
        of = "switchboard.extension.v1."
        return [grpc.method_handlers_generic_handler(name, methods) for name, methods in {
            "grpc.health.v1.Health": {"Check": unary(lambda _, __: b"\x08\x01")},  # SERVING
            "plugin.GRPCController": {"Shutdown": leave},
            "plugin.GRPCStdio": {"StreamStdio": down(lambda _, __: iter(()))},
            of + "Extension": {
                "Describe": self._method(unary, lambda _, __: self.ext.describe(), ext.DescribeRequest),
                "Init": self._method(unary, self.init, ext.InitRequest),
                "Health": self._method(unary, self.health, ext.HealthRequest),
                "Shutdown": self._method(unary, self.shutdown, ext.ShutdownRequest),
            },
            of + "Events": {"Deliver": self._method(both, lambda r, _: self.current().deliver(r), ext.DeliverFrame)},
            of + "Tools": {"Call": self._method(unary, lambda r, c: self.current().call(r, c), ext.CallRequest)},
            of + "Models": {
                "Complete": self._method(down, lambda r, _: self.current().complete(r), ext.CompleteRequest),
            },
            of + "Drafts": {"Draft": self._method(up, self.draft, ext.DraftUpdate)},
        }.items()]

    def _method(self, kind: Any, function: Callable[[Any, Any], Any], request: Any) -> grpc.RpcMethodHandler:
        def refuse(context: grpc.ServicerContext, e: Exception) -> None:
            if not isinstance(e, SwitchboardError):
                self.log.exception("request failed")
            code = e.code if isinstance(e, SwitchboardError) else grpc.StatusCode.UNKNOWN
            context.abort(code, str(e) if isinstance(e, SwitchboardError) else f"{type(e).__name__}: {e}")

        def unary(r: Any, context: grpc.ServicerContext) -> Any:
            try:
                return function(r, context)
            except Exception as e:
                refuse(context, e)

        def stream(r: Any, context: grpc.ServicerContext) -> Iterator[Any]:
            try:
                yield from function(r, context)
            except Exception as e:
                refuse(context, e)

        streams = kind in (grpc.unary_stream_rpc_method_handler, grpc.stream_stream_rpc_method_handler)
        return kind(stream if streams else unary, request_deserializer=request.FromString,
                    response_serializer=lambda m: m.SerializeToString())


def serve(extension: Extension) -> None:
    if os.environ.get("SWITCHBOARD_EXTENSION") != "b81c3d9e5f7a4c20":
        sys.exit("This program is a Switchboard extension. Put it beside its manifest.yaml, and Switchboard starts it.")
    if os.environ.get("PLUGIN_CLIENT_CERT"):
        sys.exit("The kernel asks for TLS, which the Python SDK does not speak: use a unix socket without AutoMTLS.")
    handshake = os.dup(1)
    os.dup2(2, 1)  # what the program prints is logged
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    logs.set_up()
    server = Server(extension)
    options = [("grpc.max_receive_message_length", MAX_MESSAGE), ("grpc.max_send_message_length", MAX_MESSAGE)]
    rpc = grpc.server(ThreadPoolExecutor(REQUESTS, "request"), handlers=server.handlers(), options=options)
    path = os.path.join(os.environ.get("PLUGIN_UNIX_SOCKET_DIR") or tempfile.mkdtemp(), f"plugin{os.getpid()}")
    if len(path) > 103:
        sys.exit(f"The path of the socket is too long for this system: {path}: set a shorter TMPDIR")
    rpc.add_insecure_port("unix:" + path)
    rpc.start()
    os.write(handshake, f"1|1|unix|{path}|grpc\n".encode())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    leave = lambda *_: threading.Thread(target=server.shutdown, args=(ext.ShutdownRequest(), None)).start()  # noqa: E731
    signal.signal(signal.SIGTERM, leave)
    orphan = threading.Timer(ORPHANED, lambda: server.initialized.is_set() or server.done.set())
    orphan.daemon = True
    orphan.start()
    server.done.wait()
    rpc.stop(0.1).wait(0.5)
    logging.shutdown()
    sys.stdout.flush()
    os._exit(0)
