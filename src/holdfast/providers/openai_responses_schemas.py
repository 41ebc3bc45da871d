"""JSON Schemas as OpenAI takes them.

`is_strict` tells whether a schema stays inside what "Structured Outputs" supports: the service then
holds the model to it, and otherwise only shows it. `with_items` adds what the service misses in
the schema of a tool.
"""

from collections.abc import Iterator, Mapping
from typing import Any

_COMPOSITION = ("allOf", "oneOf", "not", "if", "then", "else", "dependentRequired")
_EXAMPLES = ("default", "const", "enum", "examples")  # these hold values, not schemas
_NESTING_MAX = 10
_PROPERTIES_MAX = 5_000


def is_strict(schema: Mapping[str, Any]) -> bool:
    """Whether the service can hold a model to this schema."""
    if schema.get("type") != "object" or "anyOf" in schema:
        return False
    properties = 0
    for part, depth in _parts(schema, 0):
        if depth > _NESTING_MAX or not _is_strict_part(part):
            return False
        properties += len(part.get("properties") or ())
    return properties <= _PROPERTIES_MAX


def with_items(schema: Any) -> Any:
    """The schema, with `items` in every array that lacks it ("array schema missing items")."""
    if isinstance(schema, tuple):
        return [with_items(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    made = {
        name: value if name in _EXAMPLES else with_items(value) for name, value in schema.items()
    }
    if made.get("type") == "array" and not ("items" in made or "prefixItems" in made):
        made["items"] = {}
    return made


def _is_strict_part(part: Mapping[str, Any]) -> bool:
    if any(word in part for word in _COMPOSITION):
        return False
    kind = part.get("type")
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if "array" in kinds and not ("items" in part or "prefixItems" in part):
        return False
    if "object" not in kinds and "properties" not in part:
        return True
    properties = part.get("properties", {})
    if part.get("additionalProperties") is not False or not isinstance(properties, Mapping):
        return False
    required = part.get("required", ())
    return isinstance(required, tuple) and set(required) == set(properties)


def _parts(schema: Any, depth: int) -> Iterator[tuple[Mapping[str, Any], int]]:
    """Every schema inside a schema, with the number of objects around it."""
    if not isinstance(schema, Mapping):
        return
    yield schema, depth
    for group, inner in (("properties", depth + 1), ("$defs", depth), ("definitions", depth)):
        named = schema.get(group)
        for part in named.values() if isinstance(named, Mapping) else ():
            yield from _parts(part, inner)
    yield from _parts(schema.get("items"), depth)
    for group in ("anyOf", "prefixItems"):
        choices = schema.get(group)
        for part in choices if isinstance(choices, tuple) else ():
            yield from _parts(part, depth)
