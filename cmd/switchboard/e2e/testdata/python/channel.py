#!/usr/bin/python3
"""A channel and a command for Switchboard, written against docs/extensions.md.

It needs grpcio, protobuf, and the modules that protoc makes of contract/proto:
    protoc -I contract/proto --python_out=. switchboard/*/v1/*.proto
"""

import json
import os
import queue
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
from switchboard.bus.v1 import bus_pb2 as bus
from switchboard.extension.v1 import extension_pb2 as ext
from switchboard.kernel.v1 import kernel_pb2 as kernel

if os.environ.get("SWITCHBOARD_EXTENSION") != "b81c3d9e5f7a4c20":
    sys.exit("this program is an extension of Switchboard: put it beside its manifest.yaml")

work = ThreadPoolExecutor(64)
init = None  # what Init has brought


def path(name):
    return os.path.join(init.data_dir, name)


def describe(request, context):
    schema = {
        "type": "object",
        "required": ["text"],
        "properties": {"text": {"type": "string"}, "due_seconds": {"type": "integer", "minimum": 1}},
        "additionalProperties": False,
    }
    jot = ext.Tool(name="jot", command="jot", description="Notes something.", schema=json.dumps(schema).encode())
    return ext.Description(channel=True, events=True, tools=[jot], sdk="python")


def start(request, context):
    global init
    init = request
    with open(path("pid"), "w") as f:
        f.write(str(os.getpid()))
    threading.Thread(target=read_messages, daemon=True).start()
    return ext.InitResponse(readiness=ext.Readiness(state=ext.Readiness.STATE_READY))


def health(request, context):
    return ext.Readiness(state=ext.Readiness.STATE_READY)


def shutdown(request, context):
    work.shutdown(wait=False)
    return ext.ShutdownResponse()


def deliver(frames, context):
    """Carries deliveries in and outcomes out."""
    answers = queue.Queue()
    answers.put(ext.OutcomeFrame(credit=16))

    def receive():
        for frame in frames:
            for delivery in frame.deliveries:
                work.submit(handle, delivery, answers)
        answers.put(None)

    threading.Thread(target=receive, daemon=True).start()
    yield from iter(answers.get, None)


def handle(delivery, answers):
    answers.put(ext.OutcomeFrame(credit=1))  # a handler has it
    outcome = bus.Outcome(token=delivery.token)
    try:
        outcome.effects.append(bus.Effect(receipt=send(delivery)))
        outcome.kind = bus.Outcome.KIND_ACK
    except OSError as e:
        outcome.kind, outcome.reason = bus.Outcome.KIND_FAIL, str(e)
    answers.put(ext.OutcomeFrame(outcomes=[outcome]))


def send(delivery):
    """Shows a message: on this platform, that is a line in a file."""
    message = json.loads(delivery.event.payload)
    line = {"id": delivery.event.id, "text": message["text"], "repeat": delivery.uncertain}
    line["unmarked"] = message.get("unmarked", "")
    with open(path("out"), "a") as f:
        f.write(json.dumps(line) + "\n")
    while os.path.exists(path("hold")):  # the platform takes its time
        time.sleep(0.01)
    return bus.Receipt(provider_id=delivery.event.id, conversation=message.get("conversation") or "desk")


def call(request, context):
    """Runs a tool. A person's command comes as a call, too."""
    noted = json.loads(request.arguments)
    return ext.CallResult(content=json.dumps({"noted": noted}), text="Noted: %s (%s)" % (noted["text"], noted.get("due_seconds")))


def read_messages():
    """Reports each line of the fifo as a message of a person."""
    channel = grpc.insecure_channel(init.kernel_address, options=[("grpc.default_authority", "localhost")])
    threading.Thread(target=watch, args=(channel,), daemon=True).start()
    commit = channel.stream_stream(
        "/switchboard.kernel.v1.Bus/Commit",
        request_serializer=kernel.CommitFrame.SerializeToString,
        response_deserializer=kernel.ReceiptFrame.FromString,
    )
    commits = queue.Queue()
    receipts = commit(iter(commits.get, None), metadata=[("switchboard-token", init.kernel_token)])
    while True:
        with open(path("in")) as lines:
            for line in lines:
                message = {"text": line.strip(), "user_id": "me", "user_name": "Me", "conversation_id": "desk"}
                publish = bus.Publish(topic="user.message", payload=json.dumps(message).encode())
                commits.put(kernel.CommitFrame(commits=[bus.Commit(effects=[bus.Effect(publish=publish)])]))
                for receipt in next(receipts).receipts:
                    if receipt.error.code:
                        print("refused:", receipt.error.message, file=sys.stderr)


def watch(channel):
    """Ends the process with the kernel."""
    broken = threading.Event()
    was_ready = False

    def changed(state):
        nonlocal was_ready
        was_ready = was_ready or state == grpc.ChannelConnectivity.READY
        if was_ready and state in (grpc.ChannelConnectivity.TRANSIENT_FAILURE, grpc.ChannelConnectivity.IDLE):
            broken.set()

    channel.subscribe(changed, try_to_connect=True)
    broken.wait()
    os._exit(0)


def unary(function, request, response):
    return grpc.unary_unary_rpc_method_handler(
        function, request_deserializer=request.FromString, response_serializer=response.SerializeToString
    )


def raw(function):
    return grpc.unary_unary_rpc_method_handler(lambda request, context: function())


def serving():
    return b"\x08\x01"  # grpc.health.v1.HealthCheckResponse{status: SERVING}


def leave():
    threading.Timer(0.1, os._exit, [0]).start()
    return b""


server = grpc.server(ThreadPoolExecutor(64), options=[("grpc.max_receive_message_length", 16 << 20)])
for name, methods in {
    "grpc.health.v1.Health": {"Check": raw(serving)},
    "plugin.GRPCController": {"Shutdown": raw(leave)},
    "switchboard.extension.v1.Extension": {
        "Describe": unary(describe, ext.DescribeRequest, ext.Description),
        "Init": unary(start, ext.InitRequest, ext.InitResponse),
        "Health": unary(health, ext.HealthRequest, ext.Readiness),
        "Shutdown": unary(shutdown, ext.ShutdownRequest, ext.ShutdownResponse),
    },
    "switchboard.extension.v1.Events": {
        "Deliver": grpc.stream_stream_rpc_method_handler(
            deliver,
            request_deserializer=ext.DeliverFrame.FromString,
            response_serializer=ext.OutcomeFrame.SerializeToString,
        )
    },
    "switchboard.extension.v1.Tools": {"Call": unary(call, ext.CallRequest, ext.CallResult)},
}.items():
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, methods),))

socket = os.path.join(os.environ["PLUGIN_UNIX_SOCKET_DIR"], "python%d" % os.getpid())
server.add_insecure_port("unix:" + socket)
server.start()
print("1|1|unix|%s|grpc" % socket, flush=True)
server.wait_for_termination()
