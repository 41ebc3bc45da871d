"""What is written to the file: batches of requests, each batch in one transaction.

A batch runs under the lock that all processes on the file share, on the one connection that
writes. One of its requests may fail with an error of ours; then the others go on. If SQLite fails,
everything is undone, and each request is tried by itself, so that one that cannot be written does
not stand in the way of the others.

What follows a commit, moving the WAL and looking whether erased text is gone, can never undo it.
"""

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from holdfast.errors import Corrupt, HoldfastError, StoreError, StoreUnavailable
from holdfast.stores.owners import Owners
from holdfast.stores.requests import Clear, Erase, Journal, OfSession, Request
from holdfast.stores.residue import is_left
from holdfast.stores.restoring import Restore
from holdfast.stores.shelf import MISFITS
from holdfast.stores.sqlite.errors import is_fatal, translate
from holdfast.stores.sqlite.file import CHECKPOINT_WAIT_MS, Mode, SQLiteFile
from holdfast.stores.sqlite.formats import bring_up
from holdfast.stores.sqlite.header import write_first_page
from holdfast.stores.sqlite.heads import Heads
from holdfast.stores.sqlite.settings import pragma
from holdfast.stores.sqlite.shelf import SQLiteShelf
from holdfast.stores.sqlite.wiping import write_all_anew
from holdfast.stores.writer import Answer, Outcome, Results

LOCK_WAIT_S = 30.0
PURGE_WAIT_MS = 10_000
CHECKPOINT_ROWS = 256  # written by this process, between two looks at the size of the WAL


class Commits:
    """The one who writes, in this process."""

    def __init__(self, file: SQLiteFile, owners: Owners) -> None:
        self._file = file
        self._owners = owners
        self._db: sqlite3.Connection | None = None  # used under the lock alone
        self._failed: list[sqlite3.Connection] = []
        self._is_sync = file.wanted["synchronous"] == 2
        self._is_fast = False
        self._heads = Heads()
        self._written = 0
        self._has_committed = False

    def open(self) -> None:
        """Connect, and bring the file up to the format of today."""
        with translated(self._file.where), self._file.locked(LOCK_WAIT_S):
            bring_up(self._connection(), self._file.where)

    def close(self) -> None:
        """Wait for what is in flight, and close the connection."""
        if self._db is None and not self._failed:
            return
        with self._file.locked(LOCK_WAIT_S):
            self._close_failed()
            if self._db is not None:
                db, self._db = self._db, None
                self._file.close(db)

    def run(
        self, requests: Sequence[Request[Any]], may_wait: bool, answer: Answer | None = None
    ) -> Outcome | None:
        """One batch; by the loop's thread or by the writer's. None if it would have to wait.

        `answer` is given the results before the WAL is moved: nobody has to wait for that.
        """
        try:
            if not self._file.lock(LOCK_WAIT_S if may_wait else 0):
                if not may_wait:
                    return None
                raise StoreUnavailable(self._file.where, f"others kept it for {LOCK_WAIT_S:g} s")
            try:
                self._rescue()
                self._connection()
                return self._batch(requests, answer)
            finally:
                self._file.unlock()
        except Exception as error:  # noqa: BLE001 - each caller is answered, whatever it is
            return [typed(error, self._file.where)] * len(requests), 0.0
        except BaseException as error:  # noqa: BLE001 - likewise
            return [error] * len(requests), 0.0

    def _connection(self) -> sqlite3.Connection:
        if self._file.moved():
            raise StoreUnavailable(self._file.where, "the file was replaced or deleted")
        if self._db is None:
            self._db, self._is_fast, self._has_committed = self._file.connect(), False, False
            self._heads = Heads()
            self._close_failed()
        return self._db

    def _rescue(self) -> None:
        """If somebody has deleted the WAL, save what is in it, which only we can still read."""
        if self._db is not None and self._has_committed and not self._file.has_wal():
            self._file.checkpoint(self._db, mode="PASSIVE")
            self._failed.append(self._db)
            self._db = None

    def _close_failed(self) -> None:
        """Let go of connections that failed, now that there is another, or that all is over.

        Not earlier: as long as one is open, it is known where the WAL ends, and what a failed
        commit has left behind its end is not taken for committed.
        """
        while self._failed:
            with suppress(StoreError):
                self._file.close(self._failed.pop())

    def _batch(self, requests: Sequence[Request[Any]], answer: Answer | None = None) -> Outcome:
        try:
            db = self._connection() if self._db is None else self._db
            shelf, results, seconds = self._transaction(db, requests)
        except Exception as error:  # noqa: BLE001 - undone, and told to those whom it concerns
            self._undo(error)
            if len(requests) == 1:
                return [typed(error, self._file.where)], 0.0
        except BaseException as error:  # somebody interrupts the program
            self._undo(error)
            raise
        else:
            return self._after(shelf, requests, results, answer), seconds
        outcomes = [self._batch([request]) for request in requests]
        return [results[0] for results, _ in outcomes], max(seconds for _, seconds in outcomes)

    def _undo(self, error: BaseException) -> None:
        """Leave the transaction; and the connection, if it is not to be trusted any more."""
        self._heads = Heads()
        if self._db is None:
            return
        try:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        except sqlite3.Error as another:
            error = another
        if is_fatal(error) or self._db.in_transaction:
            self._failed.append(self._db)
            self._db = None
            self._write_over()

    def _write_over(self) -> None:
        """Put a commit that changes nothing in the place of one that failed.

        That one may be in the WAL whole, only not known to be on disk; after a crash it would be
        there, although its callers were told that it is not.
        """
        try:
            _commit_first_page(self._connection())
        except (sqlite3.Error, HoldfastError):  # the disk still fails; what could be done is done
            if self._db is not None:
                self._failed.append(self._db)
                self._db = None

    def _transaction(
        self, db: sqlite3.Connection, requests: Sequence[Request[Any]]
    ) -> tuple[SQLiteShelf, list[Any], float]:
        """Everything up to the commit: what raises here has not happened."""
        is_fast = self._is_sync and all(type(each) is Journal for each in requests)
        if is_fast != self._is_fast:
            pragma(db, f"synchronous={'NORMAL' if is_fast else 'FULL'}")
            self._is_fast = is_fast
        db.execute("BEGIN IMMEDIATE")
        if not self._has_committed:  # the WAL may be a new one
            write_first_page(db)
        (version,) = db.execute("PRAGMA data_version").fetchone()
        self._heads = self._heads.at(version)
        shelf = SQLiteShelf(db, self._owners, self._heads)
        shelf.fetch((each.tenant, each.id) for each in requests if isinstance(each, OfSession))
        results: list[Any] = []
        for each in requests:
            try:
                results.append(each.run(shelf))
            except (Corrupt, StoreUnavailable):
                raise  # in the middle of it, perhaps: nothing of this batch has happened
            except HoldfastError as error:
                shelf.settle()
                results.append(error)
        shelf.flush()
        start = time.perf_counter()
        db.execute("COMMIT")
        self._has_committed = True
        return shelf, results, time.perf_counter() - start

    def _after(
        self,
        shelf: SQLiteShelf,
        requests: Sequence[Request[Any]],
        results: Results,
        answer: Answer | None,
    ) -> Results:
        """What follows a commit. It is done, whatever happens here; only purging can still fail."""
        assert self._db is not None
        try:
            if shelf.is_purging:
                self._purge(self._db, shelf.removed)
            elif shelf.is_removing:
                self._move(self._db, "TRUNCATE")
            elif (mode := self._checkpoint_due(shelf.written)) is not None:
                if answer is not None:
                    answer(results)
                self._move(self._db, mode)
        except Exception as error:  # noqa: BLE001 - the next checkpoint, or who purged, meets it
            self._undo(error)
            if shelf.is_purging:
                told = typed(error, self._file.where)
                return [
                    told if isinstance(each, Erase | Clear | Restore) else result
                    for each, result in zip(requests, results, strict=True)
                ]
        return results

    def _checkpoint_due(self, rows: int) -> Mode | None:
        """How to move the WAL, when it is long; how long is looked at now and then."""
        self._written += rows
        if self._written < CHECKPOINT_ROWS:
            return None
        self._written = 0
        return self._file.checkpoint_due()

    def _move(self, db: sqlite3.Connection, mode: Mode, wait_ms: int = CHECKPOINT_WAIT_MS) -> bool:
        """Move the WAL into the database; whether somebody was in the way.

        A WAL that was moved whole is started again by the next commit, in whichever process: that
        is made here, and has the first page in it, by which the WAL is known as ours.
        """
        is_busy, pages, moved = self._file.checkpoint(db, mode=mode, wait_ms=wait_ms)
        if pages == moved:
            _commit_first_page(db)
        return is_busy

    def _purge(self, db: sqlite3.Connection, salts: Sequence[bytes]) -> None:
        """Leave no copy of what was removed in the WAL, and look whether it is gone.

        Every row has a salt of its own, beside its payload: where a row still is, its salt is.
        """
        self._truncate(db)
        if is_left(salts, self._file.files()):
            write_all_anew(db, self._file.size())
            self._truncate(db)
            if is_left(salts, self._file.files()):
                raise StoreUnavailable(self._file.where, "what was removed is still in the file")

    def _truncate(self, db: sqlite3.Connection) -> None:
        if self._move(db, "TRUNCATE", PURGE_WAIT_MS):
            raise StoreUnavailable(
                self._file.where, "it is removed, but a reader keeps the old state: ask again"
            )


def _commit_first_page(db: sqlite3.Connection) -> None:
    """A commit that changes nothing, and still writes a page."""
    db.execute("BEGIN IMMEDIATE")
    write_first_page(db)
    db.execute("COMMIT")


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Errors of the driver, and what rows of a wrong kind lead to, as errors of ours."""
    try:
        yield
    except Exception as error:
        typed_error = typed(error, where)
        if typed_error is error:
            raise
        raise typed_error from error


def typed(error: Exception, where: str) -> Exception:
    """The error of ours that this one is."""
    if isinstance(error, HoldfastError):
        return error
    if isinstance(error, sqlite3.Error | OSError | MemoryError):
        found: Exception = translate(error, where)
    elif isinstance(error, MISFITS):
        found = Corrupt(where, f"a row is not as it was written ({type(error).__name__})")
    else:
        return error
    found.__cause__ = error
    return found
