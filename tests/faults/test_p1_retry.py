"""P1: the reply is lost after the commit, or before it, or never comes; who asked asks again.

Sent again under the same name over a new connection, a message is stored exactly once, whatever was
lost; under another name it is another message. A store is plugged in as a function that gives
managers, each of them a connection of its own to the same sessions.
"""

import asyncio
from contextlib import asynccontextmanager, suppress
from itertools import count
from random import Random

import pytest

import holdfast
from faults import turns
from faults.tier import pick
from holdfast.errors import StoreUnavailable
from holdfast.manager import SessionManager
from holdfast.messages import Message, Role
from holdfast.stores.memory import MemoryStore

ROUNDS = pick(10, 1_000)
ROUNDS_EACH = 25  # of one conversation: each connection reads all of it
TRIES_MAX = 10
PATIENCE_S = 0.02
LOSSES = ("before", "after", "silence before", "silence after")


class Kept(MemoryStore):
    """What is in it outlives those who used it."""

    async def close(self):
        pass


def memory(_folder):
    store = Kept()
    return lambda model: SessionManager(store, model=model)


def sqlite(folder):
    return lambda model: holdfast.open(f"sqlite:{folder / 'store.db'}", model=model)


STORES = [memory, sqlite]


class Line:
    """Connections to a store, the next write of which may be lost on the way, or its answer."""

    def __init__(self, connect, seed, *, has_names=True):
        self.random = Random(seed)
        self.model = turns.Model()
        self.lost = 0
        self.key = "chat"
        self._connect = connect
        self._has_names = has_names

    @asynccontextmanager
    async def connected(self, losses):
        """A manager on a new connection, which loses one of its first writes."""
        async with self._connect(self.model) as sessions:
            tenant, due = sessions._workshop.tenant, self.random.randint(1, 2)
            how = self.random.choice(losses) if losses else ""
            tenant.append = self._risky(tenant.append, due, how)
            yield sessions

    def _risky(self, append, due, how):
        appends = count(1)

        async def risky(*arguments, **options):
            if not self._has_names:
                options["once"] = None
            if not how or next(appends) != due:
                return await append(*arguments, **options)
            self.lost += 1
            if how.endswith("after"):
                await append(*arguments, **options)
            if how.startswith("silence"):
                await asyncio.sleep(2 * PATIENCE_S)
            raise StoreUnavailable("the store", "the connection was lost")

        return risky

    async def insist(self, action, losses=LOSSES):
        """Do it until it was answered, each time on a new connection; the last one is sound."""
        for left in range(TRIES_MAX, 0, -1):
            with suppress(StoreUnavailable, TimeoutError):
                async with self.connected(losses if left > 1 else ()) as sessions:
                    session = await sessions.get_or_create(self.key, settings=turns.SETTINGS)
                    return await action(session)
        raise AssertionError("it was never answered")


async def said(line, text):
    """How often this is in the conversation, and how often it has an answer."""

    async def read(session):
        return await session.read()

    messages = await line.insist(read, losses=())
    asked = [each for each in messages if each.text == text]
    answer = turns.answer_text(text.split()[0])
    answers = [e for e in messages if e.role is Role.ASSISTANT and e.text == answer]
    return len(asked), len(answers)


def run(work):
    return asyncio.run(asyncio.wait_for(work, 600))


# Appending


async def appended(store, folder, rounds, *, has_names=True):
    """Texts that are not there exactly once, or twice where two names were given."""
    wrong = {}
    line = Line(store(folder), "append", has_names=has_names)
    for number in range(rounds):
        text, line.key = f"a{number}", f"chat:{number // ROUNDS_EACH}"
        names = [f"{text} first", f"{text} second"][: 1 + number % 2]
        for name in names:

            async def append(session, name=name, text=text):
                async with asyncio.timeout(PATIENCE_S):
                    return await session.append(Message.user(text), once=name)

            await line.insist(append)
        times, _ = await said(line, text)
        if times != len(names):
            wrong[text] = times
    return wrong, line.lost


@pytest.mark.parametrize("store", STORES)
def test_what_is_appended_again_under_its_name_is_stored_once(store, fast_path):
    """1,000 of 1,000; and another name is another message."""
    wrong, lost = run(appended(store, fast_path, ROUNDS))

    assert wrong == {}
    assert lost > ROUNDS / 3


# Sending


async def sent(store, folder, rounds, *, has_names=True):
    wrong = {}
    line = Line(store(folder), "send", has_names=has_names)
    for number in range(rounds):
        text, line.key = f"u{number}", f"chat:{number // ROUNDS_EACH}"

        async def send(session, text=text):
            return await session.send(text, once=text)

        result = await line.insist(send)
        again = await line.insist(send, losses=())
        found = await said(line, text)
        line.model.requests.clear()  # each of them holds a whole conversation
        if found != (1, 1) or result.text != again.text:
            wrong[text] = found, result.text, again.text
    return wrong, line.lost


@pytest.mark.parametrize("store", STORES)
def test_what_is_sent_again_under_its_name_is_one_turn(store, fast_path):
    """Said once, answered once; and whoever asks once more is given the same answer."""
    wrong, lost = run(sent(store, fast_path, ROUNDS))

    assert wrong == {}
    assert lost > ROUNDS / 2


def test_the_same_under_a_new_name_is_a_new_turn(fast_path):
    async def main():
        line = Line(sqlite(fast_path), "new")
        for name in ("first", "second", "second"):
            await line.insist(lambda session, name=name: session.send("u1", once=name))
        return await said(line, "u1")

    assert run(main()) == (2, 2)


# Controls


@pytest.mark.parametrize("store", STORES)
def test_without_a_name_what_is_appended_again_is_there_twice(store, fast_path):
    wrong, _ = run(appended(store, fast_path, 15, has_names=False))

    assert any(times > 1 for times in wrong.values())


@pytest.mark.parametrize("store", STORES)
def test_without_a_name_what_is_sent_again_is_there_twice(store, fast_path):
    """The store does not know names: a turn cannot tell that it was run."""
    wrong, _ = run(sent(store, fast_path, 5, has_names=False))

    assert any(found[0] > 1 for found, *_ in wrong.values())
