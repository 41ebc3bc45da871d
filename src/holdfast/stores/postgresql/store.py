"""Sessions in PostgreSQL: for many machines.

Everything that writes goes through `lanes.py` and is committed by `commits.py`. Reads have
connections of their own, and see what was committed at one moment.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from asyncpg.pgproto.pgproto import UUID

from holdfast.errors import HoldfastError, InvalidInput, StoreClosed, StoreUnavailable, Unsupported
from holdfast.stores.base import Store
from holdfast.stores.bell import Bell
from holdfast.stores.front import Front
from holdfast.stores.postgresql import statements as sql
from holdfast.stores.postgresql.commits import TRIES_MAX, Commits, pause_s
from holdfast.stores.postgresql.errors import is_lost, translated
from holdfast.stores.postgresql.formats import bring_up
from holdfast.stores.postgresql.heads import session_of, tenant_of
from holdfast.stores.postgresql.holder import Holder
from holdfast.stores.postgresql.lanes import Lanes
from holdfast.stores.postgresql.names import CENSUS
from holdfast.stores.postgresql.pool import Pool
from holdfast.stores.postgresql.server import (
    Durability,
    Facts,
    Link,
    Server,
    Standby,
    as_array,
    facts_of,
    problems_of,
    read_url,
    standbys_of,
)
from holdfast.stores.postgresql.shelf import PostgresShelf, channel_of
from holdfast.stores.requests import Request
from holdfast.stores.shelf import Shelf
from holdfast.stores.values import (
    LIMITS,
    Chunk,
    Found,
    Limits,
    Page,
    Stored,
    check_durability,
    check_limits,
)

_Result = TypeVar("_Result")

CENSUS_STEP = 1_000  # tenants at once
INDEX_STEP = 64  # sessions in one transaction
WATCH_MS = 60_000  # so long a session counts as watched, unless somebody says so again
WATCH_AGAIN_S = 20.0
POLL_S = 0.1  # where the server cannot tell

_inherited: list[Link] = []  # a forked child keeps them, and never touches them


class PostgreSQLStore(Store):
    """A store in the schema `holdfast` of a PostgreSQL database.

    At `durability` "sync" what was acknowledged survives a power cut, and the loss of the primary
    if there is a synchronous standby; at "fast" a commit does not wait for any disk.
    """

    unsupported: ClassVar[frozenset[str]] = frozenset({"backup"})

    def __init__(
        self,
        url: str,
        *,
        durability: Durability = "sync",
        limits: Limits = LIMITS,
        create: bool = True,
    ) -> None:
        check_durability(durability)
        self.limits = check_limits(limits)
        self._create = create
        self._server = Server(read_url(url), durability)
        self._state = "not open yet"
        self._pid = 0
        self._problems: list[str] = []

    def tenant(self, name: str = "") -> "PostgreSQLTenant":
        return PostgreSQLTenant(name, self)

    async def tenants(self) -> tuple[str, ...]:
        self._check()
        return await self._reading(self._tenants)

    async def _tenants(self) -> tuple[str, ...]:
        found: dict[Any, str] = {}
        last = UUID(bytes(16))
        async with self._pool.lend() as link:
            while some := await _census(link, last):
                last = some[-1][0]
                await link.begin(as_array([tenant for tenant, _ in some]), is_reading=True)
                have = {row[0] for row in await link.raw.fetch(sql.HAVE_SESSIONS)}
                await link.raw.execute("COMMIT")
                found |= {tenant: name.decode() for tenant, name in some if tenant in have}
        return tuple(sorted(found.values()))

    # Opening and closing

    async def open(self) -> None:
        if self._state == "open":
            return
        if self._state == "closed":
            raise StoreClosed(self._server.where)
        self._bind()
        try:
            with translated(self._server.where):
                await self._open()
        except BaseException:
            await self._pool.close()
            raise
        self._state = "open"

    async def _open(self) -> None:
        for tries in range(1, TRIES_MAX + 1):
            try:
                async with self._pool.lend() as link:
                    self._server.check()
                    await bring_up(link.raw, self._server.where, create=self._create)
                    await self._look(link)
                    return
            except Exception as error:
                if not is_lost(error) or tries == TRIES_MAX:
                    raise
                await asyncio.sleep(pause_s(tries))

    def _bind(self) -> None:
        """Belong to the loop that runs, in this process."""
        self._pid = os.getpid()
        self._loop = asyncio.get_running_loop()
        self._pool = Pool(self._server, self._server.address.pool)
        self._holder = Holder(self._server, self._heard)
        self._commits = Commits(self._server, self._pool, self._holder)
        self._lanes = Lanes(
            self._commits.batch, self._commits.one, max(1, self._server.address.pool - 3)
        )
        self._bells: dict[str, News] = {}
        self._watchers: dict[str, int] = {}

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
        await self._lanes.close()
        await self._holder.close()
        await self._pool.close()
        self._heard(None)

    def _check(self) -> None:
        """That the store is open, in this process, and in the loop that it belongs to."""
        if self._state != "open":
            raise StoreClosed(self._server.where, f"the store is {self._state}")
        if self._pid != os.getpid():
            self._after_fork()
        elif asyncio.get_running_loop() is not self._loop:
            raise InvalidInput("the store", "belongs to the loop that opened it: open another one")

    def _after_fork(self) -> None:
        """The connections are the parent's: only our copies of them are closed, without a word."""
        for link in (*self._pool.links(), *self._holder.links()):
            _inherited.append(link)
            link.abandon()
        self._bind()

    def problems(self) -> list[str]:
        return list(self._problems)

    def places(self) -> tuple[str, ...]:
        where = self._server.where
        dead = "dead rows until VACUUM, and the server's log until it is recycled"
        return (f"{where}: every row", f"{where}: {dead}")

    async def look(self) -> tuple[Facts, tuple[Standby, ...]]:
        """What the server says of itself and its standbys now; `problems` goes by it."""
        self._check()
        return await self._reading(self._looked)

    async def _looked(self) -> tuple[Facts, tuple[Standby, ...]]:
        async with self._pool.lend() as link:
            return await self._look(link)

    async def _look(self, link: Link) -> tuple[Facts, tuple[Standby, ...]]:
        facts, standbys = await facts_of(link.raw), await standbys_of(link)
        self._problems = problems_of(facts, standbys)
        return facts, standbys

    async def backup(
        self,
        path: str | Path,  # noqa: ARG002 - whatever it is
        *,
        on_progress: Callable[[float], object] | None = None,  # noqa: ARG002 - likewise
    ) -> None:
        raise Unsupported("make a backup", "the PostgreSQL store (pg_dump and copy() can)")

    # Writing

    async def write(self, request: Request[_Result]) -> _Result:
        """The result of a request, when it is committed."""
        self._check()
        result = await self._lanes.submit(request)
        if self._bells:
            self._heard(None)
        return result

    # Reading

    async def read(self, tenant: str, function: Callable[[Shelf], _Result]) -> _Result:
        """What a function makes of the committed rows of a tenant."""
        self._check()
        return await self._reading(partial(self._view, as_array([tenant_of(tenant)]), function))

    async def _reading(self, work: Callable[[], Coroutine[Any, Any, _Result]]) -> _Result:
        """What is read; where the connection broke meanwhile, it is read again."""
        tries = 0
        with translated(self._server.where):
            while True:
                try:
                    return await work()
                except Exception as error:
                    tries += 1
                    if not is_lost(error) or tries == TRIES_MAX:
                        raise
                self._pool.drop_idle()
                await asyncio.sleep(pause_s(tries))

    async def _view(self, tenants: str, function: Callable[[Shelf], _Result]) -> _Result:
        async with self._pool.lend() as link:
            await link.begin(tenants, is_reading=True)
            try:
                result = await PostgresShelf(link, self._holder).run(function)
            except HoldfastError:
                await link.raw.execute("ROLLBACK")
                raise
            await link.raw.execute("COMMIT")
        return result

    # Watching

    def _heard(self, channel: str | None) -> None:
        """Somebody wrote to a session; without a channel, to any."""
        for each, bell in list(self._bells.items()):
            if channel is None or channel == each:
                bell.ring()

    @asynccontextmanager
    async def watching(self, tenant: str, id: str) -> AsyncIterator["Watched"]:
        """Hear of writes to a session as long as this lasts."""
        self._check()
        session = session_of(tenant, id)
        channel = channel_of(session)
        self._watchers[channel] = self._watchers.get(channel, 0) + 1
        bell = self._bells.setdefault(channel, News())
        try:
            yield Watched(self, tenant, session, bell)
        finally:
            self._watchers[channel] -= 1
            if not self._watchers[channel]:
                del self._watchers[channel], self._bells[channel]
                await self._holder.unlisten(channel)

    async def watch(self, tenant: str, session: Any) -> bool:
        """Let writers know that this session is watched; whether they can tell us."""
        self._check()
        try:
            with translated(self._server.where):
                can_tell = await self._holder.listen(channel_of(session))
                if can_tell:
                    async with self._pool.lend() as link:
                        await link.allow(as_array([tenant_of(tenant)]))
                        await link.raw.execute(sql.WATCH_SESSION, WATCH_MS, session)
        except StoreUnavailable:
            return False  # then one has to look, and meets it there
        return can_tell

    # The search index

    async def index_all(
        self,
        tenant: str,
        on_progress: Callable[[float, float | None], object] | None = None,
    ) -> None:
        """Bring the index of a tenant up to the log as it is now.

        Each session has its turn once: others may write faster than the index is filled.
        """
        self._check()
        done, after = 0, UUID(bytes(16))
        while (
            last := await self._lanes.submit(_FillIndex(tenant, 0, after, INDEX_STEP))
        ) is not None:
            after = last
            done += INDEX_STEP
            if on_progress is not None:
                on_progress(done, None)


class News(Bell):
    """A bell that counts: one that rings while nobody waits, because he is reading, is heard."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def ring(self) -> None:
        self.count += 1
        super().ring()


class Watched:
    """A session that somebody watches."""

    def __init__(self, store: PostgreSQLStore, tenant: str, session: Any, bell: News) -> None:
        self._store = store
        self._tenant = tenant
        self._session = session
        self._bell = bell
        self._seen = 0  # rings, before the last look
        self._is_told: bool | None = None

    async def news(self) -> None:
        """Wait until something may have been written since this was called the last time."""
        if self._is_told is None:  # what was written until now is looked at once more
            self._is_told = await self._store.watch(self._tenant, self._session)
        elif self._seen == self._bell.count:
            try:
                async with asyncio.timeout(WATCH_AGAIN_S if self._is_told else POLL_S):
                    await self._bell.wait()
            except TimeoutError:
                self._is_told = await self._store.watch(self._tenant, self._session)
        self._seen = self._bell.count


class PostgreSQLTenant(Front):
    """One tenant's sessions in a database."""

    def __init__(self, name: str, store: PostgreSQLStore, watched: Watched | None = None) -> None:
        super().__init__(name, store.limits)
        self._store = store
        self._watched = watched

    def _write(self, request: Request[_Result]) -> Coroutine[Any, Any, _Result]:
        return self._store.write(request)

    async def _read(
        self,
        function: Callable[[Shelf], _Result],
        rows: int = 1,  # noqa: ARG002 - all the same here
    ) -> _Result:
        return await self._store.read(self.name, function)

    async def _changed(self) -> None:
        assert self._watched is not None
        await self._watched.news()

    async def _watch(self, id: str, after: int | None) -> AsyncIterator[Stored | Chunk]:
        if self._watched is not None:
            async for each in super()._watch(id, after):
                yield each
            return
        async with self._store.watching(self.name, id) as watched:
            tenant = PostgreSQLTenant(self.name, self._store, watched)
            async with aclosing(tenant._watch(id, after)) as found:  # type: ignore[type-var]
                async for each in found:
                    yield each

    async def index(
        self, *, on_progress: Callable[[float, float | None], object] | None = None
    ) -> None:
        await self._store.index_all(self.name, on_progress)

    async def search(
        self, query: str, *, session: str | None = None, limit: int = 20, page: str | None = None
    ) -> Page[Found]:
        await self._store.index_all(self.name)
        return await super().search(query, session=session, limit=limit, page=page)


async def _census(link: Link, after: Any) -> Any:
    """The next tenants, whether or not they have sessions now."""
    await link.begin("{}", is_reading=True)
    await link.raw.fetchrow(f"SELECT set_config('{CENSUS}', 'on', true)")
    found = await link.raw.fetch(sql.FIND_TENANTS, after, CENSUS_STEP)
    await link.raw.execute("COMMIT")
    return found


@dataclass(slots=True)
class _FillIndex(Request[UUID | None]):
    """Indexes the next sessions that are behind; the last of them, or None if it was the last."""

    after: UUID
    limit: int

    is_long = True

    def run(self, shelf: Shelf) -> UUID | None:
        assert isinstance(shelf, PostgresShelf)
        return shelf.index(self.tenant, self.after, self.limit)
