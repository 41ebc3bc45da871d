"""Reading: from rows back to records and entries, checked on the way.

Every row that is passed is held against its check, and its place against that of the row before: a
flipped bit, a missing or moved row is Corrupt, with its place. Nothing that is damaged comes back
as if it were not. `problems` also goes along the chain.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple
from zlib import crc32

import msgspec

from holdfast.codec import read_record, read_records
from holdfast.entries import Entry, Fold, kind_of
from holdfast.errors import (
    Corrupt,
    FormatTooNew,
    HoldfastError,
    InvalidInput,
    SessionNotFound,
    StoreError,
)
from holdfast.frozen import EMPTY, FrozenDict, decode_hook, from_decoded
from holdfast.messages import Message
from holdfast.stores import blobs, chain
from holdfast.stores.changes import is_same
from holdfast.stores.document import (
    Document,
    fields_of,
    read_all_listed,
    read_document,
    read_listed,
    time_at,
)
from holdfast.stores.head import Head, Line, Row, Stretch, branches_of, path
from holdfast.stores.shelf import Fields, Listed, Shelf
from holdfast.stores.values import Chunk, Draft, Found, Page, Problem, Record, Stored, Summary

LIST_STEP = 256
_SIZE_STEP = 256
_read_draft = msgspec.json.Decoder(FrozenDict, dec_hook=decode_hook).decode


# Records


def head_of(shelf: Shelf, tenant: str, id: str) -> Head:
    """The session, or SessionNotFound."""
    head = shelf.find(tenant, id)
    if head is None:
        raise SessionNotFound(id)
    return head


def load(shelf: Shelf, tenant: str, key: str, now: int | None) -> Record:
    """The record of a session that has not expired; without a time, of any."""
    head = shelf.find_key(tenant, key)
    if head is None:
        raise SessionNotFound(key)
    if now is not None:
        head.check_alive(now)
    return record(shelf, head)


def record(shelf: Shelf, head: Head) -> Record:
    """A session's record."""
    return _record(shelf, head, _folds_in_force)


def record_without_folds(shelf: Shelf, head: Head) -> Record:
    """A session's record; its folds are to be found in the log."""
    return _record(shelf, head, lambda *_: ())


def _record(
    shelf: Shelf, head: Head, folds_of: Callable[[Shelf, Head, Line], tuple[Stored, ...]]
) -> Record:
    lines = lines_of(shelf, head)
    used = {line.number: line for line in lines.values()}[head.branch]
    return Record(
        **fields_of(document(shelf, head)),
        updated_at=time_at(head.updated),
        branch=used.name,
        branches=branches_of(lines),
        seq=head.seq,
        folds=folds_of(shelf, head, used),
        draft=draft(shelf, head),
    )


def lines_of(shelf: Shelf, head: Head) -> dict[str, Line]:
    """All branches of a session, or Corrupt when one is missing."""
    lines = shelf.lines(head)
    if len(lines) != head.branches or not any(
        line.number == head.branch for line in lines.values()
    ):
        raise Corrupt(where(head), "a branch is missing")
    return lines


def root_of(lines: Mapping[str, Line], head: Head) -> Line:
    """The branch that came from no other."""
    for line in lines.values():
        if line.parent is None:
            return line
    raise Corrupt(where(head), "its first branch is missing")


def line_of(shelf: Shelf, head: Head, name: str) -> Line:
    """The branch of this name; InvalidInput when there is none."""
    line = shelf.line(head, name)
    if line is None:
        lines_of(shelf, head)
        raise InvalidInput("branch", f"there is no {name!r} in session {head.key!r}")
    return line


def document(shelf: Shelf, head: Head) -> Document:
    """The document of a session, held against its digest and against the columns."""
    found = read_document(*shelf.document(head), where=where(head))
    columns = (head.tenant, head.id, head.key, head.agent, head.created, head.ttl)
    if columns != (found.tenant, found.id, found.key, found.agent, found.created, found.ttl):
        raise Corrupt(where(head), "its columns and its record differ")
    return found


def draft(shelf: Shelf, head: Head) -> Draft | None:
    """The draft of the turn that runs, or of one that was cut off."""
    found = shelf.draft(head)
    if found is None:
        return None
    body, chunks = found
    is_running = head.owner is not None and not shelf.is_over(head.stamp)
    try:
        said = _read_draft(body)
    except (msgspec.MsgspecError, InvalidInput, UnicodeDecodeError) as error:
        raise Corrupt(where(head), "its draft cannot be read") from error
    owner = head.owner or ""
    return Draft(
        token=head.token, owner=owner, input=said, chunks=tuple(chunks), is_running=is_running
    )


def _folds_in_force(shelf: Shelf, head: Head, line: Line) -> tuple[Stored, ...]:
    """The folds on a branch that no later one covers whole."""
    folds: list[tuple[Fold, Stored]] = []
    for stretch in path(head.lines, line):
        for row in shelf.folds(head, stretch.branch, stretch.after, stretch.last):
            stored = checked(shelf, head, row)
            new = stored.entry
            if isinstance(new, Fold):
                folds = [
                    (old, where)
                    for old, where in folds
                    if not (new.first <= old.first and old.last <= new.last)
                ]
                folds.append((new, stored))
    return tuple(stored for _, stored in folds)


# Entries


def read(
    shelf: Shelf, head: Head, name: str, start: int, stop: int | None, kind: str | None
) -> tuple[Stored, ...]:
    """The entries of a branch at these positions."""
    line = line_of(shelf, head, name)
    if stop is not None and stop <= start:
        return ()
    return _entries(shelf, head, line, start, stop, kind)


def tail(shelf: Shelf, head: Head, name: str, count: int) -> tuple[Stored, ...]:
    """The entries from the message on that is `count` messages before the end."""
    line = line_of(shelf, head, name)
    if count == 0:
        return ()
    return _entries(shelf, head, line, max(line.count - count, 0), None, None)


def _entries(
    shelf: Shelf, head: Head, line: Line, start: int, stop: int | None, kind: str | None
) -> tuple[Stored, ...]:
    lines = head.lines if line.parent is None else lines_of(shelf, head)
    lowest = start if start else -1  # what stands before the first message stands with it
    highest = line.count - 1 if stop is None else stop - 1
    found: list[Stored] = []
    for stretch in path(lines, line):
        if stretch.stop > lowest and stretch.start - 1 <= highest:
            _walk(shelf, head, stretch, lowest, highest, found)
    return tuple(found) if kind is None else tuple(each for each in found if each.kind == kind)


def _walk(
    shelf: Shelf, head: Head, stretch: Stretch, lowest: int, highest: int, found: list[Stored]
) -> None:
    """Go along a stretch and add its entries at positions `lowest` to `highest`.

    Whole logs are read here, so it is written out. Of a row only seq, check and payload are read:
    its kind is that of the entry, its position is counted, and the check tells whether both are
    those with which it was written.
    """
    after, last, name = stretch.after, stretch.after, stretch.name
    place = max(lowest, stretch.start) - 1  # of the last message passed
    if lowest > stretch.start:
        after = max(after, shelf.place(head, stretch.branch, lowest))
    fields = shelf.fields(head, stretch.branch, after, stretch.last, lowest)
    starts, spread = chain.STARTS, chain.SPREAD
    start_of_message, add = starts["message"], found.append
    before = stretch.after if lowest < 0 else None  # the seq before the next row, if that is known
    for rows in fields:
        before = _without_a_gap(head, before, rows)
        said: Sequence[Any] = _said(shelf, head, rows, highest)
        for (seq, check, payload), entry in zip(rows, said, strict=True):
            if type(entry) is Message:
                place += 1
                kind, start = "message", start_of_message
            else:
                if type(entry) is _Special:
                    kind, payload, entry = entry
                    place += kind == "message"
                else:
                    kind = kind_of(entry)
                start = starts[kind]
            if place > highest:
                return
            assert payload is not None
            if crc32(payload, seq ^ start ^ place * spread) != check or seq <= last:
                raise Corrupt(where(head, seq), "it is not what was written, or not where")
            last = seq
            add(Stored(seq, place if place > 0 else 0, name, kind, entry))
    if (last, place) != (stretch.last, stretch.stop - 1):
        raise Corrupt(where(head), f"entries up to {stretch.last} are missing")


def _without_a_gap(head: Head, before: int | None, rows: Sequence[Fields]) -> int | None:
    """The seq of the last row. Where there is one branch, every seq has a row."""
    if not rows or head.branches > 1:
        return before
    first, last = rows[0][0], rows[-1][0]
    if last - (first - 1 if before is None else before) != len(rows):
        raise Corrupt(where(head), f"an entry before {last} is missing")
    return last


class _Special(NamedTuple):
    """An entry of which the fields do not tell everything: its kind, payload, and what it says."""

    kind: str
    payload: bytes
    entry: Entry | None


_BEYOND = _Special("message", b"", None)  # one that nobody asked for


def _said(
    shelf: Shelf, head: Head, rows: Sequence[Fields], highest: int
) -> Sequence[Entry | _Special]:
    """What these rows say, as far as they are at positions up to `highest`."""
    try:
        found = read_records([payload for _, _, payload in rows if payload is not None])
    except (Corrupt, FormatTooNew):  # one of them: which?
        return [_special(shelf, head, seq, highest) for seq, _, _ in rows]
    if len(found) == len(rows):
        return found
    entries = iter(found)
    return [
        _special(shelf, head, seq, highest) if payload is None else next(entries)
        for seq, _, payload in rows
    ]


def _special(shelf: Shelf, head: Head, seq: int, highest: int) -> _Special:
    row = shelf.row(head, seq)
    if row is None:
        raise Corrupt(where(head, seq), "it is missing")
    if row.position > highest:
        return _BEYOND
    entry = checked(shelf, head, row).entry
    return _Special(row.kind, b"" if entry is None else payload(shelf, head, row), entry)


def _entry(head: Head, seq: int, payload: bytes | None) -> Entry | None:
    """What a row says; None when it was erased."""
    return None if payload is None else read_record(payload, where(head, seq))


def _link_at(shelf: Shelf, head: Head, seq: int) -> bytes:
    """The link on which the entry behind `seq` hangs."""
    row = shelf.row(head, seq)
    if row is not None:
        return row.link
    if seq > root_of(shelf.lines(head), head).fork:
        raise Corrupt(where(head, seq), "it is missing")
    return chain.root(head.id)


def size(shelf: Shelf, head: Head) -> int:
    """How many bytes the payloads of a session have, and the large texts that belong into them."""
    total = 0
    digests: set[bytes] = set()
    for row in _every_row(shelf, head):
        total += len(row.payload or b"")
        digests.update(blobs.digests(row.holes))
    return total + sum(len(shelf.blob(head, digest) or b"") for digest in digests)


def check_texts(shelf: Shelf, head: Head) -> None:
    """Corrupt if a large text of a session is missing."""
    for row in _every_row(shelf, head):
        if row.payload is not None and row.holes is not None:
            payload(shelf, head, row)


def _every_row(shelf: Shelf, head: Head) -> Iterator[Row]:
    after = 0
    while rows := shelf.rows_after(head, after, _SIZE_STEP):
        yield from rows
        after = rows[-1].seq


def payload(shelf: Shelf, head: Head, row: Row) -> bytes:
    """The payload of a row as it was written."""
    assert row.payload is not None
    return blobs.fill(
        row.payload, row.holes, lambda digest: shelf.blob(head, digest), where(head, row.seq)
    )


def checked(shelf: Shelf, head: Head, row: Row) -> Stored:
    """One entry that was found by itself."""
    line = next((each for each in shelf.lines(head).values() if each.number == row.branch), None)
    if line is None:
        raise Corrupt(where(head, row.seq), "its branch is missing")
    whole = None if row.payload is None else payload(shelf, head, row)
    if chain.check(row.seq, row.position, row.kind, whole) != row.check:
        raise Corrupt(where(head, row.seq), "it is not what was written")
    entry = _entry(head, row.seq, whole)
    return Stored(row.seq, max(row.position, 0), line.name, row.kind, entry)


def news(
    shelf: Shelf, tenant: str, id: str, after: int, last: tuple[int, int], limit: int
) -> tuple[list[Stored], list[Chunk]]:
    """The entries behind a seq, and the chunks behind (token, number), of the turn that runs."""
    head = head_of(shelf, tenant, id)
    entries = [checked(shelf, head, each) for each in shelf.rows_after(head, after, limit)]
    if head.owner is None:
        return entries, []
    seen = last[1] if last[0] == head.token else 0
    return entries, [Chunk(head.token, *each) for each in shelf.chunks(head, seen)]


# Lists


def listed(
    shelf: Shelf,
    tenant: str,
    *,
    agent: str | None,
    metadata: Mapping[str, Any],
    since: int | None,
    until: int | None,
    before: tuple[int, int] | None,
    limit: int,
) -> Page[Summary]:
    """One page of a list of sessions."""
    step = LIST_STEP if metadata else limit + 1
    found: list[tuple[Listed, Summary]] = []
    while len(found) <= limit:
        some = shelf.newest(
            tenant, agent=agent, since=since, until=until, before=before, limit=step
        )
        pairs = zip(some, _summaries(shelf, some), strict=True)
        found += [each for each in pairs if _has(each[1].metadata, metadata)] if metadata else pairs
        if len(some) < step:
            break
        before = _place(some[-1])
    items = tuple([summary for _, summary in found[:limit]])
    if len(found) <= limit:
        return Page(items)
    updated, number = _place(found[limit - 1][0])
    return Page(items, f"l{updated}.{number}")


def _place(each: Listed) -> tuple[int, int]:
    number, _, updated, _, _ = each
    return updated, number


def _has(metadata: FrozenDict, wanted: Mapping[str, Any]) -> bool:
    return all(name in metadata and is_same(metadata[name], wanted[name]) for name in wanted)


def _summaries(shelf: Shelf, some: Sequence[Listed]) -> list[Summary]:
    """What a list shows of these sessions; what is wrong with one is shown in its place."""
    with suppress(HoldfastError, TypeError, ValueError, OverflowError):
        documents = read_all_listed([(body, check) for _, _, _, body, check in some])
        found = [
            Summary(
                id,
                said.key,
                said.agent,
                time_at(said.created),
                time_at(updated),
                from_decoded(said.metadata),
            )
            for (_, id, updated, _, _), said in zip(some, documents, strict=True)
            if said.id == id
        ]
        if len(found) == len(some):
            return found
    if len(some) == 1:
        return [_damaged(shelf, some[0])]
    return [found for each in some for found in _summaries(shelf, [each])]


def _damaged(shelf: Shelf, each: Listed) -> Summary:
    """What can still be said about a session whose record cannot be shown."""
    number, _, _, body, check = each
    why = "its columns and its record differ"
    try:
        read_listed(body, check, "its record")
    except StoreError as error:
        why = str(error)
    except TypeError:
        why = "its columns make no sense"
    return Summary(*shelf.names(number), time_at(0), time_at(0), EMPTY, why)


def found(
    shelf: Shelf, tenant: str, query: str, id: str | None, before: int | None, limit: int
) -> Page[Found]:
    """One page of what a search finds."""
    session = None if id is None else head_of(shelf, tenant, id).number
    hits = shelf.search(tenant, query, session, before, limit + 1)
    items = tuple(_hit(shelf, head, row) for _, head, row in hits[:limit])
    return Page(items, f"s{hits[limit - 1][0]}" if len(hits) > limit else None)


def _hit(shelf: Shelf, head: Head, row: Row) -> Found:
    """One message that was found. One that cannot be read hides no other."""
    try:
        return Found(head.id, head.key, checked(shelf, head, row))
    except Corrupt as error:
        nothing = Stored(row.seq, max(row.position, 0), "", row.kind, None)
        return Found(head.id, head.key, nothing, str(error))


# Damage


def problems(shelf: Shelf, head: Head) -> tuple[int, list[Problem]]:
    """How many entries a session has, and whatever is wrong with it."""
    wrong: list[Problem] = []
    try:
        lines = lines_of(shelf, head)
        record(shelf, head)
    except StoreError as error:
        return 0, [Problem(head.key, "", 0, str(error))]
    entries = 0
    for line in lines.values():
        count, last, link = line.base, line.fork, _link_at(shelf, head, line.fork)
        for row in shelf.rows(head, line.number, line.fork, head.seq):
            count += row.kind == "message"
            why = _problem(shelf, head, row, count - 1, link)
            wrong += [Problem(head.key, line.name, row.seq, why)] if why else []
            entries, last, link = entries + 1, row.seq, row.link
        if (last, link, count) != (line.head, line.link, line.count) or last > head.seq:
            wrong.append(Problem(head.key, line.name, line.head, "the branch does not end here"))
    return entries, wrong


def _problem(shelf: Shelf, head: Head, row: Row, position: int, link: bytes) -> str:
    """What is wrong with a row behind the link `link`; nothing is ""."""
    if row.position != position:
        return "its position is wrong"
    try:
        checked(shelf, head, row)
        whole = None if row.payload is None else payload(shelf, head, row)
    except Corrupt as error:
        return error.why  # where it is, whoever asks knows
    except StoreError as error:
        return str(error)
    return next((why for _, why in chain.broken(link, [row._replace(payload=whole)])), "")


def where(head: Head, seq: int = 0) -> str:
    """The place of an entry, or of a session, in words."""
    return f"session {head.key!r}" + (f", entry {seq}" if seq else "")
