"""Redaction: what a caller's hook takes out of messages is nowhere, whichever way it came.

Each way is tried once without the hook: there the secret is found, so the search works.
"""

import asyncio
import subprocess
from contextlib import asynccontextmanager

import pytest

from holdfast import Message
from holdfast.errors import ConnectionFailed, InvalidInput
from holdfast.events import TextDelta
from holdfast.parts import Text, Thinking
from holdfast.testing.fake_provider import Halt
from holdfast.window import Summarize
from sessions_for_tests import (
    asks,
    asynchronous,
    call,
    events_of,
    messages,
    said,
    talking,
    tool_of,
    until,
)

SECRET = "swordfish"  # one word, as a search index has it


def redact(message):
    """In words, thoughts and the arguments of calls."""
    content = message.content
    if isinstance(content, str):
        content = hidden(content)
    elif content is not None:
        content = [
            each.replace(text=hidden(each.text)) if isinstance(each, Text | Thinking) else each
            for each in content
        ]
    calls = [each.replace(arguments=hidden(each.arguments)) for each in message.tool_calls]
    return message.replace(content=content, tool_calls=calls)


def hidden(text):
    return text.replace(SECRET, "####")


def bytes_on_disk(folder):
    """Read by another process: to close a file that SQLite has open here would drop its locks."""
    files = [str(path) for path in folder.rglob("*") if path.is_file()]
    return subprocess.run(["cat", *files], capture_output=True, check=True).stdout


@pytest.mark.parametrize("is_redacted", [True, False], ids=["redacted", "control"])
@asynchronous
async def test_what_is_redacted_is_in_no_file_and_is_shown_to_no_model(tmp_path, is_redacted):
    """Input, answer, result of a tool, steering, append. Without `redact` it is found: the
    search works."""
    secret = f"my number is {SECRET}"

    async def look():
        await session.steer(f"steering: {secret}")
        return f"found: {secret}"

    answers = (asks("look", text=f"looking: {secret}"), f"answer: {secret}")
    options = {"tools": [tool_of("look", look)], "redact": redact if is_redacted else None}
    url = f"sqlite:{tmp_path}/chats.db"
    async with talking(url, *answers, **options) as (session, model):
        await session.append(Message.user(f"append: {secret}"))
        result = await session.send(f"input: {secret}")
        on_disk = bytes_on_disk(tmp_path)
        shown = "".join(message.text or "" for each in model.given for message in each)

        assert (SECRET not in shown) == is_redacted and "steering" in shown
        assert (SECRET.encode() not in on_disk) == is_redacted
        assert (SECRET not in str(result)) == is_redacted
    assert (SECRET.encode() not in bytes_on_disk(tmp_path)) == is_redacted


@asynchronous
async def test_a_failed_turn_keeps_nothing_that_was_redacted(tmp_path):
    """The draft is stored too."""
    url = f"sqlite:{tmp_path}/chats.db"
    broken = Halt(f"it is {SECRET} then", ConnectionFailed("cut"), after=3)
    async with talking(url, broken, redact=redact) as (session, model):
        with pytest.raises(ConnectionFailed):
            await session.send(f"my number is {SECRET}")

        assert session.draft.text == "my number is ####" and model.texts == ["my number is ####"]
        assert SECRET.encode() not in bytes_on_disk(tmp_path)


# Every way into the log

TOLD = f"my number is {SECRET}"
WAYS = {}


def way(function):
    WAYS[function.__name__] = function
    return function


@way
async def the_arguments_of_a_call(session, model):
    model.add(asks(call("1", "look", number=SECRET)), "Done.")
    await session.send("Look!")


@way
async def an_answer_that_was_cut_off(session, model):
    thinking = Message.assistant((Thinking(TOLD), Text(f"{TOLD} and more")))
    model.add(Halt(thinking, asyncio.Event(), after=6))
    heard = []
    turn = asyncio.create_task(session.send("Well?", on_event=heard.append))
    await until(lambda: SECRET in "".join(e.text for e in events_of(TextDelta, heard)))
    session.cancel()
    await turn


@way
async def the_note_about_a_cancel(session, model):
    await session.update(settings={"cancel_note": True})
    await an_answer_that_was_cut_off(session, model)


@way
async def the_words_for_a_call_that_waited(session, model):
    model.add(asks(call("1", "ask")), "Fine.")
    await session.send("Ask!")
    await session.resume({"1": TOLD})


@way
async def an_answer_that_is_no_data(session, model):
    model.add(f'"{TOLD}"', '{"a": 1}')
    await session.send("Data?", schema={"type": "object"})


@way
async def a_summary(session, model):
    await talked(session, model)
    model.add(TOLD)
    await session.compact(Summarize(keep_turns=1))


@way
async def a_fold_by_hand(session, model):
    await talked(session, model)
    await session.fold(0, 2, Message.user(TOLD))


@way
async def other_messages(session, model):
    await session.replace([Message.user(TOLD), Message.assistant("Yes.")])


@way
async def the_summary_of_a_child(session, model):
    child = await session.child("helper")
    await child.merge(summarize=lambda _: TOLD)


@way
async def a_report_of_a_child(session, model):
    child = await session.child("helper")
    await child.report("ERROR", TOLD)


@way
async def the_reason_to_discard_a_child(session, model):
    child = await session.child("helper")
    await child.discard(TOLD)


@way
async def a_turn_that_was_given_up(session, model):
    model.add(Halt(f"{TOLD} and more", asyncio.Event(), after=4))
    heard = []
    turn = asyncio.create_task(session.send("Well?", on_event=heard.append))
    await until(lambda: SECRET in "".join(e.text for e in events_of(TextDelta, heard)))
    for task in list(session._bench.workshop._tasks):
        task.cancel()  # as asyncio.run does when the program ends
    await asyncio.gather(turn, return_exceptions=True)


@way
async def the_words_of_a_tool_that_failed(session, model):
    model.add(asks(call("1", "fail")), "Oh.")
    await session.send("Fail!")


async def talked(session, model):
    for number in range(3):
        model.add("Yes. " * 40)
        await session.send(f"Question {number}?")


def fail(**_):
    raise ValueError(TOLD)


@asynccontextmanager
async def place(tmp_path, is_redacted):
    tools = [tool_of("look"), tool_of("ask", approval=True), tool_of("fail", fail)]
    hook = redact if is_redacted else None
    url = f"sqlite:{tmp_path}/chats.db"
    async with talking(url, tools=tools, redact=hook) as (session, model):
        yield session, model


@pytest.mark.parametrize("is_redacted", [True, False], ids=["redacted", "control"])
@pytest.mark.parametrize("name", WAYS)
@asynchronous
async def test_no_way_into_the_log_is_forgotten(tmp_path, name, is_redacted):
    """Rows, drafts, journal, search index: all is in the files, and the secret is not."""
    async with place(tmp_path, is_redacted) as (session, model):
        await WAYS[name](session, model)
        on_disk = bytes_on_disk(tmp_path)

    found = SECRET.encode() in on_disk + bytes_on_disk(tmp_path)
    assert found != is_redacted


@asynchronous
async def test_tools_are_run_with_what_the_model_wrote(tmp_path):
    """The log has the other: what a tool needs is not what may be kept."""
    given = []
    tool = tool_of("look", lambda number: given.append(number) or "done")
    url = f"sqlite:{tmp_path}/chats.db"
    answers = [asks(call("1", "look", number=SECRET)), "Done."]
    async with talking(url, *answers, tools=[tool], redact=redact) as (session, _):
        await session.send("Look!")

        kept = [each for message in await messages(session) for each in message.calls]
        assert given == [SECRET] and "####" in kept[0].arguments


@asynchronous
async def test_events_have_the_words_as_they_come_and_results_as_they_are_kept(tmp_path):
    heard = []
    answers = [asks(call("1", "look"), text=TOLD), TOLD]
    url = f"sqlite:{tmp_path}/chats.db"
    tools = [tool_of("look", lambda: TOLD)]
    async with talking(url, *answers, tools=tools, redact=redact) as (session, _):
        result = await session.send("Look!", on_event=heard.append)

    assert SECRET in "".join(each.text for each in events_of(TextDelta, heard))
    others = [each for each in heard if not isinstance(each, TextDelta)]
    assert SECRET not in str(others) and SECRET not in str(result)


@asynchronous
async def test_data_is_that_of_the_answer_as_it_is_kept(tmp_path):
    url = f"sqlite:{tmp_path}/chats.db"
    async with talking(url, f'{{"number": "{SECRET}"}}', redact=redact) as (session, _):
        result = await session.send("Data?", schema={"type": "object"})

    assert result.data == {"number": "####"}


@pytest.mark.parametrize("given", [None, "text"], ids=repr)
@asynchronous
async def test_a_hook_gives_a_message_back(url, given):
    """And when it does not, nothing is stored."""
    async with talking(url, "Hello.", redact=lambda _: given) as (session, model):
        with pytest.raises(InvalidInput, match="redact"):
            await session.send("Hello?")

        assert await said(session) == [] and model.requests == [] and session.draft is None


@asynchronous
async def test_a_hook_that_fails_on_an_answer_stores_nothing_of_it(url):
    """The error reaches the caller, the draft remains."""

    def hook(message):
        if message.role == "assistant":
            raise ZeroDivisionError
        return message

    async with talking(url, "Hello.", redact=hook) as (session, _):
        with pytest.raises(ZeroDivisionError):
            await session.send("Hello?")

        assert await said(session) == [] and session.draft.text == "Hello?"


LOSING = {
    "id": lambda message: Message(message.role, message.content),
    "role": lambda message: message.replace(role="assistant"),
    "synthetic": lambda message: message.replace(synthetic="summary"),
}


@pytest.mark.parametrize("what", LOSING)
@asynchronous
async def test_a_hook_changes_what_is_said_and_nothing_that_a_turn_goes_by(url, what):
    """It is refused before a model is asked, and told how it is done."""
    async with talking(url, "Hello.", redact=LOSING[what]) as (session, model):
        with pytest.raises(InvalidInput, match=r"redact .* message\.replace"):
            await session.send("Hello?")

        assert await said(session) == [] and model.requests == [] and session.draft is None


@asynchronous
async def test_a_hook_that_loses_the_calls_of_results_lets_no_tool_run_again(url):
    """A turn finds the calls that have their results by these ids."""
    given = []

    def hook(message):
        return message if message.role != "tool" else message.replace(tool_call_id=None)

    tool = tool_of("look", lambda: given.append(1) or "done")
    answers = [asks(call("1", "look")), "Done."]
    async with talking(url, *answers, tools=[tool], redact=hook) as (session, _):
        with pytest.raises(InvalidInput, match="redact"):
            await session.send("Look!")

        assert given == [1]


@asynchronous
async def test_a_hook_that_keeps_no_extra_takes_no_name_away(url):
    """What is sent once is asked once, whatever the hook leaves of a message."""

    def hook(message):
        return message.replace(extra={})

    async with talking(url, "One.", "Two.", redact=hook) as (session, model):
        first = await session.send("Hello?", once="update-1")
        again = await session.send("Hello?", once="update-1")

        assert str(first) == str(again) == "One." and len(model.requests) == 1


@asynchronous
async def test_a_hook_is_given_messages_and_nothing_else(url):
    async with talking(url, redact=redact) as (session, _):
        with pytest.raises(InvalidInput, match="messages are of type Message"):
            await session.replace([Message.user("Hello."), "Hello?"])
