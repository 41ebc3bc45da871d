"""The JSONL store, for bench/stores.py: a turn appended to nanobot's files."""

import time
from collections.abc import Sequence
from pathlib import Path

from stores_data import TENANT, Turn, session, turns
from stores_jsonl_raw import Raw
from stores_table import Side, Table, medians, quantile, ratio

from holdfast.stores import Store, Tenant, open_store

TURNS_A_ROUND = 20
clock = time.perf_counter


async def appends(table: Table, folder: Path, *, long: int, rounds: int) -> None:
    """Append a turn to a short session and to a long one, beside bare writes."""
    pool = turns(TURNS_A_ROUND)
    place = folder / "sessions"
    async with open_store(f"jsonl:{place}") as store:
        tenant = store.tenant(TENANT)
        near = [await session(tenant, f"short:{each}", 100, pool) for each in range(rounds)]
        far = await session(tenant, "long", long, pool)
        sizes = await _sizes(store, tenant, far, pool[0])
        table.title("A turn appended to nanobot's files (us, p50)")
        table.note(f"a turn is {sizes['main']} bytes in nanobot's file, {sizes['log']} in ours")
        pair = {"raw-log": sizes["log"], "raw-main": sizes["main"]}
        raw = {
            "two": Raw(folder, pair, 1 << 20),
            "one": Raw(folder, {"raw-one": sizes["main"]}, 1 << 20),
            "two, no time": Raw(folder, pair, 1 << 20, has_time=False),
            "as ours": Raw(folder, pair, 1 << 20, has_room=True),
            "one, no time": Raw(folder, {"raw-one": sizes["main"]}, 1 << 20, has_time=False),
        }
        sides = {
            "near": _ours(tenant, near, pool),
            "far": _ours(tenant, [far], pool),
            **{name: _bare(each) for name, each in raw.items()},
        }
        found = await medians(sides, rounds)
    for each in raw.values():
        each.close()
    _report(table, found, long)


async def _sizes(store: Store, tenant: Tenant, id: str, turn: Turn) -> dict[str, int]:
    """How many bytes a turn takes in each of the two files."""
    before = _largest(store)
    await tenant.append(id, turn.entries)
    after = _largest(store)
    return {name: after[name] - before[name] for name in after}


def _largest(store: Store) -> dict[str, int]:
    path: Path = store.path  # type: ignore[attr-defined]
    files = [each for each in path.rglob("*") if each.is_file()]
    return {
        "main": max(each.stat().st_size for each in files if each.suffix == ".jsonl"),
        # Without the room at its end, which holds nothing yet.
        "log": max(len(each.read_bytes().rstrip(b"\0")) for each in files if each.suffix == ".log"),
    }


def _ours(tenant: Tenant, ids: Sequence[str], pool: Sequence[Turn]) -> Side:
    async def run(number: int) -> list[float]:
        id = ids[number % len(ids)]
        head = (await tenant.tail(id, count=1))[-1].seq
        times = []
        for each in pool:
            start = clock()
            head = (await tenant.append(id, each.entries, after=head)).last
            times.append(clock() - start)
        return times

    return run


def _bare(raw: Raw) -> Side:
    async def run(number: int) -> list[float]:  # noqa: ARG001 - all the same here
        times = []
        for _ in range(TURNS_A_ROUND):
            start = clock()
            raw.append()
            times.append(clock() - start)
        return times

    return run


def _report(table: Table, found: dict[str, list[float]], long: int) -> None:
    us = {name: quantile(times, 0.5) * 1e6 for name, times in found.items()}
    for name, words in (("near", "100"), ("far", f"{long:,}")):
        two, one = ratio(found[name], found["two"]), ratio(found[name], found["one"])
        table.row(f"to {words} messages, and both files bare", us[name], us["two"], two, most=1.5)
        table.row(f"to {words} messages, and one file bare", us[name], us["one"], one, most=2.3)
    table.note(
        f"both files bare are {ratio(found['two'], found['one']):.2f} times one file bare: "
        "two syncs and three writes, against one and two"
    )
    two, one = (quantile(found[f"{each}, no time"], 0.5) * 1e6 for each in ("two", "one"))
    table.note(f"bare without the 26 characters of the time: {two:.0f} us, and {one:.0f} us")
    for each in ("two", "one"):
        near = ratio(found["near"], found[f"{each}, no time"])
        table.note(f"a turn to 100 messages is {near:.2f} times the bare {each} without them")
    floor, times = quantile(found["as ours"], 0.5) * 1e6, ratio(found["as ours"], found["one"])
    table.note(
        f"writes and syncs as ours, and no Python: {floor:.0f} us, {times:.2f} times one file"
    )
    table.row(f"growth, 100 to {long:,} messages", ratio(found["far"], found["near"]), most=1.1)
