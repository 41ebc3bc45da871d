"""The scribe: what is written down of answers while they come, and what is told if it is not."""

import asyncio
import logging

import pytest

from holdfast.errors import LeaseLost
from holdfast.steps.journal import Journal
from holdfast.steps.scribe import JOURNAL_S, JOURNAL_S_EACH, JOURNAL_S_MAX, Scribe
from holdfast.testing.faults import loops


class Losing:
    """Writes when it is let, and has then lost the lease."""

    def __init__(self):
        self.asked, self.may_go = asyncio.Event(), asyncio.Event()

    async def journal_all(self, pieces):
        self.asked.set()
        await self.may_go.wait()
        return [LeaseLost("telegram:1") for _ in pieces]


@pytest.mark.parametrize(("has_ended", "warnings"), [(True, 0), (False, 1)])
def test_what_comes_too_late_to_be_written_down_is_no_trouble(caplog, has_ended, warnings):
    """The answer may be appended, whole, while a piece of it is on its way to the journal: the
    lease is gone then, as it should be. A turn that still runs has lost its lease, and says so."""

    async def main():
        tenant = Losing()
        scribe = Scribe(tenant)
        journal = Journal(tenant, None, scribe)
        journal.begin(0)
        journal.say("Hello")
        await tenant.asked.wait()
        if has_ended:
            journal.pause()
        tenant.may_go.set()
        await asyncio.gather(*scribe._tasks)

    with caplog.at_level(logging.WARNING, "holdfast"):
        asyncio.run(main())

    assert len(caplog.records) == warnings


def test_nobody_waits_for_ever_for_what_could_not_be_written_down():
    """What goes wrong with the words of one turn holds up neither it nor those beside it."""

    async def main():
        scribe = Scribe(Losing())
        broken, other = (Journal(scribe._tenant, None, scribe) for _ in range(2))
        for each in (broken, other):
            each.begin(0)
            each.say("Hello")
        broken._waiting += ("t", 3)
        with pytest.raises(TypeError):
            await scribe._write([broken, other])

        for each in (broken, other):
            await asyncio.wait_for(each.stop(), 5)

    asyncio.run(main())


class Noting:
    """When it was given how many pieces."""

    def __init__(self):
        self.given = []

    async def journal_all(self, pieces):
        self.given.append((asyncio.get_running_loop().time(), len(pieces)))
        return [None] * len(pieces)


@pytest.mark.parametrize(
    ("turns", "longest"),
    [(1, JOURNAL_S), (101, JOURNAL_S + 100 * JOURNAL_S_EACH), (5000, JOURNAL_S_MAX)],
)
def test_the_more_turns_speak_the_more_of_each_is_written_at_once(turns, longest):
    """Nothing is left out, and nobody waits longer than half a second."""
    tenant = Noting()

    async def main():
        scribe = Scribe(tenant)
        journals = [Journal(tenant, None, scribe) for _ in range(turns)]
        for each in journals:
            each.begin(0)
            each.say("Hello")
        await asyncio.sleep(2)

    loops.run(1, main)

    assert sum(pieces for _, pieces in tenant.given) == turns
    assert tenant.given[0][0] == pytest.approx(JOURNAL_S, abs=0.02)
    assert tenant.given[-1][0] == pytest.approx(longest, abs=0.02)
