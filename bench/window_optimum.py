"""The cheapest that could have been done, knowing all that is said later: for bench/window.py.

At a call the oldest may go, to any depth before the current turn, and everything behind the head is
then written anew; the prompt never passes the window. The head is the system prompt, or that and
the first request, whichever costs less. What costs least is found by going through the calls once:
`best[cut]` is the least that was paid so far by anybody who now shows what is said from `cut` on.
Who folds pays the same wherever he came from, so that a call costs one look at each cut.

Neither the cost nor the fill depends on which tokens go, only on how many. So cuts may fall between
any two messages that are not a call and its result: finer steps than whole turns and shortened
results give.

To show next to nothing is cheapest of all, so the mean fill has to be at least a given one. That is
done by paying for what is shown: with a reward for each token in a prompt the least cost is found
as before, and the reward is bisected until the fill is reached. Every reward also proves a bound:
with these moves and that fill no cost can be below it. What is exactly the least lies between.
"""

from array import array
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from window_billing import READ, WRITE
from window_conversations import Talk

BISECTIONS = 9
REWARD_START = 0.25
REWARD_MAX = 4.0  # more than it costs to write a token again at every call


class Schedule(NamedTuple):
    """What is shown at each call: where it begins. The cost of that, its tokens, the most of them.

    `talk` is the session, with the head that is always shown.
    """

    talk: Talk
    cuts: list[int]
    cost: float
    tokens: int
    worst: int


class Optimum(NamedTuple):
    """The cheapest schedule that was found, and the cost that none can be below."""

    schedule: Schedule
    bound: float


def optimum(talk: Talk, window: int, mean_tokens: float) -> Optimum:
    """What costs least of all that has prompts of at least `mean_tokens` tokens in the mean."""
    found = _optimum_with_head(talk, window, mean_tokens)
    other = _optimum_with_head(talk.with_request(), window, mean_tokens)
    if other.schedule.worst > window:  # there was no room for more than the head and a turn
        return found
    schedule = min(found.schedule, other.schedule, key=lambda each: each.cost)
    return Optimum(schedule, min(found.bound, other.bound))


def _optimum_with_head(talk: Talk, window: int, mean_tokens: float) -> Optimum:
    wanted = mean_tokens * len(talk.calls)
    low, high = 0.0, REWARD_START
    found = schedule_for(talk, window, high)
    bound = _bound(found, high, wanted)
    while found.tokens < wanted and high < REWARD_MAX:
        low, high = high, high * 2
        found = schedule_for(talk, window, high)
        bound = max(bound, _bound(found, high, wanted))
    for _ in range(BISECTIONS):
        reward = (low + high) / 2
        made = schedule_for(talk, window, reward)
        bound = max(bound, _bound(made, reward, wanted))
        if made.tokens < wanted:
            low = reward
        else:
            found, high = made, reward
    return Optimum(found, bound)


def _bound(made: Schedule, reward: float, wanted: float) -> float:
    """No schedule with the wanted tokens costs less: its cost less its reward is not below this
    one's, and its reward is at least that of the wanted tokens."""
    return made.cost + reward * (wanted - made.tokens)


def schedule_for(talk: Talk, window: int, reward: float) -> Schedule:
    """What costs least when every token that is shown at a call is worth `reward`."""
    cuts = _Cuts(talk, window)
    head = talk.head_tokens
    best: Sequence[float] = ()
    history: list[tuple[int, Sequence[float], float]] = []
    before = 0
    for call in talk.calls:
        now = talk.sums[call]
        old = cuts.first
        cuts.go_to(call)
        # What a prompt costs is a sum of its own, and so much for each token before its cut.
        stay = READ * (head + before) + WRITE * (now - before) - reward * (head + now)
        fold = (READ if history else WRITE) * head + WRITE * now - reward * (head + now)
        kept = _kept(best, cuts, old, stay, READ - reward)
        made = _folded(best, cuts, old, fold, WRITE - reward)
        for index, cost in enumerate(kept):
            if cost <= made[index]:
                made[index] = cost
        history.append((cuts.first, best := array("d", made), stay))
        before = now
    return _followed_back(talk, cuts, history, READ - reward)


class _Cuts:
    """The places at which a prompt may begin: at the call that was gone to, first to last."""

    def __init__(self, talk: Talk, window: int) -> None:
        self._talk = talk
        self._room = window - talk.head_tokens
        self.places = [at for at in range(talk.head, len(talk.said)) if not talk.is_result[at]]
        self.sums = [talk.sums[place] for place in self.places]
        self.first, self.last = 0, -1

    def go_to(self, call: int) -> None:
        talk = self._talk
        current = max(talk.head, talk.starts[talk.turn[call]])
        while self.last + 1 < len(self.places) and self.places[self.last + 1] <= current:
            self.last += 1
        while self.first < self.last and talk.sums[call] - self.sums[self.first] > self._room:
            self.first += 1


def _kept(best: Sequence[float], cuts: _Cuts, old: int, paid: float, share: float) -> list[float]:
    """The cost of going on as before, from each cut that was open and still is."""
    sums = cuts.sums[cuts.first : old + len(best)]
    still_open = best[cuts.first - old :]
    return [cost + paid - share * gone for cost, gone in zip(still_open, sums, strict=True)]


def _folded(best: Sequence[float], cuts: _Cuts, old: int, paid: float, share: float) -> list[float]:
    """The cost of a fold to each cut that is open, from the cheapest before it.

    What is gone is gone: a fold only ever goes on. At the first call there is nothing to come from.
    """
    sums = cuts.sums[cuts.first : cuts.last + 1]
    if not best:
        return [paid - share * gone for gone in sums]
    least = list(accumulate(best, min, initial=float("inf")))
    least += least[-1:] * (cuts.last + 1 - old - len(best))
    return [
        cost + paid - share * gone
        for cost, gone in zip(least[cuts.first - old :], sums, strict=False)
    ]


def _followed_back(
    talk: Talk, cuts: _Cuts, history: list[tuple[int, Sequence[float], float]], share: float
) -> Schedule:
    """The schedule that ends with the least cost, from its last call back to its first."""
    first, best, _ = history[-1]
    cut = first + min(range(len(best)), key=best.__getitem__)
    chosen = [cut]
    for (old, before, _), (first, best, stay) in reversed(list(pairwise(history))):
        is_open = old <= cut < old + len(before)
        if not is_open or before[cut - old] + stay - share * cuts.sums[cut] != best[cut - first]:
            cut = old + min(range(min(cut - old, len(before))), key=before.__getitem__)
        chosen.append(cut)
    return _priced(talk, [cuts.places[cut] for cut in reversed(chosen)])


def _priced(talk: Talk, cuts: list[int]) -> Schedule:
    shown = [talk.tokens(cut, call) for cut, call in zip(cuts, talk.calls, strict=True)]
    prompts = [talk.head_tokens + tokens for tokens in shown]
    cost = WRITE * prompts[0]
    for (a, b), (before, now) in zip(pairwise(cuts), pairwise(prompts), strict=True):
        cached = before if a == b else talk.head_tokens
        cost += READ * cached + WRITE * (now - cached)
    return Schedule(talk, cuts, cost, sum(prompts), max(prompts))
