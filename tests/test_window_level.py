"""One level for tool results: as high as it can be."""

import pytest

from holdfast.messages import Message, ToolCall
from holdfast.window.level import levelled
from window_cases import count, folded, situation_of, view_of, words


def results(*sizes):
    calls = [ToolCall(id=f"c{n}", name="f", arguments="{}") for n, _ in enumerate(sizes)]
    said = [Message.user("?"), Message.assistant(None, calls)]
    said += [Message.tool(words(size), f"c{n}") for n, size in enumerate(sizes)]
    return view_of(said)


def cut(view, tokens_max, **fields):
    situation = situation_of(view, **fields)
    plan = levelled(view, range(2, len(view)), situation, tokens_max, "me")
    after = folded(view, plan, situation)
    return plan, [count(item.message) for item in after.items[2:]], after


@pytest.mark.parametrize("room", [4_000, 2_500, 1_500, 700, 400])
def test_enough_goes_and_little_more(room):
    """The longest are cut to one length, and what is shorter stays as it is."""
    view = results(3_000, 2_000, 500, 90)

    plan, sizes, after = cut(view, room)

    assert after.total == plan.tokens_after <= room
    assert after.total > 0.8 * room
    assert sizes[3] == 94
    level = max(sizes)
    for size, was in zip(sizes, (3_004, 2_004, 504, 94), strict=True):
        assert size == was or size > 0.85 * level


def test_tokens_of_the_model_are_what_counts():
    """The view counts others: the scale is between them."""
    view = results(3_000, 2_000)

    _, _, after = cut(view, 3_000, scale=1.5)

    assert 0.8 * 3_000 < 1.5 * after.total <= 3_000


def test_as_little_as_can_be_where_there_is_no_room():
    """Then a notice is all that is left of each that is longer than one."""
    view = results(3_000, 2_000, 5)

    plan, sizes, _ = cut(view, 0)

    assert len(plan.steps) == 2
    assert sizes[0] == sizes[1] < 60
    assert sizes[2] == 9


def test_nothing_to_cut_is_a_plan_without_steps():
    """It says so."""
    plan, _, _ = cut(results(5, 5), 0)

    assert not plan
    assert plan.reason == "no tool result can be shortened"
