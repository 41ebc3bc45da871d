"""Promises under load: many writers, one order; and nothing in doubt after a cancellation."""

import asyncio
import random
import time
from collections.abc import Sequence

from holdfast.errors import Conflict
from holdfast.stores.base import Tenant
from holdfast.stores.values import Appended, Record
from holdfast.testing.checker import Operation, check
from holdfast.testing.contract.harness import (
    HOUR,
    Contract,
    Place,
    on_store,
    on_tenant,
    only,
    said,
    seqs,
    session,
    texts,
)


class Run:
    """Clients that append unique values and read, and what they saw."""

    def __init__(self, tenants: Sequence[Tenant], sessions: Sequence[Record]) -> None:
        self._tenants = tenants
        self._sessions = sessions
        self.operations: list[Operation] = []

    async def client(self, number: int, appends: int) -> None:
        chance = random.Random(number)  # noqa: S311 - to be repeated, not to be secret
        t = self._tenants[number % len(self._tenants)]
        for count in range(appends):
            record = chance.choice(self._sessions)
            value = f"{number}:{count}"
            start = time.monotonic_ns()
            await t.append(record.id, said(value))
            self._note(number, record, start, value=value, outcome="acknowledged")
            if chance.random() < 0.3:
                await self.read(number, t, chance.choice(self._sessions))

    async def read(self, number: int, t: Tenant, record: Record) -> None:
        start = time.monotonic_ns()
        values = tuple(str(text) for text in texts(await t.read(record.id)))
        self._note(number, record, start, values=values)

    async def finish(self) -> None:
        """The last read of each session, and the judgement."""
        for t in self._tenants:
            for record in self._sessions:
                await self.read(-1, t, record)
        anomalies = check(self.operations)
        assert anomalies == [], "\n".join(map(str, anomalies))

    def _note(
        self,
        number: int,
        record: Record,
        start: int,
        value: str | None = None,
        outcome: str = "",
        values: tuple[str, ...] | None = None,
    ) -> None:
        now = time.monotonic_ns()
        noted = Operation(f"client {number}", record.key, start, now, value, outcome, values)
        self.operations.append(noted)


class Races(Contract):
    @on_tenant()
    async def test_many_writers_one_order(self, t: Tenant) -> None:
        """64 clients on 5 sessions: nothing is lost, doubled, reordered, stale or mixed up."""
        sessions = [await session(t, key=f"s{number}") for number in range(5)]
        run = Run([t], sessions)

        await asyncio.gather(*(run.client(number, 6) for number in range(64)))

        await run.finish()
        for record in sessions:
            rows = await t.read(record.id)
            assert seqs(rows) == list(range(1, len(rows) + 1))

    @on_store(shared=True)
    async def test_many_writers_in_two_stores_one_order(self, place: Place) -> None:
        other = (await place.another()).tenant()
        sessions = [await session(place.tenant, key=f"s{number}") for number in range(5)]
        run = Run([place.tenant, other], sessions)

        await asyncio.gather(*(run.client(number, 3) for number in range(64)))

        await run.finish()

    @on_tenant()
    async def test_of_many_who_append_after_the_same_head_one_wins(self, t: Tenant) -> None:
        """Round after round; each of the others learns where the branch is now."""
        record = await session(t)
        await _rounds([t], record)

    @on_store(shared=True)
    async def test_also_in_two_stores(self, place: Place) -> None:
        other = (await place.another()).tenant()
        record = await session(place.tenant)
        await _rounds([place.tenant, other], record)

    @on_tenant()
    async def test_batches_of_several_writers_are_not_mixed(self, t: Tenant) -> None:
        """The entries of one append stand side by side, and a reader sees all of them or none."""
        record = await session(t)
        seen: list[list[str | None]] = []

        async def write(number: int) -> None:
            for count in range(4):
                await t.append(record.id, said(*(f"{number} {count} {n}" for n in range(5))))

        async def read() -> None:
            for _ in range(40):
                seen.append(texts(await t.read(record.id)))
                await asyncio.sleep(0)

        await asyncio.gather(read(), *(write(number) for number in range(10)))
        seen.append(texts(await t.read(record.id)))

        for found in seen:
            assert len(found) % 5 == 0
            for start in range(0, len(found), 5):
                names = [str(text).rsplit(" ", 1) for text in found[start : start + 5]]
                assert [name for name, _ in names] == [names[0][0]] * 5
                assert [n for _, n in names] == list("01234")
        assert len(seen[-1]) == 200

    @on_tenant()
    async def test_a_cancelled_append_is_there_whole_or_not_at_all(self, t: Tenant) -> None:
        """Wherever it was when it was cancelled. What is true when CancelledError is raised stays
        true."""
        record = await session(t)
        expected: list[str | None] = []
        for number in range(40):
            batch = [f"{number} {place}" for place in "abc"]
            task = asyncio.create_task(t.append(record.id, said(*batch)))
            await _a_while(number)
            task.cancel()
            await asyncio.wait([task])
            now = texts(await t.read(record.id))

            assert now in (expected, expected + batch), f"cancelled after {number} steps"
            if not task.cancelled():
                assert isinstance(task.result(), Appended)
                assert now == expected + batch
            expected = now
        await asyncio.sleep(0.05)
        assert texts(await t.read(record.id)) == expected

        await t.append(record.id, said("after all"))
        rows = await t.read(record.id)
        assert texts(rows) == [*expected, "after all"]
        assert seqs(rows) == list(range(1, len(rows) + 1))

    @on_tenant()
    async def test_a_cancelled_append_does_not_disturb_the_others(self, t: Tenant) -> None:
        """Of those that wait together, some are cancelled."""
        record = await session(t)
        kept: list[str] = []
        for number in range(12):
            names = [f"{number} {place}" for place in range(8)]
            tasks = [asyncio.create_task(t.append(record.id, said(name))) for name in names]
            await _a_while(number)
            for task in tasks[::2]:
                task.cancel()
            await asyncio.wait(tasks)
            assert not any(task.cancelled() for task in tasks[1::2])
            kept += [name for name, task in zip(names, tasks, strict=True) if not task.cancelled()]

        found = [str(text) for text in texts(await t.read(record.id))]

        assert set(kept) <= set(found)
        assert len(found) == len(set(found))

    @on_tenant()
    async def test_a_cancelled_append_can_be_repeated_with_once(self, t: Tenant) -> None:
        """Whatever became of the first try, it is there once in the end."""
        record = await session(t)
        for number in range(25):
            task = asyncio.create_task(t.append(record.id, said(f"{number}"), once=f"{number}"))
            await _a_while(number)
            task.cancel()
            await asyncio.wait([task])
            await t.append(record.id, said(f"{number}"), once=f"{number}")

        assert texts(await t.read(record.id)) == [f"{number}" for number in range(25)]

    @on_tenant("begin")
    async def test_a_cancelled_finish_is_done_or_not(self, t: Tenant) -> None:
        """The entries, the draft and the lease go together."""
        record = await session(t)
        count = 0
        for number in range(25):
            lease = await t.begin(record.id, "one", HOUR, {"n": number})
            finish = t.append(record.id, said(f"{number}"), lease=lease, finish=True)
            task = asyncio.create_task(finish)
            await _a_while(number)
            task.cancel()
            await asyncio.wait([task])
            loaded = await t.load(record.key)

            assert loaded.seq in (count, count + 1)
            assert (loaded.draft is None) == (loaded.seq == count + 1)
            count = loaded.seq
            await t.release(lease, drop=True)


async def _a_while(number: int) -> None:
    """A few steps of the event loop, and then a few moments as long as a commit takes."""
    if number < 12:
        for _ in range(number):
            await asyncio.sleep(0)
    else:
        await asyncio.sleep((number - 11) * 0.0002)


async def _rounds(tenants: Sequence[Tenant], record: Record) -> None:
    head = 0
    for _ in range(10):
        done = await asyncio.gather(
            *(
                tenants[number % len(tenants)].append(record.id, said(f"{number}"), after=head)
                for number in range(20)
            ),
            return_exceptions=True,
        )
        won = only([each for each in done if isinstance(each, Appended)])
        lost = [each for each in done if isinstance(each, Conflict)]
        assert len(lost) == 19
        assert {(each.expected, each.found) for each in lost} == {(head, head + 1)}
        assert (won.first, won.last) == (head + 1, head + 1)
        head = won.last
    assert len(await tenants[0].read(record.id)) == 10
