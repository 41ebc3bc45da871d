"""When a window is made smaller, and the word for why."""

import pytest

from holdfast.errors import InvalidInput
from holdfast.window import Budget, Situation
from holdfast.window.evict import Evict
from holdfast.window.triggers import Crossing, due, goal, is_pressed, required


def situation(used, *, limit=1_000, trigger="after", margin=0, **budget):
    return Situation(
        limit=limit, used=used, trigger=trigger, margin=margin, budget=Budget(**budget)
    )


def test_the_defaults_are_80_60_and_90_percent_and_five_turns():
    """S2-44: threshold, target, pressure, the turns that are kept, and none that are pinned."""
    budget = Budget()

    assert (budget.start, budget.target, budget.pressure) == (0.80, 0.60, 0.90)
    assert (budget.keep_turns, budget.pinned) == (5, ())
    assert due(situation(799), turns=10_000) is None  # no limit of turns by default
    assert due(situation(800), turns=1) == "threshold"
    assert goal(situation(800)) == 600


@pytest.mark.parametrize(
    ("used", "fields", "turns", "reason"),
    [
        (799, {}, 1, None),
        (800, {}, 1, "threshold"),
        (800, {"trigger": "before"}, 1, "threshold"),
        (1, {"trigger": "manual"}, 1, "manual"),
        (1, {"trigger": "overflow"}, 1, "context_limit"),
        (1, {}, 7, "turn_limit"),
        (1, {}, 6, None),
        (790, {"trigger": "before", "margin": 211}, 1, "pre_message"),
        (790, {"trigger": "before", "margin": 210}, 1, None),
        (790, {"trigger": "after", "margin": 211}, 1, None),
        (600, {"pressure": 0}, 1, None),
        (601, {"pressure": 0}, 1, "threshold"),
    ],
)
def test_each_reason_has_its_word(used, fields, turns, reason):
    """S2-45: threshold, manual, turn_limit, pre_message, context_limit; above the target always
    in the continuous mode, which is a pressure of 0."""
    assert due(situation(used, **fields), turns, turns_max=7) == reason


def test_under_pressure_more_may_be_taken():
    """S2-44: from 90 %, and whenever the request does not fit or was refused."""
    assert not is_pressed(situation(899))
    assert is_pressed(situation(900))
    assert is_pressed(situation(800, margin=201))
    assert is_pressed(situation(1, trigger="overflow"))
    assert is_pressed(situation(1, pressure=0))


def test_a_crossing_is_told_once_in_a_turn():
    """S2-46: the first report over the threshold, and none after it, whatever comes."""
    crossing = Crossing(situation(100))

    told = [crossing.tell(used) for used in (100, 799, 800, 950, 700, 900)]

    assert told == [False, False, True, False, False, False]
    assert crossing.is_crossed


def test_a_turn_that_stays_below_crosses_nothing():
    """S2-46: then nothing is made smaller after the turn."""
    crossing = Crossing(situation(100))

    assert not crossing.tell(799)
    assert not crossing.is_crossed


def test_a_compaction_by_hand_needs_a_policy():
    """S2-55: without one it is an error that says so, not a compaction that does nothing."""
    with pytest.raises(InvalidInput, match="policy is missing"):
        required(None)

    policy = Evict()
    assert required(policy) is policy
