"""A loopback server that answers as recorded, byte for byte, and as badly as you like.

    async with Server(Answer.of(exchange)) as server:
        ...                                    # any client, at server.url
    server.requests                            # what it was asked

Answers are given in turn, one to each request; the last one again when they run out. HTTP/1.1, with
chunked transfer for streams and a length for the rest. `Answer` says how the bytes come: all at
once, in pieces of a size, cut at given places; and how it ends: well, with the connection closed
after so many bytes, with silence, or tidily, as if less were all.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from types import TracebackType
from typing import Any

from holdfast.testing.replay.recordings import Exchange

REQUEST_BYTES_MAX = 64 * 1024 * 1024


@dataclass(frozen=True)
class Answer:
    """What to send, and how.

    cuts       where the bytes are split; the client is given a moment between the pieces
    piece      or: every so many bytes
    stop_at    after so many bytes the server stops; None means that it sends all
    then       what it does when it stops: "close" (the connection breaks), "stall" (nothing more
               comes, and the connection stays), "end" (the transfer ends as if this were all)
    delay_s    a wait before the first byte
    pause_s    a wait between two pieces
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    data: bytes = b""
    is_chunked: bool = True
    cuts: Sequence[int] = ()
    piece: int | None = None
    stop_at: int | None = None
    then: str = "close"
    delay_s: float = 0.0
    pause_s: float = 0.0

    @classmethod
    def of(cls, exchange: Exchange, **how: Any) -> "Answer":
        """The answer of a recorded exchange."""
        headers = dict(exchange.headers)
        if headers.get("content-type") in (None, "**REDACTED**"):
            kind = "application/x-ndjson" if exchange.is_lines else "application/json"
            kind = "text/event-stream" if exchange.is_sse else kind
            headers["content-type"] = kind
        answer = cls(exchange.status, headers, exchange.data, exchange.is_stream)
        return replace(answer, **how)

    def pieces(self) -> list[bytes]:
        """The bytes that are sent, in the pieces in which they are sent."""
        data = self.data if self.stop_at is None else self.data[: self.stop_at]
        edges = range(0, len(data), self.piece) if self.piece else self.cuts
        inside = sorted({edge for edge in edges if 0 < edge < len(data)})
        starts = [0, *inside]
        return [data[a:b] for a, b in zip(starts, [*inside, len(data)], strict=True) if a < b]

    @property
    def is_cut(self) -> bool:
        """Whether less is sent than there is."""
        return self.stop_at is not None


@dataclass(frozen=True)
class Request:
    """What a client asked."""

    method: str
    path: str
    headers: Mapping[str, str]
    data: bytes

    @property
    def body(self) -> Any:
        """The JSON in it."""
        return json.loads(self.data)


class Server:
    """Listens on a free port of the loopback interface while it is open.

    `closed` is set when a client has gone before its answer was complete.
    """

    def __init__(self, *answers: Answer) -> None:
        self.requests: list[Request] = []
        self.closed = asyncio.Event()
        self._answers = answers
        self._server: asyncio.Server | None = None
        self._busy: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """The address, without a slash at its end."""
        assert self._server is not None, "the server is not open"
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"http://{host}:{port}"

    async def __aenter__(self) -> "Server":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in tuple(self._busy):
            task.cancel()
        await asyncio.gather(*self._busy, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._busy.add(task)
        try:
            while (request := await _request(reader)) is not None:
                answer = self._answers[min(len(self.requests), len(self._answers) - 1)]
                self.requests.append(request)
                if not await self._answer(answer, reader, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            self.closed.set()
        except asyncio.CancelledError:
            pass  # the test is over; a server task that ends in a cancel would be reported
        finally:
            self._busy.discard(task)
            writer.transport.abort()

    async def _answer(
        self, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Send it; whether the connection may be used again."""
        await asyncio.sleep(answer.delay_s)
        writer.write(_head(answer))
        for number, piece in enumerate(answer.pieces()):
            if number:
                await asyncio.sleep(answer.pause_s)  # 0 too lets the client read what it has
            writer.write(_chunk(piece) if answer.is_chunked else piece)
            await writer.drain()
        if answer.is_cut and answer.then != "end":
            await _break_off(answer, reader, writer, self.closed)
            return False
        if answer.is_chunked:
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        return answer.is_chunked or not answer.is_cut


async def _break_off(
    answer: Answer,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    closed: asyncio.Event,
) -> None:
    await writer.drain()
    if answer.then == "stall":
        while await reader.read(1024):
            pass
        closed.set()  # the client lost patience, and hung up
    else:
        writer.close()  # sends what is written, then the end of the connection
        await writer.wait_closed()


def _head(answer: Answer) -> bytes:
    reason = HTTPStatus(answer.status).phrase if answer.status in set(HTTPStatus) else ""
    lines = [f"HTTP/1.1 {answer.status} {reason}"]
    lines += [f"{name}: {value}" for name, value in answer.headers.items()]
    if answer.is_chunked:
        lines.append("transfer-encoding: chunked")
    else:
        lines.append(f"content-length: {len(answer.data)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


def _chunk(piece: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(piece), piece)


async def _request(reader: asyncio.StreamReader) -> Request | None:
    """The next request on a connection, or None when the client has closed it."""
    line = await reader.readline()
    if not line.strip():
        return None
    method, path, _ = line.decode("latin-1").split(" ", 2)
    headers: dict[str, str] = {}
    while (line := await reader.readline()).strip():
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    if headers.get("transfer-encoding", "").lower() == "chunked":
        data = await _chunks(reader)
    else:
        data = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, path, headers, data)


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    data = b""
    while length := int((await reader.readline()).split(b";")[0], 16):
        data += await reader.readexactly(length)
        await reader.readline()
        assert len(data) <= REQUEST_BYTES_MAX, "a request without end"
    await reader.readline()
    return data
