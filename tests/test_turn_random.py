"""Turns of every kind, in any order, at once: what always has to be true.

Two managers on one file (or one in memory) do whatever a seed says: send, resume, cancel, revert,
append, steer, with a model that answers, calls tools, fails, breaks off and falls silent. Whatever
comes of it is a result or a typed error; every request is one that a vendor would take; no tool
runs twice for one call; what was answered is in the log; and in the end there is a turn that works.
"""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from random import Random

import pytest

from holdfast import CancelToken, Message
from holdfast.errors import ConnectionFailed, HoldfastError, Overloaded
from holdfast.testing.fake_provider import Halt
from holdfast.tools import running
from sessions_for_tests import KEY, Judged, asks, asynchronous, messages, opened, tool_of

STEPS = 25
SEEDS = range(12)


class World:
    """Everything that a seed moves."""

    def __init__(self, seed):
        self.random = Random(seed)
        self.effects = Counter()
        self.answered = set()
        self.pending = set()
        self.calm = False
        self.tools = [
            tool_of("look", self._look),
            tool_of("pay", self._pay, approval=True),
            tool_of("fail", self._fail),
        ]

    async def _look(self, **_):
        self.effects[running().key] += 1
        await asyncio.sleep(self.random.choice((0, 0, 0.005)))
        return "seen"

    def _pay(self, **_):
        self.effects[running().key] += 1
        return "paid"

    def _fail(self, **_):
        self.effects[running().key] += 1
        raise RuntimeError("out of order")

    def answer(self, _):
        """What the model says next."""
        if self.calm:
            return "Fine."
        kind = self.random.random()
        if kind < 0.35:
            return "one two three"
        if kind < 0.70:
            names = self.random.choices(("look", "pay", "fail", "unknown"), k=self._some(3))
            return asks(*names, text=self.random.choice((None, "Let me see.")))
        if kind < 0.78:
            return Overloaded("full")
        if kind < 0.84:
            return Halt("one two three", ConnectionFailed("cut"), after=self._some(3))
        if kind < 0.90:
            return Message.assistant("one ", stop="max_tokens")
        if kind < 0.94:
            return Message.assistant(None, stop="tool_use")
        return self._slow()

    async def _slow(self):
        await asyncio.sleep(0.01)
        return "at last"

    def _some(self, most):
        return self.random.randint(1, most)

    # What is done

    async def send(self, session):
        token = CancelToken()
        if self.random.random() < 0.3:
            delay = self.random.choice((0, 0.001, 0.005, 0.02))
            asyncio.get_running_loop().call_later(delay, token.cancel)
        once = self.random.choice((None, None, f"o{self.random.randrange(4)}"))
        text = f"said {once}" if once else f"said {self.random.randrange(1000)}"
        self.note(await session.send(text, once=once, cancel=token, wait=2))

    async def stop(self, session):
        """A send whose task is cancelled."""
        task = asyncio.create_task(session.send("in a hurry", wait=2))
        await asyncio.sleep(self.random.choice((0, 0.001, 0.005)))
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled() and task.exception() is not None:
            raise task.exception()

    async def resume(self, session):
        answers = {id: self.random.choice((True, False, "Later.")) for id in self.pending}
        self.pending = set()
        self.note(await session.resume(answers, wait=2))

    async def stream(self, session):
        async for _ in session.stream("as a stream", wait=2):
            if self.random.random() < 0.1:
                break

    async def append(self, session):
        await session.append(Message.user("beside", synthetic="note"))

    async def steer(self, session):
        await session.steer("to the left")

    async def revert(self, session):
        await session.refresh()
        turns = len(await session.turns())
        await session.revert(self.random.randint(0, turns))

    async def cancel(self, session):
        session.cancel()

    async def compact(self, session):
        await session.compact()

    def note(self, result):
        self.pending = {call.id for call in result.pending}
        self.answered |= {message.id for message in result.messages}

    async def step(self, session):
        kinds = {
            self.send: 10,
            self.stop: 2,
            self.resume: 4,
            self.stream: 3,
            self.append: 2,
            self.steer: 1,
            self.revert: 1,
            self.cancel: 1,
            self.compact: 1,
        }
        (kind,) = self.random.choices(list(kinds), weights=list(kinds.values()))
        try:
            await kind(session)
        except HoldfastError:
            pass  # a typed one is an answer


async def everything(session):
    """The ids of all messages, on all branches."""
    await session.refresh()
    found = [await messages(session, branch.name) for branch in session.branches]
    return {message.id for line in found for message in line}


@pytest.mark.parametrize("seed", SEEDS)
@asynchronous
async def test_whatever_is_done_is_done_right(url, seed):
    world = World(seed)
    async with AsyncExitStack() as stack:
        sessions = []
        for _ in range(1 if url == "memory:" else 2):
            model = Judged(*[world.answer] * 2_000)
            manager, _ = await stack.enter_async_context(
                opened(url, model=model, tools=world.tools)
            )
            sessions.append(await manager.get_or_create(KEY))
        for _ in range(STEPS):
            together = world.random.choice((1, 1, 2, 3))
            steps = [world.step(world.random.choice(sessions)) for _ in range(together)]
            await asyncio.wait_for(asyncio.gather(*steps), 20)
        world.calm = True

        assert all(count == 1 for count in world.effects.values()), world.effects
        assert world.answered <= await everything(sessions[0])
        for session in sessions:
            result = await session.send("And now?", wait=5)
            assert (result.outcome, result.text) == ("response", "Fine.")
            ids = [message.id for message in await messages(session)]
            assert len(ids) == len(set(ids))
            assert (await session._tenant.verify()).problems == ()
