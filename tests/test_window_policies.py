"""What must be true of every plan, whichever policy made it, of histories in which anything may be
wrong: calls without results, results without calls, shared ids, old roles, earlier folds."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import DoesNotFit
from holdfast.window.budget_policy import BudgetPolicy
from holdfast.window.evict import Evict
from holdfast.window.fit import fitting, further
from holdfast.window.hybrid import Hybrid
from holdfast.window.observe import Observe
from holdfast.window.outcome import checked
from holdfast.window.overflow import recover
from holdfast.window.plan import apply, nothing
from holdfast.window.summarize import Summarize
from holdfast.window.triggers import is_pressed
from holdfast.window.truncate import Truncate
from window_cases import (
    folded,
    ids,
    must_stay,
    odd_history,
    shown,
    situation_of,
    turns,
    unpaired,
    view_of,
)

POLICIES = {
    "evict": Evict(),
    "evict, with a notice": Evict(notify=True),
    "truncate": Truncate(),
    "truncate to one": Truncate(1, notify=True),
    "summarize": Summarize(),
    "summarize to one": Summarize(1),
    "hybrid": Hybrid(1, 2),
    "hybrid without a middle": Hybrid(1, 0, notify=True),
    "budget": BudgetPolicy(),
    "budget, with a notice": BudgetPolicy(notify=True),
    "observe": Observe(),
    "observe little": Observe(
        message_tokens=20, observation_tokens=60, memory_tokens=150, observations_max=2, merge_at=2
    ),
}
each_policy = pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
seeds = st.integers(0, 2**32)
pytestmark = pytest.mark.usefixtures("uncovered")
examples = settings(max_examples=60)


def odd_view(random):
    """A view of an odd history, perhaps folded before by some policy."""
    view = view_of(odd_history(random.random()))
    for _ in range(random.choice((0, 0, 1, 2))):
        situation = situation_of(view, fill=0.95, keep_turns=random.choice((0, 1, 2)))
        policy = random.choice([*POLICIES.values()])
        view = folded(view, policy.plan(view, situation), situation)
    return view


def odd_situation(random, view, *fills, **fields):
    return situation_of(
        view,
        fill=random.choice(fills),
        scale=random.choice((1.0, 1.3, 0.77)),
        base=random.choice((0, 50)),
        keep_turns=random.choice((0, 1, 2, 5)),
        pinned=random.choice(((), (2,), (1, 3))),
        **fields,
    )


def kept_turns(policy, situation):
    """How many of the latest turns this policy has to keep here."""
    if isinstance(policy, Evict) and is_pressed(situation):
        return 0
    own = getattr(policy, "keep_turns", None)
    return situation.budget.keep_turns if own is None else own


def is_smaller_and_whole(view, plan, situation):
    """Whether a plan, carried out, leaves a smaller window in which nothing has lost its pair."""
    after = folded(view, plan, situation)
    checked(plan, view)
    assert unpaired(after) <= unpaired(view)
    assert after.total < view.total
    assert plan.tokens_before >= situation.used
    return after


@each_policy
@given(seeds)
@examples
def test_a_plan_is_exact_pairs_stay_together_and_what_has_to_stay_stays(policy, seed):
    """S2-41, S2-54: it names what is shown, is the same each time, frees what it says, and hides
    no system message, first or last request, last answer, pinned turn or turn that is kept."""
    random = Random(seed)
    view = odd_view(random)
    trigger = random.choice(("before", "after", "manual", "overflow"))
    situation = odd_situation(random, view, 0.5, 0.82, 0.95, 1.3, trigger=trigger)

    plan = policy.plan(view, situation)

    assert plan == policy.plan(view, situation)
    if not plan:
        assert plan.tokens_after == plan.tokens_before == situation.used
        return
    after = is_smaller_and_whole(view, plan, situation)
    real = situation.base + situation.tokens(after.total)
    slack = 1 + len(plan.steps) if plan.to_summarize else 1  # summaries are rounded for themselves
    assert real <= plan.tokens_after + slack
    if not plan.to_summarize:
        assert real >= plan.tokens_after - slack
    stays = must_stay(view, situation.budget, kept_turns(policy, situation))
    assert stays <= shown(after).keys()


@each_policy
@given(seeds)
@examples
def test_what_is_not_due_is_left_alone(policy, seed):
    """S2-45: below the threshold, and with room for the next request, there is no plan."""
    random = Random(seed)
    view = odd_view(random)
    situation = odd_situation(random, view, 0.1, 0.5, 0.79)
    situation = situation.replace(limit=situation.limit + 1)  # a small one was rounded down

    assert not policy.plan(view, situation)


@each_policy
@pytest.mark.parametrize("trigger", ["before", "manual", "overflow"])
def test_a_policy_comes_to_an_end(policy, trigger):
    """B29: asked again and again, it soon has nothing more to do, and the window stops changing."""
    view = view_of(turns(30, calls=1))
    limit = int(view.total / 0.95)
    seen = []
    for _ in range(8):
        situation = situation_of(view, limit=limit, trigger=trigger)
        plan = policy.plan(view, situation)
        view = view.with_folds(apply(plan, ["About boats."] * len(plan.to_summarize)))
        seen.append(ids(view))

    assert not policy.plan(view, situation_of(view, limit=limit, trigger=trigger))
    assert seen[-1] == seen[-2]


@each_policy
@given(seeds)
@examples
def test_what_is_fitted_fits(policy, seed):
    """It has no more than the limit, or DoesNotFit names what is too large. The margin fits too, as
    long as anything can go for it."""
    random = Random(seed)
    view = odd_view(random)
    margin = random.choice((0, 20))
    situation = odd_situation(random, view, 0.5, 0.95, 1.3, 2, 4, margin=margin)

    try:
        plan = fitting(policy, view, situation)
    except DoesNotFit as error:
        refused = error
    else:
        refused = None

    if refused is not None:
        assert situation.is_too_long
        assert refused.tokens > refused.tokens_max or not situation.used
        return
    assert plan == fitting(policy, view, situation)
    after = is_smaller_and_whole(view, plan, situation) if plan else view
    left = situation.base + situation.tokens(after.total)
    assert left <= situation.limit
    if left + margin > situation.limit:
        rest = situation.replace(used=left)
        assert not further(nothing("", rest, ""), after, rest, situation.limit - margin)
    shorter = {step.first for step in plan.steps if step.kind == "shorten"}
    assert must_stay(view, situation.budget, 0) <= shown(after).keys() | shorter


@each_policy
@given(seeds)
@examples
def test_each_try_after_an_overflow_is_smaller(policy, seed):
    """S2-57, S2-59: strictly, both times, and nothing loses its pair."""
    random = Random(seed)
    view = odd_view(random)
    for attempt in (1, 2):
        situation = odd_situation(random, view, 0.5, 0.82, 0.95)
        used = situation.used
        reported = random.choice((None, (used * 6 // 5, used * 9 // 10), (used * 2 + 1, used)))
        try:
            plan = recover(view, situation, attempt=attempt, reported=reported, policy=policy)
        except DoesNotFit:
            continue

        after = is_smaller_and_whole(view, plan, situation)
        shorter = {step.first for step in plan.steps if step.kind == "shorten"}
        assert must_stay(view, situation.budget, 0) <= shown(after).keys() | shorter
        view = after
