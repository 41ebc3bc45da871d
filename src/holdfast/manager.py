"""The manager: many conversations, and exactly one live object for each."""

import asyncio
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import nullcontext
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self, Unpack
from weakref import WeakValueDictionary

from holdfast import archive as archives
from holdfast.archive import Archive, Restored, Told
from holdfast.errors import (
    Busy,
    Corrupt,
    DuplicateSession,
    InvalidInput,
    SessionExpired,
    SessionNotFound,
)
from holdfast.frozen import freeze
from holdfast.inputs import budget_of, named_settings, policy_of
from holdfast.keys import check_key
from holdfast.live import Cache, Live, checked_cache
from holdfast.memory import Memory
from holdfast.peek import Peek
from holdfast.providers.base import Provider
from holdfast.removal import Erased, erase_session
from holdfast.retention import Gone, Retained, Retention, retain
from holdfast.session import Session
from holdfast.settings import Settings
from holdfast.steps.orders import Redact
from holdfast.stores import copying, open_store
from holdfast.stores.base import Store
from holdfast.stores.copying import Choice, Copied
from holdfast.stores.values import Expired, Found, Page, Record, Summary, Verified
from holdfast.sweeping import EVERY, Sweeping, sweep
from holdfast.tools import Tool
from holdfast.window.budget import Budget
from holdfast.window.plan import Policy
from holdfast.workshop import Model, Shared, Workshop, checked_tools, model_name

DEFAULT_CACHE = Cache()


class SessionManager:
    """The sessions of one tenant in a store: `async with holdfast.open(url) as sessions`."""

    def __init__(
        self,
        store: Store,
        tenant: str = "",
        *,
        cache: Cache | int = DEFAULT_CACHE,
        expire_every: timedelta | None = EVERY,
        **shared: Unpack[Shared],
    ) -> None:
        """`shared` is what `open` takes: models, tools, budget, policy, redaction, a name."""
        self._store = store
        self._tenant = store.tenant(tenant)
        self._workshop = Workshop(self._tenant, **shared)
        self._workshop.open_session = self.get
        self._live = Live(checked_cache(cache))
        self._workshop.changed_size = self._live.weigh
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._sweeping = Sweeping(self._tenant, expire_every, self.memory)

    @property
    def store(self) -> Store:
        """Where they are."""
        return self._store

    def places(self) -> tuple[str, ...]:
        """Where what is said may be, in words: what an erase goes through."""
        found = self._store.places()
        return found if self.memory is None else (*found, *self.memory.leaving.where())

    @property
    def memory(self) -> Memory | None:
        """What was given to `open`."""
        return self._workshop.memory

    # Sessions

    async def get(self, key: str, *, load: str = "window") -> Session:
        """The session of this key, or SessionNotFound, or SessionExpired.

        What the window shows is loaded; with `load="all"`, everything. One that is open here
        already is given as it is: `send`, `append` and `refresh` look what others have written.
        """
        self._workshop.check_loop()
        if load == "window" and type(key) is str and (session := self._live.fresh(key)):
            return session
        if load not in ("window", "all"):
            raise InvalidInput("load", f"is 'window' or 'all', not {load!r}")
        async with self._lock(check_key(key)):
            session = self._live.fresh(key) or await self._load(key)
            if load == "all":
                await session.load(is_all=True)
            return session

    async def get_or_create(
        self,
        key: str,
        *,
        agent: str = "",
        settings: Settings | None = None,
        metadata: Mapping[str, Any] | None = None,
        ttl: timedelta | None = None,
        model: Model | None = None,
        tools: Iterable[Tool] | None = None,
    ) -> Session:
        """The session of this key; made now if there is none, or if the one there has expired.

        However many tasks, processes and machines ask at once, one session is made, and all of them
        get it. What is given here is for one that is made; but a model and tools that are objects
        are bound to the session that is found too, where it has them by name. On one that has
        expired while a turn runs on it, it is Busy until that turn has ended.
        """
        self._workshop.check_loop()
        chosen = settings or Settings()
        named_settings(chosen)
        if model is not None:
            chosen = chosen.replace(model=model_name(model))
        found = () if tools is None else checked_tools(tools)
        record = Record(
            key=key,
            agent=agent,
            settings=chosen,
            metadata=freeze(metadata or {}, "metadata"),
            tools=tuple(tool.declaration for tool in found),
            ttl=ttl,
        )
        async with self._lock(key):
            while True:
                try:
                    session = self._live.fresh(key) or await self._load(key)
                    session.bind(model, found)
                    return session
                except (SessionNotFound, SessionExpired):
                    pass
                before = await self._doomed(key)
                try:
                    # What was made is given out as it is: looked up again, it may have expired.
                    session = await self._opened(
                        await self._tenant.create(record, replace_expired=True)
                    )
                except DuplicateSession:
                    await self._check_idle(key)  # or another process was first
                    continue
                session.bind(model, found)
                if before is not None and self.memory is not None:
                    await self.memory.leaving.bury(before)
                return session

    async def peek(self, key: str) -> Peek:
        """The session of this key, to be read without being opened; also one that has expired."""
        return Peek(self._tenant, await self._tenant.load(check_key(key), even_expired=True))

    def invalidate(self, key: str) -> bool:
        """Look at the store before this session is given out again; whether it was open here."""
        return self._live.invalidate(check_key(key))

    # Many of them

    async def list(
        self,
        *,
        agent: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
        page: str | None = None,
    ) -> Page[Summary]:
        """Sessions, those written to last first; `page` is the `next` of the page before.

        `agent` and every name in `metadata` have to be equal; `since` (inclusive) and `until`
        (exclusive) bound the time of the last write.
        """
        return await self._tenant.list(
            agent=agent, metadata=metadata, since=since, until=until, limit=limit, page=page
        )

    async def index(
        self, *, on_progress: Callable[[float, float | None], object] | None = None
    ) -> None:
        """Make ready for a search what was said since the last one, as every search does."""
        await self._tenant.index(on_progress=on_progress)

    async def search(
        self, query: str, *, key: str | None = None, limit: int = 20, page: str | None = None
    ) -> Page[Found]:
        """Messages that hold every word of `query`, the newest first; in one session, if named."""
        session = None
        if key is not None:
            session = (await self._tenant.load(key, even_expired=True)).id
        return await self._tenant.search(query, session=session, limit=limit, page=page)

    # Taking away

    async def delete(self, key: str) -> bool:
        """Remove a session, expired or not; False if there is none. A turn that runs here ends.

        One whose record is damaged goes too, unless a memory may have something of it.
        """
        self._end_turn(key)
        async with self._lock(check_key(key)):
            try:
                record = await self._tenant.load(key, even_expired=True)
            except SessionNotFound:
                return False
            except Corrupt:
                if self.memory is not None or (id := await self._damaged(key)) is None:
                    raise
                return await self._tenant.delete(id)
            finally:
                self._live.invalidate(key)
            async with (
                nullcontext() if self.memory is None else self.memory.leaving.forgetting(record)
            ):
                return await self._tenant.delete(record.id)

    async def erase(self, key: str) -> Erased:
        """Remove a session and its children so that no byte of them is left, or SessionNotFound.

        What a memory has of them goes too. The receipt says where was looked. Backups, copies and
        forks are other data: they keep what they have.
        """
        gone = {check_key(key)}

        def found(records: Iterable[Record]) -> None:
            for record in records:
                gone.add(record.key)
                self._end_turn(record.key)

        async with self._lock(key):
            try:
                return await erase_session(
                    self._store, self._tenant, key, found, memory=self.memory
                )
            finally:
                for each in gone:
                    self._live.invalidate(each)

    async def expire(self) -> Expired:
        """Mark what has expired, delete what was marked long ago; also done in the background."""
        return await sweep(self._tenant, self.memory)

    async def retain(
        self,
        policy: Retention,
        *,
        dry_run: bool = False,
        on_gone: Callable[[Gone], object] | None = None,
    ) -> Retained:
        """Delete the sessions that a policy does not keep; with `dry_run`, only say which.

        What is written to meanwhile stays. `on_gone` hears of each as it goes.
        """

        def gone(each: Gone) -> None:
            if not dry_run:
                self._live.invalidate(each.key)
            if on_gone is not None:
                on_gone(each)

        return await retain(self._tenant, policy, dry_run=dry_run, on_gone=gone, memory=self.memory)

    # All of it

    async def copy(self, to: str | Store, **chosen: Unpack[Choice]) -> Copied:
        """Copy sessions to the same tenant of another store, by URL or open.

        `chosen` is what `holdfast.stores.copying.copy` takes: which, and what of conflicts.
        """
        if isinstance(to, Store):
            return await copying.copy(self._tenant, to.tenant(self._tenant.name), **chosen)
        async with open_store(to) as store:
            return await self.copy(store, **chosen)

    async def backup(
        self, path: str | Path, *, on_progress: Callable[[float], object] | None = None
    ) -> None:
        """Write a copy of the whole store, all tenants, as it is at one moment, to a new place."""
        await self._store.backup(path, on_progress=on_progress)

    async def verify(
        self, key: str | None = None, *, on_progress: Callable[[int], object] | None = None
    ) -> Verified:
        """Hold what is stored of a session, or of all, against its digests; tell what is wrong.

        `on_progress` hears how many sessions have been gone over.
        """
        if key is None:
            return await self._tenant.verify(on_progress=on_progress)
        return await self._tenant.verify((await self._tenant.load(key, even_expired=True)).id)

    async def export(self, key: str, *, on_progress: Told | None = None) -> Archive:
        """A session whole, expired or not, as it is at one moment: see `holdfast.formats`.

        `on_progress` hears how many of its entries have been read.
        """
        record = await self._tenant.load(key, even_expired=True)
        return await archives.take(self._tenant, record.id, on_progress=on_progress)

    async def restore(
        self,
        archive: Archive,
        *,
        key: str | None = None,
        dry_run: bool = False,
        on_progress: Told | None = None,
    ) -> Restored:
        """Make the session of an archive, with its ids and times, under its key or another one.

        One that is there already is found to be so, and an archive of it that is newer adds what is
        new. What has gone its own way here is DuplicateSession, and stays as it is.
        """
        restored = await archives.put(
            self._tenant, archive, key=key, dry_run=dry_run, on_progress=on_progress
        )
        self._live.invalidate(restored.key)
        return restored

    async def close(self) -> None:
        """Finish what was asked for: turns that run, models that were opened here, the store.

        Cancelled, it ends the turns instead, which keep what they have. Cancelled once more, it
        leaves them as a crash would.
        """
        try:
            await self._workshop.close(self._sweeping.stop)
        finally:  # a model that cannot be closed keeps no store open
            self._live.clear()
            await self._store.close()

    # Inside

    async def _damaged(self, key: str) -> str | None:
        """The id of a session whose record cannot be read: the list tells it."""
        page: Page[Summary] = await self._tenant.list()
        while True:
            for each in page.items:
                if each.key == key and each.damage and each.id:
                    return each.id
            if page.next is None:
                return None
            page = await self._tenant.list(page=page.next)

    async def _doomed(self, key: str) -> Record | None:
        """One that has expired and is about to be replaced: what memory has of it is to go too."""
        if self.memory is None:
            return None
        try:
            record = await self._tenant.load(key, even_expired=True)
        except SessionNotFound:
            return None
        await self.memory.leaving.doom(record)
        return record

    def _lock(self, key: str) -> asyncio.Lock:
        return self._locks.setdefault(key, asyncio.Lock())

    def _end_turn(self, key: str) -> None:
        session = self._live.known(key) if type(key) is str else None
        if session is not None:
            session.cancel()

    async def _load(self, key: str) -> Session:
        record = await self._tenant.load(key)
        session = self._live.known(key)
        if session is None or session.id != record.id:
            return await self._opened(record)
        await session.refresh()
        self._live.put(session)
        return session

    async def _check_idle(self, key: str) -> None:
        """Busy while a turn runs on it: one that has expired cannot be made anew then."""
        try:
            await self._tenant.load(key)
        except SessionNotFound:
            return
        except SessionExpired:
            draft = (await self._tenant.load(key, even_expired=True)).draft
            if draft is not None and draft.is_running:
                raise Busy(key, draft.owner) from None

    async def _opened(self, record: Record) -> Session:
        """A session that is not open yet, with what its window shows."""
        session = Session(self._workshop, record)
        if record.seq:  # one that was just made has nothing to read
            await session.load()
        self._live.put(session)
        return session

    def __await__(self) -> Generator[Any, None, Self]:
        return self.__aenter__().__await__()

    async def __aenter__(self) -> Self:
        self._workshop.check_loop()
        self._workshop.use_memory()
        try:
            await self._store.open()
        except BaseException:
            self._workshop.leave_memory()
            raise
        self._sweeping.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


def open(
    url: str,
    *,
    model: Model | None = None,
    providers: Iterable[Provider] = (),
    tools: Iterable[Tool] = (),
    budget: Budget | Mapping[str, Any] | None = None,
    policy: Policy | None = None,
    redact: Redact | None = None,
    owner: str | None = None,
    memory: Memory | None = None,
    tenant: str = "",
    cache: Cache | int = DEFAULT_CACHE,
    expire_every: timedelta | None = EVERY,
    **options: Any,
) -> SessionManager:
    """The sessions in the store at `url`, for `async with` or `await`.

    model      "vendor:model" or a provider: who answers where a session has no model of its own
    providers  models by object, which sessions find by their name
    tools      what models are offered where a session declares no tools of its own, and what runs
               those that it does
    budget     how windows are filled where a session's settings do not say
    policy     how windows are kept (CacheAware)
    redact     makes of each message the one that is stored and shown to models
    owner      how this process is named to others that wait for its turns
    memory     where what was said long ago is summarised, and shown to models again
    tenant     whose sessions; no other tenant's are seen or touched
    cache      how many sessions that nobody uses stay open for their next message
    expire_every
               how often expired sessions are looked for in the background; None is never
    options    go to the store, such as durability="fast" (see `open_store`)
    """
    return SessionManager(
        open_store(url, **options),
        tenant,
        cache=cache,
        expire_every=expire_every,
        model=model,
        providers=providers,
        tools=tools,
        budget=budget_of(budget),
        policy=policy_of(policy),
        redact=redact,
        owner=owner,
        memory=memory,
    )
