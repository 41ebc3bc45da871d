"""A turn as a stream of events: read to its end, left early, left to itself, and watched."""

import asyncio
import contextlib
import gc

import pytest

from holdfast import Message
from holdfast.errors import Busy, ConnectionFailed, InvalidInput, Overloaded
from holdfast.events import TextDelta, ToolResult, TurnFinished, TurnStarted
from holdfast.stores.values import Chunk, Stored
from holdfast.testing.fake_provider import Halt
from loopback import Loopback, head, in_turn
from sessions_for_tests import (
    CANCEL_S,
    asks,
    asynchronous,
    chat_event,
    chat_events,
    events_of,
    messages,
    opened,
    said,
    talking,
    tool_of,
    until,
    wire_model,
)


def words(events):
    return "".join(event.text for event in events_of(TextDelta, events))


def halts(text="one two three", after=2):
    """An answer that never comes to its end by itself."""
    return Halt(text, asyncio.Event(), after)


async def hear(stream, tell):
    """Read to the end, and tell of each event when it is there."""
    async for event in stream:
        tell(event)


async def hear_for(seconds, stream, tell):
    async with asyncio.timeout(seconds):
        await hear(stream, tell)


async def leave_at(stream, word):
    """Read until the word was heard."""
    heard = []
    async for event in stream:
        heard.append(event)
        if isinstance(event, TextDelta) and event.text.strip() == word:
            break
    return heard


# Read to its end


@asynchronous
async def test_a_stream_is_the_turn_as_it_happens(url):
    async with talking(
        url, asks("look", text="Let me"), "It is sunny.", tools=[tool_of("look")]
    ) as (
        session,
        _,
    ):
        stream = session.stream("The weather?")
        events = [event async for event in stream]

        assert isinstance(events[0], TurnStarted) and isinstance(events[-1], TurnFinished)
        assert words(events) == "Let meIt is sunny." and events_of(ToolResult, events)
        assert stream.result.text == "It is sunny." and stream.result.outcome == "response"
        assert events[-1].message == stream.result.message
        assert tuple(session.messages) == tuple(stream.result.messages)
        assert session.draft is None


@asynchronous
async def test_events_come_before_the_turn_has_ended(url):
    """Each as soon as it happens: the model waits, and its first words are here."""
    gate = asyncio.Event()
    async with talking(url, Halt("one two three", gate, after=2)) as (session, _):
        heard = []
        async for event in session.stream("Count!"):
            heard.append(event)
            if words(heard) == "one two":
                assert not gate.is_set()
                gate.set()

        assert words(heard) == "one two three"


@asynchronous
async def test_nothing_happens_before_a_stream_is_read(url):
    """Asking for it is not yet a turn."""
    async with talking(url, "Hello.") as (session, model):
        stream = session.stream("Hello?")
        await asyncio.sleep(0.05)

        assert model.requests == [] and session.draft is None
        assert await messages(session) == []
        assert [event async for event in stream] and len(model.requests) == 1


@asynchronous
async def test_a_slow_reader_misses_nothing(url):
    text = " ".join(map(str, range(50)))
    async with talking(url, text) as (session, _):
        heard = []
        async for event in session.stream("Count!"):
            heard.append(event)
            await asyncio.sleep(0.002)

        assert words(heard) == text


@asynchronous
async def test_a_failure_is_raised_from_the_stream(url):
    """As `send` raises it: the log is as it was, and the draft remains."""
    error = Overloaded("full")
    async with talking(url, error) as (session, _):
        with pytest.raises(Overloaded) as raised:
            async for _ in session.stream("Hello?"):
                pass

        assert raised.value is error
        assert await messages(session) == [] and session.draft.text == "Hello?"


@asynchronous
async def test_what_cannot_be_sent_is_refused(url):
    async with talking(url, "Hello.") as (session, model):
        with pytest.raises(InvalidInput):
            async for _ in session.stream(7):
                pass

        assert model.requests == []


@asynchronous
async def test_options_are_those_of_send(url):
    """once, schema, tools, model, wait."""
    async with talking(url, '{"a": 1}', tools=[tool_of("look")]) as (session, model):
        stream = session.stream("?", once="o", schema={"type": "object"}, tools=())
        async for _ in stream:
            pass
        again = session.stream("?", once="o", schema={"type": "object"}, tools=())
        events = [event async for event in again]

        assert stream.result.data == again.result.data == {"a": 1}
        assert model.requests[0].tools == () and len(model.requests) == 1
        assert isinstance(events[-1], TurnFinished)


# Left early


async def is_cancelled(session):
    """What is kept of an answer that was left in the middle."""
    return await said(session) == [("user", "Count!"), ("assistant", "one two")]


@asynchronous
async def test_a_stream_that_is_left_is_cancelled_and_keeps_what_was_said(url):
    """By `break`, and nothing else."""
    async with talking(url, halts(), "Fine.") as (session, _):
        async for event in session.stream("Count!"):
            if isinstance(event, TextDelta) and event.text == " two":
                break
        del event
        gc.collect()
        await until(lambda: is_cancelled(session), CANCEL_S)

        assert (await messages(session))[-1].stop == "cancelled"
        assert (await session.send("Go on.")).text == "Fine."


@pytest.mark.parametrize("way", ["aclose", "aclosing", "return"])
@asynchronous
async def test_a_stream_that_is_closed_has_kept_what_was_said(url, way):
    """When `aclose` returns, it is done."""
    async with talking(url, halts(), "Fine.") as (session, _):
        async with asyncio.timeout(CANCEL_S):
            if way == "aclosing":
                async with contextlib.aclosing(session.stream("Count!")) as stream:
                    await leave_at(stream, "two")
            else:
                stream = session.stream("Count!")
                await leave_at(stream, "two")
                await stream.aclose()
                if way == "return":
                    await stream.aclose()  # once more is fine

        assert await is_cancelled(session) and session.draft is None
        assert (await messages(session))[-1].stop == "cancelled"
        assert (await session.send("Go on.", wait=0)).text == "Fine."


@asynchronous
async def test_a_reader_that_runs_out_of_time_keeps_what_was_said(url):
    """asyncio.timeout is a task cancellation: what was said is stored, TimeoutError goes on."""
    async with talking(url, halts(), "Fine.") as (session, _):
        heard = []
        with pytest.raises(TimeoutError):
            await hear_for(0.5, session.stream("Count!"), heard.append)
        gc.collect()
        await until(lambda: is_cancelled(session), CANCEL_S)

        assert words(heard) == "one two"
        assert (await session.send("Go on.")).text == "Fine."


@asynchronous
async def test_a_reader_whose_task_is_cancelled_keeps_what_was_said(url):
    async with talking(url, halts(), "Fine.") as (session, _):
        heard = []
        task = asyncio.create_task(hear(session.stream("Count!"), heard.append))
        await until(lambda: words(heard) == "one two")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: is_cancelled(session), CANCEL_S)

        assert (await session.send("Go on.")).text == "Fine."


@asynchronous
async def test_a_reader_that_fails_keeps_what_was_said(url):
    """An error of the reader's own goes on, and the turn is cancelled."""
    async with talking(url, halts(), "Fine.") as (session, _):

        async def fail():
            async with contextlib.aclosing(aiter(session.stream("Count!"))) as stream:
                await leave_at(stream, "two")
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fail()

        assert await is_cancelled(session)
        assert (await session.send("Go on.")).text == "Fine."


@pytest.mark.parametrize("count", range(1, 5))
@asynchronous
async def test_a_stream_that_is_left_as_it_fails_leaves_no_error_behind(url, count):
    """Nobody reads any more, so nobody is told, and the loop has nothing to complain of."""
    broken = Halt("one two three", ConnectionFailed("cut"), after=2)
    async with talking(url, broken, "Fine.") as (session, _):
        heard = 0
        async for _ in session.stream("Count!"):
            heard += 1
            if heard == count:
                break
        gc.collect()

        assert (await session.send("Well?")).text == "Fine."


@asynchronous
async def test_a_stream_over_http_hangs_up_when_it_is_left(url):
    """The server is not left to write for nobody."""
    pieces = [chat_event({"content": piece}) for piece in ("one", " two")]
    start = head(kind="text/event-stream") + b"connection: close\r\n\r\n"
    hangs = in_turn(start, *pieces, then="hang")
    async with (
        Loopback(hangs, in_turn(start, *chat_events("Fine."))) as server,
        wire_model(server) as model,
        talking(url, model=model) as (session, _),
    ):
        async with contextlib.aclosing(aiter(session.stream("Count!"))) as stream:
            await leave_at(stream, "two")
        await asyncio.wait_for(server.closed.wait(), CANCEL_S)

        assert await is_cancelled(session)
        assert (await session.send("Go on.")).text == "Fine."


# Left to itself


@asynchronous
async def test_a_detached_stream_goes_on_when_it_is_left(url):
    gate = asyncio.Event()
    async with talking(url, Halt("one two three", gate, after=2)) as (session, _):
        stream = aiter(session.stream("Count!", detach=True))
        await leave_at(stream, "two")
        await stream.aclose()
        await session.refresh()
        assert session.draft.is_running
        gate.set()

        async def is_whole():
            return await said(session) == [("user", "Count!"), ("assistant", "one two three")]

        await until(is_whole)


@asynchronous
async def test_closing_a_manager_waits_for_a_detached_stream(file_url):
    async with opened(file_url, Halt("one two three", gate := asyncio.Event(), after=2)) as (
        sessions,
        _,
    ):
        session = await sessions.get_or_create("cli:direct")
        await leave_at(session.stream("Count!", detach=True), "two")
        gc.collect()
        asyncio.get_running_loop().call_later(0.2, gate.set)

    async with talking(file_url) as (session, _):
        assert await said(session) == [("user", "Count!"), ("assistant", "one two three")]
        assert session.draft is None


# Several who read


@asynchronous
async def test_two_streams_of_a_session_come_one_after_the_other(url):
    async with talking(url, "one", "two") as (session, model):
        order = []

        def read(text):
            return hear(session.stream(text), lambda event: order.append((text, type(event))))

        await asyncio.gather(read("A"), read("B"))

        assert [text for text, kind in order if kind is TurnFinished] == ["A", "B"]
        half = order.index(("A", TurnFinished))
        assert {text for text, kind in order[: half + 1] if kind is TextDelta} == {"A"}
        assert model.texts == ["A", "one", "B"]


@asynchronous
async def test_a_stream_that_may_not_wait_is_busy(url):
    async with talking(url, halts()) as (session, _):
        stream = aiter(session.stream("Count!"))
        await leave_at(stream, "two")
        with pytest.raises(Busy):
            async for _ in session.stream("Me too!", wait=0):
                pass
        await stream.aclose()

        assert await is_cancelled(session)


async def watched(watching, count, seconds=10.0):
    """The next `count` things that are seen."""
    async with asyncio.timeout(seconds):
        return [await anext(watching) for _ in range(count)]


@asynchronous
async def test_another_manager_sees_live_text_and_then_the_entries(file_url):
    """Whoever watches sees the words while they are said, and what is kept of them."""
    gate = asyncio.Event()
    async with (
        talking(file_url, Halt("one two three", gate, after=2)) as (session, _),
        talking(file_url) as (other, _),
    ):
        watching = other.watch()
        seen = []
        task = asyncio.create_task(hear(watching, seen.append))
        await asyncio.sleep(0.1)
        turn = asyncio.create_task(session.send("Count!"))
        await until(lambda: "".join(e.text for e in events_of(Chunk, seen)) == "one two")
        assert not events_of(Stored, seen)
        gate.set()
        result = await turn

        def kept():
            found = [each.entry for each in events_of(Stored, seen)]
            return [entry for entry in found if isinstance(entry, Message)]

        await until(lambda: len(kept()) == 2)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await watching.aclose()
        assert tuple(kept()) == tuple(result.messages)


@asynchronous
async def test_who_was_away_goes_on_behind_the_last_seq(url):
    """Nothing is missed, and nothing is seen twice."""
    async with talking(url, "one", "two") as (session, _):
        await session.send("A")
        watching = session.watch(after=0)
        first = await watched(watching, 2)
        await watching.aclose()
        await session.send("B")
        again = session.watch(after=first[-1].seq)
        seen = []
        async with asyncio.timeout(10):
            while not (seen and getattr(seen[-1].entry, "text", "") == "two"):
                each = await anext(again)
                seen += [each] if isinstance(each, Stored) else []
        await again.aclose()

        seqs = [each.seq for each in [*first, *seen]]
        texts = [e.entry.text for e in [*first, *seen] if isinstance(e.entry, Message)]
        assert seqs == sorted(set(seqs)) and texts == ["A", "one", "B", "two"]
