"""Sessions in memory: for tests, for simulation, and for what need not last.

Everything happens in the loop's own thread, at once and in the order asked for: no I/O, no threads,
no clock but the lease's. So a run with a seeded event loop repeats exactly.
"""

import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import ClassVar, TypeVar

from holdfast.codec import read_record
from holdfast.errors import StoreUnavailable, Unsupported
from holdfast.messages import Message
from holdfast.stores import views, words
from holdfast.stores.base import Store
from holdfast.stores.bell import Bell
from holdfast.stores.blobs import digests
from holdfast.stores.document import Written
from holdfast.stores.front import Front
from holdfast.stores.head import Head, Line, Row, erased
from holdfast.stores.requests import Request
from holdfast.stores.searchable import text_of
from holdfast.stores.shelf import Fields, Listed, NewRow, Once, Shelf
from holdfast.stores.values import LIMITS, Limits, check_limits

_Result = TypeVar("_Result")


@dataclass(slots=True)
class _Session:
    """All there is of a session."""

    head: Head
    document: Written
    rows: dict[int, Row] = field(default_factory=dict)
    seqs: dict[int, list[int]] = field(default_factory=dict)  # by branch
    blobs: dict[bytes, tuple[int, bytes]] = field(default_factory=dict)
    once: dict[str, Once] = field(default_factory=dict)
    draft: bytes | None = None
    chunks: list[str] = field(default_factory=list)


class MemoryShelf(Shelf):
    """The rows of all tenants, in dictionaries."""

    def __init__(self) -> None:
        self._sessions: dict[int, _Session] = {}
        self._ids: dict[tuple[str, str], int] = {}
        self._keys: dict[tuple[str, str], int] = {}
        self._numbers = 0
        self._clocks: dict[str, int] = {}
        # Every message in the order of their appends: session and seq. And the words of some.
        self._messages: list[tuple[int, int]] = []
        self._words: dict[tuple[int, int], frozenset[str]] = {}

    # Sessions

    def find(self, tenant: str, id: str) -> Head | None:
        number = self._ids.get((tenant, id))
        return None if number is None else self._sessions[number].head

    def find_key(self, tenant: str, key: str) -> Head | None:
        number = self._keys.get((tenant, key))
        return None if number is None else self._sessions[number].head

    def insert(self, head: Head, document: Written) -> None:
        self._numbers += 1
        head.number = self._numbers
        self._sessions[head.number] = _Session(head, document)
        self._ids[head.tenant, head.id] = head.number
        self._keys[head.tenant, head.key] = head.number

    def save(self, head: Head) -> None:
        pass  # the Head that was changed is the one that is kept

    def move(self, head: Head) -> None:
        pass  # likewise

    def delete(self, head: Head) -> None:
        self.clear(head)
        del self._sessions[head.number]
        del self._ids[head.tenant, head.id]
        del self._keys[head.tenant, head.key]

    def document(self, head: Head) -> tuple[bytes, bytes]:
        document = self._sessions[head.number].document
        return document.body, document.digest

    def save_document(self, head: Head, document: Written) -> None:
        self._sessions[head.number].document = document

    def newest(
        self,
        tenant: str,
        *,
        agent: str | None,
        since: int | None,
        until: int | None,
        before: tuple[int, int] | None,
        limit: int,
    ) -> Sequence[Listed]:
        wanted = [
            each
            for each in self._sessions.values()
            if each.head.tenant == tenant
            and (agent is None or each.head.agent == agent)
            and (since is None or each.head.updated >= since)
            and (until is None or each.head.updated < until)
            and (before is None or (each.head.updated, each.head.number) < before)
        ]
        wanted.sort(key=lambda each: (each.head.updated, each.head.number), reverse=True)
        return [
            (each.head.number, each.head.id, each.head.updated, *each.document[:2])
            for each in wanted[:limit]
        ]

    def names(self, number: int) -> tuple[str, str, str]:
        head = self._sessions[number].head
        return head.id, head.key, head.agent

    def overdue(self, tenant: str, now: int, marked: int, limit: int) -> Sequence[Head]:
        heads = [
            each.head
            for each in self._sessions.values()
            if each.head.tenant == tenant
            and each.head.ttl is not None
            and now - each.head.updated > each.head.ttl
            and (each.head.marked is None or not marked <= each.head.marked <= now)
        ]
        return heads[:limit]

    # Branches

    def line(self, head: Head, name: str) -> Line | None:
        return head.lines.get(name)

    def lines(self, head: Head) -> dict[str, Line]:
        return head.lines

    def add_line(self, head: Head, line: Line) -> None:
        head.lines[line.name] = line

    def save_line(self, head: Head, line: Line) -> None:
        pass  # the Line that was changed is the one that is kept

    # Entries

    def add_rows(self, head: Head, rows: Sequence[NewRow]) -> None:
        session = self._sessions[head.number]
        for row in (Row(*new[1:]) for new in rows):
            session.rows[row.seq] = row
            session.seqs.setdefault(row.branch, []).append(row.seq)
            if row.kind == "message":
                self._messages.append((head.number, row.seq))

    def row(self, head: Head, seq: int) -> Row | None:
        return self._sessions[head.number].rows.get(seq)

    def rows(self, head: Head, branch: int, after: int, last: int) -> Iterator[Row]:
        session = self._sessions[head.number]
        seqs = session.seqs.get(branch, [])
        for at in range(bisect_right(seqs, after), bisect_right(seqs, last)):
            yield session.rows[seqs[at]]

    def fields(
        self, head: Head, branch: int, after: int, last: int, lowest: int
    ) -> Iterator[Sequence[Fields]]:
        yield [
            (row.seq, row.check, row.payload if row.holes is None else None)
            for row in self.rows(head, branch, after, last)
            if row.position >= lowest
        ]

    def rows_after(self, head: Head, after: int, limit: int) -> Sequence[Row]:
        rows = self._sessions[head.number].rows
        return [rows[seq] for seq in sorted(seq for seq in rows if seq > after)[:limit]]

    def folds(self, head: Head, branch: int, after: int, last: int) -> Sequence[Row]:
        return [row for row in self.rows(head, branch, after, last) if row.kind == "fold"]

    def place(self, head: Head, branch: int, position: int) -> int:
        session = self._sessions[head.number]
        seqs = session.seqs.get(branch, [])
        at = bisect_left(seqs, position, key=lambda seq: session.rows[seq].position)
        return seqs[at - 1] if at else 0

    def erase_rows(self, head: Head, rows: Sequence[tuple[Row, bytes]]) -> None:
        session = self._sessions[head.number]
        for row, seal in rows:
            self._words.pop((head.number, row.seq), None)
            session.rows[row.seq] = erased(row, seal)
            for digest in digests(row.holes):
                count, data = session.blobs.pop(digest)
                if count > 1:
                    session.blobs[digest] = (count - 1, data)
        for name, once in session.once.items():
            if any(once.result.first <= row.seq <= once.result.last for row, _ in rows):
                session.once[name] = once._replace(salt=None, digest=None)

    def clear(self, head: Head) -> None:
        session = self._sessions[head.number]
        self._sessions[head.number] = _Session(head, session.document)
        self._messages = [each for each in self._messages if each[0] != head.number]
        self._words = {each: self._words[each] for each in self._words if each[0] != head.number}
        head.lines = {}

    def purge(self) -> None:
        pass  # there are no files

    # Large texts

    def blob(self, head: Head, digest: bytes) -> bytes | None:
        found = self._sessions[head.number].blobs.get(digest)
        return None if found is None else found[1]

    def add_blob(self, head: Head, digest: bytes, data: bytes) -> None:
        blobs = self._sessions[head.number].blobs
        count, _ = blobs.get(digest, (0, b""))
        blobs[digest] = (count + 1, data)

    # Named appends

    def once(self, head: Head, name: str) -> Once | None:
        return self._sessions[head.number].once.get(name)

    def add_once(self, head: Head, name: str, once: Once) -> None:
        self._sessions[head.number].once[name] = once

    # Drafts

    def draft(self, head: Head) -> tuple[bytes, list[str]] | None:
        session = self._sessions[head.number]
        return None if session.draft is None else (session.draft, list(session.chunks))

    def save_draft(self, head: Head, body: bytes) -> None:
        session = self._sessions[head.number]
        session.draft, session.chunks = body, []

    def add_chunk(self, head: Head, text: str) -> None:
        self._sessions[head.number].chunks.append(text)

    def drop_draft(self, head: Head) -> None:
        session = self._sessions[head.number]
        session.draft, session.chunks = None, []

    def chunks(self, head: Head, after: int) -> Sequence[tuple[int, str]]:
        chunks = self._sessions[head.number].chunks[after:]
        return list(enumerate(chunks, start=after + 1))

    # Leases

    def stamp(self, head: Head, ttl: timedelta) -> None:
        head.until = time.monotonic_ns() + ttl // timedelta(microseconds=1) * 1_000

    def is_over(self, head: Head) -> bool:
        return time.monotonic_ns() > head.until

    # The rest

    def search(
        self, tenant: str, query: str, session: int | None, before: int | None, limit: int
    ) -> Sequence[tuple[int, Head, Row]]:
        wanted = words.query(query)
        found: list[tuple[int, Head, Row]] = []
        end = len(self._messages) if before is None else min(before, len(self._messages))
        for number in range(end - 1, -1, -1) if wanted else ():
            place = self._messages[number]
            each = self._sessions[place[0]]
            if each.head.tenant != tenant or session not in (None, place[0]):
                continue
            if _matches(self._words_at(*place), wanted):
                found.append((number, each.head, each.rows[place[1]]))
                if len(found) == limit:
                    break
        return found

    def _words_at(self, session: int, seq: int) -> frozenset[str]:
        if (session, seq) not in self._words:
            each = self._sessions[session]
            row = each.rows[seq]
            said = b"" if row.payload is None else views.payload(self, each.head, row)
            entry = read_record(said) if said else None
            said_words = words.words(text_of(entry)) if isinstance(entry, Message) else ()
            self._words[session, seq] = frozenset(said_words)
        return self._words[session, seq]

    def clock_seen(self, tenant: str) -> int | None:
        return self._clocks.get(tenant)

    def save_clock_seen(self, tenant: str, now: int) -> None:
        self._clocks[tenant] = now


def _matches(found: frozenset[str], wanted: list[tuple[str, bool]]) -> bool:
    return all(
        any(each.startswith(word) for each in found) if is_prefix else word in found
        for word, is_prefix in wanted
    )


class MemoryTenant(Front):
    """One tenant's sessions in memory."""

    def __init__(self, name: str, store: "MemoryStore") -> None:
        super().__init__(name, store.limits)
        self._store = store

    async def _write(self, request: Request[_Result]) -> _Result:
        result = request.run(self._store.shelf())
        self._store.bell.ring()
        return result

    async def _read(
        self,
        function: Callable[[Shelf], _Result],
        rows: int = 1,  # noqa: ARG002 - all the same here
    ) -> _Result:
        return function(self._store.shelf())

    async def _changed(self) -> None:
        await self._store.bell.wait()


class MemoryStore(Store):
    """A store that forgets everything when it is closed."""

    unsupported: ClassVar[frozenset[str]] = frozenset({"backup"})

    def __init__(self, *, limits: Limits = LIMITS) -> None:
        self.limits = check_limits(limits)
        self._shelf: MemoryShelf | None = None
        self._is_closed = False
        self.bell = Bell()

    def tenant(self, name: str = "") -> MemoryTenant:
        return MemoryTenant(name, self)

    async def open(self) -> None:
        if self._is_closed:
            raise StoreUnavailable("memory:", "the store is closed")
        self._shelf = self._shelf or MemoryShelf()

    async def backup(self, path: str | Path) -> None:  # noqa: ARG002 - whatever it is
        raise Unsupported("make a backup", "the memory store")

    async def close(self) -> None:
        self._shelf, self._is_closed = None, True
        self.bell.ring()

    def shelf(self) -> MemoryShelf:
        """The rows, while the store is open."""
        if self._shelf is None:
            why = "the store is closed" if self._is_closed else "the store is not open yet"
            raise StoreUnavailable("memory:", why)
        return self._shelf
