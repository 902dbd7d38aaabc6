"""JSON of type hints: their schemas, and values to JSON and back."""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import json
import types
from typing import Annotated, Any, Callable, Dict, List, Literal, Tuple, Union, get_args, get_origin, get_type_hints

from google.protobuf.message import Message

from switchboard.extension.v1 import extension_pb2 as ext

_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_UNIONS = (Union, getattr(types, "UnionType", Union))
Form = Tuple[Dict[str, Any], Callable[[Any], Any]]  # the JSON Schema of a type, and what makes its values of JSON


class arg(Dict[str, Any]):
    """More about an argument: Annotated[int, arg("how many", minimum=1)]. Keywords are those of JSON Schema."""

    __hash__ = object.__hash__  # type: ignore[assignment]

    def __init__(self, description: str = "", **keywords: Any) -> None:
        super().__init__({"description": description} if description else {}, **keywords)


@functools.lru_cache(maxsize=None)
def form_of(hint: Any, where: str) -> Form:
    origin, args = get_origin(hint) or hint, get_args(hint)
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}, lambda v: float(v) if hint is float else v
    if hint is Any or origin is Literal:
        return {"enum": list(args)} if args else {}, lambda v: v
    if origin is Annotated:
        schema, make = form_of(args[0], where)
        for extra in args[1:]:
            schema = {**schema, **(arg(extra) if isinstance(extra, str) else extra)}
        return schema, make
    if origin in _UNIONS:
        forms = [form_of(a, where) for a in args if a is not type(None)]
        schema, make = forms[0] if len(forms) == 1 else ({"anyOf": [s for s, _ in forms]}, lambda v: v)
        return schema, lambda v: None if v is None else make(v)
    if origin is list:
        schema, make = form_of(args[0] if args else Any, where)
        return {"type": "array", "items": schema}, lambda v: [make(item) for item in v or ()]
    if origin is dict:
        schema, make = form_of(args[1] if args else Any, where)
        return {"type": "object", "additionalProperties": schema}, lambda v: {k: make(item) for k, item in v.items()}
    if dataclasses.is_dataclass(hint):
        hints, missing = get_type_hints(hint, include_extras=True), dataclasses.MISSING
        return _object(hint, where, [(f.name, hints[f.name], f.default is missing and f.default_factory is missing)
                                     for f in dataclasses.fields(hint)])
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return {"enum": [e.value for e in hint]}, hint
    if isinstance(hint, type) and issubclass(hint, Message):
        return {"type": "object"}, lambda v: hint(**{k: v[k] for k in v if k in hint.DESCRIPTOR.fields_by_name})
    raise TypeError(
        f"{where}: no JSON Schema for {hint!r}: use str, int, float, bool, list, dict, Literal, an Enum or a dataclass"
    )


def _object(build: Callable[..., Any], where: str, fields: List[Tuple[str, Any, bool]]) -> Form:
    """The form of an object, which is built of its fields. Others are left out."""
    forms = {name: form_of(hint, f"{where}, {name}") for name, hint, _ in fields}
    schema = {"type": "object", "properties": {name: schema for name, (schema, _) in forms.items()},
              "required": [name for name, _, needed in fields if needed], "additionalProperties": False}
    return schema, lambda v: build(**{k: forms[k][1](item) for k, item in v.items() if k in forms})


def decode(hint: Any, value: Any) -> Any:
    """The value of a type that the JSON value stands for."""
    return form_of(hint, "decode")[1](value)


def encode(value: Any) -> bytes:
    """JSON, of dataclasses and messages too; bytes stay as they are."""
    return value if isinstance(value, bytes) else json.dumps(value, default=_plain, ensure_ascii=False).encode()


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [(f.name, getattr(value, f.name)) for f in dataclasses.fields(value)]
        return {name: v for name, v in fields if v not in ("", None, False, 0, [])}
    if isinstance(value, Message):  # a Principal without the accounts, which are not stored
        return {f.name: v for f, v in value.ListFields() if f.name != "accounts"}
    if hasattr(value, "isoformat"):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no JSON form: make it a dict, a list or a dataclass")


def parameters_of(function: Callable[..., Any], tool: str) -> Form:
    """The schema of a function's parameters, and what makes its arguments. One of the type ToolCall is the call."""
    hints, fields = get_type_hints(function, include_extras=True), []
    calls = [name for name, hint in hints.items() if hint is ext.CallRequest]
    for p in inspect.signature(function).parameters.values():
        if p.name not in hints or p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
            raise TypeError(f"tool {tool}: parameter {p.name} needs a type hint, and a name of its own")
        if p.name not in calls:
            fields.append((p.name, hints[p.name], p.default is p.empty))
    schema, make = _object(dict, f"tool {tool}", fields)
    return schema, lambda call: {**make(json.loads(call.arguments or b"{}")), **dict.fromkeys(calls, call)}
