"""After a context overflow: what to leave out so that the next try is shorter.

    plan = recover(view, situation, attempt=1, reported=numbers(str(error)))

A model has refused the request as too long, although it seemed to fit. The first time the window is
collected, as a policy does it; the second time the longest results of the current turn are cut,
and those before it if need be. Each try is smaller than the one before. There is no third: then,
or when nothing can be made smaller, DoesNotFit names what does not fit.

No result is taken from its call, and the last answer stays, with calls that wait for results.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from holdfast.errors import InvalidInput
from holdfast.messages import Message
from holdfast.notes import NOTICE
from holdfast.window.evict import Evict
from holdfast.window.fit import further, results_before, results_now, too_large
from holdfast.window.level import levelled, shorter_step
from holdfast.window.outcome import checked, measured
from holdfast.window.plan import Plan, Policy, nothing, planned, runs
from holdfast.window.shorten import CHARACTERS_A_TOKEN, TOKENS_MIN, shorten_to, shortened
from holdfast.window.situation import Situation
from holdfast.window.view import Item, View

ATTEMPTS_MAX = 2
TARGET = 0.80  # of the limit: what is counted may be short again
_NAME = "overflow"
_NOTICE_TOKENS = len(NOTICE) // CHARACTERS_A_TOKEN + 4  # a notice takes some of what is removed

_NUMBER = r"([0-9]{4,}|[0-9]{1,3}(?:,[0-9]{3})+)"
_EXCEEDS = re.compile(rf"{_NUMBER}\D.*?exceed.*?limit.*?{_NUMBER}", re.IGNORECASE | re.DOTALL)
_SUM = re.compile(rf"{_NUMBER} *\+ *{_NUMBER} *> *{_NUMBER}")
_ANY = re.compile(r"[0-9][0-9,]*")
_LARGE = 1_000
_TEXT_LENGTH_MAX = 10_000


class Reported(NamedTuple):
    """What the refusal said: how many tokens there were, and how many there may be."""

    tokens: int
    limit: int


def numbers(text: str) -> Reported | None:
    """The two numbers in a refusal, if it has them.

    `210,000 tokens exceed the limit of 200,000`, or `190000 + 20000 > 200000` for prompt, answer
    and limit; or else the first two numbers over 1000, of which the smaller is the limit.
    """
    text = text[:_TEXT_LENGTH_MAX]
    if found := _SUM.search(text):
        return Reported(_whole(found[1]) + _whole(found[2]), _whole(found[3]))
    if found := _EXCEEDS.search(text):
        return Reported(_whole(found[1]), _whole(found[2]))
    large = [number for each in _ANY.findall(text) if (number := _whole(each)) > _LARGE]
    return Reported(max(large[:2]), min(large[:2])) if len(large) > 1 else None


def recover(
    view: View,
    situation: Situation,
    *,
    attempt: int,
    reported: tuple[int, int] | None = None,
    policy: Policy | None = None,
) -> Plan:
    """The plan after which the request is tried again: the first time, or the second.

    `reported` is the tokens that there were and the limit, as the refusal said. `policy` collects
    at the first attempt; Evict does if there is none. The plan always has steps.
    """
    if attempt < 1:
        raise InvalidInput("attempt", f"is counted from 1, not {attempt}")
    real = _real(situation, reported)
    wanted = _wanted(real)
    if attempt > ATTEMPTS_MAX:
        raise too_large(view, real)
    if attempt == 1:
        plan = _collected(policy or Evict(), view, real, wanted)
    else:
        plan = _cut(view, real, wanted, is_known=reported is not None)
    if not plan:
        raise too_large(view, real)
    return plan


def _real(situation: Situation, reported: tuple[int, int] | None) -> Situation:
    """The situation as the refusal shows it: more is used, or less fits, than was thought.

    Where more is used, all that the view counts has so many times more, also what could be freed.
    """
    budget = situation.budget.replace(start=TARGET, target=TARGET)
    real = situation.replace(trigger="overflow", budget=budget, margin=0)
    if reported is None:
        return real
    tokens, limit = reported
    more = max(1.0, tokens / max(1, real.used))
    return real.replace(
        used=max(real.used, tokens),
        limit=min(real.limit, limit),
        base=int(real.base * more),
        scale=real.scale * more,
    )


def _wanted(real: Situation) -> int:
    wanted = int(real.limit * TARGET)
    # Where the limit would have been kept, it is not the one that was met: then less than before.
    return wanted if wanted < real.used else int(real.used * TARGET)


def _collected(policy: Policy, view: View, real: Situation, wanted: int) -> Plan:
    """What the policy leaves out, and more if that is nothing or too little to fit."""
    told = real.replace(limit=int(wanted / TARGET))
    plan = measured(checked(policy.plan(view, told), view), view, real)
    if plan and plan.tokens_after <= real.limit:
        return plan
    return further(plan, view, real, wanted)


def _cut(view: View, real: Situation, wanted: int, *, is_known: bool) -> Plan:
    """Shorter results, as short as they have to be; and then whatever else can go."""
    remove = real.used - wanted
    if not is_known:
        remove = sum(real.tokens(view.items[p].tokens) for p in _results(view)) // 2
    plan = _cut_by(view, real, remove)
    if is_known and plan.tokens_after > real.limit:
        plan = levelled(view, _results(view), real, wanted, _NAME)
    is_small = plan.tokens_after <= real.limit if is_known else bool(plan)
    return plan if is_small else further(plan, view, real, wanted)


def _cut_by(view: View, real: Situation, remove: int) -> Plan:
    """The longest results with some tokens less, until `remove` are gone."""
    items = view.items
    steps = []
    for place in _results(view):
        if remove <= 0:
            break
        item = items[place]
        shorter = shortened(item.message, remove + _NOTICE_TOKENS) or _without_media(view, item)
        if shorter is None or view.count(shorter) >= item.tokens:
            continue
        step = shorter_step(view, item, shorter, real)
        remove -= step.tokens_before - step.tokens_after
        steps.append(step)
    if not steps:
        return nothing(_NAME, real, "no tool result can be shortened")
    reason = f"context_limit: {len(steps)} of the longest results are cut"
    found = {"trigger": "context_limit", "items": len(steps)}
    return measured(planned(_NAME, real, steps, reason, found), view, real)


def _without_media(view: View, item: Item) -> Message | None:
    """A result that is long though its words are few: it has pictures or files."""
    is_long = isinstance(item.message.content, tuple) and item.tokens >= TOKENS_MIN
    return shorten_to(item.message, TOKENS_MIN, view.count) if is_long else None


def _results(view: View) -> list[int]:
    """The places of results that can be cut: of the current turn, then before; longest first."""
    items = view.items

    def longest(places: Iterable[int]) -> list[int]:
        free = [place for place in places if runs(items, (place,))]
        return sorted(free, key=lambda place: -items[place].tokens)

    return longest(results_now(view)) + longest(results_before(view))


def _whole(digits: str) -> int:
    return int(digits.replace(",", ""))
