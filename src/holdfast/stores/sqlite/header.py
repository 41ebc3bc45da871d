"""Whose database a file is, found out without changing a byte of it.

    application_id   "hold", or 0 in a file that nobody has used yet
    user_version     the format of the store; 0 until it has made its tables
    schema_version   the stamp of the file: SQLite counts it up with every change of the schema, and
                     we let it begin at random, so that two files hardly ever have the same

All are in the first page. The newest copy of that page may still be in the WAL, where a newer
holdfast that runs beside us has just put it.

SQLite takes any WAL that has the right name. By the stamp we know one that belongs to another file:
who starts a WAL writes the first page into it. A WAL without that page, as another program may
leave it, is taken; and any beside a database without a stamp, which an older holdfast has made.
"""

import secrets
import sqlite3
from contextlib import closing
from pathlib import Path

from holdfast.errors import Corrupt, FormatTooNew, StoreError, StoreUnavailable
from holdfast.stores.sqlite.settings import harden, has_tables, pragma, undefended
from holdfast.stores.sqlite.wal import Header, header_in

APPLICATION_ID = 0x686F6C64  # "hold"

STAMP_MIN = 1 << 24  # no file gets there by counting
_STAMP_END = (1 << 31) - STAMP_MIN  # so that counting goes on without an overflow
_STAMP_NEAR = 1 << 16  # how far the WAL may have counted on


def check_header(path: Path, format_known: int) -> None:
    """Return if the database is ours, or empty; FormatTooNew, StoreUnavailable or Corrupt."""
    log = Path(f"{path}-wal")
    refusal = _refusal(path, header_in(log), format_known)
    if refusal is not None:  # what a crash has torn may say anything
        refusal = _refusal(path, header_in(log, is_checked=True), format_known)
    if refusal is not None:
        raise refusal


def _refusal(path: Path, in_wal: Header | None, known: int) -> StoreError | None:
    """Why the file must not be touched, by what its WAL says and what itself does."""
    # Where the WAL has the page, the database need not make sense without it: a checkpoint that
    # was cut short, or is going on, has written that page and not yet those it speaks of.
    own = _header_of(path) if in_wal is None else _header_alone(path)
    header = in_wal or own
    if any(_is_of_others(each) for each in (header, own)):
        why = "it is the database of another program; choose another path"
        return StoreUnavailable(str(path), why)
    if is_another(header.stamp, own.stamp):
        why = "it is the WAL of another database: move it away (do not delete it)"
        return StoreUnavailable(f"{path}-wal", why)
    if header.user_version > known:
        return FormatTooNew(str(path), header.user_version, known)
    if header.user_version < 0:
        return Corrupt(str(path), f"its format is {header.user_version}")
    return None


def _is_of_others(header: Header) -> bool:
    return header.application_id != APPLICATION_ID and header[:3] != (0, 0, False)


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


def _header_alone(path: Path) -> Header:
    """What the database says without its WAL; as of an empty one, if it makes no sense."""
    try:
        return _asked(f"{path.as_uri()}?immutable=1")
    except sqlite3.Error:
        return Header(0, 0, has_tables=False, stamp=0)


def _asked(uri: str) -> Header:
    with closing(sqlite3.connect(uri, uri=True)) as db:
        # So SQLite does not mind a page that speaks of others which are not there, or not yet.
        pragma(db, "writable_schema=1")
        application_id, user_version = pragma(db, "application_id"), pragma(db, "user_version")
        assert isinstance(application_id, int) and isinstance(user_version, int)
        number = _stamp_of(db)
        harden(db)
        is_used = application_id == APPLICATION_ID or has_tables(db)
        return Header(application_id, user_version, is_used, number)


# The stamp


def stamp(db: sqlite3.Connection) -> None:
    """Give a file that has none its stamp, in the transaction that runs."""
    if _stamp_of(db) < STAMP_MIN:
        with undefended(db):
            number = STAMP_MIN + secrets.randbelow(_STAMP_END - STAMP_MIN)
            pragma(db, f"schema_version={number}")


def is_another(found: int, own: int) -> bool:
    """Whether a stamp cannot be that of a database with the stamp `own`, or 0 if it has none.

    A database has its stamp before there is a WAL, or gets it out of the WAL; so it has none where
    the WAL has one, but not the other way.
    """
    return own >= STAMP_MIN and abs(found - own) >= _STAMP_NEAR


def write_first_page(db: sqlite3.Connection) -> None:
    """Write the first page, as it is, in the transaction that runs.

    SQLite writes the page of this number even when the number stays the same. An UPDATE with the
    values that are there would not do: it compares, and leaves the page alone.
    """
    pragma(db, f"user_version={pragma(db, 'user_version')}")


def _stamp_of(db: sqlite3.Connection) -> int:
    found = pragma(db, "schema_version")
    assert isinstance(found, int)
    return found & 0xFFFFFFFF
