"""JSON in the bytes of other programs: Python's own, and those of Go's encoder."""

import json
from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Any

from holdfast.frozen import thaw

_GO_ESCAPED = {code: f"\\u{code:04x}" for code in (0x3C, 0x3E, 0x26, 0x2028, 0x2029)}


@cache
def _encoder(spaced: bool, ascii: bool) -> Callable[[Any], str]:
    separators = (", ", ": ") if spaced else (",", ":")
    return json.JSONEncoder(ensure_ascii=ascii, separators=separators, allow_nan=False).encode


def dumps(value: Any, *, spaced: bool = False, ascii: bool = False) -> str:
    """JSON text of a frozen value: compact, or with the spaces that Python puts in."""
    return _encoder(spaced, ascii)(thaw(value))


def go_dumps(value: Any) -> bytes:
    """The bytes that Go writes: compact, with what HTML could misread escaped."""
    return dumps(value).translate(_GO_ESCAPED).encode()


def go_time(time: datetime) -> str:
    """A time as Go writes it: no zeros at the end of a fraction, Z for UTC."""
    whole, dot, rest = time.isoformat().replace("+00:00", "Z").partition(".")
    if not dot:
        return whole
    fraction, zone = rest[:6].rstrip("0"), rest[6:]
    return f"{whole}.{fraction}{zone}"
