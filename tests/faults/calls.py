"""One call of a model against a server that misbehaves, and what may be said against its outcome.

The subject is a provider: ours, or one of the naive ones, which have to be found out.
"""

import asyncio
import gc
import os
import shutil
import tempfile
import time
import weakref
from pathlib import Path
from typing import NamedTuple

import httpx2
import msgspec

from faults.talk import PROGRAMS, SPEAKERS, SPOKEN
from faults.tier import some
from holdfast.errors import HoldfastError
from holdfast.messages import Message, Stop
from holdfast.providers import Provider, Response, open_provider
from holdfast.providers.pipe import Timeouts
from holdfast.testing import validators
from holdfast.testing.claude_cli import StandIn, relay
from loopback import Loopback

ASKED = (Message.user("What is there?"),)
LIMITS = Timeouts(connect=1.0, idle=0.4, total=8.0)
PATIENT = Timeouts(connect=20.0, idle=20.0, total=60.0)  # where it is not about time
PROGRAM_LIMITS = Timeouts(connect=5.0, idle=2.0, total=20.0)  # Python has to start first


class Outcome(NamedTuple):
    """What came of a call: a response or an error; the text that was heard; how long it took."""

    response: Response | None
    error: BaseException | None
    heard: str
    took_s: float
    requests: int

    @property
    def partial(self):
        return getattr(self.error, "partial", None)


def ours(api, url, **options):
    """A provider of ours for a wire. It tries once, unless a row is about trying again."""
    vendor = SPOKEN[api]
    options = getattr(vendor, "options", {}) | {"tries_max": 1, "timeout": limits(api)} | options
    if api in PROGRAMS:
        return _program(f"{vendor.name}:{vendor.model}", url, options)
    provider = open_provider(f"{vendor.name}:{vendor.model}", base_url=url, **options)
    provider._is_looked_for = True  # Ollama's window: it would be asked for first
    return provider


def _program(name, url, options):
    """A program that prints what the server says."""
    folder = tempfile.mkdtemp()
    provider = open_provider(name, program=StandIn(folder, relay(url)).path, **options)
    weakref.finalize(provider, shutil.rmtree, folder)
    return provider


def limits(api):
    """How long a call of this wire may take."""
    return PROGRAM_LIMITS if api in PROGRAMS else LIMITS


def few(api, points, short=8):
    """All of them, but for a program."""
    return some(points, short) if api in PROGRAMS else points


async def call(provider, server, answer, *, stream=True, limit_s=20.0, **more):
    """Let the server answer so, and see what comes of one call."""
    server.answers = [answer]
    server.requests.clear()
    server.closed.clear()
    heard = []
    listen = {"on_chunk": heard.append} if stream else {}
    response = error = None
    started = time.monotonic()
    try:
        async with asyncio.timeout(limit_s):
            response = await provider.complete(ASKED, **listen, **more)
    except Exception as raised:
        error = raised
    took_s = time.monotonic() - started
    return Outcome(response, error, "".join(heard), took_s, len(server.requests))


def complaints(api, outcome, is_consistent=True):
    """What is wrong with an outcome, whatever the service did.

    If it was `is_consistent`, what was heard is what was kept.
    """
    found = []
    if outcome.error is not None and not isinstance(outcome.error, HoldfastError):
        found.append(f"an error that is none of ours: {outcome.error!r:.200}")
    for response in (outcome.response, outcome.partial):
        if response is not None:
            found += unsendable(api, response.message)
    if outcome.partial is not None and outcome.partial.stop not in (Stop.ERROR, Stop.CANCELLED):
        found.append(f"a partial answer that says {outcome.partial.stop}")
    told = outcome.response or outcome.partial
    if is_consistent and outcome.heard and (told is None or outcome.heard != (told.text or "")):
        found.append(f"heard {outcome.heard!r:.60}, kept {told and told.text!r:.60}")
    return found


def unsendable(api, message):
    """What every vendor would say against a history that goes on behind this message."""
    found = []
    for target, vendor in SPEAKERS.items():
        options = getattr(vendor, "options", {})
        wire = open_provider(f"{vendor.name}:{vendor.model}", **options).wire  # the vendor's own
        for history in ([*ASKED, message], [*ASKED, message, Message.user("Go on.")]):
            body = msgspec.json.decode(msgspec.json.encode(wire.to_wire(wire.ask(history))))
            problems = validators.problems(target, body, model=vendor.model)
            found += [f"behind an answer of {api}, {target} refuses: {each}" for each in problems]
    return found


def open_sockets():
    """The sockets and pipes of this process."""
    found = set()
    for each in Path("/proc/self/fd").iterdir():
        try:
            target = os.readlink(each)
        except OSError:
            continue
        if target.startswith(("socket:", "pipe:")):
            found.add(target)
    return found


async def leaks(before_tasks, before_sockets):
    """Tasks and sockets that were not there before; what is about to close may do so."""
    for _ in range(50):
        gc.collect()
        tasks = asyncio.all_tasks() - before_tasks
        sockets = open_sockets() - before_sockets
        if not tasks and not sockets:
            return []
        await asyncio.sleep(0.01)
    return [f"left behind: {each}" for each in (*tasks, *sockets)]


class Naive(Provider):
    """What one writes first: asks, reads, believes. Only the wire is ours."""

    vendor = "naive"

    def __init__(self, api, url):
        self._inner = ours(api, url)
        self.model = self._inner.model
        self.client = httpx2.AsyncClient(follow_redirects=True, timeout=None)

    async def complete(self, messages, on_chunk=None, cancel_token=None, **more):
        wire = self._inner.wire
        ask = wire.ask(messages, stream=on_chunk is not None)
        from holdfast.providers.base import Callbacks

        answer = wire.answer(ask, Callbacks(on_chunk))
        reader = wire.reader(answer)
        url = self._inner.address.join(wire.path(ask))
        if on_chunk is None:
            reader.read((await self.client.post(url, json={})).json())
            return answer.response()
        async with self.client.stream("POST", url, json={}) as reply:
            async for line in reply.aiter_lines():
                if line.startswith("data: "):
                    reader.feed("message", line[6:].encode())
        return answer.response()

    async def close(self):
        await self.client.aclose()


async def with_server(api, body, make=ours, **options):
    """`body(provider, server)` with both; nothing may be left behind by ours."""
    tasks, sockets = asyncio.all_tasks(), open_sockets()
    async with Loopback(b"") as server:
        provider = make(api, server.url, **options)
        try:
            result = await body(provider, server)
        finally:
            await provider.close()
    return result, await leaks(tasks, sockets)
