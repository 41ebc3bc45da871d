"""The scribe of a manager: writes down what its turns have said so far, and that they still run."""

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from holdfast.errors import HoldfastError
from holdfast.steps.rounds import Rounds
from holdfast.stores.base import Tenant

if TYPE_CHECKING:
    from holdfast.steps.hold import Hold
    from holdfast.steps.journal import Journal

JOURNAL_S = 0.1  # between two writes of a turn's words, where it is alone
JOURNAL_S_EACH = 0.0004  # more for each other that waits: thousands of turns share one disk
JOURNAL_S_MAX = 0.5
RENEW_S = 10.0  # a third of what a lease lasts
_log = logging.getLogger("holdfast")


class Scribe:
    """Journals are written some at a time, each of them by one task at a time."""

    def __init__(self, tenant: Tenant) -> None:
        self._tenant = tenant
        self._tasks: set[asyncio.Task[Any]] = set()
        self.journals: Rounds[Journal] = Rounds(self._start, self._journal_s)
        self.holds: Rounds[Hold] = Rounds(_renew, lambda: RENEW_S)

    def _journal_s(self) -> float:
        return min(JOURNAL_S + len(self.journals) * JOURNAL_S_EACH, JOURNAL_S_MAX)

    def _start(self, journals: "list[Journal]") -> None:
        task = asyncio.get_running_loop().create_task(self._write(journals))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _write(self, journals: "list[Journal]") -> None:
        try:
            taken = [(each.lease, chunk) for each in journals for chunk in each.take()]
            found = await self._tenant.journal_all(taken)
            if any(found):
                stopped = [each.lease for each in journals if each.is_stopped]
                for (lease, _), error in zip(taken, found, strict=True):
                    if error is not None and lease not in stopped:
                        _warn(error)
        except HoldfastError as error:
            _warn(error)
        finally:  # whatever happens, or a turn would wait for ever
            for each in journals:
                each.written()


def _warn(error: HoldfastError) -> None:
    """The turn itself will meet it where it matters."""
    _log.warning("partial output could not be written down: %s", error)


def _renew(holds: "list[Hold]") -> None:
    for each in holds:
        each.renew()
