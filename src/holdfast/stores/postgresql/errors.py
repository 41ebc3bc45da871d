"""What PostgreSQL and the network say, in the words of holdfast.

Only the names of errors are passed on. A message of the server may hold a value or a name of a
column, so it is not repeated; it stays readable as the cause.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import walk_tb

import asyncpg
from asyncpg import exceptions as pg

from holdfast.errors import (
    Corrupt,
    HoldfastError,
    InvalidInput,
    StoreFull,
    StoreUnavailable,
)
from holdfast.stores.shelf import MISFITS

_FULL = (pg.DiskFullError,)
_DAMAGED = (
    pg.DataCorruptedError,
    pg.IndexCorruptedError,
    pg.IntegrityConstraintViolationError,
    pg.SyntaxOrAccessError,
)
# The same may well go through when it is tried again.
_PASSING = (
    pg.TransactionRollbackError,
    pg.LockNotAvailableError,
    pg.UniqueViolationError,
)
# The connection is no use any more; or it leads to a server that may not be written to.
_LOST = (
    pg.PostgresConnectionError,
    pg.AdminShutdownError,
    pg.CrashShutdownError,
    pg.CannotConnectNowError,
    pg.IdleInTransactionSessionTimeoutError,
    pg.IdleSessionTimeoutError,
    pg.ReadOnlySQLTransactionError,
    pg.TooManyConnectionsError,
    pg.TargetServerAttributeNotMatched,
    pg.InternalClientError,
    asyncpg.InterfaceError,
    OSError,  # and TimeoutError
    EOFError,
    asyncio.IncompleteReadError,
)
_REFUSED = {
    pg.InvalidPasswordError: "it refuses the password",
    pg.InvalidAuthorizationSpecificationError: "it refuses the user",
    pg.InvalidCatalogNameError: "there is no such database",
    pg.UndefinedObjectError: "it does not know a parameter of the URL",
    pg.InsufficientPrivilegeError: "the role may not do that: it has to own the schema holdfast",
}


def is_lost(error: BaseException) -> bool:
    """Whether the connection broke: what it was asked for may or may not have happened."""
    is_told = isinstance(error, _LOST) and not isinstance(error, pg.DataError)
    return is_told or _was_closed(error)


def _was_closed(error: BaseException) -> bool:
    """Whether the driver stumbled over a connection that was closed between two steps of a request:
    it looks for its protocol then, and finds None."""
    if not isinstance(error, AttributeError) or error.obj is not None:
        return False
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    return bool(frames) and frames[-1].f_globals.get("__name__", "").startswith("asyncpg.")


def is_passing(error: BaseException) -> bool:
    """Whether it did not happen, and may well do when it is tried again."""
    return isinstance(error, _PASSING)


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Errors of the driver, and what rows of a wrong kind lead to, as errors of ours."""
    try:
        yield
    except Exception as error:
        found = translate(error, where)
        if found is error:
            raise
        raise found from error


def translate(error: Exception, where: str) -> Exception:
    """The error of ours that says the same; raise it `from error`. Ours come back as they are."""
    found = _translated(error, where)
    if found is not error:
        found.__cause__ = error
    return found


def _translated(error: Exception, where: str) -> Exception:
    name = type(error).__name__
    if isinstance(error, HoldfastError):
        return error
    if isinstance(error, pg.DataError | asyncpg.exceptions.ProgramLimitExceededError):
        return InvalidInput("a value", "is more than PostgreSQL can hold: shorten it")
    for kind, why in _REFUSED.items():
        if isinstance(error, kind):
            return StoreUnavailable(where, f"{why} ({name})")
    if isinstance(error, _FULL):
        return StoreFull(where, f"its disk is full ({name})")
    if is_passing(error):
        return StoreUnavailable(where, f"others were in the way again and again ({name})")
    if isinstance(error, pg.QueryCanceledError):
        return StoreUnavailable(where, f"it took too long ({name})")
    if isinstance(error, _DAMAGED):
        return Corrupt(where, f"its tables are not as holdfast made them ({name})")
    if is_lost(error) or isinstance(error, pg.PostgresError):
        return StoreUnavailable(where, f"it cannot be reached, or cannot go on ({name})")
    if isinstance(error, MISFITS):
        return Corrupt(where, f"a row is not as it was written ({name})")
    return error
