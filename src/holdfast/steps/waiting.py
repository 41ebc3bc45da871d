"""Waiting for a session: since when, for how long yet, and a place in the line for its lease.

The store keeps that line, so that it is one for all processes. Whoever gets the lease at once
never stands in it.
"""

import asyncio
from contextlib import suppress
from datetime import timedelta

from holdfast import ids
from holdfast.cancel import CancelToken
from holdfast.errors import StoreError
from holdfast.stores.base import Tenant

WAIT_S_MAX = 600.0
_LOOK_S = (0.005, 0.1)  # how often it is looked whether it is one's turn
_PATIENCE_S = 1.0  # a place lasts a little longer than the one who has it waits


class Waiting:
    """One who wants a session. `place` is empty while it does not stand in line."""

    def __init__(self, tenant: Tenant, session_id: str, owner: str, wait_s: float | None) -> None:
        self.place = ""
        self.is_settled = asyncio.Event()  # it has the lease, or waits no more
        self._tenant = tenant
        self._id = session_id
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self._since = self._loop.time()
        self._until = self._since + (WAIT_S_MAX if wait_s is None else wait_s)

    @property
    def left_s(self) -> float:
        """For how many seconds it may wait yet."""
        return max(0.0, self._until - self._loop.time())

    async def line_up(self) -> bool:
        """Stand in line; whether it is its turn."""
        self.place = self.place or ids.new_id()
        return await self._tenant.line_up(
            self._id,
            self._owner,
            self.place,
            waited=timedelta(seconds=self._loop.time() - self._since),
            patience=timedelta(seconds=self.left_s + _PATIENCE_S),
        )

    async def until_turn(self, cancel: CancelToken) -> None:
        """Stand in line until it is its turn, or its time is over."""
        pause_s = _LOOK_S[0]
        async with cancel.guard():
            while self.left_s and not await self.line_up():
                await asyncio.sleep(min(pause_s, self.left_s))
                pause_s = min(2 * pause_s, _LOOK_S[1])

    def begun(self) -> None:
        """It has the lease, and left the line with that."""
        self.place = ""
        self.is_settled.set()

    async def step_out(self) -> None:
        """It wants the session no more. A place that stays in line is passed over after a while."""
        self.is_settled.set()
        if self.place:
            with suppress(StoreError):
                await self._tenant.step_out(self._id, self.place)
