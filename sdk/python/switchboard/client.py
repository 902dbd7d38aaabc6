"""A client of the kernel's services."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from concurrent.futures import Future, TimeoutError as FutureTimeout, CancelledError
from collections import deque
from pathlib import Path
from typing import IO, Any, Callable, Deque, Dict, Iterable, Iterator, List, Optional, Tuple, Union
from zoneinfo import ZoneInfo

import grpc

from switchboard.bus.v1 import bus_pb2 as bus
from switchboard.extension.v1 import extension_pb2 as ext
from switchboard.kernel.v1 import kernel_pb2 as pb

from .effects import publish
from .errors import Ended, Gone, NotFound, SwitchboardError, TooLarge, from_code, from_rpc
from .scope import current
from .types import Blob, Event, Readiness, ToolResult, UserMessage, Value, encode, event_of

MAX_MESSAGE = 16 << 20
MAX_COMMIT = MAX_MESSAGE - (64 << 10)
FRAME = 1 << 20
CHUNK = 256 << 10
OPTIONS = [
    ("grpc.max_receive_message_length", MAX_MESSAGE), ("grpc.max_send_message_length", MAX_MESSAGE),
    ("grpc.default_authority", "localhost"), ("grpc.enable_http_proxy", 0), ("grpc.client_idle_timeout_ms", 2**31 - 1),
    ("grpc.use_local_subchannel_pool", 1),
]


class Kernel:
    """The kernel's services, safe for concurrent use. Calls in a handler are part of its delivery or tool call.

    Errors are those of switchboard.errors.
    """

    def __init__(self, init: ext.InitRequest, lost: Callable[[], None]) -> None:
        self.id: str = init.id
        self.name: str = init.name
        self.config: Dict[str, Any] = json.loads(init.config or b"{}")
        self.secrets: Dict[str, str] = dict(init.secrets)
        self.data_dir = Path(init.data_dir)  # for files that outlive the process
        self.run_dir = Path(init.run_dir)  # for sockets
        self.timezone = ZoneInfo(init.timezone or "UTC")
        self.agent: ext.AgentSpec = init.agent
        self.log = logging.getLogger(init.id)
        self.draining = threading.Event()  # set when the extension begins to shut down
        self.readiness = ext.Readiness(state=ext.Readiness.STATE_READY)
        self._address = init.kernel_address.strip()
        self._metadata = (("switchboard-token", init.kernel_token),)
        self._channel = grpc.insecure_channel(self._address, options=OPTIONS)
        self._files = grpc.insecure_channel(self._address, options=OPTIONS)  # a slow reader delays no event
        self._lost, self._closed, self._announced = lost, False, False
        self._methods: Dict[Tuple[str, bool], Any] = {}
        self._lock = threading.Lock()
        try:
            grpc.channel_ready_future(self._channel).result(timeout=10)
        except FutureTimeout:
            self._channel.close()
            raise Gone(f"connect to the kernel at {self._address!r}: no answer") from None
        self._commits: Optional[_Commits] = _Commits(self)

    def commit(self, *effects: bus.Effect, id: str = "") -> List[bus.EffectResult]:
        """Commits effects in one transaction and returns when they are on disk, with a result for each.

        Repeating the id returns the first results, and nothing happens twice.
        """
        commit = bus.Commit(id=id, lane=current().lane, effects=effects)
        if commit.ByteSize() > MAX_COMMIT:
            raise TooLarge(f"commit of {len(effects)} effects with {commit.ByteSize()} bytes (at most {MAX_COMMIT})")
        future = self._enqueue(commit)
        try:
            receipt = current().wait(future)
        except (CancelledError, FutureTimeout):
            raise Ended("commit, not confirmed: the handler was cancelled") from None
        if receipt.HasField("error"):
            raise from_code(receipt.error.code, receipt.error.message)
        return list(receipt.results)

    def receive(self, message: UserMessage, dedupe: str = "", *effects: bus.Effect) -> bool:
        """Reports a person's message, which is on disk when it returns; effects (a cursor) are committed with it.

        Reporting the dedupe key again is harmless. False: the person is not admitted, and nothing of the message
        is stored. Files were stored before by put_blob.
        """
        blobs = list(dict.fromkeys(a.blob for a in message.attachments if a.blob))
        return bool(self.commit(publish("user.message", message, dedupe=dedupe, blobs=blobs), *effects)[0].event_id)

    def get(self, key: str) -> Value:
        """Reads a key of the own store; one that does not exist has version 0."""
        v = self._call("KV/Get", pb.GetRequest(key=key), pb.Value)
        return Value(key, v.value, v.version)

    def scan(self, prefix: str = "") -> Iterator[Value]:
        """All keys with the prefix, in ascending order."""
        after, more = "", True
        while more:
            page = self._call("KV/Scan", pb.ScanRequest(prefix=prefix, after=after), pb.ScanResponse)
            for v in page.values:
                after = v.key
                yield Value(v.key, v.value, v.version)
            more = page.more

    def ask(self, tool: str, **arguments: Any) -> ToolResult:
        """Calls a read-only tool, which the manifest names under permissions.tools; it is not recorded."""
        r = self._call("Tools/Call", pb.CallToolRequest(lane=current().lane, name=tool, arguments=encode(arguments)),
                       ext.CallResult)
        return ToolResult(r.content, is_error=r.is_error)

    def tools(self) -> List[ext.Tool]:
        """The tools that the agent of the lane may use."""
        return list(self._call("Tools/List", pb.ListToolsRequest(lane=current().lane), pb.ListToolsResponse).tools)

    def call_tool(self, call_id: str) -> ToolResult:
        """Runs an open call of the history, once, and returns its stored result; for the run loop of an agent."""
        request = pb.CallToolRequest(lane=current().lane, call_id=call_id)
        r = self._call("Tools/Call", request, ext.CallResult)
        return ToolResult(r.content, is_error=r.is_error)

    def complete(
        self, messages: Iterable[ext.Message], *, model: str = "default", purpose: str = "", **fields: Any
    ) -> Iterator[ext.Delta]:
        """Asks a model, which the manifest names under permissions.models, and yields its answer as it arrives."""
        request = pb.CompleteRequest(lane=current().lane, model=model, messages=messages, purpose=purpose, **fields)
        return self._stream("Models/Complete", request, ext.Delta)

    def session(self, id: str = "", *, agent: str = "", key: str = "") -> pb.Session:
        """Reads a session of the lane, or one that this extension may queue inputs for."""
        request = pb.SessionRequest(session=id, lane=current().lane, agent=agent, key=key)
        return self._call("Sessions/Get", request, pb.Session)

    def sessions(self, agent: str = "", limit: int = 0) -> List[pb.Session]:
        """The lane's session and, with the grant sessions, all others."""
        request = pb.ListSessionsRequest(agent=agent, limit=limit, lane=current().lane)
        return list(self._call("Sessions/List", request, pb.ListSessionsResponse).sessions)

    def history(self, session: str, limit: int = 0) -> List[bus.Entry]:
        """The newest rows of a session that sessions lists, oldest first."""
        request = pb.HistoryRequest(session=session, lane=current().lane, limit=limit)
        return list(self._call("Sessions/History", request, pb.HistoryResponse).entries)

    def channels(self) -> List[pb.Channel]:
        """The channels with their readiness."""
        return list(self._call("Channels/List", pb.ListChannelsRequest(), pb.ListChannelsResponse).channels)

    def presence(self) -> pb.PresenceResponse:
        """When a person was last active. The manifest needs the permission presence."""
        return self._call("Sessions/Presence", pb.PresenceRequest(), pb.PresenceResponse)

    def watch(self, *topics: str) -> Iterator[Event]:
        """Events from now on, to display: what a broken watch missed does not come again."""
        return map(event_of, self._stream("Bus/Watch", pb.WatchRequest(topics=topics), bus.Event))

    def put_blob(self, data: Union[bytes, IO[bytes]]) -> Blob:
        """Stores a file, which is kept for an hour, and then as long as something committed names it."""
        if isinstance(data, bytes):
            chunks = (data[i : i + CHUNK] for i in range(0, len(data), CHUNK))
        else:
            chunks = iter(lambda: data.read(CHUNK), b"")
        rpc = self._method("Blobs/Put", pb.Blob, "stream_unary", files=True)
        try:
            b = rpc((pb.PutBlobRequest(data=c) for c in chunks), metadata=self._metadata)
        except grpc.RpcError as e:
            raise from_rpc(e) from None
        return Blob(b.hash, b.size)

    def get_blob(self, name: str) -> bytes:
        """Reads a file that came with this delivery or session, or that this extension keeps."""
        request = pb.GetBlobRequest(hash=name, lane=current().lane)
        parts = list(self._stream("Blobs/Get", request, pb.GetBlobResponse, files=True))
        data = b"".join(p.data for p in parts)
        if not parts or hashlib.sha256(data).hexdigest() != parts[0].blob.hash:
            raise NotFound(f"read file {name}: its bytes on disk are damaged; a backup may have them")
        return data

    def set_readiness(self, state: Readiness, detail: str = "") -> None:
        """Reports whether the extension can do its work; detail says why not and what to do."""
        with self._lock:
            new = ext.Readiness(state=int(state), detail=detail)
            changed, self.readiness = new != self.readiness, new
            if changed and self._announced:
                self._report(new)

    def set_tools(self, description: ext.Description) -> None:
        """Replaces the description, because the tools have changed: set_tools(extension.describe())."""
        with self._lock:
            r = self.readiness
            self._report(ext.Readiness(state=r.state, detail=r.detail, description=description))

    def announce(self) -> ext.Readiness:
        with self._lock:
            self._announced = True
            return self.readiness

    def _report(self, readiness: ext.Readiness) -> None:
        try:
            self._call("Runtime/Report", readiness, pb.ReportResponse)
        except SwitchboardError as e:
            self.log.debug("report readiness: %s", e)

    def close(self) -> None:
        self._closed = True
        self._channel.close()
        self._files.close()

    def _method(self, name: str, answer: Any, kind: str = "unary_unary", files: bool = False) -> Any:
        if (name, files) not in self._methods:
            make = getattr(self._files if files else self._channel, kind)
            self._methods[name, files] = make(
                "/switchboard.kernel.v1." + name,
                request_serializer=lambda m: m.SerializeToString(), response_deserializer=answer.FromString,
            )
        return self._methods[name, files]

    def _call(self, name: str, request: Any, answer: Any) -> Any:
        try:
            rpc = self._method(name, answer)
            return current().wait(rpc.future(request, timeout=current().remaining(), metadata=self._metadata))
        except grpc.RpcError as e:
            raise from_rpc(e) from None
        except (CancelledError, FutureTimeout, grpc.FutureCancelledError, grpc.FutureTimeoutError):
            raise Ended(f"{name}: the handler was cancelled") from None
        except ValueError:  # the channel is closed
            raise Gone(f"{name}: the extension has shut down") from None

    def _stream(self, name: str, request: Any, answer: Any, files: bool = False) -> Iterator[Any]:
        rpc = self._method(name, answer, "unary_stream", files)
        stream = rpc(request, timeout=current().remaining(), metadata=self._metadata)
        try:
            yield from stream
        except grpc.RpcError as e:
            raise from_rpc(e) from None
        finally:
            stream.cancel()

    def _enqueue(self, commit: bus.Commit) -> "Future[bus.CommitReceipt]":
        with self._lock:
            if self._closed:
                raise Gone("commit: the extension has shut down")
            future = self._commits.add(commit) if self._commits else None
            if future is None:  # the stream broke, but not the connection
                self._commits = _Commits(self)
                future = self._commits.add(commit)
            assert future is not None
            return future


class _Commits:
    """One stream of commits. Receipts come in their order. When the connection ends, so has the kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._changed = threading.Condition()
        self._waiting: Deque[Tuple[bus.Commit, Future[bus.CommitReceipt]]] = deque()
        self._sent: Deque[Future[bus.CommitReceipt]] = deque()
        self._broken: Optional[SwitchboardError] = None
        rpc = kernel._channel.stream_stream(
            "/switchboard.kernel.v1.Bus/Commit", request_serializer=pb.CommitFrame.SerializeToString,
            response_deserializer=pb.ReceiptFrame.FromString,
        )
        self._stream = rpc(self._frames(), metadata=kernel._metadata)
        threading.Thread(target=self._read, name="commits", daemon=True).start()

    def add(self, commit: bus.Commit) -> "Optional[Future[bus.CommitReceipt]]":
        with self._changed:
            if self._broken:
                return None
            future: Future[bus.CommitReceipt] = Future()
            self._waiting.append((commit, future))
            self._changed.notify()
            return future

    def _frames(self) -> Iterator[pb.CommitFrame]:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._broken)
                if self._broken:
                    return
                frame, size = pb.CommitFrame(), 0
                while self._waiting and (not size or size + self._waiting[0][0].ByteSize() <= FRAME):
                    commit, future = self._waiting.popleft()
                    if future.set_running_or_notify_cancel():
                        size += commit.ByteSize() + 1
                        frame.commits.append(commit)
                        self._sent.append(future)
            yield frame

    def _read(self) -> None:
        try:
            for frame in self._stream:
                for receipt in frame.receipts:
                    self._sent.popleft().set_result(receipt)
            error: SwitchboardError = Gone("the kernel has ended")
        except grpc.RpcError as e:
            error = from_rpc(e)
        with self._changed:
            self._broken = Gone(str(error)) if self._kernel._closed else error
            failed = [*self._sent, *(f for _, f in self._waiting if f.set_running_or_notify_cancel())]
            self._changed.notify()
        for future in failed:
            future.set_exception(type(self._broken)(f"commit, not confirmed: {self._broken}"))
        if isinstance(error, (Gone, Ended)) and not self._kernel._closed:
            self._kernel._lost()
