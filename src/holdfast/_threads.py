"""Runs a tool that is a plain function in a thread of its own, for a task that waits.

Not in the loop's executor: a function that never returns would keep one of its few places for
ever, and the end of the loop would wait for it. Here each call has its own thread, so that any
number may hang and the next still runs; and the threads are daemons, so that a program can end.
"""

import contextvars
import inspect
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

# Raised again in a task, StopIteration would hang whoever awaits it, and KeyboardInterrupt would
# end the loop as if the user had pressed Ctrl-C, which no thread but the main one hears of.
_NOT_TO_BE_RAISED_AGAIN = (StopIteration, KeyboardInterrupt)


async def call(function: Callable[[], Any], name: str) -> Any:
    """What the function returns or raises, in a copy of this context; `name` is the thread's.

    When the task that waits is cancelled, the function is left to end by itself.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()
    work = (loop, answer, context, function)
    threading.Thread(target=_work, args=work, name=name, daemon=True).start()
    try:
        return await answer
    finally:
        del answer, work  # an error holds the frames it passed, and they would hold the error


def _work(
    loop: "asyncio.AbstractEventLoop",
    answer: "asyncio.Future[Any]",
    context: contextvars.Context,
    function: Callable[[], Any],
) -> None:
    found, error = _outcome(context, function)
    try:
        loop.call_soon_threadsafe(_settle, answer, found, error)
    except RuntimeError:  # the loop is closed: nobody waits any more
        _drop(found)
    finally:
        del answer, found, error  # as above


def _outcome(
    context: contextvars.Context, function: Callable[[], Any]
) -> tuple[Any, BaseException | None]:
    try:
        return context.run(function), None
    except _NOT_TO_BE_RAISED_AGAIN as error:
        told = RuntimeError(f"the tool raised {type(error).__name__}")
        told.__cause__ = error
        return None, told
    except BaseException as error:  # noqa: BLE001 - it is raised where the function is awaited
        return None, error


def _settle(answer: "asyncio.Future[Any]", found: Any, error: BaseException | None) -> None:
    """In the loop: the task may have been cancelled meanwhile."""
    if answer.done():
        _drop(found)
    elif error is not None:
        answer.set_exception(error)
    else:
        answer.set_result(found)


def _drop(found: Any) -> None:
    if inspect.iscoroutine(found):  # Python warns of one that nobody awaits
        found.close()
