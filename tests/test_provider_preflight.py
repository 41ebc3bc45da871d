"""Preflight: what it says of a conversation is what then happens to the request."""

import asyncio
import base64
import json
from collections import Counter
from decimal import Decimal
from functools import cache
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import random_histories as made
import talks
from faults.handoffs import PARTIES, Journey, journey_from, recorded_exchanges, tools_for
from holdfast import Message, Tool, ToolCall, open_provider
from holdfast.frozen import thaw
from holdfast.parts import Audio, File, Image, Opaque, Text, Thinking
from holdfast.providers import preflight, prepare
from holdfast.providers.models import model_of
from holdfast.providers.tokens import counter, prompt_tokens
from holdfast.testing.fake_provider import FakeProvider
from holdfast.usage import Prices
from holdfast.window.render import render
from recorded_turns import Recorded, needs_traffic
from vendor_wires import VENDORS, served

HI, BYE = Message.user("hi"), Message.user("bye")
CLAUDE = open_provider("anthropic:claude-sonnet-4-6", api_key="none")
GPT = open_provider("openai:gpt-5", api_key="none")
CHAT = open_provider("openai:gpt-4.1", api="chat", api_key="none")
GEMINI = open_provider("google:gemini-3-pro-preview", api_key="none")
PROVIDERS = {
    party.name: party.opened(party.model, "http://127.0.0.1:9", {**party.options})
    for party in PARTIES
}
MEDIA = (Image, Audio, File)

every_party = pytest.mark.parametrize("party", PARTIES, ids=lambda party: party.name)


def found(repairs):
    """What of what, as one word each."""
    return [f"{each.what} {each.part}".strip() for each in repairs]


def unknown_told(**options):
    """What is said of a model that no table has."""
    said = [Message.user("words " * 30) for _ in range(30)]
    options = {"base_url": "http://127.0.0.1:9", **options}
    return open_provider("openai:nobody-knows-it", **options).preflight(said)


def sent(provider, messages, system=None, tools=None):
    """The request of which a preflight tells, as text."""
    ask = provider.wire.ask(messages, system, tools)
    return msgspec.json.encode(provider.wire.to_wire(ask)).decode()


# What is dropped, converted, renamed, mended


def test_what_only_its_own_model_can_check_is_dropped_for_another():
    """S2-71: thoughts with their signatures, blocks and signatures of calls are told one by one."""
    call = ToolCall(id="c1", name="look", arguments="{}", signature="c2ln")
    content = [Thinking("hm", "c2ln"), Opaque("google", {"executableCode": {"code": "1"}})]
    said = Message.assistant([*content, Text("ok")], [call], model="google:gemini-3-pro-preview")
    messages = [HI, said, Message.tool("1", "c1")]

    other, own = GPT.preflight(messages), GEMINI.preflight(messages)

    dropped = ["stripped thinking", "stripped opaque", "stripped signature"]
    assert found(other.dropped) == dropped and own.dropped == ()
    assert {each.message_id for each in other.dropped} == {said.id}
    assert (other.source, own.source) == (said.model, said.model)


def test_what_the_wire_itself_leaves_out_is_told_too():
    """A thought that was never signed, half of a search, a block that only answers may hold."""
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    content = [Thinking("hm"), Opaque("anthropic", search), Opaque("anthropic", {"type": "odd"})]
    messages = [HI, Message.assistant([*content, Text("ok")], model=CLAUDE.name), BYE]

    told = CLAUDE.preflight(messages)

    assert found(told.dropped) == ["stripped thinking", "stripped opaque", "stripped opaque"]


def test_a_call_that_was_only_thought_of_is_left_out():
    call = ToolCall(id="c1", name="look", arguments="{}", extra={"thought": True})
    messages = [HI, Message.assistant("ok", [call], model=GEMINI.name), Message.tool("1", "c1")]

    assert found(GEMINI.preflight(messages).dropped) == ["stripped call"]
    assert "look" not in sent(GEMINI, messages)


def test_media_that_a_model_does_not_take_is_dropped_by_name():
    messages = [Message.user([Audio(data=b"ID3abc", media_type="audio/mpeg"), Text("Listen.")])]

    told = {p.name: found(p.preflight(messages).dropped) for p in (CLAUDE, GPT, GEMINI)}

    assert told == {
        CLAUDE.name: ["not shown audio"],
        GPT.name: ["not shown audio"],
        GEMINI.name: [],
    }


def test_what_is_said_in_another_form_is_converted():
    call = ToolCall(id="c1", name="look", arguments="[1]")
    picture = Image(data=talks.PNG, media_type="image/png")
    messages = [
        *(HI, Message.assistant(None, [call]), Message.tool([Text("It."), picture], "c1")),
        *(Message.system("Be brief."), BYE),
    ]

    told = {name: found(p.preflight(messages).converted) for name, p in PROVIDERS.items()}

    assert told["anthropic"] == ["recast system", "recast arguments"]
    assert told["openai-chat"] == ["recast image"]
    assert told["openai-responses"] == []
    assert told["google"] == ["recast system", "recast arguments"]
    assert told["google, unsigned"] == ["recast system", "recast arguments", "recast image"]
    assert told["code-assist"] == ["recast system", "recast arguments", "recast image"]
    assert told["ollama"] == ["recast system", "recast arguments"]
    assert told["local"] == ["recast system", "recast call", "recast result"]


def test_names_and_ids_that_a_model_cannot_spell_are_renamed():
    call = ToolCall(id="an id", name="fs.read", arguments="{}")
    messages = [HI, Message.assistant(None, [call]), Message.tool("1", "an id")]

    told = CLAUDE.preflight(messages, tools=[Tool("fs.read")])

    ((id_told, name_told), body) = told.renamed, sent(CLAUDE, messages, tools=[Tool("fs.read")])
    assert (id_told.part, name_told.part) == ("id", "name")
    assert body.count(f'"{id_told.became}"') == 2 and '"an id"' not in body
    assert told.tools == {"fs.read": "fs_read"} and name_told.became == "fs_read"


def test_what_was_wrong_for_every_model_is_mended():
    """Also of a window, which was rendered before."""
    call = ToolCall(id="c1", name="look", arguments="{}")
    messages = [HI, Message.assistant(None, [call]), BYE]

    told = CLAUDE.preflight(messages)

    assert found(told.mended) == ["unanswered"]
    assert CLAUDE.preflight(render(messages).messages) == told


def test_a_conversation_that_a_model_takes_as_it_is_has_nothing_to_tell():
    told = GPT.preflight([HI, Message.assistant("ho"), BYE], "Be brief.", [Tool("look")])

    assert told.repairs == () and told.tools == {} and told.source is None


# How much it is


def test_tokens_are_those_of_what_is_sent_beside_those_of_the_model_before():
    """S2-115, token divergence: each by the counter of its own family."""
    words = "Quelle heure est-il à Turin? " * 50
    messages = [Message.user(words), Message.assistant("Midi.", model=GPT.name), HI]

    told = CLAUDE.preflight(messages, "Be brief.")

    known, before = model_of("anthropic", CLAUDE.model), model_of("openai", GPT.model)
    assert told.tokens == prompt_tokens(messages, counter(known.family), system="Be brief.")
    assert told.source_tokens == prompt_tokens(messages, counter(before.family), system="Be brief.")
    assert told.tokens != told.source_tokens == GPT.preflight(messages, "Be brief.").tokens
    assert 0 <= told.margin <= told.tokens * 0.75


def test_what_does_not_fit_is_named():
    """With room for an answer; the largest part, and how much of it would fit beside the rest."""
    small = open_provider("openai:small", base_url="http://127.0.0.1:9", context_limit=4000)
    call = ToolCall(id="c1", name="read", arguments="{}")
    long = Message.tool("many words " * 4000, "c1", name="read")

    told = small.preflight([HI, Message.assistant(None, [call]), long])

    assert not told.fits and told.largest.message_id == long.id
    assert told.problem.what == "the result of read" == told.largest.what
    assert told.problem.tokens > told.room.prompt > told.problem.tokens_max > 0
    assert told.room.context == 4000 == told.room.prompt + told.room.reserve
    assert str(told.problem) in str(told)


def test_no_part_is_named_where_none_alone_is_too_large():
    told = unknown_told(context_limit=1000)

    assert not told.fits and told.problem.what == "the request"
    assert (told.problem.tokens, told.problem.tokens_max) == (told.tokens, told.room.prompt)


def test_a_request_that_may_be_longer_than_it_is_counted_does_not_fit():
    """By as much as the counter says of itself that it may be short."""
    said = [Message.user("words " * 30) for _ in range(30)]
    tokens, margin = CLAUDE.preflight(said)[4:6]
    limits = {"output_limit": 10, "api_key": "none"}

    told = [
        open_provider("anthropic:claude-sonnet-4-6", context_limit=limit, **limits).preflight(said)
        for limit in (tokens + margin + 10, tokens + margin + 9)
    ]

    assert [each.fits for each in told] == [True, False] and 0 < margin < tokens


def test_what_fits_says_so():
    told = GPT.preflight([HI])

    assert told.fits and told.problem is None and "fits" in str(told)


def test_a_cache_that_never_saw_the_conversation_has_to_be_given_all_of_it():
    """And at what price; a model that answered last has all up to there."""
    words = Message.user("A long time ago in Turin. " * 500)
    messages = [words, Message.assistant("Yes?", model=CLAUDE.name), HI]

    moved = CLAUDE.preflight([*messages, Message.assistant("ho", model=GPT.name), BYE])
    stayed = CLAUDE.preflight(messages)

    assert moved.cache_tokens == moved.tokens
    assert moved.cost == Decimal("3.75") * moved.tokens / 10**6
    assert 0 < stayed.cache_tokens < 100 < stayed.tokens
    assert stayed.cost < moved.cost / 8 and stayed.currency == "USD"
    assert CLAUDE.preflight([HI]).cache_tokens == 0


def test_what_is_not_known_is_none():
    told = unknown_told()

    assert (told.cache_tokens, told.cost, told.source_tokens) == (None, None, None)


def test_prices_and_limits_are_those_that_the_provider_was_opened_with():
    prices = Prices(input=2, output=1, currency="EUR")
    gpt = open_provider("openai:gpt-5", api_key="none", prices=prices, context_limit=50_000)

    told = gpt.preflight([HI])

    assert (told.currency, told.room.context) == ("EUR", 50_000)
    assert told.cost == 2 * Decimal(told.tokens) / 10**6


def test_it_reads_as_a_small_table():
    call = ToolCall(id="c1", name="fs.read", arguments="{}")
    said = Message.assistant([Thinking("hm", "c2ln"), Text("ok")], [call], model=CLAUDE.name)

    told = GPT.preflight([HI, said, BYE], "Be brief.", [Tool("fs.read")])

    lines = str(told).splitlines()
    assert lines[0] == "anthropic:claude-sonnet-4-6 -> openai:gpt-5: fits"
    assert [line.split()[0] for line in lines[1:]] == [
        *("tokens", "window", "cache", "dropped", "renamed", "mended", "tools")
    ]
    assert "thinking (1)" in str(told) and "'fs.read' as 'fs_read'" in str(told)


# What it is


def test_it_changes_nothing_and_is_a_value():
    messages = talks.several_at_once()
    before = list(messages)

    told = CLAUDE.preflight(messages, tools=tools_for(messages))

    assert messages == before and told == CLAUDE.preflight(messages, tools=tools_for(messages))
    with pytest.raises(AttributeError):
        told.tokens = 0
    with pytest.raises(TypeError):
        told.tools["fs.read"] = "other"


def test_a_provider_that_has_no_wire_of_ours_tells_what_is_the_same_for_all():
    call = ToolCall(id="c1", name="look", arguments="{}")
    messages = [HI, Message.assistant(None, [call]), BYE]

    told = FakeProvider(context=5_000, output=500).preflight(messages, "Be brief.")

    assert found(told.repairs) == ["unanswered"]
    assert told.model == "fake:model" and told.room.context == 5_000 and told.tokens > 10


@every_party
def test_nothing_is_sent(party):
    async def scenario():
        async with served(party) as (server, provider):
            messages = talks.several_at_once()
            provider.preflight(messages, "Be brief.", tools_for(messages))
            return server.requests

    assert asyncio.run(scenario()) == []


# It is true


def things(messages):
    """(message id, kind, words by which it is known) of what a model may not be given."""
    for message in messages:
        for part in message.content if isinstance(message.content, tuple) else ():
            if type(part) is Thinking and (part.signature or part.text):
                yield message.id, "thinking", part.signature or part.text.partition("\n")[0]
            elif type(part) is Opaque and (known := max(leaves(thaw(part.data)), key=len)):
                yield message.id, "opaque", known
            elif type(part) is Text and isinstance(part.extra.get("signature"), str):
                yield message.id, "signature", part.extra["signature"]
            elif isinstance(part, MEDIA) and (part.data or part.url):
                data = base64.b64encode(part.data).decode() if part.data else part.url
                yield message.id, type(part).__name__.lower(), data
        for call in message.calls:
            if call.signature:
                yield message.id, "signature", call.signature


def leaves(value):
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from leaves(each)
    else:
        yield value if isinstance(value, str) else ""


def untrue(provider, messages, tools):
    """What a preflight says is dropped and is in the request, or the other way round."""
    told, body = provider.preflight(messages, None, tools), sent(provider, messages, None, tools)
    known = list(things(messages))
    times = Counter(words for _, _, words in known)
    spoken = "".join([*(each.text or "" for each in messages), *map(str, tools)])
    missing, unclear = Counter(), set()
    for id, kind, words in known:
        if times[words] > 1 or len(words) < 12 or words in spoken:
            unclear.add((id, kind))  # nobody could tell which of them it was
        missing[id, kind] += json.dumps(words, ensure_ascii=False)[1:-1] not in body
    dropped = Counter((each.message_id, each.part) for each in told.dropped)
    return [
        (kind, missing[id, kind], dropped[id, kind])
        for id, kind in {(id, kind) for id, kind, _ in known} - unclear
        if missing[id, kind] != dropped[id, kind]
    ]


@every_party
def test_what_it_says_of_other_vendors_is_what_happens(party):
    """S2-115: of conversations that all vendors took part in, with proofs, blocks and media."""
    for seed in range(3):
        for talk in talks.TALKS:
            messages, moved = talk(), Journey(Random(seed), VENDORS, tools_for(talk()))
            asyncio.run(moved.travel(messages))

            assert untrue(PROVIDERS[party.name], moved.log, moved.tools) == [], f"{talk} {seed}"


@cache
def recorded():
    """Conversations that go on behind a recorded answer, each with who gave it.

    Without those of a program: it is told of its own tools in words, without the ids that
    `things` are known by.
    """
    exchanges = [each for each in recorded_exchanges() if each.wire != "claude-cli"]
    found = [(e, journey_from(e, Random(0), VENDORS)) for e in exchanges[::4]]
    return [(e, [*j.log, Message.user("Go on.")], j.tools) for e, j in found if j is not None]


@needs_traffic
@every_party
def test_what_it_says_of_recorded_conversations_is_what_happens(party):
    """S2-79a: of what vendors really answered, whoever it was."""
    said = recorded()[::2]
    for exchange, log, tools in said:
        assert untrue(PROVIDERS[party.name], log, tools) == [], exchange.name

    assert len(said) > 80


@needs_traffic
def test_what_it_says_of_a_recorded_conversation_to_its_own_model_is_what_happens():
    """What only this model can check goes back, or it is told what does not."""
    kept = 0
    for exchange, log, tools in recorded():
        provider = Recorded(exchange, "http://127.0.0.1:9", None)

        assert untrue(provider, log, tools) == [], exchange.name
        kept += sum(1 for _ in things(log)) - len(provider.preflight(log).dropped)

    assert kept > 100


@pytest.mark.parametrize("fault", ["dropped in silence", "left out in silence"])
def test_control_what_is_not_told_is_found(fault, monkeypatch):
    """A thought that preparing drops and does not report; one that the wire leaves out likewise."""
    sealed = fault.startswith("dropped")
    thought = Thinking("a thought of some length", "a2VwdCBhcyBpdCBjYW1l" if sealed else None)
    messages = [HI, Message.assistant([thought, Text("ok")], model=CLAUDE.name), BYE]
    assert untrue(CLAUDE, messages, ()) == []
    monkeypatch.setattr(preflight, "left_out", lambda wire, ask: ())
    if sealed:
        monkeypatch.setattr(
            prepare._Work, "_part", lambda work, part, *_: part if type(part) is Text else None
        )

    assert untrue(CLAUDE, messages, ()) == [("thinking", 1, 0)]


@given(seed=st.integers(0, 2**32), party=st.sampled_from(PARTIES))
def test_it_never_raises(seed, party):
    """Whatever the history, and whatever the tools are called."""
    random = Random(seed)
    messages, tools, system = made.history(random), made.tools(random), random.choice((None, "Be."))
    provider = PROVIDERS[party.name]

    told = provider.preflight(messages, system, tools)

    assert provider.name in str(told) and told.tokens > 0 and told.room.context > 0
    groups = (*told.dropped, *told.converted, *told.renamed, *told.mended)
    assert Counter(groups) == Counter(told.repairs)
    assert set(provider.wire.ask(messages, system, tools).prepared.repairs) <= set(told.repairs)
