"""S2-114's six with what vendors really said: recorded answers, served to a session's turns.

Each request that a session sends is judged by the vendor's rules, and, where the recording has the
next request too, compared in meaning with the one that its own client sent. How much was found in
the traffic is asserted, so that an empty folder is no success.
"""

import asyncio
import re
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest

from faults.tier import pick, some
from holdfast import Message, Settings
from holdfast.errors import ContextOverflow
from holdfast.events import Folded, TextDelta
from holdfast.testing.prompt_cache import PromptCache
from holdfast.testing.replay import readings
from holdfast.testing.replay.follow import judge_next
from holdfast.testing.replay.history import conversation
from holdfast.testing.replay.recordings import (
    ANTHROPIC,
    GOOGLE,
    OPENAI_CHAT,
    OPENAI_RESPONSES,
)
from holdfast.testing.replay.refused import expected
from holdfast.testing.replay.server import Answer, Server
from holdfast.window import Truncate
from recorded_turns import (
    Recorded,
    chains,
    exchanges,
    is_asked,
    is_whole,
    needs_traffic,
    plain_client,
    problems,
)
from sessions_for_tests import CANCEL_S, asynchronous, events_of, messages, opened, talking, until
from vendor_wires import VENDORS

SAID = "All work and no play makes a dull day. " * 12
VENDOR = {vendor.api: vendor for vendor in VENDORS if not vendor.is_lenient}
WIRES = tuple(VENDOR)  # a program is started elsewhere: test_turn_claude_cli.py
# Whose traffic has conversations; of Ollama's own API single questions were recorded.
TALKED = tuple(wire for wire in WIRES if wire != "ollama")
EDGE = re.compile(rb"\r?\n\r?\n")

pytestmark = needs_traffic
unhurried = partial(asynchronous, seconds=pick(60, 600))
every_wire = pytest.mark.parametrize("wire", TALKED)


def fine(wire):
    """An answer of our own writing, behind recorded ones that leave something to be asked."""
    return VENDOR[wire].says("Fine.", number=99)


def judged(exchange, server):
    """What is wrong with the requests that a server was sent."""
    return [each for request in server.requests for each in problems(exchange, request.body)]


# Conversations, said again


async def said_again(chain, url, client):
    """Say a chain in a session, every turn by a manager of its own; the requests that it sent."""
    tools, ids = chain.tools(), []
    answers = [*map(Answer.of, chain.exchanges), fine(chain.exchanges[0].wire)]
    async with Server(*answers) as server:
        for number, message in enumerate(chain.inputs):
            model = Recorded(chain.exchanges[len(server.requests)], server.url, client)
            options = {"model": model, "tools": tools, "settings": chain.settings}
            async with talking(url, **options) as (session, _):
                if not number:
                    await session.append(*chain.before)
                    ids = [each.id for each in await messages(session)]
                assert [each.id for each in await messages(session)] == ids
                await session.send(message)
                ids = [each.id for each in await messages(session)]
    return [request.body for request in server.requests]


def differs(chain, at, sent):
    """In what a request differs from the recorded one, behind what was sent before it."""
    before = replace(chain.exchanges[at], request=sent[at])
    adapter = SimpleNamespace(body=lambda _: sent[at + 1])
    answer = SimpleNamespace(message=Message.assistant("whatever it was"))
    wrong, _ = judge_next(before, answer, chain.nexts[at], adapter)
    return [] if wrong is None else [f"{before.name}: {wrong}"]


@every_wire
@unhurried
async def test_recorded_conversations_are_said_again(tmp_path, wire):
    """S2-114, save-load-continue and cache hits: the vendor takes every request; it begins with
    the one before, to the letter, and goes on as the recorded client did."""
    vendor, wrong, turned = VENDOR[wire], [], 0
    async with plain_client() as client:
        for number, chain in enumerate(some(chains(wire), 12)):
            sent = await said_again(chain, f"sqlite:{tmp_path}/{number}.db", client)
            for at, exchange in enumerate(chain.exchanges):
                wrong += problems(exchange, sent[at])
            for at in range(len(chain.nexts)):
                row = vendor.blocks(sent[at])
                assert vendor.blocks(sent[at + 1])[: len(row)] == row, chain.exchanges[at].name
                wrong += differs(chain, at, sent)
            turned += len(chain.nexts)

    assert wrong == [] and turned >= 12


@unhurried
async def test_recorded_conversations_are_read_from_anthropics_cache(tmp_path):
    """S2-114, cache hits: no mark is refused, and all that could have been read is."""
    read = 0
    async with plain_client() as client:
        for number, chain in enumerate(chains(ANTHROPIC)):
            if len(chain.exchanges[-1].data) + len(str(chain.exchanges[-1].request)) < 8_000:
                continue  # below what is cached at all
            sent = await said_again(chain, f"sqlite:{tmp_path}/{number}.db", client)
            cache = PromptCache()
            for at, body in enumerate(sent):
                billed = cache.bill(body, at * 20)
                assert billed.refused is None, (chain.exchanges[0].name, billed.refused)
                assert billed.cache_read == billed.readable, chain.exchanges[0].name
                read += billed.cache_read

    assert read > 0


@every_wire
@unhurried
async def test_recorded_usage_is_the_usage_of_the_turn(tmp_path, wire):
    """S2-114, cache hits: what the vendor says that it read from its cache is told and kept."""
    hits = [e for e in exchanges(wire) if is_whole(e) and readings.read(e).usage.cache_read]
    hits = [e for e in hits if not readings.read(e).calls]
    async with plain_client() as client:
        for number, exchange in enumerate(some(hits, 6)):
            async with Server(Answer.of(exchange), fine(wire)) as server:
                model = Recorded(exchange, server.url, client)
                url = f"sqlite:{tmp_path}/{number}.db"
                async with talking(url, model=model, settings=UNCUT) as (session, _):
                    result = await session.send("Hello?")

            usage = readings.read(exchange).usage
            assert result.usage.cache_read == usage.cache_read, exchange.name
            assert result.usage.input == usage.input, exchange.name

    assert len(hits) >= 3


UNCUT = Settings(limits={"continuations": 0})


# Collecting the window


@every_wire
@unhurried
async def test_recorded_conversations_go_on_behind_folds(file_url, wire):
    """S2-114, GC round trip: one conversation after another in one session, of which only the
    last two turns are shown; no request is refused, and the log keeps all."""
    wrong, kept = [], []
    async with plain_client() as client, opened(file_url, "never") as (sessions, _):
        session = await sessions.get_or_create("cli:day", settings=UNCUT)
        for chain in some(chains(wire), 10):
            async with Server(*map(Answer.of, chain.exchanges), fine(wire)) as server:
                for message in chain.inputs:
                    model = Recorded(chain.exchanges[len(server.requests)], server.url, client)
                    await session.send(message, model=model, tools=chain.tools())
                    assert (await messages(session))[: len(kept)] == kept
                    kept = await messages(session)
            wrong += judged(chain.exchanges[0], server)
            await session.compact(Truncate(keep_turns=2))

        assert wrong == [] and len(session.window().messages) < len(kept)


# A prompt that is too long

REFUSED = (ANTHROPIC, OPENAI_CHAT, GOOGLE)  # no refusal of the Responses API was recorded


@pytest.mark.parametrize("wire", REFUSED)
@unhurried
async def test_a_recorded_refusal_makes_the_prompt_smaller(tmp_path, wire):
    """S2-114, overflow recovery: in the very words of the vendor."""
    refusals = [e for e in exchanges(wire) if is_overflow(e)]
    whole = next(e for e in exchanges(wire) if is_whole(e) and not readings.read(e).calls)
    async with plain_client() as client:
        for number, refusal in enumerate(refusals):
            async with Server(Answer.of(refusal), Answer.of(whole)) as server:
                model = Recorded(whole, server.url, client)
                url, heard = f"sqlite:{tmp_path}/{number}.db", []
                async with talking(url, model=model, settings=UNCUT) as (session, _):
                    await session.append(*TOLD)
                    result = await session.send("Well?", on_event=heard.append)

                    assert result.text == readings.read(whole).text and events_of(Folded, heard)
                    first, second = server.requests
                    assert len(second.data) < len(first.data) and b"Well?" in second.data
                    assert (await messages(session))[: len(TOLD)] == TOLD
            assert judged(whole, server) == []

    assert refusals


TOLD = [
    message
    for number in range(8)
    for message in (Message.user(f"Question {number}? {SAID}"), Message.assistant(SAID))
]


def is_overflow(exchange):
    error = readings.read(exchange).error
    return bool(error) and ContextOverflow in expected(exchange.status, error)


# Another vendor, and back

LARGE = 1_000_000  # this is not about windows
SIGNED = (ANTHROPIC, OPENAI_RESPONSES, GOOGLE)
PAIRS = [(wire, other) for wire in SIGNED for other in WIRES if wire != other]


@pytest.mark.parametrize(("wire", "other"), PAIRS)
@unhurried
async def test_recorded_proofs_go_back_to_who_gave_them_alone(tmp_path, wire, other):
    """S2-114, cross-provider swap: another vendor is shown none of the signatures, and the model
    that gave them all of them, to the letter."""
    signed = [e for e in exchanges(wire) if proofs(e) and is_whole(e) and not is_paused(e)]
    signed = [e for e in signed if is_asked(conversation(e))]
    elsewhere = [e for e in exchanges(other) if is_whole(e) and not readings.read(e).calls]
    async with plain_client() as client:
        for number, exchange in enumerate(some(signed, 6)):
            url = f"sqlite:{tmp_path}/{number}.db"
            there, back = await swapped(exchange, elsewhere[number % len(elsewhere)], url, client)

            assert not [proof for proof in proofs(exchange) if proof in there], exchange.name
            assert not [proof for proof in proofs(exchange) if proof not in back], exchange.name

    assert len(signed) >= 6


def is_paused(exchange):
    """Whether a tool of the vendor's has not answered yet. Its result is in the vendor's own next
    answer alone: behind one of ours the call has none, and such a call is not sent again."""
    return "pause_turn" in (readings.read(exchange).stop, *readings.read(exchange).stops_also)


def proofs(exchange):
    """What only the vendor can check."""
    reading = readings.read(exchange)
    return (*reading.signatures, *reading.redacted)


async def swapped(exchange, elsewhere, url, client):
    """Send to the one, to the other, and to the first again; the last two requests as text."""
    start = conversation(exchange)
    tools = [tool.bind(lambda **_: "done") for tool in start.tools]
    settings = start.settings.replace(model=None, limits={"continuations": 0}, system=start.system)
    async with (
        Server(Answer.of(exchange), fine(exchange.wire)) as server,
        Server(Answer.of(elsewhere)) as another,
    ):
        one = Recorded(exchange, server.url, client, context_limit=LARGE)
        two = Recorded(elsewhere, another.url, client, context_limit=LARGE)
        async with talking(url, model=one, tools=tools, settings=settings) as (session, _):
            await session.append(*start.messages[:-1])
            await session.send(start.messages[-1])
            first = server.requests[-1].body
            await session.send("And you?", model=two)
            await session.send("And you?")
        assert judged(exchange, server) == judged(elsewhere, another) == []
        vendor, last = VENDOR[exchange.wire], server.requests[-1]
        assert vendor.blocks(last.body)[: len(vendor.blocks(first))] == vendor.blocks(first)
        return another.requests[0].data.decode(), last.data.decode()


# A cancel, and the next turn


@every_wire
@unhurried
async def test_a_recorded_stream_is_cancelled_and_gone_on_with(tmp_path, wire):
    """S2-114, cancel then continue: what had come by then is kept, word for word, and the vendor
    takes the next request."""
    streams = [(e, at) for e in exchanges(wire) if e.is_sse and is_whole(e) and (at := middle(e))]
    async with plain_client() as client:
        for number, (exchange, at) in enumerate(some(streams, 8)):
            cut = Answer.of(exchange, stop_at=at, then="stall")
            async with Server(cut, Answer.of(exchange), fine(wire)) as server:
                model = Recorded(exchange, server.url, client)
                url = f"sqlite:{tmp_path}/{number}.db"
                async with talking(url, model=model, settings=UNCUT) as (session, _):
                    words = readings.read(exchange.cut(at)).text
                    result = await cancelled_at(words, session)
                    await asyncio.wait_for(server.closed.wait(), CANCEL_S)
                    await session.send("Go on.")

                    assert (result.outcome, result.text) == ("cancelled", words), exchange.name
            assert judged(exchange, server) == []

    assert len(streams) >= 8


async def cancelled_at(words, session):
    """The result of a turn that is cancelled when so much was said."""
    heard = []
    turn = asyncio.create_task(session.send("Well?", on_event=heard.append))
    await until(lambda: "".join(event.text for event in events_of(TextDelta, heard)) == words)
    session.cancel()
    return await asyncio.wait_for(turn, CANCEL_S)


def middle(exchange):
    """The end of an event behind which there are some words, and not all."""
    edges = [edge.end() for edge in EDGE.finditer(exchange.data)]
    whole = readings.read(exchange).text
    for at in edges[len(edges) // 2 :]:
        reading = readings.read(exchange.cut(at))
        if reading.text and not reading.is_complete and reading.text != whole:
            return at
    return None
