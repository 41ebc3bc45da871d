"""What reaches a terminal: nothing that was stored can steer it, and everybody's settings count.

The program runs as its users run it: on a pseudo-terminal, into a pipe that is closed, where
colours are unwanted or only ASCII can be shown.
"""

import asyncio
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
import unicodedata

import pytest

import holdfast
from cli_conversations import ATTACK, HOSTILE, KEY
from commands import Commands
from holdfast import Message
from holdfast.cli.screen import Screen, columns, safe, wrapped

OURS = re.compile(r"\x1b\[[0-9;]*m|[\n\t\u200c\u200d]")
EVERYTHING = (
    ("ls", "-l"),
    ("ls", "-q", "walrus"),
    ("ls", "--json"),
    ("show", HOSTILE, "--branch", "main"),
    ("show", HOSTILE, "--full"),
    ("show", HOSTILE, "--json", "--branch", "main"),
    ("search", "walrus"),
    ("search", "walrus", "--json"),
    ("context", HOSTILE),
    ("context", HOSTILE, "--json"),
    ("context", HOSTILE, "--request"),
    ("usage", HOSTILE),
    ("usage",),
    ("tree", HOSTILE, "--all"),
    ("tree", HOSTILE, "--json"),
    ("diff", HOSTILE, "main", "--full"),
    ("diff", HOSTILE, "main", "--json"),
    ("show", ATTACK.replace("\x00", "")),  # an error says what was asked for
    ("show", HOSTILE, "--branch", ATTACK.replace("\x00", "")),
    ("context", HOSTILE, "-m", ATTACK.replace("\x00", "")),
    ("search", ATTACK.replace("\x00", "")),
)

END = "== the end of one command ==\n"
ALL_OF_THEM = f"""
import json, sys
from holdfast.cli import main
for arguments in json.loads(sys.argv[1]):
    main(arguments)
    for stream in (sys.stdout, sys.stderr):
        print({END!r}, end="", file=stream, flush=True)
"""


@pytest.fixture
def commands(home_of_conversations):
    """The program, with conversations of which one is hostile."""
    return Commands(home_of_conversations)


def steering(text):
    """The characters that could steer a terminal, but for our own colours."""
    left = OURS.sub("", text)
    return sorted(
        {
            f"U+{ord(c):04X}"
            for c in left
            if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs")
        }
    )


def on_terminal(commands, *arguments, columns=80, program=("-m", "holdfast"), **environment):
    """What the program writes to two terminals, for stdout and stderr, and its exit status."""
    ends = [pty.openpty() for _ in range(2)]
    for _, inner in ends:
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        modes = termios.tcgetattr(inner)
        modes[1] &= ~termios.OPOST  # the terminal adds nothing of its own
        termios.tcsetattr(inner, termios.TCSANOW, modes)
    started = subprocess.Popen(
        [sys.executable, *program, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=ends[0][1],
        stderr=ends[1][1],
        env=commands.environment | {"TERM": "xterm", "PAGER": "cat"} | environment,
    )
    heard = [bytearray(), bytearray()]
    threads = [
        threading.Thread(target=_listen, args=(outer, into))
        for (outer, _), into in zip(ends, heard, strict=True)
    ]
    for _, inner in ends:
        os.close(inner)
    for thread in threads:
        thread.start()
    status = started.wait(60)
    for thread in threads:
        thread.join(60)
    for outer, _ in ends:
        os.close(outer)
    return (*(each.decode() for each in heard), status)


def _listen(outer, into):
    while True:
        try:
            piece = os.read(outer, 65_536)
        except OSError:  # the program has closed its end
            return
        if not piece:
            return
        into.extend(piece)


# What was stored cannot steer it


def test_nothing_that_was_stored_steers_a_terminal(commands):
    """
    Clipboard, links, titles, moves, C1, carriage returns, bells and the direction of writing stand
    in every text of a conversation: on a terminal no byte of them comes through.
    """
    out, err, _ = on_terminal(commands, json.dumps(EVERYTHING), program=("-c", ALL_OF_THEM))

    pieces = list(zip(out.split(END), err.split(END), strict=True))
    assert len(pieces) == len(EVERYTHING) + 1
    for arguments, (said, told) in zip(EVERYTHING, pieces, strict=False):
        assert said or told, arguments
        assert (arguments, steering(said)) == (arguments, [])
        assert (arguments, steering(told.replace("\r", ""))) == (arguments, [])  # of our progress
        assert "Traceback" not in told
        assert "fault of holdfast" not in told


def test_without_what_makes_it_safe_the_attacks_come_through(commands):
    """The control: the attacks are really there, and the test above would see them."""
    unsafe = (
        "import holdfast.cli.screen as screen; screen.safe = lambda text, keep='': text\n"
        "import sys; from holdfast.cli import main; sys.exit(main(sys.argv[1:]))"
    )

    out, _, _ = on_terminal(commands, "show", HOSTILE, "--branch", "main", program=("-c", unsafe))

    assert {"U+001B", "U+0007", "U+000D", "U+009B", "U+202E", "U+2028"} <= set(steering(out))
    assert steering("\x1b[31mred\x1b[0m\n") == []


def test_no_text_passes_for_a_line_that_says_who_spoke(commands):
    """What was said is indented; only the program writes into the first column."""
    out = commands("show", HOSTILE, "--branch", "main").out

    assert "  forged" in out
    assert not re.search("^(assistant  12:00:00|forged)", out, re.MULTILINE)


@pytest.mark.parametrize("text", ["plain", "naïve café", "北京\t塔\n", "👩‍👩‍👧", "nbsp\u00a0"])
def test_what_is_harmless_is_printed_as_it_is(text):
    assert safe(text) == text


def test_half_of_a_surrogate_pair_is_shown_and_not_written(commands):
    """An argument that is no UTF-8 reaches us as one; it is in the error, and breaks nothing."""
    ran = commands("show", "a\udcffb")

    assert (ran.status, ran.out) == (3, "")
    assert r"a\udcffb" in ran.err or r"a\\udcffb" in ran.err


# Everybody's settings count


def test_colours_come_only_where_they_are_wanted(commands, run, monkeypatch):
    """On a terminal, unless NO_COLOR says otherwise; in a pipe, if somebody insists."""
    on = on_terminal(commands, "show", KEY)[0]
    off = on_terminal(commands, "show", KEY, NO_COLOR="1")[0]

    assert "\x1b[" in on
    assert "\x1b[" not in off + run("show", KEY)[1]
    assert "\x1b[" in run("show", KEY, "--color", "always")[1]
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in run("show", KEY)[1]
    assert "\x1b[" not in run("--color", "never", "show", KEY)[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in run("show", KEY)[1]


@pytest.mark.parametrize(("term", "is_coloured"), [("xterm", True), ("dumb", False)])
def test_a_terminal_that_knows_no_colours_is_given_none(monkeypatch, term, is_coloured):
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", term)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)

    assert (Screen().styled("text", "red") != "text") == is_coloured


def test_forty_columns_are_enough(commands):
    """Over ssh on a phone: no line of a conversation or a table is wider than the terminal."""
    narrow = (("ls", "-l"), ("show", KEY, "--full"), ("show", HOSTILE), ("usage", KEY))

    out, _, _ = on_terminal(commands, json.dumps(narrow), columns=40, program=("-c", ALL_OF_THEM))

    for arguments, said in zip(narrow, out.split(END), strict=False):
        plain = OURS.sub(lambda found: "\n" if found[0] == "\n" else "", said)
        assert said
        assert max(columns(line) for line in plain.split("\n")) <= 40, arguments


def test_an_error_breaks_between_words_in_a_narrow_terminal(commands):
    _, err, status = on_terminal(commands, "show", "nothing-of-the-kind", columns=40)

    assert status == 3
    assert err.splitlines() == [
        "error: there is no conversation",
        "'nothing-of-the-kind': see holdfast ls",
    ]


def test_where_only_ascii_can_be_shown_everything_still_works(commands):
    """A locale without UTF-8: signs have a plain form, letters their escapes, and JSON is JSON."""
    ascii = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}

    shown = commands("show", KEY, **ascii)
    told = commands("search", "invoice", "--json", **ascii)
    plotted = commands("usage", KEY, **ascii)

    assert (shown.status, told.status, plotted.status) == (0, 0, 0)
    assert shown.out.isascii()
    assert "> list_files" in shown.out
    assert r"caf\xe9" in shown.out
    assert "café" in told.json["hits"][0]["passage"]
    assert "|" in plotted.out


def test_a_pipe_that_is_closed_ends_the_program_quietly(commands, tmp_path):
    """`holdfast show REF | head -1`: no traceback, no word, and the status that shells know."""
    url = f"sqlite:{tmp_path / 'long.db'}"
    asyncio.run(_long(url))
    started = subprocess.Popen(
        [sys.executable, "-m", "holdfast", "show", "long", "--store", url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=commands.environment,
    )

    first = started.stdout.readline()
    started.stdout.close()
    err = started.stderr.read()
    status = started.wait(60)
    started.stderr.close()

    assert first.startswith(b"long")
    assert (status, err) == (141, b"")


async def _long(url):
    import holdfast

    async with holdfast.open(url) as sessions:
        session = await sessions.get_or_create("long")
        await session.append(*[holdfast.Message.user("x" * 9_000) for _ in range(100)])


@pytest.mark.parametrize(
    ("closed", "status", "told"),
    [
        (">&-", 1, "error: bad file descriptor: leave stdout open, or send it to /dev/null\n"),
        ("2>&-", 0, ""),
        ("<&-", 0, ""),
        (">&- 2>&- <&-", 1, ""),
    ],
)
def test_what_is_closed_before_it_starts_is_told_in_a_sentence(
    commands, tmp_path, closed, status, told
):
    """A daemon has none of the three. A program without them gets no file under their numbers."""
    url = f"sqlite:{tmp_path / 'chats.db'}"

    async def fill():
        async with holdfast.open(url) as sessions:
            await (await sessions.get_or_create("a:1")).append(Message.user("Hello."))

    asyncio.run(fill())
    ran = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-m", "holdfast", "ls"],
        env=commands.environment | {"HOLDFAST_STORE": url},
        capture_output=True,
        text=True,
    )

    assert (ran.returncode, ran.stderr) == (status, told)
    assert ("a:1" in ran.stdout) == (status == 0)


# The pager


def test_what_is_longer_than_the_screen_goes_through_the_pager(commands, tmp_path):
    """PAGER is used on a terminal and nowhere else, and not when it is refused."""
    seen = tmp_path / "seen"
    pager = tmp_path / "pager"
    pager.write_text(f"#!/bin/sh\ncat > {seen}\n")
    pager.chmod(0o700)
    arguments = ("show", KEY, "--full")

    out, _, status = on_terminal(commands, *arguments, PAGER=str(pager))

    assert (out, status) == ("", 0)
    assert "list_files" in seen.read_text()
    seen.unlink()
    assert "list_files" in on_terminal(commands, *arguments, "--no-pager", PAGER=str(pager))[0]
    assert "list_files" in commands(*arguments, PAGER=str(pager)).out
    assert "turn 1" in on_terminal(commands, "show", KEY, "--turn", "1", PAGER=str(pager))[0]
    assert not seen.exists()


def test_a_pager_that_is_not_there_or_is_left_early_is_no_error(commands):
    missing = on_terminal(commands, "show", KEY, "--full", PAGER="no-such-pager-at-all")
    left = on_terminal(commands, "show", KEY, "--full", PAGER="true")

    assert "list_files" in missing[0]
    assert missing[1:] == left[1:] == ("", 0)


# Progress


def test_what_takes_long_tells_how_far_it_is_on_a_terminal_only(commands, tmp_path):
    """The index is made ready in front of whoever searches; a program that reads hears nothing."""
    url = f"sqlite:{tmp_path / 'unsearched.db'}"
    asyncio.run(_long(url))

    out, err, status = on_terminal(commands, "search", "nothing", "--store", url)

    assert (out, status) == ("", 1)
    assert "making ready to search: 100 of 100" in err
    assert "\r" not in commands("search", "nothing", "--store", url).err


# In detail


@pytest.mark.parametrize("width", [5, 8, 20])
def test_lines_are_broken_between_words_and_never_wider(width):
    """Nothing is lost but the space at which a line was broken."""
    text = "one two  three 北京北京北京 averyveryverylongwordindeed\n\n    indented a b c d e"

    lines = wrapped(text, width)

    assert all(columns(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert wrapped("a b", 10) == ["a b"]
    assert wrapped("", 10) == [""]


def test_json_has_no_control_character_and_says_the_same(capsys):
    Screen().json({"text": ATTACK + "\U000e0001", "name": "café"})

    printed = capsys.readouterr().out
    assert steering(printed) == []
    assert json.loads(printed) == {"text": ATTACK + "\U000e0001", "name": "café"}
    assert "café" in printed
