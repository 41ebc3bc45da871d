"""Recorded conversations as turns of a session: what was said, what tools gave back, what came.

The traffic is data of others and not part of the project: HOLDFAST_CORPUS names its folder. A
`Chain` is a part of a recording in which each request goes on with the answer before it, so that
a session which is given the same answers has to send the same requests.
"""

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

import httpx2
import pytest

from holdfast import HoldfastError, Message, Role, Settings, Tool, ToolCall
from holdfast.parts import Audio, File, Image, Text
from holdfast.providers.address import Address
from holdfast.providers.http_provider import HttpProvider
from holdfast.testing import validators
from holdfast.testing.replay import readings
from holdfast.testing.replay.history import Conversation, conversation
from holdfast.testing.replay.ours import wire_for
from holdfast.testing.replay.recordings import Exchange, Recording, read_folder
from holdfast.testing.replay.sequences import Next, next_of

ROOT = Path(__file__).parent.parent
CORPUS = Path(os.environ.get("HOLDFAST_CORPUS") or ROOT.parent / "shared" / "corpus")
TRAFFIC = CORPUS / "traffic"
needs_traffic = pytest.mark.skipif(
    not TRAFFIC.is_dir(), reason=f"no corpus of traffic in {CORPUS} (HOLDFAST_CORPUS)"
)
GIVEN = (Text, Image, Audio, File)  # what a tool gives back beside words


class Chain(NamedTuple):
    """The first request, and for every later one how it came about."""

    start: Conversation
    exchanges: tuple[Exchange, ...]
    nexts: tuple[Next, ...]

    @property
    def before(self) -> tuple[Message, ...]:
        """What had been said before the first question."""
        return self.start.messages[:-1]

    @property
    def inputs(self) -> list[Message]:
        """What the user says, in order."""
        tails = [each.tail[0] for each in self.nexts if each.tail[0].role is Role.USER]
        return [self.start.messages[-1], *tails]

    @property
    def settings(self) -> Settings:
        """As the first request has them; what was cut by its length stays cut."""
        return self.start.settings.replace(
            model=None, system=self.start.system, limits={"continuations": 0}
        )

    def tools(self) -> list[Tool]:
        """The tools, each of which gives back what was recorded for its calls, in their order."""
        results = defaultdict(list)
        for each in self.nexts:
            calls = {call.id: call for message in each.answer for call in message.calls}
            for message in each.tail:
                if message.role is Role.TOOL:
                    call = calls[message.tool_call_id]
                    results[call.name, _same(call.arguments)].append(message.content)
        return [_bound(tool, results) for tool in self.start.tools]


def _same(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments or "{}"), sort_keys=True)
    except ValueError:
        return arguments


def _bound(tool: Tool, results: dict) -> Tool:
    def run(**arguments):
        content = results[tool.name, json.dumps(arguments, sort_keys=True)].pop(0)
        return list(content) if isinstance(content, tuple) else content or ""

    return tool.bind(run)


@cache
def recordings() -> tuple[Recording, ...]:
    """Every recording of a vendor that is built."""
    found = read_folder(TRAFFIC)
    return tuple(each for each in found if isinstance(each, Recording))


@cache
def exchanges(wire: str) -> tuple[Exchange, ...]:
    """Every exchange on a wire."""
    return tuple(
        each
        for recording in recordings()
        for each in recording.exchanges
        if each.why_not is None and each.wire == wire
    )


@cache
def chains(wire: str) -> tuple[Chain, ...]:
    """Every chain on a wire that a session can repeat."""
    return tuple(
        chain for recording in recordings() for chain in _chains(recording, wire) if chain.nexts
    )


def _chains(recording: Recording, wire: str) -> Iterator[Chain]:
    seen: set[int] = set()
    for exchange in recording.exchanges:
        start = conversation(exchange)
        if exchange.why_not or exchange.wire != wire or exchange.number in seen:
            continue
        if start is None or not is_asked(start):
            continue
        found, nexts = [exchange], []
        while (following := next_of(recording, found[-1].number)) and _is_said(following, start):
            found.append(following.exchange)
            nexts.append(following)
        seen |= {each.number for each in found}
        yield Chain(start, tuple(found), tuple(nexts))


def is_asked(start: Conversation | None) -> bool:
    """Whether it is all there, and ends with what a user says."""
    return bool(
        start and not start.is_elsewhere and start.messages and start.messages[-1].starts_turn
    )


def _is_said(following: Next, start: Conversation) -> bool:
    """Whether a session would ask this next: results for all calls, or one message of the user."""
    tail = following.tail
    if following.is_remembered or following.exchange.status >= 400 or not tail:
        return False
    if following.conversation.system != start.system:
        return False
    calls = [call for message in following.answer for call in message.calls]
    if not calls:
        return len(tail) == 1 and tail[0].starts_turn
    tools = {tool.name: tool for tool in start.tools}
    is_run = all(call.name in tools and _is_taken(tools[call.name], call) for call in calls)
    is_given = all(map(_is_result, tail))
    return is_run and is_given and [m.tool_call_id for m in tail] == [call.id for call in calls]


def _is_taken(tool: Tool, call: ToolCall) -> bool:
    try:
        tool.check(call.arguments)
    except HoldfastError:
        return False
    return True


def _is_result(message: Message) -> bool:
    """Whether a tool can have given this back."""
    content = message.content
    is_given = isinstance(content, str) or all(isinstance(part, GIVEN) for part in content or ())
    return message.role is Role.TOOL and not message.is_error and bool(content) and is_given


# Asking


class Recorded(HttpProvider):
    """The provider of whatever wire an exchange was on."""

    def __init__(self, exchange, url, client, **options):
        wire = wire_for(exchange)
        self.vendor = wire.vendor
        super().__init__(wire, Address(url), api_key="none", client=client, tries_max=1, **options)


@asynccontextmanager
async def plain_client():
    """A client without TLS, which takes long to get ready and is not needed here."""
    async with httpx2.AsyncClient(verify=False) as client:
        yield client


def problems(exchange: Exchange, body: object) -> list[str]:
    """For what the vendor of an exchange would refuse a request."""
    found = validators.problems(
        exchange.wire or "", body, lenient=exchange.is_lenient, model=exchange.model
    )
    return [f"{exchange.name}: {problem}" for problem in found]


def is_whole(exchange: Exchange) -> bool:
    """Whether it is an answer with words, and nothing went wrong."""
    reading = readings.read(exchange)
    return reading.error is None and reading.is_complete and bool(reading.text)
