"""D1: a store that is not as safe as it should be says so, or does not open.

A setting that did not take is an error; what is doubtful about the place is named by `problems`.
"""

import asyncio
import sqlite3
import stat
import subprocess

from faults.tier import need, some
from holdfast.stores import open_store
from holdfast.testing.faults import disk, strace

WAL = 2  # bytes 18 and 19 of a database: the versions of its format to write and to read


def journal_mode(path):
    """What the file itself says."""
    return set(path.read_bytes()[18:20])


def problems(path):
    """What the store has to say about the place."""

    async def main():
        async with open_store(f"sqlite:{path}") as store:
            return store.problems()

    return asyncio.run(main())


def test_no_fault_at_the_start_leaves_a_store_that_is_not_in_wal_mode(programs, fast_path):
    """Each write and sync of the first open fails in turn: an error, or WAL all the same."""
    need(strace.missing())
    forks = programs("faults.subjects:open_and_tell")
    kinds = ("pwrite64", "fdatasync", "fsync", "openat")
    (fast_path / "count").mkdir()
    arguments = [str(fast_path / "count" / "store.db"), str(fast_path / "count.said")]
    seen = strace.calls(forks, arguments, fast_path / "count", kinds)
    assert (fast_path / "count.said").read_text() == "open"

    for at, point in enumerate(some(strace.points(seen, kinds), 30)):
        place, said = fast_path / f"p{at}", fast_path / f"p{at}.said"
        place.mkdir()
        files = [path.replace("/count/", f"/p{at}/") for path in strace.files(seen)]
        outcome = strace.inject(
            forks, [str(place / "store.db"), str(said)], files, point, "error=EIO"
        )
        assert outcome.status == 0, (point, outcome.stderr)
        if said.read_text() == "open":
            assert journal_mode(place / "store.db") == {WAL}, point


def test_a_mode_that_is_not_looked_at_is_caught(programs, fast_path):
    """Control: plain sqlite3 that does not read the answer of the PRAGMA stays in another mode."""
    need(strace.missing())
    forks = programs("faults.controls:open_without_looking")
    kinds = ("fdatasync", "fsync", "openat", "pwrite64")
    (fast_path / "count").mkdir()
    seen = strace.calls(forks, [str(fast_path / "count" / "store.db")], fast_path / "count", kinds)
    modes = []

    for at, point in enumerate(strace.points(seen, kinds)):
        place = fast_path / f"p{at}"
        place.mkdir()
        files = [path.replace("/count/", f"/p{at}/") for path in strace.files(seen)]
        outcome = strace.inject(forks, [str(place / "store.db")], files, point, "error=EIO")
        if outcome.status == 0:
            modes.append(journal_mode(place / "store.db"))

    assert any(mode != {WAL} for mode in modes)


def test_everything_it_makes_is_for_its_owner_alone(fast_path):
    """Files 0600, folders 0700, whatever the umask, and while it is open too."""
    path = fast_path / "new" / "store.db"

    async def main():
        async with open_store(f"sqlite:{path}") as store:
            await store.tenant().list()
            return {p: stat.S_IMODE(p.stat().st_mode) for p in path.parent.rglob("*")}

    modes = asyncio.run(main()) | {path.parent: stat.S_IMODE(path.parent.stat().st_mode)}

    assert [(p, oct(mode)) for p, mode in modes.items() if mode & 0o077] == []


def test_a_store_that_others_can_read_is_named(fast_path):
    """The file, and the way out."""
    fast_path.chmod(0o700)
    path = fast_path / "store.db"
    problems(path)
    path.chmod(0o644)

    assert any(str(path) in each and "chmod" in each for each in problems(path))


def test_a_sqlite_with_the_reset_bug_is_named(fast_path, monkeypatch):
    """The version, and the one to update to; a mended one is not blamed."""
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 51, 2))
    assert any("3.51.3" in each for each in problems(fast_path / "store.db"))
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 51, 3))
    assert not any("3.51.3" in each for each in problems(fast_path / "store.db"))


def test_a_place_that_goes_with_its_container_is_named(tmp_path):
    """An overlay file system."""
    need(disk.missing())
    for name in ("lower", "upper", "work", "merged"):
        (tmp_path / name).mkdir()
    options = f"lowerdir={tmp_path}/lower,upperdir={tmp_path}/upper,workdir={tmp_path}/work"
    mount = ["mount", "-t", "overlay", "-o", options, "overlay", str(tmp_path / "merged")]
    mounted = subprocess.run(mount, capture_output=True, text=True)
    need("" if mounted.returncode == 0 else f"an overlay cannot be mounted: {mounted.stderr}")
    try:
        found = problems(tmp_path / "merged" / "store.db")
    finally:
        subprocess.run(["umount", str(tmp_path / "merged")], check=True)

    assert any("overlay" in each for each in found)
