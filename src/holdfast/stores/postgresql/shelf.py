"""The shelf of the PostgreSQL store: one transaction on one connection.

What may be done to a session is decided by the same lines of code as in every other store: plain
functions, which `waiting.py` lets wait for the server.

A shelf that writes locks each session before it looks at anything of it. What was put in is
written at once, but for rows, branches and heads: those go out with `flush`, and whatever reads
rows flushes first, so that everything put is found.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from hashlib import blake2b
from typing import Any, TypeVar
from zlib import crc32

from asyncpg.pgproto.pgproto import UUID

from holdfast.errors import Corrupt
from holdfast.stores.blobs import digests
from holdfast.stores.chain import NewRow, salts
from holdfast.stores.document import Written
from holdfast.stores.head import Head, Line, Row, Stamp, erased
from holdfast.stores.postgresql import search as index
from holdfast.stores.postgresql import statements as sql
from holdfast.stores.postgresql.heads import (
    CLOCK,
    LINE_START,
    Known,
    Place,
    changed,
    head_check,
    line_check,
    name_of,
    read_known,
    read_line,
    read_with_line,
    session_of,
    tenant_of,
)
from holdfast.stores.postgresql.holder import Holder
from holdfast.stores.postgresql.server import Link
from holdfast.stores.postgresql.waiting import spawn, wait
from holdfast.stores.shelf import Fields, Listed, Once, Shelf
from holdfast.stores.values import Appended

_Result = TypeVar("_Result")
_EVER = 2**63 - 1
_MS = timedelta(milliseconds=1)
_READ_STEP = 1_024
_TRY_LOCK = "SELECT pg_try_advisory_xact_lock_shared($1)"
_CLOCK = f"SELECT {sql.CLOCK_MS}"


class PostgresShelf(Shelf):
    """Rows in PostgreSQL.

    `touched` are the sessions that were written to, and `deleted` those that are gone. `writer` is
    what the transaction is known by afterwards, if it has to be looked for.
    """

    def __init__(self, link: Link | None, holder: Holder, writer: Any = None) -> None:
        self._link = link
        self._holder = holder
        self._writer = writer
        self.known: dict[Place, Known] = {}
        self.by_head: dict[int, Known] = {}
        self._listed: dict[int, tuple[str, str, str]] = {}
        self._rows: list[tuple[Known, NewRow]] = []
        self._grown: dict[tuple[Any, int], tuple[Known, Line]] = {}
        self.touched: dict[Any, Known] = {}
        self.deleted: dict[Any, Known] = {}
        self._clock_ms: int | None = None

    async def run(self, function: Callable[["PostgresShelf"], _Result]) -> _Result:
        """What a plain function makes of this shelf; then everything is written."""
        return await spawn(self._run, function)

    def _run(self, function: Callable[["PostgresShelf"], _Result]) -> _Result:
        result = function(self)
        self.flush()
        return result

    # The connection

    def _db(self) -> Any:
        assert self._link is not None
        return self._link.raw

    def _fetch(self, statement: str, *values: Any) -> Sequence[Any]:
        found: Sequence[Any] = wait(self._db().fetch(statement, *values))
        return found

    def _find(self, statement: str, *values: Any) -> Any:
        return wait(self._db().fetchrow(statement, *values))

    def _many(self, statement: str, values: Sequence[Sequence[Any]]) -> None:
        if values:
            wait(self._db().executemany(statement, values))

    def flush(self) -> None:
        """Write what was gathered."""
        if self._rows:
            rows, self._rows = self._rows, []
            self._many(sql.INSERT_ROW, [_new_row(known, row) for known, row in rows])
        if self._grown:
            grown, self._grown = self._grown, {}
            self._many(
                sql.UPDATE_LINE,
                [
                    (
                        *(line.head, line.count, line.link, line_check(known.session, line)),
                        *(known.session, line.number),
                    )
                    for known, line in grown.values()
                ],
            )

    def finish(self) -> None:
        """The last thing in a transaction: heads, and a word to those who watch."""
        self.flush()
        self._many(
            sql.UPDATE_SESSION,
            [(known.version + 1, self._writer, *changed(known)) for known in self.touched.values()],
        )
        for known in (*self.touched.values(), *self.deleted.values()):
            if known.watched > (self._clock_ms or 0):
                self._find("SELECT pg_notify($1, '')", channel_of(known.session))

    def _now_ms(self) -> int:
        """The time by the server's clock, once a transaction."""
        if self._clock_ms is None:
            self._clock_ms = int(self._find(_CLOCK)[0])
        return self._clock_ms

    def _shared(self, tenant: str, row: Sequence[Any]) -> Known:
        """The one Known of this session in this transaction; Corrupt if it is damaged."""
        known = (read_with_line if len(row) > LINE_START else read_known)(tenant, row)
        if self._clock_ms is None:
            self._clock_ms = row[CLOCK]
        return self._remember(self.known.get(known.place) or known)

    def _remember(self, known: Known) -> Known:
        self.known[known.place] = known
        self.by_head[id(known.head)] = known
        return known

    def _at(self, head: Head) -> Known:
        return self.by_head[id(head)]

    # Sessions

    def find(self, tenant: str, id: str) -> Head | None:
        known = self.known.get((tenant, id))
        if known is None:
            known = self._locked(tenant, session_of(tenant, id))
        return None if known is None else known.head

    def find_key(self, tenant: str, key: str) -> Head | None:
        if self._writer is None:
            row = self._find(sql.FIND_NAMED, name_of(tenant, key))
            return None if row is None else self._shared(tenant, row).head
        row = self._find(sql.FIND_NAME, name_of(tenant, key))
        known = None if row is None else self._locked(tenant, row[0])
        return None if known is None else known.head

    def _locked(self, tenant: str, session: Any) -> Known | None:
        """The session, locked if this shelf writes. Nothing else is read with it then: it would be
        as it was before the lock could be had."""
        if self._writer is None:
            row = self._find(sql.FIND_HEADS, [session])
        else:
            row = self._find(sql.LOCK_HEAD, session)
        return None if row is None else self._shared(tenant, row)

    def insert(self, head: Head, document: Written) -> None:
        # A version that no other session of this id ever had, whoever may remember one.
        version = int.from_bytes(os.urandom(6), "big")
        known = Known(head, session_of(head.tenant, head.id), tenant_of(head.tenant), version)
        known.is_complete = True
        name = name_of(head.tenant, head.key)
        self._find(sql.ADD_TENANT, known.tenant, head.tenant.encode())
        self._find(sql.INSERT_NAME, name, known.tenant, known.session)
        row = self._find(
            sql.INSERT_SESSION,
            *(known.session, known.tenant, version, self._writer, 0, 0),
            *(head.id.encode(), head.key.encode(), head.agent.encode(), head.created),
            *(head.updated, head.ttl, head.marked, head.seq, head.branch, head.branches),
            *(head.token, None, b"", b"", 0, head_check(head)),
        )
        head.number = row[0]
        self._remember(known)
        self._find(sql.INSERT_DOCUMENT, known.session, known.tenant, *document)
        for line in head.lines.values():
            self.add_line(head, line)

    def save(self, head: Head) -> None:
        known = self._at(head)
        self.touched[known.session] = known

    def move(self, head: Head) -> None:
        self.save(head)

    def delete(self, head: Head) -> None:
        known = self._at(head)
        self._empty(known)
        self._find(sql.DELETE_DOCUMENT, known.session)
        self._find(sql.DELETE_SESSION, known.session)
        self._find(sql.DELETE_NAME, name_of(head.tenant, head.key))
        self.touched.pop(known.session, None)
        self.deleted[known.session] = known
        del self.known[known.place]

    def document(self, head: Head) -> tuple[bytes, bytes]:
        row = self._find(sql.FIND_DOCUMENT, self._at(head).session)
        if row is None:
            raise Corrupt(f"session {head.key!r}", "its record is missing")
        body, digest = row
        return body, digest

    def save_document(self, head: Head, document: Written) -> None:
        self._find(sql.UPDATE_DOCUMENT, *document, self._at(head).session)

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
        values = [
            *(tenant_of(tenant), -_EVER if since is None else since),
            *(_EVER if until is None else until, *((_EVER, _EVER) if before is None else before)),
            *(() if agent is None else (agent.encode(),)),
        ]
        found: list[Listed] = []
        for row in self._fetch(sql.NEWEST[agent is not None], *values, limit):
            _, number, id, updated, key, of_agent, body, check = row
            shown = _shown(id), _shown(key), _shown(of_agent)
            self._listed[number] = shown
            found.append((number, shown[0], updated, body, check))
        return found

    def names(self, number: int) -> tuple[str, str, str]:
        return self._listed[number]

    def overdue(self, tenant: str, now: int, marked: int, limit: int) -> Sequence[Head]:
        found = []
        for row in self._fetch(sql.OVERDUE, tenant_of(tenant), now, marked, limit):
            with suppress(Corrupt, UnicodeDecodeError):  # what is damaged is not deleted for it
                found.append(self._shared(tenant, row).head)
        return found

    # Branches

    def line(self, head: Head, name: str) -> Line | None:
        return head.lines.get(name) or self.lines(head).get(name)

    def lines(self, head: Head) -> dict[str, Line]:
        known = self._at(head)
        if not known.is_complete:
            for row in self._fetch(sql.FIND_LINES, known.session):
                line = read_line(known, row)
                head.lines.setdefault(line.name, line)
            known.is_complete = True
        return head.lines

    def add_line(self, head: Head, line: Line) -> None:
        known = self._at(head)
        head.lines[line.name] = line
        self._find(
            sql.INSERT_LINE,
            *(known.session, line.number, known.tenant, line.name.encode(), line.parent),
            *(line.fork, line.base, line.head, line.count, line.link),
            line_check(known.session, line),
        )

    def save_line(self, head: Head, line: Line) -> None:
        known = self._at(head)
        self._grown[known.session, line.number] = known, line

    # Entries

    def add_rows(self, head: Head, rows: Sequence[NewRow]) -> None:
        known = self._at(head)
        self._rows += [(known, row) for row in rows]

    def row(self, head: Head, seq: int) -> Row | None:
        self.flush()
        row = self._find(sql.FIND_ROW, self._at(head).session, seq)
        return None if row is None else _row(row)

    def fields(
        self, head: Head, branch: int, after: int, last: int, lowest: int
    ) -> Iterator[Sequence[Fields]]:
        self.flush()
        session = self._at(head).session
        while True:
            found = self._fetch(sql.FIND_FIELDS, session, branch, after, last, lowest, _READ_STEP)
            if found:
                yield found
            if len(found) < _READ_STEP:
                return
            after = found[-1][0]

    def rows(self, head: Head, branch: int, after: int, last: int) -> Iterator[Row]:
        self.flush()
        session = self._at(head).session
        while True:
            found = self._fetch(sql.FIND_ROWS, session, branch, after, last, _READ_STEP)
            yield from map(_row, found)
            if len(found) < _READ_STEP:
                return
            after = found[-1][0]

    def rows_after(self, head: Head, after: int, limit: int) -> Sequence[Row]:
        self.flush()
        return [
            _row(row) for row in self._fetch(sql.FIND_NEWS, self._at(head).session, after, limit)
        ]

    def folds(self, head: Head, branch: int, after: int, last: int) -> Sequence[Row]:
        self.flush()
        session = self._at(head).session
        return [_row(row) for row in self._fetch(sql.FIND_FOLDS, session, branch, after, last)]

    def place(self, head: Head, branch: int, position: int) -> int:
        self.flush()
        row = self._find(sql.FIND_PLACE, self._at(head).session, branch, position)
        return 0 if row is None else int(row[0])

    def erase_rows(self, head: Head, rows: Sequence[tuple[Row, bytes]]) -> None:
        session = self._at(head).session
        self._many(sql.FORGET_WORDS, [(session, row.seq) for row, _ in rows])
        self._many(
            sql.ERASE_ROW,
            [
                (each.check, each.salt, each.payload, each.holes, each.seal, session, each.seq)
                for each in (erased(row, seal) for row, seal in rows)
            ],
        )
        self._many(sql.FORGET_ONCE, [(session, row.seq) for row, _ in rows])
        freed = [(session, digest) for row, _ in rows for digest in digests(row.holes)]
        self._many(sql.LEAVE_BLOB, freed)
        if freed:
            self._find(sql.DELETE_UNUSED_BLOBS, session)

    def clear(self, head: Head) -> None:
        known = self._at(head)
        self._empty(known)
        head.lines.clear()
        known.is_complete, known.chunks = True, None

    def _empty(self, known: Known) -> None:
        self.flush()
        for statement in sql.EVERYTHING:
            self._find(statement, known.session)

    def purge(self) -> None:
        pass  # the bytes of dead rows are the server's until VACUUM: see docs/stores.md

    # Large texts

    def blob(self, head: Head, digest: bytes) -> bytes | None:
        row = self._find(sql.FIND_BLOB, self._at(head).session, digest)
        return None if row is None else bytes(row[0])

    def add_blob(self, head: Head, digest: bytes, data: bytes) -> None:
        known = self._at(head)
        salt = salts(1)[0]
        self._find(sql.ADD_BLOB, known.session, digest, known.tenant, 1, salt, data)

    # Named appends

    def once(self, head: Head, name: str) -> Once | None:
        row = self._find(sql.FIND_ONCE, self._at(head).session, name.encode())
        return None if row is None else _once(head, name, row)

    def named(self, head: Head, after: str, limit: int) -> Sequence[tuple[str, Once]]:
        values = self._at(head).session, after.encode(), limit
        rows = self._fetch(sql.FIND_NAMED_AFTER, *values)
        return [(row[0].decode(), _once(head, row[0].decode(), row[1:])) for row in rows]

    def add_once(self, head: Head, name: str, once: Once) -> None:
        known = self._at(head)
        self._find(sql.INSERT_ONCE, *once_row(known, name, once))

    # Drafts

    def draft(self, head: Head) -> tuple[bytes, list[str]] | None:
        known = self._at(head)
        if known.chunks is None:
            return None
        rows = self._drafts(head, -1)
        known.chunks = rows[-1][0] if rows else None
        if [number for number, _ in rows] != list(range(len(rows))):
            raise Corrupt(f"session {head.key!r}", "a piece of its draft is missing")
        return (rows[0][1], [data.decode() for _, data in rows[1:]]) if rows else None

    def _drafts(self, head: Head, after: int) -> list[tuple[int, bytes]]:
        found = self._fetch(sql.FIND_DRAFT, self._at(head).session, after)
        for number, digest, data in found:
            if draft_digest(head, number, data) != digest:
                raise Corrupt(f"session {head.key!r}", "its draft is not what was written")
        return [(number, data) for number, _, data in found]

    def save_draft(self, head: Head, body: bytes) -> None:
        self.drop_draft(head)
        self._add_draft(self._at(head), 0, body)

    def add_chunk(self, head: Head, text: str) -> None:
        known = self._at(head)
        (last,) = self._find(sql.LAST_CHUNK, known.session)
        self._add_draft(known, (last or 0) + 1, text.encode())
        self.save(head)

    def _add_draft(self, known: Known, number: int, data: bytes) -> None:
        known.chunks = number
        self._find(sql.INSERT_DRAFT, *draft_row(known, number, data))

    def drop_draft(self, head: Head) -> None:
        known = self._at(head)
        known.chunks = None
        self._find(sql.DELETE_DRAFT, known.session)

    def chunks(self, head: Head, after: int) -> Sequence[tuple[int, str]]:
        return [(number, data.decode()) for number, data in self._drafts(head, max(after, 0))]

    # Leases

    def stamp(self, ttl: timedelta) -> Stamp:
        process, boot = wait(self._holder.hold())
        return Stamp(process, boot, self._now_ms() + ttl // _MS)

    def is_over(self, stamp: Stamp) -> bool:
        """By the server's clock; or because the process is gone, if it was known to this server.

        After a failover nobody's lock is there any more, and that says nothing.
        """
        assert self._link is not None
        if self._now_ms() > stamp.until:
            return True
        if not stamp.process or stamp.boot != str(self._link.facts.boot):
            return False
        if self._holder.is_mine(stamp.process):
            return False
        return bool(self._find(_TRY_LOCK, int(stamp.process, 16) - 2**63)[0])

    # The rest

    def search(
        self, tenant: str, query: str, session: int | None, before: int | None, limit: int
    ) -> Sequence[tuple[int, Head, Row]]:
        alone = next(
            (each.session for each in self.known.values() if each.head.number == session), None
        )
        wanted = index.query_of(tenant, query, alone)
        if not wanted:
            return []
        hits = self._fetch(sql.FIND_WORDS, wanted, _EVER if before is None else before, limit)
        sessions = {
            row[0]: self._shared(tenant, row).head
            for row in self._fetch(sql.FIND_HEADS, list({hit[1] for hit in hits}))
        }
        places = [hit[1] for hit in hits], [hit[2] for hit in hits]
        rows = {(row[0], row[1]): _row(row[1:]) for row in self._fetch(sql.FIND_ROWS_AT, *places)}
        return [
            (rid, sessions[at], rows[at, seq])
            for rid, at, seq in hits
            if at in sessions and (at, seq) in rows
        ]

    def index(self, tenant: str, after: UUID, limit: int) -> UUID | None:
        """Index the next sessions that are behind; the last of them, or None at the end of all."""
        behind = self._fetch(sql.BEHIND, tenant_of(tenant), after, limit)
        for row in behind:
            with suppress(Corrupt, UnicodeDecodeError):
                known = self._locked(tenant, row[0])
                if known is not None and known.indexed < known.head.seq:
                    self._index(known)
        return behind[-1][0] if len(behind) == limit else None

    def _index(self, known: Known) -> None:
        after, last = known.indexed, known.head.seq
        while True:
            rows = self._fetch(sql.UNREAD, known.session, after, last, _READ_STEP)
            said = []
            for rid, *fields in rows:
                row = _row(fields)
                if found := index.words_of(self, known, row):
                    said.append((known.session, row.seq, rid, found))
            self._many(sql.ADD_WORDS, said)
            if len(rows) < _READ_STEP:
                break
            after = rows[-1][1]
        self._find(sql.SET_INDEXED, last, known.session)
        known.indexed = last

    def clock_seen(self, tenant: str) -> int | None:
        row = self._find(sql.FIND_CLOCK, tenant_of(tenant))
        return None if row is None else int(row[0])

    def save_clock_seen(self, tenant: str, now: int) -> None:
        self._find(sql.SAVE_CLOCK, tenant_of(tenant), now)


def _row(row: Sequence[Any]) -> Row:
    seq, branch, position, kind, *rest = row
    return Row(seq, branch, position, kind.decode(), *rest)


def _new_row(known: Known, row: NewRow) -> tuple[Any, ...]:
    _, seq, branch, position, kind, *rest = row
    return (known.session, seq, known.tenant, branch, position, kind.encode(), *rest)


def _shown(data: bytes) -> str:
    return data.decode(errors="replace")


def channel_of(session: Any) -> str:
    """The channel on which writes to a session are told."""
    return f"holdfast_{UUID(session.bytes).hex}"


def once_row(known: Known, name: str, once: Once) -> tuple[Any, ...]:
    """What INSERT_ONCE binds."""
    first, last, branch, messages = once.result
    return (
        *(known.session, name.encode(), known.tenant, once.salt, once.digest, first, last),
        *(branch.encode(), messages, once_check(known.head, name, once.result)),
    )


def _once(head: Head, name: str, row: Sequence[Any]) -> Once:
    """What is known of a named append; Corrupt if it is damaged."""
    salt, digest, first, last, branch, messages, check = row
    result = Appended(first, last, branch.decode(), messages)
    if once_check(head, name, result) != check:
        raise Corrupt(f"session {head.key!r}", "a named append is not what was written")
    return Once(salt, digest, result)


def once_check(head: Head, name: str, result: Appended) -> int:
    """What the row of a named append is told by."""
    return crc32(repr((head.tenant, head.id, name, *result)).encode())


def draft_row(known: Known, number: int, data: bytes) -> tuple[Any, ...]:
    """What INSERT_DRAFT binds."""
    digest = draft_digest(known.head, number, data)
    return known.session, number, known.tenant, digest, data


def draft_digest(head: Head, number: int, data: bytes) -> bytes:
    """What a piece of a draft is told by."""
    place = f"{head.id} {head.token} {number}".encode()
    return blake2b(data, digest_size=16, key=blake2b(place, digest_size=32).digest()).digest()
