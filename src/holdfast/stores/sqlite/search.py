"""The search index of the SQLite store: an FTS5 table, filled behind the log.

    words (t)          a document for each message that holds a word; its rowid is the entry's rid
    search (id = 1)    filled: the highest rid that was gone over; rules: what cut the words, '' if
                       several did; purges: how often it was purged since it began; owed: whether
                       words were removed and not purged since

Messages are cut by `stores.words` and go in as words between spaces; the `ascii` tokenizer of FTS5
takes everything beyond ASCII as part of a word. A document also has two marks, `_s` and the number
of its session, `_t` and a digest of its tenant. No word holds a `_`, so nobody can write a mark or
ask for one; and a search for one tenant, an AND inside FTS5, does not walk over the hits of others.

Around the functions that write, the caller holds the transaction in which he changes `entries`.
"""

import unicodedata
from collections.abc import Callable, Iterable
from hashlib import blake2b
from sqlite3 import Connection

from holdfast.codec import read_record
from holdfast.errors import HoldfastError
from holdfast.messages import Message
from holdfast.stores import words
from holdfast.stores.searchable import text_of
from holdfast.stores.sqlite.wiping import write_anew

TABLES = (
    """CREATE VIRTUAL TABLE words USING fts5(
        t, content='', columnsize=0, detail=none, tokenize="ascii tokenchars '_'")""",
    # A quarter of the usual size: an AND reads pages from their start. The index is 3 % larger.
    "INSERT INTO words(words, rank) VALUES('pgsz', 1000)",
    """CREATE TABLE search(id INTEGER PRIMARY KEY CHECK (id = 1),
        filled INTEGER NOT NULL, rules TEXT NOT NULL, purges INTEGER NOT NULL,
        owed INTEGER NOT NULL)""",
    "INSERT INTO search VALUES(1, 0, '', 0, 0)",
)

# FTS5 forgets a document only if it is told the same words again, and Python versions differ in
# how they cut young scripts. Count up when `text_of` or `stores.words` give other words.
RULES = f"1, Unicode {unicodedata.unidata_version}"
# Every optimize makes FTS5 count two more levels, and beyond 2,000 it calls its table malformed.
PURGES_MAX = 500
SMALL_MAX = 50_000  # rids

_FIND = "SELECT rowid FROM words WHERE words MATCH ? AND rowid < ? ORDER BY rowid DESC LIMIT ?"
_FURTHER = """SELECT e.rid, e.session, s.tenant,
        CASE e.kind WHEN 'message' THEN CAST(e.payload AS BLOB) END FROM entries e
    LEFT JOIN sessions s ON s.number = e.session WHERE e.rid > ? ORDER BY e.rid LIMIT ?"""
Row = tuple[int, int, str, bytes | None]  # rid, number of the session, tenant, record or erased
RecordOf = Callable[[int, bytes], bytes]


def has_fts5(db: Connection) -> bool:
    """Whether this SQLite can search: some are built without FTS5."""
    return ("fts5",) in db.execute("PRAGMA module_list")


def latest(db: Connection) -> int:
    """The highest rid that there is."""
    (last,) = db.execute("SELECT ifnull(max(rid), 0) FROM entries").fetchone()
    return int(last)


def pending(db: Connection, goal: int | None = None) -> int:
    """How many rids the index is behind the log, or behind the rid `goal`.

    There may be fewer entries than that.
    """
    last = latest(db)
    return max(0, (last if goal is None else min(last, goal)) - _state(db)[0])


def fill(db: Connection, limit: int, record_of: RecordOf | None = None) -> int:
    """Go over up to `limit` further entries and index the messages; the number of entries.

    `record_of` makes a record of a rid and its payload, where a store keeps parts of it elsewhere.
    What is erased or cannot be read (Corrupt) is passed over: damage is for `verify` to report.
    """
    filled, rules, _ = _state(db)
    rows = db.execute(_FURTHER, (filled, limit)).fetchall()
    for rid, session, tenant, payload in rows:
        text = None if None in (payload, tenant) else _text(rid, payload, record_of)
        if text and (document := _document(session, tenant, text)):
            db.execute("INSERT INTO words(rowid, t) VALUES(?, ?)", (rid, document))
    if rows:
        rules = RULES if filled == 0 or rules == RULES else ""
        db.execute("UPDATE search SET filled = ?, rules = ?", (rows[-1][0], rules))
    return len(rows)


def find(
    db: Connection, query: str, *, tenant: str, session: int | None, before: int | None, limit: int
) -> list[int]:
    """The rids of the messages that hold every word of `query`, the newest first.

    Only those of `tenant`, and of `session` if it is given. The next page is what comes `before`
    the last rid of this one. A query without a word finds nothing.
    """
    if not (wanted := dict.fromkeys(words.query(query))):
        return []
    marks = [_tenant_mark(tenant)] if session is None else [_tenant_mark(tenant), f"_s{session}"]
    wanted |= {(mark, False): None for mark in marks}
    match = " ".join('"' + word.replace('"', '""') + '"' + "*" * prefix for word, prefix in wanted)
    rows = db.execute(_FIND, (match, 2**63 - 1 if before is None else before, limit))
    return [rid for (rid,) in rows]


def remove(db: Connection, rows: Iterable[Row]) -> None:
    """Take messages out of the index, those that are in it. Their words stay until `purge`.

    If one cannot be read any more, or the words were cut by other rules, nobody knows what to take
    out: the index begins anew, and the caller has to erase the entries before it is filled again.
    """
    filled, rules, _ = _state(db)
    for rid, session, tenant, record in rows:
        if rid > filled or record is None:
            continue
        if rules != RULES or (text := _text(rid, record)) is None:
            restart(db)
            return
        if was := _document(session, tenant, text):
            db.execute("INSERT INTO words(words, rowid, t) VALUES('delete', ?, ?)", (rid, was))
            db.execute("UPDATE search SET owed = 1")


def settle(db: Connection) -> None:
    """To be called after rows were deleted from `entries`: SQLite uses the highest rids again."""
    db.execute("UPDATE search SET filled = min(filled, (SELECT ifnull(max(rid), 0) FROM entries))")


def purge(db: Connection) -> None:
    """Leave no byte of the words that were removed and stand in no other message.

    A removed document is only marked until the segments that hold its words are merged: this merges
    all there are. It needs `PRAGMA secure_delete`, and a truncating checkpoint after the commit.
    """
    if not is_owed(db):
        return
    if _state(db)[2] >= PURGES_MAX:
        restart(db)
        return
    db.execute("UPDATE search SET purges = purges + 1, owed = 0")
    db.execute("INSERT INTO words(words) VALUES('optimize')")
    write_anew(db, ("words_data", "words_idx"))


def is_owed(db: Connection) -> bool:
    """Whether there is something to purge."""
    return bool(db.execute("SELECT owed FROM search").fetchone()[0])


def is_small(db: Connection) -> bool:
    """Whether a purge takes so little time that nobody minds."""
    return _state(db)[0] <= SMALL_MAX


def restart(db: Connection) -> None:
    """Empty the index; `fill` begins with the first entry again."""
    db.execute("INSERT INTO words(words) VALUES('delete-all')")
    db.execute("UPDATE search SET filled = 0, rules = '', purges = 0, owed = 0")


def _state(db: Connection) -> tuple[int, str, int]:
    filled, rules, purges = db.execute("SELECT filled, rules, purges FROM search").fetchone()
    return filled, rules, purges


def _text(rid: int, payload: bytes, record_of: RecordOf | None = None) -> str | None:
    try:
        entry = read_record(record_of(rid, payload) if record_of else payload)
    except HoldfastError:
        return None
    return text_of(entry) if type(entry) is Message else ""


def _document(session: int, tenant: str, text: str) -> str | None:
    found = dict.fromkeys(words.words(text))
    return " ".join([*found, f"_s{session}", _tenant_mark(tenant)]) if found else None


def _tenant_mark(tenant: str) -> str:
    return f"_t{blake2b(tenant.encode(), digest_size=8).hexdigest()}"
