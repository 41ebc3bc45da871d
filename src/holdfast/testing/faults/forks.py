"""A program under test that is imported once and forked for each run.

A sweep runs the same short program hundreds of times. Most of its time would go into starting
Python and importing; so a parent process does that once, and each run is a fork of it:

    with Forks("subject:write") as forks:
        run = forks.start("store.db", 10)    # calls write("store.db", 10) in a process of its own
        run.kill()
        assert run.wait() == -signal.SIGKILL

The function is found as it would be here: the parent gets this process's `sys.path`. Arguments are
JSON. What the function returns is dropped; a run that raises ends with status 1, and its traceback
is in `run.stderr`.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

_POLL_S = 0.001
_TRACED_WAIT_MAX_S = 30.0
_SETTLE_S = 0.003
_MAIN = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from holdfast.testing.faults.forks import _serve
_serve(sys.argv[2])
"""


def missing() -> str:
    """Why programs cannot be forked here, or ""."""
    return "" if hasattr(os, "fork") else "this system has no fork"


class Run(NamedTuple):
    """One run of the program."""

    forks: "Forks"
    pid: int
    stderr_path: Path

    @property
    def stderr(self) -> str:
        """What it wrote to its standard error so far."""
        return self.stderr_path.read_text(encoding="utf-8", errors="replace")

    def signal(self, number: int) -> None:
        """Send a signal. The process is not reaped before `wait`, so its pid is its own."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once, wherever it is."""
        self.signal(signal.SIGKILL)

    def wait(self, timeout_s: float = 60.0) -> int:
        """Its exit status, below 0 for a signal. One that does not end in time is killed."""
        answer = self.forks._ask({"wait": self.pid, "timeout_s": timeout_s})
        if answer["status"] is None:
            self.kill()
            self.forks._ask({"wait": self.pid, "timeout_s": timeout_s})
            raise TimeoutError(f"the run did not end within {timeout_s:g} s")
        return int(answer["status"])


class Forks:
    """The parent process of the runs of one function, named `package.module:function`."""

    def __init__(self, function: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="holdfast-forks-")
        self._count = 0
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and program
            [sys.executable, "-c", _MAIN, json.dumps(sys.path), function],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            self._read()  # it is ready: everything is imported
        except RuntimeError:
            self.close()
            raise

    def start(self, *arguments: Any, traced: bool = False) -> Run:
        """Begin a run. With `traced` it waits until a tracer has attached itself."""
        self._count += 1
        stderr = Path(self._folder.name, f"stderr-{self._count}")
        answer = self._ask({"start": arguments, "traced": traced, "stderr": str(stderr)})
        return Run(self, answer["pid"], stderr)

    def run(self, *arguments: Any, timeout_s: float = 60.0) -> int:
        """Run it to its end; the exit status."""
        return self.start(*arguments).wait(timeout_s)

    def close(self) -> None:
        """End the parent, and every run that is still going on."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the program under test could not be imported: see standard error")
        answer: dict[str, Any] = json.loads(line)
        return answer


# ---- in the parent process ----


def _serve(name: str) -> None:
    module, _, function_name = name.partition(":")
    function: Callable[..., object] = getattr(import_module(module), function_name)
    living: set[int] = set()
    _answer({})
    for line in sys.stdin:
        question = json.loads(line)
        if "start" in question:
            pid = _fork(function, question)
            living.add(pid)
            _answer({"pid": pid})
        else:
            status = _wait(question["wait"], question["timeout_s"])
            if status is not None:
                living.discard(question["wait"])
            _answer({"status": status})
    for pid in living:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _answer(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _wait(pid: int, timeout_s: float) -> int | None:
    limit = time.monotonic() + timeout_s
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > limit:
            return None
        time.sleep(_POLL_S)


def _fork(function: Callable[..., object], question: dict[str, Any]) -> int:
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        errors = os.open(question["stderr"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for number, target in enumerate((nothing, nothing, errors)):
            os.dup2(target, number)
        os.close(nothing)
        os.close(errors)
        if question["traced"]:
            _await_tracer()
        function(*question["start"])
        status = 0
    except BaseException:  # noqa: BLE001 - whatever it is, it ends this process and not the parent
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)


def _await_tracer() -> None:
    _allow_tracer()
    limit = time.monotonic() + _TRACED_WAIT_MAX_S
    while "\nTracerPid:\t0\n" in Path("/proc/self/status").read_text(encoding="ascii"):
        if time.monotonic() > limit:
            raise TimeoutError("no tracer came")
        time.sleep(_POLL_S)
    time.sleep(_SETTLE_S)  # it has taken hold of this process, and now stops it for the first time


def _allow_tracer() -> None:
    """Where only parents may trace (Yama), let any process of this user do it."""
    import ctypes

    set_ptracer, anybody = 0x59616D61, -1
    ctypes.CDLL(None).prctl(set_ptracer, ctypes.c_long(anybody), 0, 0, 0)
