"""Work that is shared: done once, told to all, taken over when whoever did it gives up."""

import asyncio
import threading

import pytest

from holdfast.errors import Overloaded
from holdfast.providers.shared_work import SharedWork
from sessions_for_tests import until


class Work:
    """Takes a moment, and counts how often it was done."""

    def __init__(self, outcome="done"):
        self.outcome = outcome
        self.begun = 0

    async def __call__(self):
        self.begun += 1
        await asyncio.sleep(0.02)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


async def together(shared, work, number=5, key="a"):
    tasks = [asyncio.create_task(shared.done(key, work)) for _ in range(number)]
    return tasks, await asyncio.gather(*tasks, return_exceptions=True)


def test_it_is_done_once_for_those_who_ask_at_the_same_time():
    """And again for those who ask later; other keys are other works."""

    async def main():
        shared, work = SharedWork(), Work()
        _, first = await together(shared, work)
        _, second = await together(shared, work, 1)
        await asyncio.gather(shared.done("b", work), shared.done("c", work))
        return first, second, work.begun

    assert asyncio.run(main()) == (["done"] * 5, ["done"], 4)


def test_an_error_is_everybodys_and_no_two_have_the_same():
    """Each may be told more, such as how far its own answer came."""

    async def main():
        shared, work = SharedWork(), Work(Overloaded("full", "x", 503, "r", 2.0))
        _, errors = await together(shared, work)
        return errors, work.begun

    errors, begun = asyncio.run(main())

    assert begun == 1 and len({id(each) for each in errors}) == 5
    assert {(type(each), each.args) for each in errors} == {
        (Overloaded, ("full", "x", 503, "r", 2.0))
    }


@pytest.mark.parametrize("gone", [1, 3, 4])
def test_another_takes_over_from_one_that_was_cancelled(gone):
    async def main():
        shared, gate, begun = SharedWork(), asyncio.Event(), []

        async def work():
            begun.append(asyncio.current_task())
            await gate.wait()
            return "done"

        tasks = [asyncio.create_task(shared.done("a", work)) for _ in range(5)]
        for number, task in enumerate(tasks[:gone], start=1):
            await until(lambda number=number: len(begun) == number)
            task.cancel()
        await until(lambda: len(begun) == gone + 1)
        gate.set()
        return await asyncio.gather(*tasks, return_exceptions=True), shared._going

    found, left = asyncio.run(main())

    assert [type(each) for each in found[:gone]] == [asyncio.CancelledError] * gone
    assert found[gone:] == ["done"] * (5 - gone) and left == {}


def test_a_mistake_of_the_work_is_raised_where_it_is_done():
    """It is no outcome: the others try for themselves."""

    async def main():
        shared, work = SharedWork(), Work(ZeroDivisionError())
        _, errors = await together(shared, work, 3)
        return [type(each) for each in errors], work.begun

    assert asyncio.run(main()) == ([ZeroDivisionError] * 3, 3)


def test_each_event_loop_has_its_own():
    """A future belongs to one loop; another thread's does the work itself."""
    shared, work, found = SharedWork(), Work(), []

    def run():
        found.append(asyncio.run(shared.done("a", work)))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found == ["done"] * 3 and work.begun == 3
