"""A JSON Schema as the Messages API takes it.

The vendor compiles the schema of an answer, and refuses words that it cannot compile. Objects
have to say that they hold nothing else. A limit that it does not know (a smallest number, a
longest list) is told to the model in the description, where it is read and usually kept. Of the
schema of a tool nothing is refused but a choice at its top, which is told in the same way.
"""

from collections.abc import Mapping
from typing import Any

from holdfast.providers.fields import Object, encode
from holdfast.tools import Tool

_KNOWN = frozenset(
    (
        *("type", "properties", "required", "additionalProperties", "items", "enum", "const"),
        *("anyOf", "allOf", "$ref", "$defs", "definitions", "title", "description", "default"),
    )
)
_FORMATS = frozenset(
    ("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid")
)
_CHOICES = ("oneOf", "anyOf", "allOf")


def of_answer(schema: Mapping[str, Any]) -> Object:
    """The schema of an answer, in words that the vendor compiles."""
    out: Object = {}
    told: Object = {}
    for word, value in schema.items():
        if word in ("properties", "$defs", "definitions") and isinstance(value, Mapping):
            out[word] = {name: _inner(each) for name, each in value.items()}
        elif word in _CHOICES and isinstance(value, tuple | list):
            out["anyOf" if word == "oneOf" else word] = [_inner(each) for each in value]
        elif word == "items":
            out[word] = _inner(value)
        elif word == "additionalProperties":
            if value not in (False, True):
                told[word] = value
        elif word in _KNOWN or _is_compiled(word, value):
            out[word] = value
        else:
            told[word] = value
    if schema.get("type") == "object" or "properties" in schema:
        out["additionalProperties"] = False
    return with_told(out, told)


def of_tool(tool: Tool) -> Object:
    """The declaration of a tool."""
    schema = {word: value for word, value in tool.parameters.items() if word not in _CHOICES}
    told = {word: value for word, value in tool.parameters.items() if word in _CHOICES}
    declared = with_told({"description": tool.description}, told)
    if not declared["description"]:
        del declared["description"]
    return {"name": tool.name, **declared, "input_schema": schema}


def _inner(schema: Any) -> Any:
    return of_answer(schema) if isinstance(schema, Mapping) else schema


def _is_compiled(word: str, value: Any) -> bool:
    return (word == "format" and value in _FORMATS) or (word == "minItems" and value in (0, 1))


def with_told(schema: Object, told: Object) -> Object:
    """The schema, with what cannot stand in it in its description."""
    if not told:
        return schema
    words = schema.get("description")
    lines = [words] if isinstance(words, str) and words else []
    return {**schema, "description": "\n".join([*lines, encode(told)])}
