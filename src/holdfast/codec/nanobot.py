"""Lines of nanobot's session files.

    {"_type": "metadata", "key", "created_at", "updated_at", "metadata", "last_consolidated"}
    {"role", "content", "timestamp", "tool_calls", "tool_call_id", "name", ..., "id"}

A line is Python's own bytes: `json.dumps` with its spaces, characters not escaped, one `\\n` behind
every line. Tool calls are nested and pictures are `image_url` parts, as nanobot sends them on. What
nanobot has no name for (author, is_error, model, prefix, stop, synthetic, and last our id) rides in
extra keys, which nanobot keeps. Read is what nanobot wrote in any year, and what its Go port writes
(compact, keys sorted, times in UTC). Times without a zone are those of the machine.
"""

from codecs import BOM_UTF8
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from json.encoder import encode_basestring, encode_basestring_ascii
from operator import attrgetter
from typing import Any, NamedTuple

from holdfast import ids, strict
from holdfast.codec import foreign
from holdfast.codec.plain import openai_content
from holdfast.codec.writing import dumps
from holdfast.entries import RECORD_VERSION, Entry, UnknownEntry
from holdfast.errors import InvalidInput, TooLarge
from holdfast.frozen import EMPTY, FrozenDict, Value
from holdfast.messages import Message, Role, ToolCall
from holdfast.strict import LIMITS, Limits

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_S = 86_400
_EXACT_S = 1 << 32  # below that a float tells microseconds apart, and costs less than a difference
_OWN = ("author", "is_error", "model", "prefix", "stop", "synthetic", "id")
_NAMES = ("role", "content", "timestamp", "tool_calls", "tool_call_id", "name", *_OWN)
_TEXTS = ("tool_call_id", "name", *(name for name in _OWN if name != "is_error"))
_texts_of = attrgetter(*_TEXTS)
_KIND = "nanobot:"  # what the kind of an UnknownEntry begins with
_RESERVED = ("_type", *_NAMES)
_METADATA = ("_type", "key", "created_at", "updated_at", "metadata", "last_consolidated")


class Metadata(Value, frozen=True, kw_only=True):
    """The first line of a file. Times are text, as they stand there.

    `last_consolidated` counts the messages already summarised; a line whose number cannot be one
    (negative, not whole) is read as 0, so that no history is hidden.
    """

    key: str | None = None
    created_at: str = ""
    updated_at: str = ""
    metadata: FrozenDict = EMPTY
    last_consolidated: int = 0
    extra: FrozenDict = EMPTY
    mended: int = 0  # broken characters that were replaced when the line was read

    def within(self, count: int) -> "Metadata":
        """The same for a file of `count` messages: a number beyond them is 0 as well."""
        return self if self.last_consolidated <= count else self.replace(last_consolidated=0)

    def _settle(self) -> None:
        self._settle_texts("created_at", "updated_at", optional=("key",))
        self._settle_objects("metadata", "extra")
        self._settle_counts("mended")
        if type(self.last_consolidated) is not int or self.last_consolidated < 0:
            raise InvalidInput("last_consolidated", "is a whole number from 0 up")


class File(NamedTuple):
    """What a file holds: its metadata, and everything else in order."""

    metadata: Metadata
    entries: tuple[Entry, ...]


def encode(
    message: Message | UnknownEntry, *, zone: tzinfo | None = None, ascii: bool = False
) -> bytes:
    """The line of a message. A time that was read from a line is written as it stood there.

    The line of an UnknownEntry that came from nanobot is the line that was read.

    `zone` is where nanobot runs, by default the machine's own; `ascii` escapes every other
    character, so that a torn write cannot cut one in two.
    """
    if isinstance(message, UnknownEntry):
        return _unknown_line(message)
    if type(message.content) is str and not (
        message.tool_calls or message.extra or message.is_error
    ):
        return _text_line(message, zone, encode_basestring_ascii if ascii else encode_basestring)
    found: dict[str, Any] = {"role": str(message.role), "content": openai_content(message)}
    found["timestamp"] = _time(message, zone)
    if message.tool_calls:
        found["tool_calls"] = [_call_dict(call) for call in message.tool_calls]
    for name in ("tool_call_id", "name"):
        if getattr(message, name) is not None:
            found[name] = getattr(message, name)
    own = {n: value for n in _OWN if (value := getattr(message, n)) not in (None, False)}
    extra = {name: value for name, value in message.extra.items() if name != "timestamp"}
    if not extra:
        return _line(found | own, ascii)
    names = [n for n in _RESERVED if n not in _OWN or n in own or _is_ours(n, extra.get(n))]
    return _line(foreign.spread(found, extra, names) | own, ascii)


def encode_metadata(metadata: Metadata, *, ascii: bool = False) -> bytes:
    """The line of the metadata."""
    found = {name: getattr(metadata, name) for name in _METADATA[1:]}
    # A value of the wrong kind was kept in extra when it was read, and goes back to its place.
    wrong = {n: v for n, v in metadata.extra.items() if n in found and not found[n]}
    found = {name: wrong.get(name, value) for name, value in found.items()}
    if found["key"] is None:
        del found["key"]
    rest = {name: value for name, value in metadata.extra.items() if name not in wrong}
    return _line({"_type": "metadata"} | foreign.spread(found, rest, _METADATA), ascii)


def decode(
    line: bytes | str, *, zone: tzinfo | None = None, limits: Limits = LIMITS
) -> Metadata | tuple[Entry, ...]:
    """What a line holds: metadata, or a message (and a mark when characters had to be mended).

    A record of another `_type`, or a message whose role is unknown, is an UnknownEntry: kept as it
    is, and never shown to a model.
    """
    value, mended = strict.parse(line, limits, "a line")
    raw = foreign.object_of(value, "a line")
    kind = raw.get("_type")
    if kind == "metadata":
        return _metadata(raw).replace(mended=mended)
    if "_type" in raw or raw.get("role") not in tuple(Role):
        return foreign.with_marks(_unknown(raw, line, mended), mended)
    return foreign.with_marks(_message(raw, zone), mended)


def decode_file(data: bytes, *, zone: tzinfo | None = None, limits: Limits = LIMITS) -> File:
    """Everything in a file. Blank lines are passed over; of several metadata lines the last counts.

    InvalidInput names the line that cannot be read.
    """
    metadata = Metadata()
    entries: list[Entry] = []
    count = 0
    # Split as bytes: str.splitlines() would also split at U+2028, which JSON may hold.
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            found = decode(line, zone=zone, limits=limits)
        except InvalidInput as error:
            raise InvalidInput(f"line {number}:", str(error)) from error
        except TooLarge as error:
            raise TooLarge(f"line {number}: {error.what}", error.size, error.size_max) from error
        if isinstance(found, Metadata):
            metadata = found
            entries += foreign.mended_marks(None, found.mended)
        else:
            entries += found
            count += isinstance(found[0], Message)
    return File(metadata.within(count), tuple(entries))


def _unknown(raw: FrozenDict, line: bytes | str, mended: int) -> UnknownEntry:
    """A line that is no message here, as a record of a kind of its own, which any store keeps."""
    kind = f"{_KIND}{raw.get('_type') or raw.get('role')}"
    body = dumps(raw, spaced=True).encode()
    if isinstance(line, bytes) and not mended:
        body = line.removeprefix(BOM_UTF8).strip()  # the very bytes, where they can be read again
    return UnknownEntry(kind=kind, raw=_unknown_head(kind) + body + b"}")


def _unknown_line(entry: UnknownEntry) -> bytes:
    head = _unknown_head(entry.kind)
    if not entry.kind.startswith(_KIND) or not entry.raw.startswith(head):
        raise InvalidInput("an entry", f"of the kind {entry.kind!r} is not a line of nanobot")
    return entry.raw[len(head) : -1] + b"\n"


def _unknown_head(kind: str) -> bytes:
    return b'{"v":%d,%b:' % (RECORD_VERSION, dumps(kind).encode())


def _message(raw: FrozenDict, zone: tzinfo | None) -> Message:
    known = [n for n in _RESERVED if n not in _OWN or _is_ours(n, raw.get(n))]
    extra = foreign.gather(raw, known)
    fields: dict[str, Any] = {"timestamp": ids.now()}
    if raw.get("timestamp") is not None:
        try:
            fields["timestamp"] = foreign.time_of(raw["timestamp"], zone)
        except InvalidInput:  # not a time: the line keeps it, and the message was read now
            pass
        extra["timestamp"] = raw["timestamp"]
    return foreign.message_of(raw, known, extra=extra, **fields)


def _is_ours(name: str, value: Any) -> bool:
    if name == "is_error":
        return type(value) is bool
    return type(value) is str and (name != "id" or value != "")


def _metadata(raw: FrozenDict) -> Metadata:
    kinds: dict[str, type] = {"key": str, "created_at": str, "updated_at": str}
    kinds["metadata"] = FrozenDict
    own: dict[str, Any] = {
        name: raw[name] for name, kind in kinds.items() if type(raw.get(name)) is kind
    }
    wrong = {n: raw[n] for n in kinds if raw.get(n) is not None and n not in own}
    count = raw.get("last_consolidated")
    own["last_consolidated"] = count if type(count) is int and count > 0 else 0
    return Metadata(**own, extra=foreign.gather(raw, _METADATA) | wrong)  # type: ignore[arg-type]


def _call_dict(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    found: dict[str, Any] = {"id": call.id, "type": "function", "function": function}
    for name in ("output", "signature"):
        if getattr(call, name) is not None:
            found[name] = getattr(call, name)
    if call.is_error:
        found["is_error"] = True
    return foreign.spread(found, call.extra, foreign.CALL_NAMES)


def _time(message: Message, zone: tzinfo | None) -> Any:
    kept = message.extra.get("timestamp")
    if kept is None:
        return _local(message.timestamp, zone)
    if not foreign.is_time(kept):
        return kept  # what stood in the line was not a time, and stays
    text = foreign.time_text(message, zone)
    return _local(message.timestamp, zone) if text is None else text


def _local(time: datetime, zone: tzinfo | None) -> str:
    """The time there, without its zone; with it, where only that says which time is meant."""
    try:
        if zone is None:
            seconds = time.timestamp()
            if abs(seconds) < _EXACT_S:
                there = datetime.fromtimestamp(seconds)  # noqa: DTZ006
            else:
                past = time - _EPOCH
                there = datetime.fromtimestamp(past.days * _DAY_S + past.seconds)  # noqa: DTZ006
                there = there.replace(microsecond=past.microseconds)
            is_meant = not there.fold
        else:
            there = time.astimezone(zone).replace(tzinfo=None)
            is_meant = there.replace(tzinfo=zone) == time
        return there.isoformat() if is_meant else time.isoformat()
    except (
        OverflowError,
        ValueError,
        OSError,
    ):
        return time.isoformat()  # at the ends of the calendar there is no local time


def _text_line(message: Message, zone: tzinfo | None, quoted: Callable[[Any], str]) -> bytes:
    """The line of a message that is nothing but text, as most are: put together here, because an
    encoder for anything costs three times as much."""
    role, said = str(message.role), quoted(message.content)
    time = _local(message.timestamp, zone)
    pieces = [f'{{"role": "{role}", "content": {said}, "timestamp": "{time}"']
    for name, value in zip(_TEXTS, _texts_of(message), strict=True):
        if value is not None:
            pieces.append(f', "{name}": {quoted(value)}')
    pieces.append("}\n")
    return "".join(pieces).encode()


def _line(found: dict[str, Any], ascii: bool) -> bytes:
    return dumps(found, spaced=True, ascii=ascii).encode() + b"\n"
