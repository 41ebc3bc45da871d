"""Sessions that are held in memory whole, and the part of a shelf that this makes plain.

The memory store keeps nothing else. A store in files holds the sessions that are in use, writes
down what is changed in them, and makes them anew from its files when it has to.
"""

from abc import abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from holdfast.codec import read_record
from holdfast.messages import Message
from holdfast.stores import views, words
from holdfast.stores.blobs import digests
from holdfast.stores.chain import NewRow
from holdfast.stores.document import Written
from holdfast.stores.head import Head, Line, Row, erased
from holdfast.stores.searchable import text_of
from holdfast.stores.shelf import Fields, Once, Shelf


@dataclass(slots=True)
class Held:
    """All there is of a session. `words` are those of the messages that a search has passed."""

    head: Head
    document: Written
    rows: dict[int, Row] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)  # the seqs of all rows
    seqs: dict[int, list[int]] = field(default_factory=dict)  # by branch
    folds: dict[int, list[int]] = field(default_factory=dict)  # likewise, of the folds alone
    blobs: dict[bytes, tuple[int, bytes]] = field(default_factory=dict)
    once: dict[str, Once] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)  # of `once`, sorted when they are asked for
    draft: bytes | None = None
    chunks: list[str] = field(default_factory=list)
    words: dict[int, frozenset[str]] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        """One more row, behind all others."""
        self.rows[row.seq] = row
        self.order.append(row.seq)
        self.seqs.setdefault(row.branch, []).append(row.seq)
        if row.kind == "fold":
            self.folds.setdefault(row.branch, []).append(row.seq)

    def add_all(self, rows: Sequence[Row]) -> None:
        """Several rows of one branch, behind all others."""
        seqs = [row.seq for row in rows]
        self.rows.update(zip(seqs, rows, strict=True))
        self.order += seqs
        self.seqs.setdefault(rows[0].branch, []).extend(seqs)
        for row in rows:
            if row.kind == "fold":
                self.folds.setdefault(row.branch, []).append(row.seq)

    def some(self, seqs: Sequence[int], after: int, last: int) -> Iterator[Row]:
        """Of the rows with these seqs, those above `after` up to `last`."""
        for at in range(bisect_right(seqs, after), bisect_right(seqs, last)):
            yield self.rows[seqs[at]]

    def add_blob(self, digest: bytes, data: bytes) -> None:
        """A large text, or one more reference to it."""
        count, _ = self.blobs.get(digest, (0, b""))
        self.blobs[digest] = (count + 1, data)

    def drop_blobs(self, row: Row) -> None:
        """The large texts of a row have a reference less."""
        for digest in digests(row.holes):
            count, data = self.blobs.pop(digest)
            if count > 1:
                self.blobs[digest] = (count - 1, data)

    def empty(self) -> None:
        """Neither entries, branches, named appends, nor a draft."""
        self.head.lines = {}
        for each in (self.rows, self.order, self.seqs, self.folds, self.blobs, self.once):
            each.clear()
        self.names, self.words = [], {}
        self.draft, self.chunks = None, []


class HeldShelf(Shelf):
    """A shelf on sessions that are held in memory."""

    @abstractmethod
    def held(self, number: int) -> Held:
        """All there is of the session with this number, which was found before."""

    # Sessions

    def save(self, head: Head) -> None:
        pass  # the Head that was changed is the one that is kept

    def move(self, head: Head) -> None:
        pass  # likewise

    def document(self, head: Head) -> tuple[bytes, bytes]:
        document = self.held(head.number).document
        return document.body, document.digest

    def save_document(self, head: Head, document: Written) -> None:
        self.held(head.number).document = document

    def names(self, number: int) -> tuple[str, str, str]:
        head = self.held(number).head
        return head.id, head.key, head.agent

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
        self.held(head.number).add_all([Row(*new[1:]) for new in rows])

    def row(self, head: Head, seq: int) -> Row | None:
        return self.held(head.number).rows.get(seq)

    def rows(self, head: Head, branch: int, after: int, last: int) -> Iterator[Row]:
        held = self.held(head.number)
        return held.some(held.seqs.get(branch, []), after, last)

    def fields(
        self, head: Head, branch: int, after: int, last: int, lowest: int
    ) -> Iterator[Sequence[Fields]]:
        yield [
            (row.seq, row.check, row.payload if row.holes is None else None)
            for row in self.rows(head, branch, after, last)
            if row.position >= lowest
        ]

    def rows_after(self, head: Head, after: int, limit: int) -> Sequence[Row]:
        held = self.held(head.number)
        return list(islice(held.some(held.order, after, head.seq), limit))

    def folds(self, head: Head, branch: int, after: int, last: int) -> Sequence[Row]:
        held = self.held(head.number)
        return list(held.some(held.folds.get(branch, []), after, last))

    def place(self, head: Head, branch: int, position: int) -> int:
        held = self.held(head.number)
        seqs = held.seqs.get(branch, [])
        at = bisect_left(seqs, position, key=lambda seq: held.rows[seq].position)
        return seqs[at - 1] if at else 0

    def erase_rows(self, head: Head, rows: Sequence[tuple[Row, bytes]]) -> None:
        held = self.held(head.number)
        for row, seal in rows:
            held.words.pop(row.seq, None)
            held.rows[row.seq] = erased(row, seal)
            held.drop_blobs(row)
        for name, once in held.once.items():
            if any(once.result.first <= row.seq <= once.result.last for row, _ in rows):
                held.once[name] = once._replace(salt=None, digest=None)

    def clear(self, head: Head) -> None:
        self.held(head.number).empty()

    # Large texts

    def blob(self, head: Head, digest: bytes) -> bytes | None:
        found = self.held(head.number).blobs.get(digest)
        return None if found is None else found[1]

    def add_blob(self, head: Head, digest: bytes, data: bytes) -> None:
        self.held(head.number).add_blob(digest, data)

    # Named appends

    def once(self, head: Head, name: str) -> Once | None:
        return self.held(head.number).once.get(name)

    def add_once(self, head: Head, name: str, once: Once) -> None:
        self.held(head.number).once[name] = once

    def named(self, head: Head, after: str, limit: int) -> Sequence[tuple[str, Once]]:
        held = self.held(head.number)
        if len(held.names) != len(held.once):
            held.names = sorted(held.once)
        at = bisect_right(held.names, after)
        return [(name, held.once[name]) for name in held.names[at : at + limit]]

    # Drafts

    def draft(self, head: Head) -> tuple[bytes, list[str]] | None:
        held = self.held(head.number)
        return None if held.draft is None else (held.draft, list(held.chunks))

    def save_draft(self, head: Head, body: bytes) -> None:
        held = self.held(head.number)
        held.draft, held.chunks = body, []

    def add_chunk(self, head: Head, text: str) -> None:
        self.held(head.number).chunks.append(text)

    def drop_draft(self, head: Head) -> None:
        held = self.held(head.number)
        held.draft, held.chunks = None, []

    def chunks(self, head: Head, after: int) -> Sequence[tuple[int, str]]:
        chunks = self.held(head.number).chunks[after:]
        return list(enumerate(chunks, start=after + 1))

    # Search

    def has_words(self, held: Held, seq: int, wanted: list[tuple[str, bool]]) -> bool:
        """Whether a message holds all these words."""
        found = held.words.get(seq)
        if found is None:
            found = held.words[seq] = self._words(held, held.rows[seq])
        return all(
            any(each.startswith(word) for each in found) if is_prefix else word in found
            for word, is_prefix in wanted
        )

    def _words(self, held: Held, row: Row) -> frozenset[str]:
        said = b"" if row.payload is None else views.payload(self, held.head, row)
        entry = read_record(said) if said else None
        return frozenset(words.words(text_of(entry))) if isinstance(entry, Message) else frozenset()


def is_overdue(head: Head, now: int, marked: int) -> bool:
    """Whether a session has expired, and needs to be marked or deleted."""
    is_over = head.ttl is not None and now - head.updated > head.ttl
    return is_over and (head.marked is None or not marked <= head.marked <= now)
