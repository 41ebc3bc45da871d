"""Shepherd's to_json, and its message types."""

import json

import pytest

from holdfast.codec import shepherd
from holdfast.errors import InvalidInput
from holdfast.messages import Message, Role, ToolCall
from shapes import read

CONVERSATION = (
    Message.system("Be brief."),
    Message.user("Grüße"),
    Message.assistant(None, [ToolCall(id="c", name="f", arguments="{}")]),
    Message.tool("12 °C", "c", name="f"),
)


def test_a_conversation_is_written_as_shepherd_writes_it():
    """S3-42: role and content of each; content is text, so nothing said is empty text."""
    assert shepherd.encode(CONVERSATION) == read("shepherd_session.json")


def test_what_shepherd_wrote_is_read_and_written_as_the_same_bytes():
    data = read("shepherd_session.json")

    found = shepherd.decode(data)

    assert [message.role for message in found] == [message.role for message in CONVERSATION]
    assert [message.text or "" for message in found] == ["Be brief.", "Grüße", "", "12 °C"]
    assert shepherd.encode(found) == data


def test_an_empty_conversation_is_an_empty_list():
    assert shepherd.encode([]) == b'{"messages":[]}'
    assert shepherd.decode(b'{"messages":[]}') == ()


def test_shepherds_keys_may_come_in_any_order():
    """Its JSON library sorts keys: content comes before role."""
    (found,) = shepherd.decode(b'{"messages":[{"content":"x","role":"user"}]}')

    assert (found.role, found.content) == (Role.USER, "x")


@pytest.mark.parametrize(
    ("message", "kind", "role"),
    [
        (Message.system("x"), "SYSTEM", "system"),
        (Message.user("x"), "USER", "user"),
        (Message.assistant("x"), "ASSISTANT", "assistant"),
        (Message(Role.MODEL, "x"), "ASSISTANT", "assistant"),
        (
            Message.assistant("x", [ToolCall(id="c", name="f", arguments="")]),
            "TOOL_REQUEST",
            "assistant",
        ),
        (Message.tool("x", "c"), "TOOL_RESPONSE", "tool"),
        (Message(Role.FUNCTION, "x"), "FUNCTION", "tool"),
    ],
    ids=["system", "user", "assistant", "model", "request", "response", "function"],
)
def test_a_message_has_one_of_shepherds_types(message, kind, role):
    """S3-5, S3-6, S3-7: six types and four roles; FUNCTION maps to a tool's response."""
    assert shepherd.message_type(message) == kind
    assert json.loads(shepherd.encode([message]))["messages"][0]["role"] == role


def test_shepherd_refuses_an_unknown_role():
    """A4: the source turns it into a user; here it is an error."""
    with pytest.raises(InvalidInput, match="narrator"):
        shepherd.decode(b'{"messages":[{"role":"narrator","content":"x"}]}')


@pytest.mark.parametrize(
    "data", [b"[]", b"{}", b'{"messages":{}}', b'{"messages":[1]}', b'{"messages":null}']
)
def test_what_is_no_conversation_of_shepherd_is_refused(data):
    with pytest.raises(InvalidInput):
        shepherd.decode(data)


def test_a_document_that_holds_more_than_messages_is_refused():
    """S3-42: to_json writes messages alone; what else is there would be lost."""
    with pytest.raises(InvalidInput, match="provider"):
        shepherd.decode(b'{"messages":[],"provider":"x"}')
