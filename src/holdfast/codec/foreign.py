"""From foreign JSON to messages: what all readers share.

What is understood becomes a field or a part. What is not is kept: an unknown field in `extra`, an
unknown element of a content list as `Unknown`. Tool calls are read flat, as here
(`{"id", "name", "arguments"}`), and nested, as in the OpenAI API (`{"id", "type", "function"}`).
"""

import base64
import binascii
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any

import msgspec

from holdfast.codec.writing import dumps
from holdfast.entries import Entry, Mark
from holdfast.errors import InvalidInput
from holdfast.frozen import EMPTY, FrozenDict
from holdfast.identity import settled_time
from holdfast.messages import Content, Message, Role, ToolCall
from holdfast.parts import Image, Part, Text, Unknown, known_part_of, part_names

_CALL_FIELDS = [name for name in ToolCall.__struct_fields__ if name != "extra"]
CALL_NAMES = (*_CALL_FIELDS, "type", "function")


def object_of(value: Any, what: str) -> FrozenDict:
    """The value, which must be a JSON object."""
    if type(value) is not FrozenDict:
        raise InvalidInput(what, f"is a JSON object, not {_name(value)}")
    return value


def merged(unknown: Mapping[str, Any], extra: Mapping[str, Any]) -> FrozenDict:
    """Both together; InvalidInput when they have a name in common."""
    if twice := unknown.keys() & extra.keys():
        raise InvalidInput(min(twice), "stands both in extra and beside it")
    return FrozenDict({**unknown, **extra})


def spread(
    found: Mapping[str, Any], extra: Mapping[str, Any], names: Collection[str]
) -> dict[str, Any]:
    """`found` with `extra` beside it, as other programs keep what else they know.

    What is called as one of the shape's own `names` goes under "extra": whatever a caller keeps
    with a message, it never changes who said it, or what.
    """
    inside = {name: value for name, value in extra.items() if name in names}
    if "extra" in extra and (inside or _is_inside(extra["extra"], names)):
        inside["extra"] = extra["extra"]
    outside = {name: value for name, value in extra.items() if name not in inside}
    return {**found, **outside} | ({"extra": inside} if inside else {})


def gather(raw: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """What stands in `raw` beside the shape's own `names`: the way back from `spread`."""
    found = {name: value for name, value in raw.items() if name not in names}
    if _is_inside(found.get("extra"), names):
        inside: dict[str, Any] = found.pop("extra")
        return found | inside
    return found


def _is_inside(value: Any, names: Collection[str]) -> bool:
    is_object = isinstance(value, dict) and bool(value)
    return is_object and all(name == "extra" or name in names for name in value)


def content_of(raw: Any, part: Callable[[Any], Part]) -> Content:
    """Text, parts, or nothing."""
    if raw is None or type(raw) is str:
        return raw
    if type(raw) is tuple:
        return tuple(part(item) for item in raw)
    raise InvalidInput("content", f"is text, a list of parts or null, not {_name(raw)}")


def part_of(raw: Any) -> Part:
    """A part in our own JSON; Unknown for anything else."""
    return known_part_of(raw) or Unknown(raw)


def any_part_of(raw: Any) -> Part:
    """A part as other programs write it: our own JSON, bare text, or a picture by `image_url`."""
    if type(raw) is str:
        return Text(raw)
    if type(raw) is FrozenDict and raw.get("type") == "image_url":
        return image_of_url(raw)
    names = part_names(raw)
    if "extra" not in names:
        return part_of(raw)
    own = {name: value for name, value in raw.items() if name in names and name != "extra"}
    extra = gather(raw, [name for name in names if name != "extra"])
    return known_part_of(own | {"extra": FrozenDict(extra)}) or Unknown(raw)


def message_of(
    raw: FrozenDict,
    known: Collection[str],
    *,
    part: Callable[[Any], Part] = any_part_of,
    call: Callable[[FrozenDict], ToolCall] | None = None,
    **fields: Any,
) -> Message:
    """The message in `raw`, whose names in `known` mean what they mean in Message.

    `fields`, `extra` among them, were read by the caller and win.
    """
    if "role" not in raw:
        raise InvalidInput("a message", "has a role, and this one has none")
    role = raw["role"]
    if type(role) is not str:
        raise InvalidInput("role", f"is a string, not {_name(role)}")
    own = {name: raw[name] for name in raw if name in known and name not in fields}
    own["role"] = Role.of(role)
    own["content"] = content_of(raw.get("content"), part)
    own["tool_calls"] = calls_of(raw.get("tool_calls"), call or call_of)
    own = {name: value for name, value in own.items() if value is not None}
    return Message(**(own | fields))


def image_of_url(raw: FrozenDict) -> Part:
    """The picture in `{"type": "image_url", "image_url": {"url": ...}}`: an address, or data."""
    image = raw.get("image_url")
    if type(image) is not FrozenDict or type(image.get("url")) is not str or len(raw) != 2:
        return Unknown(raw)
    url = image["url"]
    extra = FrozenDict({name: value for name, value in image.items() if name != "url"})
    if not url.startswith("data:"):
        return Image(url=url, extra=extra)
    head, comma, encoded = url.removeprefix("data:").partition(",")
    media_type, base64_mark, rest = head.partition(";base64")
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return Unknown(raw)
    is_canonical = base64.b64encode(data).decode() == encoded  # or the address could not be rebuilt
    if not comma or not base64_mark or rest or not is_canonical:
        return Unknown(raw)
    return Image(data=data, media_type=media_type or None, extra=extra)


def calls_of(raw: Any, call: Callable[[FrozenDict], ToolCall]) -> tuple[ToolCall, ...]:
    """The tool calls in a list, or none."""
    if raw is None:
        return ()
    if type(raw) is not tuple:
        raise InvalidInput("tool_calls", f"is a list, not {_name(raw)}")
    return tuple(call(object_of(item, "a tool call")) for item in raw)


def call_of(raw: FrozenDict) -> ToolCall:
    """One tool call, flat or nested. What is missing is empty: history keeps what was said."""
    rest = gather(raw, CALL_NAMES)
    inner = object_of(raw.get("function", EMPTY), "function")
    fields = {name: raw[name] for name in _CALL_FIELDS if raw.get(name) is not None}
    fields |= {name: inner[name] for name in ("name", "arguments") if name in inner}
    if other := {name: inner[name] for name in inner if name not in ("name", "arguments")}:
        rest = rest | {"function": other}
    if raw.get("type", "function") != "function":
        rest = rest | {"type": raw["type"]}
    fields["arguments"] = arguments_of(fields.get("arguments"))
    return ToolCall(**({"id": "", "name": ""} | fields), extra=rest)


def own_call_of(raw: FrozenDict) -> ToolCall:
    """A tool call in a record of ours, of this version or a newer one; nested ones are read too."""
    own = object_of(raw.get("extra", EMPTY), "extra")
    rest = FrozenDict({name: value for name, value in raw.items() if name != "extra"})
    call = call_of(rest)
    return call.replace(extra=merged(call.extra, own))


def arguments_of(raw: Any) -> str:
    """Arguments as JSON text: as written, or written from the object that some programs keep."""
    if raw is None:
        return ""
    return raw if type(raw) is str else dumps(raw)


def iso_time(raw: Any) -> datetime:
    """The time in ISO 8601 text, with a zone or without."""
    if type(raw) is not str:
        raise InvalidInput("timestamp", f"is text such as 2026-02-01T12:00:00Z, not {_name(raw)}")
    try:
        return datetime.fromisoformat(raw)
    except ValueError:
        raise InvalidInput("timestamp", f"{raw[:80]!r} is not an ISO 8601 time") from None


def time_of(raw: Any, zone: tzinfo | None = None) -> datetime:
    """The same; a time without a zone is in `zone`, by default the machine's."""
    time = iso_time(raw)
    try:
        if time.utcoffset() is None:
            time = time.replace(tzinfo=zone) if zone else time.astimezone()
        return settled_time(time, "timestamp")
    except (ValueError, OverflowError):  # at the ends of the calendar
        return time.replace(tzinfo=UTC)


def time_fields(raw: Any, zone: tzinfo | None = None) -> dict[str, Any]:
    """The fields `timestamp` and, where our own text of that time would differ, `extra`."""
    time = time_of(raw, zone)
    is_ours = msgspec.to_builtins(time) == raw
    return {"timestamp": time} if is_ours else {"timestamp": time, "extra": {"timestamp": raw}}


def time_text(message: Message, zone: tzinfo | None = None) -> Any:
    """The text that stood for the time of a message, while it still does; else None."""
    kept = message.extra.get("timestamp")
    return kept if is_time(kept) and time_of(kept, zone) == message.timestamp else None


def is_time(raw: Any) -> bool:
    """Whether it is a time in ISO 8601 text."""
    try:
        iso_time(raw)
    except InvalidInput:
        return False
    return True


def with_marks(message: Entry, mended: int) -> tuple[Entry, ...]:
    """The entry and, where broken characters in it were mended, the mark that says so."""
    return message, *mended_marks(getattr(message, "id", None), mended)


def mended_marks(about: str | None, mended: int) -> tuple[Mark, ...]:
    """The mark that says how many broken characters were replaced; none if none were."""
    data = FrozenDict({"characters": mended})
    return (Mark(what="mended", about=about, data=data),) if mended else ()


def _name(value: Any) -> str:
    names = {FrozenDict: "an object", tuple: "a list", str: "text", bool: "true or false"}
    return "null" if value is None else names.get(type(value), "a number")
