"""The one connection that a store keeps: it tells that the store is alive, and hears of writes.

It holds an advisory lock under a random name. A lease says under which name it was taken: when
the process ends, however that comes, the server lets the lock go, and everybody can see that the
lease is free. A lost connection is made anew at once, with the same name.

It also listens for those who watch. Behind a pooler there is no such connection: then the time of a
lease decides alone, and those who watch have to look.
"""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from holdfast.errors import StoreClosed
from holdfast.stores.postgresql.errors import translate
from holdfast.stores.postgresql.server import Link, Server

AGAIN_S = 0.1
AGAIN_MAX_S = 2.0
_LOCK = "SELECT pg_advisory_lock($1)"
# A connection that was reset on our side alone: for the server it is alive, for hours if need be.
# Its role is ours, so no right is needed. Whoever looks at the lock has it shared.
_END_LOST = """SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'
    AND mode = 'ExclusiveLock' AND granted AND pid <> pg_backend_pid() AND objsubid = 1
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND (classid::bigint << 32 | objid::bigint) = $1"""
_UNLOCK = "SELECT pg_advisory_unlock($1)"


class Holder:
    """Belongs to one event loop. `on_news(channel)` is called when somebody else has written, and
    with None when something may have been missed."""

    def __init__(self, server: Server, on_news: Callable[[str | None], None]) -> None:
        self._server = server
        self._on_news = on_news
        self._name = os.urandom(8).hex()
        self._link: Link | None = None
        self._making = asyncio.Lock()
        self._channels: set[str] = set()
        self._again: asyncio.Task[None] | None = None
        self._is_closed = False

    def is_mine(self, name: str) -> bool:
        """Whether this is the name under which leases are taken here, by one who is alive."""
        return name == self._name and not self._is_closed

    async def hold(self) -> tuple[str, str]:
        """The name under which leases are taken here, and the start of the server that knows it."""
        if self._server.address.is_pooled:
            return "", ""
        link = await self._connected()
        return self._name, str(link.facts.boot)

    async def listen(self, channel: str) -> bool:
        """Hear of writes on a channel; False if that cannot be, and one has to look."""
        if self._server.address.is_pooled:
            return False
        self._channels.add(channel)
        link = await self._connected()
        await link.raw.add_listener(channel, self._heard)
        return True

    async def unlisten(self, channel: str) -> None:
        """Nobody wants to hear of it any more."""
        self._channels.discard(channel)
        if self._link is not None and not self._link.is_closed:
            with suppress(Exception):  # a lost connection hears nothing either
                await self._link.raw.remove_listener(channel, self._heard)

    async def _connected(self) -> Link:
        async with self._making:
            if self._link is not None and self._link.facts.boot != self._server.boot:
                self._link.terminate()  # there is another server now
            if self._link is None or self._link.is_closed:
                link = await self._server.connect()
                try:
                    await link.raw.fetch(_END_LOST, self._key)
                    await link.raw.fetchrow(_LOCK, self._key)
                    for channel in self._channels:
                        await link.raw.add_listener(channel, self._heard)
                    if self._is_closed:  # meanwhile: nobody would close this one
                        raise StoreClosed(self._server.where)
                except BaseException:
                    link.terminate()
                    raise
                link.raw.add_termination_listener(self._lost)
                self._link = link
            return self._link

    @property
    def _key(self) -> int:
        return int(self._name, 16) - 2**63

    def _heard(self, _connection: Any, _pid: int, channel: str, _payload: object) -> None:
        self._on_news(channel)

    def _lost(self, _connection: Any) -> None:
        """Come back at once: without the lock, others take our turns for cut off."""
        self._on_news(None)
        if not self._is_closed and (self._again is None or self._again.done()):
            self._again = asyncio.get_running_loop().create_task(self._come_back())

    async def _come_back(self) -> None:
        wait_s = AGAIN_S
        while not self._is_closed:
            try:
                await self._connected()
            except Exception as error:
                if translate(error, self._server.where) is error:
                    raise
                await asyncio.sleep(wait_s)
                wait_s = min(wait_s * 2, AGAIN_MAX_S)
            else:
                self._on_news(None)
                return

    async def close(self) -> None:
        """Let the lock go: from now on, the leases taken here are free."""
        self._is_closed = True
        if self._again is not None:
            self._again.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await self._again
        link, self._link = self._link, None
        if link is not None and not link.is_closed:
            try:
                async with asyncio.timeout(2):
                    await link.raw.fetchrow(_UNLOCK, self._key)
                    await link.close()
            except Exception:  # noqa: BLE001 - it is gone either way
                link.terminate()

    def links(self) -> list[Link]:
        """For a forked child."""
        return [] if self._link is None else [self._link]
