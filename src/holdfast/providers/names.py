"""Names as a target spells them, and their way back.

A vendor allows some characters in the name of a tool and in the id of a call, and so many of
them. What does not fit is fitted: other characters become `_`, and a digest of the original keeps
apart what would fall together. The same name is always fitted in the same way.
"""

import hashlib
import re
from collections.abc import Iterable
from typing import NamedTuple

_APART = 8  # characters of the digest: two of a session's names meet in 1 of 10^9 cases


class Spelling(NamedTuple):
    """How a name may be written.

    bad        finds characters that may not stand in it
    first      finds a good first character, where not all are
    size_max   characters
    """

    bad: re.Pattern[str]
    size_max: int
    first: re.Pattern[str] | None = None

    def fitted(self, name: str) -> str:
        """The name as it may be written; two names may become the same."""
        is_short = 0 < len(name) <= self.size_max
        if is_short and not self.bad.search(name) and (not self.first or self.first.match(name)):
            return name
        written = self.bad.sub("_", name) or "_"
        if self.first is not None and not self.first.match(written):
            written = f"_{written}"
        return written[: self.size_max]

    def fitted_apart(self, name: str) -> str:
        """The name if it may be written as it is, else one that is like no other's."""
        written = self.fitted(name)
        if written == name:
            return name
        digest = hashlib.blake2b(name.encode(), digest_size=_APART // 2).hexdigest()
        return f"{written[: self.size_max - _APART - 1]}_{digest}"


class Names:
    """The names of tools: `sent` gives the one that the target sees, `back` has ours for each.

    The tools that are offered keep a readable name, if no two of them become the same. Others,
    which only the history still knows, never get the name of one that is offered.
    """

    def __init__(self, spelling: Spelling, offered: Iterable[str]) -> None:
        self._spelling = spelling
        self._sent: dict[str, str] = {}
        taken: set[str] = set()
        names = list(dict.fromkeys(offered))
        for name in sorted(names, key=lambda name: spelling.fitted(name) != name):
            written = spelling.fitted(name)
            if written in taken:
                written = spelling.fitted_apart(name)
            taken.add(written)
            self._sent[name] = written
        self.back = {sent: name for name, sent in self._sent.items() if sent != name}

    def sent(self, name: str) -> str:
        """The name under which the target knows this tool."""
        found = self._sent.get(name)
        if found is None:
            found = self._sent[name] = self._spelling.fitted_apart(name)
        return found
