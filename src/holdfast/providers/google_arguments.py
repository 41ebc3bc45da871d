"""The arguments of a call, on their way to Google and back.

Google's wire has an object where ours has JSON text. What is no object is sent inside one, so that
the model can read what was said. Vertex streams an object in pieces, if asked to: each names a
place in it by a JSON path and gives a value, or some more of a string.
"""

import re
from typing import Any

import msgspec

from holdfast.errors import ProtocolError
from holdfast.providers import fields
from holdfast.providers.fields import Object

# Google's own reader of JSON goes 100 deep, and the arguments stand some levels down.
DEPTH_MAX = 64
INDEX_MAX = 10_000

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\[\"((?:[^\"\\]|\\.)*)\"\]")
_ESCAPED = re.compile(r"\\(.)")
_VALUES = ("numberValue", "boolValue")


def as_object(text: str) -> bytes | None:
    """The JSON object in `text`, written anew; None if there is none that Google would read."""
    if text[:1] != "{" and not text.lstrip().startswith("{"):
        return None
    try:
        value = _decode(text)
        # Written anew: a key that stands there twice is an error to Google.
        return _encode(value) if len(text) <= 2 * DEPTH_MAX or _is_flat(value) else None
    except (msgspec.DecodeError, RecursionError, ValueError):
        return None


def args(arguments: str) -> bytes:
    """The arguments of a call as an object."""
    if arguments == "{}" or not arguments.strip():
        return b"{}"
    return as_object(arguments) or _encode({"arguments": arguments})


def _is_flat(value: Any) -> bool:
    """Whether it is nested as deeply as Google reads, level by level."""
    level = [value]
    for _ in range(DEPTH_MAX + 1):
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return True
    return False


class Arguments:
    """An object that comes in pieces."""

    def __init__(self) -> None:
        self._value: Object = {}
        self._going: list[str | int] = []  # the place of a string that goes on
        self._words: list[str] = []  # and what there is of it

    def add_all(self, value: Object) -> None:
        """An object that came whole."""
        self._value |= value

    def add(self, piece: Object) -> None:
        """A value at a place, or more of a string."""
        steps = _steps(fields.text_of(piece, "jsonPath") or "$")
        if steps != self._going:
            self._flush()
        words = fields.text_of(piece, "stringValue")
        if words is not None:
            self._going = steps
            self._words.append(words)
            if piece.get("willContinue") is not True:
                self._flush()
        elif "nullValue" in piece:
            self._put(steps, None)
        else:
            for name in _VALUES:
                if name in piece:
                    self._put(steps, piece[name])

    def text(self, *, is_broken: bool = False) -> str:
        """As JSON. What broke off has no end, so that nobody takes it for whole."""
        self._flush()
        written = fields.encode(self._value)
        return written[:-1] if is_broken else written

    def _flush(self) -> None:
        if self._words:
            self._put(self._going, "".join(self._words))
        self._going, self._words = [], []

    def _put(self, steps: list[str | int], value: Any) -> None:
        holder: Any = self._value
        for step, following in zip(steps, [*steps[1:], None], strict=True):
            if following is None:
                _set(holder, step, value)
            else:
                inner = _get(holder, step)
                if not isinstance(inner, dict | list):
                    inner = [] if type(following) is int else {}
                    _set(holder, step, inner)
                holder = inner


def _steps(path: str) -> list[str | int]:
    """The names and numbers of a JSON path (RFC 9535); one name, if it is no such path."""
    steps: list[str | int] = []
    position = 1
    while path.startswith("$") and position < len(path):
        found = _STEP.match(path, position)
        if found is None:
            return [path]
        name, index, *quoted = found.groups()
        if index is not None:
            steps.append(int(index[:9]))
        else:
            steps.append(name or _ESCAPED.sub(r"\1", quoted[0] or quoted[1] or ""))
        position = found.end()
    return steps or [path]


def _get(holder: Any, step: str | int) -> Any:
    if isinstance(holder, list):
        return holder[step] if type(step) is int and step < len(holder) else None
    return holder.get(str(step))


def _set(holder: Any, step: str | int, value: Any) -> None:
    if not isinstance(holder, list):
        holder[str(step)] = value
        return
    if type(step) is not int or step > INDEX_MAX:
        raise ProtocolError(f"a piece of arguments stands at {step!r} of a list")
    holder += [None] * (step + 1 - len(holder))
    holder[step] = value
