"""Between a store and its server: answers come late, or not at all, or the line is cut."""

import asyncio
from contextlib import suppress
from urllib.parse import urlsplit, urlunsplit


class Proxy:
    """`async with Proxy(url) as proxy`: `proxy.url` leads through it.

    `delay_s` is how late answers come. `cut_when(data)` is asked about all that goes to the
    server: if it says yes, that is passed on, and the line is cut before the answer comes back.
    While `is_dead`, nothing is passed on, in either direction, and nobody is told. `forget()` does
    what a firewall does with lines that were silent for long: the client finds its own reset, and
    the server is told nothing.
    """

    def __init__(self, url, delay_s=0.0):
        self._parts = urlsplit(url)
        self.delay_s = delay_s
        self.cut_when = None
        self.cuts = 0
        self._alive = asyncio.Event()
        self._alive.set()
        self._tasks = set()
        self._clients = {}

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_):
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def is_dead(self):
        return not self._alive.is_set()

    @is_dead.setter
    def is_dead(self, is_dead):
        (self._alive.clear if is_dead else self._alive.set)()

    def forget(self):
        for writer, is_forgotten in self._clients.items():
            is_forgotten.set()
            writer.transport.abort()

    @property
    def url(self):
        port = self._server.sockets[0].getsockname()[1]
        user = self._parts.netloc.rpartition("@")[0]
        return urlunsplit(self._parts._replace(netloc=f"{user}@127.0.0.1:{port}"))

    async def _serve(self, reader, writer):
        task = asyncio.current_task()
        self._tasks.add(task)
        with suppress(OSError, asyncio.CancelledError):  # nobody is there, or it is all over
            await self._pass_on(reader, writer)
        self._tasks.discard(task)

    async def _pass_on(self, reader, writer):
        there = None
        try:
            there = await asyncio.open_connection(self._parts.hostname, self._parts.port)
            is_cut, is_forgotten = asyncio.Event(), asyncio.Event()
            self._clients[writer] = is_forgotten
            ways = [
                asyncio.ensure_future(self._to_server(reader, there[1], is_cut)),
                asyncio.ensure_future(self._to_client(there[0], writer, is_cut)),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                if is_forgotten.is_set():
                    await asyncio.Event().wait()
            finally:
                self._clients.pop(writer, None)
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        finally:
            for each in (writer, there[1] if there else None):
                if each is not None:
                    each.close()
                    with suppress(Exception):
                        await each.wait_closed()

    async def _to_server(self, reader, writer, is_cut):
        while data := await reader.read(65_536):
            await self._alive.wait()
            if self.cut_when is not None and self.cut_when(data):
                self.cuts += 1
                is_cut.set()
            writer.write(data)
            await writer.drain()

    async def _to_client(self, reader, writer, is_cut):
        while data := await reader.read(65_536):
            await self._alive.wait()
            if is_cut.is_set():
                return  # the server has answered, so it has done it
            if self.delay_s:
                await asyncio.sleep(self.delay_s)
            writer.write(data)
            await writer.drain()
