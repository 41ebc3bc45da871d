"""BudgetPolicy: the least valuable leaves first, until enough is free."""

import pytest

from holdfast.errors import InvalidInput
from holdfast.messages import Message
from holdfast.window.budget_policy import (
    CONDITIONAL,
    EPHEMERAL,
    LOCKED,
    PARTIAL,
    PRESERVABLE,
    BudgetPolicy,
    classes,
)
from window_cases import folded, ids, situation_of, turn, turns, unpaired, view_of, words

NUDGE = Message.user(words(30), synthetic="nudge", id="nudge")


def gone(view, situation, **fields):
    """The ids that leave, in the order of the log."""
    after = folded(view, BudgetPolicy(**fields).plan(view, situation), situation)
    return [each for each in ids(view) if each not in ids(after)]


def to_free(view, tokens, *, fill=0.85, **budget):
    """A situation in which so many tokens have to be freed."""
    target = (view.total - tokens) / (view.total / fill)
    asked = {"keep_turns": 1, "target": max(0, target), "start": max(0, target), **budget}
    return situation_of(view, fill=fill, **asked)


def test_each_message_has_a_class():
    """S2-52: the last words of a turn with tools and more than one response are preservable, what
    was put in beside the conversation is conditional, everything else ephemeral."""
    view = view_of([*turn(1, calls=2), *turn(2, calls=1), NUDGE])

    assert dict(zip(ids(view), classes(view, view.items), strict=True)) == {
        **dict.fromkeys(("u1", "a1.1", "r1.1", "a1.2", "r1.2"), EPHEMERAL),
        "a1": PRESERVABLE,
        **dict.fromkeys(("u2", "a2.1", "r2.1", "a2"), EPHEMERAL),
        "nudge": CONDITIONAL,
    }


def test_what_is_beside_the_conversation_leaves_first():
    """S2-52: enrichment, in bulk."""
    view = view_of([*turn(1), NUDGE, *turn(2), NUDGE.replace(id="nudge 2"), *turn(3)])

    assert gone(view, to_free(view, 10)) == ["nudge", "nudge 2"]


def test_the_oldest_turn_leaves_first_and_of_that_the_largest():
    """S2-52: ephemeral entries oldest first, the larger first on ties; a pair is one entry."""
    view = view_of([*turn(1), *turn(2, calls=1), *turn(3, calls=1), *turn(4)])

    assert gone(view, to_free(view, 90)) == ["a1"]
    assert gone(view, to_free(view, 200)) == ["a1", "a2.1", "r2.1"]
    assert gone(view, to_free(view, 300)) == ["a1", "u2", "a2.1", "r2.1"]


def test_the_summary_of_a_turn_leaves_under_pressure_only():
    """S2-52: preservable when usage is at or over the pressure, and after all else."""
    view = view_of([*turn(1), *turn(2, calls=2), *turn(3)])

    calm = gone(view, to_free(view, 1_000, fill=0.85))
    pressed = gone(view, to_free(view, 1_000, fill=0.9))

    assert calm == ["a1", "u2", "a2.1", "r2.1", "a2.2", "r2.2"]
    assert pressed == [*calm, "a2"]


def test_the_first_request_is_never_taken():
    """S2-52: the original request is locked."""
    view = view_of(turns(4))

    assert "u1" not in gone(view, to_free(view, 10_000, fill=0.99))


def test_the_turns_that_are_kept_stay_in_every_phase():
    """B29: a phase that forgot them deleted the current turn."""
    nudged = [*turns(3, calls=2), NUDGE]
    view = view_of(nudged)

    left = gone(view, to_free(view, 10_000, fill=0.99, keep_turns=2, pinned=(1,)))

    assert left == []


def test_whole_turns_leave_where_a_caller_says_so():
    """S2-52: partial ones by turns, oldest first; locked ones never."""
    view = view_of([*turns(4), NUDGE])

    def classify(message):
        if message.id == "a2":
            return LOCKED
        return PARTIAL if message.id[0] in "ua" else None

    assert gone(view, to_free(view, 110), classify=classify) == ["a1", "u2"]
    assert gone(view, to_free(view, 250), classify=classify) == ["a1", "u2", "u3", "a3"]


def test_a_class_that_is_none_is_an_error():
    """A caller's mistake is told, not guessed at."""
    view = view_of(turns(4))

    with pytest.raises(InvalidInput, match="classify gives one of"):
        BudgetPolicy(classify=lambda message: "precious").plan(view, to_free(view, 10))
    with pytest.raises(InvalidInput, match="classify is a function"):
        BudgetPolicy(classify="precious")


def test_calls_and_results_leave_together():
    """S2-52: removals are expanded so that pairs are kept."""
    view = view_of(turns(6, calls=3))
    situation = to_free(view, 700)

    after = folded(view, BudgetPolicy().plan(view, situation), situation)

    assert unpaired(after) == {}


def test_the_tokens_are_exact():
    """B29, S2-54: what the plan says is what the window has afterwards."""
    view = view_of(turns(6, calls=3))
    situation = to_free(view, 700, scale=1.1, base=31)

    plan = BudgetPolicy().plan(view, situation)

    after = folded(view, plan, situation)
    assert plan.tokens_after == 31 + situation.tokens(after.total)


def test_a_notice_stands_for_the_first_that_left():
    """S2-53: once, and only if it is asked for."""
    view = view_of(turns(6, calls=3))
    situation = to_free(view, 700)

    notified = BudgetPolicy(notify=True).plan(view, situation)
    silent = BudgetPolicy().plan(view, situation)

    notes = [step.replacement for step in notified.steps if step.replacement is not None]
    assert sum(note.text.startswith("[System: ") for note in notes) == 1
    assert [step.replacement for step in silent.steps if step.replacement] == []
