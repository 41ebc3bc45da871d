"""What a memory has of sessions and messages that leave, and how that goes.

Whoever takes something away for certain has memory forget it first. A store that deletes what has
expired may yet find it used: there the session is doomed first, and what memory has of it goes once
it is known to be gone. Cut off between, the next one finds that.
"""

import logging
from collections.abc import AsyncIterator, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from holdfast.consolidation.files import HISTORY, MEMORY, Files
from holdfast.consolidation.places import Places
from holdfast.consolidation.state import Owner, changed
from holdfast.consolidation.waiting import held, in_thread
from holdfast.errors import HoldfastError, SessionExpired, SessionNotFound
from holdfast.stores.base import Tenant
from holdfast.stores.values import Record

_log = logging.getLogger("holdfast")


class Leaving:
    """For the sessions of one tenant."""

    def __init__(self, tenant: Tenant, places: Places) -> None:
        self._tenant = tenant
        self._places = places

    @asynccontextmanager
    async def forgetting(
        self, record: Record, seqs: Collection[int] | None = None
    ) -> AsyncIterator[None]:
        """What was made of these messages is gone, or of all; nothing new is made meanwhile.

        The messages themselves go inside of this: cut off between, it is asked for again.
        """
        files = self._files(record.key, record.id)
        async with self._held(files):
            await in_thread(self._forget, files, record.id, seqs)
            yield

    def _forget(self, files: Files, id: str, seqs: Collection[int] | None) -> None:
        if not files.folder.is_dir():
            return
        if self._places.scope == "session" and seqs is None:
            files.remove()
        else:
            files.forget(id, seqs)

    async def doom(self, record: Record) -> None:
        """A store is about to delete this session, unless it is used meanwhile: see `bury`."""
        files = self._files(record.key, record.id)
        async with self._held(files):
            await in_thread(self._doom, files, record.id)

    def _doom(self, files: Files, id: str) -> None:
        if files.folder.is_dir() and (owner := files.owners().get(id)):
            files.note(id, changed(owner, {"is_doomed": True}))

    async def doom_expired(self) -> None:
        """The same for each session that has expired by now."""
        for files, id, owner in await self._owners():
            if owner.tenant == self._tenant.name and not owner.is_doomed:
                try:
                    await self._tenant.load(owner.key)
                except SessionExpired:
                    async with self._held(files):
                        await in_thread(self._doom, files, id)
                except HoldfastError:
                    continue  # it is not ours, or cannot be read

    async def bury(self, record: Record) -> None:
        """Take away what was made of a session that was doomed, if it is gone."""
        await self._bury(self._files(record.key, record.id), record.key, record.id)

    async def bury_all(self) -> None:
        """The same for all that were doomed."""
        for files, id, owner in await self._owners():
            if owner.is_doomed and owner.tenant == self._tenant.name:
                await self._bury(files, owner.key, id)

    async def _bury(self, files: Files, key: str, id: str) -> None:
        async with self._held(files):
            if await self._is_gone(key, id):
                await in_thread(self._forget, files, id, None)

    async def _owners(self) -> list[tuple[Files, str, Owner]]:
        return await in_thread(self._find_owners)

    def _find_owners(self) -> list[tuple[Files, str, Owner]]:
        found: list[tuple[Files, str, Owner]] = []
        for files in map(Files, self._places.all()):
            try:
                found += [(files, id, owner) for id, owner in files.owners().items()]
            except HoldfastError as error:  # of one folder; the others go on
                _log.warning("whose memory this is cannot be told: %s", error)
        return found

    async def _is_gone(self, key: str, id: str) -> bool:
        try:
            return (await self._tenant.load(key, even_expired=True)).id != id
        except SessionNotFound:
            return True

    def _held(self, files: Files) -> AbstractAsyncContextManager[None]:
        return held(self._places.lock(files.folder))

    def where(self) -> tuple[str, ...]:
        """Where a memory keeps anything, in words: what an erase goes through."""
        root = self._places.root
        return (f"{MEMORY}, its earlier versions and {HISTORY} below {root}",)

    def _files(self, key: str, id: str) -> Files:
        return Files(self._places.of(self._tenant.name, key, id))
