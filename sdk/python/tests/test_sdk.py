import enum
import json
import unittest
from dataclasses import dataclass
from typing import Annotated, Dict, List, Literal, Optional

from switchboard import Conflict, Extension, Principal, ToolCall, UserMessage, arg, put
from switchboard.errors import Ended
from switchboard.scope import Scope, sleep
from switchboard.testing import FakeKernel
from switchboard.types import encode


class Size(enum.Enum):
    SMALL = "s"
    LARGE = "l"


@dataclass
class Place:
    city: str
    zip: Optional[int] = None


class Tools(unittest.TestCase):
    def test_type_hints_make_the_schema_and_the_values(self):
        x = Extension("x")

        @x.tool(read_only=True)
        def ship(
            to: Place, size: Size, notes: List[str], how: Literal["air", "sea"] = "sea",
            weight: Annotated[float, arg("in kg", minimum=0)] = 1, extra: Optional[Dict[str, int]] = None, *, call: ToolCall,
        ):
            """Ship it."""

        (described,) = x.describe().tools
        schema = json.loads(described.schema)
        self.assertEqual(schema["required"], ["to", "size", "notes"])
        self.assertEqual(schema["properties"]["size"], {"enum": ["s", "l"]})
        self.assertEqual(schema["properties"]["weight"], {"type": "number", "description": "in kg", "minimum": 0})
        self.assertEqual(schema["properties"]["to"]["required"], ["city"])
        self.assertNotIn("call", schema["properties"])
        self.assertTrue(described.read_only)
        call = ToolCall("c1", "ship", {"to": {"city": "Bonn"}, "size": "l", "notes": [], "weight": 2})
        got = x.tools["ship"].arguments(call)
        self.assertEqual(got, {"to": Place("Bonn"), "size": Size.LARGE, "notes": [], "weight": 2.0, "call": call})

    def test_a_type_without_a_schema_is_named(self):
        with self.assertRaisesRegex(TypeError, "tool f, x: no JSON Schema for <class 'bytes'>"):
            @Extension("x").tool
            def f(x: bytes):
                """F."""

    def test_a_tool_needs_a_docstring(self):
        with self.assertRaisesRegex(ValueError, "docstring"):
            Extension("x").tool(lambda: 1)


class Values(unittest.TestCase):
    def test_a_message_has_only_what_is_set(self):
        self.assertEqual(json.loads(encode(UserMessage("hi", "me", "desk"))),
                         {"text": "hi", "user_id": "me", "conversation_id": "desk"})

    def test_whose_things_a_principal_sees(self):
        anna, ben = Principal("anna", own=True, accounts=["anna@b"]), Principal("ben", own=True)
        self.assertFalse(anna.sees(ben))
        self.assertTrue(anna.sees(Principal("anna@b", own=True)))
        self.assertTrue(anna.sees(Principal()))
        self.assertTrue(Principal().sees(ben))
        self.assertFalse(Principal("anna", group="g", confined=True).sees(Principal("anna", own=True)))

    def test_a_commit_is_applied_whole_or_not_at_all(self):
        kernel = FakeKernel()
        kernel.commit(put("a", 1, version=0))
        with self.assertRaises(Conflict):
            kernel.commit(put("b", 1), put("a", 2, version=0))
        self.assertEqual([v.key for v in kernel.scan()], ["a"])


class Handlers(unittest.TestCase):
    def test_a_cancelled_handler_ends_where_it_sleeps(self):
        scope = Scope()
        scope.end()
        with self.assertRaises(Ended):
            scope.run(sleep, 60)

    def test_async_handlers_run(self):
        async def double(n):
            return 2 * n

        self.assertEqual(Scope().run(double, 4), 8)
