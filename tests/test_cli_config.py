"""`holdfast config` and `completion`: settings with where they come from; the shell's help."""

import asyncio
import os
import re
import shutil
import stat
import subprocess
import sys

import pytest

import holdfast
from commands import Commands, Inside
from holdfast.cli import config
from holdfast.cli.program import COMMANDS

SECRET = "hunter2"


@pytest.fixture
def cli(tmp_path, monkeypatch, capfd):
    return Inside(tmp_path, monkeypatch, capfd)


def test_each_setting_is_told_with_where_it_comes_from(cli):
    cli("config", "set", "system", "Be brief.")

    found = {each["name"]: each for each in cli("config", "--json", HOLDFAST_TENANT="ada").json}

    assert set(found) == set(config.NAMES)
    assert found["system"]["value"] == "Be brief."
    assert found["system"]["from"].endswith("config.toml")
    assert (found["tenant"]["value"], found["tenant"]["from"]) == ("ada", "HOLDFAST_TENANT")
    assert found["store"]["from"] == "the default"
    assert found["model"]["value"] == found["model"]["from"] == ""


def test_a_setting_is_set_got_and_unset(cli):
    value = 'say "é"\n\x1b[31m\\'

    assert cli("config", "get", "system").status == 1
    assert cli("config", "set", "system", value).status == 0
    assert cli("config", "get", "system", "--json").json["value"] == value
    assert "\x1b" not in cli("config", "get", "system").out
    path = cli("config", "path").out.strip()
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert cli("config", "unset", "system").status == 0
    assert cli("config", "get", "system").status == 1


def test_the_environment_counts_before_the_file_and_that_is_told(cli):
    ran = cli("config", "set", "color", "never", HOLDFAST_COLOR="always")

    assert "HOLDFAST_COLOR is set too" in ran.err
    assert cli("config", "get", "color", HOLDFAST_COLOR="always").out == "always\n"
    assert cli("config", "get", "color").out == "never\n"


def test_a_password_is_not_shown_in_the_list(cli):
    cli("config", "set", "store", f"postgresql://ada:{SECRET}@db.example/x?password={SECRET}")

    for ran in (cli("config"), cli("config", "--json")):
        assert SECRET not in ran.out and "ada:***@db.example" in ran.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("set", "modle", "x"), "there are store, model"),
        (("get", "modle"), "there are store, model"),
        (("get",), "the name of a setting"),
        (("set", "model"), "a name and a value"),
        (("path", "model"), "nothing more"),
        (("frobnicate",), "holdfast config --help"),
        (("set", "color", "blue"), "auto, always, never"),
        (("set", "store", "nowhere"), "has no scheme"),
        (("set", "model", "gpt"), "vendor:model"),
        (("set", "model", "nobody:x"), "anthropic"),
    ],
    ids=" ".join,
)
def test_what_makes_no_sense_is_refused_and_nothing_is_written(cli, arguments, said):
    ran = cli("config", *arguments)

    assert (ran.status, ran.out) == (2, "")
    assert said in ran.err and ran.err.count("\n") == 1
    assert not config.config_path().exists()


def test_a_wrong_name_in_the_file_is_told_with_the_file(cli):
    """Every command reads it: nobody else can say where the name stands."""
    config.write_config({"model": "local:smollm2-135m"})
    config.config_path().write_text('modle = "x"\n')

    ran = cli("ls")

    assert ran.status == 2 and str(config.config_path()) in ran.err and "'modle'" in ran.err


def test_what_was_set_is_what_commands_use(cli, tmp_path):
    async def fill():
        async with holdfast.open(f"sqlite:{tmp_path}/mine.db") as sessions:
            await sessions.get_or_create("cli:direct")

    asyncio.run(fill())
    cli("config", "set", "store", f"sqlite:{tmp_path}/mine.db")

    assert [each["key"] for each in cli("ls", "--json").json] == ["cli:direct"]


KEEPING = ["fork", "rm", "erase", "export", "import", "copy", "backup", "verify"]
KEEPING += ["doctor", "models", "config", "completion"]


@pytest.mark.parametrize("name", KEEPING)
def test_each_command_has_help_whose_examples_are_commands(cli, name):
    ran = cli(name, "--help")

    assert ran.status == 0 and ran.out.startswith(f"Usage: holdfast {name} ")
    examples = re.findall(r"^  (?:holdfast(?: --store \S+)?) (\w+)", ran.out, re.MULTILINE)
    assert set(examples) <= set(COMMANDS)


def test_without_a_command_there_is_the_help_and_no_error(cli):
    """The status is that of wrong arguments; a script that forgot the command sees it."""
    ran = cli()

    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("Usage: holdfast") and "error:" not in ran.err
    assert ran.err.rstrip().endswith("Each command has its own --help.")


# Completion


@pytest.fixture
def shell(tmp_path):
    """A home with some conversations, and the program on the path."""
    commands = Commands(tmp_path)

    async def fill():
        async with holdfast.open(commands.store, durability="fast") as sessions:
            for key in ("telegram:1", "telegram:2", "cli:direct", "evil:\x1b[2J"):
                await sessions.get_or_create(key)

    (tmp_path / "data").mkdir()
    asyncio.run(fill())
    program = tmp_path / "bin" / "holdfast"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m holdfast "$@"\n')
    program.chmod(0o700)
    path = f"{program.parent}:{commands.environment['PATH']}"
    commands.environment["PATH"] = path
    return commands


def complete(shell, line, breaks=" :"):
    """What bash would offer at the end of a line, and anything that was printed."""
    script = (
        'eval "$(holdfast completion bash)"; COMP_LINE=$1; COMP_POINT=${#COMP_LINE}; '
        f"COMP_WORDBREAKS='{breaks}'; _holdfast_completion holdfast; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", script, "bash", line],
        capture_output=True,
        text=True,
        env=shell.environment,
        timeout=60,
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_commands_are_completed(shell):
    assert complete(shell, "holdfast ex") == ["export"]
    assert set(complete(shell, "holdfast ")) >= set(COMMANDS)


def test_keys_are_completed_with_what_bash_has_not_seen_yet(shell):
    """Bash takes what stands before a colon for a word of its own, unless told otherwise."""
    assert complete(shell, "holdfast export tele") == ["telegram:1", "telegram:2"]
    assert complete(shell, "holdfast export telegram:") == ["1", "2"]
    assert complete(shell, "holdfast rm cli:direct telegram:1") == ["1"]
    assert complete(shell, "holdfast export telegram:", breaks=" ") == ["telegram:1", "telegram:2"]


def test_a_key_that_could_steer_the_terminal_is_not_offered(shell):
    assert complete(shell, "holdfast export evil") == []


def test_nothing_is_offered_and_nothing_printed_where_something_is_wrong(shell, tmp_path):
    """No store, a damaged one, a server that is not there: an empty list."""
    (tmp_path / "bad.db").write_bytes(b"nonsense" * 100)
    for url in ("sqlite:/nowhere/x.db", f"sqlite:{tmp_path}/bad.db", "postgresql://127.0.0.1:1/x"):
        assert complete(shell, f"holdfast --store {url} export tele") == []
    assert complete(shell, "holdfast nonsense tele") == []


def test_keys_of_a_store_that_is_in_use_are_completed(shell, tmp_path):
    """What is still in the log of the database is there too."""

    async def main():
        async with holdfast.open(shell.store) as sessions:
            await sessions.get_or_create("telegram:new")
            return await asyncio.to_thread(complete, shell, "holdfast export telegram:n")

    assert asyncio.run(main()) == ["new"]


def test_completing_puts_nothing_beside_the_store_and_loads_no_engine(shell, tmp_path):
    before = sorted(os.listdir(tmp_path / "data"))
    script = (
        "import sys; from holdfast.cli import main\n"
        "try:\n main([])\nfinally:\n"
        " print([n for n in ('asyncio', 'msgspec', 'holdfast.manager') if n in sys.modules])"
    )
    environment = {
        "_HOLDFAST_COMPLETE": "bash_complete",
        "COMP_WORDS": "holdfast export tele",
        "COMP_CWORD": "2",
    }
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env=shell.environment | environment,
        timeout=60,
    )

    assert done.stdout.splitlines() == ["plain,telegram:1", "plain,telegram:2", "[]"]
    assert sorted(os.listdir(tmp_path / "data")) == before


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_what_a_shell_is_told_is_right_for_it(cli, name):
    ran = cli("completion", name)

    assert ran.status == 0 and "_HOLDFAST_COMPLETE" in ran.out
    if program := shutil.which(name):
        done = subprocess.run([program, "-n"], input=ran.out, text=True, capture_output=True)
        assert done.stderr == ""


def test_another_shell_is_refused(cli):
    assert cli("completion", "csh").status == 2
