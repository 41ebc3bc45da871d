"""C4 for the manager: two hundred tasks, a cache too small for them, and nobody gets another's.

Several tenants have the same keys in one store. Tasks get sessions, append, read, send, let go of
them, delete and erase them, and are cancelled at random; sessions are dropped from the cache and
loaded again all the time. Every message holds the canary of its tenant and key. And one key is one
live object, whoever asks and whenever: all that are alive are watched.
"""

import asyncio
import gc
import re
import weakref
from collections import defaultdict
from contextlib import suppress
from random import Random

import pytest

from bad_inputs import run
from faults.tier import pick
from holdfast import Message
from holdfast.errors import HoldfastError
from holdfast.live import Live
from holdfast.manager import SessionManager
from holdfast.stores import open_store
from holdfast.testing import FakeProvider
from postgres_server import name_of, server

TASKS = pick(40, 200)
STEPS = pick(8, 250)
TENANTS, KEYS, CACHE = ("", "acme", "other"), 6, 2
CANARY = re.compile(r"canary-[a-z]*-\d+")


class Parrot(FakeProvider):
    """Answers with the last canary that it was shown."""

    async def complete(self, messages, *more, **options):
        found = CANARY.findall(" ".join(each.text or "" for each in messages))
        self.add(f"{found[-1]} is {found[-1]}")
        self.requests.clear()
        return await super().complete(messages, *more, **options)


class Watcher:
    """Sees every session that is given out; what it found wrong."""

    def __init__(self):
        self.foreign = []
        self.doubled = []
        self._alive = defaultdict(weakref.WeakSet)
        self.messages = 0

    def given(self, tenant, session):
        """One session of a key is one object: another one, while it lives, is one too many."""
        alive = self._alive[tenant, session.id]
        alive.add(session)
        if len(alive) > 1:
            self.doubled.append((tenant, session.key))
        self.look(tenant, session.key, session.messages)

    def look(self, tenant, key, messages):
        mine = canary_of(tenant, key)
        self.messages += len(messages)
        for message in messages:
            self.foreign += {*CANARY.findall(message.text or "")} - {mine}


def canary_of(tenant, key):
    return f"canary-{tenant}-{key.rpartition(':')[2]}"


class Worker:
    """Does things with sessions of all tenants, at random."""

    def __init__(self, managers, watcher, seed):
        self.managers = managers
        self.watcher = watcher
        self.random = Random(seed)
        self.done = 0

    async def work(self, steps):
        for _ in range(steps):
            with suppress(HoldfastError, TimeoutError):
                limit_s = self.random.choice((None, None, None, self.random.random() / 50))
                async with asyncio.timeout(limit_s):
                    await self.step()
                    self.done += 1

    async def step(self):
        tenant = self.random.choice(TENANTS)
        sessions = self.managers[tenant]
        key = f"chat:{self.random.randrange(KEYS)}"
        how = self.random.choice(("get", "get", "append", "append", "send", "read", "drop", "gone"))
        if how == "drop":
            sessions.invalidate(key)
            return
        if how == "gone" and self.random.random() < 0.2:
            await (sessions.erase(key) if self.random.random() < 0.5 else sessions.delete(key))
            return
        session = await sessions.get_or_create(key)
        self.watcher.given(tenant, session)
        said = canary_of(tenant, key)
        if how == "append":
            await session.append(Message.user(f"I am {said}"))
        elif how == "send":
            result = await session.send(f"Who is {said}?", wait=0.2)
            self.watcher.look(tenant, key, [Message.assistant(str(result))])
        elif how == "read":
            self.watcher.look(tenant, key, await session.read())
        self.watcher.look(tenant, key, session.messages)


async def worked(url, *, tasks=TASKS, steps=STEPS, spoil=None):
    """What came of it."""
    watcher = Watcher()
    options = {} if url == "memory:" else {"durability": "fast"}
    async with open_store(url, **options) as store:
        managers = {
            each: SessionManager(store, each, cache=CACHE, model=Parrot(), expire_every=None)
            for each in TENANTS
        }
        for each in managers.values():
            await each.__aenter__()
        if spoil is not None:
            spoil(managers)
        workers = [Worker(managers, watcher, seed) for seed in range(tasks)]
        await asyncio.gather(*(each.work(steps) for each in workers))
        for tenant, sessions in managers.items():
            for summary in (await sessions.list()).items:
                session = await sessions.get(summary.key, load="all")
                watcher.given(tenant, session)
                watcher.look(tenant, summary.key, await session.read())
            gc.collect()
            assert sessions._live.held <= CACHE or spoil
        for each in managers.values():
            await each._workshop.close()
    return watcher, sum(each.done for each in workers)


@pytest.fixture(params=["memory", "jsonl", "sqlite", "postgresql"])
def url(request, fast_path):
    if request.param == "postgresql":
        name = name_of(fast_path)
        yield server().database(name)
        server().give_back(name)
        return
    yield {
        "memory": "memory:",
        "jsonl": f"jsonl:{fast_path}/sessions",
        "sqlite": f"sqlite:{fast_path}/store.db",
    }[request.param]


def test_nobody_gets_anothers_and_one_key_is_one_object(url):
    """0 foreign canaries, 0 second objects."""
    watcher, done = run(worked(url), pick(60, 1_200))

    assert watcher.foreign == []
    assert watcher.doubled == []
    assert done > TASKS * STEPS * 0.4
    assert watcher.messages > done


# Controls


def one_cache(managers):
    """Sessions of all tenants in one cache, by their keys."""
    first = managers[TENANTS[0]]._live
    for each in managers.values():
        each._live = first


def no_locks(managers):
    """Whoever asks loads for himself."""
    for each in managers.values():
        each._lock = lambda _key: asyncio.Lock()


def forgetful(managers):
    """What is not held is not known, whoever has it."""

    class Forgetful(Live):
        def known(self, key):
            held = self._held.get(key)
            return held and held.session

        def fresh(self, key):
            return super().fresh(key) if key in self._held else None

    for each in managers.values():
        each._live = Forgetful(each._live._cache)
        each._workshop.changed_size = each._live.weigh


@pytest.mark.parametrize("spoil", [one_cache, no_locks, forgetful], ids=lambda each: each.__name__)
def test_a_manager_that_mixes_up_is_caught(fast_path, spoil):
    """Controls: foreign words, or two objects for one key."""
    url = f"sqlite:{fast_path}/store.db"
    watcher, _ = run(worked(url, tasks=40, steps=12, spoil=spoil))

    assert watcher.foreign or watcher.doubled
