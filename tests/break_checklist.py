"""Breaks behaviours that docs/checklist.md calls done, and counts how many the tests notice.

    scripts/break-checklist                 ten items, chosen at random
    scripts/break-checklist --all           every one
    scripts/break-checklist S0-18 S4-19     these

Each item is broken in a copy of the source, as tests/breaks.py says, and the tests that the page
names for it are run against the copy. A test that passes all the same protects nothing. The exit
status is 1 when a break goes unnoticed. The seed that is printed repeats a choice.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from breaks import BREAKS, Break
from checklist import ROOT, rows


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/break-checklist",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("items", nargs="*", help="the items to break")
    parser.add_argument("--all", action="store_true", help="break every item that is done")
    parser.add_argument("--count", type=int, default=10, help="how many at random (default 10)")
    parser.add_argument("--seed", type=int, default=None, help="repeats a choice")
    options = parser.parse_args()

    tests = {row.item: row.tests for row in rows() if row.state == "done"}
    if unknown := [item for item in options.items if item not in tests]:
        parser.error(f"not done, so it cannot be broken: {', '.join(unknown)}")
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    chosen = options.items or list(tests)
    if not options.items and not options.all:
        chosen = random.Random(seed).sample(chosen, min(options.count, len(chosen)))
        print(f"seed {seed}: {len(chosen)} of {len(tests)} items")

    whole = sorted({test for item in chosen for test in tests[item]})
    if run(whole, ROOT / "src") != 0:
        print("the tests fail before anything is broken: mend them first", file=sys.stderr)
        return 2
    missed = [item for item in chosen if not notices(item, tests[item])]
    print(f"{len(chosen) - len(missed)} of {len(chosen)} breaks were noticed")
    return 1 if missed else 0


def notices(item: str, tests: list[str]) -> bool:
    """Whether the tests of an item fail when it is broken."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        apply(BREAKS[item], Path(folder))
        status = run(tests, source)
    is_noticed = status == 1
    words = {0: "NOT NOTICED", 1: "noticed"}.get(status, f"pytest ended with status {status}")
    print(f"{item:<8}{words:<14}{BREAKS[item].file}: {BREAKS[item].why}", flush=True)
    return is_noticed


def apply(found: Break, folder: Path) -> None:
    """Put the break in the copy."""
    path = folder / found.file
    text = path.read_text(encoding="utf-8")
    assert text.count(found.old) == 1, f"{found.file} has changed: mend tests/breaks.py"
    path.write_text(text.replace(found.old, found.new), encoding="utf-8")


def run(tests: list[str], source: Path) -> int:
    """The exit status of pytest, with `source` before the installed package."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=300)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
