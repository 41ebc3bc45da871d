"""Reading a service's JSON without trusting it.

`decode` takes the bytes of one document. The others take a field out of an object: missing and
null are the same, and what has the wrong type is a ProtocolError that names it; only counts are
taken or left, because an answer is not worth less for a number of tokens that makes no sense.
"""

import json
from typing import Any

import msgspec

from holdfast import text as texts
from holdfast.errors import ProtocolError

Object = dict[str, Any]
COUNT_MAX = 10**12
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def decode(data: bytes | str) -> Any:
    """The JSON value in `data`, or ProtocolError."""
    try:
        return _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    # Half a surrogate pair, NaN and bytes that are not UTF-8 do come, and the rest of the document
    # is good. The standard library reads them; whoever keeps a text mends it.
    try:
        return json.loads(data if isinstance(data, str) else texts.decode(data)[0])
    except (ValueError, RecursionError):
        shown = bytes(data[:80]) if isinstance(data, bytes | bytearray) else data[:80]
        raise ProtocolError(f"what came is no JSON: {shown!r}") from None


def decode_object(data: bytes | str) -> Object:
    """The JSON object in `data`, or ProtocolError."""
    value = decode(data)
    if type(value) is not dict:
        raise ProtocolError(f"what came is no JSON object, but {_kind(value)}")
    return value


def encode(value: Any) -> str:
    """JSON text of something that was decoded, for what is kept as text."""
    try:
        return _encode(value).decode()
    except (UnicodeEncodeError, TypeError, ValueError):  # a lone surrogate, in some text of it
        return texts.mend(json.dumps(value, ensure_ascii=False))[0]


def text_of(holder: Object, name: str) -> str | None:
    """A text, or None."""
    value = holder.get(name)
    if value is None or type(value) is str:
        return value
    raise ProtocolError(f"{name} is a text, not {_kind(value)}")


def object_of(holder: Object, name: str) -> Object:
    """An object; empty when it is missing."""
    value = holder.get(name)
    if type(value) is dict:
        return value
    if value is None:
        return {}
    raise ProtocolError(f"{name} is an object, not {_kind(value)}")


def objects_of(holder: Object, name: str) -> list[Object]:
    """A list of objects; empty when it is missing."""
    value = holder.get(name)
    if value is None:
        return []
    if type(value) is not list:
        raise ProtocolError(f"{name} is a list, not {_kind(value)}")
    for item in value:
        if type(item) is not dict:
            raise ProtocolError(f"{name} holds objects, not {_kind(item)}")
    return value


def count_of(holder: Object, name: str) -> int | None:
    """A number of tokens, or None when it cannot be one."""
    value = holder.get(name)
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value <= COUNT_MAX else None


def _kind(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}
    return kinds.get(type(value), "null" if value is None else "a number")
