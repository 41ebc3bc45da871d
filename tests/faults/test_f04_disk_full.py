"""F04: the disk fills up at a random moment, and is freed again.

What was acknowledged is stored; what was not is told as StoreFull; reading and listing go on; and
when there is room again the same open store writes on.
"""

import asyncio
import os
import random
import shutil

import pytest

from faults import controls, oracle, subjects
from faults.log import Step, read_log, url_of
from faults.tier import need, pick
from holdfast.errors import StoreError, StoreFull
from holdfast.stores import open_store
from holdfast.testing.faults import disk

ROOM_MIN = 350_000  # one batch of appends, and all that opening and closing need
FILES = pytest.mark.parametrize("file", ["store.db", "store.sessions"], ids=["sqlite", "jsonl"])
SIZES = {"1 MiB": 1 << 20, "8 MiB": 8 << 20}


@pytest.fixture(autouse=True)
def _can_run():
    need(disk.missing())


async def cycles(store, small, rounds, rnd):
    """Append, fill, append until it is refused, free, append; the steps and how they ended.

    Ends early when the store itself has taken most of the disk.
    """
    player, steps, number = subjects.Player(store.tenant()), [], 0

    async def do(step):
        try:
            await player.do(step)
        except StoreFull as error:
            steps.append(Step(step, "failed", str(error)))
            return False
        except Exception as error:
            steps.append(Step(step, "crashed", f"{type(error).__name__}: {error}"))
            return False
        steps.append(Step(step, "acknowledged"))
        return True

    for key in ("calm", "busy"):
        assert await do({"do": "create", "session": key})
    assert await do({"do": "append", "session": "calm", "values": ["calm.0"]})
    for _ in range(rounds):
        if small.room() < ROOM_MIN:
            break
        small.fill(leave=rnd.choice([0, 0, 4096, 20_000, 70_000]))
        for _ in range(400):
            number += 1
            values = [f"busy.{number}.{at}" for at in range(rnd.choice([1, 1, 4]))]
            if not await do({"do": "append", "session": "busy", "values": values}):
                break
        else:
            pytest.fail("the disk was never full")
        listed = await store.tenant().list()
        assert {each.key for each in listed.items} == {"calm", "busy"}
        calm = await oracle.session_of(store.tenant(), "calm")
        assert calm.branches["main"] == ["calm.0"]
        small.free()
        number += 1
        after = {"do": "append", "session": "busy", "values": [f"busy.{number}.0"]}
        assert await do(after), steps[-1]
    return steps


async def opened(path, small, rounds, rnd):
    async with open_store(url_of(path)) as store:
        return await cycles(store, small, rounds, rnd)


@FILES
@pytest.mark.parametrize("size", SIZES)
def test_a_full_disk_loses_nothing_and_is_overcome(fast_path, size, file):
    """Acknowledged is stored, in every cycle; no restart is needed."""
    rnd, rounds, refused = random.Random(size), pick(6, 25), 0

    while refused < rounds:
        with disk.SmallDisk(fast_path, SIZES[size]) as small:
            path = small.path / file
            steps = asyncio.run(opened(path, small, rounds - refused, rnd))
            found = oracle.read_store(path)
        assert oracle.judge(steps, found) == []
        refused += sum(each.outcome == "failed" for each in steps)
        small.path.rmdir()


@FILES
def test_a_store_that_cannot_be_made_on_a_full_disk_can_be_made_later(fast_path, file):
    """Opening fails with an error of ours, and leaves nothing behind: no half-made file that stands
    in the way, and nothing open in this process."""
    refused = []

    with disk.SmallDisk(fast_path, 1 << 20) as small:
        for leave in (0, 4096, 8192, 20_000, 40_000, 70_000):
            path = small.path / f"{leave}{file}"
            small.fill(leave)
            try:
                asyncio.run(make(path))
            except StoreError as error:
                refused.append(error)
            assert open_in(small.path) == [], leave
            small.free()
            asyncio.run(make(path))
            assert oracle.read_store(path).complaints == []
            for each in small.path.glob(f"{leave}{file}*"):
                shutil.rmtree(each) if each.is_dir() else each.unlink()

    assert len(refused) >= 2


async def make(path):
    """Open the store, making it if need be, and use it."""
    async with open_store(url_of(path)) as store:
        player = subjects.Player(store.tenant())
        if "s" not in await oracle.sessions_of(store.tenant()):
            await player.do({"do": "create", "session": "s"})
        await player.do({"do": "append", "session": "s", "values": ["s.0"]})


def open_in(folder):
    """The files of a folder that this process has open."""
    names = [
        os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if _is_open(fd)
    ]
    return [name for name in names if name.startswith(str(folder))]


def _is_open(fd):
    return os.path.lexists(f"/proc/self/fd/{fd}")  # the one that lists them is gone by now


def test_a_program_that_takes_a_full_disk_for_success_is_caught(fast_path):
    """Control: plain sqlite3 with the error swallowed has lost what it acknowledged."""
    with disk.SmallDisk(fast_path, 1 << 20) as small:
        path, log = small.path / "store.db", fast_path / "log"
        controls.play(path, log, [{"do": "create", "session": "s"}])
        small.fill(leave=70_000)
        values = [f"v{number}" for number in range(60)]
        script = [{"do": "append", "session": "s", "values": [value]} for value in values]
        controls.play(path, log, script, "swallow")
        small.free()
        wrong = oracle.judge(read_log(log), oracle.read_raw(path))

    assert any("lost" in sentence for sentence in wrong)
