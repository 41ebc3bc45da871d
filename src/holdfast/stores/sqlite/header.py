"""Whose database a file is, found out without changing a byte of it.

    application_id   "hold", or 0 in a file that nobody has used yet
    user_version     the format of the store; 0 until it has made its tables

Both are in the first page. The newest copy of that page may still be in the WAL, where a newer
holdfast that runs beside us has just put it.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from holdfast.errors import Corrupt, FormatTooNew, StoreUnavailable
from holdfast.stores.sqlite.settings import harden, has_tables, pragma
from holdfast.stores.sqlite.wal import Header, header_in

APPLICATION_ID = 0x686F6C64  # "hold"


def check_header(path: Path, format_known: int) -> None:
    """Return if the database is ours, or empty; FormatTooNew, StoreUnavailable or Corrupt."""
    # Where the WAL has the page, the database need not make sense without it: a checkpoint that
    # was cut short, or is going on, has written that page and not yet those it speaks of.
    header = header_in(Path(f"{path}-wal")) or _header_of(path)
    if header.application_id == APPLICATION_ID:
        _check_format(path, header.user_version, format_known)
    elif header != Header(0, 0, has_tables=False):
        why = "it is the database of another program; choose another path"
        raise StoreUnavailable(str(path), why)


def _check_format(path: Path, found: int, known: int) -> None:
    if found > known:
        raise FormatTooNew(str(path), found, known)
    if found < 0:
        raise Corrupt(str(path), f"its format is {found}")


def _header_of(path: Path) -> Header:
    # With immutable=1 SQLite takes no locks, writes nothing, and leaves no -shm behind. We cannot
    # read the bytes ourselves: closing our descriptor would drop the locks of SQLite.
    try:
        return _asked(f"{path.as_uri()}?immutable=1")
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_CORRUPT:
            raise
    # A database, but one that makes no sense without its WAL or its journal: look with those.
    return _asked(f"{path.as_uri()}?mode=ro")


def _asked(uri: str) -> Header:
    with closing(sqlite3.connect(uri, uri=True)) as db:
        harden(db)
        application_id, user_version = pragma(db, "application_id"), pragma(db, "user_version")
        assert isinstance(application_id, int) and isinstance(user_version, int)
        is_used = application_id == APPLICATION_ID or has_tables(db)
        return Header(application_id, user_version, is_used)
