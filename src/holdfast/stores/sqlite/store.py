"""Sessions in one SQLite file: the default store.

Everything that writes goes through one queue (`writer.py`) and is committed in groups, under a lock
that all processes on the file share. Readers have connections of their own and never wait for
writers: small reads run in the event loop's thread, because handing them over would cost more than
they do, and large ones in threads.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from holdfast.errors import InvalidInput, StoreClosed, StoreError, StoreUnavailable
from holdfast.private_files import absolute
from holdfast.stores.base import Store
from holdfast.stores.bell import Bell
from holdfast.stores.front import Front
from holdfast.stores.opening import Opening
from holdfast.stores.owners import Owners
from holdfast.stores.relay import Relay
from holdfast.stores.requests import Request
from holdfast.stores.shelf import Shelf
from holdfast.stores.sqlite.backup import back_up
from holdfast.stores.sqlite.commits import Commits, translated, typed
from holdfast.stores.sqlite.file import Durability, SQLiteFile
from holdfast.stores.sqlite.formats import FORMAT
from holdfast.stores.sqlite.pool import Pool
from holdfast.stores.sqlite.settings import settings
from holdfast.stores.sqlite.shelf import SQLiteShelf
from holdfast.stores.values import (
    LIMITS,
    Found,
    Limits,
    Page,
    Problem,
    Verified,
    check_limits,
)
from holdfast.stores.writer import GroupCommit

_Result = TypeVar("_Result")

ROWS_AT_ONCE = 256  # what is read in the loop's own thread
READERS_MAX = 4
INDEX_AFTER_S = 1.0
INDEX_STEP = 256
_MANY = 10**6


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
        self.limits = check_limits(limits)
        self._file = SQLiteFile(path, durability=durability, create=create)
        self._owners = Owners(Path(f"{self._file.where}-owners"))
        self._commits = Commits(self._file, self._owners)
        self._reading = Pool(self._file, READERS_MAX + 1)
        self._state = "not open yet"
        self._pid = 0
        self._watching = Pool(self._file, 1)
        self._opening = Opening(self._open, self._close)

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self._file.path

    # Opening and closing

    def tenant(self, name: str = "") -> "SQLiteTenant":
        return SQLiteTenant(name, self)

    async def tenants(self) -> tuple[str, ...]:
        return tuple(await self.read(lambda shelf: _of(shelf).tenants(), rows=_MANY))

    async def open(self) -> None:
        if self._state == "open":
            return
        if self._state == "closed":
            raise StoreClosed(self._file.where)
        await self._opening.run()
        self._bind()
        self._file.on_fork(self._before_fork, self._after_fork)
        self._state = "open"

    def _open(self) -> None:
        for pool in (self._reading, self._watching):
            pool.open()  # an earlier try may have ended in `_close`
        self._file.open(FORMAT)
        self._commits.open()
        self._owners.sweep()

    def _bind(self) -> None:
        """Belong to the loop that runs, in this process."""
        self._pid = os.getpid()
        self._loop = asyncio.get_running_loop()
        self._writer = GroupCommit(self._commits.run, self._written)
        self._bell = Bell(self._data_version)
        self._threads = ThreadPoolExecutor(READERS_MAX, "holdfast-reader")
        self._indexer: asyncio.Task[None] | None = None
        self._index_timer: asyncio.TimerHandle | None = None
        self._is_indexing = False

    async def close(self) -> None:
        if self._state == "open":
            self._check()
            self._state = "closing"
            self._closing = self._loop.create_task(self._finish())
        if self._state == "closing" and not self._closing.done():
            await asyncio.shield(self._closing)
        self._state = "closed"

    async def _finish(self) -> None:
        """Close everything, whoever stops waiting for it."""
        if self._index_timer is not None:
            self._index_timer.cancel()
        if self._indexer is not None:
            await asyncio.wait([self._indexer])
        await self._writer.close()
        self._threads.shutdown()
        await asyncio.to_thread(self._close)
        self._bell.ring()

    def _close(self) -> None:
        with suppress(StoreError):
            self._watching.close()
            self._reading.close()
            self._commits.close()
            self._owners.close()
        self._file.shut()

    def _check(self) -> None:
        """That the store is open, in this process, and in the loop that it belongs to."""
        self._check_open()
        if self._pid != os.getpid():
            self._bind()
        elif asyncio.get_running_loop() is not self._loop:
            raise InvalidInput("the store", "belongs to the loop that opened it: open another one")

    def _check_open(self) -> None:
        if self._state != "open":
            raise StoreClosed(self._file.where, f"the store is {self._state}")

    def problems(self) -> list[str]:
        self._check_open()
        with self._reading.lend() as db:
            return self._file.problems(db)

    def look(self) -> dict[str, object]:
        """The settings of a connection, as SQLite tells them now."""
        self._check_open()
        with self._reading.lend() as db:
            return settings(db)

    def places(self) -> tuple[str, ...]:
        return tuple(str(path) for path in self._file.files())

    # Writing

    def write(self, request: Request[_Result]) -> Coroutine[Any, Any, _Result]:
        """The result of a request, when it is committed."""
        self._check()
        return self._writer.submit(request)

    def write_all(
        self, requests: Sequence[Request[_Result]]
    ) -> Coroutine[Any, Any, list[_Result | BaseException]]:
        """For each of several requests its result or its error."""
        self._check()
        return self._writer.submit_all(requests)

    def _written(self) -> None:
        self._bell.ring()
        self._index_later()

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
        db = self._reading.take()
        shelf = SQLiteShelf(db, self._owners)
        try:
            db.execute("BEGIN")
            result = function(shelf)
            db.execute("COMMIT")
        except BaseException as error:
            shelf.settle()
            self._reading.give(db, error)
            if isinstance(error, Exception) and (found := typed(error, self._file.where)) != error:
                raise found from error
            raise
        self._reading.give(db)
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

    async def backup(
        self, path: str | Path, *, on_progress: Callable[[float], object] | None = None
    ) -> None:
        self._check()
        target, relay = absolute(path), Relay(on_progress)
        with relay.heard():
            await self._loop.run_in_executor(self._threads, self._backup, target, relay.tell)

    def _backup(self, target: Path, tell: Callable[[float], object]) -> None:
        with translated(str(target)), self._reading.lend() as db:
            back_up(db, target, tell)

    # The search index

    async def index_all(
        self, on_progress: Callable[[float, float | None], object] | None = None
    ) -> None:
        """Bring the index up to the log as it is now: others may write faster than it is filled."""
        total = 0
        goal = await self.read(lambda shelf: _of(shelf).latest(), rows=1)
        while left := await self.read(lambda shelf: _of(shelf).unindexed(goal), rows=1):
            total = max(total, left)
            if on_progress is not None:
                on_progress(total - left, total)
            await self._writer.submit(_FillIndex("", 0, INDEX_STEP * 4))
        if on_progress is not None and total:
            on_progress(total, total)

    def _index_later(self) -> None:
        """Fill the index behind the log, when there is nothing else to do for a while."""
        if self._index_timer is None and self._state == "open" and not self._is_indexing:
            self._index_timer = self._loop.call_later(INDEX_AFTER_S, self._index_now)

    def _index_now(self) -> None:
        self._index_timer = None
        if self._indexer is None or self._indexer.done():
            self._indexer = self._loop.create_task(self._index())

    async def _index(self) -> None:
        self._is_indexing = True  # or filling the index would ask for filling the index
        try:
            done = INDEX_STEP
            while done == INDEX_STEP and self._state == "open" and self._writer.is_idle:
                done = await self._writer.submit(_FillIndex("", 0, INDEX_STEP))
        except StoreError:
            pass  # the next search meets it, and tells
        finally:
            self._is_indexing = False

    # Forking

    def _before_fork(self) -> None:
        """Wait for what is in flight, and close every connection."""
        self._watching.pause()
        self._reading.pause()
        self._commits.close()

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

    def _write(self, request: Request[_Result]) -> Coroutine[Any, Any, _Result]:
        return self._store.write(request)

    def _write_all(
        self, requests: Sequence[Request[_Result]]
    ) -> Coroutine[Any, Any, list[_Result | BaseException]]:
        return self._store.write_all(requests)

    async def _read(self, function: Callable[[Shelf], _Result], rows: int = 1) -> _Result:
        return await self._store.read(function, rows)

    async def _changed(self) -> None:
        await self._store.news()

    async def index(
        self, *, on_progress: Callable[[float, float | None], object] | None = None
    ) -> None:
        await self._store.index_all(on_progress)

    async def search(
        self, query: str, *, session: str | None = None, limit: int = 20, page: str | None = None
    ) -> Page[Found]:
        await self._store.index_all()
        return await super().search(query, session=session, limit=limit, page=page)

    async def verify(
        self, id: str | None = None, *, on_progress: Callable[[int], object] | None = None
    ) -> Verified:
        found = await super().verify(id, on_progress=on_progress)
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
