"""The versions of the SQLite store's format, and how a file gets from one to the next.

| version | what came with it                                             |
|---------|---------------------------------------------------------------|
| 1       | sessions, documents, branches, entries, once, drafts, blobs   |
| 2       | the search index                                              |

The version is in `PRAGMA user_version`. A file that is behind is brought up when it is opened, in
one transaction and under the lock: after a crash it is at the old version or at the new one. Steps
only add, so what is in the file stays where it is.
"""

import sqlite3
from functools import cache

from holdfast.errors import Corrupt, StoreUnavailable
from holdfast.stores.sqlite import search, statements
from holdfast.stores.sqlite.header import stamp

FORMAT = 2


def _steps(version: int) -> tuple[str, ...]:
    """What makes this version of the one before."""
    return {1: statements.TABLES, 2: search.TABLES}[version]


def bring_up(db: sqlite3.Connection, where: str) -> None:
    """Bring a file up to this version, and see that its tables are ours. The lock is held."""
    if not search.has_fts5(db):
        raise StoreUnavailable(where, "this SQLite was built without FTS5: use another build")
    db.execute("BEGIN IMMEDIATE")
    try:
        (version,) = db.execute("PRAGMA user_version").fetchone()
        for step in range(version + 1, FORMAT + 1):
            for statement in _steps(step):
                db.execute(statement)
            db.execute(f"PRAGMA user_version={step}")
        stamp(db)
        _check(db, where)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _check(db: sqlite3.Connection, where: str) -> None:
    """Nothing runs by itself, and our tables and indexes are as we made them."""
    found = _objects(db)
    for (kind, name), (_, text) in _expected().items():
        if found.get((kind, name), ("", ""))[1] != text:
            raise Corrupt(where, f"its {kind} {name!r} is not as holdfast made it")
    ours = {name for kind, name in _expected() if kind == "table"}
    for (kind, name), (table, _) in found.items():
        is_extra = (kind, name) not in _expected()
        if is_extra and (kind == "trigger" or (kind == "index" and table in ours)):
            raise Corrupt(where, f"it has the {kind} {name!r}, which holdfast did not make")


def _objects(db: sqlite3.Connection) -> dict[tuple[str, str], tuple[str, str | None]]:
    """Of everything in the schema, the table that it belongs to and the text that made it."""
    rows = db.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema")
    return {(kind, name): (table, text) for kind, name, table, text in rows}


@cache
def _expected() -> dict[tuple[str, str], tuple[str, str | None]]:
    """The tables of a file that was just made."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    try:
        for step in range(1, FORMAT + 1):
            for statement in _steps(step):
                db.execute(statement)
        return _objects(db)
    finally:
        db.close()
