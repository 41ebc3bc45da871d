"""Reads the arguments that a model wrote for a tool, and finds the words for what is wrong.

The words go back to the model, so they name the argument and say what was wanted.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast import strict
from holdfast.errors import InvalidInput
from holdfast.frozen import EMPTY, freeze, thaw

_SHOWN_MAX = 300  # characters of a value or a schema that an error repeats
_MISTYPED = re.compile(r"(.*?)(?: - at (?:`key` in )?`\$\.?([^`]*)`)?", re.DOTALL)  # by msgspec


def read(arguments: str | Mapping[str, Any]) -> dict[str, Any]:
    """A fresh JSON object of the arguments: the text parsed, or the mapping copied."""
    found: Any = arguments
    if isinstance(arguments, str):
        found = strict.parse(arguments, what="arguments").value if arguments.strip() else EMPTY
    if not isinstance(found, Mapping):
        kind = {type(None): "null", tuple: "list"}.get(type(found), type(found).__name__)
        raise InvalidInput("arguments", f"is one JSON object, not {kind}")
    given: dict[str, Any] = thaw(freeze(found, "arguments"))
    return given


def check_names(given: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    """InvalidInput if a required argument is missing, or one is there that the schema excludes."""
    known = schema.get("properties", EMPTY)
    listed = ", ".join(known) or "none"
    for name in schema.get("required", ()):
        if name not in given:
            raise InvalidInput(_argument(name), f"is missing: the arguments are {listed}")
    if schema.get("additionalProperties") is not False:
        return
    for name in given:
        if name not in known:
            raise InvalidInput(_argument(name), f"is unknown: the arguments are {listed}")


def mistyped(error: str, schema: Mapping[str, Any]) -> InvalidInput:
    """msgspec's words, with the place first and the schema of what was wanted behind."""
    found = _MISTYPED.fullmatch(error)
    assert found is not None  # both of its parts may be empty
    words, place = found.groups("")
    wanted = schema.get("properties", EMPTY).get(re.split(r"[.\[]", place)[0])
    if isinstance(wanted, dict) and "$ref" in wanted:
        wanted = schema.get("$defs", EMPTY).get(wanted["$ref"].rpartition("/")[2])
    shown = msgspec.json.encode(wanted).decode() if wanted else ""
    wish = f"; wanted: {shown}" if 0 < len(shown) <= _SHOWN_MAX else ""
    return InvalidInput(_argument(place), f"is wrong: {_short(words.replace('`', ''))}{wish}")


def _argument(name: str) -> str:
    return f"argument {_short(name)!r}" if name else "arguments"


def _short(words: str) -> str:
    return words if len(words) <= _SHOWN_MAX else f"{words[:_SHOWN_MAX]}..."
