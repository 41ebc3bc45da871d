"""The manager: many conversations, and exactly one live object for each."""

import asyncio
from collections.abc import Generator, Mapping
from datetime import timedelta
from types import TracebackType
from typing import Any, Self
from weakref import WeakValueDictionary

from holdfast.errors import DuplicateSession, SessionExpired, SessionNotFound
from holdfast.frozen import freeze
from holdfast.keys import check_key
from holdfast.session import Session
from holdfast.settings import Settings
from holdfast.stores import open_store
from holdfast.stores.base import Store
from holdfast.stores.values import Record


class SessionManager:
    """The sessions of one tenant in a store: `async with holdfast.open(url) as sessions`."""

    def __init__(self, store: Store, tenant: str = "") -> None:
        self._store = store
        self._tenant = store.tenant(tenant)
        self._live: WeakValueDictionary[str, Session] = WeakValueDictionary()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def get(self, key: str) -> Session:
        """The session of this key, or SessionNotFound, or SessionExpired."""
        async with self._lock(check_key(key)):
            return await self._load(key)

    async def get_or_create(
        self,
        key: str,
        *,
        agent: str = "",
        settings: Settings | None = None,
        metadata: Mapping[str, Any] | None = None,
        ttl: timedelta | None = None,
    ) -> Session:
        """The session of this key; made now if there is none, or if the one there has expired.

        However many tasks, processes and machines ask at once, one session is made, and all of them
        get it.
        """
        record = Record(
            key=key,
            agent=agent,
            settings=settings or Settings(),
            metadata=freeze(metadata or {}, "metadata"),
            ttl=ttl,
        )
        async with self._lock(key):
            while True:
                try:
                    return await self._load(key)
                except (SessionNotFound, SessionExpired):
                    pass
                try:
                    await self._tenant.create(record, replace_expired=True)
                except DuplicateSession:
                    pass  # another process was first

    async def close(self) -> None:
        """Finish what was asked for, and close the store."""
        await self._store.close()

    def _lock(self, key: str) -> asyncio.Lock:
        return self._locks.setdefault(key, asyncio.Lock())

    async def _load(self, key: str) -> Session:
        record = await self._tenant.load(key)
        session = self._live.get(key)
        if session is None or session.id != record.id:
            session = self._live[key] = Session(self._tenant, record)
        return session

    def __await__(self) -> Generator[Any, None, Self]:
        return self.__aenter__().__await__()

    async def __aenter__(self) -> Self:
        await self._store.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


def open(url: str, *, tenant: str = "", **options: Any) -> SessionManager:
    """The sessions in the store at `url`, for `async with` or `await`.

    `options` go to the store (see `open_store`).
    """
    return SessionManager(open_store(url, **options), tenant)
