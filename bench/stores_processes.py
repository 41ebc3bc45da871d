"""Processes on one file, for bench/stores.py.

    python bench/stores_processes.py JOB

is one of them: it opens the file, says so, waits for a line, writes, and prints what came of it.
"""

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from stores_append import CALLERS, Crowd
from stores_data import TENANT, copy, opened, session, sessions, turn, turns
from stores_raw import Raw, locked
from stores_table import Table, quantile, ratio

from holdfast import Message

PROCESSES = 4
SECONDS = 2.0
SAME = 150  # turns of each process on the one session


class Round(NamedTuple):
    """Turns a second of all processes together, and the p99 of all appends in ms."""

    per_s: float
    p99: float


async def measure(table: Table, folder: Path, *, rounds: int) -> None:
    """The same callers in one process and in four; then four processes on one session."""
    path = folder / "processes.db"
    async with opened(path) as store:
        ids = await sessions(store.tenant(TENANT), CALLERS)
        shared = await session(store.tenant(TENANT), "shared", 0, [])
    other = copy(path)
    split = [ids[number::PROCESSES] for number in range(PROCESSES)]
    heads = dict.fromkeys(ids, 0)
    found: dict[str, list[Round]] = {"1": [], "4": [], "raw 1": [], "raw 4": []}
    for _ in range(rounds):
        for count, parts in (("1", [ids]), ("4", split)):
            found[count].append(_ours(path, parts, heads))
            found[f"raw {count}"].append(_raw(other, parts))
    lost = await _lost(path, heads)
    table.title(f"4 processes with {CALLERS // PROCESSES} callers each, against 1 with {CALLERS}")
    _compare(table, "turns/s", found, "per_s", {"least": 0.7})
    _compare(table, "p99, ms", found, "p99", {"most": 3.0})
    table.row("entries that are missing", lost, most=0)
    missing, torn, errors = await _one_session(path, shared)
    table.title(f"4 processes, {SAME} turns each on one session, behind whatever is there")
    table.row("errors", errors, most=0)
    table.row("turns that are missing", missing, most=0)
    table.row("turns that do not stand together", torn, most=0)


def _compare(
    table: Table, name: str, found: dict[str, list[Round]], field: str, bar: dict[str, float]
) -> None:
    one, four, raw_one, raw_four = (
        [getattr(each, field) for each in found[name]] for name in ("1", "4", "raw 1", "raw 4")
    )
    table.row(name, quantile(four, 0.5), quantile(one, 0.5), ratio(four, one), **bar)
    left, right = quantile(raw_four, 0.5), quantile(raw_one, 0.5)
    more = ratio(raw_four, raw_one)
    table.note(
        f"(the raw driver in 4 processes: {left:,.1f}, in 1: {right:,.1f}, ratio {more:.2f})"
    )


def _run(jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Start a process for each job, let them begin together, and collect what they print."""
    children = [
        subprocess.Popen(
            [sys.executable, __file__, json.dumps(job)],
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
    return [json.loads(child.communicate()[0]) for child in children]


def _ours(path: Path, split: list[list[str]], heads: dict[str, int]) -> Round:
    found = _run([{"path": str(path), "heads": {id: heads[id] for id in ids}} for ids in split])
    for each in found:
        heads.update(each["heads"])
    return _together(found)


def _raw(path: Path, split: list[list[str]]) -> Round:
    return _together(_run([{"path": str(path), "raw": ids} for ids in split]))


def _together(found: list[dict[str, Any]]) -> Round:
    times = [seconds for each in found for seconds in each["times"]]
    return Round(len(times) / max(each["took"] for each in found), quantile(times, 0.99) * 1e3)


async def _lost(path: Path, heads: dict[str, int]) -> int:
    """How many entries that were acknowledged cannot be read."""
    lost = 0
    async with opened(path) as store:
        for id, head in heads.items():
            there = {each.seq for each in await store.tenant(TENANT).read(id)}
            lost += len(set(range(1, head + 1)) - there)
    return lost


async def _one_session(path: Path, id: str) -> tuple[int, int, int]:
    """Turns that are missing, those that are torn, and errors, of four writers on one session."""
    found = _run([{"path": str(path), "id": id, "name": str(n)} for n in range(PROCESSES)])
    async with opened(path) as store:
        stored = await store.tenant(TENANT).read(id)
    said = [each.entry.text for each in stored if isinstance(each.entry, Message)]
    pairs = set(zip(said[::2], said[1::2], strict=True))
    wanted = {(f"{n}:{i} said", f"{n}:{i} answered") for n in range(PROCESSES) for i in range(SAME)}
    missing = len({first for first, _ in wanted} - set(said))
    return missing, len(wanted - pairs) - missing, sum(each["errors"] for each in found)


# In the process itself


async def work(job: dict[str, Any]) -> dict[str, Any]:
    path = Path(job["path"])
    if "raw" in job:
        return work_raw(path, job["raw"])
    async with opened(path) as store:
        tenant = store.tenant(TENANT)
        if "id" in job:
            name = job["name"]
            mine = [turn(f"{name}:{i} said", f"{name}:{i} answered") for i in range(SAME)]
            _wait()
            errors = 0
            for each in mine:
                try:
                    await tenant.append(job["id"], each.entries, after=None)
                except Exception as error:  # noqa: BLE001 - counted, whatever it is
                    print(repr(error), file=sys.stderr)
                    errors += 1
            return {"errors": errors}
        crowd = Crowd(tenant, [], turns(8))
        crowd.heads = job["heads"]
        _wait()
        start = time.perf_counter()
        times = await crowd.run(seconds=SECONDS)
        return {"times": times, "took": time.perf_counter() - start, "heads": crowd.heads}


def work_raw(path: Path, ids: list[str]) -> dict[str, Any]:
    """One transaction after the other, with a turn for each session."""
    raw, pool = Raw(path), turns(8)
    _wait()
    times: list[float] = []
    begin = time.perf_counter()
    while (start := time.perf_counter()) < begin + SECONDS:
        with locked(path):
            raw.append([(id, pool[0]) for id in ids])
        times += [time.perf_counter() - start] * len(ids)
    took = time.perf_counter() - begin
    raw.close()
    return {"times": times, "took": took}


def _wait() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    print(json.dumps(asyncio.run(work(json.loads(sys.argv[1])))))
