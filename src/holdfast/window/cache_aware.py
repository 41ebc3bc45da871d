"""CacheAware: fold rarely and deeply, where and when it costs least.

A vendor that caches prompts charges little for what a request begins with if the last one began
the same way, and more than the plain price for what is new. So nothing is cheaper than to leave the
beginning alone, and whatever is folded makes everything behind it new. From that follows

- when: as late as possible, when the window is full; or earlier, when the cache has gone cold in a
  pause and all of it has to be written anyway;
- how deep: a deep fold is paid less often, a shallow one leaves the model more to read. The sum of
  both costs is least where the step is

      sqrt(2 * (write - read) * window * growth / worth)

  with prices as shares of the input price, the growth of the window with each call as it was seen,
  and `worth`, what a token in the window is worth for one call beyond the price of reading it. It
  is the rule by which stores order goods, with tokens of room for goods;
- where: whole turns, the oldest first, and tool results that were long answered are shortened. When
  shortening results near the end frees tokens for less, because little stands behind them, only
  that is done.

Between folds the window only grows at its end.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from itertools import islice
from math import sqrt
from typing import NamedTuple

from holdfast.errors import InvalidInput
from holdfast.frozen import Value
from holdfast.messages import Message, Role
from holdfast.usage import Prices
from holdfast.window.evict import latest_turns, old_turns
from holdfast.window.keep import kept
from holdfast.window.leave import left_out, with_notes
from holdfast.window.level import shorter_step
from holdfast.window.outcome import measured
from holdfast.window.pairs import Pairs
from holdfast.window.plan import Plan, Step, nothing, planned
from holdfast.window.shorten import shorten_to
from holdfast.window.situation import Situation
from holdfast.window.summarize import summed_up
from holdfast.window.view import Item, View

FULL = "the window is full"
_TOOL = frozenset(role for role in Role if role.canonical is Role.TOOL)
_RECENT_ITEMS = 200  # the growth is taken from these
_RESULT_MIN = 1.25  # a result is shortened when it has this many times what would be left
_RESULTS_MAX = 32  # so many are shortened at a time, the largest; each is an entry in the log
_KEPT_MAX = 0.5  # of the window: so much the latest turns may take when all others are folded
_STEP_MIN = 0.10  # of the window: what shortening near the end has to free to be worth a fold


class Rates(NamedTuple):
    """What a cached token and a new one cost, as shares of the input price."""

    read: float
    write: float


_USUAL = Rates(0.10, 1.25)


class CacheAware(Value, frozen=True, kw_only=True):
    """The default policy.

    worth          of a token in the window for one call, beyond the price of reading it, as a share
                   of the input price: more makes shallower folds
    deepest        the share of the window below which no fold goes
    result_tokens  what is left of a tool result that was long answered
    is_summing_up  whether folded turns are summed up, which costs a call
    """

    worth: float = 0.20
    deepest: float = 0.30
    result_tokens: int = 200
    is_summing_up: bool = False

    @property
    def name(self) -> str:
        return "cache-aware"

    def plan(self, view: View, situation: Situation) -> Plan:
        """What to fold now, if anything, with the reason in words and numbers."""
        if situation.trigger == "manual":
            return _Work(self, view, situation).deep("asked for by hand")
        if situation.trigger == "overflow" or situation.over:
            work = _Work(self, view, situation)
            return work.near(FULL) or work.deep(FULL)
        if _is_cold(situation) and situation.fill >= situation.budget.start:
            work = _Work(self, view, situation)
            if work.is_free_now:
                return work.deep("the cache has gone cold, so folding costs nothing")
        return nothing(self.name, situation, _fits(situation))

    def _settle(self) -> None:
        self._settle_number("worth", "deepest")
        self._settle_counts("result_tokens")
        self._settle_flags("is_summing_up")
        if not self.worth:
            raise InvalidInput("worth", "is more than 0")
        if self.deepest > 1:
            raise InvalidInput("deepest", f"is a share from 0 to 1, not {self.deepest}")


class _Work:
    """One decision: the numbers that it rests on, and the steps that come of it."""

    def __init__(self, policy: CacheAware, view: View, situation: Situation) -> None:
        self.policy = policy
        self.view = view
        self.situation = situation
        self.items = view.items
        self.pairs = Pairs(view)
        self.stays = kept(view, self.items, self.pairs, situation.budget)
        self.rates = rates_of(situation.prices)
        self.growth = max(1.0, growth(self.items) * situation.scale)
        self.goal = self._goal()

    @property
    def is_free_now(self) -> bool:
        """Whether to fold while that is free is better than to pay for it when the window is full.

        What is folded early is missed until then.
        """
        situation = self.situation
        saved = self._extra * max(0, self.goal - situation.base)
        calls = max(0.0, situation.limit - situation.used) / self.growth
        missed = self.policy.worth * calls * (situation.used - self.goal)
        return saved >= missed

    def deep(self, why: str) -> Plan:
        """Fold the oldest turns down to the goal, and shorten the largest results that are left."""
        turns, missing = self._oldest(self.situation.used - self.goal)
        shorter = self._shorter(max((max(turn) for turn, _ in turns), default=-1) + 1)
        spare = self._freed(shorter) - missing
        while turns and turns[-1][1] <= spare:  # fewer have to go when results are shortened
            spare -= turns.pop()[1]
        gone = with_notes(self.items, set().union(*(turn for turn, _ in turns)))
        cut = self._cut(shorter)
        if self.policy.is_summing_up:
            steps = summed_up(self.view, self.items, sorted(gone), self.situation, why)
            if plan := self._planned(steps + cut, why):  # or the summary would be longer
                return plan
        steps = left_out(self.view, self.items, gone, self.situation, why)
        return self._planned(steps + cut, why)

    def near(self, why: str) -> Plan | None:
        """Shorten results near the end, if that frees tokens for less than a deep fold does."""
        spent = set(islice(self._spent(), _RESULTS_MAX))
        least = max(self.situation.over, _STEP_MIN * self.situation.limit)
        best, start, gain, behind = 0.0, 0, 0, 0
        for index in range(len(self.items) - 1, min(spent, default=0) - 1, -1):
            tokens = self.items[index].tokens
            left = self.policy.result_tokens if index in spent else tokens
            behind += left
            gain += tokens - left
            is_enough = gain * self.situation.scale >= least
            if index in spent and is_enough and gain / behind > best:
                best, start = gain / behind, index
        head = max(1, self.goal - self.situation.base)
        if best <= (self.situation.limit - self.goal) / head:
            return None
        shorter = self._shorter(start)
        if self._freed(shorter) < least:
            return None
        return self._planned(self._cut(shorter), why)

    # Numbers

    @property
    def _extra(self) -> float:
        """What it costs more to write a token than to read it from the cache."""
        return max(0.0, self.rates.write - self.rates.read)

    def _goal(self) -> int:
        """Down to so many tokens a deep fold goes."""
        situation, budget = self.situation, self.situation.budget
        foldable = max(0, situation.limit - situation.base)
        step = sqrt(2 * self._extra * foldable * self.growth / self.policy.worth)
        deepest = min(self.policy.deepest, budget.target)
        share = min(budget.target, max(deepest, 1 - step / max(1, situation.limit)))
        return int(share * situation.limit)

    def _spent(self, start: int = 0) -> Iterator[int]:
        """The places of results that were long answered and can be shortened, the latest first,
        back to `start`."""
        least = self.policy.result_tokens * _RESULT_MIN
        stays = self.stays.locked | self.stays.recent
        for place in range(len(self.items) - 1, start - 1, -1):
            item = self.items[place]
            if item.tokens > least and item.message.role in _TOOL and place not in stays:
                yield place

    def _shorter(self, start: int) -> dict[int, Message]:
        """The largest of them, with what is left when they are shortened."""
        spent = self._spent(start)
        largest = nlargest(_RESULTS_MAX, spent, key=lambda place: self.items[place].tokens)
        shorter = {
            place: shorten_to(self.items[place].message, self.policy.result_tokens, self.view.count)
            for place in sorted(largest)
        }
        return {place: short for place, short in shorter.items() if short is not None}

    def _freed(self, shorter: Mapping[int, Message]) -> int:
        freed = sum(self.items[i].tokens - self.view.count(short) for i, short in shorter.items())
        return int(freed * self.situation.scale)

    def _oldest(self, tokens: int) -> tuple[list[tuple[set[int], int]], int]:
        """The oldest turns that have so many tokens: the places and the tokens of each. And how
        many tokens are missing still.

        The latest turns are kept as long as no more than half of the window stays full with them.
        """
        parts = (self.view, self.items, self.pairs, self.stays)
        taken: list[tuple[set[int], int]] = []
        tokens = self._take(old_turns(*parts), tokens, taken)
        if self.goal + tokens > max(self.goal, _KEPT_MAX * self.situation.limit):
            tokens = self._take(latest_turns(*parts), tokens, taken)
        return taken, tokens

    def _take(
        self, turns: Iterable[set[int]], tokens: int, taken: list[tuple[set[int], int]]
    ) -> int:
        """Add turns to those taken until there are so many tokens; how many are missing still."""
        before = set().union(*(turn for turn, _ in taken))
        for turn in turns:
            if tokens <= 0:
                break
            if new := turn - before:
                size = self.situation.tokens(sum([self.items[place].tokens for place in new]))
                taken.append((new, size))
                tokens -= size
        return tokens

    # Steps

    def _cut(self, shorter: Mapping[int, Message]) -> list[Step]:
        return [
            shorter_step(self.view, self.items[place], short, self.situation)
            for place, short in shorter.items()
        ]

    def _planned(self, steps: list[Step], why: str) -> Plan:
        situation = self.situation
        if not steps:
            return nothing(self.policy.name, situation, f"{why}, but nothing more can be folded")
        freed = sum(step.tokens_before - step.tokens_after for step in steps)
        after = max(0, situation.used - freed)
        first = min(step.first for step in steps)
        behind = situation.tokens(sum(each.tokens for each in self.items if each.first >= first))
        rewritten = max(0, behind - freed)
        cost = 0.0 if _is_cold(situation) else self._extra * rewritten
        calls = max(0, round((situation.limit - after) / self.growth))
        shortened = sum(step.kind == "shorten" for step in steps)
        folded = len(steps) - shortened
        reason = (
            f"{why}: {situation.used:,} of {situation.limit:,} tokens. {after:,} are left "
            f"({_share(after, situation.limit)}): {folded} {_many('stretch', 'es', folded)} of "
            f"turns folded, {shortened} tool {_many('result', 's', shortened)} shortened. Behind "
            f"them {rewritten:,} tokens are written anew, which costs as much more as {cost:,.0f} "
            f"tokens of input; at {self.growth:,.0f} tokens a call that lasts for about {calls} "
            "calls"
        )
        numbers = {
            "goal": self.goal,
            "growth": round(self.growth, 1),
            "rewritten": rewritten,
            "cost": round(cost),
            "calls": calls,
            "read": self.rates.read,
            "write": self.rates.write,
        }
        plan = planned(self.policy.name, situation, steps, reason, numbers)
        # Where everything is shown as it was said, tokens can be added up.
        is_plain = self.view.tokens == tuple(item.tokens for item in self.items)
        if is_plain and not plan.to_summarize:
            return plan
        return measured(plan, self.view, situation)


def rates_of(prices: Prices | None) -> Rates:
    """What cached and new tokens cost. Where that is not known, what is usual; a model that runs
    at home is not paid for, but it has to read what is new all the same."""
    if prices is None or not prices.input:
        return _USUAL
    read = prices.input if prices.cache_read is None else prices.cache_read
    write = prices.input if prices.cache_write is None else prices.cache_write
    return Rates(float(read / prices.input), float(write / prices.input))


def growth(items: Sequence[Item]) -> float:
    """By how many tokens the window grew with each call lately, as counted."""
    recent = [item for item in items[-_RECENT_ITEMS:] if item.fold is None]
    calls = sum(item.message.role.canonical is Role.ASSISTANT for item in recent)
    return sum(item.tokens for item in recent) / max(1, calls)


def _is_cold(situation: Situation) -> bool:
    pause, ttl = situation.pause_s, situation.cache_ttl_s
    return pause is not None and ttl is not None and pause > ttl


def _fits(situation: Situation) -> str:
    return (
        f"{situation.used:,} of {situation.limit:,} tokens "
        f"({_share(situation.used, situation.limit)}): nothing has to be folded"
    )


def _many(noun: str, ending: str, count: int) -> str:
    return noun if count == 1 else noun + ending


def _share(part: int, whole: int) -> str:
    return f"{part / max(1, whole):.0%}"
