"""Wakes those who wait for something to be written.

What is written in this process rings the bell. Where others may write too, `version` is looked at
while somebody waits: a number that changes when anybody has written.
"""

import asyncio
from collections.abc import Callable

POLL_S = 0.02


class Bell:
    """Belongs to one event loop."""

    def __init__(self, version: Callable[[], int] | None = None) -> None:
        self._version = version
        self._waiting: list[asyncio.Future[None]] = []
        self._poller: asyncio.TimerHandle | None = None
        self._seen: int | None = None

    def ring(self) -> None:
        """Something was written: everybody looks."""
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)

    async def wait(self) -> None:
        """Until the next ring. What was written before the call may ring as well."""
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._waiting.append(future)
        if self._version is not None and self._poller is None:
            self._poller = loop.call_later(POLL_S, self._poll, loop)
        await future

    def _poll(self, loop: asyncio.AbstractEventLoop) -> None:
        assert self._version is not None
        self._poller = None
        self._waiting = [each for each in self._waiting if not each.done()]
        if not self._waiting:
            return
        try:
            version: int | None = self._version()
        except Exception:  # noqa: BLE001 - those who wait meet the same error when they look
            version = None
        if version is None or version != self._seen:
            self._seen = version
            self.ring()
        else:
            self._poller = loop.call_later(POLL_S, self._poll, loop)
