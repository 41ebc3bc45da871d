"""C1, C2: many tasks, threads and processes on the same sessions, some of them killed.

Every client notes what it did; the checker then looks for an append that is lost, doubled, out of
order, stale or in the wrong session. No client ever hears that the database is locked.
"""

import asyncio
import random
import signal
import time

import pytest

from faults import clients, oracle
from faults.tier import need, pick
from holdfast.stores import open_store
from holdfast.testing.checker import check
from holdfast.testing.faults import forks
from holdfast.testing.journal import read_journals


@pytest.fixture(autouse=True)
def _can_run():
    need(forks.missing())


@pytest.fixture
def place(fast_path):
    """The database, and a folder for the journals."""
    (fast_path / "journals").mkdir()
    return fast_path / "store.db", fast_path / "journals"


def verdict(journals, least):
    """What the checker found. A run that did less than it should have is no run."""
    operations = read_journals(sorted(journals.iterdir()))
    assert len(operations) >= least
    return check(operations)


def in_store(path, work):
    """Run `await work(store)` with the store open."""

    async def main():
        async with open_store(f"sqlite:{path}") as store:
            return await work(store)

    return asyncio.run(main())


@pytest.mark.usefixtures("uncovered")
def test_tasks_of_one_process(place):
    """C1: 64 tasks, one store."""
    path, journals = place
    each, tasks = pick(16, 320), 64

    async def work(store):
        await clients.prepare(store, each)
        await asyncio.gather(
            *(
                clients.client(store, journals / f"task{n}", f"task{n}", each, n)
                for n in range(tasks)
            )
        )
        await clients.judge(store, journals / "judge", each)

    in_store(path, work)

    assert verdict(journals, each * tasks) == []
    assert oracle.integrity(path) == []


@pytest.mark.usefixtures("uncovered")
def test_threads_with_a_store_each(place):
    """C1: 8 threads, each with its own loop and its own store on the same file."""
    path, journals = place
    each, threads = pick(60, 1_875), 8
    in_store(path, lambda store: clients.prepare(store, each))

    errors = clients.store_threads(path, journals, threads, each)

    in_store(path, lambda store: clients.judge(store, journals / "judge", each))
    assert errors == []
    assert verdict(journals, each * threads) == []
    assert oracle.integrity(path) == []


def killed_now_and_then(program, each, processes, kills, *arguments):
    """8 processes; now and then one is killed, and another takes its place. The errors of those
    that ended by themselves with one."""
    rnd, errors = random.Random(2), []
    running = {
        f"p{n}": program.start(*arguments[:2], f"p{n}", each, n, *arguments[2:])
        for n in range(processes)
    }
    for number in range(kills):
        time.sleep(rnd.uniform(0.02, 0.25))
        victim = rnd.choice(sorted(running))
        running[victim].kill()
        run = running.pop(victim)
        if run.wait() not in (0, -signal.SIGKILL):
            errors.append(run.stderr)
        name = f"r{number}"
        running[name] = program.start(*arguments[:2], name, each, 100 + number, *arguments[2:])
    return errors + [run.stderr for run in running.values() if run.wait(600) != 0]


def test_processes_that_are_killed_now_and_then(programs, place):
    """C2: 8 processes, random SIGKILL."""
    path, journals = place
    each, kills = pick(60, 1_875), pick(6, 40)
    in_store(path, lambda store: clients.prepare(store, each))

    errors = killed_now_and_then(
        programs("faults.clients:store_process"), each, 8, kills, str(path), str(journals)
    )

    in_store(path, lambda store: clients.judge(store, journals / "judge", each))
    assert errors == []
    assert verdict(journals, each * 8) == []
    assert oracle.integrity(path) == []


def raw_run(programs, place, fault, kills=0):
    path, journals = place
    clients.raw_prepare(path)
    program = programs("faults.clients:raw_process")
    errors = killed_now_and_then(program, 100, 4, kills, str(path), str(journals), fault)
    clients.raw_judge(path, journals / "judge", 100)
    return errors, verdict(journals, 100)


def test_plain_sqlite_with_immediate_transactions_passes(programs, place):
    """The run itself, kills included, makes no anomaly."""
    assert raw_run(programs, place, "", kills=3) == ([], [])


def test_reading_the_head_without_a_lock_is_caught(programs, place):
    """Control: two writers take the same place, and one append is lost."""
    errors, anomalies = raw_run(programs, place, "no lock")

    assert errors == []
    assert {anomaly.rule for anomaly in anomalies} & {"b", "d"}


def test_a_deferred_transaction_is_caught(programs, place):
    """Control: who reads first and writes then is refused, whatever time-out is set."""
    errors, _ = raw_run(programs, place, "deferred")

    assert any("database is locked" in error for error in errors)
