"""Reading: from rows back to records and entries, checked on the way.

Every row that is passed is held against the chain: a flipped bit, a missing, moved or half erased
row is Corrupt, with its place. Nothing that is damaged comes back as if it were not.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from holdfast.codec import read_record
from holdfast.entries import Entry, Fold
from holdfast.errors import Corrupt, FormatTooNew, InvalidInput, SessionNotFound, StoreError
from holdfast.frozen import EMPTY, FrozenDict, decode_hook
from holdfast.stores import blobs, chain
from holdfast.stores.changes import is_same
from holdfast.stores.document import Document, fields_of, read_document, time_at
from holdfast.stores.head import Head, Line, Row, Stretch, branches_of, path
from holdfast.stores.shelf import Linked, Listed, Shelf
from holdfast.stores.values import Chunk, Draft, Found, Page, Problem, Record, Stored, Summary

LIST_STEP = 256
_read_draft = msgspec.json.Decoder(FrozenDict, dec_hook=decode_hook).decode


# Records


def head_of(shelf: Shelf, tenant: str, id: str) -> Head:
    """The session, or SessionNotFound."""
    head = shelf.find(tenant, id)
    if head is None:
        raise SessionNotFound(id)
    return head


def load(shelf: Shelf, tenant: str, key: str, now: int) -> Record:
    """The record of a session that has not expired."""
    head = shelf.find_key(tenant, key)
    if head is None:
        raise SessionNotFound(key)
    head.check_alive(now)
    return record(shelf, head)


def record(shelf: Shelf, head: Head) -> Record:
    """A session's record."""
    lines = lines_of(shelf, head)
    used = next(line for line in lines.values() if line.number == head.branch)
    return Record(
        **fields_of(document(shelf, head)),
        updated_at=time_at(head.updated),
        branch=used.name,
        branches=branches_of(lines),
        seq=head.seq,
        folds=_folds_in_force(shelf, head, used),
        draft=draft(shelf, head),
    )


def lines_of(shelf: Shelf, head: Head) -> dict[str, Line]:
    """All branches of a session, or Corrupt when one is missing."""
    lines = shelf.lines(head)
    if len(lines) != head.branches or not any(
        line.number == head.branch for line in lines.values()
    ):
        raise Corrupt(_where(head), "a branch is missing")
    return lines


def line_of(shelf: Shelf, head: Head, name: str) -> Line:
    """The branch of this name; InvalidInput when there is none."""
    line = shelf.line(head, name)
    if line is None:
        lines_of(shelf, head)
        raise InvalidInput("branch", f"there is no {name!r} in session {head.key!r}")
    return line


def document(shelf: Shelf, head: Head) -> Document:
    """The document of a session, held against its digest and against the columns."""
    return _document(head, *shelf.document(head))


def _document(head: Head, body: bytes, sealed: bytes) -> Document:
    found = read_document(body, sealed, _where(head))
    columns = (head.tenant, head.id, head.key, head.agent, head.created, head.ttl)
    if columns != (found.tenant, found.id, found.key, found.agent, found.created, found.ttl):
        raise Corrupt(_where(head), "its columns and its record differ")
    return found


def draft(shelf: Shelf, head: Head) -> Draft | None:
    """The draft of the turn that runs, or of one that was cut off."""
    found = shelf.draft(head)
    if found is None:
        return None
    body, chunks = found
    is_running = head.owner is not None and not shelf.is_over(head)
    try:
        said = _read_draft(body)
    except (msgspec.MsgspecError, InvalidInput, UnicodeDecodeError) as error:
        raise Corrupt(_where(head), "its draft cannot be read") from error
    owner = head.owner or ""
    return Draft(
        token=head.token, owner=owner, input=said, chunks=tuple(chunks), is_running=is_running
    )


def _folds_in_force(shelf: Shelf, head: Head, line: Line) -> tuple[Stored, ...]:
    """The folds on a branch that no later one covers whole."""
    folds: list[tuple[Fold, Stored]] = []
    for stretch in path(head.lines, line):
        for linked in shelf.folds(head, stretch.branch, stretch.after, stretch.last):
            stored = checked(shelf, head, linked)
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
    return tuple(_entries(shelf, head, line, start, stop, kind))


def tail(shelf: Shelf, head: Head, name: str, count: int) -> tuple[Stored, ...]:
    """The entries from the message on that is `count` messages before the end."""
    line = line_of(shelf, head, name)
    if count == 0:
        return ()
    return tuple(_entries(shelf, head, line, max(line.count - count, 0), None, None))


def _entries(
    shelf: Shelf, head: Head, line: Line, start: int, stop: int | None, kind: str | None
) -> Iterator[Stored]:
    lines = head.lines if line.parent is None else lines_of(shelf, head)
    lowest = start if start else -1  # what stands before the first message stands with it
    highest = line.count - 1 if stop is None else stop - 1
    previous: bytes | None = None
    for stretch in path(lines, line):
        if stretch.stop <= lowest or stretch.start - 1 > highest:
            previous = None
            continue
        after = stretch.after
        if lowest > stretch.start:
            after = max(after, shelf.place(head, stretch.branch, lowest))
        if previous is None or after != stretch.after:
            previous = _link_at(shelf, head, after)
        walk = _Walk(shelf, head, stretch, after, previous)
        yield from walk.entries(lowest, highest, kind)
        previous = walk.link
        if stretch.last == line.head and walk.is_at_the_end and previous != line.link:
            raise Corrupt(_where(head), f"branch {line.name!r} does not end where it should")


class _Walk:
    """Goes along one stretch, row by row, and holds each against the chain."""

    def __init__(self, shelf: Shelf, head: Head, stretch: Stretch, after: int, link: bytes) -> None:
        self._shelf = shelf
        self._head = head
        self._stretch = stretch
        self._after = after
        self.link = link
        self.is_at_the_end = False

    def entries(self, lowest: int, highest: int, wanted: str | None) -> Iterator[Stored]:
        """The entries at the positions `lowest` to `highest`."""
        head, name, link = self._head, self._stretch.name, self.link
        last: int | None = None
        seq = self._after
        for seq, _, position, kind, stored, salt, payload, seal, holes in self._shelf.rows(
            head, self._stretch.branch, self._after, self._stretch.last
        ):
            if last is not None and position != last + (kind == "message"):
                raise Corrupt(_where(head, seq), "it is not where it was written")
            last = position
            if position > highest:
                self.link = link
                return
            if payload is not None and salt is not None:
                if holes is not None:
                    payload = blobs.fill(payload, holes, self._blob, _where(head, seq))
                sealed = chain.seal(salt, payload)
            elif payload is None and salt is None and seal is not None:
                sealed = seal
            else:
                raise Corrupt(_where(head, seq), "it is half erased")
            link = chain.link(link, seq, kind, sealed)
            if link != stored:
                raise Corrupt(_where(head, seq), "its link does not fit what is stored")
            if position >= lowest and (wanted is None or kind == wanted):
                entry = None if payload is None else _entry(head, seq, payload)
                yield Stored(seq, position if position > 0 else 0, name, kind, entry)
        if seq != self._stretch.last:
            raise Corrupt(_where(head), f"entry {self._stretch.last} is missing")
        self.link = link
        self.is_at_the_end = True

    def _blob(self, digest: bytes) -> bytes | None:
        return self._shelf.blob(self._head, digest)


def _entry(head: Head, seq: int, payload: bytes) -> Entry:
    try:
        return read_record(payload)
    except Corrupt as error:
        raise Corrupt(_where(head, seq), error.why) from error
    except FormatTooNew as error:
        raise FormatTooNew(_where(head, seq), error.found, error.known) from error


def _link_at(shelf: Shelf, head: Head, seq: int) -> bytes:
    """The link on which the entry behind `seq` hangs."""
    row = shelf.row(head, seq)
    if row is not None:
        return row.link
    roots = [line.fork for line in shelf.lines(head).values() if line.parent is None]
    if seq > max(roots, default=-1):
        raise Corrupt(_where(head, seq), "it is missing")
    return chain.root(head.id)


def payload(shelf: Shelf, head: Head, row: Row) -> bytes:
    """The payload of a row as it was written."""
    assert row.payload is not None
    return blobs.fill(
        row.payload, row.holes, lambda digest: shelf.blob(head, digest), _where(head, row.seq)
    )


def checked(shelf: Shelf, head: Head, linked: Linked) -> Stored:
    """One entry that was found by itself, held against the row before it."""
    previous, row = linked
    line = next((each for each in shelf.lines(head).values() if each.number == row.branch), None)
    if line is None:
        raise Corrupt(_where(head, row.seq), "its branch is missing")
    if previous is None:
        previous = _link_at(shelf, head, line.fork)
    whole = None if row.payload is None else payload(shelf, head, row)
    for _, why in chain.broken(previous, [row._replace(payload=whole)]):
        raise Corrupt(_where(head, row.seq), why)
    entry = None if whole is None else _entry(head, row.seq, whole)
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
    found: list[Summary] = []
    step = limit + 1 if not metadata else LIST_STEP
    while True:
        some = shelf.newest(
            tenant, agent=agent, since=since, until=until, before=before, limit=step
        )
        for each in some:
            if len(found) == limit:
                assert before is not None
                return Page(tuple(found), f"l{before[0]}.{before[1]}")
            before = (each.head.updated, each.head.number)
            summary = _summary(each)
            if all(_has(summary.metadata, name, metadata[name]) for name in metadata):
                found.append(summary)
        if len(some) < step:
            return Page(tuple(found))


def _has(metadata: FrozenDict, name: str, value: Any) -> bool:
    return name in metadata and is_same(metadata[name], value)


def _summary(each: Listed) -> Summary:
    head = each.head
    metadata, damage = EMPTY, ""
    try:
        metadata = _document(head, each.body, each.sealed).metadata
    except StoreError as error:
        damage = str(error)
    times = time_at(head.created), time_at(head.updated)
    return Summary(head.id, head.key, head.agent, *times, metadata, head.seq, damage)


def found(
    shelf: Shelf, tenant: str, query: str, id: str | None, before: int | None, limit: int
) -> Page[Found]:
    """One page of what a search finds."""
    session = None if id is None else head_of(shelf, tenant, id).number
    hits = shelf.search(tenant, query, session, before, limit + 1)
    items = tuple(
        Found(head.id, head.key, checked(shelf, head, linked)) for _, head, linked in hits[:limit]
    )
    return Page(items, f"s{hits[limit - 1][0]}" if len(hits) > limit else None)


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
        count = line.base
        rows = []
        for row in map(Row._make, shelf.rows(head, line.number, line.fork, head.seq)):
            count += row.kind == "message"
            if row.position != count - 1:
                wrong.append(Problem(head.key, line.name, row.seq, "its position is wrong"))
            try:
                whole = None if row.payload is None else payload(shelf, head, row)
                if whole is not None:
                    _entry(head, row.seq, whole)
            except StoreError as error:
                wrong.append(Problem(head.key, line.name, row.seq, str(error)))
                continue
            rows.append(row._replace(payload=whole))
        entries += len(rows)
        wrong += [
            Problem(head.key, line.name, seq, why)
            for seq, why in chain.broken(_link_at(shelf, head, line.fork), rows)
        ]
        ends = (rows[-1].seq, rows[-1].link) if rows else (line.fork, line.link)
        if ends != (line.head, line.link) or count != line.count or line.head > head.seq:
            wrong.append(Problem(head.key, line.name, line.head, "the branch does not end here"))
    return entries, wrong


def _where(head: Head, seq: int = 0) -> str:
    return f"session {head.key!r}" + (f", entry {seq}" if seq else "")
