"""F12: every operation is cancelled at each of its awaits, and at random moments after it.

When the cancel has come through, the operation has happened or it has not, and stays that way: it
never happens later. Nothing stays locked, and nobody gets another's answer.
"""

import asyncio
import copy
import random
import time

import pytest

from faults import oracle, subjects
from faults.tier import pick
from holdfast.errors import SessionNotFound
from holdfast.messages import Message
from holdfast.stores import open_store
from holdfast.stores.values import Record
from holdfast.testing.faults import loops

LATER_S = 0.03
STEPS = {step["do"]: step for step in subjects.turn_script(1)}
WRITES = ["create", "append", "begin", "journal", "branch", "update", "erase", "clear", "delete"]
READS = ["load", "read", "tail", "list", "search", "verify"]


class StoreUnderTest:
    """A session as each step needs it, and a look at it."""

    def __init__(self, tenant):
        self.tenant = tenant
        self.number = 0

    async def ready(self, do):
        """The step to cancel, on a fresh session; and what is there before it."""
        self.number += 1
        key = f"{do}{self.number}"
        player = subjects.Player(self.tenant)
        before = {}
        if do != "create":
            values = [f"{key}.{at}" for at in range(4)]
            made = [
                {"do": "create", "session": key},
                {"do": "append", "session": key, "values": values},
            ]
            if do == "journal":
                made.append({"do": "begin", "session": key, "input": "before"})
            for step in made:
                await player.do(step)
                oracle.apply(before, step)
        step = {
            "append": {"values": [f"{key}.8", f"{key}.9"]},
            "begin": {"input": "hello"},
            "journal": {"chunk": "a piece"},
            "branch": {"name": "side", "parent": "main", "at": f"{key}.1"},
            "update": {"name": "title", "value": "new"},
            "erase": {"values": [f"{key}.0"]},
        }.get(do, {})
        return {"do": do, "session": key} | step, player.do, before

    async def look(self, key):
        try:
            return {key: await oracle.session_of(self.tenant, key)}
        except SessionNotFound:
            return {}


async def cancelled(store, do, k, **options):
    """Cancel one step at its k-th await; whether it came to that, and what was wrong."""
    step, work, before = await store.ready(do)
    after = copy.deepcopy(before)
    oracle.apply(after, step)
    outcome = await loops.cancel_at(work(step), k, **options)
    at_once = await store.look(step["session"])
    await asyncio.sleep(LATER_S)
    later = await store.look(step["session"])
    wrong = []
    if outcome.error is not None:
        wrong.append(f"it raised {outcome.error!r}")
    if at_once not in (before, after):
        wrong.append(f"it is half done: {at_once}")
    if not outcome.is_cancelled and at_once != after:
        wrong.append("it returned, and has not happened")
    if later != at_once:
        wrong.append("it happened later")
    return outcome.is_hit, wrong


def in_store(folder, work):
    async def main():
        async with open_store(f"sqlite:{folder / 'store.db'}") as store:
            return await work(store.tenant())

    return asyncio.run(main())


@pytest.mark.parametrize("times", [1, 3], ids=["once", "again and again"])
@pytest.mark.parametrize("do", WRITES)
def test_a_write_that_is_cancelled_has_happened_or_not(fast_path, do, times):
    """At each await, for every k until it runs through."""

    async def work(tenant):
        store, wrong, is_hit, k = StoreUnderTest(tenant), {}, True, 0
        while is_hit:
            k += 1
            is_hit, found = await cancelled(store, do, k, times=times)
            if found:
                wrong[k] = found
        return wrong, k

    wrong, awaits = in_store(fast_path, work)

    assert wrong == {}
    assert awaits > 1


def test_a_write_that_is_cancelled_at_any_moment_has_happened_or_not(tmp_path):
    """On a real disk, where a commit takes a while, at random moments of it."""
    rnd = random.Random(12)

    async def work(tenant):
        store, wrong = StoreUnderTest(tenant), []
        for _ in range(pick(4, 40)):
            cases = [
                cancelled(store, do, 1, delay_s=rnd.choice([0, 1e-5, 1e-4, rnd.random() / 300]))
                for do in WRITES
            ]
            for _, found in await asyncio.gather(*cases):
                wrong += found
        return wrong

    assert in_store(tmp_path, work) == []


@pytest.mark.parametrize("do", READS)
def test_a_read_that_is_cancelled_holds_nothing(fast_path, do):
    """Cancelled twenty times over, the next one answers as ever."""

    async def work(tenant):
        record = await tenant.create(Record(key="s"), [Message.user(f"m{n}") for n in range(600)])
        calls = {
            "load": lambda: tenant.load("s"),
            "read": lambda: tenant.read(record.id),
            "tail": lambda: tenant.tail(record.id),
            "list": lambda: tenant.list(),
            "search": lambda: tenant.search("m7"),
            "verify": lambda: tenant.verify(),
        }
        wanted = await calls[do]()
        for k in range(1, 21):
            await loops.cancel_at(calls[do](), k % 4 + 1, delay_s=rnd_delay(k))
        assert await asyncio.wait_for(calls[do](), 5) == wanted
        await asyncio.wait_for(tenant.append(record.id, [Message.user("after")]), 5)

    in_store(fast_path, work)


def rnd_delay(seed):
    return random.Random(seed).choice([0, 0, 1e-4, 1e-3])


@pytest.mark.usefixtures("uncovered")
def test_nobody_gets_anothers_answer(fast_path):
    """Many tasks read and write their own sessions, and half of them are cancelled meanwhile."""
    calls, sessions = pick(600, 10_000), 20

    async def work(tenant):
        rnd = random.Random(3)
        ids = [
            (await tenant.create(Record(key=f"s{n}"), [Message.user(f"canary{n} 0")])).id
            for n in range(sessions)
        ]
        foreign = []

        async def call(number):
            mine = number % sessions
            if number % 3 == 0:
                await tenant.append(ids[mine], [Message.user(f"canary{mine} {number}")])
            found = await tenant.tail(ids[mine], count=rnd.choice([5, 50]))
            record = await tenant.load(f"s{mine}")
            texts = {each.entry.text.split()[0] for each in found}
            if texts != {f"canary{mine}"} or record.id != ids[mine]:
                foreign.append((number, texts, record.key))

        for start in range(0, calls, 100):
            tasks = [asyncio.ensure_future(call(start + n)) for n in range(100)]
            await asyncio.sleep(rnd.random() / 500)
            for task in rnd.sample(tasks, 50):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            errors = [t.exception() for t in tasks if not t.cancelled() and t.exception()]
            assert errors == []
        return foreign

    assert in_store(fast_path, work) == []


class InDoubt(StoreUnderTest):
    """A fake: its append goes on in a thread when the one who asked is gone."""

    def __init__(self):
        super().__init__(None)
        self.values = {}

    async def ready(self, do):
        self.number += 1
        key = f"{do}{self.number}"
        self.values[key] = []
        before = {key: oracle.Session({"main": []}, {}, [])}
        return {"do": do, "session": key, "values": [key]}, self.append, before

    async def append(self, step):
        await asyncio.to_thread(self.commit, step)

    def commit(self, step):
        time.sleep(LATER_S / 3)
        self.values[step["session"]].extend(step["values"])

    async def look(self, key):
        return {key: oracle.Session({"main": [*self.values[key]]}, {}, [])}


def test_an_append_in_doubt_is_caught():
    """Control: cancelled, it was not there; a moment later it is."""
    _, wrong = asyncio.run(cancelled(InDoubt(), "append", 1))

    assert wrong == ["it happened later"]
