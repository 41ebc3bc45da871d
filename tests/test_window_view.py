"""The view: what a model is shown of a log, with its folds applied.

Each sentence of the contract (holdfast/window/view.py) has its examples here; random logs are held
against an implementation that is slow and plain (`naive_view.py`), at every entry.
"""

import hashlib

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.codec import record
from holdfast.entries import Call, Fold, Mark, UnknownEntry
from holdfast.messages import Message, Role, ToolCall
from holdfast.notes import FOLDED_RESULT, UNANSWERED
from holdfast.parts import Image, Text
from holdfast.window import Group, Item, View
from holdfast.window.plan import runs
from holdfast.window.render import render
from naive_view import calls_of, naive_folds, naive_items, naive_pairs, naive_turn


def place(item):
    """What an item stands for."""
    return item.first, item.last, item.turn, item.fold


def count(message):
    """Any number that follows from the message will do; this one tells most of them apart."""
    return 4 + len(message.text or "") + 5 * len(message.tool_calls) + 3 * message.is_error


def view_of(log, **fields):
    view = View(count, **fields)
    for seq, entry in log:
        view.add(seq, entry)
    return view


def numbered(*entries):
    """A log without gaps."""
    return list(enumerate(entries, start=1))


def fold(first, last, text=None, **fields):
    """A fold, with a replacement that says `text`."""
    if text is not None:
        fields["replacement"] = Message.user(text, synthetic="summary")
    return Fold(first=first, last=last, **fields)


def user(text):
    return Message.user(text)


def model(text):
    return Message.assistant(text)


def asks(*ids, content=None, name="look"):
    calls = [ToolCall(id=id, name=name, arguments="{}") for id in ids]
    return Message.assistant(content, tool_calls=calls)


def gives(id, text="out", **fields):
    return Message.tool(text, id, **fields)


def outputs(*ids, role=Role.FUNCTION, content=None):
    """A message that lists results as calls with outputs, in the older style."""
    calls = [ToolCall(id=id, name="look", arguments="", output=f"out {id}") for id in ids]
    return Message(role, content, tool_calls=calls)


def texts(view):
    """What the items say."""
    return [item.message.text for item in view.items]


def sent(view):
    """What is sent, in short: words, `call a,b`, and `a=result`."""
    found = []
    for message in view.rendered().messages:
        if message.tool_calls:
            found.append("call " + ",".join(call.id for call in message.tool_calls))
        elif message.role is Role.TOOL:
            found.append(f"{message.tool_call_id}={message.text}")
        else:
            found.append(message.text)
    return found


def repairs(view):
    return [each.what for each in view.rendered().repairs]


TALK = [user("u1"), model("m1"), user("u2"), model("m2"), user("u3"), model("m3")]
PAIR = [user("u1"), asks("a"), gives("a"), model("m1")]


# A message is shown unless the latest fold over it hides it


def test_without_folds_all_messages_are_shown_as_they_are():
    """The very objects, each with its seq and its turn."""
    view = view_of(numbered(*TALK))

    assert all(item.message is said for item, said in zip(view.items, TALK, strict=True))
    assert [(item.first, item.last, item.turn, item.fold) for item in view.items] == [
        (seq, seq, turn, None) for seq, turn in enumerate((1, 1, 2, 2, 3, 3), start=1)
    ]
    assert [item.tokens for item in view.items] == [count(said) for said in TALK]
    assert (view.turn, len(view), view.folds) == (3, 6, ())


def test_nothing_is_shown_of_nothing():
    view = View(count)

    assert (view.items, view.groups(), view.total, view.tokens) == ((), (), 0, ())
    assert (view.turn, view.rendered().messages) == (0, ())


def test_entries_that_are_never_shown_change_nothing():
    """Receipts, marks, and what a newer version wrote."""
    view = view_of(numbered(*TALK[:2]))
    before = (view.items, view.rendered())

    view.add(3, Call(model="m"))
    view.add(4, Mark(what="interrupted"))
    view.add(5, UnknownEntry(kind="poem", raw=b'{"v":1,"poem":{}}'))

    assert (view.items, view.rendered()) == before


def test_folded_messages_are_not_shown():
    view = view_of([*numbered(*TALK), (7, fold(1, 4))])

    assert texts(view) == ["u3", "m3"]
    assert [item.turn for item in view.items] == [3, 3]


def test_the_latest_fold_decides():
    """Also where it says the opposite of an earlier one, and that of one before."""
    log = numbered(*TALK)
    folds = [fold(1, 4), fold(3, 4, is_open=True), fold(4, 4)]

    seen = [texts(view_of(log).with_folds(folds[:at])) for at in range(4)]

    assert seen == [
        ["u1", "m1", "u2", "m2", "u3", "m3"],
        ["u3", "m3"],
        ["u2", "m2", "u3", "m3"],
        ["u2", "u3", "m3"],
    ]


def test_a_system_message_is_a_message_like_any_other():
    """A view hides nothing on its own account, and keeps nothing: that is for policies."""
    said = [Message.system("Be brief."), *TALK[:2]]

    assert texts(view_of(numbered(*said))) == ["Be brief.", "u1", "m1"]
    assert texts(view_of([*numbered(*said), (4, fold(1, 2))])) == ["m1"]


def test_a_fold_reaches_messages_that_come_later():
    """Its range is of seqs: what is added inside of it is hidden when it comes."""
    view = view_of([(1, user("u1")), (2, fold(3, 5, "gone"))])
    assert texts(view) == ["u1"]

    view.add(4, user("u2"))
    view.add(5, user("u3"))
    view.add(6, user("u4"))

    assert texts(view) == ["u1", "gone", "u4"]
    assert [item.turn for item in view.items] == [1, 2, 4]


@pytest.mark.parametrize("seq", [1, 3, 6, 9])
def test_it_does_not_matter_where_in_the_log_a_fold_stands(seq):
    """Before what it folds, among it, or behind it."""
    said = [(2, user("u1")), (4, model("m1")), (5, user("u2")), (7, model("m2")), (8, user("u3"))]
    log = sorted([*said, (seq, fold(2, 5, "so far"))], key=lambda each: each[0])

    assert texts(view_of(log)) == ["so far", "m2", "u3"]


# Replacements


def test_a_replacement_stands_in_the_place_of_the_first_message():
    made = fold(2, 4, "in short")
    view = view_of([*numbered(*TALK), (7, made)])

    assert texts(view) == ["u1", "in short", "u3", "m3"]
    assert view.items[1] == Item(made.replacement, count(made.replacement), 2, 4, 1, made)
    assert view.folds == (made,)


def test_a_fold_of_a_fold_takes_its_place():
    """One that a later one covers whole says nothing any more."""
    log = [*numbered(*TALK), (7, fold(1, 2, "first")), (8, fold(1, 4, "both"))]
    view = view_of(log)

    assert texts(view) == ["both", "u3", "m3"]
    assert [each.replacement.text for each in view.folds] == ["both"]


def test_the_same_range_again_replaces_the_replacement():
    log = [*numbered(*TALK), (7, fold(1, 4, "draft")), (8, fold(1, 4, "better"))]

    assert texts(view_of(log)) == ["better", "u3", "m3"]


def test_a_fold_that_is_covered_in_part_still_shows_its_replacement():
    log = [*numbered(*TALK), (7, fold(1, 4, "early")), (8, fold(3, 6, "late"))]
    view = view_of(log)

    assert texts(view) == ["early", "late"]
    assert [(item.first, item.last, item.turn) for item in view.items] == [(1, 4, 1), (3, 6, 2)]


def test_a_fold_inside_another_is_shown_beside_it():
    log = [*numbered(*TALK), (7, fold(1, 6, "all")), (8, fold(3, 4, "the middle"))]

    assert texts(view_of(log)) == ["all", "the middle"]


def test_two_folds_that_cover_a_third_between_them_do_not_silence_it():
    """Only one that covers it whole does."""
    log = [*numbered(*TALK), (7, fold(2, 5, "x")), (8, fold(1, 3, "l")), (9, fold(4, 6, "r"))]

    assert texts(view_of(log)) == ["l", "x", "r"]


def test_replacements_of_the_same_place_stand_as_their_folds_begin_then_as_they_were_made():
    said = [(5, user("u1")), (6, model("m1")), (7, user("u2"))]
    log = [*said, (8, fold(5, 7, "b")), (9, fold(5, 6, "c")), (10, fold(2, 5, "a"))]

    assert texts(view_of(log)) == ["a", "b", "c"]


# Open folds


def test_an_open_fold_shows_what_earlier_ones_hid():
    """Opened whole, the earlier one says nothing any more."""
    log = [*numbered(*TALK), (7, fold(1, 4, "gone")), (8, fold(1, 4, is_open=True))]

    assert texts(view_of(log)) == [said.text for said in TALK]


def test_a_fold_that_is_opened_in_part_still_shows_its_replacement():
    log = [*numbered(*TALK), (7, fold(1, 4, "gone")), (8, fold(3, 3, is_open=True))]
    view = view_of(log)

    assert texts(view) == ["gone", "u2", "u3", "m3"]
    assert [item.first for item in view.items] == [1, 3, 5, 6]


def test_what_was_opened_can_be_folded_again():
    log = [*numbered(*TALK), (7, fold(1, 4)), (8, fold(1, 6, is_open=True)), (9, fold(1, 2, "x"))]

    assert texts(view_of(log)) == ["x", "u2", "m2", "u3", "m3"]


def test_an_open_fold_over_nothing_folded_changes_nothing():
    log = [*numbered(*TALK), (7, fold(1, 6, is_open=True))]

    assert texts(view_of(log)) == [said.text for said in TALK]


# Other branches


def test_a_fold_may_cover_seqs_of_other_branches():
    """Seqs are counted over all branches: the messages of this one stand in gaps."""
    said = [(2, user("u1")), (5, model("m1")), (9, user("u2")), (10, model("m2"))]

    view = view_of([*said, (12, fold(1, 7, "in short"))])

    assert texts(view) == ["in short", "u2", "m2"]
    assert (view.items[0].first, view.items[0].last, view.items[0].turn) == (1, 7, 1)


@pytest.mark.parametrize(("first", "last"), [(1, 1), (3, 4), (6, 8), (11, 90)])
def test_a_fold_over_nothing_that_is_there_shows_nothing(first, last):
    """It has no place to stand in."""
    said = [(2, user("u1")), (5, model("m1")), (9, user("u2")), (10, model("m2"))]

    view = view_of([*said, (12, fold(first, last, "of another branch"))])

    assert texts(view) == ["u1", "m1", "u2", "m2"]


# Turns


def test_turns_count_from_one_and_zero_is_what_stands_before():
    said = [Message.system("Be brief."), model("Hello."), user("u1"), model("m1"), user("u2")]

    view = view_of(numbered(*said))

    assert [item.turn for item in view.items] == [0, 0, 1, 1, 2]
    assert view.groups() == (
        Group(0, 0, 2, count(said[0]) + count(said[1])),
        Group(1, 2, 4, count(said[2]) + count(said[3])),
        Group(2, 4, 5, count(said[4])),
    )


def test_a_view_of_a_tail_counts_on_from_the_turns_before_it():
    """What stands before its first turn belongs to the one that began before."""
    view = view_of(numbered(model("m7"), user("u8"), model("m8")), turns=7)

    assert [item.turn for item in view.items] == [7, 8, 8]
    assert view.turn == 8
    assert view.with_folds([fold(1, 1)]).turn == 8
    assert [item.turn for item in view.with_folds([fold(1, 1, "x")]).items] == [7, 8, 8]


def test_results_and_synthetic_messages_begin_no_turn():
    said = [
        user("u1"),
        asks("a"),
        Message(Role.USER, "out", tool_call_id="a"),
        Message.user("Go on.", synthetic="nudge"),
        user("u2"),
    ]

    assert [item.turn for item in view_of(numbered(*said)).items] == [1, 1, 1, 1, 2]


def test_a_folded_turn_is_still_counted():
    view = view_of([*numbered(*TALK), (7, fold(1, 4))])

    assert [(group.turn, group.start, group.stop) for group in view.groups()] == [(3, 0, 2)]
    assert view.turn == 3


# A call and its results go together


def test_a_result_whose_call_is_hidden_is_hidden_too():
    view = view_of([*numbered(*PAIR), (5, fold(2, 2))])

    assert texts(view) == ["u1", "m1"]
    assert repairs(view) == []


def test_a_result_that_comes_when_its_call_is_folded_is_hidden():
    log = [(1, user("u1")), (2, asks("a")), (3, fold(2, 2)), (4, gives("a")), (5, model("m1"))]

    view = view_of(log)

    assert texts(view) == ["u1", "m1"]


def test_a_result_that_is_hidden_leaves_a_note():
    """The model does not take the call for one that failed."""
    result = gives("a", name="look", is_error=True)
    view = view_of([*numbered(user("u1"), asks("a"), result), (4, fold(3, 3))])

    note = view.items[-1].message
    assert sent(view) == ["u1", "call a", f"a={FOLDED_RESULT}"]
    assert (note.synthetic, note.is_error, note.name) == ("folded", True, "look")
    assert place(view.items[-1]) == (3, 3, 1, None)
    assert repairs(view) == []


def test_a_call_that_has_no_result_is_one_that_was_cut_off():
    """There is nothing that could be hidden."""
    view = view_of(numbered(user("u1"), asks("a")))

    assert sent(view) == ["u1", "call a", f"a={UNANSWERED}"]
    assert len(view) == 2


def test_of_several_results_the_hidden_ones_leave_notes():
    said = [user("u1"), asks("a", "b", "c"), gives("a"), gives("b"), gives("c"), model("m1")]

    view = view_of([*numbered(*said), (7, fold(4, 5, "shorter"))])

    assert sent(view) == [
        *("u1", "call a,b,c", "a=out", f"b={FOLDED_RESULT}", f"c={FOLDED_RESULT}"),
        *("shorter", "m1"),
    ]
    assert [(item.first, item.last) for item in view.items[3:6]] == [(4, 5), (4, 4), (5, 5)]


def test_a_pair_that_is_folded_whole_leaves_nothing():
    view = view_of([*numbered(*PAIR), (5, fold(2, 3))])

    assert sent(view) == ["u1", "m1"]


def test_a_late_result_goes_to_the_place_that_is_kept_for_it():
    said = [user("u1"), asks("a", "b"), gives("b"), user("u2")]
    view = view_of(numbered(*said))
    before = view.rendered().messages

    view.add(9, gives("a", "late"))

    after = view.rendered().messages
    assert sent(view) == ["u1", "call a,b", "a=late", "b=out", "u2"]
    assert [at for at in range(5) if before[at] is not after[at]] == [2]


def test_a_folded_late_result_leaves_its_note_behind_its_call():
    said = [user("u1"), asks("a"), user("u2"), gives("a", "late"), model("m2")]

    view = view_of([*numbered(*said), (6, fold(4, 5))])

    assert sent(view) == ["u1", "call a", f"a={FOLDED_RESULT}", "u2"]


def test_a_result_goes_with_the_latest_call_of_its_id():
    """Some services count calls from 1 in every answer."""
    said = [user("u1"), asks("a"), gives("a", "one"), user("u2"), asks("a"), gives("a", "two")]
    log = numbered(*said)

    assert texts(view_of([*log, (7, fold(2, 2))])) == ["u1", "u2", None, "two"]
    assert texts(view_of([*log, (7, fold(5, 5))])) == ["u1", None, "one", "u2"]


def test_a_second_result_is_hidden_with_the_call_of_the_first():
    said = [user("u1"), asks("a"), gives("a"), gives("a", "again"), model("m1")]

    assert texts(view_of([*numbered(*said), (6, fold(2, 3))])) == ["u1", "m1"]


def test_a_second_result_that_is_hidden_is_not_missed():
    """Its call has its result: there is no place in which a note could stand."""
    said = [user("u1"), asks("a"), gives("a"), gives("a", "again"), model("m1")]

    view = view_of([*numbered(*said), (6, fold(4, 4))])

    assert sent(view) == ["u1", "call a", "a=out", "m1"]
    assert repairs(view) == []


def test_a_result_without_a_call_is_hidden_by_folds_alone():
    """And leaves no note, as there is no call that would miss it."""
    log = numbered(user("u1"), gives("x"), model("m1"))

    assert texts(view_of([*log, (4, fold(1, 1))])) == ["out", "m1"]
    assert texts(view_of([*log, (4, fold(2, 2))])) == ["u1", "m1"]


def test_a_result_before_its_call_is_none_of_it():
    log = numbered(user("u1"), gives("a", "early"), asks("a"), model("m1"))

    assert texts(view_of([*log, (5, fold(3, 3))])) == ["u1", "early", "m1"]


# The older shapes of results


def test_results_without_ids_go_by_name():
    """They are hidden with their calls, and never taken for those of another."""
    said = [
        *(user("u1"), asks("a"), user("u2"), asks("b")),
        *(Message(Role.FUNCTION, "out", name="look"), model("m2")),
    ]
    log = numbered(*said)

    assert sent(view_of([*log, (7, fold(5, 5))])) == [
        *("u1", "call a", f"a={UNANSWERED}", "u2", "call b", f"b={FOLDED_RESULT}", "m2"),
    ]
    assert sent(view_of([*log, (7, fold(4, 4))])) == [
        *("u1", "call a", f"a={UNANSWERED}", "u2", "m2"),
    ]


@pytest.mark.parametrize("role", [Role.FUNCTION, Role.TOOL, Role.USER, Role.ASSISTANT, Role.MODEL])
def test_results_that_are_listed_as_calls_go_with_their_calls(role):
    said = [user("u1"), asks("a", "b"), outputs("a", "b", role=role), model("m1")]
    log = numbered(*said)

    assert sent(view_of(log)) == ["u1", "call a,b", "a=out a", "b=out b", "m1"]
    assert sent(view_of([*log, (5, fold(2, 2))])) == ["u1", "m1"]
    assert sent(view_of([*log, (5, fold(3, 3))])) == [
        *("u1", "call a,b", f"a={FOLDED_RESULT}", f"b={FOLDED_RESULT}", "m1"),
    ]


def test_a_list_of_results_is_shown_while_any_of_their_calls_is():
    """The result of the other is shown as words, as it would be without its call."""
    said = [user("u1"), asks("a"), asks("b"), outputs("a", "b"), model("m1")]
    log = numbered(*said)

    assert [item.first for item in view_of([*log, (6, fold(2, 2))]).items] == [1, 3, 4, 5]
    assert sent(view_of([*log, (6, fold(2, 3))])) == ["u1", "m1"]


def test_a_folded_list_of_results_leaves_notes_for_the_calls_that_are_shown():
    said = [user("u1"), asks("a"), asks("b"), outputs("a", "b"), model("m1")]

    view = view_of([*numbered(*said), (6, fold(2, 2)), (7, fold(4, 4))])

    assert sent(view) == ["u1", "call b", f"b={FOLDED_RESULT}", "m1"]


def test_words_beside_results_are_not_hidden_with_a_call():
    """A user's own words in the message that holds the results are no result."""
    both = outputs("a", role=Role.USER, content="and hurry")
    view = view_of([*numbered(user("u1"), asks("a"), both), (4, fold(2, 2))])

    assert sent(view)[-1] == "and hurry"


def test_a_system_message_that_names_a_call_is_no_result():
    said = [user("u1"), asks("a"), Message(Role.SYSTEM, "rule", tool_call_id="a")]

    assert texts(view_of([*numbered(*said), (4, fold(2, 2))])) == ["u1", "rule"]


# Replacements that carry calls and results


def test_a_result_in_the_place_of_a_result_is_its_answer():
    """As a long result is shortened: there is no note beside it."""
    shorter = Fold(first=3, last=3, replacement=gives("a", "o..."))

    view = view_of([*numbered(*PAIR), (5, shorter)])

    assert sent(view) == ["u1", "call a", "a=o...", "m1"]
    assert repairs(view) == []


def test_results_in_the_place_of_results_answer_those_that_they_name():
    said = [user("u1"), asks("a", "b"), gives("a"), gives("b")]
    shorter = Fold(first=3, last=4, replacement=outputs("b"))

    view = view_of([*numbered(*said), (5, shorter)])

    assert sent(view) == ["u1", "call a,b", f"a={FOLDED_RESULT}", "b=out b"]


def test_a_result_whose_call_stands_in_a_replacement_is_shown():
    shorter = Fold(first=2, last=2, replacement=asks("a", content="shorter"))

    view = view_of([*numbered(*PAIR), (5, shorter)])

    assert sent(view) == ["u1", "call a", "a=out", "m1"]
    assert repairs(view) == []


def test_a_result_that_comes_when_its_call_stands_in_a_replacement_is_shown():
    """Whenever it comes, the view is the same."""
    shorter = Fold(first=2, last=2, replacement=asks("a", content="shorter"))
    log = [(1, user("u1")), (2, asks("a")), (3, shorter), (4, gives("a")), (5, model("m1"))]

    assert sent(view_of(log)) == ["u1", "call a", "a=out", "m1"]


@pytest.mark.parametrize("last", [2, 3])
def test_a_hidden_result_leaves_a_note_for_a_call_in_a_replacement(last):
    """Whether the same fold hides it, or another."""
    shorter = Fold(first=2, last=last, replacement=asks("a", content="shorter"))

    view = view_of([*numbered(*PAIR), (5, fold(3, 3)), (6, shorter)])

    assert sent(view) == ["u1", "call a", f"a={FOLDED_RESULT}", "m1"]


def test_a_call_in_a_replacement_that_is_not_shown_keeps_no_result():
    """A fold over nothing that is there carries nothing."""
    elsewhere = Fold(first=90, last=91, replacement=asks("a"))

    view = view_of([*numbered(*PAIR), (5, elsewhere), (6, fold(2, 2))])

    assert sent(view) == ["u1", "m1"]


# What can be folded without hiding anything else


def folding_runs(view, chosen):
    """The view without the chosen items, as far as they can go."""
    gone = [view.items[start:stop] for start, stop in runs(view.items, chosen)]
    return view.with_folds(fold(items[0].first, max(item.last for item in items)) for items in gone)


def test_items_side_by_side_are_folded_at_once():
    view = view_of(numbered(*TALK))

    assert runs(view.items, (4, 1, 2, 2)) == [(1, 3), (4, 5)]
    assert texts(folding_runs(view, (1, 2, 4))) == ["u1", "m2", "m3"]


def test_a_fold_with_something_open_in_it_stays():
    """To fold it would hide what is shown in between."""
    log = [*numbered(*TALK), (7, fold(1, 4, "gone")), (8, fold(3, 3, is_open=True))]

    assert texts(folding_runs(view_of(log), (0, 2))) == ["gone", "u2", "m3"]


def test_folds_that_overlap_do_not_hide_each_other():
    """Two that are folded at once would cover the one that reaches from the one to the other."""
    log = [*numbered(*TALK), (7, fold(1, 4, "a")), (8, fold(1, 2, "b")), (9, fold(4, 5, "c"))]

    assert texts(view_of(log)) == ["a", "b", "c", "m3"]
    assert texts(folding_runs(view_of(log), (1, 2))) == ["a", "m3"]


# with_folds


def test_a_view_with_folds_is_another_view():
    view = view_of(numbered(*TALK))
    before = (view.items, view.folds, view.rendered())

    other = view.with_folds([fold(1, 4, "x")])

    assert texts(other) == ["x", "u3", "m3"]
    assert (view.items, view.folds, view.rendered()) == before


def test_folds_that_are_tried_are_later_than_those_that_are_there():
    """Also than those that stand behind the last message."""
    log = [*numbered(*TALK), (7, Mark(what="x")), (8, fold(1, 2, "old")), (9, fold(2, 6, "older"))]

    view = view_of(log).with_folds([fold(2, 4, is_open=True)])

    assert texts(view) == ["old", "older", "m1", "u2", "m2"]


def test_a_view_with_folds_grows_like_any_other():
    view = view_of(numbered(*PAIR)).with_folds([fold(2, 2)])

    view.add(5, gives("a", "late"))
    view.add(6, user("u2"))

    assert texts(view) == ["u1", "m1", "u2"]
    assert view.turn == 2


# Counts


def test_tokens_are_those_of_what_is_sent():
    """Also of what rendering adds: here the results that say that there is none."""
    view = view_of(numbered(user("u1"), asks("a", "b")))

    messages = view.rendered().messages
    assert len(messages) == 4
    assert view.tokens == tuple(count(message) for message in messages)
    assert view.total == sum(view.tokens)


def test_a_hash_is_over_what_is_sent():
    """Also when it was taken before a late result came into a place that had been hashed."""
    log = [*numbered(user("u1"), asks("a"), user("u2")), (9, gives("a", "late"))]
    view = view_of(log[:3])
    early = view.hashed(record).digest()

    view.add(*log[3])

    assert view.hashed(record).digest() == view_of(log).hashed(record).digest() != early


# Anything


IDS = st.sampled_from(["a", "b", "c", ""])
NAMES = st.sampled_from(["look", "hear"])
ANSWERED = [None, None, None, "", "out"]
TOOL_CALLS = st.builds(
    ToolCall,
    id=IDS,
    name=NAMES,
    arguments=st.sampled_from(["{}", "{}", ""]),
    output=st.sampled_from(ANSWERED),
    is_error=st.booleans(),
)
CONTENTS = st.sampled_from([None, "", "w1", "w2", (Text("w3"), Image(url="https://a.b/c.png"))])
ODD_MESSAGES = st.builds(
    Message,
    st.sampled_from(Role),
    CONTENTS,
    tool_calls=st.lists(TOOL_CALLS, max_size=2),
    tool_call_id=st.none() | IDS,
    name=st.none() | NAMES,
    synthetic=st.sampled_from([None, None, "nudge"]),
)
MESSAGES = st.one_of(
    st.sampled_from(["u1", "u2"]).map(user),
    st.sampled_from(["m1", "m2"]).map(model),
    st.lists(IDS, min_size=1, max_size=3, unique=True).map(lambda ids: asks(*ids)),
    st.lists(IDS, min_size=1, max_size=2, unique=True).map(lambda ids: asks(*ids, name="hear")),
    IDS.map(gives),
    IDS.map(lambda id: gives(id, "again")),
    st.lists(IDS, min_size=1, max_size=2).map(lambda ids: outputs(*ids)),
    st.builds(Message, st.just(Role.FUNCTION), st.just("out"), name=st.none() | NAMES),
    ODD_MESSAGES,
)


REPLACEMENTS = st.none() | st.just(user("fold")) | MESSAGES


@st.composite
def folds(draw, seq_max, replacements=REPLACEMENTS):
    ends = draw(st.tuples(st.integers(1, seq_max), st.integers(1, seq_max)))
    replacement = draw(replacements)
    is_open = draw(st.integers(0, 5)) == 0
    return Fold(
        first=min(ends),
        last=max(ends),
        replacement=None if is_open else replacement,
        is_open=is_open,
    )


@st.composite
def logs(draw, entries_max=14, **fields):
    """Entries with their seqs, among which there are gaps."""
    log, seq = [], 0
    for kind in draw(st.lists(st.integers(0, 9), max_size=entries_max)):
        seq += draw(st.sampled_from([1, 1, 1, 2, 4]))
        if kind == 0:
            entry = Mark(what="x")
        else:
            entry = draw(MESSAGES if kind < 7 else folds(seq + 4, **fields))
        log.append((seq, entry))
    return log


def hash_of(messages):
    hashed = hashlib.sha256()
    for message in messages:
        hashed.update(hashlib.sha256(record(message)).digest())
    return hashed.digest()


def bare(items):
    return [(item.message, item.first, item.last, item.turn, item.fold) for item in items]


@pytest.mark.usefixtures("uncovered")
@settings(max_examples=600)
@given(logs(), st.sampled_from([0, 3]))
def test_a_view_is_what_the_contract_says_at_every_entry(log, turns):
    """And does not depend on when it was looked at."""
    view = View(count, turns=turns)

    for at, (seq, entry) in enumerate(log, start=1):
        view.add(seq, entry)

        shown = naive_items(log[:at], turns=turns)
        assert bare(view.items) == shown
        assert [item.tokens for item in view.items] == [count(each.message) for each in shown]
        assert list(view.folds) == naive_folds(log[:at])
        assert (view.turn, len(view)) == (naive_turn(log[:at], turns=turns), len(shown))
        assert view.rendered() == render(each.message for each in shown)
        assert view.hashed(record).digest() == hash_of(view.rendered().messages)
    fresh = view_of(log, turns=turns)
    assert (fresh.items, fresh.folds, fresh.rendered()) == (view.items, view.folds, view.rendered())


@pytest.mark.usefixtures("uncovered")
@settings(max_examples=300)
@given(logs())
def test_tokens_are_counted_as_they_are_sent(log):
    view = View(count)

    for seq, entry in log:
        view.add(seq, entry)

        messages = view.rendered().messages
        assert view.tokens == tuple(count(message) for message in messages)
        assert view.total == sum(view.tokens)


@pytest.mark.usefixtures("uncovered")
@settings(max_examples=300)
@given(logs(), st.lists(folds(40), max_size=4), logs(4))
def test_trying_folds_is_the_same_as_adding_them(log, tried, more):
    """And the view grows on from there in the same way."""
    view = view_of(log)
    before = (view.items, view.folds, view.rendered())

    other = view.with_folds(tried)

    top = log[-1][0] if log else 0
    longer = [*log, *enumerate(tried, start=top + 1)]
    assert bare(other.items) == naive_items(longer)
    assert (list(other.folds), other.turn) == (naive_folds(longer), naive_turn(longer))
    assert other.rendered() == view_of(longer).rendered()
    assert (view.items, view.folds, view.rendered()) == before
    for seq, entry in more:
        longer.append((top + len(tried) + seq, entry))
        other.add(*longer[-1])
        assert bare(other.items) == naive_items(longer)


@pytest.mark.usefixtures("uncovered")
@settings(max_examples=300)
@given(logs())
@example(numbered(user("u1"), asks("a"), user("u2"), gives("a"), user("u3")))
def test_what_was_sent_stays_the_same_without_a_fold(log):
    """The very objects in the same places, but for results in the places kept for them."""
    view = View(count)
    folded_to = 0
    for seq, entry in log:
        before = view.rendered().messages

        view.add(seq, entry)

        after = view.rendered().messages
        if type(entry) is Fold:
            folded_to = max(folded_to, entry.last)
            continue
        assert len(after) >= len(before)
        for old, new in zip(before, after, strict=False):
            is_answer = (
                old.synthetic == "unanswered" != new.synthetic
                and new.role is Role.TOOL
                and new.tool_call_id == old.tool_call_id
            )
            # Inside of a fold that was there first, all is shown anew: the same, if other objects.
            assert is_answer or (new is old if seq > folded_to else new == old)


@pytest.mark.usefixtures("uncovered")
@settings(max_examples=300)
@given(logs(), st.sampled_from([0, 3]))
def test_groups_are_the_items_by_turns(log, turns):
    """Each item in one group, in order, and no turn twice."""
    view = view_of(log, turns=turns)

    groups = view.groups()

    assert [at for group in groups for at in range(group.start, group.stop)] == list(
        range(len(view))
    )
    for group in groups:
        items = view.items[group.start : group.stop]
        assert {item.turn for item in items} == {group.turn}
        assert group.tokens == sum(item.tokens for item in items)
    assert [group.turn for group in groups] == sorted({group.turn for group in groups})


@pytest.mark.usefixtures("uncovered")
@settings(max_examples=300)
@given(logs(replacements=st.none()))
def test_no_call_that_has_its_result_in_the_log_is_said_to_be_cut_off(log):
    """Whatever is folded: what is shown of it is the result, or the note that it is not shown."""
    unfolded = render(entry for _, entry in log if type(entry) is Message).repairs
    cut_off = {(each.message_id, each.call_id) for each in unfolded if each.what == "unanswered"}

    repairs = view_of(log).rendered().repairs

    found = {(each.message_id, each.call_id) for each in repairs if each.what == "unanswered"}
    is_renamed = any(each.what == "renamed" for each in unfolded)  # to what depends on the folds
    assert is_renamed or found <= cut_off


TALKS = st.lists(st.sampled_from([user("u1"), model("m1")]), min_size=4, max_size=6)
SHORT_FOLDS = folds(6, st.sampled_from(["x", "y"]).map(user))


@pytest.mark.usefixtures("uncovered")
@settings(max_examples=600)
@given(TALKS, st.lists(SHORT_FOLDS, max_size=5), st.sets(st.integers(0, 5), max_size=3))
def test_nothing_is_hidden_that_was_not_chosen(said, made, kept):
    """Whatever the folds are that are there already."""
    view = view_of(numbered(*said)).with_folds(made)

    after = folding_runs(view, set(range(len(view))) - kept)

    shown = [place(item) for item in after.items]
    assert all(place(item) in shown for at, item in enumerate(view.items) if at in kept)


@pytest.mark.usefixtures("uncovered")
@settings(max_examples=300)
@given(logs())
def test_partners_are_calls_and_their_results(log):
    """Of the log, whether they are shown or not."""
    view = view_of(log)
    said = {seq: entry for seq, entry in log if type(entry) is Message}
    pairs = naive_pairs(log)

    partners = {seq: set(view.partners.get(seq, ())) for seq in said}

    assert partners == {
        seq: {b for a, b in pairs if a == seq} | {a for a, b in pairs if b == seq} for seq in said
    }
    cut_off = {each.message_id for each in render(said.values()).repairs if is_cut_off(each)}
    for seq, message in said.items():
        assert view.is_answered(seq) == bool(calls_of(message) and message.id not in cut_off)


def is_cut_off(repair):
    return repair.what == "unanswered"
