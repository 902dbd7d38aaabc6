"""Parcels: tools that track shipments with DHL's API, notices when one moves, and a reminder on the day it arrives."""

import asyncio
import json
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from datetime import datetime, time
from typing import Annotated, AsyncIterator, List, Optional, Tuple

from switchboard import (CallResult, Conflict, Effect, Extension, Principal, ToolCall, ToolError, ToolResult,
                         Value, arg, call, delete, publish, put, result, sees)

extension = Extension("parcels")

Number = Annotated[str, arg("the tracking number", minLength=5, maxLength=40)]


@dataclass
class Parcel:
    number: str
    name: str
    status: str = ""
    delivered: bool = False
    arrives: str = ""  # a date
    reply_to: str = ""
    set_by: Principal = field(default_factory=Principal)

    def __str__(self) -> str:
        arrives = f", arrives {self.arrives}" if self.arrives and not self.delivered else ""
        return f"{self.name}: {self.status or 'not seen yet'}{arrives}"


class Busy(Exception):
    """The service cannot answer now."""


def look_up(number: str) -> Tuple[str, bool, str]:
    """Asks the service for the status of a shipment, whether it is delivered, and the day it arrives."""
    kernel = extension.kernel
    url = f"{kernel.config['api_url']}/track/shipments?" + urllib.parse.urlencode({"trackingNumber": number})
    request = urllib.request.Request(url, headers={"DHL-API-Key": kernel.secrets["DHL_API_KEY"]})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            shipment = json.load(answer)["shipments"][0]
    except urllib.error.HTTPError as e:
        if e.code == 404:
            return "", False, ""
        if e.code == 401:
            raise Busy("DHL refuses the API key: correct DHL_API_KEY") from None
        raise Busy(f"DHL answers {e.code}") from None
    except (OSError, ValueError, LookupError) as e:
        raise Busy(f"DHL cannot be asked: {e}") from None
    status = shipment.get("status", {})
    arrives = shipment.get("estimatedTimeOfDelivery", "")[:10]
    return status.get("description") or status.get("status", ""), status.get("statusCode") == "delivered", arrives


async def parcels() -> AsyncIterator[Tuple[Value, Parcel]]:
    async for value in extension.kernel.scan("parcel/"):
        yield value, value.decode(Parcel)


def reminder(p: Parcel) -> Optional[Effect]:
    """A call of the scheduler that reminds on the morning of the day; its id makes it happen once for each day."""
    zone = extension.kernel.timezone
    morning = datetime.combine(datetime.fromisoformat(p.arrives), time(8), zone)
    if morning <= datetime.now(zone):
        return None
    arguments = {"message": f"{p.name} arrives today.", "at": morning.isoformat()}
    return call(f"{p.number} {p.arrives}", "scheduler/schedule_once", arguments, reply_to=p.reply_to)


def notice(text: str, dedupe: str, reply_to: str) -> Effect:
    return publish("system.user.notify", {"text": text, "reply_to": reply_to}, dedupe=dedupe)


async def changes(p: Parcel) -> List[Effect]:
    """Brings a parcel up to date; the effects that follow from what is new, or nothing."""
    status, delivered, arrives = await asyncio.to_thread(look_up, p.number)
    if (status, arrives) in ((p.status, p.arrives), ("", p.arrives)):
        return []
    moved, later = status != p.status, arrives and arrives != p.arrives and not delivered
    p.status, p.delivered, p.arrives = status, delivered, arrives
    follow = [notice(str(p), f"{p.number} {status} {arrives}", p.reply_to)] if moved else []
    remind = reminder(p) if later else None
    return follow + [remind] if remind else follow


@extension.tool(idempotent=True)
async def track(number: Number, name: Annotated[str, arg("what is in it, in a few words")], call: ToolCall) -> ToolResult:
    """Track a parcel: the user is told when it moves, and reminded on the day it arrives."""
    old = await extension.kernel.get(f"parcel/{number}")
    if old.version and not sees(call.principal, old.decode(Parcel).set_by):
        raise ToolError(f"{number} cannot be tracked here.")
    p = Parcel(number, name, reply_to=call.reply_to, set_by=call.principal)
    try:
        follow = [e for e in await changes(p) if not e.HasField("publish")]  # the answer is notice enough
    except Busy as e:
        follow, p.status = [], ""
        extension.kernel.log.warning("%s: %s", number, e)
    return result(f"Tracking {p}", [put(f"parcel/{number}", p, version=old.version), *follow])


@extension.tool(read_only=True, command="parcels")
async def list_parcels(call: ToolCall) -> str:
    """List the parcels that are tracked, with where they are."""
    seen = [f"- {p} ({p.number})" async for _, p in parcels() if sees(call.principal, p.set_by)]
    return "\n".join(seen) or "No parcels are tracked."


@extension.tool(idempotent=True)
async def forget(number: Number, call: ToolCall) -> ToolResult:
    """Stop tracking a parcel."""
    value = await extension.kernel.get(f"parcel/{number}")
    seen = value.version and sees(call.principal, value.decode(Parcel).set_by)
    # The same text when there is none: a call that a crash repeats answers as the first time.
    return result(f"{number} isn't tracked now.", [delete(value.key, version=value.version)] if seen else [])


@extension.results
def scheduled(result: CallResult) -> None:
    if result.error:
        extension.kernel.log.warning("no reminder for %s: %s", result.id, result.content)


@extension.run
async def watch() -> None:
    """Asks for each parcel on its way, and commits what is new together with the notice and the reminder."""
    kernel = extension.kernel
    while True:
        trouble = ""
        async for value, p in parcels():
            try:
                if not p.delivered and (follow := await changes(p)):
                    await kernel.commit(put(value.key, p, version=value.version), *follow)
            except Busy as e:
                trouble = str(e)
            except Conflict:
                pass  # a tool changed it meanwhile: the next round sees that
        await kernel.set_readiness("degraded" if trouble else "ready", trouble)
        await asyncio.sleep(kernel.config["every_seconds"])


if __name__ == "__main__":
    extension.serve()
