"""Cache breakpoints: where they stand, and what they are worth.

What they are worth is told by the simulator of `holdfast.testing`, which bills by the vendor's
published rules and was written apart from the placement.
"""

import gzip
import json
import os
from pathlib import Path

import msgspec
import pytest

from holdfast import codec
from holdfast.errors import InvalidInput
from holdfast.messages import Message, Role, ToolCall
from holdfast.parts import CallRef, Opaque, Text, Thinking
from holdfast.providers import anthropic_cache
from holdfast.providers.anthropic import AnthropicWire
from holdfast.settings import Settings
from holdfast.testing import validators
from holdfast.testing.prompt_cache import PromptCache, Total, replay
from holdfast.tools import Tool
from holdfast.window.render import render

ROOT = Path(__file__).parent.parent
CORPUS = Path(os.environ.get("HOLDFAST_CORPUS") or ROOT.parent / "shared" / "corpus")
CONVERSATIONS = sorted((CORPUS / "conversations").glob("*.jsonl.gz"))
TURNS_MIN = 10
MESSAGES_MAX = 250  # of one conversation: requests grow with the square of it

needs_conversations = pytest.mark.skipif(
    not CONVERSATIONS, reason=f"no corpus of conversations in {CORPUS} (HOLDFAST_CORPUS)"
)

WIRE = AnthropicWire("claude-sonnet-4-5")
LONG = "The prompt has to be longer than what is too short for the cache. " * 200


def body_of(messages, system=None, tools=(), wire=WIRE, **options):
    body = wire.to_wire(wire.ask(messages, system, tools, **options))
    return msgspec.json.decode(msgspec.json.encode(body))


def bodies_of(messages, system=None, wire=WIRE, **options):
    """The requests of a conversation: one before each message of the assistant."""
    shown = None
    for at, message in enumerate(messages):
        if at and message.role.canonical is Role.ASSISTANT:
            shown = render(messages[:at], last=shown).messages
            yield body_of(shown, system, wire=wire, **options)


def marks_of(body):
    """The blocks that are marked: message and block, counted from the end of each list."""
    return [
        (at - len(body["messages"]), number - len(message["content"]))
        for at, message in enumerate(body["messages"])
        for number, block in enumerate(message["content"])
        if "cache_control" in block
    ]


def call(id):
    return ToolCall(id=id, name="look", arguments="{}")


def turn(number, calls=1, thought=None, name=WIRE.name):
    """A turn of the user's with a round of tools, as messages."""
    ids = [f"c{number}-{each}" for each in range(calls)]
    before = [Thinking(thought, "sig")] if thought else []
    return [
        Message.user(f"Question {number}. {LONG[:400]}"),
        Message.assistant([*before, Text("I look.")], [call(id) for id in ids], model=name),
        *(Message.tool(f"Result {id}. {LONG[:200]}", id) for id in ids),
        Message.assistant([*before, Text("So it is.")], model=name),
    ]


def talk(turns, **options):
    return [message for number in range(turns) for message in turn(number, **options)]


# Where they stand


def test_the_end_of_this_request_and_the_end_of_the_last_one_are_marked():
    """S2-88: and the opening of the turn before, in case its thinking is forgotten."""
    body = body_of([*talk(2), Message.user("And now?")], "s")

    assert marks_of(body) == [(-5, -1), (-3, -1), (-1, -1)]
    assert body["system"][-1]["cache_control"] == {"type": "ephemeral"}
    assert body["messages"][-5]["content"][0]["text"].startswith("Question 1")


def test_the_first_request_is_marked_at_its_end():
    assert marks_of(body_of([Message.user("hi")])) == [(-1, -1)]


def test_without_a_system_instruction_the_last_tool_is_marked():
    """S2-88."""
    body = body_of([Message.user("hi")], tools=[Tool("b"), Tool("a")])

    assert ["cache_control" in tool for tool in body["tools"]] == [False, True]


def test_system_and_tools_share_one_mark():
    body = body_of([Message.user("hi")], "s", [Tool("a")])

    assert "cache_control" not in body["tools"][0]
    assert "cache_control" in body["system"][0]


def test_thinking_is_never_marked():
    """A paused turn ends in what only the vendor wrote, which can be."""
    asked = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "w", "input": {}}
    messages = [
        Message.user("hi"),
        Message.assistant(
            [Text("a"), Thinking("h", "s"), Opaque("anthropic", asked)],
            model=WIRE.name,
            stop="pause_turn",
        ),
    ]

    body = body_of(messages)

    assert marks_of(body) == [(-2, -1), (-1, -1)]
    assert validators.problems("anthropic", body) == []


def test_a_block_that_cannot_be_marked_is_passed_over():
    thought, words, blank = Thinking("h", "s"), Text("a"), Text("\n")
    asked = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "w", "input": {}}
    found = {"type": "w_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    server = [Opaque("anthropic", asked), Opaque("anthropic", found)]

    made = WIRE.fragment(Message.assistant([words, *server, blank], model=WIRE.name))
    other = WIRE.fragment(Message.assistant([words, thought, CallRef("c1"), words, thought]))

    assert (made.kinds, other.kinds) == ("xsob", "xtx")
    assert anthropic_cache.places([made]) == [(0, 2)]
    assert anthropic_cache.places([made._replace(kinds="xttb")]) == [(0, 0)]
    assert anthropic_cache.places([made._replace(kinds="tttt")]) == []


def test_what_was_made_up_for_this_request_is_not_all_that_is_marked():
    """B37: the result will be another next time; what stands before it can be read then."""
    messages = [Message.user("hi"), Message.assistant("a", [call("c1"), call("c2")])]

    body = body_of([*messages, Message.tool("1", "c1")])

    assert marks_of(body) == [(-3, -1), (-1, -2), (-1, -1)]


def test_what_is_put_into_one_message_is_marked_where_it_ends():
    """B37: in the middle of a message, if that is where the last request ended."""
    one, two, three = (Message.user(words) for words in ("1", "2", "3"))

    assert marks_of(body_of([one, two])) == [(-1, -1)]
    assert marks_of(body_of([one, two, Message.assistant("a"), three])) == [(-3, -1), (-1, -1)]


def test_there_are_never_more_than_four():
    """S2-88."""
    extra = {
        "anthropic": {
            "cache_control": {"type": "ephemeral"},
            "tools": [
                {
                    "type": "web_search_20250305",
                    "name": "web_search",
                    "cache_control": {"type": "ephemeral"},
                }
            ],
        }
    }

    body = body_of([*talk(3), Message.user("x")], "s", settings=Settings(extra=extra))

    assert len(marks_of(body)) == 1
    assert validators.problems("anthropic", body) == []


def test_no_cache_no_marks():
    body = body_of(talk(2), "s", [Tool("a")], wire=AnthropicWire("claude-sonnet-4-5", cache=False))

    assert b"cache_control" not in msgspec.json.encode(body)


def test_an_hour_costs_more_and_is_asked_for_everywhere():
    """S2-88."""
    body = body_of([*talk(2), Message.user("x")], "s", wire=AnthropicWire(WIRE.model, ttl="1h"))

    hour = {"type": "ephemeral", "ttl": "1h"}
    blocks = [block for message in body["messages"] for block in message["content"]]
    marks = [
        block["cache_control"] for block in [*body["system"], *blocks] if "cache_control" in block
    ]
    assert marks == [hour] * 4
    with pytest.raises(InvalidInput):
        AnthropicWire(WIRE.model, ttl="2h")


def test_marks_leave_what_was_made_of_the_messages_as_it_is():
    """The next request marks other blocks, of the same fragments."""
    shown = render(talk(2)).messages
    first = WIRE.ask(shown)
    before = [fragment.blocks for fragment in first.prepared.fragments]

    WIRE.to_wire(first)

    assert [fragment.blocks for fragment in WIRE.ask(shown).prepared.fragments] == before
    assert b"cache_control" not in b"".join(block for blocks in before for block in blocks)


# What they are worth


@pytest.mark.parametrize(
    "messages",
    [
        talk(12),
        talk(12, thought="Let me think about it."),
        talk(4, calls=30),
        talk(4, calls=30, thought="Let me think about it."),
        [Message.user(LONG), *[Message.assistant("a") for _ in range(6)]],
    ],
    ids=["turns", "thinking", "many calls", "many calls and thinking", "one after the other"],
)
@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-sonnet-4-6", "claude-opus-5-5"])
def test_a_growing_conversation_reads_what_it_wrote(messages, model):
    """All of it, from the second request on: also by models that forget thinking (S2-86, B36)."""
    wire = AnthropicWire(model)
    own = [m.replace(model=wire.name) if m.role is Role.ASSISTANT else m for m in messages]
    settings = Settings(thinking="low")
    cache = PromptCache()

    billed = [
        cache.bill(body, now_s=30 * number)
        for number, body in enumerate(bodies_of(own, LONG * 2, wire, settings=settings))
    ]

    assert [each.refused for each in billed if each.refused] == []
    assert all(each.cache_read > 0 for each in billed[1:])
    assert sum(each.cache_read for each in billed) == sum(each.readable for each in billed)


def test_the_head_is_read_by_another_conversation():
    first = [Message.user("One."), Message.assistant("1")]
    other = [Message.user("Two."), Message.assistant("2")]
    cache = PromptCache()

    billed = [
        cache.bill(body, now_s=30 * number)
        for number, body in enumerate([*bodies_of(first, LONG), *bodies_of(other, LONG)])
    ]

    assert billed[1].cache_read == billed[1].readable > 0


@needs_conversations
def test_of_what_could_be_read_from_the_cache_nearly_all_is():
    """Pooled over real conversations of ten turns and more: at least 97 %."""
    total, count = Total(), 0
    for path in CONVERSATIONS:
        with gzip.open(path, "rt", encoding="utf-8", newline="\n") as lines:
            for number, line in enumerate(lines):
                if path.name.startswith("tau-bench") and number % 10:
                    continue
                raw = json.loads(line)["messages"]
                messages = [m for each in raw for m in codec.read_plain(json.dumps(each))]
                if sum(message.starts_turn for message in messages) < TURNS_MIN:
                    continue
                total += replay(bodies_of(messages[:MESSAGES_MAX]))
                count += 1

    assert count > 30
    assert total.refused == ()
    assert total.share >= 0.97
