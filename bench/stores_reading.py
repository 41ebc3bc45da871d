"""Reading, lists and sizes, for bench/stores.py."""

import gc
import statistics
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from stores_data import TENANT, copy, opened, session, sessions, turns, various_turns
from stores_raw import Raw
from stores_table import Side, Table, medians, quantile, ratio

from holdfast.stores import Record

TAIL = 50
LOADS_A_ROUND = 20
clock = time.perf_counter


async def logs(table: Table, folder: Path, names: list[str], *, long: int, rounds: int) -> None:
    """The last messages of a log, and all of them."""
    path = folder / "logs.db"
    lengths = {"short": 100, "middle": 10_000, "long": long}
    pool = turns(500)
    async with opened(path) as store:
        tenant = store.tenant(TENANT)
        ids = {key: await session(tenant, key, count, pool) for key, count in lengths.items()}
        await tenant.search("nothing")  # fills the index
    raw = Raw(copy(path))
    async with opened(path) as store:
        tenant = store.tenant(TENANT)

        def last(key: str) -> Side:
            async def run(_: int) -> list[float]:
                times = []
                for _ in range(LOADS_A_ROUND):
                    start = clock()
                    record = await tenant.load(key)
                    found = await tenant.tail(record.id, count=TAIL)
                    times.append(clock() - start)
                    assert sum(each.kind == "message" for each in found) == TAIL
                return times

            return run

        async def fetched(_: int) -> list[float]:
            times = []
            for _ in range(LOADS_A_ROUND):
                start = clock()
                raw.tail("long", TAIL + TAIL // 2)
                times.append(clock() - start)
            return times

        if "open" in names:
            sides = {"short": last("short"), "long": last("long"), "raw": fetched}
            found = await medians(sides, rounds * 5)
            ms = {key: statistics.median(times) * 1e3 for key, times in found.items()}
            table.title(f"Open the last {TAIL} messages and their receipts (ms)")
            table.row("of 100 messages", ms["short"])
            table.row(f"of {long:,} messages", ms["long"], most=0.6)
            table.note(f"(the raw driver, decoded by msgspec: {ms['raw']:.2f})")
            grown = ratio(found["long"], found["short"])
            table.row(f"growth, 100 to {long:,} messages", grown, most=1.1)
        if "load" in names:
            table.title("Read a whole branch (ms); raw: the payload column, decoded by msgspec")
            for key in ("middle", "long") if long > 10_000 else ("middle",):
                number = raw.number(ids[key])
                read = _whole(partial(tenant.read, ids[key]))
                fetch = _whole(partial(_at_once, raw.load, number))
                found = await medians({"ours": read, "raw": fetch}, rounds)
                ours, theirs = (statistics.median(times) * 1e3 for times in found.values())
                more = ratio(found["ours"], found["raw"])
                table.row(f"{lengths[key]:,} messages", ours, theirs, more, most=1.8)
    raw.close()


async def _at_once(function: Callable[[int], object], number: int) -> object:
    return function(number)


def _whole(load: Callable[[], Awaitable[object]]) -> Side:
    """One time of a load, while the collector rests."""

    async def run(_: int) -> list[float]:
        gc.collect()
        gc.disable()
        try:
            start = clock()
            found = await load()
            seconds = clock() - start
        finally:
            gc.enable()
        del found
        return [seconds]

    return run


async def lists(table: Table, folder: Path, *, count: int) -> None:
    """The newest sessions of many."""
    path = folder / "lists.db"
    start = clock()
    async with opened(path) as store:
        await sessions(store.tenant(TENANT), count)
    made_s = clock() - start
    raw = Raw(copy(path))
    async with opened(path) as store:
        tenant = store.tenant(TENANT)
        assert [each.id for each in (await tenant.list(limit=50)).items] == [
            row[0] for row in raw.newest(50)
        ]

        async def ours(_: int) -> list[float]:
            times = []
            for _ in range(LOADS_A_ROUND):
                start = clock()
                await tenant.list(limit=50)
                times.append(clock() - start)
            return times

        async def theirs(_: int) -> list[float]:
            times = []
            for _ in range(LOADS_A_ROUND):
                start = clock()
                raw.newest(50)
                times.append(clock() - start)
            return times

        found = await medians({"ours": ours, "raw": theirs}, 30)
    raw.close()
    us = {name: quantile(times, 0.5) * 1e6 for name, times in found.items()}
    table.title(f"List the newest 50 of {count:,} sessions (us)")
    table.row("list", us["ours"], us["raw"], ratio(found["ours"], found["raw"]), most=3)
    table.note(f"(the sessions were made in {made_s:.0f} s, {count / made_s:,.0f} a second)")


async def sizes(table: Table, folder: Path, *, turns_count: int) -> None:
    """The file after a checkpoint, against what was given to be stored."""
    path = folder / "sizes.db"
    payload = messages = 0
    per_session = 25
    async with opened(path) as store:
        tenant = store.tenant(TENANT)
        made, ids, entries = 0, [], []
        for made, each in enumerate(various_turns(turns_count), start=1):
            entries += each.entries
            payload += sum(len(row) for _, row in each.rows)
            messages += 2
            if made % per_session == 0 or made == turns_count:
                record = await tenant.create(Record(key=f"telegram:{made}"))
                ids.append(record.id)
                await tenant.append(record.id, entries)
                entries = []
        await tenant.search("nothing")  # fills the index
    size = path.stat().st_size
    raw = Raw(copy(path))
    whole, index = raw.pages()
    raw.close()
    assert whole == size, "the WAL was not moved into the file"
    table.title("The file against the payloads in it (MB; raw: the payloads)")
    table.note(
        f"{messages:,} messages in {len(ids):,} sessions, with their receipts;"
        f" {payload / messages / 1.5:.0f} bytes a payload"
    )
    table.row("without the search index", (size - index) / 1e6, payload / 1e6, most=1.4)
    table.row("with the search index", size / 1e6, payload / 1e6, most=1.8)
