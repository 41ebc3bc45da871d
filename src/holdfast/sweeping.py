"""Expiry in the background: sessions whose time is over are marked, and deleted later.

Any number of processes may do this on one store: each run is a few short transactions, and they
begin at random moments, so that a crowd that was started together does not sweep together.
"""

import asyncio
import random
from datetime import timedelta

from holdfast.errors import HoldfastError
from holdfast.memory import Memory
from holdfast.stores.base import Tenant
from holdfast.stores.requests import EXPIRE_MAX
from holdfast.stores.values import Expired, check_ttl

EVERY = timedelta(hours=1)
_RUNS_MAX = 1_000


class Sweeping:
    """Expires sessions now and then, for as long as a manager is open.

    `last` is what came of the last run: what it did, or the error that it met. An error ends
    nothing: the next run tries again.
    """

    def __init__(
        self, tenant: Tenant, every: timedelta | None, memory: Memory | None = None
    ) -> None:
        if every is not None:
            check_ttl(every, "expire_every")
        self._tenant = tenant
        self._memory = memory
        self._every = every
        self._task: asyncio.Task[None] | None = None
        self.last: Expired | HoldfastError | None = None

    def start(self) -> None:
        """From now on, in the loop that runs."""
        if self._every is not None and self._task is None:
            self._task = asyncio.create_task(self._run(self._every.total_seconds()))

    async def stop(self) -> None:
        """Never again. A run that is on its way is left in a good place: between transactions."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _run(self, every_s: float) -> None:
        while True:
            await asyncio.sleep(every_s * random.uniform(0.5, 1.5))  # noqa: S311 - not a secret
            try:
                self.last = await sweep(self._tenant, self._memory)
            except HoldfastError as error:
                self.last = error


async def sweep(tenant: Tenant, memory: Memory | None = None) -> Expired:
    """Everything that is due now; what a memory has of sessions that are deleted goes with them."""
    if memory is None:
        return await _sweep(tenant)
    await memory.leaving.doom_expired()
    done = await _sweep(tenant)
    await memory.leaving.bury_all()
    return done


async def _sweep(tenant: Tenant) -> Expired:
    """Some at a time, so that writers come in between."""
    marked = deleted = 0
    for _ in range(_RUNS_MAX):
        done = await tenant.expire()
        marked, deleted = marked + done.marked, deleted + done.deleted
        if done.stopped or done.marked + done.deleted < EXPIRE_MAX:
            return Expired(marked, deleted, done.stopped)
    return Expired(marked, deleted)
