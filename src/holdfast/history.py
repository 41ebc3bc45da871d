"""History: a session's log in memory.

It only grows, until somebody clears or replaces it; a place in it (seq) is never given twice.
Messages are values, so every read is a tuple of the very objects that were appended, and nobody
can change what is stored. Any number of threads may use it at once.
"""

import threading
from collections.abc import Iterable
from datetime import timezone

from holdfast import ids
from holdfast.entries import ENTRY_TYPES, Entry, UnknownEntry
from holdfast.errors import InvalidInput
from holdfast.frozen import Value
from holdfast.messages import Message


class Turn(Value, frozen=True, kw_only=True):
    """A user's message and what came of it: the messages at positions `first` to `last`.

    Turns count from 1. Turn 0 is what stands before the first of them, if anything does.
    """

    index: int
    first: int
    last: int


class History:
    """The log of one session. Positions count messages, from 0; seq counts entries, from 1."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._id = ids.new_id()
        self._lock = threading.Lock()
        self._entries: list[Entry] = []
        self._messages: list[Message] = []
        self._starts: list[int] = []  # the positions at which turns begin
        self._head = 0
        self._seen: tuple[Message, ...] | None = ()  # the last `messages`, until one is added
        self.append(*entries)

    @property
    def id(self) -> str:
        """Set once, when the history is made; clearing does not change it."""
        return self._id

    @property
    def head(self) -> int:
        """The seq of the newest entry, counting those that were cleared; 0 when there was none."""
        return self._head

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages, in order."""
        with self._lock:
            return self._all_messages()

    def __len__(self) -> int:
        """How many messages there are."""
        with self._lock:
            return len(self._messages)

    def __repr__(self) -> str:
        return f"<History {self._id}: {len(self)} messages>"

    def append(self, *entries: Entry) -> int:
        """Add entries to the end, all or none, next to each other. Returns the seq of the last."""
        for entry in entries:
            _check(entry)
        with self._lock:
            self._add(entries)
            return self._head

    def snapshot(self) -> tuple[Entry, ...]:
        """The whole log as it is now: messages, folds, calls and marks, in order."""
        with self._lock:
            if len(self._entries) == len(self._messages):
                return self._all_messages()
            return tuple(self._entries)

    def slice(self, start: int | None = None, stop: int | None = None) -> tuple[Message, ...]:
        """The messages at positions `start` up to `stop`, as a Python slice has it."""
        with self._lock:
            return tuple(self._messages[start:stop])

    def turns(self) -> tuple[Turn, ...]:
        """The turns, in order."""
        with self._lock:
            starts, count = tuple(self._starts), len(self._messages)
        before = 1 if starts and starts[0] == 0 else 0
        firsts = starts if before or not count else (0, *starts)
        lasts = (*(first - 1 for first in firsts[1:]), count - 1)
        pairs = zip(firsts, lasts, strict=bool(firsts))
        return tuple(
            Turn(index=index, first=first, last=last)
            for index, (first, last) in enumerate(pairs, start=before)
        )

    def replace(self, messages: Iterable[Entry]) -> None:
        """Put other messages in the place of everything, here in memory. The id stays."""
        entries = tuple(messages)
        for entry in entries:
            _check(entry)
        with self._lock:
            self._drop()
            self._add(entries)

    def clear(self) -> None:
        """Forget everything, here in memory. The id stays, and seq counts on."""
        with self._lock:
            self._drop()

    def _all_messages(self) -> tuple[Message, ...]:
        if self._seen is None:
            self._seen = tuple(self._messages)
        return self._seen

    def _add(self, entries: tuple[Entry, ...]) -> None:
        messages = [entry for entry in entries if type(entry) is Message]
        first = len(self._messages)
        starts = [first + place for place, each in enumerate(messages) if each.starts_turn]
        # From here on nothing can fail.
        self._entries += entries
        self._messages += messages
        self._starts += starts
        self._head += len(entries)
        if messages:
            self._seen = None

    def _drop(self) -> None:
        self._entries, self._messages, self._starts, self._seen = [], [], [], ()


def _check(entry: Entry) -> None:
    """Refuse what a caller could still change: msgspec's own tools build structs unchecked."""
    if type(entry) not in ENTRY_TYPES:
        raise InvalidInput(
            "an entry", f"is a Message, Fold, Call or Mark, not {type(entry).__name__}"
        )
    try:
        hash(entry)  # what can change has no hash, however deep it stands
        is_frozen = isinstance(entry, UnknownEntry) or type(entry.timestamp.tzinfo) is timezone
    except TypeError:
        is_frozen = False
    if not is_frozen:
        raise InvalidInput("an entry", "holds what can change: use its own replace(...)")
