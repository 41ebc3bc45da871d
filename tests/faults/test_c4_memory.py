"""C4 for memories: tasks summarise, send, erase, are cancelled, and no prompt has another's words.

Every message holds the canary of its tenant and key; so does everything that a model makes of it.
A prompt, of the model that talks or of the one that keeps, that has two of them has mixed up two
sessions. Afterwards the files of each memory have the words of its own session alone.
"""

import asyncio
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from bad_inputs import run
from faults.test_c4_manager import CANARY, KEYS, TENANTS, canary_of
from faults.tier import pick
from holdfast import Message
from holdfast.errors import HoldfastError
from holdfast.manager import SessionManager
from holdfast.memory import Memory
from holdfast.stores import open_store
from holdfast.testing import FakeProvider
from memories import saves

TASKS, STEPS = 16, 10


class Parrot(FakeProvider):
    """Says, or keeps, all canaries that it is shown; the prompts that had more than one."""

    def __init__(self, found, **options):
        super().__init__(**options)
        self._found = found

    async def complete(self, messages, system=None, tools=None, **options):
        shown = " ".join([system or "", *(each.text or "" for each in messages)])
        words = {*CANARY.findall(shown)}
        if len(words) > 1:
            self._found.append(shown[:200])
        said = " and ".join(sorted(words))
        await asyncio.sleep(0)
        # Nobody is cut off between these two: the answer would be there for the next one who asks.
        self.add(saves(f"[2026-02-01 12:00] {said}", f"- {said}\n") if tools else said or "nothing")
        self.requests.clear()
        return await super().complete(messages, system, tools, **options)


async def step(managers, random):
    """One thing with one session, which may be cut off."""
    tenant = random.choice(TENANTS)
    sessions = managers[tenant]
    key = f"chat:{random.randrange(KEYS)}"
    session = await sessions.get_or_create(key)
    said = f"I am {canary_of(tenant, key)}"
    how = random.choice(("append", "append", "send", "send", "fold", "keep", "anew", "gone"))
    if how == "append":
        await session.append(Message.user(said))
    elif how == "send":
        await session.send(said, wait=0.2)
    elif how == "fold" and session.count > 1:
        await session.fold(0, 1)
    elif how == "keep":
        await sessions.memory.consolidate(session)
    elif how == "anew":
        await sessions.memory.start_anew(session)
    elif random.random() < 0.5:
        await sessions.delete(key)
    elif messages := await session.read():
        await session.erase(messages[0])


async def work(managers, seed, steps):
    random = Random(seed)
    for _ in range(steps):
        limit_s = random.choice((None, None, random.random() / 50))
        with suppress(HoldfastError, TimeoutError):
            async with asyncio.timeout(limit_s):
                await step(managers, random)


async def mixed_up(folder, scope, times=1):
    """The prompts and the files that have words of two sessions, and how much was kept."""
    found, kept = [], 0
    async with open_store(f"sqlite:{folder}/store.db", durability="fast") as store:
        managers = {}
        for tenant in TENANTS:
            memory = Memory(folder, Parrot(found), window=3, scope=scope)
            model = Parrot(found)
            managers[tenant] = SessionManager(
                store, tenant, cache=2, model=model, memory=memory, expire_every=None
            )
            await managers[tenant].__aenter__()
        await asyncio.gather(
            *(work(managers, seed, STEPS * times) for seed in range(TASKS * times))
        )
        for tenant, sessions in managers.items():
            await sessions._workshop.close()
            for each in (await sessions.list()).items:
                session = await sessions.get(each.key)
                words = CANARY.findall(sessions.memory.text(session))
                words += CANARY.findall(sessions.memory.history(session))
                kept += len(words)
                found += {*words} - {canary_of(tenant, each.key)}
    return found, kept


def test_no_prompt_and_no_memory_has_the_words_of_another_session(fast_path):
    """0 foreign canaries, and no lock is left behind."""
    found, kept = run(mixed_up(fast_path, "session", pick(1, 3)))

    assert found == []
    assert kept > 0
    assert list((Path(fast_path) / "memory" / ".holdfast").iterdir()) == []


@pytest.mark.parametrize("scope", ["tenant", "workspace"])
def test_a_memory_that_is_shared_is_seen_to_be(fast_path, scope):
    """Control: the same, where sessions share one."""
    found, _ = run(mixed_up(fast_path, scope))

    assert found
