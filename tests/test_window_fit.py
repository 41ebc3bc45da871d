"""Fitting: the policy's plan, and what has to follow it; or the name of what does not fit."""

import pytest

from holdfast.errors import DoesNotFit, InvalidInput
from holdfast.messages import Message, ToolCall
from holdfast.window.evict import Evict
from holdfast.window.fit import fitting
from holdfast.window.plan import Plan, Step, nothing
from holdfast.window.summarize import Summarize
from holdfast.window.truncate import Truncate
from window_cases import count, folded, ids, situation_of, turn, turns, view_of, words


class Idle:
    """A policy that never does anything."""

    name = "idle"

    def plan(self, view, situation):
        return nothing(self.name, situation, "idle")


def results(*sizes):
    said = [Message.user("Read them.", id="u")]
    calls = [ToolCall(id=f"c{n}", name="read", arguments="{}") for n, _ in enumerate(sizes)]
    said.append(Message.assistant(None, calls, id="calls"))
    for number, size in enumerate(sizes):
        said.append(Message.tool(words(size), f"c{number}", name="read", id=f"r{number}"))
    return said


def fitted(view, limit, *, policy=None, **fields):
    situation = situation_of(view, limit=limit, **fields)
    plan = fitting(policy or Idle(), view, situation)
    return plan, folded(view, plan, situation)


def test_what_fits_is_left_to_the_policy():
    """Its plan is passed on as it is: one that does nothing, too."""
    view = view_of(turns(8))

    plan, _ = fitted(view, view.total)
    due, _ = fitted(view, int(view.total / 0.85), policy=Truncate(3))

    assert not plan
    assert plan.by == "idle"
    assert due == Truncate(3).plan(view, situation_of(view, limit=int(view.total / 0.85)))


def test_turns_leave_until_it_fits_and_no_more():
    """Nothing is dropped that there is room for: with one turn more it would not fit."""
    view = view_of(turns(8))

    plan, after = fitted(view, 1_200)

    assert plan.tokens_after == after.total <= 1_200
    assert after.total + 2 * 104 > 1_200
    assert plan.by == "idle"


def test_a_margin_is_room_that_is_not_there():
    """The estimate may be short by it."""
    view = view_of(turns(8))

    _, sure = fitted(view, 1_200, margin=0)
    _, unsure = fitted(view, 1_200, margin=250)

    assert unsure.total <= 950 < sure.total


@pytest.mark.parametrize("margin", [300, 1_200, 9_999])
def test_a_margin_alone_refuses_nothing(margin):
    """What can go for it goes. When nothing is left that could, the estimate decides."""
    view = view_of(turns(8))

    plan, after = fitted(view, 1_200, margin=margin)

    assert plan.tokens_after == after.total < 900
    assert not fitted(view_of([Message.user(words(900))]), 1_200, margin=margin)[0]
    with pytest.raises(DoesNotFit, match="the user's message has 1204 tokens and 1200 fit"):
        fitted(view_of([Message.user(words(1_200))]), 1_200, margin=margin)


def test_turns_that_are_kept_leave_when_there_is_no_choice():
    """Rather than to fail; the pinned ones, and the first request, do not."""
    view = view_of(turns(6))

    _, after = fitted(view, 600, keep_turns=6, pinned=(3,))

    assert [each for each in ids(after) if ":" not in each] == ["u1", "u3", "a3", "u6", "a6"]


def test_what_a_policy_left_out_is_not_named_twice():
    """One fold stands for what the policy left out and what had to follow."""
    view = view_of(turns(12))

    plan, after = fitted(view, 600, policy=Truncate(6), keep_turns=6)

    assert plan.by == "truncate"
    assert len(plan.steps) == 1
    assert after.items[1].message.text == "[10 earlier turns not shown here.]"


def test_a_summary_is_counted_at_its_longest():
    """It fits however long the summary becomes."""
    view = view_of(turns(12))

    plan, after = fitted(view, 1_000, policy=Summarize(3, tokens_max=400), keep_turns=3)

    assert len(plan.to_summarize) == 1
    assert after.total <= plan.tokens_after <= 1_000


def test_the_longest_results_are_cut_to_one_level():
    """Each keeps as much as there is room for; a short one is left alone."""
    view = view_of(results(3_000, 2_000, 100))

    plan, after = fitted(view, 2_000)

    sizes = [count(item.message) for item in after.items[2:]]
    assert after.total <= 2_000
    assert after.total > 0.85 * 2_000
    assert sizes[2] == 104
    assert abs(sizes[0] - sizes[1]) < 0.1 * sizes[0]
    assert [step.kind for step in plan.steps] == ["shorten", "shorten"]


def test_only_what_has_to_be_cut_is_cut():
    """The longest alone, if that is enough."""
    view = view_of(results(3_000, 1_000, 100))

    plan, _ = fitted(view, 3_000)

    assert [step.replacement.tool_call_id for step in plan.steps] == ["c0"]


def test_the_first_request_is_cut_when_nothing_else_is_left():
    """It stays, with its beginning: what all the rest is about."""
    view = view_of([Message.user(words(3_000), id="book"), Message.assistant("Yes."), *turn(2)])

    _, after = fitted(view, 1_000)

    assert after.items[0].message.text.startswith("wwww")
    assert "[TRUNCATED: Input" in after.items[0].message.text
    assert after.items[0].message.id.startswith("book:shortened:")


@pytest.mark.parametrize(
    ("said", "base", "what"),
    [
        ([*turns(3), Message.user(words(2_000))], 0, "the user's message"),
        ([*turns(3), Message.user("?")], 2_000, "the system prompt with the tools"),
        ([*turns(3), Message.assistant(words(2_000))], 0, "the last answer"),
        (results(*[100] * 30), 0, "the 30 results of this turn together"),
    ],
    ids=["user", "system", "assistant", "results"],
)
def test_what_does_not_fit_is_named(said, base, what):
    """DoesNotFit says what is the largest of what is left, and how much of it would fit."""
    view = view_of(said)

    with pytest.raises(DoesNotFit) as raised:
        fitted(view, 1_000, base=base)

    assert raised.value.what == what
    assert raised.value.tokens_max < raised.value.tokens


def test_a_plan_of_what_is_not_there_is_refused():
    """S3-31: also if a policy of somebody else made it."""

    class Wild:
        name = "wild"

        def plan(self, view, situation):
            return Plan(by="wild", reason="", steps=[Step(first=90, last=99, kind="drop")])

    with pytest.raises(InvalidInput, match="the step from 90 to 99"):
        fitted(view_of(turns(3)), 10_000, policy=Wild())


def test_a_policy_that_counts_wrong_is_counted_again():
    """What it claims is not believed: the window is."""

    class Boaster:
        name = "boaster"

        def plan(self, view, situation):
            steps = [Step(first=2, last=2, kind="drop", tokens_before=9_999)]
            return Plan(by="boaster", reason="", steps=steps)

    view = view_of(turns(8))

    plan, after = fitted(view, 1_000, policy=Boaster())

    assert plan.tokens_after == after.total <= 1_000


def test_a_single_turn_without_end_goes_on():
    """Calls of the current turn leave with their results; the last ones stay."""
    view = view_of(turn(1, calls=50, answer=False))

    _, after = fitted(view, 2_000, policy=Evict())

    assert after.total <= 2_000
    assert ids(after)[0] == "u1"
    assert ids(after)[-1] == "r1.50"
