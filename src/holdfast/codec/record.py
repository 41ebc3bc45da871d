"""Records: the rows that our stores keep. Everything about an entry, versioned.

    {"v":1,"message":{"role":"user","content":"I am Ada.","id":"...","timestamp":"..."}}

| name       | in       | value                                                              |
|------------|----------|--------------------------------------------------------------------|
| v          | all      | the version of this table: 1                                       |
| message, fold, call, mark | the one other name: the kind of entry; a kind that is not in this   |
|            |          | table is kept byte for byte                                        |
| id         | all      | text                                                               |
| timestamp  | all      | RFC 3339, with offset                                              |
| extra      | all      | object, when not empty                                             |
| role, content, tool_calls, tool_call_id, name, author, is_error, model, prefix, stop, synthetic |
|            | message  | as in Message; absent when empty                                   |
| first, last, replacement, is_open, by, why, tokens_before, tokens_after                          |
|            | fold     | as in Fold; the replacement is what stands under `message`         |
| model, about, usage, stop, latency_ms, cost, window, digest, request_id                          |
|            | call     | as in Call; the cost is decimal text                               |
| what, about, data                                                                                |
|            | mark     | as in Mark                                                         |

A part is an object with its `type`: text, image, audio, file, thinking, call, opaque. A tool call
has id, name, arguments and, when set, output, is_error, signature, extra. Bytes are base64.

Our own rows are read by msgspec alone; a row that it does not take as it is (a field or part of a
newer version, a nested tool call) is read again by the strict path, and nothing in it is lost.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

import msgspec

from holdfast import strict
from holdfast.codec import foreign
from holdfast.codec.writing import dumps
from holdfast.entries import NO_USAGE, RECORD_VERSION, Call, Entry, Fold, Mark, UnknownEntry
from holdfast.errors import Corrupt, FormatTooNew, InvalidInput, TooLarge
from holdfast.frozen import EMPTY, FrozenDict, decode_hook
from holdfast.identity import NO_ID, NO_TIME, has_identity
from holdfast.messages import Message
from holdfast.parts import Unknown
from holdfast.strict import LIMITS, Limits
from holdfast.usage import Usage

VERSION = RECORD_VERSION
_Kind = TypeVar("_Kind", Fold, Call, Mark)


class _Record(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """A row: the version, and one entry under the name of its kind."""

    v: Literal[1]
    message: Message | None = None
    fold: Fold | None = None
    call: Call | None = None
    mark: Mark | None = None


def _encode_hook(value: Any) -> Any:
    if type(value) is Unknown:
        return value.raw
    raise TypeError(f"a {type(value).__name__} cannot be stored")


_encode = msgspec.json.Encoder(enc_hook=_encode_hook).encode
_decode = msgspec.json.Decoder(_Record, dec_hook=decode_hook).decode
_decode_all = msgspec.json.Decoder(list[_Record], dec_hook=decode_hook).decode
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def record(entry: Entry) -> bytes:
    """The record of an entry; `read_record` gives back an equal entry."""
    if type(entry) is Message:  # first, because most entries are
        return _encode(_Record(1, entry))
    if type(entry) is UnknownEntry:
        return entry.raw
    if type(entry) is Fold:
        return _encode(_Record(1, fold=entry))
    if type(entry) is Call:
        if entry.usage == NO_USAGE:  # one that was read from a row may have another
            entry = msgspec.structs.replace(entry, usage=NO_USAGE)
        return _encode(_Record(1, call=entry))
    assert type(entry) is Mark
    return _encode(_Record(1, mark=entry))


def read_record(data: bytes, where: str = "a record") -> Entry:
    """The entry in a record of ours. `where` names it in Corrupt, should it be damaged.

    A kind that is unknown here comes back as an UnknownEntry, a newer version as FormatTooNew.
    """
    try:
        entry = _entry(_decode(data))
    except _UNREADABLE:
        entry = None  # not as this version writes it: read it slowly, to keep it or to say why not
    if entry is not None:
        return entry
    try:
        entry, mended = _read_slowly(data, strict.OWN_LIMITS, where)
    except (InvalidInput, TooLarge) as error:
        raise Corrupt(where, str(error)) from error
    if mended:
        raise Corrupt(where, "it holds broken characters, and no record was written with any")
    return entry


def read_records(records: Sequence[bytes]) -> list[Entry]:
    """The entries in many records of ours; as `read_record`, and quicker than one by one."""
    try:
        found = _decode_all(b"[%b]" % b",".join(records))
    except _UNREADABLE:
        found = []
    entries = [_entry(each) for each in found]
    if len(entries) != len(records) or not all(entries):
        return [read_record(each) for each in records]
    return entries  # type: ignore[return-value]


def _entry(found: _Record) -> Entry | None:
    """The one entry in a record that was decoded; None if it is not as this version writes it."""
    message, call, fold, mark = found.message, found.call, found.fold, found.mark
    if message is not None:
        is_alone = call is None and fold is None and mark is None
        # As has_identity; most entries are messages, and a call costs as much as the rest.
        is_whole = message.id and message.id is not NO_ID and message.timestamp is not NO_TIME
        return message if is_alone and is_whole else None
    entry = call or fold or mark
    is_alone = (call, fold, mark).count(None) == 2
    return entry if is_alone and entry is not None and has_identity(entry) else None


def read_foreign_record(data: bytes | str, limits: Limits = LIMITS) -> tuple[Entry, ...]:
    """The entry in a record from elsewhere, read strictly; and a mark if it was mended."""
    deeper = limits.replace(depth_max=limits.depth_max + strict.RECORD_LEVELS)
    return foreign.with_marks(*_read_slowly(data, deeper, "a record"))


def entry_of(raw: FrozenDict, where: str = "a record") -> Entry:
    """The entry in a record from elsewhere that was parsed already, by `holdfast.strict`."""
    return _entry_of(raw, None, where)


def _read_slowly(data: bytes | str, limits: Limits, where: str) -> tuple[Entry, int]:
    value, mended = strict.parse(data, limits, where)
    # The very bytes, unless they had to be mended: what is kept can be read again.
    kept = data if isinstance(data, bytes) and not mended else None
    return _entry_of(foreign.object_of(value, where), kept, where), mended


def _entry_of(raw: FrozenDict, kept: bytes | None, where: str) -> Entry:
    version = raw.get("v")
    if type(version) is not int or version < 1:
        raise InvalidInput(where, "has no version: it is not a record")
    if version > VERSION:
        raise FormatTooNew(where, version, VERSION)
    if len(raw) != 2:
        raise InvalidInput(where, "holds one entry beside its version")
    kind = next(name for name in raw if name != "v")
    if kind not in _READERS:
        return UnknownEntry(kind=kind, raw=dumps(raw).encode() if kept is None else kept)
    return _READERS[kind](foreign.object_of(raw[kind], kind))


def _message(raw: FrozenDict) -> Message:
    _check_identity(raw)
    fields = foreign.time_fields(raw["timestamp"])
    fields["extra"] = {**fields.get("extra", {}), **_extra(raw, Message)}
    return foreign.message_of(
        raw,
        Message.__struct_fields__,
        part=foreign.part_of,
        call=foreign.own_call_of,
        **fields,
    )


def _fold(raw: FrozenDict) -> Fold:
    fields = _fields(raw, Fold)
    if (replacement := fields.pop("replacement", None)) is not None:
        fields["replacement"] = _message(foreign.object_of(replacement, "replacement"))
    return _convert(fields, Fold)


def _call(raw: FrozenDict) -> Call:
    fields = _fields(raw, Call)
    usage = foreign.object_of(fields.pop("usage", EMPTY), "usage")
    known = {name: usage[name] for name in usage if name in Usage.__struct_fields__}
    fields["usage"] = Usage(**known)
    if unknown := {name: usage[name] for name in usage if name not in known}:
        fields["extra"] = foreign.merged({"usage": unknown}, fields["extra"])
    return _convert(fields, Call)


def _mark(raw: FrozenDict) -> Mark:
    return _convert(_fields(raw, Mark), Mark)


_READERS: dict[str, Callable[[FrozenDict], Entry]] = {
    "message": _message,
    "fold": _fold,
    "call": _call,
    "mark": _mark,
}


def _check_identity(raw: FrozenDict) -> None:
    for name in ("id", "timestamp"):
        if name not in raw:
            raise InvalidInput("a record", f"has no {name}")
    if foreign.iso_time(raw["timestamp"]).utcoffset() is None:
        raise InvalidInput("timestamp", "has no zone")


def _fields(raw: FrozenDict, kind: type[Fold | Call | Mark]) -> dict[str, Any]:
    _check_identity(raw)
    fields = {name: value for name, value in raw.items() if name in kind.__struct_fields__}
    return fields | {"extra": _extra(raw, kind)}


def _extra(raw: FrozenDict, kind: type[Message | Fold | Call | Mark]) -> FrozenDict:
    """The entry's own `extra`, together with what a newer version may have put beside it."""
    unknown = {name: raw[name] for name in raw if name not in kind.__struct_fields__}
    return foreign.merged(unknown, foreign.object_of(raw.get("extra", EMPTY), "extra"))


def _convert(fields: dict[str, Any], kind: type[_Kind]) -> _Kind:
    ready = {name: value for name, value in fields.items() if isinstance(value, Message | Usage)}
    rest = {name: value for name, value in fields.items() if name not in ready}
    try:
        entry = msgspec.convert(rest, kind, dec_hook=decode_hook)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"a {kind.__name__.lower()}", f"cannot be read: {error}") from None
    return entry.replace(**ready)  # replace() runs the checks of a new value
