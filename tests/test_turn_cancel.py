"""Cancelling a turn: from anywhere, at any moment, as often as one likes.

It ends within a second; what was said and done by then is kept, nothing is left behind, and the
next turn works. `Judged` models see to it that the next request is one a vendor would take.
"""

import asyncio
import contextlib
import threading
import time

import pytest

from holdfast import CancelToken, Settings
from holdfast.events import TextDelta, ToolCallReady, TurnFinished
from holdfast.testing.fake_provider import Halt
from holdfast.tools import running
from loopback import Loopback, head, in_turn
from sessions_for_tests import (
    CANCEL_S,
    Judged,
    asks,
    asynchronous,
    call,
    chat_event,
    chat_events,
    events_of,
    messages,
    said,
    talking,
    tasks_left,
    tool_of,
    until,
    wire_model,
)

WAYS = ("token", "token in a thread", "session", "session in a thread", "task")


class Running:
    """A turn that runs in a task of its own, to be cancelled in one of the ways."""

    def __init__(self, session, text="Go!"):
        self.heard = []
        self.was_running = True  # as `session.cancel` says, where it is asked
        self._session = session
        self._token = CancelToken()
        self._task = asyncio.create_task(
            session.send(text, cancel=self._token, on_event=self.heard.append)
        )

    @property
    def words(self):
        return "".join(event.text for event in events_of(TextDelta, self.heard))

    async def cancel(self, way):
        """Cancel, and return the outcome: that of the result, or of the task."""
        began = time.monotonic()
        if way == "token":
            self._token.cancel("enough")
        elif way == "token in a thread":
            await asyncio.to_thread(self._token.cancel, "enough")
        elif way == "session":
            self.was_running = self._session.cancel()
        elif way == "session in a thread":
            self.was_running = await asyncio.to_thread(self._session.cancel)
        else:
            self._task.cancel()
        await asyncio.wait([self._task], timeout=10)
        assert time.monotonic() - began < CANCEL_S
        return self.outcome

    @property
    def outcome(self):
        assert self._task.done()
        return "cancelled" if self._task.cancelled() else str(self._task.result().outcome)


@contextlib.asynccontextmanager
async def nothing_left():
    """Whatever tasks there are behind it were there before."""
    before = asyncio.all_tasks()
    yield
    assert not await tasks_left(before)


# Moments


@pytest.mark.parametrize("way", WAYS)
@asynchronous
async def test_a_cancel_before_the_first_word_keeps_the_question(url, way):
    """The model has not said anything: only what the user said is there."""

    async def think(_):
        await asyncio.sleep(60)

    async with talking(url, think, "Fine.") as (session, model):
        async with nothing_left():
            turn = Running(session)
            await until(lambda: model.requests)
            assert await turn.cancel(way) == "cancelled"

        assert await said(session) == [("user", "Go!")] and session.draft is None
        assert (await session.send("Well?", wait=0)).text == "Fine."
        assert model.texts[-1].endswith("Well?")


@pytest.mark.parametrize("way", WAYS)
@asynchronous
async def test_a_cancel_between_words_keeps_those_that_were_said(url, way):
    """S2-31."""
    async with talking(url, Halt("one two three", asyncio.Event(), 2), "Fine.") as (session, model):
        async with nothing_left():
            turn = Running(session)
            await until(lambda: turn.words == "one two")
            assert await turn.cancel(way) == "cancelled" and turn.was_running is True
        assert [event.outcome for event in events_of(TurnFinished, turn.heard)] == ["cancelled"]
        assert isinstance(turn.heard[-1], TurnFinished)

        assert await said(session) == [("user", "Go!"), ("assistant", "one two")]
        assert (await messages(session))[-1].stop == "cancelled" and session.draft is None
        assert (await session.send("Go on.", wait=0)).text == "Fine."
        assert model.texts == ["Go!", "one two", "Go on."]


@pytest.mark.parametrize("way", WAYS)
@asynchronous
async def test_a_cancel_in_a_call_drops_the_call(url, way):
    """S2-31: a call was written, and the answer was not complete: it is not run, now or later."""
    ran = []
    answer = Halt(asks(call("c1", "look"), text="Let me"), asyncio.Event(), 3)
    tools = [tool_of("look", lambda **_: ran.append(1))]
    async with talking(url, answer, "Fine.", tools=tools) as (session, _):
        turn = Running(session)
        await until(lambda: events_of(ToolCallReady, turn.heard))
        assert await turn.cancel(way) == "cancelled"

        (_, reply) = await messages(session)
        assert reply.text == "Let me" and reply.calls == ()
        assert (await session.send("Go on.")).text == "Fine." and ran == []


@pytest.mark.parametrize("is_async", [True, False], ids=["async", "plain"])
@pytest.mark.parametrize("way", WAYS)
@asynchronous
async def test_a_cancel_in_a_tool_keeps_the_results_that_are_there(url, way, is_async):
    """B23: what was done is not lost, and what was not has a result that says so when it is
    shown."""
    release, begun = threading.Event(), []

    async def wait(**_):
        begun.append(1)
        await asyncio.sleep(60)

    def block(**_):
        begun.append(1)
        release.wait(20)

    tools = [tool_of("slow", wait if is_async else block), tool_of("fast")]
    answer = asks(call("s1", "slow"), call("f1", "fast"), text="Both.")
    async with talking(url, answer, "Fine.", tools=tools) as (session, model):
        async with nothing_left():
            turn = Running(session)

            async def has_result():
                return begun and any(m.role == "tool" for m in await messages(session))

            await until(has_result)
            outcome = await turn.cancel(way)
        release.set()

        assert outcome == "cancelled" and session.draft is None
        kept = {m.tool_call_id: m for m in await messages(session) if m.role == "tool"}
        assert kept["f1"].text == "done" and not kept["f1"].is_error
        assert (await session.send("Go on.", wait=0)).text == "Fine."
        shown = {m.tool_call_id: m for m in model.given[-1] if m.role == "tool"}
        assert shown["f1"].text == "done" and len(begun) == 1
        assert "s1" not in shown or shown["s1"].is_error or shown["s1"].text != "done"


@asynchronous
async def test_a_tool_is_told_that_it_is_cancelled(url):
    """A plain function cannot be stopped; it can look."""
    noticed = threading.Event()
    begun = []

    def work(**_):
        begun.append(1)
        if running().cancel.wait(20):
            noticed.set()

    async with talking(url, asks("work"), tools=[tool_of("work", work)]) as (session, _):
        turn = Running(session)
        await until(lambda: begun)
        assert await turn.cancel("session") == "cancelled"

        assert await asyncio.to_thread(noticed.wait, CANCEL_S)


@asynchronous
async def test_a_cancel_between_rounds_keeps_the_first(url):
    """The tool is done and the model thinks about it."""

    async def think(_):
        await asyncio.sleep(60)

    async with talking(url, asks(call("c1", "look")), think, "Fine.", tools=[tool_of("look")]) as (
        session,
        model,
    ):
        turn = Running(session)
        await until(lambda: len(model.requests) == 2)
        assert await turn.cancel("token") == "cancelled"

        assert [role for role, _ in await said(session)] == ["user", "assistant", "tool"]
        assert (await session.send("Go on.")).text == "Fine."


@asynchronous
async def test_a_token_that_was_cancelled_before_is_a_turn_without_an_answer(url):
    """What the user said is kept; the model is not asked."""
    token = CancelToken()
    token.cancel("never mind")
    async with talking(url, "Fine.") as (session, model):
        result = await session.send("Go!", cancel=token)

        assert result.outcome == "cancelled" and result.message is None
        assert str(result).startswith("[") and result.text in ("", None)
        assert await said(session) == [("user", "Go!")] and model.requests == []
        assert (await session.send("Well?")).text == "Fine."


@asynchronous
async def test_the_result_of_a_cancelled_turn(url):
    """S2-21: it has what was said; with nothing said, words in brackets."""
    silent = Halt("one", asyncio.Event(), 0)
    async with talking(url, Halt("one two", asyncio.Event(), 1), silent) as (session, model):

        def stop(event):
            if isinstance(event, TextDelta):
                session.cancel()

        spoken = await session.send("Go!", on_event=stop)
        turn = asyncio.create_task(session.send("Go!"))
        await until(lambda: len(model.requests) == 2)
        session.cancel()
        unspoken = await turn

        assert (spoken.text, spoken.message.stop) == ("one", "cancelled")
        assert [m.text for m in spoken.messages] == ["Go!", "one"]
        assert str(unspoken) == "[Generation cancelled]" and unspoken.message is None
        assert unspoken.outcome == "cancelled" and len(model.requests) == 2


@asynchronous
async def test_there_is_nothing_to_cancel_without_a_turn(url):
    """S2-32."""
    async with talking(url, "Hello.", "Fine.") as (session, _):
        assert session.cancel() is False
        await session.send("Hello?")
        assert session.cancel() is False

        assert (await session.send("Well?")).outcome == "response"


# Again and again


@pytest.mark.parametrize("first", WAYS)
@pytest.mark.parametrize("second", ["session", "task"])
@asynchronous
async def test_a_second_cancel_changes_nothing(url, first, second):
    """Also while the first one is still being carried out."""
    async with talking(url, Halt("one two three", asyncio.Event(), 2), "Fine.") as (session, _):
        async with nothing_left():
            turn = Running(session)
            await until(lambda: turn.words == "one two")
            both = asyncio.gather(turn.cancel(first), _again(turn, session, second))
            assert (await both)[0] == "cancelled"

        assert await said(session) == [("user", "Go!"), ("assistant", "one two")]
        assert (await session.send("Go on.", wait=0)).text == "Fine."


async def _again(turn, session, way):
    """Once more in each of the next steps of the loop."""
    for _ in range(20):
        await asyncio.sleep(0)
        if way == "task":
            turn._task.cancel()
        else:
            session.cancel()


@pytest.mark.parametrize("step", range(24))
@asynchronous
async def test_a_task_may_be_cancelled_at_any_step(url, step):
    """At whichever await it was: no lock is held, the log is whole, and nothing said is lost."""
    answers = [asks(call("c1", "look"), text="Let me see."), "It is sunny."]
    model = Judged(*answers)
    async with talking(url, model=model, tools=[tool_of("look")]) as (session, _):
        async with nothing_left():
            task = asyncio.create_task(session.send("The weather?"))
            for _ in range(step):
                await asyncio.sleep(0 if url == "memory:" else 0.0003)  # a commit takes its time
            task.cancel()
            await asyncio.wait([task], timeout=10)
            assert task.done()
        await session.refresh()

        kept = await messages(session)
        if model.requests:
            assert kept and kept[0].text == "The weather?"
        assert session.draft is None or not session.draft.is_running
        model._answers[:] = ["Fine."]
        assert (await session.send("Well?", wait=0)).text == "Fine."
        users = [m.text for m in await messages(session) if m.role == "user"]
        assert users in (["The weather?", "Well?"], ["Well?"])


@asynchronous
async def test_who_waits_for_a_turn_can_be_cancelled(url):
    """The running turn goes on, and those behind are served."""
    gate = asyncio.Event()
    async with talking(url, Halt("one two", gate, 1), "Third.") as (session, model):
        first = asyncio.create_task(session.send("1"))
        await until(lambda: model.requests)
        second = asyncio.create_task(session.send("2"))
        third = asyncio.create_task(session.send("3"))
        await asyncio.sleep(0.05)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        gate.set()

        assert (await first).text == "one two" and (await third).text == "Third."
        assert model.texts == ["1", "one two", "3"]


# Over a real wire


@pytest.mark.parametrize("way", WAYS)
@asynchronous
async def test_a_cancel_hangs_up(url, way):
    """The connection is closed, so that nobody is billed for words that nobody reads."""
    pieces = [chat_event({"content": piece}) for piece in ("one", " two")]
    start = head(kind="text/event-stream") + b"connection: close\r\n\r\n"
    async with (
        Loopback(
            in_turn(start, *pieces, then="hang"), in_turn(start, *chat_events("Fine."))
        ) as server,
        wire_model(server) as model,
        talking(url, model=model) as (session, _),
    ):
        turn = Running(session)
        await until(lambda: turn.words == "one two")
        assert await turn.cancel(way) == "cancelled"
        await asyncio.wait_for(server.closed.wait(), CANCEL_S)

        assert await said(session) == [("user", "Go!"), ("assistant", "one two")]
        assert (await session.send("Go on.")).text == "Fine."


@asynchronous
async def test_a_real_model_is_cancelled(file_url, local_name):
    settings = Settings(max_tokens=400, temperature=0.0)
    async with talking(file_url, model=local_name, settings=settings) as (session, _):
        turn = Running(session, "Tell me a very long story about a whale.")
        await until(lambda: turn.words, 60)
        assert await turn.cancel("session") == "cancelled"

        (_, reply) = await messages(session)
        assert reply.stop == "cancelled" and turn.words.startswith(reply.text)
