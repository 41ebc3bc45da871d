"""The PostgreSQL store against asyncpg by itself, for bench/stores.py.

A server is started for it (as for the tests: tests/postgres_server.py) in the folder of the
benchmark, with everything that makes it durable on. Ours and the raw driver have databases of their
own, one a copy of the other, and take turns.

    python bench/stores_postgresql.py JOB

is one of two processes that write at the same time.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from stores_append import BURST, CALLERS, TURNS_A_ROUND, Burst, Crowd, burst_of
from stores_data import TENANT, Turn, sessions, turns
from stores_table import Side, Table, medians, quantile, ratio

from holdfast.stores import Tenant, open_store

SETTINGS = {"shared_buffers": "256MB", "max_wal_size": "4GB", "max_connections": "100"}
ROLE = "holdfast_bench"
SECONDS = 2.0
clock = time.perf_counter


async def measure(table: Table, folder: Path, *, rounds: int, quick: bool) -> None:
    cluster = started(folder)
    try:
        await execute(cluster.url(), f"CREATE ROLE {ROLE} LOGIN")
        await execute(cluster.url(), f"CREATE DATABASE ours OWNER {ROLE}")
        async with open_store(cluster.url("ours", ROLE)) as store:
            ids = await sessions(store.tenant(TENANT), CALLERS)
        await execute(cluster.url(), "CREATE DATABASE raw TEMPLATE ours")
        ours, raw = cluster.url("ours", ROLE), cluster.url("raw")
        await one_caller(table, ours, raw, ids, rounds=20 if quick else 100)
        await many_callers(table, ours, raw, ids, rounds=rounds)
        await watchers(table, ours, ids[0], times=100 if quick else 500)
        processes(table, cluster, ids, rounds=1 if quick else 7)
    finally:
        cluster.stop("fast")


def started(folder: Path) -> Any:
    """A server whose data is in this folder."""
    sys.path.append(str(Path(__file__).parent.parent / "tests"))
    from postgres_server import Cluster, programs, reachable

    folder.chmod(0o755)  # it may run as another user
    cluster = Cluster(reachable(programs(), folder), folder / "postgresql", SETTINGS)
    cluster.create()
    cluster.start()
    return cluster


async def one_caller(
    table: Table, ours: str, raw_url: str, ids: Sequence[str], *, rounds: int
) -> None:
    """Append a turn, and wait until it is on the disk."""
    from stores_postgresql_raw import Raw

    pool = turns(TURNS_A_ROUND)
    raw = await Raw.connected(raw_url, ids)
    async with open_store(ours) as store:
        sides = {"ours": _one(store.tenant(TENANT), ids[0], pool), "raw": _raw(raw, ids[0], pool)}
        found = await medians(sides, rounds)
    await raw.close()
    table.title("PostgreSQL: one caller appends a turn (us, p50)")
    us = [quantile(found[name], 0.5) * 1e6 for name in ("ours", "raw")]
    table.row("against asyncpg, one statement", *us, ratio(found["ours"], found["raw"]), most=2)


def _one(tenant: Tenant, id: str, pool: Sequence[Turn]) -> Side:
    head: list[int] = []

    async def run(_number: int) -> list[float]:
        times = []
        for each in pool:
            start = clock()
            done = await tenant.append(id, each.entries, after=head[-1] if head else None)
            times.append(clock() - start)
            head.append(done.last)
        return times

    return run


def _raw(raw: Any, id: str, pool: Sequence[Turn]) -> Side:
    async def run(_number: int) -> list[float]:
        times = []
        for each in pool:
            start = clock()
            await raw.append([(id, each)])
            times.append(clock() - start)
        return times

    return run


async def many_callers(
    table: Table, ours: str, raw_url: str, ids: Sequence[str], *, rounds: int
) -> None:
    """Bursts of ours, of the raw driver with 256 turns a statement, and of it turn by turn."""
    from stores_postgresql_raw import Raw

    pool = turns(BURST)
    raw = await Raw.connected(raw_url, ids)
    found: dict[str, list[Burst]] = {"ours": [], "group": [], "single": []}
    async with open_store(ours) as store:
        tenant = store.tenant(TENANT)
        crowd = Crowd(tenant, ids, pool)
        crowd.heads = {id: (await tenant.tail(id, count=1) or [_Nothing])[-1].seq for id in ids}
        for _ in range(rounds):
            start = clock()
            times = await crowd.run(each=BURST)
            found["ours"].append(burst_of(times, clock() - start))
            found["group"].append(await _grouped(raw, ids, pool))
            found["single"].append(await _single(raw, ids, pool[0]))
    await raw.close()
    table.title(f"PostgreSQL: {CALLERS} callers on {CALLERS} sessions (turns/s)")
    per_s = {name: [each.per_s for each in some] for name, some in found.items()}
    middle = {name: quantile(some, 0.5) for name, some in per_s.items()}
    for name, words, least in (
        ("group", f"against {CALLERS} turns a statement", 0.7),
        ("single", "against turn by turn", 5),
    ):
        more = ratio(per_s["ours"], per_s[name])
        table.row(words, middle["ours"], middle[name], more, least=least)


class _Nothing:
    seq = 0


async def _grouped(raw: Any, ids: Sequence[str], pool: Sequence[Turn]) -> Burst:
    times = []
    begin = clock()
    for turn in pool:
        start = clock()
        await raw.append([(id, turn) for id in ids])
        times += [clock() - start] * len(ids)
    return burst_of(times, clock() - begin)


async def _single(raw: Any, ids: Sequence[str], turn: Turn) -> Burst:
    times = []
    begin = clock()
    for id in ids:
        start = clock()
        await raw.append([(id, turn)])
        times.append(clock() - start)
    return burst_of(times, clock() - begin)


async def watchers(table: Table, ours: str, id: str, *, times: int) -> None:
    """From the call of an append in one store to its entry in a watcher of another."""
    (turn,) = turns(1)
    took = []
    async with open_store(ours) as store, open_store(ours) as other:
        watching = other.tenant(TENANT).watch(id)
        first = asyncio.ensure_future(anext(watching))
        await asyncio.sleep(0.5)
        for number in range(times):
            start = clock()
            await store.tenant(TENANT).append(id, turn.entries[:1])
            await (first if number == 0 else anext(watching))
            took.append((clock() - start) * 1e3)
        await watching.aclose()  # type: ignore[attr-defined]
    table.title("PostgreSQL: from an append to a watcher in another store (ms)")
    table.row("p50", quantile(took, 0.5), most=5)
    table.row("p99", quantile(took, 0.99))


def processes(table: Table, cluster: Any, ids: Sequence[str], *, rounds: int) -> None:
    """The same callers in one process and in two; and how many cores that takes, server and all.

    The raw driver does the same beside it, in each process on two connections, as ours does: what
    two processes of it have more than one is what server and cores leave for a second one.
    """
    ours, raw = cluster.url("ours", ROLE), cluster.url("raw")
    jobs = {
        "one": [_job(ours, ids)],
        "two": [_job(ours, ids[::2]), _job(ours, ids[1::2])],
        "raw one": [_job(raw, ids, is_raw=True)],
        "raw two": [_job(raw, ids[::2], is_raw=True), _job(raw, ids[1::2], is_raw=True)],
    }
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in jobs}
    for _ in range(rounds):
        for name, some in jobs.items():
            before = _server_cpu_s(cluster)
            total, client = _together(some)
            found[name].append((total, client + (_server_cpu_s(cluster) - before) / SECONDS))
    table.title(f"PostgreSQL: 2 processes with {CALLERS // 2} callers each, against 1 (turns/s)")
    per_s = {name: [each[0] for each in some] for name, some in found.items()}
    middle = {name: quantile(some, 0.5) for name, some in per_s.items()}
    more, limit = ratio(per_s["two"], per_s["one"]), ratio(per_s["raw two"], per_s["raw one"])
    table.row("in sum", middle["two"], middle["one"], more, least=1)
    table.note(
        f"(the raw driver in 2 processes: {middle['raw two']:,.0f}, in 1: "
        f"{middle['raw one']:,.0f}, ratio {limit:.2f})"
    )
    cores = {name: quantile([each[1] for each in some], 0.5) for name, some in found.items()}
    table.note(
        f"(cores in use by clients and server: {cores['one']:.2f} with one process, "
        f"{cores['two']:.2f} with two; of the raw driver {cores['raw one']:.2f} and "
        f"{cores['raw two']:.2f}; of {os.cpu_count()})"
    )


def _server_cpu_s(cluster: Any) -> float:
    """What the server has used so far; its first process also counts for those that ended."""
    first, *others = cluster.pids()
    ticks = 0
    for pid in (first, *others):
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11 : 15 if pid == first else 13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _job(url: str, ids: Sequence[str], *, is_raw: bool = False) -> str:
    return json.dumps({"url": url, "ids": list(ids), "is_raw": is_raw})


def _together(jobs: list[str]) -> tuple[float, float]:
    """Turns a second of all processes, and how many cores they used."""
    children = [
        subprocess.Popen(
            [sys.executable, __file__, job],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for job in jobs
    ]
    for child in children:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    told = [json.loads(child.communicate()[0]) for child in children]
    return sum(each[0] for each in told), sum(each[1] for each in told)


async def work(job: dict[str, Any]) -> tuple[float, float]:
    """What one of the processes does: turns a second, and how much of a core it used."""
    if job["is_raw"]:
        return await work_raw(job)
    async with open_store(job["url"]) as store:
        tenant = store.tenant(TENANT)
        crowd = Crowd(tenant, job["ids"], turns(8))
        crowd.heads = {id: (await tenant.tail(id, count=1))[-1].seq for id in job["ids"]}
        print("ready", flush=True)
        sys.stdin.readline()
        start, cpu = clock(), time.process_time()
        times = await crowd.run(seconds=SECONDS)
        seconds = clock() - start
        return len(times) / seconds, (time.process_time() - cpu) / seconds


async def work_raw(job: dict[str, Any]) -> tuple[float, float]:
    """On each of two connections one statement after the other, with a turn for each session."""
    from stores_postgresql_raw import Raw

    halves = job["ids"][::2], job["ids"][1::2]
    raws = [await Raw.connected(job["url"], ids) for ids in halves]
    (turn,) = turns(1)
    print("ready", flush=True)
    sys.stdin.readline()
    start, cpu = clock(), time.process_time()

    async def write(raw: Any, ids: Sequence[str]) -> int:
        count = 0
        while clock() - start < SECONDS:
            await raw.append([(id, turn) for id in ids])
            count += len(ids)
        return count

    counts = await asyncio.gather(*map(write, raws, halves))
    seconds = clock() - start
    used = time.process_time() - cpu
    for raw in raws:
        await raw.close()
    return sum(counts) / seconds, used / seconds


async def execute(url: str, statement: str) -> None:
    import asyncpg

    db = await asyncpg.connect(url)
    await db.execute(statement)
    await db.close()


if __name__ == "__main__":
    print(json.dumps(asyncio.run(work(json.loads(sys.argv[1])))))
