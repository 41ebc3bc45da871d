"""What an answer says, read as simply as possible: the other side of every comparison.

These readings are written from the vendors' published wire formats and share nothing with the
readers that holdfast ships: whole answers through `json.loads`, streams split at their lines,
everything held in memory. They are slow, and short enough to be checked by eye.
"""

import hashlib
import json
import re
from typing import Any, NamedTuple

from holdfast.usage import Usage


class Call(NamedTuple):
    """A tool the model asks for. `arguments` is parsed JSON, or the text where it is none."""

    id: str | None
    name: str
    arguments: Any
    signature: str | None = None


class Reading(NamedTuple):
    """One answer.

    signatures   every proof of the vendor's that has to come back: signed thinking, thought
                 signatures, encrypted reasoning
    redacted     the sealed blocks of redacted thinking
    blocks       the vendor's blocks that have no canonical form, as they are replayed
    media        digests of the pictures and sounds in it
    refusal      words with which the model declines, where the wire keeps them apart
    stop         in the words of holdfast.messages.Stop; `stops_also` are as good, where the
                 wire leaves it open
    outputs_also counts as good as `usage.output`, where a server leaves its reasoning out
    is_complete  whether the end that this wire promises has come
    error        what the service says went wrong, instead of an answer or in the middle of one
    is_blocked   the prompt was refused by a filter
    """

    text: str = ""
    thinking: str = ""
    calls: tuple[Call, ...] = ()
    signatures: tuple[str, ...] = ()
    redacted: tuple[str, ...] = ()
    blocks: tuple[dict[str, Any], ...] = ()
    media: tuple[str, ...] = ()
    refusal: str = ""
    stop: str = "unknown"
    stops_also: tuple[str, ...] = ()
    usage: Usage = Usage()
    outputs_also: tuple[int, ...] = ()
    is_complete: bool = False
    error: Any = None
    is_blocked: bool = False
    id: str | None = None


def parsed(text: str) -> Any:
    """The JSON value in a text of arguments; the text itself where there is none. "" is {}."""
    if not text.strip():
        return {}
    try:
        return json.loads(text)
    except ValueError:
        return text


def digest(data: bytes) -> str:
    """By which media are compared."""
    return hashlib.sha256(data).hexdigest()


def lines(data: bytes) -> list[str]:
    """The lines of a stream. Only \\r\\n, \\n and \\r end one: JSON may hold U+2028."""
    return re.split(r"\r\n|\n|\r", data.decode("utf-8", "replace"))


def sse(data: bytes) -> list[str]:
    """The data of each event. One that the stream's end cut off is there too, last."""
    events: list[str] = []
    current: list[str] = []
    for line in [*lines(data), ""]:
        if line.startswith("data:"):
            current.append(line[5:].removeprefix(" "))
        elif not line and current:
            events.append("\n".join(current))
            current = []
    return events


def sse_objects(data: bytes) -> tuple[list[dict[str, Any]], bool]:
    """The JSON object of each event, and whether `[DONE]` came.

    What does not parse is left out: in a stream that was cut, the last event.
    """
    objects: list[dict[str, Any]] = []
    for text in sse(data):
        if text.strip() == "[DONE]":
            return objects, True
        value = loads(text)
        if isinstance(value, dict):
            objects.append(value)
    return objects, False


def loads(text: str | bytes) -> Any:
    """The JSON value in it, or None."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def array_items(data: bytes) -> list[Any]:
    """The complete elements of a JSON array, which may end anywhere."""
    text = data.decode("utf-8", "replace")
    decoder, items, at = json.JSONDecoder(), list[Any](), 1
    while True:
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
        try:
            item, at = decoder.raw_decode(text, at)
        except ValueError:
            return items
        items.append(item)


def count(value: Any) -> int | None:
    """A number of tokens, or None where nothing usable was said."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def first_count(*values: Any) -> int | None:
    """The first that is a number of tokens."""
    return next((each for each in map(count, values) if each is not None), None)


def total(*values: int | None) -> int | None:
    """The sum of those that are known; None if none is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects in a list, or none."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def inner(value: Any, *names: str) -> dict[str, Any]:
    """The object at a path of names; an empty one where there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def string(value: Any) -> str:
    """The text, or nothing."""
    return value if isinstance(value, str) else ""
