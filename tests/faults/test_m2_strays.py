"""M2: no crash makes a store take its own WAL or journal for those of another database.

A file is given its stamp, switched to WAL or out of it, backed up and opened, by us and by plain
sqlite3; whoever does it is killed at each system call, and the next one to open the store finds
everything.
"""

import asyncio
import signal

import pytest

from faults import oracle, subjects
from faults.log import read_log
from faults.tier import need, some
from holdfast.errors import StoreUnavailable
from holdfast.stores import open_store
from holdfast.stores.sqlite import journal
from holdfast.testing.faults import damage, strace

OPEN = "faults.subjects:open_only"
SWITCH, ANEW = "faults.controls:switch", "faults.controls:write_anew"


@pytest.fixture(autouse=True)
def _can_run():
    need(strace.missing())


@pytest.fixture
def steps(fast_path):
    """What is in the store in the folder `made`."""
    (fast_path / "made").mkdir()
    script = subjects.growing_script(True)
    subjects.play(str(fast_path / "made" / "store.db"), str(fast_path / "log"), script)
    return read_log(fast_path / "log")


def backed_up(folder):
    """A copy of the store, in a folder of its own: it is not in WAL mode until it is opened."""
    (folder / "copy").mkdir()

    async def main():
        async with open_store(f"sqlite:{folder / 'made' / 'store.db'}") as store:
            await store.backup(folder / "copy" / "store.db")

    asyncio.run(main())
    return folder / "copy"


def kills(forks, folder, base, short):
    """The store after each kill of a program that does something to a copy of it."""
    counted = damage.copy(base, folder / "count")
    seen = strace.calls(forks, [str(counted / "store.db")], counted)
    for at, point in enumerate(some(strace.points(seen), short)):
        place = damage.copy(base, folder / f"p{at}")
        files = [path.replace("/count/", f"/p{at}/") for path in strace.files(seen)]
        outcome = strace.inject(forks, [str(place / "store.db")], files, point)
        assert outcome.status in (0, -signal.SIGKILL), (point, outcome.stderr)
        yield point, place / "store.db"


def sweep(runs, steps):
    """What was wrong after which kill; and how many left a journal beside a file in WAL mode."""
    wrong, journals = {}, 0
    for point, path in runs:
        is_wal = path.read_bytes()[18:20] == b"\2\2"
        journals += is_wal and journal._read(path.with_name("store.db-journal")) is not None
        if found := oracle.judge(steps, oracle.read_store(path)):
            wrong[point] = found
    return wrong, journals


def test_a_backup_may_be_opened_by_one_who_is_killed(programs, fast_path, steps):
    """The switch to WAL leaves a journal beside a file that says it is in WAL mode."""
    wrong, journals = sweep(kills(programs(OPEN), fast_path, backed_up(fast_path), 40), steps)

    assert wrong == {}
    assert journals


def test_plain_sqlite_may_be_killed_while_it_switches_the_mode(programs, fast_path, steps):
    """Out of WAL and back, in each mode that has journals."""
    wrong, journals = sweep(kills(programs(SWITCH), fast_path, fast_path / "made", 60), steps)

    assert wrong == {}
    assert journals


def test_plain_sqlite_may_be_killed_while_it_writes_all_anew(programs, fast_path, steps):
    """Its first page speaks of pages that are not there, and its journal has all that is needed."""
    wrong, _ = sweep(kills(programs(ANEW), fast_path, fast_path / "made", 30), steps)

    assert wrong == {}


def test_a_store_that_refuses_every_journal_is_caught(programs, fast_path, steps, monkeypatch):
    """Control: some kill leaves a journal that does belong to the file."""
    monkeypatch.setattr(journal, "_is_of", lambda *_: False)

    wrong, _ = sweep(kills(programs(OPEN), fast_path, backed_up(fast_path), 40), steps)

    assert any(StoreUnavailable.__name__ in " ".join(found) for found in wrong.values())
