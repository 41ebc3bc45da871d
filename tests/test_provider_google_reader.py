"""Google's answers, whole and streamed: what the reader makes of them, and what goes back."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strategies as some
from holdfast.errors import ContentBlocked, Overloaded, ProtocolError, ProviderError, RateLimited
from holdfast.frozen import thaw
from holdfast.messages import Message, Stop
from holdfast.parts import Audio, CallRef, File, Image, Opaque, Text, Thinking
from holdfast.providers.base import Callbacks
from holdfast.providers.google import GoogleWire
from holdfast.providers.google_reader import GEMINI_REASONS, STOPS, VERTEX_REASONS
from holdfast.providers.stream import ArrayStream, EventStream
from holdfast.tools import Tool
from holdfast.usage import Usage

MODEL = "gemini-3-flash-preview"
SIGNATURE = "c2lnbmVk"


def document(*parts, finish=None, usage=None, **candidate):
    """One document of an answer."""
    found = {"content": {"parts": list(parts), "role": "model"}, "index": 0, **candidate}
    if finish is not None:
        found["finishReason"] = finish
    more = {} if usage is None else {"usageMetadata": usage}
    return {"candidates": [found], "modelVersion": "gemini-3", "responseId": "r1", **more}


class Heard(list):
    """What the callbacks heard, in order."""

    def callbacks(self):
        return Callbacks(
            on_chunk=lambda text: self.append(("text", text)),
            on_thinking=lambda text: self.append(("thinking", text)),
            on_tool_call=lambda call: self.append(("call", call.name)),
            on_usage_update=lambda usage: self.append(("usage", usage.output)),
        )


def reading(wire=None, callbacks=None, tools=()):
    wire = wire or GoogleWire(MODEL)
    answer = wire.answer(wire.ask([Message.user("hi")], tools=tools), callbacks)
    return wire.reader(answer)


def whole(document, **options):
    reader = reading(**options)
    reader.read(document)
    assert reader.is_complete
    return reader.answer.response()


def streamed(*documents, **options):
    reader = reading(**options)
    for each in documents:
        reader.feed("message", json.dumps(each).encode())
    assert reader.is_complete
    return reader.answer.response()


def call(name="look", id=None, args=None, signature=None, **more):
    said = {"name": name, "args": args, "id": id, **more}
    part = {"functionCall": {key: value for key, value in said.items() if value is not None}}
    return part if signature is None else {**part, "thoughtSignature": signature}


def sent_back(response, model=MODEL):
    """The parts of the answer, as the next request of the same conversation has them."""
    wire = GoogleWire(model)
    results = [Message.tool("ok", each.id) for each in response.calls]
    messages = [Message.user("hi"), response.message, *results, Message.user("and?")]
    body = json.loads(msgspec.json.encode(wire.to_wire(wire.ask(messages))))
    said = [content["parts"] for content in body["contents"] if content["role"] == "model"]
    return said[0] if said else []


# Words


def test_a_whole_answer_is_its_text():
    response = whole(document({"text": "Hello."}, finish="STOP"))

    assert response.message.content == response.text == "Hello."
    assert (response.stop, response.model, response.id) == (Stop.STOP, "gemini-3", "r1")
    assert response.message.model == f"google:{MODEL}"


def test_the_pieces_of_a_stream_are_put_together():
    heard = Heard()
    response = streamed(
        document({"text": "Hm", "thought": True}),
        document({"text": "m.", "thought": True}),
        document({"text": "Hel"}),
        document({"text": "lo."}, {"text": " You?"}),
        document({"text": ""}, finish="STOP"),
        callbacks=heard.callbacks(),
    )

    assert response.message.content == (Thinking("Hmm."), Text("Hello. You?"))
    assert [kind for kind, _ in heard] == ["thinking", "thinking", "text", "text", "text"]


def test_parts_of_a_whole_answer_stay_apart():
    """They are blocks of the model's, and go back as such."""
    response = whole(document({"text": "a"}, {"text": "b"}, finish="STOP"))

    assert response.text == "ab"
    assert sent_back(response) == [{"text": "a"}, {"text": "b"}]


def test_a_signature_keeps_its_part_apart():
    """Google: a part with a signature is not merged with one without."""
    response = streamed(
        document({"text": "one"}),
        document({"text": "two", "thoughtSignature": SIGNATURE}),
        document({"text": "three"}),
        document({"text": "", "thoughtSignature": "ZW5k"}, finish="STOP"),
    )

    assert response.text == "onetwothree"
    assert sent_back(response) == [
        {"text": "one"},
        {"text": "two", "thoughtSignature": SIGNATURE},
        {"text": "three"},
        {"text": "", "thoughtSignature": "ZW5k"},
    ]


def test_thinking_keeps_its_signature():
    """B25, B40: a thought is no text, and goes back as it came."""
    thought = {"text": "Hm.", "thought": True, "thoughtSignature": SIGNATURE}
    sealed = {"text": "", "thought": True, "thoughtSignature": "c2VhbA=="}
    response = whole(document(thought, sealed, {"text": "Yes."}, finish="STOP"))

    assert response.thinking == "Hm."
    assert response.message.content[0] == Thinking("Hm.", SIGNATURE)
    assert sent_back(response) == [thought, sealed, {"text": "Yes."}]


def test_half_a_character_waits_for_the_other_half():
    response = streamed(
        document({"text": "a\ud83d"}), document({"text": "\ude00"}), document(finish="STOP")
    )

    assert response.text == "a😀"


# Calls


def test_calls_are_complete_when_they_come():
    """S2-82: one without an id gets one of ours, marked; the vendor's own id is kept."""
    heard = Heard()
    response = streamed(
        document({"text": "Wait."}, call(args={"b": 1, "a": [None]}, signature=SIGNATURE)),
        document(call("find", id="g7"), {"text": ""}),
        document(finish="STOP"),
        callbacks=heard.callbacks(),
    )

    first, second = response.calls
    assert heard == [("text", "Wait."), ("call", "look"), ("call", "find")]
    assert (first.name, first.arguments, first.signature) == (
        "look",
        '{"b":1,"a":[null]}',
        SIGNATURE,
    )
    assert first.id.startswith("call_")
    assert first.extra == {"id_is_ours": True}
    assert (second.id, second.arguments, second.extra) == ("g7", "{}", {})
    assert response.stop == Stop.TOOL_USE


def test_calls_go_back_as_they_came():
    """S2-85"""
    parts = [call(args={"a": 1}, signature=SIGNATURE), call(id="g7", args={}), {"text": "Well."}]
    response = whole(document(*parts, finish="STOP"))

    assert [type(part) for part in response.message.content] == [CallRef, CallRef, Text]
    assert sent_back(response) == parts


def test_a_call_that_was_thought_of_says_so():
    """S1-27"""
    response = whole(document({**call(), "thought": True}, finish="STOP"))

    assert response.calls[0].extra == {"id_is_ours": True, "thought": True}


def test_the_name_of_a_tool_is_ours_again():
    response = whole(document(call("_2_x"), finish="STOP"), tools=[Tool("2 x")])

    assert response.calls[0].name == "2 x"


def test_arguments_may_come_in_pieces():
    """Vertex streams them: each piece names its place; a string may go on in the next."""
    heard = Heard()
    more = {"willContinue": True}

    def piece(path, **value):
        return {"functionCall": {"partialArgs": [{"jsonPath": path, **value}], **more}}

    response = streamed(
        document(call("write", **more)),
        document(piece("$.text", stringValue="Hel", **more)),
        document(piece("$.text", stringValue="lo", **more)),
        document(piece("$.text", stringValue="")),
        document(piece("$.rows[0].n", numberValue=1), piece("$.rows[1]['a b']", boolValue=False)),
        document(piece('$["x\\"y"]', nullValue="NULL_VALUE")),
        document({"functionCall": {}}),
        document(call("look")),
        document({"functionCall": {}}, finish="STOP"),
        callbacks=heard.callbacks(),
    )

    assert heard == [("call", "write"), ("call", "look")]
    assert json.loads(response.calls[0].arguments) == {
        "text": "Hello",
        "rows": [{"n": 1}, {"a b": False}],
        'x"y': None,
    }


def test_two_calls_in_pieces_are_two_calls():
    more = {"willContinue": True}
    piece = {"partialArgs": [{"jsonPath": "$.id", "stringValue": "A"}], **more}

    response = streamed(
        document(call("look", **more)),
        document({"functionCall": piece}),
        document(call("look", **more)),  # which ends the first
        document({"functionCall": piece}, finish="STOP"),
    )

    assert [each.arguments for each in response.calls] == ['{"id":"A"}'] * 2


def test_arguments_that_were_cut_off_do_not_look_complete():
    """Somebody would run half a command."""
    more = {"willContinue": True}
    piece = {"partialArgs": [{"jsonPath": "$.cmd", "stringValue": "rm -r /tmp", **more}], **more}

    response = streamed(
        document(call("run", **more)), document({"functionCall": piece}, finish="MAX_TOKENS")
    )

    assert response.stop == Stop.MAX_TOKENS
    assert response.calls[0].arguments == '{"cmd":"rm -r /tmp"'


def test_a_list_that_would_be_huge_is_refused():
    piece = {"partialArgs": [{"jsonPath": "$.a[999999999]", "numberValue": 1}]}

    with pytest.raises(ProtocolError, match="list"):
        streamed(document(call("f", willContinue=True)), document({"functionCall": piece}))


# Other parts


def test_what_the_model_made_is_media():
    parts = [
        {"inlineData": {"mimeType": "image/png", "data": "AAEC"}, "thoughtSignature": SIGNATURE},
        {"inlineData": {"mimeType": "audio/L16;codec=pcm;rate=24000", "data": "AAE="}},
        {"inlineData": {"mimeType": "application/pdf", "data": "-_8"}},
    ]
    response = whole(document(*parts, finish="STOP"))

    image, sound, file = response.message.content
    assert image == Image(data=b"\0\1\2", media_type="image/png", extra={"signature": SIGNATURE})
    assert sound == Audio(data=b"\0\1", media_type="audio/L16;codec=pcm;rate=24000")
    assert file == File(data=b"\xfb\xff", media_type="application/pdf")
    assert sent_back(response)[:2] == parts[:2]


def test_googles_own_parts_are_kept_and_go_back():
    parts = [
        {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": SIGNATURE},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
        {"toolCall": {"toolType": "GOOGLE_SEARCH", "id": "t"}, "thoughtSignature": SIGNATURE},
        {"toolResponse": {"toolType": "GOOGLE_SEARCH", "id": "t"}, "thoughtSignature": SIGNATURE},
        {"text": "So."},
    ]
    response = whole(document(*parts, {"hologram": {"x": [1]}}, {}, finish="STOP"))

    assert response.text == "So."
    assert response.message.content[-1] == Opaque("google", {"hologram": {"x": [1]}})
    assert sent_back(response) == parts


# Why it stopped


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "max_tokens"),
        ("SAFETY", "safety"),
        ("RECITATION", "safety"),
        ("MODEL_ARMOR", "safety"),
        ("MALFORMED_FUNCTION_CALL", "error"),
        ("UNEXPECTED_TOOL_CALL", "error"),
        ("OTHER", "unknown"),
        ("SOMETHING_NEW", "SOMETHING_NEW"),
        (1, "stop"),
        (2, "max_tokens"),
        (99, "REASON_99"),
    ],
)
def test_the_reason_is_in_our_words(reason, expected):
    """S2-84; some recordings have the number of a reason."""
    assert whole(document({"text": "a"}, finish=reason)).stop == expected
    assert streamed(document({"text": "a"}), document(finish=reason)).stop == expected


def test_the_two_services_count_their_reasons_apart():
    vertex = GoogleWire(MODEL, project="p")

    assert whole(document(finish=10)).stop == Stop.ERROR
    assert whole(document(finish=10), wire=vertex).stop == Stop.SAFETY
    assert {*GEMINI_REASONS, *VERTEX_REASONS} - STOPS.keys() == {
        "FINISH_REASON_UNSPECIFIED",
        "NO_IMAGE",
    }


def test_only_a_model_that_stopped_by_itself_waits_for_tools():
    """S2-84: a call makes of stop tool_use; what went wrong stays what it was."""
    assert whole(document(call(), finish="STOP")).stop == Stop.TOOL_USE
    assert whole(document(call(), finish="UNEXPECTED_TOOL_CALL")).stop == Stop.ERROR
    assert whole(document(call(), finish="MAX_TOKENS")).stop == Stop.MAX_TOKENS


def test_a_call_that_comes_behind_the_reason_counts():
    assert streamed(document(finish="STOP"), document(call())).stop == Stop.TOOL_USE


def test_an_answer_without_words_is_one():
    """B40: a candidate may have no parts."""
    for content in ({}, {"parts": None}, None):
        response = whole({"candidates": [{"finishReason": "SAFETY", "content": content}]})

        assert (response.text, response.calls, response.stop) == (None, (), Stop.SAFETY)


def test_a_prompt_that_was_blocked_is_an_error():
    feedback = {"blockReason": "PROHIBITED_CONTENT", "blockReasonMessage": "No."}
    reader = reading()

    with pytest.raises(ContentBlocked, match=r"PROHIBITED_CONTENT.*No\."):
        reader.read({"promptFeedback": feedback, "usageMetadata": {"promptTokenCount": 5}})

    assert reader.answer.partial().usage == Usage(input=5)
    with pytest.raises(ContentBlocked):
        reading().feed("message", json.dumps({"promptFeedback": feedback}).encode())


# Facts


def test_tokens_count_the_whole_prompt_and_all_that_was_written():
    """S2-84: the prompt with what tools put into it; thoughts are written, too."""
    usage = {
        "promptTokenCount": 100,
        "toolUsePromptTokenCount": 20,
        "cachedContentTokenCount": 60,
        "candidatesTokenCount": 7,
        "thoughtsTokenCount": 30,
        "totalTokenCount": 157,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 100}],
    }
    response = whole(document({"text": "a"}, finish="STOP", usage=usage))

    assert response.usage == Usage(input=120, output=37, cache_read=60, reasoning=30)
    assert thaw(response.extra["usageMetadata"]) == usage


def test_the_last_count_of_a_stream_counts():
    """What is not said again is as it was; a document without counts says nothing."""
    heard = Heard()
    response = streamed(
        document({"text": "a"}, usage={"promptTokenCount": 9, "thoughtsTokenCount": 78}),
        document({"text": "b"}, usage={"promptTokenCount": 9, "candidatesTokenCount": 21}),
        document({"text": "c"}, usage={"promptTokenCount": 87}, finish="STOP"),
        {"usageMetadata": {"trafficType": "ON_DEMAND"}},
        callbacks=heard.callbacks(),
    )

    assert response.usage == Usage(input=87, output=99, reasoning=78)
    assert [count for kind, count in heard if kind == "usage"] == [78, 99, 99]
    assert response.extra["usageMetadata"]["trafficType"] == "ON_DEMAND"


def test_what_google_leaves_out_of_its_counts_is_nothing():
    usage = {"promptTokenCount": 9, "totalTokenCount": 9}

    assert whole(document(finish="SAFETY", usage=usage)).usage == Usage(input=9, output=0)


def test_counts_that_make_no_sense_are_left():
    usage = {"promptTokenCount": "many", "candidatesTokenCount": -1}

    assert whole(document(finish="STOP", usage=usage)).usage == Usage()


def test_what_has_no_place_is_kept():
    """An empty fact does not wipe out one that was there; lists of a stream are added up."""
    response = streamed(
        {**document({"text": "a"}, groundingMetadata={"x": 1}), "createTime": "t1"},
        document(
            {"text": "b"},
            groundingMetadata={},
            safetyRatings=[{"category": "A"}],
            logprobsResult={"chosenCandidates": [{"token": "a"}], "sum": -1},
        ),
        document(
            avgLogprobs=-0.5,
            finishMessage="Done.",
            logprobsResult={"chosenCandidates": [{"token": "b"}], "sum": -2},
            finish="STOP",
            id=5,
        ),
    )

    assert thaw(response.extra) == {
        "createTime": "t1",
        "groundingMetadata": {"x": 1},
        "safetyRatings": [{"category": "A"}],
        "logprobsResult": {"chosenCandidates": [{"token": "a"}, {"token": "b"}], "sum": -2},
        "avgLogprobs": -0.5,
        "finishMessage": "Done.",
        "finishReason": "STOP",
        "id_": 5,
    }


def test_facts_about_a_text_are_kept_with_it():
    part = {"text": "a", "partMetadata": {"k": 1}}

    response = whole(document(part, finish="STOP"))

    assert thaw(response.message.content[0].extra) == {"part": {"partMetadata": {"k": 1}}}


def test_of_several_answers_the_first_counts():
    other = {"index": 1, "content": {"parts": [{"text": "B"}]}, "finishReason": "STOP"}
    both = document({"text": "A"}, finish="STOP")
    both["candidates"].insert(0, other)

    response = whole(both)

    assert response.text == "A"
    assert thaw(response.extra["candidates"]) == [other]
    reader = reading()
    reader.read({"candidates": [other]} | {"usageMetadata": {}})
    assert reader.answer.response().text is None


# The end of a stream


def test_a_stream_is_complete_when_a_candidate_has_finished():
    reader = reading()
    for each in (document({"text": "a"}), document({"text": "b"}, finish=0), {"candidates": []}):
        reader.feed("message", json.dumps(each).encode())
        assert not reader.is_complete

    reader.feed("message", json.dumps(document(finish="STOP")).encode())

    assert reader.is_complete


def test_what_came_before_a_stream_broke_off_is_kept():
    """But no call that was not complete."""
    reader = reading()
    more = {"willContinue": True}
    for each in (document({"text": "a"}, call("look")), document(call("find", **more))):
        reader.feed("message", json.dumps(each).encode())

    partial = reader.answer.partial()

    assert not reader.is_complete
    assert (partial.text, [each.name for each in partial.calls]) == ("a", ["look"])


def test_an_error_inside_an_answer_is_raised():
    """B40: as one of our errors."""
    reader = reading()
    reader.feed("message", json.dumps(document({"text": "a"})).encode())
    busy = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}

    with pytest.raises(Overloaded, match="overloaded"):
        reader.feed("message", json.dumps(busy).encode())

    assert reader.answer.partial().text == "a"
    full = {"error": {"code": 429, "message": "Quota exceeded.", "status": "RESOURCE_EXHAUSTED"}}
    with pytest.raises(RateLimited):
        reading().read(full)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{",
        b'{"candidates": {}}',
        b'{"candidates": [1]}',
        b'{"candidates": [{"content": []}]}',
        b'{"candidates": [{"content": {"parts": "x"}}]}',
        b'{"candidates": [{"content": {"parts": [{"text": 5}]}}]}',
        b'{"candidates": [{"content": {"parts": [{"functionCall": "f"}]}}]}',
        b'{"candidates": [{"content": {"parts": [{"functionCall": {"name": 1}}]}}]}',
        b'{"candidates": [{"content": {"parts": [{"functionCall": {"args": "{}"}}]}}]}',
        b'{"candidates": [{"content": {"parts": [{"inlineData": {"data": "!"}}]}}]}',
        b'{"candidates": [{"finishReason": []}]}',
        b'{"candidates": [{"finishReason": true}]}',
        b'{"usageMetadata": 5}',
        b'{"modelVersion": 5}',
    ],
)
def test_what_is_no_answer_is_a_protocol_error(data):
    reader = reading()

    with pytest.raises(ProtocolError):
        reader.feed("message", data)

    reader.answer.partial()


@pytest.mark.parametrize("framing", [EventStream, ArrayStream])
def test_a_stream_cut_at_any_byte_is_not_complete(framing):
    documents = [document({"text": "a"}), document(call(args={"a": "]"})), document(finish="STOP")]
    texts = [json.dumps(each) for each in documents]
    if framing is EventStream:
        data = "".join(f"data: {text}\r\n\r\n" for text in texts).encode()
    else:
        data = ("[" + ",\r\n".join(texts) + "\n]").encode()

    for size in range(len(data) + 1):
        stream, reader = framing(), reading()
        for item in stream.feed(data[:size]):
            reader.feed("message", item.data if framing is EventStream else item)

        is_last_read = size >= data.rindex(b"}") + (4 if framing is EventStream else 1)
        assert reader.is_complete == is_last_read


def test_a_last_event_that_lacks_its_blank_line_is_whole():
    """Nothing else can be missing of it; of half an event nothing is taken."""
    data = b"data: " + json.dumps(document({"text": "a"}, finish="STOP")).encode()
    cut, reader = reading(), reading()

    cut.finish(data[:-1])
    reader.finish(data + b"\n")

    assert not cut.is_complete
    assert cut.answer.partial() is None
    assert reader.is_complete
    assert reader.answer.response().text == "a"


json_parts = st.one_of(
    some.json_objects,
    st.fixed_dictionaries(
        {},
        optional={
            "text": some.texts,
            "thought": st.booleans() | some.json_values,
            "thoughtSignature": some.texts | some.json_values,
            "inlineData": st.fixed_dictionaries({"data": some.texts, "mimeType": some.texts}),
            "functionCall": st.fixed_dictionaries(
                {},
                optional={
                    "name": some.texts,
                    "args": some.json_objects,
                    "willContinue": st.booleans(),
                    "partialArgs": st.lists(
                        st.fixed_dictionaries(
                            {
                                "jsonPath": st.sampled_from(
                                    ["$.a", "$.a.b", "$.a[1]", "$", "$['", ""]
                                )
                            },
                            optional={
                                "stringValue": some.texts,
                                "numberValue": some.json_values,
                                "willContinue": st.booleans(),
                            },
                        ),
                        max_size=2,
                    ),
                },
            ),
        },
    ),
)
documents = st.builds(
    lambda parts, finish, more: document(*parts, finish=finish, **more),
    st.lists(json_parts, max_size=3),
    st.sampled_from([None, None, "STOP", 1, "X"]),
    st.dictionaries(some.keys.filter(lambda key: key != "finish"), some.json_values, max_size=2),
)


@settings(max_examples=300)
@given(st.lists(documents | some.json_objects, max_size=4))
def test_whatever_comes_is_an_answer_or_a_provider_error(stream):
    """And what was made of it can be sent back."""
    reader = reading()
    try:
        for each in stream:
            reader.feed("message", json.dumps(each).encode())
    except ProviderError:
        reader.answer.partial()
    else:
        sent_back(reader.answer.response())
