"""The examples of the pages about the command line are run, and print what the pages say.

Those of docs/cli.md are run in test_cli_chat.py: they need somebody who answers.
"""

import asyncio
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from cli_vendors import ANTHROPIC, vendor
from commands import Inside, Ran
from holdfast import Message
from holdfast.parts import Text, Thinking
from postgres_server import server

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "cli-reading.md"
BLOCK = re.compile(r"^```console\n\$ holdfast (.*?)\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
EXAMPLES = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
TIME = re.compile(
    r"(\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d|(\d{4}-\d\d-\d\d )?\d\d:\d\d|just now|\d+ min ago"
)
TOOK = re.compile(r", \d+\.\d s\b")  # of a tool, where the machine has much to do


@pytest.mark.parametrize(("command", "printed"), EXAMPLES, ids=[each[0] for each in EXAMPLES])
def test_an_example_is_what_the_program_prints(run, command, printed):
    """But for times, and the blanks that fill the columns of a table where times stand."""
    status, out, err = run(*command.split())

    assert status == 0, err
    assert plain(out) == plain(printed)


def plain(text):
    text = TOOK.sub("", text)
    lines = [re.sub(" {2,}", "  ", TIME.sub("TIME", line)).rstrip() for line in text.split("\n")]
    return "\n".join(lines).rstrip()


def test_every_reading_command_has_an_example():
    assert {each[0].split()[0] for each in EXAMPLES} == {
        "ls", "show", "search", "context", "usage", "tree", "diff"
    }  # fmt: skip


# Those that change something: each on a store of its own, because they are alternatives


LINES = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"^```text\n\$ (holdfast .*?)\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
A_KEY, AN_ID = "telegram:12345678", "01a1f217"
ADDRESS = "postgresql://bot@db.example/chats"


def lines_of(page):
    """Each command that a reader types, without what is said about it."""
    for block in LINES.findall((DOCS / page).read_text(encoding="utf-8")):
        for line in block.splitlines():
            yield line.partition("   #")[0].strip()


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """The bytes of a store with the conversations that the pages speak of; and an id in it."""
    path = tmp_path_factory.mktemp("filled") / "holdfast.db"

    async def fill():
        async with holdfast.open(f"sqlite:{path}") as sessions:
            for key in (A_KEY, "telegram:7", "cli:direct", "telegram:8"):
                session = await sessions.get_or_create(key, agent="helper")
                said = (Thinking("Hm.", signature="sig"), Text("Sunny."))
                await session.append(Message.user("How is the weather?"), Message.assistant(said))
            session = await sessions.get(A_KEY)
            for number in range(2, 5):
                await session.append(Message.user(f"{number}?"), Message.assistant("Yes."))
            return session.messages[0].id

    first = asyncio.run(fill())
    return path.read_bytes(), first


@pytest.fixture
def cli(tmp_path, monkeypatch, capfd, filled):
    """The program, in a folder with what the examples find there."""
    (tmp_path / "data").mkdir(mode=0o700)
    monkeypatch.chdir(tmp_path)
    cli = Inside(tmp_path, monkeypatch, capfd)
    (tmp_path / "FOLDER").mkdir()
    (tmp_path / "tutorial.db").write_bytes(filled[0])
    (tmp_path / "bad.db").write_bytes(filled[0].replace(b'"Yes."', b'"Yet."', 1))
    return cli


def typed(cli, filled, line, **environment):
    """Type this line of a page, with the store as it is before."""
    for left in (cli.home / "data").iterdir():
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    (cli.home / "data" / "holdfast.db").write_bytes(filled[0])
    (cli.home / "data" / "holdfast.db").chmod(0o600)
    line = line.replace(AN_ID, filled[1])
    words = shlex.split(line)
    if words[1] in ("rm", "erase") and not {"--yes", "--dry-run"} & set(words):
        words.append("--yes")  # nobody is there to be asked
    if not set("|$<>;") & set(line):
        return cli(*words[1:], **environment)
    path = {"PATH": f"{cli.home / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-ec", line],
        env=cli.environment | path | {"STORE": cli.store},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return Ran(done)


@pytest.fixture
def shell(cli):
    """`holdfast` on the path, for lines that need a shell; and a pager that asks nobody."""
    (cli.home / "bin").mkdir()
    for name, command in (("holdfast", f"{sys.executable} -m holdfast"), ("less", "cat")):
        program = cli.home / "bin" / name
        program.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        program.chmod(0o700)


@pytest.mark.parametrize("page", ["cli-keeping.md", "operations.md"])
@pytest.mark.usefixtures("shell")
def test_each_command_of_a_page_does_what_it_says(cli, filled, page):
    """But those for the file of a shell, which test_cli_config.py gives to the shells."""
    lines = [line for line in lines_of(page) if " completion " not in line]

    wrong = [
        (line, ran.out + ran.err) for line in lines if (ran := typed(cli, filled, line)).status
    ]

    assert wrong == []
    assert len(lines) >= 5


def test_each_example_of_a_page_prints_what_the_page_shows(cli, filled):
    """But for numbers and places, and what differs between machines."""
    examples = SHOWN.findall((DOCS / "cli-keeping.md").read_text(encoding="utf-8"))
    cli("export", A_KEY, "-o", "ada.json", "--store", "sqlite:tutorial.db")

    for line, shown in examples:
        ran = typed(cli, filled, line, ANTHROPIC_API_KEY="no-key")
        printed = {general(each) for each in (ran.out + ran.err).splitlines()}
        wanted = [each for each in shown.splitlines() if each.strip() != "…"]
        if line == "holdfast doctor":  # it tells of this machine
            wanted = wanted[:1]
        assert (line, [each for each in wanted if general(each) not in printed]) == (line, [])
        assert ran.status == (5 if "bad.db" in line else 0), line

    assert len(examples) == 7


def general(line):
    return re.sub(r"[\d,.]+", "N", re.sub(r"/\S*/", "/", re.sub(" {2,}", "  ", line))).rstrip()


def test_the_commands_of_the_tutorial_do_what_they_say(cli, filled):
    """With a vendor that is here, and the database of the test."""
    script = "\n".join(lines_of("tutorial.md")).replace("scripts/chat", "holdfast chat")
    (cli.home / "bin").mkdir()
    (cli.home / "bin" / "holdfast").symlink_to(Path(sys.executable).parent / "holdfast")

    with vendor(ANTHROPIC.says("You are Ada.")) as (_, environment):
        done = subprocess.run(
            ["sh", "-ec", script.replace(ADDRESS, server().database("typed"))],
            env=cli.environment
            | environment
            | {"PATH": f"{cli.home / 'bin'}:{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )

    assert ADDRESS in script and (done.returncode, script.count("\n")) == (0, 3), done.stderr
    assert done.stdout.startswith("You are Ada.\nYou are Ada.\n4 conversations in postgresql://")
