"""Plain functions that wait for the server.

Requests and views are plain functions, the same for every store, and asyncpg is asynchronous. So
they run in a greenlet: `wait` leaves it with what is to be awaited, and comes back with the answer.
"""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from greenlet import getcurrent, greenlet

_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")


async def spawn(function: Callable[[_Argument], _Result], argument: _Argument) -> _Result:
    """What a plain function returns, in which `wait` may be called."""
    inner = greenlet(function)
    inner.gr_context = getcurrent().gr_context  # context variables are those of the caller
    found: Any = inner.switch(argument)
    while not inner.dead:
        try:
            answer = await found
        except BaseException as error:  # noqa: BLE001 - told where it is waited for, whatever it is
            found = inner.throw(type(error), error, error.__traceback__)
        else:
            found = inner.switch(answer)
    result: _Result = found
    return result


def wait(awaitable: Awaitable[_Result]) -> _Result:
    """The answer. Only inside of `spawn`."""
    outer = getcurrent().parent
    assert outer is not None, "it is called inside of spawn()"
    answer: _Result = outer.switch(awaitable)
    return answer
