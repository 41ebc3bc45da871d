"""JSON schemas that the server of llama.cpp can turn into a grammar, out of any others.

A schema that it does not understand is a refused request there, and two bounds that contradict
each other end the process. So only what is known to work is kept, and the result is wider than
what was given: it allows all that the schema allows, or at least does not forbid on purpose.

- References inside the schema are kept where a character stands between them and their target
  (in a property, in an array); elsewhere the target is put in, and one that leads back to itself
  is anything. References to other documents are anything.
- `allOf` becomes one object where all of its parts are objects, and else its first part that
  says something.
- `pattern`, `not`, `if`, `patternProperties` and other conditions are left out.
"""

from collections import deque
from collections.abc import Mapping
from typing import Any

from holdfast.frozen import thaw

_TYPES = ("string", "number", "integer", "boolean", "null", "array", "object")
_FORMATS = ("date", "time", "date-time", "uuid")
_BOUND_MAX = 1_000  # a grammar spells repetitions out
_INTEGER_MAX = 10**15
_NODES_MAX = 10_000
_CHAIN_MAX = 16

Schema = dict[str, Any]


def portable(schema: Any) -> Schema:
    """What is left of one schema, by itself. Never raises, and is never too large."""
    grammar = Grammar()
    found = grammar.add(schema)
    return {**found, "$defs": grammar.definitions} if grammar.definitions else found


class Grammar:
    """Several schemas that shall stand in one document, under one set of definitions."""

    def __init__(self) -> None:
        self.definitions: dict[str, Schema] = {}
        self._nodes_left = _NODES_MAX
        self._names_given = 0

    def add(self, schema: Any) -> Schema:
        """What is left of `schema`; its references lead to `definitions`."""
        try:
            return _Document(self, schema).convert()
        except RecursionError:  # nested so deeply that nobody could write what it asks for
            return {}

    def name(self) -> str:
        """For one more definition."""
        self._names_given += 1
        return f"d{self._names_given}"

    def spend(self) -> bool:
        """Whether one more node may be added."""
        self._nodes_left -= 1
        return self._nodes_left >= 0


class _Document:
    """One schema on its way, with the references met in it."""

    def __init__(self, grammar: Grammar, root: Any) -> None:
        self._grammar = grammar
        self._root = root
        self._names: dict[str, str] = {}
        self._todo: deque[tuple[str, Any]] = deque()

    def convert(self) -> Schema:
        found = self._schema(self._root, ())
        while self._todo:  # in a queue, because definitions may lead on and on
            name, target = self._todo.popleft()
            self._grammar.definitions[name] = self._schema(target, ())
        return found

    def _schema(self, schema: Any, chain: tuple[str, ...]) -> Schema:
        """`chain` holds the references that were put in on the way here, outermost first."""
        if not isinstance(schema, Mapping) or not self._grammar.spend():
            return {}
        if "$ref" in schema:
            return self._put_in(schema["$ref"], chain)
        if "const" in schema:
            return {"const": thaw(schema["const"])}
        if isinstance(schema.get("enum"), list | tuple) and schema["enum"]:
            return {"enum": thaw(list(schema["enum"]))}
        if isinstance(schema.get("properties"), Mapping):
            return self._object(schema, schema["properties"])
        for word in ("anyOf", "oneOf", "allOf"):
            parts = schema.get(word)
            if isinstance(parts, list | tuple) and parts:
                found = [self._schema(part, chain) for part in parts]
                return _all(found) if word == "allOf" else _any(found)
        return self._typed(schema, _types(schema.get("type")))

    def _inner(self, schema: Any) -> Schema:
        """A schema behind at least one character of the parent's: a reference may stay one."""
        if not isinstance(schema, Mapping) or "$ref" not in schema:
            return self._schema(schema, ())
        pointer = schema["$ref"]
        is_found, target = resolve(self._root, pointer)
        if not is_found or not self._grammar.spend():
            return {}
        if pointer not in self._names:
            self._names[pointer] = self._grammar.name()
            self._todo.append((self._names[pointer], target))
        return {"$ref": f"#/$defs/{self._names[pointer]}"}

    def _put_in(self, pointer: Any, chain: tuple[str, ...]) -> Schema:
        is_found, target = resolve(self._root, pointer)
        if not is_found or pointer in chain or len(chain) >= _CHAIN_MAX:
            return {}
        return self._schema(target, (*chain, pointer))

    def _object(self, schema: Mapping[str, Any], properties: Mapping[str, Any]) -> Schema:
        kept = {n: self._inner(each) for n, each in properties.items() if each is not False}
        required = schema.get("required")
        names = required if isinstance(required, list | tuple) else ()
        found: Schema = {"type": "object", "properties": kept}
        found["required"] = [name for name in kept if name in names]
        return found | self._more(schema)

    def _more(self, schema: Mapping[str, Any]) -> Schema:
        """Other properties are allowed where the schema says so, and not where it says nothing:
        a small model would not stop."""
        more = schema.get("additionalProperties", False)
        if isinstance(more, bool):
            return {"additionalProperties": more}
        return {"additionalProperties": self._inner(more)}

    def _typed(self, schema: Mapping[str, Any], types: list[str]) -> Schema:
        if len(types) > 1:
            return _any([self._typed(schema, [each]) for each in types])
        kind = types[0] if types else ""
        if kind == "array" or (not kind and "items" in schema):
            return self._array(schema)
        if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
            return {"type": "object", **self._more(schema)}
        if kind == "string":
            return _string(schema)
        if kind == "integer":
            return {"type": "integer", **_range(schema)}
        return {"type": kind} if kind else {}

    def _array(self, schema: Mapping[str, Any]) -> Schema:
        found: Schema = {"type": "array", "items": self._inner(schema.get("items", {}))}
        return found | _bounds(schema, "minItems", "maxItems", _BOUND_MAX)


def _string(schema: Mapping[str, Any]) -> Schema:
    if schema.get("format") in _FORMATS:
        return {"type": "string", "format": schema["format"]}
    return {"type": "string", **_bounds(schema, "minLength", "maxLength", _BOUND_MAX)}


def _range(schema: Mapping[str, Any]) -> Schema:
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    merged = dict(schema)
    if type(above) is int:
        merged["minimum"] = above + 1
    if type(below) is int:
        merged["maximum"] = below - 1
    return _bounds(merged, "minimum", "maximum", _INTEGER_MAX, -_INTEGER_MAX)


def _bounds(schema: Mapping[str, Any], low: str, high: str, most: int, least: int = 0) -> Schema:
    """Both bounds, as far as they are whole numbers of a sane size that leave room between."""
    kept = {name: schema[name] for name in (low, high) if type(schema.get(name)) is int}
    kept = {name: number for name, number in kept.items() if least <= number <= most}
    return {} if kept.get(low, least) > kept.get(high, most) else kept


def _types(given: Any) -> list[str]:
    names = given if isinstance(given, list | tuple) else [given]
    return [kind for kind in _TYPES if kind in names]


def _any(parts: list[Schema]) -> Schema:
    if len(parts) == 1:
        return parts[0]
    return {"anyOf": parts} if all(parts) else {}


def _all(parts: list[Schema]) -> Schema:
    told = [part for part in parts if part]
    if not told or not all("properties" in part for part in told):
        return told[0] if told else {}
    merged: Schema = {"type": "object", "properties": {}, "required": []}
    for part in told:
        merged["properties"] |= part["properties"]
        merged["required"] += [n for n in part["required"] if n not in merged["required"]]
    return merged | {"additionalProperties": False}


def resolve(root: Any, pointer: Any) -> tuple[bool, Any]:
    """Whether there is something at a pointer such as `#/$defs/City`, and what."""
    if not isinstance(pointer, str) or not (pointer == "#" or pointer.startswith("#/")):
        return False, None
    found = root
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping) and key in found:
            found = found[key]
        elif isinstance(found, list | tuple) and key in map(str, range(len(found))):
            found = found[int(key)]
        else:
            return False, None
    return True, found
