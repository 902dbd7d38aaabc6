import http.server
import json
import threading
import unittest
from datetime import datetime, timedelta

import main
from switchboard import Principal, ToolCall, ToolError
from switchboard.testing import FakeKernel, run_once


class DHL(http.server.BaseHTTPRequestHandler):
    shipments = {}

    def do_GET(self):
        number = self.path.split("=")[1]
        known, key = self.shipments.get(number), self.headers["DHL-API-Key"]
        self.send_response(401 if key != "secret" else 200 if known else 404)
        self.end_headers()
        self.wfile.write(json.dumps({"shipments": [known]}).encode())

    def log_message(self, *_):
        pass


def shipment(code, text, days=0):
    arrives = (datetime.now() + timedelta(days=days)).isoformat() if days else ""
    return {"status": {"statusCode": code, "description": text}, "estimatedTimeOfDelivery": arrives}


class Parcels(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), DHL)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        DHL.shipments = {"12345": shipment("transit", "Left Hamburg", days=3)}
        self.kernel = main.extension.kernel = FakeKernel(
            config={"api_url": f"http://127.0.0.1:{server.server_port}", "every_seconds": 1},
            secrets={"DHL_API_KEY": "secret"})
        self.anna = ToolCall(reply_to="h1", principal=Principal(person="anna", own=True))

    async def track(self, call=None):
        result = await main.track("12345", "Shoes", call or self.anna)
        await self.kernel.commit(*result.effects)
        return result

    async def test_a_parcel_is_tracked_and_reminded_of(self):
        self.assertIn("Shoes: Left Hamburg, arrives", (await self.track()).content)
        (remind,) = self.kernel.committed
        self.assertEqual((remind.call.tool, remind.call.reply_to), ("scheduler/schedule_once", "h1"))
        self.assertIn("Left Hamburg", await main.list_parcels(self.anna))

    async def test_a_move_is_said_once(self):
        await self.track()
        DHL.shipments["12345"] = shipment("delivered", "Delivered to a neighbor")
        for _ in range(2):
            await run_once(main.watch)
        (notice,) = [e for e in self.kernel.committed if e.HasField("publish")]
        payload = json.loads(notice.publish.payload)
        self.assertEqual(payload, {"text": "Shoes: Delivered to a neighbor", "reply_to": "h1"})

    async def test_others_see_and_change_nothing(self):
        await self.track()
        ben = ToolCall(principal=Principal(person="ben", own=True))
        self.assertEqual(await main.list_parcels(ben), "No parcels are tracked.")
        with self.assertRaises(ToolError):
            await self.track(ben)
        self.assertFalse((await main.forget("12345", ben)).effects)
        await self.kernel.commit(*(await main.forget("12345", self.anna)).effects)
        self.assertEqual(await main.list_parcels(self.anna), "No parcels are tracked.")

    async def test_a_wrong_key_is_reported(self):
        self.kernel.secrets["DHL_API_KEY"] = "wrong"
        await self.track()
        await run_once(main.watch)
        readiness = self.kernel.readiness
        self.assertEqual(readiness.State.Name(readiness.state), "STATE_DEGRADED")
        self.assertEqual(readiness.detail, "DHL refuses the API key: correct DHL_API_KEY")


if __name__ == "__main__":
    unittest.main()
