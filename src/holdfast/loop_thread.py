"""An event loop in a thread of its own, on which plain functions run what is asynchronous.

    loop = LoopThread("holdfast-shepherd")
    result = loop.run(session.send("Hello."))

What runs there sees the context variables of the thread that asked for it.
"""

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from holdfast.errors import Cancelled, InvalidInput

_Result = TypeVar("_Result")


class LoopThread:
    """A loop that runs from now until `close`. Any thread may use it, but for its own."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._pid = os.getpid()
        self._works: set[_Work[Any]] = set()  # the loop itself holds no task
        self._is_up = threading.Event()
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()
        self._is_up.wait()

    def _serve(self) -> None:
        with asyncio.Runner() as runner:  # at the end it cancels what is left, and waits for it
            self._loop = runner.get_loop()
            self._is_up.set()
            self._loop.run_forever()
        for work in list(self._works):  # begun by other threads while it ended
            work.give_up()

    @property
    def is_closed(self) -> bool:
        return self._loop.is_closed()

    @property
    def is_here(self) -> bool:
        """Whether this is the thread of the loop."""
        return threading.current_thread() is self._thread

    @property
    def is_inherited(self) -> bool:
        """Whether it was left in the process that this one was forked from."""
        return self._pid != os.getpid()

    def check(self) -> None:
        """InvalidInput where waiting for something on this loop would never end."""
        if self.is_inherited:
            raise InvalidInput(self.name, "was opened before a fork: open it again in this process")
        if self.is_closed:
            raise InvalidInput(self.name, "is closed")
        if self.is_here:
            raise InvalidInput(
                self.name,
                "would wait for itself here, on its own event loop: do it when the turn is over, "
                "or from another thread, as a tool that is a plain function does",
            )

    def start(self, coroutine: Coroutine[Any, Any, _Result]) -> "Future[_Result]":
        """Begin something; whoever waits for the future has what it gives or raises."""
        try:
            self.check()
        except InvalidInput:
            coroutine.close()  # Python warns of one that nobody awaits
            raise
        work = _Work(self._loop, coroutine)
        self._works.add(work)
        work.add_done_callback(self._works.discard)
        try:
            self._loop.call_soon_threadsafe(work.begin)
        except RuntimeError:  # closed by another thread just now
            coroutine.close()
            self._works.discard(work)
            raise InvalidInput(self.name, "is closed") from None
        return work

    def run(self, coroutine: Coroutine[Any, Any, _Result]) -> _Result:
        """Do something, and wait for it. A Ctrl-C cancels it, and is raised when it has ended."""
        work = self.start(coroutine)
        try:
            return work.result()
        except concurrent.futures.CancelledError:
            raise Cancelled(f"{self.name} was closed") from None
        except BaseException:
            if work.cancel():
                concurrent.futures.wait([work])
            raise

    def finish(self, coroutine: Coroutine[Any, Any, object]) -> None:
        """The same for what tidies up, from wherever garbage is collected: where nobody can wait,
        it is only begun, and where the loop is gone, there is nothing to be done."""
        if self.is_closed or self.is_inherited:
            coroutine.close()
        elif self.is_here:
            work = _Work(self._loop, coroutine)
            self._works.add(work)
            work.add_done_callback(self._works.discard)
            work.begin()
        else:
            self.run(coroutine)

    def close(self) -> None:
        """End the loop and its thread; what still runs is cancelled. Twice is fine."""
        if self.is_closed or self.is_inherited:
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


class _Work(Future[_Result]):
    """Something that runs on a loop. It is done when it has ended, also after `cancel`."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, _Result]
    ) -> None:
        super().__init__()
        self._loop = loop
        self._coroutine = coroutine
        self._task: asyncio.Task[_Result] | None = None

    def begin(self) -> None:
        """In the loop."""
        self._task = self._loop.create_task(self._coroutine)
        self._task.add_done_callback(self._end)

    def cancel(self) -> bool:
        """Ask it to end, from any thread; False if it has ended."""
        if self.done():
            return False
        try:
            self._loop.call_soon_threadsafe(self._cancel_task)
        except RuntimeError:  # the loop is closed, and everything on it has ended
            return False
        return True

    def give_up(self) -> None:
        """The loop is closed, and will never come to it."""
        if self.done():
            return
        if self._task is None:
            self._coroutine.close()
        super().cancel()
        self.set_running_or_notify_cancel()

    def _cancel_task(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _end(self, task: "asyncio.Task[_Result]") -> None:
        if task.cancelled():
            super().cancel()
            self.set_running_or_notify_cancel()
        elif (error := task.exception()) is not None:
            self.set_exception(error)
        else:
            self.set_result(task.result())
