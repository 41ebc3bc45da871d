"""The notes on unreleased changes can be gathered by their names."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*\.(added|changed|fixed|removed)\.md")


def complaints(folder):
    """Return a sentence for each file that a release could not use."""
    found = []
    for path in sorted(folder.iterdir()):
        if path.name == "README.md":
            continue
        if not path.is_file() or not NAME.fullmatch(path.name):
            found.append(f"{path.name} is not named <topic>.<added|changed|fixed|removed>.md")
        elif not path.read_text(encoding="utf-8").strip():
            found.append(f"{path.name} is empty")
    return found


def test_each_note_has_a_valid_name_and_says_something():
    assert complaints(ROOT / "changelog.d") == []


def test_the_changelog_points_to_the_notes():
    assert "changelog.d/" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("history.md", "a kind is missing"),
        ("history.improved.md", "no such kind"),
        ("History.added.md", "upper case"),
        ("history log.added.md", "a blank"),
        ("history.added.txt", "not Markdown"),
        ("history.added.md", " \n"),
    ],
)
def test_a_bad_note_is_found(tmp_path, name, text):
    (tmp_path / "README.md").write_text("how to")
    (tmp_path / "jsonl-torn-line.fixed.md").write_text("It opens again.")
    (tmp_path / name).write_text(text)

    assert [line.startswith(name) for line in complaints(tmp_path)] == [True]
