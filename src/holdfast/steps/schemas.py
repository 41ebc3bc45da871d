"""Answers that follow a schema: read, and checked by `jsonschema`."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from holdfast.errors import InvalidInput
from holdfast.frozen import FrozenDict, freeze, thaw

_PROBLEM_LENGTH_MAX = 400


class Checked(NamedTuple):
    """The value of an answer, or what is wrong with it in words that a model can act on."""

    value: Any = None
    problem: str = ""


class Schema:
    """A JSON Schema that answers have to follow."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        if not isinstance(schema, Mapping):
            raise InvalidInput("schema", f"is a dict, not {type(schema).__name__}")
        try:
            import jsonschema  # type: ignore[import-untyped]
            import referencing
        except ImportError:
            raise InvalidInput(
                "schema", "needs a checker: pip install 'holdfast[schema]'"
            ) from None
        self.declared: FrozenDict = freeze(schema, "schema")
        plain = thaw(self.declared)
        kind = jsonschema.validators.validator_for(plain)
        try:
            kind.check_schema(plain)
        except jsonschema.SchemaError as error:
            raise InvalidInput("schema", f"is no JSON Schema: {error.message}") from None
        # With a registry of its own it fetches nothing from anywhere.
        self._validator = kind(plain, registry=referencing.Registry())
        _check_references(self._validator, plain)

    def check(self, text: str | None) -> Checked:
        """Read an answer. A fence around the JSON, as some models write one, is passed over."""
        try:
            value = json.loads(_without_fence(text or ""), parse_constant=_no_json)
        except (ValueError, RecursionError) as error:
            return Checked(problem=f"it is not JSON ({error})")
        try:
            wrong = next(self._validator.iter_errors(value), None)
        except RecursionError:
            return Checked(problem="it is nested too deeply")
        if wrong is None:
            return Checked(value=value)
        at = "/".join(map(str, wrong.absolute_path))
        where = f"at {at}: " if at else ""
        return Checked(problem=f"{where}{wrong.message}"[:_PROBLEM_LENGTH_MAX])


def _check_references(validator: Any, schema: Any) -> None:
    """What a schema refers to is in it, or the answer that was paid for could not be checked."""
    from referencing.exceptions import Unresolvable

    try:
        for each in _referring(schema):
            next(validator.evolve(schema=each).iter_errors(None), None)
    except Unresolvable as error:
        raise InvalidInput("schema", f"refers to what is not in it: {error}") from None
    except RecursionError:
        raise InvalidInput("schema", "refers to itself without an end") from None


def _referring(schema: Any) -> Iterator[dict[str, Any]]:
    """The references in a schema, each as a schema of its own."""
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield {"$ref": schema["$ref"]}
        schema = list(schema.values())
    for each in schema if isinstance(schema, list) else ():
        yield from _referring(each)


def _no_json(name: str) -> None:
    """Python reads NaN and Infinity, and whoever is given the value cannot write it as JSON."""
    raise ValueError(f"there is no {name} in JSON")


def _without_fence(text: str) -> str:
    text = text.strip()
    if text.startswith("```") and text.endswith("```") and "\n" in text:
        return text[text.index("\n") : -3]
    return text
