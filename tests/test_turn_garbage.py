"""A provider object of somebody's own that breaks the promises: the turn fails by name.

What it gives back is not one of ours, or says what no model can say. It is refused before anything
is appended, the draft remains, and the session goes on with a model that works.
"""

import asyncio
import time
from types import SimpleNamespace

import pytest

from holdfast import CancelToken, Message, Usage
from holdfast.errors import Cancelled, ProtocolError
from holdfast.events import TextDelta
from holdfast.parts import Text
from holdfast.providers.base import Provider, Response
from holdfast.window import Summarize
from sessions_for_tests import (
    CANCEL_S,
    asks,
    asynchronous,
    call,
    entries,
    events_of,
    messages,
    opened,
    said,
    talking,
    tool_of,
    until,
)


class Garbage(Provider):
    """Gives back whatever it was made with, one after the other."""

    vendor, model = "garbage", "model"
    context_limit, output_limit = 200_000, 8_000

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = 0

    async def complete(self, messages, *_, **options):
        self.asked += 1
        return self.answers.pop(0)


def response(message, **fields):
    return Response(message=message, **fields)


GARBAGE = {
    "nothing": lambda: None,
    "text": lambda: "Hello.",
    "a message": lambda: Message.assistant("Hello."),
    "a dict": lambda: {"message": "Hello."},
    "something alike": lambda: SimpleNamespace(message=Message.assistant("Hi."), usage=Usage()),
    "a response without a message": lambda: response(None),
    "a response of text": lambda: response("Hello."),
    "a user's message": lambda: response(Message.user("Hello.")),
    "a system message": lambda: response(Message.system("Hello.")),
    "a tool's message": lambda: response(Message.tool("done", "call-1")),
    "usage of another kind": lambda: response(Message.assistant("Hello."), usage=7),
    "no usage": lambda: response(Message.assistant("Hello."), usage=None),
    "two calls of one id": lambda: response(asks(call("1", "look"), call("1", "look"))),
    "a call without an id": lambda: response(asks(call("", "look"))),
}


@pytest.mark.parametrize("name", GARBAGE)
@asynchronous
async def test_what_is_no_answer_is_refused_by_name(url, name):
    """ProtocolError names the model; the log is as it was, and the draft remains."""
    model = Garbage(GARBAGE[name]())
    async with talking(url, "Fine.", tools=[tool_of("look")]) as (session, _):
        with pytest.raises(ProtocolError, match="garbage:model"):
            await session.send("Hello?", model=model)

        assert await entries(session) == [] and session.draft.text == "Hello?"
        assert (await session.send("And now?")).text == "Fine."
        assert await said(session) == [("user", "And now?"), ("assistant", "Fine.")]


class Deaf(Garbage):
    """Does not look at the token, and speaks a little before it hangs."""

    async def complete(self, messages, *_, on_chunk=None, **options):
        self.asked += 1
        on_chunk("one two")
        await asyncio.Event().wait()


@pytest.mark.parametrize("way", ["session", "token", "stream"])
@asynchronous
async def test_a_model_that_heeds_no_cancel_is_cancelled_all_the_same(url, way):
    """Within a second, with what it had said."""
    async with talking(url, "Fine.") as (session, _):
        token, heard, model = CancelToken(), [], Deaf()
        stream = session.stream("Count!", model=model, cancel=token, on_event=heard.append)
        reading = asyncio.create_task(anext(aiter(stream)))
        await until(lambda: events_of(TextDelta, heard))
        start = time.monotonic()
        if way == "stream":
            await stream.aclose()
        else:
            (session if way == "session" else token).cancel()
        await until(lambda: session.draft is None and session.count == 2, CANCEL_S)
        await asyncio.gather(reading, return_exceptions=True)

        assert time.monotonic() - start < CANCEL_S
        assert await said(session) == [("user", "Count!"), ("assistant", "one two")]
        assert (await messages(session))[-1].stop == "cancelled"
        assert (await session.send("Well?", wait=0)).text == "Fine."


class Muttering(Garbage):
    """Tells a callback something, and then thinks on for ever."""

    def __init__(self, name, *told):
        super().__init__()
        self._told = name, told

    async def complete(self, messages, *_, **options):
        name, told = self._told
        for each in told:
            options[name](each)
        await asyncio.Event().wait()


MUTTERED = {
    "a number for words": ("on_chunk", 3),
    "nothing for words": ("on_chunk", None),
    "bytes for words": ("on_chunk", b"Hello."),
    "a number for thoughts": ("on_thinking", 3),
    "a dict for usage": ("on_usage_update", {"input": 3}),
    "a dict for a call": ("on_tool_call", {"name": "look"}),
}


@pytest.mark.parametrize("name", MUTTERED)
@asynchronous
async def test_what_is_no_piece_of_an_answer_is_refused_by_name(url, name):
    """As soon as it is told, and whether anybody listens or not."""
    async with talking(url, "Fine.") as (session, _):
        with pytest.raises(ProtocolError, match=r"garbage:model.* to a callback"):
            await session.send("Hello?", model=Muttering(*MUTTERED[name]))

        assert await entries(session) == [] and session.draft.ended == "failed"
        assert (await session.send("And now?")).text == "Fine."


@pytest.mark.parametrize("is_heard", [True, False], ids=["heard", "alone"])
@asynchronous
async def test_halves_of_characters_become_what_can_be_told_and_kept(url, is_heard):
    """Somebody's own model may cut between them: what it has said is kept all the same."""
    heard, words = [], "one \ufffd\ufffd"
    model = Muttering("on_chunk", "one ", "\ud83d", "\ude00")
    async with talking(url) as (session, _):
        listen = heard.append if is_heard else None
        turn = asyncio.create_task(session.send("?", model=model, on_event=listen))

        async def is_written_down():
            await session.refresh()
            return session.draft is not None and session.draft.partial == words

        await until(is_written_down)
        session.cancel()

        assert (await turn).text == words
        assert "".join(each.text for each in events_of(TextDelta, heard)) == words * is_heard


class Broken(Garbage):
    """Cancels its own work, as a client with a time limit of its own may."""

    async def complete(self, messages, *_, **options):
        raise asyncio.CancelledError


@asynchronous
async def test_a_model_that_cancels_itself_has_failed(url):
    """Nobody cancelled the turn, so it is not said to be cancelled."""
    async with talking(url, "Fine.") as (session, _):
        with pytest.raises(ProtocolError, match="cancelled its own"):
            await session.send("Hello?", model=Broken())

        assert await entries(session) == [] and session.draft.ended == "failed"
        assert (await session.send("And now?")).text == "Fine."


class Partial(Garbage):
    """Heeds a cancel, and gives back what is no answer as the part that there was."""

    async def complete(self, messages, *_, on_chunk=None, cancel_token=None, **options):
        on_chunk("one two")
        try:
            async with cancel_token.guard():
                await asyncio.Event().wait()
        except Cancelled as error:
            error.partial = SimpleNamespace(message="?")
            raise


@asynchronous
async def test_a_partial_answer_that_is_none_is_left_for_what_was_heard(url):
    async with talking(url) as (session, _):
        heard = []
        turn = asyncio.create_task(session.send("?", model=Partial(), on_event=heard.append))
        await until(lambda: events_of(TextDelta, heard))
        session.cancel()

        assert (await turn).text == "one two"


@asynchronous
async def test_a_summary_that_is_none_is_left_out(url):
    """As when nobody could write one: the conversation is as it was."""
    answers = [response(Message.assistant("Yes. " * 50)) for _ in range(4)]
    async with opened(url) as (sessions, _):
        model = Garbage(*answers, None)
        session = await sessions.get_or_create("cli:direct", model=model)
        for number in range(4):
            await session.send(f"Question {number}?")

        assert await session.compact(Summarize(keep_turns=1)) == ()
        assert model.asked == 5 and session.count == 8


@asynchronous
async def test_call_ids_of_an_earlier_turn_may_come_again(url):
    """Some services count from 1 in each answer."""
    ran = []
    tool = tool_of("look", lambda **_: ran.append(1) or f"seen {len(ran)}")
    answers = [asks(call("call_0", "look")), "One.", asks(call("call_0", "look")), "Two."]
    async with talking(url, *answers, tools=[tool]) as (session, _):
        assert str(await session.send("Look!")) == "One."
        assert str(await session.send("Again!")) == "Two."

        results = [each.text for each in await messages(session) if each.role == "tool"]
        assert results == ["seen 1", "seen 2"]


@asynchronous
async def test_an_answer_in_parts_that_say_nothing_is_empty(url):
    """It is nudged as any other answer without words is."""
    async with opened(url) as (sessions, _):
        empty = response(Message.assistant((Text(""),), stop="tool_use"))
        model = Garbage(empty, response(Message.assistant("Here.")))
        session = await sessions.get_or_create("cli:direct", model=model)

        assert (await session.send("Hello?")).text == "Here."
        assert model.asked == 2
