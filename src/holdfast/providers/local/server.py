"""The local model's server: a process of its own, shared by all who ask for the same model.

    server = LocalServer(path, "smollm2-135m")
    await server.address()    # "http://127.0.0.1:44137", started if it does not run
    server.key                # what a request has to carry, so that no other user can ask
    await server.close()      # the last one that closes ends the process

It runs in a process because its threads would compete with the event loop, and because what
crashes there does not crash here. It listens on loopback alone. A process that died is started
anew by the next `address()`. It ends with the last `close()`, or with this process, however that
ends: it waits at a pipe which nobody else holds.

Nothing here belongs to an event loop. The waiting is done in threads, so one loop may start the
process and the next one use it, or two loops in two threads.
"""

import asyncio
import atexit
import importlib.util
import json
import os
import secrets
import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.errors import InvalidInput, Overloaded, ProtocolError

START_S_MAX = 60.0
_END_S_MAX = 5.0
_LINES_MAX = 5
_CHILD = "holdfast.providers.local.child"


class Options(NamedTuple):
    """What a process is started with; those who ask for the same share one."""

    path: str
    name: str
    context_tokens: int
    threads: int
    parallel: int


class LocalServer:
    """One user's hold on the process of a model.

    path             the weights, a GGUF file
    name             what the model is called in answers
    context_tokens   how long a conversation may be, for each of those answered at once
    threads          more than one is quicker on an idle machine, and far slower on a busy one
    parallel         how many are answered at once; the others wait
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        name: str,
        *,
        context_tokens: int = 4_096,
        threads: int = 1,
        parallel: int = 1,
        start_s_max: float = START_S_MAX,
    ) -> None:
        numbers = {"context_tokens": context_tokens, "threads": threads, "parallel": parallel}
        for what, number in numbers.items():
            if type(number) is not int or number < 1:
                raise InvalidInput(what, f"is a number from 1 up, not {number!r}")
        self._options = Options(os.path.abspath(path), name, **numbers)
        self._start_s_max = start_s_max
        self._held: _Shared | None = None
        self._is_closed = False

    def __repr__(self) -> str:
        return f"LocalServer({self._options.path!r}, {self._options.name!r})"

    @property
    def key(self) -> str:
        """The bearer token of this process, the same after it was started anew."""
        return self._shared().key

    async def address(self) -> str:
        """Where the server listens, once it does.

        Quick when it runs already, so it is asked before each request. InvalidInput if the runtime
        or the weights are missing, Overloaded if it is not up in time, ProtocolError with the
        last words of the process if it cannot start.
        """
        shared = self._shared()
        found = shared.address()
        if found is None:
            found = await asyncio.to_thread(shared.start, self._start_s_max)
        return found

    async def close(self) -> None:
        """Let go of the process, and end it if nobody else holds it. Twice is once."""
        with _registry_lock:
            self._is_closed = True
            held, self._held = self._held, None
            is_last = held is not None and held.is_ours() and _release(held)
        if held is not None and is_last:
            await asyncio.to_thread(held.end)

    def _shared(self) -> "_Shared":
        with _registry_lock:  # two threads that ask this object hold the process once
            if self._is_closed:
                raise InvalidInput("this LocalServer", "was closed: make a new one")
            if self._held is None or not self._held.is_ours():
                self._held = _hold(self._options)
            return self._held


class _Shared:
    """The process of some options, and how many hold it. All of it may be called in any thread."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.key = secrets.token_urlsafe(32)
        self.holders = 0
        self.process: _Process | None = None
        self._owner = os.getpid()
        self._starting = threading.Lock()

    def is_ours(self) -> bool:
        """False in a process that was forked: the server belongs to the other one."""
        return self._owner == os.getpid()

    def address(self) -> str | None:
        process = self.process  # read once: another thread may put a new one there
        return process.address if process is not None and process.is_alive() else None

    def start(self, s_max: float) -> str:
        with self._starting:
            found = self.address()
            if found is None:
                self._end()
                self.process = _Process(self.options, self.key, s_max)
                found = self.process.address
            if not self.holders:  # closed while it started
                self._end()
            return found

    def end(self) -> None:
        with self._starting:
            if not self.holders:
                self._end()

    def _end(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            process.end()


class _Process:
    """A running server. Making one waits until it listens, or raises why it does not."""

    def __init__(self, options: Options, key: str, s_max: float) -> None:
        _check_start(options)
        self._last_lines: deque[str] = deque(maxlen=_LINES_MAX)
        self._process = subprocess.Popen(  # noqa: S603 - our own module, in our own interpreter
            [sys.executable, "-P", "-m", _CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,  # so that no lock is in the way of a fork
            env=_environment(),
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        try:
            self.address = self._ask({**options._asdict(), "key": key}, s_max)
        except BaseException:
            self._process.kill()
            self.end()
            raise

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def end(self) -> None:
        pipes = self._process
        assert pipes.stdin is not None and pipes.stdout is not None and pipes.stderr is not None
        try:
            pipes.stdin.close()  # which it takes as its end
        except OSError:
            pass  # it was gone before
        try:
            pipes.wait(_END_S_MAX)
        except subprocess.TimeoutExpired:
            pipes.kill()
            pipes.wait()
        self._listener.join(_END_S_MAX)
        pipes.stdout.close()
        pipes.stderr.close()

    def abandon(self) -> None:
        """In a process that was forked: do not keep the parent's server from seeing it end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.returncode = 0  # it is not ours to wait for

    def _ask(self, options: dict[str, Any], s_max: float) -> str:
        assert self._process.stdin is not None and self._process.stdout is not None
        until_s = time.monotonic() + s_max
        timer = threading.Timer(s_max, self._process.kill)
        timer.daemon = True
        timer.start()
        try:
            self._process.stdin.write(json.dumps(options).encode() + b"\n")
            self._process.stdin.flush()
            said = json.loads(self._process.stdout.readline() or b"{}")
        except BrokenPipeError:
            said = {}
        finally:
            timer.cancel()
        address = said.get("address")
        if isinstance(address, str):
            return address
        if not said and time.monotonic() >= until_s:
            raise Overloaded(f"{options['name']} was not up in {s_max:g} s", "local")
        raise ProtocolError(self._failed(options["name"], said.get("error")), "local")

    def _failed(self, name: str, said: str | None) -> str:
        self._process.wait()
        self._listener.join(_END_S_MAX)
        words = [f"{name} did not start", *([said] if said else []), *self._last_lines]
        return "; ".join(words)[:2_000]

    def _listen(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._last_lines.append(line.decode(errors="replace").strip())


def _check_start(options: Options) -> None:
    if importlib.util.find_spec("xllamacpp") is None:
        raise InvalidInput(
            "the local model", "needs xllamacpp: run `pip install 'holdfast[local]'`"
        )
    if not Path(options.path).is_file():
        raise InvalidInput(f"the weights {options.path}", "are not there: pull them first")


def _environment() -> dict[str, str]:
    # What this process imports, the child can: they may have come by other ways than PYTHONPATH.
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


# ---- who holds what ----

_registry: dict[Options, _Shared] = {}
_registry_lock = threading.Lock()


# Under the lock:


def _hold(options: Options) -> _Shared:
    if options not in _registry:
        _registry[options] = _Shared(options)
    _registry[options].holders += 1
    return _registry[options]


def _release(shared: _Shared) -> bool:
    """Whether that was the last hold."""
    shared.holders -= 1
    if shared.holders:
        return False
    if _registry.get(shared.options) is shared:
        del _registry[shared.options]
    return True


def _end_all() -> None:
    for shared in list(_registry.values()):
        shared.holders = 0
        shared.end()
    _registry.clear()


def _forget() -> None:
    """After a fork, in the new process: what runs belongs to the old one."""
    global _registry_lock
    _registry_lock = threading.Lock()  # a thread that is not here may have held it
    for shared in _registry.values():
        if shared.process is not None:
            shared.process.abandon()
    _registry.clear()


atexit.register(_end_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
