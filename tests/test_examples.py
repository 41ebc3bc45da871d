"""The examples run as a user runs them: as programs, with wrong input too."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parent.parent / "examples" / "keep_a_conversation.py"


@pytest.fixture
def run(tmp_path):
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(EXAMPLE), *arguments],
            env={**os.environ, "XDG_DATA_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run


def test_what_was_said_is_there_the_next_time(run, tmp_path):
    """The example keeps a conversation: a second run shows what the first was told."""
    first = run("I am Ada.")
    second = run("Who am I?")

    assert (first.returncode, second.returncode) == (0, 0)
    assert "I am Ada." in second.stdout and "Who am I?" in second.stdout
    assert (tmp_path / "holdfast" / "example.jsonl").stat().st_mode & 0o777 == 0o600


def test_without_words_it_plays_a_conversation_with_a_tool(run):
    """The first command of a new user shows a whole turn with a tool."""
    played = run()

    assert played.returncode == 0
    assert "calls add" in played.stdout and "It is 42." in played.stdout


def test_what_is_shown_cannot_steer_the_terminal(run):
    """Control characters in stored text are shown harmlessly."""
    shown = run("\x1b]0;title\x07 hello")

    assert "\x1b" not in shown.stdout and "\x07" not in shown.stdout
    assert "hello" in shown.stdout


def test_a_damaged_file_is_named_and_left_alone(run, tmp_path):
    """A file cut off half-way gives one sentence with its place; nothing is overwritten."""
    run("I am Ada.")
    file = tmp_path / "holdfast" / "example.jsonl"
    damaged = file.read_bytes()[:-20]
    file.write_bytes(damaged)

    failed = run("Who am I?")

    assert failed.returncode == 1
    assert "line 1" in failed.stderr and "Traceback" not in failed.stderr
    assert file.read_bytes() == damaged


def test_a_wrong_argument_is_told_in_words(run):
    """An unknown option is an error with usage, not a traceback."""
    failed = run("--nonsense")

    assert failed.returncode == 2
    assert "usage:" in failed.stderr and "Traceback" not in failed.stderr
