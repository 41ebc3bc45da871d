"""Promises about a store as a whole: verify, backup, close, and processes that die."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

from holdfast.errors import HoldfastError, SessionNotFound, StoreUnavailable
from holdfast.stores.base import Tenant
from holdfast.stores.values import Appended, Record
from holdfast.testing.contract.harness import (
    HOUR,
    Contract,
    Place,
    mark,
    on_store,
    on_tenant,
    refused,
    said,
    session,
    state,
    texts,
)
from holdfast.testing.contract.tenants import every_call

# What another process does before it is killed: it says "ready" and then waits for that.
_CHILD = """
import asyncio, sys
from datetime import timedelta
from holdfast.messages import Message
from holdfast.stores import open_store

async def main(url, key):
    store = await open_store(url)
    t = store.tenant()
    record = await t.load(key)
    lease = await t.begin(record.id, "the other process", timedelta(hours=1), {"say": "hello"})
    await t.journal(lease, "so far")
    await t.append(record.id, [Message.user("one"), Message.user("two")], lease=lease)
    print("ready", flush=True)
    await asyncio.sleep(600)

asyncio.run(main(*sys.argv[1:]))
"""


def _start_and_kill(url: str, key: str) -> None:
    with subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-c", _CHILD, url, key], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        try:
            said = child.stdout.readline()
        finally:
            child.kill()
    assert said == "ready\n", "the other process could not do its part"
    assert child.returncode == -signal.SIGKILL


class Life(Contract):
    @on_tenant("verify")
    async def test_a_sound_store_verifies(self, t: Tenant) -> None:
        """It is told how much was looked at."""
        one = await session(t, "a", "b", key="one")
        await session(t, "c", key="two")
        await t.append(one.id, [mark(), *said("d")])

        alone, everything = await t.verify(one.id), await t.verify()

        assert (alone.sessions, alone.entries, alone.problems) == (1, 4, ())
        assert (everything.sessions, everything.entries, everything.problems) == (2, 5, ())

    @on_tenant("verify", "branch", "delete")
    async def test_whatever_was_done_it_verifies(self, t: Tenant) -> None:
        record = await session(t, *"abcdef")
        await t.branch(record.id, "other", parent="main", at=3)
        await t.append(record.id, said("x"), branch="other")
        await t.branch(record.id, "third", parent="other", at=2)
        await t.append(record.id, said("y"), branch="third")
        await t.append(record.id, said("g"))
        await t.update(record.id, {"agent": "x", "metadata": {"m": 1}})
        gone = await session(t, "z", key="gone")
        await t.delete(gone.id)

        assert (await t.verify()).problems == ()
        assert (await t.verify()).sessions == 1

    @on_tenant("verify")
    async def test_an_empty_store_verifies(self, t: Tenant) -> None:
        assert await t.verify() == (0, 0, ())

    @on_store("verify")
    async def test_verify_stays_with_its_tenant(self, place: Place) -> None:
        await session(place.store.tenant("theirs"), "a", "b")

        assert await place.store.tenant("mine").verify() == (0, 0, ())

    @on_store("verify")
    async def test_verify_reports_what_is_not_what_was_written(self, place: Place) -> None:
        """An entry or a record, with its place; it never raises for what it finds."""
        t = place.tenant
        one, two = await session(t, *"abc", key="one"), await session(t, "d", key="two")
        await session(t, "e", key="three")
        await place.contract.damage(place.store, one.id, 2)
        await place.contract.damage(place.store, two.id, 0)

        found = (await t.verify()).problems

        assert {problem.key for problem in found if problem.seq == 2} == {"one"}
        assert any(problem.key == "two" or problem.seq == 0 for problem in found)
        assert not any(problem.key == "three" for problem in found)
        assert [problem.seq for problem in (await t.verify(one.id)).problems] == [2]
        assert all(str(problem) for problem in found)

    @on_store("backup")
    async def test_a_backup_can_be_opened_and_holds_everything(self, place: Place) -> None:
        t = place.store.tenant("ü")
        record = await session(t, "a", "b" * 100_000, metadata={"m": 1})
        await t.append(record.id, said("c"), once="x")
        before = await state(t, record.key)
        target = place.tmp_path / "backup"

        await place.store.backup(target)
        await t.append(record.id, said("later"))

        copy = (await place.open(place.contract.open_backup(target))).tenant("ü")
        assert await state(copy, record.key) == before
        assert (await copy.append(record.id, said("c"), once="x")).last == 3
        await copy.append(record.id, said("in the copy"))
        assert texts(await t.tail(record.id, count=1)) == ["later"]

    @on_store("backup")
    async def test_a_backup_while_others_write_is_of_one_moment(self, place: Place) -> None:
        """Each batch is in it whole or not at all, and so is what was written before it."""
        t = place.tenant
        record = await session(t)
        target = place.tmp_path / "backup"
        done = asyncio.Event()

        async def write() -> list[str]:
            written: list[str] = []
            while not done.is_set() or len(written) < 50:
                batch = [f"{len(written) + n}" for n in range(10)]
                await t.append(record.id, said(*batch))
                written += batch
                await asyncio.sleep(0)
            return written

        writing = asyncio.create_task(write())
        await asyncio.sleep(0.02)
        at_least = (await t.load(record.key)).seq
        await place.store.backup(str(target))
        done.set()
        written = await writing

        copy = (await place.open(place.contract.open_backup(target))).tenant()
        found = texts(await copy.read(record.id))
        assert found == written[: len(found)]
        assert len(found) % 10 == 0
        assert len(found) >= at_least
        if "verify" not in place.store.unsupported:
            assert (await copy.verify()).problems == ()

    @on_store("backup")
    async def test_a_backup_tells_how_far_it_is(self, place: Place) -> None:
        """Whoever waits for it hears that it goes on, and can end it: then nothing is there."""
        await session(place.tenant, *["a" * 10_000] * 30)
        heard: list[float] = []
        await place.store.backup(place.tmp_path / "backup", on_progress=heard.append)
        assert heard == sorted(heard)
        assert all(0 <= share <= 1 for share in heard)
        assert heard[-1:] == [1]

        def stop(_: float) -> None:
            raise KeyError("enough")

        target = place.tmp_path / "ended"
        try:
            await place.store.backup(target, on_progress=stop)
        except KeyError:
            assert not target.exists()

    @on_store("backup")
    async def test_a_backup_replaces_nothing(self, place: Place) -> None:
        """What is there already is refused and stays as it is."""
        await session(place.tenant, "a")
        file, folder = place.tmp_path / "taken", place.tmp_path / "folder"
        _make_folder(folder)
        for path in (file, folder / "inside"):
            _write(path, "somebody's")

        for target in (file, folder):
            await refused(HoldfastError, place.store.backup(target))

        assert _read(file) == _read(folder / "inside") == "somebody's"

    @on_store()
    async def test_close_finishes_what_was_asked_for(self, place: Place) -> None:
        """What waits when the store is closed is written, and whoever asked is told so."""
        t = place.tenant
        record = await session(t)
        tasks = [asyncio.create_task(t.append(record.id, said(f"{n}"))) for n in range(50)]
        await asyncio.sleep(0)  # all of them have asked

        await place.store.close()

        done = await asyncio.gather(*tasks)
        assert sorted(each.first for each in done) == list(range(1, 51))
        if place.contract.is_shared:
            other = (await place.another()).tenant()
            assert len(await other.read(record.id)) == 50

    @on_store()
    async def test_after_close_every_call_is_refused(self, place: Place) -> None:
        """Those on tenants that somebody still holds too."""
        record = await session(place.tenant, "a")
        path = place.tmp_path / "backup"

        await place.store.close()

        for name, call in sorted(every_call(place.store, place.tenant, record, path).items()):
            try:
                await refused(StoreUnavailable, call())
            except AssertionError as error:
                raise AssertionError(f"{name}: {error}") from error

    @on_store()
    async def test_closing_twice_is_harmless(self, place: Place) -> None:
        """Also at the same time."""
        await session(place.tenant, "a")

        await asyncio.gather(place.store.close(), place.store.close())
        await place.store.close()

    @on_store("begin", shared=True)
    async def test_who_stops_waiting_for_a_close_does_not_end_it(self, place: Place) -> None:
        """What was asked for is written, and who closes again waits for the end of it: then the
        leases of that store are free."""
        t = place.tenant
        record = await session(t)
        tasks = asyncio.all_tasks()
        for steps in range(4):
            store = await place.another()
            theirs = store.tenant()
            await theirs.begin(record.id, "they", HOUR, {})
            asked = [asyncio.create_task(theirs.append(record.id, said("a"))) for _ in range(50)]
            await asyncio.sleep(0)
            closing = asyncio.create_task(store.close())
            for _ in range(steps):
                await asyncio.sleep(0)
            closing.cancel()
            await asyncio.wait([closing])

            await store.close()

            if steps:  # else it had not begun
                assert all(isinstance(each, Appended) for each in await asyncio.gather(*asked))
            else:
                await asyncio.wait(asked)
            await refused(StoreUnavailable, theirs.load(record.key))
            await t.release(await t.begin(record.id, "me", HOUR, {}))
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == tasks

    @on_store()
    async def test_a_closed_store_leaves_no_task_behind(self, place: Place) -> None:
        record = await session(place.tenant, "a")
        await place.tenant.read(record.id)

        await place.store.close()
        await asyncio.sleep(0)

        assert asyncio.all_tasks() == {asyncio.current_task()}

    @on_store()
    async def test_a_store_can_be_awaited_or_entered(self, place: Place) -> None:
        folder = place.tmp_path / "second"
        _make_folder(folder)

        store = await place.contract.make(folder)
        await session(store.tenant(), "a")
        await store.close()
        async with place.contract.make(folder) as again:
            before = again.tenant()
            assert isinstance(again.problems(), list)
            if not place.contract.is_shared:
                await refused(SessionNotFound, again.tenant().load("chat:1"))
            else:
                assert (await again.tenant().load("chat:1")).seq == 1

        await refused(StoreUnavailable, before.load("chat:1"))

    @on_store("begin", shared=True)
    async def test_what_a_killed_process_was_told_is_there(self, place: Place) -> None:
        """What it appended and journalled survives; its lease is free at once, though its time is
        not over."""
        t = place.tenant
        record = await session(t, "zero")

        await asyncio.to_thread(_start_and_kill, place.contract.url(place.tmp_path), record.key)

        assert texts(await t.read(record.id)) == ["zero", "one", "two"]
        draft = (await t.load(record.key)).draft
        assert draft is not None
        assert (draft.chunks, draft.is_running) == (("so far",), False)
        left = (await t.begin(record.id, "me", HOUR, {})).left
        assert left is not None
        assert (left.owner, left.input) == ("the other process", {"say": "hello"})
        assert isinstance(await t.append(record.id, said("three"), after=3), Appended)
        assert isinstance(await t.load(record.key), Record)


def _write(path: Path, text: str) -> None:
    path.write_text(text)


def _read(path: Path) -> str:
    return path.read_text()


def _make_folder(path: Path) -> None:
    path.mkdir()
