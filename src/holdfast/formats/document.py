"""Everything about conversations, as one JSON document.

    {"format":"holdfast","version":1,"conversations":[
    {"session":{"key":"cli:direct","id":"...","branch":"main","branches":[...],...},
    "entries":[
    {"seq":1,"branch":"main","record":{"v":1,"message":{"role":"user","content":"...",...}}},
    {"seq":2,"branch":"main","kind":"message","erased":true},
    {"seq":3,"branch":"main","raw":"{\\"v\\":1,\\"poem\\":{}}"}
    ],"names":[...]}
    ]}

| name      | what it holds                                                                       |
|-----------|-------------------------------------------------------------------------------------|
| session   | key, id, agent, settings, metadata, tools, counters, ttl_us, parent, created_at,    |
|           | updated_at, branch, seq, branches (name, parent, fork, head, count), draft          |
| entries   | of all branches in the order of their seqs: a record as in `codec.record`, the very |
|           | text of one of an unknown kind, or the place of one that was erased                 |
| names     | the appends made with `once`: name, first, last, branch, messages, salt, digest     |

What is empty is absent. Each entry is one line, so two exports can be compared by any program. What
could steer a terminal stands there escaped.
"""

import re
from base64 import b64encode
from binascii import Error as NotBase64
from binascii import a2b_base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from holdfast import strict
from holdfast.archive import Archive
from holdfast.codec import foreign, read_foreign_record, record
from holdfast.codec.record import entry_of
from holdfast.codec.writing import dumps
from holdfast.entries import Entry, UnknownEntry, kind_of
from holdfast.errors import FormatTooNew, InvalidInput
from holdfast.formats.base import Format, Reading
from holdfast.frozen import DEPTH_MAX, EMPTY, FrozenDict, thaw
from holdfast.settings import Settings
from holdfast.stores.values import Appended, Branch, Draft, Named, Record, Stored
from holdfast.strict import RECORD_LEVELS, Limits

VERSION = 1
LIMITS = Limits(bytes_max=1 << 30, depth_max=DEPTH_MAX + RECORD_LEVELS + 4, items_max=20_000_000)
_WHAT = "the file"
_MICROSECOND = timedelta(microseconds=1)
_START = re.compile(rb'\s*(?:\xef\xbb\xbf)?\{\s*"format"\s*:\s*"holdfast"')
# Deleting, the second set of controls, and what turns the direction of writing or hides.
_STEERING = re.compile("[\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


def write(archives: Iterable[Archive]) -> Iterator[bytes]:
    """The document, in pieces."""
    yield b'{"format":"holdfast","version":%d,"conversations":[' % VERSION
    separator = b"\n"
    for archive in archives:
        yield separator + b'{"session":%b,\n"entries":[' % _json(_session(archive.record))
        comma = b"\n"
        for stored in archive.entries:
            yield comma + _entry_line(stored)
            comma = b",\n"
        yield b'\n],"names":%b}' % _json([_name(each) for each in archive.named])
        separator = b",\n"
    yield b"\n]}\n"


def read(data: bytes, name: str = "", *, limits: Limits = LIMITS) -> Reading:  # noqa: ARG001
    """The conversations in a document; all of them, or an error."""
    value, mended = strict.parse(data, limits, _WHAT)
    raw = foreign.object_of(value, _WHAT)
    version = raw.get("version")
    if raw.get("format") != "holdfast" or type(version) is not int:
        raise InvalidInput(_WHAT, "is not a JSON export of holdfast: name its format")
    if version > VERSION:
        raise FormatTooNew(_WHAT, version, VERSION)
    notes = [f"{mended:,} broken characters became U+FFFD"] if mended else []
    notes += _unknown("the file", raw, ("format", "version", "conversations"))
    archives = []
    for number, each in enumerate(_list(raw, "conversations"), start=1):
        found = foreign.object_of(each, f"conversation {number}")
        archives.append(_archive(found))
        session = foreign.object_of(found["session"], "a session")
        notes += _unknown(f"session {archives[-1].record.key!r}", session, _SESSION)
        notes += _unknown(f"conversation {number}", found, ("session", "entries", "names"))
    return Reading(tuple(archives), tuple(notes))


FORMAT = Format(
    name="json",
    title="JSON",
    suffix=".json",
    write=write,
    losses=lambda _: (),
    read=read,
    recognises=lambda data: _START.match(data[:1_000]) is not None,
    holds_many=True,
)

# ---- writing ----


def _json(value: Any) -> bytes:
    return _harmless(dumps(value)).encode()


def _harmless(json: str) -> str:
    """JSON with what could steer a terminal escaped: it can only stand inside of a string."""
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", json)


def _session(it: Record) -> dict[str, Any]:
    found = {
        "key": it.key,
        "id": it.id,
        "agent": it.agent,
        "settings": it.settings.values,
        "metadata": thaw(it.metadata),
        "tools": thaw(list(it.tools)),
        "counters": thaw(it.counters),
        "ttl_us": None if it.ttl is None else it.ttl // _MICROSECOND,
        "created_at": _time(it.created_at),
        "updated_at": _time(it.updated_at),
        "branch": it.branch,
        "seq": it.seq,
        "branches": [_branch(each) for each in it.branches],
        "draft": None if it.draft is None else _draft(it.draft),
    }
    found = {name: value for name, value in found.items() if value not in (None, "", {}, [])}
    return found if it.parent is None else found | {"parent": it.parent}


_SESSION = (
    *("key", "id", "agent", "settings", "metadata", "tools", "counters", "ttl_us", "parent"),
    *("created_at", "updated_at", "branch", "seq", "branches", "draft"),
)


def _branch(it: Branch) -> dict[str, Any]:
    found = {"name": it.name, "parent": it.parent, "fork": it.fork}
    return {n: v for n, v in found.items() if v is not None} | {"head": it.head, "count": it.count}


def _draft(it: Draft) -> dict[str, Any]:
    return {"token": it.token, "owner": it.owner, "input": it.input, "chunks": list(it.chunks)}


def _name(it: Named) -> dict[str, Any]:
    found = {"name": it.name, **it.result._asdict()}
    if it.salt is not None and it.digest is not None:
        found |= {"salt": b64encode(it.salt).decode(), "digest": b64encode(it.digest).decode()}
    return found


def _entry_line(it: Stored) -> bytes:
    if it.entry is None:
        erased = {"seq": it.seq, "branch": it.branch, "kind": it.kind, "erased": True}
        return _json(erased)
    if isinstance(it.entry, UnknownEntry):  # its very bytes, as a text
        return _json({"seq": it.seq, "branch": it.branch, "raw": it.entry.raw.decode()})
    said = _harmless(record(it.entry).decode()).encode()
    return b'{"seq":%d,"branch":%b,"record":%b}' % (it.seq, _json(it.branch), said)


def _time(time: datetime) -> str:
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


# ---- reading ----


class _Object(NamedTuple):
    """An object of the document, and what it is called where it is wrong."""

    raw: Mapping[str, Any]
    what: str

    def get(self, name: str, kind: type, usual: Any = None) -> Any:
        value = self.raw.get(name)
        if value is None and usual is not None:
            return usual
        if type(value) is not kind:
            raise InvalidInput(self.what, f"has no right {name!r}")
        return value

    def text_or_none(self, name: str) -> Any:
        return None if self.raw.get(name) is None else self.get(name, str)


def _archive(raw: Mapping[str, Any]) -> Archive:
    said = _Object(foreign.object_of(raw.get("session"), "a session"), "a session")
    branches = [_branch_of(each) for each in _list(said.raw, "branches")]
    entries = _entries(_list(raw, "entries"), branches)
    return Archive(
        _record_of(said, branches), entries, tuple(_name_of(each) for each in _list(raw, "names"))
    )


def _record_of(said: _Object, branches: Sequence[Branch]) -> Record:
    ttl = None if said.raw.get("ttl_us") is None else said.get("ttl_us", int) * _MICROSECOND
    draft = None if said.raw.get("draft") is None else _draft_of(said.raw["draft"])
    return Record(
        key=said.get("key", str),
        id=said.get("id", str),
        agent=said.get("agent", str, ""),
        settings=Settings.of(said.get("settings", FrozenDict, EMPTY)),
        metadata=said.get("metadata", FrozenDict, EMPTY),
        tools=said.get("tools", tuple, ()),
        counters=said.get("counters", FrozenDict, EMPTY),
        ttl=ttl,
        parent=said.text_or_none("parent"),
        created_at=foreign.iso_time(said.get("created_at", str)),
        updated_at=foreign.iso_time(said.get("updated_at", str)),
        branch=said.get("branch", str),
        branches=tuple(branches),
        seq=said.get("seq", int, 0),
        draft=draft,
    )


def _branch_of(raw: Any) -> Branch:
    said = _Object(foreign.object_of(raw, "a branch"), "a branch")
    numbers = {name: said.get(name, int, 0) for name in ("fork", "head", "count")}
    return Branch(name=said.get("name", str), parent=said.text_or_none("parent"), **numbers)


def _draft_of(raw: Any) -> Draft:
    said = _Object(foreign.object_of(raw, "a draft"), "a draft")
    chunks = said.get("chunks", tuple, ())
    if not all(type(each) is str for each in chunks):
        raise InvalidInput("a draft", "has chunks that are no text")
    return Draft(
        token=said.get("token", int),
        owner=said.get("owner", str, ""),
        input=said.get("input", FrozenDict, EMPTY),
        chunks=chunks,
    )


def _entries(raws: Iterable[Any], branches: Sequence[Branch]) -> tuple[Stored, ...]:
    """The entries with their positions, which follow from the branches that they stand on."""
    found: list[Stored] = []
    counts: dict[str, int] = {}  # the messages on a branch so far
    at: dict[int, int] = {0: 0}  # and on its branch behind an entry
    known = {branch.name: branch for branch in branches}
    for raw in raws:
        said = _Object(foreign.object_of(raw, "an entry"), "an entry")
        seq, name = said.get("seq", int), said.get("branch", str)
        what = f"entry {seq}"
        entry = None
        if said.raw.get("erased") is not True:
            entry = _entry(said, what)
        kind = said.get("kind", str) if entry is None else kind_of(entry)
        if name not in counts:
            if name not in known:
                raise InvalidInput(what, f"is on a branch {name!r} that is not there")
            counts[name] = at.get(known[name].fork, 0)
        counts[name] += kind == "message"
        at[seq] = counts[name]
        found.append(Stored(seq, max(counts[name] - 1, 0), name, kind, entry))
    return tuple(found)


def _entry(said: _Object, what: str) -> Entry:
    if "raw" not in said.raw:
        return entry_of(said.get("record", FrozenDict), what)
    found = read_foreign_record(said.get("raw", str).encode(), strict.OWN_LIMITS)
    return found[0]


def _name_of(raw: Any) -> Named:
    said = _Object(foreign.object_of(raw, "a name"), "a name")
    first, last, messages = (said.get(name, int) for name in ("first", "last", "messages"))
    result = Appended(first, last, said.get("branch", str), messages)
    secrets = [_bytes(said.text_or_none(name)) for name in ("salt", "digest")]
    return Named(said.get("name", str), result, *secrets)


def _bytes(text: str | None) -> bytes | None:
    try:
        return None if text is None else a2b_base64(text, strict_mode=True)
    except (NotBase64, ValueError):
        raise InvalidInput("a name", "has a salt or digest that is not base64") from None


def _list(raw: Mapping[str, Any], name: str) -> tuple[Any, ...]:
    value = raw.get(name, ())
    if type(value) is not tuple:
        raise InvalidInput(name, "is no list")
    return value


def _unknown(what: str, raw: Mapping[str, Any], known: Sequence[str]) -> list[str]:
    return [f"{what} has {name!r}, which is not known here" for name in raw if name not in known]
