"""Is everything as it should be? What `holdfast doctor` tells.

    for finding in await health.examine("sqlite:chats.db"):
        print(finding.level, finding.about, finding.what, finding.way_out)

Nothing is changed, nothing is sent, and no key is shown.
"""

from holdfast.health import machine, store
from holdfast.health.finding import Finding, Level

__all__ = ["Finding", "Level", "examine"]


async def examine(url: str) -> list[Finding]:
    """The store at a URL, and the machine, its packages, keys and network."""
    return [*machine.findings(), *await store.findings(url)]
