"""Ending a program and everything that it has started.

The program starts tools in sessions of their own, so the end of its process group is not theirs.
It is stopped first, so that it starts no more while we look; then what descends from it is ended,
and what belongs to a group or session of those; then itself.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

_LOOKS_MAX = 4  # what is being ended may start something while we look


class _Process(NamedTuple):
    pid: int
    parent: int
    group: int
    session: int


if sys.platform == "win32":

    def end(pid: int) -> None:
        """End the process and its descendants, at once."""
        subprocess.run(  # noqa: S603 - the system's own
            ["taskkill", "/F", "/T", "/PID", str(pid)],  # noqa: S607
            check=False,
            capture_output=True,
            timeout=5,
        )

else:

    def end(pid: int) -> None:
        """End the process and its descendants, at once. Its group and session are its own."""
        _signal(pid, signal.SIGSTOP)
        family: set[int] = {pid}
        for _ in range(_LOOKS_MAX):
            new = _family(family) - family
            for each in new:
                _signal(each, signal.SIGKILL)
            family |= new
            if not new:
                break
        end_group(pid)
        _signal(pid, signal.SIGKILL)

    def end_group(pid: int) -> None:
        """End what is left of the group of a process that led it."""
        try:
            os.killpg(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass

    def _signal(pid: int, number: int) -> None:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            pass

    def _family(known: set[int]) -> set[int]:
        """Those known, what descends from them, and who shares their groups and sessions."""
        found = set(known)
        processes = list(_linux() if sys.platform == "linux" else _posix())
        grew = True
        while grew:
            new = {
                each.pid
                for each in processes
                if each.pid not in found and {each.parent, each.group, each.session} & found
            }
            found |= new
            grew = bool(new)
        return found

    def _linux() -> Iterator[_Process]:
        for name in os.listdir("/proc"):
            if name.isdecimal():
                try:
                    with open(f"/proc/{name}/stat", "rb") as file:
                        # Behind the name, which is in brackets and may hold anything.
                        fields = file.read().rpartition(b")")[2].split()
                except OSError:
                    continue  # it is gone
                yield _Process(int(name), int(fields[1]), int(fields[2]), int(fields[3]))

    def _posix() -> Iterator[_Process]:
        done = subprocess.run(
            ["/bin/ps", "-A", "-o", "pid=,ppid=,pgid="], check=False, capture_output=True, timeout=5
        )
        for line in done.stdout.splitlines():
            pid, parent, group = map(int, line.split())
            yield _Process(pid, parent, group, group)
