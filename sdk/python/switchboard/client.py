"""A client of the kernel's services."""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import io
import json
import logging
from pathlib import Path
from typing import IO, Any, AsyncIterator, Dict, List, Literal, Union
from zoneinfo import ZoneInfo

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pb2 import MethodDescriptorProto

from switchboard.bus.v1 import bus_pb2 as bus
from switchboard.extension.v1 import extension_pb2 as ext
from switchboard.kernel.v1 import kernel_pb2 as pb

from .errors import Gone, NotFound, TooLarge, from_code
from .payloads import UserMessage
from .schema import encode
from .types import Blob, Value, publish

MAX_MESSAGE = 16 << 20
SIZES = [("grpc.max_receive_message_length", MAX_MESSAGE), ("grpc.max_send_message_length", MAX_MESSAGE)]
OPTIONS = [*SIZES, ("grpc.default_authority", "localhost"), ("grpc.enable_http_proxy", 0),
           ("grpc.client_idle_timeout_ms", 2**31 - 1), ("grpc.use_local_subchannel_pool", 1)]
State = Literal["ready", "unconfigured", "degraded", "offline"]
lane: contextvars.ContextVar[str] = contextvars.ContextVar("switchboard_lane", default="")


def bounded(message: Any, what: str) -> Any:
    """A message that fits into a frame."""
    if message.ByteSize() > MAX_MESSAGE - (64 << 10):
        raise TooLarge(f"{what}: {message.ByteSize()} bytes (at most {MAX_MESSAGE - (64 << 10)})")
    return message


def kind_of(method: MethodDescriptor) -> str:
    """What grpc names a kind of method, such as unary_stream."""
    p = MethodDescriptorProto()
    method.CopyToProto(p)
    return "_".join("stream" if streams else "unary" for streams in (p.client_streaming, p.server_streaming))


class Kernel:
    """The kernel's services. Calls in a handler are part of its delivery or tool call, and end with it.

    Errors are those of switchboard.errors.
    """

    def __init__(self, init: ext.InitRequest) -> None:
        self.id, self.name, self.address = init.id, init.name, init.kernel_address
        self.config: Dict[str, Any] = json.loads(init.config or b"{}")
        self.secrets: Dict[str, str] = dict(init.secrets)
        self.data_dir = Path(init.data_dir)  # for files that outlive the process
        self.run_dir = Path(init.run_dir)  # for sockets
        self.timezone = ZoneInfo(init.timezone or "UTC")
        self.agent: ext.AgentSpec = init.agent
        self.log = logging.getLogger(init.id)
        self.draining = asyncio.Event()  # set when the extension begins to shut down
        self.readiness = ext.Readiness(state=ext.Readiness.STATE_READY)
        self.active = False  # until the answer to Init has the readiness
        self._metadata = (("switchboard-token", init.kernel_token),)

    async def connect(self) -> None:
        # Files have a connection of their own: a slow reader delays no event.
        self._channel, self._files = (grpc.aio.insecure_channel(self.address, options=OPTIONS) for _ in range(2))
        await asyncio.wait_for(self._channel.channel_ready(), 10)

    async def gone(self) -> None:
        """Returns when the kernel has ended."""
        await self._channel.wait_for_state_change(grpc.ChannelConnectivity.READY)

    async def close(self) -> None:
        await asyncio.gather(self._channel.close(), self._files.close())

    async def commit(self, *effects: bus.Effect, id: str = "") -> List[bus.EffectResult]:
        """Commits effects in one transaction and returns when they are on disk, with a result for each.

        Repeating the id returns the first results, and nothing happens twice.
        """
        commit = bounded(bus.Commit(id=id, lane=lane.get(), effects=effects), f"commit of {len(effects)} effects")
        async for frame in self.rpc("Bus.Commit", [pb.CommitFrame(commits=[commit])]):
            (receipt,) = frame.receipts
            if receipt.HasField("error"):
                raise from_code(receipt.error.code, receipt.error.message)
            return list(receipt.results)
        raise Gone("commit, not confirmed: the kernel has ended")

    async def receive(self, message: UserMessage, dedupe: str = "", *effects: bus.Effect) -> bool:
        """Reports a person's message, which is on disk when it returns; effects (a cursor) are committed with it.

        Reporting the dedupe key again is harmless. False: the person is not admitted, and nothing of the message
        is stored. Files were stored before by put_blob.
        """
        blobs = list(dict.fromkeys(a.blob for a in message.attachments if a.blob))
        results = await self.commit(publish("user.message", message, dedupe=dedupe, blobs=blobs), *effects)
        return bool(results[0].event_id)

    async def get(self, key: str) -> Value:
        """Reads a key of the own store; one that does not exist has version 0."""
        v = await self.rpc("KV.Get", key=key)
        return Value(key, v.value, v.version)

    async def scan(self, prefix: str = "", after: str = "") -> AsyncIterator[Value]:
        """All keys with the prefix, in ascending order."""
        page = None
        while page is None or page.more:
            page = await self.rpc("KV.Scan", prefix=prefix, after=after)
            for v in page.values:
                after = v.key
                yield Value(v.key, v.value, v.version)

    async def ask(self, tool: str, **arguments: Any) -> ext.CallResult:
        """Calls a read-only tool, which the manifest names under permissions.tools; it is not recorded."""
        return await self.rpc("Tools.Call", name=tool, arguments=encode(arguments))

    async def put_blob(self, data: Union[bytes, IO[bytes]]) -> Blob:
        """Stores a file, which is kept for an hour, and then as long as something committed names it."""
        source = io.BytesIO(data) if isinstance(data, bytes) else data
        chunks = iter(lambda: source.read(256 << 10), b"")
        return await self.rpc("Blobs.Put", (pb.PutBlobRequest(data=chunk) for chunk in chunks))

    async def get_blob(self, name: str) -> bytes:
        """Reads a file that came with this delivery or session, or that this extension keeps."""
        parts = [part async for part in self.rpc("Blobs.Get", hash=name)]
        data = b"".join(p.data for p in parts)
        if not parts or hashlib.sha256(data).hexdigest() != parts[0].blob.hash:
            raise NotFound(f"read file {name}: its bytes on disk are damaged; a backup may have them")
        return data

    async def set_readiness(self, state: State, detail: str = "") -> None:
        """Reports whether the extension can do its work; detail says why not and what to do."""
        await self.report(ext.Readiness(state=f"STATE_{state.upper()}", detail=detail))

    async def report(self, readiness: ext.Readiness) -> None:
        """Reports what changes; description=extension.describe() in it says that the tools have changed."""
        changed, self.readiness = readiness != self.readiness, readiness
        if changed and self.active:
            await self.rpc("Runtime.Report", **{f.name: v for f, v in readiness.ListFields()})

    def rpc(self, method: str, stream: Any = None, **fields: Any) -> Any:
        """Any method of switchboard.kernel.v1, in this lane, such as await rpc("Sessions.History", session=id).

        Answers that stream are for async for, such as those of rpc("Models.Complete", model="default", messages=[...]).
        """
        service, _, name = method.partition(".")
        described = pb.DESCRIPTOR.services_by_name[service].methods_by_name[name]
        request, kind = described.input_type._concrete_class, kind_of(described)
        if "lane" in request.DESCRIPTOR.fields_by_name and stream is None:
            fields.setdefault("lane", lane.get())
        make = getattr(self._files if service == "Blobs" else self._channel, kind)
        begin = make(f"/switchboard.kernel.v1.{service}/{name}", request.SerializeToString,
                     described.output_type._concrete_class.FromString)
        call = begin(request(**fields) if stream is None else stream, metadata=self._metadata)
        return _answers(call) if kind.endswith("_stream") else _answer(call)


async def _answer(call: Any) -> Any:
    try:
        return await call
    except grpc.RpcError as e:
        raise from_code(e.code().value[0], e.details()) from None


async def _answers(call: Any) -> AsyncIterator[Any]:
    try:
        async for answer in call:
            yield answer
    except grpc.RpcError as e:
        raise from_code(e.code().value[0], e.details()) from None
