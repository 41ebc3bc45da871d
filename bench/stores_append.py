"""Appends, for bench/stores.py: one caller, and 256 callers at once."""

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from stores_data import TENANT, Turn, copy, opened, session, sessions, turns
from stores_raw import Raw, check
from stores_table import Side, Table, medians, quantile, ratio

from holdfast.stores import Tenant

CALLERS = 256
TURNS_A_ROUND = 20
BURST = 8  # turns of each caller in one round
INDEX_S = 1.3  # the search index is filled a second after the first write
clock = time.perf_counter


# One caller


async def one_caller(table: Table, folder: Path, *, long: int, rounds: int) -> None:
    """Append a turn, and wait until it is on the disk."""
    pool = turns(TURNS_A_ROUND)
    path = folder / "one.db"
    async with opened(path) as store:
        tenant = store.tenant(TENANT)
        short = [await session(tenant, f"short:{each}", 100, pool) for each in range(rounds)]
        far = await session(tenant, "long", long, pool)
        probe = await session(tenant, "probe", 0, pool)
        await tenant.search("nothing")  # fills the index
    other = copy(path)
    table.title("One caller appends a turn (us, p50)")
    table.note(await _same_rows(path, other, probe, pool[0]))
    raw = Raw(other)
    async with opened(path) as store:
        tenant = store.tenant(TENANT)
        sides = {
            "near": _ours(tenant, short, pool),
            "raw near": _theirs(raw, short, pool),
            "far": _ours(tenant, [far], pool),
            "raw far": _theirs(raw, [far], pool),
        }
        found = await medians(sides, rounds)
    raw.close()
    raw = Raw(other, durability="fast")
    async with opened(path, durability="fast") as store:
        tenant = store.tenant(TENANT)
        sides = {"fast": _ours(tenant, [far], pool), "raw fast": _theirs(raw, [far], pool)}
        found |= await medians(sides, rounds)
    raw.close()
    _report_one(table, found, long)


def _report_one(table: Table, found: dict[str, list[float]], long: int) -> None:
    us = {name: quantile(times, 0.5) * 1e6 for name, times in found.items()}
    ratios = {name: ratio(found[name], found[f"raw {name}"]) for name in ("near", "far", "fast")}
    near, far, fast = ((us[name], us[f"raw {name}"], ratios[name]) for name in ratios)
    table.row("append a turn to 100 messages", *near, most=1.6)
    table.row(f"append a turn to {long:,} messages", *far, most=1.6)
    table.row(f"growth, 100 to {long:,} messages", ratio(found["far"], found["near"]), most=1.1)
    table.note(f"(the raw driver: {ratio(found['raw far'], found['raw near']):.2f})")
    table.row('without a sync (level "fast", synchronous=NORMAL)', *fast)


async def _same_rows(path: Path, other: Path, id: str, turn: Turn) -> str:
    """Let both sides write a turn, and see that they write the same rows."""
    before, raw = copy(other), Raw(other)
    async with opened(path) as store:
        await store.tenant(TENANT).append(id, turn.entries, after=0)
    raw.append([(id, turn)])
    raw.close()
    return check(before, path, other)


def _ours(tenant: Tenant, ids: Sequence[str], pool: Sequence[Turn]) -> Side:
    heads: dict[str, int] = {}

    async def run(number: int) -> list[float]:
        id = ids[number % len(ids)]
        if id not in heads:
            heads[id] = (await tenant.tail(id, count=1))[-1].seq
        times = []
        for each in pool:
            start = clock()
            done = await tenant.append(id, each.entries, after=heads[id])
            times.append(clock() - start)
            heads[id] = done.last
        return times

    return run


def _theirs(raw: Raw, ids: Sequence[str], pool: Sequence[Turn]) -> Side:
    async def run(number: int) -> list[float]:
        id = ids[number % len(ids)]
        times = []
        for each in pool:
            start = clock()
            raw.append([(id, each)])
            times.append(clock() - start)
        return times

    return run


# 256 callers


Append = Callable[[Sequence[tuple[str, Turn]]], None]


class Burst(NamedTuple):
    per_s: float
    p50: float
    p99: float


def burst_of(times: Sequence[float], seconds: float) -> Burst:
    return Burst(len(times) / seconds, quantile(times, 0.5), quantile(times, 0.99))


class Crowd:
    """Callers, each on a session of his own, who go on as soon as they are answered."""

    def __init__(self, tenant: Tenant, ids: Sequence[str], pool: Sequence[Turn]) -> None:
        self._tenant = tenant
        self._pool = pool
        self.heads = dict.fromkeys(ids, 0)

    async def run(self, *, each: int = 0, seconds: float = 0) -> list[float]:
        """So many turns each, or for so long: the time that each append took."""
        times: list[float] = []
        until = clock() + seconds if seconds else float("inf")
        await asyncio.gather(*(self._caller(id, each or 10**9, until, times) for id in self.heads))
        return times

    async def _caller(self, id: str, most: int, until: float, times: list[float]) -> None:
        head, number = self.heads[id], 0
        while number < most and (start := clock()) < until:
            turn = self._pool[number % len(self._pool)]
            head = (await self._tenant.append(id, turn.entries, after=head)).last
            times.append(clock() - start)
            number += 1
        self.heads[id] = head


async def many_callers(folder: Path, *, rounds: int, sustained_s: float) -> dict[str, list[Burst]]:
    """Bursts of ours, of the raw driver in transactions of 256 turns, and of it turn by turn."""
    pool = turns(BURST)
    path = folder / "many.db"
    async with opened(path) as store:
        ids = await sessions(store.tenant(TENANT), CALLERS)
    raw = Raw(copy(path))
    names = ("ours", "group", "made", "single", "sustained")
    found: dict[str, list[Burst]] = {name: [] for name in names}
    async with opened(path) as store:
        tenant = store.tenant(TENANT)
        crowd = Crowd(tenant, ids, pool)
        for _ in range(rounds):
            start = clock()
            times = await crowd.run(each=BURST)
            found["ours"].append(burst_of(times, clock() - start))
            found["group"].append(_grouped(raw.append, ids, pool))
            found["made"].append(_grouped(raw.append_made, ids, pool))
            found["single"].append(_single(raw, ids, pool[0]))
            await asyncio.sleep(INDEX_S)  # so that the index is not filled in the next round
            await tenant.search("nothing")
        if sustained_s:
            start = clock()
            times = await crowd.run(seconds=sustained_s)
            found["sustained"].append(burst_of(times, clock() - start))
        await _check_nothing_lost(tenant, crowd)
    raw.close()
    return found


def _grouped(append: Append, ids: Sequence[str], pool: Sequence[Turn]) -> Burst:
    times = []
    begin = clock()
    for turn in pool:
        start = clock()
        append([(id, turn) for id in ids])
        times += [clock() - start] * len(ids)
    return burst_of(times, clock() - begin)


def _single(raw: Raw, ids: Sequence[str], turn: Turn) -> Burst:
    times = []
    begin = clock()
    for id in ids:
        start = clock()
        raw.append([(id, turn)])
        times.append(clock() - start)
    return burst_of(times, clock() - begin)


async def _check_nothing_lost(tenant: Tenant, crowd: Crowd) -> None:
    for id, head in crowd.heads.items():
        stored = await tenant.read(id)
        assert [each.seq for each in stored] == list(range(1, head + 1)), "entries are missing"


def report(table: Table, found: dict[str, list[Burst]], *, group: float, single: float) -> None:
    """Rows for what `many_callers` found; `group` and `single` are the bars."""

    def per_s(name: str) -> list[float]:
        return [each.per_s for each in found[name]]

    def middle(values: Sequence[float]) -> float:
        return quantile(values, 0.5)

    ours, grouped, alone = per_s("ours"), per_s("group"), per_s("single")
    table.row(
        "against transactions of 256 turns",
        *(middle(ours), middle(grouped), ratio(ours, grouped)),
        least=group or None,
    )
    made = per_s("made")
    table.note(
        "(the raw driver, when it has to encode, seal and link what it writes: "
        f"{middle(made):,.0f}, {ratio(made, grouped):.2f} of itself; "
        f"ours against that: {ratio(ours, made):.2f})"
    )
    table.row(
        "against turn by turn",
        *(middle(ours), middle(alone), ratio(ours, alone)),
        least=single,
    )
    p50 = middle([each.p50 for each in found["ours"]]) * 1e3
    p99 = middle([each.p99 for each in found["ours"]]) * 1e3
    spread = middle([each.p99 / each.p50 for each in found["ours"]])
    table.row("an append, ms: p99 against p50", p99, p50, spread, most=10)
    for each in found["sustained"]:
        table.row(
            "for long, the search index filled meanwhile",
            *(each.per_s, middle(grouped), each.per_s / middle(grouped)),
        )
        table.row("  an append, ms: p99 against p50", each.p99 * 1e3, each.p50 * 1e3)
