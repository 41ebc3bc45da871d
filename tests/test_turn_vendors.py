"""S2-114's six: what every vendor's wire has to survive, over real HTTP, in each one's own form.

Collecting the window and going on; a prompt that is too long; a prefix that a cache can read;
another vendor and back; a cancel and the next turn; a file that another manager, or another
process, goes on with. The answers are of our own writing (`vendor_wires`); those that vendors
really gave are in test_turn_recorded.py. Every request is judged when its server is left.
"""

import asyncio
import json
import sys
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from subprocess import PIPE

import msgspec
import pytest

from holdfast import Message, Settings
from holdfast.errors import ContextOverflow, DoesNotFit, RateLimited
from holdfast.events import Folded, TextDelta, ThinkingDelta
from holdfast.testing.prompt_cache import PromptCache
from holdfast.window import Truncate
from sessions_for_tests import (
    CANCEL_S,
    asynchronous,
    events_of,
    messages,
    talking,
    tasks_left,
    tool_of,
    until,
)
from vendor_wires import PROOF, SECOND_WIRES, VENDORS, served

SAID = "All work and no play makes a dull day. " * 12
THINKS = Settings(system="Be brief.", thinking=1024)
WEATHER = tool_of("weather", lambda **_: "It rains. " + SAID)
PAIRS = [(one, other) for one in VENDORS for other in VENDORS if one is not other]

# Ollama's second wire is for servers that say which they have: see test_turn_ollama.py.
WIRES = (*VENDORS, *(wire for wire in SECOND_WIRES if not wire.name.startswith("ollama")))
every_vendor = pytest.mark.parametrize("vendor", WIRES, ids=lambda vendor: vendor.name)
every_pair = pytest.mark.parametrize(
    ("one", "other"), PAIRS, ids=[f"{one.name}-{other.name}" for one, other in PAIRS]
)


def looks(vendor, number=1, **more):
    """Two answers: thoughts and a call, then words."""
    said = {"thought": "I look it up.", "call": "weather", "number": number, **more}
    call = vendor.says("One moment.", **said)
    return call, vendor.says(f"Answer {number}. {SAID}", number=number + 100)


def turns(vendor, number_of, first=1):
    return [each for number in range(first, first + number_of) for each in looks(vendor, number)]


async def talk(session, number_of, first=1):
    """Questions with numbers, each answered with the help of a tool."""
    for number in range(first, first + number_of):
        await session.send(f"Question {number}? {SAID}")


@asynccontextmanager
async def talking_to(vendor, url, *answers, tools=(WEATHER,), **options):
    """A session whose model is the vendor's provider, and the server that it asks."""
    async with (
        served(vendor, *answers) as (server, model),
        talking(url, model=model, tools=tools, settings=THINKS, **options) as (session, _),
    ):
        yield session, server


def bodies(server):
    return [request.body for request in server.requests]


def starts_with(vendor, later, earlier):
    """Whether a request begins with all of another, to the letter."""
    row = vendor.blocks(earlier)
    return vendor.blocks(later)[: len(row)] == row


# Collecting the window


@every_vendor
@asynchronous
async def test_a_window_that_was_collected_is_gone_on_with(file_url, vendor):
    """S2-114, GC round trip: what is folded is not sent, calls keep their results, the log keeps
    all; whoever opens the file goes on from the same window."""
    async with talking_to(vendor, file_url, *turns(vendor, 4)) as (session, server):
        await talk(session, 3)
        before = await messages(session)
        assert await session.compact(Truncate(keep_turns=1))
        await talk(session, 1, first=4)

        last, full = bodies(server)[-1], bodies(server)[-3]
        assert "Question 1?" in vendor.texts(full) and "Question 2?" in vendor.texts(full)
        assert "Question 2?" not in vendor.texts(last) and "Question 3?" in vendor.texts(last)
        assert len(server.requests[-1].data) < len(server.requests[-3].data)
        assert (await messages(session))[: len(before)] == before and session.count == 16
    async with talking_to(vendor, file_url, *looks(vendor, 5)) as (session, server):
        await talk(session, 1, first=5)

        assert starts_with(vendor, bodies(server)[0], last)


# A prompt that is too long


@every_vendor
@asynchronous
async def test_a_prompt_that_a_vendor_refuses_is_made_smaller(file_url, vendor):
    """S2-114, overflow recovery: in the vendor's own words, on which it is folded and sent again;
    the next turn is not refused for what is known by now."""
    answers = [*turns(vendor, 4), vendor.refuses(), *turns(vendor, 2, first=5)]
    async with talking_to(vendor, file_url, *answers) as (session, server):
        await talk(session, 4)
        heard = []
        result = await session.send(f"Question 5? {SAID}", on_event=heard.append)

        assert result.outcome == "response" and result.text.startswith("Answer 5.")
        refused, answered = server.requests[8:10]
        assert len(answered.data) < len(refused.data) and events_of(Folded, heard)
        assert "Question 5?" in vendor.texts(answered.body)
        questions = [m.text[:11] for m in await messages(session) if m.role == "user"]
        assert questions == [f"Question {number}?" for number in range(1, 6)]
        await talk(session, 1, first=6)
        assert len(server.requests) == 13


@every_vendor
@asynchronous
async def test_a_prompt_that_is_always_refused_is_given_up(file_url, vendor):
    """Two more tries, each smaller; then what was said is in the draft, and the log as it was."""
    answers = [*turns(vendor, 3), *[vendor.refuses()] * 3, *turns(vendor, 1, first=4)]
    async with talking_to(vendor, file_url, *answers) as (session, server):
        await talk(session, 3)
        before = await messages(session)
        with pytest.raises(DoesNotFit):
            await session.send(f"Question 4? {SAID}")

        sizes = [len(request.data) for request in server.requests[6:]]
        assert 1 < len(sizes) <= 3 and sizes == sorted(set(sizes), reverse=True)
        assert await messages(session) == before and session.draft.text.startswith("Question 4?")


@every_vendor
@asynchronous
async def test_too_many_tokens_in_a_minute_fold_nothing(file_url, vendor):
    """The control: with status 429 it is a matter of patience, whatever is said of tokens."""
    words = b'{"error": {"message": "too many input tokens per minute", "code": 429}}'
    limited = replace(vendor.refuses(), status=429, data=words, is_chunked=False)
    async with talking_to(vendor, file_url, *turns(vendor, 3), limited) as (session, server):
        await talk(session, 3)
        heard = []
        with pytest.raises(RateLimited):
            await session.send("Question 4?", on_event=heard.append)

        assert len(server.requests) == 7 and not events_of(Folded, heard)


@every_vendor
@asynchronous
async def test_a_vendor_that_adds_up_its_own_rounds_is_not_taken_at_its_word(file_url, vendor):
    """With tools of its own it reports what all its prompts had, which may be more than it can
    read: neither the next turn nor another manager takes that for the size of this prompt."""
    for number in (1, 2):
        answers = [vendor.says("Found.", tokens=5_000_000), vendor.says("Fine.")]
        async with talking_to(vendor, file_url, *answers) as (session, _):
            await session.send(f"Search {number}!")
            heard = []
            result = await session.send("Well?", on_event=heard.append)

            assert result.text == "Fine." and not events_of(Folded, heard)
            assert session.ledger.spent.input >= 5_000_000


# What a cache can read


def is_stable(vendor, sent):
    """Whether each request begins with all of the one before, to the letter."""
    return all(starts_with(vendor, later, sent[at]) for at, later in enumerate(sent[1:]))


@every_vendor
@asynchronous
async def test_every_request_begins_with_the_one_before(file_url, vendor):
    """S2-114, S2-115, cache hits: between turns and between rounds nothing is written anew that
    was sent before, also by a manager that has read it from the file."""
    async with talking_to(vendor, file_url, *turns(vendor, 3)) as (session, server):
        await talk(session, 3)
    async with talking_to(vendor, file_url, *turns(vendor, 2, first=4)) as (session, again):
        await talk(session, 2, first=4)

    assert is_stable(vendor, [*bodies(server), *bodies(again)])


def rerenders(body, number):
    """With the time of day in the first thing said."""
    return body.replace(b"Question 1?", b"Question 1? It is %d o'clock." % number)


def reorders(body, number):
    """With the fields in another order every other time."""
    return json.dumps(json.loads(body), sort_keys=bool(number % 2)).encode()


def careless(model, change):
    """The same provider, only that it renders every request in its own way."""
    rendered = model.wire.to_wire
    number = count(1)

    def to_wire(ask):
        return json.loads(change(msgspec.json.encode(rendered(ask)), next(number)))

    model.wire.to_wire = to_wire


@pytest.mark.parametrize("change", [rerenders, reorders])
@every_vendor
@asynchronous
async def test_a_provider_that_writes_the_past_anew_is_noticed(file_url, vendor, change):
    """The control: a clock in the prompt, or fields in any order, and no cache can read it."""
    async with (
        served(vendor, *turns(vendor, 2)) as (server, model),
        talking(file_url, model=model, tools=[WEATHER], settings=THINKS) as (session, _),
    ):
        careless(model, change)
        await talk(session, 2)

    assert not is_stable(vendor, bodies(server))


def billed(sent):
    """What Anthropic would have read from its cache for each request, and could have."""
    cache = PromptCache()
    bills = [cache.bill(body, at * 20) for at, body in enumerate(sent)]
    assert all(each.refused is None for each in bills)
    return [each.cache_read for each in bills], [each.readable for each in bills]


@asynchronous
async def test_anthropic_reads_from_its_cache_what_it_wrote(file_url):
    """S2-114, cache hits: each request reads all that an ideal client could have read; with a
    clock in the prompt (the control) it reads nothing: what stands before that is too short."""
    vendor = VENDORS[0]
    async with talking_to(vendor, file_url, *turns(vendor, 5)) as (session, server):
        await talk(session, 5)
    read, readable = billed(bodies(server))
    clocked = [json.loads(rerenders(r.data, at)) for at, r in enumerate(server.requests)]

    assert read == readable and all(tokens > 1_024 for tokens in read[6:])
    assert billed(clocked) == ([0] * 10, [0] * 10)


# Another vendor, and back

OTHER_PROOF = "c2lnbmVkIGJ5IGFub3RoZXIgb25l"


def preflight(session, model):
    """What a model would be given of the window now."""
    window = session.window(model=model)
    return model.preflight(window.messages, window.system, window.tools)


@every_pair
@asynchronous
async def test_another_vendor_goes_on_and_the_first_finds_its_own_again(file_url, one, other):
    """S2-72, S2-114, S2-115, cross-provider swap: the other is shown what was said and done, and
    nothing that only the first can check; the first is then sent its own, to the letter. Each is
    told of beforehand, at no cost."""
    there = [*looks(one, 1), *looks(one, 3)]
    async with (
        served(one, *there) as (server, model),
        served(other, *looks(other, 2, proof=OTHER_PROOF)) as (elsewhere, another),
        talking(file_url, model=model, tools=[WEATHER], settings=THINKS) as (session, _),
    ):
        await talk(session, 1)
        leaves = preflight(session, another)
        assert elsewhere.requests == []
        await session.send("Question 2?", model=another)
        returns = preflight(session, model)
        await talk(session, 1, first=3)

        assert (leaves.source, leaves.model) == (model.name, another.name) and leaves.fits
        assert bool(leaves.dropped) == one.thinks and bool(returns.dropped) == other.thinks
        shown = other.texts(elsewhere.requests[0].body)
        assert all(words in shown for words in ("Question 1?", "Turin 1", "Answer 1.", "It rains."))
        assert PROOF not in shown
        back = server.requests[2].body
        assert starts_with(one, back, server.requests[1].body)
        assert PROOF in one.texts(back) or not one.proves
        assert all(words in one.texts(back) for words in ("Turin 2", "Answer 2.", "Question 3?"))
        assert OTHER_PROOF not in one.texts(back)


def asked_in(body):
    """A request without its own number, and without the window that a refusal told of."""
    asked = {name: value for name, value in body.items() if name != "requestId"}
    options = {k: v for k, v in body.get("options", {}).items() if k != "num_ctx"}
    return asked | {"options": options}


@every_vendor
@asynchronous
async def test_a_provider_keeps_nothing_of_what_it_was_asked(vendor):
    """S2-79a: whatever a vendor's SDK did, chats, lists that it appended to before the call or
    after it: here each is the same function, of the messages that it is passed and nothing else."""
    (asked, called), other = looks(vendor), vendor.says("Yes.")
    ours, theirs = [Message.user("Question 1?")], [Message.user("Are you there?")]
    async with served(vendor, asked, other, vendor.refuses(), called) as (server, model):
        answer = await model.complete(ours, "Be brief.", [WEATHER])
        assert ours == [Message.user("Question 1?", id=ours[0].id, timestamp=ours[0].timestamp)]
        await model.complete(theirs)
        results = [Message.tool("It rains.", call.id) for call in answer.calls]
        said = [*ours, answer.message, *results]
        for _ in range(2):  # refused, and then as if that had not been
            with suppress(ContextOverflow):
                await model.complete(said, "Be brief.", [WEATHER])

        first, between, refused, last = bodies(server)
        assert asked_in(last) == asked_in(refused) and starts_with(vendor, last, first)
        assert "Question 1?" not in vendor.texts(between)
        assert "Are you there?" not in vendor.texts(last)


# A cancel, and the next turn

MOMENTS = {"thought": "I look it up.", "words": "moment", "call": "city"}  # the last that comes
CUTS = [
    (vendor, moment)
    for vendor in VENDORS
    for moment in MOMENTS
    if moment != "thought" or vendor.thinks  # the others do not think aloud
]


def has_come(moment, heard, server, vendor):
    """Whether so much of the answer is there."""
    words = "".join(event.text for event in events_of(TextDelta, heard))
    if moment == "call":  # of which nobody hears before it is complete
        return "please." in words or (vendor.name == "local" and server.requests)
    return "moment" in words if moment == "words" else events_of(ThinkingDelta, heard)


@pytest.mark.parametrize(("vendor", "moment"), CUTS, ids=[f"{v.name}-{m}" for v, m in CUTS])
@asynchronous
async def test_a_turn_that_was_cancelled_is_gone_on_with(file_url, vendor, moment):
    """S2-114, cancel then continue: the vendor hears that nobody listens; the next request has
    the words that were said, and no half of a call."""
    call = "" if moment == "words" else "weather"
    answer = vendor.says("One moment please.", thought="I look it up.", call=call)
    answers = [vendor.stops(answer, MOMENTS[moment]), vendor.says("Fine.")]
    tools = [WEATHER] if call else []  # with tools, the local model speaks in JSON alone
    async with talking_to(vendor, file_url, *answers, tools=tools) as (session, server):
        before, heard = asyncio.all_tasks(), []
        turn = asyncio.create_task(session.send("Question 1?", on_event=heard.append))
        await until(lambda: has_come(moment, heard, server, vendor))
        await asyncio.to_thread(session.cancel)
        result = await asyncio.wait_for(turn, CANCEL_S)
        await asyncio.wait_for(server.closed.wait(), CANCEL_S)
        assert result.outcome == "cancelled" and not await tasks_left(before)
        assert moment != "words" or result.text == "One moment"
        await session.send("Question 2?")

        shown = vendor.texts(server.requests[1].body)
        assert "Question 1?" in shown and "Question 2?" in shown and "Turin" not in shown
        assert ("One moment" in shown) == bool(result.text)
        assert all(not message.calls for message in await messages(session))


# A file that others go on with


@every_vendor
@asynchronous
async def test_another_manager_goes_on_with_the_same_ids(file_url, vendor):
    """S2-114, S2-115, save-load-continue: message ids and call ids are those of the first; what
    was sent goes out again to the letter, proofs and all."""
    async with talking_to(vendor, file_url, *looks(vendor, 1)) as (session, first):
        await talk(session, 1)
        said = await messages(session)
    async with talking_to(vendor, file_url, *looks(vendor, 2)) as (session, second):
        loaded = await session.read(0, session.count)
        await talk(session, 1, first=2)

        assert list(loaded) == said == (await messages(session))[:4]
        assert [m.id for m in loaded] == [m.id for m in said]
        assert said[1].calls[0].id == said[2].tool_call_id
    assert starts_with(vendor, bodies(second)[0], bodies(first)[1])
    assert PROOF in vendor.texts(bodies(second)[0]) or not vendor.proves


GO_ON = """
import asyncio, sys
sys.path.append(sys.argv[1])
import holdfast
from vendor_wires import VENDORS

async def main(file, *servers):
    for vendor, url in zip(VENDORS, servers, strict=True):
        async with vendor.opened(vendor.model, url, vendor.options) as model:
            async with holdfast.open(file, model=model) as sessions:
                session = await sessions.get(vendor.name)
                await session.send("And now?", tools=())
                print(*[message.id for message in await session.read(0, session.count)])

asyncio.run(main(*sys.argv[2:]))
"""


@asynchronous
async def test_another_process_goes_on_with_the_same_ids(file_url):
    """S2-114, save-load-continue: from the file alone; and the first one goes on behind it."""
    async with AsyncExitStack() as stack:
        opened = []
        for vendor in VENDORS:
            answers = [*looks(vendor, 1), vendor.says("Still raining."), vendor.says("I know.")]
            talk_to = talking_to(vendor, file_url, *answers, key=vendor.name)
            opened.append(await stack.enter_async_context(talk_to))
            await talk(opened[-1][0], 1)
        command = ["-W", "error", "-c", GO_ON, Path(__file__).parent, file_url]
        command += [server.url for _, server in opened]
        process = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=PIPE)
        told, _ = await asyncio.wait_for(process.communicate(), 25)
        assert process.returncode == 0
        for vendor, (session, server), ids in zip(VENDORS, opened, told.splitlines(), strict=True):
            await session.send("Is that so?")

            assert ids.decode().split() == [m.id for m in (await messages(session))[:6]]
            shown = vendor.texts(server.requests[-1].body)
            assert "And now?" in shown and "Still raining." in shown
