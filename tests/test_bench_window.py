"""The simulation in bench/window.py: what it bills, what it takes for seen, and its optimum."""

import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from holdfast.messages import Message, ToolCall
from holdfast.window import Plan, Step
from holdfast.window.plan import nothing
from holdfast.window.render import render

BENCH = Path(__file__).parent.parent / "bench"
sys.path.append(str(BENCH))

from window_billing import OUTPUT, READ, WRITE, Outcome, common, pooled  # noqa: E402
from window_conversations import Talk, read_folder, sessions, spread, string, talk_of  # noqa: E402
from window_generated import generated  # noqa: E402
from window_generated import said as made_up  # noqa: E402
from window_optimum import optimum, schedule_for  # noqa: E402
from window_replay import Replay, replay  # noqa: E402
from window_rivals import Fit, FixedSteps, SummarizeAt  # noqa: E402
from window_sliding import (  # noqa: E402
    cut_at,
    everything,
    keep_last,
    replay_sliding,
    trim_each_turn,
    trim_to,
)

WORDS = "one two three four five six seven eight nine ten"
PICTURE = ("cost", "read", "sent", "calls", "worst", "folds", "turns", "lost", "said", "seen")


def tiny(seed, turns=5):
    """A few turns of very different sizes, some with a call and its result."""
    rnd = random.Random(seed)
    messages = [Message.system("Be brief.")]
    for turn in range(turns):
        messages.append(Message.user("word " * rnd.randint(1, 60)))
        if rnd.random() < 0.5:
            call = ToolCall(id=f"c{turn}", name="look", arguments="{}")
            messages.append(Message.assistant(None, [call]))
            messages.append(Message.tool("row " * rnd.randint(1, 90), call.id))
        messages.append(Message.assistant("answer " * rnd.randint(1, 40)))
    return talk_of(f"tiny-{seed}", messages)


@pytest.fixture(scope="module")
def talk():
    """A session that is some ten times as large as the windows below."""
    return talk_of("session", made_up(random.Random(5), 60))


def picture(outcome):
    return {name: pytest.approx(getattr(outcome, name)) for name in PICTURE}


# Billing


def test_a_prompt_is_cached_as_far_as_the_one_before_began_the_same(talk):
    """What both prompts begin with is read from the cache; all else is written to it."""
    short = Talk("short", talk.said[:8])
    first, second, *_ = short.calls

    outcome = replay_sliding(Talk("two", talk.said[: second + 1]), 100_000, everything)

    whole, grown = short.sums[first], short.sums[second]
    assert outcome.cost == pytest.approx(WRITE * whole + READ * whole + WRITE * (grown - whole))
    assert outcome.read == whole
    assert outcome.sent == whole + grown


def test_prompts_are_compared_from_the_beginning():
    """A message that differs ends what is the same, whatever stands behind it."""
    assert common([], [1, 2]) == 0
    assert common([1, 2], [1, 2, 3]) == 2
    assert common([1, 2, 3], [1, 9, 3]) == 1
    assert common([1, 2, 3], [1, 2]) == 2
    assert common([[1], [2]], [[1], [3]]) == 1  # equal, though not the same objects


def test_summaries_are_paid_for(talk):
    """A summary costs what it reads and what it writes, beside the prompts that show it."""
    run = Replay(talk, SummarizeAt(), 4_000)
    billed = []
    run.outcome.bill_summary = lambda tokens, written: billed.append((tokens, written))

    bare = run.run().cost

    whole = replay(talk, SummarizeAt(), 4_000).cost
    assert billed
    assert whole - bare == pytest.approx(sum(read + OUTPUT * wrote for read, wrote in billed))


def test_pooled_outcomes_are_means_over_calls():
    """Several sessions count as one long one: by their calls, not by their number."""
    small, large = Outcome(100), Outcome(100)
    small.bill(10, 0)
    for _ in range(3):
        large.bill(90, 0)

    whole = pooled([small, large])

    assert whole.fill == pytest.approx(0.7)
    assert whole.worst_fill == pytest.approx(0.9)


# What is shown


@pytest.mark.parametrize("limit", [1_500, 3_000, 6_000])
def test_trimming_without_folds_is_trimming_with_folds(talk, limit):
    """The short way in which trims are replayed gives what the view gives, to the token."""
    folded = replay(talk, Fit(), limit)

    short = replay_sliding(talk, limit, trim_to(limit))

    assert folded.folds > 20
    assert vars(short) == picture(folded) | {"window": limit, "samples": folded.samples}


def looked_up(*sizes):
    """A turn with a call for each size, so many words as its result, and a short turn behind it."""
    messages = [Message.user(f"Look up all of these, please, each by itself: {WORDS}, {WORDS}.")]
    for number, size in enumerate(sizes):
        call = ToolCall(id=f"c{number}", name="look", arguments="{}")
        messages += [Message.assistant(None, [call]), Message.tool("row " * size, call.id)]
    messages += [Message.assistant("Done."), Message.user("Thanks."), Message.assistant("Oh.")]
    return talk_of("looked-up", messages)


@pytest.mark.parametrize(
    ("sizes", "worst"),
    [
        pytest.param([100] * 14, 500, id="the calls between go with their results"),
        pytest.param([100] * 10 + [700], 900, id="the last call stays though it does not fit"),
    ],
)
def test_a_turn_that_is_too_large_is_trimmed_inside(sizes, worst):
    """Its first message and its last call stay; with folds or without, to the token."""
    large = looked_up(*sizes)

    folded = replay(large, Fit(), 500)
    short = replay_sliding(large, 500, trim_to(500))

    assert worst - 200 < short.worst <= worst
    assert vars(short) == picture(folded) | {"window": 500, "samples": 1}


def test_messages_are_trimmed_when_a_turn_begins(talk):
    """No more than has to go, so that what is shown is near the limit; and never in mid-turn, as
    long as the window holds it all."""
    limit = 3_000

    by_message = replay_sliding(talk, 10_000, trim_each_turn(limit, 10_000))
    by_turn = replay_sliding(talk, 10_000, trim_to(limit))

    assert by_message.folds <= len(talk.starts)
    assert by_turn.mean_tokens < by_message.mean_tokens
    assert by_message.worst > limit, "a turn goes on above the limit"
    assert replay_sliding(talk, limit, trim_each_turn(limit, limit)).worst <= limit


def test_a_result_goes_with_its_call_when_messages_are_trimmed(talk):
    """What is shown never begins with a result."""
    begins = []

    def watched(talk, prompt):
        begins.append(slide(talk, prompt))
        return begins[-1]

    slide = trim_each_turn(2_000, 10_000)
    replay_sliding(talk, 10_000, watched)

    assert len({prompt.cut for prompt in begins}) > 20
    assert not any(talk.is_result[prompt.cut] for prompt in begins)


def test_fixed_steps_go_from_the_start_to_the_target(talk):
    """No prompt is above the start, and folds are fewer where they go deeper."""
    shallow, deep = (replay(talk, FixedSteps(0.8, to), 6_000) for to in (0.6, 0.4))

    assert max(shallow.worst_fill, deep.worst_fill) <= 0.8
    assert shallow.folds > deep.folds > 0
    assert shallow.fill > deep.fill


def test_keep_last_shows_so_many_turns(talk):
    """The current turn and those before it, as many as are asked for."""
    three = replay_sliding(talk, 100_000, keep_last(3, 100_000))

    last = talk.calls[-1]
    start = talk.starts[talk.turn[last] - 2]
    assert three.said - three.lost == talk.head_tokens + talk.tokens(start, len(talk.said))


def test_everything_shows_every_fact(talk):
    """S2-56: what is never folded is never lost."""
    outcome = replay_sliding(talk, 4_000, everything)

    assert outcome.samples > 40
    assert outcome.retention == [1.0] * 4
    assert outcome.lost == 0
    assert outcome.worst_fill > 1


class Shorten:
    """Once, shortens the first result with a fact, to what is before or behind it."""

    name = "shorten"

    def __init__(self, side):
        self.side = side

    def plan(self, view, situation):
        for item in view.items:
            before, fact, behind = (item.message.text or "").partition("fact-")
            if item.fold is None and item.message.tool_call_id and fact and not view.folds:
                text = fact + behind if self.side == "behind" else before
                short = item.message.replace(content=text, id="short", synthetic="shortened")
                step = Step(first=item.first, last=item.last, kind="shorten", replacement=short)
                return Plan(by=self.name, reason="a test", steps=(step,))
        return nothing(self.name, situation, "done")


def test_a_fact_is_seen_in_the_part_that_is_left(talk):
    """S2-56: a shortened message shows its fact if the fact's part of the text is still there."""
    whole = replay(talk, FixedSteps(1.0, 1.0), 1_000_000).retention

    kept = replay(talk, Shorten("behind"), 1_000_000)
    gone = replay(talk, Shorten("before"), 1_000_000)

    assert kept.folds == gone.folds == 1
    assert kept.retention == whole == [1.0] * 4
    assert gone.retention[-1] < 1
    assert 0 < kept.lost < talk.total / 10


# The optimum


def schedules(talk, window):
    """All that can be done, one by one: where the prompt of each call begins."""
    places = [at for at in range(talk.head, len(talk.said)) if not talk.is_result[at]]

    def following(calls, least):
        if not calls:
            yield []
            return
        call, *rest = calls
        current = max(talk.head, talk.starts[talk.turn[call]])
        allowed = [at for at in places if least <= at <= current]
        fitting = [at for at in allowed if talk.head_tokens + talk.tokens(at, call) <= window]
        for cut in fitting or [current]:
            for more in following(rest, cut):
                yield [cut, *more]

    yield from following(talk.calls, talk.head)


def paid(talk, cuts):
    """The cost and the tokens of prompts that begin there, message by message."""
    cost, tokens, before = 0.0, 0, []
    sizes = [each.tokens for each in talk.said]
    for cut, call in zip(cuts, talk.calls, strict=True):
        now = [*range(talk.head), *range(cut, call)]
        same = sum(sizes[at] for at in now[: common(before, now)])
        whole = sum(sizes[at] for at in now)
        cost += READ * same + WRITE * (whole - same)
        tokens += whole
        before = now
    return cost, tokens


@pytest.mark.parametrize("seed", range(8))
def test_no_schedule_is_better_than_the_one_that_is_found(seed):
    """For every reward, the schedule is the best of all that there are, tried one by one."""
    talk = tiny(seed)
    window = int(talk.total * 0.5)
    tried = [paid(talk, cuts) for cuts in schedules(talk, window)]

    for reward in (0.0, 0.05, 0.2, 0.8, 2.0):
        found = schedule_for(talk, window, reward)

        least = min(cost - reward * tokens for cost, tokens in tried)
        assert (found.cost, found.tokens) == pytest.approx(paid(talk, found.cuts))
        assert found.cost - reward * found.tokens == pytest.approx(least)


@pytest.mark.parametrize("seed", range(8))
def test_the_least_cost_lies_between_the_bound_and_the_schedule(seed):
    """With a fill to be reached, nothing is below the bound, and the schedule reaches the fill."""
    talk = tiny(seed)
    window = int(talk.total * 0.5)
    tried = [paid(t, cuts) for t in (talk, talk.with_request()) for cuts in schedules(t, window)]
    costly = max(tokens for _, tokens in tried) / len(talk.calls)

    for share in (0.5, 0.7, 0.9):
        found = optimum(talk, window, share * costly)

        wanted = share * costly * len(talk.calls)
        least = min(cost for cost, tokens in tried if tokens >= wanted)
        assert found.bound <= least + 1e-6
        assert found.schedule.cost >= least - 1e-6
        assert found.schedule.tokens >= wanted
        assert found.schedule.worst <= window


def test_a_schedule_costs_what_its_replay_costs(talk):
    """The optimum is billed like everybody else."""
    ours = replay(talk, FixedSteps(0.8, 0.6), 6_000)

    best = optimum(talk, 6_000, ours.mean_tokens).schedule
    followed = replay_sliding(best.talk, 6_000, cut_at(best.cuts))

    assert followed.cost == pytest.approx(best.cost)
    assert followed.fill >= ours.fill
    assert followed.worst_fill <= 1
    assert followed.cost < ours.cost


# Conversations


def test_made_up_conversations_are_the_same_every_time():
    """Two runs on any machine replay the same words."""
    first, second = generated(30_000), generated(30_000)

    assert [t.total for t in first] == [t.total for t in second]
    assert [each.message.content for each in first[0].said] == [
        each.message.content for each in second[0].said
    ]
    assert sum(talk.total for talk in first) >= 30_000


def test_dialogues_are_strung_until_they_are_long_enough():
    """200 turns and four windows; the first system prompt stays; ids and facts are unique."""
    dialogues = [talk for talk in generated(150_000) if talk.kind == "dialogue"]

    strung, rounds = string(dialogues, 2_000)

    first = strung[0]
    roles = Counter(each.message.role for each in first.said)
    ids = [each.message.id for each in first.said]
    assert rounds == 1
    assert len(first.starts) >= 200
    assert first.total >= 4 * 2_000
    assert roles["system"] == 1
    assert len(ids) == len(set(ids))
    assert render([each.message for each in first.said]).repairs == ()


def test_too_few_dialogues_are_gone_through_again():
    """The second time under other ids and with other facts, and it is said."""
    dialogues = generated(4_000)

    found = sessions(dialogues, 2_000)

    (session,) = found.fitting
    facts = [each.fact for each in session.said if each.fact]
    calls = [call.id for each in session.said for call in each.message.tool_calls]
    assert "times" in found.note
    assert len(facts) == len(set(facts))
    assert len(calls) == len(set(calls))
    assert all(each.fact in each.message.text for each in session.said if each.fact)
    assert render([each.message for each in session.said]).repairs == ()


def test_sessions_with_a_turn_that_is_too_large_are_told_apart(talk):
    """A turn that no window of this size can hold would say nothing about policies."""
    found = sessions([talk], talk.turn_tokens_max - 1)
    assert found.fitting == []
    assert found.too_large == ([talk] if talk.total >= 4 * (talk.turn_tokens_max - 1) else [])

    found = sessions([talk], talk.turn_tokens_max)
    assert found.too_large == []


def test_some_of_many_are_taken_evenly():
    """From the whole list, the first included, always the same."""
    assert spread(list(range(100)), 4) == [0, 25, 50, 75]
    assert spread([1, 2], 4) == [1, 2]


# The program


def bench(*arguments):
    command = [sys.executable, str(BENCH / "window.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture
def folder(tmp_path):
    """A folder of a conversation as other programs write them, much too short for a session."""
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": WORDS},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": WORDS * 3, "tool_call_id": "c"},
        {"role": "assistant", "content": WORDS},
    ]
    lines = tmp_path / "mine.jsonl"
    lines.write_text(json.dumps({"id": "a", "messages": messages}) + "\n")
    return tmp_path


def test_a_folder_is_read(folder):
    """A conversation a line, in the form of OpenAI's chat API."""
    (found,) = read_folder(folder)

    assert [each.message.role for each in found.said] == ["user", "assistant", "tool", "assistant"]
    assert len(found.calls) == 2
    assert [each.fact is not None for each in found.said] == [False, False, True, False]


def test_the_last_line_is_the_summary(tmp_path):
    """Without conversations they are made up, and the bars are judged on those."""
    done = bench("--windows", "4000", "--only", "replay", "--conversations", str(tmp_path))

    last = done.stdout.splitlines()[-1]
    assert done.returncode == 0, done.stderr
    assert "made up" in done.stdout
    assert last.startswith("window: ") and "of trim" in last


def test_check_fails_when_a_bar_is_missed(folder):
    """Sessions that are missing are a bar that is missed: nothing was shown to hold."""
    lines = folder / "mine.jsonl"
    lines.write_text(lines.read_text().replace('"tool_calls"', '"other"'))
    arguments = ["--windows", "1000000", "--only", "replay", "--conversations", str(folder)]

    plain, checked = bench(*arguments), bench(*arguments, "--check")

    assert "1 of 1 bars missed" in checked.stdout.splitlines()[-1]
    assert (plain.returncode, checked.returncode) == (0, 1)
