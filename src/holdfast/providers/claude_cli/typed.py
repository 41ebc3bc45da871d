"""Arguments with the types that the tool's schema wants.

The program hands on what it has no schema for as texts: "5" for 5, "true" for true. A text becomes
what it spells where the schema wants something else than a text, and only there: "123" stays a text
where a text is wanted, or may be. What fits already stays to the letter as the model wrote it.
"""

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any

from holdfast.providers.fields import encode

_KINDS = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
_DEPTH_MAX = 64
_SEVERAL = ("anyOf", "oneOf", "allOf")
_WORDS = {"true": True, "false": False, "null": None, "none": None}


def typed(arguments: str, schema: Mapping[str, Any]) -> str:
    """The JSON text of the arguments, restored; as it was if nothing is to be restored."""
    try:
        given = _parsed(arguments)
    except (ValueError, RecursionError):
        return arguments
    restored = _Restoring(schema).value(given, schema, 0)
    return arguments if restored is given else encode(restored)


class _Restoring:
    """One text, under one schema."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root

    def value(self, given: Any, schema: Any, depth: int) -> Any:
        """The value as the schema wants it; the very same object if it is that already."""
        if depth > _DEPTH_MAX or not isinstance(schema, Mapping):
            return given
        if "$ref" in schema:
            return self.value(given, self._target(schema["$ref"]), depth + 1)
        if isinstance(given, str):
            return self._text(given, schema, depth)
        if not isinstance(given, dict | list):
            return given
        if "properties" not in schema and "items" not in schema:
            way = self._way(given, schema, depth)
            if way is not None:
                return self.value(given, way, depth + 1)
        if isinstance(given, dict):
            return self._object(given, schema, depth)
        made = [self.value(each, schema.get("items"), depth + 1) for each in given]
        return made if _differ(made, given) else given

    def _way(self, given: Any, schema: Mapping[str, Any], depth: int) -> Any:
        """Of several schemas, the first that may be of such a value: in a field that may be null,
        or is described where it stands, it is the one that says what it holds."""
        kind = "object" if isinstance(given, dict) else "array"
        ways = [way for word in _SEVERAL for way in schema.get(word) or ()]
        return next((way for way in ways if kind in self._kinds(way, depth + 1)), None)

    def _text(self, given: str, schema: Mapping[str, Any], depth: int) -> Any:
        kinds = self._kinds(schema, depth)
        if not kinds or "string" in kinds:
            return given
        spelled = _spelled(given)
        kind = _KINDS.get(type(spelled), "array" if isinstance(spelled, list) else "object")
        if kind in kinds or (kind == "integer" and "number" in kinds):
            is_plain = kind not in ("array", "object")
            return spelled if is_plain else self.value(spelled, schema, depth + 1)
        return given

    def _object(self, given: dict[str, Any], schema: Mapping[str, Any], depth: int) -> Any:
        properties = schema.get("properties")
        known = properties if isinstance(properties, Mapping) else {}
        others = schema.get("additionalProperties")
        made = {k: self.value(v, known.get(k, others), depth + 1) for k, v in given.items()}
        return made if _differ(made.values(), given.values()) else given

    def _kinds(self, schema: Any, depth: int) -> set[str]:
        """The types that a schema allows; none for any."""
        if depth > _DEPTH_MAX or not isinstance(schema, Mapping):
            return set()
        if "$ref" in schema:
            return self._kinds(self._target(schema["$ref"]), depth + 1)
        named = schema.get("type")
        if named is not None:
            return set(map(str, named)) if isinstance(named, list | tuple) else {str(named)}
        for word in ("enum", "const"):
            if word in schema:
                values = schema[word] if word == "enum" else [schema[word]]
                return {_KINDS.get(type(each), "object") for each in values or ()}
        ways = [way for word in _SEVERAL for way in schema.get(word) or ()]
        kinds = [self._kinds(way, depth + 1) for way in ways]
        return set().union(*kinds) if all(kinds) else set()

    def _target(self, pointer: Any) -> Any:
        """What stands at `#/$defs/City`; None if nothing does."""
        found: Any = self._root
        for step in str(pointer).split("/")[1:]:
            found = found.get(step) if isinstance(found, Mapping) else None
        return found if str(pointer).startswith("#") else None


def _spelled(text: str) -> Any:
    try:
        return _parsed(text)
    except (ValueError, RecursionError):
        return _WORDS.get(text.strip().lower(), text)


def _parsed(text: str) -> Any:
    return json.loads(text, parse_constant=_refused, parse_float=_finite)


def _refused(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    return number if isfinite(number) else _refused(digits)


def _differ(made: Any, given: Any) -> bool:
    return any(one is not other for one, other in zip(made, given, strict=True))
