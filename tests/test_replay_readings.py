"""The independent readings: every wire, whole and in a stream, and the quirks of servers."""

import json

import pytest

import replay_recordings as ours
from holdfast.providers.claude_cli.wire import ClaudeCliWire
from holdfast.testing.replay.readings import (
    Call,
    Reading,
    claude_cli,
    google,
    ollama,
    openai_chat,
    openai_responses,
    read,
)
from holdfast.testing.replay.readings.base import sse
from holdfast.usage import Usage

CALL = {"city": "Turin", "unit": "c"}


def chat(*chunks, done=True):
    return openai_chat.read(ours.sse(*chunks, done=done).encode(), True)


def whole_chat(message, reason="stop", **more):
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return openai_chat.read(json.dumps({"choices": [choice], **more}).encode(), False)


@pytest.mark.parametrize("wire", ours.ALL)
def test_a_whole_answer_says_what_was_put_into_it(wire):
    reading = read(ours.ALL[wire]().exchanges[0])

    assert reading.text == "One moment…"
    assert [(call.name, call.arguments) for call in reading.calls] == [("weather", CALL)]
    assert (reading.stop, reading.error, reading.is_complete) == ("tool_use", None, True)
    assert (reading.usage.input, reading.usage.output, reading.usage.cache_read) == (15, 7, 3)


@pytest.mark.parametrize("name", ours.STREAMS)
def test_a_stream_says_the_same_as_the_whole(name):
    """All of it: thinking, signatures, blocks, usage."""
    whole = read(ours.ALL[name.removesuffix("-array")]().exchanges[0])
    streamed = read(ours.STREAMS[name]().exchanges[0])

    assert streamed == whole


@pytest.mark.parametrize("name", ours.STREAMS)
def test_a_stream_is_complete_at_its_end_and_not_before(name):
    """Up to the event with the reason for stopping, which is the end on some wires."""
    exchange = ours.STREAMS[name]().exchanges[0]
    marks = {"openai-chat": b'"finish_reason": "tool_calls"', "google": b'"finishReason"'}
    mark = marks.get(name.removesuffix("-array"), exchange.data[-20:])
    end = exchange.data.rindex(mark)

    assert read(exchange).is_complete
    assert not any(read(exchange.cut(at)).is_complete for at in range(end))


def test_what_is_signed_and_sealed_is_kept():
    reading = read(ours.anthropic().exchanges[0])

    assert (reading.signatures, reading.redacted) == ((ours.SEALED,), ("c2VhbGVk",))
    assert [block["type"] for block in reading.blocks] == [
        "server_tool_use",
        "web_search_tool_result",
    ]
    assert read(ours.google().exchanges[0]).calls[0].signature == ours.SEALED
    assert read(ours.openai_responses().exchanges[0]).signatures == (ours.SEALED,)


def test_a_stream_is_split_at_line_ends_only():
    """U+2028 is a line end for str.splitlines, and a character for everybody else."""
    data = 'data: {"a": "x\u2028y"}\r\rdata: 1\ndata: 2\n\n: a comment\n\ndata: cut'.encode()

    assert sse(data) == ['{"a": "x\u2028y"}', "1\n2", "cut"]


@pytest.mark.parametrize(
    ("reason", "stop"),
    [("stop", "stop"), ("length", "max_tokens"), ("content_filter", "safety"), ("", "unknown")],
)
def test_the_reasons_of_chat_completions(reason, stop):
    assert whole_chat({"content": "x"}, reason).stop == stop


def test_a_call_makes_a_stop_a_call():
    """OpenAI says `stop` where the tool was forced; what matters is that a tool is asked for."""
    assert whole_chat({"tool_calls": [ours.CHAT_CALL]}, "stop").stop == "tool_use"


@pytest.mark.parametrize(
    "fields",
    [
        {"reasoning_content": "hm"},
        {"reasoning": "hm", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]},
        {"reasoning_details": [{"type": "reasoning.summary", "summary": "hm"}]},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]},
    ],
)
def test_thinking_is_found_where_servers_put_it(fields):
    assert whole_chat(fields).thinking == "hm"
    assert chat(ours.chat_chunk(fields), ours.chat_chunk({}, "stop")).thinking == "hm"


def test_calls_without_index_or_id_are_told_apart():
    def piece(**fields):
        return ours.chat_chunk({"tool_calls": [fields]})

    reading = chat(
        piece(id="a", function={"name": "f", "arguments": "{"}),
        piece(function={"arguments": "}"}),
        piece(id="b", function={"name": "g", "arguments": "{}"}),
    )
    same_index = chat(
        piece(index=0, id="a", function={"name": "f", "arguments": "{}"}),
        piece(index=0, id="b", function={"name": "g", "arguments": "{}"}),
    )

    assert reading.calls == same_index.calls == (Call("a", "f", {}), Call("b", "g", {}))


def test_the_first_choice_counts():
    other = {"index": 1, "delta": {"content": "no"}, "finish_reason": None}
    both = ours.chat_chunk({"content": "yes"})
    both["choices"].insert(0, other)

    assert chat(both).text == "yes"


def test_usage_is_found_in_odd_places():
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "prompt_cache_hit_tokens": 4}

    reading = chat(ours.chat_chunk({}, "stop", x_groq={"usage": usage}))

    assert reading.usage == Usage(5, 2, 4)


def test_reasoning_that_was_not_counted_may_be_counted():
    hidden = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 10}

    assert whole_chat({"content": "x"}, usage=hidden).outputs_also == (5,)


def test_an_error_is_one_wherever_it_is_said():
    assert whole_chat({}, usage={}).error is None
    assert openai_chat.read(b'{"error": {"message": "no"}}', False).error == {"message": "no"}
    reading = chat(ours.chat_chunk({"content": "x"}), {"error": {"code": 400}}, done=False)
    assert (reading.error, reading.text, reading.is_complete) == ({"code": 400}, "x", False)


def test_arguments_in_pieces_are_put_together():
    """Google's: each piece has the path of its value."""

    def part(**call):
        return {"candidates": [{"content": {"parts": [{"functionCall": call}]}}]}

    def value(path, **fields):
        return {"jsonPath": path, **fields}

    chunks = [
        part(name="f", willContinue=True),
        part(partialArgs=[value("$.a", stringValue="x")], willContinue=True),
        part(partialArgs=[value("$.a", stringValue="y")], willContinue=True),
        part(partialArgs=[value("$.b[1].c", numberValue=2)], willContinue=True),
        part(),
        part(name="g", args={"d": True}),
    ]

    reading = google.of_chunks(chunks, is_whole=False)

    assert [(call.name, call.arguments) for call in reading.calls] == [
        ("f", {"a": "xy", "b": [{}, {"c": 2}]}),
        ("g", {"d": True}),
    ]


@pytest.mark.parametrize(
    ("reason", "stop"),
    [(1, "stop"), (2, "max_tokens"), ("RECITATION", "safety"), ("UNEXPECTED_TOOL_CALL", "error")],
)
def test_the_reasons_of_google(reason, stop):
    answer = ours.google_answer([{"text": "x"}], reason)

    assert google.of_chunks([answer], is_whole=True).stop == stop


def test_a_blocked_prompt_is_seen():
    reading = google.of_chunks([{"promptFeedback": {"blockReason": "SAFETY"}}], is_whole=True)

    assert reading.is_blocked


@pytest.mark.parametrize(
    ("status", "why", "stop"),
    [
        ("incomplete", {"reason": "max_output_tokens"}, "max_tokens"),
        ("incomplete", {"reason": "content_filter"}, "safety"),
        ("completed", None, "stop"),
    ],
)
def test_the_reasons_of_responses(status, why, stop):
    answer = {**ours.RESPONSE, "status": status, "incomplete_details": why, "output": []}
    made = ours.made("openai-responses", ours.exchange("responses", "/", {}, answer))

    assert read(made.exchanges[0]).stop == stop


def test_a_response_that_failed_is_an_error():
    failed = {**ours.RESPONSE, "status": "failed", "error": {"code": "server_error"}}
    stream = ours.sse({"type": "response.failed", "response": failed})
    made = ours.made("openai-responses", ours.exchange("responses", "/", {}, stream))

    reading = read(made.exchanges[0])

    assert reading.error == [{"code": "server_error"}]
    assert not reading.is_complete


def test_nothing_read_is_nothing_said():
    assert read(ours.anthropic(stream=True).exchanges[0].cut(0)) == Reading()


@pytest.mark.parametrize("streamed", [False, True])
def test_where_the_end_of_a_program_has_no_tokens_those_of_the_last_message_are_known(streamed):
    """As its older versions ended; the reader that is shipped says the same."""
    used = {"input_tokens": 3, "output_tokens": 2}
    message = {"id": "m", "role": "assistant", "content": [{"type": "text", "text": "so"}]}
    end = {"type": "result", "subtype": "success", "is_error": False, "result": "so"}
    rows = [{"type": "assistant", "message": message | {"usage": used}}, end]
    if streamed:
        start = {"type": "message_start", "message": {"id": "m", "usage": used}}
        block = {"type": "content_block_start", "index": 0, "content_block": message["content"][0]}
        rows[:0] = [{"type": "stream_event", "event": event} for event in (start, block)]
    data = "".join(f"{json.dumps(row)}\n" for row in rows).encode()

    reading = claude_cli.read(data)

    assert (reading.text, reading.usage) == ("so", Usage(input=3, output=2))
    wire = ClaudeCliWire("sonnet")
    reader = wire.reader(wire.answer(wire.ask(())))
    for line in data.splitlines():
        reader.feed("message", line)
    assert reader.answer.response().usage == reading.usage


def test_a_response_that_the_service_still_works_on_is_no_answer():
    body = {"id": "r", "object": "response", "status": "queued", "output": [], "usage": None}

    assert not openai_responses.read(json.dumps(body).encode(), False).is_complete


@pytest.mark.parametrize("whole", [True, False])
def test_where_nobody_answers_there_is_no_answer_of_google(whole):
    nobody = {"usageMetadata": {"promptTokenCount": 5}, "modelVersion": "gemini-3-pro"}

    assert not google.of_chunks([nobody], is_whole=whole).is_complete


def test_a_reason_that_is_none_ends_no_stream_of_google():
    more = {"content": {"parts": [{"text": "so"}]}, "finishReason": "FINISH_REASON_UNSPECIFIED"}

    assert not google.of_chunks([{"candidates": [more]}], is_whole=False).is_complete


@pytest.mark.parametrize(("given", "read_as"), [('{"a": 1}', {"a": 1}), (None, {}), ({}, {})])
def test_arguments_of_ollama_may_be_a_text_or_nothing(given, read_as):
    call = {"function": {"name": "look", "arguments": given}}
    body = {"message": {"role": "assistant", "content": "", "tool_calls": [call]}, "done": True}

    (found,) = ollama.read(json.dumps(body).encode(), False).calls

    assert (found.name, found.arguments) == ("look", read_as)
