"""JSON Schemas from type hints, and arguments that fit them back to values of these types."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import types
from typing import (Annotated, Any, Callable, Dict, List, Literal, Mapping, Tuple, Union, get_args, get_origin,
                    get_type_hints)

from .types import ToolCall

_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_UNIONS = (Union, getattr(types, "UnionType", Union))


class arg(Dict[str, Any]):
    """More about an argument: Annotated[int, arg("how many", minimum=1)]. Keywords are those of JSON Schema."""

    __hash__ = object.__hash__  # type: ignore[assignment]

    def __init__(self, description: str = "", **keywords: Any) -> None:
        super().__init__({"description": description} if description else {}, **keywords)


def schema_of(hint: Any, where: str) -> Dict[str, Any]:
    """The JSON Schema of a type."""
    origin, args = get_origin(hint), get_args(hint)
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if hint is Any:
        return {}
    if origin is Annotated:
        schema = schema_of(args[0], where)
        for extra in args[1:]:
            schema.update(arg(extra) if isinstance(extra, str) else extra)
        return schema
    if origin is Literal:
        return {"enum": list(args)}
    if origin in _UNIONS:
        given = [a for a in args if a is not type(None)]
        return schema_of(given[0], where) if len(given) == 1 else {"anyOf": [schema_of(a, where) for a in given]}
    if origin is list or hint is list:
        return {"type": "array", **({"items": schema_of(args[0], where)} if args else {})}
    if origin is dict or hint is dict:
        return {"type": "object", **({"additionalProperties": schema_of(args[1], where)} if args else {})}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return {"enum": [e.value for e in hint]}
    if dataclasses.is_dataclass(hint):
        hints = get_type_hints(hint, include_extras=True)
        missing = dataclasses.MISSING
        fields = [(f.name, f.default is missing and f.default_factory is missing) for f in dataclasses.fields(hint)]
        return _object([(name, hints[name], required) for name, required in fields], where)
    raise TypeError(
        f"{where}: no JSON Schema for {hint!r}: use str, int, float, bool, list, dict, Literal, an Enum or a dataclass"
    )


def _object(fields: List[Tuple[str, Any, bool]], where: str) -> Dict[str, Any]:
    properties = {name: schema_of(hint, f"{where}, {name}") for name, hint, _ in fields}
    required = [name for name, _, needed in fields if needed]
    schema: Dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": required} if required else schema


def value_of(hint: Any, value: Any) -> Any:
    """The value of a type that the JSON value stands for."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return value_of(args[0], value)
    if origin in _UNIONS:
        given = [a for a in args if a is not type(None)]
        return value_of(given[0], value) if len(given) == 1 and value is not None else value
    if origin is list and args:
        return [value_of(args[0], v) for v in value]
    if origin is dict and args:
        return {k: value_of(args[1], v) for k, v in value.items()}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return hint(value)
    if dataclasses.is_dataclass(hint):
        hints = get_type_hints(hint, include_extras=True)
        return hint(**{k: value_of(hints[k], v) for k, v in value.items()})  # type: ignore[operator]
    return float(value) if hint is float and isinstance(value, int) else value


class Signature:
    """The parameters of a tool function. One whose type is ToolCall gets the call itself."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        hints = get_type_hints(function, include_extras=True)
        self.call = ""
        self.hints: Dict[str, Any] = {}
        fields = []
        for p in inspect.signature(function).parameters.values():
            if p.name not in hints or p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
                raise TypeError(f"tool {name}: parameter {p.name} needs a type hint, and a name of its own")
            if hints[p.name] is ToolCall:
                self.call = p.name
                continue
            self.hints[p.name] = hints[p.name]
            fields.append((p.name, hints[p.name], p.default is p.empty))
        self.schema = _object(fields, f"tool {name}")

    def arguments(self, call: ToolCall) -> Mapping[str, Any]:
        found = {k: value_of(self.hints[k], v) for k, v in call.arguments.items() if k in self.hints}
        return {**found, self.call: call} if self.call else found
