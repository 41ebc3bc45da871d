"""The examples run as a user runs them: as programs, with the real model, with wrong input too."""

import os
import re
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from local_model import need_model

EXAMPLE = Path(__file__).parent.parent / "examples" / "chat.py"


@pytest.fixture
def file(tmp_path):
    return tmp_path / "chat.db"


@pytest.fixture
def run(file):
    def run(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(EXAMPLE), "--file", str(file), *arguments],
            capture_output=True,
            text=True,
            timeout=120,
            **options,
        )

    return run


def test_what_was_said_is_there_the_next_time(run):
    """The model answers, and a second run shows what the first was told."""
    need_model()

    first = run("I am Ada.")
    second = run("Who am I?")
    shown = run("--show")

    assert (first.returncode, second.returncode, first.stderr) == (0, 0, "")
    assert first.stdout.strip() and second.stdout.strip()
    spoken = re.findall(r"^ *(user|assistant)  ", shown.stdout, re.MULTILINE)
    assert shown.stdout.startswith("     user  I am Ada.\n")
    assert spoken == ["user", "assistant"] * 2
    assert shown.stdout.endswith("-- 4 messages\n")


def test_a_conversation_line_by_line(run):
    need_model()

    talked = run(input="Hello!\nHow are you?\n\n")

    assert talked.returncode == 0
    assert run("--show").stdout.endswith("-- 4 messages\n")


def test_ctrl_c_stops_an_answer_and_keeps_what_had_come(file, run):
    need_model()
    process = subprocess.Popen(
        [sys.executable, str(EXAMPLE), "--file", str(file), "Tell me a long story about a whale."],
        stdout=subprocess.PIPE,
        text=True,
    )
    begun = process.stdout.read(1)

    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=20)

    shown = run("--show").stdout
    assert process.returncode == 0
    assert "[stopped]" in rest and "-- 2 messages" in shown
    assert f"assistant  {begun}" in shown


def test_what_is_shown_cannot_steer_the_terminal(run):
    """Control characters in stored text are shown harmlessly."""
    need_model()
    run("\x1b]0;title\x07 hello")

    shown = run("--show").stdout

    assert "\x1b" not in shown and "\x07" not in shown
    assert "hello" in shown


def test_without_a_key_the_way_out_is_told_and_nothing_is_kept(run):
    env = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}

    failed = run("--model", "anthropic:claude-sonnet-4-5", "Hello!", env=env)

    assert failed.returncode == 1
    assert "ANTHROPIC_API_KEY" in failed.stderr and "Traceback" not in failed.stderr
    assert run("--show").stdout == "-- 0 messages\n"


def test_a_file_that_is_no_store_is_named_and_left_alone(run, file):
    file.write_bytes(b"this is no database, " * 100)

    failed = run("--show")

    assert failed.returncode == 1
    assert "chat.db" in failed.stderr and "Traceback" not in failed.stderr
    assert file.read_bytes() == b"this is no database, " * 100
    with pytest.raises(sqlite3.DatabaseError):
        sqlite3.connect(file).execute("SELECT * FROM entries")


@pytest.mark.parametrize("arguments", [["--nonsense"], ["--model", "nobody:x", "hi"]])
def test_a_wrong_argument_is_told_in_words(run, arguments):
    """An unknown option or vendor is an error in words, not a traceback."""
    failed = run(*arguments)

    assert failed.returncode in (1, 2)
    assert failed.stderr and "Traceback" not in failed.stderr
