"""Chat Completions, the request: what messages, tools and settings become, for each dialect."""

import base64
import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.frozen import FrozenDict
from holdfast.messages import Message, ToolCall
from holdfast.notes import UNANSWERED
from holdfast.parts import Audio, CallRef, File, Image, Opaque, Text, Thinking
from holdfast.providers import openai_shared as shared
from holdfast.providers.openai_chat import OpenAIChatWire, dialect_of
from holdfast.providers.openai_chat_dialect import (
    AZURE,
    DEEPSEEK,
    MISTRAL,
    MOONSHOT,
    OPENAI,
    OPENROUTER,
    PERPLEXITY,
    ROUTER,
    UNKNOWN,
    Dialect,
)
from holdfast.settings import Settings
from holdfast.testing import validators
from holdfast.tools import Tool
from strategies import messages as any_messages
from test_window_render import MESSAGES

DIALECTS = {
    "openai": OPENAI,
    "azure": AZURE,
    "router": ROUTER,
    "deepseek": DEEPSEEK,
    "moonshot": MOONSHOT,
    "mistral": MISTRAL,
    "perplexity": PERPLEXITY,
    "qwen": Dialect(effort="enable_thinking"),
    "unknown": UNKNOWN,
}
STRICT = (OPENAI, AZURE)
HI = Message.user("hi")
PNG = b"\x89PNG\r\n\x1a\n"
PNG_URL = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
MODEL = "openai:m"


def wire(dialect=OPENAI, model="m", **options):
    return OpenAIChatWire(model, dialect=dialect, **options)


def sent(*messages, dialect=OPENAI, model="m", system=None, tools=(), **asked):
    """The body as it goes out, which the validator accepts."""
    target = wire(dialect, model)
    body = json.loads(
        msgspec.json.encode(target.to_wire(target.ask(messages, system, tools, **asked)))
    )
    found = validators.problems("openai-chat", body, lenient=dialect not in STRICT)
    assert [str(problem) for problem in found] == []
    return body


def shown(*messages, **options):
    return sent(*messages, **options)["messages"]


def asks(*ids, content=None, **fields):
    calls = [ToolCall(id=id, name="look", arguments='{"a": 1}') for id in ids]
    return Message.assistant(content, calls, model=MODEL, **fields)


def thought(*parts, calls=()):
    made = [ToolCall(id=id, name="look", arguments="{}") for id in calls]
    return Message.assistant(parts, made, model=MODEL)


# Messages


def test_a_conversation_goes_as_it_is():
    body = sent(HI, asks("c1"), Message.tool("1", "c1"), system="Be brief.")

    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}}
    assert body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "1"},
        ],
    }


def test_only_calls_without_a_result_get_one_that_says_so():
    """S1-57: behind the calls, in their order; also at the very end, or it would be refused."""
    found = shown(HI, asks("c1", "c2"), Message.tool("1", "c1"), Message.user("go on"), asks("c3"))

    results = [(each["tool_call_id"], each["content"]) for each in found if each["role"] == "tool"]
    assert [each["role"] for each in found[2:5]] == ["tool", "tool", "user"]
    assert results == [("c1", "1"), ("c2", UNANSWERED), ("c3", UNANSWERED)]


def test_arguments_that_do_not_parse_go_back_as_the_model_wrote_them():
    broken = Message.assistant(None, [ToolCall(id="c", name="look", arguments='{"a": ')])

    body = shown(HI, broken)

    assert body[1]["tool_calls"][0]["function"]["arguments"] == '{"a": '


def test_several_texts_are_a_list_where_the_server_takes_one():
    said = Message.user([Text("a"), Text("b")])

    assert shown(said)[0]["content"] == [
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b"},
    ]
    assert shown(said, dialect=DEEPSEEK)[0]["content"] == "a\n\nb"


def test_words_behind_a_call_are_said_with_those_before_it():
    body = shown(HI, asks("c", content=[Text("a"), CallRef("c"), Text("b")]))

    assert [part["text"] for part in body[1]["content"]] == ["a", "b"]


def test_media_of_the_user():
    parts = [
        Text("see"),
        Image(data=PNG, extra={"detail": "low"}),
        Image(url="https://example.org/a.png"),
        Audio(data=b"RIFF....WAVE", media_type="audio/wav"),
        File(data=b"%PDF-1.4", name="a.pdf"),
        File(data=b"x,y", media_type="text/csv", name="t.csv"),
    ]

    content = shown(Message.user(parts))[0]["content"]

    pdf = f"data:application/pdf;base64,{base64.b64encode(b'%PDF-1.4').decode()}"
    assert content == [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": PNG_URL, "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {
            "type": "input_audio",
            "input_audio": {"data": base64.b64encode(b"RIFF....WAVE").decode(), "format": "wav"},
        },
        {"type": "file", "file": {"filename": "a.pdf", "file_data": pdf}},
        {"type": "text", "text": "t.csv:\nx,y"},
    ]


def test_media_that_the_server_does_not_take_is_named():
    content = shown(Message.user([Text("see"), Image(data=PNG)]), dialect=DEEPSEEK)[0]["content"]

    assert content == "see\n\n[image that this model is not shown]"


def test_openrouter_takes_the_address_of_a_document_and_of_no_other_file():
    """What is no document, or no address of the web, is named in its place; so is it elsewhere."""
    page = File(url="https://example.org/a.pdf", name="a.pdf")
    others = [File(url="https://example.org/a.csv", media_type="text/csv"), File(url="ftp://x/a")]
    router = OPENROUTER

    content = shown(Message.user([Text("see"), page, *others]), dialect=router)[0]["content"]

    file = {"filename": "a.pdf", "file_data": "https://example.org/a.pdf"}
    assert content[1] == {"type": "file", "file": file}
    assert [part["type"] for part in content[2:]] == ["text", "text"]
    for dialect in (OPENAI, UNKNOWN):
        assert "example.org" not in str(shown(Message.user([page]), dialect=dialect))


def test_details_of_thinking_that_somebody_kept_as_they_came_go_back():
    """From another program's history, to the model that gave them, and to no other."""
    detail = {"type": "reasoning.encrypted", "data": "c2ln", "index": 0}
    kept = Opaque("openai-chat", FrozenDict({"reasoning_details": [detail]}))
    said = Message.assistant([kept, Text("so")], model="openai:m")

    assert shown(HI, said, HI, dialect=OPENROUTER)[1]["reasoning_details"] == [detail]
    assert "c2ln" not in str(shown(HI, said, HI, dialect=OPENAI))


def test_media_of_tools_goes_into_one_message_of_the_user_behind_all_results():
    """A tool's message takes text alone, and between results nothing may stand."""
    body = shown(
        HI,
        asks("c1", "c2"),
        Message.tool([Text("first"), Image(data=PNG)], "c1"),
        Message.tool([Image(url="https://example.org/b.png")], "c2"),
        Message.assistant("seen"),
        HI,
    )

    assert [message["role"] for message in body] == [
        *("user", "assistant", "tool", "tool", "user", "assistant", "user")
    ]
    assert [message["content"] for message in body[2:4]] == ["first", ""]
    assert body[4]["content"] == [
        {"type": "text", "text": "[What the call c1 gave back]"},
        {"type": "image_url", "image_url": {"url": PNG_URL}},
        {"type": "text", "text": "[What the call c2 gave back]"},
        {"type": "image_url", "image_url": {"url": "https://example.org/b.png"}},
    ]


def test_media_of_a_result_waits_for_the_plain_results_behind_it():
    seen = Message.tool([Image(data=PNG)], "c1")

    body = shown(HI, asks("c1", "c2"), seen, Message.tool("2", "c2"))

    assert [message["role"] for message in body] == ["user", "assistant", "tool", "tool", "user"]


def test_media_of_the_last_result_is_not_forgotten():
    body = shown(HI, asks("c"), Message.tool([Image(data=PNG)], "c"))

    assert body[-1]["role"] == "user"
    assert body[-1]["content"][1]["image_url"]["url"] == PNG_URL


def test_names_of_participants_are_fitted_where_they_are_taken():
    said = Message.user("hi", name="Ada Lovelace")

    assert shown(said)[0]["name"] == "Ada_Lovelace"
    assert "name" not in shown(said, dialect=MISTRAL)[0]


def test_a_refusal_goes_back_as_one_and_to_another_model_as_words():
    refused = thought(Text("I cannot.", extra={"refusal": True}))

    assert shown(HI, refused)[1] == {
        "role": "assistant",
        "content": None,
        "refusal": "I cannot.",
    }
    assert shown(HI, refused, model="other")[1]["content"] == "I cannot."


def test_what_was_said_aloud_goes_back_in_words():
    said = thought(Text("Hello."), Audio(data=b"x", extra={"id": "a1", "transcript": "Hello."}))

    assert shown(HI, said)[1] == {"role": "assistant", "content": "Hello."}


def test_a_free_text_call_goes_back_as_one():
    call = ToolCall(id="c", name="calc", arguments='{"input": "4 + 4"}', extra={"type": "custom"})

    body = shown(HI, Message.assistant(None, [call]))

    assert body[1]["tool_calls"][0] == {
        "id": "c",
        "type": "custom",
        "custom": {"name": "calc", "input": "4 + 4"},
    }


# Thinking


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_thinking_goes_back_in_the_field_in_which_it_came(field):
    body = shown(HI, thought(Thinking("hm", extra={"field": field}), Text("a")), dialect=UNKNOWN)

    assert body[1] == {"role": "assistant", "content": "a", field: "hm"}


def test_details_of_thinking_go_back_block_by_block():
    text = {"type": "reasoning.text", "format": "f", "index": 0}
    sealed = {"type": "reasoning.encrypted", "id": "r1", "index": 1}
    summary = {"type": "reasoning.summary", "index": 2}
    said = thought(
        Thinking("hm", "sig", extra={"field": "reasoning", "detail": text}),
        Thinking("", "SEAL", redacted=True, extra={"detail": sealed}),
        Thinking("so", extra={"field": "reasoning", "detail": summary}),
        Text("a"),
    )

    body = shown(HI, said, dialect=ROUTER)

    assert body[1]["reasoning"] == "hmso"
    assert body[1]["reasoning_details"] == [
        {**text, "text": "hm", "signature": "sig"},
        {**sealed, "data": "SEAL"},
        {**summary, "summary": "so"},
    ]


@pytest.mark.parametrize("dialect", [OPENAI, AZURE, MISTRAL, PERPLEXITY])
def test_thinking_does_not_go_back_where_it_is_not_taken(dialect):
    said = thought(Thinking("hm", extra={"field": "reasoning_content"}), Text("a"))

    body = shown(HI, said, HI, dialect=dialect)

    assert body[1] == {"role": "assistant", "content": "a"}


def test_deepseek_gets_thinking_back_with_calls_only():
    """Its older models refuse it elsewhere; its newer ones refuse calls without it."""
    part = Thinking("hm", extra={"field": "reasoning_content"})
    answered = Message.tool("1", "c")

    with_calls = shown(HI, thought(part, calls=["c"]), answered, dialect=DEEPSEEK)
    without = shown(HI, thought(part, Text("a")), dialect=DEEPSEEK)
    foreign = shown(HI, asks("c"), answered, dialect=DEEPSEEK)

    assert with_calls[1]["reasoning_content"] == "hm"
    assert "reasoning_content" not in without[1]
    assert foreign[1]["reasoning_content"] == ""


def test_another_models_thinking_is_not_shown():
    body = shown(
        HI,
        thought(Thinking("hm", extra={"field": "reasoning"}), Text("a")),
        dialect=UNKNOWN,
        model="other",
    )

    assert body[1] == {"role": "assistant", "content": "a"}


def test_the_other_wires_blocks_are_not_sent():
    item = Opaque("openai", {"type": "reasoning", "id": "rs_1"})

    assert shown(HI, thought(item, Text("a")))[1] == {"role": "assistant", "content": "a"}


# Dialects


def test_mistral_takes_ids_of_nine_letters():
    body = shown(HI, asks("call_1"), Message.tool("1", "call_1"), HI, dialect=MISTRAL)

    id = body[1]["tool_calls"][0]["id"]
    assert len(id) == 9
    assert id.isalnum()
    assert body[2]["tool_call_id"] == id
    assert shown(HI, asks("abcDEF123"), dialect=MISTRAL)[1]["tool_calls"][0]["id"] == "abcDEF123"


def test_an_id_that_is_too_long_for_openai_is_fitted():
    body = shown(HI, asks("x" * 41), Message.tool("1", "x" * 41))

    assert len(body[1]["tool_calls"][0]["id"]) == 40
    assert body[2]["tool_call_id"] == body[1]["tool_calls"][0]["id"]


def test_an_id_with_dots_and_colons_stays_as_the_server_made_it():
    assert shown(HI, asks("functions.add:0"))[1]["tool_calls"][0]["id"] == "functions.add:0"


def test_where_roles_alternate_messages_in_a_row_are_put_together():
    body = shown(
        Message.assistant("so"),
        HI,
        Message.system("Be kind."),
        Message.user("there"),
        Message.assistant("a"),
        dialect=PERPLEXITY,
        system="Be brief.",
    )

    assert [message["role"] for message in body] == [
        *("system", "user", "assistant", "user", "assistant", "user")
    ]
    assert body[0]["content"] == "Be brief.\n\nBe kind."
    assert [part["text"] for part in body[3]["content"]] == ["hi", "there"]


def test_the_role_of_instructions():
    developer = OPENAI._replace(system_role="developer")

    assert shown(HI, system="s", dialect=developer)[0]["role"] == "developer"
    assert shown(HI, system="s", model="o1-mini")[0]["role"] == "user"


@pytest.mark.parametrize(
    ("url", "dialect"),
    [
        (None, OPENAI),
        ("https://api.openai.com/v1", OPENAI),
        ("https://me.openai.azure.com", AZURE),
        ("https://openrouter.ai/api/v1", OPENROUTER),
        ("https://api.mistral.ai/v1", MISTRAL),
        ("http://localhost:8080/v1", UNKNOWN),
        ("https://notopenai.com", UNKNOWN),
        ("https://api.openai.com.example.org/v1", UNKNOWN),
    ],
)
def test_the_host_tells_the_dialect(url, dialect):
    assert dialect_of(url) == dialect


def test_the_path():
    azure = wire(AZURE, "my model", api_version="2024-10-21")

    assert wire().path(wire().ask([HI])) == "/chat/completions"
    assert azure.path(azure.ask([HI])) == (
        "/openai/deployments/my%20model/chat/completions?api-version=2024-10-21"
    )


# Settings, tools, schemas


@pytest.mark.parametrize(
    ("dialect", "thinking", "expected"),
    [
        (OPENAI, "low", {"reasoning_effort": "low"}),
        (OPENAI, "off", {"reasoning_effort": "none"}),
        (OPENAI, 5000, {"reasoning_effort": "medium"}),
        (OPENAI, 50_000, {"reasoning_effort": "high"}),
        (ROUTER, "high", {"reasoning": {"effort": "high"}}),
        (ROUTER, 2000, {"reasoning": {"max_tokens": 2000}}),
        (ROUTER, "off", {"reasoning": {"enabled": False}}),
        (DEEPSEEK, "high", {"thinking": {"type": "enabled"}}),
        (DEEPSEEK, 0, {"thinking": {"type": "disabled"}}),
        (DIALECTS["qwen"], 99, {"enable_thinking": True, "thinking_budget": 99}),
        (DIALECTS["qwen"], "off", {"enable_thinking": False}),
    ],
)
def test_how_hard_to_think(dialect, thinking, expected):
    body = sent(HI, dialect=dialect, settings=Settings(thinking=thinking))

    assert {name: body.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    ("model", "dialect", "names"),
    [
        ("gpt-4.1", OPENAI, {"temperature"}),
        ("gpt-5-mini", OPENAI, {"reasoning_effort"}),
        ("o3", AZURE, {"reasoning_effort"}),
        ("my-deployment", AZURE, {"temperature", "reasoning_effort"}),
        ("gpt-4.1", UNKNOWN, {"temperature", "reasoning_effort"}),
    ],
)
def test_a_model_is_asked_only_for_what_it_takes(model, dialect, names):
    """In a conversation whose models are swapped, the settings are of another one: OpenAI refuses
    a temperature for models that reason, and an effort for those that do not."""
    asked = Settings(temperature=0.5, thinking="low")

    body = sent(HI, dialect=dialect, model=model, settings=asked)

    assert body.keys() & {"temperature", "reasoning_effort"} == names


def test_settings_of_the_answer():
    asked = Settings(temperature=0.5, max_tokens=9)

    body = sent(HI, settings=asked, conversation="c" * 70, stream=True)
    other = sent(HI, settings=asked, conversation="c", stream=True, dialect=MISTRAL)

    assert (body["temperature"], body["max_completion_tokens"]) == (0.5, 9)
    assert len(body["prompt_cache_key"]) == 64
    assert (body["stream"], body["stream_options"]) == (True, {"include_usage": True})
    assert (other["max_tokens"], other["stream"]) == (9, True)
    assert not other.keys() & {"stream_options", "prompt_cache_key", "max_completion_tokens"}


def test_the_callers_own_fields_come_last():
    search = {"type": "custom", "custom": {"name": "s"}}
    asked = Settings(temperature=1, extra={"openai": {"temperature": 0, "tools": [search]}})

    body = sent(HI, tools=[Tool("look")], settings=asked)

    assert body["temperature"] == 0
    assert [tool["type"] for tool in body["tools"]] == ["function", "custom"]


def test_a_tool_is_declared():
    """S3-36."""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}

    body = sent(HI, tools=[Tool("look around", "Looks.", schema), Tool("look around", "Looks.")])

    function = {"name": "look_around", "description": "Looks.", "parameters": schema}
    assert body["tools"][0]["type"] == "function"
    assert len(body["tools"]) == 1
    assert sent(HI, tools=[Tool("look around", "Looks.", schema)])["tools"] == [
        {"type": "function", "function": function}
    ]


def test_a_list_whose_items_are_not_described_may_hold_anything():
    """OpenAI refuses such a schema: "array schema missing items"."""
    schema = {"type": "object", "properties": {"a": {"type": "array"}}}

    body = sent(HI, tools=[Tool("look", "", schema)])

    assert body["tools"][0]["function"]["parameters"]["properties"]["a"] == {
        "type": "array",
        "items": {},
    }


CLOSED = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (CLOSED, True),
        ({**CLOSED, "additionalProperties": True}, False),
        ({**CLOSED, "required": []}, False),
        ({"type": "array", "items": {"type": "string"}}, False),
        ({**CLOSED, "properties": {"a": {"type": "array"}}}, False),
        ({**CLOSED, "properties": {"a": {"oneOf": [{"type": "string"}]}}}, False),
        ({**CLOSED, "properties": {"a": {"anyOf": [CLOSED, {"type": "null"}]}}}, True),
    ],
)
def test_a_schema_is_sent_as_it_is_and_strict_where_that_is_possible(schema, strict):
    body = sent(HI, schema=schema)

    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": schema, "strict": strict},
    }
    assert shared.is_strict(schema) is strict


def test_where_no_schema_is_taken_it_is_told_in_words():
    body = sent(HI, schema=CLOSED, dialect=DEEPSEEK, system="Be brief.")

    assert body["response_format"] == {"type": "json_object"}
    assert body["messages"][0]["content"].startswith("Be brief.\n\nAnswer with JSON")
    assert '"additionalProperties":false' in body["messages"][0]["content"]


# Anything at all

TOOLS = st.lists(st.builds(Tool, st.text(min_size=1, max_size=80), st.just("d")), max_size=3).map(
    tuple
)
DATA = st.sampled_from([b"", PNG, b"%PDF", b"abc"])
KINDS = st.sampled_from([None, "image/png", "audio/wav", "application/pdf", "text/plain", "x"])
URLS = st.sampled_from(["https://a.b/c", "", "x", "data:image/png;base64,!", "data:,x", PNG_URL])
MEDIA_KINDS = st.sampled_from([Image, Audio, File])
MEDIA = st.builds(
    lambda kind, data, media: kind(data=data, media_type=media), MEDIA_KINDS, DATA, KINDS
) | st.builds(lambda kind, url: kind(url=url), MEDIA_KINDS, URLS)
SHOWN = st.builds(
    lambda role, parts, call: Message(role, parts, tool_call_id=call, model=MODEL),
    st.sampled_from(["user", "assistant", "tool", "system"]),
    st.lists(
        MEDIA
        | st.just(Text("w"))
        | st.just(Thinking("t", "s", extra={"field": "reasoning", "detail": {"type": "x"}}))
        | st.just(Opaque("openai-chat", {"type": "reference"})),
        max_size=3,
    ),
    st.sampled_from([None, "a", "b"]),
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.one_of(any_messages, MESSAGES, SHOWN), max_size=8),
    st.none() | st.text(max_size=5),
    TOOLS,
    st.sampled_from(sorted(DIALECTS)),
)
def test_whatever_the_messages_are_the_request_is_accepted(messages, system, tools, name):
    sent(*messages, system=system, tools=tools, dialect=DIALECTS[name])
