"""`python -m holdfast.testing.replay FOLDER`: judge the adapters on recorded traffic.

Exits with 0 when every answer is read as it is and sendable again, and 98 % of the next requests
say the same as the recorded ones; with 1 when not; with 2 when nothing could be judged.
"""

import argparse
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from holdfast.testing.replay.adapter import Adapter
from holdfast.testing.replay.check import check_folder, table

OURS = "holdfast.testing.replay.ours:adapters"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; its exit code."""
    parser = argparse.ArgumentParser(prog="python -m holdfast.testing.replay", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the recordings are")
    parser.add_argument(
        "--cuts",
        type=int,
        metavar="STEP",
        help="also cut every stream at its events and at every STEP-th byte of its end",
    )
    parser.add_argument(
        "--adapters",
        default=OURS,
        metavar="MODULE:FUNCTION",
        help="what is judged: a function that returns an Adapter for each wire",
    )
    chosen = parser.parse_args(arguments)
    if not chosen.folder.is_dir():
        return _refuse(f"{chosen.folder} is not a folder")
    try:
        adapters = _adapters(chosen.adapters)
    except (ImportError, AttributeError, ValueError) as error:
        return _refuse(f"there is nothing to judge in {chosen.adapters}: {error}")
    report = check_folder(chosen.folder, adapters, cut_step=chosen.cuts)
    for line in table(report):
        print(line)  # noqa: T201 - it is a command
    if not report.share("a")[1]:
        return 2
    return 0 if report.is_good else 1


def _adapters(address: str) -> Mapping[str, Adapter]:
    module, _, name = address.partition(":")
    made: Callable[[], Mapping[str, Adapter]] = getattr(importlib.import_module(module), name)
    return made()


def _refuse(why: str) -> int:
    print(why, file=sys.stderr)  # noqa: T201
    return 2


if __name__ == "__main__":
    sys.exit(main())
