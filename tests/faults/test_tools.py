"""The tools that the fault rows use do what they say."""

import asyncio
import os
import signal
import time

import pytest

from faults.tier import need
from holdfast.testing.faults import damage, disk, forks, lines, loops, power, strace


@pytest.mark.parametrize("tool", [damage, disk, forks, lines, loops, power, strace])
def test_a_tool_says_in_one_sentence_why_it_cannot_run(tool):
    """ "" where it can."""
    reason = tool.missing()

    assert isinstance(reason, str)
    assert "\n" not in reason


def test_importing_the_testing_package_imports_no_fault():
    """They are for those who ask for them."""
    need(forks.missing())
    with forks.Forks("faults.test_tools:has_no_faults") as program:
        assert program.run() == 0


def has_no_faults():
    import subprocess
    import sys

    code = "import holdfast.testing, sys; sys.exit('holdfast.testing.faults' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- forks ----


def succeed(path, text):
    with open(path, "w") as file:
        file.write(text)


def fail():
    raise ValueError("on purpose")


def hang():
    time.sleep(600)


def test_a_run_is_a_process_of_its_own(tmp_path):
    """It gets its arguments; its end, its signal and its traceback come back."""
    need(forks.missing())
    with forks.Forks("faults.test_tools:succeed") as program:
        assert program.run(str(tmp_path / "said"), "hello") == 0
    with forks.Forks("faults.test_tools:fail") as program:
        run = program.start()
        assert run.wait() == 1
        assert "ValueError: on purpose" in run.stderr
    with forks.Forks("faults.test_tools:hang") as program:
        run = program.start()
        run.kill()
        assert run.wait() == -signal.SIGKILL

    assert (tmp_path / "said").read_text() == "hello"


def test_a_run_that_does_not_end_is_ended():
    """In time by `wait`, and at the latest when the parent is closed."""
    need(forks.missing())
    with forks.Forks("faults.test_tools:hang") as program:
        with pytest.raises(TimeoutError, match=r"0\.1 s"):
            program.start().wait(0.1)
        left = program.start()

    with pytest.raises(ProcessLookupError):
        os.kill(left.pid, 0)


def test_a_program_that_cannot_be_imported_is_told(capfd):
    """At once, and not when it is run."""
    need(forks.missing())
    with pytest.raises(RuntimeError, match="could not be imported"):
        forks.Forks("faults.no_such_module:run")

    assert "ModuleNotFoundError" in capfd.readouterr().err


# ---- loops ----


async def lost_update(seen):
    """The classic: read, wait, write back."""
    value = {"n": 0}

    async def add():
        found = value["n"]
        await asyncio.sleep(0)
        value["n"] = found + 1
        seen.append(found)

    await asyncio.gather(*(add() for _ in range(3)))
    return value["n"]


async def locked_update(seen):
    lock, value = asyncio.Lock(), {"n": 0}

    async def add():
        async with lock:
            found = value["n"]
            await asyncio.sleep(3600)
            value["n"] = found + 1
            seen.append(found)

    await asyncio.gather(*(add() for _ in range(3)))
    return value["n"]


def test_a_seed_is_an_order_and_the_same_one_each_time():
    """A race shows in some seed, and shows again in that one; what is locked never fails."""
    need(loops.missing())
    orders = {}
    for seed in range(50):
        seen, again = [], []
        assert loops.run(seed, lambda s=seen: lost_update(s)) < 3
        loops.run(seed, lambda s=again: lost_update(s))
        assert seen == again
        orders[seed] = tuple(seen)
        assert loops.run(seed, lambda: locked_update([])) == 3


def test_hours_of_waiting_take_no_time():
    """Time is virtual: it jumps to the next timer."""
    need(loops.missing())
    started = time.monotonic()

    async def main():
        await asyncio.sleep(86_400)
        return asyncio.get_running_loop().time()

    assert loops.run(1, main) >= 86_400
    assert time.monotonic() - started < 5


def test_another_seed_is_another_order():
    """Ten tasks that are ready at once run in many orders."""
    need(loops.missing())

    async def main():
        seen = []

        async def task(number):
            await asyncio.sleep(0)
            seen.append(number)

        await asyncio.gather(*(task(number) for number in range(10)))
        return tuple(seen)

    assert len({loops.run(seed, main) for seed in range(20)}) > 15


def test_a_cancel_comes_at_the_await_that_was_asked_for():
    """At each of three, and then not at all."""

    async def work(seen):
        for number in range(3):
            await asyncio.sleep(0.001)
            seen.append(number)
        return "done"

    async def main():
        for k in range(1, 4):
            seen = []
            outcome = await loops.cancel_at(work(seen), k)
            assert (outcome.is_hit, outcome.is_cancelled) == (True, True)
            assert seen == list(range(k - 1))
        outcome = await loops.cancel_at(work([]), 4)
        assert outcome == loops.Outcome(False, False, "done")

    asyncio.run(main())


# ---- damage, disks ----


def test_damage_is_what_it_is_called():
    """One bit, a cut, a block of zeros; the same places for a seed."""
    data = bytes(range(1, 101))

    assert damage.flipped(data, 9) == bytes([1, 0, *data[2:]])
    assert damage.cut(data, 3) == b"\1\2\3"
    assert damage.blanked(data, 98, 10) == data[:98] + b"\0\0"
    assert len(set(damage.bits(100, 50, seed=1))) == 50
    assert list(damage.bits(100, 50, seed=1)) == list(damage.bits(100, 50, seed=1))
    assert min(damage.bits(100, 800, seed=1, start=90)) >= 720


def test_a_small_disk_is_full_until_it_is_freed(fast_path):
    """ENOSPC, and then room again."""
    need(disk.missing())
    with disk.SmallDisk(fast_path, 1 << 20) as small:
        small.fill()
        with pytest.raises(OSError, match="No space left"):
            (small.path / "file").write_bytes(b"x" * 5000)
        small.free()
        (small.path / "file").write_bytes(b"x" * 5000)
        assert small.room() < 1 << 20


def test_a_file_stops_growing_in_the_middle_of_a_write(tmp_path):
    """The write is short, the next one fails, and later the file grows again."""
    with (tmp_path / "file").open("wb", buffering=0) as file:
        with disk.file_size_max(1000):
            assert file.write(b"x" * 1500) == 1000
            with pytest.raises(OSError, match="File too large"):
                file.write(b"x")
        assert file.write(b"x" * 1500) == 1500


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_a_power_cut_takes_what_was_not_synced(tmp_path, kind):
    """And leaves what was."""
    need(power.missing(kind))
    with power.Disk(tmp_path, kind) as disk:
        for name, is_synced in (("kept", True), ("gone", False)):
            with (disk.path / name).open("wb", buffering=0) as file:
                file.write(b"x" * 100)
                if is_synced:
                    os.fsync(file.fileno())
        disk.cut()
        with pytest.raises(OSError, match="Input/output error"):
            (disk.path / "more").write_bytes(b"x")
        disk.back()

        assert (disk.path / "kept").read_bytes() == b"x" * 100
        assert not (disk.path / "gone").exists() or (disk.path / "gone").read_bytes() == b""
