"""F12 on whole turns, the other ways to stop one: `asyncio.timeout`, another thread, a client that
is gone, a stream that is left or detached, and all of these while a turn is gone on with.
"""

import asyncio
import itertools
import threading

import pytest

from faults import turn_oracle, turns
from faults.test_f12_turn import SAID, Case, Ended, Place, judge, left_behind, sweep
from faults.tier import pick
from holdfast.errors import Overloaded
from holdfast.events import Outcome

WAYS = ("timeout", "thread", "client gone")


class Another(Case):
    """Stopped from outside of the task and its token."""

    def act(self):
        if self.way == "timeout":
            self.limit.reschedule(asyncio.get_running_loop().time())
        elif self.way == "thread":
            thread = threading.Thread(target=self.session.cancel)
            thread.start()
            thread.join()
        else:
            self.closing = asyncio.ensure_future(self.stream.aclose())

    async def _send(self, said):
        if self.way == "client gone":
            self.stream = self.session.stream(said, on_event=self._hear)
            async with self.stream as events:
                async for _ in events:
                    pass
            return self.stream.result
        async with asyncio.timeout(None) as self.limit:
            return await self.turn_of(said)

    async def turn_of(self, said):
        return await self.session.send(said, on_event=self._hear)


class Resumed(Another):
    """A turn that has failed before, and is gone on with."""

    async def prepare(self):
        model = self.sessions._workshop.target(self.sessions._workshop.model).provider
        model.answer = lambda _messages: Overloaded("on purpose", model.name)
        with pytest.raises(Overloaded):
            await self.session.send(self.said)
        del model.answer

    def act(self):
        if self.way in WAYS:
            super().act()
        else:
            Case.act(self)

    async def turn_of(self, _said):
        return await self.session.resume(cancel=self.token, on_event=self._hear)


def resumed(said):
    """Cases that go on with what was said."""
    return type("ResumedOf", (Resumed,), {"said": said})


@pytest.mark.parametrize("said", SAID)
@pytest.mark.parametrize("way", WAYS)
def test_a_turn_is_stopped_in_every_other_way(way, said):
    wrong, awaits = asyncio.run(sweep("memory:", way, said, make=Another))

    assert wrong == {}
    assert awaits > 15


@pytest.mark.parametrize("way", ["task", "token", "session", "timeout", "thread", "loop"])
def test_a_turn_that_is_gone_on_with_is_stopped_the_same_way(way):
    wrong, awaits = asyncio.run(sweep("memory:", way, SAID[1], make=resumed(SAID[1])))

    assert wrong == {}
    assert awaits > 15


@pytest.mark.parametrize("way", WAYS)
def test_on_disk_too(fast_path, way):
    ks = pick(range(1, 40, 9), None)
    url = f"sqlite:{fast_path / 'store.db'}"

    assert asyncio.run(sweep(url, way, SAID[1], ks=ks, make=Another))[0] == {}


# Leaving


async def left_after(place, number, *, detach):
    """Leave a stream behind so many events: how many there were, and what is wrong."""
    place.effects.clear()
    place.model.asked.clear()
    async with place.opened() as sessions:
        session = await sessions.get_or_create(f"s{number} {detach}", settings=turns.SETTINGS)
        before, seen = asyncio.all_tasks(), 0
        stream = session.stream(SAID[1], detach=detach)
        async with stream:
            async for _ in stream:
                seen += 1
                if seen == number:
                    break
        if detach:
            await sessions._workshop.close()  # as the manager does, it waits for what runs
        wrong = await left_behind(before)
        tenant = sessions._workshop.tenant
        cut = turn_oracle.marks_of(await tenant.read(session.id), "cancelled")
        if detach and cut:
            wrong.append("it was to finish, and was cancelled")
        ended = Ended(str(Outcome.RESPONSE if detach else Outcome.CANCELLED), "", True)
        wrong += await judge(place, sessions, session, ended, "break")
    return seen, wrong


@pytest.mark.parametrize("detach", [False, True])
def test_a_stream_may_be_left_behind_every_event(detach):
    """The turn is cancelled and keeps what it has; detached, it runs to its end."""

    async def main():
        place, found, seen = Place("memory:"), {}, 1
        for number in itertools.count(1):
            if seen < number - 1:
                break
            seen, wrong = await left_after(place, number, detach=detach)
            if wrong:
                found[number] = wrong
        return found, seen

    found, events = asyncio.run(main())

    assert found == {}
    assert events > 10


# Control


def test_a_turn_that_ends_too_late_is_caught(monkeypatch):
    """With a limit that no turn can keep."""
    monkeypatch.setattr("faults.test_f12_turn.CANCEL_S_MAX", -1.0)

    wrong, _ = asyncio.run(sweep("memory:", "thread", "u1", ks=[8], make=Another))

    assert any("to end" in each for each in wrong[8])
