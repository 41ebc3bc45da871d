"""A program that runs: what it is told, what it prints, and its end.

    child = await Child.started(["claude", ...], env=env, cwd=cwd, told=b"...")
    try:
        while chunk := await child.chunk():
            ...
    finally:
        await child.close()         # nothing of it is left, however it is going

There are no tasks and threads: the event loop hands over what comes. So its error output is taken
while its output is read, and neither can fill a pipe and stop the program. Of the error output the
end is kept.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import Any, cast

from holdfast.providers.claude_cli import tree

HELD_MAX = 256 * 1024  # bytes; then the program has to wait
SAID_MAX = 2_000
END_S_MAX = 1.0
# What a program has printed comes a moment behind its end; its own children may hold the pipe on.
_LAST_WORDS_S = 0.2


class Child(asyncio.SubprocessProtocol):
    """One process. `code` is how it ended; None while it has not."""

    def __init__(self) -> None:
        self.code: int | None = None
        self._transport: asyncio.SubprocessTransport | None = None
        self._chunks: list[bytes] = []
        self._held = self._printed = 0
        self._is_paused = False
        self._is_ended = False  # of output
        self._said = bytearray()
        loop = asyncio.get_running_loop()
        self._loop = loop
        self._news: asyncio.Future[None] | None = None
        self._gone: asyncio.Future[None] = loop.create_future()
        self._closed: asyncio.Future[None] = loop.create_future()

    @classmethod
    async def started(
        cls, line: Sequence[str], *, env: Mapping[str, str], cwd: str | None, told: bytes
    ) -> "Child":
        """The program, which is being told `told` on its standard input. OSError if it is none."""
        loop = asyncio.get_running_loop()
        more: dict[str, Any] = {} if os.name == "nt" else {"start_new_session": True}
        _, self = await loop.subprocess_exec(cls, *line, env=dict(env), cwd=cwd, **more)
        self._tell(told)
        return self

    def _tell(self, told: bytes) -> None:
        assert self._transport is not None
        stdin = cast("asyncio.WriteTransport", self._transport.get_pipe_transport(0))
        stdin.write(told)
        stdin.close()  # once it has taken all

    @property
    def said(self) -> str:
        """The end of what it said on its error output."""
        return self._said.decode("utf-8", "replace")

    async def chunk(self) -> bytes:
        """What it printed since; nothing at the end, and then its code is known, if it has one."""
        while not self._chunks and not self._is_ended:
            self._news = self._loop.create_future()
            try:
                await self._news
            finally:
                self._news = None
        if not self._chunks:
            await self._wait(self._gone)
        chunks, self._chunks, self._held = self._chunks, [], 0
        self._pause(False)
        return b"".join(chunks)

    async def close(self) -> None:
        """End it, if it has not ended, with everything that it has started."""
        transport = self._transport
        if transport is None:
            return
        if self.code is None:
            tree.end(transport.get_pid())
        elif os.name != "nt":
            tree.end_group(transport.get_pid())
        try:
            await self._wait(self._gone)
        finally:
            transport.close()
        await self._wait(self._closed)

    async def _wait(self, future: "asyncio.Future[None]") -> None:
        await asyncio.wait([future], timeout=END_S_MAX)

    # What the event loop tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 1:
            self._chunks.append(data)
            self._held += len(data)
            self._printed += len(data)
            self._pause(self._held > HELD_MAX)
            self._tell_news()
        else:
            self._said += data
            del self._said[:-SAID_MAX]

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002
        if fd == 1:
            self._end_output()

    def process_exited(self) -> None:
        assert self._transport is not None
        self.code = self._transport.get_returncode()
        if not self._gone.done():
            self._gone.set_result(None)
        self._loop.call_later(_LAST_WORDS_S, self._look, self._printed)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - that of a pipe
        if not self._closed.done():
            self._closed.set_result(None)

    def _look(self, printed: int) -> None:
        """Whether more came since the program has ended, or is waiting to be taken."""
        if self._is_paused or self._printed != printed:
            self._loop.call_later(_LAST_WORDS_S, self._look, self._printed)
        else:
            self._end_output()

    def _end_output(self) -> None:
        self._is_ended = True
        self._tell_news()

    def _tell_news(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def _pause(self, is_full: bool) -> None:
        if is_full == self._is_paused or self._transport is None:
            return
        stdout = cast("asyncio.ReadTransport | None", self._transport.get_pipe_transport(1))
        if stdout is not None and not stdout.is_closing():
            self._is_paused = is_full
            stdout.pause_reading() if is_full else stdout.resume_reading()
