"""The one loop of a process on which everything of `holdfast.sync` runs.

It begins when it is first needed, a forked child gets one of its own, and it ends with the
interpreter, when what is still open has been closed.
"""

import concurrent.futures.thread as pools
import logging
import os
import threading
from collections.abc import Awaitable
from typing import Any, Protocol
from weakref import WeakValueDictionary

from holdfast.loop_thread import LoopThread

_log = logging.getLogger("holdfast")


class Closing(Protocol):
    """What has to be closed before the program ends."""

    def close(self) -> Awaitable[None]: ...


class Background(LoopThread):
    """The loop, and what was opened on it and not closed yet."""

    def __init__(self) -> None:
        super().__init__("holdfast.sync")
        self._open: dict[int, Closing] = {}
        self.drawn: set[Any] = set()  # async iterators that somebody is in the middle of
        self.guard = threading.RLock()
        # By the id of what is beneath, which lives as long as its face.
        self.faces: WeakValueDictionary[int, Any] = WeakValueDictionary()

    def opened(self, thing: Closing) -> None:
        self._open[id(thing)] = thing

    def closed(self, thing: Closing) -> None:
        self._open.pop(id(thing), None)

    def drain(self) -> None:
        """Close what is open, the latest first, and then the loop."""
        for thing in reversed(list(self._open.values())):
            try:
                self.run(_closing(thing))
            except Exception:  # noqa: BLE001 - the others still have to be closed
                _log.exception("closing what holdfast.sync had open")
        self._open.clear()
        self.close()


async def _closing(thing: Closing) -> None:
    await thing.close()


_guard = threading.Lock()
_here: Background | None = None
_inherited: list[Any] = []  # never freed: a loop that goes would take its parent's sockets along


def background() -> Background:
    """The loop of this process."""
    global _here
    with _guard:
        if _here is None or _here.is_closed:
            _here = Background()
        return _here


def _in_child() -> None:
    global _guard, _here
    _inherited.append(_here)
    _guard, _here = threading.Lock(), None


def _at_exit() -> None:
    """Wait for the threads that may still talk, then close what they used."""
    for thread in threading.enumerate():
        is_pool = thread in getattr(pools, "_threads_queues", ())  # these wait for work, for ever
        if not (thread.daemon or is_pool or thread is threading.current_thread()):
            thread.join()
    if _here is not None and not _here.is_inherited and not _here.is_closed:
        _here.drain()


# Not atexit: by then the interpreter has shut the thread pools in which the stores read. These are
# called in reverse, so this one comes before theirs.
threading._register_atexit(_at_exit)  # type: ignore[attr-defined]

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
