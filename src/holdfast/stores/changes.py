"""What `update` does to the document of a session, and what it may expect of it.

settings, metadata and counters are changed name by name; None takes a name away. The other fields
are replaced.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.errors import Conflict, InvalidInput
from holdfast.frozen import FrozenDict, freeze
from holdfast.settings import Settings
from holdfast.stores.document import MICROSECOND, Document
from holdfast.stores.values import check_ttl

OBJECTS = ("settings", "metadata", "counters")
FIELDS = (*OBJECTS, "agent", "tools", "ttl", "branch")


def checked(values: Any, what: str) -> dict[str, Any]:
    """Changes or expectations that a caller gave, frozen; InvalidInput for what cannot be one."""
    if not isinstance(values, Mapping):
        raise InvalidInput(what, f"is a dict, not {type(values).__name__}")
    if unknown := [name for name in values if name not in FIELDS]:
        raise InvalidInput(what, f"has no field {unknown[0]!r}: there are {', '.join(FIELDS)}")
    found: dict[str, Any] = {}
    for name, value in values.items():
        if name in OBJECTS:
            if name == "settings" and isinstance(value, Settings):
                value = dict.fromkeys(Settings.__struct_fields__) | value.values
            if not isinstance(value, Mapping):
                raise InvalidInput(name, f"is a dict, not {type(value).__name__}")
        elif name == "ttl":
            check_ttl(value)
            value = None if value is None else value // MICROSECOND
        elif name == "tools":
            if not isinstance(value, list | tuple) or not all(
                isinstance(tool, Mapping) for tool in value
            ):
                raise InvalidInput(name, "is a list of declarations, each a dict")
        elif type(value) is not str:
            raise InvalidInput(name, f"is a string, not {type(value).__name__}")
        found[name] = freeze(value, name)
    return found


def apply(document: Document, changes: Mapping[str, Any]) -> Document:
    """The document with these changes, which `checked` has gone over."""
    fields = {name: value for name, value in changes.items() if name not in (*OBJECTS, "branch")}
    for name in OBJECTS:
        if name in changes:
            old: FrozenDict = getattr(document, name)
            merged = {**old, **changes[name]}
            fields[name] = FrozenDict({n: v for n, v in merged.items() if v is not None})
    if "settings" in fields:
        Settings.of(fields["settings"])
    return msgspec.structs.replace(document, **fields)


def check(document: Document, branch: str, expect: Mapping[str, Any]) -> None:
    """Raise Conflict unless the document, and the branch in use, are as expected."""
    for name, wanted in expect.items():
        if name in OBJECTS:
            found = getattr(document, name)
            for each, value in wanted.items():
                if not is_same(found.get(each), value):
                    raise Conflict(document.key, 0, 0, f"{name}.{each}")
        elif not is_same(branch if name == "branch" else getattr(document, name), wanted):
            raise Conflict(document.key, 0, 0, name)


def is_same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same; in JSON, unlike Python, 1 is not true."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_same(one[n], other[n]) for n in one)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(is_same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)
