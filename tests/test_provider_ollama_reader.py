"""What Ollama's own API answers, whole and line by line."""

import json

import pytest

from holdfast.errors import InvalidRequest, Overloaded, ProtocolError
from holdfast.messages import Message, Stop
from holdfast.parts import Thinking
from holdfast.providers.base import Callbacks
from holdfast.providers.ollama import OllamaWire
from holdfast.providers.ollama_messages import OllamaMessagesWire
from holdfast.usage import Usage

HI = Message.user("hi")
DONE = {"done": True, "done_reason": "stop", "prompt_eval_count": 12, "eval_count": 5}
CALL = {"function": {"name": "look", "arguments": {"at": "the sky"}}}


def reader_of(callbacks=None):
    wire = OllamaWire("qwen3")
    return wire.reader(wire.answer(wire.ask([HI]), callbacks))


def line(done=None, **message):
    return {"model": "qwen3:8b", "created_at": "now", "message": message, **(done or {})}


def fed(*lines, callbacks=None):
    reader = reader_of(callbacks)
    for each in lines:
        reader.feed("message", each if type(each) is bytes else json.dumps(each).encode())
    return reader


def streamed(*lines, **options):
    reader = fed(*lines, **options)
    assert reader.is_complete
    return reader.answer.response()


def whole(body):
    reader = reader_of()
    reader.read(body)
    assert reader.is_complete
    return reader.answer.response()


def test_words_come_in_pieces():
    heard = []

    response = streamed(
        line(role="assistant", content="Hello"),
        line(role="assistant", content=", Ada."),
        line(DONE, role="assistant", content=""),
        callbacks=Callbacks(on_chunk=heard.append),
    )

    assert heard == ["Hello", ", Ada."] and response.text == "Hello, Ada."
    assert (response.stop, response.model) == (Stop.STOP, "qwen3:8b")
    assert response.usage == Usage(input=12, output=5)
    assert response.message.model == "ollama:qwen3"


def test_a_whole_answer_is_a_line_by_itself():
    body = line(DONE, content="Hello.", thinking="hm", tool_calls=[{"id": "c1", **CALL}])
    first, second = whole(body), streamed(body)

    for what in ("content", "calls", "stop"):
        assert getattr(first.message, what) == getattr(second.message, what)
    assert (first.usage, first.model, first.extra) == (second.usage, second.model, second.extra)
    assert whole({**line(content="Hello."), "done": None}).text == "Hello."


def test_thinking_comes_before_the_words():
    response = streamed(line(thinking="Let me"), line(thinking=" see."), line(DONE, content="Yes."))

    thought, said = response.message.content
    assert thought == Thinking("Let me see.") and said.text == "Yes."


def test_calls_come_whole_and_ids_are_made_where_there_are_none():
    """Older servers give none; then each gets one of its own."""
    heard = []
    named = {"id": "call_7", "function": {"index": 1, "name": "go", "arguments": {}}}

    response = streamed(
        line(tool_calls=[CALL]),
        line(tool_calls=[named]),
        line(DONE),
        callbacks=Callbacks(on_tool_call=heard.append),
    )

    first, second = response.calls
    assert heard == [first, second] and response.stop == Stop.TOOL_USE
    assert (first.name, json.loads(first.arguments)) == ("look", {"at": "the sky"})
    assert first.id.startswith("call_") and (second.id, second.arguments) == ("call_7", "{}")


def test_arguments_that_come_as_text_are_kept():
    call = {"function": {"name": "look", "arguments": '{"at": '}}

    assert streamed(line(tool_calls=[call]), line(DONE)).calls[0].arguments == '{"at": '


@pytest.mark.parametrize(
    ("reason", "stop"),
    [("stop", Stop.STOP), ("length", Stop.MAX_TOKENS), (None, Stop.STOP), ("unload", "unload")],
)
def test_the_reason_is_in_our_words(reason, stop):
    """Early versions give none with an answer that is complete."""
    assert streamed(line({"done": True, "done_reason": reason}, content="x")).stop == stop


def test_tokens_that_nobody_counted_are_unknown():
    """What was in the cache is left out by some versions, all of it if there is nothing else."""
    usage = streamed(line({"done": True, "eval_count": 5}, content="x")).usage

    assert usage == Usage(output=5)
    counted = {**DONE, "prompt_eval_cached_count": 8}
    assert streamed(line(counted, content="x")).usage.cache_read == 8


def test_other_facts_are_kept():
    last = {**DONE, "total_duration": 5, "remote_model": "big", "self": 1, "id": 2}
    logprobs = [{"token": "x"}]

    response = streamed(
        {**line(content="x"), "logprobs": logprobs},
        {**line(last, content="y", images=None), "logprobs": logprobs},
    )

    assert response.extra["total_duration"] == 5 and response.extra["remote_model"] == "big"
    assert len(response.extra["logprobs"]) == 2 and response.extra["created_at"] == "now"


def test_nothing_behind_the_end_is_read():
    assert streamed(line(DONE, content="x"), line(content="y"), b"garbage").text == "x"


def test_the_answer_of_generate_is_read_too():
    assert whole({"model": "m", "response": "Hello.", "thinking": "hm", **DONE}).text == "Hello."


def test_an_empty_answer_of_the_other_api_is_an_answer():
    """Its content is null then, not an empty list."""
    wire = OllamaMessagesWire("qwen3")
    body = {"type": "message", "content": None, "stop_reason": "end_turn", "model": "qwen3:8b"}
    reader = wire.reader(wire.answer(wire.ask([HI])))

    reader.read({**body, "usage": {"input_tokens": 5, "output_tokens": 0}})

    response = reader.answer.response()
    assert (response.text, response.stop, response.usage.input) == (None, Stop.STOP, 5)
    with pytest.raises(ProtocolError):
        wire.reader(wire.answer(wire.ask([HI]))).read({"content": None})


# What is no answer


def test_an_error_in_a_stream_keeps_what_had_come():
    reader = fed(line(content="Hello"))

    with pytest.raises(Overloaded, match="terminated"):
        reader.feed("", b'{"error": "llama runner process has terminated"}')
    assert reader.answer.partial().text == "Hello"


def test_an_error_under_a_good_status_is_that_error():
    with pytest.raises(InvalidRequest, match="not found"):
        reader_of().read({"error": {"message": "model 'x' not found", "code": 404}})


@pytest.mark.parametrize("body", [{}, {"done": True}, {"messages": []}])
def test_a_document_without_a_message_is_none(body):
    with pytest.raises(ProtocolError):
        reader_of().read(body)


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"null", b'{"message": []}', b'{"message": {"content": 5}}']
)
def test_a_line_of_another_kind_is_an_error(data):
    with pytest.raises(ProtocolError):
        reader_of().feed("message", data)


def test_a_last_line_without_its_newline_is_whole_if_it_is_a_document():
    last = json.dumps(line(DONE, content="."))
    whole_one, cut = fed(line(content="x")), fed(line(content="x"))

    whole_one.finish(last.encode())
    cut.finish(last[:-1].encode())

    assert whole_one.is_complete and whole_one.answer.response().text == "x."
    assert not cut.is_complete and cut.answer.partial().text == "x"
    nothing = fed(line(content="x"))
    nothing.finish(b"")
    assert not nothing.is_complete
