"""From the bytes of a reply to the reader of a wire.

How an answer is cut into events is told by its media type, and where that says little (text/plain,
nothing at all) by how it begins and by what the wire expects. A whole document where a stream was
asked for is read as one, and so is a stream where none was. A page, an empty body, a part of a
body, a redirect and an error under status 200 are errors like any other. What a program prints has
no status, and is lines, however it begins.

A stream is complete when the reader says so. What follows is read for a moment, because a count of
tokens may come last; a service that then neither speaks nor hangs up is not waited for.
"""

import asyncio
from collections.abc import Callable, Sequence

from holdfast.errors import ConnectionFailed, ProtocolError, ProviderError
from holdfast.providers.failures import failure
from holdfast.providers.fields import Object, decode, decode_object
from holdfast.providers.pipe import Reply
from holdfast.providers.stream import SIZE_MAX, ArrayStream, Event, EventStream, LineStream
from holdfast.providers.wire import Framing, Reader

ERROR_BYTES_MAX = 1024 * 1024
GRACE_S = 5.0
GOOD = (200, 201)

_SPACE = b"\xef\xbb\xbf \t\r\n"
_LINES = (
    "application/x-ndjson",
    "application/ndjson",
    "application/jsonl",
    "application/jsonlines",
)
_EVENT_FIELDS = (b"data", b"event", b"id", b"retry", b":")
_ERROR_FIELDS = {"error", "type", "code", "status", "message", "detail", "request_id"}


async def read_reply(
    reply: Reply,
    reader: Reader,
    framing: Framing,
    provider: str,
    check: Callable[[], object] | None = None,
) -> None:
    """Feed the reader until the answer is complete; else a ProviderError.

    `check` is called behind each event, and may raise.
    """
    if reply.status is None:
        await _read_stream(reply, reader, LineStream(), await reply.chunk(), provider, check)
        return
    if reply.status not in GOOD:
        raise await refused(reply, provider)
    first = await _first(reply)
    stream = _stream(reply, first, framing)
    if stream is not None:
        await _read_stream(reply, reader, stream, first, provider, check)
    elif _begins_document(first):
        reader.read(await _document(reply, first, provider))
        if not reader.is_complete:
            raise ProtocolError("the document holds no complete answer")
    else:
        raise failure(provider, reply.status, reply.headers, await _beginning(reply, first))


async def read_document(reply: Reply, provider: str, *, is_list: bool = False) -> Object:
    """The JSON object that a reply holds; else a ProviderError.

    Where a list is asked for (`is_list`), one that comes bare is the `data` of an object.
    """
    if reply.status not in GOOD:
        raise await refused(reply, provider)
    first = await _first(reply)
    if is_list and first.lstrip(_SPACE)[:1] == b"[":
        return {"data": decode(await reply.body(first))}
    if not _begins_document(first):
        raise failure(provider, reply.status, reply.headers, await _beginning(reply, first))
    return await _document(reply, first, provider)


async def refused(reply: Reply, provider: str) -> ProviderError:
    """The error that a reply with another status than 200 is."""
    status = reply.status or 0
    facts = (provider, status, reply.request_id)
    if 300 <= status < 400:
        from holdfast.providers.pipe_errors import host_of  # it loads the HTTP client

        target = host_of(reply.headers.get("location", ""))
        why = "redirects are not followed, or the credentials would go there: set base_url"
        return ProtocolError(f"the answer is a redirect to {target}; {why}", *facts)
    if status == 206:
        return ProtocolError("only a part of the answer came", *facts)
    return failure(provider, status, reply.headers, await _beginning(reply, b""))


async def _first(reply: Reply) -> bytes:
    """The first bytes, up to one that tells something."""
    first = b""
    while not first.strip(_SPACE) and len(first) < SIZE_MAX and (chunk := await reply.chunk()):
        first += chunk
    return first


async def _beginning(reply: Reply, first: bytes) -> bytes:
    """As much of a body as an error needs; also of one that breaks off."""
    body = bytearray(first)
    try:
        while len(body) < ERROR_BYTES_MAX and (chunk := await reply.chunk()):
            body += chunk
    except ProviderError:
        pass
    return bytes(body[:ERROR_BYTES_MAX])


def _begins_document(first: bytes) -> bool:
    return first.lstrip(_SPACE)[:1] == b"{"


def _stream(
    reply: Reply, first: bytes, framing: Framing
) -> EventStream | LineStream | ArrayStream | None:
    """How to cut it into events; None if it is no stream."""
    start = first.lstrip(_SPACE)
    if start[:1] == b"[":
        return ArrayStream()
    if start[:1] == b"{":
        is_lines = reply.kind in _LINES or (framing == "lines" and reply.kind != "application/json")
        return LineStream() if is_lines else None
    if start[:1] == b"<" or reply.kind == "text/html":
        return None
    if reply.kind == "text/event-stream" or start.startswith(_EVENT_FIELDS):
        return EventStream()
    return LineStream() if reply.kind in _LINES else None


async def _document(reply: Reply, first: bytes, provider: str) -> Object:
    document = decode_object(await reply.body(first))
    if document.get("error") and document.keys() <= _ERROR_FIELDS:
        raise failure(provider, reply.status, reply.headers, document)
    return document


async def _read_stream(
    reply: Reply,
    reader: Reader,
    stream: EventStream | LineStream | ArrayStream,
    chunk: bytes,
    provider: str,
    check: Callable[[], object] | None,
) -> None:
    ends_at: float | None = None
    try:
        while chunk:
            _feed(reader, stream.feed(chunk), check)
            if not reader.is_complete:
                chunk = await reply.chunk()
                continue
            ends_at = ends_at or asyncio.get_running_loop().time() + GRACE_S
            chunk = await _last_chunk(reply, ends_at)
        stream.finish()
        reader.finish(stream.left_over)
    except ProtocolError:
        if not reader.is_complete:  # what stands behind an answer does not make it worse
            raise
    if not reader.is_complete:
        raise reply.broke_off(provider)


def _feed(
    reader: Reader, items: Sequence[Event | bytes], check: Callable[[], object] | None
) -> None:
    feed = reader.feed
    for item in items:
        if type(item) is bytes:
            feed("message", item)
        else:
            feed(*item)
        if check is not None:
            check()


async def _last_chunk(reply: Reply, ends_at: float) -> bytes:
    """More of an answer that is complete; nothing if it does not come."""
    try:
        async with asyncio.timeout_at(ends_at):
            return await reply.chunk()
    except (TimeoutError, ConnectionFailed):
        return b""
