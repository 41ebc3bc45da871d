"""docs/checklist.md tells the truth: what it calls done has a test, and the test says so."""

import ast
import os
import re
from collections import Counter
from pathlib import Path

import pytest

from breaks import BREAKS
from checklist import ROOT, rows

SOURCE = Path(os.environ.get("HOLDFAST_CORPUS", ROOT.parent / "shared" / "corpus")).parent
ITEM = re.compile(r"^- \*\*(S\d-\d+a?|B\d+)\*\*", re.MULTILINE)


def docstrings(path: Path) -> dict[str, str]:
    """The docstring of each test in a file, with that of its class and module."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found[node.name] = ast.get_docstring(node) or ""
    return found


def test_every_item_has_one_row():
    """An item that is forgotten or listed twice would be neither done nor open."""
    items = [row.item for row in rows()]

    assert [item for item, count in Counter(items).items() if count > 1] == []
    for group, last in (("S0", 34), ("S1", 59), ("S2", 118), ("S3", 45), ("S4", 52)):
        assert {f"{group}-{n}" for n in range(1, last + 1)} <= set(items)
    assert {f"B{n}" for n in range(1, 55)} <= set(items)


def test_the_rows_are_those_of_the_checklist_itself():
    """Where the checklist is at hand, the page has its items and no others."""
    source = SOURCE / "CHECKLIST.md"
    if not source.is_file():
        pytest.skip(f"the checklist that the page follows is not here: {source.name}")

    assert [row.item for row in rows()] == ITEM.findall(source.read_text(encoding="utf-8"))


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.item)
def test_a_row_says_where_its_item_stands(row):
    """done names tests that name the item; replaced names a resolution; declined says why."""
    assert row.state in ("done", "replaced", "declined", "open"), row.status

    if row.state == "done":
        assert row.tests, "done, but no test is named"
        for test in row.tests:
            path, name = test.split("::")
            found = docstrings(ROOT / path)
            assert name in found, f"{test} does not exist"
            assert re.search(rf"\b{row.item}\b", found[name]), f"{test} does not name {row.item}"
        assert row.item in BREAKS, "done, but tests/breaks.py does not know how to break it"
    if row.state == "replaced":
        assert re.match(r"replaced by A\d+", row.status)
    if row.state == "declined":
        assert len(row.status) > len("declined: ") + 10


def test_only_done_items_can_be_broken():
    """A break for an item that is not done would prove nothing."""
    done = {row.item for row in rows() if row.state == "done"}

    assert sorted(BREAKS.keys() - done) == []


@pytest.mark.parametrize("item", BREAKS)
def test_a_break_still_finds_what_it_breaks(item):
    """The code has moved on when the text that a break replaces is not there exactly once."""
    found = BREAKS[item]

    assert (ROOT / found.file).read_text(encoding="utf-8").count(found.old) == 1
    assert found.old != found.new
