"""The shelf of the SQLite store: one transaction on one connection.

What appends do most is gathered and written together: `fetch` loads the heads of a whole batch
with one SELECT, and rows, heads and branches that were saved go out in bulk with `flush`. Whatever
reads rows flushes first, so that everything put is found.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from hashlib import blake2b
from itertools import chain
from typing import Any
from zlib import crc32

from holdfast.errors import Corrupt
from holdfast.stores import views
from holdfast.stores.blobs import digests, fill
from holdfast.stores.chain import NewRow, salts
from holdfast.stores.document import Written
from holdfast.stores.head import Head, Line, Row, Stamp, erased
from holdfast.stores.owners import Owners, moment
from holdfast.stores.shelf import Fields, Listed, Once, Shelf
from holdfast.stores.sqlite import search as index
from holdfast.stores.sqlite import statements as sql
from holdfast.stores.sqlite.heads import Heads, head_check, line_check, read_head, read_line
from holdfast.stores.sqlite.many import (
    INSERT_DRAFTS,
    INSERT_PLAIN_ROWS,
    ROWS_AT_ONCE,
    find_heads,
)
from holdfast.stores.sqlite.wiping import write_anew
from holdfast.stores.values import Appended

Piece = tuple[int, int, bytearray, bytearray]  # session, number, digest, data
_EVER = 2**63 - 1
_MS = timedelta(milliseconds=1)
_FETCH_MAX = 256
_READ_STEP = 512
_flatten = chain.from_iterable
_FIELDS = 18  # of a Head and its check, in a row that goes on with a branch
_COLUMNS = 10  # of a NewRow; the last one is its holes
_BYTES = (6, 7, 8)  # those that hold bytes: link, salt, payload


class SQLiteShelf(Shelf):
    """Rows in SQLite.

    `written` counts the rows that were written. `is_removing` tells that something was removed,
    `is_purging` that no file may hold it any more, and `removed` are the salts of such rows.
    """

    def __init__(self, db: sqlite3.Connection, owners: Owners, heads: Heads | None = None) -> None:
        self._db = db
        self._owners = owners
        known = Heads() if heads is None else heads
        self._heads = known.by_id
        self._all_lines = known.complete
        self._chunks = known.chunks
        self._damaged: dict[tuple[str, str], Corrupt] = {}
        self._rows: list[NewRow] = []
        self._moved: dict[int, Head] = {}
        self._saved: dict[int, Head] = {}
        self._grown: dict[tuple[int, int], Line] = {}
        self._said: dict[int, list[Piece]] = {}  # by session: more of its draft
        self._cursors: list[sqlite3.Cursor] = []
        self.is_removing = False
        self.is_purging = False
        self.removed: list[bytes] = []
        self.written = 0

    def fetch(self, sessions: Iterable[tuple[str, str]]) -> None:
        """Load these heads, by tenant and id, as far as they are not known, and their branches."""
        wanted = list({id: None for tenant, id in sessions if (tenant, id) not in self._heads})
        for start in range(0, len(wanted), _FETCH_MAX):
            some = wanted[start : start + _FETCH_MAX]
            size = 1 << (len(some) - 1).bit_length()  # few sizes: few statements to prepare
            some += some[:1] * (size - len(some))
            for row in self._db.execute(find_heads(size), some):
                try:
                    head = self._shared(row[:_FIELDS])
                    if row[_FIELDS] is not None:
                        line = read_line(head, row[_FIELDS:])
                        head.lines.setdefault(line.name, line)
                except Corrupt as error:  # told to who asks for it, and to nobody else
                    self._damaged[row[1], row[2]] = error

    def settle(self) -> None:
        """End every SELECT that was not read to its end: it would keep the old state in sight."""
        while self._cursors:
            self._cursors.pop().close()

    def flush(self) -> None:
        """Write what was gathered."""
        if self._rows:
            rows, self._rows = self._rows, []
            self.written += len(rows)
            self._insert(rows)
        if self._said:
            said, self._said = self._said, {}
            self._insert_drafts([piece for pieces in said.values() for piece in pieces])
        if self._grown:
            grown, self._grown = self._grown, {}
            self._db.executemany(
                sql.UPDATE_LINE,
                [
                    (
                        line.head,
                        line.count,
                        bytearray(line.link),
                        line_check(place[0], line),
                        *place,
                    )
                    for place, line in grown.items()
                ],
            )
        if self._moved:
            moved, self._moved = self._moved, {}
            self.written += len(moved)
            self._db.executemany(
                sql.MOVE_SESSION,
                [
                    (head.updated, head.seq, head_check(head), head.number)
                    for head in moved.values()
                ],
            )
        if self._saved:
            saved, self._saved = self._saved, {}
            self.written += len(saved)
            self._db.executemany(sql.UPDATE_SESSION, [_saved(head) for head in saved.values()])

    def _insert(self, rows: list[NewRow]) -> None:
        """Many rows go into one statement, which costs less, and during which others can run.

        The driver looks for an adapter for each `bytes` and each None that it binds, and finds
        none, which takes longer than to bind it; not so for a bytearray.
        """
        values: list[Any] = list(_flatten(rows))
        if any(values[_COLUMNS - 1 :: _COLUMNS]):  # holes: seldom
            self._db.executemany(sql.INSERT_ROW, rows)
            return
        del values[_COLUMNS - 1 :: _COLUMNS]
        for column in _BYTES:
            values[column :: _COLUMNS - 1] = map(bytearray, values[column :: _COLUMNS - 1])
        at, step = 0, (_COLUMNS - 1) * ROWS_AT_ONCE
        while len(values) - at >= step:
            self._db.execute(INSERT_PLAIN_ROWS, values[at : at + step])
            at += step
        while at < len(values):
            self._db.execute(sql.INSERT_PLAIN_ROW, values[at : at + _COLUMNS - 1])
            at += _COLUMNS - 1

    def _insert_drafts(self, pieces: list[Piece]) -> None:
        """The same for drafts and what was said of them, which are smaller and not as many."""
        at = 0
        for count, statement in INSERT_DRAFTS:
            while len(pieces) - at >= count:
                self._db.execute(statement, [*_flatten(pieces[at : at + count])])
                at += count

    def latest(self) -> int:
        """The rid of the latest entry."""
        return index.latest(self._db)

    def unindexed(self, goal: int) -> int:
        """How many entries up to the rid `goal`, at most, are not in the search index yet."""
        return index.pending(self._db, goal)

    def index(self, limit: int) -> int:
        """Index some more entries; how many it went over."""
        self.flush()
        done = index.fill(self._db, limit, self._record_at)
        if done < limit:
            index.purge(self._db)  # of what was deleted meanwhile, now that there is time
        return done

    def _record_at(self, rid: int, payload: bytes) -> bytes:
        holes, session = self._db.execute(sql.FIND_HOLES, (rid,)).fetchone()
        return fill(payload, holes, lambda digest: self._blob(session, digest), f"row {rid}")

    def damage(self) -> list[str]:
        """What SQLite itself finds wrong with the file."""
        found = [str(row[0]) for row in self._db.execute("PRAGMA integrity_check")]
        strays = self._db.execute("PRAGMA foreign_key_check").fetchall()
        return [each for each in found if each != "ok"] + [
            f"row {row} of table {table} belongs to no session" for table, row, *_ in strays
        ]

    def _shared(self, fields: Sequence[object]) -> Head:
        """The one Head of this session in this transaction; Corrupt if it is damaged."""
        head = read_head(fields)
        return self._heads.setdefault((head.tenant, head.id), head)

    # Sessions

    def find(self, tenant: str, id: str) -> Head | None:
        place = (tenant, id)
        if place not in self._heads:
            self.fetch([place])
        if self._damaged and place in self._damaged:
            raise self._damaged[place]
        return self._heads.get(place)

    def find_key(self, tenant: str, key: str) -> Head | None:
        row = self._db.execute(sql.FIND_KEY, (tenant, key)).fetchone()
        return None if row is None else self._shared(row)

    def insert(self, head: Head, document: Written) -> None:
        agent, *moved, _ = _saved(head)
        values = (head.tenant, head.id, head.key, agent, head.created, *moved)
        done = self._db.execute(sql.INSERT_SESSION, values)
        assert done.lastrowid is not None
        head.number = done.lastrowid
        self.save(head)  # its check needs the number
        self._heads[head.tenant, head.id] = head
        self._all_lines.add(head.number)
        self._db.execute(sql.INSERT_DOCUMENT, (head.number, *document))
        for line in head.lines.values():
            self.add_line(head, line)

    def save(self, head: Head) -> None:
        self._saved[head.number] = head

    def move(self, head: Head) -> None:
        if head.number not in self._saved:
            self._moved[head.number] = head

    def delete(self, head: Head) -> None:
        self._empty(head)
        if index.is_small(self._db):
            index.purge(self._db)
        self.is_removing = True
        self._db.execute(sql.DELETE_SESSION, (head.number,))
        self._moved.pop(head.number, None)
        self._saved.pop(head.number, None)
        self._all_lines.discard(head.number)
        del self._heads[head.tenant, head.id]

    def document(self, head: Head) -> tuple[bytes, bytes]:
        row = self._db.execute(sql.FIND_DOCUMENT, (head.number,)).fetchone()
        if row is None:
            raise Corrupt(f"session {head.key!r}", "its record is missing")
        body, digest = row
        return body, digest

    def save_document(self, head: Head, document: Written) -> None:
        self._db.execute(sql.UPDATE_DOCUMENT, (*document, head.number))

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
        is_bounded = since is not None or until is not None
        values: list[object] = [tenant]
        if agent is not None:
            values.append(agent)
        if is_bounded:
            values += [-_EVER if since is None else since, _EVER if until is None else until]
        values += [*((_EVER, _EVER) if before is None else before), limit]
        return self._even_damaged(sql.NEWEST[agent is not None, is_bounded], values)

    def names(self, number: int) -> tuple[str, str, str]:
        ((id, key, agent),) = self._even_damaged(sql.FIND_NAMES, [number])
        return str(id or ""), str(key or ""), str(agent or "")

    def _even_damaged(self, statement: str, values: Sequence[object]) -> list[Any]:
        """The rows, with text that is none shown as far as it goes."""
        try:
            return self._db.execute(statement, values).fetchall()
        except sqlite3.OperationalError:
            self._db.text_factory = _damaged_text
            try:
                return self._db.execute(statement, values).fetchall()
            finally:
                self._db.text_factory = str

    def tenants(self) -> list[str]:
        """Those who have sessions."""
        return [name for (name,) in self._db.execute(sql.FIND_TENANTS)]

    def overdue(self, tenant: str, now: int, marked: int, limit: int) -> Sequence[Head]:
        self.flush()
        found = []
        for row in self._db.execute(sql.OVERDUE, (tenant, now, marked, now, limit)).fetchall():
            with suppress(Corrupt):  # what is damaged is not deleted for being old
                found.append(self._shared(row))
        return found

    # Branches

    def line(self, head: Head, name: str) -> Line | None:
        if name not in head.lines and head.number not in self._all_lines:
            row = self._db.execute(sql.FIND_LINE, (head.number, name)).fetchone()
            if row is None:  # or the index by which it was looked for is damaged
                return self.lines(head).get(name)
            head.lines[name] = read_line(head, row)
        return head.lines.get(name)

    def lines(self, head: Head) -> dict[str, Line]:
        if head.number not in self._all_lines:
            for row in self._db.execute(sql.FIND_LINES, (head.number,)):
                line = read_line(head, row)
                head.lines.setdefault(line.name, line)
            self._all_lines.add(head.number)
        return head.lines

    def add_line(self, head: Head, line: Line) -> None:
        head.lines[line.name] = line
        self._db.execute(
            sql.INSERT_LINE,
            (
                *(head.number, line.number, line.name, line.parent, line.fork, line.base),
                *(line.head, line.count, line.link, line_check(head.number, line)),
            ),
        )

    def save_line(self, head: Head, line: Line) -> None:
        self._grown[head.number, line.number] = line

    # Entries

    def add_rows(self, head: Head, rows: Sequence[NewRow]) -> None:  # noqa: ARG002 - in the rows
        self._rows += rows

    def row(self, head: Head, seq: int) -> Row | None:
        self.flush()
        row = self._db.execute(sql.FIND_ROW, (head.number, seq)).fetchone()
        return None if row is None else Row._make(row)

    def fields(
        self, head: Head, branch: int, after: int, last: int, lowest: int
    ) -> Iterator[Sequence[Fields]]:
        self.flush()
        if head.branches == 1 and lowest < 0:  # whole logs, mostly: each condition costs time
            found = self._db.execute(sql.FIND_ALL_FIELDS, (head.number, after, last))
        else:
            found = self._db.execute(sql.FIND_FIELDS, (head.number, branch, after, last, lowest))
        self._cursors.append(found)
        return iter(lambda: found.fetchmany(_READ_STEP), [])

    def rows(self, head: Head, branch: int, after: int, last: int) -> Iterator[Row]:
        self.flush()
        found = self._db.execute(sql.FIND_ROWS, (head.number, branch, after, last))
        self._cursors.append(found)
        return map(Row._make, found)

    def rows_after(self, head: Head, after: int, limit: int) -> Sequence[Row]:
        self.flush()
        found = self._db.execute(sql.FIND_NEWS, (head.number, after, limit))
        return [Row._make(row) for row in found]

    def folds(self, head: Head, branch: int, after: int, last: int) -> Sequence[Row]:
        self.flush()
        found = self._db.execute(sql.FIND_FOLDS, (head.number, branch, after, last))
        return [Row._make(row) for row in found]

    def place(self, head: Head, branch: int, position: int) -> int:
        self.flush()
        row = self._db.execute(sql.FIND_PLACE, (head.number, branch, position)).fetchone()
        return 0 if row is None else int(row[0])

    def erase_rows(self, head: Head, rows: Sequence[tuple[Row, bytes]]) -> None:
        self._forget_words(head, [row for row, _ in rows])
        self._db.executemany(
            sql.ERASE_ROW,
            [
                (each.check, each.salt, each.payload, each.holes, each.seal, head.number, each.seq)
                for each in (erased(row, seal) for row, seal in rows)
            ],
        )
        self._db.executemany(
            sql.FORGET_ONCE, [(None, None, head.number, row.seq, row.seq) for row, _ in rows]
        )
        self.removed += [row.salt for row, _ in rows if row.salt is not None]
        for digest in (digest for row, _ in rows for digest in digests(row.holes)):
            self._db.execute(sql.COUNT_BLOB, (-1, head.number, digest))
            self.removed += [
                salt for (salt,) in self._db.execute(sql.FIND_UNUSED_BLOB, (head.number, digest))
            ]
            self._db.execute(sql.DELETE_BLOB, (head.number, digest))

    def clear(self, head: Head) -> None:
        self.removed += [salt for (salt,) in self._db.execute(sql.SOME_SALTS, (head.number,))]
        self._empty(head)
        for statement in (sql.DELETE_LINES, sql.DELETE_ONCE, sql.DELETE_DRAFT, sql.DELETE_BLOBS):
            self._db.execute(statement, (head.number,))
        head.lines.clear()
        self._all_lines.add(head.number)

    def _empty(self, head: Head) -> None:
        """Remove all entries of a session, from the log and from the index."""
        self.flush()
        rows = [Row._make(row[1:]) for row in self._db.execute(sql.FIND_ALL, (head.number,))]
        self._forget_words(head, rows)
        self._db.execute(sql.DELETE_ROWS, (head.number,))
        self._chunks.pop(head.number, None)
        index.settle(self._db)

    def _forget_words(self, head: Head, rows: Sequence[Row]) -> None:
        """Take rows out of the search index."""
        said = []
        for row in rows:
            if row.kind == "message" and row.payload is not None:
                (rid,) = self._db.execute(sql.FIND_RID, (head.number, row.seq)).fetchone()
                said.append((rid, head.number, head.tenant, self._words_of(head, row)))
        index.remove(self._db, said)

    def _words_of(self, head: Head, row: Row) -> bytes:
        """The record of a message, for the index; none that can be read where a part is missing."""
        try:
            return views.payload(self, head, row)
        except Corrupt:
            return b""

    def purge(self) -> None:
        index.purge(self._db)
        write_anew(self._db, ("drafts",))  # where some of it may have begun
        self.is_purging = True

    # Large texts

    def blob(self, head: Head, digest: bytes) -> bytes | None:
        return self._blob(head.number, digest)

    def _blob(self, session: int, digest: bytes) -> bytes | None:
        row = self._db.execute(sql.FIND_BLOB, (session, digest)).fetchone()
        return None if row is None else bytes(row[0])

    def add_blob(self, head: Head, digest: bytes, data: bytes) -> None:
        more = self._db.execute(sql.COUNT_BLOB, (1, head.number, digest))
        if not more.rowcount:
            values = (head.number, digest, 1, salts(1)[0], data)
            self._db.execute(sql.INSERT_BLOB, values)

    # Named appends

    def once(self, head: Head, name: str) -> Once | None:
        row = self._db.execute(sql.FIND_ONCE, (head.number, name)).fetchone()
        return None if row is None else _once(head, name, row)

    def named(self, head: Head, after: str, limit: int) -> Sequence[tuple[str, Once]]:
        found = self._db.execute(sql.FIND_NAMED, (head.number, after, limit))
        return [(name, _once(head, name, row)) for name, *row in found]

    def add_once(self, head: Head, name: str, once: Once) -> None:
        check = _once_check(head, name, once.result)
        values = (head.number, name, once.salt, once.digest, *once.result, check)
        self._db.execute(sql.INSERT_ONCE, values)

    # Drafts

    def draft(self, head: Head) -> tuple[bytes, list[str]] | None:
        rows = self._drafts(head, -1)
        if [number for number, _ in rows] != list(range(len(rows))):
            raise Corrupt(f"session {head.key!r}", "a piece of its draft is missing")
        return (rows[0][1], [data.decode() for _, data in rows[1:]]) if rows else None

    def _drafts(self, head: Head, after: int) -> list[tuple[int, bytes]]:
        self.flush()
        found = self._db.execute(sql.FIND_DRAFT, (head.number, after)).fetchall()
        for number, digest, data in found:
            if _draft_digest(head, number, data) != digest:
                raise Corrupt(f"session {head.key!r}", "its draft is not what was written")
        return [(number, data) for number, _, data in found]

    def save_draft(self, head: Head, body: bytes) -> None:
        self.drop_draft(head)
        self._add_draft(head, 0, body)

    def add_chunk(self, head: Head, text: str) -> None:
        last = self._chunks.get(head.number)
        if last is None:
            self.flush()
            (last,) = self._db.execute(sql.LAST_CHUNK, (head.number,)).fetchone()
        self._add_draft(head, (last or 0) + 1, text.encode())

    def _add_draft(self, head: Head, number: int, data: bytes) -> None:
        digest = _draft_digest(head, number, data)
        piece = (head.number, number, bytearray(digest), bytearray(data))
        self._said.setdefault(head.number, []).append(piece)
        self._chunks[head.number] = number

    def drop_draft(self, head: Head) -> None:
        self._said.pop(head.number, None)
        self._chunks.pop(head.number, None)
        self._db.execute(sql.DELETE_DRAFT, (head.number,))

    def chunks(self, head: Head, after: int) -> Sequence[tuple[int, str]]:
        return [(number, data.decode()) for number, data in self._drafts(head, max(after, 0))]

    # Leases

    def stamp(self, ttl: timedelta) -> Stamp:
        now = moment()
        return Stamp(self._owners.mine(), now.boot, now.ms + ttl // _MS)

    def is_over(self, stamp: Stamp) -> bool:
        now = moment()
        is_late = stamp.boot != now.boot or now.ms > stamp.until
        return is_late or self._owners.is_gone(stamp.process)

    # The rest

    def search(
        self, tenant: str, query: str, session: int | None, before: int | None, limit: int
    ) -> Sequence[tuple[int, Head, Row]]:
        rids = index.find(
            self._db, query, tenant=tenant, session=session, before=before, limit=limit
        )
        found: list[tuple[int, Head, Row]] = []
        for rid in rids:
            row = self._db.execute(sql.FIND_BY_RID, (rid,)).fetchone()
            if row is not None and row[1] == tenant:
                head = self._shared(row[:_FIELDS])
                found.append((rid, head, Row._make(row[_FIELDS:])))
        return found

    def clock_seen(self, tenant: str) -> int | None:
        row = self._db.execute(sql.FIND_CLOCK, (tenant,)).fetchone()
        return None if row is None else int(row[0])

    def save_clock_seen(self, tenant: str, now: int) -> None:
        self._db.execute(sql.DELETE_CLOCK, (tenant,))
        self._db.execute(sql.INSERT_CLOCK, (tenant, now))


def _draft_digest(head: Head, number: int, data: bytes) -> bytes:
    place = f"{head.id} {head.token} {number}".encode()
    return blake2b(data, digest_size=16, key=blake2b(place, digest_size=32).digest()).digest()


def _saved(head: Head) -> tuple[object, ...]:
    """What UPDATE_SESSION binds."""
    return (
        *(head.agent, head.updated, head.ttl, head.marked, head.seq, head.branch, head.branches),
        *(head.token, head.owner, head.process, head.boot, head.until, head_check(head)),
        head.number,
    )


def _damaged_text(data: bytes) -> str:
    return data.decode(errors="replace")


def _once(head: Head, name: str, row: Sequence[Any]) -> Once:
    """What is known of a named append; Corrupt if it is damaged."""
    salt, digest, first, last, branch, messages, check = row
    result = Appended(first, last, branch, messages)
    if _once_check(head, name, result) != check:
        raise Corrupt(f"session {head.key!r}", "a named append is not what was written")
    return Once(salt, digest, result)


def _once_check(head: Head, name: str, result: Appended) -> int:
    return crc32(repr((head.number, name, *result)).encode())
