"""What a conversation becomes for OpenAI's Responses API.

Each request made here is also put before the validator, which was written apart from the wire.
"""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.messages import Message, Role, ToolCall
from holdfast.notes import UNANSWERED
from holdfast.parts import CallRef, File, Image, Opaque, Text, Thinking
from holdfast.providers.openai_responses import OpenAIResponsesWire
from holdfast.settings import Settings
from holdfast.testing import validators
from holdfast.tools import Tool
from strategies import json_objects, messages, words

GPT = OpenAIResponsesWire("gpt-5")
OPEN = OpenAIResponsesWire("deepseek-v4", vendor="deepseek", is_compatible=True)
HI = Message.user("hi")
PNG = b"\x89PNG\r\n\x1a\n"


def body(*said, wire=GPT, system=None, tools=(), **how):
    """The request, as it goes over the wire."""
    made = json.loads(msgspec.json.encode(wire.to_wire(wire.ask(said, system, tools, **how))))
    lenient = wire is OPEN
    assert validators.problems("openai-responses", made, lenient=lenient) == []
    return made


def items(*said, wire=GPT):
    return body(*said, wire=wire)["input"]


def call(id="call_1", name="look", arguments="{}", **fields):
    return ToolCall(id=id, name=name, arguments=arguments, **fields)


def said(content=None, calls=(), wire=GPT):
    return Message.assistant(content, calls, model=wire.name)


def thought(number=1, text="hm", signature="sealed", **extra):
    return Thinking(text, signature, extra={"id": f"rs_{number}", **extra})


# Messages


def test_words_are_sent_in_the_short_form():
    assert items(Message.system("Be brief."), HI, Message.assistant("ho"), HI) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "ho"},
        {"role": "user", "content": "hi"},
    ]


def test_an_answer_that_was_cut_off_is_asked_for_to_be_continued():
    """The models behind this API do not go on with words that are there; they answer anew."""
    assert items(HI, Message.assistant("The answer is", stop="interrupted"))[1:] == [
        {"role": "assistant", "content": "The answer is"},
        {"role": "user", "content": "[continue]"},
    ]


def test_nothing_is_stored_and_reasoning_is_asked_for_encrypted():
    made = body(HI, system="Be brief.")

    assert made["store"] is False
    assert made["include"] == ["reasoning.encrypted_content"]
    assert made["instructions"] == "Be brief."
    assert "previous_response_id" not in made
    assert "stream" not in made


def test_a_model_that_does_not_reason_is_not_asked_for_its_reasoning():
    """It would refuse: "Encrypted content is not supported with this model."."""
    made = body(HI, wire=OpenAIResponsesWire("gpt-4.1-mini"), settings=Settings(thinking="high"))

    assert "include" not in made
    assert "reasoning" not in made


def test_pictures_and_documents_of_a_user_are_sent():
    parts = [
        Text("look"),
        Image(data=PNG, extra={"detail": "low"}),
        Image(url="https://example.org/a.png"),
        File(data=b"%PDF-1.4", name="a.pdf"),
        File(url="https://example.org/a.pdf"),
    ]

    assert items(Message.user(parts)) == [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "look"},
                {
                    "type": "input_image",
                    "image_url": "data:image/png;base64,iVBORw0KGgo=",
                    "detail": "low",
                },
                {"type": "input_image", "image_url": "https://example.org/a.png"},
                {
                    "type": "input_file",
                    "filename": "a.pdf",
                    "file_data": "data:application/pdf;base64,JVBERi0xLjQ=",
                },
                {"type": "input_file", "file_url": "https://example.org/a.pdf"},
            ],
        }
    ]


@pytest.mark.parametrize(
    "part",
    [
        Image(data=b"", media_type="image/png"),
        Image(data=b"BM", media_type="image/bmp"),
        Image(url="file:///etc/passwd"),
        Image(url="data:image/png;base64,@@@"),
        File(data=b"abc"),
        File(url="data:,x"),
    ],
)
def test_media_that_would_be_refused_is_named_in_its_place(part):
    [item] = items(Message.user([part]))

    assert item["content"][0]["type"] == "input_text"
    assert "not shown" in item["content"][0]["text"]


# Tools


def test_a_call_and_its_result_are_two_items():
    asked = said("Wait.", [call(arguments='{ "a":1}')])

    assert items(HI, asked, Message.tool("42", "call_1"))[1:] == [
        {"role": "assistant", "content": "Wait."},
        {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": '{ "a":1}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "42"},
    ]


def test_a_result_may_hold_pictures_and_documents():
    result = Message.tool([Text("here"), Image(data=PNG)], "call_1")

    output = items(HI, said(None, [call()]), result)[-1]["output"]

    assert [part["type"] for part in output] == ["input_text", "input_image"]


def test_an_empty_result_is_sent_as_one_and_an_empty_error_says_so():
    asked = said(None, [call("call_1"), call("call_2")])

    sent = items(HI, asked, Message.tool("", "call_1"), Message.tool("", "call_2", is_error=True))

    assert [item["output"] for item in sent[3:]] == ["", "Error"]


def test_tools_are_declared_without_strictness_and_with_the_items_of_arrays():
    """Left open, the service would make optional arguments required."""
    parameters = {
        "type": "object",
        "properties": {"a": {"type": "array"}, "b": {"default": {"type": "array"}}},
    }

    [tool] = body(HI, tools=[Tool("look", "Look.", parameters)])["tools"]

    assert tool == {
        "type": "function",
        "name": "look",
        "description": "Look.",
        "parameters": {
            "type": "object",
            "properties": {
                "a": {"type": "array", "items": {}},
                "b": {"default": {"type": "array"}},
            },
        },
        "strict": False,
    }


def test_a_tool_whose_name_is_not_allowed_has_another_one_on_the_wire():
    made = body(HI, said(None, [call(name="a.b")]), tools=[Tool("a.b")])

    assert made["tools"][0]["name"] == made["input"][1]["name"] == "a_b"


def test_a_call_for_a_tool_that_takes_free_text_goes_back_as_one():
    custom = call(arguments='{"input":"4 + 4"}', extra={"type": "custom"})

    assert items(HI, said(None, [custom, call("call_2")]), Message.tool("8", "call_1"))[1:] == [
        {"type": "custom_tool_call", "call_id": "call_1", "name": "look", "input": "4 + 4"},
        {"type": "function_call", "call_id": "call_2", "name": "look", "arguments": "{}"},
        {"type": "custom_tool_call_output", "call_id": "call_1", "output": "8"},
        {"type": "function_call_output", "call_id": "call_2", "output": UNANSWERED},
    ]


# Reasoning


def test_reasoning_goes_back_with_what_it_led_to_in_order():
    answer = said(
        [thought(1), Text("Wait.", extra={"id": "msg_1", "phase": "commentary"}), CallRef("call_1")]
        + [thought(2, ""), CallRef("call_2"), Text("So.")],
        [call("call_1", extra={"id": "fc_1"}), call("call_2", extra={"id": "fc_2"})],
    )

    sent = items(HI, answer)[1:-2]

    assert sent == [
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "hm"}],
            "encrypted_content": "sealed",
        },
        {
            "type": "message",
            "role": "assistant",
            "id": "msg_1",
            "status": "completed",
            "phase": "commentary",
            "content": [{"type": "output_text", "text": "Wait."}],
        },
        {
            "type": "function_call",
            "call_id": "call_1",
            "name": "look",
            "arguments": "{}",
            "id": "fc_1",
        },
        {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "sealed"},
        {
            "type": "function_call",
            "call_id": "call_2",
            "name": "look",
            "arguments": "{}",
            "id": "fc_2",
        },
        {"role": "assistant", "content": "So."},
    ]


def test_what_reasoning_led_to_has_no_id_where_the_reasoning_is_left_out():
    """Else: "Item 'fc_1' was provided without its required 'reasoning' item"."""
    unsealed = thought(1, signature=None)
    text = Text("Wait.", extra={"id": "msg_1"})
    answer = said([unsealed, text], [call(extra={"id": "fc_1"})])

    sent = items(HI, answer)

    assert [item.get("type") for item in sent] == [
        None,
        None,
        "function_call",
        "function_call_output",
    ]
    assert not any("id" in item for item in sent)


def test_another_model_gets_neither_reasoning_nor_ids_nor_opaque_items():
    parts = [thought(1), Text("So.", extra={"id": "msg_1"}), Opaque("openai", {"type": "program"})]
    answer = Message.assistant(
        parts, [call(extra={"id": "fc_1", "caller": {}})], model="openai:gpt-5.2"
    )

    assert items(HI, answer)[1:-1] == [
        {"role": "assistant", "content": "So."},
        {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"},
    ]


def test_reasoning_that_led_to_nothing_is_left_out():
    """As in an answer that was cut off while the model thought."""
    assert items(HI, said([thought(1)]), HI) == [{"role": "user", "content": "hi"}] * 2


def test_reasoning_before_a_message_without_an_id_has_none_either():
    [_, reasoning, message, _] = items(HI, said([thought(1), Text("So.")]), HI)

    assert "id" not in reasoning
    assert message == {"role": "assistant", "content": "So."}


def test_the_same_message_twice_has_its_ids_once():
    """ "Duplicate item found with id rs_1. Remove duplicate items from your input"."""
    answer = said([thought(1), Text("So.", extra={"id": "msg_1"})])

    sent = items(HI, answer, HI, answer, HI)

    assert [item.get("id") for item in sent] == [None, "rs_1", "msg_1", *[None] * 4]
    assert sent[4]["encrypted_content"] == "sealed"


def test_an_open_server_gets_the_text_of_its_reasoning_and_ids_in_its_own_form():
    content = [{"type": "reasoning_text", "text": "hm"}]
    open_thought = Thinking("hm", None, extra={"id": "76f8.b", "summary": [], "content": content})

    sent = items(HI, said([open_thought, Text("So.")], wire=OPEN), wire=OPEN)

    assert sent[1] == {"type": "reasoning", "id": "76f8.b", "summary": [], "content": content}


def test_for_an_open_server_words_never_stand_between_a_call_and_its_output():
    answer = said([CallRef("call_1"), Text("Wait.")], [call()], wire=OPEN)

    kinds = [item.get("type", "message") for item in items(HI, answer, wire=OPEN)[1:]]

    assert kinds == ["message", "function_call", "function_call_output"]


# What has no form of ours


def test_items_of_server_tools_go_back_as_they_came():
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"a": [1]}}
    cites = Text("So.", extra={"annotations": [{"type": "url_citation", "url": "https://a.b"}]})

    sent = items(HI, said([Opaque("openai", search), cites]))

    assert sent[1] == search
    assert sent[2]["content"][0]["annotations"] == [{"type": "url_citation", "url": "https://a.b"}]


def test_an_item_that_the_service_would_not_know_is_left_out():
    sent = items(HI, said([Opaque("openai", {"type": "hologram"}), Text("So.")]), HI)

    assert sent[1:-1] == [{"role": "assistant", "content": "So."}]


def test_a_call_that_only_the_program_can_answer_is_kept_with_its_output_alone():
    """The output is the program's, in a user's message; without it the request would be refused."""
    patch = {"type": "apply_patch_call", "id": "apc_1", "call_id": "c9", "operation": {"type": "x"}}
    output = {"type": "apply_patch_call_output", "call_id": "c9", "status": "completed"}
    answer = said([thought(1), Opaque("openai", patch)])
    result = Message.user([Opaque("openai", {**output, "output": "done"})])

    assert [item.get("type") for item in items(HI, answer, result)] == [
        None,
        "reasoning",
        "apply_patch_call",
        "apply_patch_call_output",
    ]
    assert items(HI, answer, HI) == items(HI, HI)
    assert items(HI, HI, result) == items(HI, HI)


def test_a_part_of_the_vendor_in_a_users_message_is_sent_as_it_is():
    part = {"type": "input_file", "file_id": "file-1"}

    assert items(Message.user([Opaque("openai", part)]))[0]["content"] == [part]


def test_a_request_is_never_empty():
    assert len(items(said([Opaque("openai", {"type": "hologram"})]))) == 1


def test_a_refusal_goes_back_as_one():
    sent = items(HI, said([Text("I can't.", extra={"refusal": True})]))

    assert sent[1]["content"] == [{"type": "refusal", "refusal": "I can't."}]


# Settings


def test_settings_are_in_the_words_of_the_service():
    how = Settings(temperature=0.5, max_tokens=5, thinking="high")
    made = body(HI, settings=how, stream=True, conversation="telegram:1")

    assert made["reasoning"] == {"effort": "high", "summary": "auto"}
    assert made["max_output_tokens"] == 16
    assert made["prompt_cache_key"] == "telegram:1"
    assert made["stream"] is True
    assert "temperature" not in made
    assert body(HI, wire=OpenAIResponsesWire("gpt-4o"), settings=how)["temperature"] == 0.5


@pytest.mark.parametrize(
    ("model", "thinking", "effort"),
    [
        ("gpt-5", "off", "minimal"),
        ("gpt-5.1", "off", "none"),
        ("gpt-5.2", 0, "none"),
        ("o4-mini", "off", "low"),
        ("o3", 1000, "low"),
        ("o3", 5000, "medium"),
        ("o3", 50_000, "high"),
        ("unheard-of", "xhigh", "xhigh"),
    ],
)
def test_thinking_is_an_effort(model, thinking, effort):
    made = body(HI, wire=OpenAIResponsesWire(model), settings=Settings(thinking=thinking))

    assert made["reasoning"]["effort"] == effort


def test_an_unknown_level_of_thinking_is_told():
    with pytest.raises(InvalidInput, match="thinking"):
        body(HI, settings=Settings(thinking="furiously"))


def test_a_long_hint_is_shortened_to_one_that_is_like_no_other():
    keys = {body(HI, conversation="x" * size)["prompt_cache_key"] for size in (64, 65, 66)}

    assert len(keys) == 3
    assert {len(key) for key in keys} == {64}


def test_what_the_caller_adds_is_merged_last():
    options = {
        "tools": [{"type": "web_search"}],
        "include": ["web_search_call.action.sources"],
        "reasoning": {"summary": "detailed"},
        "service_tier": "flex",
    }
    how = Settings(thinking="low", extra={"openai": options, "google": {"x": 1}})

    made = body(HI, tools=[Tool("look")], settings=how)

    assert [tool["type"] for tool in made["tools"]] == ["function", "web_search"]
    assert made["include"] == ["reasoning.encrypted_content", "web_search_call.action.sources"]
    assert made["reasoning"] == {"effort": "low", "summary": "detailed"}
    assert made["service_tier"] == "flex"


STRICT = {
    "type": "object",
    "properties": {"a": {"type": "array", "items": {"type": "string"}}},
    "required": ["a"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (STRICT, True),
        (STRICT | {"required": []}, False),
        (STRICT | {"additionalProperties": True}, False),
        (STRICT | {"anyOf": []}, False),
        (STRICT | {"properties": {"a": {"type": "array"}}}, False),
        (STRICT | {"properties": {"a": {"oneOf": [{"type": "string"}]}}}, False),
        (STRICT | {"properties": {"a": {"type": "object"}}}, False),
    ],
)
def test_the_answer_is_held_to_a_schema_that_the_service_can_enforce(schema, strict):
    form = body(HI, schema=schema)["text"]["format"]

    assert form == {"type": "json_schema", "name": "answer", "schema": schema, "strict": strict}


def test_a_schema_that_nests_too_deep_is_only_shown():
    schema = STRICT
    for _ in range(11):
        schema = STRICT | {"properties": {"a": schema}}

    assert body(HI, schema=schema)["text"]["format"]["strict"] is False


def test_the_path_is_the_services_or_azures():
    azure = OpenAIResponsesWire("d", path="/openai/responses", api_version="2025-03-01-preview")

    assert GPT.path(GPT.ask([HI])) == "/responses"
    assert azure.path(azure.ask([HI])) == "/openai/responses?api-version=2025-03-01-preview"


# Anything at all

ITEM_TYPES = sorted(
    {"message", "reasoning", "function_call", "function_call_output", "compaction", "hologram"}
    | {"web_search_call", "shell_call", "custom_tool_call", "apply_patch_call", "input_text"}
    | {"local_shell_call", "local_shell_call_output", "apply_patch_call_output", "program"}
)
SHORT = st.sampled_from(["a", "rs_1", "fc_1", "msg_1", "call_1", ""])
OPAQUES = st.builds(
    lambda kind, fields, more: Opaque("openai", {**more, **fields, "type": kind}),
    st.sampled_from(ITEM_TYPES),
    st.dictionaries(
        st.sampled_from(["id", "call_id", "name", "input", "text", "encrypted_content"]), SHORT
    ),
    json_objects.map(
        lambda some: {key: some[key] for key in some if key not in ("role", "output")}
    ),
)
FACTS = st.dictionaries(
    st.sampled_from(["id", "phase", "annotations", "refusal", "summary", "content", "type"]),
    SHORT | st.sampled_from([True, [], [{}], "custom", "final_answer", None, 7]),
    max_size=3,
)
PARTS = st.one_of(
    st.builds(Text, words, extra=FACTS),
    st.builds(Thinking, words, signature=SHORT | st.none(), extra=FACTS),
    OPAQUES,
    st.builds(CallRef, SHORT),
)
CALLS = st.builds(ToolCall, id=SHORT, name=words, arguments=words, extra=FACTS)
OWN = st.builds(
    lambda content, calls: Message.assistant(content, calls, model=GPT.name),
    st.lists(PARTS, max_size=4),
    st.lists(CALLS, max_size=2),
)
OTHERS = st.builds(
    lambda role, content, id: Message(role, content, tool_call_id=id),
    st.sampled_from([Role.USER, Role.TOOL, Role.SYSTEM]),
    st.lists(PARTS, max_size=3) | words,
    SHORT | st.none(),
)


@settings(max_examples=300)
@given(st.lists(messages | OWN | OTHERS, max_size=8))
def test_any_conversation_becomes_a_request_that_the_service_accepts(conversation):
    body(*conversation)


@settings(max_examples=150)
@given(st.lists(messages | OWN | OTHERS, max_size=8))
def test_any_conversation_becomes_a_request_that_an_open_server_accepts(conversation):
    own = [
        each.replace(model=OPEN.name) if each.model == GPT.name else each for each in conversation
    ]
    body(*own, wire=OPEN)
