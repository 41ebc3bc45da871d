"""F05: the power goes out at a random moment under load.

An append that returned is there afterwards, whole and in order, and nothing else is. The control
that acknowledges before the disk has it must be caught, or this row would prove nothing.
"""

import asyncio
import os
import random
import time
from contextlib import suppress
from typing import NamedTuple

import pytest

from faults import oracle
from faults.log import read_log
from faults.tier import need, pick
from holdfast.errors import StoreError
from holdfast.messages import Message
from holdfast.stores import Record, open_store
from holdfast.stores.jsonl import writing
from holdfast.testing.faults import power

STORE, RAW = "faults.subjects:play_for_ever", "faults.controls:play_for_ever"
LOAD_S = (0.1, 0.45)
LOAD_MIN = 20  # appends that are acknowledged before that time begins, however slow the machine is
LOAD_WAIT_S = 60


class Cut(NamedTuple):
    """What was there after a cut: the values that were acknowledged before it, all that were asked
    for, those that are there, and what else is wrong."""

    acknowledged: list
    asked: list
    found: list
    complaints: list


def cut_once(forks, folder, look, seed, *arguments, kind="ext4", file="store.db"):
    """One round: write, cut, come back, look.

    What is acknowledged while the cut happens proves nothing: a sync that is under way then may
    return without an error. So the time is taken before.
    """
    folder.mkdir()
    log = folder / "log"
    with power.Disk(folder, kind) as disk:
        run = forks.start(str(disk.path / file), str(log), *arguments)
        if seed % 3 != 2:  # in the others the power may go out before there is a store
            wait_for_load(log)
        time.sleep(random.Random(seed).uniform(*LOAD_S))
        cut_ns = time.monotonic_ns()
        disk.cut()
        run.kill()
        run.wait()
        disk.back()
        found = look(disk.path / file)
    steps = [each for each in read_log(log) if each.step["do"] == "append"]
    done = [e for e in steps if e.outcome == "acknowledged" and e.note["at_ns"] < cut_ns]
    is_there = found.sessions["s"].branches["main"] if found.sessions else []
    values = [[value for each in some for value in each.step["values"]] for some in (done, steps)]
    return Cut(*values, is_there, found.complaints)


def wait_for_load(log):
    """Until the program that writes this log is at it."""
    deadline = time.monotonic() + LOAD_WAIT_S
    while not log.exists() or log.read_bytes().count(b'"done"') < LOAD_MIN:
        assert time.monotonic() < deadline, "it does not write"
        time.sleep(0.002)


def wrong(cut, *, is_sync=True):
    """What is there is the beginning of what was asked for, and all that was acknowledged."""
    if cut.complaints:
        return cut.complaints
    if cut.found != cut.asked[: len(cut.found)]:
        return ["something else than the beginning of what was asked for"]
    lost = len(cut.acknowledged) - len(cut.found)
    return [f"{lost} acknowledged are lost"] if is_sync and lost > 0 else []


@pytest.fixture(autouse=True)
def _can_run():
    need(power.missing())


CASES = {
    "the store on ext4": (STORE, oracle.read_store, "ext4", (6, 20), "store.db"),
    "the store on xfs": (STORE, oracle.read_store, "xfs", (2, 10), "store.db"),
    "the store in files on ext4": (STORE, oracle.read_store, "ext4", (4, 20), "store.sessions"),
    "the store in files on xfs": (STORE, oracle.read_store, "xfs", (2, 10), "store.sessions"),
    "plain sqlite3 with FULL": (RAW, oracle.read_raw, "ext4", (3, 20), "store.db"),
}


@pytest.mark.parametrize("case", CASES)
def test_nothing_acknowledged_is_lost(programs, tmp_path, case):
    """Level "sync": 0 acknowledged appends lost, in any number of cuts."""
    program, look, kind, rounds, file = CASES[case]
    need(power.missing(kind))
    acknowledged = 0

    for seed in range(pick(*rounds)):
        place = tmp_path / str(seed)
        cut = cut_once(programs(program), place, look, seed, kind=kind, file=file)
        assert wrong(cut) == [], f"round {seed}"
        acknowledged += len(cut.acknowledged)

    assert acknowledged > 10 * pick(*rounds)


@pytest.mark.parametrize("file", ["store.db", "store.sessions"], ids=["sqlite", "jsonl"])
def test_the_fast_level_loses_the_end_and_nothing_else(programs, tmp_path, file):
    """Level "fast": what is there is the beginning of what was acknowledged, without a gap."""
    lost = 0

    for seed in range(pick(5, 20)):
        folder = tmp_path / str(seed)
        cut = cut_once(programs(STORE), folder, oracle.read_store, seed, "fast", file=file)
        assert wrong(cut, is_sync=False) == [], f"round {seed}"
        lost += max(0, len(cut.acknowledged) - len(cut.found))

    assert lost > 0, "this level would be as safe as the other, or the power was never cut"


async def _replaced_at_fast(disk):
    """A session that was safe; its files are replaced at level "fast", and the file system writes
    the new names down, because some other program syncs a file. Then the power goes out."""
    url = f"jsonl:{disk.path}/store.sessions"
    async with open_store(url) as store:
        said = [Message.user(f"{number} {'x' * 500}") for number in range(20)]
        record = await store.tenant().create(Record(key="s"), said)
    os.sync()
    with suppress(StoreError):
        async with open_store(url, durability="fast") as store:
            await store.tenant().update(record.id, {"metadata": {"title": "t"}})
            await store.tenant().erase(record.id, [1])
            with (disk.path / "another").open("wb") as file:
                os.fsync(file.fileno())
            disk.cut()
    disk.back()
    async with open_store(url) as store:
        rows = await store.tenant().read(record.id)
        return len(rows), (await store.tenant().verify()).problems


def test_files_that_are_replaced_at_the_fast_level_lose_nothing_that_was_safe(tmp_path):
    """Level "fast" may lose what was done last, and nothing that was durable before."""
    need(power.missing("xfs"))

    with power.Disk(tmp_path, "xfs") as disk:
        found = asyncio.run(_replaced_at_fast(disk))

    assert found == (20, ())


def test_a_file_that_is_replaced_by_one_that_is_not_synced_is_lost(tmp_path, monkeypatch):
    """Control: the name is on the disk, and what should be in the file is not."""
    need(power.missing("xfs"))
    monkeypatch.setattr(writing, "_is_there", lambda _: False)

    with power.Disk(tmp_path, "xfs") as disk, pytest.raises(StoreError):
        asyncio.run(_replaced_at_fast(disk))


@pytest.mark.parametrize("level", ["normal", "off"])
def test_a_store_that_acknowledges_too_early_is_caught(programs, tmp_path, level):
    """Control: with synchronous=NORMAL or OFF, at least one cut in 20 loses something."""
    for seed in range(20):
        cut = cut_once(programs(RAW), tmp_path / str(seed), oracle.read_raw, seed, level)
        if any("are lost" in sentence for sentence in wrong(cut)):
            return

    pytest.fail("no cut lost anything: this row does not cut the power")
