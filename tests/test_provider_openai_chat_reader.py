"""Chat Completions, the answer: whole and in pieces, with what servers are known to do to it."""

import base64
import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import (
    AuthError,
    InvalidRequest,
    ProtocolError,
    ProviderError,
    RateLimited,
)
from holdfast.messages import Message
from holdfast.parts import Audio, CallRef, Image, Opaque, Text, Thinking
from holdfast.providers.base import Callbacks
from holdfast.providers.openai_chat import OpenAIChatWire
from holdfast.providers.openai_chat_dialect import (
    AZURE,
    OPENAI,
    PERPLEXITY,
    ROUTER,
    UNKNOWN,
    dialect_of,
)
from holdfast.usage import Usage

HI = Message.user("hi")
DONE = b"[DONE]"


class Heard:
    """What the callbacks heard, in order."""

    def __init__(self):
        self.events = []

    def callbacks(self):
        return Callbacks(
            on_chunk=lambda words: self.events.append(("text", words)),
            on_thinking=lambda words: self.events.append(("thinking", words)),
            on_tool_call=lambda call: self.events.append(("call", call.id)),
        )


def reader_of(dialect=OPENAI, heard=None):
    wire = OpenAIChatWire("m", dialect=dialect)
    return wire.reader(wire.answer(wire.ask([HI]), heard.callbacks() if heard else None))


def feed(reader, *events):
    for event in events:
        reader.feed("message", event if type(event) is bytes else json.dumps(event).encode())
    return reader


def chunk(delta=None, finish=None, *, index=0, choice=None, **fields):
    made = {"index": index, "delta": delta or {}, "finish_reason": finish, **(choice or {})}
    return {"id": "r1", "model": "m-1", "choices": [made], **fields}


def streamed(*deltas, finish="stop", dialect=OPENAI, heard=None):
    """The response to these deltas, complete."""
    events = [chunk(delta) for delta in deltas]
    reader = feed(reader_of(dialect, heard), *events, chunk(finish=finish), DONE)
    assert reader.is_complete
    return reader.answer.response()


def whole(message, finish="stop", dialect=OPENAI, heard=None, choice=None, **fields):
    reader = reader_of(dialect, heard)
    made = {"index": 0, "message": message, "finish_reason": finish, **(choice or {})}
    reader.read({"id": "r1", "model": "m-1", "choices": [made], **fields})
    assert reader.is_complete
    return reader.answer.response()


def replayed(response, dialect):
    """The assistant's message as it goes back to the same model."""
    wire = OpenAIChatWire("m", dialect=dialect)
    body = wire.to_wire(wire.ask([HI, response.message, HI]))
    return json.loads(msgspec.json.encode(body))["messages"][1]


def piece(index=None, id=None, name=None, arguments=None, **fields):
    function = {"name": name, "arguments": arguments}
    made = {"index": index, "id": id, **fields}
    made = {key: value for key, value in made.items() if value is not None}
    return made | {"function": {k: v for k, v in function.items() if v is not None}}


def calls_of(response):
    return [(call.id, call.name, call.arguments) for call in response.calls]


# Words


def test_text_in_pieces():
    response = streamed({"role": "assistant", "content": ""}, {"content": "Hel"}, {"content": "lo"})

    assert (response.text, response.stop) == ("Hello", "stop")
    assert (response.id, response.model) == ("r1", "m-1")
    assert response.message.content == "Hello"


def test_thinking_text_and_calls_of_one_message_are_told_in_this_order():
    heard = Heard()
    message = {
        "tool_calls": [piece(id="c", name="look", arguments="{}")],
        "content": "a",
        "reasoning_content": "hm",
    }

    response = whole(message, "tool_calls", heard=heard)

    assert heard.events == [("thinking", "hm"), ("text", "a"), ("call", "c")]
    assert response.thinking == "hm"


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_thinking_is_read_from_whichever_field_and_goes_back_in_it(field):
    response = streamed({field: "h"}, {field: "m"}, {"content": "a"}, dialect=UNKNOWN)

    assert response.message.content == (Thinking("hm", extra={"field": field}), Text("a"))
    assert replayed(response, UNKNOWN)[field] == "hm"


def test_thinking_that_is_said_twice_is_read_once():
    response = whole({"content": "a", "reasoning": "hm", "reasoning_content": "hm"})

    assert response.thinking == "hm"


def test_details_of_thinking_are_put_together_and_go_back_as_they_came():
    def detail(**fields):
        return {"type": "reasoning.text", "index": 0, "format": "f", **fields}

    sealed = {"type": "reasoning.encrypted", "data": "SEAL", "id": "x", "index": 1}
    response = streamed(
        {"reasoning": "h", "content": "", "reasoning_details": [detail(text="h")]},
        {"reasoning": "m", "reasoning_details": [detail(text="m")]},
        {"reasoning_details": [detail(signature="sig")]},
        {"content": "a"},
        {"reasoning_details": [sealed]},
        dialect=ROUTER,
    )

    thought, _, seal = response.message.content
    assert (thought.text, thought.signature) == ("hm", "sig")
    assert (seal.text, seal.signature, seal.redacted) == ("", "SEAL", True)
    back = replayed(response, ROUTER)
    assert back["reasoning"] == "hm"
    assert back["reasoning_details"] == [detail(text="hm", signature="sig"), sealed]


def test_details_that_differ_from_the_readable_thinking_are_kept_as_they_are():
    details = [{"type": "reasoning.text", "text": "long", "signature": "s", "index": 0}]

    response = whole({"content": "a", "reasoning": "short", "reasoning_details": details})

    assert response.thinking == "short"
    assert replayed(response, ROUTER) == {
        "role": "assistant",
        "content": "a",
        "reasoning": "short",
        "reasoning_details": details,
    }


def test_content_that_is_a_list():
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "a"},
        {"type": "reference", "reference_ids": [1]},
        "b",
    ]

    response = whole({"content": parts})

    assert response.message.content == (
        Thinking("hm", extra={"field": "content"}),
        Text("a"),
        Opaque("openai-chat", {"type": "reference", "reference_ids": [1]}),
        Text("b"),
    )


def test_a_refusal_is_shown_and_is_a_matter_of_safety():
    response = streamed({"refusal": "I can"}, {"refusal": "not."})

    assert (response.text, response.stop) == ("I cannot.", "safety")
    assert replayed(response, OPENAI)["refusal"] == "I cannot."


def test_sound_is_kept_with_its_words():
    sound = base64.b64encode(b"RIFFxxxx").decode()

    response = streamed(
        {"audio": {"id": "a1", "transcript": "Hel"}},
        {"audio": {"transcript": "lo", "data": sound}},
        {"audio": {"expires_at": 9}},
    )

    audio = Audio(
        data=b"RIFFxxxx",
        media_type="audio/wav",
        extra={"id": "a1", "expires_at": 9, "transcript": "Hello"},
    )
    assert response.message.content == (Text("Hello"), audio)


def test_a_picture_that_the_model_made():
    url = f"data:image/png;base64,{base64.b64encode(b'png').decode()}"

    response = whole({"content": "a", "images": [{"type": "image_url", "image_url": {"url": url}}]})

    assert Image(data=b"png", media_type="image/png") in response.message.content


# Calls


def test_calls_in_pieces_are_told_as_soon_as_they_are_whole():
    heard = Heard()
    response = streamed(
        {"tool_calls": [piece(0, "c1", "look", "")]},
        {"tool_calls": [piece(0, arguments='{"a":')]},
        {"tool_calls": [piece(0, arguments=" 1}")]},
        {"tool_calls": [piece(1, "c2", "hear", '{"b": 2}')]},
        {"content": "so"},
        finish="tool_calls",
        heard=heard,
    )

    assert calls_of(response) == [("c1", "look", '{"a": 1}'), ("c2", "hear", '{"b": 2}')]
    assert response.stop == "tool_use"
    assert heard.events[0] == ("call", "c1")
    assert response.message.content == (CallRef("c1"), CallRef("c2"), Text("so"))


def test_calls_that_are_written_at_the_same_time():
    response = streamed(
        {"tool_calls": [piece(0, "c1", "look", ""), piece(1, "c2", "hear", "")]},
        {"tool_calls": [piece(1, arguments='{"b"')]},
        {"tool_calls": [piece(0, arguments='{"a": 1}')]},
        {"tool_calls": [piece(1, arguments=": 2}")]},
    )

    assert calls_of(response) == [("c1", "look", '{"a": 1}'), ("c2", "hear", '{"b": 2}')]


@pytest.mark.parametrize("index", [None, 0])
def test_calls_without_an_index_or_with_the_same_one(index):
    response = streamed(
        {"tool_calls": [piece(index, "c1", "look", '{"a":'), piece(index, arguments=" 1}")]},
        {"tool_calls": [piece(index, "c2", "look", '{"a": 2}')]},
    )

    assert calls_of(response) == [("c1", "look", '{"a": 1}'), ("c2", "look", '{"a": 2}')]


def test_an_id_and_a_name_that_are_repeated_in_every_piece():
    response = streamed(
        {"tool_calls": [piece(0, "c1", "look", '{"a":')]},
        {"tool_calls": [piece(0, "c1", "look", " 1}")]},
        {"tool_calls": [piece(0, "", "", "")]},
    )

    assert calls_of(response) == [("c1", "look", '{"a": 1}')]


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [({"a": 1}, '{"a":1}'), ({}, "{}"), (None, "{}"), ("", "{}"), ('{"a', '{"a')],
)
def test_arguments_of_every_kind(arguments, kept):
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": arguments}}

    assert whole({"tool_calls": [call]}).calls[0].arguments == kept
    assert streamed({"tool_calls": [{"index": 0, **call}]}).calls[0].arguments == kept


def test_a_call_without_an_id_gets_one():
    response = whole({"tool_calls": [piece(id="", name="look", arguments="{}")]})

    assert response.calls[0].id.startswith("call_")


def test_the_function_call_of_old():
    response = streamed(
        {"function_call": {"name": "look", "arguments": '{"a":'}},
        {"function_call": {"arguments": " 1}"}},
        finish="function_call",
    )

    assert [(call.name, call.arguments) for call in response.calls] == [("look", '{"a": 1}')]
    assert response.stop == "tool_use"


def test_calls_that_are_empty_are_none():
    message = {
        "content": "a",
        "refusal": "",
        "function_call": {"name": "", "arguments": ""},
        "audio": {"id": "", "data": "", "transcript": ""},
        "tool_calls": None,
    }

    response = whole(message, "")

    assert (response.message.content, response.calls, response.stop) == ("a", (), "unknown")


def test_a_free_text_call():
    """Arguments are JSON, whatever the tool takes: the text stands under "input"."""
    call = {"id": "c", "type": "custom", "custom": {"name": "calc", "input": "4 + 4"}}

    response = whole({"tool_calls": [call]}, "tool_calls")

    assert calls_of(response) == [("c", "calc", '{"input":"4 + 4"}')]
    assert replayed(response, OPENAI)["tool_calls"] == [call]


def test_a_free_text_call_whose_later_pieces_do_not_say_what_they_are():
    response = streamed(
        {"tool_calls": [{"index": 0, "id": "c", "type": "custom", "custom": {"name": "calc"}}]},
        {"tool_calls": [{"index": 0, "custom": {"input": "4 +"}}]},
        {"tool_calls": [{"index": 0, "custom": {"input": " 4"}}]},
        finish="tool_calls",
    )

    assert calls_of(response) == [("c", "calc", '{"input":"4 + 4"}')]


def test_two_calls_may_have_the_same_id():
    """As servers that number nothing send them: neither is lost, nor put into the other."""
    calls = [{"id": "c", "function": {"name": "look", "arguments": a}} for a in ('{"a":1}', "{}")]

    response = whole({"tool_calls": calls}, "tool_calls")

    assert [call.arguments for call in response.calls] == ['{"a":1}', "{}"]


def test_googles_signature_of_a_call_goes_back_with_it():
    extra = {"google": {"thought_signature": "sig"}}
    call = piece(id="c", name="look", arguments="{}", extra_content=extra)

    response = whole({"tool_calls": [call]}, dialect=UNKNOWN)

    assert response.calls[0].signature == "sig"
    assert replayed(response, UNKNOWN)["tool_calls"][0]["extra_content"] == extra


# The reason to stop


@pytest.mark.parametrize(
    ("word", "stop"),
    [
        ("stop", "stop"),
        ("length", "max_tokens"),
        ("tool_calls", "tool_use"),
        ("function_call", "tool_use"),
        ("content_filter", "safety"),
        ("STOP", "stop"),
        ("model_length", "max_tokens"),
        ("", "unknown"),
        (None, "unknown"),
        ("sleepy", "sleepy"),
    ],
)
def test_why_it_stopped(word, stop):
    assert whole({"content": "a"}, word).stop == stop
    assert streamed({"content": "a"}, finish=word).stop == stop


def test_the_reason_in_the_place_of_old():
    response = whole({"content": "a"}, None, choice={"finish_details": {"type": "max_tokens"}})

    assert response.stop == "max_tokens"


# Facts


USED = {
    "prompt_tokens": 10,
    "completion_tokens": 5,
    "total_tokens": 15,
    "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3},
    "completion_tokens_details": {"reasoning_tokens": 2},
}


@pytest.mark.parametrize(
    "last",
    [
        {"id": "r1", "choices": [], "usage": USED},
        chunk(usage=USED),
        chunk(choice={"usage": USED}),
        chunk(x_groq={"id": "q", "usage": USED}),
    ],
)
def test_tokens_wherever_they_stand(last):
    reader = feed(reader_of(), chunk({"content": "a"}), chunk(finish="stop"), last, DONE)

    assert reader.answer.response().usage == Usage(10, 5, 4, 3, 2)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 3, "completion_tokens": 1}, Usage(3, 1)),
        (
            {"prompt_tokens": 3, "completion_tokens": 1, "prompt_cache_hit_tokens": 2},
            Usage(3, 1, 2),
        ),
        ({"prompt_tokens": 3, "completion_tokens": 1, "cached_tokens": 2}, Usage(3, 1, 2)),
        ({"prompt_tokens": -3, "completion_tokens": "x"}, Usage()),
        (
            {
                "prompt_tokens": 3,
                "completion_tokens": 1,
                "total_tokens": 11,
                "completion_tokens_details": {"reasoning_tokens": 7},
            },
            Usage(3, 8, reasoning=7),
        ),
    ],
)
def test_tokens_however_they_are_counted(usage, expected):
    assert whole({"content": "a"}, usage=usage).usage == expected


def test_what_else_is_said_is_kept():
    def logs(token):
        return {"logprobs": {"content": [{"token": token}], "refusal": None}}

    filters = {"prompt_filter_results": [{"prompt_index": 0}]}
    reader = feed(
        reader_of(AZURE),
        {"id": "", "model": "", "choices": [], **filters},
        chunk({"content": "a"}, choice=logs("a"), system_fingerprint="fp"),
        chunk({"content": "b", "annotations": [1]}, choice=logs("b"), system_fingerprint="fp"),
        chunk(
            finish="stop",
            choice={"content_filter_results": {"hate": {"filtered": False}}},
            service_tier="default",
        ),
        DONE,
    )

    response = reader.answer.response()
    assert (response.id, response.model) == ("r1", "m-1")
    assert response.extra == {
        "prompt_filter_results": ({"prompt_index": 0},),
        "logprobs": {"content": ({"token": "a"}, {"token": "b"}), "refusal": None},
        "annotations": (1,),
        "system_fingerprint": "fp",
        "content_filter_results": {"hate": {"filtered": False}},
        "service_tier": "default",
    }


def test_further_choices_are_kept_beside_the_first():
    other = {"index": 1, "message": {"content": "b"}, "finish_reason": "stop"}
    reader = reader_of()
    first = {"index": 0, "message": {"content": "a"}, "finish_reason": "stop"}
    reader.read({"choices": [first, other]})
    pieces = feed(
        reader_of(),
        chunk({"content": "a"}),
        chunk({"content": "b"}, index=1),
        chunk({"content": "c", "tool_calls": [piece(0, "x", "look", "{")]}, index=1),
        chunk({"tool_calls": [piece(0, arguments="}")]}, "stop", index=1),
        chunk(finish="length"),
        DONE,
    ).answer.response()

    turned = reader_of()
    turned.read({"choices": [other, first]})

    assert reader.answer.response().extra["choices"] == (other,)
    assert turned.answer.response().text == "a"
    assert (pieces.text, pieces.stop, pieces.calls) == ("a", "max_tokens", ())
    (found,) = pieces.extra["choices"]
    assert (found["message"]["content"], found["finish_reason"]) == ("bc", "stop")
    assert found["message"]["tool_calls"][0]["function"]["arguments"] == "{}"


# The end


EVENTS = [chunk({"content": "a"}), chunk(finish="stop"), {"choices": [], "usage": USED}]


def is_complete(dialect, *events, left_over=b""):
    reader = feed(reader_of(dialect), *events)
    reader.finish(left_over)
    return reader.is_complete


@pytest.mark.parametrize("dialect", [OPENAI, AZURE, ROUTER])
def test_a_stream_ends_with_its_mark(dialect):
    assert is_complete(dialect, *EVENTS, DONE)
    assert is_complete(dialect, *EVENTS, left_over=b"data: [DONE]")
    for count in range(len(EVENTS) + 1):
        assert not is_complete(dialect, *EVENTS[:count])
    assert not is_complete(dialect, *EVENTS, left_over=b"data: [DON")


def test_a_server_that_may_write_no_mark_is_believed_when_nothing_can_be_missing():
    assert is_complete(UNKNOWN, *EVENTS)
    assert is_complete(UNKNOWN, chunk({"content": "a"}), DONE)
    assert is_complete(UNKNOWN._replace(ends="finish"), *EVENTS[:2])
    assert not is_complete(UNKNOWN._replace(ends="finish"), *EVENTS[:1])
    assert not is_complete(UNKNOWN, *EVENTS[:2])
    assert not is_complete(UNKNOWN, EVENTS[0], EVENTS[2])
    assert not is_complete(UNKNOWN, *EVENTS, left_over=b'data: {"id"')


@pytest.mark.parametrize("host", ["api.cerebras.ai", "api.perplexity.ai"])
def test_services_that_were_seen_to_write_no_mark_are_believed(host):
    dialect = dialect_of(f"https://{host}/v1")

    assert is_complete(dialect, *EVENTS)
    assert not is_complete(dialect, *EVENTS[:2])


def test_nothing_is_no_answer():
    assert not is_complete(UNKNOWN)
    assert not is_complete(OPENAI, DONE)


def test_what_comes_behind_the_end_is_not_read():
    reader = feed(reader_of(), *EVENTS, DONE, chunk({"content": "more"}))

    assert reader.answer.response().text == "a"


# What is wrong


@pytest.mark.parametrize(
    "event",
    [
        {"error": {"message": "Rate limit reached", "code": 429}},
        chunk({"content": ""}, "error", error={"message": "Rate limit reached", "code": 429}),
        chunk({}, "error", choice={"error": {"message": "Rate limit reached", "code": 429}}),
        {"object": "error", "message": "Rate limit exceeded", "type": "rate_limited", "code": 429},
    ],
)
def test_an_error_inside_a_stream(event):
    reader = feed(reader_of(), chunk({"content": "a"}))

    with pytest.raises(RateLimited):
        feed(reader, event)

    assert not reader.is_complete
    assert reader.answer.partial().text == "a"


def test_an_event_that_is_named_an_error():
    with pytest.raises(InvalidRequest):
        reader_of().feed("error", b'{"error": {"message": "no", "status_code": 400}}')


def test_an_error_instead_of_an_answer():
    with pytest.raises(RateLimited):
        reader_of().read({"error": {"message": "Rate limit reached", "code": 429}})


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"choices": []},
        {"choices": "x"},
        {"choices": [1]},
        {"choices": [{"message": "x"}]},
        {"choices": [{"message": {"content": 1}}]},
        {"choices": [{"message": {"content": [1]}}]},
        {"choices": [{"message": {"tool_calls": "x"}}]},
        {"choices": [{"message": {"tool_calls": [1]}}]},
        {"choices": [{"message": {"tool_calls": [{"function": {"arguments": 1}}]}}]},
        {"choices": [{"message": {"content": "a"}, "finish_reason": 1}]},
        {"id": 1, "choices": [{"message": {"content": "a"}}]},
    ],
)
def test_what_is_no_answer_is_a_protocol_error(body):
    reader = reader_of()

    with pytest.raises(ProtocolError):
        reader.read(body)

    reader.answer.partial()


NAMES = [
    *("choices", "delta", "message", "content", "tool_calls", "function", "arguments", "name"),
    *("id", "index", "type", "text", "reasoning", "reasoning_details", "usage", "finish_reason"),
    *("refusal", "audio", "data", "error", "images", "image_url", "thinking", "function_call"),
    *("extra_content", "logprobs", "signature", "prompt_tokens", "custom", "input", "summary"),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "choices",
                    "delta",
                    "message",
                    "content",
                    "tool_calls",
                    "function",
                    "arguments",
                    "name",
                    "id",
                    "index",
                    "type",
                    "text",
                    "reasoning",
                    "reasoning_details",
                    "usage",
                    "finish_reason",
                    "refusal",
                    "audio",
                    "data",
                    "error",
                    "images",
                    "image_url",
                    "thinking",
                    "function_call",
                    "extra_content",
                    "logprobs",
                    "signature",
                    "prompt_tokens",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(st.lists(JSON, max_size=3), st.lists(JSON, max_size=2))
def test_whatever_comes_is_read_or_refused_with_a_typed_error(deltas, events):
    """And what there is of the answer can be had."""
    reader = reader_of(UNKNOWN)
    try:
        feed(reader, *[chunk(delta) for delta in deltas], *events, DONE)
    except ProviderError:
        reader.answer.partial()
    else:
        reader.answer.response()


@pytest.mark.parametrize("said", ["stop", "length", "content_filter"])
def test_who_stops_and_has_called_a_tool_has_stopped_for_that(said):
    """Some servers say "stop" of such an answer, too; what else they say stays."""
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}

    stop = whole({"tool_calls": [call]}, said).stop

    assert stop == {"stop": "tool_use", "length": "max_tokens", "content_filter": "safety"}[said]


# A whole message in a stream


def both(so_far, delta, finish=None, **fields):
    """A chunk as Perplexity sends it: all of the answer so far, beside what is new of it."""
    message = {"role": "assistant", "content": so_far}
    said = {"role": "assistant", "content": delta}
    return chunk(said, finish, choice={"message": message}, **fields)


def test_a_stream_that_repeats_all_of_the_answer_in_each_piece_is_read_once():
    sources = {"citations": ["a", "b"], "usage": {"prompt_tokens": 8, "completion_tokens": 2}}
    heard = Heard()

    reader = feed(
        reader_of(PERPLEXITY, heard),
        both("Tu", "Tu", **sources),
        both("Turin", "rin", **sources),
        both("Turin", "", "stop", citations=["a", "b", "c"]),
    )
    reader.finish(b"")

    response = reader.answer.response()
    assert (response.text, response.stop) == ("Turin", "stop")
    assert heard.events == [("text", "Tu"), ("text", "rin")]
    assert response.extra["citations"] == ("a", "b", "c")


def test_a_stream_that_says_all_again_at_its_end_is_read_once():
    again = {"message": {"role": "assistant", "content": "Turin"}, "finish_reason": "stop"}
    last = {"id": "r1", "model": "m-1", "choices": [{"index": 0, **again}]}

    reader = feed(
        reader_of(UNKNOWN), chunk({"content": "Tu"}), chunk({"content": "rin"}), last, DONE
    )

    assert reader.answer.response().text == "Turin"


@pytest.mark.parametrize("delta", [{}, {"delta": {"role": "assistant", "content": ""}}])
def test_a_stream_may_have_a_message_and_no_pieces(delta):
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    message = {"role": "assistant", "content": "Turin", "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls", **delta}

    reader = feed(reader_of(UNKNOWN), {"id": "r1", "model": "m-1", "choices": [choice]}, DONE)

    response = reader.answer.response()
    assert (response.text, [each.name for each in response.calls]) == ("Turin", ["look"])


def test_a_server_may_call_its_pieces_messages():
    def piece_of(words, finish=None):
        choice = {"index": 0, "message": {"content": words}, "finish_reason": finish}
        return {"id": "r1", "model": "m-1", "choices": [choice]}

    reader = feed(reader_of(UNKNOWN), piece_of("ha"), piece_of("ha"), piece_of("!", "stop"), DONE)

    assert reader.answer.response().text == "haha!"


def test_pieces_without_an_index_that_come_together_go_on_with_the_calls_in_their_places():
    """Each of two calls has its own arguments."""
    begun = [piece(None, "c1", "look", ""), piece(None, "c2", "time", "")]

    said = streamed(
        {"tool_calls": begun},
        {"tool_calls": [piece(arguments='{"at":'), piece(arguments='{"zone":')]},
        {"tool_calls": [piece(arguments='"sky"}'), piece(arguments='"UTC"}')]},
        finish="tool_calls",
    )

    assert [(call.name, call.arguments) for call in said.calls] == [
        ("look", '{"at":"sky"}'),
        ("time", '{"zone":"UTC"}'),
    ]


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        ({"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}, AuthError, 1),
        ({"success": False, "code": 401, "msg": "token expired"}, AuthError, 1),
        ({"detail": "Not Found"}, ProtocolError, 1),
        ({"id": "c", "choices": [], "usage": {"prompt_tokens": 3}}, ProtocolError, 0),
        ({"choices": None, "base_resp": {"status_code": 0, "status_msg": ""}}, ProtocolError, 0),
    ],
)
def test_a_refusal_under_the_status_of_an_answer_is_told_in_the_words_of_the_service(
    body, kind, said
):
    with pytest.raises(ProviderError) as caught:
        reader_of(UNKNOWN).read(body)

    words = json.dumps(body)
    told = caught.value.detail.removeprefix("the answer has no choices").removeprefix(": ")
    assert (type(caught.value), bool(told)) == (kind, bool(said))
    assert told in words
