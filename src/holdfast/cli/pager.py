"""A pager: what is longer than the screen is shown by `less`, or by what PAGER names."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


class _Enough(Exception):
    """Whoever reads has closed the pager."""


class Pager:
    """Takes text as a stream does, and starts the pager once it is more than fits."""

    def __init__(self, lines_max: int) -> None:
        self._lines_max = lines_max
        self._held: list[str] = []
        self._lines = 0
        self._process: subprocess.Popen[str] | None = None
        self._is_straight = False

    def write(self, text: str) -> None:
        if self._is_straight:
            sys.stdout.write(text)
            return
        if self._process is None:
            self._held.append(text)
            self._lines += text.count("\n")
            if self._lines <= self._lines_max:
                return
            self._process = _started()
            self._is_straight = self._process is None
            text, self._held = "".join(self._held), []
            if self._process is None:
                sys.stdout.write(text)
                return
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(text)
        except BrokenPipeError:
            raise _Enough from None

    def close(self) -> None:
        """Show what was held, or wait until the reader has seen enough."""
        if self._process is None:
            sys.stdout.write("".join(self._held))
            return
        # Ctrl-C belongs to the pager while it runs.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            with suppress(BrokenPipeError):
                assert self._process.stdin is not None
                self._process.stdin.close()
            self._process.wait()
        finally:
            signal.signal(signal.SIGINT, before)


@contextmanager
def paged(lines_max: int, use: Callable[[Pager | None], object]) -> Iterator[None]:
    """What is printed in here goes through a pager, if it is more than so many lines."""
    pager = Pager(lines_max)
    use(pager)
    try:
        yield
    except _Enough:
        pass
    finally:
        use(None)
        pager.close()


def _started() -> "subprocess.Popen[str] | None":
    command = shlex.split(os.environ.get("PAGER") or "less")
    if not command or command == ["cat"] or shutil.which(command[0]) is None:
        return None
    sys.stdout.flush()
    # As git does: quit if it fits, show colours, leave the text on the screen.
    defaults = {"LESS": "FRX", "LV": "-c", "LESSCHARSET": "utf-8"}
    try:
        return subprocess.Popen(  # noqa: S603 - the user's own pager
            command,
            stdin=subprocess.PIPE,
            encoding="utf-8",
            errors="backslashreplace",
            env=defaults | dict(os.environ),
        )
    except OSError:
        return None
