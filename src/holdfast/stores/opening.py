"""Opening a store in a thread, for callers who may stop waiting for it.

A thread cannot be cancelled: it opens what it has begun to open. So it is closed there as well, and
no file stays open that nobody knows of.
"""

import asyncio
import threading
from collections.abc import Callable


class Opening:
    """Runs `open`, and `close` if that fails or is not waited for any more; both in threads.

    The same store can be opened again after either.
    """

    def __init__(self, open: Callable[[], None], close: Callable[[], None]) -> None:
        self._open = open
        self._close = close
        self._guard = threading.Lock()
        self._latest: object = None

    async def run(self) -> None:
        attempt = object()
        try:
            await asyncio.to_thread(self._try, attempt)
        except asyncio.CancelledError:
            asyncio.get_running_loop().run_in_executor(None, self._undo, attempt)
            raise

    def _try(self, attempt: object) -> None:
        with self._guard:
            try:
                self._open()
            except BaseException:
                self._close()
                raise
            self._latest = attempt

    def _undo(self, attempt: object) -> None:
        """Close what was opened, unless somebody has come who wants it open."""
        with self._guard:
            if self._latest is attempt:
                self._close()
