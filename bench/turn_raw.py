"""The raw side of bench/turn.py: what a turn cannot do without.

The store's own commits for a turn, with nothing around them, and a stream of pieces that is read
where it is made.
"""

import asyncio
import time
from array import array
from datetime import timedelta

from turn_provider import REPLY, Paced

from holdfast.entries import Call
from holdfast.frozen import FrozenDict
from holdfast.messages import Message
from holdfast.stores.base import Tenant
from holdfast.usage import Usage

LEASE = timedelta(seconds=30)


class Commits:
    """The two commits of a turn on one session: begin with a draft; append, and finish."""

    def __init__(self, tenant: Tenant, session_id: str, receipt: Call, draft: FrozenDict) -> None:
        self._tenant = tenant
        self._id = session_id
        self._receipt = receipt
        self._draft = draft

    async def turn(self, said: str) -> None:
        """As a turn writes them: the same entries, the same draft."""
        lease = await self._tenant.begin(self._id, "raw", LEASE, self._draft)
        entries = [
            Message.user(said),
            Message.assistant(REPLY, stop="stop", model="openai:gpt-5-mini"),
            Call(
                model=self._receipt.model,
                usage=Usage(130, 130),
                window=self._receipt.window,
                digest=self._receipt.digest,
                extra=self._receipt.extra,
            ),
        ]
        await self._tenant.append(self._id, entries, lease=lease, finish=True)


class Late:
    """Of each piece, when it was due, and how many milliseconds later it was read.

    Plain numbers: an object for each would have the collector go over everything every ten seconds,
    and what is measured would be the measuring.
    """

    def __init__(self) -> None:
        self.due = array("d")
        self.ms = array("d")

    def note(self, piece: str) -> None:
        """A piece is read now; it is the time at which it was due."""
        due = float(piece)
        self.due.append(due)
        self.ms.append((time.perf_counter() - due) * 1e3)


async def latencies(sessions: int, rate: float, pieces: int, seconds: float) -> Late:
    """How late the pieces of so many streams come where nothing is done with them.

    They begin one after another, for so many seconds.
    """
    late = Late()
    provider = Paced(rate, pieces)

    async def one(number: int) -> None:
        await asyncio.sleep(seconds * number / sessions)
        await provider.complete([], on_chunk=late.note)

    await asyncio.gather(*map(one, range(sessions)))
    return late
