"""`holdfast fork`, `rm` and `erase`: what is made, what goes, and what is asked before."""

import asyncio
import json
import os
import pty
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

import holdfast
from commands import Commands, Inside
from holdfast import Message, ids
from holdfast.cli import asking
from holdfast.testing import FakeProvider

OLD = int((datetime.now(UTC) - timedelta(days=100)).timestamp() * 1e9)


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """The bytes of a store, made once."""
    path = tmp_path_factory.mktemp("filled") / "holdfast.db"
    asyncio.run(fill(f"sqlite:{path}"))
    return path.read_bytes()


@pytest.fixture
def cli(tmp_path, monkeypatch, capfd, filled):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "holdfast.db").write_bytes(filled)
    return Inside(tmp_path, monkeypatch, capfd)


async def fill(url):
    """Three conversations of a bot, one of them old, and one of somebody else."""
    async with holdfast.open(url, model=FakeProvider(*["answer"] * 9)) as sessions:
        with ids.using(ids.IdSource(clock_ns=lambda: OLD)):
            old = await sessions.get_or_create("telegram:old", agent="bot")
            await old.append(Message.user("long ago"))
        for number in (1, 2):
            session = await sessions.get_or_create(f"telegram:{number}", agent="bot")
            for turn in (1, 2):
                await session.send(f"question {turn} of {number}")
        await (await sessions.get_or_create("cli:direct")).append(Message.user("hello"))


def keys(cli):
    return {each["key"] for each in cli("ls", "--json").json}


def texts(cli, key):
    async def main():
        async with holdfast.open(cli.store) as sessions:
            return [m.text for m in await (await sessions.get(key)).read()]

    return asyncio.run(main())


# fork


def test_a_fork_starts_as_the_other_one(cli):
    ran = cli("fork", "telegram:1", "cli:experiment")

    assert (ran.status, ran.out) == (0, "cli:experiment\n")
    assert "holdfast chat -s cli:experiment" in ran.err
    assert texts(cli, "cli:experiment") == texts(cli, "telegram:1")


def test_a_fork_at_a_turn_ends_there(cli):
    ran = cli("fork", "telegram:1", "--at", "1", "--json")

    assert ran.json["key"] == "telegram:1-2"
    assert ran.json["from"] == "telegram:1" and ran.json["messages"] == 2
    assert texts(cli, "telegram:1-2") == ["question 1 of 1", "answer"]


def test_a_fork_without_a_name_takes_the_first_that_is_free(cli):
    assert [cli("fork", "cli:direct").out for _ in range(3)] == [
        "cli:direct-2\n",
        "cli:direct-3\n",
        "cli:direct-4\n",
    ]


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("fork", "telegram:1", "cli:direct"), 4, "there is a conversation 'cli:direct' already"),
        (("fork", "nobody"), 3, "there is no conversation 'nobody'"),
        (("fork", "telegram:1", "x", "--at", "9"), 2, "turn 9"),
        (("fork", "telegram:1", "x", "--at", "0"), 2, "--at"),
        (("fork",), 2, "holdfast fork --help"),
        (("rm",), 2, "--older-than"),
        (("rm", "telegram:1", "--keep", "3"), 2, "name conversations, or say"),
        (("rm", "telegram:1", "--agent", "bot", "--yes"), 2, "name conversations, or say"),
        (("rm", "telegram:1"), 2, "--yes"),
        (("rm", "nobody", "--yes"), 3, "there is no conversation"),
        (("rm", "--older-than", "long", "--yes"), 2, "'long' is no time"),
        (("erase", "telegram:1"), 2, "--yes"),
        (("erase", "telegram:1", "--turn", "1", "--message", "x"), 2, "not both"),
        (("erase", "telegram:1", "--turn", "9", "--yes"), 3, "there are 2 turns"),
        (("erase", "telegram:1", "--message", "x", "--yes"), 3, "no message"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_done_is_said_in_a_sentence_and_nothing_is_lost(
    cli, arguments, status, said
):
    before = keys(cli)

    ran = cli(*arguments)

    assert (ran.status, ran.out) == (status, "")
    assert said in ran.err and ran.err.startswith("error: ") and ran.err.count("\n") == 1
    assert keys(cli) == before


# rm


def test_conversations_are_removed_by_name(cli):
    ran = cli("rm", "telegram:1", "@", "--yes", "--json")

    assert ran.status == 0
    assert [each["key"] for each in ran.json["removed"]] == ["telegram:1", "cli:direct"]
    assert keys(cli) == {"telegram:2", "telegram:old"}


def test_a_dry_run_removes_nothing(cli):
    ran = cli("rm", "telegram:1", "--dry-run")

    assert (ran.status, ran.out) == (0, "telegram:1\n")
    assert "1 would be removed" in ran.err
    assert len(keys(cli)) == 4


@pytest.mark.parametrize(
    ("options", "gone"),
    [
        (["--older-than", "90d"], {"telegram:old"}),
        (["--older-than", "200d"], set()),
        (["--keep", "1"], {"telegram:1", "telegram:2", "telegram:old"}),
        (["--keep", "1", "--agent", "bot"], {"telegram:1", "telegram:old"}),
        (["--older-than", "90d", "--keep", "9"], set()),
    ],
    ids=str,
)
def test_conversations_are_removed_by_age_and_number(cli, options, gone):
    before = keys(cli)
    would = cli("rm", *options, "--dry-run", "--json").json
    assert {each["key"] for each in would["removed"]} == gone and would["dry_run"]
    assert keys(cli) == before

    assert cli("rm", *options, "--yes").status == 0

    assert keys(cli) == before - gone


def on_a_terminal(commands, answer, *arguments):
    """What the program prints, and its status, when somebody types an answer."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "holdfast", *arguments],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=commands.environment,
    )
    os.close(theirs)
    os.write(ours, answer)
    said = process.communicate(timeout=60)[0].decode()
    os.close(ours)
    return process.returncode, said


def test_on_a_terminal_it_asks_and_no_is_no(cli):
    commands = Commands(cli.home)

    status, said = on_a_terminal(commands, b"n\n", "rm", "telegram:1")
    assert status == 1 and "Remove telegram:1?" in said and "nothing was removed" in said
    assert "telegram:1" in keys(cli)

    status, said = on_a_terminal(commands, b"y\n", "rm", "telegram:1")
    assert status == 0
    assert "telegram:1" not in keys(cli)


@pytest.mark.parametrize("command", [["rm"], ["erase"], ["erase", "--turn", "1"]])
def test_without_a_question_the_beginning_of_a_key_removes_nothing(cli, command):
    """A script that runs again names what is gone already: another that begins like it stays."""
    before = keys(cli)

    ran = cli(*command, "telegram:o", "--yes")

    assert (ran.status, ran.out, keys(cli)) == (3, "", before)
    assert "'telegram:old' only begins like it" in ran.err and "name it whole" in ran.err
    assert cli(*command, "telegram:o", "--dry-run").status == 0


@pytest.mark.parametrize("name", ["telegram:old", "@", "id"])
def test_without_a_question_a_whole_name_is_enough(cli, name):
    wanted = {"telegram:old": "telegram:old"}.get(name, cli("ls", "--json").json[0]["key"])
    id = next(each["id"] for each in cli("ls", "--json").json if each["key"] == wanted)

    ran = cli("rm", id if name == "id" else name, "--yes")

    assert (ran.status, ran.out) == (0, f"{wanted}\n")


@pytest.mark.parametrize("command", ["rm", "erase"])
def test_ctrl_c_at_the_question_ends_it_at_once(cli, monkeypatch, command):
    """Not when the question has been answered: an event loop alone would hear of it only then."""

    waiting = []

    def asked(*_, **__):
        signal.raise_signal(signal.SIGINT)
        waiting.append("still")
        return "y"

    stdin = SimpleNamespace(isatty=lambda: True)
    monkeypatch.setattr(asking, "sys", SimpleNamespace(stdin=stdin, stderr=sys.stderr))
    monkeypatch.setattr("click.termui.visible_prompt_func", asked)

    ran = cli(command, "telegram:1")

    assert (ran.status, ran.out, waiting) == (130, "", [])
    assert ran.err.endswith("\ninterrupted\n")
    assert "telegram:1" in keys(cli)


# erase


def test_an_erased_turn_is_in_no_file_any_more(cli):
    """The receipt names where was looked; no file of the home holds the words."""
    ran = cli("erase", "telegram:1", "--turn", "1", "--yes")

    assert ran.status == 0
    assert "erased" in ran.out and "holdfast.db-wal" in ran.out
    assert texts(cli, "telegram:1") == ["question 2 of 1", "answer"]
    assert not [
        p for p in cli.home.rglob("*") if p.is_file() and b"question 1 of 1" in p.read_bytes()
    ]


def test_an_erased_message_is_found_by_the_beginning_of_its_id(cli):
    async def id_of():
        async with holdfast.open(cli.store) as sessions:
            return (await (await sessions.get("cli:direct")).read())[0].id

    ran = cli("erase", "cli:direct", "--message", asyncio.run(id_of())[:20], "--yes", "--json")

    assert ran.json["entries"] == 1 and ran.json["looked"] and not ran.json["dry_run"]
    assert texts(cli, "cli:direct") == []


def test_a_whole_conversation_is_erased(cli):
    assert cli("erase", "telegram:2", "--dry-run").out == "would erase all of telegram:2\n"
    assert "telegram:2" in keys(cli)

    receipt = cli("erase", "telegram:2", "--yes", "--json").json

    assert receipt["keys"] == ["telegram:2"] and receipt["entries"] > 4
    assert "telegram:2" not in keys(cli)
    assert not [p for p in cli.home.rglob("*") if p.is_file() and b"of 2" in p.read_bytes()]


def test_a_key_cannot_steer_the_terminal(cli):
    async def make():
        async with holdfast.open(cli.store) as sessions:
            await (await sessions.get_or_create("evil\x1b[2J")).append(Message.user("x"))
            for number in (1, 2):
                await sessions.get_or_create(f"bad {number}\nerror: forged")

    asyncio.run(make())

    for ran in (cli("fork", "evil"), cli("rm", "evil\x1b[2J", "--yes"), cli("rm", "evil", "--yes")):
        assert "\x1b" not in ran.out + ran.err
    forged = cli("rm", "bad", "--yes"), cli("fork", "bad 1"), cli("rm", "bad 2", "--yes")
    assert [ran.err.count("\n") for ran in forged] == [1, 1, 1]
    assert "-s 'bad 1" in forged[1].err  # as a shell takes it
    assert not any(line.startswith("error: f") for ran in forged for line in ran.out.splitlines())


def test_json_is_one_document(cli):
    for arguments in (["rm", "@", "--dry-run"], ["erase", "@", "--dry-run"], ["fork", "@"]):
        json.loads(cli(*arguments, "--json").out)


@pytest.mark.parametrize("command", ["rm", "erase"])
def test_what_is_damaged_can_be_taken_away(cli, command):
    """An entry that is not what was written keeps nobody from removing the conversation."""
    path = cli.home / "data" / "holdfast.db"
    path.write_bytes(path.read_bytes().replace(b'"question 1 of 1', b'"question l of 1'))
    assert cli("verify").status == 5

    assert cli(command, "telegram:1", "--yes").status == 0

    assert "telegram:1" not in keys(cli)
    assert cli("verify").status == 0


def test_what_has_a_damaged_record_can_be_removed(cli):
    """Its settings cannot be read any more; it goes all the same, and no other."""
    path = cli.home / "data" / "holdfast.db"
    data = path.read_bytes()
    at = data.index(b'"agent":"bot"', data.index(b'"key":"telegram:2"'))
    path.write_bytes(data[:at] + b'"agent":"bat"' + data[at + 13 :])
    assert cli("verify").status == 5

    assert cli("rm", "telegram:2", "--yes").status == 0

    assert keys(cli) == {"telegram:1", "telegram:old", "cli:direct"}
    assert cli("verify").status == 0
