"""The limit for bench/stores.py: the driver of the standard library, and SQL written by hand.

It works on a copy of a file that our store has made, so tables and indexes are the same, and writes
the same rows into them: `check` sees to that. What it is given is ready to be written: payloads
are encoded, and in the place of salts, links and checks there are random bytes. No queue, no lock,
no chain, no promise beyond a commit that is on the disk.
"""

import os
import sqlite3
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec
from stores_data import TENANT, Turn

from holdfast import Message, codec
from holdfast.entries import Call, Fold, Mark, kind_of
from holdfast.frozen import decode_hook
from holdfast.stores import chain

if sys.platform != "win32":
    import fcntl

# Those of our store, but for the checkpoints, which it makes by itself at the same size of the WAL.
PRAGMAS = (
    *("journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=1000", "foreign_keys=ON"),
    *("secure_delete=ON", "trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0"),
    *("temp_store=MEMORY", "journal_size_limit=67108864", "busy_timeout=10000"),
)

_HEADS = """SELECT s.id, s.number, s.seq, b.number, b.count FROM sessions s
    JOIN branches b ON b.session = s.number AND b.number = s.branch WHERE s.id IN ({})"""
_INSERT = """INSERT INTO entries
    (session, seq, branch, position, kind, "check", link, salt, payload)
    VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_LINE = """UPDATE branches SET head = ?, count = ?, link = ?, "check" = ?
    WHERE session = ? AND number = ?"""
_SESSION = 'UPDATE sessions SET updated = ?, seq = ?, "check" = ? WHERE number = ?'
_PAYLOADS = """SELECT payload FROM entries WHERE session = ? AND branch = 0 ORDER BY seq"""
_NEWEST = """SELECT s.id, s.key, s.agent, s.created, s.updated, d.body, d."check" FROM sessions s
    JOIN documents d ON d.session = s.number WHERE s.tenant = ?
    ORDER BY s.updated DESC, s.number DESC LIMIT ?"""
_IDS = "SELECT number FROM sessions WHERE id = ?"
_KEY = """SELECT s.number, s.id, s.agent, s.created, s.updated, s.seq, b.name, b.head, b.count,
    d.body FROM sessions s JOIN branches b ON b.session = s.number
    JOIN documents d ON d.session = s.number WHERE s.tenant = ? AND s.key = ?"""
_TAIL = "SELECT payload FROM entries WHERE session = ? AND branch = 0 ORDER BY seq DESC LIMIT ?"
_FREE = (os.urandom(16), os.urandom(16), 0x8765_4321)


class Record(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """A row as the codec writes it, into the same types, and nothing looked at afterwards."""

    v: Literal[1]
    message: Message | None = None
    fold: Fold | None = None
    call: Call | None = None
    mark: Mark | None = None


decode = msgspec.json.Decoder(Record, dec_hook=decode_hook).decode


class Raw:
    """A connection to the file."""

    def __init__(self, path: Path, *, durability: str = "sync") -> None:
        self.db = sqlite3.connect(path, isolation_level=None, cached_statements=256)
        for pragma in PRAGMAS:
            self.db.execute(f"PRAGMA {pragma}").fetchall()
        if durability == "fast":
            self.db.execute("PRAGMA synchronous=NORMAL")

    def close(self) -> None:
        self.db.close()

    def append(self, work: Sequence[tuple[str, Turn]]) -> None:
        """A turn for each of these sessions, in one transaction."""
        db = self.db
        db.execute("BEGIN IMMEDIATE")
        marks = ", ".join("?" * len(work))
        heads = db.execute(_HEADS.format(marks), [id for id, _ in work])
        where = {id: rest for id, *rest in heads}
        rows, lines, moved = [], [], []
        now = time.time_ns() // 1_000
        salt, link, check = _FREE
        for id, turn in work:
            number, seq, branch, count = where[id]
            for kind, payload in turn.rows:
                seq += 1
                if kind == "message":
                    count += 1
                rows.append((number, seq, branch, count - 1, kind, check, link, salt, payload))
            lines.append((seq, count, link, check, number, branch))
            moved.append((now, seq, check, number))
        db.executemany(_INSERT, rows)
        db.executemany(_LINE, lines)
        db.executemany(_SESSION, moved)
        db.execute("COMMIT")

    def append_made(self, work: Sequence[tuple[str, Turn]]) -> None:
        """The same, but the rows have to be made: entries encoded, sealed, linked and checked.

        That is what the format asks of anybody who writes it, with no queue and no questions.
        """
        ready = []
        for id, turn in work:
            rows, link = [], _FREE[1]
            salts = chain.salts(len(turn.entries))
            for seq, (entry, salt) in enumerate(zip(turn.entries, salts, strict=True), start=1):
                kind, payload = kind_of(entry), codec.record(entry)
                link = chain.link(link, seq, kind, chain.seal(salt, payload))
                chain.check(seq, seq, kind, payload)
                rows.append((kind, payload))
            ready.append((id, Turn(turn.entries, rows)))
        self.append(ready)

    def number(self, id: str) -> int:
        return int(self.db.execute(_IDS, (id,)).fetchone()[0])

    def load(self, number: int) -> list[Message | Call | None]:
        """Every entry of a session: the payload column, and what msgspec makes of it."""
        found = []
        for (payload,) in self.db.execute(_PAYLOADS, (number,)):
            row = decode(payload)
            found.append(row.message if row.message is not None else row.call)
        return found

    def tail(self, key: str, rows: int) -> list[Record]:
        """The record of a session, undecoded, and its last entries."""
        number, *_ = self.db.execute(_KEY, (TENANT, key)).fetchone()
        last = self.db.execute(_TAIL, (number, rows)).fetchall()
        return [decode(payload) for (payload,) in reversed(last)]

    def newest(self, count: int) -> list[tuple[object, ...]]:
        return self.db.execute(_NEWEST, (TENANT, count)).fetchall()

    def pages(self) -> tuple[int, int]:
        """How many bytes the file has, and how many of them the search index."""
        size, count, free = (
            int(self.db.execute(f"PRAGMA {name}").fetchone()[0])
            for name in ("page_size", "page_count", "freelist_count")
        )
        self.db.execute("DROP TABLE words")
        freed = int(self.db.execute("PRAGMA freelist_count").fetchone()[0]) - free
        return size * count, size * freed


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """The file for one process at a time, in the order in which the kernel lets them in."""
    with open(f"{path}-lock", "a") as file:
        if sys.platform != "win32":  # there SQLite's own lock is all there is
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def rows_of(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Everything in a file but the search index, with times and random bytes as their sizes."""
    db = sqlite3.connect(path)
    found: dict[str, list[tuple[object, ...]]] = {}
    tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'words%'"
    for (table,) in db.execute(tables).fetchall():
        rows = db.execute(f"SELECT * FROM {table}")
        names = [column[0] for column in rows.description]
        found[table] = [
            tuple(
                (type(value), len(value) if isinstance(value, bytes) else None)
                if name in ("updated", "link", "salt", "check")
                else value
                for name, value in zip(names, row, strict=True)
            )
            for row in rows
        ]
    db.close()
    return found


def check(before: Path, ours: Path, raw: Path) -> str:
    """What both wrote since `before`; it has to be the same, row by row."""
    was, left, right = rows_of(before), rows_of(ours), rows_of(raw)
    for table in left:
        assert left[table] == right[table], f"the two sides wrote different rows into {table}"
    assert left["entries"] != was["entries"], "nothing was written"
    new = [f"{len(left[t]) - len(was[t])} {t}" for t in left if len(left[t]) > len(was[t])]
    moved = [t for t in left if len(left[t]) == len(was[t]) and left[t] != was[t]]
    return f"a turn adds {', '.join(new)}, moves {', '.join(moved)}; the raw driver does the same"
