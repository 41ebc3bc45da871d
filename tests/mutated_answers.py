"""Answers of services with something wrong in them, and what must hold whatever it is.

`check(api, data)` feeds a stream to a wire's reader: it may raise a ProviderError and nothing else,
and afterwards what had come is a message that every vendor can be sent.
"""

import copy
import json
from random import Random

import msgspec

from holdfast import Message
from holdfast.errors import ProviderError
from holdfast.providers.anthropic import AnthropicWire
from holdfast.providers.google import GoogleWire
from holdfast.providers.ollama import OllamaWire
from holdfast.providers.openai_chat import OpenAIChatWire
from holdfast.providers.openai_responses import OpenAIResponsesWire
from holdfast.providers.stream import EventStream, LineStream
from holdfast.testing import validators

WIRES = {
    "anthropic": AnthropicWire("claude-sonnet-4-5"),
    "openai-chat": OpenAIChatWire("gpt-5"),
    "openai-responses": OpenAIResponsesWire("gpt-5"),
    "google": GoogleWire("gemini-3-pro-preview"),
    "ollama": OllamaWire("qwen3"),
}
HI = Message.user("Hello.")

_THOUGHT = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "hm"}],
    "encrypted_content": "c2ln",
}
_SAID = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Turin", "annotations": []}],
}
_CALLED = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "c1",
    "name": "look",
    "arguments": "{}",
}

# A small good answer of each wire: thinking, words, a call, tokens.
ANSWERS = {
    "anthropic": [
        {
            "type": "message_start",
            "message": {"id": "m", "model": "x", "usage": {"input_tokens": 5}},
        },
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "thinking", "thinking": ""},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "thinking_delta", "thinking": "hm"},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "signature_delta", "signature": "c2ln"},
        },
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "text_delta", "text": "Turin"},
        },
        {"type": "content_block_stop", "index": 1},
        {
            "type": "content_block_start",
            "index": 2,
            "content_block": {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}},
        },
        {
            "type": "content_block_delta",
            "index": 2,
            "delta": {"type": "input_json_delta", "partial_json": "{}"},
        },
        {"type": "content_block_stop", "index": 2},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use"},
            "usage": {"output_tokens": 9},
        },
        {"type": "message_stop"},
    ],
    "openai-chat": [
        {
            "id": "c",
            "model": "x",
            "choices": [{"index": 0, "delta": {"role": "assistant", "reasoning_content": "hm"}}],
        },
        {"id": "c", "model": "x", "choices": [{"index": 0, "delta": {"content": "Turin"}}]},
        {
            "id": "c",
            "model": "x",
            "choices": [
                {
                    "index": 0,
                    "delta": {
                        "tool_calls": [
                            {
                                "index": 0,
                                "id": "c1",
                                "type": "function",
                                "function": {"name": "look", "arguments": "{"},
                            }
                        ]
                    },
                }
            ],
        },
        {
            "id": "c",
            "model": "x",
            "choices": [
                {
                    "index": 0,
                    "delta": {"tool_calls": [{"index": 0, "function": {"arguments": "}"}}]},
                }
            ],
        },
        {
            "id": "c",
            "model": "x",
            "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}],
        },
        {
            "id": "c",
            "model": "x",
            "choices": [],
            "usage": {"prompt_tokens": 5, "completion_tokens": 9},
        },
    ],
    "openai-responses": [
        {"type": "response.created", "response": {"id": "r", "model": "x", "output": []}},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {"type": "reasoning", "id": "rs_1"},
        },
        {
            "type": "response.reasoning_summary_text.delta",
            "output_index": 0,
            "summary_index": 0,
            "delta": "hm",
        },
        {"type": "response.output_item.done", "output_index": 0, "item": _THOUGHT},
        {
            "type": "response.output_item.added",
            "output_index": 1,
            "item": {"type": "message", "id": "msg_1", "content": []},
        },
        {
            "type": "response.output_text.delta",
            "output_index": 1,
            "content_index": 0,
            "delta": "Turin",
        },
        {"type": "response.output_item.done", "output_index": 1, "item": _SAID},
        {
            "type": "response.output_item.added",
            "output_index": 2,
            "item": _CALLED | {"arguments": ""},
        },
        {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": "{}"},
        {"type": "response.output_item.done", "output_index": 2, "item": _CALLED},
        {
            "type": "response.completed",
            "response": {
                "id": "r",
                "model": "x",
                "status": "completed",
                "output": [_THOUGHT, _SAID, _CALLED],
                "usage": {"input_tokens": 5, "output_tokens": 9},
            },
        },
    ],
    "google": [
        {
            "candidates": [
                {
                    "content": {"role": "model", "parts": [{"text": "hm", "thought": True}]},
                    "index": 0,
                }
            ]
        },
        {"candidates": [{"content": {"parts": [{"text": "Turin", "thoughtSignature": "c2ln"}]}}]},
        {
            "candidates": [
                {
                    "content": {
                        "parts": [
                            {
                                "functionCall": {"name": "look", "args": {"a": 1}},
                                "thoughtSignature": "c2ln",
                            }
                        ]
                    },
                    "finishReason": "STOP",
                }
            ],
            "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 9},
        },
    ],
    "ollama": [
        {"model": "x", "message": {"role": "assistant", "thinking": "hm"}, "done": False},
        {"model": "x", "message": {"role": "assistant", "content": "Turin"}, "done": False},
        {
            "model": "x",
            "message": {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "c1", "function": {"name": "look", "arguments": {"a": 1}}}],
            },
            "done": False,
        },
        {
            "model": "x",
            "message": {"role": "assistant", "content": ""},
            "done": True,
            "done_reason": "stop",
            "prompt_eval_count": 5,
            "eval_count": 9,
        },
    ],
}

_ODD = (
    None,
    True,
    0,
    -1,
    10**30,
    1.5,
    "",
    "x",
    "\ud83d",
    "\x00",
    [],
    {},
    [1],
    [None],
    {"a": 1},
    [[]],
    [{}],
    "error",
    "text",
    {"type": "text"},
    {"type": "tool_use"},
    {"error": {"message": "no"}},
    "y" * 5_000,
)


def mutated(random: Random, events):
    """The events with one to three things wrong."""
    events = copy.deepcopy(events)
    for _ in range(random.choice((1, 1, 2, 3))):
        what, at = random.random(), random.randrange(len(events))
        if what < 0.7:
            _change(random, events, at)
        elif what < 0.8:
            events.insert(random.randrange(len(events) + 1), copy.deepcopy(events[at]))
        elif what < 0.9:
            events[at], events[-1] = events[-1], events[at]
        elif len(events) > 1:
            del events[at]
    return events


def _change(random: Random, events, at):
    """Put something odd in the place of a value somewhere in one event."""
    holder, key = events, at
    while random.random() < 0.8:
        inner = holder[key]
        if isinstance(inner, dict) and inner:
            holder, key = inner, random.choice(list(inner))
        elif isinstance(inner, list) and inner:
            holder, key = inner, random.randrange(len(inner))
        else:
            break
    if isinstance(holder, dict) and random.random() < 0.2:
        del holder[key]
    else:
        holder[key] = copy.deepcopy(random.choice(_ODD))


def streamed(api, events) -> bytes:
    if WIRES[api].framing == "lines":
        return "".join(f"{json.dumps(event)}\n" for event in events).encode()
    lines = []
    for event in events:
        name = event.get("type") if isinstance(event, dict) else None
        head = f"event: {name}\n" if isinstance(name, str) and name.isprintable() else ""
        lines.append(f"{head}data: {json.dumps(event)}\n\n")
    return "".join(lines).encode() + (b"data: [DONE]\n\n" if api == "openai-chat" else b"")


def check(api, data: bytes):
    """Read a stream; whatever it holds. The answer, if it was complete."""
    wire = WIRES[api]
    answer = wire.answer(wire.ask([HI], stream=True))
    is_lines = wire.framing == "lines"
    reader, stream = wire.reader(answer), LineStream() if is_lines else EventStream()
    try:
        for item in stream.feed(data):
            reader.feed("message", item) if is_lines else reader.feed(*item)
        stream.finish()
        reader.finish(stream.left_over)
        response = answer.response() if reader.is_complete else answer.partial()
    except ProviderError:
        response = answer.partial()
    if response is None:
        return None
    results = [Message.tool("done", call.id) for call in response.calls]
    for target, other in WIRES.items():
        ask = other.ask([HI, response.message, *results, HI])
        body = json.loads(msgspec.json.encode(other.to_wire(ask)))
        problems = validators.problems(target, body, model=other.model)
        assert not problems, f"{target} would refuse it: {problems[0]}"
    return response if reader.is_complete else None
