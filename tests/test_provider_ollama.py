"""The two wires of Ollama, the request: its own API, and the one that is like Anthropic's."""

import base64
import json

import msgspec
import pytest

from holdfast.messages import Message, ToolCall
from holdfast.notes import NOT_SHOWN
from holdfast.parts import Audio, CallRef, File, Image, Text, Thinking
from holdfast.providers.ollama import OllamaWire
from holdfast.providers.ollama_messages import OllamaMessagesWire
from holdfast.settings import Settings
from holdfast.testing import validators
from holdfast.tools import Tool

HI = Message.user("hi")
MODEL = "ollama:qwen3"
PNG = b"\x89PNG\r\n\x1a\n...."
PNG_BASE64 = base64.b64encode(PNG).decode()
LOOK = Tool("look", "Looks.", {"type": "object", "properties": {"a": {"type": "integer"}}})
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WIRES = {"native": OllamaWire, "messages": OllamaMessagesWire}
every_wire = pytest.mark.parametrize("kind", WIRES)


def sent(*messages, kind="native", model="qwen3", system=None, tools=(), wire=None, **asked):
    """The body as it goes out, which the validator accepts."""
    target = wire or WIRES[kind](model)
    made = target.to_wire(target.ask(messages, system, tools, **asked))
    body = json.loads(msgspec.json.encode(made))
    api = {"native": "ollama", "messages": "anthropic"}[kind]
    assert [str(each) for each in validators.problems(api, body, lenient=True)] == []
    return body


def shown(*messages, **options):
    return sent(*messages, **options)["messages"]


def asks(*ids, content=None, arguments='{"a": 1}', model=MODEL):
    calls = [ToolCall(id=id, name="look", arguments=arguments) for id in ids]
    return Message.assistant(content, calls, model=model)


def results(*ids):
    return [Message.tool(f"result {id}", id, name="look") for id in ids]


# Both


@every_wire
def test_only_bytes_of_pictures_are_taken_and_others_are_named(kind):
    """Neither API fetches an address, and an unknown block is passed over without a word."""
    body = json.dumps(
        shown(
            Message.user([Text("See:"), Image(data=PNG), Image(url="https://example.com/a.png")]),
            Message.user([Image(data=b"GIF89a", media_type="image/gif"), Audio(data=b"x")]),
            Message.user([File(data=b"%PDF-1.7", media_type="application/pdf")]),
            kind=kind,
        )
    )

    assert PNG_BASE64 in body and "example.com" not in body and "GIF" not in body
    named = [NOT_SHOWN.format(kind=what) for what in ("image", "audio", "file")]
    assert [body.count(each) for each in named] == [2, 1, 1]


@every_wire
def test_a_document_that_is_text_goes_as_text(kind):
    said = [Text("Read this:"), File(data=b"to be", media_type="text/plain", name="a.txt")]

    body = shown(Message.user(said), kind=kind)

    texts = body[0]["content"]
    assert (texts if kind == "native" else texts[0]["text"]) == "Read this:\n\na.txt:\nto be"


@every_wire
def test_texts_that_stand_together_are_a_line_apart(kind):
    """The server puts the texts of a message together with nothing between them."""
    body = shown(
        Message.user([Text("One."), Text("Two.")]),
        Message.user("Three."),
        Message.assistant("Yes."),
        Message.assistant("No."),
        Message.user("So?"),
        kind=kind,
    )

    if kind == "native":
        said = [each["content"] for each in body]
        assert said == ["One.\n\nTwo.", "Three.", "Yes.", "No.", "So?"]
    else:
        said = ["".join(block["text"] for block in each["content"]) for each in body]
        assert said == ["One.\n\nTwo.\n\nThree.", "Yes.\n\nNo.", "So?"]


@every_wire
def test_a_text_between_others_than_texts_stays_as_it_is(kind):
    messages = [HI, asks("c1", content="I look."), *results("c1"), Message.user("Well?")]

    body = json.dumps(shown(*messages, kind=kind))

    assert '"I look."' in body and '"Well?"' in body and '"result c1"' in body


@every_wire
def test_thinking_goes_back_to_the_model_that_thought_it_alone(kind):
    """S2-95: thinking as that API takes it, which is unsigned."""
    own, other = Thinking("I look it up."), Thinking("Signed.", "c2ln")
    call = ToolCall(id="c1", name="look", arguments="{}")
    said = [
        HI,
        Message.assistant([other, Text("Hm.")], model="anthropic:claude-sonnet-4-5"),
        HI,
        Message.assistant([own, Text("Wait."), CallRef("c1")], [call], model=MODEL),
        *results("c1"),
    ]

    body = shown(*said, kind=kind, tools=[LOOK])

    if kind == "native":
        assert [each.get("thinking") for each in body] == [None, None, None, "I look it up.", None]
    else:
        block = {"type": "thinking", "thinking": "I look it up.", "signature": ""}
        assert body[3]["content"][0] == block and "Signed" not in json.dumps(body)


# Its own


def test_a_conversation_is_messages_with_texts():
    body = sent(HI, Message.assistant("Hello."), Message.user("Who am I?"), system="Be brief.")

    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "Who am I?"},
    ]
    assert (body["model"], body["stream"]) == ("qwen3", False)  # it would stream if not told


def test_nothing_is_to_be_cut_in_silence():
    """A prompt that is too long is refused, and an answer that fills the window ends."""
    assert {name: sent(HI)[name] for name in ("truncate", "shift")} == {
        "truncate": False,
        "shift": False,
    }
    assert sent(HI, wire=OllamaWire("qwen3", num_ctx=8_192))["options"] == {"num_ctx": 8_192}


def test_calls_have_objects_and_results_name_their_tool():
    body = shown(HI, asks("c1", "c2"), *results("c1", "c2"), tools=[LOOK])

    assert body[1] == {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {"id": id, "function": {"name": "look", "arguments": {"a": 1}}} for id in ("c1", "c2")
        ],
    }
    assert body[2] == {
        "role": "tool",
        "content": "result c1",
        "tool_name": "look",
        "tool_call_id": "c1",
    }


@pytest.mark.parametrize(
    ("written", "sent_as"),
    [
        ('{"b": 1, "a": [1.50]}', {"b": 1, "a": [1.5]}),
        ("", {}),
        ('{"a": ', {"arguments": '{"a": '}),
        ("[1]", {"arguments": "[1]"}),
        ("null", {"arguments": "null"}),
    ],
)
def test_arguments_that_are_no_object_go_inside_one(written, sent_as):
    body = shown(HI, asks("c1", arguments=written), *results("c1"))

    assert body[1]["tool_calls"][0]["function"]["arguments"] == sent_as


def test_arguments_go_out_as_they_were_written():
    """To the letter, so that what was computed of them can be used again."""
    target = OllamaWire("qwen3")
    asked = target.ask([HI, asks("c1", arguments='{"a":  1.50}'), *results("c1")])

    assert b'"arguments":{"a":  1.50}' in msgspec.json.encode(target.to_wire(asked))


def test_pictures_stand_beside_the_text_also_of_a_tool():
    seen = Message.tool([Text("Here."), Image(data=PNG)], "c1", name="look")

    body = shown(Message.user([Text("Look!"), Image(data=PNG)]), asks("c1"), seen)

    assert body[0] == {"role": "user", "content": "Look!", "images": [PNG_BASE64]}
    assert (body[2]["content"], body[2]["images"]) == ("Here.", [PNG_BASE64])


def test_tools_are_declared_once():
    body = sent(HI, tools=[LOOK, LOOK])

    assert body["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "look",
                "description": "Looks.",
                "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}},
            },
        }
    ]


def test_an_answer_is_held_to_a_schema():
    assert sent(HI, schema=SCHEMA)["format"] == SCHEMA


@pytest.mark.parametrize(
    ("model", "thinking", "said"),
    [
        ("qwen3", "off", False),
        ("qwen3", 0, False),
        ("qwen3", "high", True),
        ("qwen3", 2_000, True),
        ("gpt-oss:20b", "off", False),
        ("gpt-oss:20b", "minimal", "low"),
        ("hf.co/x/GPT-OSS-20b", "low", "low"),
        ("gpt-oss:20b", 5_000, "medium"),
        ("gpt-oss:20b", "max", "high"),
    ],
)
def test_thinking_is_on_or_off_and_gpt_oss_is_told_how_hard(model, thinking, said):
    assert sent(HI, model=model, settings=Settings(thinking=thinking))["think"] is said or (
        sent(HI, model=model, settings=Settings(thinking=thinking))["think"] == said
    )
    assert "think" not in sent(HI, model=model)


def test_a_callers_fields_go_into_the_body():
    """Options are merged into ours."""
    own = {"keep_alive": "1h", "options": {"seed": 7}, "truncate": True}
    settings = Settings(temperature=1.5, max_tokens=50, extra={"ollama": own})

    body = sent(HI, settings=settings)

    assert body["options"] == {"num_predict": 50, "temperature": 1.5, "seed": 7}
    assert body["keep_alive"] == "1h" and body["truncate"] is True


@every_wire
def test_a_growing_conversation_begins_as_before(kind):
    """To the letter: the server has computed that already."""
    target = WIRES[kind]("qwen3")
    said = [HI, HI, asks("c1", content="I look."), *results("c1"), HI, Message.assistant("Done.")]
    rows = [
        [
            (each["role"], json.dumps(block))
            for each in shown(*said[:length], HI, wire=target, kind=kind)
            for block in (each["content"] if kind == "messages" else [each])
        ]
        for length in (1, 4, 6)
    ]

    assert rows[1][: len(rows[0])] == rows[0] and rows[2][: len(rows[1])] == rows[1]


# The one that is like Anthropic's


def test_it_is_anthropics_without_marks():
    """S2-94, S2-95: no cache annotations; the rest is what Anthropic's wire makes."""
    body = sent(HI, kind="messages", system="Be brief.", tools=[LOOK])

    assert body == {
        "model": "qwen3",
        "max_tokens": 16_000,
        "tools": [
            {
                "name": "look",
                "description": "Looks.",
                "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}}},
            }
        ],
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
    }


@pytest.mark.parametrize("model", ["qwen3", "claude-3-5-sonnet", "claude-opus-5-5"])
def test_the_name_of_a_model_says_nothing_there(model):
    """`ollama cp` gives a model any name, also that of a Claude."""
    settings = Settings(thinking="high", temperature=0.7)

    body = sent(HI, kind="messages", model=model, settings=settings, schema=SCHEMA)

    assert body["output_config"] == {"effort": "high"} and body["temperature"] == 0.7
    assert "JSON Schema" in body["system"][0]["text"]


@pytest.mark.parametrize(
    ("thinking", "field", "effort"),
    [
        ("off", {"type": "disabled"}, None),
        (0, {"type": "disabled"}, None),
        ("low", {"type": "adaptive"}, "low"),
        ("minimal", {"type": "adaptive"}, "low"),
        (2_000, {"type": "enabled", "budget_tokens": 2_000}, None),
    ],
)
def test_thinking_is_asked_for_as_that_api_takes_it(thinking, field, effort):
    """S2-95: models that can think do unless told not to."""
    body = sent(HI, kind="messages", settings=Settings(thinking=thinking))

    assert body["thinking"] == field
    assert body.get("output_config", {}).get("effort") == effort


def test_an_answer_is_asked_to_be_no_longer_than_the_window():
    wire = OllamaMessagesWire("qwen3", output_tokens_max=4_096)

    assert sent(HI, kind="messages", wire=wire)["max_tokens"] == 4_096
