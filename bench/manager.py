"""What does the manager cost over the store?

    python bench/manager.py [--check] [--quick] [--folder PATH]

A real SQLite file. Getting a session that is open; opening 10,000 that are not, against the store
reading the same records and entries (bench/manager_raw.py); the newest 50 of 100,000; and 100,000
sessions that go through a cache of 1,000 while the memory of the process is watched. Both sides
take turns. About three minutes, most of it to make the sessions.

With --check the exit status is 1 when a bar is missed.
"""

import argparse
import asyncio
import gc
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from manager_raw import Raw
from stores import machine, real_disk
from stores_data import sessions as made
from stores_table import Table, ratio

import holdfast
from holdfast import Message
from holdfast.manager import SessionManager

COLD, MANY, CACHE = 10_000, 100_000, 1_000
ROUNDS = 7
clock = time.perf_counter


async def cached(table: Table, sessions: SessionManager, key: str) -> None:
    """Get a session that is open already."""
    mine = await sessions.get(key)
    times = []
    for _ in range(ROUNDS):
        start = clock()
        for _ in range(10_000):
            await sessions.get(key)
        times.append((clock() - start) / 10_000 * 1e6)
    assert await sessions.get(key) is mine
    table.row("get a session that is open (us)", statistics.median(times), most=2)


async def cold(table: Table, url: str, keys: list[str]) -> None:
    """Open sessions that are not, one after the other, beside the store alone."""
    ours, raw = [], []
    for number in range(ROUNDS):
        part = keys[number::ROUNDS]
        async with holdfast.open(url, cache=0) as sessions:
            start = clock()
            for key in part:
                await sessions.get_or_create(key)
            ours.append(len(part) / (clock() - start))
        async with holdfast.open(url) as sessions:
            bare = Raw(sessions)
            start = clock()
            for key in part:
                await bare.open(key)
            raw.append(len(part) / (clock() - start))
    middle = statistics.median
    table.row(
        "get_or_create, cold, a second", middle(ours), middle(raw), ratio(ours, raw), least=0.7
    )


async def lists(table: Table, sessions: SessionManager) -> None:
    """The newest 50."""
    bare, ours, raw = Raw(sessions), [], []
    for _ in range(ROUNDS):
        for times, work in ((ours, sessions.list), (raw, bare.newest)):
            start = clock()
            for _ in range(50):
                await work()
            times.append((clock() - start) / 50 * 1e6)
    middle = statistics.median
    table.row("list the newest 50 (us)", middle(ours), middle(raw), ratio(ours, raw), most=1.2)


async def cycle(table: Table, url: str, keys: list[str]) -> None:
    """Every session once, through a cache that holds a hundredth of them."""
    async with holdfast.open(url, cache=CACHE) as sessions:
        sizes = []
        for at in range(0, len(keys), len(keys) // 10):
            for key in keys[at : at + len(keys) // 10]:
                await sessions.get(key)
            gc.collect()
            sizes.append(_resident_kib())
            assert sessions._live.held <= CACHE
    table.note(f"resident after each tenth, MiB: {', '.join(f'{s / 1024:.0f}' for s in sizes)}")
    grown = (max(sizes[2:]) - sizes[1]) / 1024
    table.row(f"{len(keys):,} through a cache of {CACHE:,}: growth (MiB)", grown, most=4)


def _resident_kib() -> int:
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


async def main(options: argparse.Namespace) -> int:
    many = MANY // 20 if options.quick else MANY
    table = Table()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        url = f"sqlite:{name}/many.db"
        async with holdfast.open(url, expire_every=None) as sessions:
            print(f"making {many:,} sessions", file=sys.stderr)
            await made(sessions._tenant, many)
            keys = [f"telegram:{number}" for number in range(many)]
            for key in keys[:COLD]:
                session = await sessions.get(key)
                await session.append(Message.user("Hello, I am Ada."), Message.assistant("Hello!"))
            table.title(f"The manager over {many:,} sessions")
            await cached(table, sessions, keys[0])
            await lists(table, sessions)
        await cold(table, url, keys[:COLD])
        await cycle(table, url, keys)
    return table.status(options.check)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="exit 1 when a bar is missed")
    parser.add_argument("--quick", action="store_true", help="a twentieth of the sessions")
    parser.add_argument("--folder", type=Path, default=None, help="where the file is made")
    chosen = parser.parse_args()
    chosen.folder = chosen.folder or Path(real_disk() or ".")
    print(machine(chosen.folder))
    sys.exit(asyncio.run(main(chosen)))
