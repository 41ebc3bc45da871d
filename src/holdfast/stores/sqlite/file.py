"""One SQLite database as a file that many threads and processes use at once.

Beside the database `chat.db` stand SQLite's own `chat.db-wal` and `chat.db-shm`, and our
`chat.db-lock`. The database says whose it is in its header: application_id is "hold", and
user_version is the format of the store, 0 as long as the store has made no tables.

    file = SQLiteFile("chat.db")
    file.open(format_known=1)
    db = file.connect()
    with file.locked():
        db.execute("BEGIN IMMEDIATE")
        ...
        db.execute("COMMIT")
        if mode := file.checkpoint_due():
            file.checkpoint(db, mode=mode)
    file.close(db)

Every write, every checkpoint and every close is made under the lock, in every process. So nobody
starves at SQLite's write lock, and a commit and a checkpoint never meet, which is what damages a
database in versions of SQLite with the WAL-reset bug.
"""

import os
import sqlite3
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Literal

from holdfast import private_files
from holdfast.errors import Corrupt, StoreError, StoreUnavailable
from holdfast.file_lock import FileLock
from holdfast.stores.sqlite import wal
from holdfast.stores.sqlite.errors import is_busy, is_fatal, translate
from holdfast.stores.sqlite.header import APPLICATION_ID, check_header, stamp
from holdfast.stores.sqlite.journal import check_journal
from holdfast.stores.sqlite.settings import (
    BUSY_MS,
    SETTINGS,
    WAL_CHECKPOINT_BYTES,
    WAL_TRUNCATE_BYTES,
    harden,
    has_tables,
    pragma,
    settings,
)
from holdfast.stores.sqlite.wal import has_wal_reset_bug
from holdfast.stores.values import check_durability

__all__ = [
    "APPLICATION_ID",
    "SETTINGS",
    "SQLiteFile",
    "has_wal_reset_bug",
    "is_fatal",
    "settings",
    "translate",
]

OPEN_WAIT_S = 30.0
CLOSE_WAIT_S = 10.0
CHECKPOINT_WAIT_MS = 250

_SIZE_MIN = 512  # the smallest page
_SUFFIXES = ("", "-wal", "-shm", "-journal", "-lock")

Durability = Literal["sync", "fast"]
Mode = Literal["PASSIVE", "TRUNCATE"]


class SQLiteFile:
    """The database at a path: makes and checks it, connects to it, and guards its writes.

    `durability` is "sync", where a commit survives a power cut, or "fast", where it survives the
    death of the process. Nothing is touched before open().
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        durability: Durability = "sync",
        create: bool = True,
    ) -> None:
        check_durability(durability)
        self.path = private_files.absolute(path)
        self.where = str(self.path)
        self.wanted = dict(SETTINGS) | {"synchronous": 2 if durability == "sync" else 1}
        self._create = create
        self._wal = self._beside("-wal")
        self._wal_name = str(self._wal)
        self._lock = FileLock(self._beside("-lock"))
        self._seen: tuple[int, int] | None = None
        self._checkpointed = 0
        self._is_made = False
        self._before_fork: list[Callable[[], None]] = []
        self._after_fork: list[Callable[[], None]] = []

    def _beside(self, suffix: str) -> Path:
        return Path(self.where + suffix)

    def files(self) -> list[Path]:
        """Where the data may be: the file itself, and what SQLite puts beside it."""
        return [self._beside(suffix) for suffix in _SUFFIXES]

    def size(self) -> int:
        """In bytes, without what is in the WAL."""
        return os.lstat(self.path).st_size

    # Opening

    def open(self, format_known: int) -> None:
        """Make the file if there is none, and see that it is ours and not too new.

        A file that is refused is not changed, and nothing is put beside it.
        """
        with self._translated():
            if self._create:
                private_files.make_folder(self.path.parent)
            self._check_names()
            try:
                self._check(format_known)
            except StoreError:
                # What is not ours gets no lock file either. Where there is one, somebody may be
                # in the middle of a checkpoint: look again when he is not.
                if not os.path.lexists(self._lock.path):
                    raise
            with self.locked(OPEN_WAIT_S):
                # Nobody has connected to a file that we make here: to close a descriptor of it
                # would drop the locks that SQLite has on it in this process.
                if self._create:
                    private_files.make_file(self.path)
                self._check_names()
                self._check(format_known)
                there = os.lstat(self.path)
        self._seen = there.st_dev, there.st_ino
        _files.add(self)

    def _check_names(self) -> None:
        for suffix in _SUFFIXES:
            private_files.check_regular(self._beside(suffix))

    def _check(self, format_known: int) -> None:
        try:
            size = os.lstat(self.path).st_size
        except FileNotFoundError:
            if not self._create:
                raise StoreUnavailable(self.where, "there is no such file") from None
            return
        if 0 < size < _SIZE_MIN:  # SQLite would take it for an empty one, and write over it
            raise Corrupt(self.where, "it is not a SQLite database, or the path is wrong")
        if size:
            check_journal(self.path)
            check_header(self.path, format_known)

    # Connecting

    def connect(self) -> sqlite3.Connection:
        """A connection with all settings, each read back; in autocommit, for use by any thread.

        StoreUnavailable names a setting that did not take.
        """
        assert self._seen is not None, "open() comes first"
        with self._translated():
            db = sqlite3.connect(
                f"{self.path.as_uri()}?mode=rw",  # a file that has gone is not made anew
                uri=True,
                timeout=BUSY_MS / 1000,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=256,
            )
            try:
                self._settle(db)
                if self.moved():
                    raise StoreUnavailable(self.where, "the file was replaced or deleted")
            except BaseException:
                self.close(db)
                raise
        self._is_made = True
        return db

    def _settle(self, db: sqlite3.Connection) -> None:
        harden(db)
        for name, wanted in self.wanted.items():
            if name == "journal_mode" and not self._is_begun(db):
                self._begin(db)
            pragma(db, f"{name}={wanted}")
        for name, found in settings(db).items():
            if found != self.wanted[name]:
                raise StoreUnavailable(self.where, self._did_not_take(name, found))

    def _did_not_take(self, name: str, found: object) -> str:
        return f"SQLite keeps {name} at {found!r}, and {self.wanted[name]!r} is needed"

    def _is_begun(self, db: sqlite3.Connection) -> bool:
        is_wal = pragma(db, "journal_mode") == self.wanted["journal_mode"]
        return is_wal and pragma(db, "application_id") == APPLICATION_ID

    def _begin(self, db: sqlite3.Connection) -> None:
        """Make an empty database ours, and switch it to WAL.

        SQLite does not wait where two connections switch at once, so we try again. Id and stamp go
        first, so that a file with a WAL has them in the database itself; also where another
        program has made an empty one that is in WAL mode already.
        """
        deadline = time.monotonic() + OPEN_WAIT_S
        with self._locked_here():
            if pragma(db, "application_id") != APPLICATION_ID:
                db.execute("BEGIN IMMEDIATE")
                if has_tables(db):
                    raise StoreUnavailable(self.where, "another program has made tables in it")
                pragma(db, f"application_id={APPLICATION_ID}")
                stamp(db)
                db.execute("COMMIT")
                pragma(db, "wal_checkpoint")
            while True:
                try:
                    if pragma(db, "journal_mode=wal") == "wal":
                        return
                except sqlite3.OperationalError as error:
                    if not is_busy(error):
                        raise
                if time.monotonic() >= deadline:
                    return  # reading the settings back tells
                time.sleep(0.005)

    def close(self, db: sqlite3.Connection) -> None:
        """Close a connection. The last one to close empties the WAL and removes it.

        If the lock cannot be had, the connection is closed all the same: who holds the lock has a
        connection too, so this is not the last one, and closing it writes nothing.
        """
        try:
            is_held = not self._lock.is_mine and self.lock(CLOSE_WAIT_S)
        except StoreError:
            is_held = False
        try:
            with self._translated():
                db.close()
        finally:
            if is_held:
                self.unlock()

    def shut(self) -> None:
        """Let the descriptor of the lock go, when all connections are closed."""
        _files.discard(self)
        self._lock.close()

    def moved(self) -> bool:
        """Whether the file at the path is not the one that was opened any more, or empty."""
        try:  # written out, like the lock: this is done for every commit
            there = os.lstat(self.where)
        except FileNotFoundError:
            return True
        except OSError as error:
            raise translate(error, self.where) from error
        is_emptied = self._is_made and not there.st_size
        return is_emptied or (there.st_dev, there.st_ino) != self._seen

    # The lock

    def lock(self, timeout_s: float | None = 0) -> bool:
        """Whether the lock is held now. 0 tries once, None waits as long as it takes."""
        try:
            return self._lock.acquire(timeout_s)
        except OSError as error:
            raise translate(error, self.where) from error

    def unlock(self) -> None:
        """Let the lock go; nothing happens if it is not held."""
        try:
            self._lock.release()
        except OSError as error:
            raise translate(error, self.where) from error

    @contextmanager
    def locked(self, timeout_s: float | None = OPEN_WAIT_S) -> Iterator[None]:
        """The lock for the length of a block, or StoreUnavailable if it cannot be had in time."""
        if not self.lock(timeout_s):
            raise StoreUnavailable(self.where, f"others have kept it locked for {timeout_s:g} s")
        try:
            yield
        finally:
            self.unlock()

    @contextmanager
    def _locked_here(self) -> Iterator[None]:
        if self._lock.is_mine:
            yield
        else:
            with self.locked():
                yield

    # The WAL

    def has_wal(self) -> bool:
        """Whether there is a WAL; there is always one while a connection has written."""
        # Not by stat: who has looked at a file's times makes the next write to it set new ones,
        # and then a sync of the WAL writes its inode too, and takes a quarter longer.
        return os.access(self._wal_name, os.F_OK)

    def wal_bytes(self) -> int:
        """The size of the WAL file, of which all or a part is in use."""
        try:
            return os.stat(self._wal).st_size
        except FileNotFoundError:
            return 0

    def checkpoint_due(self) -> Mode | None:
        """The checkpoint to make after this commit, if any. Costs one stat most of the time.

        Where a reader stands in the way, the next try comes after as much again was written.
        """
        with self._translated():
            if self.wal_bytes() < WAL_CHECKPOINT_BYTES:
                return None
            used = wal.bytes_used(self._wal)
        if used < self._checkpointed:
            self._checkpointed = 0  # the WAL has started again from its beginning
        if used - self._checkpointed < WAL_CHECKPOINT_BYTES:
            return None
        return "TRUNCATE" if used >= WAL_TRUNCATE_BYTES else "PASSIVE"

    def checkpoint(
        self,
        db: sqlite3.Connection,
        *,
        mode: Mode = "PASSIVE",
        wait_ms: int = CHECKPOINT_WAIT_MS,
    ) -> tuple[bool, int, int]:
        """Move the WAL into the database: was somebody in the way, pages in the WAL, pages moved.

        PASSIVE moves what it can without waiting. TRUNCATE waits up to `wait_ms` for readers, and
        then leaves no WAL behind; if they stay, it has done what PASSIVE does.
        """
        assert self._lock.is_mine, "a checkpoint is made under the lock"
        assert not db.in_transaction, "a checkpoint is made between transactions"
        with self._translated():
            pragma(db, f"busy_timeout={wait_ms}")
            try:
                busy, pages, moved = db.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
            finally:
                pragma(db, f"busy_timeout={BUSY_MS}")
            self._checkpointed = wal.bytes_used(self._wal)
        return bool(busy), pages, moved

    def problems(self, db: sqlite3.Connection | None = None) -> list[str]:
        """What is doubtful here, each in a sentence with the way out; with `db`, settings too."""
        with self._translated():
            found = [
                f for suffix in _SUFFIXES for f in private_files.problems(self._beside(suffix))
            ]
            found += private_files.folder_problems(self.path.parent)
            if has_wal_reset_bug(sqlite3.sqlite_version_info):
                found.append(
                    f"SQLite {sqlite3.sqlite_version} can damage a database when a commit and a "
                    "checkpoint meet (the WAL-reset bug): holdfast keeps them apart, other "
                    "programs that write to the file do not; update SQLite to 3.51.3 or later"
                )
            if db is not None:
                found += [
                    f"{self._did_not_take(name, value)}: connect again, or use another SQLite"
                    for name, value in settings(db).items()
                    if value != self.wanted[name]
                ]
        return found

    # Forking

    def on_fork(self, before: Callable[[], None], after: Callable[[], None]) -> None:
        """Have `before` called before the process forks, and `after` in both of them.

        A connection must not live in two processes: `before` finishes what is in flight and
        closes them. They are made anew when they are needed.
        """
        self._before_fork.append(before)
        self._after_fork.append(after)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error, MemoryError) as error:
            raise translate(error, self.where) from error


# Files that are open in this process, for the moment when it forks.
_files: "weakref.WeakSet[SQLiteFile]" = weakref.WeakSet()


def _each(steps: list[Callable[[], None]]) -> None:
    with ExitStack() as stack:  # one that fails does not keep the others from running
        for step in reversed(steps):
            stack.callback(step)


def _before_fork() -> None:
    callbacks = [step for file in _files for step in file._before_fork]
    _each(callbacks + [file._lock.before_fork for file in _files])


def _after_fork_in_parent() -> None:
    callbacks = [step for file in _files for step in file._after_fork]
    _each([file._lock.after_fork_in_parent for file in _files] + callbacks)


def _after_fork_in_child() -> None:
    callbacks = [step for file in _files for step in file._after_fork]
    _each([file._lock.after_fork_in_child for file in _files] + callbacks)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
