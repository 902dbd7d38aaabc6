import asyncio
import enum
import json
import time
import unittest
from dataclasses import dataclass
from typing import Annotated, Dict, List, Literal, Optional

from switchboard import Conflict, Extension, Principal, ToolCall, UserMessage, arg, put, sees
from switchboard.schema import encode
from switchboard.server import run
from switchboard.testing import FakeKernel


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
        call = ToolCall(arguments=encode({"to": {"city": "Bonn"}, "size": "l", "notes": [], "weight": 2}))
        _, _, arguments = x.tools["ship"]
        got = arguments(call)
        self.assertEqual(got, {"to": Place("Bonn"), "size": Size.LARGE, "notes": [], "weight": 2.0, "call": call})

    def test_a_type_without_a_schema_is_named(self):
        with self.assertRaisesRegex(TypeError, "tool f, x: no JSON Schema for <class 'bytes'>"):
            @Extension("x").tool
            def f(x: bytes):
                """F."""

    def test_a_tool_needs_a_docstring(self):
        with self.assertRaisesRegex(ValueError, "docstring"):
            Extension("x").tool(lambda: 1)

    def test_a_handler_is_registered_once(self):
        x = Extension("x")
        x.start(lambda: None)
        with self.assertRaisesRegex(ValueError, "two functions for start"):
            x.start(lambda: None)


class Values(unittest.IsolatedAsyncioTestCase):
    def test_a_message_has_only_what_is_set(self):
        self.assertEqual(json.loads(encode(UserMessage("hi", "me", "desk"))),
                         {"text": "hi", "user_id": "me", "conversation_id": "desk"})

    def test_whose_things_a_principal_sees(self):
        anna = Principal(person="anna", own=True, accounts=["anna@b"])
        ben, household = Principal(person="ben", own=True), Principal(conversation="c")
        self.assertFalse(sees(anna, ben))
        self.assertTrue(sees(anna, Principal(person="anna@b", own=True)))
        self.assertTrue(sees(anna, household))
        self.assertTrue(sees(household, ben))
        self.assertFalse(sees(Principal(person="anna", group="g", confined=True), Principal(person="anna", own=True)))

    async def test_accounts_are_not_stored(self):
        kernel = FakeKernel()
        await kernel.commit(put("a", Principal(person="anna", accounts=["anna@b"])))
        self.assertEqual((await kernel.get("a")).decode(Principal), Principal(person="anna"))

    async def test_a_commit_is_applied_whole_or_not_at_all(self):
        kernel = FakeKernel()
        await kernel.commit(put("a", 1, version=0))
        with self.assertRaises(Conflict):
            await kernel.commit(put("b", 1), put("a", 2, version=0))
        self.assertEqual([v.key async for v in kernel.scan()], ["a"])


class Handlers(unittest.IsolatedAsyncioTestCase):
    async def test_a_thread_that_is_cancelled_ends_first(self):
        ended = []

        def slow():
            time.sleep(0.05)
            ended.append(True)
            return 1

        task = asyncio.ensure_future(run(slow))
        await asyncio.sleep(0)
        task.cancel()
        self.assertEqual((await task, ended), (1, [True]))
