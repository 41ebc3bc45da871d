"""A server on the loopback interface that answers as a test says, and as badly as it likes.

    async with Loopback(whole({"text": "hi"})) as server:
        ...                              # at server.url
    server.requests                      # what it was asked

An answer is bytes to send, or an async function of the connection and the request. Answers are
given in turn, the last one again when they run out. Bytes end the connection unless they hold a
length, and so does a function unless it returns KEEP.
"""

import asyncio
import json
from typing import NamedTuple

KEEP = "keep"


class Asked(NamedTuple):
    method: str
    path: str
    headers: dict
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


class Loopback:
    """`closed` is set when a client hung up before an answer that waits for it was complete."""

    def __init__(self, *answers, tls=None, host="127.0.0.1", greeting=b""):
        self.answers = list(answers)
        self.requests = []
        self.connections = 0
        self.closed = asyncio.Event()
        self._tls = tls
        self._greeting = greeting  # sent to whoever comes, before anything was asked
        self._host = host
        self._tasks = set()

    @property
    def port(self):
        return self._server.sockets[0].getsockname()[1]

    @property
    def url(self):
        return f"{'https' if self._tls else 'http'}://{self._host}:{self.port}"

    async def __aenter__(self):
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", 0, ssl=self._tls, limit=2**20
        )
        return self

    async def __aexit__(self, *_):
        self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader, writer):
        task = asyncio.current_task()
        self._tasks.add(task)
        self.connections += 1
        try:
            if self._greeting:
                writer.write(self._greeting)
                return
            while (asked := await self._asked(reader)) is not None:
                at = min(len(self.requests), len(self.answers) - 1)
                self.requests.append(asked)
                answer = self.answers[at]
                if callable(answer):
                    if await answer(Connection(self, reader, writer), asked) == KEEP:
                        continue
                    break
                writer.write(answer)
                await writer.drain()
                if b"content-length" not in answer[:2000].lower():
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            self.closed.set()
        except asyncio.CancelledError:
            pass  # the test is over
        finally:
            self._tasks.discard(task)
            writer.transport.abort() if self._tls else writer.close()

    async def _asked(self, reader):
        line = await reader.readline()
        if not line.strip():
            return None
        method, path, _ = line.decode("latin-1").split(" ", 2)
        headers = {}
        while (line := await reader.readline()).strip():
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        return Asked(method, path, headers, body)


class Connection:
    """What an answer that is a function has in its hands."""

    def __init__(self, server, reader, writer):
        self._server = server
        self._reader = reader
        self._writer = writer

    async def send(self, data):
        self._writer.write(data)
        await self._writer.drain()

    async def hang(self):
        """Say no more, and wait until the client hangs up."""
        try:
            while await self._reader.read(1024):
                pass
        except ConnectionError:
            pass
        self._server.closed.set()

    async def half_close(self):
        """Say that nothing more is sent, and go on listening."""
        self._writer.write_eof()
        await self.hang()

    def reset(self):
        """Break the connection as a crashed machine does."""
        import socket
        import struct

        raw = self._writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()


def head(status=200, kind="application/json", **headers):
    lines = [f"HTTP/1.1 {status} X"]
    if kind:
        lines.append(f"content-type: {kind}")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n").encode("latin-1")


def whole(body, status=200, kind="application/json", **headers):
    """An answer with a length. `body` is bytes, or what becomes JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return head(status, kind, **headers) + b"content-length: %d\r\n\r\n" % len(data) + data


def until_closed(data, status=200, kind="text/event-stream", **headers):
    """An answer that ends with its connection."""
    return head(status, kind, **headers) + b"connection: close\r\n\r\n" + data


def chunked(data, status=200, kind="text/event-stream", ends=True, **headers):
    """An answer in one chunk of HTTP; without its end it broke off."""
    end = b"0\r\n\r\n" if ends else b""
    first = b"transfer-encoding: chunked\r\n\r\n" + b"%x\r\n" % len(data) if data else b""
    start = head(status, kind, **headers)
    if not data:
        return start + b"transfer-encoding: chunked\r\n\r\n" + end
    return start + first + data + b"\r\n" + end


def in_turn(*pieces, pause_s=0.0, then="close"):
    """An answer in pieces: bytes that are sent as they are. Then: close, hang, reset, half."""

    async def answer(connection, _asked):
        for piece in pieces:
            await connection.send(piece)
            await asyncio.sleep(pause_s)
        if then == "hang":
            await connection.hang()
        elif then == "half":
            await connection.half_close()
        elif then == "reset":
            connection.reset()

    return answer
