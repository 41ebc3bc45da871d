"""What all validators share: a problem, and a value that knows where in the body it stands.

A `Node` is a piece of the body with its path and the list that problems are added to. Its
questions (`expect`, `maybe`, `among`, `between`, ...) answer True when all is well and otherwise
write down what is not, so that a rule reads as one line and never meets a type that it did not
ask for. A field that is null counts as absent: every vendor here takes null for "not given".
"""

import base64
import binascii
import math
import re
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
}


class Problem(NamedTuple):
    """Why a request would be refused: where, by which rule, and in words."""

    path: str
    rule: str
    why: str

    def __str__(self) -> str:
        return f"{self.path or 'the body'}: {self.why} ({self.rule})"


class Node:
    """A value of the body, where it stands, and where its problems go."""

    def __init__(self, value: Any, path: str, found: list[Problem]) -> None:
        self.value = value
        self.path = path
        self.found = found

    def __getitem__(self, key: str) -> "Node":
        value = self.value.get(key) if isinstance(self.value, dict) else None
        return Node(value, f"{self.path}.{key}" if self.path else key, self.found)

    def __iter__(self) -> Iterator["Node"]:
        """The items of a list; nothing for any other value."""
        if isinstance(self.value, list):
            for number, value in enumerate(self.value):
                yield Node(value, f"{self.path}[{number}]", self.found)

    @property
    def here(self) -> bool:
        return self.value is not None

    @property
    def text(self) -> str:
        """The value if it is a string, and else the empty one."""
        return self.value if isinstance(self.value, str) else ""

    @property
    def keys(self) -> list[str]:
        return [key for key in self.value if isinstance(key, str)] if self.is_a("object") else []

    def is_a(self, kind: str) -> bool:
        if isinstance(self.value, bool) and kind != "boolean":
            return False  # a bool is an int for Python, and not for JSON
        return isinstance(self.value, KINDS[kind])

    def wrong(self, rule: str, why: str) -> bool:
        """Write a problem down. Returns False, for the caller to return."""
        self.found.append(Problem(self.path, rule, why))
        return False

    def expect(self, *kinds: str) -> bool:
        """Is it there, and of one of these kinds?"""
        if not self.here:
            return self.wrong("missing-field", "this field is required")
        return self.maybe(*kinds)

    def maybe(self, *kinds: str) -> bool:
        """Is it there? And if so, it must be of one of these kinds."""
        if not self.here:
            return False
        if any(self.is_a(kind) for kind in kinds):
            return True
        return self.wrong("wrong-type", f"expected {' or '.join(kinds)}")

    def filled(self) -> bool:
        """Is it there, a string, and not the empty one?"""
        if not self.expect("string"):
            return False
        return bool(self.value) or self.wrong("empty-value", "this string may not be empty")

    def among(self, allowed: Collection[str], rule: str = "unknown-value") -> bool:
        """Is it one of the strings that are allowed?"""
        if not self.expect("string"):
            return False
        if self.value in allowed:
            return True
        return self.wrong(rule, f"{self.value!r} is none of {', '.join(sorted(allowed))}")

    def maybe_among(self, allowed: Collection[str], rule: str = "unknown-value") -> bool:
        return self.here and self.among(allowed, rule)

    def between(self, low: float, high: float = math.inf, kind: str = "number") -> bool:
        """If it is there: is it a number in this range, both ends included?"""
        if not self.maybe(kind):
            return False
        if low <= self.value <= high:
            return True
        return self.wrong("out-of-range", f"this is not between {low} and {high}")

    def matches(self, pattern: re.Pattern[str], rule: str) -> bool:
        """Is it a string that matches the whole pattern?"""
        if not self.expect("string"):
            return False
        if pattern.fullmatch(self.value):
            return True
        return self.wrong(rule, f"{self.value[:80]!r} does not match {pattern.pattern}")

    def only(self, known: Collection[str], rule: str = "unknown-field") -> None:
        """Name each field that the vendor does not know. One that is null is no less unknown."""
        for key in self.keys:
            if key not in known:
                self[key].wrong(rule, "the vendor knows no such field")

    def base64(self, *, url_safe: bool = False) -> bool:
        """Is it base64, and not empty? Google takes the URL-safe alphabet as well."""
        if not self.filled():
            return False
        text = self.value.replace("-", "+").replace("_", "/") if url_safe else self.value
        if url_safe:
            text += "=" * (-len(text) % 4)
        try:
            base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            return self.wrong("bad-base64", "this is not base64")
        return True


def root(body: Any) -> Node:
    return Node(body, "", [])


def repeated(nodes: list[Node]) -> list[Node]:
    """Those whose string was there before, in order."""
    seen: set[str] = set()
    again = []
    for node in nodes:
        if node.text and node.text in seen:
            again.append(node)
        seen.add(node.text)
    return again


def text_problems(body: Any) -> list[Problem]:
    """What no JSON text can carry: half a surrogate pair, NaN, infinity, a Python object.

    Walks with a list of its own, because a body may be nested deeper than Python's stack.
    """
    start = root(body)
    todo = [start]
    while todo:
        node = todo.pop()
        value = node.value
        if isinstance(value, str):
            _check_unicode(node, value)
        elif isinstance(value, float) and not math.isfinite(value):
            node.wrong("not-json", f"{value} is no number of JSON")
        elif isinstance(value, dict):
            for key in value:
                if isinstance(key, str):
                    _check_unicode(node, key)
                    todo.append(node[key])
                else:
                    node.wrong("not-json", f"a name is {type(key).__name__}, and not a string")
        elif isinstance(value, list):
            todo.extend(node)
        elif value is not None and not isinstance(value, bool | int | float):
            node.wrong("not-json", f"{type(value).__name__} is no type of JSON")
    return start.found


def _check_unicode(node: Node, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        node.wrong("lone-surrogate", f"half of a surrogate pair at character {error.start}")
