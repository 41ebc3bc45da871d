"""What SQLite and the system say, in the words of holdfast.

Only codes and their names are passed on. A message of SQLite may hold SQL or a name of a column, so
it is not repeated; it stays readable as the cause.
"""

import sqlite3

from holdfast.errors import (
    Corrupt,
    HoldfastError,
    InvalidInput,
    StoreFull,
    StoreUnavailable,
)
from holdfast.stores import disk_errors

# The index of the WAL has no room beside the file: met by who opens it on a disk that is full.
_NO_ROOM_BESIDE = sqlite3.SQLITE_IOERR_SHMSIZE

# By the primary code, which is the low byte of what SQLite reports.
_DAMAGED = {
    sqlite3.SQLITE_CORRUPT: "the database is malformed",
    sqlite3.SQLITE_NOTADB: "it is not a SQLite database, or the path is wrong",
    sqlite3.SQLITE_FORMAT: "it is not a SQLite database, or the path is wrong",
    sqlite3.SQLITE_MISMATCH: "a stored value is not of its column's type",
    # These two are a mistake in our own reasoning, or somebody else wrote to the file.
    sqlite3.SQLITE_CONSTRAINT: "what is stored contradicts what was to be written",
    sqlite3.SQLITE_ERROR: "its tables are not those of this format",
}
_UNAVAILABLE = {
    sqlite3.SQLITE_BUSY: "another connection is in the way",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    sqlite3.SQLITE_INTERRUPT: "the work was interrupted",
    sqlite3.SQLITE_IOERR: "the disk answered with an error",
    sqlite3.SQLITE_LOCKED: "another statement is in the way",
    sqlite3.SQLITE_NOMEM: "there is not enough memory",
    sqlite3.SQLITE_PERM: "there is no permission to use it",
    sqlite3.SQLITE_PROTOCOL: "the locks of its WAL cannot be had",
    sqlite3.SQLITE_READONLY: "it cannot be written to",
}
_FATAL = {
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_READONLY,  # of a connection that was made while the file was write-protected
}


def translate(error: Exception, where: str) -> HoldfastError:
    """The error of ours that says the same; raise it `from error`. Ours come back as they are."""
    if isinstance(error, HoldfastError):
        return error
    if isinstance(error, OverflowError | UnicodeEncodeError | sqlite3.DataError):
        return InvalidInput("a value", "is more than SQLite can hold: shorten it")
    if isinstance(error, sqlite3.Error):
        return _translate_sqlite(error, where)
    if isinstance(error, OSError | MemoryError):
        return disk_errors.translate(error, where)
    return StoreUnavailable(where, type(error).__name__)


def _translate_sqlite(error: sqlite3.Error, where: str) -> HoldfastError:
    code = _code(error)
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    primary = code & 0xFF
    if primary == sqlite3.SQLITE_TOOBIG:
        return InvalidInput("a value", "is more than SQLite can hold: shorten it")
    if primary == sqlite3.SQLITE_FULL or code == _NO_ROOM_BESIDE:
        return StoreFull(where, f"the disk is full ({name})")
    if primary in _DAMAGED:
        return Corrupt(where, f"{_DAMAGED[primary]} ({name})")
    return StoreUnavailable(where, f"{_UNAVAILABLE.get(primary, 'SQLite cannot go on')} ({name})")


def is_fatal(error: BaseException) -> bool:
    """Whether the connection has to be closed and made anew, and must not be tried again.

    After a failed write or sync nobody knows what is in the page cache of the connection or of
    the system; what a new connection reads from the file is the truth.
    """
    if isinstance(error, HoldfastError) and error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, MemoryError):
        return True
    code = _code(error)
    return code & 0xFF in _FATAL


def is_busy(error: BaseException) -> bool:
    """Whether the same may well go through a moment later."""
    return _code(error) & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def _code(error: BaseException) -> int:
    # An error that Python's module raises by itself has no code.
    code = getattr(error, "sqlite_errorcode", 0)
    return code if isinstance(code, int) else 0
