"""What turns do, on a scripted model and on the real local one: sending, streaming, cancelling,
and prompts that are too long.

The same test runs on both. Nothing here asks what an answer says: a small model says anything.
"""

import asyncio
import time
from contextlib import asynccontextmanager

import pytest

from holdfast import CancelToken, Message, Settings, open_provider
from holdfast.entries import Fold
from holdfast.errors import AuthError, ContextOverflow, DoesNotFit
from holdfast.events import Folded, TextDelta, TurnFinished, TurnStarted, UsageUpdate
from holdfast.providers.address import Address
from holdfast.providers.local.server import LocalServer
from holdfast.providers.local.wire import LocalWire
from holdfast.testing.fake_provider import Halt
from local_model import NAME, need_model
from sessions_for_tests import (
    CANCEL_S,
    Judged,
    asynchronous,
    entries,
    events_of,
    messages,
    receipts,
    talking,
    tasks_left,
    until,
)
from vendor_wires import LocalAt

CONTEXT = 512
FEW = Settings(max_tokens=8, temperature=0.0, limits={"continuations": 0})
MANY = FEW.replace(max_tokens=300)
STORY = "Tell me a very long story about a whale."
SAID = "All work and no play makes a dull day. " * 6  # some sixty tokens
TOLD = [
    message
    for number in range(10)
    for message in (Message.user(f"Question {number}? {SAID}"), Message.assistant(SAID))
]


class Scripted:
    """A model that answers what it is told to."""

    @asynccontextmanager
    async def model(self):
        """A model that answers whatever it is asked, in a window of CONTEXT tokens."""
        yield Judged(*["one two three"] * 12, context=CONTEXT, output=64)

    @asynccontextmanager
    async def talker(self):
        """A model that begins a long answer, and then answers briefly."""
        yield Judged(Halt("one two three four", asyncio.Event(), 3), *["Fine."] * 3)

    @asynccontextmanager
    async def mistaken(self):
        """A model that is said to have a far larger window than it has."""
        error = ContextOverflow("1,500 tokens, and 512 fit", tokens_found=1_500, tokens_max=512)
        yield Judged(error, "Fine.", context=100_000)

    @asynccontextmanager
    async def locked(self):
        """A model that has to be asked twice."""
        yield Judged(AuthError("who?"), "Fine.")


class Local:
    """The real one, in a process that all tests here share."""

    def __init__(self, server):
        self._server = server

    @asynccontextmanager
    async def model(self):
        async with open_provider(f"local:{NAME}", context_limit=CONTEXT) as provider:
            yield provider

    talker = model

    @asynccontextmanager
    async def mistaken(self):
        async with await self._at(context_limit=100_000, api_key=self._server.key) as provider:
            yield provider

    @asynccontextmanager
    async def locked(self):
        keys = iter(("wrong",))
        key = lambda: next(keys, self._server.key)  # noqa: E731 - the second time it is right
        async with await self._at(context_limit=CONTEXT, api_key=key) as provider:
            yield provider

    async def _at(self, **options):
        address = Address(await self._server.address())
        return LocalAt(LocalWire(NAME), address, tries_max=1, **options)


@pytest.fixture(scope="module")
def server():
    made = LocalServer(need_model(), NAME, context_tokens=CONTEXT)
    asyncio.run(made.address())  # it runs until the last test is over
    yield made
    asyncio.run(made.close())


@pytest.fixture(params=["scripted", "local"])
def kind(request):
    if request.param == "scripted":
        return Scripted()
    return Local(request.getfixturevalue("server"))


@asynccontextmanager
async def talk(model, url, settings=FEW):
    async with model as provider, talking(url, model=provider, settings=settings) as (session, _):
        yield session


def words(heard):
    return "".join(event.text for event in events_of(TextDelta, heard))


# Sending


@asynchronous
async def test_a_turn_gives_an_answer_and_keeps_both_sides(file_url, kind):
    async with talk(kind.model(), file_url) as session:
        result = await session.send("I am Ada.")

        assert result.outcome in ("response", "max_tokens") and result.text == str(result)
        assert [message.role for message in result.messages] == ["user", "assistant"]
        assert result.message.model and result.usage.input > 0 and result.usage.output > 0
        assert tuple(await messages(session)) == tuple(result.messages) and session.draft is None


@asynchronous
async def test_each_turn_is_shown_what_came_before(file_url, kind):
    """Also by another manager, which goes on with the same ids."""
    async with talk(kind.model(), file_url) as session:
        for text in "AB":
            await session.send(text)
        before = await messages(session)
    async with talk(kind.model(), file_url) as session:
        await session.send("C")

        shown = [receipt.window["messages"] for receipt in await receipts(session)]
        used = [receipt.usage.input for receipt in await receipts(session)]
        assert shown == [1, 3, 5] and used == sorted(set(used))
        assert (await messages(session))[:4] == before


@asynchronous
async def test_what_is_sent_once_is_asked_once(file_url, kind):
    async with talk(kind.model(), file_url) as session:
        first = await session.send("I am Ada.", once="ada")
        again = await session.send("I am Ada.", once="ada")

        assert again.messages == first.messages
        assert len(await receipts(session)) == 1 and session.count == 2


@asynchronous
async def test_a_turn_that_failed_is_resumed(file_url, kind):
    """The draft has what was said; nothing is in the log before it is answered."""
    async with talk(kind.locked(), file_url) as session:
        with pytest.raises(AuthError):
            await session.send("I am Ada.")
        assert await messages(session) == [] and session.draft.text == "I am Ada."
        result = await session.resume()

        assert result.text and [m.role for m in await messages(session)] == ["user", "assistant"]


# Streaming


@asynchronous
async def test_a_stream_is_the_turn_as_it_happens(file_url, kind):
    async with talk(kind.model(), file_url) as session:
        stream = session.stream("I am Ada.")
        heard = [event async for event in stream]

        assert isinstance(heard[0], TurnStarted) and isinstance(heard[-1], TurnFinished)
        assert len(events_of(TextDelta, heard)) > 1 and events_of(UsageUpdate, heard)
        assert words(heard) == stream.result.text == (await messages(session))[-1].text


@asynchronous
async def test_a_stream_that_is_left_keeps_what_was_said(file_url, kind):
    async with talk(kind.talker(), file_url, MANY) as session:
        stream, heard = session.stream(STORY), []
        async for event in stream:
            heard.append(event)
            if len(events_of(TextDelta, heard)) == 2:
                break
        async with asyncio.timeout(CANCEL_S):
            await stream.aclose()

        _, reply = await messages(session)
        assert reply.stop == "cancelled" and reply.text.startswith(words(heard))
        assert (await session.send("Well?", wait=0)).outcome in ("response", "max_tokens")


@asynchronous
async def test_a_stream_that_is_detached_goes_on_to_its_end(file_url, kind):
    async with talk(kind.model(), file_url) as session:
        async for event in session.stream("I am Ada.", detach=True):
            if isinstance(event, TextDelta):
                break

        async def is_over():
            return session.draft is None and await messages(session)

        await until(is_over)
        assert (await messages(session))[-1].stop in ("stop", "max_tokens")


# Cancelling


@pytest.mark.parametrize("way", ["token", "session in a thread", "task"])
@asynchronous
async def test_a_cancel_keeps_what_was_said_and_the_next_turn_works(file_url, kind, way):
    """Within a second, and nothing is left behind."""
    async with talk(kind.talker(), file_url, MANY) as session:
        before, heard, token = asyncio.all_tasks(), [], CancelToken()
        turn = asyncio.create_task(session.send(STORY, cancel=token, on_event=heard.append))
        await until(lambda: len(events_of(TextDelta, heard)) >= 2)
        began = time.monotonic()
        if way == "token":
            token.cancel("enough")
        elif way == "task":
            turn.cancel()
        else:
            assert await asyncio.to_thread(session.cancel)
        await asyncio.wait([turn], timeout=10)
        assert time.monotonic() - began < CANCEL_S and not await tasks_left(before)

        asked, reply = await messages(session)
        assert asked.text == STORY and reply.text == words(heard) and reply.stop == "cancelled"
        assert session.draft is None
        assert turn.cancelled() or turn.result().outcome == "cancelled"
        await session.send("Well?", wait=0)
        assert [receipt.window["messages"] for receipt in await receipts(session)][-1] == 3


# Prompts that are too long


async def folds(session):
    return [each for each in await entries(session) if isinstance(each, Fold)]


@asynchronous
async def test_a_prompt_that_the_model_refuses_is_made_smaller(file_url, kind):
    """Its window is smaller than was thought: it says so, what came before is folded, and it
    answers. The log keeps all."""
    async with talk(kind.mistaken(), file_url) as session:
        await session.append(*TOLD)
        heard = []
        result = await session.send("Well?", on_event=heard.append)

        assert result.outcome in ("response", "max_tokens") and events_of(Folded, heard)
        assert await folds(session) and session.count == len(TOLD) + 2
        assert (await messages(session))[: len(TOLD)] == TOLD
        assert dict(result.window)["messages"] < len(TOLD)


@asynchronous
async def test_a_long_conversation_always_fits(file_url, kind):
    """Nothing is refused, because it is folded before it is sent."""
    async with talk(kind.model(), file_url) as session:
        for number in range(7):
            await session.send(f"Question {number}? {SAID}")

        used = [receipt.usage.input for receipt in await receipts(session)]
        assert len(used) == 7 and max(used) < CONTEXT and await folds(session)
        assert session.count == 14


@asynchronous
async def test_what_does_not_fit_at_all_is_named_and_the_session_goes_on(file_url, kind):
    async with talk(kind.model(), file_url) as session:
        await session.send("I am Ada.")
        with pytest.raises(DoesNotFit) as raised:
            await session.send("word " * 2_000)

        assert raised.value.what and raised.value.tokens > raised.value.tokens_max
        assert session.count == 2 and session.draft.text.startswith("word word")
        assert (await session.send("Never mind.")).text
