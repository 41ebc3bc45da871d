"""The hold of a turn on its session: the lease, renewed while the turn runs, and its journal."""

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from holdfast.cancel import CancelToken
from holdfast.conversation import Conversation
from holdfast.errors import Busy, Conflict, HoldfastError, LeaseLost
from holdfast.steps.drafts import Draft, read
from holdfast.steps.journal import Journal
from holdfast.steps.scribe import Scribe
from holdfast.steps.waiting import Waiting
from holdfast.stores.values import Lease

LEASE = timedelta(seconds=30)
_log = logging.getLogger("holdfast")


class Hold:
    """A lease that is held. `lost` says that it is not any more; then `cancel` was cancelled."""

    def __init__(
        self,
        conversation: Conversation,
        lease: Lease,
        scribe: Scribe,
        cancel: CancelToken,
        *,
        is_silent: bool,
    ) -> None:
        self.lease = lease
        self.left: Draft | None = read(lease.left)
        self.journal = Journal(conversation.tenant, lease, scribe, is_silent=is_silent)
        self.lost: LeaseLost | None = None
        self.is_over = False
        self.is_dropped = False  # the draft, with the lease
        self._tenant = conversation.tenant
        self._cancel = cancel
        self._scribe = scribe
        scribe.holds.add(self)
        self._renewing: asyncio.Task[None] | None = None

    async def finished(self) -> None:
        """The last append has dropped the draft and released the lease."""
        self.is_over = self.is_dropped = True
        await self._stop()

    async def let_go(self, why: str = "", *, drop: bool = False) -> None:
        """Release the lease. The draft stays, with why the turn ended, unless it is dropped."""
        if self.is_over:
            return
        self.is_over = True
        await self._stop()
        try:
            if why and self.lost is None:
                await self.journal.end(why)
            await self._tenant.release(self.lease, drop=drop)
            self.is_dropped = drop
        except HoldfastError as error:
            _log.warning("a turn could not say how it ended: %s", error)

    async def _stop(self) -> None:
        self._scribe.holds.remove(self)
        if self._renewing is not None:  # nobody waits for a lease that is let go
            self._renewing.cancel()
            await asyncio.wait([self._renewing])
        await self.journal.stop()

    def renew(self) -> None:
        """Begin to tell the store that the turn still runs, and ask to be called again."""
        self._renewing = asyncio.get_running_loop().create_task(self._renew_lease())
        self._scribe.holds.add(self)

    async def _renew_lease(self) -> None:
        try:
            await self._tenant.renew(self.lease)
        except LeaseLost as error:
            self.lost = error
            self._cancel.cancel("the lease was lost")
        except HoldfastError as error:
            _log.warning("a lease could not be renewed: %s", error)


async def take_hold(
    conversation: Conversation,
    owner: str,
    draft: Callable[[], dict[str, Any]],
    scribe: Scribe,
    waiting: Waiting,
    cancel: CancelToken,
    *,
    is_silent: bool = False,
) -> Hold:
    """Take the lease and store the draft, when the turns before have ended; or Busy.

    The record was read just before, so that the draft can hold what the last turn left.
    """
    tenant, id = conversation.tenant, conversation.id
    while True:
        seen, place = _seen(conversation), waiting.place
        try:
            lease = await tenant.begin(id, owner, LEASE, draft(), seen=seen, place=place)
        except Conflict:  # another was cut off meanwhile: the draft has to hold what it left
            await conversation.look()
        except Busy:
            if not waiting.left_s:
                raise
            await waiting.until_turn(cancel)
            await conversation.look()
        else:
            waiting.begun()
            return Hold(conversation, lease, scribe, cancel, is_silent=is_silent)


def _seen(conversation: Conversation) -> int:
    """The draft that the next one will hold: that of a turn which does not run any more."""
    draft = conversation.record.draft
    return 0 if draft is None or draft.is_running else draft.token
