"""A session on its way out: a part of it at one moment, with everything that another store needs.

What is read is held against its check. A log without gaps is known to be whole by its seqs; where
one is left out, the chain tells whether an entry is missing there.
"""

from collections.abc import Sequence

from holdfast.codec import read_record, read_records
from holdfast.entries import Entry
from holdfast.errors import Corrupt, FormatTooNew
from holdfast.stores import chain, views
from holdfast.stores.document import time_at
from holdfast.stores.head import Head, Row
from holdfast.stores.shelf import Shelf
from holdfast.stores.values import Named, Origin, Part, Stored

BYTES_MAX = 8 * 1024 * 1024  # of entries, after which a part ends


def export(shelf: Shelf, head: Head, after: int, limit: int) -> Part:
    """The part of a session behind a seq."""
    document = views.document(shelf, head)
    record = views.record_without_folds(shelf, head)
    rows = shelf.rows_after(head, after, limit) if limit else ()
    entries = _entries(shelf, head, rows)
    is_end = bool(limit) and len(entries) == len(rows) < limit
    _check_gaps(shelf, head, after, [each.seq for each in entries], is_end=is_end)
    copied = document.copied
    origin = None if copied is None else Origin(time_at(copied[0]), copied[1])
    return Part(record, entries, (), origin)


def names(shelf: Shelf, head: Head, after: str, limit: int) -> tuple[Named, ...]:
    """Named appends, behind a name."""
    return tuple(
        Named(name, each.result, each.salt, each.digest)
        for name, each in shelf.named(head, after, limit)
    )


def _entries(shelf: Shelf, head: Head, rows: Sequence[Row]) -> tuple[Stored, ...]:
    """What these rows say, up to so many bytes."""
    names = {line.number: line.name for line in head.lines.values()}
    said: list[bytes | None] = []
    size = 0
    for row in rows:
        whole = None if row.payload is None else views.payload(shelf, head, row)
        is_right = chain.check(row.seq, row.position, row.kind, whole) == row.check
        if not is_right or row.branch not in names:
            raise Corrupt(views.where(head, row.seq), "it is not what was written")
        said.append(whole)
        size += 0 if whole is None else len(whole)
        if size > BYTES_MAX:
            break
    entries = iter(_read(head, rows, [each for each in said if each is not None]))
    return tuple(
        Stored(
            row.seq,
            max(row.position, 0),
            names[row.branch],
            row.kind,
            None if whole is None else next(entries),
        )
        for row, whole in zip(rows, said, strict=False)
    )


def _read(head: Head, rows: Sequence[Row], said: Sequence[bytes]) -> Sequence[Entry]:
    try:
        return read_records(said)
    except (Corrupt, FormatTooNew):  # one of them: which?
        seqs = [row.seq for row in rows if row.payload is not None]
        places = [views.where(head, seq) for seq in seqs]
        return [read_record(each, where) for each, where in zip(said, places, strict=False)]


def _check_gaps(shelf: Shelf, head: Head, after: int, seqs: Sequence[int], *, is_end: bool) -> None:
    """Where a seq is left out, an entry may be missing; the chain tells."""
    first = max(after, views.root_of(head.lines, head).fork) + 1
    last = seqs[-1] if seqs else first - 1
    is_dense = last - first + 1 == len(seqs)
    if is_dense and (not is_end or last >= head.seq):
        return
    _, problems = views.problems(shelf, head)
    if problems:
        found = problems[0]
        raise Corrupt(views.where(head, found.seq), found.what)
