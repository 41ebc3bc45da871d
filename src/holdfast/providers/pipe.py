"""The pipe: a request goes out, bytes come back, over one HTTP client.

It knows nothing about vendors. Every wait has a limit, every failure is one of our errors, and what
comes back is bounded, counted when it is unpacked:

    reply = await pipe.send(Request("POST", url, headers, body))
    try:
        while chunk := await reply.chunk():
            ...
    finally:
        await reply.close()

A redirect is never followed: the credentials would go where nobody sent them. A client belongs to
the event loop that it was first used in. The pipe opens one for each loop that asks, so a provider
can be used in one `asyncio.run` after the other; a client that the caller brought along is used in
one loop, is not closed here, and anything else is InvalidInput.

This machine is asked directly, whatever proxies the environment has: no other could reach it.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from holdfast.errors import ConnectionFailed, InvalidInput, ProtocolError, ProviderError
from holdfast.providers.address import is_loopback
from holdfast.providers.credentials import Headers, Secret
from holdfast.providers.refusals import read as read_refusal

if TYPE_CHECKING:
    import asyncio
    import ssl

    import httpx2

SIZE_MAX = 64 * 1024 * 1024
# Idle connections that are kept for the next call; any number may be busy.
IDLE_CONNECTIONS_MAX = 20


class Timeouts(NamedTuple):
    """How long to wait, in seconds.

    connect   until there is a connection
    idle      between two pieces of an answer, and until the first: models may think in silence
    total     until the answer is complete, all tries and the waits between them together
    """

    connect: float = 10.0
    idle: float = 300.0
    total: float = 1800.0

    @classmethod
    def of(cls, value: object) -> "Timeouts":
        """The limits in an option: None, the seconds of all together, or Timeouts."""
        if value is None:
            return cls()
        if isinstance(value, Timeouts):
            limits = value
        elif isinstance(value, int | float) and not isinstance(value, bool):
            usual = cls()
            limits = cls(min(usual.connect, value), min(usual.idle, value), value)
        else:
            raise InvalidInput(
                "timeout", "is a number of seconds, or Timeouts(connect, idle, total)"
            )
        for name, limit in limits._asdict().items():
            is_number = isinstance(limit, int | float) and not isinstance(limit, bool)
            if not is_number or not 0 < limit < 1e7:
                raise InvalidInput(f"timeout ({name})", "is a number of seconds above 0")
        return limits


class Request(NamedTuple):
    """What goes out. Its `repr` shows no value of a header."""

    method: str
    url: str
    headers: Headers
    body: bytes | None = None


class Pipe:
    """Sends requests. `client` is the caller's own; else one is made, with this `proxy`, or with
    those of the environment."""

    def __init__(
        self,
        *,
        client: "httpx2.AsyncClient | None" = None,
        proxy: Secret | None = None,
        timeouts: Timeouts | None = None,
        size_max: int = SIZE_MAX,
    ) -> None:
        self.timeouts = timeouts or Timeouts()
        self.size_max = size_max
        self._own = client
        self._proxy = proxy
        self._clients: dict[tuple[asyncio.AbstractEventLoop, _Way], httpx2.AsyncClient] = {}

    async def send(self, request: Request) -> "Reply":
        """The service's answer, of which the head has come."""
        import httpx2

        from holdfast.providers.pipe_errors import failed

        client = self._client(request.url)
        limits = self.timeouts
        waits = httpx2.Timeout(limits.idle, connect=limits.connect, pool=limits.connect)
        try:
            built = client.build_request(
                request.method,
                request.url,
                content=request.body,
                headers=request.headers,
                timeout=waits,
            )
            response = await client.send(built, stream=True, follow_redirects=False)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise failed(error, request.url, limits) from error
        is_lent = self._own is not None
        return HttpReply(response, request.url, limits, self.size_max, is_lent=is_lent)

    async def close(self) -> None:
        """Close the client that was made for this event loop. A later call makes another."""
        import asyncio

        if self._own is not None:
            return
        loop = asyncio.get_running_loop()
        found = [self._clients.pop((loop, way), None) for way in _Way]
        self._forget_closed_loops()
        for client in filter(None, found):
            await client.aclose()

    def _client(self, url: str) -> "httpx2.AsyncClient":
        import asyncio

        is_bound = self._own is not None or self._proxy is not None
        way = _Way.AS_TOLD if is_bound else _way(url)
        loop = asyncio.get_running_loop()
        client = self._clients.get((loop, way))
        if client is None:
            self._forget_closed_loops()
            client = self._opened(way) if self._own is None else self._lent()
            self._clients[loop, way] = client
        if client.is_closed:
            raise InvalidInput("client", "is closed: pass one that is open")
        return client

    def _opened(self, way: "_Way") -> "httpx2.AsyncClient":
        import httpx2

        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=IDLE_CONNECTIONS_MAX)
        proxy = None if self._proxy is None else self._proxy.reveal()
        try:
            return httpx2.AsyncClient(
                proxy=proxy,
                limits=limits,
                trust_env=way is _Way.AS_TOLD,
                verify=_certificates(way is not _Way.PLAIN),
            )
        except (ValueError, ImportError, httpx2.InvalidURL):
            # Not with the cause: its words may hold the password in the address.
            why = "cannot be used: it is an address such as http://host:port"
            raise InvalidInput("the proxy (of proxy= or the environment)", why) from None

    def _lent(self) -> "httpx2.AsyncClient":
        assert self._own is not None
        if self._clients:
            why = (
                "is used in another event loop: open a provider for each, with a client of its own"
            )
            raise InvalidInput("client", why)
        return self._own

    def _forget_closed_loops(self) -> None:
        """Their connections went with them. A lent client stays with its first loop for good."""
        if self._own is None:
            for key in [key for key in tuple(self._clients) if key[0].is_closed()]:
                self._clients.pop(key, None)  # in place: a thread may add its own meanwhile


class _Way(Enum):
    """How an address is reached: as the caller or the environment says, or, if it is this machine,
    directly; `PLAIN` without certificates, so that nothing of the environment can be in the way."""

    AS_TOLD = "as told"
    DIRECT = "direct"
    PLAIN = "plain"


@lru_cache(maxsize=256)
def _way(url: str) -> _Way:
    parts = urlsplit(url)
    if not is_loopback(parts.hostname or ""):
        return _Way.AS_TOLD
    return _Way.PLAIN if parts.scheme == "http" else _Way.DIRECT


def _certificates(trust_env: bool) -> "ssl.SSLContext":
    """Those that are trusted. To load them takes longer than all else about a client."""
    named = ("SSL_CERT_FILE", "SSL_CERT_DIR") if trust_env else ()
    return _loaded_certificates(trust_env, *map(os.environ.get, named))


@lru_cache(maxsize=4)
def _loaded_certificates(trust_env: bool, *_: str | None) -> "ssl.SSLContext":
    import httpx2

    return httpx2.create_ssl_context(trust_env=trust_env)


class Reply(ABC):
    """An answer that is coming in, over whatever it comes.

    status       of HTTP; None where there is none
    headers      names in lower case
    request_id   the service's id of the request
    """

    status: int | None = None
    headers: Mapping[str, str] = {}
    request_id: str | None = None

    @property
    def kind(self) -> str:
        """The media type, such as "text/event-stream"; empty if there is none."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @abstractmethod
    async def chunk(self) -> bytes:
        """The next bytes, unpacked; none at the end."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of what it came over."""

    def broke_off(self, provider: str) -> ProviderError:
        """The error to raise when the last bytes were no end of the answer."""
        why = "the answer broke off before its end"
        return ConnectionFailed(why, provider, self.status, self.request_id)

    async def body(self, first: bytes = b"", *, cut_at: int | None = None) -> bytes:
        """All of it, behind `first`; only the beginning, if it is cut."""
        chunks, size = [first], len(first)
        while (cut_at is None or size < cut_at) and (chunk := await self.chunk()):
            chunks.append(chunk)
            size += len(chunk)
        return b"".join(chunks)[:cut_at]


class HttpReply(Reply):
    """An answer over HTTP."""

    def __init__(
        self,
        response: "httpx2.Response",
        url: str,
        timeouts: Timeouts,
        size_max: int,
        *,
        is_lent: bool = False,
    ) -> None:
        self.status = response.status_code
        self.headers = dict(response.headers)
        self.request_id = read_refusal(self.headers, None).request_id
        self._response = response
        self._chunks: Any = response.aiter_bytes()
        self._parser = _parser_of(response)
        self._is_lent = is_lent
        self._url = url
        self._timeouts = timeouts
        self._left = size_max
        self._size_max = size_max

    async def chunk(self) -> bytes:
        import httpx2

        from holdfast.providers.pipe_errors import failed

        try:
            chunk: bytes = await anext(self._chunks, b"")
        except httpx2.HTTPError as error:
            raise failed(error, self._url, self._timeouts) from error
        if not chunk:
            await self._leave_nothing_behind()
        self._left -= len(chunk)
        if self._left < 0:
            raise ProtocolError(f"the answer has more than {self._size_max} bytes (size_max)")
        return chunk

    async def close(self) -> None:
        # One with an unread answer is closed.
        try:
            await self._chunks.aclose()
        finally:
            await self._response.aclose()

    async def _leave_nothing_behind(self) -> None:
        """Close a connection on which more has come than was asked for.

        The client would take it for the answer to its next question, which may be another
        user's. With HTTP/2, which a lent client may speak, answers are told apart by number.
        """
        if self._parser is None:
            has_more = not self._is_lent  # nobody can tell
        else:
            has_more = bool(self._parser.trailing_data[0])
        stream = self._response.extensions.get("network_stream")
        if has_more and stream is not None:
            await stream.aclose()


def _parser_of(response: Any) -> Any:
    """What reads HTTP/1.1 on the connection of a response; None if it is not where it was.

    The client does not show it. If a new version of it moves this, connections are not used
    again, and a test says so.
    """
    at = response.stream
    for name in ("_stream", "_httpcore_stream", "_stream", "_connection", "_h11_state"):
        at = getattr(at, name, None)
    return at if hasattr(at, "trailing_data") else None
