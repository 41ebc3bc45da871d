"""A nanobot session on its way into our log and out of it.

Nanobot has a conversation as a list in memory, and saves all of it. What has changed since that
list was last here is told by what was seen then:

| the list, against what was seen        | what is done                                          |
|----------------------------------------|-------------------------------------------------------|
| has more at its end                    | that is appended, behind whatever is on its branch    |
| is empty now, and nobody wrote since   | the conversation is cleared, as nanobot was asked to  |
| says something else                    | a branch begins where the two part, and is in use;    |
|                                        | the old one keeps everything                          |

A list that was never seen is compared with what is stored.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from holdfast import branching
from holdfast.codec import nanobot
from holdfast.entries import Entry, Mark, UnknownEntry
from holdfast.errors import DuplicateSession, InvalidInput, SessionExpired, SessionNotFound
from holdfast.frozen import FrozenDict, freeze
from holdfast.messages import Message
from holdfast.steps.orders import Redact, redacted
from holdfast.stores.base import Tenant
from holdfast.stores.values import CURSOR, Record, Stored

PRIVATE = "provider_state"  # what a Mark is called that keeps it
BRANCH = "nanobot"


class Seen(NamedTuple):
    """A session as a list in memory last had it.

    id, branch, head   the session, the branch that the list is of, and its last entry
    lines, seqs        each message as JSON, and the entry that it is
    metadata, cursor, private
                       what else nanobot keeps
    """

    id: str = ""
    branch: str = ""
    head: int = 0
    lines: tuple[str, ...] = ()
    seqs: tuple[int, ...] = ()
    metadata: FrozenDict = FrozenDict()
    cursor: int = 0
    private: FrozenDict = FrozenDict()


class Loaded(NamedTuple):
    """A session as it is stored, for nanobot."""

    record: Record
    messages: list[dict[str, Any]]
    seen: Seen


class Wanted(NamedTuple):
    """A session as nanobot has it now; `redact` makes of a message the one that is stored."""

    key: str
    messages: Sequence[Mapping[str, Any]]
    metadata: Mapping[str, Any]
    cursor: int
    private: Mapping[str, Any]
    redact: Redact | None = None

    def entries(self, lines: Sequence[str]) -> list[Entry]:
        """What these lines say, as it may be stored."""
        return [
            redacted(each, self.redact) if isinstance(each, Message) else each
            for each in _entries(lines)
        ]


async def load(tenant: Tenant, key: str) -> Loaded | None:
    """What is stored; None if there is no such session, or if it has expired."""
    try:
        record = await tenant.load(key)
    except (SessionNotFound, SessionExpired):
        return None
    stored = await tenant.read(record.id, record.branch)
    found = [(each.seq, _plain(each.entry)) for each in stored if _has_line(each.entry)]
    messages = [message for _, message in found]
    cursor = record.counters.get(CURSOR)
    seen = Seen(
        record.id,
        record.branch,
        record.branch_named(record.branch).head,
        _lines(messages),
        tuple(seq for seq, _ in found),
        record.metadata,
        cursor if type(cursor) is int and 0 <= cursor <= len(messages) else 0,
        _private(stored),
    )
    return Loaded(record, messages, seen)


async def save(
    tenant: Tenant, wanted: Wanted, seen: Seen | None, remember: Callable[[Seen], object]
) -> None:
    """Store what has changed since `seen`; `Seen()` is a session that was not there.

    `remember` is told what is stored as soon as it is: what fails afterwards is not said twice.
    """
    metadata, lines = freeze(wanted.metadata, "metadata"), _lines(wanted.messages)
    if seen is None:
        seen = await _opened(tenant, wanted.key, is_known=False)
        seen = seen._replace(lines=_as_said(seen.lines, lines))
    elif not seen.id:
        seen = await _opened(tenant, wanted.key, is_known=True)
    same = _same(seen.lines, lines)
    if same == len(seen.lines):
        seen = await _append(tenant, wanted, lines, seen)
    elif lines or not await _cleared(tenant, wanted.key, seen):
        seen = await _branch_off(tenant, wanted, lines, same, seen)
    else:
        record = await tenant.clear(seen.id)
        head = record.branch_named(record.branch).head
        seen = Seen(seen.id, record.branch, head, metadata=seen.metadata)
    remember(seen)
    remember(await _describe(tenant, wanted, metadata, seen))


def _lines(messages: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Each message as JSON in one line; half a character is escaped, and mended when it is read."""
    lines = []
    for place, message in enumerate(messages):
        try:
            lines.append(json.dumps(message))
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"messages[{place}]", f"is not JSON: {error}") from None
    return tuple(lines)


def _as_said(stored: Sequence[str], said: Sequence[str]) -> tuple[str, ...]:
    """What is stored, as a list says it that was never told which ids its messages have."""
    same = [
        theirs if ours == theirs or _without_id(ours) == json.loads(theirs) else ours
        for ours, theirs in zip(stored, said, strict=False)
    ]
    return (*same, *stored[len(same) :])


def _without_id(line: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(line)
    found.pop("id", None)
    return found


def _same(old: Sequence[str], new: Sequence[str]) -> int:
    """How many both begin with."""
    same = 0
    for ours, theirs in zip(old, new, strict=False):
        if ours != theirs:
            break
        same += 1
    return same


def _has_line(entry: Entry | None) -> bool:
    if isinstance(entry, UnknownEntry):
        return entry.kind.startswith("nanobot:")
    return isinstance(entry, Message)


def _plain(entry: Entry | None) -> dict[str, Any]:
    assert isinstance(entry, (Message, UnknownEntry))
    found: dict[str, Any] = json.loads(nanobot.encode(entry))
    return found


def _private(stored: Sequence[Stored]) -> FrozenDict:
    """What nanobot last kept of its provider's side of the conversation."""
    for each in reversed(stored):
        if isinstance(each.entry, Mark) and each.entry.what == PRIVATE:
            return each.entry.data
    return FrozenDict()


def _entries(lines: Sequence[str]) -> list[Entry]:
    """What these lines say; only a message or an unknown record can be among them."""
    found: list[Entry] = []
    for line in lines:
        entries = nanobot.decode(line)
        if isinstance(entries, nanobot.Metadata):
            raise InvalidInput("messages", "hold no metadata: that has a place of its own")
        found += entries
    return found


async def _opened(tenant: Tenant, key: str, *, is_known: bool) -> Seen:
    """The session under this key, made now if there is none.

    A list that `is_known` to have begun where there was no session goes behind what others have
    said since; any other is what the conversation is to be.
    """
    while (found := await load(tenant, key)) is None:
        try:
            await tenant.create(Record(key=key), replace_expired=True)
        except DuplicateSession:
            pass  # another process was first
    return found.seen._replace(lines=(), seqs=()) if is_known else found.seen


async def _cleared(tenant: Tenant, key: str, seen: Seen) -> bool:
    """Whether nobody has said anything that an emptied list has not had."""
    record = await tenant.load(key)
    is_same = (record.id, record.branch) == (seen.id, seen.branch)
    return is_same and record.branch_named(record.branch).head == seen.head


async def _append(tenant: Tenant, wanted: Wanted, lines: tuple[str, ...], seen: Seen) -> Seen:
    """Add what is new, all or none."""
    entries = wanted.entries(lines[len(seen.lines) :]) + _news(wanted, seen)
    if not entries:
        return seen
    done = await tenant.append(seen.id, entries, branch=seen.branch)
    return _with(seen, lines, seen.seqs, entries, done.first)._replace(head=done.last)


async def _branch_off(
    tenant: Tenant, wanted: Wanted, lines: tuple[str, ...], same: int, seen: Seen
) -> Seen:
    """Go on from where the two part."""
    record = await tenant.load(wanted.key)
    if record.id != seen.id:
        raise SessionNotFound(wanted.key)
    at = seen.seqs[same - 1] if same else 0
    entries = wanted.entries(lines[same:]) + _news(wanted, seen._replace(private=FrozenDict()))
    await branching.go_on(tenant, record, BRANCH, seen.branch, at, entries)
    found = await load(tenant, wanted.key)
    assert found is not None
    new = found.seen.seqs[len(found.seen.seqs) - (len(lines) - same) :]
    return found.seen._replace(lines=lines, seqs=(*seen.seqs[:same], *new))


def _news(wanted: Wanted, seen: Seen) -> list[Entry]:
    """A mark with what is private, if that is new."""
    private = freeze(wanted.private, PRIVATE)
    return [] if private == seen.private else [Mark(what=PRIVATE, data=private)]


def _with(
    seen: Seen, lines: tuple[str, ...], seqs: tuple[int, ...], entries: list[Entry], first: int
) -> Seen:
    new = tuple(first + at for at, entry in enumerate(entries) if _has_line(entry))
    private = [e.data for e in entries if isinstance(e, Mark) and e.what == PRIVATE]
    return seen._replace(
        lines=lines, seqs=(*seqs, *new), private=private[-1] if private else seen.private
    )


async def _describe(tenant: Tenant, wanted: Wanted, metadata: FrozenDict, seen: Seen) -> Seen:
    """Store what has changed of what nanobot says of the session."""
    changed = {n: v for n, v in metadata.items() if n not in seen.metadata or seen.metadata[n] != v}
    changed |= {name: None for name in seen.metadata if name not in metadata}
    cursor = wanted.cursor if 0 <= wanted.cursor <= len(wanted.messages) else 0
    changes: dict[str, Any] = {"metadata": changed} if changed else {}
    if cursor != seen.cursor:
        changes["counters"] = {CURSOR: cursor or None}
    if changes:
        await tenant.update(seen.id, changes)
    return seen._replace(metadata=metadata, cursor=cursor)
