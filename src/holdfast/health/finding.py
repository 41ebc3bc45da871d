"""What an examination finds."""

from typing import Literal, NamedTuple

Level = Literal["ok", "warning", "error"]


class Finding(NamedTuple):
    """One thing that was looked at, and the way out if it is not as it should be."""

    level: Level
    about: str
    what: str
    way_out: str = ""
