"""What may be done to a session, decided once for all stores.

A request is made by `front.py` from checked arguments and run inside one transaction of the store.
It first looks at everything that could be wrong, and raises; only then does it change anything.
So a request that fails has done nothing, and those beside it in the same transaction go on.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from hashlib import blake2b
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from holdfast.errors import (
    Busy,
    Conflict,
    Corrupt,
    DuplicateSession,
    InvalidInput,
    OnceMismatch,
    SessionNotFound,
    TooLarge,
)
from holdfast.frozen import FrozenDict
from holdfast.stores import blobs, chain, changes, views, waiting
from holdfast.stores.document import MICROSECOND, document_of, write_document
from holdfast.stores.head import Head, Line, first_line, path
from holdfast.stores.shelf import Once, Shelf
from holdfast.stores.values import Appended, Expired, Lease, Record
from holdfast.stores.waiting import Claim, line_of

_Result = TypeVar("_Result")
JUMP = timedelta(days=30)
EXPIRE_MAX = 500  # sessions in one transaction


# An entry ready to be stored: kind, whole payload, what is kept of it, holes, large texts.
Packed = tuple[str, bytes, bytes, bytes | None, dict[bytes, bytes]]


@dataclass(slots=True)
class Request(ABC, Generic[_Result]):
    """Something to be done in one transaction, for one tenant, at the time `now`."""

    tenant: str
    now: int

    # Whether it may take so long that nobody should have to wait for it in an event loop.
    is_long: ClassVar[bool] = False

    @abstractmethod
    def run(self, shelf: Shelf) -> _Result:
        """Do it, or raise without having done anything."""


@dataclass(slots=True)
class OfSession(Request[_Result]):
    """A request about one session."""

    id: str

    def head(self, shelf: Shelf) -> Head:
        head = shelf.find(self.tenant, self.id)
        if head is None:
            raise SessionNotFound(self.id)
        return head


@dataclass(slots=True)
class Create(Request[Record]):
    """A new session, with its first entries."""

    record: Record
    entries: Sequence[Packed]
    updated: int
    created: int
    replace_expired: bool

    def run(self, shelf: Shelf) -> Record:
        record = self.record
        there = shelf.find_key(self.tenant, record.key)
        if there is not None and not (self.replace_expired and self._is_over(shelf, there)):
            raise DuplicateSession(record.key)
        if (other := shelf.find(self.tenant, record.id)) is not None:
            raise DuplicateSession(other.key)  # nothing is there under the key that was asked for
        if there is not None:
            shelf.delete(there)
        document = document_of(record, self.tenant, self.created)
        line = first_line(record.id)
        head = Head(
            number=0,
            tenant=self.tenant,
            id=record.id,
            key=record.key,
            agent=record.agent,
            created=self.created,
            updated=self.updated,
            ttl=document.ttl,
            lines={line.name: line},
        )
        shelf.insert(head, write_document(document))
        add_entries(shelf, head, line, self.entries)
        shelf.save(head)
        return views.record(shelf, head)

    def _is_over(self, shelf: Shelf, head: Head) -> bool:
        is_free = head.owner is None or shelf.is_over(head.stamp)
        return is_free and head.is_expired(self.now)


@dataclass(slots=True)
class Append(OfSession[Appended]):
    """The hot one."""

    branch: str
    entries: Sequence[Packed]
    after: int | None
    lease: Lease | None
    once: str | None
    content: bytes
    finish: bool

    def run(self, shelf: Shelf) -> Appended:
        head = self.head(shelf)
        if self.once is not None and (known := shelf.once(head, self.once)) is not None:
            return self._again(shelf, head, known)
        head.check_alive(self.now)
        if self.lease is not None:
            head.check_lease(self.lease)
        line = head.lines.get(self.branch) or views.line_of(shelf, head, self.branch)
        if self.after is not None and self.after != line.head:
            raise Conflict(head.key, self.after, line.head)
        first = head.seq + 1
        if self.entries:
            add_entries(shelf, head, line, self.entries)
        else:
            first = line.head + 1
        result = Appended(first, line.head, line.name, line.count)
        if self.once is not None:
            salt = chain.salts(1)[0]
            shelf.add_once(head, self.once, Once(salt, _sealed(salt, self.content), result))
        if self.finish:
            self._finish(shelf, head)
            shelf.save(head)
        if head.marked is not None:
            shelf.save(head)
        head.touch(self.now)
        shelf.move(head)
        return result

    def _again(self, shelf: Shelf, head: Head, known: Once) -> Appended:
        assert self.once is not None
        if known.salt is not None and _sealed(known.salt, self.content) != known.digest:
            raise OnceMismatch(head.key, self.once)
        if self.finish and self.lease is not None and head.token == self.lease.token:
            self._finish(shelf, head)
            shelf.save(head)
        return known.result

    def _finish(self, shelf: Shelf, head: Head) -> None:
        head.owner = None
        shelf.drop_draft(head)


@dataclass(slots=True)
class Begin(OfSession[Lease]):
    """The lease and the draft."""

    owner: str
    ttl: timedelta
    body: bytes
    seen: int | None = None
    place: str = ""

    def run(self, shelf: Shelf) -> Lease:
        head = self.head(shelf)
        head.check_alive(self.now)
        line = line_of(shelf, head)
        if (ahead := line.ahead_of(self.place)) is not None:
            raise Busy(head.key, ahead)
        left = views.draft(shelf, head)
        if left is not None and self.seen is not None and left.token != self.seen:
            raise Conflict(head.key, 0, 0, "draft")
        head.put_stamp(shelf.stamp(self.ttl))
        head.token += 1
        head.owner = self.owner
        waiting.save(shelf, head, line.without(self.place)._replace(holder=self.owner))
        shelf.save_draft(head, self.body)
        head.touch(self.now)
        shelf.save(head)
        return Lease(head.id, head.token, self.owner, self.ttl, left)


@dataclass(slots=True)
class LineUp(OfSession[bool]):
    """A place in the line of those who wait for the lease, `since` then by time.monotonic()."""

    owner: str
    place: str
    since: float
    patience: timedelta

    def run(self, shelf: Shelf) -> bool:
        head = self.head(shelf)
        head.check_alive(self.now)
        line = line_of(shelf, head)
        asked = shelf.stamp(timedelta(seconds=self.since - time.monotonic())).until
        line = line.joined(Claim(asked, shelf.stamp(self.patience), self.place, self.owner))
        waiting.save(shelf, head, line)
        return line.ahead_of(self.place) is None


@dataclass(slots=True)
class StepOut(OfSession[None]):
    """The end of waiting, for one who is not to have the lease."""

    place: str

    def run(self, shelf: Shelf) -> None:
        head = shelf.find(self.tenant, self.id)
        if head is not None:
            waiting.save(shelf, head, line_of(shelf, head).without(self.place))


@dataclass(slots=True)
class OfLease(OfSession[_Result]):
    """A request of one who holds a lease."""

    lease: Lease


@dataclass(slots=True)
class Journal(OfLease[None]):
    """A chunk of partial output. The commit may return before the disk has it."""

    text: str

    def run(self, shelf: Shelf) -> None:
        head = self.head(shelf)
        head.check_lease(self.lease)
        shelf.add_chunk(head, self.text)


@dataclass(slots=True)
class Renew(OfLease[Lease]):
    """The time of the lease begins anew."""

    ttl: timedelta

    def run(self, shelf: Shelf) -> Lease:
        head = self.head(shelf)
        head.check_lease(self.lease)
        head.put_stamp(shelf.stamp(self.ttl))
        shelf.save(head)
        return self.lease._replace(ttl=self.ttl)


@dataclass(slots=True)
class Release(OfLease[None]):
    """The lease is given back, whether or not it was still ours."""

    drop: bool

    def run(self, shelf: Shelf) -> None:
        head = shelf.find(self.tenant, self.id)
        if head is None or head.token != self.lease.token or head.owner is None:
            return
        head.owner = None
        if self.drop:
            shelf.drop_draft(head)
        shelf.save(head)


@dataclass(slots=True)
class OpenBranch(OfSession[Record]):
    """A branch from an entry of another."""

    name: str
    parent: str
    at: int
    use: bool

    def run(self, shelf: Shelf) -> Record:
        head = self.head(shelf)
        head.check_alive(self.now)
        views.record(shelf, head)  # what cannot be shown afterwards is not changed
        lines = views.lines_of(shelf, head)
        if self.name in lines:
            raise InvalidInput("name", f"there is a branch {self.name!r} already")
        if self.parent not in lines:
            raise InvalidInput("parent", f"there is no branch {self.parent!r}")
        number = max(line.number for line in lines.values()) + 1
        line = self._fork(shelf, head, lines, number)
        shelf.add_line(head, line)
        head.branches += 1
        if self.use:
            head.branch = number
        head.touch(self.now)
        shelf.save(head)
        return views.record(shelf, head)

    def _fork(self, shelf: Shelf, head: Head, lines: dict[str, Line], number: int) -> Line:
        parent = lines[self.parent]
        root = views.root_of(lines, head)
        if self.at in (0, root.fork):
            link = chain.root(head.id)
            return Line(number, self.name, root.number, self.at, 0, self.at, 0, link)
        for stretch in path(lines, parent):
            if stretch.after < self.at <= stretch.last:
                row = shelf.row(head, self.at)
                if row is not None and row.branch == stretch.branch:
                    base = row.position + 1
                    return Line(
                        number, self.name, stretch.branch, self.at, base, self.at, base, row.link
                    )
        raise InvalidInput("at", f"there is no entry {self.at} on branch {self.parent!r}")


@dataclass(slots=True)
class Update(OfSession[Record]):
    """Fields of the record."""

    changes: Mapping[str, Any]
    expect: Mapping[str, Any]
    bytes_max: int

    def run(self, shelf: Shelf) -> Record:
        head = self.head(shelf)
        views.record(shelf, head)  # what cannot be shown afterwards is not changed
        document = views.document(shelf, head)
        names = {line.number: line.name for line in views.lines_of(shelf, head).values()}
        changes.check(document, names[head.branch], self.expect)
        branch = self.changes.get("branch", names[head.branch])
        if branch not in head.lines:
            raise InvalidInput("branch", f"there is no {branch!r} in session {head.key!r}")
        document = changes.apply(document, self.changes)
        written = write_document(document)
        if (size := len(written.body)) > self.bytes_max:
            raise TooLarge("a record, in bytes,", size, self.bytes_max)
        head.agent, head.ttl = document.agent, document.ttl
        head.branch = head.lines[branch].number
        shelf.save_document(head, written)
        head.touch(self.now)
        shelf.save(head)
        return views.record(shelf, head)


@dataclass(slots=True)
class Delete(OfSession[bool]):
    """The whole session; if asked for, only as it was `seen`: its seq and time."""

    seen: tuple[int, int] | None = None

    is_long = True

    def run(self, shelf: Shelf) -> bool:
        head = shelf.find(self.tenant, self.id)
        if head is None:
            return False
        if self.seen is not None:
            _check_untouched(shelf, head, *self.seen)
        shelf.delete(head)
        return True


def _check_untouched(shelf: Shelf, head: Head, seq: int, updated: int) -> None:
    if head.owner is not None and not shelf.is_over(head.stamp):
        raise Busy(head.key, head.owner)
    if head.seq != seq:
        raise Conflict(head.key, seq, head.seq)
    if head.updated != updated:
        raise Conflict(head.key, 0, 0, "updated_at")


@dataclass(slots=True)
class Erase(OfSession[int]):
    """What some entries say."""

    seqs: Sequence[int]

    is_long = True

    def run(self, shelf: Shelf) -> int:
        head = self.head(shelf)
        found = []
        for seq in self.seqs:
            row = shelf.row(head, seq)
            if row is None:
                raise InvalidInput("seqs", f"there is no entry {seq} in session {head.key!r}")
            if row.payload is not None:
                whole = views.payload(shelf, head, row)
                assert row.salt is not None
                found.append((row, chain.seal(row.salt, whole)))
        if found:
            shelf.erase_rows(head, found)
            head.touch(self.now)
            shelf.save(head)
        shelf.purge()  # even if all was erased before: it may not have gone through
        return len(found)


@dataclass(slots=True)
class Clear(OfSession[Record]):
    """The conversation, not the identity; if asked for, only as it was `seen`."""

    seen: tuple[int, int] | None = None

    is_long = True

    def run(self, shelf: Shelf) -> Record:
        head = self.head(shelf)
        if self.seen is not None:
            _check_untouched(shelf, head, *self.seen)
        document = views.document(shelf, head)
        shelf.clear(head)
        shelf.purge()
        head.seq += 1  # so that no writer who saw the old head is behind the new one
        line = first_line(head.id, head.seq)
        shelf.add_line(head, line)
        head.branch, head.branches = line.number, 1
        head.owner = None
        document = msgspec.structs.replace(document, counters=FrozenDict())
        shelf.save_document(head, write_document(document))
        head.touch(self.now)
        shelf.save(head)
        return views.record(shelf, head)


@dataclass(slots=True)
class Expire(Request[Expired]):
    """Marks what has expired, deletes what was marked long ago."""

    grace: timedelta

    is_long = True

    def run(self, shelf: Shelf) -> Expired:
        seen = shelf.clock_seen(self.tenant)
        shelf.save_clock_seen(self.tenant, self.now)
        if seen is not None and self.now < seen:
            return Expired(0, 0, "the clock went back since the last run")
        if seen is not None and self.now - seen > JUMP // MICROSECOND:
            return Expired(0, 0, f"the clock is {JUMP.days} days and more ahead of the last run")
        marked = deleted = 0
        marked_before = max(self.now - self.grace // MICROSECOND, -(2**62))
        for head in shelf.overdue(self.tenant, self.now, marked_before, EXPIRE_MAX):
            if head.marked is None or head.marked > self.now:  # by a clock that was wrong
                head.marked = self.now
                shelf.save(head)
                marked += 1
            elif head.owner is None or shelf.is_over(head.stamp):
                with suppress(Corrupt):  # what is damaged is not deleted for being old
                    views.check_texts(shelf, head)
                    shelf.delete(head)
                    deleted += 1
        return Expired(marked, deleted)


def add_entries(shelf: Shelf, head: Head, line: Line, entries: Sequence[Packed]) -> None:
    """Put entries behind the head of a branch."""
    if not entries:
        return
    rows = chain.rows(head.number, line.number, head.seq, line.count - 1, line.link, entries)
    for _, _, _, holes, texts in entries:
        if holes is not None:
            for digest in blobs.digests(holes):
                shelf.add_blob(head, digest, texts[digest])
    _, seq, _, position, _, _, link, _, _, _ = rows[-1]
    head.seq = line.head = seq
    line.count, line.link = position + 1, link
    shelf.add_rows(head, rows)
    shelf.save_line(head, line)


def _sealed(salt: bytes, content: bytes) -> bytes:
    return blake2b(content, digest_size=16, salt=salt).digest()
