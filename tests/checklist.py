"""Reads docs/checklist.md: one row for every behaviour that holdfast owes its users."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "checklist.md"
ROW = re.compile(
    r"^\| (?P<item>[SB]\d[\w-]*) \| (?P<words>.+?) \| (?P<status>.+?) \|$", re.MULTILINE
)
TEST = re.compile(r"`(tests/[\w/]+\.py::\w+)`")


class Row(NamedTuple):
    """A behaviour, and where it stands."""

    item: str
    words: str
    status: str

    @property
    def state(self) -> str:
        """done, replaced, declined or open."""
        return self.status.split()[0].rstrip(":,")

    @property
    def tests(self) -> list[str]:
        """The tests that fail when the behaviour is removed."""
        return TEST.findall(self.status)


def rows() -> list[Row]:
    """The rows of the page, in order."""
    return [Row(*found.groups()) for found in ROW.finditer(PAGE.read_text(encoding="utf-8"))]
