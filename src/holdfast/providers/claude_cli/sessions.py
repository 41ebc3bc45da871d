"""Which session of the program has seen what: the only thing that the provider remembers.

A session of the program can be gone on with (`--resume`) while the conversation is what it has
seen, its own reply, and something new that the user or a tool said. After a fold, a revert, an
answer of another model, or a restart of this process it is not, and the program is told everything
anew. A session that is being asked is nobody's: only a call that ended well gives it back.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from holdfast.providers.claude_cli.wire import Fragment, digest

KEPT_MAX = 1_000


class Seen(NamedTuple):
    """A session of the program: its id, how many messages it has seen, and their digest."""

    id: str
    messages: int
    digest: str


class Sessions:
    """By conversation; the one that was not asked for longest is forgotten first."""

    def __init__(self, kept_max: int = KEPT_MAX) -> None:
        self._kept_max = kept_max
        self._seen: OrderedDict[str, Seen] = OrderedDict()

    def take(self, conversation: str, fragments: Sequence[Fragment]) -> Seen | None:
        """The session to go on with, which is forgotten until it is kept again."""
        seen = self._seen.pop(conversation, None)
        if seen is None:
            return None
        old, new = fragments[: seen.messages], fragments[seen.messages :]
        is_news = bool(new) and not any(fragment.is_reply for fragment in new)
        return seen if is_news and digest(old) == seen.digest else None

    def keep(self, conversation: str, id: str, fragments: Sequence[Fragment]) -> None:
        """The session `id` has seen all this, its own reply last."""
        self._seen[conversation] = Seen(id, len(fragments), digest(fragments))
        while len(self._seen) > self._kept_max:
            self._seen.popitem(last=False)

    def clear(self) -> None:
        """Forget them all."""
        self._seen.clear()
