"""Hybrid: recent turns stay, those in the middle are summed up, ancient ones go."""

from holdfast.window.hybrid import Hybrid
from holdfast.window.plan import apply
from holdfast.window.transcript import transcript
from window_cases import ids, situation_of, turns, view_of


def test_five_stay_ten_are_summed_up_and_the_rest_goes():
    """S2-51: as it was documented: the ancient ones are always truncated."""
    view = view_of(turns(20))

    plan = Hybrid().plan(view, situation_of(view))

    dropped, summed_up = plan.steps
    assert (dropped.kind, dropped.first, dropped.last) == ("drop", 2, 10)
    assert (summed_up.kind, summed_up.first, summed_up.last) == ("summarize", 11, 30)
    assert [message.id for message in summed_up.messages][::19] == ["u6", "a15"]
    after = view.with_folds(apply(plan, ["About boats."]))
    assert [each for each in ids(after) if "-" not in each][-10:] == ids(view)[-10:]
    assert after.items[1].message.text == "[5 earlier turns not shown here.]"


def test_pinned_turns_stay_wherever_they_are():
    """S2-51: they were ignored once."""
    view = view_of(turns(20))

    plan = Hybrid().plan(view, situation_of(view, pinned=(3, 9)))
    after = view.with_folds(apply(plan, ["About boats."]))

    assert {"u3", "a3", "u9", "a9"} <= set(ids(after))
    assert len(plan.to_summarize) == 1


def test_the_turns_that_the_budget_keeps_stay():
    """Five are recent, or more if the budget keeps more."""
    view = view_of(turns(20))

    plan = Hybrid().plan(view, situation_of(view, keep_turns=8))

    assert plan.steps[-1].last == 24


def test_what_was_summed_up_is_never_just_left_out():
    """A summary that has become ancient is part of the next one."""
    view = view_of(turns(20))
    first = Hybrid(2, 4).plan(view, situation_of(view))
    view = view.with_folds(apply(first, ["About boats."]))
    for seq, message in enumerate(turns(30)[40:], start=50):
        view.add(seq, message)

    plan = Hybrid(2, 4).plan(view, situation_of(view, keep_turns=2))

    (step,) = plan.to_summarize
    assert step.messages[0].text.count("About boats.") == 1
    assert "About boats." in transcript(step.messages)
    after = view.with_folds(apply(plan, ["About boats and tides."]))
    assert sum("About boats" in (item.message.text or "") for item in after.items) == 1


def test_without_a_middle_an_earlier_summary_stays():
    """There is no summary that it could be part of."""
    view = view_of(turns(12))
    first = Hybrid(2, 4).plan(view, situation_of(view, keep_turns=2))
    view = view.with_folds(apply(first, ["About boats."]))
    for seq, message in enumerate(turns(20)[24:], start=50):
        view.add(seq, message)

    plan = Hybrid(2, 0).plan(view, situation_of(view, keep_turns=2))

    assert plan
    assert not plan.to_summarize
    assert any("About boats" in (i.message.text or "") for i in view.with_folds(apply(plan)).items)


def test_where_all_is_recent_nothing_happens():
    """S2-51: five turns are recent."""
    view = view_of(turns(5))

    assert Hybrid().plan(view, situation_of(view)).reason == "threshold: everything is to be kept"


def test_a_notice_stands_for_the_ancient_ones():
    """S2-53: the summary says itself that it is one."""
    view = view_of(turns(20))

    plan = Hybrid(notify=True).plan(view, situation_of(view))

    assert plan.steps[0].replacement.text.startswith("[System: 5 earlier turns")
