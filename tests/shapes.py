"""What the tests of the shapes of other programs share: golden files, and short ways to read.

Golden files are written by hand from the contract of each shape. Times without a zone are read in
UTC here, so that the machine's own zone does not matter.
"""

from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from pathlib import Path

from holdfast.codec import jaato, kernel, lango, nanobot
from holdfast.messages import Message, Role, ToolCall
from holdfast.parts import CallRef, Image, Text, Thinking, Unknown

GOLDEN = Path(__file__).parent / "golden" / "codec"
ID = "01950000-0000-7000-8000-00000000000"
NOON = datetime(2026, 2, 1, 12, tzinfo=UTC)

to_line = partial(nanobot.encode, zone=UTC)


def at(text, **more):
    """The fields of a message whose time stood as `text`, without a zone, in a nanobot line."""
    time = datetime.fromisoformat(text).replace(tzinfo=UTC)
    return {"timestamp": time, "extra": {**more, "timestamp": text}}


def one(entries):
    (message,) = entries
    return message


def from_line(line):
    return one(nanobot.decode(line, zone=UTC))


def read(name):
    return (GOLDEN / name).read_bytes()


def same(found, expected, *carried):
    """Equal in what the shape carries; `carried` names more than the fields that all do."""
    fields = ("role", "content", "tool_calls", "tool_call_id", *carried)
    return [getattr(found, f) for f in fields] == [getattr(expected, f) for f in fields]


GOLDENS = {
    "kernel_text.json": (kernel.encode, kernel.decode, (), Message.user("Hello")),
    "kernel_calls.json": (
        kernel.encode,
        kernel.decode,
        (),
        Message.assistant(
            None,
            [ToolCall(id="call_1", name="render", arguments='{"html": "<b> & \u2028\u2029 é"}')],
        ),
    ),
    "kernel_result.json": (kernel.encode, kernel.decode, (), Message.tool("1 < 2", "call_1")),
    "kernel_picture.json": (
        kernel.encode,
        kernel.decode,
        (),
        Message.user(
            [
                Text("See:"),
                Image(url="https://example.com/a.png"),
                Image(data=b"\0\1\2", media_type="image/png"),
            ]
        ),
    ),
    "lango_call.json": (
        lango.encode,
        lango.decode,
        ("author", "timestamp"),
        Message.assistant(
            "Let me look.",
            [
                ToolCall(
                    id="call_1",
                    name="search",
                    arguments='{"q":"tea"}',
                    signature="c2ln",
                    extra={"thought": True},
                ),
                ToolCall(id="call_2", name="time", arguments=""),
            ],
            author="lango-orchestrator",
            timestamp=NOON,
        ),
    ),
    "lango_result.json": (
        lango.encode,
        lango.decode,
        ("author", "timestamp"),
        Message(
            Role.TOOL,
            "",
            tool_calls=(ToolCall(id="call_1", name="search", arguments="", output='{"hits": 3}'),),
            timestamp=NOON.replace(microsecond=5),
        ),
    ),
    "lango_escapes.json": (
        lango.encode,
        lango.decode,
        ("author", "timestamp"),
        Message(
            Role.MODEL,
            "1 < 2 & 3 > 2 \u2028",
            timestamp=NOON.replace(tzinfo=timezone(timedelta(hours=1))),
        ),
    ),
    "jaato_interleaved.json": (
        jaato.encode,
        jaato.decode,
        ("id",),
        Message(
            Role.MODEL,
            (Text("First Bern."), CallRef("call_1"), Text("Then Zürich.")),
            tool_calls=(
                ToolCall(id="call_1", name="weather", arguments='{"city":"Bern"}'),
                ToolCall(id="call_2", name="weather", arguments='{"city":"Zürich"}'),
            ),
            id=ID + "1",
        ),
    ),
    "jaato_thought.json": (
        jaato.encode,
        jaato.decode,
        ("id",),
        Message(Role.MODEL, (Thinking("Hm.", "c2ln"), Text("Hello.")), id=ID + "3"),
    ),
    "jaato_picture.json": (
        jaato.encode,
        jaato.decode,
        ("id",),
        Message.user(
            [
                Text("See:"),
                Image(data=b"\0\1\2", media_type="image/png"),
                Unknown({"type": "executable_code", "language": "python", "code": "1 + 1"}),
            ],
            id=ID + "4",
        ),
    ),
    "nanobot_user.jsonl": (
        to_line,
        partial(nanobot.decode, zone=UTC),
        ("id", "timestamp", "extra"),
        Message.user("Hello", id=ID + "1", **at("2026-02-01T12:00:00")),
    ),
    "nanobot_tools_used.jsonl": (
        to_line,
        partial(nanobot.decode, zone=UTC),
        ("id", "timestamp", "extra"),
        Message.assistant(
            "Hi there!",
            id=ID + "2",
            **at("2026-02-01T12:00:01.000005", tools_used=["web_search"]),
        ),
    ),
    "nanobot_call.jsonl": (
        to_line,
        partial(nanobot.decode, zone=UTC),
        ("id", "timestamp", "extra"),
        Message.assistant(
            None,
            [ToolCall(id="call_1", name="web_search", arguments='{"q": "Zürich"}')],
            id=ID + "3",
            **at("2026-02-23T12:00:00"),
        ),
    ),
    "nanobot_result.jsonl": (
        to_line,
        partial(nanobot.decode, zone=UTC),
        ("id", "timestamp", "extra", "name"),
        Message.tool(
            "12 °C", "call_1", name="web_search", id=ID + "4", **at("2026-02-23T12:00:00")
        ),
    ),
    "nanobot_reasoning.jsonl": (
        to_line,
        partial(nanobot.decode, zone=UTC),
        ("id", "timestamp", "extra"),
        Message.assistant(
            "Sunny.",
            id=ID + "5",
            **at(
                "2026-02-28T12:00:00",
                reasoning_content="Hm.",
                thinking_blocks=[{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}],
            ),
        ),
    ),
    "nanobot_late_fields.jsonl": (
        to_line,
        partial(nanobot.decode, zone=UTC),
        ("id", "timestamp", "extra"),
        Message.user(
            "/new",
            id=ID + "6",
            **at(
                "2026-05-01T12:00:00",
                media=["a.png"],
                _command=True,
                _channel_delivery={"id": 7},
                injected_event="x",
                cli_apps=[],
                _runtime_context={},
                _hidden_history=False,
            ),
        ),
    ),
    "nanobot_line_separator.jsonl": (
        to_line,
        partial(nanobot.decode, zone=UTC),
        ("id", "timestamp", "extra"),
        Message.user("one\u2028two\u2029three\x85four", id=ID + "7", **at("2026-02-20T12:00:00")),
    ),
    "nanobot_picture.jsonl": (
        to_line,
        partial(nanobot.decode, zone=UTC),
        ("id", "timestamp", "extra"),
        Message.user(
            [Text("See:"), Image(data=b"\0\1\2", media_type="image/png")],
            id=ID + "8",
            **at("2026-02-20T12:00:00"),
        ),
    ),
    "nanobot_our_fields.jsonl": (
        to_line,
        partial(nanobot.decode, zone=UTC),
        ("id", "timestamp", "extra", "author", "is_error", "model", "prefix", "stop", "synthetic"),
        Message(
            Role.ASSISTANT,
            "Hi",
            id=ID + "9",
            author="helper",
            is_error=True,
            model="vendor:model",
            prefix="ab12",
            stop="stop",
            synthetic="notice",
            **at("2026-02-20T12:00:00"),
        ),
    ),
}
