"""The latest messages that fit a number of tokens, and the estimate that they are measured with."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.messages import Message, ToolCall
from holdfast.parts import Image, Text
from holdfast.window.recent import history_budget, recent, rough_tokens, text_tokens


def said(text="x" * 40, **fields):
    """14 tokens by the estimate: 10 of text and 4 of the message."""
    return Message.user(text, **fields)


def asks(*ids):
    calls = [ToolCall(id=id, name="look", arguments="{}") for id in ids]
    return Message.assistant(None, calls)


def result(id):
    return Message.tool("x" * 40, id)


def one(_message):
    return 1


# ---- the estimate ----


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("abc", 0),
        ("abcd", 1),
        ("hello world", 2),
        ("안녕하세요", 2),
        ("日本語", 1),
        ("こんにちは", 1),
        ("hi 你好吗", 1),
        ("㐀䶿一鿿", 2),
        ("가힯", 1),
        ("\u33ff\u4dc0\ua000\uabff\ud7b0", 1),  # just outside: five other characters
    ],
)
def test_a_text_is_estimated_by_its_characters(text, tokens):
    """S1-53: four characters a token, or two of Chinese and Korean; each kind is rounded down."""
    assert text_tokens(text) == tokens


def test_a_message_costs_four_more_and_its_calls_count():
    """S1-53: id, name, input and output of a call are texts like others."""
    call = ToolCall(id="call-123", name="look", arguments='{"at": 1}', output="x" * 16)

    assert rough_tokens(Message.user("abcd")) == 5
    assert rough_tokens(Message.assistant(None)) == 4
    assert rough_tokens(Message.assistant("abcd", [call])) == 4 + 1 + 2 + 1 + 2 + 4


def test_only_the_words_of_parts_count():
    """S1-53: the estimate knows no pictures."""
    assert rough_tokens(Message.user([Text("abcd"), Image(data=b"123"), Text("efgh")])) == 6


# ---- budgets ----


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("claude-sonnet-4-5", 100_000),
        ("anthropic/Claude-3-opus", 100_000),
        ("gemini-2.5-pro", 200_000),
        ("models/GEMINI-1.5-flash", 200_000),
        ("gpt-4o-mini", 64_000),
        ("GPT-4-Turbo-preview", 64_000),
        ("gpt-4", 32_000),
        ("gpt-4.1", 32_000),
        ("gpt-3.5-turbo", 8_000),
        ("llama-3", 32_000),
        ("", 32_000),
    ],
)
def test_a_history_budget_goes_by_a_part_of_the_name(model, tokens):
    """S1-52: in any case, the longer name first."""
    assert history_budget(model) == tokens


# ---- the latest messages ----


@pytest.mark.parametrize(("budget", "kept"), [(41, 2), (42, 3), (55, 3), (56, 4), (1_000, 4)])
def test_the_latest_messages_that_fit_are_kept(budget, kept):
    """S1-52: from the newest back, while the sum is no more than the budget."""
    messages = [said() for _ in range(4)]

    assert recent(messages, budget) == tuple(messages[-kept:])


@pytest.mark.parametrize("budget", [0, 1, 13])
def test_the_newest_message_is_always_kept(budget):
    """S1-52: even if it alone is more than the budget, and then nothing else is."""
    messages = [said("a"), said("b"), said()]

    assert recent(messages, budget) == (messages[-1],)


def test_a_short_message_behind_a_long_one_is_not_reached():
    """S1-52: the walk ends at the first that does not fit, so that nothing is missing between."""
    messages = [said("a"), said("x" * 4_000), said("b")]

    assert recent(messages, 100) == (messages[-1],)


def test_what_is_left_does_not_begin_with_a_result():
    """S1-52: a result whose call was cut off is dropped, and the next one too."""
    messages = [said(), asks("a", "b"), result("a"), result("b"), said(), said()]

    assert recent(messages, 4, one) == tuple(messages[4:])
    assert recent(messages, 5, one) == tuple(messages[1:])


def test_what_is_left_does_not_begin_with_calls_that_have_no_result():
    """S1-52: calls at the beginning go when something else than a result follows them."""
    messages = [said(), asks("a"), said(), said()]

    assert recent(messages, 3, one) == tuple(messages[2:])


def test_calls_and_results_are_dropped_until_neither_stands_first():
    """S1-52: what one drop lays bare is looked at again."""
    messages = [said(), result("z"), asks("a"), asks("b"), result("b"), said()]

    assert recent(messages, 5, one) == tuple(messages[3:])


def test_nothing_is_dropped_where_nothing_was_cut():
    """S1-52: a history that fits is shown as it is, even if it begins with a result."""
    messages = [result("z"), asks("a"), said()]

    assert recent(messages, 3, one) == tuple(messages)


def test_the_newest_is_kept_even_if_it_is_a_result():
    """S1-52: there is always something to show."""
    messages = [asks("a"), result("a")]

    assert recent(messages, 1, one) == (messages[-1],)


def test_an_empty_history_stays_empty():
    """S1-52: there is nothing to keep."""
    assert recent([], 100) == ()


@pytest.mark.parametrize("budget", [-1, 1.5, None, True])
def test_a_history_budget_is_a_whole_number(budget):
    """S1-52: tokens are counted."""
    with pytest.raises(InvalidInput, match="budget"):
        recent([said()], budget)


@given(
    st.lists(st.tuples(st.sampled_from("uatc"), st.integers(0, 30)), max_size=12),
    st.integers(0, 100),
)
def test_what_is_kept_is_the_end_and_fits(kinds, budget):
    """S1-52: always an end of the history, within the budget unless it is one message."""
    makers = {"u": said(), "a": Message.assistant("hi"), "t": result("a"), "c": asks("a")}
    messages = [makers[kind].replace(id=str(i)) for i, (kind, _) in enumerate(kinds)]
    tokens = {str(i): weight for i, (_, weight) in enumerate(kinds)}

    kept = recent(messages, budget, lambda message: tokens[message.id])

    assert kept == tuple(messages[len(messages) - len(kept) :])
    assert bool(kept) == bool(messages)
    assert len(kept) <= 1 or sum(tokens[message.id] for message in kept) <= budget
