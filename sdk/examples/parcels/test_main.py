import http.server
import json
import threading
import unittest
from datetime import datetime, timedelta

import main
from switchboard import Principal, Readiness, ToolCall, ToolError
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


class Parcels(unittest.TestCase):
    def setUp(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), DHL)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        DHL.shipments = {"12345": shipment("transit", "Left Hamburg", days=3)}
        self.kernel = main.extension.kernel = FakeKernel(
            config={"api_url": f"http://127.0.0.1:{server.server_port}", "every_seconds": 1},
            secrets={"DHL_API_KEY": "secret"})
        self.anna = ToolCall("c1", "track", reply_to="h1", principal=Principal("anna", own=True))

    def track(self, call=None):
        result = main.track("12345", "Shoes", call or self.anna)
        self.kernel.commit(*result.effects)
        return result

    def test_a_parcel_is_tracked_and_reminded_of(self):
        self.assertIn("Shoes: Left Hamburg, arrives", self.track().content)
        (remind,) = self.kernel.committed
        self.assertEqual((remind.call.tool, remind.call.reply_to), ("scheduler/schedule_once", "h1"))
        self.assertIn("Left Hamburg", main.list_parcels(self.anna))

    def test_a_move_is_said_once(self):
        self.track()
        DHL.shipments["12345"] = shipment("delivered", "Delivered to a neighbor")
        for _ in range(2):
            run_once(main.watch)
        (notice,) = [e for e in self.kernel.committed if e.HasField("publish")]
        payload = json.loads(notice.publish.payload)
        self.assertEqual(payload, {"text": "Shoes: Delivered to a neighbor", "reply_to": "h1"})

    def test_others_see_and_change_nothing(self):
        self.track()
        ben = ToolCall("c2", "forget", principal=Principal("ben", own=True))
        self.assertEqual(main.list_parcels(ben), "No parcels are tracked.")
        self.assertRaises(ToolError, self.track, ben)
        self.assertEqual(main.forget("12345", ben).effects, [])
        self.kernel.commit(*main.forget("12345", self.anna).effects)
        self.assertEqual(main.list_parcels(self.anna), "No parcels are tracked.")

    def test_a_wrong_key_is_reported(self):
        self.kernel.secrets["DHL_API_KEY"] = "wrong"
        self.track()
        run_once(main.watch)
        self.assertEqual((self.kernel.readiness, self.kernel.detail),
                         (Readiness.DEGRADED, "DHL refuses the API key: correct DHL_API_KEY"))


if __name__ == "__main__":
    unittest.main()
