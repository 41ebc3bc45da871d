"""Observe: messages become observations, observations a reflection, reflections one."""

from datetime import UTC, datetime

import pytest

from holdfast.entries import Fold
from holdfast.errors import InvalidInput
from holdfast.messages import Message, Role
from holdfast.notes import folded as note
from holdfast.notes import summarized
from holdfast.window.fit import fitting
from holdfast.window.observe import MESSAGE, OBSERVATION, REFLECTION, Observe, kind_of
from holdfast.window.plan import apply
from holdfast.window.transcript import transcript
from window_cases import count, ids, situation_of, turn, turns, unpaired, view_of, words

ROOMY = 100_000
SHORT = ["- 2026-02-01: Ada asked for boats."]
FRAME = count(summarized(""))


def behind(view, limit=ROOMY, **fields):
    """The situation behind a turn, in a window with much room."""
    return situation_of(view, limit=limit, trigger="after", **fields)


def said(tokens):
    """A request, an answer that makes `tokens` before the current turn, and that turn."""
    answer = Message.assistant(words(tokens - 4, "a"), id="a1")
    return [Message.user("Hi.", id="u1"), answer, *turn(2, tokens=1)]


def remembered(*kinds, tokens=100, last=20):
    """A log of which each turn but the first and the current one was folded to one of `kinds`."""
    view = view_of(turns(len(kinds) + 2, tokens=last))
    for place, kind in enumerate(kinds):
        text = summarized(words(tokens - FRAME, "s"))
        assert count(text) == tokens
        first = 3 + 2 * place
        whole = text.replace(id=f"{kind[0]}{place}")
        fold = Fold(first=first, last=first + 1, replacement=whole, by="observe", why=kind)
        view = view.with_folds([fold])
    return view


def steps(plan):
    """What is made, of how many, and from which seq to which."""
    return [(step.why, step.first, step.last) for step in plan.steps]


def carried_out(plan, view, text=SHORT[0]):
    return view.with_folds(apply(plan, [text] * len(plan.to_summarize)))


def kinds(view):
    return [kind_of(item) for item in view.items if item.fold is not None]


# What is observed


@pytest.mark.parametrize(("tokens", "is_due"), [(999, False), (1_000, True), (1_001, True)])
def test_messages_are_observed_from_a_thousand_tokens_on(tokens, is_due):
    """S1-58: what is not observed yet before the current turn, to the token."""
    view = view_of(said(tokens))

    plan = Observe().plan(view, behind(view))

    assert steps(plan) == ([(OBSERVATION, 2, 2)] if is_due else [])


def test_all_tokens_are_those_of_the_model():
    """A model that has twice as many for the same text is observed as early."""
    view = view_of(said(500))

    assert Observe().plan(view, behind(view, scale=2.0))
    assert not Observe().plan(view, behind(view, scale=1.99))


def test_what_was_observed_does_not_count_again():
    """S1-58: the next observation is of the next thousand tokens."""
    view = view_of(said(1_000))
    view = carried_out(Observe().plan(view, behind(view)), view)
    for seq, message in enumerate([*turn(3, tokens=247), *turn(4, tokens=1)], start=20):
        view.add(seq, message)

    # The second turn had 10 tokens, the third 502.
    assert not Observe(message_tokens=513).plan(view, behind(view))
    plan = Observe(message_tokens=512).plan(view, behind(view))
    assert steps(plan) == [(OBSERVATION, 3, 21)]


def test_a_call_goes_with_its_results_and_the_current_turn_stays_whole():
    """S1-58: whole turns, whatever is in them."""
    view = view_of(turns(4, calls=2))

    plan = Observe().plan(view, behind(view))
    after = carried_out(plan, view)

    assert not unpaired(after)
    (step,) = plan.steps
    assert [message.id for message in step.messages][:3] == ["a1.1", "r1.1", "a1.2"]
    assert step.messages[-1].id == "a3"
    assert ids(after)[0] == "u1"
    assert ids(after)[2:] == [message.id for message in turn(4, calls=2)]


def test_a_call_stays_if_something_that_stays_is_before_its_result():
    """S1-58: pairs go together or not at all, and the rest of the turn is observed."""
    call, result, *rest = turn(2, calls=1, tokens=600)[1:]
    talk = [*turn(1), Message.user(words(600), id="u2"), call]
    talk += [Message.system("Mind the gap.", id="s"), result, *rest, *turn(3)]
    view = view_of(talk)

    plan = Observe(message_tokens=500).plan(view, behind(view))
    after = carried_out(plan, view)

    assert not unpaired(after)
    assert steps(plan) == [(OBSERVATION, 2, 3), (OBSERVATION, 7, 7)]
    assert ids(after)[2:5] == ["a2.1", "s", "r2.1"]


def test_the_system_the_first_request_and_pinned_turns_stay_as_they_are():
    """What `keep.py` locks; between it each stretch is observed by itself."""
    said = [Message.system("You help.", id="s"), *turns(9, tokens=300)]
    view = view_of(said)

    plan = Observe().plan(view, behind(view, pinned=(4,)))
    after = carried_out(plan, view)

    assert steps(plan) == [(OBSERVATION, 3, 7), (OBSERVATION, 10, 17)]
    assert {"s", "u1", "u4", "a4", "u9", "a9"} <= set(ids(after))


def test_a_stretch_that_is_too_short_by_itself_waits():
    """An observation is of what stands side by side: nothing is put together over what stays."""
    view = view_of(turns(6, tokens=200))

    assert not Observe().plan(view, behind(view, pinned=(3,)))
    assert Observe(message_tokens=600).plan(view, behind(view, pinned=(3,)))


def test_an_observation_is_made_of_nothing_but_what_it_stands_for():
    """Or else it would have words of a message that was erased elsewhere."""
    view = view_of(turns(12, tokens=300, calls=1))

    plan = Observe().plan(view, behind(view, pinned=(3, 7)))

    ids_of = {item.first: item.message.id for item in view.items}
    assert len(plan.steps) == 3
    for step in plan.steps:
        covered = [ids_of[seq] for seq in range(step.first, step.last + 1)]
        assert [message.id for message in step.messages] == covered


def test_the_latest_turns_are_kept_if_somebody_wants_it():
    view = view_of(turns(6, tokens=600, calls=2))

    plan = Observe(keep_turns=3).plan(view, behind(view))

    assert steps(plan) == [(OBSERVATION, 2, 18)]
    assert Observe(keep_turns=0).plan(view, behind(view)).steps[-1].last == 30


def test_the_writer_is_told_when_it_was_said():
    """An observation is dated: transcripts are not."""
    day = datetime(2026, 2, 1, 12, tzinfo=UTC)
    talk = [m.replace(timestamp=day.replace(hour=hour)) for hour, m in enumerate(turns(9))]
    view = view_of(talk)

    (step,) = Observe().plan(view, behind(view)).to_summarize

    assert "from 2026-02-01 01:00 UTC to 2026-02-01 15:00 UTC" in step.task
    assert "{words}" in step.task


# When


@pytest.mark.parametrize(
    ("fields", "is_observed"),
    [
        ({"trigger": "after"}, True),
        ({"trigger": "before"}, False),  # who waits for an answer waits for no observation
        ({"trigger": "before", "fill": 0.81}, True),
        ({"trigger": "before", "fill": 0.99}, True),
        ({"trigger": "manual"}, True),
        ({"trigger": "overflow"}, True),
    ],
    ids=str,
)
def test_it_is_looked_at_behind_a_turn_or_when_the_window_is_full(fields, is_observed):
    view = view_of(turns(8, tokens=200))
    given = {"limit": ROOMY} if "fill" not in fields else {}

    assert bool(Observe().plan(view, situation_of(view, **given, **fields))) is is_observed


@pytest.mark.parametrize("trigger", ["manual", "overflow"])
def test_what_is_asked_for_is_done_however_little_there_is(trigger):
    view = view_of(turns(5, tokens=40))

    assert not Observe().plan(view, behind(view))
    assert Observe().plan(view, situation_of(view, limit=ROOMY, trigger=trigger))


@pytest.mark.parametrize(("tokens", "is_due"), [(8_000, False), (8_001, True)])
def test_what_is_before_the_current_turn_has_eight_thousand_tokens(tokens, is_due):
    """S1-58: before a call, too; the first request is locked and not counted."""
    view = view_of(said(tokens))

    plan = Observe().plan(view, situation_of(view, limit=ROOMY))

    assert steps(plan) == ([(OBSERVATION, 2, 2)] if is_due else [])


def test_a_long_turn_that_is_running_makes_nothing_go():
    """Whether that fits is for the model's window to say."""
    view = view_of([*turn(1, tokens=20), *turn(2, calls=20, tokens=1_000)])

    assert not Observe().plan(view, situation_of(view, limit=ROOMY))


@pytest.mark.parametrize(
    ("limit", "whys"),
    [(1_500, {OBSERVATION}), (1_000, {OBSERVATION, "the request does not fit"})],
    ids=str,
)
def test_what_does_not_fit_even_so_is_left_to_the_last_resort(limit, whys):
    """S1-58: as with every policy; in a small window an observation is so short that it stays."""
    view = view_of(turns(30, calls=2, tokens=200))

    plan = fitting(Observe(), view, situation_of(view, limit=limit))

    assert {step.why for step in plan.steps} == whys
    assert plan.tokens_after <= limit


# Reflections


@pytest.mark.parametrize(
    ("number", "tokens", "is_due"),
    [(10, 199, False), (10, 200, True), (20, 60, False), (21, 60, True)],
    ids=str,
)
def test_observations_become_a_reflection(number, tokens, is_due):
    """S1-58: from two thousand tokens on, or when there are more than twenty."""
    view = remembered(*[OBSERVATION] * number, tokens=tokens)

    plan = Observe().plan(view, behind(view))

    assert steps(plan) == ([(REFLECTION, 3, 2 + 2 * number)] if is_due else [])


def test_a_reflection_is_made_of_what_the_observations_say():
    """S1-58: not of the messages again; it stands where they stood, with all their range."""
    view = remembered(*[OBSERVATION] * 10, tokens=300)

    plan = Observe().plan(view, behind(view))
    after = carried_out(plan, view, "- Ada wants a boat.")

    (step,) = plan.to_summarize
    assert [message.id for message in step.messages] == [f"o{place}" for place in range(10)]
    assert "uuuu" not in transcript(step.messages)
    assert "older ones first" in step.task
    (item,) = [item for item in after.items if item.fold is not None]
    assert (item.first, item.last, kind_of(item)) == (3, 22, REFLECTION)
    assert "Ada wants a boat." in item.message.text


@pytest.mark.parametrize(
    ("fields", "number", "tokens", "is_due"),
    [
        ({}, 4, 100, False),
        ({}, 5, 100, True),
        ({"merge_at": 9}, 5, 100, False),
        ({"merge_at": 9}, 6, 100, True),  # no more than five are shown
        ({"merge_at": 9, "reflections_max": 20}, 8, 100, False),
        ({}, 4, 1_000, False),
        ({}, 4, 1_001, True),
        ({"memory_tokens": 399}, 4, 100, True),
        ({"budget_tokens": 799}, 4, 100, True),  # half of it
        ({"memory_tokens": 10}, 1, 100, False),  # one alone would only lose
    ],
    ids=str,
)
def test_reflections_are_merged(fields, number, tokens, is_due):
    """S1-58: five of them, or more than are shown, or more than four thousand tokens of memory."""
    view = remembered(*[REFLECTION] * number, tokens=tokens)

    plan = Observe(**fields).plan(view, behind(view))

    assert steps(plan) == ([(REFLECTION, 3, 2 + 2 * number)] if is_due else [])


def test_observations_count_for_memory_too():
    """S1-58: with the reflections; each kind is put together, and then both are fewer."""
    view = remembered(*[REFLECTION] * 2, *[OBSERVATION] * 2, tokens=100)

    plan = Observe(memory_tokens=399).plan(view, behind(view))

    assert steps(plan) == [(REFLECTION, 3, 6), (REFLECTION, 7, 10)]
    assert not Observe(memory_tokens=400).plan(view, behind(view))


def test_memory_has_no_more_than_half_of_a_small_window():
    view = remembered(*[REFLECTION] * 4, tokens=100)

    assert Observe().plan(view, behind(view, limit=799))
    assert not Observe().plan(view, behind(view, limit=800, start=1.0))


def test_all_of_it_can_be_due_at_once():
    """Each is a fold of its own, and none is made of what another hides."""
    view = remembered(*[REFLECTION] * 5, *[OBSERVATION] * 8, tokens=250)
    for seq, message in enumerate(turn(16, tokens=1_000), start=100):
        view.add(seq, message)
    view.add(200, Message.user("And?", id="u17"))

    plan = Observe().plan(view, behind(view))
    after = carried_out(plan, view)

    assert steps(plan) == [(REFLECTION, 3, 12), (REFLECTION, 13, 28), (OBSERVATION, 29, 100)]
    assert kinds(after) == [REFLECTION, REFLECTION, OBSERVATION]
    assert ids(after)[-2:] == ["a16", "u17"]  # the last answer stays


def test_a_note_in_between_goes_along():
    """As it stands where something was erased; it is no observation, and never one alone."""
    view = remembered(*[OBSERVATION] * 21, tokens=60)
    erased = Fold(first=9, last=10, replacement=note(1, view.items[2].message), why="erased")
    view = view.with_folds([erased])

    assert kinds(view).count(OBSERVATION) == 20
    plan = Observe(observations_max=19).plan(view, behind(view))

    assert not Observe().plan(view, behind(view))
    assert steps(plan) == [(REFLECTION, 3, 44)]


def test_what_others_folded_is_as_good_as_said():
    """A summary of another policy, or one of ours that somebody wrote over, is no observation."""
    text = summarized("They spoke of boats.")
    view = view_of(turns(3)).with_folds(
        [
            Fold(first=1, last=1, replacement=text, by="summarize", why=OBSERVATION),
            Fold(first=2, last=2, replacement=text, by="observe", why="the request does not fit"),
            Fold(first=3, last=3, replacement=text, by="observe", why=REFLECTION),
            Fold(first=4, last=4, replacement=note(1, text), by="observe", why=OBSERVATION),
        ]
    )

    assert kinds(view) == [MESSAGE, MESSAGE, REFLECTION, MESSAGE]
    assert not Observe(message_tokens=0).plan(view, behind(view, pinned=(3,)))


# What comes of it


@pytest.mark.parametrize("number", [3, 30, 300])
def test_asked_again_there_is_nothing_to_do(number):
    """S1-58: what was observed is observed, however long or short the notes are."""
    for text in (SHORT[0], words(5_000, "s")):
        view = view_of(turns(number, tokens=200))
        situation = behind(view)
        plan = Observe().plan(view, situation)
        texts = [text] * len(plan.to_summarize)
        view = view.with_folds(apply(plan, texts, count))

        assert not Observe().plan(view, behind(view))


def test_a_long_conversation_stays_within_the_limits():
    """S1-58: behind each of three hundred turns, one plan, with notes as long as they may be."""
    policy = Observe()
    view, seq, largest = view_of(turn(1)), 2, 0
    seen = set()
    for number in range(2, 302):
        for message in turn(number, tokens=150):
            seq += 1
            view.add(seq, message)
        plan = policy.plan(view, behind(view))
        texts = [words(3_000, "s")] * len(plan.to_summarize)
        for fold in apply(plan, texts, count):
            seq += 1
            view.add(seq, fold)
        seen |= {(fold.why, len(plan.steps)) for fold in apply(plan, texts, count)}
        made = kinds(view)
        memory = [item.tokens for item in view.items if item.fold is not None]
        assert made.count(OBSERVATION) <= 21
        assert made.count(REFLECTION) <= 5
        assert sum(memory) <= 4_000 + 1_000  # and what the next plan puts together
        largest = max(largest, view.total)

    assert {kind for kind, _ in seen} == {OBSERVATION, REFLECTION}
    assert largest < 8_000
    assert view.items[0].message.id == "u1"
    assert view.items[-1].message.role is Role.ASSISTANT


def test_what_would_not_get_shorter_stays():
    """A fold never makes the window larger."""
    view = view_of([Message.user("a"), Message.assistant("b"), *turn(2), *turn(3, tokens=1)])

    plan = Observe(message_tokens=0).plan(view, behind(view, pinned=(2,)))

    assert not plan
    assert "nothing has to be observed" in plan.reason


def test_an_empty_log_has_nothing_to_observe():
    view = view_of([])

    assert not Observe().plan(view, behind(view))
    assert not Observe().plan(view, situation_of(view, trigger="manual"))


@pytest.mark.parametrize("field", Observe.__struct_fields__)
@pytest.mark.parametrize("value", [-1, 1.5, "1", None, True], ids=repr)
def test_a_threshold_is_a_whole_number(field, value):
    with pytest.raises(InvalidInput, match=field):
        Observe(**{field: value})
