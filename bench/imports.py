"""How long does importing holdfast take, and what does a command line pay that lists sessions?

    python bench/imports.py [--runs 21] [--sessions 100000] [--check]

Starts a fresh interpreter for each measurement: one that does nothing, one that imports
holdfast, one that uses every public name, and two that open an existing SQLite file with so many
sessions and list the newest 50, as a store and as a manager. They take turns, so that a slow
moment of the machine meets them all, and the median counts. Bytecode is compiled first, because
that is what a user has from the second start on.

With --check the exit status is 1 when `import holdfast` adds more than 60 ms, or a list 300 ms.
"""

import argparse
import asyncio
import compileall
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from holdfast.stores import Record, open_store

AT_ONCE = 1_000
LIST = """import asyncio, sys, holdfast
async def main():
    async with holdfast.{opener}("sqlite:" + sys.argv[1]) as opened:
        assert (await opened{tenant}.list(limit=50)).items
asyncio.run(main())"""

PROGRAMS = {
    "python": "pass",
    "import holdfast": "import holdfast",
    "every public name": "import holdfast\nfor name in holdfast.__all__: getattr(holdfast, name)",
    "a store lists 50": LIST.format(opener="open_store", tenant=".tenant()"),
    "a manager lists 50": LIST.format(opener="open", tenant=""),
}
BARS_MS = {"import holdfast": 60, "a store lists 50": 300, "a manager lists 50": 300}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--runs", type=int, default=21, help="of each program (default 21)")
    parser.add_argument(
        "--sessions", type=int, default=100_000, help="in the file that is listed (default 100,000)"
    )
    parser.add_argument("--check", action="store_true", help="fail when a bar is missed")
    options = parser.parse_args()
    if options.runs < 1 or options.sessions < 1:
        parser.error("--runs and --sessions must be 1 or more")

    compile_holdfast()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sessions.db"
        asyncio.run(fill(path, options.sessions))
        medians = measure(options.runs, path)
    bare = medians["python"]
    print(f"{'median of ' + str(options.runs) + ' starts':<24}{'ms':>8}{'added':>8}{'bar':>8}")
    for name, ms in medians.items():
        print(f"{name:<24}{ms:>8.1f}{ms - bare:>8.1f}{BARS_MS.get(name, ''):>8}")
    return report({name: medians[name] - bare for name in BARS_MS}) if options.check else 0


def report(added_ms: dict[str, float]) -> int:
    """Name the bars that were missed."""
    missed = [name for name, added in added_ms.items() if added > BARS_MS[name]]
    for name in missed:
        print(
            f"{name!r} adds {added_ms[name]:.1f} ms, more than {BARS_MS[name]}: see what is loaded "
            "with python -X importtime",
            file=sys.stderr,
        )
    return 1 if missed else 0


async def fill(path: Path, count: int) -> None:
    """Make the file that is listed."""
    async with open_store(f"sqlite:{path}", durability="fast") as store:
        tenant = store.tenant()
        for first in range(0, count, AT_ONCE):
            numbers = range(first, min(first + AT_ONCE, count))
            made = (tenant.create(Record(key=f"telegram:{number}")) for number in numbers)
            await asyncio.gather(*made)


def compile_holdfast() -> None:
    """Write the bytecode, so that no measurement pays for compiling."""
    spec = importlib.util.find_spec("holdfast")
    if spec is None or spec.origin is None:
        sys.exit("holdfast is not installed here: run this with the Python of scripts/test")
    compileall.compile_dir(Path(spec.origin).parent, quiet=1)


def measure(runs: int, path: Path) -> dict[str, float]:
    """Return the median time of each program in milliseconds."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    times: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for run in range(runs + 1):
        for name, code in PROGRAMS.items():
            start = time.perf_counter()
            command = [sys.executable, "-I", "-c", code, str(path)]
            subprocess.run(command, check=True, env=environment)
            if run > 0:  # the first round warms the caches of the disk
                times[name].append((time.perf_counter() - start) * 1000)
    return {name: statistics.median(taken) for name, taken in times.items()}


if __name__ == "__main__":
    sys.exit(main())
