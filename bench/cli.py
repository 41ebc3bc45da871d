"""How long does the program take to start, and to list?

    python bench/cli.py [--sessions 100000] [--runs 21] [--check] [--store FILE]

Starts a fresh process for each measurement: a Python that does nothing, `holdfast --help`, and
`holdfast ls` on a store of many conversations. They take turns, so that a slow moment of the
machine meets them all, and the median counts. Bytecode is compiled first, because that is what a
user has from the second start on. The store is made first with the library; with --store it is kept
and found again.

With --check the exit status is 1 when --help takes more than 150 ms, or ls 300 ms more than that.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from imports import compile_holdfast

import holdfast
from holdfast import Message
from holdfast.stores.values import Record

HELP_MS_MAX = 150
LS_ADDED_MS_MAX = 300
AT_ONCE = 2_000  # sessions that are made side by side: they share commits


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--sessions", type=int, default=100_000, help="in the store")
    parser.add_argument("--runs", type=int, default=21, help="of each program (default 21)")
    parser.add_argument("--check", action="store_true", help="fail when a bar is missed")
    parser.add_argument("--store", type=Path, help="where the store is, or is to be kept")
    options = parser.parse_args()
    if options.runs < 1 or options.sessions < 1:
        parser.error("--runs and --sessions must be 1 or more")
    compile_holdfast()
    with tempfile.TemporaryDirectory() as folder:
        path = options.store or Path(folder) / "bench.db"
        if not path.exists():
            start = time.perf_counter()
            asyncio.run(make(f"sqlite:{path}", options.sessions))
            took = time.perf_counter() - start
            print(f"{options.sessions:,} sessions made in {took:.0f} s\n")
        return report(measure(path, options.runs), check=options.check)


async def make(url: str, count: int) -> None:
    """Conversations of two messages each, the last written to now."""
    async with holdfast.open(url, durability="fast") as sessions:
        tenant = sessions._tenant
        now = datetime.now(UTC)

        async def one(number: int) -> None:
            when = now - timedelta(seconds=count - number)
            record = Record(key=f"telegram:{number}", created_at=when, updated_at=when)
            said = Message.user(f"Question {number}: how is the weather in Turin today?")
            await tenant.create(record, [said, Message.assistant("Sunny.")], keep_times=True)

        for start in range(0, count, AT_ONCE):
            await asyncio.gather(*map(one, range(start, min(count, start + AT_ONCE))))


def measure(path: Path, runs: int) -> dict[str, float]:
    """The median time of each program in milliseconds."""
    installed = Path(sys.executable).parent / "holdfast"
    program = [str(installed)] if installed.exists() else [sys.executable, "-m", "holdfast"]
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HOLDFAST_", "PYTHON"))}
    with tempfile.TemporaryDirectory() as home:
        environment = kept | {"HOLDFAST_HOME": home, "HOLDFAST_STORE": f"sqlite:{path}"}
        programs = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "holdfast --help": [*program, "--help"],
            "holdfast ls": [*program, "ls"],
            "holdfast ls --json": [*program, "ls", "--json"],
            "holdfast show @": [*program, "show", "@"],
        }
        times: dict[str, list[float]] = {name: [] for name in programs}
        for run in range(runs + 1):
            for name, command in programs.items():
                start = time.perf_counter()
                subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
                if run > 0:  # the first round warms the caches of the disk
                    times[name].append((time.perf_counter() - start) * 1000)
    return {name: statistics.median(taken) for name, taken in times.items()}


def report(medians: dict[str, float], *, check: bool) -> int:
    """Print the table; the exit status."""
    help_ms = medians["holdfast --help"]
    bars = {"holdfast --help": HELP_MS_MAX, "holdfast ls": help_ms + LS_ADDED_MS_MAX}
    print(f"{'median, ms':<24}{'took':>8}{'over --help':>13}{'bar':>8}")
    missed = 0
    for name, ms in medians.items():
        bar = bars.get(name)
        is_missed = bar is not None and ms > bar
        missed += is_missed
        over = f"{ms - help_ms:.1f}" if ms > help_ms else ""
        shown = "" if bar is None else f"{bar:>8.0f}"
        print(f"{name:<24}{ms:>8.1f}{over:>13}{shown:>8}{'  MISSED' if is_missed else ''}")
    print("all bars met" if not missed else f"{missed} bars missed")
    return 1 if check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
