"""A copy that is killed goes on; one that is overtaken by writers catches up. Nothing is doubled.

Killed at every operation on either store, and by SIGKILL at random moments in a process of its own.
"""

import asyncio
import os
import random
import signal
import time

import pytest

from copies import IDS, PAIRS, Proxy, everything, pair, same, summaries
from faults.tier import pick
from holdfast.errors import NotCopied
from holdfast.stores import Record, copying, open_store
from holdfast.stores.copying import copy
from holdfast.testing.contract.harness import mark, said, session
from holdfast.testing.contract.transfers import varied
from processes import SAY, Script

MEMORY = ("memory", "memory")


class Killed(BaseException):
    """Nothing runs after it."""


class Count:
    """Operations on both stores, and where it ends: before the one with this number, or after."""

    def __init__(self, last=None, *, is_after=False):
        self.done, self.last, self.is_after, self.written = 0, last, is_after, 0


class Counted(Proxy):
    def __init__(self, inner, count):
        super().__init__(inner)
        self.count = count

    async def operation(self, name, args, rest):
        self.count.done += 1
        if self.count.last is not None and self.count.done > self.count.last:
            raise Killed  # whoever else is at work
        is_last = self.count.done == self.count.last
        if is_last and not self.count.is_after:
            raise Killed
        result = await super().operation(name, args, rest)
        if name == "restore":
            self.count.written += len(args[0].entries)
        if is_last:
            raise Killed
        return result


async def _small(source):
    """Two sessions; entries in all."""
    await varied(source)
    await session(source, *"abcde", key="plain")
    return 16


async def _killed_and_resumed(kinds, folder, last, is_after):
    """Copy until the end comes, then once more; how many operations the first had."""
    async with pair(kinds, folder) as (source, target):
        total = await _small(source)
        first, second = Count(last, is_after=is_after), Count()
        try:
            await copy(Counted(source, first), Counted(target, first))
        except Killed:
            await copy(Counted(source, second), Counted(target, second))
        assert await same(source, target)
        assert first.written + second.written == total  # each entry once, in whichever run
        return first.done


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
def test_killed_at_every_operation_it_goes_on(is_after, tmp_path, monkeypatch):
    """Whatever was done is found again, and not done twice."""
    monkeypatch.setattr("holdfast.stores.replica.STEP", 3)
    folder = tmp_path / "all"
    folder.mkdir()
    operations = asyncio.run(_killed_and_resumed(MEMORY, folder, None, is_after))

    assert operations > 30
    for last in range(1, operations + 1):
        asyncio.run(_killed_and_resumed(MEMORY, folder, last, is_after))


def test_a_copy_that_begins_anew_would_be_found_out(tmp_path, monkeypatch):
    """The control: one that deletes what is there before it starts writes entries twice."""
    monkeypatch.setattr("holdfast.stores.replica.STEP", 3)

    async def anew(source, target):
        for each in await summaries(target):
            await target.delete(each.id)
        return await copying.copy(source, target)

    monkeypatch.setitem(globals(), "copy", anew)
    with pytest.raises(AssertionError):
        asyncio.run(_killed_and_resumed(MEMORY, tmp_path, 30, True))


COPY = (
    SAY
    + """
import asyncio, sys
from holdfast.stores import open_store
from holdfast.stores import copying

async def main(source, target):
    async with open_store(source) as one, open_store(target, durability="fast") as two:
        say("go")
        copied = await copying.copy(one, two)
        say(f"done {copied.written}")

asyncio.run(main(*sys.argv[1:]))
"""
)
SESSIONS, LONG = pick((150, 4_000), (600, 20_000))
KILLS = pick(5, 80)
SPAN_S = 0.4


async def _large(url):
    async with open_store(url, durability="fast") as store:
        tenant = store.tenant()
        for number in range(SESSIONS):
            record = await session(tenant, "a", key=f"chat:{number}", metadata={"n": number})
            await tenant.append(record.id, [*said("b", "c"), mark()], once="turn")
        long = await tenant.create(Record(key="long"), [*said(*map(str, range(LONG)))])
        await tenant.branch(long.id, "other", parent="main", at=LONG // 2)
        await tenant.append(long.id, said("x" * 50_000), branch="other")
    return SESSIONS * 4 + LONG + 1


async def _entries(url):
    async with open_store(url) as store:
        tenant = store.tenant()
        parts = [await tenant.export(each.id, limit=0) for each in await summaries(tenant)]
        return sum(part.record.seq for part in parts)


def test_killed_by_sigkill_at_random_moments(tmp_path):
    """It goes on from where it was each time: what is in the target only grows, and arrives."""
    source, target = f"sqlite:{tmp_path}/one.db", f"sqlite:{tmp_path}/two.db"
    total = asyncio.run(_large(source))
    rnd, there, in_the_middle = random.Random(7), 0, 0
    for number in range(KILLS):
        if (now := _killed(source, target, rnd.uniform(0, SPAN_S))) == total:
            asyncio.run(_finished(source, target, 0))
            target, now = f"sqlite:{tmp_path}/two-{number}.db", 0  # and once more
        assert now == 0 or there <= now
        in_the_middle += now > 0
        there = now

    asyncio.run(_finished(source, target, total - there))
    assert in_the_middle >= KILLS // 3


def _killed(source, target, after_s):
    """Kill a copy so long after it has begun; how many entries are in the target then."""
    with Script(COPY, source, target) as script:
        assert script.hears() == "go"
        time.sleep(after_s)  # the moment is what is random here
        os.kill(script.process.pid, signal.SIGKILL)
        script.process.wait()
    return asyncio.run(_entries(target))


async def _finished(source, target, missing):
    """Copy to the end; what was missing, and nothing else, is written."""
    with Script(COPY, source, target) as script:
        assert script.ends() == ["go", "done", str(missing)]
    await _same(source, target)


async def _same(source, target):
    async with open_store(source) as one, open_store(target) as two:
        assert await same(one.tenant(), two.tenant())


# Writers


class Yields(Proxy):
    """The loop goes round at every operation, so that others get their turn."""

    async def operation(self, name, args, rest):
        await asyncio.sleep(0)
        return await super().operation(name, args, rest)


class Writers:
    """They append, erase, branch and make sessions in the source until they are told to stop."""

    def __init__(self, tenant, seed):
        self.tenant, self.rnd, self.is_over = tenant, random.Random(seed), False
        self.erased, self.number = [], 0

    async def write(self, name):
        record = await session(self.tenant, "hello", key=name)
        while not self.is_over:
            await asyncio.sleep(0.002)  # or one in memory would leave the other far behind
            self.number += 1
            choice = self.rnd.random()
            if choice < 0.8:
                await self.tenant.append(record.id, said(f"word{self.number}"))
            elif choice < 0.9:
                done = await self.tenant.append(record.id, said(f"secret{self.number}"))
                await asyncio.sleep(0)
                await self.tenant.erase(record.id, [done.last])
                self.erased.append(f"secret{self.number}")
            elif choice < 0.95:
                await session(self.tenant, "new", key=f"{name}:{self.number}")
            elif choice < 0.98:
                at = (await self.tenant.load(name)).branch_named("main").head
                await self.tenant.branch(
                    record.id, f"b{self.number}", parent="main", at=at, use=False
                )
            else:
                await self.tenant.clear(record.id)


@pytest.mark.parametrize("kinds", PAIRS, ids=IDS)
def test_a_copy_beside_writers_catches_up(kinds, tmp_path, monkeypatch):
    """Both stores are written to. What is seen in the target was in the source, in that order; when
    the writers have stopped, one more copy makes them equal, without a word that was erased."""
    monkeypatch.setattr("holdfast.stores.replica.STEP", 5)
    asyncio.run(_beside_writers(kinds, tmp_path))


async def _beside_writers(kinds, folder):
    async with asyncio.timeout(120), pair(kinds, folder) as tenants:
        source, target = (Yields(each) for each in tenants)
        writers = Writers(source, 1)
        mine = await session(target, "mine", key="of the target")
        tasks = [asyncio.create_task(writers.write(f"live{n}")) for n in range(3)]
        rounds = 0
        while writers.number < pick(60, 1_000):
            await copy(source, target)
            rounds += 1
            await target.append(mine.id, said(str(rounds)))
            await _all_in(source, target)
        writers.is_over = True
        await asyncio.gather(*tasks)
        copied = await copy(source, target)

        assert copied.moved == ()
        there = await everything(target)
        assert there.pop("of the target")[0].seq == rounds + 1
        assert there == await everything(source)
        assert (await target.verify()).problems == ()
        for word in writers.erased[:20]:
            assert (await target.search(word)).items == ()


async def _all_in(source, target):
    """Every message in the target is in the source with the same seq, unless it was removed."""
    for each in await summaries(target):
        if each.key == "of the target":
            continue
        there = {row.seq: row for row in (await target.export(each.id, limit=10**5)).entries}
        here = {row.seq: row for row in (await source.export(each.id, limit=10**5)).entries}
        for seq in there.keys() & here.keys():
            assert here[seq].entry in (None, there[seq].entry)


def test_what_is_written_to_all_the_time_is_told(tmp_path):
    """The copy does not run after it for ever; what it has is the beginning of the log."""

    class Busy(Proxy):
        async def operation(self, name, args, rest):
            if name == "export":
                await self.inner.append(busy.id, said("more"))
            return await super().operation(name, args, rest)

    async def main():
        nonlocal busy
        async with pair(MEMORY, tmp_path) as (source, target):
            await session(source, "a", key="quiet")
            busy = await session(source, "a", key="busy")
            copied = await copy(Busy(source), target)

            assert [each.key for each in copied.moved] == ["busy"]
            there, here = await target.read(busy.id), await source.read(busy.id)
            assert 1 < len(there) < len(here)
            assert there == here[: len(there)]
            assert (await copy(source, target)).moved == ()
            assert await same(source, target)

    busy = None
    asyncio.run(main())


def test_two_copies_at_once_make_one(tmp_path, monkeypatch):
    """Each sees how far the other is; no entry is written twice."""
    monkeypatch.setattr("holdfast.stores.replica.STEP", 2)

    async def main():
        async with pair(("sqlite", "sqlite"), tmp_path) as (source, target):
            for number in range(20):
                await session(source, *"abcdefgh", key=f"chat:{number}")
            one, two = await asyncio.gather(copy(source, target), copy(source, target))
            await copy(source, target)

            assert one.written + two.written == 160
            assert await same(source, target)

    asyncio.run(main())


def test_a_session_that_is_written_to_in_the_target_stops_there(tmp_path, monkeypatch):
    """In the middle of a copy: the writer's word stays, and the conflict is told."""
    monkeypatch.setattr("holdfast.stores.replica.STEP", 2)

    class Intrudes(Proxy):
        count = 0

        async def operation(self, name, args, rest):
            result = await super().operation(name, args, rest)
            self.count += name == "restore"
            if name == "restore" and self.count == 2:
                await self.inner.append(args[0].record.id, said("mine"))
            return result

    async def main():
        async with pair(MEMORY, tmp_path) as (source, target):
            record = await session(source, *"abcdefgh")
            with pytest.raises(NotCopied) as caught:
                await copy(source, Intrudes(target))

            assert [each.key for each in caught.value.copied.conflicts] == [record.key]
            rows = await target.read(record.id)
            assert [row.entry.text for row in rows] == [*"abcd", "mine"]

    asyncio.run(main())
