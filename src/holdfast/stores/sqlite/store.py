"""Sessions in one SQLite file: the default store.

Everything that writes goes through one queue (`writer.py`) and is committed in groups, under a lock
that all processes on the file share. Readers have connections of their own and never wait for
writers: small reads run in the event loop's thread, because handing them over would cost more than
they do, and large ones in threads.
"""

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from holdfast.errors import Corrupt, HoldfastError, InvalidInput, StoreError, StoreUnavailable
from holdfast.stores.base import Store
from holdfast.stores.bell import Bell
from holdfast.stores.front import Front
from holdfast.stores.owners import Owners
from holdfast.stores.private_files import absolute, make_file, sync_folder
from holdfast.stores.requests import Clear, Erase, Journal, OfSession, Request
from holdfast.stores.residue import is_left
from holdfast.stores.shelf import Shelf
from holdfast.stores.sqlite.errors import is_fatal, translate
from holdfast.stores.sqlite.file import Durability, SQLiteFile
from holdfast.stores.sqlite.formats import FORMAT, bring_up
from holdfast.stores.sqlite.pool import Pool
from holdfast.stores.sqlite.settings import pragma
from holdfast.stores.sqlite.shelf import SQLiteShelf
from holdfast.stores.sqlite.wiping import write_all_anew
from holdfast.stores.values import LIMITS, Found, Limits, Page, Problem, Verified
from holdfast.stores.writer import GroupCommit, Outcome

_Result = TypeVar("_Result")

LOCK_WAIT_S = 30.0
PURGE_WAIT_MS = 10_000
ROWS_AT_ONCE = 256  # what is read in the loop's own thread
READERS_MAX = 4
INDEX_AFTER_S = 1.0
INDEX_STEP = 256
CHECKPOINT_ROWS = 256  # written by this process, between two looks at the size of the WAL
_MANY = 10**6

# What a row of another kind than we write leads to, somewhere in the code that reads it.
_MISFITS = (TypeError, ValueError, AttributeError, OverflowError, LookupError, AssertionError)


class SQLiteStore(Store):
    """A store in the file at `path`.

    At `durability` "sync" what was acknowledged survives a power cut; at "fast" it survives the
    death of the process, and a commit does not wait for the disk.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        durability: Durability = "sync",
        limits: Limits = LIMITS,
        create: bool = True,
    ) -> None:
        self.limits = limits
        self._file = SQLiteFile(path, durability=durability, create=create)
        self._durability = durability
        self._owners = Owners(Path(f"{self._file.where}-owners"))
        self._db: sqlite3.Connection | None = None  # the one that writes, under the lock
        self._reading = Pool(self._file, READERS_MAX + 1)
        self._state = "not open yet"
        self._pid = 0
        self._written = 0
        self._is_fast = False
        self._watching = Pool(self._file, 1)

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self._file.path

    # Opening and closing

    def tenant(self, name: str = "") -> "SQLiteTenant":
        return SQLiteTenant(name, self)

    async def open(self) -> None:
        if self._state == "open":
            return
        if self._state == "closed":
            raise StoreUnavailable(self._file.where, "the store is closed")
        await asyncio.to_thread(self._open)
        self._bind()
        self._file.on_fork(self._disconnect, self._after_fork)
        self._state = "open"

    def _open(self) -> None:
        self._file.open(FORMAT)
        with translated(self._file.where), self._file.locked(LOCK_WAIT_S):
            self._db = self._file.connect()
            bring_up(self._db, self._file.where)
        self._owners.sweep()

    def _bind(self) -> None:
        """Belong to the loop that runs, in this process."""
        self._pid = os.getpid()
        self._loop = asyncio.get_running_loop()
        self._writer = GroupCommit(self._commit)
        self._bell = Bell(self._data_version)
        self._threads = ThreadPoolExecutor(READERS_MAX, "holdfast-reader")
        self._indexer: asyncio.Task[None] | None = None
        self._index_timer: asyncio.TimerHandle | None = None

    async def close(self) -> None:
        if self._state == "open":
            self._check()
            self._state = "closing"
            if self._index_timer is not None:
                self._index_timer.cancel()
            if self._indexer is not None:
                await asyncio.wait([self._indexer])
            await self._writer.close()
            await asyncio.to_thread(self._close)
            self._bell.ring()
        self._state = "closed"

    def _close(self) -> None:
        self._threads.shutdown()
        self._disconnect()
        self._owners.close()
        self._file.shut()

    def _check(self) -> None:
        """That the store is open, in this process, and in the loop that it belongs to."""
        if self._state != "open":
            raise StoreUnavailable(self._file.where, f"the store is {self._state}")
        if self._pid != os.getpid():
            self._bind()
        elif asyncio.get_running_loop() is not self._loop:
            raise InvalidInput("the store", "belongs to the loop that opened it: open another one")

    def problems(self) -> list[str]:
        with self._reading.lend() as db:
            return self._file.problems(db)

    # Writing

    async def write(self, request: Request[_Result]) -> _Result:
        """The result of a request, when it is committed."""
        self._check()
        result = await self._writer.submit(request)
        self._bell.ring()
        self._index_later()
        return result

    def _commit(self, requests: Sequence[Request[Any]], may_wait: bool) -> Outcome | None:
        """One batch, under the lock; by the loop's thread or by the writer's."""
        try:
            if not self._file.lock(LOCK_WAIT_S if may_wait else 0):
                if not may_wait:
                    return None
                raise StoreUnavailable(self._file.where, f"others kept it for {LOCK_WAIT_S:g} s")
            try:
                return self._commit_locked(requests)
            finally:
                self._file.unlock()
        except BaseException as error:  # noqa: BLE001 - each caller is answered, whatever it is
            return [error] * len(requests), 0.0

    def _commit_locked(self, requests: Sequence[Request[Any]]) -> Outcome:
        try:
            if self._file.moved():
                raise StoreUnavailable(self._file.where, "the file was replaced or deleted")
            if self._db is None:
                self._db, self._is_fast = self._file.connect(), False
            shelf, results, seconds = self._transaction(self._db, requests)
        except Exception as error:  # noqa: BLE001 - undone, and told to those whom it concerns
            self._undo(error)
            if len(requests) == 1:
                return [typed(error, self._file.where)], 0.0
        else:
            return self._after(shelf, requests, results), seconds
        # One of them does not go: each by itself, so that the others do.
        outcomes = [self._commit_locked([request]) for request in requests]
        return [results[0] for results, _ in outcomes], max(seconds for _, seconds in outcomes)

    def _undo(self, error: Exception) -> None:
        """Leave the transaction; and the connection, if it is not to be trusted any more."""
        if self._db is None:
            return
        try:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        except sqlite3.Error as another:
            error = another
        if is_fatal(error) or self._db.in_transaction:
            db, self._db = self._db, None
            with suppress(StoreError):
                self._file.close(db)

    def _transaction(
        self, db: sqlite3.Connection, requests: Sequence[Request[Any]]
    ) -> tuple[SQLiteShelf, list[Any], float]:
        """Everything up to the commit: what raises here has not happened."""
        is_fast = self._durability == "sync" and all(type(each) is Journal for each in requests)
        if is_fast != self._is_fast:
            pragma(db, f"synchronous={'NORMAL' if is_fast else 'FULL'}")
            self._is_fast = is_fast
        db.execute("BEGIN IMMEDIATE")
        shelf = SQLiteShelf(db, self._owners)
        shelf.fetch(each.id for each in requests if isinstance(each, OfSession))
        results: list[Any] = []
        for each in requests:
            try:
                results.append(each.run(shelf))
            except HoldfastError as error:
                results.append(error)
        shelf.flush()
        start = time.perf_counter()
        db.execute("COMMIT")
        return shelf, results, time.perf_counter() - start

    def _after(
        self, shelf: SQLiteShelf, requests: Sequence[Request[Any]], results: list[Any]
    ) -> list[Any]:
        """What follows a commit. It is done, whatever happens here; only purging can still fail."""
        assert self._db is not None
        try:
            if shelf.is_purging:
                self._purge(self._db, shelf.removed)
            else:
                self._checkpoint(self._db, shelf.written)
        except Exception as error:  # noqa: BLE001 - the next checkpoint, or who purged, meets it
            self._undo(error)
            if shelf.is_purging:
                told = typed(error, self._file.where)
                return [
                    told if isinstance(each, Erase | Clear) else result
                    for each, result in zip(requests, results, strict=True)
                ]
        return results

    def _checkpoint(self, db: sqlite3.Connection, rows: int) -> None:
        """Move the WAL into the database when it is long; how long is looked at now and then."""
        self._written += rows
        if self._written >= CHECKPOINT_ROWS:
            self._written = 0
            if (mode := self._file.checkpoint_due()) is not None:
                self._file.checkpoint(db, mode=mode)

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
        is_busy, *_ = self._file.checkpoint(db, mode="TRUNCATE", wait_ms=PURGE_WAIT_MS)
        if is_busy:
            raise StoreUnavailable(
                self._file.where, "it is removed, but a reader keeps the old state: ask again"
            )

    # Reading

    async def read(self, function: Callable[[Shelf], _Result], rows: int) -> _Result:
        """What a function makes of the committed rows."""
        self._check()
        if rows <= ROWS_AT_ONCE:
            return self._view(function)
        return await self._loop.run_in_executor(self._threads, self._view, function)

    def _view(self, function: Callable[[Shelf], _Result]) -> _Result:
        if self._file.moved():
            raise StoreUnavailable(self._file.where, "the file was replaced or deleted")
        with translated(self._file.where), self._reading.lend() as db:
            db.execute("BEGIN")
            result = function(SQLiteShelf(db, self._owners))
            db.execute("COMMIT")
            return result

    def _data_version(self) -> int:
        with translated(self._file.where), self._watching.lend() as db:
            return int(db.execute("PRAGMA data_version").fetchone()[0])

    async def news(self) -> None:
        """Wait until something may have been written."""
        self._check()
        await self._bell.wait()
        self._check()

    async def damage(self) -> list[str]:
        """What SQLite itself finds wrong with the file."""
        return await self.read(_damage, rows=_MANY)

    async def backup(self, path: str | Path) -> None:
        self._check()
        target = absolute(path)
        await self._loop.run_in_executor(self._threads, self._backup, target)

    def _backup(self, target: Path) -> None:
        """A copy made beside the target, which gets its name when it is whole and on disk."""
        if os.path.lexists(target):
            raise InvalidInput("path", f"there is something at {target} already")
        part = target.with_name(f"{target.name}.part")
        with translated(str(target)):
            make_file(part)
            copy = sqlite3.connect(part)
            try:
                with self._reading.lend() as db:
                    db.backup(copy)
                copy.execute("PRAGMA journal_mode=DELETE")  # so that it is one file
            except BaseException:
                copy.close()
                part.unlink()
                raise
            copy.close()
            with part.open("rb") as file:
                os.fsync(file.fileno())
            os.link(part, target)  # and not over what may have come there meanwhile
            part.unlink()
            sync_folder(target.parent)

    # The search index

    async def index_all(self) -> None:
        """Bring the index up to the log."""
        while await self.read(lambda shelf: _of(shelf).unindexed(), rows=1):
            await self._writer.submit(_FillIndex("", 0, INDEX_STEP * 4))

    def _index_later(self) -> None:
        """Fill the index behind the log, when there is nothing else to do for a while."""
        if self._index_timer is None:
            self._index_timer = self._loop.call_later(INDEX_AFTER_S, self._index_now)

    def _index_now(self) -> None:
        self._index_timer = None
        if self._indexer is None or self._indexer.done():
            self._indexer = self._loop.create_task(self._index())

    async def _index(self) -> None:
        try:
            done = INDEX_STEP
            while done == INDEX_STEP and self._state == "open":
                done = await self._writer.submit(_FillIndex("", 0, INDEX_STEP))
        except StoreError:
            pass  # the next search meets it, and tells

    # Forking

    def _disconnect(self) -> None:
        """Wait for what is in flight, and close every connection."""
        self._watching.close()
        self._reading.close()
        with self._file.locked(LOCK_WAIT_S):
            if self._db is not None:
                db, self._db = self._db, None
                self._file.close(db)

    def _after_fork(self) -> None:
        for pool in (self._reading, self._watching):
            if self._pid != os.getpid():
                pool.forget()
            pool.open()


class SQLiteTenant(Front):
    """One tenant's sessions in a file."""

    def __init__(self, name: str, store: SQLiteStore) -> None:
        super().__init__(name, store.limits)
        self._store = store

    async def _write(self, request: Request[_Result]) -> _Result:
        return await self._store.write(request)

    async def _read(self, function: Callable[[Shelf], _Result], rows: int = 1) -> _Result:
        return await self._store.read(function, rows)

    async def _changed(self) -> None:
        await self._store.news()

    async def search(
        self, query: str, *, session: str | None = None, limit: int = 20, page: str | None = None
    ) -> Page[Found]:
        await self._store.index_all()
        return await super().search(query, session=session, limit=limit, page=page)

    async def verify(self, id: str | None = None) -> Verified:
        found = await super().verify(id)
        if id is not None:
            return found
        damage = [Problem("", "", 0, each) for each in await self._store.damage()]
        return found._replace(problems=(*found.problems, *damage))


@dataclass(slots=True)
class _FillIndex(Request[int]):
    """Indexes some more entries; how many it went over."""

    limit: int

    is_long = True

    def run(self, shelf: Shelf) -> int:
        return _of(shelf).index(self.limit)


def _of(shelf: Shelf) -> SQLiteShelf:
    assert isinstance(shelf, SQLiteShelf)
    return shelf


def _damage(shelf: Shelf) -> list[str]:
    return _of(shelf).damage()


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
    elif isinstance(error, _MISFITS):
        found = Corrupt(where, f"a row is not as it was written ({type(error).__name__})")
    else:
        return error
    found.__cause__ = error
    return found
