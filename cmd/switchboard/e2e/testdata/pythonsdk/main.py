"""A channel for tests: each line of inbox is a message of a conversation of its own, each line of outbox one it sends."""

import asyncio
import json
import os

from switchboard import Effect, Extension, Message, UserMessage, put, receipt

extension = Extension("python_sdk")


@extension.start
def start():
    (extension.kernel.data_dir / "pid").write_text(str(os.getpid()))


@extension.send
def send(message: Message) -> Effect:
    line = {"id": message.id, "text": message.text, "repeat": message.uncertain}
    with open(extension.kernel.data_dir / "outbox", "a") as outbox:
        outbox.write(json.dumps(line) + "\n")
    return receipt(message.id)


@extension.run
async def receive() -> None:
    kernel = extension.kernel
    offset = (await kernel.get("cursor")).decode(default=0)
    with open(kernel.data_dir / "inbox", "a+b") as inbox:
        while True:
            inbox.seek(offset)
            line = inbox.readline()
            if not line.endswith(b"\n"):
                await asyncio.sleep(0.05)
                continue
            offset += len(line)
            message = UserMessage(line.decode().strip(), user_id="me", conversation_id=f"c{offset}")
            await kernel.receive(message, f"line-{offset}", put("cursor", offset))


extension.serve()
