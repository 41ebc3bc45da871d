"""What a session costs in PostgreSQL: rows, bytes, write-ahead log, connections, time.

docs/scale.md goes by these figures. Sizes are exact, and the same on every machine; times and rates
are of the machine that this runs on.

A whole session has 20 turns, each of them one named append: a user message of 300 characters, a
reply of 500, and the receipt of the call. In every fourth turn the model also calls a tool: the
call, its result of 2,000 characters, and one more receipt. A short session has one turn.

    python bench/scale.py --sessions 100000 --partitions
"""

import argparse
import asyncio
import random
import re
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
from search_texts import texts
from stores import machine, real_disk
from stores_append import CALLERS, Crowd, clock
from stores_data import MODEL, TENANT, sessions, turn
from stores_postgresql import ROLE, execute, started
from stores_table import quantile

from holdfast import Message, ToolCall
from holdfast.entries import Call, Entry
from holdfast.stores import Store, Tenant, open_store
from holdfast.usage import Usage

TURNS = 20
TOOL_EVERY = 4
RESULT_CHARACTERS = 2_000
WHOLE_MAX = 1_000  # all other sessions are short
COLD = 500  # sessions that nobody wrote to since the last checkpoint
SECONDS = 3.0
_OURS = "c.relnamespace = 'holdfast'::regnamespace AND c.relkind = 'r' ORDER BY 1, 2"
HEAPS = f"SELECT c.relname, pg_table_size(c.oid) FROM pg_class c WHERE {_OURS}"
INDEXES = f"""SELECT c.relname, x.relname, pg_relation_size(x.oid) FROM pg_class c
    JOIN pg_index i ON i.indrelid = c.oid JOIN pg_class x ON x.oid = i.indexrelid WHERE {_OURS}"""
CONNECTIONS = f"SELECT count(*) FROM pg_stat_activity WHERE usename = '{ROLE}'"
IN_SYNC = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
WAL = "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn"


class Words:
    """Texts of any length, all different."""

    def __init__(self) -> None:
        self._text = " ".join(texts(20_000))
        self._random = random.Random(7)

    def take(self, length: int) -> str:
        at = self._random.randrange(len(self._text) - length)
        return self._text[at : at + length]


def conversation(words: Words, count: int) -> Iterator[list[Entry]]:
    """The entries of so many turns."""
    for number in range(count):
        said = turn(words.take(300), words.take(500)).entries
        tools = _tool(words) if number % TOOL_EVERY == TOOL_EVERY - 1 else []
        yield [said[0], *tools, *said[1:]]


def _tool(words: Words) -> list[Entry]:
    call = ToolCall(
        id="toolu_01A09q90qw90lq917835lq9",
        name="search_orders",
        arguments='{"customer": 1815}',
    )
    asked = Message.assistant(None, [call], model=MODEL, stop="tool_calls")
    receipt = Call(model=MODEL, about=asked.id, usage=Usage(1_840, 31), stop="tool_calls")
    return [asked, receipt, Message.tool(words.take(RESULT_CHARACTERS), call.id)]


def _some(ids: Sequence[str], count: int) -> Iterator[Sequence[str]]:
    return (ids[at : at + count] for at in range(0, len(ids), count))


async def fill(tenant: Tenant, ids: Sequence[str], turns_each: int) -> None:
    """Turn after turn, of many sessions at a time, as it comes in use."""
    words = Words()
    for some in _some(ids, 1_000):
        for number, *appends in zip(
            range(turns_each), *(conversation(words, turns_each) for _ in some), strict=True
        ):
            await asyncio.gather(
                *(
                    tenant.append(id, entries, once=f"update-{number}")
                    for id, entries in zip(some, appends, strict=True)
                )
            )


# Sizes


async def sizes(admin: Any, count: int) -> None:
    """Rows and bytes of each table, and of its indexes, for a session."""
    await admin.execute("VACUUM (ANALYZE)")
    found: dict[str, dict[str, int]] = {}
    for name, size in await admin.fetch(HEAPS):  # those of partitions are summed up
        found.setdefault(_whole(name), {"heap": 0})["heap"] += size
    for name, index, size in await admin.fetch(INDEXES):
        part = found[_whole(name)]
        part[_whole(index)] = part.get(_whole(index), 0) + size
    rows = {name: await admin.fetchval(f"SELECT count(*) FROM holdfast.{name}") for name in found}
    print(f"\n{'a session':<26}{'rows':>9}{'table, B':>12}{'indexes, B':>12}")
    for name, parts in found.items():
        if rows[name] > 1:
            indexes = {key: size for key, size in parts.items() if key != "heap"}
            line = f"{parts['heap'] / count:>12,.0f}{sum(indexes.values()) / count:>12,.0f}"
            each = ", ".join(f"{key} {size / count:,.0f}" for key, size in indexes.items())
            print(f"  {name:<24}{rows[name] / count:>9.1f}{line}  ({each})")
    await _sums(admin, count, found, rows)


def _whole(name: str) -> str:
    """The name of the table or index that this is a partition of."""
    return re.sub(r"_\d+(?=_|$)", "", name)


async def _sums(admin: Any, count: int, found: dict[str, dict[str, int]], rows: Any) -> None:
    heap = sum(parts["heap"] for parts in found.values())
    indexes = sum(sum(parts.values()) - parts["heap"] for parts in found.values())
    search = sum(found["words"].values())
    payload = await admin.fetchval("SELECT sum(octet_length(payload)) FROM holdfast.entries")
    whole = heap + indexes
    print(f"  {'all':<24}{sum(rows.values()) / count:>9.1f}{heap / count:>12,.0f}", end="")
    print(f"{indexes / count:>12,.0f}")
    row("bytes of a session", whole / count)
    row("of them for search", search / count)
    row("payload of a session", payload / count)
    row("bytes on disk for a byte of payload", whole / payload)
    row("the same without search", (whole - search) / payload)
    row("bytes of an entry", whole / rows["entries"])


# The write-ahead log, connections, rates


async def wal(admin: Any, tenant: Tenant, ids: Sequence[str]) -> None:
    """Bytes of the log for a turn: of sessions at work, and of ones that were quiet for long."""
    hot = ids[:CALLERS]
    await fill_more(tenant, hot, "warm")
    print("\nwrite-ahead log, bytes for a turn")
    row("sessions that are written to all the time", await _wal_of(admin, tenant, hot, "hot"))
    for setting in ("off", "pglz"):
        await admin.execute(f"ALTER SYSTEM SET wal_compression = {setting}")
        await admin.execute("SELECT pg_reload_conf()")
        await admin.execute("CHECKPOINT")
        cold = random.Random(setting).sample(ids, min(COLD, len(ids)))
        words = f"the first turn after a checkpoint, wal_compression {setting}"
        row(words, await _wal_of(admin, tenant, cold, f"cold {setting}"))


async def _wal_of(admin: Any, tenant: Tenant, ids: Sequence[str], name: str) -> float:
    before = await admin.fetchval(WAL)
    await fill_more(tenant, ids, name)
    return float(await admin.fetchval(WAL) - before) / len(ids)


async def fill_more(tenant: Tenant, ids: Sequence[str], name: str) -> None:
    words = Words()
    for some in _some(ids, 16):
        await asyncio.gather(
            *(tenant.append(id, next(conversation(words, 1)), once=name) for id in some)
        )


async def rates(admin: Any, store: Store, ids: Sequence[str], words: str) -> None:
    tenant, most = store.tenant(TENANT), 0
    print(f"\nof this machine, while it may do other things: {words}")
    for callers in (1, CALLERS):
        crowd = Crowd(tenant, ids[:callers], [turn("a" * 300, "b" * 500)] * 8)
        crowd.heads = {id: (await tenant.tail(id, count=1))[-1].seq for id in ids[:callers]}
        start = clock()
        running = asyncio.ensure_future(crowd.run(seconds=SECONDS))
        while not running.done():
            most = max(most, await admin.fetchval(CONNECTIONS))
            await asyncio.sleep(0.2)
        row(f"turns/s of {callers} callers", len(await running) / (clock() - start))
    lease = await tenant.begin(ids[0], "bench", timedelta(minutes=1), {})
    print("\nconnections of one process (pool=10)")
    row(f"the most with {CALLERS} callers", most)
    row("the same with a lease taken", await admin.fetchval(CONNECTIONS))
    await tenant.release(lease, drop=True)


async def follow(cluster: Any, admin: Any, folder: Path) -> Any:
    """A synchronous standby on the same machine."""
    made = cluster.standby(folder / "standby")
    made.start()
    await admin.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
    await admin.execute("SELECT pg_reload_conf()")
    async with asyncio.timeout(30):
        while not await admin.fetchval(IN_SYNC):  # noqa: ASYNC110 - the server does not tell
            await asyncio.sleep(0.1)
    return made


async def reading(tenant: Tenant, ids: Sequence[str], count: int) -> None:
    picked = random.Random(1).choices(ids, k=100)
    print(f"\nreading, at {count:,} sessions (ms, p50)")
    row("the last 50 entries of a session", await _ms(lambda id: tenant.tail(id), picked))
    row("the newest 50 sessions", await _ms(lambda _: tenant.list(limit=50), picked))


async def _ms(call: Callable[[str], Awaitable[object]], ids: Sequence[str]) -> float:
    times = []
    for id in ids:
        start = clock()
        await call(id)
        times.append((clock() - start) * 1e3)
    return quantile(times, 0.5)


def row(name: str, value: float) -> None:
    print(f"  {name:<60}{value:>12,.{0 if value >= 100 else 2}f}", flush=True)


async def run(cluster: Any, options: argparse.Namespace) -> None:
    count = options.sessions
    await execute(cluster.url(), f"CREATE ROLE {ROLE} LOGIN")
    await execute(cluster.url(), f"CREATE DATABASE ours OWNER {ROLE}")
    url = cluster.url("ours", ROLE)
    if options.partitions:
        from postgres_server import recipe

        async with open_store(url):
            pass
        await execute(url, recipe())
    admin = await asyncpg.connect(cluster.url("ours"))
    async with open_store(url) as store:
        tenant = store.tenant(TENANT)
        ids = whole = await sessions(tenant, min(count // 10, WHOLE_MAX))
        await fill(tenant, whole, TURNS)
        await tenant.search("nothing")  # fills the index
        print(f"{len(whole):,} whole sessions")
        await sizes(admin, len(whole))
        for much in (count // 10, count):
            short = await sessions(tenant, much - len(ids), first=len(ids))
            await fill(tenant, short, 1)
            ids = ids + short
            await reading(tenant, whole, len(ids))
        await wal(admin, tenant, ids)
        await rates(admin, store, whole, "one server")
        if options.standby:
            standby = await follow(cluster, admin, Path(cluster.folder).parent)
            await rates(admin, store, whole, "with a synchronous standby")
            await admin.execute("ALTER SYSTEM RESET synchronous_standby_names")
            await admin.execute("SELECT pg_reload_conf()")
            standby.stop("fast")
    await admin.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--sessions", type=int, default=10_000, help="most of them short")
    parser.add_argument("--partitions", action="store_true", help="by the recipe of docs/scale.md")
    parser.add_argument("--standby", action="store_true", help="rates also with a standby")
    parser.add_argument("--folder", type=Path, help="where to write (default: a temporary folder)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder or real_disk()) as name:
        print(f"Python {sys.version.split()[0]}, {machine(Path(name))}")
        cluster = started(Path(name))
        try:
            asyncio.run(run(cluster, options))
        finally:
            cluster.stop("fast")


if __name__ == "__main__":
    main()
