"""M1: a store of any format that was ever written opens, whatever happens while it is brought up.

The process that opens it is killed at each system call: the next one finds it whole. A store of a
format that we do not know yet is left alone.
"""

import asyncio
import sqlite3
from pathlib import Path

import pytest

from faults import oracle, subjects
from faults.tier import need, some
from holdfast.errors import FormatTooNew
from holdfast.stores import open_store
from holdfast.testing.faults import damage, strace

KEPT = sorted((Path(__file__).parents[1] / "format").glob("sqlite-*.db"))


def contents(folder):
    """The bytes of every file in a folder."""
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


async def everything(path):
    """All that is in a store, whatever it is, and what verify finds."""
    async with open_store(f"sqlite:{path}") as store:
        tenant = store.tenant()
        problems = (await tenant.verify()).problems
        found = {}
        for summary in (await tenant.list(limit=1000)).items:
            record = await tenant.load(summary.key)
            branches = [await tenant.read(record.id, branch.name) for branch in record.branches]
            found[summary.key] = record, branches
        return found, problems


def test_an_old_store_may_be_opened_by_one_who_is_killed(programs, fast_path):
    """Every format that is kept, at every point of opening it."""
    need(strace.missing())
    forks = programs("faults.subjects:open_only")
    assert KEPT

    for kept in KEPT:
        base = fast_path / f"{kept.stem}-base"
        base.mkdir()
        (base / "store.db").write_bytes(kept.read_bytes())
        wanted = asyncio.run(everything(damage.copy(base, fast_path / "whole") / "store.db"))
        assert wanted[1] == ()
        counted = damage.copy(base, fast_path / "count")
        seen = strace.calls(forks, [str(counted / "store.db")], counted)
        for at, point in enumerate(some(strace.points(seen), 12)):
            place = damage.copy(base, fast_path / f"{kept.stem}-{at}")
            files = [path.replace("/count/", f"/{place.name}/") for path in strace.files(seen)]
            strace.inject(forks, [str(place / "store.db")], files, point)
            assert asyncio.run(everything(place / "store.db")) == wanted, (kept.name, point)
            assert oracle.integrity(place / "store.db") == []


@pytest.fixture
def newer(fast_path):
    """A store that says it has a format we do not know yet."""
    path = fast_path / "store" / "store.db"
    path.parent.mkdir()
    subjects.play(path, fast_path / "log", subjects.growing_script(True))
    connection = sqlite3.connect(path)
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    connection.execute(f"PRAGMA user_version={version + 1}")
    connection.close()
    return path


def test_a_newer_format_is_refused_and_not_touched(newer):
    """FormatTooNew, and every byte is as it was."""
    before = contents(newer.parent)

    async def main():
        async with open_store(f"sqlite:{newer}"):
            pass

    with pytest.raises(FormatTooNew):
        asyncio.run(main())

    assert contents(newer.parent) == before


def test_a_program_that_does_not_look_at_the_format_is_caught(newer):
    """Control: plain sqlite3 that makes what it misses has changed the file."""
    before = contents(newer.parent)

    connection = sqlite3.connect(newer)
    connection.execute("CREATE TABLE IF NOT EXISTS notes(text TEXT)")
    connection.close()

    assert contents(newer.parent) != before
