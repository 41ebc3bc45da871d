"""A chat endpoint: answers are streamed as server-sent events, and can be watched again later.

    pip install 'holdfast[examples]'
    python examples/endpoint.py --db chats.db                   then, from another terminal:
    curl -N -d '{"text": "I am Ada."}' localhost:8000/chat/ada

    POST /chat/{key}              {"text": ..., "once": ...}; answers with the events of the turn
    POST /chat/{key}?detach=1     the same, but the turn goes on when the client has gone
    POST /chat/{key}/stop         stops the turn that runs
    GET  /chat/{key}/watch        all that is said, by anybody, as it comes; with ?after=7, or the
                                  header Last-Event-ID that browsers send, from behind entry 7 on

A client that goes away stops its turn, and what was said by then is kept. One that lost its
connection to a detached turn watches: it gets the words of the running turn from their beginning,
and every message with the number to go on from. `once` makes sending again safe.
"""

import argparse
import json
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import msgspec

import holdfast
from holdfast import HoldfastError, Message, Session, codec
from holdfast.errors import SessionExpired, SessionNotFound
from holdfast.stores.values import Chunk
from holdfast.streams import Stream

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response, StreamingResponse
    from starlette.routing import Route
    from starlette.types import Receive, Scope, Send
except ImportError as error:
    sys.exit(f"{error.name} is missing: pip install 'holdfast[examples]'")

MODEL = "local:smollm2-135m"


def make_app(url: str, model: Any) -> Starlette:
    """The endpoint over the store at `url`."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[dict[str, Any]]:
        async with holdfast.open(url, model=model) as sessions:
            yield {"sessions": sessions}

    routes = [
        Route("/chat/{key}", chat, methods=["POST"]),
        Route("/chat/{key}/stop", stop, methods=["POST"]),
        Route("/chat/{key}/watch", watch, methods=["GET"]),
    ]
    return Starlette(routes=routes, lifespan=lifespan)


async def chat(request: Request) -> Response:
    try:
        said = json.loads(await request.body())
        text, once = said["text"], said.get("once")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise HTTPException(400, 'send JSON such as {"text": "Hello."}') from None
    try:
        sessions = request.state.sessions
        session = await sessions.get_or_create(f"web:{request.path_params['key']}")
        stream = session.stream(text, once=once, detach="detach" in request.query_params)
    except HoldfastError as error:
        raise HTTPException(400, str(error)) from None
    return EventResponse(turn_events(stream))


async def stop(request: Request) -> Response:
    return JSONResponse({"stopped": (await found(request)).cancel()})


async def watch(request: Request) -> Response:
    seen = request.query_params.get("after") or request.headers.get("last-event-id") or "0"
    if not seen.isdecimal():
        raise HTTPException(400, "after is the number of an entry")
    return EventResponse(news(await found(request), int(seen)))


async def found(request: Request) -> Session:
    try:
        return await request.state.sessions.get(f"web:{request.path_params['key']}")
    except (SessionNotFound, SessionExpired, ValueError):  # also a key that can be none
        raise HTTPException(404, "there is no such chat") from None


async def turn_events(stream: Stream) -> AsyncGenerator[bytes, None]:
    """The events of a turn. Leaving them ends the turn, unless it is detached."""
    async with stream as events:
        try:
            async for event in events:
                yield sse(type(event).__struct_config__.tag, msgspec.json.encode(event))
        except HoldfastError as error:
            yield sse("error", msgspec.json.encode({"error": str(error)}))


async def news(session: Session, after: int) -> AsyncGenerator[bytes, None]:
    """What is said in a session, and the words of an answer while it comes."""
    async with aclosing(session.watch(after)) as entries:
        async for each in entries:
            if isinstance(each, Chunk):
                yield sse("partial", msgspec.json.encode({"text": each.text}))
            elif isinstance(each.entry, Message):
                yield sse("message", codec.plain(each.entry), each.seq)


def sse(event: object, data: bytes, id: int | None = None) -> bytes:
    """One server-sent event. JSON has no line ends in it, so a line is enough."""
    number = b"" if id is None else f"id: {id}\n".encode()
    return number + f"event: {event}\n".encode() + b"data: " + data + b"\n\n"


class EventResponse(StreamingResponse):
    """A stream whose source is closed at once when the client has gone."""

    def __init__(self, events: AsyncGenerator[bytes, None]) -> None:
        super().__init__(events, media_type="text/event-stream")
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._events.aclose()


def main() -> int:
    parser = argparse.ArgumentParser(description="A chat endpoint that streams its answers.")
    parser.add_argument("--db", default="chats.db", help="the file that keeps the chats")
    parser.add_argument("--model", default=MODEL, help=f"vendor:model (default {MODEL})")
    parser.add_argument("--port", type=int, default=8000, help="0 takes one that is free")
    options = parser.parse_args()
    app = make_app(f"sqlite:{options.db}", options.model)
    uvicorn.run(app, host="127.0.0.1", port=options.port, timeout_graceful_shutdown=3)
    return 0


if __name__ == "__main__":
    sys.exit(main())
