"""What judges the turns is judged here: each check fails for what it is there to find."""

import asyncio

import pytest

from holdfast import Message
from sessions_for_tests import Judged, asks, asynchronous, call, until

ASKED = [Message.user("Look!"), asks(call("c1", "look"))]
SEEN = Message.tool("seen", "c1")


@pytest.mark.parametrize(
    ("history", "is_fine"),
    [
        ([*ASKED, SEEN], True),
        (ASKED, False),
        ([*ASKED, Message.user("Well?")], False),
        ([Message.user("Look!"), SEEN], False),
        ([*ASKED, SEEN, SEEN], False),
    ],
    ids=["fine", "no result", "result missing", "no call", "two results"],
)
def test_a_judged_model_notices_what_a_vendor_would_refuse(history, is_fine):
    """Although it answers: a FakeProvider mends what it is given."""
    model = Judged("Fine.")

    asyncio.run(model.complete(history))

    assert (model.problems == []) == is_fine and model.given == [tuple(history)]


def test_a_task_that_is_left_behind_fails_its_test():
    @asynchronous
    async def leaves():
        tasks.append(asyncio.create_task(asyncio.sleep(60)))

    tasks = []

    with pytest.raises(AssertionError, match="left behind"):
        leaves()


def test_an_error_that_nobody_saw_fails_its_test():
    @asynchronous
    async def fails():
        asyncio.get_running_loop().call_soon(lambda: 1 / 0)
        await asyncio.sleep(0.01)

    with pytest.raises(AssertionError, match="nobody saw"):
        fails()


def test_what_never_comes_is_not_waited_for_for_ever():
    with pytest.raises(AssertionError, match="in vain"):
        asyncio.run(until(lambda: False, 0.05))
