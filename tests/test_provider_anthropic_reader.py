"""Reading what the Messages API answers: blocks, calls, thinking, facts, streams that break off.

Each answer stands here once, as a whole document; `events_of` writes it as the stream in which the
vendor would have sent it, so that both ways are held to the same outcome.
"""

import json

import pytest

from holdfast.errors import Overloaded, ProtocolError, RateLimited
from holdfast.frozen import thaw
from holdfast.messages import Message
from holdfast.parts import CallRef, Opaque, Text, Thinking
from holdfast.providers.anthropic import AnthropicWire
from holdfast.providers.base import Callbacks
from holdfast.tools import Tool

WIRE = AnthropicWire("claude-sonnet-4-5")
USAGE = {
    "input_tokens": 10,
    "cache_read_input_tokens": 200,
    "cache_creation_input_tokens": 30,
    "output_tokens": 7,
}
SEARCH = {
    "type": "server_tool_use",
    "id": "srvtoolu_1",
    "name": "web_search",
    "input": {"query": "Turin, weather"},
}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"url": "u"}]}
CITED = {"type": "web_search_result_location", "cited_text": "Sun", "url": "u"}


def answer_of(*content, stop="end_turn", usage=USAGE, **facts):
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5-20250929",
        "content": list(content),
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": usage,
        **facts,
    }


def text(words, **more):
    return {"type": "text", "text": words, **more}


def call(call_id="toolu_1", name="weather", **arguments):
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def halves(words):
    return [words[: len(words) // 2], words[len(words) // 2 :]]


def events_of(answer):
    """The stream that says the same; every text comes in two pieces, every input in two."""
    late = ("stop_reason", "stop_sequence", "stop_details", "container")
    start = {name: value for name, value in answer.items() if name not in late}
    start |= {"content": [], "stop_reason": None, "usage": {**answer["usage"], "output_tokens": 1}}
    start.pop("context_management", None)
    events = [{"type": "message_start", "message": start}, {"type": "ping"}]
    for index, block in enumerate(answer["content"]):
        empty, deltas = in_pieces(block)
        events.append({"type": "content_block_start", "index": index, "content_block": empty})
        events += [
            {"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas
        ]
        events.append({"type": "content_block_stop", "index": index})
    delta = {"type": "message_delta", "usage": answer["usage"]}
    delta["delta"] = {name: answer[name] for name in late if name in answer}
    if "context_management" in answer:
        delta["context_management"] = answer["context_management"]
    return [*events, delta, {"type": "message_stop"}]


def in_pieces(block):
    kind = block["type"]
    if kind == "text":
        deltas = [{"type": "text_delta", "text": half} for half in halves(block["text"])]
        cited = block.get("citations") or ()
        deltas += [{"type": "citations_delta", "citation": each} for each in cited]
        return {**block, "text": "", **({"citations": []} if cited else {})}, deltas
    if kind == "thinking":
        deltas = [
            {"type": "thinking_delta", "thinking": half} for half in halves(block["thinking"])
        ]
        signature = block.get("signature") or ""
        deltas += [{"type": "signature_delta", "signature": half} for half in halves(signature)]
        return {"type": "thinking", "thinking": "", "signature": ""}, deltas
    if "input" in block:
        written = json.dumps(block["input"], separators=(",", ":"))
        pieces = ["", *halves(written)] if block["input"] else []
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        return {**block, "input": {}}, deltas
    if kind == "compaction":
        deltas = [
            {"type": "compaction_delta", "content": half} for half in halves(block["content"])
        ]
        return {"type": "compaction", "content": None}, deltas
    return block, []


def reader_of(wire=WIRE, **callbacks):
    ask = wire.ask([Message.user("hi")])
    return wire.reader(wire.answer(ask, Callbacks(**callbacks)))


def feed(reader, events):
    for event in events:
        reader.feed(event["type"], json.dumps(event).encode())


def whole(answer):
    reader = reader_of()
    reader.read(json.loads(json.dumps(answer)))
    assert reader.is_complete
    return reader.answer.response()


def streamed(answer):
    reader = reader_of()
    feed(reader, events_of(answer))
    assert reader.is_complete
    return reader.answer.response()


def response_of(answer):
    """The response, the same whether it came in one document or as a stream."""
    one, other = whole(answer), streamed(answer)
    fixed = {"id": "m", "timestamp": one.message.timestamp}
    assert one.replace(message=one.message.replace(**fixed)) == other.replace(
        message=other.message.replace(**fixed)
    )
    return one


# What was said


def test_words_are_plain_content():
    response = response_of(answer_of(text("Hello, Ada.")))

    assert response.message.content == "Hello, Ada."
    assert response.stop == "stop"
    assert response.message.model == "anthropic:claude-sonnet-4-5"
    assert (response.id, response.model) == ("msg_1", "claude-sonnet-4-5-20250929")


def test_the_whole_prompt_is_counted():
    """S2-92, B39: what came from the cache, and what went into it, is part of the prompt."""
    usage = {**USAGE, "output_tokens_details": {"thinking_tokens": 5}}

    counted = response_of(answer_of(text("x"), usage=usage)).usage

    assert (counted.input, counted.cache_read, counted.cache_write) == (240, 200, 30)
    assert (counted.output, counted.reasoning) == (7, 5)


def test_counts_that_were_not_said_are_not_known():
    response = response_of(answer_of(text("x"), usage={"input_tokens": 3, "output_tokens": 4}))

    assert (response.usage.input, response.usage.output) == (3, 4)
    assert response.usage.cache_read is None
    assert response.usage.reasoning is None


def test_a_later_count_takes_the_place_of_an_earlier_one():
    """S2-92: counts are cumulative. An early version told the output alone at the end."""
    seen = []
    events = events_of(answer_of(text("x")))
    events[-2]["usage"] = {"output_tokens": 9}
    reader = reader_of(on_usage_update=seen.append)

    feed(reader, events)

    assert [(usage.input, usage.output) for usage in seen] == [(240, 1), (240, 9)]


def test_what_is_not_said_again_still_holds():
    events = events_of(answer_of(text("x"), usage={**USAGE, "service_tier": "standard"}))
    events[-2]["usage"] = {"output_tokens": 9, "cache_read_input_tokens": 300, "new": 1}
    reader = reader_of()

    feed(reader, events)

    response = reader.answer.response()
    assert response.usage.input == 340
    assert response.extra["usage"] == {"service_tier": "standard", "new": 1}


def test_parallel_calls_keep_their_arguments_as_they_were_written():
    """S2-92: in pieces, each of the block that its index names."""
    pieces = ['{"city": ', '"Tur', 'in"}']
    events = events_of(answer_of(text("Wait."), call(), call("toolu_2"), stop="tool_use"))
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    at = next(i for i, each in enumerate(events) if each.get("index") == 1) + 1
    events[at:at] = [{"type": "content_block_delta", "index": 1, "delta": d} for d in deltas]
    reader = reader_of()

    feed(reader, events)

    response = reader.answer.response()
    assert [(c.id, c.name, c.arguments) for c in response.calls] == [
        ("toolu_1", "weather", '{"city": "Turin"}'),
        ("toolu_2", "weather", "{}"),
    ]
    assert response.message.content == "Wait."
    assert response.stop == "tool_use"


def test_the_place_of_a_call_is_kept_when_something_follows_it():
    response = response_of(
        answer_of(text("a"), call("toolu_1", city="x"), text("b"), call("toolu_2"), stop="tool_use")
    )

    assert response.message.content == (Text("a"), CallRef("toolu_1"), Text("b"))
    assert [each.arguments for each in response.calls] == ['{"city":"x"}', "{}"]


def test_who_made_a_call_is_kept():
    made = {"type": "code_execution_20250825", "tool_id": "srvtoolu_9"}

    response = response_of(answer_of({**call(), "caller": made}, stop="tool_use"))

    assert response.calls[0].extra == {"caller": made}


def test_arguments_that_break_off_are_kept_as_they_are():
    """S2-92, B39, A8: at the limit of its output a model stops in the middle of a call."""
    events = events_of(answer_of(call(city="Turin"), stop="max_tokens"))
    del events[-4]  # the second half of the input
    reader = reader_of()

    feed(reader, events)

    assert reader.answer.response().calls[0].arguments == '{"city":'
    assert reader.answer.response().stop == "max_tokens"


def test_thinking_has_its_signature():
    """S2-92, B25."""
    response = response_of(
        answer_of(
            {"type": "thinking", "thinking": "Let me see.", "signature": "c2ln"}, text("Yes.")
        )
    )

    assert response.message.content == (Thinking("Let me see.", "c2ln"), Text("Yes."))
    assert response.thinking == "Let me see."
    assert response.text == "Yes."


def test_thinking_that_is_not_shown_is_kept_for_its_signature():
    hidden = {"type": "thinking", "thinking": "", "signature": "c2ln"}

    response = response_of(answer_of(hidden, call(), hidden, call("toolu_2"), stop="tool_use"))

    thought = Thinking("", "c2ln")
    assert response.message.content == (thought, CallRef("toolu_1"), thought)


def test_sealed_thinking_is_kept_sealed():
    response = response_of(answer_of({"type": "redacted_thinking", "data": "c2VhbGVk"}, text("x")))

    assert response.message.content[0] == Thinking("", "c2VhbGVk", redacted=True)


def test_citations_stay_with_their_words():
    response = response_of(answer_of(text("It is "), text("sunny", citations=[CITED, CITED])))

    assert response.message.content == (
        Text("It is "),
        Text("sunny", {"citations": [CITED, CITED]}),
    )


def test_no_citations_are_nothing_to_keep():
    assert response_of(answer_of(text("x", citations=[]))).message.content == "x"


def test_blocks_of_the_vendor_are_kept_whole_and_in_their_place():
    response = response_of(answer_of(text("Let me look."), SEARCH, FOUND, text("Sun.")))

    assert response.message.content == (
        Text("Let me look."),
        Opaque("anthropic", SEARCH),
        Opaque("anthropic", FOUND),
        Text("Sun."),
    )
    assert response.calls == ()


def test_a_block_that_grows_in_an_unknown_way_is_kept_whole():
    compaction = {"type": "compaction", "content": "They spoke of Turin."}

    response = response_of(answer_of(compaction, text("x")))

    assert response.message.content[0] == Opaque("anthropic", compaction)


def test_an_answer_without_words_has_no_content():
    response = response_of(answer_of(text("")))

    assert response.message.content is None
    assert response.stop == "stop"


@pytest.mark.parametrize(
    ("said", "stop"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("tool_use", "tool_use"),
        ("max_tokens", "max_tokens"),
        ("refusal", "safety"),
        ("pause_turn", "pause_turn"),
        ("model_context_window_exceeded", "max_tokens"),
        (None, "unknown"),
    ],
)
def test_stop_reasons_in_our_words(said, stop):
    """A reason that we have no word for stays the vendor's (S2-91)."""
    assert response_of(answer_of(text("x"), stop=said)).stop == stop


def test_other_facts_are_kept():
    facts = {
        "stop_sequence": "END",
        "stop_details": {"type": "refusal", "category": "cyber"},
        "container": {"id": "container_1", "expires_at": "2026-01-01T00:00:00Z"},
        "context_management": {"applied_edits": [{"type": "clear", "cleared": 3}]},
        "usage": {
            **USAGE,
            "service_tier": "standard",
            "server_tool_use": {"web_search_requests": 1},
        },
    }

    extra = response_of(answer_of(text("x"), **facts)).extra

    assert extra["usage"] == {
        "service_tier": "standard",
        "server_tool_use": {"web_search_requests": 1},
    }
    assert {name: extra[name] for name in facts if name != "usage"} == {
        "stop_sequence": "END",
        "stop_details": facts["stop_details"],
        "container": facts["container"],
        "context_management": {"applied_edits": ({"type": "clear", "cleared": 3},)},
    }


@pytest.mark.parametrize("name", ["self", "request_id", "key", "arguments", "new"])
def test_no_name_of_a_new_fact_is_a_problem(name):
    """Facts are passed on under the vendor's names, which may be those of our parameters."""
    block = text("x") | {name: 1}

    response = response_of(answer_of(block, call() | {name: 1}, **{name: "x"}))

    assert response.text == "x"


# While it comes


def test_callbacks_hear_thinking_then_words_then_calls():
    """S2-12: in pieces, as they come."""
    heard = []
    reader = reader_of(
        on_thinking=lambda words: heard.append(("thinking", words)),
        on_chunk=lambda words: heard.append(("text", words)),
        on_tool_call=lambda call: heard.append(("call", call.id, call.arguments)),
    )

    feed(
        reader,
        events_of(
            answer_of(
                {"type": "thinking", "thinking": "hmhm", "signature": "s"},
                text("abcd"),
                call(a=1),
                text("ef"),
                stop="tool_use",
            )
        ),
    )

    assert heard == [
        ("thinking", "hm"),
        ("thinking", "hm"),
        ("text", "ab"),
        ("text", "cd"),
        ("call", "toolu_1", '{"a":1}'),
        ("text", "e"),
        ("text", "f"),
    ]


def test_tool_names_are_ours_again():
    """S2-90."""
    wire = AnthropicWire("claude-sonnet-4-5")
    ask = wire.ask([Message.user("hi")], tools=[Tool("math.add")])
    reader = wire.reader(wire.answer(ask))

    reader.read(answer_of(call(name="math_add"), stop="tool_use"))

    assert reader.answer.response().calls[0].name == "math.add"


def test_a_stream_cut_between_two_events_is_never_complete():
    events = events_of(answer_of(text("a"), SEARCH, FOUND, call(a=1), stop="tool_use"))
    for cut in range(len(events)):
        reader = reader_of()

        feed(reader, events[:cut])

        assert not reader.is_complete
        reader.answer.partial()


def test_a_call_that_did_not_end_is_not_in_the_partial_answer():
    """B39."""
    events = events_of(answer_of(text("a"), call(a=1), stop="tool_use"))
    cut = next(i for i, e in enumerate(events) if e["type"] == "message_delta") - 1
    reader = reader_of()

    feed(reader, events[:cut])

    partial = reader.answer.partial()
    assert partial.text == "a"
    assert partial.calls == ()


def test_what_follows_the_end_is_not_read():
    events = events_of(answer_of(text("one")))
    reader = reader_of()

    feed(reader, [*events, *events_of(answer_of(text("two")))])

    assert reader.answer.response().text == "one"


def test_blocks_that_nobody_ended_end_with_the_message():
    events = [
        e for e in events_of(answer_of(SEARCH, call(a=1))) if e["type"] != "content_block_stop"
    ]
    reader = reader_of()

    feed(reader, events)

    response = reader.answer.response()
    assert response.message.content == (Opaque("anthropic", SEARCH),)
    assert response.calls[0].arguments == '{"a":1}'


def test_a_call_that_comes_whole_in_its_start_has_its_arguments():
    """As compatible servers send it."""
    events = [
        {"type": "content_block_start", "index": 0, "content_block": call(city="Turin")},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_stop"},
    ]
    reader = reader_of()

    feed(reader, events)

    assert reader.answer.response().calls[0].arguments == '{"city":"Turin"}'


def test_input_of_a_servers_tool_that_is_no_json_can_still_be_sent_back():
    events = events_of(answer_of(SEARCH))
    for event in events:
        if event["type"] == "content_block_delta":
            event["delta"]["partial_json"] = "oops "
    reader = reader_of()

    feed(reader, events)

    data = reader.answer.response().message.content[0].data
    assert data["input"] == {"arguments": "oops oops oops "}


def test_unknown_events_and_deltas_are_passed_over():
    events = events_of(answer_of(text("ab")))
    events.insert(2, {"type": "new_event", "x": 1})
    events.insert(4, {"type": "content_block_delta", "index": 0, "delta": {"type": "new_delta"}})
    reader = reader_of()

    feed(reader, events)

    assert reader.answer.response().text == "ab"


# What goes wrong


def test_an_error_in_the_stream_is_raised_and_the_partial_answer_is_there():
    """B39: no word of it gets into what the assistant said."""
    events = events_of(answer_of(text("abcd")))[:4]
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    reader = reader_of()

    with pytest.raises(Overloaded):
        feed(reader, [*events, error])

    assert not reader.is_complete
    assert reader.answer.partial().text == "ab"


def test_an_error_in_the_place_of_an_answer_is_raised():
    error = {"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}

    with pytest.raises(RateLimited):
        reader_of().read(error)


@pytest.mark.parametrize(
    "data",
    [
        b"no json",
        b"[]",
        b'{"type":"message_start","message":1}',
        b'{"type":"message_start","message":{"content":[1]}}',
        b'{"type":"message_start","message":{"id":1}}',
        b'{"type":"content_block_start","index":0,"content_block":"x"}',
        b'{"type":"content_block_start","content_block":{"type":"text"}}',
        b'{"type":"content_block_start","index":[],"content_block":{"type":"text"}}',
        b'{"type":"content_block_start","index":0,"content_block":{"type":"text","text":1}}',
        b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":1}}',
        b'{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":{}}}',
        b'{"type":"message_delta","delta":{"stop_reason":1}}',
        b'{"type":"message_delta","usage":[]}',
    ],
)
def test_what_is_no_answer_is_a_protocol_error(data):
    reader = reader_of()

    with pytest.raises(ProtocolError):
        reader.feed("message", data)

    reader.answer.partial()


def test_a_document_without_content_is_a_protocol_error():
    with pytest.raises(ProtocolError):
        reader_of().read({"type": "message"})


def test_half_a_surrogate_pair_is_mended():
    reader = reader_of()

    reader.feed("m", b'{"type":"content_block_start","index":0,"content_block":{"type":"text"}}')
    for half in (b'"a\\ud83d"', b'"\\ude00b"', b'"\\ud800"'):
        reader.feed(
            "m",
            b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%s}}'
            % half,
        )
    reader.feed("m", b'{"type":"message_stop"}')

    assert reader.answer.response().text == "a\U0001f600b\ufffd"


def test_a_block_of_a_new_kind_is_kept_whole_whatever_comes_in_its_pieces():
    """Not shown as the answer's words, since in a whole answer it is not, either."""
    deltas = [
        {"type": "text_delta", "text": "Tu"},
        {"type": "text_delta", "text": "rin"},
        {"type": "thinking_delta", "thinking": "hm"},
        {"type": "new_delta", "content": "a", "note": None},
        {"type": "new_delta", "content": None},
        {"type": "citations_delta", "citation": CITED},
    ]
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "novelty"}}
    events = events_of(answer_of(text("so")))
    for event in events:
        if "index" in event:
            event["index"] += 1
    pieces = [{"type": "content_block_delta", "index": 0, "delta": each} for each in deltas]
    stop = {"type": "content_block_stop", "index": 0}
    reader = reader_of()

    feed(reader, [events[0], start, *pieces, stop, *events[1:]])

    response = reader.answer.response()
    (block,) = (part for part in response.message.content if type(part) is Opaque)
    assert response.text == "so"
    expected = {"type": "novelty", "text": "Turin", "thinking": "hm", "content": "a", "note": None}
    assert thaw(block.data) == expected | {"citations": [CITED]}


def test_words_between_the_pieces_of_a_new_block_are_words():
    events = events_of(answer_of(text("so", citations=[]), stop="end_turn"))
    novelty = {"type": "content_block_start", "index": 7, "content_block": {"type": "novelty"}}
    reader = reader_of()

    feed(reader, [*events[:3], novelty, *events[3:]])

    assert reader.answer.response().text == "so"


def test_a_stream_may_begin_with_blocks():
    """Behind a call of a server's code, all of the next message may stand in its beginning."""
    asked = call("toolu_1", "lookup", id="c-1") | {"caller": {"type": "code", "tool_id": "s_1"}}
    start = answer_of(FOUND, asked, stop="tool_use")
    reader = reader_of()

    feed(reader, [{"type": "message_start", "message": start}, {"type": "message_stop"}])

    response = reader.answer.response()
    assert (response.stop, response.usage.output) == ("tool_use", 7)
    assert [(each.id, each.arguments) for each in response.calls] == [("toolu_1", '{"id":"c-1"}')]
    assert [thaw(part.data) for part in response.message.content if type(part) is Opaque] == [FOUND]


def test_blocks_that_follow_those_at_the_beginning_are_others():
    """They are counted from 0 again."""
    calls = [call("toolu_1", "lookup", n=1), call("toolu_2", "lookup", n=2)]
    begin, *events = events_of(answer_of(calls[1], stop="tool_use"))
    begin["message"]["content"] = [calls[0]]
    reader = reader_of()

    feed(reader, [begin, *events])

    found = reader.answer.response().calls
    assert [(each.id, each.arguments) for each in found] == [
        ("toolu_1", '{"n":1}'),
        ("toolu_2", '{"n":2}'),
    ]
