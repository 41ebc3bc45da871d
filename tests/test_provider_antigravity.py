"""The wire of Code Assist: what is asked, in its envelope, and what is read out of answers."""

import json

import msgspec
import pytest

import code_assist as double
from bad_inputs import run
from code_assist import SIGNED, Google, document, says, streams
from holdfast.errors import InvalidInput, ProtocolError, RateLimited
from holdfast.messages import Message, Role, Stop, ToolCall
from holdfast.parts import Audio, File, Image, Opaque, Text, Thinking
from holdfast.providers import open_provider
from holdfast.providers.antigravity.schema import of_parameters
from holdfast.providers.antigravity.wire import CodeAssistWire
from holdfast.providers.google import GoogleWire
from holdfast.providers.google_parts import UNSIGNED
from holdfast.settings import Settings
from holdfast.testing import validators
from holdfast.tools import Tool
from holdfast.usage import Usage
from loopback import Loopback, whole

ASKED = [Message.user("Hello.")]
CLAUDE = "antigravity-claude-sonnet-4-5-thinking"
GEMINI = "antigravity-gemini-3-flash"
LOOK = Tool("look", "Look up.", {"type": "object", "properties": {"at": {"type": "string"}}})


def body_of(model, messages=ASKED, system=None, tools=None, **asked):
    """The body of a request, which the service would take."""
    wire = CodeAssistWire(model)
    body = json.loads(msgspec.json.encode(wire.to_wire(wire.ask(messages, system, tools, **asked))))
    assert validators.problems("code-assist", body) == []
    return body


def config_of(model, messages=ASKED, **settings):
    request = body_of(model, messages, settings=Settings(**settings))["request"]
    return request.get("generationConfig", {})


def thinking_of(model, thinking=None):
    return config_of(model, thinking=thinking).get("thinkingConfig")


def read(model, *documents, whole=False):
    wire = CodeAssistWire(model)
    reader = wire.reader(wire.answer(wire.ask(ASKED)))
    for each in documents:
        if whole:
            reader.read(each)
        else:
            reader.feed("message", json.dumps(each).encode())
    assert reader.is_complete
    return reader.answer.response()


def wrapped(*parts, finish=None, **more):
    return {"response": document(*parts, finish=finish), "traceId": "trace-1"} | more


def asked_of(model, answer=None, stream=False, **options):
    """What a server on loopback, which wants no account, is asked in one call."""

    async def main():
        async with Loopback(answer or says("Hello.")) as server:
            provider = open_provider(f"antigravity:{model}", base_url=server.url, **options)
            listen = {"on_chunk": str} if stream else {}
            response = await provider.complete(ASKED, **listen)
            await provider.close()
            return response, server.requests[0]

    return run(main())


# The envelope


def test_what_is_asked_stands_in_an_envelope():
    """S2-104: Google's body inside, and beside it who asks what, and an id of each request."""
    _, asked = asked_of(GEMINI, project="rain-1")
    inside = GoogleWire("gemini-3-flash")
    inside = json.loads(msgspec.json.encode(inside.to_wire(inside.ask(ASKED))))

    assert (asked.method, asked.path) == ("POST", "/v1internal:generateContent")
    assert set(asked.json) == {
        *("project", "model", "request", "requestType", "userAgent", "requestId")
    }
    assert asked.json["project"] == "rain-1" and asked.json["model"] == "gemini-3-flash"
    assert (asked.json["requestType"], asked.json["userAgent"]) == ("agent", "antigravity")
    assert asked.json["request"]["contents"] == inside["contents"]
    assert asked.json["requestId"].startswith("agent-")
    assert asked_of(GEMINI)[1].json["requestId"] != asked.json["requestId"]
    assert validators.problems("code-assist", asked.json) == []


def test_a_stream_is_asked_for_as_events():
    """S2-104."""
    answer = streams(document({"text": "Hel"}, finish=None), document({"text": "lo."}))

    response, asked = asked_of(GEMINI, answer, stream=True)

    assert asked.path == "/v1internal:streamGenerateContent?alt=sse"
    assert response.text == "Hello."


@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_is_read_in_its_envelope_and_bare(stream):
    """S2-104: it says the same; the envelope names the request."""
    bare = document({"text": "Hm.", "thought": True}, {"text": "Hello."}, modelVersion="m-1")

    inside = read(GEMINI, {"response": bare, "traceId": "trace-1", "more": 1}, whole=not stream)
    alone = read(GEMINI, bare, whole=not stream)

    assert inside.text == alone.text == "Hello." and inside.thinking == alone.thinking == "Hm."
    assert inside.usage == alone.usage == Usage(input=11, output=7)
    assert (inside.id, inside.model, inside.stop) == ("r1", "m-1", Stop.STOP)
    assert inside.request_id == "trace-1" and alone.request_id is None
    assert inside.extra["more"] == 1


def test_an_envelope_that_holds_something_else_is_an_error():
    with pytest.raises(ProtocolError):
        read(GEMINI, {"response": [1]})
    with pytest.raises(RateLimited):
        read(GEMINI, {"response": None, "error": {"code": 429, "status": "RESOURCE_EXHAUSTED"}})


def test_a_conversation_is_told_apart_and_not_named():
    """Its name may say who talks; the same one has the same id."""
    one, again, other = (
        body_of(GEMINI, conversation=name)["request"]["sessionId"]
        for name in ("telegram:ada", "telegram:ada", "telegram:bob")
    )

    assert one == again != other and "ada" not in one
    assert "sessionId" not in body_of(GEMINI)["request"]


def test_fields_of_the_callers_own_go_inside_the_envelope():
    extra = {"antigravity": {"toolConfig": {"functionCallingConfig": {"mode": "AUTO"}}}}

    request = body_of(GEMINI, settings=Settings(extra=extra))["request"]

    assert request["toolConfig"]["functionCallingConfig"]["mode"] == "AUTO"


def test_the_callbacks_hear_of_all_that_comes(tmp_path):
    """B42: usage in one value, thinking, and every part of a document."""
    heard = []
    first = document({"text": "Hm.", "thought": True}, {"text": "Hel"}, {"text": "lo"}, finish=None)
    last = document({"text": "."}, {"functionCall": {"id": "c1", "name": "look", "args": {}}})
    last["usageMetadata"] = {"promptTokenCount": 11, "candidatesTokenCount": 9}

    async def main():
        async with Google(streams(first, last)) as google:
            path = double.write(tmp_path / "accounts.json", "ada")
            provider = open_provider(f"antigravity:{GEMINI}", **google.options(path))
            response = await provider.complete(
                ASKED,
                on_chunk=lambda words: heard.append(("text", words)),
                on_thinking=lambda words: heard.append(("thinking", words)),
                on_usage_update=lambda usage: heard.append(("usage", usage)),
                on_tool_call=lambda call: heard.append(("call", call.name)),
            )
            await provider.close()
            return response

    response = run(main())

    assert [each for each in heard if each[0] != "usage"] == [
        *(("thinking", "Hm."), ("text", "Hel"), ("text", "lo"), ("text", "."), ("call", "look"))
    ]
    usages = [usage for kind, usage in heard if kind == "usage"]
    assert usages == [Usage(input=11, output=7), Usage(input=11, output=9)]
    assert (response.text, response.stop) == ("Hello.", Stop.TOOL_USE)


# How a model is asked to think


@pytest.mark.parametrize(
    ("thinking", "level"),
    [
        *((1, "low"), (8_192, "low"), (8_193, "medium"), (16_384, "medium"), (16_385, "high")),
        *(("low", "low"), ("medium", "medium"), ("high", "high")),
    ],
)
def test_gemini_3_thinks_by_level(thinking, level):
    """S2-105: a number of tokens is a level, too."""
    found = thinking_of("antigravity-gemini-3-flash", thinking)

    assert found == {"thinkingLevel": level, "includeThoughts": True}


@pytest.mark.parametrize(
    ("model", "level"),
    [
        *(("antigravity-gemini-3-flash", "low"), ("gemini-3-pro-preview", "low")),
        *(("antigravity-gemini-3-pro-low", "low"), ("antigravity-gemini-3-pro-high", "high")),
    ],
)
def test_where_nobody_says_it_the_level_is_low_or_that_of_the_name(model, level):
    """S2-105."""
    assert thinking_of(model) == {"thinkingLevel": level}


def test_thinking_can_be_switched_off():
    """Gemini 3 cannot be told not to think: off is its lowest."""
    assert thinking_of(GEMINI, "off") == {"thinkingLevel": "minimal", "includeThoughts": False}
    assert thinking_of(GEMINI, 0) == {"thinkingLevel": "minimal", "includeThoughts": False}
    assert thinking_of("gemini-2.5-flash", "off")["thinkingBudget"] == 0
    assert thinking_of(CLAUDE, "off") is None and thinking_of(CLAUDE, 0) is None


def test_gemini_2_5_thinks_by_a_budget():
    assert thinking_of("gemini-2.5-flash") is None
    assert thinking_of("gemini-2.5-flash", 4_000)["thinkingBudget"] == 4_000


@pytest.mark.parametrize(
    ("thinking", "budget"), [(None, 8_192), (32_768, 32_768), (5, 1_024), ("medium", 10_000)]
)
def test_a_claude_that_thinks_has_a_budget(thinking, budget):
    """S2-105: below what it may write; with the beta for thinking between calls."""
    config = config_of(CLAUDE, thinking=thinking, temperature=0.5)

    assert config["thinkingConfig"] == {"thinkingBudget": budget, "includeThoughts": True}
    assert config["maxOutputTokens"] == 64_000 and "temperature" not in config
    assert "anthropic-beta" in CodeAssistWire(CLAUDE).headers(None)


def test_a_budget_leaves_room_for_an_answer():
    """S2-105: there are 64,000 tokens; where there is no room for a thought, nobody thinks."""
    assert config_of(CLAUDE, max_tokens=4_000)["thinkingConfig"]["thinkingBudget"] == 3_000
    assert "thinkingConfig" not in config_of(CLAUDE, max_tokens=500)
    assert config_of(CLAUDE, max_tokens=99_000)["maxOutputTokens"] == 64_000


def test_a_claude_that_does_not_think_is_not_asked_to():
    config = config_of("claude-sonnet-4-5", thinking=9_000, temperature=1.7)

    assert config == {"maxOutputTokens": 64_000, "temperature": 1.0}
    assert CodeAssistWire("claude-sonnet-4-5").headers(None) == {}


def test_a_level_that_is_none_is_refused():
    for model in (GEMINI, CLAUDE):
        with pytest.raises(InvalidInput, match="thinking"):
            body_of(model, settings=Settings(thinking="deeply"))


@pytest.mark.parametrize(
    ("model", "context", "output"),
    [
        ("antigravity-gemini-3-pro-high", 1_048_576, 65_536),
        ("gemini-2.5-flash", 1_048_576, 65_536),
        ("antigravity-gemini-9-flash", 1_048_576, 65_536),
        (CLAUDE, 200_000, 64_000),
        ("claude-opus-4-6-thinking", 200_000, 64_000),
        ("claude-nobody-knows", 200_000, 64_000),
    ],
)
def test_the_limits_are_those_of_this_service(model, context, output):
    """S2-105: whatever the maker of the model allows elsewhere. Nothing is said of prices."""
    provider = open_provider(f"antigravity:{model}")

    assert (provider.context_limit, provider.output_limit) == (context, output)
    assert provider.prices is None


# Why it ended


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        *((reason, Stop.SAFETY) for reason in ("RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT")),
        *(("SAFETY", Stop.SAFETY), ("MAX_TOKENS", Stop.MAX_TOKENS), ("STOP", Stop.STOP)),
        *(("OTHER", Stop.UNKNOWN), (2, Stop.MAX_TOKENS), (3, Stop.SAFETY)),
    ],
)
def test_reasons_in_our_words(reason, stop):
    """S2-105."""
    assert read(GEMINI, wrapped({"text": "Hm."}, finish=reason)).stop == stop


def test_claude_stops_for_a_call_without_a_word_for_it():
    """The service says OTHER."""
    call = {"functionCall": {"id": "toolu_1", "name": "look", "args": {}}}

    assert read(CLAUDE, wrapped(call, finish="OTHER")).stop == Stop.TOOL_USE
    assert read(CLAUDE, wrapped({"text": "So."}, finish="OTHER")).stop == Stop.UNKNOWN
    assert read(GEMINI, wrapped(call, finish="OTHER")).stop == Stop.UNKNOWN


# Claude, behind Google's names


def turn(model, thought=None, calls=(), results=True):
    """A question, what the model did, and results."""
    content = None if thought is None else [thought]
    said = Message.assistant(content, calls, model=f"antigravity:{model}")
    given = [Message.tool("ok", call.id) for call in calls] if results else []
    return [Message.user("Look."), said, *given]


def test_claudes_thought_is_signed_behind_it_and_goes_back_as_one():
    """The signature comes in a part of its own, at the end of a block."""
    thought = [
        wrapped({"text": "I ", "thought": True}),
        wrapped({"text": "look.", "thought": True}),
        wrapped({"text": "", "thought": True, "thoughtSignature": SIGNED}),
    ]
    call = {"functionCall": {"id": "toolu_1", "name": "look", "args": {"at": "it"}}}

    response = read(CLAUDE, *thought, wrapped({"text": "So."}), wrapped(call, finish="OTHER"))
    history = [*ASKED, response.message, Message.tool("ok", "toolu_1")]
    request = body_of(CLAUDE, history, tools=[LOOK])["request"]

    assert response.message.content[0] == Thinking("I look.", SIGNED)
    assert request["contents"][1]["parts"] == [
        {"text": "I look.", "thought": True, "thoughtSignature": SIGNED},
        {"text": "So."},
        call,
    ]
    assert request["generationConfig"]["thinkingConfig"]["thinkingBudget"] == 8_192


def test_a_thought_that_claude_could_not_verify_stays_here():
    """Unsigned, of another model, or with nothing behind it."""
    signed, unsigned = Thinking("Hm.", SIGNED), Thinking("Hm.", None)
    name = f"antigravity:{CLAUDE}"

    def parts(content, model=name):
        said = Message.assistant(content, model=model)
        contents = body_of(CLAUDE, [*ASKED, said, Message.user("And?")])["request"]["contents"]
        said_by_it = [content["parts"] for content in contents if content["role"] == "model"]
        return [part for each in said_by_it for part in each]

    assert parts([unsigned, Text("So.")]) == [{"text": "So."}]
    assert parts([signed, Text("So.")], "anthropic:claude-sonnet-4-5") == [{"text": "So."}]
    assert parts([Text("So."), signed]) == [{"text": "So."}]
    assert parts([signed]) == []
    assert len(parts([signed, Text("So.")])) == 2


def test_while_tools_run_claude_thinks_only_if_the_turn_began_so():
    """ "A final `assistant` message must start with a thinking block." """
    call = ToolCall(id="c1", name="look", arguments="{}")
    begun = turn(CLAUDE, Thinking("Hm.", SIGNED), [call])
    other = turn(CLAUDE, None, [call])

    assert "thinkingConfig" in config_of(CLAUDE, begun)
    assert "thinkingConfig" not in config_of(CLAUDE, other)
    assert "thinkingConfig" not in config_of(CLAUDE, [*other, Message.user("Hurry.")])
    assert "thinkingConfig" in config_of(CLAUDE, [*other, Message.assistant("So."), *ASKED])


def test_claude_is_told_every_id_and_gemini_its_own():
    """Also one that was made up here, for a call of a model that gives none."""
    call = ToolCall(id="call_1.x", name="look", arguments="{}", extra={"id_is_ours": True})
    history = turn("gemini-3-flash", None, [call])

    def ids(model):
        contents = body_of(model, history, tools=[LOOK])["request"]["contents"]
        parts = [part for content in contents for part in content["parts"]]
        found = [part.get("functionCall") or part.get("functionResponse") for part in parts]
        return [each.get("id") for each in found if each]

    claude = ids("claude-sonnet-4-5")
    assert claude[0] == claude[1] and claude[0].startswith("call_1_x")
    assert ids("antigravity-gemini-3-flash") == [None, None]


def test_a_call_of_another_model_is_marked_for_gemini_3_and_not_for_claude():
    """Google has a word for it; Claude would refuse a signature that is none."""
    call = ToolCall(id="c1", name="look", arguments="{}")
    history = turn("somebody", None, [call])

    gemini = body_of(GEMINI, history)["request"]["contents"][1]["parts"][0]
    claude = body_of(CLAUDE, history)["request"]["contents"][1]["parts"][0]

    assert gemini["thoughtSignature"] == UNSIGNED and "thoughtSignature" not in claude


def test_names_and_ids_are_fitted_for_both_vendors():
    tool = Tool("look.up:it", "Look.", {"type": "object"})

    (claude,) = body_of(CLAUDE, tools=[tool])["request"]["tools"][0]["functionDeclarations"]
    (gemini,) = body_of(GEMINI, tools=[tool])["request"]["tools"][0]["functionDeclarations"]

    assert (claude["name"], gemini["name"]) == ("look_up_it", "look.up:it")


def test_an_answer_by_a_schema_is_told_to_claude_in_words():
    """Which the service knows of Gemini alone."""
    schema = {"type": "object", "properties": {"sky": {"type": "string"}}}

    claude = body_of(CLAUDE, system="Be brief.", schema=schema)["request"]
    gemini = body_of(GEMINI, schema=schema)["request"]

    told = claude["systemInstruction"]["parts"][0]["text"]
    assert told.startswith("Be brief.") and '"sky"' in told
    assert "responseJsonSchema" not in claude["generationConfig"]
    assert gemini["generationConfig"]["responseJsonSchema"] == schema


PNG = b"\x89PNG\r\n\x1a\n...."


def test_claude_is_shown_pictures_and_documents_and_told_of_the_rest():
    """Bytes alone: what stands elsewhere, the service does not fetch for it."""
    parts = [
        Image(data=PNG, media_type="image/png"),
        File(data=b"%PDF-1", media_type="application/pdf"),
        *(Audio(data=b"ID3", media_type="audio/mp3"), Image(url="https://x.example/a.png")),
    ]

    def shown(model):
        (content,) = body_of(model, [Message.user(parts)])["request"]["contents"]
        return ["text" if "text" in part else next(iter(part)) for part in content["parts"]]

    assert shown(CLAUDE) == ["inlineData", "inlineData", "text", "text"]
    assert shown(GEMINI) == ["inlineData", "inlineData", "inlineData", "fileData"]


def test_blank_words_are_not_sent_to_claude():
    said = Message.assistant([Text(" "), Text("So.")], model="x:y")

    contents = body_of(CLAUDE, [Message.user("  "), said, Message.user("?")])["request"]["contents"]

    assert [part["text"].strip() for each in contents for part in each["parts"]][1:] == ["So.", "?"]


def test_opaque_parts_go_back_to_the_model_that_gave_them():
    part = Opaque("antigravity", {"executableCode": {"language": "PYTHON", "code": "1"}})
    said = Message.assistant([Text("So."), part], model=f"antigravity:{GEMINI}")
    history = [*ASKED, said, Message.user("?")]

    assert "executableCode" in json.dumps(body_of(GEMINI, history))
    assert "executableCode" not in json.dumps(body_of("gemini-2.5-pro", history))
    assert said.role is Role.ASSISTANT


# Schemas


def schema_of(**properties):
    return of_parameters({"type": "object", "properties": properties})["properties"]


def test_a_schema_keeps_what_survives_and_tells_the_rest():
    """Claude's vendor would refuse what the translation makes of a limit."""
    found = schema_of(
        a={"type": "string", "minLength": 2, "description": "A name."},
        b={"const": "x"},
        c={"enum": [1, 2]},
        d={"type": ["integer", "null"]},
        e={"oneOf": [{"type": "string"}, {"type": "number", "minimum": 3}]},
        f={"type": "array", "items": {"type": "string", "format": "date"}},
    )

    assert found["a"] == {"type": "string", "description": 'A name.\n{"minLength":2}'}
    assert found["b"] == {"type": "string", "enum": ["x"]}
    assert found["c"] == {"description": '{"enum":[1,2]}'}
    assert found["d"]["type"] == "integer" and "null" in found["d"]["description"]
    assert found["e"]["anyOf"][1] == {"type": "number", "description": '{"minimum":3}'}
    assert found["f"]["items"] == {"type": "string", "description": '{"format":"date"}'}


def test_references_are_put_in():
    """One that leads back to itself ends where it does so."""
    schema = {
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/Tree", "description": "Mine."}},
        "required": ["tree", "nothing"],
        "$defs": {
            "Tree": {
                "type": "object",
                "properties": {"left": {"$ref": "#/$defs/Tree"}, "n": {"type": "integer"}},
            }
        },
        "$schema": "x",
        "additionalProperties": False,
    }

    found = of_parameters(schema)

    tree = found["properties"]["tree"]
    assert tree["description"] == "Mine." and tree["properties"]["n"] == {"type": "integer"}
    assert "#/$defs/Tree" in tree["properties"]["left"]["description"]
    assert found["required"] == ["tree"] and "nothing" in found["description"]
    assert {"$defs", "$schema", "additionalProperties"} & set(found) == set()


def test_a_choice_at_the_top_is_told():
    found = of_parameters({"type": "object", "properties": {}, "anyOf": [{"required": ["a"]}]})

    assert found["type"] == "object" and "anyOf" not in found
    assert '"anyOf"' in found["description"]


def test_a_schema_that_grows_without_end_is_cut():
    definitions = {
        f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 4, "type": "object"} for n in range(14)
    }

    found = of_parameters({"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions})

    assert len(json.dumps(found)) < 500_000


# Beside complete


def asking(path, also, what, model=f"antigravity:{GEMINI}"):
    async def main():
        async with Google(says("x"), also=also) as google:
            provider = open_provider(model, **google.options(path))
            try:
                return await what(provider), google
            finally:
                await provider.close()

    return run(main())


@pytest.fixture
def path(tmp_path):
    return double.write(tmp_path / "accounts.json", "ada", "bob")


def test_the_models_of_a_quota_are_listed_by_the_names_that_open_them(path):
    models = {"claude-sonnet-4-5": {"quotaInfo": {}}, "gemini-3-flash": {}}
    also = {"fetchAvailableModels": whole({"models": models})}
    names, google = asking(path, also, lambda provider: provider.list_models())
    assert names == ("antigravity-claude-sonnet-4-5", "antigravity-gemini-3-flash")
    assert google.asked[-1].body == {"project": "project-ada"}
    assert open_provider(f"antigravity:{names[1]}").wire.family.name == "antigravity"

    buckets = [{"modelId": "gemini-2.5-pro"}, {"modelId": "gemini-2.5-flash"}, {}]
    also = {"retrieveUserQuota": whole({"buckets": buckets})}
    names, google = asking(
        *(path, also, lambda provider: provider.list_models("gemini-2.5-p")),
        model="antigravity:gemini-2.5-pro",
    )
    assert names == ("gemini-2.5-pro",)
    assert open_provider(f"antigravity:{names[0]}").wire.family.name == "gemini-cli"


def test_an_account_is_verified_without_a_question(path):
    also = {"loadCodeAssist": [double.limited(), whole({})]}

    _, google = asking(path, also, lambda provider: provider.verify())

    assert [each.account for each in google.of("loadCodeAssist")] == ["ada", "bob"]
    assert "project" not in google.asked[-1].body and google.questions == []


def test_tokens_are_counted_here(path):
    """The service's count leaves the system instruction and the tools out."""
    counted, google = asking(
        path, {}, lambda provider: provider.count_tokens(ASKED, "Be brief.", [LOOK])
    )

    assert 10 < counted < 100 and google.asked == []


def test_opening_sends_nothing_and_closing_twice_is_fine(path):
    async def twice(provider):
        await provider.close()
        await provider.close()

    _, google = asking(path, {}, twice)

    assert google.asked == []
