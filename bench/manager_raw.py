"""The limit for bench/manager.py: the store alone, asked for the same records and entries."""

from holdfast.manager import SessionManager
from holdfast.stores.values import Page, Stored, Summary


class Raw:
    """The tenant of a manager, without sessions, locks and a cache."""

    def __init__(self, sessions: SessionManager) -> None:
        self._tenant = sessions._tenant

    async def open(self, key: str) -> tuple[Stored, ...]:
        """What opening a session reads: its record, and its log."""
        record = await self._tenant.load(key)
        return await self._tenant.read(record.id, record.branch) if record.seq else ()

    async def newest(self) -> Page[Summary]:
        return await self._tenant.list()
