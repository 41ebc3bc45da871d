"""Plans, and the folds that come of them."""

import pytest

from holdfast.errors import InvalidInput
from holdfast.messages import Message
from holdfast.window.plan import Plan, Step, apply, nothing, planned
from holdfast.window.situation import Situation

SAID = (Message.user("I am Ada."), Message.assistant("Hello, Ada."))
FULL = Situation(limit=900, used=1_000)


def count(message):
    return len(message.text or "")


def summarize(tokens_after=400, **fields):
    return Step(
        first=1, last=2, kind="summarize", messages=SAID, tokens_after=tokens_after, **fields
    )


def drop(first, last, before=100, after=0):
    return Step(first=first, last=last, kind="drop", tokens_before=before, tokens_after=after)


def test_a_plan_adds_up_its_steps_and_puts_them_in_order():
    plan = planned("me", FULL, [drop(7, 9, 200, 20), drop(1, 3)], "why", {"goal": 700})

    assert [step.first for step in plan.steps] == [1, 7]
    assert (plan.tokens_before, plan.tokens_after, plan.freed) == (1_000, 720, 280)
    assert plan and plan.numbers == {"goal": 700}


def test_a_plan_without_steps_says_why_and_changes_nothing():
    plan = nothing("me", FULL, "there is room")

    assert not plan and plan.reason == "there is room"
    assert plan.tokens_before == plan.tokens_after == 1_000
    assert apply(plan) == ()


def test_folds_say_who_made_them_and_why():
    """The reason of the step, or that of the plan."""
    note = Message.user("(gone)", synthetic="folded")
    own = drop(1, 3).replace(replacement=note, why="it is old")

    first, second = apply(planned("me", FULL, [own, drop(5, 5)], "it is full"))

    assert (first.first, first.last, first.by, first.why) == (1, 3, "me", "it is old")
    assert first.replacement == note and first.tokens_before == 100
    assert second.why == "it is full" and second.replacement is None


def test_summaries_stand_where_they_were_asked_for():
    """One for each step that needs one, in order."""
    other = Step(first=8, last=9, kind="summarize", messages=SAID, tokens_after=400)
    plan = planned("me", FULL, [summarize(), drop(5, 5), other], "why")

    folds = apply(plan, ["first", "second"])

    assert plan.to_summarize == (plan.steps[0], plan.steps[2])
    assert "\nfirst\n" in folds[0].replacement.text and "\nsecond\n" in folds[2].replacement.text
    assert folds[1].replacement is None
    assert folds[0].replacement.synthetic == "summary" and not folds[0].replacement.starts_turn


@pytest.mark.parametrize("texts", [(), ("a", "b")], ids=["none", "two"])
def test_another_number_of_summaries_is_refused(texts):
    with pytest.raises(InvalidInput, match="are 1 for this plan"):
        apply(planned("me", FULL, [summarize()], "why"), texts)


@pytest.mark.parametrize("text", ["", " \n\t"], ids=repr)
def test_a_summary_that_says_nothing_is_a_note(text):
    (fold,) = apply(planned("me", FULL, [summarize()], "why"), [text])

    assert fold.replacement.text == "[1 earlier turn not shown here.]"


@pytest.mark.parametrize("longest", [40, 100, 120, 400])
def test_a_summary_is_never_longer_than_it_may_be(longest):
    """It is cut; where there is no room for what stands around it, a note is all that is left."""
    (fold,) = apply(planned("me", FULL, [summarize(longest)], "why"), ["word " * 9_000], count)

    assert count(fold.replacement) == fold.tokens_after <= longest
    assert ("word" in fold.replacement.text) is (longest > 90)


def test_a_summary_that_fits_is_left_as_it_is():
    (fold,) = apply(planned("me", FULL, [summarize()], "why"), ["They met."], count)

    assert "\nThey met.\n" in fold.replacement.text
    assert fold.tokens_after == count(fold.replacement)


@pytest.mark.parametrize(
    "bad",
    [
        {"kind": "burn"},
        {"kind": "summarize"},
        {"first": -1},
        {"tokens_after": 1.5},
        {"messages": ["said"]},
    ],
    ids=str,
)
def test_a_step_that_makes_no_sense_is_refused(bad):
    with pytest.raises(InvalidInput):
        Step(**{"first": 1, "last": 2, "kind": "drop"} | bad)


@pytest.mark.parametrize("bad", [{"steps": [1]}, {"reason": None}, {"numbers": []}], ids=str)
def test_a_plan_that_makes_no_sense_is_refused(bad):
    with pytest.raises(InvalidInput):
        Plan(**{"by": "me", "reason": "why"} | bad)
