"""A question goes to the program, and what it prints comes back.

Each try starts the program once. The first goes on with a session of the program's, if there is
one that has seen all but the news; a second try does not: nobody knows what that session has seen
by now.
"""

import asyncio
import os
import shutil
import tempfile
import threading
import weakref
from pathlib import Path
from typing import Any

import msgspec

from holdfast.errors import ConnectionFailed, InvalidInput, ProtocolError, ProviderError
from holdfast.providers.claude_cli.child import Child
from holdfast.providers.claude_cli.command import Options, arguments, environment
from holdfast.providers.claude_cli.failures import of_exit
from holdfast.providers.claude_cli.sessions import Seen
from holdfast.providers.claude_cli.wire import ClaudeCliWire
from holdfast.providers.credentials import Secret
from holdfast.providers.pipe import Reply, Timeouts
from holdfast.providers.wire import Ask

_encode = msgspec.json.Encoder().encode


class Question:
    """What the program is asked, and the session that it goes on with in the first try."""

    def __init__(
        self,
        wire: ClaudeCliWire,
        ask: Ask,
        seen: Seen | None,
        *,
        key: Secret | None,
        is_kept: bool,
    ) -> None:
        self.key = key
        self.system = wire.system(ask)
        self.model = wire.model
        self.settings = ask.settings
        self.is_kept = is_kept
        self._wire = wire
        self._fragments = ask.prepared.fragments
        self._seen = seen

    def next(self) -> tuple[str | None, bytes]:
        """For the next try: the session to go on with, and the line to say."""
        seen, self._seen = self._seen, None
        message = self._wire.message(self._fragments[seen.messages if seen else 0 :])
        line = {"type": "user", "message": message, "parent_tool_use_id": None, "session_id": ""}
        return (seen.id if seen else None), _encode(line) + b"\n"


class Program:
    """Starts the program. `cwd` is where; None for a folder of its own, which nobody else uses."""

    def __init__(
        self,
        name: str,
        options: Options,
        *,
        cwd: str | None,
        timeouts: Timeouts,
        size_max: int,
    ) -> None:
        self.name = name
        self.timeouts = timeouts
        self._options = options
        self._cwd = cwd
        self._size_max = size_max
        self._folder: _Folder | None = None
        self._lock = threading.Lock()  # two event loops make one folder

    async def send(self, question: Question) -> Reply:
        """What the program answers, of which nothing has come yet."""
        session, told = question.next()
        # An empty prompt is one, too: without it the program brings its own.
        is_told = bool(question.system) or not self._options.is_delegated
        file = self._written(question.system) if is_told else None
        try:
            line = arguments(
                self._options,
                question.model,
                question.settings,
                system=file,
                session=session,
                is_kept=question.is_kept,
            )
            env = environment(self._options, question.model, question.settings, question.key)
            return await self.start(line, env, told, file)
        except BaseException:
            _remove(file)
            raise

    async def start(
        self, line: list[str], env: dict[str, str], told: bytes = b"", file: str | None = None
    ) -> Reply:
        """What the program prints for these arguments; a clear error if it cannot be started.

        `file` goes when the reply is closed.
        """
        found = shutil.which(self.name, path=env.get("PATH"))
        if found is None:
            why = "is not there: install Claude Code and log in with it once, or pass program="
            raise InvalidInput(f"the program {self.name!r}", why)
        cwd = self._own_folder() if self._cwd is None else self._cwd
        try:
            async with asyncio.timeout(self.timeouts.connect):
                whole = [os.path.abspath(found), *line]  # noqa: ASYNC240 - looks at no disk
                child = await Child.started(whole, env=env, cwd=cwd, told=told)
        except TimeoutError:
            limit = f"{self.timeouts.connect:g} s (connect limit)"
            raise ConnectionFailed(f"{self.name} did not start within {limit}") from None
        except OSError as error:
            raise self._not_started(error, cwd) from error
        return _Printed(child, file, self.timeouts.idle, self._size_max)

    def _not_started(self, error: OSError, cwd: str) -> InvalidInput:
        if not os.path.isdir(cwd):
            return InvalidInput("cwd", f"{cwd!r} is no folder")
        why = f"cannot be started: {error.strerror or error}; pass another as program="
        return InvalidInput(f"the program {self.name!r}", why)

    def close(self) -> None:
        """Remove the folder of its own. A later call makes another."""
        folder, self._folder = self._folder, None
        if folder is not None:
            folder.remove()

    def _own_folder(self) -> str:
        with self._lock:
            self._folder = self._folder or _Folder()
            return self._folder.path

    def _written(self, words: str) -> str:
        """The name of a file with these words, that nobody else can read."""
        number, path = tempfile.mkstemp(prefix="system-", suffix=".txt", dir=self._own_folder())
        with os.fdopen(number, "w", encoding="utf-8", errors="replace") as file:
            file.write(words)
        return path


class _Printed(Reply):
    """What one run of the program prints."""

    def __init__(self, child: Child, file: str | None, idle_s: float, size_max: int) -> None:
        self._child = child
        self._file = file
        self._idle_s = idle_s
        self._left = size_max
        self._size_max = size_max

    async def chunk(self) -> bytes:
        try:
            async with asyncio.timeout(self._idle_s):
                chunk = await self._child.chunk()
        except TimeoutError:
            silent = f"the program printed nothing for {self._idle_s:g} s (idle limit)"
            raise ConnectionFailed(silent) from None
        self._left -= len(chunk)
        if self._left < 0:
            raise ProtocolError(f"the answer has more than {self._size_max} bytes (size_max)")
        return chunk

    def broke_off(self, provider: str) -> ProviderError:  # noqa: ARG002 - there is one
        return of_exit(self._child.code, self._child.said)

    async def close(self) -> None:
        try:
            await self._child.close()
        finally:
            _remove(self._file)


class _Folder:
    """A folder of this process, for the program to be in; removed with whoever made it."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix="holdfast-")
        self.remove: Any = weakref.finalize(self, _remove_folder, self.path, os.getpid())


def _remove_folder(path: str, owner: int) -> None:
    if os.getpid() == owner:  # a process that was forked leaves it to the other one
        shutil.rmtree(path, ignore_errors=True)


def _remove(file: str | None) -> None:
    if file is not None:
        Path(file).unlink(missing_ok=True)
