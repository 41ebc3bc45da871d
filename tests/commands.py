"""The program `holdfast` for tests: run as a user runs it, in a home of its own."""

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any


class Ran:
    """What one run of the program printed, and its exit status."""

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.status = done.returncode
        self.out = done.stdout
        self.err = done.stderr

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Commands:
    """Runs the program with a home, and so a store and settings, of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        kept = {n: v for n, v in os.environ.items() if not n.startswith(("HOLDFAST_", "XDG_"))}
        keys = {name for name in kept if name.endswith(("_API_KEY", "_TOKEN"))}
        self.environment = {n: v for n, v in kept.items() if n not in keys} | {
            "HOLDFAST_HOME": str(home),
            "HOME": str(home),
        }

    @property
    def store(self) -> str:
        """The URL of the store that is used where none is named."""
        return f"sqlite:{self.home / 'data' / 'holdfast.db'}"

    def __call__(self, *arguments: str, input: str = "", **environment: str) -> Ran:
        """Run `holdfast ARGUMENTS`, without a terminal."""
        return Ran(
            subprocess.run(
                [sys.executable, "-m", "holdfast", *arguments],
                capture_output=True,
                encoding="utf-8",
                env=self.environment | environment,
                input=input,
                timeout=120,
            )
        )


class Pressed(io.BytesIO):
    """What is piped in, but Ctrl-C is pressed while it is waited for."""

    is_read = False

    def read(self, *_: Any) -> bytes:
        signal.raise_signal(signal.SIGINT)
        self.is_read = True  # whoever pressed it waits still
        return b""


def piped(input: str | io.BytesIO) -> io.TextIOWrapper:
    """What the program finds at stdin."""
    return io.TextIOWrapper(io.BytesIO(input.encode()) if isinstance(input, str) else input)


class Inside(Commands):
    """The same without a process of its own, for details; its input is no terminal."""

    def __init__(self, home: Path, monkeypatch: Any, capfd: Any) -> None:
        super().__init__(home)
        self._patch, self._capfd = monkeypatch, capfd
        for name in os.environ:
            if name not in self.environment:
                monkeypatch.delenv(name)
        for name, value in self.environment.items():
            monkeypatch.setenv(name, value)

    def __call__(self, *arguments: str, input: str | io.BytesIO = "", **environment: str) -> Ran:
        from holdfast.cli import main

        with self._patch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            patch.setattr("sys.stdin", piped(input))
            self._capfd.readouterr()
            status = main(arguments)
            sys.stdout.flush()
            out, err = self._capfd.readouterr()
        return Ran(subprocess.CompletedProcess(arguments, status, out, err))
