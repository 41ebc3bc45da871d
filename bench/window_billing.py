"""What a replayed session costs, and what its prompts still show: the books of bench/window.py.

A prompt is paid for by its tokens: those of the longest run of messages that the prompt before it
began with too cost what a cache read costs, all others what it costs to write them to the cache.
Prices are those of a token of input: 1. What the model answers costs the same whoever keeps the
window, and is left out; summaries are made by calls of their own, which are not.
"""

from collections.abc import Iterable, Sequence
from decimal import Decimal

from window_conversations import Talk

from holdfast.usage import Prices

WRITE, READ, INPUT, OUTPUT = 1.25, 0.10, 1.0, 5.0
PRICES = Prices(
    input=Decimal(1), output=Decimal(5), cache_read=Decimal("0.10"), cache_write=Decimal("1.25")
)
THIRDS = 3


class Outcome:
    """What came of a policy in one session, or, added up, in several."""

    def __init__(self, window: int) -> None:
        self.window = window
        self.cost = 0.0
        self.read = 0
        self.sent = 0
        self.calls = 0
        self.worst = 0
        self.folds = 0
        self.turns = 0
        self.lost = 0
        self.said = 0
        self.samples = 0
        self.seen = [0.0] * (THIRDS + 1)  # early, middle, late, all; of each sample the share

    def bill(self, tokens: int, cached: int) -> None:
        """A call with a prompt of so many tokens, of which so many were in the cache."""
        self.cost += READ * cached + WRITE * (tokens - cached)
        self.read += cached
        self.sent += tokens
        self.calls += 1
        self.worst = max(self.worst, tokens)

    def bill_summary(self, tokens: int, written: int) -> None:
        """A call that sums up so many tokens in so many."""
        self.cost += INPUT * tokens + OUTPUT * written

    def sample(self, shown: bytearray, said: int) -> None:
        """Which of the facts that were said until now the prompt shows: early, middle, late."""
        if said < THIRDS:
            return
        bounds = [said * third // THIRDS for third in range(THIRDS + 1)]
        self.samples += 1
        for third in range(THIRDS):
            first, last = bounds[third], bounds[third + 1]
            self.seen[third] += shown.count(1, first, last) / (last - first)
        self.seen[THIRDS] += shown.count(1, 0, said) / said

    def __iadd__(self, other: "Outcome") -> "Outcome":
        for name in ("cost", "read", "sent", "calls", "folds", "turns", "lost", "said", "samples"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.worst = max(self.worst, other.worst)
        self.seen = [a + b for a, b in zip(self.seen, other.seen, strict=True)]
        return self

    @property
    def mean_tokens(self) -> float:
        return self.sent / self.calls

    @property
    def fill(self) -> float:
        return self.mean_tokens / self.window

    @property
    def worst_fill(self) -> float:
        return self.worst / self.window

    @property
    def read_share(self) -> float:
        return self.read / self.sent

    @property
    def lost_share(self) -> float:
        return self.lost / self.said

    @property
    def folds_a_hundred_turns(self) -> float:
        return 100 * self.folds / self.turns

    @property
    def retention(self) -> list[float]:
        """The share of the facts that are shown: early, middle, late, all."""
        return [share / max(1, self.samples) for share in self.seen]


def opened(talk: Talk, window: int) -> Outcome:
    """The books of a session in which nothing was asked yet."""
    outcome = Outcome(window)
    outcome.turns = len(talk.starts)
    outcome.said = talk.total
    return outcome


def pooled(outcomes: Iterable[Outcome]) -> Outcome:
    """Several sessions as one: sums of what was paid, means over all calls."""
    given = list(outcomes)
    whole = Outcome(given[0].window)
    for each in given:
        whole += each
    return whole


def common(before: Sequence[object], now: Sequence[object]) -> int:
    """How many items both begin with."""
    if now[: len(before)] == before:  # compares in C, and the same objects at once
        return len(before)
    for number, (a, b) in enumerate(zip(before, now, strict=False)):
        if a is not b and a != b:
            return number
    return min(len(before), len(now))
