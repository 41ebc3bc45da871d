"""What a session's model is shown of a memory: the same until its window is folded.

A prefix that is cached would be worth nothing if it changed with every consolidation. So what was
shown is written down for each session, and read by whichever process asks its model next.
"""

import logging

from holdfast.consolidation import counter
from holdfast.consolidation.desk import Desk
from holdfast.consolidation.files import Files
from holdfast.consolidation.places import Places
from holdfast.consolidation.state import Owner
from holdfast.consolidation.waiting import held, in_thread
from holdfast.errors import HoldfastError
from holdfast.stores.values import Record

_log = logging.getLogger("holdfast")


class Showing:
    """For the sessions of one manager."""

    def __init__(self, desk: Desk, places: Places) -> None:
        self._desk = desk
        self._places = places

    def recall(self, record: Record, before: str, *, is_first: bool) -> str:
        """What the model of a session is shown; before anything was asked, what it would be.

        It is what it was `before` where that cannot be read just now.
        """
        files = self._files(record)
        try:
            if is_first:
                return self._desk.redacted(files.seen().memory)
            shown = files.shown(record.id)
        except HoldfastError as error:
            _log.warning("what memory holds cannot be read: %s", error)
            return before
        return shown.text if shown is not None else ""

    async def show(self, record: Record, before: str) -> str:
        """From now on the model is shown what memory holds now; as `before`, if that cannot be."""
        files = self._files(record)
        if not files.folder.is_dir():
            return ""
        try:
            async with held(self._places.lock(files.folder)):
                now = await self._desk.tenant.load(record.key, even_expired=True)
                if now.id != record.id:  # nothing is kept for one that is gone
                    return before
                memory = self._desk.redacted((await in_thread(files.seen)).memory)
                await in_thread(files.show, record.id, self._owner(record), memory)
        except HoldfastError as error:
            _log.warning("what memory holds cannot be shown: %s", error)
            return before
        return memory

    async def forked(self, record: Record, new: Record) -> None:
        """A session begins as another one: what they share is not summarised again, and its model
        is shown the same, so that the prefix stays as it is. A memory of its own begins empty."""
        files = self._files(record)
        if files.folder != self._files(new).folder:
            return
        tenant = self._desk.tenant
        done = await counter.position(tenant, record)
        await counter.adopt(tenant, new, min(done, new.branch_named(new.branch).count))
        async with held(self._places.lock(files.folder)):
            if shown := await in_thread(files.shown, record.id):
                await in_thread(files.show, new.id, self._owner(new), shown.text)

    def _files(self, record: Record) -> Files:
        return Files(self._places.of(self._desk.tenant.name, record.key, record.id))

    def _owner(self, record: Record) -> Owner:
        return Owner(tenant=self._desk.tenant.name, key=record.key)
