"""What stays, whatever a policy would like to leave out."""

from holdfast.entries import Fold
from holdfast.messages import Message, ToolCall
from holdfast.notes import compacted
from holdfast.window import Budget
from holdfast.window.keep import is_request, kept, turns_shown
from holdfast.window.pairs import Pairs
from holdfast.window.shorten import shorten_to
from window_cases import count, turn, turns, view_of, words


def stays(view, own=None, **budget):
    """The ids of what is locked, and of what is kept as long as there is a choice."""
    found = kept(view, view.items, Pairs(view), Budget(**budget), own)
    names = [item.message.id for item in view.items]
    return [[names[place] for place in sorted(places)] for places in found]


def test_system_messages_and_both_ends_of_the_conversation_are_locked():
    """Also one that the system said in between, and the results of the last calls."""
    said = [
        Message.system("You help.", id="s1"),
        *turns(3),
        Message.system("Be brief.", id="s2"),
        *turn(4, calls=1, answer=False),
    ]

    locked, _ = stays(view_of(said))

    assert locked == ["s1", "u1", "s2", "u4", "a4.1", "r4.1"]


def test_the_latest_turns_are_kept_and_the_pinned_ones_locked():
    """The budget says how many and which; a policy may say another number."""
    view = view_of(turns(6))

    assert stays(view, keep_turns=2)[1] == ["u5", "a5", "u6", "a6"]
    assert stays(view, 1, keep_turns=2)[1] == ["u6", "a6"]
    assert stays(view, keep_turns=0)[1] == []
    assert stays(view, pinned=(3,))[0] == ["u1", "u3", "a3", "u6", "a6"]


def test_with_a_result_that_stays_its_call_stays():
    """The result came late, in a turn that is kept."""
    call = ToolCall(id="late", name="look", arguments="{}")
    said = [*turn(1), *turn(2), Message.assistant(None, [call], id="call"), *turn(3)]
    view = view_of([*said, Message.tool("1", "late", id="result")])

    assert stays(view, keep_turns=1)[1] == ["call", "u3", "a3", "result"]


def test_a_summary_that_is_written_as_the_systems_is_not_locked():
    """It stands for what was folded, and may be folded again."""
    view = view_of(turns(4))
    view.add(9, Fold(first=2, last=4, replacement=compacted("About boats.").replace(id="summary")))

    assert "summary" not in stays(view)[0]


def test_the_first_request_is_the_first_of_all():
    """Where it is folded away, or not loaded, no other takes its place."""
    view = view_of(turns(4))
    view.add(9, Fold(first=1, last=2))

    assert stays(view)[0] == ["u4", "a4"]


def test_a_request_in_a_shorter_form_is_a_request():
    """It is still what was asked."""
    view = view_of([Message.user(words(900), id="u0"), *turns(2)])
    shorter = shorten_to(view.items[0].message, 100, count)
    view.add(9, Fold(first=1, last=1, replacement=shorter))

    assert is_request(view.items[0])
    assert stays(view)[0][0] == shorter.id
    assert turns_shown(view.items) == 3
