"""Recorded answers of the Messages API: read as they came, and sent back as they were sent then.

The corpus is data of others and not part of the project: HOLDFAST_CORPUS names its folder, and
without it these tests are skipped. `reading` is a second, simple reading of the raw answer.
"""

import json
import os
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from holdfast.errors import Overloaded
from holdfast.messages import Message
from holdfast.providers.anthropic import AnthropicWire
from holdfast.providers.stream import EventStream
from holdfast.testing import validators

ROOT = Path(__file__).parent.parent
CORPUS = Path(os.environ.get("HOLDFAST_CORPUS") or ROOT.parent / "shared" / "corpus")
FOLDER = CORPUS / "traffic" / "anthropic"
STOPS = {"end_turn": "stop", "stop_sequence": "stop", "refusal": "safety"}
HI = Message.user("hi")

needs_traffic = pytest.mark.skipif(
    not FOLDER.is_dir(), reason=f"no corpus of traffic in {CORPUS} (HOLDFAST_CORPUS)"
)


class Answered(NamedTuple):
    """One recorded answer that is no refusal, and the request that followed it, if any."""

    file: str
    model: str
    asked: dict | None
    body: dict | None
    sse: str | None
    next: dict | None

    @property
    def wire(self):
        return AnthropicWire(self.model, cache=False)

    @property
    def is_error(self):
        return self.sse is not None and "event: error" in self.sse

    def events(self):
        return EventStream().feed(self.sse.encode())


def answers():
    for path in sorted(FOLDER.glob("*.json")):
        exchanges = json.loads(path.read_text(encoding="utf-8"))["exchanges"]
        for this, after in zip(exchanges, [*exchanges[1:], None], strict=True):
            request, response = this["request"]["body"], this["response"]
            if this["api"] != "messages" or response["status"] >= 400:
                continue
            model = (request or {}).get("model") or "claude-sonnet-4-5"
            following = after["request"]["body"] if after else None
            yield Answered(
                *(path.name, model, request),
                *(response.get("body"), response.get("sse"), following),
            )


def read(answered):
    reader = answered.wire.reader(answered.wire.answer(answered.wire.ask([HI])))
    if answered.sse is None:
        reader.read(answered.body)
    else:
        for event in answered.events():
            reader.feed(*event)
    assert reader.is_complete
    return reader.answer.response()


def reading(answered):
    """Text, thinking, calls, stop and counts, as plainly as they can be read."""
    if answered.sse is None:
        return facts(answered.body)
    message, blocks, inputs = None, {}, {}
    for _, data in answered.events():
        event = json.loads(data)
        if event["type"] == "message_start":
            message = event["message"]
        elif event["type"] == "content_block_start":
            blocks[event["index"]] = event["content_block"]
        elif event["type"] == "content_block_delta":
            block, delta = blocks[event["index"]], event["delta"]
            for name in ("text", "thinking"):
                if name in delta:
                    block[name] += delta[name]
            if "partial_json" in delta:
                inputs[event["index"]] = inputs.get(event["index"], "") + delta["partial_json"]
        elif event["type"] == "message_delta":
            message["stop_reason"] = event["delta"]["stop_reason"]
            message["usage"] |= event["usage"]
        elif event["type"] == "message_stop":
            break
    for index, written in inputs.items():
        blocks[index]["input"] = json.loads(written or "{}")
    return facts(message | {"content": list(blocks.values())})


def facts(message):
    usage, content = message["usage"], message["content"]
    cached = ("cache_read_input_tokens", "cache_creation_input_tokens")
    return (
        "".join(block["text"] for block in content if block["type"] == "text"),
        "".join(block["thinking"] for block in content if block["type"] == "thinking"),
        [(b["id"], b["name"], b["input"]) for b in content if b["type"] == "tool_use"],
        STOPS.get(message["stop_reason"], message["stop_reason"]),
        usage["input_tokens"] + sum(usage.get(name) or 0 for name in cached),
        usage["output_tokens"],
    )


@needs_traffic
def test_every_answer_is_read(subtests):
    count = 0
    for answered in answers():
        if answered.is_error:
            continue
        with subtests.test(file=answered.file):
            response = read(answered)

            assert (
                response.text or "",
                response.thinking or "",
                [(c.id, c.name, json.loads(c.arguments)) for c in response.calls],
                response.stop,
                response.usage.input,
                response.usage.output,
            ) == reading(answered)
            count += 1

    assert count > 150


@needs_traffic
def test_an_error_in_a_stream_is_raised(subtests):
    broken = [answered for answered in answers() if answered.is_error]
    for answered in broken:
        with subtests.test(file=answered.file), pytest.raises(Overloaded):
            read(answered)

    assert broken


@needs_traffic
def test_a_stream_cut_between_two_events_is_never_complete(subtests):
    for answered in answers():
        if answered.sse is None:
            continue
        with subtests.test(file=answered.file):
            reader = answered.wire.reader(answered.wire.answer(answered.wire.ask([HI])))
            for name, data in answered.events():
                assert not reader.is_complete
                if name in ("message_stop", "error"):
                    break
                reader.feed(name, data)
                reader.answer.partial()


def plain(blocks):
    """Blocks without what a client may leave out, or has to set anew."""
    optional = {"cache_control", "caller"}
    kept = []
    for block in blocks:
        if block == {"type": "text", "text": ""} or block["type"] == "fallback":
            continue
        fields = {name: value for name, value in block.items() if name not in optional}
        kept.append({name: value for name, value in fields.items() if value not in (None, [], "")})
    return kept


def sent_back(answered, response):
    """The assistant's blocks in a request that goes on behind this answer."""
    after = [] if response.calls or response.stop == "pause_turn" else [HI]
    body = answered.wire.to_wire(answered.wire.ask([HI, response.message, *after]))
    body = msgspec.json.decode(msgspec.json.encode(body))
    assert [str(each) for each in validators.problems("anthropic", body)] == []
    return [b for m in body["messages"] if m["role"] == "assistant" for b in m["content"]]


@needs_traffic
def test_every_answer_goes_back_as_it_came(subtests):
    """And the validator accepts it. Of a turn that had paused, the second half came alone here."""
    count = 0
    for answered in answers():
        if answered.body is None:
            continue
        with subtests.test(file=answered.file):
            back = sent_back(answered, read(answered))

            came = plain(answered.body["content"])
            if came and came[0]["type"] == "web_search_tool_result":
                came = came[1:]
            assert plain(back) == came
            count += 1

    assert count > 80


def meaning(blocks):
    """What a recorded client and we have to agree on."""
    return [
        {name: block[name] for name in ("type", "id", "text", "signature", "data") if name in block}
        for block in plain(blocks)
    ]


@needs_traffic
def test_the_next_request_says_what_the_recorded_client_said(subtests):
    """Where the next request goes on from this answer, and its client sent the answer whole."""
    same = other = 0
    for answered in answers():
        messages = (answered.next or {}).get("messages", [])
        before = len((answered.asked or {}).get("messages", []))
        if answered.is_error or len(messages) <= before or messages[before]["role"] != "assistant":
            continue
        with subtests.test(file=answered.file):
            content = messages[before]["content"]
            theirs = [{"type": "text", "text": content}] if isinstance(content, str) else content
            ours = sent_back(answered, read(answered))
            if meaning(ours) == meaning(theirs):
                same += 1
            else:
                other += 1
                print(answered.file, meaning(ours), meaning(theirs))

    assert same > 30
    assert other <= 3
