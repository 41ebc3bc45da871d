"""The schema of a tool as the service translates it for models that are not Gemini.

There a schema is Google's `Schema`, which knows few words of JSON Schema and refuses any other
('Unknown name "const" at request.tools[0].function_declarations[0].parameters'); a limit that is a
number comes out of the translation as a text, which the model's own vendor then refuses. So the
words that survive are kept, references are put in, and all else is told in the description.
"""

from collections.abc import Mapping
from typing import Any

from holdfast.frozen import thaw
from holdfast.providers.anthropic_schema import with_told
from holdfast.providers.fields import Object
from holdfast.providers.local.grammar import resolve

WORDS = frozenset(("type", "description", "properties", "required", "items", "enum", "anyOf"))
_TYPES = ("object", "array", "string", "number", "integer", "boolean")
# These are about the schema, or hold what is put in where it is referred to.
_LEFT_OUT = frozenset(("$schema", "$id", "$comment", "$defs", "definitions", "title", "$ref"))
_CHOICES = ("anyOf", "oneOf", "allOf")
_NODES_MAX = 2_000
_CHAIN_MAX = 16


def of_parameters(parameters: Mapping[str, Any]) -> Object:
    """The parameters of a tool: an object, with no choice at its top, which Claude refuses."""
    choices = {word: thaw(value) for word, value in parameters.items() if word in _CHOICES}
    plain = {word: value for word, value in parameters.items() if word not in _CHOICES}
    return with_told(_Schemas(parameters).of(plain, ()) | {"type": "object"}, choices)


class _Schemas:
    """One schema with those inside it; references lead to places in `root`."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = _NODES_MAX

    def of(self, schema: Any, chain: tuple[str, ...]) -> Object:
        """`chain` has the references that were put in on the way here."""
        self._left -= 1
        if not isinstance(schema, Mapping) or self._left < 0:
            return {}
        if isinstance(pointer := schema.get("$ref"), str):
            return self._put_in(pointer, schema, chain)
        out: Object = {}
        told: Object = {}
        for word, value in schema.items():
            if word not in _LEFT_OUT and not self._keep(out, schema, word, chain):
                told[word] = thaw(value)
        if "type" not in out:
            out |= _type_by_words(out)
        return with_told(out, told)

    def _put_in(self, pointer: str, schema: Mapping[str, Any], chain: tuple[str, ...]) -> Object:
        is_found, target = resolve(self._root, pointer)
        if not is_found or pointer in chain or len(chain) >= _CHAIN_MAX:
            return with_told({}, {"$ref": pointer})
        found = self.of(target, (*chain, pointer))
        words = schema.get("description")
        return found | ({"description": words} if isinstance(words, str) else {})

    def _keep(
        self, out: Object, schema: Mapping[str, Any], word: str, chain: tuple[str, ...]
    ) -> bool:
        """Put a word of `schema` into `out`; False if it has to be told instead."""
        value = schema[word]
        if word == "properties" and isinstance(value, Mapping):
            out[word] = {name: self.of(each, chain) for name, each in value.items()}
        elif word in ("anyOf", "oneOf") and _is_list(value) and value and "anyOf" not in out:
            out["anyOf"] = [self.of(each, chain) for each in value]
        elif word == "items" and isinstance(value, Mapping):
            out[word] = self.of(value, chain)
        elif word in ("enum", "const"):
            return _keep_values(out, [value] if word == "const" else value)
        elif word == "type":
            return _keep_type(out, value)
        elif word == "required":
            return _keep_required(out, value, schema.get("properties"))
        elif word == "description" and isinstance(value, str):
            out[word] = value
        else:
            return word == "additionalProperties" and isinstance(value, bool)
        return True


def _keep_values(out: Object, values: Any) -> bool:
    """Values that may be chosen from are texts there."""
    if "enum" in out or not (_is_list(values) and values):
        return False
    if not all(isinstance(value, str) and value for value in values):
        return False
    out["enum"] = list(dict.fromkeys(values))
    return True


def _keep_type(out: Object, value: Any) -> bool:
    """One type. Of several the first; all of them are then told."""
    kinds = list(value) if _is_list(value) else [value]
    known = next((kind for kind in _TYPES if kind in kinds), None)
    if known is not None:
        out["type"] = known
    return len(kinds) == 1 and known is not None


def _keep_required(out: Object, names: Any, properties: Any) -> bool:
    """Names of properties that are declared, each once."""
    declared = properties if isinstance(properties, Mapping) else {}
    known = [name for name in declared if _is_list(names) and name in names]
    if known:
        out["required"] = known
    return _is_list(names) and len(known) == len(set(map(str, names)))


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _type_by_words(out: Object) -> Object:
    by_word = {"properties": "object", "items": "array", "enum": "string"}
    kind = next((kind for word, kind in by_word.items() if word in out), None)
    return {} if kind is None else {"type": kind}
