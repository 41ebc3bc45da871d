"""The head of a session, as one who writes to it sees it: counters, branches, the lease.

A Head is plain data that a store loads, changes and saves inside one transaction. What may be
done to it is decided in `requests.py`, in one place for all stores.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from holdfast.errors import Corrupt, LeaseLost, SessionExpired
from holdfast.stores import chain
from holdfast.stores.document import time_at
from holdfast.stores.values import MAIN, Branch, Lease


class Stamp(NamedTuple):
    """Which process has something, in which run of its machine, and until when, by the clock that
    leases have there."""

    process: str
    boot: str
    until: int


class Row(NamedTuple):
    """An entry as it is stored, on the branch with the number `branch`.

    `position` is that of the last message up to here: -1 before the first one. An erased row has a
    `seal` in the place of payload and salt. `holes` tells where in the payload which large texts
    belong that are kept apart (see `blobs.py`).
    """

    seq: int
    branch: int
    position: int
    kind: str
    check: int
    link: bytes
    salt: bytes | None
    payload: bytes | None
    holes: bytes | None = None
    seal: bytes | None = None


def erased(row: Row, seal: bytes) -> Row:
    """The row without what it said."""
    check = chain.check(row.seq, row.position, row.kind, None)
    return row._replace(check=check, salt=None, payload=None, holes=None, seal=seal)


@dataclass(slots=True)
class Line:
    """A branch. `base` is how many messages it inherits; `link` is that of its last entry."""

    number: int
    name: str
    parent: int | None
    fork: int
    base: int
    head: int
    count: int
    link: bytes


@dataclass(slots=True)
class Head:
    """A session without its document. Times are microseconds since 1970.

    `branch` is the number of the branch in use, and `branches` is how many there are. `token` is
    that of the last lease, which is free when `owner` is None. `process`, `boot` and `until` tell
    when it is free although nobody gave it back; behind the name of the process may stand those who
    wait for the lease (see `waiting.py`). `marked` is when `expire` found that the session
    had expired.
    """

    number: int
    tenant: str
    id: str
    key: str
    agent: str
    created: int
    updated: int
    ttl: int | None = None
    marked: int | None = None
    seq: int = 0
    branch: int = 0
    branches: int = 1
    token: int = 0
    owner: str | None = None
    process: str = ""
    boot: str = ""
    until: int = 0
    lines: dict[str, Line] = field(default_factory=dict)

    @property
    def stamp(self) -> Stamp:
        """Of the lease."""
        return Stamp(self.process.partition("\n")[0], self.boot, self.until)

    def put_stamp(self, stamp: Stamp) -> None:
        """The lease is had by this process now. Those who wait for it do so still."""
        _, line, waiting = self.process.partition("\n")
        self.process, self.boot, self.until = f"{stamp.process}{line}{waiting}", *stamp[1:]

    def is_expired(self, now: int) -> bool:
        """Whether more than the session's ttl has passed since the last write."""
        return self.ttl is not None and now - self.updated > self.ttl

    def check_alive(self, now: int) -> None:
        """Raise SessionExpired if it has."""
        if self.ttl is not None and self.is_expired(now):
            raise SessionExpired(self.key, time_at(self.updated + self.ttl).isoformat())

    def check_lease(self, lease: Lease) -> None:
        """Raise LeaseLost unless this lease is the one in force."""
        if self.owner is None or self.token != lease.token:
            raise LeaseLost(self.key, self.owner or "")

    def touch(self, now: int) -> None:
        """Something was written: the session's time begins anew."""
        self.updated = now
        self.marked = None


def first_line(id: str, seq: int = 0) -> Line:
    """The branch "main" of a session that holds nothing, behind everything it ever held."""
    return Line(0, MAIN, None, seq, 0, seq, 0, chain.root(id))


def branches_of(lines: dict[str, Line]) -> tuple[Branch, ...]:
    """The branches as a record shows them, in the order in which they were opened."""
    names = {line.number: line.name for line in lines.values()}
    return tuple(
        Branch(
            name=line.name,
            parent=None if line.parent is None else names[line.parent],
            fork=line.fork,
            head=line.head,
            count=line.count,
        )
        for line in sorted(lines.values(), key=lambda line: line.number)
    )


class Stretch(NamedTuple):
    """The part of a path that lies on one branch: seqs above `after` up to `last`.

    `start` is the position of its first message and `stop` the one behind its last.
    """

    branch: int
    name: str
    after: int
    last: int
    start: int
    stop: int


def path(lines: dict[str, Line], line: Line) -> list[Stretch]:
    """The way from the beginning of the log to the end of `line`, branch by branch."""
    by_number = {each.number: each for each in lines.values()}
    last, stop = line.head, line.count
    stretches = []
    while True:
        if last > line.fork:
            stretches.append(Stretch(line.number, line.name, line.fork, last, line.base, stop))
        if line.parent is None:
            return stretches[::-1]
        last, stop, child, line = line.fork, line.base, line, by_number[line.parent]
        if line.number >= child.number:
            raise Corrupt(f"branch {child.name!r}", "it is older than the branch it came from")
