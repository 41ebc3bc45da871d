"""How a connection to SQLite has to be set, and how that is seen to."""

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager

BUSY_MS = 10_000

# A checkpoint that goes around readers after so much, and one that waits for them a little when
# they have kept the WAL growing; the rest is room for the writes that come before the next try.
WAL_CHECKPOINT_BYTES = 4 * 1024 * 1024
WAL_TRUNCATE_BYTES = 48 * 1024 * 1024
WAL_BYTES_MAX = 64 * 1024 * 1024

# In the order in which they are set: the switch to WAL may have to wait for others.
SETTINGS: tuple[tuple[str, str | int], ...] = (
    ("busy_timeout", BUSY_MS),
    ("trusted_schema", 0),  # a view or trigger that somebody planted runs no function of ours
    ("cell_size_check", 1),
    ("mmap_size", 0),  # a disk error is an error, not a signal
    ("journal_mode", "wal"),
    ("synchronous", 2),  # FULL; with NORMAL, 1, a power cut takes the last commits
    ("fullfsync", 1),  # macOS: to the disk, not to its cache
    ("checkpoint_fullfsync", 1),
    ("wal_autocheckpoint", 0),  # we do it, under the lock
    ("journal_size_limit", WAL_BYTES_MAX),
    ("foreign_keys", 1),
    ("secure_delete", 1),  # what was erased is overwritten
    ("temp_store", 2),  # no text in temporary files
)


def settings(db: sqlite3.Connection) -> dict[str, object]:
    """What the settings are on this connection, by their names in SETTINGS."""
    return {name: pragma(db, name) for name, _ in SETTINGS}


def pragma(db: sqlite3.Connection, words: str) -> object:
    """Run a PRAGMA; its value, or None where it answers nothing.

    Without its row being read, one that failed can look as if it had worked.
    """
    row = db.execute(f"PRAGMA {words}").fetchone()
    return row[0] if row else None


def has_tables(db: sqlite3.Connection) -> bool:
    """Whether there is anything in the schema."""
    return db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is not None


def harden(db: sqlite3.Connection) -> None:
    """A schema that somebody planted can do no more than be wrong."""
    if hasattr(db, "enable_load_extension"):
        db.enable_load_extension(False)
    pragma(db, "writable_schema=0")
    if sys.version_info >= (3, 12):
        db.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
        db.setconfig(sqlite3.SQLITE_DBCONFIG_DQS_DML, False)  # "x" is a column, never a text
        db.setconfig(sqlite3.SQLITE_DBCONFIG_DQS_DDL, False)


@contextmanager
def undefended(db: sqlite3.Connection) -> Iterator[None]:
    """A connection of ours that may do for a block what a defensive one may not."""
    if sys.version_info >= (3, 12):
        is_defensive = db.getconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE)
        db.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, False)
    try:
        yield
    finally:
        if sys.version_info >= (3, 12):
            db.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, is_defensive)
