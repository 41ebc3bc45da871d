"""The connections of one process to its file: one that writes, and some that read.

They are made when they are needed, and made anew after one has failed, because a handle that saw a
failing disk is not to be trusted. None is carried across a fork: before it, what is in flight is
finished and all are closed.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from holdfast.errors import StoreClosed, StoreError
from holdfast.stores.sqlite.errors import is_fatal
from holdfast.stores.sqlite.file import SQLiteFile


class Pool:
    """Connections to lend. `limit` is how many may be out at a time."""

    def __init__(self, file: SQLiteFile, limit: int) -> None:
        self._file = file
        self._limit = limit
        self._free: list[sqlite3.Connection] = []
        self._out = 0
        self._changed = threading.Condition()
        self._is_closed = self._is_paused = False

    @contextmanager
    def lend(self) -> Iterator[sqlite3.Connection]:
        """A connection for the length of a block; it comes back without a transaction."""
        db = self.take()
        try:
            yield db
        except BaseException as error:
            self.give(db, error)
            raise
        self.give(db)

    def close(self) -> None:
        """Wait for what is out, and close everything. Nothing is lent any more until `open`."""
        self._is_closed = True
        self.pause()

    def pause(self) -> None:
        """Wait for what is out, and close everything. Who asks meanwhile waits for `open`."""
        with self._changed:
            self._is_paused = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._out)
            free, self._free = self._free, []
        for db in free:
            self._file.close(db)

    def open(self) -> None:
        """Lend again."""
        with self._changed:
            self._is_closed = self._is_paused = False
            self._changed.notify_all()

    def forget(self) -> None:
        """In a forked child: nothing is out here, whatever was out in the parent."""
        self._changed = threading.Condition()
        self._free, self._out = [], 0

    def take(self) -> sqlite3.Connection:
        """A connection, to be given back."""
        with self._changed:
            while not (self._is_closed or self._can_lend()):
                self._changed.wait()
            if self._is_closed:
                raise StoreClosed(self._file.where)
            self._out += 1
            if self._free:
                return self._free.pop()
        try:
            return self._file.connect()
        except BaseException:
            self._settle()
            raise

    def _can_lend(self) -> bool:
        return not self._is_paused and (bool(self._free) or self._out < self._limit)

    def give(self, db: sqlite3.Connection, error: BaseException | None = None) -> None:
        """Give it back, after an error too; one that is not to be trusted any more is closed."""
        if (error is not None and is_fatal(error)) or not _is_clean(db):
            with suppress(StoreError):  # it failed before, and is given up
                self._file.close(db)
            self._settle()
        else:
            self._settle(db)

    def _settle(self, *kept: sqlite3.Connection) -> None:
        with self._changed:
            self._free += kept
            self._out -= 1
            self._changed.notify_all()


def _is_clean(db: sqlite3.Connection) -> bool:
    """Whether the connection is outside of any transaction now."""
    try:
        if db.in_transaction:
            db.execute("ROLLBACK")
    except sqlite3.Error:
        return False
    return True
