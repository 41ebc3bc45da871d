"""Fitting: what a policy plans, and what has to follow so that the request fits for certain.

    plan = fitting(policy, view, situation)

A policy follows the budget, and that may leave too much: turns that are kept, a result as long as
the window. Then the plan goes on, in the order of what is missed least, and only so far as it has
to:

1. turns leave, the oldest first, in the end those that would rather be kept; then calls of the
   current turn, with their results (`evict.py`);
2. the longest results of the current turn are cut, then those before it, then the first request.

The margin of the estimate has to fit too, as long as anything can go for it. When nothing more can,
the estimate itself decides, as it does for whoever sends the request: DoesNotFit names what does
not fit as best known. A margin alone refuses nothing, or a model whose tokens are hard to estimate
could not be talked to any more.
"""

from collections.abc import Callable, Iterator, Sequence

from holdfast.errors import DoesNotFit
from holdfast.messages import Role
from holdfast.window.evict import evicted
from holdfast.window.keep import is_request
from holdfast.window.level import levelled
from holdfast.window.outcome import checked, joined, measured, outcome
from holdfast.window.plan import Plan, Policy
from holdfast.window.situation import Situation
from holdfast.window.view import Item, View

Further = Callable[[View, Situation, int], Plan]


def fitting(policy: Policy, view: View, situation: Situation) -> Plan:
    """The policy's plan, or one that does more, after which the request fits; else DoesNotFit.

    It fits even if the estimate is short by its margin, or else nothing is left that could go, and
    it fits as estimated. Summaries that are still to be written are counted at their longest.
    """
    plan = measured(checked(policy.plan(view, situation), view), view, situation)
    plan = further(plan, view, situation, max(0, situation.limit - situation.margin))
    after = situation.replace(used=plan.tokens_after)
    if after.is_too_long:
        raise too_large(outcome(plan, view), after)
    return plan


def further(plan: Plan, view: View, situation: Situation, tokens_max: int) -> Plan:
    """The plan, and what has to follow it so that the request has no more than `tokens_max`.

    It is gone on with as long as it helps: what left may have been what kept something else there.
    """
    tokens = None
    while plan.tokens_after != tokens:
        tokens = plan.tokens_after
        for more in _further():
            if plan.tokens_after <= tokens_max:
                return plan
            after = outcome(plan, view)
            now = situation.replace(used=plan.tokens_after)
            if next_plan := more(after, now, tokens_max):
                plan = joined(plan, next_plan, view, situation)
    return plan


def _further() -> Iterator[Further]:
    yield _evicted
    for places in (results_now, results_before, _first_request):
        yield _cut(places)


def _evicted(view: View, situation: Situation, tokens_max: int) -> Plan:
    return evicted(view, situation, tokens_max, why="the request does not fit", is_deep=True)


def _cut(places: Callable[[View], Sequence[int]]) -> Further:
    def cut(view: View, situation: Situation, tokens_max: int) -> Plan:
        return levelled(view, places(view), situation, tokens_max, "fit")

    return cut


# What can be cut


def results_now(view: View) -> list[int]:
    """The places of the results of the current turn."""
    return [p for p, item in enumerate(view.items) if _is_result(item) and item.turn == view.turn]


def results_before(view: View) -> list[int]:
    """The places of the results of earlier turns."""
    return [p for p, item in enumerate(view.items) if _is_result(item) and item.turn != view.turn]


def _first_request(view: View) -> list[int]:
    requests = [place for place, item in enumerate(view.items) if is_request(item)]
    return [place for place in requests[:-1] if view.items[place].turn == 1][:1]


def _is_result(item: Item) -> bool:
    return bool(item.message.results)


# What does not fit


def too_large(view: View, situation: Situation) -> DoesNotFit:
    """The error that names the largest of what is left, and how much of it would fit."""
    sizes = [(situation.base, "the system prompt with the tools")]
    items = view.items
    last = max((place for place, item in enumerate(items) if is_request(item)), default=None)
    for place, item in enumerate(items):
        sizes.append((situation.tokens(item.tokens), _name(item, place == last)))
    if len(results := results_now(view)) > 1:
        tokens = situation.tokens(sum(items[place].tokens for place in results))
        sizes.append((tokens, f"the {len(results)} results of this turn together"))
    tokens, what = max(sizes, key=lambda each: each[0])
    left = max(0, situation.limit - (situation.used - tokens))
    if tokens <= left:  # as when a model refused what should have fitted, and did not say why
        return DoesNotFit("the request", situation.used, situation.limit)
    return DoesNotFit(what, tokens, left)


def _name(item: Item, is_last_request: bool) -> str:
    message = item.message
    if results := message.results:
        return f"the result of {results[0].name or 'a tool'}"
    if is_request(item):
        return "the user's message" if is_last_request else f"the request of turn {item.turn}"
    if message.role.canonical is Role.ASSISTANT:
        return "the last answer" if item.fold is None else "a summary"
    return "a system message" if message.role is Role.SYSTEM else "a note"
