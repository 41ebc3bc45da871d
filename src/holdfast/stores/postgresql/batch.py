"""Group commit: the appends of many callers, to many sessions, in one statement.

A statement is a transaction by itself, so a batch costs one round trip and one sync of the disk,
however many turns it holds. What it writes was decided on heads that may be old by now; so each
session is written to only if it is still at the version on which was decided, and the statement
says which were. Sessions are locked in the order of their ids: no two machines wait for each other.
Where one stays locked for long, the statement is run again without those that are.

The statement has two forms: the short one for plain appends, each session on one branch, and one
that also knows several branches, named appends, large texts, and drafts.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.entries import KINDS
from holdfast.errors import HoldfastError
from holdfast.stores.chain import NewRow, salts
from holdfast.stores.head import Head, Line
from holdfast.stores.postgresql.heads import NOT_LOOKED, Known, Place, head_check, line_check
from holdfast.stores.postgresql.holder import Holder
from holdfast.stores.postgresql.shelf import PostgresShelf, draft_row, once_row
from holdfast.stores.postgresql.statements import CLOCK_MS
from holdfast.stores.shelf import Once


class _Kinds(dict[str, bytes]):
    """Kinds of entries as bytes; those that we know are at hand."""

    def __missing__(self, kind: str) -> bytes:
        return kind.encode()


_KINDS = _Kinds({kind: kind.encode() for kind in KINDS})
_SHORT = """
WITH locked AS MATERIALIZED (
    SELECT s.tenant, s.watched, w.* FROM unnest($1::uuid[], $2::bigint[], $3::bigint[],
        $4::bigint[], $5::bigint[], $6::bytea[], $7::bigint[], $8::int[], $9::bigint[],
        $10::bigint[], $11::bytea[], $12::bigint[])
        AS w(session, version, updated, seq, marked, owner, "check", number, head, count, link,
            line_check)
    JOIN holdfast.sessions s ON s.session = w.session AND s.version = w.version
    ORDER BY s.session FOR NO KEY UPDATE OF s{skip}
), moved AS (
    UPDATE holdfast.sessions s SET version = l.version + 1, writer = $13::uuid,
        updated = l.updated, seq = l.seq, marked = l.marked, owner = l.owner, "check" = l."check"
    FROM locked l WHERE s.session = l.session
), grown AS (
    UPDATE holdfast.branches b SET head = l.head, count = l.count, link = l.link,
        "check" = l.line_check
    FROM locked l WHERE b.session = l.session AND b.number = l.number
), added AS (
    INSERT INTO holdfast.entries (session, seq, tenant, branch, position, kind, "check", link,
        salt, payload)
    SELECT e.session, e.seq, l.tenant, l.number, e.position, e.kind, e."check", e.link, e.salt,
        e.payload
    FROM unnest($14::uuid[], $15::bigint[], $16::bigint[], $17::bytea[], $18::bigint[],
        $19::bytea[], $20::bytea[], $21::bytea[])
        AS e(session, seq, position, kind, "check", link, salt, payload)
    JOIN locked l ON l.session = e.session ORDER BY e.session, e.seq
)
"""
_LONG = """
WITH wanted AS (
    SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[],
        $6::bytea[], $7::bigint[]) AS w(session, version, updated, seq, marked, owner, "check")
), locked AS MATERIALIZED (
    SELECT s.session, s.tenant, s.watched FROM holdfast.sessions s
    JOIN wanted w ON s.session = w.session AND s.version = w.version
    WHERE {is_new} ORDER BY s.session FOR NO KEY UPDATE OF s{skip}
), moved AS (
    UPDATE holdfast.sessions s SET version = s.version + 1, writer = $8::uuid,
        updated = w.updated, seq = w.seq, marked = w.marked, owner = w.owner, "check" = w."check"
    FROM wanted w JOIN locked l ON l.session = w.session WHERE s.session = w.session
), grown AS (
    UPDATE holdfast.branches b SET head = g.head, count = g.count, link = g.link,
        "check" = g."check"
    FROM unnest($9::uuid[], $10::int[], $11::bigint[], $12::bigint[], $13::bytea[], $14::bigint[])
        AS g(session, number, head, count, link, "check")
    JOIN locked l ON l.session = g.session WHERE b.session = g.session AND b.number = g.number
), added AS (
    INSERT INTO holdfast.entries (session, seq, tenant, branch, position, kind, "check", link,
        salt, payload, holes)
    SELECT e.session, e.seq, l.tenant, e.branch, e.position, e.kind, e."check", e.link, e.salt,
        e.payload, e.holes
    FROM unnest($15::uuid[], $16::bigint[], $17::int[], $18::bigint[], $19::bytea[], $20::bigint[],
        $21::bytea[], $22::bytea[], $23::bytea[], $24::bytea[])
        AS e(session, seq, branch, position, kind, "check", link, salt, payload, holes)
    JOIN locked l ON l.session = e.session ORDER BY e.session, e.seq
), {more}
"""
_IS_NEW = """NOT EXISTS (
        SELECT FROM unnest($25::uuid[], $26::bytea[]) AS x(session, name)
        JOIN holdfast.once o ON o.session = x.session AND o.name = x.name
        WHERE x.session = s.session)"""
_MORE = """named AS (
    INSERT INTO holdfast.once (session, name, tenant, salt, digest, first, last, branch, messages,
        "check")
    SELECT o.* FROM unnest($25::uuid[], $26::bytea[], $27::uuid[], $28::bytea[], $29::bytea[],
        $30::bigint[], $31::bigint[], $32::bytea[], $33::bigint[], $34::bigint[])
        AS o(session, name, tenant, salt, digest, first, last, branch, messages, "check")
    JOIN locked l ON l.session = o.session
), said AS (
    INSERT INTO holdfast.drafts (session, number, tenant, digest, data)
    SELECT d.* FROM unnest($35::uuid[], $36::int[], $37::uuid[], $38::bytea[], $39::bytea[])
        AS d(session, number, tenant, digest, data) JOIN locked l ON l.session = d.session
), kept AS (
    INSERT INTO holdfast.blobs AS b (session, digest, tenant, count, salt, data)
    SELECT k.* FROM unnest($40::uuid[], $41::bytea[], $42::uuid[], $43::bigint[], $44::bytea[],
        $45::bytea[]) AS k(session, digest, tenant, count, salt, data)
    JOIN locked l ON l.session = k.session
    ON CONFLICT (session, digest) DO UPDATE SET count = b.count + excluded.count
), dropped AS (
    DELETE FROM holdfast.drafts d USING unnest($46::uuid[]) AS x(session)
    JOIN locked l ON l.session = x.session WHERE d.session = x.session
)"""
_TELL = """SELECT l.session{fast}, CASE WHEN l.watched > {clock} THEN
    pg_notify('holdfast_' || replace(l.session::text, '-', ''), '') END FROM locked l"""


_FAST = ", set_config('synchronous_commit', 'off', true)"  # does not wait for the disk


def _written(statement: str, *, fast: str = "", skip: str = "") -> str:
    whole = statement.format(is_new=_IS_NEW, more=_MORE, skip=skip)
    return whole + _TELL.format(clock=CLOCK_MS, fast=fast)


SHORT, SHORT_SKIPPING = (_written(_SHORT, skip=skip) for skip in ("", " SKIP LOCKED"))
LONG, LONG_SKIPPING = (_written(_LONG, skip=skip) for skip in ("", " SKIP LOCKED"))
LONG_FAST, LONG_FAST_SKIPPING = (
    _written(_LONG, fast=_FAST, skip=skip) for skip in ("", " SKIP LOCKED")
)


class Elsewhere(Exception):
    """A request needs more than what is known here: it gets a transaction of its own."""


class BatchShelf(PostgresShelf):
    """What requests decide on heads that are known, gathered for one statement.

    `damaged` is what is wrong with sessions that cannot be read.
    """

    def __init__(
        self, known: Mapping[Place, Known], damaged: Mapping[Place, HoldfastError], holder: Holder
    ) -> None:
        super().__init__(None, holder)
        for each in known.values():
            self._remember(each)
        self._damaged = damaged
        self._named: list[tuple[Any, ...]] = []
        self._said: list[tuple[Any, ...]] = []
        self._kept: dict[tuple[Any, bytes], list[Any]] = {}
        self._dropped: dict[Any, None] = {}

    def _db(self) -> Any:
        raise Elsewhere

    def find(self, tenant: str, id: str) -> Head | None:
        known = self.known.get((tenant, id))
        if known is not None:
            return known.head
        if (tenant, id) in self._damaged:
            raise self._damaged[tenant, id]
        return None

    def once(self, head: Head, name: str) -> Once | None:
        if any(row[0] == self._at(head).session and row[1] == name.encode() for row in self._named):
            raise Elsewhere  # twice in one batch: the second finds the first when it is written
        return None  # the statement sees to it

    def add_once(self, head: Head, name: str, once: Once) -> None:
        self._named.append(once_row(self._at(head), name, once))

    def add_blob(self, head: Head, digest: bytes, data: bytes) -> None:
        known = self._at(head)
        kept = self._kept.setdefault(
            (known.session, digest), [known.session, digest, known.tenant, 0, b"", data]
        )
        kept[3] += 1
        kept[4] = kept[4] or salts(1)[0]

    def add_chunk(self, head: Head, text: str) -> None:
        known = self._at(head)
        if known.chunks == NOT_LOOKED:
            raise Elsewhere
        known.chunks = (known.chunks or 0) + 1
        self._said.append(draft_row(known, known.chunks, text.encode()))
        self.save(head)

    def drop_draft(self, head: Head) -> None:
        known = self._at(head)
        if known.chunks is not None:
            self._dropped[known.session] = None
            # The statement does not see what it puts in itself.
            self._said = [row for row in self._said if row[0] != known.session]
            known.chunks = None

    def flush(self) -> None:
        pass

    def statement(self, writer: Any, *, is_fast: bool, is_skipping: bool) -> tuple[str, list[Any]]:
        """The statement that writes all this, and what it binds. A fast one waits for no disk, and
        one that is skipping for no lock."""
        lines = {known.session: line for known, line in self._grown.values()}
        more = self._named or self._said or self._kept or self._dropped
        if not more and len(lines) == len(self._grown):
            return (SHORT_SKIPPING if is_skipping else SHORT), self._short(writer, lines)
        if is_skipping:
            return (LONG_FAST_SKIPPING if is_fast else LONG_SKIPPING), self._long(writer)
        return (LONG_FAST if is_fast else LONG), self._long(writer)

    def _short(self, writer: Any, lines: Mapping[Any, Line]) -> list[Any]:
        heads = [_head(known) + _end(known, lines) for known in self.touched.values()]
        columns = _rows(self._rows)
        del columns[9], columns[2]  # no holes, and the branch is that of the session
        return [*_columns(heads, 12), writer, *columns]

    def _long(self, writer: Any) -> list[Any]:
        return [
            *_columns([_head(known) for known in self.touched.values()], 7),
            writer,
            *_columns([_line(*each) for each in self._grown.values()], 6),
            *_rows(self._rows),
            *_columns(self._named, 10),
            *_columns(self._said, 5),
            *_columns(list(self._kept.values()), 6),
            list(self._dropped),
        ]

    def evidence(self) -> dict[Any, tuple[int, bytes]]:
        """For each session, an entry by which it can be told that the batch was written."""
        return {known.session: (row[1], row[6]) for known, row in self._rows}


def _columns(rows: Sequence[Sequence[Any]], width: int) -> list[Any]:
    return list(zip(*rows, strict=True)) if rows else [[] for _ in range(width)]


def _head(known: Known) -> tuple[Any, ...]:
    head = known.head
    owner = None if head.owner is None else head.owner.encode()
    return (
        *(known.session, known.version, head.updated, head.seq, head.marked, owner),
        head_check(head),
    )


def _line(known: Known, line: Line) -> tuple[Any, ...]:
    return (
        *(known.session, line.number, line.head, line.count, line.link),
        line_check(known.session, line),
    )


_NO_LINE = (None,) * 5


def _end(known: Known, lines: Mapping[Any, Line]) -> tuple[Any, ...]:
    """Where the branch ends now that a session was appended to."""
    line = lines.get(known.session)
    return _NO_LINE if line is None else _line(known, line)[1:]


def _rows(rows: Sequence[tuple[Known, NewRow]]) -> list[Any]:
    """The columns of new entries. Every row of a batch passes here, so it is not taken apart."""
    if not rows:
        return [[] for _ in range(10)]
    columns: list[Any] = list(zip(*[row for _, row in rows], strict=True))
    columns[0] = [known.session for known, _ in rows]
    columns[4] = [_KINDS[kind] for kind in columns[4]]
    return columns
