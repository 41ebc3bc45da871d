"""Summarize: the latest turns, and one summary of the rest."""

import pytest

from holdfast.errors import InvalidInput
from holdfast.messages import Message
from holdfast.window.plan import apply
from holdfast.window.summarize import Summarize
from holdfast.window.transcript import transcript
from window_cases import count, folded, ids, situation_of, turn, turns, view_of


def test_one_summary_stands_for_all_that_is_summed_up():
    """S2-50: turns outside the preserved ones are replaced by one message, at the front."""
    view = view_of(turns(8, calls=1))

    plan = Summarize(2).plan(view, situation_of(view, pinned=(3,)))
    after = view.with_folds(apply(plan, ["Ada asked."]))

    (step,) = plan.to_summarize
    assert ids(after)[0] == "u1"
    assert after.items[1].message.content == (
        "[Context Summary - Previous conversation compressed]\nAda asked.\n[End Context Summary]"
    )
    assert after.items[1].message.role == "user"
    assert not after.items[1].message.starts_turn
    assert ids(after)[2:7] == ["u3", "a3.1", "r3.1", "a3", "u7"]
    assert [message.id for message in step.messages[:4]] == ["a1.1", "r1.1", "a1", "u2"]
    assert step.messages[-1].id == "a6"


def test_the_summariser_is_given_what_tools_answered():
    """B29: the transcript of a step holds the results, too."""
    view = view_of(turns(8, calls=1, tokens=3))

    plan = Summarize(2).plan(view, situation_of(view, fill=0.99))

    assert "[Response from look] rrrrrrrrrrrr" in transcript(plan.to_summarize[0].messages)


def test_without_a_summary_nothing_can_be_done():
    """S2-50: a plan changes nothing; to carry it out without the summary is refused."""
    view = view_of(turns(8))
    plan = Summarize(2).plan(view, situation_of(view))

    with pytest.raises(InvalidInput, match="summaries are 1"):
        apply(plan, [])

    assert len(ids(view)) == 16


def test_what_was_summed_up_is_summed_up_again_with_what_followed():
    """One summary, not a row of them; the earlier one is part of what it is made of."""
    view = view_of(turns(8))
    first = Summarize(4).plan(view, situation_of(view))
    view = view.with_folds(apply(first, ["About boats."]))

    second = Summarize(2).plan(view, situation_of(view))
    after = view.with_folds(apply(second, ["About boats and tides."]))

    assert "About boats." in transcript(second.to_summarize[0].messages)
    (item,) = [item for item in after.items if item.fold]
    assert item.message.text.split("\n")[1:-1] == ["About boats and tides."]


def test_a_summary_alone_is_not_summed_up_again():
    """B29: to be asked again changes nothing."""
    view = view_of(turns(8))
    plan = Summarize(2).plan(view, situation_of(view))
    view = view.with_folds(apply(plan, ["About boats."]))

    assert not Summarize(2).plan(view, situation_of(view))


def test_a_summary_is_counted_at_its_longest():
    """The plan claims no more than is certain; a summary that is too long is cut."""
    view = view_of(turns(30))
    situation = situation_of(view, scale=1.5)

    plan = Summarize(2, tokens_max=300).plan(view, situation)

    (step,) = plan.to_summarize
    assert step.tokens_after == 300
    after = folded(view, plan, situation)
    assert plan.tokens_after - 300 <= situation.tokens(after.total) <= plan.tokens_after


def test_what_is_no_longer_than_a_summary_is_left_alone():
    """A summary makes nothing longer."""
    view = view_of([*turn(1), Message.user("Hm?"), Message.assistant("Yes."), *turn(3)])

    plan = Summarize(1).plan(view, situation_of(view, fill=0.99))
    short = Summarize(1).plan(
        view_of([Message.user("a"), Message.assistant("b"), *turn(2)]),
        situation_of(view, fill=0.99),
    )

    assert plan.tokens_after < plan.tokens_before
    assert not short
    assert "free nothing" in short.reason


def test_the_frame_of_a_summary_always_fits_its_step():
    """However short the summary may be, there is room for the words around it."""
    view = view_of(turns(8))
    situation = situation_of(view)

    plan = Summarize(2, tokens_max=0).plan(view, situation)

    (fold,) = apply(plan, ["x" * 1_000], count)
    assert count(fold.replacement) <= plan.steps[0].tokens_after
