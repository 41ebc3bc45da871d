"""The examples of the page about reading are what the program prints."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "cli-reading.md"
BLOCK = re.compile(r"^```console\n\$ holdfast (.*?)\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
EXAMPLES = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
TIME = re.compile(
    r"(\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d|(\d{4}-\d\d-\d\d )?\d\d:\d\d|just now|\d+ min ago"
)


@pytest.mark.parametrize(("command", "printed"), EXAMPLES, ids=[each[0] for each in EXAMPLES])
def test_an_example_is_what_the_program_prints(run, command, printed):
    """But for the times, and the blanks that fill the columns of a table where times stand."""
    status, out, err = run(*command.split())

    assert status == 0, err
    assert plain(out) == plain(printed)


def plain(text):
    lines = [re.sub(" {2,}", "  ", TIME.sub("TIME", line)).rstrip() for line in text.split("\n")]
    return "\n".join(lines).rstrip()


def test_every_reading_command_has_an_example():
    assert {each[0].split()[0] for each in EXAMPLES} == {
        "ls", "show", "search", "context", "usage", "tree", "diff"
    }  # fmt: skip
