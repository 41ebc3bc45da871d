"""Evict: whole turns, the oldest first, then calls of the current turn, each with its results."""

import pytest

from holdfast.entries import Fold
from holdfast.errors import InvalidInput
from holdfast.messages import Message, ToolCall
from holdfast.window.evict import Evict, evicted, proactive, reactive
from holdfast.window.outcome import checked
from holdfast.window.plan import Plan, Step
from window_cases import (
    folded,
    ids,
    shown,
    situation_of,
    turn,
    turns,
    unpaired,
    view_of,
    words,
)


def down_to(view, tokens_max, **budget):
    """The ids that are left when a view has to be so small."""
    situation = situation_of(view, **{"keep_turns": 1, **budget})
    plan = evicted(view, situation, tokens_max, why="test", is_deep=True)
    after = folded(view, plan, situation)
    return plan, [each for each in ids(after) if ":" not in each], after


def test_whole_turns_go_oldest_first_with_their_calls():
    """S3-25: pass 1 removes complete turns, with their calls, and keeps the system message.

    The first request stays: it says what all the rest is about.
    """
    view = view_of([Message.system("You help.", id="s"), *turns(4, calls=1)])

    _, left, _ = down_to(view, view.total - 300)

    assert left == ["s", "u1", "u3", "a3.1", "r3.1", "a3", "u4", "a4.1", "r4.1", "a4"]


def test_no_more_goes_than_has_to():
    """S3-26: each step asks again whether it fits."""
    view = view_of(turns(6))

    one, _, after = down_to(view, view.total - 50)
    none, _, _ = down_to(view, view.total)

    assert set(shown(view)) - set(shown(after)) == {2}  # the answer of turn 1: its request stays
    assert one.tokens_after <= view.total - 50
    assert not none


def test_pass_two_takes_calls_of_the_current_turn_with_their_results():
    """S3-25, S3-29: when no turn is left, the oldest calls go, each with its result."""
    view = view_of([*turn(1), *turn(2, calls=4, answer=False)])

    _, left, after = down_to(view, view.total - 250)

    assert left == ["u1", "u2", "a2.3", "r2.3", "a2.4", "r2.4"]
    assert unpaired(after) == {}


def test_the_last_request_and_the_last_answer_stay():
    """S3-27, S3-30: never the system message, the last user's, the last assistant's, and no plain
    text of the current turn."""
    said = [
        Message.system("You help.", id="s"),
        *turn(1),
        *turn(2, calls=2, answer=False),
        Message.assistant(words(50), id="thought aloud"),
        *turn(2, calls=3, answer=False)[5:],
    ]
    view = view_of(said)

    plan, left, _ = down_to(view, 0)

    assert left == ["s", "u1", "u2", "thought aloud", "a2.3", "r2.3"]
    assert plan.tokens_after > 0


def test_a_turn_ends_where_the_next_begins_whatever_it_ends_with():
    """S3-28, B31: a turn that ends with a result goes with it, and so does an older spelling."""
    said = [
        *turn(1),
        *turn(2, calls=1, answer=False),
        *[m.replace(role="function") if m.role == "tool" else m for m in turn(3, calls=1)],
        *turn(4),
    ]
    view = view_of(said)

    plan, left, after = down_to(view, 0)

    assert left == ["u1", "u4", "a4"]
    assert view.total - after.total == plan.freed


def test_an_unanswered_request_can_go():
    """B31, S3-28: a user's message without an answer is a turn, too."""
    view = view_of([*turn(1), *turn(2, answer=False), *turn(3, answer=False), *turn(4)])

    _, left, _ = down_to(view, 0)

    assert left == ["u1", "u4", "a4"]


def test_parallel_results_go_with_their_calls():
    """B31, S3-29: all results of a message with several calls go with it, or none."""
    calls = [ToolCall(id=id, name="look", arguments="{}") for id in ("p", "q")]
    both = [
        Message.assistant(None, calls, id="calls"),
        Message.tool(words(100), "p", id="p"),
        Message.tool(words(100), "q", id="q"),
    ]
    view = view_of([*turn(1, answer=False), *both, *turn(1, calls=1, answer=False)[1:]])

    _, left, after = down_to(view, view.total - 150)

    assert left == ["u1", "a1.1", "r1.1"]
    assert unpaired(after) == {}


def test_a_call_that_waits_for_a_result_stays():
    """S3-30: the last answer may have calls that are still running."""
    calls = [ToolCall(id=id, name="look", arguments="{}") for id in ("p", "q")]
    pending = [Message.assistant(None, calls, id="calls"), Message.tool("half", "p", id="p")]
    view = view_of([*turns(2, calls=1), *turn(3, answer=False), *pending])

    _, left, _ = down_to(view, 0)

    assert left == ["u1", "u3", "calls", "p"]


def test_the_turns_that_are_kept_go_under_pressure_only():
    """The latest turns stay below 90 % and go, the oldest first, when nothing else is left."""
    view = view_of(turns(6))
    calm = situation_of(view, fill=0.85, keep_turns=5)
    pressed = situation_of(view, fill=0.95, keep_turns=5)

    some, more = Evict().plan(view, calm), Evict().plan(view, pressed)

    assert ids(folded(view, some, calm))[2:] == ids(view)[2:]
    left = ids(folded(view, more, pressed))
    assert [each for each in left if ":" not in each][:2] == ["u1", "u4"]


def test_pinned_turns_stay_and_what_is_around_them_goes():
    """S3-31: the ranges need not be side by side; each is inclusive and apart from the next."""
    view = view_of(turns(6))

    plan, left, _ = down_to(view, 0, pinned=(3,))

    assert left == ["u1", "u3", "a3", "u6", "a6"]
    assert [(step.first, step.last) for step in plan.steps] == [(2, 4), (7, 10)]


@pytest.mark.parametrize(
    "ranges",
    [[(3, 2)], [(0, 2)], [(2, 13)], [(2, 4), (4, 6)], [(5, 6), (2, 3)]],
    ids=["backwards", "before the first", "behind the last", "overlapping", "out of order"],
)
def test_ranges_that_are_none_are_refused(ranges):
    """S3-31: they are checked first, and nothing is changed."""
    view = view_of(turns(6))
    steps = [Step(first=first, last=last, kind="drop") for first, last in ranges]

    with pytest.raises(InvalidInput, match="the step from"):
        checked(Plan(by="me", reason="", steps=steps), view)


def test_too_little_is_better_than_nothing():
    """S3-32: what can be freed is freed, though it is not enough."""
    view = view_of(turns(3))

    plan, _, after = down_to(view, 1)

    assert plan
    assert 1 < plan.tokens_after == after.total < view.total


def test_nothing_at_all_is_said_to_be_nothing():
    """S3-32: a plan without steps, with the reason."""
    view = view_of(turn(1))

    plan = Evict().plan(view, situation_of(view, fill=1.2))

    assert not plan
    assert "context full and no messages available for eviction" in plan.reason


def test_what_is_freed_is_counted_exactly():
    """B31: the plan claims what the window then has, notes included."""
    view = view_of(turns(8, calls=2))
    situation = situation_of(view, keep_turns=2, base=77, scale=1.25)

    plan = Evict().plan(view, situation)

    after = folded(view, plan, situation)
    assert plan.tokens_after == 77 + situation.tokens(after.total)
    assert plan.tokens_after <= 0.6 * situation.limit


def test_the_amounts_to_free():
    """S3-33: before a call what is over, with the reserve; after a refusal at least the reserve."""
    assert proactive(total=7_000, reserve=1_408, context=8_192) == 216
    assert proactive(total=6_000, reserve=1_408, context=8_192) == 0
    assert reactive(total=9_000, desired=1_408, context=8_192, reserve=1_408) == 2_216
    assert reactive(total=9_000, desired=60_000, context=8_192, reserve=1_408) == 4_904
    assert reactive(total=5_000, desired=1_408, context=8_192, reserve=1_408) == 1_408


def test_one_note_stands_for_all_that_has_gone():
    """A second eviction replaces the note of the first, and counts what that one stood for."""
    view = view_of(turns(8))
    for tokens_max in (1_300, 900):
        _, _, view = down_to(view, tokens_max)

    notes = [item.message.text for item in view.items if item.fold is not None]

    assert notes == ["[5 earlier turns not shown here.]"]
    assert ids(view)[2] == "u6"


def test_a_note_says_more_if_it_is_asked_for():
    """S2-53: an optional message `[System: …]`, where the turns are missing."""
    view = view_of(turns(8))
    situation = situation_of(view, keep_turns=2)

    plan = Evict(notify=True).plan(view, situation)

    note = plan.steps[0].replacement
    assert note.text.startswith("[System: ")
    assert "evict" in note.text
    assert not note.starts_turn


# What is said of calls that left their own turn


def reading(files, *, first=1, answers=100, tool="read"):
    """Calls of one turn, each of which reads a file."""
    said = []
    for number in range(first, first + files):
        call = ToolCall(id=f"c{number}", name=tool, arguments=f'{{"path": "file{number}"}}')
        said.append(Message.assistant(None, [call], id=f"a{number}"))
        said.append(Message.tool(words(answers, "r"), call.id, name=tool, id=f"r{number}"))
    return said


ASKED = Message.user("Read them all.", id="u")


def tells(view):
    """The note about calls that a view shows: its place, and its text."""
    notes = [(place, i.message) for place, i in enumerate(view.items) if i.fold is not None]
    assert len(notes) == 1
    return notes[0][0], notes[0][1].text


def test_a_model_is_told_which_calls_of_its_turn_are_not_shown():
    """S3-29: or it would begin with the first file again. Behind the request, before the calls that
    are left: no words stand between a call and its result, or where somebody would interrupt."""
    view = view_of([ASKED, *reading(10)])

    _, left, after = down_to(view, view.total - 700)

    place, text = tells(after)
    gone = len(shown(view)) - len(shown(after))
    assert left[0] == "u" and place == 1 and gone % 2 == 0
    assert text.startswith(f"[{gone // 2} earlier calls of this turn and what came of them")
    assert [f'read {{"path": "file{n}"}}' in text for n in range(1, 11)] == [
        n <= gone // 2 for n in range(1, 11)
    ]
    assert after.items[1].message.starts_turn is False and after.turn == 1


def test_one_note_tells_of_all_calls_that_left_a_turn_one_time_after_another():
    """What an earlier note told is told by the next one, which takes its place; between the two it
    is the same to the letter, and stands where nothing before it has changed."""
    view = view_of([ASKED, *reading(10)])
    _, _, once = down_to(view, view.total - 700)
    first = tells(once)
    for seq, message in enumerate(reading(8, first=11), start=22):
        once.add(seq, message)
        assert tells(once) == first

    _, _, twice = down_to(once, once.total - 500, fill=0.2)

    place, text = tells(twice)
    assert place == first[0] == 1
    gone = [n for n in range(1, 19) if 2 * n not in shown(twice)]
    assert text.startswith(f"[{len(gone)} earlier calls")
    assert len(gone) > 8 and gone == list(range(1, len(gone) + 1))
    assert all(f'"file{n}"' in text for n in gone)


def test_of_very_many_calls_the_latest_are_told_and_all_are_counted():
    """A note takes a twentieth of the window at most."""
    view = view_of([ASKED, *reading(150), *reading(50, first=151, tool="look")])

    _, _, after = down_to(view, 2_000)

    place, text = tells(after)
    gone = [n for n in range(1, 201) if 2 * n not in shown(after)]
    assert text.startswith(f"[{len(gone)} earlier calls of this turn")
    assert f"read 150, look {len(gone) - 150}; the latest: " in text
    assert f'"file{gone[-1]}"' in text and '"file1"' not in text
    assert after.items[place].tokens <= situation_of(view).limit * 0.05


def test_a_note_about_calls_is_never_longer_than_they_were():
    """Where there is no room for the names of the tools, they are counted; where not for that, they
    go without a word."""
    small = [ASKED, *reading(3, answers=1)]
    view = view_of(small)

    _, left, after = down_to(view, 0)

    assert left == ["u", "a3", "r3"]
    assert after.total < view.total


def test_arguments_are_told_as_far_as_they_are_short():
    """A file that was written is not said once more."""
    call = ToolCall(
        id="c", name="write", arguments='{"path": "a",\n "text": "' + "x" * 5_000 + '"}'
    )
    wrote = [Message.assistant(None, [call], id="a"), Message.tool("Done.", "c", id="r")]
    view = view_of([ASKED, *wrote, *reading(4)])

    _, _, after = down_to(view, view.total - 1_000)

    _, text = tells(after)
    assert 'write {"path": "a", "text": "xxx' in text and len(text) < 200


def test_once_the_turn_has_left_nothing_is_said_of_its_calls():
    """The note of its turns stands for all of it."""
    view = view_of([*turn(1), *turn(2, answer=False), *reading(10)])
    _, _, after = down_to(view, view.total - 900)
    assert "earlier calls of this turn" in str([item.message.text for item in after.items])
    for seq, message in enumerate([Message.assistant("Done."), *turn(3), *turn(4)], start=100):
        after.add(seq, message)

    _, _, later = down_to(after, 400)

    texts = [item.message.text for item in later.items]
    assert (
        "[2 earlier turns not shown here.]" in texts or "[3 earlier turns not shown here.]" in texts
    )
    assert "earlier calls" not in str(texts)
    assert unpaired(later) == {}


@pytest.mark.parametrize("told", [None, 7, {}, {"counts": 7}, {"counts": {"a": "b"}, "latest": []}])
def test_a_note_that_another_program_wrote_is_taken_as_it_is(told):
    """Whatever stands where we keep the calls."""
    note = Message.user("[left out]", id="n", synthetic="folded", extra={"calls": told})
    view = view_of([ASKED, *reading(6)]).with_folds([Fold(first=2, last=3, replacement=note)])

    _, _, after = down_to(view, view.total - 300)

    assert "earlier calls of this turn" in tells(after)[1]
