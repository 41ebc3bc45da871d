"""Our stores in a benchmark of session stores that other libraries run in too.

    python bench/peers.py [--work FOLDER] HARNESS w1 --sizes 1000 --media disk
    python bench/peers.py [--work FOLDER] --report HARNESS

HARNESS is the folder of that benchmark: `bench.py`, `worker.py` and `adapters/`, where a contender
is a class with `open`, `append`, `history` and a few more. It is copied to a working folder, and
bench/adapter_holdfast.py is put beside its adapters. What follows HARNESS goes to its
`bench.py`; `venvs` comes first and installs the contenders, for which it needs `uv`.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAMES = {"holdfast-sqlite": "Sqlite", "holdfast-sqlite-fast": "SqliteFast"}
IMPORT = "from holdfast.stores import open_store; open_store('sqlite:unused.db')"


def prepare(harness: Path, work: Path) -> Path:
    """The harness with our adapter in it."""
    target = work / "bench"
    shutil.copytree(harness, target, dirs_exist_ok=True)
    shutil.copy(HERE / "adapter_holdfast.py", target / "adapters")
    packages = ["--reinstall-package", "holdfast", str(HERE.parent)]
    lines = [
        f"REGISTRY[{name!r}] = ('adapter_holdfast', {kind!r}, 'holdfast', {packages!r})"
        for name, kind in NAMES.items()
    ]
    lines.append(f"IMPORTS['holdfast-sqlite'] = {IMPORT!r}")
    registry = target / "adapters" / "__init__.py"
    text = registry.read_text(encoding="utf-8").replace("\n\ndef load(", "\n{}\n\n\ndef load(", 1)
    registry.write_text(text.replace("{}", "\n".join(lines), 1), encoding="utf-8")
    return target


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("harness", type=Path, help="the folder of the benchmark")
    parser.add_argument("--work", type=Path, help="where to keep copy, results and stores")
    parser.add_argument("--report", action="store_true", help="print the tables, run nothing")
    parser.add_argument("rest", nargs=argparse.REMAINDER, help="the workload and its options")
    options = parser.parse_args()
    work = options.work or Path(tempfile.gettempdir()) / "holdfast-peers"
    work.mkdir(parents=True, exist_ok=True)
    target = prepare(options.harness, work)
    defaults = {"BENCH_TMP": work, "BENCH_LOCK": work / "lock", "BENCH_VENVS": work / "venvs"}
    env = {name: str(path) for name, path in defaults.items()} | os.environ
    command = ["report.py"] if options.report else ["bench.py", *options.rest]
    return subprocess.run([sys.executable, *command], cwd=target, env=env).returncode


if __name__ == "__main__":
    sys.exit(main())
