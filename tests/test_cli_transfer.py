"""`holdfast export` and `import`: out of a store as a file, and into one from a file."""

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
import time

import pytest

import holdfast
from commands import Commands, Inside, Pressed
from holdfast import Message, formats
from holdfast.parts import Text, Thinking
from holdfast.testing.faults.disk import file_size_max

KEYS = ("telegram:1", "telegram:2", "cli:direct")


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """The bytes of a store, made once."""
    path = tmp_path_factory.mktemp("filled") / "holdfast.db"

    async def fill():
        async with holdfast.open(f"sqlite:{path}") as sessions:
            for key in KEYS:
                session = await sessions.get_or_create(key, agent="bot")
                await session.append(
                    Message.user(f"hello from {key}"),
                    Message.assistant((Thinking("hm", signature="sig"), Text("hi\x1b[31m"))),
                )

    asyncio.run(fill())
    return path.read_bytes()


@pytest.fixture
def cli(tmp_path, monkeypatch, capfd, filled):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "holdfast.db").write_bytes(filled)
    monkeypatch.chdir(tmp_path)
    return Inside(tmp_path, monkeypatch, capfd)


@pytest.fixture
def other(tmp_path):
    """The options that name another store, which is not there yet."""
    return ("--store", f"sqlite:{tmp_path}/other.db")


def archive(cli, key, url=None):
    async def take():
        async with holdfast.open(url or cli.store) as sessions:
            return await sessions.export(key)

    return asyncio.run(take())


def listed(cli, *options):
    ran = cli("ls", "--json", *options)
    return sorted(each["key"] for each in ran.json) if ran.status == 0 else None


# Out


def test_a_conversation_is_printed_as_json(cli):
    ran = cli("export", "telegram:1")

    found = formats.recognised(ran.out.encode()).read(ran.out.encode())
    assert found.archives == (archive(cli, "telegram:1"),)
    assert ran.err == ""


def test_a_file_is_for_its_owner_alone_and_is_not_overwritten(cli, tmp_path):
    assert cli("export", "telegram:1", "-o", "one.json").status == 0
    assert stat.S_IMODE(os.stat("one.json").st_mode) == 0o600
    before = (tmp_path / "one.json").read_bytes()

    ran = cli("export", "telegram:2", "-o", "one.json")
    assert ran.status == 1 and "--force" in ran.err
    assert (tmp_path / "one.json").read_bytes() == before

    assert cli("export", "telegram:2", "-o", "one.json", "--force").status == 0
    assert b"telegram:2" in (tmp_path / "one.json").read_bytes()
    assert not list(tmp_path.glob("*.tmp"))


def test_what_is_no_file_is_never_replaced(cli, tmp_path):
    os.mkfifo(tmp_path / "pipe")

    ran = cli("export", "telegram:1", "-o", "pipe", "--force")

    assert ran.status == 1 and "is no file" in ran.err
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)


def test_the_name_of_the_file_says_the_format_and_losses_are_told(cli, tmp_path):
    ran = cli("export", "telegram:1", "-o", "one.md")

    assert ran.status == 0
    assert "not in Markdown: 1 thinking signature" in ran.err
    assert (tmp_path / "one.md").read_text().startswith("# telegram:1\n")
    cli("export", "telegram:1", "-o", "one.jsonl")
    assert (tmp_path / "one.jsonl").read_text().startswith('{"_type": "metadata"')


def test_all_conversations_fit_into_one_document_or_a_folder(cli, tmp_path):
    assert cli("export", "--all", "-o", "all.json").status == 0
    assert len(json.loads((tmp_path / "all.json").read_text())["conversations"]) == 3

    (tmp_path / "folder").mkdir()
    assert cli("export", *KEYS, "-f", "nanobot", "-o", "folder").status == 0
    assert len(list((tmp_path / "folder").glob("*.jsonl"))) == 3
    ran = cli("export", *KEYS, "-o", "all.jsonl")
    assert ran.status == 2 and "-o FOLDER" in ran.err


def test_a_folder_that_was_exported_is_a_store_of_nanobots(cli, tmp_path):
    (tmp_path / "folder").mkdir()
    cli("export", "--all", "-f", "nanobot", "-o", "folder")

    assert listed(cli, "--store", "jsonl:folder") == sorted(KEYS)


def test_no_stored_text_steers_the_terminal(cli, filled, tmp_path):
    """Markdown has no control character at all; on a terminal, the others have none either."""
    assert "\x1b" not in cli("export", "telegram:1", "-f", "markdown").out
    assert "\x1b" not in cli("export", "telegram:1", "-f", "json").out
    import pty

    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "holdfast", "export", "telegram:1", "-f", "nanobot"],
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        env=cli.environment,
    )
    os.close(theirs)
    said = b""
    while True:
        try:
            piece = os.read(ours, 65_536)
        except OSError:
            break
        if not piece:
            break
        said += piece
    assert process.wait(60) == 0 and b"hello" in said
    assert b"\x1b" not in said


# In


def test_what_was_exported_is_imported_whole_and_once(cli, other):
    cli("export", "--all", "-o", "all.json")

    first, second = cli("import", "all.json", *other), cli("import", "all.json", *other)

    assert first.status == second.status == 0
    assert first.out.count(": new, 2 messages") == 3
    assert second.out.count(": there already, 2 messages") == 3
    for key in KEYS:
        assert archive(cli, key, other[1]) == archive(cli, key)


def test_it_is_read_from_a_pipe_too(cli, other):
    ran = cli("import", "-", *other, input=cli("export", "telegram:1").out)

    assert (ran.status, ran.out) == (0, "telegram:1: new, 2 messages\n")


def test_ctrl_c_ends_the_wait_for_a_pipe_at_once(cli):
    pressed = Pressed()

    ran = cli("import", "-", input=pressed)

    assert (ran.status, ran.err.strip(), pressed.is_read) == (130, "interrupted", False)


def test_a_dry_run_makes_nothing(cli, other, tmp_path):
    cli("export", "telegram:1", "-o", "one.json")

    ran = cli("import", "one.json", "--dry-run", *other)

    assert ran.out == "telegram:1: would be new, 2 messages\n"
    assert not (tmp_path / "other.db").exists()


def test_another_key_is_another_conversation(cli):
    cli("export", "telegram:1", "-o", "one.json")

    assert cli("import", "one.json", "--key", "mine").out == "mine: new, 2 messages\n"
    assert cli("import", "one.json", "--key", "mine").out == "mine: there already, 2 messages\n"
    assert archive(cli, "mine").messages() == archive(cli, "telegram:1").messages()


def test_a_key_that_is_taken_is_never_overwritten(cli):
    cli("export", "telegram:1", "-o", "one.json")
    before = archive(cli, "telegram:2")

    ran = cli("import", "one.json", "--key", "telegram:2")

    assert (ran.status, ran.out) == (4, "")
    assert "telegram:2: another one has this key" in ran.err and "say --key" in ran.err
    assert archive(cli, "telegram:2") == before


def test_of_several_conversations_a_conflict_stops_no_other(cli, other):
    """The one whose key is taken is told, with status 4; the others are there."""
    cli("export", "telegram:1", "-o", "one.json")
    cli("export", "--all", "-o", "all.json")
    cli("import", "one.json", "--key", "telegram:2", *other)

    ran = cli("import", "all.json", "--json", *other)

    assert ran.status == 4
    outcomes = {each["key"]: each["outcome"] for each in ran.json["conversations"]}
    assert outcomes == {"telegram:1": "new", "telegram:2": "conflict", "cli:direct": "new"}
    assert listed(cli, *other) == sorted(KEYS)


def test_nanobots_file_is_imported_and_its_cut_line_told(cli, other, tmp_path):
    cli("export", "telegram:1", "-o", "one.jsonl")
    whole = (tmp_path / "one.jsonl").read_bytes()
    (tmp_path / "cut.jsonl").write_bytes(whole[:-20])

    cut = cli("import", "cut.jsonl", "--json", *other)
    assert cut.status == 0
    assert "line 3 is cut off, and was left out" in cut.json["notes"][0]["note"]
    assert cut.json["conversations"][0]["messages"] == 1
    assert "telegram:1: brought up to date, 2 messages" in cli("import", "one.jsonl", *other).out


def test_of_several_files_one_that_is_wrong_stops_no_other(cli, other, tmp_path):
    cli("export", "telegram:1", "-o", "one.json")
    (tmp_path / "noise").write_bytes(b"\x00\x01")

    ran = cli("import", "noise", "missing", "one.json", *other)

    assert ran.status == 2
    assert "noise" in ran.err and "missing: no such file" in ran.err
    assert ran.out == "telegram:1: new, 2 messages\n"


@pytest.mark.parametrize(
    ("content", "status", "said"),
    [
        (b"", 2, "in no format"),
        (b"# A title", 2, "in no format"),
        (b'{"format":"holdfast","version":1,"conversations":[', 2, "is it whole?"),
        (b'{"format":"holdfast","version":9,"conversations":[]}', 1, "format 9"),
        (b'{"format":"holdfast","version":1,"version":1}', 2, "twice"),
        (b'{"format":"holdfast","version":1,"x":NaN}', 2, "NaN"),
        (b'{"role":"user","content":"x"}\n', 2, "name a key"),
        (b'{"format":"holdfast","version":1,"conversations":[{"session":{"key":3}}]}', 2, "key"),
    ],
)
def test_what_cannot_be_imported_is_told_and_no_store_is_made(
    cli, other, tmp_path, content, status, said
):
    (tmp_path / "file").write_bytes(content)

    ran = cli("import", "file", *other)

    assert (ran.status, ran.out) == (status, "")
    assert said in ran.err and "nothing of it was imported" in ran.err
    assert ran.err.count("\n") == 1
    assert not (tmp_path / "other.db").exists()


def test_markdown_is_for_people(cli, other):
    cli("export", "telegram:1", "-o", "one.md")

    for arguments in (["one.md"], ["one.md", "-f", "markdown"]):
        ran = cli("import", *arguments, *other)
        assert ran.status == 2 and "is for people" in ran.err


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("export",), 2, "--all"),
        (("export", "--all", "telegram:1"), 2, "--all"),
        (("export", "telegram:1", "-f", "pdf"), 2, "json, nanobot, markdown"),
        (("export", "nobody"), 3, "there is no conversation"),
        (("export", "telegram:1", "-o", "no/such/folder.json"), 3, "folder.json: no such file"),
        (("import", "nothing.json"), 3, "no such file"),
        (("import", "."), 1, "is a directory"),
        (("import",), 2, "FILE"),
        (("import", "a", "b", "--key", "c"), 2, "one by one"),
        (("import", "a", "--store", "memory:"), 2, "forgotten"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_done_is_said_in_a_sentence(cli, arguments, status, said):
    ran = cli(*arguments)

    assert (ran.status, ran.out) == (status, "")
    assert said in ran.err and ran.err.count("\n") == 1


# Faults


def test_a_full_disk_leaves_no_half_file(cli, tmp_path):
    """A write that fails in the middle: status 1, the way out, and the old file as it was."""
    cli("export", "telegram:1", "-o", "one.json")
    before = (tmp_path / "one.json").read_bytes()

    with file_size_max(300):
        ran = cli("export", "--all", "-o", "one.json", "--force")

    assert ran.status == 1 and ran.err.startswith("error: ")
    assert (tmp_path / "one.json").read_bytes() == before
    assert not list(tmp_path.glob("*.tmp"))
    assert cli("export", "--all", "-o", "one.json", "--force").status == 0


def test_a_damaged_conversation_makes_no_file(cli, tmp_path, filled):
    path = tmp_path / "data" / "holdfast.db"
    path.write_bytes(filled.replace(b"hello from telegram:1", b"hullo from telegram:1"))

    ran = cli("export", "telegram:2", "telegram:1", "-o", "some.json")

    assert ran.status == 5 and "damaged" in ran.err
    assert not list(tmp_path.glob("some*"))
    assert cli("export", "telegram:2", "-o", "some.json").status == 0


def test_who_goes_away_while_it_is_printed_is_no_error(cli):
    """As `holdfast export … | head -c 1` with much to print: status 141, and no traceback."""
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb") as gone:
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", "export", "--all"],
            stdout=gone,
            stderr=subprocess.PIPE,
            env=cli.environment,
            timeout=60,
        )

    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("after", [0.05, 0.15, 0.3])
def test_an_import_that_is_killed_leaves_nothing_half_and_can_be_repeated(
    cli, other, after, tmp_path
):
    """A conversation of 3,000 entries: after SIGKILL at some moment it is there whole or not."""

    async def fill():
        async with holdfast.open(cli.store) as sessions:
            session = await sessions.get_or_create("long")
            await session.append(*(Message.user(f"message {n}") for n in range(3_000)))

    asyncio.run(fill())
    cli("export", "long", "-o", "long.json")
    commands = Commands(cli.home)
    process = subprocess.Popen(
        [sys.executable, "-m", "holdfast", "import", "long.json", *other],
        env=commands.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / "other.db").exists() and time.monotonic() < deadline:
        if process.poll() is not None:
            break
    try:
        process.wait(after)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()

    if "long" in (listed(cli, *other) or []):
        assert len(archive(cli, "long", other[1]).entries) == 3_000
    assert cli("import", "long.json", *other).status == 0
    assert archive(cli, "long", other[1]).entries == archive(cli, "long").entries
    assert cli("verify", *other).status == 0


def interrupt_at(patch, owner, name, number):
    """Ctrl-C just before a method is called for this time."""
    real, calls = getattr(owner, name), []

    async def interrupted(self, *arguments, **options):
        calls.append(self)
        if len(calls) == number:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(0)
        return await real(self, *arguments, **options)

    patch.setattr(owner, name, interrupted)


def test_an_export_that_is_interrupted_leaves_no_half_file(cli, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        interrupt_at(patch, holdfast.SessionManager, "export", 2)
        ran = cli("export", "--all", "-o", "all.json")

    assert (ran.status, ran.err.strip()) == (130, "interrupted")
    assert not list(tmp_path.glob("all*"))


def test_an_import_that_is_interrupted_goes_on_where_it_was(cli, other, monkeypatch):
    """What came before is there whole, what comes after is not, and the next run brings it."""
    cli("export", *KEYS, "-o", "all.json")

    with monkeypatch.context() as patch:
        interrupt_at(patch, holdfast.SessionManager, "restore", 2)
        ran = cli("import", "all.json", *other)

    assert ran.status == 130 and "run it again" in ran.err
    assert ran.out == "telegram:1: new, 2 messages\n"
    assert "telegram:1" in listed(cli, *other) and "cli:direct" not in listed(cli, *other)
    again = cli("import", "all.json", *other)
    assert again.status == 0 and "telegram:1: there already" in again.out
    assert listed(cli, *other) == sorted(KEYS)
