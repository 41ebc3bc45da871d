"""Reading answers of OpenAI's Responses API, streamed and whole, and sending them back."""

import json

import msgspec
import pytest

from holdfast.errors import AuthError, Overloaded, ProtocolError, RateLimited
from holdfast.messages import Message, Stop, ToolCall
from holdfast.parts import CallRef, Opaque, Text, Thinking
from holdfast.providers.base import Callbacks
from holdfast.providers.openai_responses import OpenAIResponsesWire
from holdfast.tools import Tool
from holdfast.usage import Usage

GPT = OpenAIResponsesWire("gpt-5")
REASONING = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "One."}, {"type": "summary_text", "text": "Two."}],
    "encrypted_content": "sealed",
}
SAID = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "phase": "commentary",
    "content": [{"type": "output_text", "text": "Héllo 😀", "annotations": [], "logprobs": []}],
}
CALL = {
    "id": "fc_1",
    "type": "function_call",
    "status": "completed",
    "call_id": "call_1",
    "name": "look",
    "arguments": '{"a": 1}',
}
SEARCH = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"query": "x"}}
USAGE = {
    "input_tokens": 30,
    "input_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 5},
    "output_tokens": 10,
    "output_tokens_details": {"reasoning_tokens": 7},
    "total_tokens": 40,
}


def whole(*output, status="completed", **more):
    return {
        "id": "resp_1",
        "object": "response",
        "status": status,
        "model": "gpt-5-2025",
        "output": list(output),
        "usage": USAGE,
        "service_tier": "default",
        "instructions": "an echo",
        **more,
    }


class Heard:
    """An answer that is being read, and what the callbacks heard of it."""

    def __init__(self, wire=GPT, ask=None):
        self.text, self.thinking, self.calls, self.usages, self.order = [], [], [], [], []
        self.answer = wire.answer(
            ask or wire.ask([Message.user("hi")]),
            Callbacks(
                self.hear("text"),
                self.usages.append,
                self.hear("thinking"),
                self.hear("calls"),
            ),
        )
        self.reader = wire.reader(self.answer)

    def hear(self, what):
        def hear(heard):
            self.order.append(what)
            getattr(self, what).append(heard)

        return hear

    def feed(self, *events):
        for event in events:
            self.reader.feed(event["type"], json.dumps(event).encode())
        return self

    def read(self, body):
        self.reader.read(body)
        return self

    @property
    def response(self):
        assert self.reader.is_complete
        return self.answer.response()


def event(kind, **fields):
    return {"type": f"response.{kind}", **fields}


def added(index, item):
    return event("output_item.added", output_index=index, item=item)


def done(index, item):
    return event("output_item.done", output_index=index, item=item)


def streamed(*output, status="completed"):
    """The events of an answer, in the order of the service, with words in pieces."""
    yield event("created", response=whole(status="in_progress", usage=None))
    for index, item in enumerate(output):
        begun = {**item, "content": [], "summary": [], "arguments": "", "input": ""}
        yield added(index, begun)
        for number, part in enumerate(item.get("summary", ())):
            for piece in pieces(part["text"]):
                yield event(
                    "reasoning_summary_text.delta",
                    output_index=index,
                    summary_index=number,
                    delta=piece,
                )
        for number, part in enumerate(item.get("content", ())):
            kind = "refusal" if part["type"] == "refusal" else "output_text"
            for piece in pieces(part.get("text") or part.get("refusal")):
                yield event(f"{kind}.delta", output_index=index, content_index=number, delta=piece)
        for field, kind in (("arguments", "function_call_arguments"), ("input", CUSTOM)):
            for piece in pieces(item.get(field, "")):
                yield event(f"{kind}.delta", output_index=index, delta=piece)
        yield done(index, item)
    yield event(status, response=whole(*output, status=status))


CUSTOM = "custom_tool_call_input"


def pieces(text):
    return [text[start : start + 3] for start in range(0, len(text), 3)]


def same(response):
    """The response without what is new in each."""
    return response.replace(message=response.message.replace(id="m", timestamp=WHEN))


WHEN = Message.user("x").timestamp
ALL = (REASONING, SAID, CALL, {**CALL, "id": "fc_2", "call_id": "call_2"}, SEARCH)


def sent_back(response, wire=GPT, results=()):
    ask = wire.ask([Message.user("hi"), response.message, *results])
    return json.loads(msgspec.json.encode(wire.to_wire(ask)))["input"][1:]


# A whole answer


def test_an_answer_is_read_in_order_with_everything_that_goes_back():
    response = Heard().read(whole(*ALL)).response

    assert response.message.content == (
        Thinking("One.\n\nTwo.", "sealed", extra={"id": "rs_1", "summary": REASONING["summary"]}),
        Text("Héllo 😀", extra={"id": "msg_1", "phase": "commentary"}),
        CallRef("call_1"),
        CallRef("call_2"),
        Opaque("openai", SEARCH),
    )
    assert response.calls[0] == ToolCall(
        id="call_1", name="look", arguments='{"a": 1}', extra={"id": "fc_1"}
    )
    assert response.usage == Usage(30, 10, 20, 5, 7)
    assert (response.id, response.model, response.stop) == ("resp_1", "gpt-5-2025", Stop.TOOL_USE)
    assert response.extra == {"service_tier": "default"}


def test_the_words_of_a_model_that_does_not_reason_are_plain_text():
    plain = {name: value for name, value in SAID.items() if name != "phase"}
    response = Heard().read(whole(plain)).response

    assert response.message.content == "Héllo 😀"
    assert response.stop == Stop.STOP


def test_an_answer_goes_back_as_the_items_that_came():
    response = Heard().read(whole(*ALL)).response

    sent = sent_back(response)

    said = {name: value for name, value in SAID.items() if name != "content"}
    calls = [{name: each[name] for name in each if name != "status"} for each in ALL[2:4]]
    assert sent[0] == REASONING
    assert sent[1] == said | {"content": [{"type": "output_text", "text": "Héllo 😀"}]}
    assert sent[2:4] == calls
    assert sent[4] == SEARCH
    assert [item["type"] for item in sent[5:]] == ["function_call_output"] * 2


def test_reasoning_without_its_content_leaves_no_ids_behind():
    """It cannot go back, and what it led to may then have no id."""
    response = Heard().read(whole({**REASONING, "encrypted_content": None}, SAID, CALL)).response

    assert response.thinking == "One.\n\nTwo."
    assert response.calls[0].extra == {}
    assert [item.get("id") for item in sent_back(response)] == [None, None, None]


def test_reasoning_of_an_open_server_is_kept_with_its_text():
    wire = OpenAIResponsesWire("deepseek-v4", is_compatible=True)
    content = [{"type": "reasoning_text", "text": "hm"}]
    item = {"type": "reasoning", "id": "76f8", "summary": [], "content": content}

    response = Heard(wire).read(whole(item, SAID)).response

    assert response.thinking == "hm"
    assert sent_back(response, wire)[0] == item


def test_free_text_for_a_tool_becomes_a_call_and_goes_back():
    item = {"type": "custom_tool_call", "call_id": "c", "name": "sum", "input": '4 + "4"'}

    response = Heard().read(whole(item)).response

    [call] = response.calls
    assert json.loads(call.arguments) == {"input": '4 + "4"'}
    assert response.stop == Stop.TOOL_USE
    assert sent_back(response, results=[Message.tool("8", "c")]) == [
        item,
        {"type": "custom_tool_call_output", "call_id": "c", "output": "8"},
    ]


def test_what_xai_calls_by_itself_is_nothing_for_the_program_to_run():
    item = {"type": "custom_tool_call", "call_id": "xs_1", "name": "x_search", "input": "{}"}

    response = Heard(OpenAIResponsesWire("grok-4")).read(whole(item, SAID)).response

    assert response.calls == ()
    assert response.message.content[0] == Opaque("openai", item)
    assert response.stop == Stop.STOP


def test_where_a_call_comes_from_is_kept_and_sent_back():
    item = {**CALL, "namespace": "crm", "caller": {"type": "program", "caller_id": "call_9"}}

    response = Heard().read(whole(item)).response

    [sent, _] = sent_back(response)
    assert (sent["namespace"], sent["caller"]) == ("crm", item["caller"])


def test_the_name_of_a_tool_is_ours_again():
    ask = GPT.ask([Message.user("hi")], tools=[Tool("a.b")])

    response = Heard(ask=ask).read(whole({**CALL, "name": "a_b"})).response

    assert response.calls[0].name == "a.b"


def test_a_refusal_is_the_text_and_the_reason():
    part = {"type": "refusal", "refusal": "I can't."}

    for heard in (
        Heard().read(whole({**SAID, "content": [part]})),
        Heard().feed(*streamed({**SAID, "content": [part]})),
    ):
        assert heard.response.text == "I can't."
        assert heard.response.message.content[0].extra["refusal"] is True
        assert heard.response.stop == Stop.SAFETY
        assert "".join(heard.text) == "I can't."


def test_citations_and_probabilities_are_kept():
    cited = {"type": "url_citation", "url": "https://a.b"}
    part = {"type": "output_text", "text": "So.", "annotations": [cited], "logprobs": [{"a": -1}]}

    [text] = Heard().read(whole({**SAID, "content": [part]})).response.message.content

    assert text.extra["annotations"] == (cited,)
    assert text.extra["logprobs"] == ({"a": -1},)


@pytest.mark.parametrize(
    ("details", "stop"),
    [
        ({"reason": "max_output_tokens"}, Stop.MAX_TOKENS),
        ({"reason": "content_filter"}, Stop.SAFETY),
        ({"reason": "boredom"}, "boredom"),
        (None, "unknown"),
    ],
)
def test_why_an_answer_is_incomplete(details, stop):
    body = whole(SAID, status="incomplete", incomplete_details=details)

    assert Heard().read(body).response.stop == stop


def test_a_call_that_was_cut_off_is_not_one_to_run():
    cut = {**CALL, "status": "incomplete", "arguments": '{"a'}

    heard = Heard().feed(*streamed(SAID, cut, status="incomplete"))

    assert heard.calls == []
    assert heard.response.calls == ()
    assert heard.response.extra["incomplete_call"] == cut


def test_an_answer_that_is_still_made_is_not_complete():
    heard = Heard().read(whole(status="queued"))

    assert not heard.reader.is_complete


def test_facts_that_are_no_echo_of_the_request_are_kept():
    usage = {**USAGE, "num_sources_used": 3}
    body = whole(SAID, usage=usage, moderation={"a": 1}, temperature=1.0)

    extra = Heard().read(body).response.extra

    assert extra == {
        "service_tier": "default",
        "moderation": {"a": 1},
        "usage": {"num_sources_used": 3},
    }


# A stream


def test_a_stream_gives_what_the_whole_answer_gives():
    heard = Heard().feed(*streamed(*ALL))

    assert same(heard.response) == same(Heard().read(whole(*ALL)).response)
    assert "".join(heard.text) == "Héllo 😀"
    assert "".join(heard.thinking) == "One.\n\nTwo."
    assert tuple(heard.calls) == heard.response.calls
    assert list(dict.fromkeys(heard.order)) == ["thinking", "text", "calls"]


def test_a_stream_is_complete_only_with_its_last_event():
    events = list(streamed(*ALL))

    for end in range(len(events)):
        heard = Heard().feed(*events[:end])
        assert not heard.reader.is_complete

    partial = heard.answer.partial()
    assert partial.message.content[0].signature == "sealed"
    assert len(partial.calls) == 2


def test_a_call_that_had_not_ended_is_no_part_of_what_came():
    events = list(streamed(SAID, CALL))

    partial = Heard().feed(*events[:-2]).answer.partial()

    assert partial.text == "Héllo 😀"
    assert partial.calls == ()


@pytest.mark.parametrize("lost", range(1, 11))
def test_what_was_lost_on_the_way_is_told_at_the_end(lost):
    """The last event has everything."""
    events = list(streamed(SAID, CALL))
    assert lost < len(events) - 1
    del events[lost]

    heard = Heard().feed(*events)

    assert same(heard.response) == same(Heard().read(whole(SAID, CALL)).response)
    assert len("".join(heard.text)) == len("Héllo 😀")
    assert tuple(heard.calls) == heard.response.calls


def test_only_the_last_event_is_enough():
    heard = Heard().feed(event("completed", response=whole(SAID, CALL)))

    assert heard.text == ["Héllo 😀"]
    assert len(heard.calls) == 1


def test_an_end_without_items_means_those_that_were_done():
    events = list(streamed(REASONING, SAID, CALL))
    events[-1]["response"]["output"] = []

    heard = Heard().feed(*events)

    assert same(heard.response) == same(Heard().read(whole(REASONING, SAID, CALL)).response)


def test_words_without_any_item_are_an_answer_too():
    heard = Heard().feed(
        event("output_text.delta", delta="Hel"),
        event("output_text.delta", delta="lo"),
        {"type": "response.completed"},
    )

    assert heard.response.message.content == "Hello"
    assert heard.response.stop == Stop.STOP


def test_places_and_ids_may_be_missing():
    events = []
    for each in streamed(SAID, CALL):
        each.pop("output_index", None)
        events.append(each)

    heard = Heard().feed(*events)

    assert "".join(heard.text) == "Héllo 😀"
    assert tuple(heard.calls) == heard.response.calls
    assert len(heard.calls) == 1


def test_unknown_events_and_marks_are_passed_over():
    heard = Heard().feed({"type": "response.hologram.delta", "delta": 7}, *streamed(SAID))
    heard.reader.feed("message", b"[DONE]")

    assert heard.response.text == "Héllo 😀"


# Failures


@pytest.mark.parametrize(
    ("last", "error"),
    [
        ({"type": "error", "code": "insufficient_quota", "message": "No credit."}, AuthError),
        ({"type": "error", "error": {"code": "server_error", "message": "Oh."}}, Overloaded),
        (
            event(
                "failed",
                response=whole(
                    status="failed", error={"code": "rate_limit_exceeded", "message": "Slow."}
                ),
            ),
            RateLimited,
        ),
        ({"type": "x", "error": {"code": "rate_limit_exceeded", "message": "Slow."}}, RateLimited),
    ],
)
def test_an_error_inside_a_stream_is_raised_and_what_came_is_kept(last, error):
    heard = Heard().feed(*list(streamed(SAID))[:-1])

    with pytest.raises(error):
        heard.feed(last)

    assert not heard.reader.is_complete
    assert heard.answer.partial().text == "Héllo 😀"


def test_a_body_that_says_it_failed_is_an_error():
    error = {"code": "rate_limit_exceeded", "message": "Slow."}

    with pytest.raises(RateLimited):
        Heard().read(whole(status="failed", error=error))
    with pytest.raises(RateLimited):
        Heard().read({"error": error})


@pytest.mark.parametrize(
    "events",
    [
        [event("output_text.delta", output_index=0, content_index=0, delta=7)],
        [event("output_text.delta", output_index=[0], content_index=0, delta="a")],
        [event("function_call_arguments.delta", output_index="a", delta="a")],
        [event("output_item.done", output_index=0, item=[])],
        [event("output_item.done", output_index=0, item={**SAID, "content": "a"})],
        [event("output_item.done", output_index=0, item={**CALL, "arguments": {}})],
        [event("completed", response={"output": {}})],
    ],
)
def test_what_has_the_wrong_type_is_told(events):
    with pytest.raises(ProtocolError):
        Heard().feed(*events)


def test_a_body_that_is_no_answer_is_told():
    with pytest.raises(ProtocolError):
        Heard().read({"object": "list", "data": []})
