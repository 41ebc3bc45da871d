"""How long does importing holdfast take?

    python bench/imports.py [--runs 21] [--check]

Starts a fresh interpreter for each measurement: one that does nothing, one that imports
holdfast, and one that uses every public name. The three take turns, so that a slow moment of
the machine meets them all, and the median counts. Bytecode is compiled first, because that
is what a user has from the second start on.

With --check the exit status is 1 when `import holdfast` adds more than 60 ms.
"""

import argparse
import compileall
import importlib.util
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ADDED_MS_MAX = 60

PROGRAMS = {
    "python": "pass",
    "import holdfast": "import holdfast",
    "every public name": "import holdfast\nfor name in holdfast.__all__: getattr(holdfast, name)",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--runs", type=int, default=21, help="of each program (default 21)")
    parser.add_argument(
        "--check",
        action="store_true",
        help=f"fail when the import adds more than {ADDED_MS_MAX} ms",
    )
    options = parser.parse_args()
    if options.runs < 1:
        parser.error("--runs must be 1 or more")

    compile_holdfast()
    medians = measure(options.runs)
    bare = medians["python"]
    print(f"{'median of ' + str(options.runs) + ' starts':<24}{'ms':>8}{'added':>8}")
    for name, ms in medians.items():
        print(f"{name:<24}{ms:>8.1f}{ms - bare:>8.1f}")

    added = medians["import holdfast"] - bare
    if options.check and added > ADDED_MS_MAX:
        print(
            f"import holdfast adds {added:.1f} ms, more than {ADDED_MS_MAX}: see what it loads "
            "with python -X importtime -c 'import holdfast'",
            file=sys.stderr,
        )
        return 1
    return 0


def compile_holdfast() -> None:
    """Write the bytecode, so that no measurement pays for compiling."""
    spec = importlib.util.find_spec("holdfast")
    if spec is None or spec.origin is None:
        sys.exit("holdfast is not installed here: run this with the Python of scripts/test")
    compileall.compile_dir(Path(spec.origin).parent, quiet=1)


def measure(runs: int) -> dict[str, float]:
    """Return the median time of each program in milliseconds."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    times: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for run in range(runs + 1):
        for name, code in PROGRAMS.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, "-I", "-c", code], check=True, env=environment)
            if run > 0:  # the first round warms the caches of the disk
                times[name].append((time.perf_counter() - start) * 1000)
    return {name: statistics.median(taken) for name, taken in times.items()}


if __name__ == "__main__":
    sys.exit(main())
