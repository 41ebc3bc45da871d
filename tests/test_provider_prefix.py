"""The digest of a prefix: about what was said, and defined for good, because it is stored."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.messages import Message, ToolCall
from holdfast.parts import Text, Unknown
from holdfast.providers.prefix import Prefix
from holdfast.tools import Tool
from strategies import messages as any_messages

HI = Message.user('hi "there"')
CALL = ToolCall(id="c1", name="look", arguments="{}", signature="not a part of it")


def digest(*messages, system=None, tools=()):
    prefix = Prefix(system, tools)
    for message in messages:
        prefix.add(message)
    return prefix.digest


def line(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def test_the_definition_is_kept():
    """Digests are stored with messages: another definition would strip all thinking there is."""
    look = Tool("look", "Looks.", {"type": "object", "properties": {}})
    lines = [
        ["Be.", [["look", "Looks.", {"type": "object", "properties": {}}]]],
        ["user", 'hi "there"', [], None, False],
        ["assistant", [{"type": "text", "text": "é"}], [["c1", "look", "{}"]], None, False],
        ["tool", "sunny", [], "c1", True],
    ]
    expected = hashlib.sha256(b"".join(map(line, lines))).hexdigest()[:32]

    found = digest(
        HI,
        Message.assistant([Text("é")], [CALL]),
        Message.tool("sunny", "c1", is_error=True),
        system="Be.",
        tools=[look],
    )

    assert found == expected


def test_when_and_under_which_id_is_no_part_of_it():
    assert digest(HI) == digest(Message.user('hi "there"', author="Ada", extra={"a": 1}))


@pytest.mark.parametrize(
    "other",
    [
        Message.assistant('hi "there"'),
        Message.user("hi"),
        Message.user([Text('hi "there"')]),
        Message.user([Unknown({"a": 2**80})]),
    ],
)
def test_what_is_said_and_by_whom_is_part_of_it(other):
    assert digest(HI) != digest(other)


def test_the_order_of_tools_is_no_part_of_it():
    one, two = Tool("a"), Tool("b")

    assert digest(tools=[one, two]) == digest(tools=[two, one]) != digest(tools=[one])


@given(st.lists(any_messages, max_size=3))
def test_whatever_is_stored_has_a_digest(said):
    assert len(digest(*said)) == 32
