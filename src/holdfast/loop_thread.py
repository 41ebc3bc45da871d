"""An event loop in a thread of its own, on which plain functions run what is asynchronous.

    loop = LoopThread("holdfast-shepherd")
    result = loop.run(session.send("Hello."))

What runs there sees the context variables of the thread that asked for it.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Generic, TypeVar

from holdfast.errors import Cancelled, InvalidInput

_Result = TypeVar("_Result")


class LoopThread:
    """A loop that runs from now until `close`. Any thread may use it, but for its own."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._pid = os.getpid()
        self._works: set[_Work[Any]] = set()  # the loop itself holds no task
        self._is_up = threading.Event()
        self._is_ending = False
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()
        self._is_up.wait()

    def _serve(self) -> None:
        with asyncio.Runner() as runner:  # at the end it cancels what is left, and waits for it
            self._loop = runner.get_loop()
            self._is_up.set()
            while not self._is_ending:
                # Of one task: whoever waits for it is told, and nobody else's work ends with it.
                with suppress(SystemExit, KeyboardInterrupt):
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

    def run(
        self,
        coroutine: Coroutine[Any, Any, _Result],
        *,
        meanwhile: Callable[[], object] | None = None,
        at_end: Callable[[], object] | None = None,
    ) -> _Result:
        """Do something, and wait for it. A Ctrl-C cancels it, and is raised when it has ended.

        meanwhile  is called here while it runs, and what that raises cancels it too
        at_end     is called in the loop when it has ended, however it has
        """
        work = _Work(self, coroutine, at_end)
        try:  # a Ctrl-C may come between any two steps
            self._start(work)
            if meanwhile is not None:
                meanwhile()
            return work.result()
        except BaseException:
            work.leave()
            raise

    def _start(self, work: "_Work[Any]") -> None:
        self.check()
        self._works.add(work)
        try:
            self._loop.call_soon_threadsafe(work.begin)
        except RuntimeError:  # closed by another thread just now
            raise InvalidInput(self.name, "is closed") from None

    def finish(self, coroutine: Coroutine[Any, Any, object]) -> None:
        """The same for what tidies up, from wherever garbage is collected: where nobody can wait,
        it is only begun, and where the loop is gone, there is nothing to be done."""
        if self.is_closed or self.is_inherited:
            coroutine.close()
        elif self.is_here:
            work = _Work(self, coroutine)
            self._works.add(work)
            work.begin()
        else:
            self.run(coroutine)

    def close(self) -> None:
        """End the loop and its thread; what still runs is cancelled. Twice is fine."""
        if self.is_closed or self.is_inherited:
            return
        self._is_ending = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


class _Work(Generic[_Result]):
    """Something that runs on a loop, for the one thread that waits for it.

    It waits at a bare lock, which is taken in one step: a Ctrl-C inside of anything that is written
    in Python, as a Future's condition is, could leave that locked, and the loop would wait for it.
    """

    def __init__(
        self,
        thread: LoopThread,
        coroutine: Coroutine[Any, Any, _Result],
        at_end: Callable[[], object] | None = None,
    ) -> None:
        self._thread = thread
        self._coroutine = coroutine
        self._at_end = at_end
        self._task: asyncio.Task[_Result] | None = None
        self._is_over = False
        self._end = threading.Lock()
        self._end.acquire()  # until it is over

    def begin(self) -> None:
        """In the loop."""
        self._task = self._thread._loop.create_task(self._coroutine)
        self._task.add_done_callback(self._ended)

    def result(self) -> _Result:
        """What it gives or raises, when it has ended."""
        self._wait()
        if self._task is None or not self._task.done() or self._task.cancelled():
            raise Cancelled(f"{self._thread.name} was closed")
        return self._task.result()

    def leave(self) -> None:
        """Ask it to end, and wait until it has."""
        if self._is_over:
            return
        if not self._thread.is_inherited and not self._thread.is_here:
            try:
                self._thread._loop.call_soon_threadsafe(self._cancel)
            except RuntimeError:  # the loop is closed, and whatever was on it has ended
                pass
            else:
                self._wait()
        self.give_up()

    def give_up(self) -> None:
        """Nobody will come to it, if nobody has."""
        if self._is_over:
            return
        if self._task is None:
            self._coroutine.close()
        self._ended()

    def _wait(self) -> None:
        if not self._is_over:
            self._end.acquire()

    def _cancel(self) -> None:
        """In the loop, where it was begun before, or never will be."""
        if self._task is not None:
            self._task.cancel()
        else:
            self.give_up()

    def _ended(self, task: "asyncio.Task[_Result] | None" = None) -> None:
        if task is not None and not task.cancelled():
            task.exception()  # it is seen, though nobody may be left to be told
        self._is_over = True
        self._thread._works.discard(self)
        if self._at_end is not None:
            self._at_end()
        with suppress(RuntimeError):  # whoever waited and a loop that ends may both come to this
            self._end.release()
