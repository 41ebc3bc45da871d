"""Histories as no careful program would leave them, made from a seed.

Each has calls without results, results without calls, twice, late or in another style, ids that are
shared, empty or unspeakable, roles in old spellings, thinking of other models and under other
prefixes, media that nobody can read, blank words and blocks of every vendor. The same seed gives
the same history, so a failure can be repeated: `history(Random(seed))`.
"""

from random import Random

from holdfast.messages import Message, Role, ToolCall
from holdfast.parts import Audio, CallRef, File, Image, Opaque, Text, Thinking, Unknown
from holdfast.settings import Settings
from holdfast.tools import Tool

PNG = b"\x89PNG\r\n\x1a\n" + bytes(24)
WORDS = (
    "hello", "Turin", "", " ", "\n\t", "a\x00b", "\u2028", "日本語のテキスト", "🙂", "\ufffd",
    '{"a": 1}', "[]", "null", "x" * 300, "</tool>", "\u200b", "é" * 40,
)  # fmt: skip
IDS = (
    "c1", "c2", "c3", "call_1", "toolu_01", "", " ", "id with spaces", "ünï", "a" * 200, "x/y:z",
    "c1-2", "\n",
)  # fmt: skip
NAMES = (
    "look", "weather", "a.b", "a_b", "", "名前", "n" * 200, "with space", "9lives", "__", "a/b:c",
)  # fmt: skip
ARGUMENTS = ("{}", '{"city": "Turin"}', "", "null", "[1]", '{"cut', '"text"', '{"a": {"b": []}}')
MODELS = (
    None, "anthropic:claude-sonnet-4-5", "anthropic:claude-opus-4-1", "openai:gpt-5",
    "openai:gpt-4.1", "google:gemini-2.5-pro", "google:gemini-3-pro-preview", "somebody:else",
)  # fmt: skip
OPAQUE = (
    Opaque("somebody", {"type": "thing", "n": 1}),
    Opaque(
        "anthropic",
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"q": "x"}},
    ),
    Opaque("google", {"executableCode": {"language": "PYTHON", "code": "1"}}),
)  # fmt: skip


def words(random: Random) -> str:
    return "".join(random.choice(WORDS) for _ in range(random.choice((1, 1, 1, 2, 3))))


def media(random: Random):
    kind = random.choice((Image, Image, File, Audio))
    types = {
        Image: ("image/png", "image/jpeg", "image/tiff", None, "text/html"),
        File: ("application/pdf", "text/plain", "application/zip", None),
        Audio: ("audio/wav", "audio/mpeg", "audio/x-odd", None),
    }[kind]
    source = random.choice((
        {"data": PNG}, {"data": b""}, {"url": "https://example.org/a.png"}, {"url": "gs://b/a"},
        {"url": "data:image/png;base64,AAAA"}, {"url": ""}, {"blob": "ab" * 16},
        {"data": b"plain text"}, {"url": "file:///etc/passwd"},
    ))  # fmt: skip
    named = {"name": random.choice((None, "", "a.pdf", "nämé"))} if kind is File else {}
    return kind(media_type=random.choice(types), **source, **named)


def part(random: Random):
    kind = random.random()
    if kind < 0.4:
        extra = {"signature": "c2ln"} if random.random() < 0.2 else {}
        return Text(words(random), extra=extra)
    if kind < 0.55:
        if random.random() < 0.3:
            return Thinking("", "c2VhbGVk", redacted=True)
        return Thinking(words(random), random.choice((None, "", "c2ln")))
    if kind < 0.7:
        return media(random)
    if kind < 0.8:
        return CallRef(random.choice(IDS))
    if kind < 0.9:
        return random.choice(OPAQUE)
    return Unknown(random.choice(({"type": "later", "x": 1}, "bare", 7, None, [1])))


def content(random: Random):
    kind = random.random()
    if kind < 0.15:
        return None
    if kind < 0.6:
        return words(random)
    return [part(random) for _ in range(random.randrange(5))]


def tool_call(random: Random, *, output: float):
    has_output = random.random() < output
    return ToolCall(
        id=random.choice(IDS),
        name=random.choice(NAMES),
        arguments=random.choice(ARGUMENTS),
        output=words(random) if has_output else None,
        is_error=has_output and random.random() < 0.3,
        signature=random.choice((None, None, "c2ln")),
    )


def message(random: Random) -> Message:
    role = random.choice((*Role, Role.USER, Role.ASSISTANT, Role.ASSISTANT, Role.TOOL, Role.TOOL))
    is_result = role.canonical is Role.TOOL or random.random() < 0.05
    has_calls = role.canonical is Role.ASSISTANT and random.random() < 0.5
    calls = [
        tool_call(random, output=0.1 if has_calls else 0.9)
        for _ in range(random.randrange(1, 4) if has_calls or random.random() < 0.1 else 0)
    ]
    return Message(
        role,
        content(random),
        tool_calls=calls,
        tool_call_id=random.choice((None, *IDS)) if is_result else None,
        name=random.choice((None, *NAMES)) if random.random() < 0.3 else None,
        is_error=random.random() < 0.1,
        model=random.choice(MODELS),
        prefix=random.choice((None, None, "00" * 16)),
        stop=random.choice((None, "stop", "tool_use", "max_tokens", "odd")),
        synthetic=random.choice((None, None, None, "summary")),
    )


def exchange(random: Random) -> list[Message]:
    """A turn as it should be, to be broken afterwards."""
    model = random.choice(MODELS)
    ids = random.sample(IDS[:5], random.randrange(1, 4))
    calls = [ToolCall(id=id, name=random.choice(NAMES), arguments="{}") for id in ids]
    thought = [Thinking("hm", "c2ln")] if random.random() < 0.5 else []
    return [
        Message.user(words(random)),
        Message.assistant([*thought, Text("Let me see.")], calls, model=model),
        *(Message.tool(content(random), id) for id in ids),
        Message.assistant(words(random), model=model),
    ]


def history(random: Random) -> list[Message]:
    """Messages in any order; often a conversation from which something was cut or moved."""
    if random.random() < 0.5:
        return [message(random) for _ in range(random.randrange(8))]
    said = [each for _ in range(random.randrange(1, 4)) for each in exchange(random)]
    for _ in range(random.randrange(4)):
        what, place = random.random(), random.randrange(len(said))
        if what < 0.4:
            del said[place]
        elif what < 0.6:
            said.insert(random.randrange(len(said) + 1), said[place])
        elif what < 0.8:
            said.insert(place, message(random))
        else:
            said.insert(random.randrange(len(said)), said.pop(place))
        if not said:
            return said
    start = random.randrange(len(said)) if random.random() < 0.3 else 0
    stop = random.randrange(len(said)) + 1 if random.random() < 0.3 else len(said)
    return said[start:stop]


def tools(random: Random) -> list[Tool]:
    """Tools under names of which few are allowed everywhere, no two the same."""
    names = random.sample([name for name in NAMES if name], random.randrange(4))
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    return [Tool(name, random.choice(("", "Looks it up.")), schema) for name in names]


def settings(random: Random) -> Settings:
    return Settings(
        thinking=random.choice((None, None, "low", "high", 2048, "off")),
        temperature=random.choice((None, 0.0, 1.0)),
        max_tokens=random.choice((None, 16, 4096)),
    )


def schema(random: Random):
    shape = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
             "additionalProperties": False}  # fmt: skip
    return random.choice((None, None, shape))
