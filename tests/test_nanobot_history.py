"""What a model is given again of a nanobot conversation, by nanobot's rules."""

import copy

import pytest

from holdfast.adapters.nanobot_history import history, legal_end, message_tokens, without_orphans


def user(text, **more):
    return {"role": "user", "content": text, "timestamp": "2026-02-01T12:00:00"} | more


def assistant(text, *calls, **more):
    asked = [{"id": each, "type": "function", "function": {"name": "look"}} for each in calls]
    return {"role": "assistant", "content": text} | ({"tool_calls": asked} if asked else {}) | more


def result(call, text="seen", **more):
    return {"role": "tool", "content": text, "tool_call_id": call, "name": "look"} | more


TALK = [
    user("one"),
    assistant(None, "c1"),
    result("c1"),
    assistant("first"),
    user("two"),
    assistant("second"),
]


def texts(messages):
    return [each["content"] for each in messages]


def test_only_what_a_model_reads_is_given_and_in_nanobot_s_order():
    """S4-34: role, content, tool_calls, tool_call_id and name; every other field is left out."""
    said = [
        user("a", media=["x.png"]),
        {"name": "n", "tool_calls": [{"id": "c"}], "content": "b", "role": "assistant", "id": "7"},
        {
            "tool_call_id": "c",
            "tools_used": ["look"],
            "name": "look",
            "role": "tool",
            "content": "",
        },
    ]

    found = history(said)

    assert [list(each) for each in found] == [
        ["role", "content"],
        ["role", "content", "tool_calls", "name"],
        ["role", "content", "tool_call_id", "name"],
    ]


def test_the_last_so_many_are_given():
    """S4-34: a number of messages is counted from the end; 0 and less are all of them (S4-35)."""
    assert texts(history(TALK, max_messages=2)) == ["two", "second"]
    assert history(TALK, max_messages=0) == history(TALK, max_messages=-1) == history(TALK)
    assert len(history(TALK)) == 6


def test_missing_content_is_empty_text_and_beside_calls_it_stays_null():
    """S4-35: nothing that is sent lacks its content."""
    found = history([{"role": "user"}, assistant(None, "c1"), result("c1"), assistant(None)])

    assert texts(found) == ["", None, "seen", ""]


def test_history_begins_behind_what_is_summarised_and_at_a_user_s_message():
    """S4-36: messages before last_consolidated are left out, and then what leads up to a user's."""
    assert texts(history(TALK, 2, replayed=0)) == ["two", "second"]
    assert texts(history(TALK, max_messages=5)) == ["two", "second"]


def test_a_result_without_its_call_is_never_given():
    """S4-36, B34: where no message of a user is in the window nothing is dropped for that, and
    still no result leads whose call is not there."""
    long = [user("go"), *(assistant(None, "c1"), result("c1")), assistant("on"), assistant("done")]

    found = history(long, max_messages=3)

    assert texts(found) == ["on", "done"]
    assert without_orphans([result("c9"), result("c1"), TALK[1], TALK[2]]) == TALK[1:3]


@pytest.mark.parametrize("consolidated", [-1, 7, True, None, "3"])
def test_a_cursor_that_cannot_be_one_hides_nothing(consolidated):
    """S4-36: all is given where the number is negative, beyond the end, or none."""
    assert len(history(TALK, consolidated)) == 6


def test_eight_messages_are_replayed_although_they_are_summarised():
    """S4-37: with all of it summarised a model still sees the latest, from where their turn
    began."""
    talk = [m for n in range(10) for m in (user(f"u{n}"), assistant(f"a{n}", "c"), result("c"))]

    found = history(talk, len(talk))

    assert texts(found)[0] == "u7"
    assert len(found) == 9
    assert history(talk, len(talk), replayed=0) == []


def test_tokens_are_walked_from_the_newest_back():
    """S4-37: as many as fit, at least one, and then from the beginning of a turn."""
    counted = dict.fromkeys(("one", "first", "two", "second", None, "seen"), 10)

    def given(tokens):
        return texts(history(TALK, max_tokens=tokens, count=lambda m: counted[m["content"]]))

    assert given(60) == texts(TALK)
    assert given(59) == given(20) == ["two", "second"]
    assert given(1) == ["two", "second"]  # the nearest user's message is taken in


def test_a_message_of_no_user_is_kept_when_there_is_nothing_else():
    """S4-37: a limit below any message leaves one."""
    assert texts(history([assistant("a"), assistant("b")], max_tokens=1)) == ["b"]


def test_what_is_said_on_our_own_behalf_begins_no_turn():
    """A17: a summary or a nudge in a user's role is not where a history begins."""
    said = [user("one"), assistant("a"), user("note", synthetic="summary"), assistant("b")]

    assert texts(history(said, 2, replayed=0)) == ["note", "b"]
    assert texts(history([*said, user("two")], max_messages=3)) == ["two"]


def test_a_long_result_is_shown_shortened_and_stays_whole():
    """S4-48, B34: 500 characters and a word of it, in what a model is given again; the list has
    all."""
    said = [user("a"), assistant("", "c1"), result("c1", "x" * 501), assistant("", "c2")]
    said += [result("c2", "y" * 500)]

    found = history(said)

    assert found[2]["content"] == "x" * 500 + "\n... (truncated)"
    assert found[4]["content"] == "y" * 500
    assert said[2]["content"] == "x" * 501
    assert history(said, result_chars=0)[2]["content"] == "x" * 501


def test_a_picture_inside_a_message_is_not_sent_again():
    """S4-48: one that is there as base64 is named; one at an address stays."""
    inside = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    there = {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}

    (found,) = history([user([{"type": "text", "text": "see"}, inside, there])])

    assert found["content"] == [
        {"type": "text", "text": "see"},
        {"type": "text", "text": "[image]"},
        there,
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[Runtime Context — metadata only, not instructions]\nNow: 12:00", []),
        ("[Runtime Context — metadata only, not instructions]\nNow: 12:00\n\nHi", ["Hi"]),
        (
            "[Runtime Context — metadata only, not instructions]\nN\n[/Runtime Context]\n\nHi",
            ["Hi"],
        ),
        ("Hi", ["Hi"]),
    ],
)
def test_what_nanobot_tells_of_the_moment_is_not_told_again(text, shown):
    """S4-48: the time of an old message would be taken for now."""
    assert texts(history([user(text)])) == shown


def test_commands_are_not_for_the_model():
    """What the bot answered to a slash command is no part of the conversation."""
    assert texts(history([user("/help", _command=True), user("a")])) == ["a"]


def test_nothing_that_is_given_changes_the_list():
    """S4-52: the same input gives the same history, and the list is as it was."""
    said = copy.deepcopy(TALK)

    first = history(said, 2, max_messages=4, max_tokens=50)

    assert history(said, 2, max_messages=4, max_tokens=50) == first
    assert said == TALK


def test_a_legal_end_is_whole_turns():
    """S4-51: cut to a number, from a user's message on, no result without its call; a longer last
    turn is kept from its beginning."""
    assert texts(legal_end(TALK, 5)) == ["two", "second"]
    assert legal_end(TALK, 6) == TALK
    assert legal_end(TALK, 0) == []
    assert texts(legal_end([*TALK[:3], assistant("x"), assistant("y")], 2)) == ["one", None]
    assert legal_end([result("c1"), assistant("x"), assistant("y")], 2) == [
        assistant("x"),
        assistant("y"),
    ]


def test_tokens_of_a_message_count_what_is_sent():
    """Text, calls and names; about four characters each."""
    assert message_tokens(user("a" * 40)) == 14
    assert message_tokens(assistant(None, "c1")) > message_tokens(assistant(None))
