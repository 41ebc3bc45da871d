"""How close do stores come to the bare driver?

    python bench/stores.py [--check] [--quick] [--only NAME] [--folder PATH]

Ours against `sqlite3` and SQL written by hand (bench/stores_raw.py) on a copy of the same file, in
one run; the two sides take turns, and every figure is a median of rounds. A turn is a user message
of about 300 characters, a reply of about 500 and the receipt of the call. Everything is at level
"sync", in a temporary folder on a real disk; tmpfs would make a sync free. About five minutes, and
with --quick one.

NAME is one of: one, callers, processes, open, load, list, size, jsonl, postgresql. The last two
compare the JSONL store with bare writes to files (bench/stores_jsonl_raw.py), and the PostgreSQL
store with asyncpg, on a server of its own (bench/stores_postgresql.py).

With --check the exit status is 1 when a bar is missed.
"""

import argparse
import asyncio
import os
import sqlite3
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import stores_append as append
import stores_delay as delay
import stores_jsonl as jsonl
import stores_postgresql as postgresql
import stores_processes as processes
import stores_reading as reading
from stores_raw import PRAGMAS
from stores_table import Table, sync_us

NAMES = ("one", "callers", "processes", "open", "load", "list", "size", "jsonl", "postgresql")
IN_MEMORY = ("tmpfs", "ramfs")


async def run(table: Table, folder: Path, names: list[str], quick: bool) -> None:
    long = 10_000 if quick else 100_000
    if "one" in names:
        await append.one_caller(table, folder, long=long, rounds=30 if quick else 100)
    if "callers" in names:
        table.title("256 callers on 256 sessions (turns/s)")
        found = await append.many_callers(
            folder, rounds=3 if quick else 9, sustained_s=0 if quick else 5
        )
        append.report(table, found, group=0.7, single=5)
        table.title("256 callers where a sync takes 1 ms more (turns/s)")
        if (reason := delay.missing()) is not None:
            table.note(f"skipped: {reason}")
        else:
            us, found = delay.delayed(folder, rounds=2 if quick else 5)
            table.note(f"a sync of three pages takes {us:.0f} us")
            append.report(table, found, group=0, single=15)
    if "processes" in names:
        await processes.measure(table, folder, rounds=1 if quick else 5)
    if "open" in names or "load" in names:
        await reading.logs(table, folder, names, long=long, rounds=5 if quick else 9)
    if "list" in names:
        await reading.lists(table, folder, count=10_000 if quick else 100_000)
    if "postgresql" in names:
        await postgresql.measure(table, folder, rounds=3 if quick else 9, quick=quick)
    if "size" in names:
        await reading.sizes(table, folder, turns_count=3_000 if quick else 25_000)
    if "jsonl" in names:
        await jsonl.appends(table, folder, long=long, rounds=30 if quick else 100)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--check", action="store_true", help="fail when a bar is missed")
    parser.add_argument("--quick", action="store_true", help="smaller, in about a minute")
    parser.add_argument("--only", choices=NAMES, help="one group of figures")
    parser.add_argument("--folder", type=Path, help="where to write (default: a temporary folder)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder or real_disk()) as name:
        folder = Path(name)
        print(
            f"SQLite {sqlite3.sqlite_version}, Python {sys.version.split()[0]}, {machine(folder)}"
        )
        print(f"the raw driver sets {' '.join(PRAGMAS)}\n")
        table = Table()
        names = [options.only] if options.only else list(NAMES)
        asyncio.run(run(table, folder, names, options.quick))
        return table.status(options.check)


def machine(folder: Path) -> str:
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    cores = f"{os.cpu_count()} cores{load}"
    return f"{cores}; {file_system(folder)}, a sync of three pages takes {sync_us(folder):.0f} us"


def real_disk() -> str | None:
    """A folder for temporary files that is not in memory."""
    for name in (tempfile.gettempdir(), "/var/tmp", "."):
        if Path(name).is_dir() and file_system(Path(name)) not in IN_MEMORY:
            return name
    return None


def file_system(folder: Path) -> str:
    """The type of the file system that a folder is on; "disk" where the system does not tell."""
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return "disk"
    there, kind, longest = folder.resolve(), "disk", -1
    for line in mounts.read_text(encoding="utf-8", errors="replace").splitlines():
        _, place, found, *_ = line.split(" ")
        if there.is_relative_to(place) and len(Path(place).parts) >= longest:
            kind, longest = found, len(Path(place).parts)
    return kind


if __name__ == "__main__":
    sys.exit(main())
