"""Rounds: many wait, with one timer for them all. The clock is virtual."""

import asyncio
from contextvars import ContextVar

from holdfast.steps.rounds import GRAIN_S, Rounds
from holdfast.testing.faults.loops import run

WAIT_S = 10.0
WHO = ContextVar("who", default="nobody")


def rounds(called):
    """Rounds that write down when they called whom."""

    def go(items):
        called.append((round(asyncio.get_running_loop().time(), 3), items))

    return Rounds(go, lambda: WAIT_S)


def test_each_is_called_when_its_time_has_come():
    """In the order in which they asked, never later than they said, and once."""
    called = []

    async def scenario():
        waiting = rounds(called)
        for name in "abc":
            waiting.add(name)
            await asyncio.sleep(3)
        await asyncio.sleep(60)

    run(1, scenario)

    assert called == [(10.0, ["a"]), (13.0, ["b"]), (16.0, ["c"])]


def test_those_that_are_due_together_are_called_together():
    called = []

    async def scenario():
        waiting = rounds(called)
        for number in range(100):
            waiting.add(number)
            await asyncio.sleep(GRAIN_S / 200)
        await asyncio.sleep(60)

    run(1, scenario)

    assert called == [(10.0, list(range(100)))]


def test_nobody_overtakes_those_who_wait():
    """The waits may become shorter meanwhile: who asked first is called first, or together."""
    called, waits = [], iter([10.0, 1.0, 12.0])

    async def scenario():
        waiting = Rounds(lambda items: called.append(items), lambda: next(waits))
        for name in "abc":
            waiting.add(name)
        await asyncio.sleep(60)
        return len(waiting)

    assert run(1, scenario) == 0
    assert called == [["a", "b"], ["c"]]


def test_one_that_was_removed_is_not_called_and_leaves_no_timer():
    called = []

    async def scenario():
        waiting = rounds(called)
        waiting.add("a")
        waiting.add("b")
        waiting.remove("a")
        waiting.remove("never there")
        await asyncio.sleep(5)
        waiting.remove("b")
        loop = asyncio.get_running_loop()
        return [each for each in loop._scheduled if not each.cancelled()]

    assert run(1, scenario) == []
    assert called == []


def test_one_may_ask_again_while_it_is_called():
    """As a lease does, which is renewed for as long as its turn runs."""
    called = []

    async def scenario():
        def go(items):
            called.append(asyncio.get_running_loop().time())
            for each in items:
                waiting.add(each)

        waiting = Rounds(go, lambda: WAIT_S)
        waiting.add("a")
        await asyncio.sleep(35)
        waiting.remove("a")

    run(1, scenario)

    assert called == [10.0, 20.0, 30.0]


def test_nobody_is_called_in_the_context_of_another():
    """What one turn set for itself, such as a span of its trace, is not said of the others."""
    found = []

    async def scenario():
        waiting = Rounds(lambda _: found.append(WHO.get()), lambda: WAIT_S)
        WHO.set("the first")
        waiting.add("a")
        await asyncio.sleep(20)

    run(1, scenario)

    assert found == ["nobody"]
