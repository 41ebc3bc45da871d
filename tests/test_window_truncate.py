"""Truncate: the latest turns and the pinned ones stay, the rest goes."""

from holdfast.messages import Message
from holdfast.window.truncate import Truncate
from window_cases import folded, ids, situation_of, turn, turns, view_of


def left(policy, view, **fields):
    situation = situation_of(view, **fields)
    return [i for i in ids(folded(view, policy.plan(view, situation), situation)) if ":" not in i]


def test_the_last_turns_and_the_pinned_ones_stay():
    """S2-49: the last N and the pinned; beside these the first request, which S2-52 locks."""
    view = view_of([Message.system("s", id="s"), *turns(9, calls=1)])

    kept = left(Truncate(2), view, pinned=(4,))

    assert kept == [
        *("s", "u1", "u4", "a4.1", "r4.1", "a4"),
        *("u8", "a8.1", "r8.1", "a8", "u9", "a9.1", "r9.1", "a9"),
    ]


def test_as_many_are_kept_as_the_budget_says():
    """S2-44: five, unless somebody says otherwise."""
    view = view_of(turns(9))

    assert left(Truncate(), view)[1] == "u5"
    assert left(Truncate(), view, keep_turns=3)[1] == "u7"
    assert left(Truncate(4), view, keep_turns=3)[1] == "u6"


def test_the_current_turn_stays_even_if_none_is_to_be_kept():
    """It is being answered."""
    view = view_of([*turn(1), *turn(2, calls=2)])

    assert left(Truncate(0), view)[1:] == ["u2", "a2.1", "r2.1", "a2.2", "r2.2", "a2"]


def test_where_everything_is_kept_nothing_happens():
    """S2-49: a plan without steps, and no error."""
    view = view_of(turns(5))

    plan = Truncate().plan(view, situation_of(view))

    assert not plan
    assert plan.reason == "threshold: everything is to be kept"


def test_to_be_asked_again_adds_nothing():
    """B29: where nothing is left to go, no note is put in, however often it is due."""
    view = view_of(turns(9))
    policy = Truncate(2, notify=True)
    for _ in range(3):
        situation = situation_of(view, trigger="manual")
        view = folded(view, policy.plan(view, situation), situation)

    again = policy.plan(view, situation_of(view, trigger="manual"))

    assert not again
    assert sum(item.fold is not None for item in view.items) == 1


def test_a_notice_stands_where_the_turns_are_missing():
    """S2-53: `[System: …]`, said by the user's side, as near to the front as something is gone."""
    view = view_of(turns(9))

    plan = Truncate(2, notify=True).plan(view, situation_of(view))

    (step,) = plan.steps
    assert step.first == 2
    assert step.replacement.role == "user"
    assert step.replacement.text == (
        "[System: 7 earlier turns are no longer shown, to make room for what follows "
        "(by truncate).]"
    )


def test_a_limit_of_turns_is_kept():
    """S2-45: so many turns make it due, however small they are."""
    view = view_of(turns(9))

    assert not Truncate(2).plan(view, situation_of(view, fill=0.1))
    assert Truncate(2, 9).plan(view, situation_of(view, fill=0.1)).reason.startswith("turn_limit")
    assert not Truncate(2, 10).plan(view, situation_of(view, fill=0.1))


def test_what_nobody_said_begins_no_turn():
    """Synthetic messages are not counted among the turns that are kept."""
    nudges = [Message.user("Go on.", synthetic="nudge", id=f"n{n}") for n in range(4)]
    view = view_of([*turns(3), *turn(4), *nudges])

    assert left(Truncate(2), view) == ["u1", "u3", "a3", "u4", "a4", "n0", "n1", "n2", "n3"]


def test_the_plan_says_what_it_did():
    """S2-54: who, why, how many, tokens before and after, freed, and each removal with its own."""
    view = view_of(turns(9))
    situation = situation_of(view)

    plan = Truncate(2).plan(view, situation)

    assert plan.by == "truncate"
    assert plan.numbers == {"trigger": "threshold", "items": 13}
    assert plan.tokens_before == situation.used
    assert plan.tokens_after == folded(view, plan, situation).total
    assert plan.freed == plan.tokens_before - plan.tokens_after
    (step,) = plan.steps
    assert (step.first, step.last, step.tokens_before) == (2, 14, 13 * 104)
    assert step.why == "threshold"
    assert plan.replace(tokens_after=plan.tokens_before + 1).freed == 0


def test_the_log_keeps_what_the_window_leaves_out():
    """S2-41: a plan is made of the view alone and changes nothing: all of it is there still."""
    view = view_of(turns(9))
    before = ids(view)

    folded(view, Truncate(2).plan(view, situation_of(view)), situation_of(view))

    assert ids(view) == before
