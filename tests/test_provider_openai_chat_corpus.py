"""Real answers of Chat Completions through the reader, and back into a request.

The corpus is data of others and not part of the project: HOLDFAST_CORPUS names its folder, and
without it these tests are skipped. `Raw` reads the same bytes a second time, as plainly as can be.
"""

import json
import os
from pathlib import Path

import msgspec
import pytest

from holdfast.errors import InvalidRequest, OutputLimit, ProviderError
from holdfast.messages import Message
from holdfast.providers.openai_chat import OpenAIChatWire
from holdfast.providers.openai_chat_dialect import (
    AZURE,
    DEEPSEEK,
    GITHUB,
    MISTRAL,
    OPENAI,
    PERPLEXITY,
    ROUTER,
    UNKNOWN,
    Dialect,
)
from holdfast.providers.stream import EventStream
from holdfast.testing import validators

ROOT = Path(__file__).parent.parent
CORPUS = Path(os.environ.get("HOLDFAST_CORPUS") or ROOT.parent / "shared" / "corpus")
TRAFFIC = CORPUS / "traffic"
FOLDERS = ("openai-chat", "openai-compatible", "azure-openai", "github-models")
DIALECTS = {
    "openai-chat": OPENAI,
    "azure-openai": AZURE,
    "github-models": GITHUB,
    "openrouter": ROUTER,
    "vercel-gateway": ROUTER,
    "deepseek": DEEPSEEK,
    "mistral": MISTRAL,
    "perplexity": PERPLEXITY,
    "groq": Dialect(),
    "zai": Dialect(),
}
STOPS = {
    "stop": "stop",
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "safety",
}
# Answers that break off with an error, and which one it is.
ERRORS = {
    "pydantic-ai--test_openrouter_stream_error-a0267b.json": OutputLimit,
    "pydantic-ai--test_tool_use_failed_error_streaming-b3f165.json": InvalidRequest,
}

pytestmark = pytest.mark.skipif(
    not TRAFFIC.is_dir(), reason=f"no corpus of traffic in {CORPUS} (HOLDFAST_CORPUS)"
)


class Raw:
    """What an answer says, read without the reader."""

    def __init__(self, answer):
        self.text = self.thinking = ""
        self.calls = {}
        self.stop = self.usage = None
        if answer.get("sse") is None:
            self.add(answer["body"])
            return
        for line in answer["sse"].split("\n"):
            if line.startswith("data:") and "[DONE]" not in line:
                self.add(json.loads(line[5:]))

    def add(self, event):
        self.usage = event.get("usage") or self.usage
        for choice in event.get("choices") or ():
            if choice.get("index"):
                continue
            said = choice.get("message") or choice.get("delta") or {}
            self.text += said.get("content") or ""
            details = said.get("reasoning_details") or ()
            self.thinking += (
                said.get("reasoning_content")
                or said.get("reasoning")
                or "".join(d.get("text") or d.get("summary") or "" for d in details)
            )
            for number, call in enumerate(said.get("tool_calls") or ()):
                self.add_call(call.get("index", number), call)
            if (old := said.get("function_call")) and old.get("name"):
                self.add_call(-1, {"function": old})
            why = choice.get("finish_reason") or choice.get("finish_details", {}).get("type")
            self.stop = why or self.stop

    def add_call(self, key, call):
        before = self.calls.get(key, ("", "", ""))
        inner = call.get("custom" if call.get("type") == "custom" else "function") or {}
        said = inner.get("arguments")
        if "input" in inner:  # text, which is kept as the argument of this name
            said = json.dumps({"input": inner["input"]}, separators=(",", ":"))
        piece = (call.get("id"), inner.get("name"), said)
        self.calls[key] = (
            before[0] or piece[0],
            before[1] or piece[1],
            before[2] + (piece[2] or ""),
        )


def answers():
    """Each recorded answer that begins well: its file, number, service and the raw response."""
    for folder in FOLDERS:
        for path in sorted((TRAFFIC / folder).glob("*.json")):
            data = json.loads(path.read_text(encoding="utf-8"))
            for number, raw in enumerate(data["exchanges"]):
                if raw["api"] == "chat-completions" and raw["response"]["status"] < 400:
                    yield path.name, number, data["service"], raw["response"]


def reader_of(service):
    wire = OpenAIChatWire("m", dialect=DIALECTS.get(service, UNKNOWN))
    return wire, wire.reader(wire.answer(wire.ask([Message.user("hi")])))


def events_of(raw):
    stream = EventStream()
    events = stream.feed(raw["sse"].encode())
    stream.finish()
    return events, stream.left_over


def read(reader, raw):
    if raw.get("sse") is None:
        reader.read(raw["body"])
        return
    events, left_over = events_of(raw)
    for event in events:
        reader.feed(event.name, event.data)
    reader.finish(left_over)


def test_every_answer_says_what_its_bytes_say(subtests):
    count = 0
    for file, number, service, raw in answers():
        count += 1
        wire, reader = reader_of(service)
        with subtests.test(file=file, number=number):
            if file in ERRORS and number == 0:
                with pytest.raises(ProviderError) as caught:
                    read(reader, raw)
                assert type(caught.value) is ERRORS[file]
                continue
            read(reader, raw)
            response, plain = reader.answer.response(), Raw(raw)
            assert reader.is_complete
            assert (response.text or "") == plain.text
            assert (response.thinking or "") == plain.thinking
            assert response.stop == STOPS.get(plain.stop, "unknown")
            assert [(call.name, call.arguments) for call in response.calls] == [
                (name, arguments or "{}") for _, name, arguments in plain.calls.values()
            ]
            assert all(
                call.id == (id or call.id)
                for call, (id, _, _) in zip(response.calls, plain.calls.values(), strict=True)
            )
            if plain.usage:
                assert response.usage.input == plain.usage["prompt_tokens"]
                assert response.usage.output == plain.usage["completion_tokens"]
            _goes_back(wire, response)

    assert count > 250


def _goes_back(wire, response):
    hi = Message.user("hi")
    body = json.loads(msgspec.json.encode(wire.to_wire(wire.ask([hi, response.message, hi]))))
    lenient = wire.dialect not in (OPENAI, AZURE)
    assert [str(p) for p in validators.problems("openai-chat", body, lenient=lenient)] == []


def test_no_stream_that_is_cut_is_complete(subtests):
    """
    At each edge of an event. Where the dialect does not insist on [DONE], the edge in front of it
    is the exception: there nothing of the answer is missing.
    """
    count = 0
    for file, number, service, raw in answers():
        if raw.get("sse") is None or (file in ERRORS and number == 0):
            continue
        count += 1
        events, _ = events_of(raw)
        with subtests.test(file=file, number=number):
            _, reader = reader_of(service)
            is_last_told = DIALECTS.get(service, UNKNOWN).ends == "done"
            for event in events[:-1] if is_last_told else events[:-2]:
                reader.feed(event.name, event.data)
                reader.finish(b"")
                assert not reader.is_complete

    assert count > 80


def test_every_refusal_is_a_typed_error():
    """An error in the place of an answer is one for the reader too, whatever the status was."""
    found = 0
    for folder in FOLDERS:
        for path in sorted((TRAFFIC / folder).glob("*.json")):
            data = json.loads(path.read_text(encoding="utf-8"))
            for raw in data["exchanges"]:
                body = raw["response"].get("body")
                if raw["api"] != "chat-completions" or type(body) is not dict:
                    continue
                if raw["response"]["status"] >= 400 and "error" in body:
                    found += 1
                    with pytest.raises(ProviderError):
                        reader_of(data["service"])[1].read(body)

    assert found > 5
