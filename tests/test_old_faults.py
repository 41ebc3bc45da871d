"""Faults of earlier session layers that nothing else here would bring to light."""

import asyncio
import json
import threading
from datetime import timedelta

import pytest

from holdfast import Message, open_store
from holdfast.errors import Cancelled, SessionExpired, SessionNotFound
from holdfast.messages import Stop
from holdfast.parts import CallRef, Text
from holdfast.stores.values import Record
from holdfast.window.truncate import Truncate
from sessions_for_tests import (
    asks,
    asynchronous,
    call,
    messages,
    opened,
    said,
    talking,
    tool_of,
    until,
)

KEY = "cli:direct"


@pytest.fixture(params=["memory", "sqlite", "jsonl"])
def url(request, tmp_path):
    return {"memory": "memory:"}.get(request.param, f"{request.param}:{tmp_path / 'store'}")


@pytest.fixture
def file_url(tmp_path):
    return f"sqlite:{tmp_path / 'chats.db'}"


@asynchronous
async def test_a_line_of_megabytes_does_not_hide_the_session(tmp_path):
    """B3: it is loaded, listed, and still there when something is appended."""
    long = "x" * 3_000_000
    lines = [{"_type": "metadata", "key": KEY}, {"role": "user", "content": long}]
    path = tmp_path / "cli_direct.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))

    async with open_store(f"jsonl:{tmp_path}") as store:
        tenant = store.tenant()
        assert [each.key for each in (await tenant.list()).items] == [KEY]
        record = await tenant.load(KEY)
        await tenant.append(record.id, [Message.user("b")])
        assert [each.entry.text for each in await tenant.read(record.id)] == [long, "b"]

    assert len(path.read_text().splitlines()) == 3


@asynchronous
async def test_saving_does_not_make_a_session_younger(url):
    """B11: whatever is written, it was created when it was; and sessions of one moment have ids
    of their own."""
    async with opened(url, "Hello.") as (sessions, _):
        session = await sessions.get_or_create(KEY)
        others = [await sessions.get_or_create(f"cli:{n}") for n in range(20)]
        created = session.created_at
        await asyncio.sleep(0.002)
        await session.send("I am Ada.")
        await session.update(metadata={"title": "Ada"})
        await session.append(Message.user("b"))
        await session.refresh()

        assert session.created_at == created < session.updated_at
        assert len({each.id for each in others}) == 20


@asynchronous
async def test_a_crash_loses_no_turn_and_no_turn_costs_a_session(file_url):
    """B12, B18, B19: nobody closes anything, and who comes next finds every turn of more sessions
    than any that were kept."""
    async with opened(file_url, *["Hello."] * 22) as (sessions, _):
        for number in range(22):
            session = await sessions.get_or_create(f"cli:{number}")
            await session.send(f"I am {number}.")
            async with opened(file_url) as (next_ones, _):
                found = await next_ones.get(f"cli:{number}")
                assert [each.text for each in found.messages] == [f"I am {number}.", "Hello."]

        page = await sessions.list(limit=100)
        assert len(page.items) == 22


@asynchronous
async def test_making_room_removes_nothing_and_leaves_no_pair_apart(url):
    """B13, B15: what the window no longer shows is in the log, whole and in order."""
    answers = [asks(call(f"c{n}", "look"), text="Let me see.") for n in range(4)]
    given = [each for pair in zip(answers, ["Seen."] * 4, strict=True) for each in pair]
    async with talking(url, *given, tools=[tool_of("look")]) as (session, _):
        for number in range(4):
            await session.send(f"Look {number}!")
        before = await messages(session)

        folds = await session.compact(Truncate(keep_turns=1))

        assert folds
        assert await messages(session) == before and len(before) == 16
        shown = session.window().messages
        assert [each.role for each in shown][-4:] == ["user", "assistant", "tool", "assistant"]
        calls = [each.id for message in shown for each in message.calls]
        assert calls == [each.tool_call_id for each in shown if each.role == "tool"]
        assert len(shown) < len(before)


@asynchronous
async def test_a_text_of_digits_stays_text_and_a_field_can_be_emptied(url):
    """B16: and two who change different names keep both."""
    async with opened(url) as (sessions, _):
        session = await sessions.get_or_create(KEY, agent="helper")
        await asyncio.gather(
            session.update(metadata={"number": "123"}), session.update(metadata={"flag": True})
        )
        await session.update(agent="")
        sessions.invalidate(KEY)
        again = await sessions.get(KEY)

        assert again.metadata == {"number": "123", "flag": True}
        assert type(again.metadata["number"]) is str and again.agent == ""


@asynchronous
async def test_what_an_answer_that_ran_out_of_time_had_said_is_kept(url):
    """B17: the partial text is the assistant's message, and says how it ended."""
    words = "Once upon a time there was"
    async with talking(url, words) as (session, _):

        def stop(event):
            return "text" not in type(event).__name__.lower()

        result = await session.send("Tell me a story.", on_event=stop)

        assert result.outcome == "cancelled"
        (_, story) = await messages(session)
        assert story.text and words.startswith(story.text) and story.text != words
        assert story.stop == Stop.CANCELLED


@asynchronous
async def test_an_expired_session_is_not_revived_by_an_append_and_goes_in_the_end(url):
    """B17: it is refused, then marked, and deleted when the grace is over."""
    async with open_store(url) as store:
        tenant = store.tenant()
        record = await tenant.create(Record(key=KEY, ttl=timedelta(milliseconds=1)))
        await asyncio.sleep(0.01)
        with pytest.raises(SessionExpired):
            await tenant.append(record.id, [Message.user("a")])
        assert (await tenant.expire()).marked == 1
        await asyncio.sleep(0.01)
        assert (await tenant.expire(grace=timedelta(milliseconds=1))).deleted == 1
        with pytest.raises(SessionNotFound):
            await tenant.load(KEY)


@asynchronous
async def test_words_between_two_calls_of_one_answer_send_nothing_early(url):
    """B24: both calls are run, and the model is asked again once, with both results."""
    answer = Message.assistant(
        (Text("First."), CallRef("a"), Text("Then."), CallRef("b"), Text("That is all.")),
        [call("a", "look"), call("b", "look")],
    )
    tools = [tool_of("look", lambda **_: "seen")]
    async with talking(url, answer, "Done.", tools=tools) as (session, model):
        result = await session.send("Look twice!")

        assert result.text == "Done." and len(model.given) == 2
        assert [each.tool_call_id for each in model.given[1] if each.role == "tool"] == ["a", "b"]
        assert [role for role, _ in await said(session)] == [
            "user",
            "assistant",
            "tool",
            "tool",
            "assistant",
        ]


@asynchronous
async def test_a_result_says_what_the_tool_gave_and_nothing_else(url):
    """B27: nothing is added to it, in the log or in a request, and steering is a message."""
    value = {"city": "Turin", "degrees": [12, 13]}
    release = asyncio.Event()

    async def look(**_):
        await session.steer("Hurry!")
        release.set()
        return value

    tools = [tool_of("look", look)]
    async with talking(url, asks(call("c", "look")), "Done.", tools=tools) as (session, model):
        await session.send("Look!")

        result = next(each for each in await messages(session) if each.role == "tool")
        assert json.loads(result.text) == value
        sent = next(each for each in model.given[1] if each.role == "tool")
        assert sent.text == result.text
        assert [each.text for each in model.given[1] if each.role == "user"] == ["Look!", "Hurry!"]
        assert release.is_set()


@asynchronous
async def test_a_turn_is_stopped_and_steered_by_other_threads(file_url):
    """B48: while a turn runs, threads cancel it, and a second sender waits for its end."""
    begun = asyncio.Event()

    async def wait(**_):
        begun.set()
        await asyncio.sleep(30)

    answers = (asks("slow"), "Second.")
    async with talking(file_url, *answers, tools=[tool_of("slow", wait)]) as (session, _):
        first = asyncio.create_task(session.send("First?"))
        await until(begun.is_set)
        second = asyncio.create_task(session.send("Second?"))
        await asyncio.sleep(0.01)
        heard = []
        threads = [
            threading.Thread(target=lambda: heard.append(session.cancel())) for _ in range(8)
        ]
        for each in threads:
            each.start()
        for each in threads:
            await asyncio.to_thread(each.join)

        assert True in heard
        try:
            assert (await first).outcome == "cancelled"
        except Cancelled:
            pass
        assert (await second).text == "Second."
        roles = [role for role, text in await said(session) if role == "user"]
        assert roles == ["user", "user"]
