"""The connections of a store: lent to one at a time, made when they are needed.

A connection whose user was cancelled, or met an error that is not ours, is thrown away: an answer
may still be on its way in it, and the next user would take it for his own.

A server can be gone without a word: its machine is off, the network is cut, it hangs. So while
somebody has had a connection for long, another one is made now and then. When that leads to another
server, or nowhere, the old one is closed, and its user is told that it is lost.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from holdfast.errors import HoldfastError, StoreClosed, StoreUnavailable
from holdfast.stores.postgresql.server import Link, Server

WAIT_S = 30.0
LONG_S = 2.0  # after which it is looked whether the server is still there


class Pool:
    """Belongs to one event loop."""

    def __init__(self, server: Server, size_max: int, wait_s: float = WAIT_S) -> None:
        self._server = server
        self._size_max = size_max
        self._wait_s = wait_s
        self._idle: list[Link] = []
        self._lent: dict[Link, float] = {}  # since when
        self._timer: asyncio.TimerHandle | None = None
        self._probe: asyncio.Task[None] | None = None
        self._size = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_closed = False

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[Link]:
        """A connection. Whoever raises an error of ours has left no transaction open."""
        link = await self.take()
        try:
            yield link
        except HoldfastError:
            self.give(link)
            raise
        except BaseException:
            self.drop(link)
            raise
        self.give(link)

    async def take(self) -> Link:
        """A connection that is to be given back, or dropped."""
        while not self._is_closed:
            while self._idle:
                link = self._idle.pop()
                if not link.is_closed:
                    return self._lending(link)
                self._size -= 1
            if self._size < self._size_max:
                return await self._make()
            await self._wait()
        raise StoreClosed(self._server.where)

    async def _make(self) -> Link:
        self._size += 1
        try:
            link = await self._server.connect()
            if self._is_closed:  # meanwhile: nobody would close this one
                link.terminate()
                raise StoreClosed(self._server.where)
        except BaseException:
            self._size -= 1
            self._wake()
            raise
        return self._lending(link)

    def _lending(self, link: Link) -> Link:
        loop = asyncio.get_running_loop()
        self._lent[link] = loop.time()
        if self._timer is None:
            self._timer = loop.call_later(LONG_S, self._look)
        return link

    async def _wait(self) -> None:
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            async with asyncio.timeout(self._wait_s):
                await future
        except TimeoutError:
            raise StoreUnavailable(
                self._server.where,
                f"all {self._size_max} connections were in use for "
                f"{self._wait_s:g} s: raise `pool` in its URL",
            ) from None
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self._wake()  # somebody else is next
            raise

    def give(self, link: Link) -> None:
        """It can be lent again."""
        if link not in self._lent:
            return  # it was dropped
        del self._lent[link]
        if link.is_closed:
            self._size -= 1
        else:
            self._idle.append(link)
        self._wake()

    def drop(self, link: Link) -> None:
        """It is closed, whatever it was doing."""
        if link not in self._lent:
            return
        del self._lent[link]
        self._size -= 1
        link.terminate()
        self._wake()

    def _wake(self) -> None:
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)
                return

    def _look(self) -> None:
        """Is somebody waiting for a server that is not there any more?"""
        loop = asyncio.get_running_loop()
        self._timer = None
        late = [link for link, since in self._lent.items() if since <= loop.time() - LONG_S]
        if late and (self._probe is None or self._probe.done()):
            self._probe = loop.create_task(self._probed(late))
        if self._lent:
            self._timer = loop.call_later(LONG_S, self._look)

    async def _probed(self, late: list[Link]) -> None:
        try:
            link = await self._server.connect()
        except (OSError, asyncpg.InterfaceError, StoreUnavailable):
            boot = None
        except asyncpg.PostgresError:  # an answer, whatever it says
            return
        else:
            boot = link.facts.boot
            link.terminate()
        for each in late:
            if each in self._lent and each.facts.boot != boot:
                each.terminate()

    def drop_idle(self) -> None:
        """Close those that nobody uses: the server has changed."""
        while self._idle:
            self._size -= 1
            self._idle.pop().terminate()

    async def close(self) -> None:
        """Close them all, and those that are being made; whoever waits for one is told."""
        self._is_closed = True
        for _ in range(len(self._waiting)):
            self._wake()
        if self._timer is not None:
            self._timer.cancel()
        if self._probe is not None and not self._probe.done():
            self._probe.cancel()
            await asyncio.wait([self._probe])
        for link in self._idle:
            try:
                await link.close()
            except Exception:  # noqa: BLE001 - it is gone either way
                link.terminate()
        for link in list(self._lent):
            link.terminate()
        self._idle.clear()
        self._size = 0

    def links(self) -> list[Link]:
        """All of them, for a forked child that must not use its parent's."""
        return [*self._idle, *self._lent]
