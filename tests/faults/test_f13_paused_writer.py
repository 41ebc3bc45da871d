"""F13: a writer is stopped for longer than its lease lasts, another takes over, and it wakes up.

Its late append is refused: nothing of it stands behind the first entry of the one that took over.
"""

import os
import signal
import time
from itertools import count

import pytest

from faults import oracle
from faults.log import read_log
from faults.tier import need, pick
from holdfast.testing.faults import forks

TTL_MS = 60
WAIT_MAX_S = 10.0


@pytest.fixture(autouse=True)
def _can_run():
    need(forks.missing())


def wait_for(is_true):
    """Wait until it is."""
    limit = time.monotonic() + WAIT_MAX_S
    while not is_true():
        assert time.monotonic() < limit, "it never came to that"
        time.sleep(0.002)


def paused(holder, taker, folder, number):
    """One round; the logs of the holder and of the one who took over."""
    path, logs = str(folder / "store.db"), [folder / f"{who}{number}" for who in ("a", "b")]
    session = f"s{number}"
    first = holder.start(path, str(logs[0]), session, TTL_MS)
    wait_for(lambda: len(read_log(logs[0])) > 3 + number % 5)
    first.signal(signal.SIGSTOP)
    second = taker.start(path, str(logs[1]), session, TTL_MS)
    try:
        second.wait(2.0)
    except TimeoutError:  # stopped inside a commit, it holds the lock of the whole file
        first.signal(signal.SIGCONT)
        return None
    first.signal(signal.SIGCONT)
    wait_for(lambda: read_log(logs[0])[-1].outcome == "failed" or is_gone(first.pid))
    first.kill()
    first.wait()
    return [read_log(log) for log in logs]


def is_gone(pid):
    """Whether a process has ended and only waits to be reaped."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return not os.path.exists("/proc")


def acknowledged(steps):
    """The values that a writer was told are stored."""
    return [v for each in steps if each.outcome == "acknowledged" for v in each.step["values"]]


def late(values):
    """What the stopped writer wrote behind the first entry of the other one."""
    mine = [at for at, value in enumerate(values) if value.startswith("b")]
    return [value for value in values[mine[0] :] if value.startswith("a")]


def test_the_late_append_of_a_writer_that_was_stopped_is_refused(programs, fast_path):
    """LeaseLost, every time; and what both were told is stored, is."""
    holder, taker = programs("faults.leases:hold"), programs("faults.leases:take")
    rounds = pick(8, 100)
    refused = 0

    for number in count():
        if refused == rounds:
            break
        assert number < 3 * rounds, "it hardly ever stopped while it was writing"
        logs = paused(holder, taker, fast_path, number)
        if logs is None:  # it had ended before
            continue
        ours, theirs = logs
        found = oracle.read_store(fast_path / "store.db", use=False)
        values = found.sessions[f"s{number}"].branches["main"]
        told = [value for log in logs for value in acknowledged(log)]
        assert found.complaints == [], number
        assert ours[-1].error.startswith("LeaseLost"), ours[-1]
        assert all(each.outcome == "acknowledged" for each in theirs), theirs
        assert late(values) == []
        assert sorted(values) == sorted(told)
        refused += 1


def test_a_writer_without_fencing_is_caught(programs, fast_path):
    """Control: it looked at its lease once, and writes on when it wakes up."""
    logs = paused(
        programs("faults.leases:raw_hold"), programs("faults.leases:raw_take"), fast_path, 0
    )

    found = oracle.read_raw(fast_path / "store.db").sessions["s0"]
    assert logs is not None
    assert late(found.branches["main"])
