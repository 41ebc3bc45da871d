"""What does a copy cost beside reading the source and appending to the target, and is it flat?

    python bench/copying.py [--quick] [--folder PATH]

A copy also keeps seqs, branches and times, can be killed, and reads everything back; bare is
`read` of the source and `append` to the target, 1,000 entries at a time, with nothing compared. One
long session, its named appends with it, and many short ones, from a SQLite file to another at
level "sync" and from memory to memory; both sides in one run, taking turns, medians of rounds.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median

from holdfast.entries import Call
from holdfast.messages import Message
from holdfast.stores import Record, Store, Tenant, copying, open_store

STEP = 1_000
SHORT = 20  # entries of a short session


def turn(number: int) -> list[Message | Call]:
    """What is said in a turn: about 300 and 500 characters, and a receipt."""
    return [
        Message.user(f"{number} " + "word " * 60),
        Message.assistant(f"{number} " + "reply " * 83, model="vendor:model"),
        Call(model="vendor:model"),
    ]


async def fill(tenant: Tenant, key: str, entries: int) -> None:
    """A session of so many entries, every turn a named append."""
    record = await tenant.create(Record(key=key))
    appends = [
        tenant.append(record.id, turn(number), once=f"turn {number}")
        for number in range((entries + 2) // 3)
    ]
    await asyncio.gather(*appends)


async def bare(source: Tenant, target: Tenant) -> int:
    """Read and append, session by session."""
    count, page = 0, await source.list(limit=1_000)
    while True:
        for each in page.items:
            record = await source.load(each.key)
            rows = await source.read(record.id)
            await target.create(record, keep_times=True)
            for at in range(0, len(rows), STEP):
                some = [row.entry for row in rows[at : at + STEP] if row.entry is not None]
                await target.append(record.id, some)
            count += len(rows)
        if page.next is None:
            return count
        page = await source.list(limit=1_000, page=page.next)


async def full(source: Tenant, target: Tenant) -> int:
    return (await copying.copy(source, target)).written


async def again(source: Tenant, target: Tenant) -> int:
    """A copy of what is there already: the records alone are compared."""
    return (await copying.copy(source, target)).entries


@asynccontextmanager
async def opened(kind: str, folder: Path, name: str) -> AsyncIterator[Store]:
    url = "memory:" if kind == "memory" else f"sqlite:{folder}/{name}.db"
    async with open_store(url) as store:
        yield store


async def measure(
    kind: str, folder: Path, sessions: int, entries: int, rounds: int
) -> tuple[float, float, float]:
    """Entries a second: bare, copied, and gone over again."""
    found: dict[str, list[float]] = {"bare": [], "copy": [], "again": []}
    async with opened(kind, folder, f"source-{sessions}-{entries}") as source:
        for number in range(sessions):
            await fill(source.tenant(), f"chat:{number}", entries)
        for at in range(rounds):
            for name, function in (("bare", bare), ("copy", full)):
                async with opened(kind, folder, f"{name}-{sessions}-{entries}-{at}") as target:
                    found[name].append(await speed(function, source, target))
                    if name == "copy":
                        found["again"].append(await speed(again, source, target))
    return median(found["bare"]), median(found["copy"]), median(found["again"])


async def speed(
    function: Callable[[Tenant, Tenant], Awaitable[int]], source: Store, target: Store
) -> float:
    start = time.perf_counter()
    count = await function(source.tenant(), target.tenant())
    return count / (time.perf_counter() - start)


async def run(folder: Path, quick: bool) -> None:
    long = (1_000, 10_000) if quick else (1_000, 10_000, 100_000)
    shapes = [(1, entries) for entries in long] + [(500 if quick else 5_000, SHORT)]
    print(f"{'entries/s':<38}{'bare':>10}{'copy':>10}{'ratio':>8}{'again':>12}")
    for kind in ("memory", "sqlite"):
        for sessions, entries in shapes:
            rates = await measure(kind, folder, sessions, entries, 3 if quick else 5)
            name, ratio = f"{kind}, {sessions:,} x {entries:,}", rates[1] / rates[0]
            print(f"{name:<38}{rates[0]:>10,.0f}{rates[1]:>10,.0f}{ratio:>8.2f}{rates[2]:>12,.0f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="smaller, in half a minute")
    parser.add_argument("--folder", type=Path, help="where to write (default: a temporary folder)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        asyncio.run(run(Path(name), options.quick))
    return 0


if __name__ == "__main__":
    sys.exit(main())
