"""Every rule of every wire is broken once, alone, in a body that is otherwise accepted.

A case is a rule, the place where it is reported, and what is changed in the accepted body: paths
with new values, GONE to take a field away. That no rule is left out is read from the sources.
"""

import ast
import copy
import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast.testing.validators
from holdfast.testing import validators
from holdfast.testing.validators import Problem

GONE = ...
PIXEL = "iVBORw0KGgo="
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "array", "items": {}}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
SURROGATE = "half \ud83d"


def changed(body, changes):
    """A copy of `body` with each path of `changes` set, in order."""
    body = json.loads(json.dumps(body))  # unlike deepcopy, this parts what two places share
    for path, value in copy.deepcopy(changes).items():
        steps = [int(s) if s.isdigit() else s for s in re.findall(r"[^.\[\]]+", path)]
        place = body
        for step in steps[:-1]:
            place = place[step]
        if value is GONE:
            del place[steps[-1]]
        elif isinstance(place, list) and steps[-1] == len(place):
            place.append(value)
        else:
            place[steps[-1]] = value
    return body


# ---- anthropic ----

CALL = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Oslo"}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "rain"}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
MARK = {"type": "ephemeral"}

ANTHROPIC = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 4096,
    "system": [{"type": "text", "text": "Be brief.", "cache_control": MARK}],
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "tools": [
        {"name": "weather", "description": "", "input_schema": SCHEMA},
        {"type": "web_search_20250305", "name": "web_search"},
    ],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Rain?"},
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": PIXEL},
                },
                {
                    "type": "document",
                    "source": {"type": "text", "media_type": "text/plain", "data": "x"},
                },
                {
                    "type": "search_result",
                    "source": "https://example.com",
                    "title": "t",
                    "content": [{"type": "text", "text": "x"}],
                },
            ],
        },
        {"role": "assistant", "content": [SEARCH, FOUND, {"type": "text", "text": "\n"}]},
        {"role": "user", "content": "And tomorrow?"},
        {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "", "signature": "c2ln"}, CALL],
        },
        {"role": "user", "content": [RESULT, {"type": "text", "text": "Go on."}]},
    ],
}
NO_THINKING = {"thinking": GONE}
PLAIN = {**NO_THINKING, "messages": [{"role": "user", "content": "Hi"}]}
SAID = {"role": "assistant", "content": "Yes:"}

ANTHROPIC_CASES = [
    ("unknown-field", "foo", {"foo": 1}),
    ("unknown-field", "messages[0].id", {"messages[0].id": "m1"}),
    ("unknown-field", "messages[3].content[0].cache_control", {
        "messages[3].content[0].cache_control": MARK}),
    ("missing-field", "model", {"model": GONE}),
    ("missing-field", "max_tokens", {"max_tokens": GONE}),
    ("missing-field", "messages", {"messages": GONE}),
    ("missing-field", "messages[3].content[0].signature", {
        "messages[3].content[0].signature": GONE}),
    ("missing-field", "messages[1].content[1].content", {"messages[1].content[1].content": GONE}),
    ("missing-field", "tools[1].name", {"tools[1].name": GONE}),
    ("missing-field", "tools[0].input_schema", {"tools[0].input_schema": GONE}),
    ("wrong-type", "messages[3].content[1].input", {"messages[3].content[1].input": "{}"}),
    ("wrong-type", "max_tokens", {"max_tokens": True}),
    ("empty-value", "model", {"model": ""}),
    ("empty-value", "messages[3].content[0].signature", {"messages[3].content[0].signature": ""}),
    ("empty-value", "messages[3].content[0].data", {
        "messages[3].content[0]": {"type": "redacted_thinking", "data": ""}}),
    ("unknown-value", "service_tier", {"service_tier": "fast"}),
    ("unknown-value", "system[0].cache_control.ttl", {
        "system[0].cache_control": {**MARK, "ttl": "2h"}}),
    ("out-of-range", "max_tokens", {**NO_THINKING, "max_tokens": -1}),
    ("out-of-range", "thinking.budget_tokens", {"thinking.budget_tokens": 1023}),
    ("out-of-range", "temperature", {**NO_THINKING, "temperature": 1.1}),
    ("out-of-range", "top_p", {"top_p": 1.5}),
    ("bad-base64", "messages[0].content[1].source.data", {
        "messages[0].content[1].source.data": "not base64"}),
    ("media-type", "messages[0].content[1].source.media_type", {
        "messages[0].content[1].source.media_type": "image/tiff"}),
    ("media-type", "messages[0].content[2].source.media_type", {
        "messages[0].content[2].source.media_type": "text/html"}),
    ("blank-stop-sequence", "stop_sequences[0]", {"stop_sequences": ["\n"]}),
    ("budget-too-large", "thinking.budget_tokens", {"thinking.budget_tokens": 4096}),
    ("thinking-excludes", "temperature", {"temperature": 0.5}),
    ("thinking-excludes", "top_k", {"top_k": 5}),
    ("thinking-excludes", "top_p", {"top_p": 0.5}),
    ("thinking-excludes", "tool_choice", {"tool_choice": {"type": "any"}}),
    ("duplicate-tool", "tools[2].name", {"tools[2]": {"name": "weather", "input_schema": SCHEMA}}),
    ("unknown-tool-type", "tools[1].type", {"tools[1].type": "web_search"}),
    ("tool-name", "tools[0].name", {"tools[0].name": "get weather"}),
    ("tool-name", "tools[0].name", {"tools[0].name": "w" * 129}),
    ("tool-name", "messages[3].content[1].name", {"messages[3].content[1].name": "w" * 201}),
    ("schema-not-object", "tools[0].input_schema.type", {"tools[0].input_schema.type": "array"}),
    ("schema-union-at-root", "tools[0].input_schema.anyOf", {"tools[0].input_schema.anyOf": []}),
    ("property-name", "tools[0].input_schema.properties", {
        "tools[0].input_schema.properties": {"the city": {}}}),
    ("tool-choice-without-tools", "tool_choice", {"tools": [], "tool_choice": {"type": "auto"}}),
    ("unknown-tool", "tool_choice.name", {
        **NO_THINKING, "tool_choice": {"type": "tool", "name": "clock"}}),
    ("block-not-allowed", "system[0].type", {
        "system[0]": {"type": "image", "source": {"type": "url", "url": "https://example.com"}}}),
    ("block-not-allowed", "messages[2].content[0].type", {"messages[2].content": [FOUND]}),
    ("block-not-allowed", "messages[3].content[0].type", {
        "messages[3].content[0].type": "image", **NO_THINKING}),
    ("block-not-allowed", "messages[4].content[0].content[0].type", {
        "messages[4].content[0].content": [{"type": "tool_use"}]}),
    ("no-messages", "messages", {"messages": []}),
    ("unknown-role", "messages[2].role", {"messages[2].role": "tool"}),
    ("first-not-user", "messages[0].role", {"messages[0]": {"role": "assistant", "content": "Hi"}}),
    ("system-out-of-turn", "messages[2].role", {"messages[2].role": "system"}),
    ("empty-content", "messages[2].content", {"messages[2].content": ""}),
    ("empty-content", "messages[2].content", {"messages[2].content": []}),
    ("empty-content", "messages[0].content[3].content", {"messages[0].content[3].content": []}),
    ("empty-text", "messages[0].content[0].text", {"messages[0].content[0].text": ""}),
    ("blank-text", "messages[0].content[0].text", {"messages[0].content[0].text": " \n"}),
    ("blank-text", "messages[2].content", {"messages[2].content": "\n"}),
    ("blank-text", "system", {"system": " "}),
    ("thinking-last", "messages[3].content[0]", {
        "messages[3].content[1]": GONE, "messages[4].content": "Go on."}),
    ("trailing-whitespace", "messages[1].content", {
        **PLAIN, "messages[1]": {**SAID, "content": "Yes: "}}),
    ("call-id", "messages[1].content[0].id", {
        "messages[1].content[0].id": "toolu_1", "messages[1].content[1].tool_use_id": "toolu_1"}),
    ("call-id", "messages[3].content[1].id", {
        "messages[3].content[1].id": "a.b", "messages[4].content[0].tool_use_id": "a.b"}),
    ("error-not-text", "messages[4].content[0].content[0]", {
        "messages[4].content[0].is_error": True,
        "messages[4].content[0].content": [
            {"type": "image", "source": {"type": "url", "url": "https://example.com"}}]}),
    ("duplicate-call-id", "messages[3].content[2].id", {"messages[3].content[2]": CALL}),
    ("tool-result-without-call", "messages[4].content[1].tool_use_id", {
        "messages[4].content[1]": {**RESULT, "tool_use_id": "toolu_2"}}),
    ("tool-result-without-call", "messages[1].content[0].tool_use_id", {
        "messages[1].content": [FOUND]}),
    ("duplicate-result", "messages[4].content[1].tool_use_id", {"messages[4].content[1]": RESULT}),
    ("tool-result-not-first", "messages[4].content[1]", {
        "messages[4].content": [{"type": "text", "text": "Here."}, RESULT]}),
    ("tool-call-without-result", "messages[3].content[2].id", {
        "messages[3].content[2]": {**CALL, "id": "toolu_2"}}),
    ("tool-call-without-result", "messages[1].content[0]", {"messages[1].content[1]": GONE}),
    ("prefill-with-thinking", "messages[5]", {"messages[5]": SAID}),
    ("thinking-missing", "messages[3].content[0]", {"messages[3].content[0]": GONE}),
    ("too-many-breakpoints", "messages[0].content[3].cache_control", {
        "tools[0].cache_control": MARK, "messages[0].content[0].cache_control": MARK,
        "messages[0].content[1].cache_control": MARK,
        "messages[0].content[3].cache_control": MARK}),
    ("ttl-order", "messages[0].content[0].cache_control", {
        "messages[0].content[0].cache_control": {**MARK, "ttl": "1h"}}),
]  # fmt: skip

# ---- openai chat ----

IMAGE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
FUNCTION = {"name": "weather", "description": "", "parameters": SCHEMA, "strict": True}
CHAT_CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "weather", "arguments": '{"city": "Oslo"}'},
}
CHAT_RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "rain"}

CHAT = {
    "model": "gpt-5",
    "max_completion_tokens": 100,
    "tools": [{"type": "function", "function": FUNCTION}],
    "tool_choice": "auto",
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "forecast", "schema": SCHEMA, "strict": True},
    },
    "messages": [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "name": "ada",
            "content": [
                {"type": "text", "text": "Rain?"},
                IMAGE,
                {"type": "input_audio", "input_audio": {"data": PIXEL, "format": "wav"}},
                {
                    "type": "file",
                    "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"},
                },
            ],
        },
        {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]},
        CHAT_RESULT,
    ],
}
STRICT = "tools[0].function.parameters"
DEEP = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
for _ in range(11):
    DEEP = {**DEEP, "properties": {"a": DEEP}, "required": ["a"]}


def schema_cases(at):
    """What strict mode does not support, for the schema at this path."""
    return [
        ("schema-not-object", f"{at}.type", {f"{at}.type": "string"}),
        ("schema-union-at-root", f"{at}.anyOf", {f"{at}.anyOf": [{"type": "null"}]}),
        ("strict-additional", f"{at}.additionalProperties", {f"{at}.additionalProperties": GONE}),
        ("strict-required", f"{at}.required", {f"{at}.required": ["city"]}),
        ("strict-required", f"{at}.required", {f"{at}.required": ["city", "days", "x"]}),
        ("schema-keyword", f"{at}.allOf", {f"{at}.allOf": []}),
        ("array-without-items", f"{at}.properties.days", {f"{at}.properties.days.items": GONE}),
        ("schema-too-deep", at + ".properties.a" * 11, {at: DEEP}),
        ("too-many", at, {
            f"{at}.properties": {f"p{n}": {} for n in range(5001)},
            f"{at}.required": [f"p{n}" for n in range(5001)]}),
    ]  # fmt: skip


CHAT_CASES = [
    ("unknown-field", "foo", {"foo": 1}),
    ("unknown-field", "messages[2].reasoning_content", {"messages[2].reasoning_content": "x"}),
    ("missing-field", "messages", {"messages": GONE}),
    ("missing-field", "messages[0].content", {"messages[0].content": None}),
    ("missing-field", "messages[1].content[3].file.filename", {
        "messages[1].content[3].file.filename": GONE}),
    ("wrong-type", "messages[2].tool_calls[0].function.arguments", {
        "messages[2].tool_calls[0].function.arguments": {}}),
    ("empty-value", "model", {"model": ""}),
    ("unknown-value", "reasoning_effort", {"reasoning_effort": "hard"}),
    ("unknown-value", "tool_choice", {"tool_choice": "any"}),
    ("out-of-range", "temperature", {"temperature": 2.5}),
    ("out-of-range", "n", {"n": 0}),
    ("bad-base64", "messages[1].content[1].image_url.url", {
        "messages[1].content[1].image_url.url": "data:image/png;base64,?"}),
    ("bad-data-url", "messages[1].content[1].image_url.url", {
        "messages[1].content[1].image_url.url": "data:image/png,x"}),
    ("bad-data-url", "messages[1].content[3].file.file_data", {
        "messages[1].content[3].file.file_data": PIXEL}),
    ("media-type", "messages[1].content[2].input_audio.format", {
        "messages[1].content[2].input_audio.format": "ogg"}),
    ("only-with-stream", "stream_options", {"stream_options": {"include_usage": True}}),
    ("too-many", "metadata", {"metadata": {f"k{n}": "v" for n in range(17)}}),
    ("too-many", "stop", {"stop": list("abcde")}),
    ("too-many", "tools", {"tools": [
        {"type": "function", "function": {"name": f"f{n}"}} for n in range(129)]}),
    ("too-many", "messages[2].tool_calls", {
        "messages[2].tool_calls": [{**CHAT_CALL, "id": f"c{n}"} for n in range(129)],
        "messages[3]": GONE,
        **{f"messages[{n + 3}]": {**CHAT_RESULT, "tool_call_id": f"c{n}"} for n in range(129)}}),
    ("empty-tools", "tools", {"tools": [], "tool_choice": GONE}),
    ("only-with-tools", "tool_choice", {"tools": GONE}),
    ("only-with-logprobs", "top_logprobs", {"top_logprobs": 3}),
    ("two-limits", "max_tokens", {"max_tokens": 100}),
    ("too-long", "tools[0].function.description", {
        "tools[0].function.description": "x" * 1_048_577}),
    ("tool-name", "tools[0].function.name", {"tools[0].function.name": "get.weather"}),
    ("tool-name", "messages[2].tool_calls[0].function.name", {
        "messages[2].tool_calls[0].function.name": "w" * 65}),
    ("schema-name", "response_format.json_schema.name", {
        "response_format.json_schema.name": "a forecast"}),
    ("json-unmentioned", "response_format", {"response_format": {"type": "json_object"}}),
    ("unknown-tool-type", "tools[0].type", {"tools[0].type": "web_search"}),
    ("duplicate-tool", "tools[1].function.name", {
        "tools[1]": {"type": "function", "function": FUNCTION}}),
    ("unknown-tool", "tool_choice.function.name", {
        "tool_choice": {"type": "function", "function": {"name": "clock"}}}),
    ("no-messages", "messages", {"messages": []}),
    ("unknown-role", "messages[0].role", {"messages[0].role": "model"}),
    ("no-system-role", "messages[0].role", {"model": "o1-mini"}),
    ("participant-name", "messages[1].name", {"messages[1].name": "Ada Lovelace"}),
    ("empty-content", "messages[1].content", {"messages[1].content": []}),
    ("empty-content", "messages[2].content", {
        "messages[2].tool_calls": GONE, "messages[3]": GONE}),
    ("part-not-allowed", "messages[0].content[0].type", {"messages[0].content": [IMAGE]}),
    ("empty-calls", "messages[2].tool_calls", {"messages[2].tool_calls": [], "messages[3]": GONE}),
    ("duplicate-call-id", "messages[2].tool_calls[1].id", {"messages[2].tool_calls[1]": CHAT_CALL}),
    ("call-id", "messages[2].tool_calls[0].id", {
        "messages[2].tool_calls[0].id": "c" * 41, "messages[3].tool_call_id": "c" * 41}),
    ("duplicate-result", "messages[4].tool_call_id", {"messages[4]": CHAT_RESULT}),
    ("tool-result-without-call", "messages[4].tool_call_id", {
        "messages[4]": {**CHAT_RESULT, "tool_call_id": "call_2"}}),
    ("tool-result-without-call", "messages[5].tool_call_id", {
        "messages[4]": {"role": "user", "content": "?"}, "messages[5]": CHAT_RESULT}),
    ("tool-call-without-result", "messages[2].tool_calls[0].id", {"messages[3]": GONE}),
    ("tool-call-without-result", "messages[2].tool_calls[1].id", {
        "messages[2].tool_calls[1]": {**CHAT_CALL, "id": "call_2"}}),
    *schema_cases("tools[0].function.parameters"),
    *schema_cases("response_format.json_schema.schema"),
]  # fmt: skip

# ---- openai responses ----

OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "rain"}
FUNCTION_CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "weather",
    "arguments": "{}",
}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}

RESPONSES = {
    "model": "gpt-5",
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "tools": [{"type": "function", **FUNCTION}, {"type": "web_search"}],
    "tool_choice": "auto",
    "text": {
        "format": {"type": "json_schema", "name": "forecast", "schema": SCHEMA, "strict": True}
    },
    "input": [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "Rain?"},
                {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"},
                {"type": "input_audio", "input_audio": {"data": PIXEL, "format": "wav"}},
            ],
        },
        REASONING,
        FUNCTION_CALL,
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        OUTPUT,
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Yes.", "annotations": []}],
        },
    ],
}
QUESTION = {"role": "user", "content": "?"}

RESPONSES_CASES = [
    ("unknown-field", "messages", {"messages": []}),
    ("unknown-field", "input[5].name", {"input[5].name": "bot"}),
    ("missing-field", "input", {"input": GONE}),
    ("missing-field", "input[1].summary", {"input[1].summary": GONE}),
    ("wrong-type", "input[2].arguments", {"input[2].arguments": {}}),
    ("empty-value", "model", {"model": ""}),
    ("unknown-value", "include[0]", {"include[0]": "reasoning"}),
    ("out-of-range", "max_output_tokens", {"max_output_tokens": 15}),
    ("bad-base64", "input[0].content[1].image_url", {
        "input[0].content[1].image_url": "data:image/png;base64,?"}),
    ("bad-data-url", "input[0].content[1].image_url", {
        "input[0].content[1].image_url": "data:image/png"}),
    ("media-type", "input[0].content[2].input_audio.format", {
        "input[0].content[2].input_audio.format": "ogg"}),
    ("only-with-stream", "stream_options", {"stream_options": {}}),
    ("too-many", "metadata", {"metadata": {f"k{n}": "v" for n in range(17)}}),
    ("empty-tools", "tools", {"tools": [], "tool_choice": GONE}),
    ("only-with-tools", "tool_choice", {"tools": GONE}),
    ("too-long", "tools[0].description", {"tools[0].description": "x" * 1_048_577}),
    ("tool-name", "tools[0].name", {"tools[0].name": "get weather"}),
    ("tool-name", "input[2].name", {"input[2].name": "w" * 129}),
    ("schema-name", "text.format.name", {"text.format.name": "a forecast"}),
    ("json-unmentioned", "text.format", {"text.format": {"type": "json_object"}}),
    ("unknown-tool-type", "tools[1].type", {"tools[1].type": "web_search_20250305"}),
    ("duplicate-tool", "tools[2].name", {"tools[2]": {"type": "function", **FUNCTION}}),
    ("no-messages", "input", {"input": []}),
    ("two-histories", "conversation", {"conversation": "conv_1", "previous_response_id": "resp_1"}),
    ("background-not-stored", "background", {"background": True}),
    ("unknown-item", "input[3].type", {"input[3].type": "tool_use"}),
    ("unknown-role", "input[0].role", {"input[0].role": "tool"}),
    ("item-id", "input[2].id", {"input[2].id": "call_1"}),
    ("item-id", "input[3].id", {"input[3].id": "ws.1"}),
    ("call-id", "input[2].call_id", {
        "input[2].call_id": "c" * 65, "input[4].call_id": "c" * 65}),
    ("part-not-allowed", "input[5].content[0].type", {
        "input[5].content": [{"type": "input_text", "text": "Yes."}]}),
    ("part-not-allowed", "input[0].content[0].type", {
        "input[0].content[0].type": "output_text"}),
    ("duplicate-call-id", "input[3].call_id", {"input[3]": {**FUNCTION_CALL, "id": "fc_2"}}),
    ("tool-call-without-result", "input[2].call_id", {"input[4]": GONE}),
    ("tool-result-without-call", "input[4].call_id", {
        "input[2]": {"type": "web_search_call", "id": "ws_2"}}),
    ("duplicate-result", "input[6].call_id", {"input[6]": OUTPUT}),
    ("call-interrupted", "input[4].call_id", {"input[3]": QUESTION}),
    ("duplicate-item", "input[6].id", {
        "input[6]": {"type": "web_search_call", "id": "ws_1", "status": "completed"}}),
    ("reasoning-not-kept", "input[1]", {"input[1].encrypted_content": None}),
    ("reasoning-leads-nowhere", "input[6]", {"input[6]": {**REASONING, "id": "rs_2"}}),
    ("reasoning-leads-nowhere", "input[6]", {
        "input[6]": {**REASONING, "id": "rs_2"},
        "input[7]": {"role": "assistant", "content": "Yes."}}),
    *schema_cases("tools[0].parameters"),
    *schema_cases("text.format.schema"),
]  # fmt: skip

# ---- google ----

GOOGLE_CALL = {
    "functionCall": {"id": "1", "name": "weather", "args": {"city": "Oslo"}},
    "thoughtSignature": "c2ln",
}
GOOGLE_RESULT = {"functionResponse": {"id": "1", "name": "weather", "response": {"sky": "rain"}}}

GOOGLE = {
    "model": "gemini-3-flash",
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
    "tools": [
        {"functionDeclarations": [{"name": "weather", "parameters": {"type": "OBJECT"}}]},
        {"google_search": {}},
    ],
    "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
    "generationConfig": {"temperature": 1.0, "responseMimeType": "application/json"},
    "contents": [
        {
            "role": "user",
            "parts": [
                {"text": "Rain?"},
                {"inline_data": {"mime_type": "image/png", "data": "_-8"}},
            ],
        },
        {"role": "model", "parts": [GOOGLE_CALL]},
        {"role": "user", "parts": [GOOGLE_RESULT]},
    ],
}
ANSWERED = {
    "contents[3]": {"role": "model", "parts": [{"text": "Yes."}]},
    "contents[4]": {"role": "user", "parts": [{"text": "And now?"}]},
}

GOOGLE_CASES = [
    ("unknown-field", "messages", {"messages": []}),
    ("unknown-field", "contents[0].parts[0].type", {"contents[0].parts[0].type": "text"}),
    ("unknown-field", "generationConfig.maxTokens", {"generationConfig.max_tokens": 5}),
    ("missing-field", "contents[0].parts[1].inlineData.mimeType", {
        "contents[0].parts[1].inline_data.mime_type": GONE}),
    ("missing-field", "contents[1].role", {
        "contents[1]": {"parts": [{"text": "So?"}]},
        "contents[2]": {"role": "user", "parts": [{"text": "x"}]}}),
    ("wrong-type", "contents[2].parts[0].functionResponse.response", {
        "contents[2].parts[0].functionResponse.response": "rain"}),
    ("empty-value", "contents[0].parts[1].fileData.fileUri", {
        "contents[0].parts[1]": {"fileData": {"fileUri": "", "mimeType": "image/png"}}}),
    ("unknown-value", "toolConfig.functionCallingConfig.mode", {
        "toolConfig.functionCallingConfig.mode": "auto"}),
    ("unknown-value", "generationConfig.thinkingConfig.thinkingLevel", {
        "generationConfig.thinkingConfig": {"thinking_level": "deep"}}),
    ("out-of-range", "generationConfig.temperature", {"generationConfig.temperature": 2.1}),
    ("out-of-range", "generationConfig.topP", {"generationConfig.top_p": -1}),
    ("bad-base64", "contents[0].parts[1].inlineData.data", {
        "contents[0].parts[1].inline_data.data": "?"}),
    ("bad-base64", "contents[1].parts[0].thoughtSignature", {
        "contents[1].parts[0].thoughtSignature": "?"}),
    ("too-many", "generationConfig.stopSequences", {
        "generationConfig.stopSequences": list("abcdef")}),
    ("two-limits", "generationConfig.thinkingConfig", {
        "generationConfig.thinkingConfig": {"thinkingBudget": 5, "thinkingLevel": "low"}}),
    ("schema-without-mime-type", "generationConfig.responseSchema", {
        "generationConfig": {"responseSchema": {"type": "OBJECT"}}}),
    ("two-schemas", "generationConfig.responseJsonSchema", {
        "generationConfig.responseSchema": {}, "generationConfig.responseJsonSchema": {}}),
    ("two-schemas", "tools[0].functionDeclarations[0].parameters", {
        "tools[0].functionDeclarations[0].parametersJsonSchema": {"type": "object"}}),
    ("empty-content", "systemInstruction.parts", {"systemInstruction.parts": []}),
    ("empty-content", "contents[0].parts", {"contents[0].parts": []}),
    ("part-not-allowed", "systemInstruction.parts[0]", {
        "systemInstruction.parts": [{"inlineData": {"mimeType": "image/png", "data": PIXEL}}]}),
    ("part-not-allowed", "contents[4].parts[0].executableCode", {
        **ANSWERED, "contents[4].parts": [{"executableCode": {"code": "1"}}]}),
    ("set-in-cache", "tools", {
        "cachedContent": "cachedContents/1", "toolConfig": GONE, "systemInstruction": GONE}),
    ("duplicate-tool", "tools[0].functionDeclarations[1].name", {
        "tools[0].functionDeclarations[1]": {"name": "weather"}}),
    ("tool-name", "tools[0].functionDeclarations[0].name", {
        "tools[0].functionDeclarations[0].name": "1weather"}),
    ("schema-not-object", "tools[0].functionDeclarations[0].parameters.type", {
        "tools[0].functionDeclarations[0].parameters.type": "STRING"}),
    ("names-without-mode", "toolConfig.functionCallingConfig.allowedFunctionNames", {
        "toolConfig.functionCallingConfig.allowed_function_names": ["weather"]}),
    ("unknown-tool", "toolConfig.functionCallingConfig.allowedFunctionNames[0]", {
        "toolConfig.functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["clock"]}}),
    ("no-messages", "contents", {"contents": []}),
    ("unknown-role", "contents[0].role", {"contents[0].role": "system"}),
    ("part-data", "contents[0].parts[0]", {"contents[0].parts[0]": {}}),
    ("part-data", "contents[1].parts[0]", {"contents[1].parts[0].text": "So:"}),
    ("signature-not-of-model", "contents[0].parts[0].thoughtSignature", {
        "contents[0].parts[0].thoughtSignature": "c2ln"}),
    ("empty-text", "contents[0].parts[0].text", {"contents[0].parts[0].text": ""}),
    ("call-out-of-turn", "contents[1]", {
        "contents[0]": {"role": "model", "parts": [{"text": "Hi"}]}}),
    ("last-not-user", "contents[3]", {"contents[3]": {"role": "model", "parts": [{"text": "So"}]}}),
    ("tool-result-without-call", "contents[4].parts[0].functionResponse", {
        **ANSWERED, "contents[4].parts": [GOOGLE_RESULT]}),
    ("tool-result-count", "contents[2]", {"contents[1].parts[1]": {"functionCall": {"name": "w"}}}),
    ("tool-result-count", "contents[2]", {"contents[2].parts": [{"text": "Never mind."}]}),
    ("tool-result-name", "contents[2].parts[0].functionResponse", {
        "contents[2].parts[0].functionResponse.name": "clock"}),
    ("tool-result-id", "contents[2].parts[0].functionResponse.id", {
        "contents[2].parts[0].functionResponse.id": "2"}),
    ("duplicate-result", "contents[2].parts[1].functionResponse.id", {
        "contents[1].parts[1]": {"functionCall": {"id": "2", "name": "weather"}},
        "contents[2].parts[1]": GOOGLE_RESULT}),
    ("signature-missing", "contents[1].parts[0]", {"contents[1].parts[0].thoughtSignature": GONE}),
]  # fmt: skip

# ---- code assist ----

CODE_ASSIST = {
    "model": "gemini-3-flash",
    "project": "rain-1",
    "requestId": "agent-1",
    "requestType": "agent",
    "userAgent": "antigravity",
    "request": {
        **{name: value for name, value in GOOGLE.items() if name != "model"},
        "sessionId": "1",
    },
}
CLAUDE_CALL = {"functionCall": GOOGLE_CALL["functionCall"]}
CLAUDE_THOUGHT = {"text": "Hm.", "thought": True, "thoughtSignature": "c2ln"}
CLAUDE = {
    "model": "claude-sonnet-4-5-thinking",
    "request": {
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "weather", "parameters": {"type": "object", "properties": {}}}
                ]
            }
        ],
        "generationConfig": {
            "maxOutputTokens": 16_000,
            "thinkingConfig": {"thinkingBudget": 8_192, "includeThoughts": True},
        },
        "contents": [
            {"role": "user", "parts": [{"text": "Rain?"}]},
            {
                "role": "model",
                "parts": [CLAUDE_THOUGHT, CLAUDE_CALL],
            },
            {"role": "user", "parts": [GOOGLE_RESULT]},
        ],
    },
}


def of_claude(rule, path, changes):
    """The same of a request to Claude, in its envelope."""
    inside = {f"request.{place}": value for place, value in changes.items()}
    return rule, f"request.{path}", CLAUDE | inside


CODE_ASSIST_CASES = [
    *(
        (rule, f"request.{path}", {f"request.{place}": value for place, value in changes.items()})
        for rule, path, changes in GOOGLE_CASES
    ),
    ("unknown-field", "contents", {"contents": []}),
    ("missing-field", "request", {"request": GONE}),
    (
        "missing-field",
        "model",
        {"model": GONE, "request.contents[1].parts[0].thoughtSignature": GONE},
    ),
    ("empty-value", "project", {"project": ""}),
    ("wrong-type", "request.sessionId", {"request.sessionId": 5}),
    of_claude(
        "tool-name",
        "tools[0].functionDeclarations[0].name",
        {"tools[0].functionDeclarations[0].name": "get.weather"},
    ),
    of_claude(
        "schema-lost",
        "tools[0].functionDeclarations[0].parametersJsonSchema",
        {
            "tools[0].functionDeclarations[0]": {
                "name": "weather",
                "parametersJsonSchema": {"type": "object"},
            }
        },
    ),
    of_claude(
        "unknown-field",
        "tools[0].functionDeclarations[0].parameters.properties.n.const",
        {"tools[0].functionDeclarations[0].parameters.properties": {"n": {"const": "1"}}},
    ),
    of_claude(
        "wrong-type",
        "tools[0].functionDeclarations[0].parameters.properties.n.enum[0]",
        {"tools[0].functionDeclarations[0].parameters.properties": {"n": {"enum": [1]}}},
    ),
    of_claude(
        "call-id",
        "contents[1].parts[1].functionCall.id",
        {
            "contents[1].parts[1].functionCall.id": "a b",
            "contents[2].parts[0].functionResponse.id": "a b",
        },
    ),
    of_claude(
        "missing-field",
        "contents[1].parts[1].functionCall.id",
        {
            "contents[1].parts[1].functionCall.id": GONE,
            "contents[2].parts[0].functionResponse.id": GONE,
        },
    ),
    of_claude(
        "thought-unsigned", "contents[1].parts[0]", {"contents[1].parts[0].thoughtSignature": GONE}
    ),
    of_claude(
        "thought-last",
        "contents[1].parts[0]",
        {"contents[1].parts": [CLAUDE_THOUGHT], "contents[2].parts": [{"text": "So?"}]},
    ),
    of_claude("blank-text", "contents[0].parts[0].text", {"contents[0].parts[0].text": " "}),
    of_claude(
        "level-not-budget",
        "generationConfig.thinkingConfig.thinkingLevel",
        {"generationConfig.thinkingConfig": {"thinkingLevel": "low"}},
    ),
    of_claude(
        "budget-too-large",
        "generationConfig.maxOutputTokens",
        {"generationConfig.maxOutputTokens": 8_192},
    ),
    of_claude(
        "out-of-range",
        "generationConfig.maxOutputTokens",
        {"generationConfig.maxOutputTokens": 64_001},
    ),
    of_claude(
        "temperature-with-thinking",
        "generationConfig.temperature",
        {"generationConfig.temperature": 0.5},
    ),
    of_claude(
        "turn-without-thought",
        "contents[1].parts[0]",
        {"contents[1].parts": [{"text": "So."}, CLAUDE_CALL]},
    ),
    of_claude(
        "turn-without-thought",
        "contents[1].parts[0]",
        {"contents[1].parts": [CLAUDE_CALL], "contents[2].parts[1]": {"text": "Hurry."}},
    ),
]


# ---- ollama ----

OLLAMA_CALL = {"id": "call_1", "function": {"name": "weather", "arguments": {"city": "Oslo"}}}
OLLAMA_RESULT = {
    "role": "tool",
    "content": "rain",
    "tool_name": "weather",
    "tool_call_id": "call_1",
}
OLLAMA = {
    "model": "qwen3:8b",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Rain?", "images": [PIXEL]},
        {"role": "assistant", "content": "", "thinking": "Hm.", "tool_calls": [OLLAMA_CALL]},
        OLLAMA_RESULT,
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": "And then?"},
    ],
    "tools": [
        {
            "type": "function",
            "function": {"name": "weather", "description": "Tells.", "parameters": SCHEMA},
        }
    ],
    "format": SCHEMA,
    "options": {"num_ctx": 8192, "temperature": 0.5, "stop": ["x"]},
    "stream": True,
    "think": "low",
    "keep_alive": "5m",
    "truncate": False,
    "top_logprobs": 5,
}
OLLAMA_CASES = [
    ("wrong-type", "stream", {"stream": "yes"}),
    ("wrong-type", "messages[1].content", {"messages[1].content": [{"type": "text"}]}),
    ("wrong-type", "messages[2].tool_calls[0].function.arguments", {
        "messages[2].tool_calls[0].function.arguments": "{}"}),
    ("wrong-type", "options.num_ctx", {"options.num_ctx": 8192.5}),
    ("wrong-type", "options.temperature", {"options.temperature": "hot"}),
    ("wrong-type", "tools[0].function.parameters.properties.city", {
        "tools[0].function.parameters.properties.city": True}),
    ("wrong-type", "tools[0].function.parameters.required[0]", {
        "tools[0].function.parameters.required[0]": 1}),
    ("missing-field", "model", {"model": GONE}),
    ("missing-field", "messages", {"messages": GONE}),
    ("missing-field", "messages[2].tool_calls[0].function.arguments", {
        "messages[2].tool_calls[0].function.arguments": GONE}),
    ("empty-value", "tools[0].function.name", {"tools[0].function.name": ""}),
    ("model-name", "model", {"model": "a model"}),
    ("unknown-field", "max_tokens", {"max_tokens": 5}),
    ("unknown-field", "options.max_tokens", {"options.max_tokens": 5}),
    ("unknown-field", "messages[1].name", {"messages[1].name": "Ada"}),
    ("unknown-value", "think", {"think": "hard"}),
    ("unknown-value", "tools[0].type", {"tools[0].type": "custom"}),
    ("bad-format", "format", {"format": "yaml"}),
    ("out-of-range", "top_logprobs", {"top_logprobs": 21}),
    ("out-of-range", "options.num_ctx", {"options.num_ctx": 0}),
    ("bad-base64", "messages[1].images[0]", {"messages[1].images[0]": "https://x"}),
    ("unknown-role", "messages[4].role", {"messages[4].role": "developer"}),
    ("empty-content", "messages[5]", {"messages[5].content": ""}),
    ("no-messages", "messages", {"messages": []}),
    ("tool-call-without-result", "messages[2].tool_calls[0]", {
        "messages[3]": {"role": "user", "content": "Never mind."}}),
    ("tool-result-without-call", "messages[4]", {"messages[4]": OLLAMA_RESULT}),
    ("tool-result-without-call", "messages[3]", {
        "messages[2]": {"role": "assistant", "content": "Hm."}}),
]  # fmt: skip

# ---- the program of Claude Code: its own rules, and Anthropic's for the message ----

PROGRAM = {
    "system": "Be brief.",
    "message": {
        "role": "user",
        "content": [{"type": "text", "text": "/clear @file"}, {"type": "text", "text": "[End]"}],
    },
}
LAST = "message.content[1]"
PROGRAM_CASES = [
    ("missing-field", "system", {"system": GONE}),
    ("missing-field", "message", {"message": GONE}),
    ("wrong-type", "message", {"message": []}),
    ("unknown-field", "tools", {"tools": []}),
    ("interpreted", LAST, {f"{LAST}.text": "/clear"}),
    ("interpreted", LAST, {f"{LAST}.text": "/mcp__server__prompt now"}),
    ("interpreted", LAST, {f"{LAST}.text": "look at @/etc/passwd"}),
    ("interpreted", "message.content", {"message.content": "@notes.txt"}),
    ("empty-text", "messages[0].content[0].text", {"message.content[0].text": ""}),
]

TABLES = {
    "claude-cli": (PROGRAM, PROGRAM_CASES),
    "anthropic": (ANTHROPIC, ANTHROPIC_CASES),
    "openai-chat": (CHAT, CHAT_CASES),
    "openai-responses": (RESPONSES, RESPONSES_CASES),
    "google": (GOOGLE, GOOGLE_CASES),
    "code-assist": (CODE_ASSIST, CODE_ASSIST_CASES),
    "ollama": (OLLAMA, OLLAMA_CASES),
}
CASES = [
    pytest.param(api, *case, id=f"{api}-{number}-{case[0]}")
    for api, (_, cases) in TABLES.items()
    for number, case in enumerate(cases)
]


@pytest.mark.parametrize("api", validators.APIS)
def test_a_good_request_has_no_problem(api):
    assert validators.problems(api, TABLES[api][0]) == []


@pytest.mark.parametrize(("api", "rule", "path", "changes"), CASES)
def test_a_broken_rule_is_named_with_its_place_and_nothing_else_is(api, rule, path, changes):
    body = changed(TABLES[api][0], changes)

    found = validators.problems(api, body)

    assert {problem.rule for problem in found} == {rule}
    assert path in {problem.path for problem in found}
    assert all(problem.why for problem in found)


ACCEPTED = [
    ("anthropic", {"messages[5]": {"role": "system", "content": "Speak Norwegian."}}),
    ("anthropic", {**PLAIN, "messages[1]": SAID}),
    ("anthropic", {**PLAIN, "messages[1]": {"role": "assistant", "content": ""}}),
    ("anthropic", {"messages[5]": {"role": "assistant", "content": [SEARCH]},
                   "messages[1]": {"role": "assistant", "content": "Yes."}}),
    ("anthropic", {"thinking": {"type": "adaptive"}, "messages[3].content[0]": GONE}),
    ("anthropic", {"tools[0].cache_control": {**MARK, "ttl": "1h"}}),
    ("anthropic", {"max_tokens": 0, **NO_THINKING}),
    ("anthropic", {"system": []}),
    ("anthropic", {"messages[3].content[2]": {**SEARCH, "id": "srvtoolu_2"},
                   "messages[3].content[1].caller": {
                       "type": "code_execution_20250825", "tool_id": "srvtoolu_2"}}),
    ("openai-chat", {"messages[4]": {"role": "assistant", "content": ""}}),
    ("openai-chat", {"messages[2].tool_calls[0].function.arguments": "not JSON"}),
    ("openai-chat", {"tools[0].function.strict": False, f"{STRICT}.additionalProperties": GONE}),
    ("openai-chat", {"response_format": {"type": "json_object"},
                     "messages[0].content": "Answer in JSON."}),
    ("openai-responses", {"input": "Rain?"}),
    ("openai-responses", {"input[1].id": GONE,
                          "input[2]": {"role": "assistant", "content": "So."},
                          "input[4]": QUESTION}),
    ("openai-responses", {"input": [OUTPUT], "previous_response_id": "resp_1"}),
    ("claude-cli", {f"{LAST}.text": "/etc/passwd and ada@example.org are none"}),
    ("google", {"contents": {"parts": {"text": "Rain?"}}}),
    ("google", {"model": GONE, "contents[1].parts[0].thoughtSignature": GONE}),
    ("google", {**ANSWERED, "contents[1].parts[0].thoughtSignature": GONE}),
    ("code-assist", CLAUDE),
    ("code-assist", {**CLAUDE, "request.generationConfig": {"temperature": 1},
                     "request.contents[1].parts[0]": {"text": "So."}}),
    ("code-assist", {**CLAUDE, "request.contents[1].parts": [{"text": "So."}],
                     "request.contents[2].parts": [{"text": "Go on."}]}),
    ("code-assist", {"project": GONE, "user_prompt_id": "1", "requestType": GONE}),
    ("google", {"contents[1].parts[1]": {"functionCall": {"id": "2", "name": "weather"}},
                "contents[2].parts[1]": {"functionResponse": {
                    "id": "2", "name": "weather", "response": {}}}}),
    ("ollama", {"model": "localhost:5000/ada/qwen3:8b", "format": "json", "think": True}),
    ("ollama", {"messages[2].tool_calls[0].id": GONE, "messages[3].tool_call_id": GONE}),
    ("ollama", {"messages[3].content": "", "keep_alive": -1, "format": ""}),
    ("ollama", {"messages[2].tool_calls[1]": {"function": {"name": "a", "arguments": {}}},
                "messages[4]": {"role": "tool", "content": "also rain"}}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("api", "changes"),
    [pytest.param(*case, id=f"{case[0]}-{number}") for number, case in enumerate(ACCEPTED)],
)
def test_what_looks_odd_and_is_allowed_has_no_problem(api, changes):
    assert validators.problems(api, changed(TABLES[api][0], changes)) == []


# ---- compatible servers ----

RELAXED = [
    ("anthropic", {"messages[3].content[0].signature": GONE}),
    ("anthropic", {"temperature": 0.5}),
    ("openai-chat", {"provider": {"order": ["x"]}}),
    ("openai-chat", {"messages[2].reasoning_content": "Hm."}),
    ("openai-chat", {"tools": []}),
    ("openai-chat", {"tools[1]": {"type": "openrouter:web_search"}}),
    ("openai-chat", {"response_format.json_schema.name": GONE}),
    ("openai-chat", {"messages[1].content[3].file.file_data": "https://example.com/a.pdf"}),
    ("openai-chat", {"messages[2].tool_calls[0].id": "c" * 41,
                     "messages[3].tool_call_id": "c" * 41}),
    ("openai-responses", {"provider": {}}),
    ("openai-responses", {"input[1].id": "4f1c", "input[1].encrypted_content": None,
                          "input[1].content": [{"type": "reasoning_text", "text": "Hm."}]}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("api", "changes"),
    [pytest.param(*case, id=f"{case[0]}-{number}") for number, case in enumerate(RELAXED)],
)
def test_lenient_takes_what_compatible_servers_take(api, changes):
    body = changed(TABLES[api][0], changes)

    assert validators.problems(api, body)
    assert validators.problems(api, body, lenient=True) == []


def test_a_word_between_call_and_output_is_allowed_by_openai_alone():
    body = changed(RESPONSES, {"input[3]": {"role": "assistant", "content": "Let me see."}})

    assert validators.problems("openai-responses", body) == []
    (found,) = validators.problems("openai-responses", body, lenient=True)
    assert found.rule == "call-interrupted"


def test_the_model_in_the_address_decides_on_signatures():
    body = changed(GOOGLE, {"model": GONE, "contents[1].parts[0].thoughtSignature": GONE})

    assert validators.problems("google", body, model="gemini-2.5-pro") == []
    (found,) = validators.problems("google", body, model="gemini-3.1-pro-preview")
    assert found.rule == "signature-missing"


# ---- any value ----


@pytest.mark.parametrize("api", validators.APIS)
@pytest.mark.parametrize(
    ("value", "rule"),
    [(SURROGATE, "lone-surrogate"), (float("nan"), "not-json"), (b"x", "not-json")],
    ids=["surrogate", "nan", "bytes"],
)
def test_what_no_json_can_carry_is_a_problem_wherever_it_stands(api, value, rule):
    arguments = {
        "anthropic": "messages[3].content[1].input.city",
        "openai-chat": "tools[0].function.parameters.properties.city.default",
        "openai-responses": "tools[0].parameters.properties.city.default",
        "google": "contents[1].parts[0].functionCall.args.city",
        "code-assist": "request.contents[1].parts[0].functionCall.args.city",
        "ollama": "messages[2].tool_calls[0].function.arguments.city",
        "claude-cli": "message.content[0].text",
    }
    body = changed(TABLES[api][0], {arguments[api]: value})

    (found,) = [each for each in validators.problems(api, body) if each.rule == rule]

    assert found.path == arguments[api]


@pytest.mark.parametrize("api", validators.APIS)
def test_a_name_is_text_too(api):
    assert "lone-surrogate" in {p.rule for p in validators.problems(api, {SURROGATE: 1})}
    assert "not-json" in {p.rule for p in validators.problems(api, {1: 1})}


@pytest.mark.parametrize("api", validators.APIS)
def test_a_body_deeper_than_the_stack_is_judged(api):
    deep = []
    for _ in range(20_000):
        deep = [deep]
    schema = {}
    for _ in range(20_000):
        schema = {"type": "array", "items": schema}

    assert validators.problems(api, deep)
    assert validators.problems(api, {"tools": [{"type": "function", "parameters": schema}]})


def test_an_api_without_a_validator_is_an_error():
    with pytest.raises(ValueError, match="openai-chat"):
        validators.problems("openai", {})


def test_a_problem_reads_as_a_sentence():
    assert str(Problem("", "wrong-type", "expected object")) == (
        "the body: expected object (wrong-type)"
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


def paths(value, path=""):
    """The path of every value inside `value`."""
    if isinstance(value, dict):
        inner = [(f"{path}.{key}".lstrip("."), item) for key, item in value.items()]
    elif isinstance(value, list):
        inner = [(f"{path}[{number}]", item) for number, item in enumerate(value)]
    else:
        inner = []
    return [p for p, item in inner for p in (p, *paths(item, p))]


@pytest.mark.parametrize("lenient", [False, True], ids=["strict", "lenient"])
@pytest.mark.parametrize("api", validators.APIS)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_no_json_value_makes_a_validator_raise(api, lenient, data):
    """Any value alone, and any value in any place of a good request."""
    body = data.draw(JSON)
    base = TABLES[api][0]
    place = data.draw(st.sampled_from(paths(base)))

    for each in (body, changed(base, {place: body})):
        found = validators.problems(api, each, lenient=lenient)
        assert all(isinstance(problem, Problem) for problem in found)


@pytest.mark.parametrize("api", validators.APIS)
def test_every_field_may_hold_any_kind_of_value(api):
    """Each place of a good request in turn holds each kind of JSON, or is gone."""
    base = TABLES[api][0]
    for place in paths(base):
        for value in (None, True, 7, 0.5, "x", [], [[]], [None], {}, {"type": []}, GONE):
            assert isinstance(validators.problems(api, changed(base, {place: value})), list)


# ---- the tables ----

SOURCES = Path(holdfast.testing.validators.__file__).parent
RULE_AT = {"wrong": 0, "among": 1, "maybe_among": 1, "matches": 1}
FILES = {
    "anthropic": ("anthropic.py", "anthropic_blocks.py"),
    "openai-chat": ("openai_chat.py", "openai_shared.py"),
    "openai-responses": ("openai_responses.py", "openai_shared.py"),
    "google": ("google.py",),
    "code-assist": ("code_assist.py", "google.py"),
    "ollama": ("ollama.py",),
}
COMMON = {
    *("missing-field", "wrong-type", "empty-value", "unknown-value", "out-of-range"),
    *("unknown-field", "bad-base64"),
}


def rules_of(name):
    """The rules that a module names where it writes problems down."""
    found = set()
    for node in ast.walk(ast.parse((SOURCES / name).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            at = RULE_AT.get(node.func.attr)
            if at is not None and len(node.args) > at and isinstance(node.args[at], ast.Constant):
                found.add(node.args[at].value)
    return found


@pytest.mark.parametrize("api", FILES)
def test_no_rule_is_without_its_case(api):
    rules = COMMON.union(*(rules_of(name) for name in FILES[api]))

    assert len(rules) > (10 if api == "ollama" else 20)  # it is laxer than the others
    assert rules - {case[0] for case in TABLES[api][1]} == set()
