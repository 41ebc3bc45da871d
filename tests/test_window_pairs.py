"""Pairs: a call and its results, whichever way they are written, go together or stay."""

from holdfast.messages import Message, ToolCall
from holdfast.window.pairs import Pairs
from window_cases import turn, view_of


def calls(*ids):
    return [ToolCall(id=id, name="look", arguments="{}") for id in ids]


def test_a_call_goes_with_all_its_results_and_nothing_else():
    """One of them brings the others, from either side."""
    view = view_of(
        [
            Message.user("?"),
            Message.assistant(None, calls("a", "b")),
            Message.tool("1", "a"),
            Message.tool("2", "b"),
            Message.assistant("Done."),
        ]
    )
    pairs = Pairs(view)

    assert pairs.with_all([1]) == pairs.with_all([3]) == {1, 2, 3}
    assert pairs.with_all([0, 4]) == {0, 4}
    assert pairs.answered(0, 5) == [(1, 2, 3)]


def test_a_result_that_comes_late_belongs_to_its_call():
    """Turns may lie between them."""
    said = [*turn(1, answer=False), Message.assistant(None, calls("a")), *turn(2)]
    pairs = Pairs(view_of([*said, Message.tool("1", "a")]))

    assert pairs.with_all([1]) == {1, 4}


def test_an_id_that_is_used_again_is_that_of_the_latest_call():
    """As it is rendered."""
    again = [Message.assistant(None, calls("a")), Message.tool("1", "a")]
    pairs = Pairs(view_of([*again, *again]))

    assert pairs.with_all([0]) == {0, 1}
    assert pairs.with_all([3]) == {2, 3}


def test_a_message_with_results_of_several_calls_ties_these_together():
    """It can go only with all of them."""
    outputs = [call.replace(arguments="", output="1") for call in calls("a", "b")]
    view = view_of(
        [
            Message.assistant(None, calls("a")),
            Message.assistant(None, calls("b")),
            Message("tool", None, tool_calls=outputs),
        ]
    )

    assert Pairs(view).with_all([0]) == {0, 1, 2}


def test_a_result_without_an_id_belongs_to_the_last_call():
    """As it is rendered."""
    pairs = Pairs(view_of([Message.assistant(None, calls("a")), Message("function", "1")]))

    assert pairs.with_all([1]) == {0, 1}
    assert pairs.answered(0, 2) == [(0, 1)]


def test_a_call_that_waits_is_not_answered():
    """Neither without any result nor with some."""
    said = [Message.assistant(None, calls("a", "b")), Message.tool("1", "a")]

    assert Pairs(view_of(said)).answered(0, 2) == []
    assert Pairs(view_of(said[:1])).answered(0, 1) == []
