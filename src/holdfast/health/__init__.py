"""Is everything as it should be? What `holdfast doctor` tells.

    for finding in await health.examine("sqlite:chats.db"):
        print(finding.level, finding.about, finding.what, finding.way_out)

Nothing is changed, nothing is sent, and no key is shown.
"""

from typing import Literal, NamedTuple

__all__ = ["Finding", "Level", "examine"]

Level = Literal["ok", "warning", "error"]


class Finding(NamedTuple):
    """One thing that was looked at, and the way out if it is not as it should be."""

    level: Level
    about: str
    what: str
    way_out: str = ""


async def examine(url: str) -> list[Finding]:
    """The store at a URL, and the machine, its packages, keys and network."""
    from holdfast.health import machine, store

    return [*machine.findings(), *await store.findings(url)]
