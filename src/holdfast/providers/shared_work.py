"""Work that is done once for all who want it at the same time, such as the refresh of a token.

    token = await work.done("ada@example.com", refresh)

Whoever comes first does it, in a task of its own making, so that nothing runs on when nobody waits;
the others wait for what comes of it. If the first is cancelled, another takes over. An error is
everybody's: each gets a copy.
"""

import copy
from collections.abc import Awaitable, Callable, Hashable
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")


class SharedWork:
    """Any number of works, told apart by their keys. Each event loop shares among its own tasks."""

    def __init__(self) -> None:
        self._going: dict[tuple[asyncio.AbstractEventLoop, Hashable], asyncio.Future[Any]] = {}

    async def done(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        """What `work` returns or raises, or what it did for those who asked a moment before."""
        import asyncio

        place = asyncio.get_running_loop(), key
        while (going := self._going.get(place)) is not None:
            await asyncio.wait((going,))
            if not going.cancelled():
                shared: T = _outcome(going)
                return shared
        ended = self._going[place] = place[0].create_future()
        try:
            result = await work()
            ended.set_result(result)
            return result
        except HoldfastError as error:
            ended.set_exception(error)
            ended.exception()  # is told here, also where nobody else waits for it
            raise
        finally:
            del self._going[place]
            ended.cancel()  # if there is no outcome: whoever waits takes over


def _outcome(ended: "asyncio.Future[T]") -> T:
    error = ended.exception()
    if error is not None:
        raise copy.copy(error) from error
    return ended.result()
