"""What a copy has done, and how far it is: the numbers, and telling them at a bounded rate."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from holdfast.stores.replica import Brought
from holdfast.stores.values import Problem

TELL_EVERY_S = 0.1


class Progress(NamedTuple):
    """How far a copy is. `key` is a session that was just worked on.

    What is written to the source meanwhile is not in the totals until it is met.
    """

    sessions: int
    sessions_total: int
    entries: int
    entries_total: int
    key: str


class Copied(NamedTuple):
    """What a copy did.

    sessions   those that are in the target now, whole
    unchanged  how many of these were there before
    entries    how many entries the sessions have that were gone over
    written    how many entries were put into the target; the others were there
    moved      sessions that are a little behind the source, because they are written to all the
               time or a turn runs on them: copy again when that is over
    ahead      how many the target has written to since they were copied; the source has nothing new
    conflicts  what is something else in the target; it was left as it is
    failed     what could not be read, or did not come back as it was written
    """

    sessions: int
    unchanged: int
    entries: int
    written: int
    moved: tuple[Problem, ...] = ()
    ahead: int = 0
    conflicts: tuple[Problem, ...] = ()
    failed: tuple[Problem, ...] = ()


Observer = Callable[[Progress], object]
Place = tuple[str, str]  # a tenant, and the id of a session


@dataclass(slots=True)
class Tally:
    """What is known so far, of all tenants."""

    observer: Observer | None
    recheck: bool
    outcomes: dict[Place, Brought] = field(default_factory=dict)
    conflicts: dict[Place, Problem] = field(default_factory=dict)
    failed: dict[Place, Problem] = field(default_factory=dict)
    moved: dict[Place, Problem] = field(default_factory=dict)
    entries: int = 0
    written: int = 0
    sessions_total: int = 0
    entries_total: int = 0
    key: str = ""
    told_at: float = -TELL_EVERY_S

    def count(self, entries: int) -> None:
        self.entries += entries
        self.tell()

    def tell(self, _: int = 0, *, is_last: bool = False) -> None:
        """Tell the observer, unless it has heard of us just now."""
        now = time.monotonic()
        if self.observer is None or not (is_last or now - self.told_at >= TELL_EVERY_S):
            return
        self.told_at = now
        done = len(self.outcomes) + len(self.conflicts) + len(self.failed)
        total, entries = max(done, self.sessions_total), max(self.entries, self.entries_total)
        self.observer(Progress(done, total, self.entries, entries, self.key))

    def copied(self) -> Copied:
        kinds = [each.outcome for each in self.outcomes.values()]
        return Copied(
            kinds.count("copied") + kinds.count("unchanged"),
            kinds.count("unchanged"),
            self.entries,
            self.written,
            tuple(self.moved.values()),
            kinds.count("ahead"),
            tuple(self.conflicts.values()),
            tuple(self.failed.values()),
        )
