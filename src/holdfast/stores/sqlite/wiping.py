"""Leaving no byte of what was removed.

With `secure_delete` SQLite overwrites what is deleted. But when it spreads rows over other pages,
bytes of rows that are still there stay behind where they were, and outlive them. Tables that were
emptied whole are wiped whole, so a small table is written anew; and whether anything of a row is
left in the file shows by its salt, 16 random bytes that stand beside its payload.
"""

import sqlite3
from collections.abc import Iterable

from holdfast.stores.sqlite.settings import pragma, undefended

IN_MEMORY_MAX = 256 * 1024 * 1024


def write_anew(db: sqlite3.Connection, tables: Iterable[str]) -> None:
    """Empty these tables of ours and fill them again, in the transaction that runs."""
    with undefended(db):  # a defensive connection protects some of them from us too
        for table in tables:
            db.execute(f"CREATE TEMP TABLE anew AS SELECT * FROM {table}")  # noqa: S608 - ours
            db.execute(f"DELETE FROM {table}")  # noqa: S608
            db.execute(f"INSERT INTO {table} SELECT * FROM anew")  # noqa: S608
            db.execute("DROP TABLE temp.anew")


def write_all_anew(db: sqlite3.Connection, size: int) -> None:
    """Write the whole file anew, between transactions. What is large is prepared on disk."""
    if size > IN_MEMORY_MAX:
        pragma(db, "temp_store=1")
    try:
        db.execute("VACUUM")
    finally:
        pragma(db, "temp_store=2")
