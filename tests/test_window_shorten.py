"""Shorter forms: the beginning and a notice, still the answer to the same call."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strategies
from holdfast.entries import Fold
from holdfast.messages import Message, ToolCall
from holdfast.notes import NOTICE
from holdfast.parts import Image, Text, Thinking
from holdfast.window import View
from holdfast.window.shorten import shorten_to, shortened

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PICTURE = Image(data=b"\x89PNG", media_type="image/png")
NOTICE_FOR_LINES = (
    "[NOTICE: This tool result was automatically truncated because it caused the prompt to exceed "
    "the model's context window. Only the first 20 of 300 lines are shown above (3500 estimated "
    "tokens removed). If you need more content, re-invoke the tool with offset/limit parameters "
    "to read in smaller chunks.]"
)


def result(content, **fields):
    return Message.tool(content, "c1", name="read", id="m1", timestamp=NOW, **fields)


def count(message):
    """A token for each four characters, a thousand for a picture, two for the message."""
    content = message.content
    parts = content if isinstance(content, tuple) else ()
    words = len(message.text or "") + sum(len(call.output or "") for call in message.tool_calls)
    return 2 + -(-words // 4) + 1_000 * sum(type(part) is Image for part in parts)


LINES = "\n".join(f"{number:049}" for number in range(300))  # 50 characters each, with its end
WORDS = "lorem ipsum " * 2_000


def test_of_many_lines_the_first_twenty_are_kept():
    """S2-60: more than 20 lines become the first 20, with the notice behind them."""
    shorter = shortened(result(LINES), 100)

    kept, notice = shorter.content.split("\n\n")
    assert kept.split("\n") == LINES.split("\n")[:20]
    assert notice == NOTICE_FOR_LINES


def test_of_few_lines_so_many_characters_go_as_have_to():
    """S2-60: len - removal × 4 characters are kept, up to a space in the last 200."""
    shorter = shortened(result(WORDS), 1_000)

    kept, notice = shorter.content.split("\n\n")
    assert kept == WORDS[: kept.rindex("m") + 1]
    assert len(WORDS) - 4_000 - 200 <= len(kept) <= len(WORDS) - 4_000
    assert notice == NOTICE.format(shown=len(kept), all="24000 characters", tokens=1_000)


def test_without_a_space_the_cut_is_where_it_has_to_be():
    """S2-60: the space is looked for in the last 200 characters only."""
    shorter = shortened(result("a " + "x" * 10_000), 1_000)

    assert shorter.content.split("\n\n")[0] == "a " + "x" * 6_000


def test_two_thousand_characters_are_always_kept():
    """S2-60: max(2000, …), however much should go."""
    shorter = shortened(result("x" * 10_000), 1_000_000)

    assert shorter.content.startswith("x" * 2_000 + "\n\n[NOTICE")


def test_twenty_lines_that_are_too_long_are_cut_too():
    """S2-60 keeps 20 lines; where these hold nearly all, that alone would make nothing shorter."""
    shorter = shortened(result("\n".join(["y" * 5_000] * 21)), 10_000)

    assert 60_000 < len(shorter.content) < 66_000


@pytest.mark.parametrize("content", [None, "", "x" * 799, "\n" * 799, [Text("x" * 799), PICTURE]])
def test_a_short_result_is_left_alone(content):
    """S2-60: results of fewer than 200 estimated tokens are skipped."""
    assert shortened(result(content), 1_000) is None


def test_what_a_notice_would_make_longer_is_left_alone():
    """A shorter form is shorter."""
    assert shortened(result("\n".join(["x" * 40] * 21)), 1_000) is None


def test_pictures_of_a_shortened_result_go_and_the_result_stays():
    """S2-60: attachments are dropped; the call keeps its one result."""
    shorter = shortened(result([Text(WORDS), PICTURE], is_error=True), 1_000)

    assert type(shorter.content) is str
    assert (shorter.role, shorter.tool_call_id, shorter.name) == ("tool", "c1", "read")
    assert shorter.is_error
    assert shorter.timestamp == NOW
    assert not shorter.starts_turn


def test_results_in_the_older_style_are_cut_where_they_stand():
    """The longest output is cut, others stay; content that repeats them does so no more."""
    calls = [
        ToolCall(id="a", name="f", arguments="", output="short"),
        ToolCall(id="b", name="g", arguments="", output=WORDS),
    ]
    message = Message("function", "short" + WORDS, tool_calls=calls, id="m1", timestamp=NOW)

    shorter = shortened(message, 5_000)

    assert [each.call_id for each in shorter.results] == ["a", "b"]
    assert shorter.results[0].content == "short"
    assert len(shorter.results[1].content) < len(WORDS) - 19_000
    assert shorter.content is None


@pytest.mark.parametrize(
    "message",
    [Message.system(WORDS), Message.assistant(WORDS), Message.assistant([Thinking(WORDS)])],
    ids=["system", "assistant", "thinking"],
)
def test_only_results_and_what_users_say_are_shortened(message):
    """What the model said, and what it was told, is never cut."""
    assert shortened(message, 1_000) is None
    assert shorten_to(message, 10, count) is None


def test_a_users_input_says_so_and_begins_no_turn():
    """S3-16: the same holds for one input; nobody is told to call a tool again for it."""
    shorter = shortened(Message.user(WORDS), 1_000)

    assert "[TRUNCATED: Input too large for context window]" in shorter.content
    assert not shorter.starts_turn


def test_a_result_over_its_limit_is_cut_until_it_is_under_it():
    """S3-16: cut to 95 % of the needed ratio, again until it fits, with a notice of its length."""
    shorter = shorten_to(result(LINES), 500, count)

    kept, notice = shorter.content.split("\n\n")
    assert LINES.startswith(kept)
    assert notice.split("\n")[:2] == [
        "[TRUNCATED: Output too large for context window]",
        "Original length: 300 lines",
    ]
    assert 0.9 * 500 < count(shorter) <= 500


def test_what_fits_is_not_shortened():
    """None is "as it is": nothing is cut for which there is room."""
    message = result(LINES)

    assert shorten_to(message, count(message), count) is None


def test_where_only_a_notice_fits_there_is_the_notice():
    """The result stays, whatever the limit is: at least as words that say that it is not shown."""
    shorter = shorten_to(result(LINES), 0, count)

    assert shorter.content.startswith("[TRUNCATED")


def test_what_is_shorter_than_the_notice_is_left_alone():
    """A limit below the notice does not make a message longer."""
    assert shorten_to(result("x" * 40), 5, count) is None


def test_to_leave_out_a_picture_may_be_enough():
    """All words stay when they fit without the picture."""
    shorter = shorten_to(result([Text("A boat."), PICTURE]), 200, count)

    assert shorter.content.startswith("A boat.\n\n[TRUNCATED")


def test_several_outputs_are_cut_until_the_message_fits():
    """The longest goes first, and further ones if that is not enough."""
    calls = [ToolCall(id=id, name="f", arguments="", output=LINES) for id in "abc"]
    message = Message("tool", None, tool_calls=calls)

    shorter = shorten_to(message, 5_000, count)

    assert 0.9 * 5_000 < count(shorter) <= 5_000
    assert [each.call_id for each in shorter.results] == ["a", "b", "c"]


CUTS = {
    "to a limit": lambda message, size: shorten_to(message, size, count),
    "by some": lambda message, size: shortened(message, count(message) - size),
}


@pytest.mark.parametrize("first", CUTS)
@pytest.mark.parametrize("second", CUTS)
def test_what_was_cut_before_still_says_how_long_it_was(first, second):
    """A notice takes the place of the earlier one, and remembers what that one knew."""
    text = "\n".join(["x" * 4_000] * 30)

    shorter = CUTS[second](CUTS[first](result(text), 15_000), 5_000)

    assert shorter.content.count("[NOTICE") + shorter.content.count("[TRUNCATED") == 1
    assert "30 lines" in shorter.content


def test_the_same_cut_is_the_same_message_and_another_has_another_id():
    """Counts are kept by id: other words need another one, and the same words the same."""
    message = result(LINES)

    once, again = shorten_to(message, 500, count), shorten_to(message, 500, count)
    other = shorten_to(message, 400, count)

    assert once == again
    assert once.id.startswith("m1:shortened:")
    assert len({message.id, once.id, other.id, shortened(message, 1).id}) == 4
    assert shorten_to(once, 400, count).id.count(":shortened:") == 1


def test_in_a_view_it_answers_the_call():
    """As the replacement of a fold it stands where the result stood."""
    view = View(count)
    call = ToolCall(id="c1", name="read", arguments="{}")
    said = [Message.user("?"), Message.assistant(None, [call]), result(LINES)]
    for seq, message in enumerate(said, start=1):
        view.add(seq, message)

    shorter = shorten_to(said[2], 500, count)
    view.add(4, Fold(first=3, last=3, replacement=shorter))

    assert list(view.rendered().messages) == [*said[:2], shorter]
    assert view.rendered().repairs == ()


@settings(max_examples=200)
@given(strategies.messages, st.integers(0, 400), st.integers(2, 200))
def test_any_message_can_be_asked_for_a_shorter_form(message, tokens_max, times):
    """A form that is shorter, of the same kind, with the same calls and results, or None."""
    if isinstance(message.content, str):
        message = message.replace(content=message.content * times)

    shorter = shorten_to(message, tokens_max, count)

    if shorter is not None:
        assert count(shorter) < count(message)
        assert shorter.role is message.role
        assert shorter.calls == message.calls
        was, now = message.results, shorter.results
        assert [each.call_id for each in now] == [each.call_id for each in was]
        assert shorten_to(message, tokens_max, count) == shorter
        assert count(shorter) <= tokens_max or "TRUNCATED" in str(shorter)


def test_in_a_view_several_results_in_one_message_answer_their_calls():
    """The shorter form answers all of them: no note says besides that results are not shown."""
    view = View(count)
    calls = [ToolCall(id=id, name="f", arguments="{}") for id in "ab"]
    results = [call.replace(arguments="", output=LINES) for call in calls]
    said = [
        Message.user("?"),
        Message.assistant(None, calls),
        Message("tool", None, tool_calls=results),
    ]
    for seq, message in enumerate(said, start=1):
        view.add(seq, message)

    view.add(4, Fold(first=3, last=3, replacement=shorten_to(said[2], 5_000, count)))

    assert [message.role for message in view.rendered().messages] == [
        *("user", "assistant", "tool", "tool")
    ]
    assert view.rendered().repairs == ()


def test_in_a_view_a_result_that_names_no_call_answers_the_one_it_answered():
    """Its shorter form names none either, and no note says besides that it is not shown."""
    view = View(count)
    call = ToolCall(id="a", name="f", arguments="{}")
    long = Message("function", LINES, name="f")
    said = [Message.user("?"), Message.assistant(None, [call]), long]
    for seq, message in enumerate(said, start=1):
        view.add(seq, message)

    view.add(4, Fold(first=3, last=3, replacement=shorten_to(long, 500, count)))

    assert [message.role for message in view.rendered().messages] == ["user", "assistant", "tool"]
    assert view.rendered().repairs == ()
