"""Reading JSON that we did not write.

Everything that a careless or hostile document can hold is refused with its place, or mended and
counted; what comes back is frozen. Nothing is built but dicts, tuples, text, numbers, True, False
and None.
"""

import json
import math
import re
import sys
from typing import Any, NamedTuple, Never

from holdfast import text
from holdfast.errors import InvalidInput, TooLarge
from holdfast.frozen import DEPTH_MAX, DIGITS_MAX, Value, freeze

_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class Limits(Value, frozen=True, kw_only=True):
    """How much of a foreign document is taken: its size, its nesting, and its elements in all."""

    bytes_max: int = 64 * 1024 * 1024
    depth_max: int = DEPTH_MAX
    items_max: int = 100_000

    def _settle(self) -> None:
        self._settle_counts("bytes_max", "depth_max", "items_max")


LIMITS = Limits()
# What we took and wrote we read again, however large: limits are for what comes from elsewhere. A
# value may be nested as deep as a caller's limit, and stands a few levels down in its record.
RECORD_LEVELS = 8
OWN_LIMITS = Limits(
    bytes_max=sys.maxsize, depth_max=DEPTH_MAX + RECORD_LEVELS, items_max=sys.maxsize
)


class Parsed(NamedTuple):
    """A frozen JSON value, and how many broken characters in it became U+FFFD."""

    value: Any
    mended: int


def parse(data: bytes | str, limits: Limits = LIMITS, what: str = "the document") -> Parsed:
    """The JSON value in `data`. InvalidInput or TooLarge, with the place, if it cannot be taken.

    Duplicate keys, NaN, numbers beyond a float's range and integers of over 1,000 digits are
    refused. A lone surrogate, escaped or not, and bytes that are not UTF-8 become U+FFFD.
    """
    size = len(data)
    if isinstance(data, str) and not data.isascii():
        size = len(data.encode("utf-8", "surrogatepass"))
    if size > limits.bytes_max:
        raise TooLarge(f"{what}, in bytes,", size, limits.bytes_max)
    source, mended = text.mend(data) if isinstance(data, str) else text.decode(data)
    source = source.removeprefix("\ufeff")
    _check_items(source, limits, what)
    value = _loads(source, limits, what)
    if _SURROGATE.search(source):
        value, found = _mend(value, what)
        mended += found
    return Parsed(freeze(value, what, limits.depth_max), mended)


def _check_items(source: str, limits: Limits, what: str) -> None:
    # Before anything is built: 64 MiB of "[],[],..." would be over a gigabyte of lists.
    if source.count(",") < limits.items_max:
        return
    items = _STRINGS.sub("", source).count(",")
    if items >= limits.items_max:
        raise TooLarge(f"{what}, in elements,", items + 1, limits.items_max)


def _loads(source: str, limits: Limits, what: str) -> Any:
    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) < len(items):
            keys = [key for key, _ in items]
            twice = next(key for key in found if keys.count(key) > 1)
            raise InvalidInput(what, f"has the key {twice[:80]!r} twice in one object")
        return found

    def constant(name: str) -> Never:
        raise InvalidInput(what, f"holds {name}, which is not JSON")

    def integer(digits: str) -> int:
        if len(digits.removeprefix("-")) > DIGITS_MAX:
            raise InvalidInput(what, f"holds a number of over {DIGITS_MAX} digits")
        return int(digits)

    def real(digits: str) -> float:
        number = float(digits)
        if not math.isfinite(number):
            raise InvalidInput(what, f"holds {digits[:80]}, beyond the range of a number")
        return number

    try:
        return json.loads(
            source,
            object_pairs_hook=pairs,
            parse_constant=constant,
            parse_int=integer,
            parse_float=real,
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise InvalidInput(what, f"is not JSON: {error.msg} at {where}") from None
    except RecursionError:
        raise InvalidInput(
            what, f"is nested too deeply: at most {limits.depth_max} levels are kept"
        ) from None


def _mend(value: Any, what: str) -> tuple[Any, int]:
    """The value with each lone surrogate, as an escape may make one, mended and counted."""
    count = 0

    def walk(value: Any) -> Any:
        nonlocal count
        if isinstance(value, str):
            value, found = text.mend(value)
            count += found
        elif isinstance(value, list):
            return [walk(item) for item in value]
        elif isinstance(value, dict):
            mended = {walk(key): walk(item) for key, item in value.items()}
            if len(mended) < len(value):
                raise InvalidInput(what, "has keys that differ only in broken characters")
            return mended
        return value

    return walk(value), count
