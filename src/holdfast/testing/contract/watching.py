"""Promises about watch: every entry once, in order, and partial output while it is made."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from holdfast import ids
from holdfast.errors import SessionNotFound, StoreUnavailable
from holdfast.stores.base import Tenant
from holdfast.stores.values import Chunk, Stored
from holdfast.testing.contract.harness import (
    HOUR,
    Contract,
    Place,
    mark,
    on_store,
    on_tenant,
    refused,
    said,
    seqs,
    session,
    texts,
)

PATIENCE_S = 10.0
QUIET_S = 0.2  # so long without anything new, and there is nothing new


class Watcher:
    """What a watch has given so far, and what it gives next."""

    def __init__(self, watched: AsyncIterator[Stored | Chunk]) -> None:
        self._watched = watched
        self._next: asyncio.Future[Stored | Chunk] | None = None

    def start(self) -> "asyncio.Future[Stored | Chunk]":
        """Begin to wait for the next one; what is waited for is not lost by giving up."""
        if self._next is None:
            self._next = asyncio.ensure_future(anext(self._watched))
        return self._next

    async def next(self) -> Stored | Chunk:
        try:
            return await asyncio.wait_for(self.start(), PATIENCE_S)
        except TimeoutError:
            raise AssertionError(f"the watch gave nothing for {PATIENCE_S} s") from None
        finally:
            self._next = None

    async def rows(self, count: int) -> list[Stored]:
        """The next `count`, which are entries."""
        found = [await self.next() for _ in range(count)]
        return [each for each in found if isinstance(each, Stored)]

    async def chunks(self, count: int) -> list[Chunk]:
        """The next `count`, which are chunks."""
        found = [await self.next() for _ in range(count)]
        return [each for each in found if isinstance(each, Chunk)]

    async def is_quiet(self) -> bool:
        done, _ = await asyncio.wait([self.start()], timeout=QUIET_S)
        return not done

    async def aclose(self) -> None:
        if self._next is not None:
            self._next.cancel()
            await asyncio.wait([self._next])
        watched: Any = self._watched
        if hasattr(watched, "aclose"):
            await watched.aclose()


@asynccontextmanager
async def _watch(t: Tenant, id: str, after: int | None = None) -> AsyncIterator[Watcher]:
    watcher = Watcher(t.watch(id, after))
    try:
        yield watcher
    finally:
        await watcher.aclose()


class Watching(Contract):
    @on_tenant("watch")
    async def test_from_the_beginning(self, t: Tenant) -> None:
        """What is there, and then what comes, as it is stored."""
        record = await session(t, "a", "b")

        async with _watch(t, record.id, 0) as watcher:
            first = await watcher.rows(2)
            await t.append(record.id, [*said("c"), mark(), *said("d")])
            then = await watcher.rows(3)

            assert tuple(first + then) == await t.read(record.id)
            assert await watcher.is_quiet()

    @on_tenant("watch")
    async def test_behind_a_seq(self, t: Tenant) -> None:
        record = await session(t, "a", "b", "c")

        async with _watch(t, record.id, 2) as watcher:
            assert texts(await watcher.rows(1)) == ["c"]
            assert await watcher.is_quiet()
            await t.append(record.id, said("d"))
            assert texts(await watcher.rows(1)) == ["d"]

    @on_tenant("watch")
    async def test_from_now_on_unless_told(self, t: Tenant) -> None:
        record = await session(t, "a", "b")

        async with _watch(t, record.id) as watcher:
            assert await watcher.is_quiet()
            await t.append(record.id, said("c"))

            assert texts(await watcher.rows(1)) == ["c"]

    @on_tenant("watch")
    async def test_a_session_without_entries(self, t: Tenant) -> None:
        for after in (None, 0):
            record = await session(t, key=f"after {after}")
            async with _watch(t, record.id, after) as watcher:
                assert await watcher.is_quiet()
                await t.append(record.id, said("a"))

                assert tuple(await watcher.rows(1)) == await t.read(record.id)

    @on_tenant("watch", "branch")
    async def test_entries_of_all_branches_in_the_order_of_their_seq(self, t: Tenant) -> None:
        record = await session(t, "a")
        await t.branch(record.id, "other", parent="main", at=1)

        async with _watch(t, record.id, 0) as watcher:
            for number in range(2, 12):
                branch = "main" if number % 3 else "other"
                await t.append(record.id, said(f"{number}"), branch=branch)
            rows = await watcher.rows(11)

        assert seqs(rows) == list(range(1, 12))
        for row in rows[1:]:
            assert row.branch == ("main" if row.seq % 3 else "other")
            assert row in await t.read(record.id, row.branch)

    @on_tenant("watch")
    async def test_attaching_again_gives_no_gap_and_no_double(self, t: Tenant) -> None:
        """While others write all the time, a reader comes and goes."""
        record = await session(t)
        total = 120

        async def write(name: str) -> None:
            for number in range(total // 4):
                await t.append(record.id, said(f"{name} {number}"))
                await asyncio.sleep(0.001)

        writers = asyncio.gather(*(write(name) for name in "abcd"))
        found: list[Stored] = []
        while len(found) < total:
            async with _watch(t, record.id, found[-1].seq if found else 0) as watcher:
                found += await watcher.rows(min(7, total - len(found)))
        await writers

        assert tuple(found) == await t.read(record.id)

    @on_tenant("watch")
    async def test_several_watch_at_once(self, t: Tenant) -> None:
        record = await session(t, "a")

        async with (
            _watch(t, record.id, 0) as one,
            _watch(t, record.id, 0) as two,
            _watch(t, record.id) as three,
        ):
            assert await three.is_quiet()
            await t.append(record.id, said("b"))

            assert texts(await one.rows(2)) == texts(await two.rows(2)) == ["a", "b"]
            assert texts(await three.rows(1)) == ["b"]

    @on_tenant("watch")
    async def test_nothing_of_another_session(self, t: Tenant) -> None:
        one, two = await session(t, key="one"), await session(t, key="two")

        async with _watch(t, one.id, 0) as watcher:
            await t.append(two.id, said("x"))
            assert await watcher.is_quiet()
            await t.append(one.id, said("a"))
            assert texts(await watcher.rows(1)) == ["a"]

    @on_tenant("watch", "begin")
    async def test_partial_output_is_given_as_it_comes(self, t: Tenant) -> None:
        """Numbered from 1, and told apart by the token of its turn."""
        record = await session(t)

        async with _watch(t, record.id) as watcher:
            assert await watcher.is_quiet()
            lease = await t.begin(record.id, "one", HOUR, {})
            for number in range(1, 6):
                await t.journal(lease, f"piece {number}")
                assert await watcher.next() == Chunk(lease.token, number, f"piece {number}")
            await t.append(record.id, said("all"), lease=lease, finish=True)
            assert texts(await watcher.rows(1)) == ["all"]

            second = await t.begin(record.id, "two", HOUR, {})
            await t.journal(second, "again")
            assert await watcher.next() == Chunk(second.token, 1, "again")

    @on_tenant("watch", "begin")
    async def test_the_running_turn_is_given_from_its_beginning(self, t: Tenant) -> None:
        """To whoever attaches in the middle of it, with or without the entries before."""
        record = await session(t, "a")
        lease = await t.begin(record.id, "one", HOUR, {})
        for piece in ("He", "ll"):
            await t.journal(lease, piece)

        async with _watch(t, record.id) as late, _watch(t, record.id, 0) as early:
            await t.journal(lease, "o")
            expected = [
                Chunk(lease.token, n, piece) for n, piece in ((1, "He"), (2, "ll"), (3, "o"))
            ]

            assert await late.chunks(3) == expected
            found = [await early.next() for _ in range(4)]
            assert [each for each in found if isinstance(each, Chunk)] == expected
            assert texts([each for each in found if isinstance(each, Stored)]) == ["a"]

    @on_tenant("watch", "delete")
    async def test_it_ends_when_the_session_is_deleted(self, t: Tenant) -> None:
        record = await session(t, "a")

        async with _watch(t, record.id) as waiting, _watch(t, record.id, 0) as reading:
            await reading.rows(1)
            assert await waiting.is_quiet()
            await t.delete(record.id)

            for watcher in (waiting, reading):
                await refused(SessionNotFound, watcher.next())

    @on_tenant("watch")
    async def test_an_unknown_session_cannot_be_watched(self, t: Tenant) -> None:
        for after in (None, 0):
            async with _watch(t, ids.new_id(), after) as watcher:
                await refused(SessionNotFound, watcher.next())

    @on_tenant("watch", "clear")
    async def test_it_goes_on_after_clear(self, t: Tenant) -> None:
        record = await session(t, "a", "b")

        async with _watch(t, record.id, 0) as watcher:
            await watcher.rows(2)
            await t.clear(record.id)
            done = await t.append(record.id, said("c"))

            rows = await watcher.rows(1)
            assert (texts(rows), seqs(rows)) == (["c"], [done.first])

    @on_tenant("watch", "erase")
    async def test_what_was_erased_has_its_place_and_says_nothing(self, t: Tenant) -> None:
        record = await session(t, "a", "b")
        await t.erase(record.id, [1])

        async with _watch(t, record.id, 0) as watcher:
            assert await watcher.rows(2) == list(await t.read(record.id))

    @on_tenant("watch")
    async def test_whoever_stops_watching_leaves_nothing_behind(self, t: Tenant) -> None:
        """Closed or cancelled, before the first entry or while waiting: no task is left."""
        record = await session(t, "a")
        before = asyncio.all_tasks()
        for after in (None, 0, 0):
            async with _watch(t, record.id, after) as watcher:
                if after == 0:
                    await watcher.rows(1)
                assert await watcher.is_quiet()

        async def watch() -> None:
            async for _ in t.watch(record.id, 0):
                pass

        task = asyncio.create_task(watch())
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        await asyncio.sleep(0.05)

        assert asyncio.all_tasks() <= before
        await t.append(record.id, said("b"))

    @on_store("watch", shared=True)
    async def test_what_another_store_writes_is_given(self, place: Place) -> None:
        """Entries and partial output, to those who wait in another process too."""
        t, other = place.tenant, (await place.another()).tenant()
        record = await session(t, "a")

        async with _watch(t, record.id, 0) as watcher:
            await watcher.rows(1)
            lease = await other.begin(record.id, "one", HOUR, {})
            await other.journal(lease, "He")
            assert await watcher.next() == Chunk(lease.token, 1, "He")
            await other.append(record.id, said("b"), lease=lease, finish=True)
            assert texts(await watcher.rows(1)) == ["b"]
            await other.delete(record.id)
            await refused(SessionNotFound, watcher.next())

    @on_store("watch")
    async def test_nobody_waits_for_a_closed_store(self, place: Place) -> None:
        t = place.tenant
        record = await session(t)
        watcher = Watcher(t.watch(record.id))
        assert await watcher.is_quiet()

        await place.store.close()

        await refused((StoreUnavailable, StopAsyncIteration), watcher.next())
        await watcher.aclose()
