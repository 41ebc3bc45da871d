"""Sessions whose model is the program of Claude Code: its own sessions never say anything else.

Whatever a session of ours does, folding, switching models, cancelling, being opened by another
manager, what the program's model is shown is what ours shows. The program is a stand-in, started
for each call, that keeps sessions as the program does.
"""

import asyncio
import json
import traceback
from contextlib import asynccontextmanager

import msgspec
import pytest

from holdfast import Message
from holdfast.errors import AuthError, ConnectionFailed, InvalidRequest
from holdfast.events import Folded, Retrying
from holdfast.parts import Opaque
from holdfast.providers import open_provider
from holdfast.testing import FakeProvider, validators
from holdfast.testing.claude_cli import StandIn, fails, kill, leave, raw, says, wait
from holdfast.testing.claude_cli import error as program_says
from holdfast.window import Truncate
from sessions_for_tests import (
    asynchronous,
    events_of,
    messages,
    said,
    talking,
    tool_of,
    until,
)

SECRET = "sk-ant-api03-canary-of-nobody"
LONG = "All work and no play makes a dull day. " * 12


@asynccontextmanager
async def talking_to(folder, url, *answers, tools=(), mode="passthrough", api_key=None, **options):
    """A session whose model is the provider of a stand-in, and the stand-in."""
    stand_in = StandIn(folder, *answers)
    given = {"program": stand_in.path, "tries_max": 1, "mode": mode, "api_key": api_key}
    async with (
        open_provider("claude-cli:sonnet", **given) as model,
        talking(url, model=model, tools=tools, **options) as (session, _),
    ):
        yield session, stand_in


def asks(tool="weather", city="Turin"):
    """An answer that calls a tool of ours."""
    call = f'{{"name": "{tool}", "arguments": {{"city": "{city}"}}}}'
    return says(f"One moment.\n<tool_call>\n{call}\n</tool_call>")


def shown(started):
    """All that the program's model was shown in one call, as one text."""
    return "\n".join(started.texts)


@asynchronous
async def test_a_tool_is_run_by_us_and_the_program_goes_on(file_url, tmp_path):
    """S2-112: call, result, answer; in one session of the program."""
    weather = tool_of("weather", lambda city: f"Rain in {city}.")
    answers = (asks(), says("It rains."))
    async with talking_to(tmp_path, file_url, *answers, tools=[weather]) as (session, program):
        result = await session.send("How is the weather?")

        assert result.text == "It rains."
        assert [role for role, _ in await said(session)] == [
            *("user", "assistant", "tool", "assistant")
        ]
        assert [each.is_resumed for each in program.calls] == [False, True]
        assert "returned:\nRain in Turin." in shown(program.calls[1])


@asynchronous
async def test_a_window_that_was_folded_is_told_anew_and_then_gone_on_with(file_url, tmp_path):
    """S2-113, GC: what is folded is not shown by a session of the program that still has it."""
    answers = [says(f"Answer {n}. {LONG}") for n in range(1, 6)]
    async with talking_to(tmp_path, file_url, *answers) as (session, program):
        for number in (1, 2, 3):
            await session.send(f"Question {number}? {LONG}")
        assert await session.compact(Truncate(keep_turns=1))
        await session.send("Question 4?")
        await session.send("Question 5?")

        assert [each.is_resumed for each in program.calls] == [False, True, True, False, True]
        folded, after = map(shown, program.calls[3:])
        assert "Question 2?" not in folded and "Question 3?" in folded and "Question 4?" in folded
        assert after.startswith(folded) and "Answer 4." in after


@asynchronous
async def test_a_prompt_that_is_too_long_is_made_smaller(file_url, tmp_path):
    """In the program's own words."""
    answers = [*(says(f"Answer {n}. {LONG}") for n in (1, 2, 3)), fails("Prompt is too long")]
    answers.append(says("Answer 4."))
    async with talking_to(tmp_path, file_url, *answers) as (session, program):
        for number in (1, 2, 3):
            await session.send(f"Question {number}? {LONG}")
        heard = []
        result = await session.send("Question 4?", on_event=heard.append)

        assert result.text == "Answer 4." and events_of(Folded, heard)
        refused, answered = program.calls[3:5]
        assert refused.is_resumed and not answered.is_resumed
        assert len(shown(answered)) < len(shown(refused))


@asynchronous
async def test_another_model_may_answer_in_between(file_url, tmp_path):
    """S2-113, swap: the program is told what the other one said."""
    other = FakeProvider("From the other one.")
    async with talking_to(tmp_path, file_url, says("One."), says("Three.")) as (session, program):
        await session.send("First?")
        await session.send("Second?", model=other)
        await session.send("Third?")

        assert not program.calls[1].is_resumed
        assert "From the other one." in shown(program.calls[1])
        assert [text for _, text in await said(session)][-1] == "Three."


@asynchronous
async def test_a_revert_is_noticed(file_url, tmp_path):
    """S2-113: what was taken back is not shown by a session of the program that still has it."""
    answers = (says("One."), says("Two."), says("Other."))
    async with talking_to(tmp_path, file_url, *answers) as (session, program):
        await session.send("First?")
        await session.send("Second?")
        await session.revert(1)
        await session.send("Another?")

        assert not program.calls[2].is_resumed
        assert "First?" in shown(program.calls[2]) and "Second?" not in shown(program.calls[2])


@asynchronous
async def test_after_a_cancel_the_program_is_told_what_was_said(file_url, tmp_path):
    """Its own session may have seen more, or less: nobody goes on with it."""
    slow = (*says("One moment please.")[:5], wait(60))
    async with talking_to(tmp_path, file_url, slow, says("Fine.")) as (session, program):
        heard = []
        turn = asyncio.create_task(session.send("First?", on_event=heard.append))
        await until(lambda: len(heard) > 2)
        await asyncio.to_thread(session.cancel)
        result = await asyncio.wait_for(turn, 2)
        await session.send("Second?")

        assert (result.outcome, result.text) == ("cancelled", "One moment")
        assert not program.calls[1].is_resumed and "One moment" in shown(program.calls[1])


@asynchronous
async def test_another_manager_goes_on_with_the_conversation(file_url, tmp_path):
    """S2-113, restore: what the first provider remembered is gone, and nothing is missed."""
    async with talking_to(tmp_path / "1", file_url, says("One.")) as (session, _):
        await session.send("First?")
    async with talking_to(tmp_path / "2", file_url, says("Two.")) as (session, program):
        await session.send("Second?")

        assert not program.calls[0].is_resumed
        assert "First?" in shown(program.calls[0]) and "One." in shown(program.calls[0])
        assert len(await messages(session)) == 4


@asynchronous
async def test_what_the_program_did_by_itself_is_kept_and_is_no_call_of_ours(file_url, tmp_path):
    """Delegated mode: the log has its calls and results; only it is shown them again, and another
    vendor takes the conversation all the same."""
    ran = list(says("I list.", tool=("Bash", {"command": "ls"})))
    done = says("One file.")
    answer = (*ran[:-1], *done[1:])
    async with talking_to(tmp_path, file_url, answer, mode="delegated") as (session, _):
        await session.send("List!")
        log = await messages(session)

        kept = [part.data["type"] for part in log[1].content if type(part) is Opaque]
        assert kept == ["tool_use", "tool_result"] and log[1].calls == ()
        assert log[1].text == "I list.One file."

    claude = open_provider("anthropic:claude-sonnet-4-5").wire
    ask = claude.ask([*log, Message.user("And you?")])
    body = json.loads(msgspec.json.encode(claude.to_wire(ask)))
    assert validators.problems("anthropic", body) == [] and "Bash" not in str(body)


@pytest.mark.parametrize("tries_max", [1, 3])
@asynchronous
async def test_a_busy_service_is_asked_again_by_the_rules_of_all(
    file_url, tmp_path, monkeypatch, tries_max
):
    """Watchers hear of it; the log holds one question and one answer."""
    monkeypatch.setattr("holdfast.providers.retries.FIRST_BOUND_S", 0.01)
    busy = fails('API Error: 529 {"type":"error","error":{"type":"overloaded_error"}}')
    stand_in = StandIn(tmp_path, *[busy] * (tries_max - 1), says("Fine."))
    given = {"program": stand_in.path, "tries_max": tries_max}
    heard = []
    async with (
        open_provider("claude-cli:sonnet", **given) as model,
        talking(file_url, model=model) as (session, _),
    ):
        result = await session.send("First?", on_event=heard.append)

        assert result.text == "Fine." and len(await messages(session)) == 2
        assert len(events_of(Retrying, heard)) == tries_max - 1


INVALID = '{"type":"error","error":{"type":"authentication_error","message":"invalid key SECRET"}}'
NO_MODEL = '{"type":"error","error":{"type":"not_found_error","message":"model: claude-x"}}'


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (fails("Invalid API key · Please run /login"), AuthError, "once and log in"),
        (fails(f"API Error: 401 {INVALID}"), AuthError, "pass api_key="),
        (fails(f"API Error: 404 {NO_MODEL}"), InvalidRequest, "haiku, opus, sonnet"),
        ((*says("One moment please.")[:5], kill()), ConnectionFailed, "--print hello"),
        ((program_says("boom SECRET"), leave(1)), ConnectionFailed, "--print hello"),
        ((raw(b"<html>no\n\xff"), leave(0)), ConnectionFailed, "--print hello"),
    ],
    ids=["login", "key", "model", "killed", "ended", "garbage"],
)
@asynchronous
async def test_what_went_wrong_says_what_to_do_and_the_session_goes_on(
    answer, kind, words, file_url, tmp_path
):
    """Typed, without the key, with what had come; the log is as it was."""
    answer = json.loads(json.dumps(answer).replace("SECRET", SECRET))
    async with talking_to(tmp_path, file_url, answer, says("Hi."), api_key=SECRET) as (session, _):
        with pytest.raises(kind) as raised:
            await session.send("Hello.")
        assert session.count == 0
        result = await session.send("Hello?")

    told = "".join(traceback.format_exception(raised.value))
    assert words in str(raised.value) and SECRET not in told + repr(vars(raised.value))
    assert result.text == "Hi."
    if "One moment" in str(answer):
        assert raised.value.partial.text == "One moment"
