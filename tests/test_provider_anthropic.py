"""Requests to the Messages API: what messages, tools and settings become.

Whatever is made is shown to the validator, which was written apart from the wire (`body_of`); a
property test does the same for random conversations, models and settings.
"""

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import strategies
from holdfast.errors import InvalidInput
from holdfast.messages import Message, ToolCall
from holdfast.notes import BLANK, CONTINUE
from holdfast.parts import CallRef, File, Image, Opaque, Text, Thinking, Unknown
from holdfast.providers.anthropic import AnthropicWire
from holdfast.settings import Settings
from holdfast.testing import validators
from holdfast.tools import Tool

MODEL = "claude-sonnet-4-5"
NAME = f"anthropic:{MODEL}"
HI = Message.user("hi")
ASKED = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"q": "x"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}


def call(id="c1", name="look", arguments="{}", **fields):
    return ToolCall(id=id, name=name, arguments=arguments, **fields)


def said(*content, calls=(), model=NAME, **fields):
    return Message.assistant(content or None, calls, model=model, **fields)


def body_of(*messages, wire=None, system=None, tools=(), cache=False, **options):
    """The body, as the vendor reads it."""
    wire = wire or AnthropicWire(MODEL, cache=cache)
    ask = wire.ask(messages, system, tools, **options)
    body = msgspec.json.decode(msgspec.json.encode(wire.to_wire(ask)))
    assert [str(each) for each in validators.problems("anthropic", body)] == []
    return body


def messages_of(*messages, **options):
    return body_of(*messages, **options)["messages"]


def blocks_of(message, **options):
    """The blocks of one message, the last before nothing but "[continue]"."""
    messages = messages_of(HI, message, Message.user("go on"), **options)
    return messages[1]["content"]


# Where it goes


def test_a_plain_request():
    assert body_of(HI, system="Be brief.") == {
        "model": MODEL,
        "max_tokens": 8192,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        "system": [{"type": "text", "text": "Be brief."}],
    }


def test_the_path_and_the_headers():
    wire = AnthropicWire(MODEL)
    ask = wire.ask([HI])

    assert wire.path(ask) == "/v1/messages"
    assert wire.headers(ask) == {"anthropic-version": "2023-06-01"}


def test_what_is_tried_is_named_in_a_header():
    """S2-88: a cache for an hour is such a thing."""
    wire = AnthropicWire(MODEL, ttl="1h", betas=["a"])
    given = {"anthropic": {"betas": ["b", "a"]}}
    ask = wire.ask([HI], settings=Settings(extra=given))

    assert wire.headers(ask)["anthropic-beta"] == "a,extended-cache-ttl-2025-04-11,b"
    assert "betas" not in wire.to_wire(ask)


def test_a_stream_is_asked_for():
    assert body_of(HI, stream=True)["stream"] is True


def test_counting_takes_the_prompt_alone():
    wire = AnthropicWire(MODEL)
    settings = Settings(temperature=0.5, max_tokens=3)

    counted = wire.to_count(wire.ask([HI], "s", [Tool("t")], settings=settings, stream=True))

    assert sorted(counted) == ["messages", "model", "system", "tools"]


# Who speaks


def test_consecutive_messages_of_one_role_are_one_message():
    """S2-89."""
    messages = messages_of(HI, Message.user("there"), said(Text("a")), said(Text("b")), HI)

    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert [len(message["content"]) for message in messages] == [2, 2, 1]


def test_system_messages_go_into_the_system_instruction():
    """The vendor has no such role at the start (A5)."""
    body = body_of(Message.system("One."), HI, Message.system("Two."), system="Zero.")

    assert body["system"] == [{"type": "text", "text": "Zero.\n\nOne.\n\nTwo."}]
    assert len(body["messages"]) == 1


def test_the_user_has_the_first_and_the_last_word():
    messages = messages_of(said(Text("Hello.")))

    assert [m["role"] for m in messages] == ["user", "assistant", "user"]
    assert messages[0]["content"][0]["text"] == messages[2]["content"][0]["text"] == CONTINUE


def test_blank_text_is_not_sent():
    """B37: the vendor refuses it."""
    messages = messages_of(Message.user([Text("hi"), Text(" \n")]), said(Text(""), Text("a")), HI)

    assert [len(message["content"]) for message in messages] == [1, 1, 1]


def test_a_blank_system_instruction_is_none():
    assert "system" not in body_of(HI, system=" \n")


# Calls and results


def test_calls_and_their_results():
    """S2-89: results stand first in the next message, whatever is said; is_error if true."""
    messages = messages_of(
        HI,
        said(Text("Wait."), calls=[call("c1", "look", '{"a": 1}'), call("c2")]),
        Message.tool("1", "c1"),
        Message.tool("no", "c2", is_error=True),
        Message.user("And?"),
    )

    assert messages[1]["content"] == [
        {"type": "text", "text": "Wait."},
        {"type": "tool_use", "id": "c1", "name": "look", "input": {"a": 1}},
        {"type": "tool_use", "id": "c2", "name": "look", "input": {}},
    ]
    assert messages[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": "1"},
        {"type": "tool_result", "tool_use_id": "c2", "content": "no", "is_error": True},
        {"type": "text", "text": "And?"},
    ]


def test_a_call_stands_where_it_stood():
    message = said(Text("a"), CallRef("c1"), Text("b"), calls=[call("c1"), call("c2")])

    kinds = [block["type"] for block in blocks_of(message)]

    assert kinds == ["text", "tool_use", "text", "tool_use"]


def test_arguments_go_out_as_the_model_wrote_them():
    """The same bytes each time, or the cache is of no use."""
    wire = AnthropicWire(MODEL, cache=False)
    written = '{"b" : 1.0,\n "a": "\\u00e9"}'

    body = wire.to_wire(wire.ask([HI, said(calls=[call(arguments=written)])]))

    assert f'"input":{written}'.encode() in bytes(body["messages"])


@pytest.mark.parametrize("written", ["not json", "[1]", '"x"', "null", '{"a":', '{"a":NaN}', "{}x"])
def test_arguments_that_are_no_object_can_still_be_read(written):
    (block,) = blocks_of(said(calls=[call(arguments=written)]))

    assert block["input"] == {"arguments": written}


@pytest.mark.parametrize("written", ["", " "])
def test_no_arguments_are_an_empty_object(written):
    (block,) = blocks_of(said(calls=[call(arguments=written)]))

    assert block["input"] == {}


def test_names_and_ids_are_fitted():
    """S2-90, B37: and the same in the tools, in the call and in its result."""
    messages = messages_of(
        HI,
        said(calls=[call("a|b", "math.add")]),
        Message.tool("3", "a|b"),
        tools=[Tool("math.add")],
    )

    made = messages[1]["content"][0]
    assert made["name"] == "math_add"
    assert messages[2]["content"][0]["tool_use_id"] == made["id"] != "a|b"


def test_results_hold_media_and_documents():
    messages = messages_of(
        HI,
        said(calls=[call()]),
        Message.tool(
            [
                Text("Here."),
                Image(data=b"\x89", media_type="image/png"),
                File(data=b"%PDF", media_type="application/pdf"),
                Opaque("anthropic", {"type": "tool_reference", "tool_name": "t"}),
            ],
            "c1",
        ),
    )

    kinds = [block["type"] for block in messages[2]["content"][0]["content"]]
    assert kinds == ["text", "image", "document", "tool_reference"]


def test_a_failed_result_is_told_of_in_text():
    """ "all content must be type `text` if `is_error` is true" """
    failed = Message.tool([Text("no"), Image(url="https://a/b.png")], "c1", is_error=True)

    messages = messages_of(HI, said(calls=[call()]), failed)

    inner = messages[2]["content"][0]["content"]
    assert [block["text"] for block in inner] == ["no", "[image that this model is not shown]"]


def test_a_result_without_content_has_none():
    messages = messages_of(HI, said(calls=[call()]), Message.tool("", "c1"))

    assert messages[2]["content"] == [{"type": "tool_result", "tool_use_id": "c1"}]


def test_tools_are_sorted_by_name():
    """A stable prefix (S2-88)."""
    tools = [Tool("b", "Second."), Tool("a")]

    body = body_of(HI, tools=tools)

    schema = {"type": "object", "properties": {}}
    assert body["tools"] == [
        {"name": "a", "input_schema": schema},
        {"name": "b", "description": "Second.", "input_schema": schema},
    ]
    assert body == body_of(HI, tools=tools[::-1])


def test_a_choice_at_the_top_of_a_tools_schema_is_told():
    """ "input_schema does not support oneOf, allOf, or anyOf at the top level" """
    parameters = {"type": "object", "properties": {}, "anyOf": [{"required": ["a"]}]}

    (tool,) = body_of(HI, tools=[Tool("t", "Looks.", parameters)])["tools"]

    assert tool["description"] == 'Looks.\n{"anyOf":[{"required":["a"]}]}'
    assert "anyOf" not in tool["input_schema"]


# Media


@pytest.mark.parametrize(
    ("part", "block"),
    [
        (
            Image(data=b"abc", media_type="image/png"),
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": "YWJj"},
            },
        ),
        (
            Image(url="https://a/b"),
            {"type": "image", "source": {"type": "url", "url": "https://a/b"}},
        ),
        (
            File(data=b"abc", media_type="application/pdf", name="a.pdf"),
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "YWJj"},
                "title": "a.pdf",
            },
        ),
        (
            File(url="https://a/b.pdf", extra={"citations": {"enabled": True}, "context": "c"}),
            {
                "type": "document",
                "source": {"type": "url", "url": "https://a/b.pdf"},
                "context": "c",
                "citations": {"enabled": True},
            },
        ),
        (
            File(data="é".encode(), media_type="text/markdown"),
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "é"},
            },
        ),
    ],
    ids=["image", "image at an address", "pdf", "pdf at an address", "text"],
)
def test_media_of_the_user(part, block):
    """S2-89."""
    assert messages_of(Message.user([part]))[0]["content"] == [block]


@pytest.mark.parametrize(
    "part",
    [
        Image(data=b"abc", media_type="image/tiff"),
        Image(data=b"", media_type="image/png"),
        Image(url="file:///etc/passwd"),
        File(data=b"\xff", media_type="text/plain"),
        File(data=b"abc", media_type="application/zip"),
        Image(blob="digest"),
    ],
)
def test_media_that_is_not_taken_is_named(part):
    (block,) = messages_of(Message.user([part]))[0]["content"]

    assert "that this model is not shown" in block["text"]


def test_a_file_that_the_vendor_keeps_is_passed_on():
    kept = {"type": "document", "source": {"type": "file", "file_id": "file_1"}}
    marked = {**kept, "cache_control": {"type": "ephemeral"}}

    messages = messages_of(Message.user([Opaque("anthropic", marked), Text("Read it.")]))

    assert messages[0]["content"] == [kept, {"type": "text", "text": "Read it."}]


def test_a_user_who_says_nothing_that_can_be_shown_still_speaks():
    messages = messages_of(Message.user([Opaque("anthropic", {"type": "what"})]))

    assert messages[0]["content"] == [{"type": "text", "text": BLANK}]


# What the vendor gets back


def test_an_answer_goes_back_as_it_came():
    """B25: signatures, sealed thinking, citations, own blocks, blanks between."""
    cited = {"type": "web_search_result_location", "cited_text": "Sun", "url": "u"}
    message = said(
        Thinking("hm", "sig"),
        Thinking("", "sealed", redacted=True),
        Text("I look."),
        Opaque("anthropic", ASKED),
        Opaque("anthropic", FOUND),
        Text("\n"),
        Text("Sun", {"citations": [cited]}),
        calls=[call()],
    )

    assert blocks_of(message) == [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "redacted_thinking", "data": "sealed"},
        {"type": "text", "text": "I look."},
        ASKED,
        FOUND,
        {"type": "text", "text": "\n"},
        {"type": "text", "text": "Sun", "citations": [cited]},
        {"type": "tool_use", "id": "c1", "name": "look", "input": {}},
    ]


def test_another_models_answer_goes_as_words_and_calls():
    message = said(
        Thinking("hm", "sig"),
        Opaque("openai", {"type": "reasoning"}),
        Text("Sun", {"citations": [1]}),
        calls=[
            call(extra={"caller": {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}})
        ],
        model="openai:gpt",
    )

    assert blocks_of(message) == [
        {"type": "text", "text": "Sun"},
        {"type": "tool_use", "id": "c1", "name": "look", "input": {}},
    ]


def test_a_call_of_a_servers_code_says_so():
    caller = {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}
    message = said(Opaque("anthropic", ASKED), calls=[call(extra={"caller": caller})])

    server, ours = blocks_of(message)

    assert server == ASKED
    assert ours["caller"] == caller


def test_a_call_that_the_model_made_itself_says_nothing():
    (block,) = blocks_of(said(calls=[call(extra={"caller": {"type": "direct"}})]))

    assert "caller" not in block


def test_thinking_without_signature_or_with_nothing_behind_it_is_left_out():
    message = said(Thinking("unsigned"), Text("a"), Thinking("at the end", "sig"))

    assert blocks_of(message) == [{"type": "text", "text": "a"}]


def test_a_turn_that_paused_goes_on_from_where_it_stands():
    paused = said(Text("I look."), Opaque("anthropic", ASKED), stop="pause_turn")

    messages = messages_of(HI, paused)

    assert [message["role"] for message in messages] == ["user", "assistant"]
    assert messages[1]["content"][-1] == ASKED


def test_an_answer_is_not_gone_on_from_where_it_ends_in_white_space():
    """ "final assistant content cannot end with trailing whitespace" """
    paused = said(Opaque("anthropic", ASKED), Text("And "), stop="pause_turn")

    messages = messages_of(HI, paused)

    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert messages[1]["content"] == [{"type": "text", "text": "And "}]


def test_a_turn_that_went_on_after_a_pause_is_one_message():
    paused = said(Opaque("anthropic", ASKED), stop="pause_turn")

    messages = messages_of(HI, paused, said(Opaque("anthropic", FOUND), Text("Sun.")), HI)

    assert messages[1]["content"] == [ASKED, FOUND, {"type": "text", "text": "Sun."}]


def test_half_of_a_servers_call_is_left_out():
    """A stream that broke off, or a user who did not wait."""
    call_alone = said(Text("I look."), Opaque("anthropic", ASKED), Text("\n"))
    result = FOUND | {"tool_use_id": "srvtoolu_2"}
    result_alone = said(Opaque("anthropic", result), Text("Sun."))

    messages = messages_of(HI, call_alone, Message.user("Stop."), result_alone, HI)

    assert messages[1]["content"] == [{"type": "text", "text": "I look."}]
    assert messages[3]["content"] == [{"type": "text", "text": "Sun."}]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "mcp_tool_use", "name": "echo", "server_name": "s", "input": {}},
        {"type": "mcp_tool_use", "id": None, "name": "echo", "server_name": "s", "input": {}},
        {"type": "mcp_tool_result", "content": []},
        {"type": "web_search_tool_result", "tool_use_id": 7, "content": []},
    ],
)
def test_a_servers_block_without_an_id_is_left_out(block):
    answer = said(Opaque("anthropic", block), Text("so"))

    assert messages_of(HI, answer, HI)[1]["content"] == [{"type": "text", "text": "so"}]


def test_a_result_in_front_of_its_call_belongs_to_no_call():
    late = said(Opaque("anthropic", FOUND), Text("x"), Opaque("anthropic", ASKED), Text("y"))

    assert [block["type"] for block in blocks_of(late)] == ["text", "text"]


def test_a_note_that_another_model_answered_is_left_out():
    note = {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}}

    assert blocks_of(said(Opaque("anthropic", note), Text("x"))) == [{"type": "text", "text": "x"}]


def test_thinking_is_bound_to_what_stood_before_it_by_the_newest_models():
    """It goes back while all before it is the same, and is left out when anything changed."""
    wire = AnthropicWire("claude-opus-5-5", cache=False)
    prefix = wire.ask([HI], "s").prepared.prefix
    answer = said(Thinking("", "sig"), Text("x"), model=wire.name, prefix=prefix)

    same = messages_of(HI, answer, HI, wire=wire, system="s")
    other = messages_of(HI, answer, HI, wire=wire, system="t")

    assert [block["type"] for block in same[1]["content"]] == ["thinking", "text"]
    assert [block["type"] for block in other[1]["content"]] == ["text"]


@pytest.mark.parametrize("part", [Unknown({"a": 1}), Text("x", {"a": 2**70}), Image(data=b"\xff")])
def test_any_part_can_be_bound(part):
    """Also what nobody here can read, and numbers that few formats hold."""
    wire = AnthropicWire("claude-opus-5-5")

    prefixes = {wire.ask([Message.user([part, *more])]).prepared.prefix for more in ((), ["y"])}

    assert len(prefixes) == 2


def test_thinking_is_not_bound_by_older_models():
    answer = said(Thinking("hm", "sig"), Text("x"), prefix="another")

    assert blocks_of(answer)[0]["type"] == "thinking"


# Settings


def test_thinking_by_a_budget():
    """max_tokens is 16000 with thinking, and the budget 10000 by default (S2-91)."""
    body = body_of(HI, settings=Settings(thinking="medium", temperature=0.5))

    assert body["thinking"] == {"type": "enabled", "budget_tokens": 10_000}
    assert body["max_tokens"] == 16_000
    assert "temperature" not in body


def test_a_turn_whose_first_thought_is_gone_goes_on_without_thinking():
    """ "a final `assistant` message must start with a thinking block" """
    settings = Settings(thinking="medium")
    result = Message.tool("1", "c1")

    kept = body_of(HI, said(Thinking("h", "s"), calls=[call()]), result, settings=settings)
    stripped = body_of(
        HI, said(Thinking("h", "s"), calls=[call()], model="a:b"), result, settings=settings
    )
    next_turn = body_of(HI, said(calls=[call()]), result, said(Text("x")), HI, settings=settings)

    assert kept["thinking"]["type"] == next_turn["thinking"]["type"] == "enabled"
    assert "thinking" not in stripped


def test_what_began_the_turn_counts_not_what_came_later():
    first = said(calls=[call("c1")])
    later = said(Thinking("h", "s"), calls=[call("c2")])

    body = body_of(
        *(HI, first, Message.tool("1", "c1"), later, Message.tool("2", "c2")),
        settings=Settings(thinking="low"),
    )

    assert "thinking" not in body


def test_temperature_is_at_most_one():
    assert body_of(HI, settings=Settings(temperature=1.7))["temperature"] == 1
    assert body_of(HI, settings=Settings(temperature=0.3))["temperature"] == 0.3


def test_newer_models_take_no_temperature():
    wire = AnthropicWire("claude-opus-4-8")

    assert "temperature" not in body_of(HI, wire=wire, settings=Settings(temperature=0.3))


def test_max_tokens_are_asked_for():
    assert body_of(HI, settings=Settings(max_tokens=50))["max_tokens"] == 50


def test_a_schema_for_the_answer():
    schema = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}}

    body = body_of(HI, schema=schema)

    assert body["output_config"]["format"] == {
        "type": "json_schema",
        "schema": {
            "type": "object",
            "properties": {"a": {"type": "integer", "description": '{"minimum":1}'}},
            "additionalProperties": False,
        },
    }


def test_a_model_that_knows_no_schema_is_told_it():
    wire = AnthropicWire("claude-sonnet-4-20250514")

    body = body_of(HI, wire=wire, system="Be brief.", schema={"type": "object"})

    assert "output_config" not in body
    assert body["system"][0]["text"].startswith("Be brief.\n\nAnswer with JSON alone")
    assert body["system"][0]["text"].endswith('{"type":"object"}')


def test_what_the_caller_knows_goes_into_the_body():
    extra = {
        "anthropic": {
            "top_p": 0.9,
            "tools": [{"type": "web_search_20250305", "name": "web_search"}],
            "output_config": {"effort": "low"},
            "metadata": {"user_id": "u"},
        },
        "openai": {"x": 1},
    }

    body = body_of(HI, tools=[Tool("z")], schema={"type": "object"}, settings=Settings(extra=extra))

    assert [tool["name"] for tool in body["tools"]] == ["z", "web_search"]
    assert sorted(body["output_config"]) == ["effort", "format"]
    assert (body["top_p"], body["metadata"]) == (0.9, {"user_id": "u"})
    assert "x" not in body


def test_what_the_caller_knows_has_to_be_an_object():
    with pytest.raises(InvalidInput):
        body_of(HI, settings=Settings(extra={"anthropic": 1}))


def test_a_server_that_only_speaks_the_wire():
    """Neither thinking nor breakpoints, and its own name."""
    wire = AnthropicWire("qwen", vendor="ollama", cache=False, thinking=False)
    settings = Settings(thinking="high", temperature=0.2, extra={"ollama": {"top_k": 3}})

    body = body_of(
        HI, said(Thinking("h", "s"), Text("x"), model=wire.name), HI, wire=wire, settings=settings
    )

    assert wire.name == "ollama:qwen"
    assert "thinking" not in body
    assert (body["temperature"], body["top_k"]) == (0.2, 3)
    assert body["messages"][1]["content"] == [{"type": "text", "text": "x"}]


# Anything

IDS = st.sampled_from(["c1", "c2", "a b", "", "toolu_1"])
CALLS = st.builds(
    ToolCall,
    id=IDS,
    name=strategies.words,
    arguments=strategies.json_texts,
    extra=st.sampled_from(
        [
            {},
            {"caller": {"type": "direct"}},
            {"caller": {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}},
        ]
    ),
)
MARK = {"cache_control": {"type": "ephemeral"}}
OPAQUE = st.sampled_from(
    [
        ASKED,
        FOUND,
        ASKED | {"id": "srvtoolu_2"},
        ASKED | {"id": "bad"},
        FOUND | {"tool_use_id": "srvtoolu_2"} | MARK,
        {"type": "mcp_tool_use", "id": "m", "name": "x", "server_name": "y", "input": {}},
        {"type": "mcp_tool_result", "tool_use_id": "m", "content": [], "is_error": False},
        {"type": "mcp_tool_use", "id": "m"},
        {"type": "compaction", "content": "x"},
        {"type": "fallback"},
        {"type": 3},
        {},
        {"type": "container_upload", "file_id": "f"},
        {"type": "document", "source": {"type": "file", "file_id": "f"}} | MARK,
        {"type": "image", "source": {"type": "url"}},
        {
            "type": "search_result",
            "source": "s",
            "title": "t",
            "content": [{"type": "text", "text": "x"}],
        },
        {"type": "tool_reference", "tool_name": "x"},
    ]
).map(lambda data: Opaque("anthropic", data))
PARTS = st.one_of(
    st.builds(Text, strategies.texts),
    st.builds(Text, strategies.words, st.just({"citations": [{"type": "x"}]})),
    st.builds(Thinking, strategies.texts, st.none() | st.just("sig")),
    st.just(Thinking("", "sealed", redacted=True)),
    OPAQUE,
    st.builds(CallRef, IDS),
    st.sampled_from(
        [
            Image(data=b"x", media_type="image/png"),
            Image(data=b"", media_type="image/png"),
            Image(url="https://a/b"),
            File(data=b"%PDF", media_type="application/pdf", name="a"),
            File(data=b"text", media_type="text/markdown"),
        ]
    ),
)
CONTENT = st.none() | strategies.texts | st.lists(PARTS, max_size=4)
WIRES = [
    AnthropicWire("claude-sonnet-4-5"),
    AnthropicWire("claude-opus-5-5", ttl="1h"),
    AnthropicWire("claude-sonnet-4-6"),
    AnthropicWire("claude-sonnet-5"),
    AnthropicWire("claude-3-7-sonnet-20250219", cache=False),
    AnthropicWire("qwen", vendor="ollama", cache=False, thinking=False),
]
SETTINGS = st.builds(
    Settings,
    thinking=st.sampled_from([None, "off", "low", "high", "max", 0, 10, 2_000, 50_000]),
    temperature=st.sampled_from([None, 0, 1, 1.7]),
    max_tokens=st.sampled_from([None, 0, 100, 3_000]),
    extra=st.sampled_from([{}, {"anthropic": {"betas": ["a"], **MARK}}]),
)


@st.composite
def conversations(draw, name):
    kinds = st.one_of(
        st.builds(Message.user, CONTENT),
        st.builds(
            lambda content, calls, model, stop: Message.assistant(
                content, calls, model=model, stop=stop
            ),
            CONTENT,
            st.lists(CALLS, max_size=3),
            st.sampled_from([name, None, "openai:x"]),
            st.sampled_from([None, "pause_turn", "stop"]),
        ),
        st.builds(
            lambda content, id, is_error: Message.tool(content, id, is_error=is_error),
            *(CONTENT, IDS, st.booleans()),
        ),
        st.builds(Message.system, CONTENT),
        strategies.messages,
    )
    return draw(st.lists(kinds, max_size=7))


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), st.sampled_from(WIRES), SETTINGS, strategies.optional_texts, st.booleans())
def test_any_conversation_becomes_a_request_that_is_accepted(data, wire, settings, system, tools):
    """And the same one, to the byte, when it is made again (R1)."""
    messages = data.draw(conversations(wire.name))
    offered = [Tool("b.c", "d"), Tool("a")] if tools else []

    bodies = [
        msgspec.json.encode(wire.to_wire(wire.ask(messages, system, offered, settings=settings)))
        for _ in range(2)
    ]

    problems = validators.problems("anthropic", msgspec.json.decode(bodies[0]))
    assert [str(each) for each in problems] == []
    assert bodies[0] == bodies[1]
