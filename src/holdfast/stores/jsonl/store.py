"""Sessions in a folder of nanobot's files.

Everything that reads or writes takes nanobot's own lock, so that nobody sees half of anything.
Writes go through one queue (`writer.py`); small reads run in the event loop's thread, unless the
lock is held elsewhere.
"""

import asyncio
import os
import shutil
import stat
import weakref
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypeVar

from holdfast import private_files
from holdfast.errors import InvalidInput, StoreClosed, StoreError, StoreUnavailable
from holdfast.stores.base import Store
from holdfast.stores.bell import Bell
from holdfast.stores.disk_errors import translate
from holdfast.stores.front import Front
from holdfast.stores.jsonl.commits import LOCK_WAIT_S, Commits
from holdfast.stores.jsonl.files import LOCK, OWN
from holdfast.stores.jsonl.place import Place
from holdfast.stores.opening import Opening
from holdfast.stores.relay import Relay
from holdfast.stores.requests import Request
from holdfast.stores.shelf import Shelf
from holdfast.stores.values import (
    LIMITS,
    Limits,
    Problem,
    Verified,
    check_durability,
    check_limits,
)
from holdfast.stores.writer import GroupCommit

_Result = TypeVar("_Result")
Durability = Literal["sync", "fast"]
Names = Literal["plain", "base64url"]

ROWS_AT_ONCE = 256  # what is read in the loop's own thread
READERS_MAX = 2
QUICK_S = 0.001_5  # two files are synced, and a thread costs as much as one of them
_NOT_KEPT = {LOCK, "owners", "temporary"}  # in a backup


class JsonlStore(Store):
    """A store in the folder at `path`.

    At `durability` "sync" what was acknowledged survives a power cut; at "fast" it survives the
    death of the process, and a commit does not wait for the disk. `names` are those that new files
    get: "base64url" for a current nanobot, "plain" for one before June 2026; unless told, those of
    the files that are there.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        durability: Durability = "sync",
        limits: Limits = LIMITS,
        names: Names | None = None,
        create: bool = True,
    ) -> None:
        check_durability(durability)
        if names not in ("plain", "base64url", None):
            raise InvalidInput(f"names {names!r}", "is neither 'plain' nor 'base64url'")
        self.limits = check_limits(limits)
        folder = private_files.absolute(path.rstrip("/") or path if type(path) is str else path)
        self._place = Place(folder, names=names, is_sync=durability == "sync")
        self._commits = Commits(self._place)
        self._create = create
        self._state = "not open yet"
        self._pid = 0
        self._opening = Opening(self._open, self._close)

    @property
    def path(self) -> Path:
        """Where the folder is."""
        return self._place.path

    def tenant(self, name: str = "") -> "JsonlTenant":
        return JsonlTenant(name, self)

    # Opening and closing

    async def open(self) -> None:
        if self._state == "open":
            return
        if self._state == "closed":
            raise StoreClosed(self._place.where)
        await self._opening.run()
        self._bind()
        _stores.add(self)
        self._state = "open"

    def _open(self) -> None:
        place = self._place
        try:
            place.make(create=self._create)
            if not place.lock.acquire(LOCK_WAIT_S):
                raise StoreUnavailable(place.where, f"others kept it for {LOCK_WAIT_S:g} s")
            try:
                place.folder("")
                place.owners.sweep()
            finally:
                place.lock.release()
        except OSError as error:
            raise translate(error, place.where) from error

    def _bind(self) -> None:
        """Belong to the loop that runs, in this process."""
        self._pid = os.getpid()
        self._loop = asyncio.get_running_loop()
        self._bell = Bell(self._place.version)
        self._writer = GroupCommit(self._commits.run, self._bell.ring, quick_s=QUICK_S)
        self._threads = ThreadPoolExecutor(READERS_MAX, "holdfast-reader")

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
        await self._writer.close()
        self._threads.shutdown()
        await asyncio.to_thread(self._close)
        self._bell.ring()

    def _close(self) -> None:
        with suppress(StoreError):
            self._place.owners.close()
        self._place.forget()
        self._place.lock.close()
        _stores.discard(self)

    def _check(self) -> None:
        """That the store is open, in this process, and in the loop that it belongs to."""
        if self._state != "open":
            raise StoreClosed(self._place.where, f"the store is {self._state}")
        if self._pid != os.getpid():
            self._bind()
        elif asyncio.get_running_loop() is not self._loop:
            raise InvalidInput("the store", "belongs to the loop that opened it: open another one")

    def places(self) -> tuple[str, ...]:
        own = (OWN, f"{OWN}/logs", f"{OWN}/aside", f"{OWN}/temporary", f"{OWN}/tenants")
        return (self._place.where, *(f"{self._place.where}/{name}" for name in own))

    def problems(self) -> list[str]:
        place = self._place
        if self._state == "not open yet":  # there need not be a folder
            raise StoreClosed(place.where, f"the store is {self._state}")
        found = private_files.folder_problems(place.path)
        for path in sorted(place.path.glob("*.jsonl")):
            found += private_files.problems(path)
        return found + place.notes

    # Writing and reading

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

    async def read(self, function: Callable[[Shelf], _Result], rows: int) -> _Result:
        """What a function makes of the sessions as they are now."""
        self._check()
        if rows <= ROWS_AT_ONCE:
            found = self._commits.view(function, may_wait=False)
            if found is not None:
                return found[0]
        return await self._loop.run_in_executor(self._threads, self._view, function)

    def _view(self, function: Callable[[Shelf], _Result]) -> _Result:
        found = self._commits.view(function, may_wait=True)
        assert found is not None
        return found[0]

    async def tenants(self) -> tuple[str, ...]:
        return tuple(await self.read(lambda _: self._place.tenants(), rows=ROWS_AT_ONCE + 1))

    async def news(self) -> None:
        """Wait until something may have been written."""
        self._check()
        await self._bell.wait()
        self._check()

    async def backup(
        self, path: str | Path, *, on_progress: Callable[[float], object] | None = None
    ) -> None:
        self._check()
        target, relay = private_files.absolute(path), Relay(on_progress)
        with relay.heard():
            await self._loop.run_in_executor(
                self._threads, self._view, lambda _: self._copy(target, relay.tell)
            )

    def _copy(self, target: Path, tell: Callable[[float], object]) -> None:
        """The folder as it is now, under the lock."""
        if os.path.lexists(target):
            raise InvalidInput("path", f"there is something at {target} already")
        old = os.umask(0o077)
        try:
            target.mkdir()  # an error, if somebody else was there first: what is here is ours
            self._copy_files(target, tell)
        except FileExistsError:
            raise
        except BaseException:
            shutil.rmtree(target, ignore_errors=True)
            raise
        finally:
            os.umask(old)
        for folder, _, files in os.walk(target):
            for name in files:
                fd = os.open(Path(folder) / name, os.O_RDONLY)
                try:
                    os.fsync(fd)
                finally:
                    os.close(fd)
            private_files.sync_folder(Path(folder))
        private_files.sync_folder(target.parent)
        tell(1.0)

    def _copy_files(self, target: Path, tell: Callable[[float], object]) -> None:
        """Folders and regular files; what leads elsewhere is not followed."""
        place = self._place.path
        total = sum(len(files) for _, _, files in os.walk(place)) + 1
        done = 0
        for folder, folders, files in os.walk(place, onerror=_raise):
            here = target / Path(folder).relative_to(place)
            there = {name for name in folders if Path(folder, name) != target}
            folders[:] = sorted(there - _NOT_KEPT)
            here.mkdir(exist_ok=True)
            for name in files:
                path = os.path.join(folder, name)
                if name not in _NOT_KEPT and stat.S_ISREG(os.lstat(path).st_mode):
                    shutil.copy2(path, here / name, follow_symlinks=False)
                done += 1
                tell(done / total)

    def set_aside(self, tenant: str) -> dict[str, list[str]]:
        """By the digest of a key, the names of the originals that could not be read whole."""
        files = self._place.folder(tenant).files
        found: dict[str, list[str]] = {}
        with suppress(FileNotFoundError):
            for name in sorted(os.listdir(files.aside)):
                if name.endswith(".jsonl"):
                    found.setdefault(name.partition(".")[0], []).append(name)
        return found


class JsonlTenant(Front):
    """One tenant's sessions in a folder."""

    def __init__(self, name: str, store: JsonlStore) -> None:
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

    async def verify(
        self, id: str | None = None, *, on_progress: Callable[[int], object] | None = None
    ) -> Verified:
        found = await super().verify(id, on_progress=on_progress)
        kept = await self._read(lambda _: self._store.set_aside(self.name))
        if id is not None or not kept:
            return found
        told = [
            Problem(
                "", "", 0, f"some lines could not be read: the original is .holdfast/aside/{name}"
            )
            for names in kept.values()
            for name in names
        ]
        return found._replace(problems=(*found.problems, *told))


def _raise(error: OSError) -> None:
    raise error


# Stores that are open in this process, for the moment when it forks.
_stores: "weakref.WeakSet[JsonlStore]" = weakref.WeakSet()


def _before_fork() -> None:
    for store in list(_stores):
        store._place.lock.before_fork()


def _after_fork_in_parent() -> None:
    for store in list(_stores):
        store._place.lock.after_fork_in_parent()


def _after_fork_in_child() -> None:
    for store in list(_stores):
        store._place.lock.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
