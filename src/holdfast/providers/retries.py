"""Whether to ask a service again, and when.

    retries = Retries()
    wait_s = retries.wait_s(error)      # None: give up, and raise the error

Only what time can mend is tried again: RateLimited, Overloaded, ConnectionFailed; and, at once,
what was amended meanwhile, as by another token or another account. There are at most five tries
and sixty seconds, waiting and answering together. A wait is drawn from zero up to a bound that
doubles (full jitter: clients that failed together do not come back together). What the service
itself asks for is the least that is waited, and when that is more than is left, there is nothing
to wait for. Once output was shown there is no second try: the reader would see two beginnings.

The policy is pure; clock and randomness are passed in. `retried` carries it out.
"""

import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from holdfast.cancel import CancelToken
from holdfast.errors import ConnectionFailed, Overloaded, ProviderError, RateLimited

TRIES_MAX = 5
TOTAL_S_MAX = 60.0
FIRST_BOUND_S = 1.0
BOUND_S_MAX = 30.0
RETRIED = (RateLimited, Overloaded, ConnectionFailed)

T = TypeVar("T")


class Retries:
    """The tries of one call, counted from when this is made.

    `clock` gives seconds that never go back, `draw` numbers from 0 up to 1.
    """

    def __init__(
        self,
        *,
        tries_max: int = TRIES_MAX,
        total_s_max: float = TOTAL_S_MAX,
        clock: Callable[[], float] = time.monotonic,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._tries_max = tries_max
        self._total_s_max = total_s_max
        self._clock = clock
        self._draw = draw
        self._started_s = clock()
        self.failed = 0  # tries, so far

    def wait_s(
        self, error: BaseException, *, has_output: bool = False, is_amended: bool = False
    ) -> float | None:
        """A try failed with `error`: how long to wait before the next, or None to give up.

        `is_amended`: the next one is different, so that it may work whatever the error was.
        """
        self.failed += 1
        left_s = self._total_s_max - (self._clock() - self._started_s)
        if has_output or self.failed >= self._tries_max or left_s <= 0:
            return None
        if is_amended:
            return 0.0
        if not isinstance(error, RETRIED):
            return None
        asked_s = error.retry_after_s or 0.0
        if not asked_s <= left_s:  # also when it is no number
            return None
        doubled_s = FIRST_BOUND_S * 2.0 ** min(self.failed - 1, 16)
        return max(asked_s, self._draw() * min(doubled_s, BOUND_S_MAX, left_s))


async def retried(
    call: Callable[[], Awaitable[T]],
    *,
    retries: Retries | None = None,
    has_output: Callable[[], bool] = lambda: False,
    cancel_token: CancelToken | None = None,
    on_retry: Callable[[ProviderError, int, float], object] | None = None,
    sleep: Callable[[float], Awaitable[object]] | None = None,
) -> T:
    """What `call` returns, tried again as `retries` allows; else the last error, unchanged.

    `has_output` says whether the try that failed showed something already. `on_retry` hears of
    each wait before it begins: the error, how many tries failed, and the seconds. A cancel ends
    the wait at once, with Cancelled; so does cancelling the task, with CancelledError.
    """
    retries = retries or Retries()
    token = cancel_token or CancelToken()
    while True:
        token.raise_if_cancelled()
        try:
            return await call()
        except ProviderError as error:
            wait_s = retries.wait_s(error, has_output=has_output())
            if wait_s is None:
                raise
            if on_retry is not None:
                on_retry(error, retries.failed, wait_s)
        async with token.guard():
            await (sleep or _sleep)(wait_s)


async def _sleep(seconds: float) -> None:
    import asyncio  # here, because it is slow to import

    await asyncio.sleep(seconds)
