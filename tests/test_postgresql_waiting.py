"""Plain functions that wait for what is asynchronous."""

import asyncio
import contextvars

import pytest

from holdfast.stores.postgresql.waiting import spawn, wait
from sessions_for_tests import asynchronous


async def later(value):
    await asyncio.sleep(0)
    return value


async def failing():
    await asyncio.sleep(0)
    raise LookupError("not there")


@asynchronous
async def test_a_plain_function_waits_as_often_as_it_likes():
    """It gets each answer where it waits for it, and what it returns is returned."""

    def add(first):
        return first + sum(wait(later(number)) for number in range(3))

    assert await spawn(add, 10) == 13
    assert await spawn(str, 7) == "7"


@asynchronous
async def test_an_error_is_raised_where_it_is_waited_for():
    """It can be caught there; what is not caught reaches the caller as it was."""

    def careful(_):
        try:
            wait(failing())
        except LookupError:
            return wait(later("caught"))

    assert await spawn(careful, None) == "caught"
    with pytest.raises(LookupError, match="not there"):
        await spawn(lambda _: wait(failing()), None)


@asynchronous
async def test_a_cancel_ends_the_function_too():
    """At the place where it waits, so that it can clean up."""
    said = []

    def cleaning(_):
        try:
            wait(asyncio.Event().wait())
        finally:
            said.append("cleaned")

    task = asyncio.create_task(spawn(cleaning, None))
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert said == ["cleaned"]


@asynchronous
async def test_many_wait_side_by_side_each_with_its_own_context():
    """Nobody gets another's answer, nor another's context variables."""
    own = contextvars.ContextVar("own")

    def ask(number):
        assert [wait(later((number, step))) for step in range(5)] == [(number, s) for s in range(5)]
        return own.get()

    async def one(number):
        own.set(number)
        return await spawn(ask, number)

    assert await asyncio.gather(*map(one, range(50))) == list(range(50))
