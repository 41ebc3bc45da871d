"""Runs the calls of a reply, some at a time, and gives each result as it comes.

    jobs = [Job(call, tool, Running(...)), ...]
    async with aclosing(run_calls(jobs, cancel=token)) as results:
        async for job, message in results:
            ...                                     # a tool message, ready to be appended

Whatever a tool does, each call ends in one message: what it returned, or an error that a model
can act on (`tool_results` says which). Only two things end a run before its calls have ended: the
token, and the end of the task or the generator that waits. Then those that still run are told
through `running().cancel`, given a moment to end by themselves, cancelled, and given another; a
plain function that goes on is left to its thread, and an async one that does not let itself be
cancelled is left to the loop.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import NamedTuple

from holdfast.cancel import CancelToken
from holdfast.errors import Cancelled, InvalidInput, ToolUnavailable
from holdfast.messages import Message, ToolCall
from holdfast.steps.tool_results import RESULT_BYTES_MAX, answered, content_of, failed
from holdfast.tools import ACTIVE, RUNNING, Running, Tool

PARALLEL_MAX = 8
ENDING_S = 0.1  # for a call to end by itself, when it has been told
STOPPING_S = 0.2  # for a task to end, when it has been cancelled
_REASON_MAX = 300  # characters

_Task = asyncio.Task[Message | None]
_log = logging.getLogger("holdfast")
_left: set[_Task] = set()  # a loop keeps its tasks by weak references only


class Job(NamedTuple):
    """One call, the tool that answers it, and what the tool is told about it.

    The tool is given a child of `running.cancel`, so that one call can be stopped by itself.
    """

    call: ToolCall
    tool: Tool
    running: Running


async def run_calls(
    jobs: Sequence[Job],
    *,
    cancel: CancelToken,
    parallel_max: int = PARALLEL_MAX,
    result_bytes_max: int = RESULT_BYTES_MAX,
) -> AsyncGenerator[tuple[Job, Message], None]:
    """Run each call within its tool's time, and yield it with its result when it has finished.

    They are started in their order, at most `parallel_max` at a time. When `cancel` is cancelled,
    what has finished is yielded first, then Cancelled is raised; so it is with CancelledError when
    the task that waits here is cancelled. Nothing is yielded for a call that did not finish.
    A tool without anything to run it is ToolUnavailable, before any is started.
    """
    if type(parallel_max) is not int or parallel_max < 1:
        raise InvalidInput("parallel_max", f"is a whole number from 1 up, not {parallel_max!r}")
    for job in jobs:
        if job.tool.run is None:
            raise ToolUnavailable(job.tool.name)
    cancel.raise_if_cancelled()
    runs = _Runs(jobs, cancel, parallel_max, result_bytes_max)
    try:
        while not runs.is_over:
            try:
                await runs.wait()
            except (Cancelled, asyncio.CancelledError):
                await runs.stop()
                for finished in runs.take():
                    yield finished
                raise
            for finished in runs.take():
                yield finished
    finally:
        await runs.stop()


class _Run:
    """One call while it runs."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.token = job.running.cancel.child()
        self.timer: asyncio.TimerHandle | None = None

    async def message(self, cancel: CancelToken, bytes_max: int) -> Message | None:
        """The result; None if the tool heeded a cancel. CancelledError goes on, and Ctrl-C."""
        call, tool, running = self.job
        ACTIVE[running.key] = RUNNING.get()
        RUNNING.set(running._replace(cancel=self.token))
        try:
            read = partial(content_of, bytes_max=bytes_max)
            return answered(call, await tool.invoke(call.arguments, read=read))
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and _is_main_thread():
                raise
            if isinstance(error, Cancelled) and cancel.is_cancelled:
                return None
            return self.failed(error, bytes_max)
        finally:
            ACTIVE.pop(running.key, None)

    def failed(self, error: BaseException, bytes_max: int) -> Message:
        """The result of a call that went wrong. What may be left of it is told to stop."""
        message = failed(self.job.call, error, bytes_max)
        self.token.cancel((message.text or "")[:_REASON_MAX])
        return message

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()


class _Runs:
    """The calls of one reply: those that wait, those that run, those that nobody has taken yet."""

    def __init__(
        self, jobs: Sequence[Job], cancel: CancelToken, parallel_max: int, bytes_max: int
    ) -> None:
        self._cancel = cancel
        self._parallel_max = parallel_max
        self._bytes_max = bytes_max
        self._waiting = deque(jobs)
        self._running: dict[_Task, _Run] = {}
        self._finished: list[tuple[Job, Message]] = []
        self._interrupt: BaseException | None = None
        self._is_stopping = False
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._forget = cancel.on_cancel(self._call_loop)
        self._start()

    @property
    def is_over(self) -> bool:
        """Whether every call has finished and was taken."""
        return not (self._waiting or self._running or self._finished or self._interrupt)

    def take(self) -> list[tuple[Job, Message]]:
        """What has finished since the last time."""
        taken, self._finished = self._finished, []
        return taken

    async def wait(self) -> None:
        """Until a call has finished; Cancelled if the token was cancelled before all had."""
        await self._news.wait()
        self._news.clear()
        if self._interrupt is not None:
            raise self._interrupt
        if self._waiting or self._running:
            self._cancel.raise_if_cancelled()

    async def stop(self) -> None:
        """End what runs, in a moment; what finishes in it can still be taken."""
        self._is_stopping = True
        self._forget()
        self._waiting.clear()
        try:
            for run in self._running.values():
                run.token.cancel(self._cancel.reason or "nobody waits for the result any more")
            await self._end_within(ENDING_S)
            for task in self._running:
                task.cancel()
            await self._end_within(STOPPING_S)
            for run in self._running.values():
                _log.warning("tool %r goes on although it was cancelled", run.job.tool.name)
        finally:  # also when this is cancelled in its turn
            for task in list(self._running):
                task.cancel()
                self._leave(task)

    async def _end_within(self, seconds: float) -> None:
        if self._running:
            await asyncio.wait(self._running, timeout=seconds)

    def _start(self) -> None:
        while self._waiting and len(self._running) < self._parallel_max:
            if self._cancel.is_cancelled:  # and nobody may have come to wait since
                return
            run = _Run(self._waiting.popleft())
            # In a copy of the caller's context, also where a call that ended made room for it.
            task = self._loop.create_task(run.message(self._cancel, self._bytes_max))
            self._running[task] = run
            task.add_done_callback(self._ended)
            if run.job.tool.timeout is not None:
                seconds = run.job.tool.timeout + STOPPING_S
                run.timer = self._loop.call_later(seconds, self._overrun, task)

    def _ended(self, task: _Task) -> None:
        run = self._running.pop(task, None)
        if run is None:  # it was left before
            return
        run.stop_timer()
        if not task.cancelled():
            interrupt = task.exception()  # nothing else gets out of it
            message = None if interrupt else task.result()
            self._interrupt = self._interrupt or interrupt
        elif self._is_stopping:
            message = None
        else:  # by the tool itself
            error = asyncio.CancelledError("the tool cancelled itself")
            message = run.failed(error, self._bytes_max)
        self._add(run, message)

    def _overrun(self, task: _Task) -> None:
        """Its time was up a while ago, and it was cancelled, and goes on."""
        run = self._running[task]
        self._leave(task)
        _log.warning("tool %r goes on although its time is up", run.job.tool.name)
        error = TimeoutError(f"tool {run.job.tool.name!r} took over {run.job.tool.timeout:g} s")
        self._add(run, run.failed(error, self._bytes_max))

    def _leave(self, task: _Task) -> None:
        self._running.pop(task).stop_timer()
        _left.add(task)
        task.add_done_callback(_left_behind)

    def _add(self, run: _Run, message: Message | None) -> None:
        if message is not None:
            self._finished.append((run.job, message))
        self._news.set()
        self._start()

    def _call_loop(self) -> None:
        """In the thread that cancels."""
        try:
            self._loop.call_soon_threadsafe(self._news.set)
        except RuntimeError:  # the loop is closed, and the run with it
            pass


def _left_behind(task: _Task) -> None:
    _left.discard(task)
    if not task.cancelled():
        task.exception()  # or asyncio would report that nobody looked at it


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
