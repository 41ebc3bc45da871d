"""A kill at the n-th Python line that a program executes in given files, in any thread.

    # in the program, at the start of a run
    kill_at(modules("shop.stores"), number)

    # once before, to see which lines there are
    write = record(modules("shop.stores"))
    ...
    write(path)
    numbers = first_of_each(path)       # where each line is executed for the first time

The process is killed as it comes to a line; the line itself has not run.
"""

import itertools
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any

from holdfast.testing.faults import forks


def missing() -> str:
    """Why lines cannot be counted here, or ""."""
    return forks.missing()


def modules(*names: str) -> list[str]:
    """The files of these modules; of a package, all files in it."""
    found: list[str] = []
    for name in names:
        __import__(name)
        file = Path(str(sys.modules[name].__file__))
        inside = sorted(file.parent.rglob("*.py")) if file.name == "__init__.py" else [file]
        found += [str(each) for each in inside]
    return found


def kill_at(files: Iterable[str], number: int) -> None:
    """From now on count the lines executed in `files`, and kill this process at the `number`th."""

    def on_line(at: int, frame: FrameType) -> None:  # noqa: ARG001
        if at == number:
            os.kill(os.getpid(), signal.SIGKILL)

    _trace(files, on_line)


def record(files: Iterable[str]) -> Callable[[str | Path], None]:
    """Note every line executed in `files`; what is returned writes them to a file."""
    seen: list[tuple[int, str]] = []

    def on_line(at: int, frame: FrameType) -> None:
        seen.append((at, f"{frame.f_code.co_filename}:{frame.f_lineno}"))

    _trace(files, on_line)

    def write(path: str | Path) -> None:
        sys.settrace(None)
        Path(path).write_text(json.dumps(sorted(seen)), encoding="utf-8")

    return write


def first_of_each(path: str | Path) -> list[int]:
    """Of what `record` wrote: the number at which each line was executed first."""
    first: dict[str, int] = {}
    for number, line in json.loads(Path(path).read_text(encoding="utf-8")):
        first.setdefault(line, number)
    return sorted(first.values())


def _trace(files: Iterable[str], on_line: Callable[[int, FrameType], None]) -> None:
    wanted = frozenset(files)
    numbers = itertools.count(1)  # one for all threads; taking the next is atomic

    def trace(frame: FrameType, event: str, argument: Any) -> Any:  # noqa: ARG001
        if frame.f_code.co_filename not in wanted:
            return None
        if event == "line":
            on_line(next(numbers), frame)
        return trace

    threading.settrace(trace)
    sys.settrace(trace)
