"""What a store has to bring along: a shelf, on which rows are found, put and taken away.

A shelf is used inside one transaction. It has no opinions: whether an append is allowed, what a
branch is, who may have the lease and how an entry is read back is decided in `requests.py` and
`views.py`, once for all stores. What was put can be found again at once, in the same transaction.

Heads are shared: `find` gives the same Head object for the same session throughout a
transaction, and what was changed in it counts when `save` was called.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import NamedTuple

from holdfast.stores.chain import NewRow
from holdfast.stores.document import Written
from holdfast.stores.head import Head, Line, Row, Stamp
from holdfast.stores.values import Appended


class Once(NamedTuple):
    """What is remembered of a named append. The digest is None when its content was erased."""

    salt: bytes | None
    digest: bytes | None
    result: Appended


# A session in a list: number, id, when it was last written to, its document, and its check.
Listed = tuple[int, str, int, bytes, int]

# What is read of a long log at first: seq, check and payload, which is None where that is not all
# there is of the entry: it was erased, or large texts of it are kept apart.
Fields = tuple[int, int, bytes | None]

# What a row of another kind than we write leads to, somewhere in the code that reads it. Every
# store on a disk makes a Corrupt of it.
MISFITS = (
    *(TypeError, ValueError, AttributeError, OverflowError, LookupError, AssertionError),
    *(StopIteration, RecursionError),
)


class Shelf(ABC):
    """The rows of all tenants, inside one transaction."""

    # Sessions

    @abstractmethod
    def find(self, tenant: str, id: str) -> Head | None:
        """The session with this id."""

    @abstractmethod
    def find_key(self, tenant: str, key: str) -> Head | None:
        """The session with this key."""

    @abstractmethod
    def insert(self, head: Head, document: Written) -> None:
        """A new session with its document and the lines in it; gives `head.number` its value."""

    @abstractmethod
    def save(self, head: Head) -> None:
        """What was changed in a Head counts."""

    @abstractmethod
    def move(self, head: Head) -> None:
        """What was changed in a Head counts, and that was seq and the time of the last write."""

    @abstractmethod
    def delete(self, head: Head) -> None:
        """Everything of a session is gone."""

    @abstractmethod
    def document(self, head: Head) -> tuple[bytes, bytes]:
        """The document and its digest."""

    @abstractmethod
    def save_document(self, head: Head, document: Written) -> None:
        """Another document for this session."""

    @abstractmethod
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
        """Sessions by (updated, number), the greatest first; only those below `before`."""

    @abstractmethod
    def names(self, number: int) -> tuple[str, str, str]:
        """Id, key and agent of a session in a list, as they stand there, damaged or not."""

    @abstractmethod
    def overdue(self, tenant: str, now: int, marked: int, limit: int) -> Sequence[Head]:
        """Sessions whose ttl was over before `now`, and that need to be marked or deleted: those
        without a mark, those marked before `marked`, and those marked after `now`."""

    # Branches

    @abstractmethod
    def line(self, head: Head, name: str) -> Line | None:
        """The branch of this name; it is also in `head.lines` then."""

    @abstractmethod
    def lines(self, head: Head) -> dict[str, Line]:
        """All branches: `head.lines`, complete."""

    @abstractmethod
    def add_line(self, head: Head, line: Line) -> None:
        """A new branch."""

    @abstractmethod
    def save_line(self, head: Head, line: Line) -> None:
        """What was changed in a branch counts."""

    # Entries

    @abstractmethod
    def add_rows(self, head: Head, rows: Sequence[NewRow]) -> None:
        """New entries, in order."""

    @abstractmethod
    def row(self, head: Head, seq: int) -> Row | None:
        """One entry."""

    @abstractmethod
    def fields(
        self, head: Head, branch: int, after: int, last: int, lowest: int
    ) -> Iterator[Sequence[Fields]]:
        """Of the entries of one branch with seqs above `after` up to `last`, those at positions
        from `lowest` on, in order, and some at a time."""

    @abstractmethod
    def rows(self, head: Head, branch: int, after: int, last: int) -> Iterator[Row]:
        """The same entries, whatever their position, and all there is of them."""

    @abstractmethod
    def rows_after(self, head: Head, after: int, limit: int) -> Sequence[Row]:
        """The next entries behind a seq, on whatever branch."""

    @abstractmethod
    def folds(self, head: Head, branch: int, after: int, last: int) -> Sequence[Row]:
        """The folds among `rows`, found without going over the others."""

    @abstractmethod
    def place(self, head: Head, branch: int, position: int) -> int:
        """The seq of an entry on the branch before `position`, as close to it as is known, or 0."""

    @abstractmethod
    def erase_rows(self, head: Head, rows: Sequence[tuple[Row, bytes]]) -> None:
        """Put seals in the place of the payloads of these rows, and of what was made of them."""

    @abstractmethod
    def clear(self, head: Head) -> None:
        """All entries, branches, `once` names and drafts of a session are gone."""

    @abstractmethod
    def purge(self) -> None:
        """What was removed, now or before, is to be in no file when this is committed."""

    # Large texts

    @abstractmethod
    def blob(self, head: Head, digest: bytes) -> bytes | None:
        """A large text that was kept apart."""

    @abstractmethod
    def add_blob(self, head: Head, digest: bytes, data: bytes) -> None:
        """Keep a large text, or count one more reference to it."""

    # Named appends

    @abstractmethod
    def once(self, head: Head, name: str) -> Once | None:
        """What is known of the append of this name."""

    @abstractmethod
    def add_once(self, head: Head, name: str, once: Once) -> None:
        """Remember it."""

    @abstractmethod
    def named(self, head: Head, after: str, limit: int) -> Sequence[tuple[str, Once]]:
        """The next named appends behind the name `after`, in the order of code points."""

    # Drafts

    @abstractmethod
    def draft(self, head: Head) -> tuple[bytes, list[str]] | None:
        """The input of the draft and its chunks."""

    @abstractmethod
    def save_draft(self, head: Head, body: bytes) -> None:
        """A new draft without chunks, in the place of any other."""

    @abstractmethod
    def add_chunk(self, head: Head, text: str) -> None:
        """One more chunk."""

    @abstractmethod
    def drop_draft(self, head: Head) -> None:
        """Neither draft nor chunks."""

    @abstractmethod
    def chunks(self, head: Head, after: int) -> Sequence[tuple[int, str]]:
        """The chunks with numbers above `after`, in order."""

    # Leases

    @abstractmethod
    def stamp(self, ttl: timedelta) -> Stamp:
        """This process, from now on for so long."""

    @abstractmethod
    def is_over(self, stamp: Stamp) -> bool:
        """Whether that process is gone, or that time over."""

    # The rest

    @abstractmethod
    def search(
        self, tenant: str, query: str, session: int | None, before: int | None, limit: int
    ) -> Sequence[tuple[int, Head, Row]]:
        """Messages that hold every word, newest first, each with a number to go on from."""

    @abstractmethod
    def clock_seen(self, tenant: str) -> int | None:
        """The time of the last `expire`."""

    @abstractmethod
    def save_clock_seen(self, tenant: str, now: int) -> None:
        """Remember it."""
