"""After a context overflow: twice something smaller, or the name of what does not fit."""

import pytest

from holdfast.errors import DoesNotFit, InvalidInput
from holdfast.messages import Message, ToolCall
from holdfast.parts import Image, Text
from holdfast.window.overflow import numbers, recover
from holdfast.window.truncate import Truncate
from window_cases import folded, ids, situation_of, turn, turns, unpaired, view_of, words


def long_turn(*sizes, lines=False):
    """A turn that waits for the model to go on after results of these tokens."""
    said = [Message.user("Read them.", id="u")]
    for number, size in enumerate(sizes, start=1):
        call = ToolCall(id=f"c{number}", name="read", arguments="{}")
        text = "\n".join([words(1)] * size) if lines else "word " * (size * 4 // 5)
        said.append(Message.assistant(None, [call], id=f"a{number}"))
        said.append(Message.tool(text, f"c{number}", name="read", id=f"r{number}"))
    return said


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("prompt of 210,000 tokens exceeds the limit of 200,000", (210_000, 200_000)),
        ("8500 tokens exceeded: the context limit is 8192", (8_500, 8_192)),
        ("prompt is too long: 212345 tokens > 200000 maximum", (212_345, 200_000)),
        ("maximum context length is 8192 tokens, you sent 9,001 (and 12 tools)", (9_001, 8_192)),
        ("exceed context limit: 190000 + 21000 > 200000", (211_000, 200_000)),
        ("error 400: 999 tokens, of 5,000", None),
        ("the context is full", None),
        ("", None),
    ],
)
def test_the_numbers_in_a_refusal_are_read(text, expected):
    """S2-59: `X exceeds … limit … Y` with four digits or more and commas stripped, or else the
    first two numbers over 1000."""
    assert numbers(text) == expected


def test_a_text_without_end_is_read_in_no_time():
    """A page instead of a refusal does not keep anybody waiting."""
    assert numbers("1234 exceeds limit " * 100_000) == (1_234, 1_234)


def test_the_first_time_the_window_is_collected():
    """S2-59: down to 80 % of the limit that the refusal named, oldest turns first."""
    view = view_of(turns(10, calls=1))
    situation = situation_of(view, fill=0.5)
    reported = (view.total + 500, view.total)

    plan = recover(view, situation, attempt=1, reported=reported)

    after = folded(view, plan, situation)
    assert plan.by == "evict"
    assert plan.tokens_before == view.total + 500
    assert plan.tokens_after <= 0.8 * view.total
    assert after.total <= 0.8 * view.total - 500
    assert ids(after)[-4:] == ids(view)[-4:]


def test_a_policy_that_is_passed_in_collects():
    """S2-59: the session's own, with the reason context_limit."""
    view = view_of(turns(10))

    plan = recover(view, situation_of(view, fill=0.5), attempt=1, policy=Truncate(2))

    assert plan.by == "truncate"
    assert plan.reason.startswith("context_limit")


def test_calls_that_wait_for_their_results_stay():
    """S2-59: a trailing message of the model with pending calls is kept."""
    pending = [ToolCall(id=id, name="look", arguments="{}") for id in ("p", "q")]
    view = view_of(
        [
            *turns(3, calls=1),
            *turn(4, calls=3, answer=False),
            Message.assistant(None, pending, id="pending"),
            Message.tool(words(50), "p", id="p"),
        ]
    )

    for attempt in (1, 2):
        plan = recover(view, situation_of(view), attempt=attempt)
        assert {"u4", "pending"} <= set(ids(folded(view, plan, situation_of(view))))


def test_the_second_time_the_longest_result_of_the_turn_is_cut():
    """S2-58, S2-60: largest first, down to 80 % of the limit; what is enough is enough."""
    view = view_of([*turns(2, calls=1, tokens=900), *long_turn(2_000, 6_000, 1_000)])
    situation = situation_of(view, fill=0.99)
    reported = (view.total, view.total - 100)

    plan = recover(view, situation, attempt=2, reported=reported)

    (step,) = plan.steps
    assert step.kind == "shorten"
    assert step.replacement.tool_call_id == "c2"
    after = folded(view, plan, situation)
    assert after.total <= 0.8 * (view.total - 100) + 100  # the notice has tokens of its own
    assert "[NOTICE: This tool result was automatically truncated" in step.replacement.text


def test_half_of_the_results_go_when_no_numbers_are_known():
    """S2-60: then half of all result tokens are to be removed."""
    view = view_of(long_turn(5_000, 2_000, 1_000))

    plan = recover(view, situation_of(view, fill=0.5), attempt=2)

    assert [step.replacement.tool_call_id for step in plan.steps] == ["c1"]
    assert 4_000 <= plan.freed <= 4_100


def test_of_many_lines_twenty_are_left_and_short_results_are_skipped():
    """S2-60: the first 20 lines; results of fewer than 200 tokens stay as they are."""
    view = view_of(long_turn(4_000, 190, 300, lines=True))
    situation = situation_of(view, fill=0.99)

    plan = recover(view, situation, attempt=2, reported=(view.total, 2_000))

    assert [step.replacement.tool_call_id for step in plan.steps] == ["c1"]
    assert plan.steps[0].replacement.text.count("wwww") == 20


def test_results_before_the_turn_are_cut_if_need_be():
    """The current turn first; earlier ones only if that is not enough."""
    earlier = [m.replace(id=f"old {m.id}") for m in long_turn(5_000)]
    view = view_of([*earlier, *turn(2), *long_turn(1_000)])
    situation = situation_of(view, fill=0.99)

    plan = recover(view, situation, attempt=2, reported=(view.total, view.total - 200))

    assert len(plan.steps) == 2


def test_cuts_go_deeper_where_it_would_not_fit_otherwise():
    """Two thousand characters of each of many results may still be too much, and it is known."""
    view = view_of(long_turn(*[800] * 20))
    situation = situation_of(view, fill=0.99)

    plan = recover(view, situation, attempt=2, reported=(view.total, 4_000))

    assert plan.tokens_after <= 0.8 * 4_000
    assert {step.kind for step in plan.steps} == {"shorten"}
    assert len(folded(view, plan, situation)) == len(view)


def test_a_result_is_long_because_of_its_pictures():
    """S2-60: they go; the words stay, and the result."""
    call = ToolCall(id="c", name="see", arguments="{}")
    pictures = [Text("Boats."), *[Image(data=b"x")] * 40]
    said = [Message.user("?"), Message.assistant(None, [call]), Message.tool(pictures, "c")]
    view = view_of(said)

    plan = recover(view, situation_of(view, fill=0.5), attempt=2)

    assert plan.steps[0].replacement.text.startswith("Boats.")


def test_each_attempt_is_smaller_than_what_was_sent():
    """S2-57, S2-59: both attempts of one turn, with and without numbers."""
    for reported in (None, (20_000, 9_000)):
        view = view_of([*turns(6, calls=1, tokens=500), *long_turn(3_000, 3_000)])
        sizes = [view.total]
        for attempt in (1, 2):
            situation = situation_of(view, fill=0.9)
            plan = recover(view, situation, attempt=attempt, reported=reported)
            view = folded(view, plan, situation)
            sizes.append(view.total)
            assert unpaired(view) == {}

        assert sizes == sorted(set(sizes), reverse=True)


def test_a_limit_that_was_kept_is_not_the_one_that_was_met():
    """Where the numbers say that it should have fitted, it still becomes smaller."""
    view = view_of(turns(10))
    situation = situation_of(view, fill=0.3)

    plan = recover(view, situation, attempt=1, reported=(100, 1_000_000))

    assert 0 < plan.tokens_after <= 0.8 * view.total


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ([Message.user(words(9_000))], "the user's message"),
        ([Message.user("?"), Message.assistant(words(9_000))], "the last answer"),
        ([Message.system(words(9_000)), Message.user("?")], "a system message"),
    ],
    ids=["user", "assistant", "system"],
)
@pytest.mark.parametrize("attempt", [1, 2])
def test_what_cannot_be_made_smaller_is_named(said, what, attempt):
    """S2-59: when nothing could be truncated, the error says what is too large, and by how much."""
    view = view_of(said)

    with pytest.raises(DoesNotFit) as raised:
        recover(view, situation_of(view), attempt=attempt, reported=(9_100, 8_000))

    assert raised.value.what == what
    assert raised.value.tokens > raised.value.tokens_max


def test_the_system_prompt_and_the_tools_are_named():
    """They are no message, and no plan can make them smaller."""
    view = view_of([Message.user("Hello.")])

    with pytest.raises(DoesNotFit, match="the system prompt with the tools has 9000 tokens"):
        recover(view, situation_of(view, base=9_000), attempt=1, reported=(9_006, 8_000))


def test_there_is_no_third_attempt():
    """S2-59: GC, then truncation, then the error."""
    view = view_of(turns(10))

    with pytest.raises(DoesNotFit):
        recover(view, situation_of(view), attempt=3)
    with pytest.raises(InvalidInput, match="attempt is counted from 1"):
        recover(view, situation_of(view), attempt=0)
