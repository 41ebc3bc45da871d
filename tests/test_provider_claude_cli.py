"""The provider, with a program that is really started (`holdfast.testing.claude_cli`)."""

import asyncio
import json
import os
import re
import sys
import threading
import time
from pathlib import Path

import pytest

from bad_inputs import SECRET, run
from holdfast import CancelToken, Message, Settings, Tool
from holdfast.errors import (
    AuthError,
    Cancelled,
    ConnectionFailed,
    ContextOverflow,
    InvalidInput,
    InvalidRequest,
    Overloaded,
    ProtocolError,
)
from holdfast.messages import Stop
from holdfast.parts import Image
from holdfast.providers import open_provider
from holdfast.providers.pipe import Timeouts
from holdfast.testing.claude_cli import (
    StandIn,
    error,
    fails,
    kill,
    leave,
    line,
    plays,
    raw,
    result,
    says,
    starts,
    wait,
)
from holdfast.testing.faults import loops
from holdfast.testing.replay.ours import adapters
from holdfast.testing.replay.recordings import Recording, read_folder
from sessions_for_tests import until

ROOT = Path(__file__).parent.parent
CORPUS = Path(os.environ.get("HOLDFAST_CORPUS") or ROOT.parent / "shared" / "corpus")
RECORDED = CORPUS / "traffic" / "claude-cli"
LOOK = Tool("look", "Look.", {"type": "object", "properties": {"n": {"type": "integer"}}})
HI, REPLY = Message.user("Hi."), Message.assistant("Hello.")
LIMITS = Timeouts(connect=5.0, idle=5.0, total=20.0)


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def cli(tmp_path):
    """Makes a stand-in with these answers, and a provider that starts it."""
    number = iter(range(1000))

    def made(*answers, is_logged_in=True, **options):
        stand_in = StandIn(tmp_path / str(next(number)), *answers, is_logged_in=is_logged_in)
        given = {"tries_max": 1, "timeout": LIMITS, "program": stand_in.path, **options}
        return stand_in, open_provider("claude-cli:sonnet", **given)

    return made


def asked(provider, *messages, **options):
    """The response to one question; the provider is closed behind it."""

    async def main():
        async with provider:
            return await provider.complete(messages or [HI], **options)

    return run(main())


def refused(provider, kind, *messages, **options):
    with pytest.raises(kind) as caught:
        asked(provider, *messages, **options)
    return caught.value


# An answer


def test_it_is_a_provider_like_any_other(cli):
    """Text, thinking, usage and what a callback hears are as with other vendors."""
    _, provider = cli(says("It rains.", thought="Look.", tokens=(100, 20)))
    heard, thought, used = [], [], []

    response = asked(
        provider,
        HI,
        on_chunk=heard.append,
        on_thinking=thought.append,
        on_usage_update=used.append,
    )

    assert (response.text, response.thinking, response.stop) == ("It rains.", "Look.", Stop.STOP)
    assert response.message.model == "claude-cli:sonnet" == provider.name
    assert (response.usage.total, used[-1]) == (120, response.usage)
    assert (heard, thought) == (["It", " rains."], ["Look."])
    assert provider.context_limit == 200_000 and provider.output_limit >= 32_000
    assert "claude-cli:sonnet" in repr(provider)


def test_all_that_was_said_reaches_the_model(cli):
    """B43, S2-107: messages, system instruction, tools and pictures; J sent the last message."""
    stand_in, provider = cli()
    picture = Message.user([Image(data=b"\x89PNG\r\n\x1a\n", media_type="image/png")])

    asked(provider, HI, REPLY, picture, system_instruction="Be brief.", tools=[LOOK])

    (started,) = stand_in.calls
    assert "Hi." in started.texts[0] and "Hello." in started.texts[0]
    assert started.said[0]["content"][1]["type"] == "image"
    assert started.system.startswith("Be brief.") and '"look"' in started.system


def test_calls_come_back_and_results_go_there(cli):
    """S2-112: a round trip, by way of words; the session of the program is gone on with."""
    written = 'See.\n<tool_call>{"name": "look", "arguments": {"n": "2"}}</tool_call>'
    stand_in, provider = cli(says(written), says("Two birds."))
    calls = []

    async def main():
        async with provider:
            first = await provider.complete(
                [HI], tools=[LOOK], conversation="c", on_tool_call=calls.append
            )
            (call,) = first.calls
            said = [HI, first.message, Message.tool("2", call.id)]
            return call, await provider.complete(said, tools=[LOOK], conversation="c")

    call, second = run(main())

    assert (call.name, call.arguments, calls) == ("look", '{"n":2}', [call])
    assert second.text == "Two birds."
    assert stand_in.calls[1].is_resumed
    assert stand_in.calls[1].texts[-2] == f"Tool 'look' (call_id: {call.id}) returned:\n2"


def test_an_answer_follows_a_schema_by_the_system_prompt(cli):
    stand_in, provider = cli(says('{"n": 1}'))

    response = asked(provider, response_schema={"type": "object", "properties": {"n": {}}})

    assert json.loads(response.text) == {"n": 1}
    assert '"properties"' in stand_in.calls[0].system


# Who reads what


def test_nothing_that_is_said_stands_on_the_command_line(cli):
    """Every user of the machine can read it: neither words nor keys are there."""
    stand_in, provider = cli(api_key=f"sk-{SECRET}", env={"TEAM_TOKEN": f"tk-{SECRET}"})

    asked(
        provider, Message.user("SAID"), REPLY, HI, system_instruction="SYSTEM", conversation="KEY"
    )

    (started,) = stand_in.calls
    shown = " ".join(started.arguments)
    assert not [word for word in ("SAID", "SYSTEM", "Hi.", "KEY", SECRET) if word in shown]
    assert started.environment["ANTHROPIC_API_KEY"] == f"sk-{SECRET}"
    assert started.environment["TEAM_TOKEN"] == f"tk-{SECRET}"
    assert "TEAM_TOKEN" not in os.environ


def test_the_file_with_the_system_prompt_is_private_and_goes(cli, monkeypatch, tmp_path):
    """S2-108: nobody else can read it, and it is there as long as it is needed."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    seen = []

    async def main():
        _, provider = cli()
        async with provider:
            for _ in range(2):
                await provider.complete(
                    [HI], "Be brief.", on_chunk=lambda _: seen.append(modes(tmp_path))
                )
            folders = list(tmp_path.glob("holdfast-*"))
            files = [file for folder in folders for file in folder.iterdir()]
        return len(folders), files, list(tmp_path.glob("holdfast-*"))

    assert run(main()) == (1, [], [])
    assert seen and all(each == [0o700, 0o600] for each in seen)


def modes(folder):
    (own,) = folder.glob("holdfast-*")
    return [path.stat().st_mode & 0o777 for path in (own, *own.iterdir())]


def test_files_and_commands_in_a_message_are_words(cli):
    """The program would read the file, and carry out the command."""
    stand_in, provider = cli(says("1"), says("2"))

    async def main():
        async with provider:
            first = await provider.complete([Message.user("@/etc/passwd")], conversation="c")
            said = [Message.user("@/etc/passwd"), first.message, Message.user("/clear")]
            await provider.complete(said, conversation="c")

    run(main())

    assert [(each.files, each.commands) for each in stand_in.calls] == [((), ())] * 2
    assert "/clear" in stand_in.calls[1].texts and "@/etc/passwd" in stand_in.calls[1].texts


def test_it_works_in_a_folder_of_its_own_or_where_it_is_told_to(cli, tmp_path):
    own, provider = cli()
    asked(provider)
    here, provider = cli(mode="delegated")
    asked(provider)
    there, provider = cli(cwd=tmp_path)
    asked(provider)

    assert not os.path.exists(own.calls[0].cwd)
    assert here.calls[0].cwd == os.getcwd() and there.calls[0].cwd == str(tmp_path)


def test_tries_are_ours_in_passthrough_mode_and_the_programs_in_delegated(cli):
    """Where the program works for an hour, it may try again by itself."""
    own, provider = cli()
    asked(provider)
    there, provider = cli(mode="delegated")
    asked(provider)

    assert own.calls[0].environment["CLAUDE_CODE_MAX_RETRIES"] == "0"
    assert "CLAUDE_CODE_MAX_RETRIES" not in there.calls[0].environment


def test_thinking_and_limits_are_told_in_the_environment(cli):
    """S2-111: of the program alone."""
    stand_in, provider = cli()
    asked(provider, settings=Settings(thinking="off", max_tokens=500))

    told = stand_in.calls[0].environment
    assert (told["MAX_THINKING_TOKENS"], told["CLAUDE_CODE_MAX_OUTPUT_TOKENS"]) == ("0", "500")
    assert "MAX_THINKING_TOKENS" not in os.environ


# Its sessions


def talk(provider, *turns, conversation="c", **options):
    """Each turn is what to say; a function changes what was said so far. Gives the responses."""

    async def main():
        said, responses = [], []
        async with provider:
            for turn in turns:
                if callable(turn):
                    said = turn(said)
                    continue
                said = [*said, Message.user(turn)]
                response = await provider.complete(said, conversation=conversation, **options)
                said.append(response.message)
                responses.append(response)
        return responses

    return run(main())


def test_a_session_is_gone_on_with_while_the_conversation_is(cli):
    """S2-106: the id of the program's session is kept across turns, by the provider; only what is
    new is told, and the model sees all."""
    stand_in, provider = cli(says("1"), says("2"), says("3"))

    talk(provider, "One?", "Two?", "Three?", system_instruction="Be brief.")

    first, second, third = stand_in.calls
    assert [each.is_resumed for each in stand_in.calls] == [False, True, True]
    assert first.session == second.session == third.session
    assert [line["message"]["content"][0]["text"] for line in third.stdin] == ["Three?"]
    said = [text for text in third.texts if not text.startswith("[")]
    assert said == ["One?", "1", "Two?", "2", "Three?"]
    assert all(each.system == "Be brief." for each in stand_in.calls)


CHANGES = {
    "a fold": lambda said: [Message.user("[Context Summary]"), *said[2:]],
    "a revert": lambda said: said[:2],
    "an answer of another": lambda said: [
        *said,
        Message.user("Else?"),
        Message.assistant("Other.", model="openai:gpt-5"),
    ],
    "another wording": lambda said: [*said[:-1], Message.assistant("No.")],
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_conversation_that_went_another_way_is_told_anew(cli, change):
    """S2-113: a new session of the program, with the transcript."""
    stand_in, provider = cli(says("1"), says("2"), says("3"), says("4"))

    talk(provider, "One?", "Two?", CHANGES[change], "Three?", "Four?")

    assert [each.is_resumed for each in stand_in.calls] == [False, True, False, True]
    third = stand_in.calls[2]
    assert third.session != stand_in.calls[0].session
    assert third.texts[0].startswith("What was said before") and third.texts[1] == "Three?"


def test_another_process_tells_everything_anew(cli):
    """S2-113: what the provider remembers is in memory."""
    stand_in, provider = cli(says("1"), says("2"))
    (first,) = talk(provider, "One?")
    other = open_provider("claude-cli:sonnet", program=stand_in.path)

    said = [Message.user("One?"), first.message, Message.user("Two?")]
    asked(other, *said, conversation="c")

    assert [each.is_resumed for each in stand_in.calls] == [False, False]


def test_a_session_that_the_program_has_lost_is_told_anew(cli):
    """The caller hears nothing of it."""
    stand_in, provider = cli(says("1"), says("2"))
    heard = []

    def lose(said):
        stand_in.forget_sessions()
        return said

    responses = talk(provider, "One?", lose, "Two?", on_retry=lambda *_: heard.append(1))

    assert [response.text for response in responses] == ["1", "2"]
    _, lost, anew = stand_in.calls
    assert lost.lost and not anew.is_resumed and anew.texts[0].startswith("What was said")
    assert heard == []


def test_without_a_conversation_or_by_choice_no_session_is_kept(cli):
    for options, conversation in (({}, None), ({"sessions": False}, "c")):
        stand_in, provider = cli(says("1"), says("2"), **options)
        talk(provider, "One?", "Two?", conversation=conversation)

        assert not any(each.is_resumed for each in stand_in.calls)
        assert not list((stand_in.folder / "sessions").iterdir())


def test_conversations_do_not_meet(cli):
    stand_in, provider = cli(says("a"), says("b"), says("c"), says("d"))

    async def main():
        async with provider:
            one = await provider.complete([HI], conversation="1")
            await provider.complete([HI], conversation="2")
            said = [HI, one.message, Message.user("And?")]
            await provider.complete(said, conversation="2")
            await provider.complete(said, conversation="1")

    run(main())

    assert [each.is_resumed for each in stand_in.calls] == [False, False, False, True]
    assert stand_in.calls[3].session == stand_in.calls[0].session


def test_two_questions_at_once_do_not_share_a_session(cli):
    """One goes on with it; the other is told everything anew."""
    stand_in, provider = cli(says("1"))

    async def main():
        async with provider:
            first = await provider.complete([HI], conversation="c")
            said = [HI, first.message, Message.user("And?")]
            both = (provider.complete(said, conversation="c") for _ in range(2))
            await asyncio.gather(*both)

    run(main())

    assert sorted(each.is_resumed for each in stand_in.calls) == [False, False, True]


def test_an_answer_with_a_tool_that_the_program_does_not_know_ends_its_session(cli):
    """It has told its model that there is no such tool."""
    stand_in, provider = cli(says("See.", tool=("look", {"n": 1})), says("One."))

    async def main():
        async with provider:
            first = await provider.complete([HI], tools=[LOOK], conversation="c")
            said = [HI, first.message, Message.tool("1", first.calls[0].id)]
            return await provider.complete(said, tools=[LOOK], conversation="c")

    assert run(main()).text == "One."
    assert not stand_in.calls[1].is_resumed


# What goes wrong


def test_a_missing_program_is_told_with_the_way_out(tmp_path):
    provider = open_provider("claude-cli:sonnet", program=str(tmp_path / "claude"))

    assert "install Claude Code" in str(refused(provider, InvalidInput))


def test_a_program_that_cannot_be_started_is_told(cli, tmp_path):
    broken = tmp_path / "claude"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)
    provider = open_provider("claude-cli:sonnet", program=str(broken))

    assert "cannot be started" in str(refused(provider, InvalidInput))
    _, provider = cli(cwd=tmp_path / "nowhere")
    assert "is no folder" in str(refused(provider, InvalidInput))


def test_who_is_not_logged_in_is_told_so(cli):
    _, provider = cli(fails("Not logged in · Please run /login"))
    assert "/login" in str(refused(provider, AuthError))

    async def verified(is_logged_in):
        _, provider = cli(is_logged_in=is_logged_in)
        async with provider:
            await provider.verify()

    run(verified(True))
    with pytest.raises(AuthError, match="log in"):
        run(verified(False))


def test_who_looks_whether_it_works_waits_no_longer_than_the_limit(tmp_path):
    """And the words of a program that is something else are told."""
    for script, words in (("exec sleep 60", "idle limit"), ("echo what? >&2; exit 2", "what?")):
        other = tmp_path / "claude"
        other.write_text(f"#!/bin/sh\n{script}\n")
        other.chmod(0o755)
        limits = LIMITS._replace(idle=0.5)
        provider = open_provider("claude-cli:sonnet", program=str(other), timeout=limits)

        with pytest.raises(ConnectionFailed, match=re.escape(words)):
            run(provider.verify())
        run(provider.close())


def test_a_key_may_come_from_a_function_at_each_call(cli):
    """As with other vendors; it may be asynchronous."""
    keys = iter(("sk-first", "sk-second"))

    async def key():
        return next(keys)

    stand_in, provider = cli(api_key=key)
    talk(provider, "One?", "Two?")

    given = [each.environment["ANTHROPIC_API_KEY"] for each in stand_in.calls]
    assert given == ["sk-first", "sk-second"]


def test_a_program_is_found_from_where_the_caller_stands(cli, monkeypatch):
    """It works somewhere else."""
    stand_in, _ = cli()
    monkeypatch.chdir(stand_in.folder)
    provider = open_provider("claude-cli:sonnet", program="./claude")

    assert asked(provider).text == "Hello."


def test_a_program_that_is_too_old_is_told(cli):
    _, provider = cli((error("error: unknown option '--tools'"), leave(1)))

    said = str(refused(provider, InvalidRequest))

    assert "unknown option '--tools'" in said and "update Claude Code" in said


@pytest.mark.parametrize("code", [0, 1, 3])
def test_an_answer_without_its_result_broke_off(cli, code):
    """S2-109: what had come is kept, and how the program ended is told."""
    steps = says("It rains and rains.")
    heard = []
    _, provider = cli((*steps[:5], error("Something broke."), leave(code)))

    broke = refused(provider, ConnectionFailed, on_chunk=heard.append)

    assert broke.partial.text == "".join(heard) == "It rains"
    assert broke.partial.stop == Stop.ERROR
    assert f"ended with code {code}" in str(broke) and "Something broke." in str(broke)


def test_a_program_that_is_killed_broke_off(cli):
    _, provider = cli((*says("It rains.")[:4], kill()))

    assert "SIGKILL" in str(refused(provider, ConnectionFailed))


def test_a_code_behind_a_complete_answer_changes_nothing(cli):
    """The program ends with 1 where the model met a limit."""
    _, provider = cli((*says("It rains."), error("Something."), leave(1)))

    assert asked(provider).text == "It rains."


def test_its_error_output_is_taken_all_the_time_and_its_end_is_told(cli):
    """B43: more than a pipe holds, before anything else, stops nobody; of it the end is kept."""
    noise = [error("noise " * 2_000)] * 40
    _, provider = cli((*noise, *says("It rains.")))
    assert asked(provider).text == "It rains."

    _, provider = cli((*noise, error("The end."), leave(1)))
    told = str(refused(provider, ConnectionFailed))
    assert "The end." in told and len(told) < 3_000


def test_no_secret_reaches_an_error(cli):
    """Wherever the program repeats one."""
    key = f"sk-ant-{SECRET}-0123456789"
    for answer in (
        (error(f"bad key {key}"), leave(1)),
        fails(f"Invalid API key {key} and tk-{SECRET}"),
    ):
        _, provider = cli(answer, api_key=key, env={"TEAM_TOKEN": f"tk-{SECRET}"})
        told = refused(provider, (AuthError, ConnectionFailed))

        assert SECRET not in str(told) and SECRET not in repr(told.args)
        assert SECRET not in repr(provider)


def test_what_passes_by_itself_is_tried_again_in_a_new_session(cli, monkeypatch):
    """By the rules that hold for all vendors; the second try does not go on with a session of
    which nobody knows what it has seen."""
    monkeypatch.setattr("holdfast.providers.retries.FIRST_BOUND_S", 0.01)
    busy = fails('API Error: 529 {"type":"error","error":{"type":"overloaded_error"}}')
    stand_in, provider = cli(says("1"), busy, says("2"), tries_max=3)
    heard = []

    responses = talk(provider, "One?", "Two?", on_retry=lambda *each: heard.append(each[0]))

    assert responses[1].text == "2" and [type(each) for each in heard] == [Overloaded]
    assert [each.is_resumed for each in stand_in.calls] == [False, True, False]


def test_nothing_is_tried_again_behind_output(cli):
    """Words that were heard, and in delegated mode a tool that has run."""
    stand_in, provider = cli(says("It rains.")[:5], tries_max=3)
    refused(provider, ConnectionFailed, on_chunk=str)
    assert len(stand_in.calls) == 1

    ran = says("", tool=("Bash", {"command": "ls"}))[:5]
    stand_in, provider = cli(ran, tries_max=3, mode="delegated")
    refused(provider, ConnectionFailed)
    assert len(stand_in.calls) == 1


def test_a_clear_refusal_is_asked_once(cli):
    stand_in, provider = cli(fails("Prompt is too long"), tries_max=5)

    refused(provider, ContextOverflow)

    assert len(stand_in.calls) == 1


def test_silence_is_an_error_at_the_limit(cli):
    """And nothing of the program is left."""
    limits = LIMITS._replace(idle=0.5)
    _, provider = cli((*says("It rains.")[:5], wait(60)), timeout=limits)
    started = time.monotonic()

    silent = refused(provider, ConnectionFailed)

    assert "idle limit" in str(silent) and silent.partial.text == "It rains."
    assert time.monotonic() - started < 3


def test_all_together_has_a_limit(cli):
    drip = [each for _ in range(200) for each in (wait(0.05), line({"type": "ping"}))]
    _, provider = cli(tuple(drip), timeout=LIMITS._replace(total=0.6))

    assert "total limit" in str(refused(provider, ConnectionFailed))


def test_an_answer_has_a_size(cli):
    _, provider = cli((raw(b"x" * 300_000), wait(60)), size_max=100_000)

    assert "size_max" in str(refused(provider, ProtocolError))


def test_garbage_between_the_lines_is_passed_over(cli):
    """S2-109: what is no JSON, no object, of no known kind, or no UTF-8."""
    odd = (b"[SandboxDebug] x\n", b"<html>\n", b"[]\n", b"5\n", b'{"type": "new"}\n', b"\xff\xfe\n")
    steps = [each for step in says("It rains.") for each in (*map(raw, odd), step)]
    _, provider = cli((raw(b"\n\nWarning!\n"), *steps))

    assert asked(provider).text == "It rains."


def test_an_answer_of_ten_mebibytes_is_taken(cli):
    """More than any pipe holds, in one line; and a question that is as long."""
    words = "a long story. " * (10 * 1024 * 1024 // 14)
    stand_in, provider = cli(says(words))

    response = asked(provider, Message.user(words))

    assert response.text == words and len(stand_in.calls[0].texts[0]) == len(words)


def test_a_program_that_reads_nothing_is_waited_for_no_longer_than_the_limit(tmp_path):
    deaf = tmp_path / "claude"
    deaf.write_text("#!/bin/sh\nexec sleep 60\n")
    deaf.chmod(0o755)
    limits = LIMITS._replace(idle=0.5)
    provider = open_provider("claude-cli:sonnet", program=str(deaf), tries_max=1, timeout=limits)

    told = refused(provider, ConnectionFailed, Message.user("x" * 5_000_000))

    assert "idle limit" in str(told)


# Cancelling, and what is left


def running(marker):
    """The processes with this word on their command line, those that only wait to be counted
    apart."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
                is_dead = b") Z " in (folder / "stat").read_bytes()
            except OSError:
                continue
            if marker.encode() in b" ".join(words) and not is_dead:
                found.append(folder.name)
    return found


linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")


@linux
def test_a_cancel_ends_the_program_and_all_that_it_has_started(cli, tmp_path):
    """Within a second; a tool that it started is in a session of its own, and is ended too."""
    marker = f"300.{os.getpid()}"
    slow = (*says("It rains.")[:5], starts("sleep", marker), wait(60))
    stand_in, provider = cli(slow, says("Anew."))
    token, heard = CancelToken(), []

    async def main():
        pipes = open_pipes()
        async with provider:
            task = asyncio.create_task(
                provider.complete([HI], conversation="c", cancel_token=token, on_chunk=heard.append)
            )
            await until(lambda: heard[1:] and running(marker))
            started = time.monotonic()
            threading.Thread(target=token.cancel, args=("enough",)).start()
            with pytest.raises(Cancelled) as caught:
                await task
            took_s = time.monotonic() - started
            left = running(marker) + running(str(stand_in.folder)), open_pipes() - pipes
            said = [HI, caught.value.partial.message, Message.user("And?")]
            await provider.complete(said, conversation="c")
        return caught.value, took_s, left

    cancelled, took_s, left = run(main())

    assert (cancelled.reason, cancelled.partial.text) == ("enough", "It rains.")
    assert cancelled.partial.stop == Stop.CANCELLED
    assert took_s < 1 and left == ([], set())
    assert not stand_in.calls[1].is_resumed, "nobody knows what that session has seen"


def open_pipes():
    """The pipes of this process."""
    found = set()
    for each in Path("/proc/self/fd").iterdir():
        try:
            target = os.readlink(each)
        except OSError:
            continue
        if target.startswith("pipe:"):
            found.add(target)
    return found


@linux
def test_a_cancel_at_every_await_leaves_nothing_behind(cli):
    """The task is cancelled at its k-th await, for every k: no process, pipe, task or file."""
    stand_in, provider = cli(says("Hi."))

    async def main():
        await provider.complete([HI])  # everything is loaded
        pipes, tasks, k = open_pipes(), asyncio.all_tasks(), 0
        while True:
            k += 1
            outcome = await loops.cancel_at(provider.complete([HI], on_chunk=str), k)
            if not outcome.is_hit:
                break
        await until(lambda: not running(str(stand_in.folder)) and not open_pipes() - pipes)
        left = running(str(stand_in.folder)), open_pipes() - pipes, asyncio.all_tasks() - tasks
        files = os.listdir(provider._program._own_folder())
        await provider.close()
        return k, left, files

    k, left, files = run(main())

    assert k > 2
    assert left == ([], set(), set()) and files == []


@linux
def test_many_questions_at_once_leave_nothing_behind(cli):
    stand_in, provider = cli(says("Hi."))

    async def main():
        pipes = open_pipes()
        async with provider:
            answers = await asyncio.gather(
                *(provider.complete([HI], conversation=str(n)) for n in range(12))
            )
        return answers, open_pipes() - pipes

    answers, left = run(main())

    assert [answer.text for answer in answers] == ["Hi."] * 12
    assert left == set() and running(str(stand_in.folder)) == []
    assert len(stand_in.calls) == 12


def test_one_provider_serves_one_event_loop_after_the_other(cli):
    stand_in, provider = cli(says("1"), says("2"))

    first = run(provider.complete([HI], conversation="c"))
    second = run(provider.complete([HI, first.message, Message.user("?")], conversation="c"))
    run(provider.close())

    assert (first.text, second.text) == ("1", "2") and stand_in.calls[1].is_resumed


# Options


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"apikey": "x"}, "'apikey'.*is unknown here.*api_key.*mode"),
        ({"headers": {}}, "'headers'.*is not for a program"),
        ({"client": None}, "'client'.*is not for a program"),
        ({"mode": "auto"}, "mode.*passthrough or delegated"),
        ({"permission_mode": "plan"}, "permission_mode.*delegated"),
        ({"max_turns": 3}, "max_turns.*delegated"),
        ({"max_turns": 0, "mode": "delegated"}, "max_turns"),
        ({"setting_sources": "user"}, "setting_sources"),
        ({"setting_sources": ["home"]}, "setting_sources"),
        ({"env": {"A=B": "x"}}, "env"),
        ({"env": {"A": 5}}, "env"),
        ({"env": ["A"]}, "env"),
        ({"arguments": "--debug"}, "arguments"),
        ({"arguments": ["a\0"]}, "arguments"),
        ({"program": ""}, "program"),
        ({"cwd": 5}, "cwd"),
    ],
)
def test_a_wrong_option_is_told_when_the_provider_is_opened(options, words):
    with pytest.raises(InvalidInput, match=words):
        open_provider("claude-cli:sonnet", **options)


def test_a_long_window_is_asked_for_by_name():
    """S2-111: the window is 200 000 tokens, whatever the service offers elsewhere."""
    assert open_provider("claude-cli:claude-sonnet-4-6").context_limit == 200_000
    assert open_provider("claude-cli:sonnet[1m]").context_limit == 1_000_000
    assert open_provider("claude-cli:sonnet", context_limit=9_000).context_limit == 9_000


def test_opening_it_loads_no_http_client():
    code = (
        "import sys, holdfast\nholdfast.open_provider('claude-cli:sonnet')\n"
        "assert 'httpx2' not in sys.modules"
    )

    run(_succeeds(code))


async def _succeeds(code):
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", code)
    assert await child.wait() == 0


# Recordings


@pytest.mark.skipif(not RECORDED.is_dir(), reason=f"no corpus in {CORPUS} (HOLDFAST_CORPUS)")
def test_recorded_lines_are_read_through_a_program(cli):
    """Each recording, printed by a process: what comes is what reading the bytes gives."""
    ours = adapters()["claude-cli"]

    async def through(exchange):
        _, provider = cli(plays(exchange.data), mode="delegated")
        async with provider:
            try:
                return (await provider.complete([HI])).message
            except ConnectionFailed as broke:
                return broke.partial.message

    for each in read_folder(RECORDED):
        assert isinstance(each, Recording)
        for exchange in each.exchanges:
            try:
                read = ours.read(exchange).message
            except ConnectionFailed as broke:
                read = broke.partial.message
            message = run(through(exchange))

            assert message.content == read.content, each.file
            assert (message.calls, message.stop) == (read.calls, read.stop), each.file


def test_a_last_line_tells_what_was_not_said_before(cli):
    """A command of the program's own answers in its result alone."""
    _, provider = cli((line(result("Done.")),))

    assert asked(provider).text == "Done."
