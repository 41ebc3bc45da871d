"""The outcome of a plan: what the window will really have, before anything is done."""

from holdfast.messages import Message, ToolCall
from holdfast.window.outcome import joined, measured, outcome
from holdfast.window.plan import Plan, Step
from window_cases import count, ids, situation_of, turn, turns, view_of, words


def plan_of(*steps):
    return Plan(by="me", reason="because", steps=steps)


def dropped(first, last, replacement=None):
    return Step(first=first, last=last, kind="drop", replacement=replacement, tokens_before=1)


def test_a_plan_is_counted_as_the_window_is_then():
    """A result that goes with its call is counted, though no step names it."""
    call = ToolCall(id="late", name="look", arguments="{}")
    late = Message.tool(words(500), "late")
    view = view_of([*turn(1), Message.assistant(None, [call]), *turn(2), late])
    situation = situation_of(view, base=40, scale=1.5)

    plan = measured(plan_of(dropped(3, 3)), view, situation)

    after = view.total - 504 - count(Message.assistant(None, [call]))
    assert outcome(plan, view).total == after
    assert plan.tokens_before == situation.used
    assert plan.tokens_after == 40 + situation.tokens(after)


def test_a_plan_that_frees_nothing_is_none():
    """A note that is longer than what it stands for, for one."""
    view = view_of([Message.user("?"), Message.assistant("!"), *turn(2)])

    plan = measured(plan_of(dropped(2, 2, Message.user(words(9)))), view, situation_of(view))

    assert not plan
    assert plan.tokens_after == plan.tokens_before
    assert "free nothing" in plan.reason


def test_a_summary_is_counted_at_its_longest():
    """What is shown until it is written is not counted."""
    view = view_of(turns(6))
    gone = tuple(item.message for item in view.items[1:5])
    step = Step(first=2, last=5, kind="summarize", messages=gone, tokens_after=300)

    plan = measured(plan_of(step), view, situation_of(view))

    assert plan.tokens_after == view.total - 4 * 104 + 300


def test_two_plans_are_one_for_the_view_before_both():
    """A step that a later one covers is not made at all."""
    view = view_of(turns(6))
    situation = situation_of(view)
    first = measured(plan_of(dropped(2, 3), dropped(7, 7)), view, situation)

    both = joined(first, plan_of(dropped(2, 5)), view, situation)

    assert [(step.first, step.last) for step in both.steps] == [(2, 5), (7, 7)]
    assert both.tokens_after == view.total - 5 * 104
    assert len(ids(outcome(both, view))) == 7
