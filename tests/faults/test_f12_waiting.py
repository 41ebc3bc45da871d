"""F12 for a turn that waits: cancelled at each of its awaits, while another manager's turn runs.

It ends at once and has left nothing: no task, no lease, and no place in the line, so that the next
one is served as soon as the turn that ran has ended. What it was to say is in no log.
"""

import asyncio

import pytest

import holdfast
from faults import turn_oracle
from faults.test_f12_turn import CANCEL_S_MAX, WANTED, WAYS, Case, left_behind, slow_down
from faults.tier import pick
from holdfast.events import Outcome
from holdfast.steps.waiting import Waiting
from holdfast.testing import FakeProvider
from holdfast.testing.fake_provider import Halt
from sessions_for_tests import until

AWAITS = 40  # by then it has stood in line for a while


class Managers:
    """Three of them on one file: one runs a turn, one waits, and one comes later."""

    def __init__(self, path):
        self.running = FakeProvider(name="fake:running")
        self.url = f"sqlite:{path}/chats.db"
        models = (self.running, FakeProvider(name="fake:waiting"), FakeProvider(name="fake:last"))
        self._opening = [holdfast.open(self.url, model=model) for model in models]

    async def __aenter__(self):
        self.here, self.there, self.last = [await each.__aenter__() for each in self._opening]
        slow_down(self.there._workshop.tenant, is_begin_sure=True)
        return self

    async def __aexit__(self, *_):
        for each in self._opening:
            await each.__aexit__(None, None, None)


async def waited(managers, way, k):
    """Stop the one that waits at its k-th await: what is wrong."""
    key = f"{way} {k}"
    here = await managers.here.get_or_create(key)
    there, last = await managers.there.get(key), await managers.last.get(key)
    gate = asyncio.Event()
    managers.running.add(Halt("One.", gate, after=0))
    asked = len(managers.running.requests)
    turn = asyncio.create_task(here.send("1"))
    await until(lambda: len(managers.running.requests) > asked)
    before = asyncio.all_tasks()
    case = Case(managers.there, there, way)
    ended = await case.run("never", k, 1)
    wrong = await left_behind(before)
    if not case.stopped:
        wrong.append("nobody stopped it")
    if ended.outcome != WANTED.get(way, str(Outcome.CANCELLED)) or ended.took_s > CANCEL_S_MAX:
        wrong.append(f"it ended as {ended.outcome} after {ended.took_s:.2f} s")
    gate.set()
    await turn
    managers.last._workshop.target("fake:last").provider.add("Two.")
    try:
        await last.send("2", wait=0)
    except holdfast.errors.Busy as error:
        wrong.append(f"the next turn: {error!r}")
    rows = await managers.last._workshop.tenant.read(last.id, last.branch)
    said = [each.text for each in turn_oracle.messages_of(rows)]
    if said != ["1", "One.", "2", "Two."][: len(said)]:
        wrong.append(f"in the log is {said}")
    return wrong


async def every(path, way, ks):
    async with Managers(path) as managers:
        found = {k: await waited(managers, way, k) for k in ks}
    return {k: wrong for k, wrong in found.items() if wrong}


@pytest.mark.parametrize("way", WAYS)
def test_one_that_waits_is_stopped_at_every_await(fast_path, way):
    ks = pick(range(1, AWAITS, 4), range(1, AWAITS))

    assert asyncio.run(every(fast_path, way, ks)) == {}


def test_one_that_stays_in_line_is_caught(fast_path, monkeypatch):
    async def stays(_):
        return None

    monkeypatch.setattr(Waiting, "step_out", stays)

    found = asyncio.run(every(fast_path, "token", range(1, AWAITS, 4)))

    assert any("Busy" in str(wrong) for wrong in found.values())
