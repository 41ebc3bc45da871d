"""Recorded answers of the Responses API: read, compared with the bytes, sent back."""

import json
import os
from pathlib import Path

import msgspec
import pytest

from holdfast.errors import ProviderError
from holdfast.messages import Message, Stop
from holdfast.providers.base import Callbacks
from holdfast.providers.openai_responses import OpenAIResponsesWire
from holdfast.providers.stream import EventStream
from holdfast.testing import validators
from holdfast.tools import Tool

ROOT = Path(__file__).parent.parent
CORPUS = Path(os.environ.get("HOLDFAST_CORPUS") or ROOT.parent / "shared" / "corpus")
FOLDERS = ("openai-responses", "azure-openai", "openai-compatible")


def recorded():
    """Every recorded answer of this API that is no refusal: (where, service, request, response)."""
    for folder in FOLDERS:
        for path in sorted((CORPUS / "traffic" / folder).glob("*.json")):
            document = json.loads(path.read_bytes())
            for number, exchange in enumerate(document["exchanges"]):
                if exchange["api"] == "responses" and exchange["response"]["status"] == 200:
                    request = exchange["request"]["body"] or {}
                    yield (
                        f"{path.name}:{number}",
                        document["service"],
                        request,
                        exchange["response"],
                    )


EXCHANGES = list(recorded())
pytestmark = pytest.mark.skipif(not EXCHANGES, reason="the corpus is not here")
# What the validator does not know and the service takes back, by its own published types.
NOT_JUDGED = {"program_output"}


def wire_of(service, request):
    model = request.get("model") or ("grok-4" if service == "xai" else "gpt-5")
    is_compatible = service not in ("openai-responses", "azure-openai")
    return OpenAIResponsesWire(model, is_compatible=is_compatible)


def events_of(response):
    return EventStream().feed(response["sse"].encode())


def final_of(response):
    """The body of the answer; None if it failed on the way."""
    if "sse" not in response:
        return response["body"]
    documents = [json.loads(event.data) for event in events_of(response)]
    ends = [each for each in documents if each["type"].endswith((".completed", ".incomplete"))]
    ends = [each for each in ends if "response" in each]
    return ends[-1]["response"] if ends else None


def read(wire, response, callbacks=None):
    answer = wire.answer(wire.ask([Message.user("hi")]), callbacks)
    reader = wire.reader(answer)
    if "sse" in response:
        for event in events_of(response):
            reader.feed(*event)
    else:
        reader.read(response["body"])
    assert reader.is_complete
    return answer.response()


def each_answer():
    for where, service, request, response in EXCHANGES:
        if (final := final_of(response)) is not None:
            yield where, wire_of(service, request), response, final


def test_every_recorded_answer_is_read_as_it_is_written():
    for where, wire, response, final in each_answer():
        text, thinking, calls = [], [], []
        callbacks = Callbacks(text.append, None, thinking.append, calls.append)

        found = read(wire, response, callbacks)

        said = [
            part
            for item in final["output"]
            if item["type"] == "message"
            for part in item["content"]
        ]
        asked = [item for item in final["output"] if item["type"] == "function_call"]
        usage = final.get("usage") or {}
        assert (found.text or "") == "".join(part["text"] for part in said) == "".join(text), where
        assert (found.thinking or "") == "".join(thinking), where
        assert found.calls == tuple(calls), where
        assert [
            (call.id, call.name, call.arguments)
            for call in found.calls
            if call.extra.get("type") != "custom"
        ] == [(item["call_id"], item["name"], item["arguments"]) for item in asked], where
        assert found.usage.input == usage.get("input_tokens"), where
        assert found.usage.output == usage.get("output_tokens"), where
        assert (found.stop == Stop.TOOL_USE) == bool(found.calls), where
        sealed = [
            item["encrypted_content"]
            for item in final["output"]
            if item.get("encrypted_content") and item["type"] == "reasoning"
        ]
        parts = found.message.content if isinstance(found.message.content, tuple) else ()
        assert [part.signature for part in parts if getattr(part, "signature", None)] == sealed, (
            where
        )


def test_every_recorded_stream_gives_what_its_last_event_holds():
    for where, wire, response, final in each_answer():
        if "sse" not in response:
            continue
        streamed, whole = read(wire, response), read(wire, {"body": final})

        assert streamed.message.content == whole.message.content, where
        assert streamed.calls == whole.calls, where
        assert (streamed.stop, streamed.usage) == (whole.stop, whole.usage), where
        assert streamed.extra == whole.extra, where


def test_every_recorded_answer_goes_back_in_a_request_that_is_accepted():
    for where, wire, response, _ in each_answer():
        found = read(wire, response)
        results = [Message.tool("ok", call.id) for call in found.calls]
        tools = [Tool(name) for name in {call.name for call in found.calls}]

        ask = wire.ask(
            [Message.user("hi"), found.message, *results, Message.user("so?")], None, tools
        )
        body = json.loads(msgspec.json.encode(wire.to_wire(ask)))

        body["input"] = [item for item in body["input"] if item.get("type") not in NOT_JUDGED]
        is_open = wire.rules.tool_name.size_max == 64
        assert validators.problems("openai-responses", body, lenient=is_open) == [], where


def test_no_recorded_stream_is_complete_before_its_last_event():
    for where, service, request, response in EXCHANGES:
        if "sse" not in response:
            continue
        wire = wire_of(service, request)
        answer = wire.answer(wire.ask([Message.user("hi")]))
        reader = wire.reader(answer)
        try:
            for event in events_of(response):
                assert not reader.is_complete, where
                reader.feed(*event)
            assert reader.is_complete, where
        except ProviderError:
            assert not reader.is_complete, where
            answer.partial()
