"""What OpenAI's two wires share: how a tool is declared, which schemas are strict, a few words.

OpenAI takes a schema as strict only from a subset of JSON Schema; there the answer is sure to
follow it. What is outside is sent as it is, without that promise: nobody's schema is rewritten.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from holdfast.frozen import thaw
from holdfast.providers import fields
from holdfast.providers.fields import Object
from holdfast.providers.names import Spelling
from holdfast.tools import Tool

TOOL_NAME = Spelling(re.compile(r"[^a-zA-Z0-9_-]"), 64)
CACHE_KEY_SIZE_MAX = 64
EFFORT_TOKENS = ((0, "none"), (2_048, "low"), (8_192, "medium"))  # up to so many; more is high
BUDGET_TOKENS_MIN, BUDGET_TOKENS_HIGH = 1_024, 16_384
NESTING_MAX = 10  # levels of objects in a strict schema
PROPERTIES_MAX = 5_000
_NOT_STRICT = frozenset(
    ("allOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas")
)
# The only values of `format` that strict mode knows.
_FORMATS = frozenset(
    ("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid")
)
_PLAIN = re.compile(r"(?<![a-z0-9])(gpt-3|gpt-4|gpt4|chatgpt|gpt-5-chat)|non-reasoning")
_REASONS = re.compile(r"(?<![a-z0-9])(o[1-9](?![0-9])|gpt-5|codex|gpt-oss)")


def reasons(model: str) -> bool | None:
    """Whether a model of this name reasons; None if the name does not tell: then all is sent.

    One that does refuses a temperature, and one that does not refuses to be asked for reasoning
    ("Encrypted content is not supported with this model.").
    """
    name = model.lower()
    if _PLAIN.search(name):
        return False
    return True if _REASONS.search(name) else None


def function(tool: Tool) -> Object:
    """A tool in OpenAI's words: name, description, parameters."""
    parameters: Any = tool.parameters
    if any(_lacks_items(part) for part, _ in _schemas(parameters)):
        parameters = _with_items(thaw(parameters))
    return {"name": tool.name, "description": tool.description, "parameters": parameters}


def effort(thinking: str | int) -> str:
    """How hard to think, as a word: "off" is none, and a budget is the next word above it."""
    if isinstance(thinking, str):
        return "none" if thinking == "off" else thinking
    return next((word for size, word in EFFORT_TOKENS if thinking <= size), "high")


def budget(thinking: str | int) -> int:
    """How hard to think, as tokens: a word is what `effort` makes that word of, and twice that."""
    if isinstance(thinking, int):
        return max(thinking, BUDGET_TOKENS_MIN)
    sizes = {word: size for size, word in EFFORT_TOKENS}
    return sizes.get(thinking, BUDGET_TOKENS_MIN if thinking == "minimal" else BUDGET_TOKENS_HIGH)


def cache_key(conversation: str) -> str:
    """The hint under which the service looks for a warm cache; a digest where it is too long."""
    if len(conversation) <= CACHE_KEY_SIZE_MAX:
        return conversation
    return hashlib.blake2b(conversation.encode(), digest_size=CACHE_KEY_SIZE_MAX // 2).hexdigest()


# Tools that take text


def text_arguments(text: str) -> str:
    """What the model wrote for a tool that takes text, as arguments: {"input": text}."""
    return fields.encode({"input": text})


def free_text(arguments: str) -> str:
    """What the model wrote for a tool that takes text: kept as the JSON of {"input": text}."""
    try:
        said = msgspec.json.decode(arguments.encode())
    except (msgspec.DecodeError, RecursionError):
        return arguments
    text = said.get("input") if type(said) is dict and len(said) == 1 else None
    return text if type(text) is str else arguments


# Schemas


def is_strict(schema: Mapping[str, Any]) -> bool:
    """Whether the vendor can hold a model to this schema."""
    if schema.get("type") != "object" or "anyOf" in schema:
        return False
    parts = list(_schemas(schema))
    return (
        all(_is_strict_part(part) and depth <= NESTING_MAX for part, depth in parts)
        and sum(len(_object(part.get("properties"))) for part, _ in parts) <= PROPERTIES_MAX
    )


def _is_strict_part(part: Mapping[str, Any]) -> bool:
    if not _NOT_STRICT.isdisjoint(part) or part.get("format", "date") not in _FORMATS:
        return False
    kinds = part.get("type")
    kinds = kinds if isinstance(kinds, list | tuple) else (kinds,)
    if "array" in kinds and not isinstance(part.get("items"), Mapping):
        return False
    if "object" not in kinds and "properties" not in part:
        return bool({"type", "$ref", "anyOf", "enum", "const"} & part.keys())
    required = part.get("required", ())
    return (
        part.get("additionalProperties") is False
        and isinstance(required, list | tuple)
        and set(_object(part.get("properties"))) == set(required)
    )


def _lacks_items(part: Mapping[str, Any]) -> bool:
    return part.get("type") == "array" and part.get("items") is None and "prefixItems" not in part


def _with_items(schema: Object) -> Object:
    """OpenAI refuses a list whose items are not described; {} says that they may be anything."""
    for part, _ in _schemas(schema):
        if _lacks_items(part):
            part["items"] = {}  # type: ignore[index]
    return schema


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _schemas(schema: Any) -> Iterator[tuple[Mapping[str, Any], int]]:
    """Every schema inside a schema, and the number of objects around it."""
    todo: list[tuple[Any, int]] = [(schema, 0)]
    while todo:
        part, depth = todo.pop()
        if not isinstance(part, Mapping):
            continue
        yield part, depth
        for group in ("properties", "$defs", "definitions"):
            inner = depth + (group == "properties")
            todo += [(each, inner) for each in _object(part.get(group)).values()]
        todo.append((part.get("items"), depth))
        for keyword in ("anyOf", "prefixItems"):
            choices = part.get(keyword)
            if isinstance(choices, list | tuple):
                todo += [(each, depth) for each in choices]
