"""Google's requests: what a conversation becomes, and that Google would accept whatever it is."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strategies as some
from holdfast.errors import InvalidInput
from holdfast.messages import Message, ToolCall
from holdfast.notes import BLANK, CONTINUE, UNANSWERED
from holdfast.parts import Audio, CallRef, File, Image, Opaque, Text, Thinking
from holdfast.providers.google import GoogleWire, generation
from holdfast.providers.google_parts import UNSIGNED
from holdfast.settings import Settings
from holdfast.testing import validators
from holdfast.tools import Tool
from holdfast.window.render import render

OLD, NEW = "gemini-2.5-flash", "gemini-3-flash-preview"
PNG = b"\x89PNG\r\n\x1a\n...."
SIGNATURE = "c2lnbmVk"
HI = Message.user("hi")


def body_of(*messages, model=OLD, **options):
    """The request as it goes over the wire, which Google would accept."""
    wire = GoogleWire(model)
    body = json.loads(msgspec.json.encode(wire.to_wire(wire.ask(messages, **options))))
    assert validators.problems("google", body, model=model) == []
    return body


def contents_of(*messages, model=OLD):
    found = body_of(*messages, model=model)["contents"]
    return [(content["role"], content["parts"]) for content in found]


def call(id="c1", name="look", arguments="{}", **fields):
    return ToolCall(id=id, name=name, arguments=arguments, **fields)


def asks(*calls, content=None, model=None):
    return Message.assistant(content, tool_calls=calls, model=model)


def response(name="look", **response):
    return {"functionResponse": {"name": name, "response": response}}


# Roles and turns


def test_the_user_speaks_as_user_and_the_assistant_as_model():
    """S2-81: and a tool's result is the user's."""
    found = contents_of(HI, asks(call()), Message.tool("15", "c1"), Message.assistant("15."), HI)

    assert [role for role, _ in found] == ["user", "model", "user", "model", "user"]
    assert found[0] == ("user", [{"text": "hi"}])
    assert found[3] == ("model", [{"text": "15."}])


def test_neighbours_of_one_role_are_one_content():
    """S1-56, S1-50: the two alternate; what follows a result stands behind it."""
    found = contents_of(
        HI,
        Message.user("there"),
        Message.assistant("Wait."),
        asks(call("c1"), call("c2")),
        Message.tool("1", "c1"),
        Message.tool("2", "c2"),
        Message.user("and?"),
    )

    assert [role for role, _ in found] == ["user", "model", "user"]
    assert found[0][1] == [{"text": "hi"}, {"text": "there"}]
    assert [list(part) for part in found[1][1]] == [["text"], ["functionCall"], ["functionCall"]]
    assert [list(part) for part in found[2][1]] == [["functionResponse"]] * 2 + [["text"]]


def test_the_model_never_has_the_first_or_the_last_word():
    """S1-56: a conversation that begins with the model is continued in front of it."""
    assert contents_of(Message.assistant("Yes?")) == [
        ("user", [{"text": CONTINUE}]),
        ("model", [{"text": "Yes?"}]),
        ("user", [{"text": CONTINUE}]),
    ]
    assert contents_of() == [("user", [{"text": CONTINUE}])]
    repairs = GoogleWire(OLD).ask([Message.assistant("Yes?")]).prepared.repairs
    assert [repair.what for repair in repairs] == ["continued", "continued"]


def test_an_unanswered_call_gets_an_answer_and_an_orphan_is_said():
    """S1-56: every call has its response, directly behind; no response is without a call."""
    found = contents_of(Message.tool("old", "gone"), HI, asks(call("c1")), HI)

    assert "old" in found[0][1][0]["text"]
    assert found[2][1][0] == {
        "functionResponse": {"id": "c1", "name": "look", "response": {"error": UNANSWERED}}
    }


def test_the_system_instruction_stands_apart_with_the_system_messages():
    """A5, S2-81: Google has no such role."""
    body = body_of(Message.system("Never shout."), HI, system="Be brief.")

    assert body["systemInstruction"] == {"parts": [{"text": "Be brief.\n\nNever shout."}]}
    assert body["contents"] == [{"role": "user", "parts": [{"text": "hi"}]}]


def test_a_user_is_never_left_without_a_word():
    """A part that Google cannot read is not sent, and the message stays."""
    assert contents_of(Message.user([Opaque("google", {"hologram": {}})])) == [
        ("user", [{"text": BLANK}])
    ]


# Calls and results


def test_a_call_is_sent_with_its_arguments_as_an_object():
    found = contents_of(HI, asks(call(arguments='{"b": [1, 2.5], "a": null}')))

    args = found[1][1][0]["functionCall"]["args"]
    assert list(args.items()) == [("b", [1, 2.5]), ("a", None)]


@pytest.mark.parametrize("written", ['{"a": ', "[1]", "null", "word", '{"a": NaN}', '{"a":"\\ud8'])
def test_arguments_that_are_no_object_are_sent_inside_one(written):
    """The model can read what it wrote; it is neither lost nor an error."""
    found = contents_of(HI, asks(call(arguments=written)))

    assert found[1][1][0]["functionCall"]["args"] == {"arguments": written}


def test_arguments_that_are_nested_too_deeply_or_say_a_key_twice_are_made_readable():
    """Google's reader of JSON goes 100 deep and takes a key once."""
    deep = '{"a":' * 80 + "1" + "}" * 80
    found = contents_of(HI, asks(call("c1", arguments=deep), call("c2", arguments='{"a":1,"a":2}')))

    assert found[1][1][0]["functionCall"]["args"] == {"arguments": deep}
    assert found[1][1][1]["functionCall"]["args"] == {"a": 2}


def test_a_wide_object_is_not_a_deep_one():
    wide = json.dumps({"rows": [{"a": [1]}] * 200})
    found = contents_of(HI, asks(call(arguments=wide)))

    assert found[1][1][0]["functionCall"]["args"] == json.loads(wide)


@pytest.mark.parametrize(
    ("content", "is_error", "expected"),
    [
        ("15", False, {"result": "15"}),
        ("[1, 2]", False, {"result": "[1, 2]"}),
        ('{"a": 1}', False, {"a": 1}),
        ("no such file", True, {"error": "no such file"}),
        ('{"a": 1}', True, {"error": '{"a": 1}'}),
        (None, False, {"result": ""}),
        ([Text("a"), Text("b")], False, {"result": "a\nb"}),
    ],
)
def test_a_result_is_an_object(content, is_error, expected):
    """S2-82, S1-50, B35, B40: its own if it is one, else inside one; an error says so."""
    result = Message.tool(content, "c1", is_error=is_error)

    found = contents_of(HI, asks(call()), result)

    assert found[2][1][0]["functionResponse"]["response"] == expected


def test_an_id_that_we_made_up_is_not_sent():
    """S2-82, B40: the two find each other by name and order. A given id goes both ways."""
    ours = call("call_1", extra={"id_is_ours": True})
    found = contents_of(
        HI, asks(ours, call("c2")), Message.tool("1", "call_1"), Message.tool("2", "c2")
    )

    assert [part["functionCall"].get("id") for part in found[1][1]] == [None, "c2"]
    assert [part["functionResponse"].get("id") for part in found[2][1]] == [None, "c2"]


def test_results_stand_in_the_order_of_their_calls():
    """Without ids nothing else tells two calls of one tool apart."""
    calls = [call(f"call_{n}", arguments=f'{{"n":{n}}}', extra={"id_is_ours": True}) for n in "12"]
    asked = asks(*calls, content=[CallRef("call_2"), Text("and"), CallRef("call_1")])

    found = contents_of(HI, asked, Message.tool("two", "call_2"), Message.tool("one", "call_1"))

    sent = [part["functionCall"]["args"] for part in found[1][1] if "functionCall" in part]
    assert sent == [{"n": 1}, {"n": 2}]
    assert found[2][1] == [response(result="one"), response(result="two")]


def test_a_call_stands_where_it_stood_among_the_words():
    asked = asks(call("c1"), call("c2"), content=[Text("a"), CallRef("c1"), Text("b")])

    found = contents_of(HI, asked)

    assert [next(iter(part)) for part in found[1][1]] == [
        "text",
        "functionCall",
        "text",
        "functionCall",
    ]


def test_a_name_that_google_does_not_allow_is_fitted():
    """It begins with a letter or underscore; letters, digits and _ . : - follow, at most 64."""
    tools = [Tool("2 größe"), Tool("x" * 80), Tool("mcp.server:read-file")]
    asked = asks(call(name="2 größe"), call("c2", name="gone away"))

    body = body_of(HI, asked, tools=tools)

    names = [each["name"] for each in body["tools"][0]["functionDeclarations"]]
    assert names == ["_2_gr__e", "x" * 64, "mcp.server:read-file"]
    sent = [part["functionCall"]["name"] for part in body["contents"][1]["parts"]]
    assert sent[0] == "_2_gr__e"
    assert [p["functionResponse"]["name"] for p in body["contents"][2]["parts"]] == sent


# Signatures


def test_signatures_go_back_on_the_parts_they_came_on():
    """S2-85, S2-115, B25, B40: to the model that gave them."""
    said = Message.assistant(
        [
            Thinking("hm", SIGNATURE),
            Text("Look.", {"signature": "dGV4dA=="}),
            Opaque("google", {"text": "", "thoughtSignature": "ZW5k"}),
            Image(data=PNG, media_type="image/png", extra={"signature": "aW1n"}),
        ],
        tool_calls=[call(signature="Y2FsbA")],
        model=f"google:{NEW}",
    )

    parts = contents_of(HI, said, model=NEW)[1][1]

    assert parts[0] == {"text": "hm", "thought": True, "thoughtSignature": SIGNATURE}
    assert parts[1] == {"text": "Look.", "thoughtSignature": "dGV4dA=="}
    assert parts[2] == {"text": "", "thoughtSignature": "ZW5k"}
    assert parts[3]["thoughtSignature"] == "aW1n"
    assert parts[4]["thoughtSignature"] == "Y2FsbA"


@pytest.mark.parametrize("author", [None, "google:gemini-2.5-pro", "openai:gpt-5", f"x:{NEW}"])
def test_no_other_model_gets_a_signature(author):
    """What another model signed Google could not verify; its words stay."""
    said = Message.assistant(
        [
            Thinking("hm", SIGNATURE),
            Text("Look.", {"signature": SIGNATURE}),
            Opaque("google", {"text": "", "thoughtSignature": SIGNATURE}),
            Image(data=PNG, extra={"signature": SIGNATURE}),
        ],
        tool_calls=[call(signature=SIGNATURE)],
        model=author,
    )

    body = body_of(HI, said, model=NEW)

    assert SIGNATURE not in json.dumps(body)
    assert [next(iter(p)) for p in body["contents"][1]["parts"]] == [
        "text",
        "inlineData",
        "functionCall",
    ]


def test_a_step_without_a_signature_says_so_to_gemini_3():
    """Google publishes the word for calls that another model made; older models need none."""
    history = (HI, asks(call("c1"), call("c2")), HI, asks(call("c3")))

    parts = [part for _, parts in contents_of(*history, model=NEW) for part in parts]

    signed = [part.get("thoughtSignature") for part in parts if "functionCall" in part]
    assert signed == [UNSIGNED, None, UNSIGNED]
    assert UNSIGNED not in json.dumps(body_of(*history, model=OLD))


@pytest.mark.parametrize("broken", ["", "not base64!", "a", "ab=", "ab===", "\x00"])
def test_a_signature_that_can_be_none_is_not_sent(broken):
    said = Message.assistant(
        [Thinking("hm", broken), Thinking("", broken), Text("x", {"signature": broken})],
        tool_calls=[call(signature=broken)],
        model=f"google:{NEW}",
    )

    parts = contents_of(HI, said, model=NEW)[1][1]

    assert parts[0] == {"text": "hm", "thought": True}
    assert parts[1] == {"text": "x"}
    assert parts[2]["thoughtSignature"] == UNSIGNED


def test_a_call_that_was_only_thought_of_and_not_signed_is_left_out_with_its_result():
    """S1-56, S1-27: a signed one goes back as the thought that it was."""
    said = asks(
        call("c1", extra={"thought": True}),
        call("c2", extra={"thought": True}, signature=SIGNATURE),
        model=f"google:{OLD}",
    )

    found = contents_of(HI, said, Message.tool("1", "c1"), Message.tool("2", "c2"))

    assert len(found[1][1]) == len(found[2][1]) == 1
    assert found[1][1][0]["thought"] is True
    assert found[2][1][0]["functionResponse"]["response"] == {"result": "2"}


def test_the_user_has_the_last_word_when_the_last_results_are_left_out():
    said = asks(call(extra={"thought": True}), content="Hm.", model=f"google:{OLD}")

    assert contents_of(HI, said)[1:] == [
        ("model", [{"text": "Hm."}]),
        ("user", [{"text": CONTINUE}]),
    ]


# Opaque parts


def test_opaque_parts_go_back_as_they_came():
    ran = {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": SIGNATURE}
    gave = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}
    said = Message.assistant([Opaque("google", ran), Opaque("google", gave)], model=f"google:{OLD}")

    assert contents_of(HI, said)[1][1] == [ran, gave]


def test_a_user_may_send_googles_own_parts():
    """Such as a video with the piece of it that counts."""
    video = {"fileData": {"fileUri": "https://youtu.be/x"}, "videoMetadata": {"startOffset": "5s"}}

    assert contents_of(Message.user([Opaque("google", video)]))[0][1] == [video]


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"text": "", "thought": True},
        {"text": 5},
        {"text": "a", "inlineData": {}},
        {"text": "a", "mood": "good"},
        {"functionCall": {"name": "f", "args": {}}},
        {"functionResponse": {"name": "f", "response": {}}},
        {"inlineData": {"mimeType": "image/png", "data": "!"}},
        {"inlineData": {"data": "AAAA"}},
        {"fileData": {"mimeType": "image/png"}},
        {"fileData": {"fileUri": 7}},
        {"toolCall": {}, "thoughtSignature": "!"},
        {"executableCode": "1"},
    ],
)
def test_an_opaque_part_that_google_would_refuse_is_not_sent(data):
    """A history may hold anything under that name; one bad part spoils the request."""
    said = Message.assistant([Text("a"), Opaque("google", data)], model=f"google:{OLD}")

    assert contents_of(HI, said)[1][1] == [{"text": "a"}]


# Media


def test_bytes_go_inline_and_addresses_as_they_are():
    found = contents_of(
        Message.user(
            [
                Image(data=PNG),
                File(data=b"x", media_type="text/plain", name="a.txt"),
                Audio(url="gs://bucket/a.mp3"),
                File(url="https://example.com/a.pdf?x=1"),
                File(url="https://www.youtube.com/watch?v=1"),
                Image(url="data:image/jpg;base64,AAEC"),
            ]
        )
    )[0][1]

    assert found == [
        {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgouLi4u"}},
        {"inlineData": {"mimeType": "text/plain", "data": "eA=="}},
        {"fileData": {"fileUri": "gs://bucket/a.mp3", "mimeType": "audio/mpeg"}},
        {"fileData": {"fileUri": "https://example.com/a.pdf?x=1", "mimeType": "application/pdf"}},
        {"fileData": {"fileUri": "https://www.youtube.com/watch?v=1"}},
        {"inlineData": {"mimeType": "image/jpeg", "data": "AAEC"}},
    ]


@pytest.mark.parametrize(
    "part",
    [
        Image(data=b"GIF89a", media_type="image/gif"),
        Image(data=b"?"),
        Image(data=b"", media_type="image/png"),
        File(data=b"PK", media_type="application/zip"),
        Image(url="file:///a.png"),
        Image(url="http://example.com/a.png"),
        Image(url="https://example.com/a.gif"),
        Image(url="data:image/png;base64,@@@"),
        Image(url="data:,x"),
        Image(blob="sha256:1"),
    ],
)
def test_media_that_google_does_not_take_are_named_in_their_place(part):
    parts = contents_of(Message.user([Text("see"), part]))[0][1]

    assert parts[0] == {"text": "see"}
    assert list(parts[1]) == ["text"]


def test_media_in_a_result_stand_inside_it_for_gemini_3():
    """S2-83, B40: named by a reference in the response."""
    result = Message.tool([Text("Here."), Image(data=PNG)], "c1")

    answered = contents_of(HI, asks(call()), result, model=NEW)[2][1]

    assert answered == [
        {
            "functionResponse": {
                "id": "c1",
                "name": "look",
                "response": {"result": "Here.", "media": [{"$ref": "image-1"}]},
                "parts": [
                    {
                        "inlineData": {
                            "mimeType": "image/png",
                            "data": "iVBORw0KGgouLi4u",
                            "displayName": "image-1",
                        }
                    }
                ],
            }
        }
    ]


def test_what_a_tool_says_in_an_object_stays_an_object_beside_its_media():
    """B40: its own fields, and one that names the media; a field of that name is not lost."""
    for said, response in (
        ("{}", {"media": [{"$ref": "image-1"}]}),
        ('{"seen": 1}', {"seen": 1, "media": [{"$ref": "image-1"}]}),
        ('{"media": 1}', {"result": '{"media": 1}', "media": [{"$ref": "image-1"}]}),
    ):
        result = Message.tool([Text(said), Image(data=PNG)], "c1")

        answered = contents_of(HI, asks(call()), result, model=NEW)[2][1]

        assert answered[0]["functionResponse"]["response"] == response


def test_an_address_stands_inside_a_result_at_vertex_alone():
    """The Gemini API has no field for it there; neither has a type that is not published."""
    page = File(url="https://example.com/a.pdf", name="a.pdf")
    tune = Audio(url="https://example.com/a.mp3")
    wire = GoogleWire(NEW, project="ours")
    ask = wire.ask([HI, asks(call()), Message.tool([page, tune], "c1")])

    body = json.loads(msgspec.json.encode(wire.to_wire(ask)))

    assert validators.problems("google", body, model=NEW) == []
    result, *behind = body["contents"][2]["parts"]
    address = {"fileUri": "https://example.com/a.pdf", "mimeType": "application/pdf"}
    assert result["functionResponse"]["parts"] == [
        {"fileData": {**address, "displayName": "file-1 a.pdf"}}
    ]
    assert result["functionResponse"]["response"] == {
        "media": [{"$ref": "file-1 a.pdf"}, "audio-2"]
    }
    assert [list(part) for part in behind] == [["text"], ["fileData"]]


def test_other_media_follow_the_last_result_of_the_step():
    """Older models read them there; so does Gemini 3 with sound, and outside Vertex an address."""
    history = (
        HI,
        asks(call("c1"), call("c2")),
        Message.tool([Audio(data=b"x", media_type="audio/wav")], "c1"),
        Message.tool([File(url="https://example.com/a.pdf", name="a.pdf")], "c2", is_error=True),
        Message.user("Well?"),
    )

    for model in (OLD, NEW):
        parts = contents_of(*history, model=model)[2][1]

        responses = [part["functionResponse"]["response"] for part in parts[:2]]
        assert responses == [{"media": ["audio-1"]}, {"media": ["file-1 a.pdf"]}]
        assert parts[2] == {"text": "[audio-1, from look]"}
        assert parts[3]["inlineData"]["mimeType"] == "audio/wav"
        assert parts[4] == {"text": "[file-1 a.pdf, from look]"}
        assert parts[5]["fileData"]["fileUri"] == "https://example.com/a.pdf"
        assert parts[6] == {"text": "Well?"}


# Settings


def test_tools_are_one_tool_with_declarations():
    """S2-81"""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}

    body = body_of(HI, tools=[Tool("weather", "The weather.", schema), Tool("time")])

    assert body["tools"] == [
        {
            "functionDeclarations": [
                {"name": "weather", "description": "The weather.", "parametersJsonSchema": schema},
                {
                    "name": "time",
                    "description": "",
                    "parametersJsonSchema": {"type": "object", "properties": {}},
                },
            ]
        }
    ]
    assert "tools" not in body_of(HI)


def test_a_schema_for_the_answer_comes_with_its_type():
    """S2-81"""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}

    assert body_of(HI, schema=schema)["generationConfig"] == {
        "responseMimeType": "application/json",
        "responseJsonSchema": schema,
    }


def test_temperature_and_length_are_passed_on():
    body = body_of(HI, settings=Settings(temperature=0.5, max_tokens=100))

    assert body["generationConfig"] == {"temperature": 0.5, "maxOutputTokens": 100}
    assert "generationConfig" not in body_of(HI)


@pytest.mark.parametrize(
    ("model", "thinking", "expected"),
    [
        (NEW, "low", {"thinkingLevel": "low", "includeThoughts": True}),
        (NEW, "off", {"thinkingLevel": "minimal", "includeThoughts": False}),
        (NEW, 2000, {"thinkingBudget": 2000, "includeThoughts": True}),
        ("gemini-3-pro-preview", "medium", {"thinkingLevel": "high", "includeThoughts": True}),
        ("gemini-3-pro-preview", "off", {"thinkingLevel": "low", "includeThoughts": False}),
        ("gemini-3.1-pro-preview", "medium", {"thinkingLevel": "medium", "includeThoughts": True}),
        (OLD, "high", {"thinkingBudget": 24576, "includeThoughts": True}),
        (OLD, "off", {"thinkingBudget": 0, "includeThoughts": False}),
        ("gemini-2.5-pro", "off", {"thinkingBudget": 128, "includeThoughts": False}),
        ("gemini-2.5-pro", 0, {"thinkingBudget": 128, "includeThoughts": False}),
    ],
)
def test_thinking_is_a_level_or_a_budget_as_the_model_has_it(model, thinking, expected):
    body = body_of(HI, model=model, settings=Settings(thinking=thinking))

    assert body["generationConfig"]["thinkingConfig"] == expected


def test_a_model_that_does_not_think_is_not_asked_to():
    for model in ("gemini-2.0-flash", "gemini-1.5-pro", "gemma-3-27b-it"):
        assert "generationConfig" not in body_of(
            HI, model=model, settings=Settings(thinking="high")
        )


def test_a_level_that_nobody_knows_is_refused():
    with pytest.raises(InvalidInput, match="thinking"):
        body_of(HI, settings=Settings(thinking="a lot"))


def test_what_the_caller_adds_goes_into_the_body():
    """On top of ours: objects are merged, tools are added."""
    extra = {
        "tools": [{"googleSearch": {}}],
        "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
        "generationConfig": {"topK": 5, "temperature": 1},
        "safetySettings": [{"category": "A", "threshold": "B"}],
    }
    settings = Settings(temperature=0.5, max_tokens=9, extra={"google": extra, "openai": {"n": 2}})

    body = body_of(HI, tools=[Tool("look")], settings=settings)

    assert [list(each) for each in body["tools"]] == [["functionDeclarations"], ["googleSearch"]]
    assert body["generationConfig"] == {"temperature": 1, "maxOutputTokens": 9, "topK": 5}
    assert body["toolConfig"] == extra["toolConfig"]
    assert "n" not in body
    with pytest.raises(InvalidInput, match="google"):
        body_of(HI, settings=Settings(extra={"google": "x"}))


def test_cached_content_has_its_own_instruction_and_tools():
    """Google refuses a request that has both."""
    extra = {"google": {"cachedContent": "cachedContents/1"}}

    body = body_of(HI, system="Be brief.", tools=[Tool("look")], settings=Settings(extra=extra))

    assert body.keys() == {"contents", "cachedContent"}


# Where it goes


def test_the_model_stands_in_the_path():
    """S2-81: and so does whether it is streamed."""
    wire, vertex = (
        GoogleWire("gemini-2.5-flash"),
        GoogleWire("gemini-2.5-flash", project="p", location="eu"),
    )
    whole, streamed = wire.ask([HI]), wire.ask([HI], stream=True)

    assert wire.path(whole) == "models/gemini-2.5-flash:generateContent"
    assert wire.path(streamed) == "models/gemini-2.5-flash:streamGenerateContent?alt=sse"
    assert vertex.path(whole) == (
        "projects/p/locations/eu/publishers/google/models/gemini-2.5-flash:generateContent"
    )
    assert GoogleWire("tunedModels/my own").path(whole) == "tunedModels/my%20own:generateContent"


def test_a_stream_may_be_asked_for_as_an_array():
    wire = GoogleWire(OLD, framing="array")

    assert wire.framing == "array"
    assert wire.path(wire.ask([HI], stream=True)) == f"models/{OLD}:streamGenerateContent"
    with pytest.raises(InvalidInput):
        GoogleWire(OLD, framing="lines")


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (NEW, (3, 0)),
        ("publishers/google/models/gemini-3.1-pro", (3, 1)),
        ("gemini-2.5-flash-lite", (2, 5)),
        ("gemini-flash-latest", (3, 0)),
        ("gemma-3", (0, 0)),
    ],
)
def test_the_generation_of_a_model_is_in_its_name(model, expected):
    assert generation(model) == expected


# Whatever it is


def test_each_request_has_the_whole_conversation():
    """S2-80: nothing is left at the service, and nothing is lost on the way there."""
    said = asks(call("c1", arguments='{"city":"Turin"}'), content=[Text("Wait.")])
    history = [HI, said, Message.tool("15", "c1"), Message.assistant("15."), Message.user("And?")]
    wire = GoogleWire(OLD)

    assert wire.path(wire.ask(history)).endswith(":generateContent")
    assert contents_of(*history) == [
        ("user", [{"text": "hi"}]),
        (
            "model",
            [
                {"text": "Wait."},
                {"functionCall": {"id": "c1", "name": "look", "args": {"city": "Turin"}}},
            ],
        ),
        (
            "user",
            [{"functionResponse": {"id": "c1", "name": "look", "response": {"result": "15"}}}],
        ),
        ("model", [{"text": "15."}]),
        ("user", [{"text": "And?"}]),
    ]


def test_a_conversation_that_goes_on_begins_with_the_same_bytes():
    """So that whatever Google has cached of it still counts."""
    wire = GoogleWire(OLD)
    history = [HI, Message.assistant("a", tool_calls=[call()]), Message.tool("1", "c1")]

    first, longer = (
        bytes(wire.to_wire(wire.ask(messages))["contents"])
        for messages in (history, [*history, Message.assistant("b"), HI])
    )

    assert longer.startswith(first.removesuffix(b"]"))


signatures = st.sampled_from([SIGNATURE, "", "!", "YQ==", None])
opaque_data = st.one_of(
    some.json_objects,
    st.fixed_dictionaries(
        {},
        optional={
            "text": st.sampled_from(["", "a", 1]),
            "thought": st.booleans(),
            "thoughtSignature": signatures,
            "inlineData": st.sampled_from(
                [{}, {"mimeType": "a/b", "data": "AAAA"}, {"mimeType": "", "data": "A"}]
            ),
            "executableCode": some.json_objects,
            "functionCall": st.just({"name": "f", "args": {}}),
        },
    ),
)
parts = st.one_of(
    st.builds(Opaque, st.just("google"), opaque_data),
    st.builds(Thinking, some.texts, signatures),
    st.builds(lambda text, s: Text(text, {"signature": s}), some.texts, signatures),
    st.builds(CallRef, st.sampled_from("abc")),
    st.builds(lambda data, s: Image(data=data, extra={"signature": s}), st.just(PNG), signatures),
    st.builds(Audio, data=st.binary(max_size=2), media_type=st.just("audio/wav")),
    st.just(Image(url="https://example.com/a.png")),
)
calls = st.builds(
    lambda id, name, arguments, signature, flags: ToolCall(
        id=id,
        name=name,
        arguments=arguments,
        signature=signature,
        extra=dict.fromkeys(flags, True),
    ),
    st.sampled_from("abc"),
    st.sampled_from(["f", "g", "2 h"]),
    some.json_texts,
    signatures,
    st.sets(st.sampled_from(["id_is_ours", "thought"])),
)
models = st.sampled_from([None, f"google:{OLD}", f"google:{NEW}", "openai:gpt-5"])
contents = st.one_of(st.none(), some.texts, st.lists(parts, max_size=3))
likely_messages = st.one_of(
    st.builds(Message.user, contents),
    st.builds(
        lambda content, calls, model: Message.assistant(content, tool_calls=calls, model=model),
        contents,
        st.lists(calls, max_size=3),
        models,
    ),
    st.builds(
        lambda content, id, error: Message.tool(content, id, is_error=error),
        contents,
        st.sampled_from("abcd"),
        st.booleans(),
    ),
)


@settings(max_examples=300)
@given(st.lists(likely_messages | some.messages, max_size=8), st.sampled_from([OLD, NEW]))
def test_whatever_is_stored_google_would_accept(messages, model):
    """The validator is written from what Google publishes, without sight of this wire."""
    found = contents_of(*messages, model=model)

    roles = [role for role, _ in found]
    assert roles == (["user", "model"] * len(roles))[: len(roles)]


@given(st.lists(some.messages, max_size=12), st.lists(st.integers(0, 12), max_size=6))
@settings(max_examples=300, deadline=None)
def test_a_conversation_that_goes_on_is_sent_as_if_it_were_new(said, lengths):
    """What was joined for the calls before it, also of a window that was shorter again, shows in
    nothing."""
    wire, shown = GoogleWire(NEW), None

    for length in [*lengths, len(said)]:
        shown = render(said[:length], last=shown).messages
        fresh = GoogleWire(NEW)
        assert wire.to_wire(wire.ask(shown)) == fresh.to_wire(fresh.ask(tuple(shown)))
