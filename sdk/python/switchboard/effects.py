"""Effects: durable changes that are committed together, all or none. Each kind needs a grant in the manifest."""

from __future__ import annotations

from typing import Any, Optional, Sequence

from switchboard.bus.v1 import bus_pb2 as bus

from .types import encode

Effect = bus.Effect


def publish(topic: str, payload: Any, *, key: str = "", dedupe: str = "", blobs: Sequence[str] = ()) -> Effect:
    """Publishes an event. Events with one key come in order; a dedupe key that was used does nothing."""
    return Effect(
        publish=bus.Publish(topic=topic, payload=encode(payload), key=key, dedupe_key=dedupe, blobs=blobs)
    )


def put(key: str, value: Any, *, version: Optional[int] = None, blobs: Sequence[str] = ()) -> Effect:
    """Writes a key of the own store, with version only if that is still the current one (0: it does not exist).

    Otherwise the commit is refused with Conflict, and the handler or tool call that returned it runs again.
    """
    return Effect(put=bus.Put(key=key, value=encode(value), version=version, blobs=blobs))


def delete(key: str, *, version: Optional[int] = None) -> Effect:
    """Removes a key of the own store."""
    return Effect(delete=bus.Delete(key=key, version=version))


def withdraw(dedupe: str) -> Effect:
    """Settles the deliveries, not yet taken, of the event published with the dedupe key."""
    return Effect(withdraw=bus.Withdraw(dedupe_key=dedupe))


def call(id: str, tool: str, arguments: Any = None, *, reply_to: str = "") -> Effect:
    """Calls a tool of another extension once, over crashes; the result comes to Extension.results.

    The id is your own: a second call with it changes nothing. reply_to is where the tool's own texts go.
    """
    return Effect(call=bus.CallTool(id=id, tool=tool, arguments=encode(arguments or {}), reply_to=reply_to))


def notify(text: str, *, dedupe: str = "", channel: str = "", reply_to: str = "", private: bool = False) -> Effect:
    """Publishes system.user.notify: a notice for the user. The manifest needs it under permissions.publish."""
    notice = {"text": text, "channel_id": channel, "reply_to": reply_to, "private": private}
    return publish("system.user.notify", {k: v for k, v in notice.items() if v}, dedupe=dedupe)


def append(session: str, seq: int, *rows: bus.Entry) -> Effect:
    """Adds rows to the history of the session whose lane the handler has; seq is that of its last row."""
    return Effect(append=bus.Append(session=session, expected_seq=seq, entries=rows))


def ensure_session(agent: str, key: str, *, title: str = "", own: bool = True) -> Effect:
    """Creates the session unless it exists. own: this extension gets its agent.output."""
    kind = bus.Outbound.KIND_EXTENSION if own else bus.Outbound.KIND_UNSPECIFIED
    outbound = bus.Outbound(kind=kind)
    return Effect(session_ensure=bus.SessionEnsure(agent=agent, key=key, title=title, outbound=outbound))


def queue_input(agent: str, key: str, text: str, *, kind: str = "task", dedupe: str = "", **fields: Any) -> Effect:
    """Queues an input for a session; fields are those of Input in bus.proto."""
    return Effect(
        input=bus.Input(agent=agent, key=key, text=text, kind=kind, dedupe_key=dedupe, **fields)
    )


def cancel_turn(session: str, reason: str, *, waiting: bool = False) -> Effect:
    """Ends the running turn of a session; waiting: also the inputs that no turn has taken."""
    return Effect(turn_cancel=bus.TurnCancel(session=session, reason=reason, waiting=waiting))


def when_idle(session: str) -> Effect:
    """Asks for the event session.idle.<id> once, as soon as the session is idle."""
    return Effect(session_idle=bus.SessionIdle(session=session))
