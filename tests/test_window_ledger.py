"""The ledger: reports are the truth, estimates cover what came since, and models teach a ratio."""

import json
import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.entries import Call, Fold, Mark
from holdfast.errors import (
    AuthError,
    ConnectionFailed,
    InvalidInput,
    InvalidRequest,
    Overloaded,
)
from holdfast.messages import Message, ToolCall
from holdfast.parts import Text, Thinking
from holdfast.usage import Usage
from holdfast.window.accounts import ContextUsage, TurnUsage
from holdfast.window.ledger import Ledger, baseline_of
from holdfast.window.view import View

MODEL = "gpt-5"


def words(message):
    """A counter that is easy to follow: one token a word of the content, and of each call."""
    content = message.content or ""
    if not isinstance(content, str):
        content = " ".join(getattr(part, "text", None) or "" for part in content)
    return len(content.split()) + sum(len(call.arguments.split()) for call in message.tool_calls)


def text(count):
    return " ".join(["word"] * count)


def reply(count=0, thinking=0, calls=False, signature=None):
    parts = [Thinking(text(thinking), "sig")] if thinking else []
    made = [ToolCall(id="c1", name="look", arguments="", signature=signature)] if calls else []
    return Message.assistant([*parts, Text(text(count))], made)


def taught(ratio, *, answers=6, start=2_000, step=1_000, ledger=None, model=MODEL, stated=0.1):
    """A ledger of a model that has `ratio` tokens for each that is counted."""
    ledger = ledger or Ledger()
    for number in range(answers):
        counted = start + number * step
        ledger.report(model, counted, Usage(round(counted * ratio), 0), stated=stated)
    return ledger


# ---- counts of messages ----


def test_a_message_is_counted_once():
    """S2-69: counts are kept by the id of a message, whose content never changes."""
    asked = []
    ledger = Ledger()
    count = ledger.counter("o200k", lambda message: asked.append(message.id) or 7)
    message = Message.user("hi")

    assert [count(message), count(message.replace(stop="stop"))] == [7, 7]
    assert asked == [message.id]


def test_each_family_has_its_own_counts():
    """S2-69: what one vocabulary says of a message does not hold for another."""
    ledger = Ledger()
    message = Message.user("hi")

    assert ledger.counter("o200k", lambda _: 7)(message) == 7
    assert ledger.counter("claude-3", lambda _: 9)(message) == 9
    assert ledger.counter("o200k", lambda _: 11)(message) == 7


def test_counts_are_kept_across_folds():
    """S2-69: a fold shows the view anew, and counts only what it puts there."""
    asked = []
    ledger = Ledger()
    view = View(ledger.counter("f", lambda message: asked.append(message.id) or words(message)))
    messages = [Message.user(text(10)) for _ in range(5)]
    for seq, message in enumerate(messages, start=1):
        view.add(seq, message)
    summary = Message.user("in short", synthetic="summary")
    view.add(6, Fold(first=1, last=3, replacement=summary))

    assert view.total > 0
    assert asked == [*(message.id for message in messages), summary.id]
    assert view.total == 22


def test_counts_are_dropped_when_the_conversation_is_cleared():
    """S2-69: after that, a counter that was given out counts afresh."""
    asked = []
    ledger = Ledger()
    count = ledger.counter("f", lambda message: asked.append(message.id) or 7)
    message = Message.user("hi")
    count(message)
    ledger.clear()
    count(message)

    assert len(asked) == 2


def test_a_message_that_nobody_said_is_known_by_what_it_says():
    """S2-69: a note that is made anew under the same id may say something else."""
    count = Ledger().counter("f", words)
    note = Message.user("[2 earlier turns]", id="m:folded", synthetic="folded")

    assert count(note) == 3
    assert count(note.replace(content="[2 earlier turns not shown]")) == 5


def test_a_message_adds_its_count_to_the_total():
    """S3-19: each message has a count of its own, and the total is their sum."""
    ledger = Ledger()
    view = View(ledger.counter("f", words))
    totals = []
    for seq, count in enumerate((3, 5, 7), start=1):
        view.add(seq, Message.user(text(count)))
        totals.append(view.total)

    assert totals == [3, 8, 15]


def test_keeping_counts_costs_almost_nothing(uncovered):
    """S2-69: counting fresh messages takes no more than a tenth longer than counting alone."""
    messages = [Message.user(text(400)) for _ in range(300)]

    def bare():
        for message in messages:
            words(message)

    def kept():
        count = Ledger().counter("f", words)
        for message in messages:
            count(message)

    shares = sorted(timed(bare) / timed(kept) for _ in range(31))

    assert shares[15] >= 0.9


def timed(run):
    start = time.process_time()
    run()
    return time.process_time() - start


# ---- reports and estimates ----


def test_before_any_report_everything_is_estimated():
    """S3-17: there is nothing to know yet; the margin is the error that the counter states."""
    estimate = Ledger().estimate(MODEL, 1_000, stated=0.25)

    assert estimate == (1_000, 250, 0)
    assert estimate.most == 1_250


def test_what_was_reported_is_the_truth_for_what_was_sent():
    """S3-17, S2-66: the same request once more has what it had, for certain."""
    ledger = Ledger()
    ledger.report(MODEL, 1_000, Usage(1_207, 40))

    assert ledger.estimate(MODEL, 1_000) == (1_207, 0, 1_207)


def test_a_report_of_several_prompts_is_no_report_of_this_one():
    """S2-115: a vendor that runs tools of its own adds up what it read in each of its rounds. That
    is spent; but no prompt has more than the model can read."""
    ledger = Ledger()
    ledger.report(MODEL, 900, Usage(1_000, 10), context=200_000)
    ledger.report(MODEL, 1_000, Usage(401_468, 792), context=200_000)

    assert ledger.estimate(MODEL, 1_000).tokens < 1_300
    assert ledger.spent.input == 402_468 and ledger.last.input == 401_468


def test_a_counter_that_was_wrong_is_told_even_behind_the_limit():
    """The control: what is not twice as much as counted may be the truth."""
    ledger = Ledger()
    ledger.report(MODEL, 150_000, Usage(210_000, 10), context=200_000)

    assert ledger.estimate(MODEL, 150_000).tokens == 210_000


def test_only_what_came_since_is_estimated():
    """S2-66, S3-17: to what was reported the ratio times the rest is added, and only that has a
    margin."""
    ledger = taught(1.3)
    estimate = ledger.estimate(MODEL, 8_000)

    assert abs(estimate.tokens - (7_000 + 1_000) * 1.3) < 0.05 * 1_300
    assert estimate.reported == round(7_000 * 1.3)
    assert 0 < estimate.margin < 0.15 * 1_300


def test_an_answer_counts_as_what_was_written():
    """S3-18: the next prompt begins with the last prompt and the last answer, both as reported."""
    ledger = Ledger()
    answer = reply(50)
    ledger.report(MODEL, 1_000, Usage(1_200, 90), answer=answer, count=words)

    assert ledger.last == Usage(1_200, 90)
    assert ledger.last.total == 1_290
    assert ledger.estimate(MODEL, 1_050).tokens == 1_290
    assert ledger.message(MODEL, answer.id) == 90


def test_what_was_thought_stays_while_the_turn_goes_on():
    """S3-18: results come back to a model that still sees its thinking."""
    ledger = Ledger()
    answer = reply(0, thinking=3, calls=True)
    ledger.report(MODEL, 1_000, Usage(1_000, 300, reasoning=256), answer=answer, count=words)

    assert ledger.estimate(MODEL, 1_000 + words(answer)).tokens == 1_000 + 300


def test_a_signed_call_carries_its_thinking_too():
    """S3-18: some vendors put what was thought into the signature of the call."""
    ledger = Ledger()
    answer = reply(2, calls=True, signature="sealed")
    ledger.report(MODEL, 1_000, Usage(1_000, 300, reasoning=256), answer=answer, count=words)

    assert ledger.estimate(MODEL, 1_000 + words(answer)).tokens == 1_300


@pytest.mark.parametrize(
    ("answer", "usage", "carried"),
    [
        (reply(40, thinking=200), Usage(1_000, 300, reasoning=256), 40),  # the turn is over
        (reply(40, thinking=200), Usage(1_000, 300), 40),  # not said how much was thought
        (reply(40), Usage(1_000, 300, reasoning=256), 40),  # thinking that nobody was shown
        (reply(40, calls=True), Usage(1_000, 300, reasoning=256), 40),
        (reply(40), Usage(1_000, 280, reasoning=256), 24),
        (reply(40), Usage(1_000, 9, reasoning=75), 40),  # counted beside what was written
        (reply(40), Usage(1_000, None), 40),  # nothing was reported
        (reply(40), Usage(1_000, 0), 40),
    ],
)
def test_what_was_thought_is_gone_when_the_turn_is_over(answer, usage, carried):
    """S3-18: of an answer the words stay, as far as they were reported apart."""
    ledger = Ledger()
    ledger.report(MODEL, 1_000, usage, answer=answer, count=words)

    assert ledger.estimate(MODEL, 1_000 + words(answer)).tokens == 1_000 + carried


def test_a_counter_that_keeps_counts_sees_the_words_apart_from_the_thinking():
    """S2-69: the words of an answer without its thinking are another text than the message."""
    ledger = Ledger()
    count = ledger.counter("f", words)
    answer = reply(40, thinking=200)
    ledger.report(MODEL, 1_000, Usage(1_000, 300), answer=answer, count=count)

    assert ledger.estimate(MODEL, 1_000 + count(answer)).tokens == 1_040
    assert count(answer) == 240


def test_the_newest_message_has_what_the_prompt_grew_by():
    """S3-21: what was reported beyond the last prompt and its answer is that message's count."""
    ledger = Ledger()
    ledger.report(MODEL, 1_000, Usage(1_000, 100), answer=reply(100), count=words)
    ledger.report(MODEL, 1_150, Usage(1_163, 10), newest="m2")

    assert ledger.message(MODEL, "m2") == 63
    assert ledger.message("another", "m2") is None
    assert ledger.message(MODEL, "m3") is None


def test_a_prompt_that_became_shorter_says_nothing_of_the_newest_message():
    """S3-21: something else was taken out of it."""
    ledger = Ledger()
    ledger.report(MODEL, 1_000, Usage(1_000, 100))
    ledger.report(MODEL, 900, Usage(900, 10), newest="m2")

    assert ledger.message(MODEL, "m2") is None


def test_an_answer_belongs_to_its_own_report():
    """S3-18: the next report holds it already."""
    ledger = Ledger()
    ledger.report(MODEL, 1_000, Usage(1_000, 700), answer=reply(500), count=words)
    ledger.report(MODEL, 1_500, Usage(1_700, 0))

    assert ledger.estimate(MODEL, 1_600).tokens == 1_800


def test_what_was_written_has_a_margin_too():
    """S3-18: it is reported, but not yet as part of a prompt."""
    ledger = Ledger()
    ledger.report(MODEL, 1_000, Usage(1_000, 500), answer=reply(50), count=words)

    assert ledger.estimate(MODEL, 1_050, stated=0.1).margin == 50


def test_what_is_not_certain_teaches_less():
    """S3-21: what went while more came, and what was thought, may or may not be in the report."""

    def scale(changed=None, answer=None):
        ledger = Ledger()
        usage = Usage(1_000, 900, reasoning=890) if answer else Usage(1_000, 0)
        ledger.report(MODEL, 1_000, usage, answer=answer, count=words)
        known = 1_900 if answer else 1_000
        more = words(answer) if answer else 0
        ledger.report(MODEL, 2_000 + more, Usage(known + 1_300, 0), changed=changed)
        return ledger.scale(MODEL)

    assert 1.0 < scale(changed=30_000) < scale()
    assert 1.0 < scale(answer=reply(0, thinking=3, calls=True)) < scale()


@pytest.mark.parametrize("usage", [Usage(), Usage(0, 0), Usage(None, 7), Usage(0, None)])
def test_a_report_without_tokens_leaves_the_estimates(usage):
    """S3-21: what was reported before still holds, and the ratio too."""
    ledger = taught(1.3)
    before = ledger.estimate(MODEL, 9_000), ledger.scale(MODEL), ledger.error(MODEL)
    ledger.report(MODEL, 9_000, usage, answer=reply(5), count=words)

    assert (ledger.estimate(MODEL, 9_000), ledger.scale(MODEL), ledger.error(MODEL)) == before


def test_what_is_folded_away_is_taken_off():
    """S3-23: the folded counts, at the ratio, come off what was reported."""
    ledger = taught(1.3)  # 7000 counted, 9100 reported
    estimate = ledger.estimate(MODEL, 5_000)

    assert abs(estimate.tokens - 5_000 * 1.3) < 0.05 * 2_600
    assert 0 < estimate.margin < 0.2 * 2_600


def test_after_a_deep_fold_it_is_better_to_estimate_what_is_left():
    """S3-23: an error in the little that is left weighs less than one in the much that is gone."""
    ledger = Ledger()
    ledger.report(MODEL, 100_000, Usage(100_000, 0))
    estimate = ledger.estimate(MODEL, 10_000, stated=0.10)

    assert (estimate.tokens, estimate.margin) == (10_000, 1_000)


def test_what_came_while_as_much_went_is_not_certain():
    """S3-23: a fold and new messages may leave the same count; what changed is told apart."""
    ledger = Ledger()
    ledger.report(MODEL, 10_000, Usage(10_000, 0))

    assert ledger.estimate(MODEL, 10_000).margin == 0
    assert ledger.estimate(MODEL, 10_000, changed=3_000).margin == 300


def test_another_model_begins_with_estimates():
    """S3-24: vendors count differently; the counts of the messages are kept."""
    asked = []
    ledger = taught(1.3)
    count = ledger.counter("f", lambda message: asked.append(1) or 7)
    message = Message.user("hi")
    count(message)
    estimate = ledger.estimate("claude", 7_000)

    assert (estimate.tokens, estimate.reported) == (7_000, 0)
    assert ledger.context("claude", 200_000).total_tokens == 0
    assert ledger.scale("claude") == 1.0
    assert (count(message), asked) == (7, [1])


def test_a_model_that_comes_back_is_still_known():
    """S3-24: its own last report and ratio hold, whatever another model has reported since."""
    ledger = taught(1.3)
    before = ledger.estimate(MODEL, 8_000)
    taught(0.8, ledger=ledger, model="claude")

    assert ledger.estimate(MODEL, 8_000) == before


@pytest.mark.parametrize(
    ("ratio", "stated"), [(0.8, 0.1), (1.0, 0.1), (1.25, 0.1), (0.6, 0.5), (1.8, 0.75)]
)
def test_three_answers_teach_the_ratio(ratio, stated):
    """S3-21: the ratio is refined by each answer, and by the first ones most."""
    ledger = taught(ratio, answers=3, start=4_000, step=4_000, stated=stated)

    assert ledger.scale(MODEL) == pytest.approx(ratio, rel=0.08)


def test_a_counter_that_is_further_off_than_it_says_is_found_out():
    """S3-21: it takes some answers more."""
    ledger = taught(1.8, answers=6, start=4_000, step=4_000, stated=0.0)

    assert ledger.scale(MODEL) == pytest.approx(1.8, rel=0.05)


def test_the_ratio_follows_what_is_said_now():
    """S3-21: from English to Chinese, say. What was learned long ago weighs less and less."""
    ledger = taught(1.0, answers=30)
    counted, reported = 100_000, 100_000
    for _ in range(30):
        counted, reported = counted + 1_000, reported + 1_400
        ledger.report(MODEL, counted, Usage(reported, 0))

    assert ledger.scale(MODEL) == pytest.approx(1.4, abs=0.1)


@pytest.mark.parametrize("reported", [3_000, 30_000, 1])
def test_one_report_out_of_all_proportion_is_not_believed(reported):
    """S3-21: outside half and twice what was expected; the estimate follows it all the same."""
    ledger = taught(1.0)
    before = ledger.scale(MODEL)
    ledger.report(MODEL, 8_000, Usage(7_000 + reported, 0))

    assert ledger.scale(MODEL) == before
    assert ledger.estimate(MODEL, 8_000).tokens == 7_000 + reported


def test_the_third_such_report_is_believed():
    """S3-21: a ratio that has really changed is not refused for ever."""
    ledger = taught(1.0)
    counted, reported = 7_000, 7_000
    scales = []
    for _ in range(10):
        counted, reported = counted + 1_000, reported + 2_400
        ledger.report(MODEL, counted, Usage(reported, 0))
        scales.append(ledger.scale(MODEL))

    assert scales[0] == scales[1] == pytest.approx(1.0, abs=0.01)
    assert scales[2] > 1.02
    assert scales[9] == pytest.approx(2.4, abs=0.2)


@pytest.mark.parametrize(("ratio", "low", "high"), [(0.001, 0.2, 0.4), (90.0, 2.5, 5.0)])
def test_the_ratio_stays_within_reason(ratio, low, high):
    """S3-21: clamped, whatever a server reports, and however often."""
    ledger = taught(ratio, answers=200)

    assert low <= ledger.scale(MODEL) <= high


def test_short_messages_move_the_ratio_little():
    """S3-21: frames weigh more than words in a prompt that grows by ten tokens."""
    ledger = taught(1.0)
    counted, reported = 7_000, 7_000
    for _ in range(10):
        counted, reported = counted + 10, reported + 18
        ledger.report(MODEL, counted, Usage(reported, 0))

    assert ledger.scale(MODEL) == pytest.approx(1.0, abs=0.03)


def test_tools_have_a_ratio_of_their_own():
    """S3-21: vendors show tools in a form of their own, and that does not spoil the ratio of
    texts."""
    ledger = Ledger()
    for _ in range(4):
        ledger.clear()
        ledger.report(MODEL, 5_000, Usage(3_000, 0), tools=4_000)  # half as many for tools

    assert ledger.scale(MODEL) == pytest.approx(1.0, abs=0.05)
    assert ledger.estimate(MODEL, 9_000, tools=8_000).tokens == pytest.approx(5_000, rel=0.05)


def test_tools_that_change_are_estimated_at_their_ratio():
    """S3-17: half as many tools as before, and the same texts."""
    ledger = Ledger()
    for _ in range(4):
        ledger.report(MODEL, 5_000, Usage(3_000, 0), tools=4_000)
        ledger.clear()
    ledger.report(MODEL, 5_000, Usage(3_000, 0), tools=4_000)

    assert ledger.estimate(MODEL, 3_000, tools=2_000).tokens == pytest.approx(2_000, rel=0.05)


def test_the_error_is_what_was_seen():
    """S3-21: at first it is what the counter states; in the end what 95 of 100 stay below."""
    rnd = random.Random(7)
    ledger = Ledger()
    counted = reported = 10_000
    ledger.report(MODEL, counted, Usage(reported, 0), stated=0.25)
    first = ledger.error(MODEL, 0.25)
    for _ in range(60):
        counted += 1_000
        reported += round(1_000 * rnd.uniform(0.9, 1.1))
        ledger.report(MODEL, counted, Usage(reported, 0), stated=0.25)

    assert first == 0.25
    assert 0.08 < ledger.error(MODEL, 0.25) < 0.13
    assert ledger.error("another", 0.25) == 0.25


def test_one_bad_estimate_does_not_make_the_margin_absurd():
    """S3-21: a vendor that searched the web reports a thousand times what was sent."""
    ledger = taught(1.0)
    ledger.report(MODEL, 8_000, Usage(1_000_000, 0))

    assert ledger.error(MODEL) == pytest.approx(0.10)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**7)), max_size=30))
def test_no_report_can_break_the_ledger(reports):
    """S3-21: whatever is reported, estimates are whole numbers from 0 up and the ratio sane."""
    ledger = Ledger()
    for counted, reported in reports:
        ledger.report(MODEL, counted, Usage(reported, reported // 7), tools=counted // 3)
        estimate = ledger.estimate(MODEL, 1_000, tools=10, changed=counted)

        assert all(type(each) is int and each >= 0 for each in estimate)
        assert 0.2 <= ledger.scale(MODEL) <= 5.0
        assert 0 <= ledger.error(MODEL) <= 1


@pytest.mark.parametrize(
    ("counted", "tools"), [(-1, 0), (1.5, 0), (None, 0), (True, 0), (10, 11), (10, -1), (10, 0.5)]
)
def test_what_is_counted_is_a_whole_number(counted, tools):
    """S3-17: a mistake of the caller is told to the caller, and nothing is learned from it."""
    ledger = Ledger()

    with pytest.raises(InvalidInput):
        ledger.report(MODEL, counted, Usage(10, 1), tools=tools)
    with pytest.raises(InvalidInput):
        ledger.estimate(MODEL, counted, tools=tools)
    assert ledger.spent == Usage()


def test_an_answer_needs_a_counter():
    """S3-18: what it is counted as has to be known to know what is new."""
    with pytest.raises(InvalidInput, match="count"):
        Ledger().report(MODEL, 10, Usage(10, 1), answer=reply(3))


# ---- calibration ----


def test_a_probe_gives_the_baseline():
    """S3-22: a request that says one character has one token more than one that says nothing."""
    assert baseline_of(Usage(1_235, 1)) == 1_234


def test_a_probe_that_tells_nothing_leaves_the_estimates():
    """S3-22: refused for any other reason, or answered without usage."""
    assert baseline_of(Usage()) is None
    assert baseline_of(Usage(0, 1)) is None
    assert baseline_of(InvalidRequest("no")) is None
    assert baseline_of(Overloaded("later")) is None


@pytest.mark.parametrize("error", [AuthError("no"), ConnectionFailed("nobody there")])
def test_a_probe_that_is_not_let_in_is_an_error(error):
    """S3-22: without a key or a connection the next request fails too."""
    with pytest.raises(type(error)):
        baseline_of(error)


def test_a_baseline_is_known_before_the_first_call():
    """S3-22: only what is said is then estimated."""
    ledger = Ledger()
    ledger.calibrate(MODEL, 1_000, 1_234)
    estimate = ledger.estimate(MODEL, 1_100)

    assert estimate.reported == 1_234
    assert abs(estimate.tokens - 1_334) < 20
    assert ledger.spent == Usage()


def test_a_request_that_was_too_long_tells_how_long():
    """S3-22: what a refusal says of the prompt is as good as a report; nothing was spent."""
    ledger = Ledger()
    ledger.calibrate(MODEL, 150_000, 205_000)

    assert ledger.estimate(MODEL, 150_000) == (205_000, 0, 205_000)
    assert ledger.estimate(MODEL, 140_000).tokens < 195_000
    assert (ledger.spent, ledger.last) == (Usage(), None)
    with pytest.raises(InvalidInput):
        ledger.calibrate(MODEL, 150_000, -1)


# ---- accounts ----


def test_a_turn_has_what_its_last_response_had():
    """S2-67: replaced, not added up; what was thought is added up."""
    ledger = Ledger()
    ledger.report(MODEL, 90, Usage(100, 20, reasoning=5))
    ledger.report(MODEL, 140, Usage(150, 30, reasoning=7))
    turn = ledger.end_turn("10:00", "10:02", 120, ["look", "write"])

    assert (turn.prompt, turn.output, turn.total, turn.thinking) == (150, 30, 180, 12)
    assert (turn.start_time, turn.end_time, turn.duration_seconds) == ("10:00", "10:02", 120.0)
    assert turn.function_calls == ("look", "write")
    assert ledger.turns == (turn,)


def test_a_response_without_tokens_overwrites_nothing():
    """S2-67: some servers report zeros for a part of a turn."""
    ledger = Ledger()
    ledger.report(MODEL, 90, Usage(100, 20))
    ledger.report(MODEL, 140, Usage(0, 0, reasoning=3))

    assert ledger.turn == TurnUsage(prompt=100, output=20, total=120, thinking=3)


def test_a_turn_without_tokens_is_not_recorded():
    """S2-67: there is nothing to account for; and nothing of it is left for the next one."""
    ledger = Ledger()
    ledger.report(MODEL, 90, Usage(0, 0, reasoning=9))

    assert ledger.end_turn("10:00", "10:02") is None
    assert (ledger.turns, ledger.turn) == ((), TurnUsage())


def test_each_turn_begins_at_nothing():
    """S2-67: turns are accounted for one by one."""
    ledger = Ledger()
    for tokens in (100, 300):
        ledger.report(MODEL, tokens, Usage(tokens, 10, reasoning=1))
        ledger.end_turn()

    assert [(turn.prompt, turn.thinking) for turn in ledger.turns] == [(100, 1), (300, 1)]


def test_reverting_cuts_the_turns():
    """S2-67: what comes after the turn is accounted for no more. What was reported helps still."""
    ledger = Ledger()
    for tokens in (100, 200, 300):
        ledger.report(MODEL, tokens, Usage(tokens + 70, 10))
        ledger.end_turn()
    ledger.revert(1)

    assert [turn.prompt for turn in ledger.turns] == [170]
    assert ledger.estimate(MODEL, 200).tokens > 250
    assert (ledger.last, ledger.context(MODEL, 1_000).is_reported) == (None, False)
    with pytest.raises(InvalidInput, match="turns"):
        ledger.revert(-1)


def test_the_context_is_as_full_as_the_last_call_says():
    """S2-68: the numbers that a report of the context has."""
    ledger = Ledger()
    ledger.report(MODEL, 900, Usage(1_000, 250))
    ledger.end_turn()
    usage = ledger.context(MODEL, 10_000)

    assert (usage.model, usage.context_limit, usage.turns) == (MODEL, 10_000, 1)
    assert (usage.prompt_tokens, usage.output_tokens, usage.total_tokens) == (1_000, 250, 1_250)
    assert (usage.percent_used, usage.tokens_remaining) == (12.5, 8_750)
    assert usage.is_reported


def test_before_a_report_the_context_is_as_full_as_estimated():
    """S2-68, S3-24: after a change of the model too."""
    ledger = taught(1.0)
    usage = ledger.context("claude", 10_000, ledger.estimate("claude", 7_000))

    assert (usage.total_tokens, usage.is_reported) == (7_000, False)
    assert ledger.context("claude", 10_000).total_tokens == 0


def test_a_context_that_is_too_full_has_nothing_left():
    """S2-68: what is free is never less than none."""
    usage = ContextUsage(model=MODEL, context_limit=100, prompt_tokens=150)

    assert (usage.tokens_remaining, usage.percent_used) == (0, 150.0)
    with pytest.raises(InvalidInput, match="context_limit"):
        ContextUsage(model=MODEL, context_limit=0)


def test_what_was_spent_is_added_up():
    """S3-18: the last call by itself, and all calls together."""
    ledger = Ledger()
    ledger.report(MODEL, 90, Usage(100, 20, cache_read=80))
    ledger.report("claude", 140, Usage(150, 30))

    assert ledger.last == Usage(150, 30)
    assert ledger.spent == Usage(250, 50, cache_read=80)


def test_clearing_begins_anew():
    """S3-20: the total is that of what is left: the system prompt and the tools. What was learned
    and spent stays."""
    ledger = taught(1.5)
    ledger.end_turn()
    spent, scale = ledger.spent, ledger.scale(MODEL)
    ledger.clear()
    estimate = ledger.estimate(MODEL, 200)

    assert (estimate.tokens, estimate.reported) == (pytest.approx(200 * scale, abs=1), 0)
    assert (ledger.last, ledger.turns, ledger.turn) == (None, (), TurnUsage())
    assert (ledger.spent, ledger.scale(MODEL)) == (spent, scale)
    assert ledger.context(MODEL, 10_000).total_tokens == 0


def test_clearing_forgets_the_messages():
    """S3-20: what was reported of them one by one too."""
    ledger = Ledger()
    answer = reply(5)
    ledger.report(MODEL, 10, Usage(10, 5), answer=answer, count=words)
    ledger.clear()

    assert ledger.message(MODEL, answer.id) is None


# ---- restarts ----


def full():
    ledger = taught(1.3)
    ledger.report(MODEL, 8_000, Usage(10_400, 90), tools=100, answer=reply(50), count=words)
    ledger.end_turn("10:00", None, 2, ["look"])
    ledger.report("claude", 500, Usage(700, 9, cache_read=600, reasoning=4))
    return ledger


def test_a_ledger_survives_a_restart():
    """S3-17: as JSON, to the last number, and it goes on as if nothing had happened."""
    before = full()
    after = Ledger.of(json.loads(json.dumps(before.values)))
    for ledger in (before, after):
        ledger.report(MODEL, 9_000, Usage(11_800, 20), tools=100)

    assert after.values == before.values
    for model in (MODEL, "claude", "another"):
        assert after.estimate(model, 9_500, tools=100) == before.estimate(model, 9_500, tools=100)
    assert (after.last, after.spent, after.turns) == (before.last, before.spent, before.turns)


def test_a_ledger_that_was_cleared_survives_a_restart():
    """S3-20: what was learned is there, and no report."""
    before = full()
    before.clear()
    after = Ledger.of(json.loads(json.dumps(before.values)))

    assert after.values == before.values
    assert (after.last, after.estimate(MODEL, 1_000).reported) == (None, 0)
    assert after.scale(MODEL) == before.scale(MODEL) > 1.1


def test_what_another_counter_taught_is_not_taken():
    """S3-17: with another vocabulary the same texts have other counts; what was spent is spent."""
    ledger = taught(1.3, ledger=Ledger("splintr"))
    other = Ledger.of(ledger.values, "estimate")

    assert other.estimate(MODEL, 1_000) == (1_000, 100, 0)
    assert other.spent == ledger.spent
    assert Ledger.of(ledger.values, "splintr").scale(MODEL) == ledger.scale(MODEL)


def changed(path, value):
    values = json.loads(json.dumps(full().values))
    place = values
    for key in path[:-1]:
        place = place[key]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return values


MODELS = ("models", MODEL)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"v": 1},
        changed(("v",), 2),
        changed(("spent",), None),
        changed(("spent",), [-1]),
        changed(("spent",), [1] * 9),
        changed(("last",), ["gpt-5"]),
        changed(("last",), 7),
        changed(("turns",), [{"prompts": 1}]),
        changed(("turns",), [7]),
        changed(("models",), []),
        changed(MODELS, {}),
        changed((*MODELS, "learned"), None),
        changed((*MODELS, "input"), -1),
        changed((*MODELS, "input"), 1.5),
        changed((*MODELS, "counted"), [1, 2]),
        changed((*MODELS, "counted"), 7),
        changed((*MODELS, "answer"), [1, 2]),
        changed((*MODELS, "answer"), [1, "2", 3]),
        changed((*MODELS, "answer"), [1, float("nan"), 3]),
        changed((*MODELS, "learned", "text"), "1"),
        changed((*MODELS, "learned", "text"), float("inf")),
        changed((*MODELS, "learned", "answers"), []),
        changed((*MODELS, "learned", "doubts"), [1, 2]),
        changed((*MODELS, "learned", "doubts"), [0, 1, 0]),
        changed((*MODELS, "learned", "ratios"), ["many"]),
        changed((*MODELS, "learned", "ratios"), 7),
    ],
)
def test_what_no_ledger_wrote_is_refused(values):
    """S3-17: a file may have been changed by anybody; a ratio of nonsense would be believed."""
    with pytest.raises(InvalidInput):
        Ledger.of(values)


def test_a_ledger_can_be_made_again_from_the_log():
    """S3-17: calls tell what they were counted as, and their answers are in the log."""
    ledger = Ledger("words")
    entries = []
    for number in range(4):
        answer = reply(50)
        window = {"counted": 1_000 * (number + 1), "tools": 100, "by": "words"}
        changed = 5_000 if number == 2 else None  # a fold had gone before
        window |= {} if changed is None else {"changed": changed}
        usage = Usage(1_300 * (number + 1), 60)
        told = {"tools": 100, "changed": changed}
        ledger.report(MODEL, window["counted"], usage, answer=answer, count=words, **told)
        call = Call(model=MODEL, about=answer.id, usage=usage, window=window)
        entries += [Message.user("hi"), answer, call, Mark(what="noted")]
    again = Ledger("words")
    again.replay(entries, words)

    assert again.values == ledger.values


def test_calls_that_are_passed_over_leave_no_wrong_difference():
    """S3-17: the report before them is not what the next one goes on from."""
    ledger = taught(1.0)
    ledger.skip()
    ledger.report(MODEL, 2_000, Usage(2_000, 0))

    assert ledger.scale(MODEL) == pytest.approx(1.0)
    assert ledger.estimate(MODEL, 2_000).reported == 2_000


@pytest.mark.parametrize(
    "window",
    [
        {},
        {"counted": 1_000},  # by nobody knows whom
        {"counted": 1_000, "by": "another"},
        {"counted": "1000", "by": "words"},
        {"counted": -1, "by": "words"},
        {"counted": 10, "tools": 11, "by": "words"},
        {"counted": 10, "tools": None, "by": "words"},
    ],
)
def test_a_call_that_does_not_tell_is_only_added_up(window):
    """S3-17: it was paid for, and nothing can be learned from it."""
    ledger = Ledger("words")
    ledger.replay([Call(model=MODEL, usage=Usage(1_300, 60), window=window)], words)

    assert (ledger.spent, ledger.last) == (Usage(1_300, 60), Usage(1_300, 60))
    assert ledger.estimate(MODEL, 1_000).reported == 0


def test_a_call_that_was_cut_off_is_only_added_up():
    """S3-17: what a model tells before it has ended is not what its answer took."""
    window = {"counted": 1_000, "tools": 0, "by": "words"}
    ledger = Ledger("words")
    ledger.replay(
        [Call(model=MODEL, usage=Usage(1_300, 1), window=window, stop="cancelled")], words
    )

    assert ledger.spent == Usage(1_300, 1)
    assert ledger.estimate(MODEL, 1_000).reported == 0
