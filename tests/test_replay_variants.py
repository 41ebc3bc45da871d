"""Forms of an answer that services are known to use, each written here: read as they are by the
readers that holdfast ships and by the independent readings, and sendable again.

The recordings hold what some clients happened to ask for. These are the rest of what the vendors'
pages describe, so that neither side knows only what was recorded.
"""

import json
from dataclasses import replace
from itertools import zip_longest
from random import Random
from typing import Any, NamedTuple

import pytest

import replay_recordings as ours
from holdfast.errors import ProviderError
from holdfast.testing.replay import answers
from holdfast.testing.replay.follow import judge_sendable
from holdfast.testing.replay.ours import adapters
from holdfast.testing.replay.recordings import recording

PROVIDERS = {
    "messages": "anthropic",
    "chat-completions": "openai-compatible",
    "responses": "openai-responses",
    "generate-content": "google",
    "code-assist-stream": "code-assist",
    "ollama-chat": "ollama",
}
ADAPTERS = adapters()


class Form(NamedTuple):
    """What a service answers (`said`: a document, or the events of a stream), and what it says."""

    api: str
    said: Any
    text: str = ""
    stop: str = "stop"
    calls: tuple = ()
    thinking: str = ""
    opaque: int = 0
    usage: tuple = (5, 2)  # input, output


def exchange_of(form):
    """The form as an exchange that was recorded."""
    response = form.said
    if isinstance(response, list):
        if form.api == "ollama-chat":
            response = "".join(f"{json.dumps(line)}\n" for line in response)
        else:
            is_named = form.api in ("messages", "responses")
            response = ours.sse(*response, named=is_named, done=form.api == "chat-completions")
    made = ours.exchange(form.api, "/v1/models/gemini-3-pro:go", {"model": "some-model"}, response)
    del made["request"]["body"]
    raw = ours.raw_file(PROVIDERS[form.api], made)
    return recording(raw, "ours.json").exchanges[0]


# Anthropic


def message(*content, stop="end_turn", **usage):
    known = {"input_tokens": 5, "output_tokens": 2} | usage
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "some-model"}
    return head | {"content": list(content), "stop_reason": stop, "usage": known}


def events(*blocks, stop="end_turn", at_once=False):
    """A stream of (start, deltas) of each block, one after the other or all at the same time."""
    start = message(stop=None)
    said = [{"type": "message_start", "message": start}]
    rows = [
        [
            {"type": "content_block_start", "index": index, "content_block": block},
            *({"type": "content_block_delta", "index": index, "delta": each} for each in deltas),
            {"type": "content_block_stop", "index": index},
        ]
        for index, (block, deltas) in enumerate(blocks)
    ]
    turns = zip_longest(*rows) if at_once else rows
    said += [event for turn in turns for event in turn if event is not None]
    delta = {"stop_reason": stop, "stop_sequence": None}
    said.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 2}})
    return [*said, {"type": "message_stop"}]


def words(text):
    return {"type": "text", "text": ""}, [{"type": "text_delta", "text": each} for each in text]


def tool_use(id, name, *pieces):
    block = {"type": "tool_use", "id": id, "name": name, "input": {}}
    return block, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]


SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"q": "x"}}
NOT_FOUND = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
FAILED = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": NOT_FOUND}
MCP = {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "echo", "server_name": "s", "input": {}}
ECHO = {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": False, "content": []}
CITED = {"type": "char_location", "cited_text": "so", "document_index": 0, "document_title": None}
CITED |= {"start_char_index": 0, "end_char_index": 2}
PAGE = {"type": "page_location", "cited_text": "so", "document_index": 0, "document_title": "a"}
PAGE |= {"start_page_number": 1, "end_page_number": 2}

ANTHROPIC = {
    "a server's call whose input is no JSON": Form(
        "messages",
        events(
            (SEARCH | {"input": {}}, [{"type": "input_json_delta", "partial_json": '"q": "x"}'}])
        ),
        opaque=1,
    ),
    "a stream that begins with all of it": Form(
        "messages",
        [
            {
                "type": "message_start",
                "message": message(
                    FAILED,
                    {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"a": 1}},
                    stop="tool_use",
                ),
            },
            {"type": "message_stop"},
        ],
        "",
        "tool_use",
        (("look", {"a": 1}),),
        opaque=1,
    ),
    "a window that is full": Form(
        "messages",
        message({"type": "text", "text": "so"}, stop="model_context_window_exceeded"),
        "so",
        "max_tokens",
    ),
    "a refusal with its reason": Form(
        "messages",
        message(stop="refusal") | {"stop_details": {"type": "refusal", "category": "cyber"}},
        "",
        "safety",
    ),
    "a turn that was paused": Form(
        "messages", message(SEARCH, stop="pause_turn"), "", "pause_turn", opaque=1
    ),
    "a tool of the service that failed": Form(
        "messages", message(SEARCH, FAILED, {"type": "text", "text": "so"}), "so", opaque=2
    ),
    "a tool of another server": Form(
        "messages", message(MCP, ECHO, {"type": "text", "text": "so"}), "so", opaque=2
    ),
    "citations of a whole answer": Form(
        "messages", message({"type": "text", "text": "so", "citations": [CITED, PAGE]}), "so"
    ),
    "citations in a stream": Form(
        "messages",
        events(
            (
                {"type": "text", "text": "", "citations": []},
                [
                    {"type": "citations_delta", "citation": CITED},
                    {"type": "text_delta", "text": "so"},
                ],
            )
        ),
        "so",
    ),
    "calls that are written at the same time": Form(
        "messages",
        events(
            words(["so"]),
            tool_use("toolu_1", "look", '{"at":', ' "sky"}'),
            tool_use("toolu_2", "hear", "", "{}"),
            stop="tool_use",
            at_once=True,
        ),
        "so",
        "tool_use",
        (("look", {"at": "sky"}), ("hear", {})),
    ),
    "a call without any arguments": Form(
        "messages",
        events(tool_use("toolu_1", "look", ""), stop="tool_use"),
        "",
        "tool_use",
        (("look", {}),),
    ),
    "arguments that a limit cut off": Form(
        "messages",
        events(tool_use("toolu_1", "look", '{"at": "s'), stop="max_tokens"),
        "",
        "max_tokens",
        (("look", '{"at": "s'),),
    ),
    "thinking that is not shown": Form(
        "messages",
        events(
            (
                {"type": "thinking", "thinking": "", "signature": ""},
                [{"type": "signature_delta", "signature": "c2ln"}],
            ),
            ({"type": "redacted_thinking", "data": "c2VhbGVk"}, []),
            words(["so"]),
        ),
        "so",
    ),
    "a block that is new, and grows": Form(
        "messages",
        events(
            (
                {"type": "compaction", "content": None},
                [{"type": "compaction_delta", "content": "all of it"}],
            ),
            words(["so"]),
        ),
        "so",
        opaque=1,
    ),
    "an answer of nothing": Form("messages", message(), ""),
    "what the cache read and wrote": Form(
        "messages",
        message(
            {"type": "text", "text": "so"},
            cache_read_input_tokens=100,
            cache_creation_input_tokens=20,
            cache_creation={"ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 0},
            server_tool_use={"web_search_requests": 1, "web_fetch_requests": 0},
            service_tier="standard",
            inference_geo="global",
        ),
        "so",
        usage=(125, 2),
    ),
}


# Chat Completions

USED = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}


def chat(said, reason="stop", usage=None, **more):
    choice = {"index": 0, "message": {"role": "assistant", **said}, "finish_reason": reason}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "model": "some-model"}
    return head | {"choices": [choice | more], "usage": usage or USED}


def chunks(*deltas, reason="stop", usage=None):
    def chunk(delta, reason=None, **more):
        choice = {"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}
        return {"id": "c", "object": "chat.completion.chunk", "choices": [choice], **more}

    end = {"id": "c", "choices": [], "usage": usage or USED}
    head = chunk({"role": "assistant", "content": ""}, usage=None)
    return [head, *map(chunk, deltas), chunk({}, reason), end]


def whole_beside(*pieces):
    """A stream that repeats all of the answer beside each piece of it."""
    said, rows = "", []
    for piece in pieces:
        said += piece
        whole, delta = ({"role": "assistant", "content": each} for each in (said, piece))
        end = None if piece else "stop"
        choice = {"index": 0, "message": whole, "delta": delta, "finish_reason": end}
        rows.append({"id": "c", "model": "m", "choices": [choice], "usage": USED})
    return rows


def whole_behind(*pieces):
    """A stream that says all of the answer again at its end."""
    message = {"role": "assistant", "content": "".join(pieces)}
    last = {"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    return [*chunks(*({"content": each} for each in pieces), reason=None), last]


def counted_inside(*said):
    """A document, or a stream, whose last choice has the tokens."""
    *rows, last = said if "choices" in said[0] else [chat(*said)]
    (choice,) = last["choices"]
    last = {name: value for name, value in last.items() if name != "usage"}
    last["choices"] = [choice | {"usage": USED}]
    return [*rows, last] if rows else last


def called(id, name, arguments, **more):
    return {
        "id": id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
        **more,
    }


DETAIL = {"type": "reasoning.text", "text": "hm", "format": "f", "index": 0, "signature": "c2ln"}
PROBABLE = {"content": [{"token": "so", "logprob": -0.1, "bytes": None, "top_logprobs": []}]}
CHAT = {
    "all of the answer beside each piece": Form(
        "chat-completions", whole_beside("so", ", ", "yes", ""), "so, yes"
    ),
    "all of the answer at the end of a stream": Form(
        "chat-completions", whole_behind("so", "!"), "so!"
    ),
    "a stream with no pieces": Form("chat-completions", [chat({"content": "so"})], "so"),
    "a name in every piece of a call": Form(
        "chat-completions",
        chunks(
            {"tool_calls": [called("c", "look", "", index=0)]},
            {"tool_calls": [called("c", "look", '{"a":', index=0)]},
            {"tool_calls": [called("c", "look", "1}", index=0)]},
            reason="tool_calls",
        ),
        "",
        "tool_use",
        (("look", {"a": 1}),),
    ),
    "pieces of two calls at once, without an index": Form(
        "chat-completions",
        chunks(
            {"tool_calls": [called("c", "look", ""), called("d", "time", "")]},
            {"tool_calls": [{"function": {"arguments": each}} for each in ('{"a":', "{")]},
            {"tool_calls": [{"function": {"arguments": each}} for each in ("1}", "}")]},
            reason="tool_calls",
        ),
        "",
        "tool_use",
        (("look", {"a": 1}), ("time", {})),
    ),
    "tokens in the choice": Form("chat-completions", counted_inside({"content": "so"}), "so"),
    "tokens in the choice of a stream": Form(
        "chat-completions", counted_inside(*chunks({"content": "so"})[:-1]), "so"
    ),
    "arguments as an object in a stream": Form(
        "chat-completions",
        chunks({"tool_calls": [called("c", "look", {"a": 1}, index=0)]}, reason="tool_calls"),
        "",
        "tool_use",
        (("look", {"a": 1}),),
    ),
    "tokens with a point": Form(
        "chat-completions",
        chat({"content": "so"}, usage={"prompt_tokens": 5.0, "completion_tokens": 2.0}),
        "so",
    ),
    "probabilities, notes and null everywhere": Form(
        "chat-completions",
        chat(
            {
                "content": "so",
                "refusal": None,
                "annotations": [],
                "audio": None,
                "tool_calls": None,
                "function_call": None,
                "reasoning": None,
                "reasoning_content": None,
            },
            logprobs=PROBABLE,
        ),
        "so",
    ),
    "two choices, the second one first": Form(
        "chat-completions",
        chat({"content": "so"})
        | {
            "choices": [
                {"index": 1, "message": {"content": "no"}, "finish_reason": "length"},
                {"index": 0, "message": {"content": "so"}, "finish_reason": "stop"},
            ]
        },
        "so",
    ),
    "a refusal": Form(
        "chat-completions",
        chat({"content": None, "refusal": "I will not."}),
        "I will not.",
        "safety",
    ),
    "a refusal in a stream": Form(
        "chat-completions",
        chunks({"refusal": "I will"}, {"refusal": " not."}),
        "I will not.",
        "safety",
    ),
    "a filter": Form(
        "chat-completions", chunks({"content": "so"}, reason="content_filter"), "so", "safety"
    ),
    "a window that is full": Form(
        "chat-completions", chat({"content": "so"}, "model_length"), "so", "max_tokens"
    ),
    "a reason that nobody knows": Form(
        "chat-completions",
        chat({"content": "so"}, "insufficient_system_resource"),
        "so",
        "insufficient_system_resource",
    ),
    "calls at the same time": Form(
        "chat-completions",
        chunks(
            {"tool_calls": [called("c1", "look", "", index=0), called("c2", "hear", "", index=1)]},
            {"tool_calls": [{"index": 1, "function": {"arguments": "{}"}}]},
            {"tool_calls": [{"index": 0, "function": {"arguments": '{"at": 1}'}}]},
            reason="tool_calls",
        ),
        "",
        "tool_use",
        (("look", {"at": 1}), ("hear", {})),
    ),
    "calls of the same id": Form(
        "chat-completions",
        chat({"content": "", "tool_calls": [called("c", "a", "{}"), called("c", "b", '{"x": 1}')]}),
        "",
        "tool_use",
        (("a", {}), ("b", {"x": 1})),
    ),
    "a call with an object": Form(
        "chat-completions",
        chat({"tool_calls": [called("c", "look", {"at": 1})]}, "tool_calls"),
        "",
        "tool_use",
        (("look", {"at": 1}),),
    ),
    "the function of old": Form(
        "chat-completions",
        chunks(
            {"function_call": {"name": "look", "arguments": ""}},
            {"function_call": {"arguments": '{"at": 1}'}},
            reason="function_call",
        ),
        "",
        "tool_use",
        (("look", {"at": 1}),),
    ),
    "a free text, piece by piece": Form(
        "chat-completions",
        chunks(
            {"tool_calls": [{"index": 0, "id": "c", "type": "custom", "custom": {"name": "calc"}}]},
            {"tool_calls": [{"index": 0, "custom": {"input": "4 + 4"}}]},
            reason="tool_calls",
        ),
        "",
        "tool_use",
        (("calc", {"input": "4 + 4"}),),
    ),
    "thinking of DeepSeek and others": Form(
        "chat-completions",
        chunks({"reasoning_content": "h"}, {"reasoning_content": "m"}, {"content": "so"}),
        "so",
        thinking="hm",
    ),
    "thinking of Groq and others": Form(
        "chat-completions", chat({"content": "so", "reasoning": "hm"}), "so", thinking="hm"
    ),
    "thinking of OpenRouter": Form(
        "chat-completions",
        chat({"content": "so", "reasoning": "hm", "reasoning_details": [DETAIL]}),
        "so",
        thinking="hm",
    ),
    "thinking of Mistral": Form(
        "chat-completions",
        chat(
            {
                "content": [
                    {
                        "type": "thinking",
                        "thinking": [{"type": "text", "text": "hm"}],
                        "closed": True,
                    },
                    {"type": "text", "text": "so"},
                    {"type": "reference", "reference_ids": [1]},
                ]
            }
        ),
        "so",
        thinking="hm",
        opaque=1,
    ),
    "thinking between tags is what was said": Form(
        "chat-completions",
        chunks({"content": "<think>h"}, {"content": "m</think>so"}),
        "<think>hm</think>so",
    ),
    "a cache, as DeepSeek counts it": Form(
        "chat-completions",
        chat({"content": "so"}, usage=USED | {"prompt_cache_hit_tokens": 4}),
        "so",
    ),
    "a cache, as gateways to Claude count it": Form(
        "chat-completions",
        chat(
            {"content": "so"},
            usage=USED
            | {
                "cache_read_input_tokens": 3,
                "cache_creation_input_tokens": 1,
                "prompt_tokens_details": None,
                "completion_tokens_details": None,
            },
        ),
        "so",
    ),
    "no answer but a call of sound": Form(
        "chat-completions",
        chat(
            {
                "content": None,
                "audio": {"id": "a", "data": "UklGRg==", "transcript": "so", "expires_at": 1},
            }
        )
        | {"usage": USED | {"prompt_tokens_details": {"audio_tokens": 1}}},
        "so",
    ),
}


# Responses

SAID = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
SAID["content"] = [{"type": "output_text", "text": "so", "annotations": [], "logprobs": []}]
NO = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
NO["content"] = [{"type": "refusal", "refusal": "I will not."}]
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look"}
CALL |= {"arguments": '{"at": 1}', "status": "completed"}
DRAWN = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "iVBO"}
RAN = {"type": "code_interpreter_call", "id": "ci_1", "code": "1", "container_id": "c"}
RAN |= {"status": "completed", "outputs": None}
FOUND = {"type": "file_search_call", "id": "fs_1", "status": "completed", "queries": ["x"]}
LISTED = {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": []}
NEW = {"type": "sparkle_call", "id": "sp_1", "status": "completed", "glitter": [1]}


def response(*output, status="completed", **more):
    used = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
    used |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {}}
    head = {"id": "resp_1", "object": "response", "model": "some-model", "status": status}
    return head | {"output": list(output), "usage": used, "error": None, **more}


def happened(*output, end="response.completed", status="completed", between=(), **more):
    made = [{"type": "response.created", "response": response(status="in_progress", usage=None)}]
    for index, item in enumerate(output):
        at = {"output_index": index, "item": item}
        made.append({"type": "response.output_item.added", **at})
        made += between
        made.append({"type": "response.output_item.done", **at})
    return [*made, {"type": end, "response": response(*output, status=status, **more)}]


CUT = CALL | {"arguments": '{"at', "status": "incomplete"}
FULL = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
BARE = [
    {"type": "response.created", "response": {"id": "resp_1", "model": "some-model"}},
    {
        "type": "response.output_item.added",
        "output_index": 0,
        "item": {"id": "m", "type": "message"},
    },
    {"type": "response.output_text.delta", "item_id": "m", "delta": "s"},
    {"type": "response.output_text.delta", "item_id": "m", "delta": "o"},
    {
        "type": "response.output_item.done",
        "output_index": 0,
        "item": {"id": "m", "type": "message"},
    },
    {
        "type": "response.completed",
        "response": {"usage": {"input_tokens": 5, "output_tokens": 2}},
    },
]

RESPONSES = {
    "a server that says nothing twice": Form("responses", BARE, "so"),
    "a refusal": Form("responses", response(NO), "I will not.", "safety"),
    "a refusal in a stream": Form("responses", happened(NO), "I will not.", "safety"),
    "tools of the service": Form("responses", response(FOUND, RAN, LISTED, SAID), "so", opaque=3),
    "a picture, and an item that is new": Form(
        "responses", happened(DRAWN, NEW, SAID), "so", opaque=2
    ),
    "a call": Form("responses", happened(CALL), "", "tool_use", (("look", {"at": 1}),)),
    "a call that a limit cut off": Form(
        "responses", response(SAID, CUT, **FULL), "so", "max_tokens"
    ),
    "a limit, in a stream": Form(
        "responses", happened(SAID, end="response.incomplete", **FULL), "so", "max_tokens"
    ),
    "a reason that nobody knows": Form(
        "responses",
        response(SAID, status="incomplete", incomplete_details={"reason": "sleepy"}),
        "so",
        "sleepy",
    ),
    "events that are new": Form(
        "responses",
        happened(
            SAID,
            between=[
                {"type": "response.sparkle.delta", "delta": "no"},
                {"type": "response.output_text.annotation.added", "annotation": {}},
                {
                    "type": "response.image_generation_call.partial_image",
                    "partial_image_b64": "iVBO",
                },
                {"type": "keepalive", "sequence_number": 3},
            ],
        ),
        "so",
    ),
}


# Google


def gemini(*parts, reason="STOP", used=None, **more):
    content = {"role": "model", "parts": list(parts)} if parts else {"role": "model"}
    candidate = {"content": content, "finishReason": reason, "index": 0, **more}
    usage = {"promptTokenCount": 5, "candidatesTokenCount": 2, "totalTokenCount": 7}
    return {"candidates": [candidate], "usageMetadata": used or usage, "modelVersion": "some-model"}


PICTURE = {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}}
GOOGLE = {
    "a picture that was only thought of": Form(
        "generate-content",
        gemini(PICTURE | {"thought": True}, {"text": "so"}, PICTURE),
        "so",
        opaque=1,
    ),
    "a part that is new": Form(
        "generate-content", gemini({"sparkle": {"glitter": 1}}, {"text": "so"}), "so", opaque=1
    ),
    "code and what it gave": Form(
        "generate-content",
        gemini(
            {"executableCode": {"language": "PYTHON", "code": "1"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
            {"text": "so"},
            groundingMetadata={"webSearchQueries": ["x"]},
            citationMetadata={"citations": []},
            avgLogprobs=-0.1,
            safetyRatings=[{"category": "X", "probability": "LOW"}],
        ),
        "so",
        opaque=2,
    ),
    "calls side by side, the first one signed": Form(
        "generate-content",
        gemini(
            {"functionCall": {"name": "look", "args": {"at": 1}}, "thoughtSignature": "c2ln"},
            {"functionCall": {"id": "x", "name": "hear"}},
        ),
        "",
        "tool_use",
        (("look", {"at": 1}), ("hear", {})),
    ),
    "a call that went wrong": Form(
        "generate-content",
        gemini(reason="MALFORMED_FUNCTION_CALL", finishMessage="no"),
        "",
        "error",
    ),
    "a filter": Form("generate-content", gemini(reason="PROHIBITED_CONTENT"), "", "safety"),
    "a second candidate": Form(
        "generate-content",
        gemini({"text": "so"})
        | {
            "candidates": [
                *gemini({"text": "so"})["candidates"],
                {"content": {"parts": [{"text": "no"}]}, "finishReason": "STOP", "index": 1},
            ]
        },
        "so",
    ),
    "a stream whose last piece is empty": Form(
        "generate-content",
        [
            {"candidates": [{"content": {"parts": [{"text": "hm", "thought": True}]}}]},
            {"candidates": [{"content": {"parts": [{"text": "so"}]}, "index": 0}]},
            gemini({"text": "", "thoughtSignature": "c2ln"}),
        ],
        "so",
        thinking="hm",
        opaque=1,
    ),
    "what was thought, and read from a cache": Form(
        "generate-content",
        gemini(
            {"text": "so"},
            used={
                "promptTokenCount": 5,
                "cachedContentTokenCount": 3,
                "thoughtsTokenCount": 4,
                "candidatesTokenCount": 2,
                "toolUsePromptTokenCount": 10,
                "trafficType": "ON_DEMAND",
            },
        ),
        "so",
        usage=(15, 6),
    ),
    "an envelope around each piece, and none": Form(
        "code-assist-stream",
        [
            {"response": {"candidates": [{"content": {"parts": [{"text": "s"}]}}]}, "traceId": "t"},
            gemini({"text": "o"}),
        ],
        "so",
    ),
}


# Ollama


def line(said, **more):
    return {"model": "some-model", "message": {"role": "assistant", "content": "", **said}, **more}


END = {"done": True, "done_reason": "stop", "prompt_eval_count": 5, "eval_count": 2}
OLLAMA = {
    "calls in lines of their own": Form(
        "ollama-chat",
        [
            line({"thinking": "hm"}, done=False),
            line(
                {"tool_calls": [{"function": {"name": "look", "arguments": {"at": 1}}}]}, done=False
            ),
            line({"tool_calls": [{"id": "x", "function": {"name": "hear", "arguments": {}}}]}),
            line({}, **END),
        ],
        "",
        "tool_use",
        (("look", {"at": 1}), ("hear", {})),
        "hm",
    ),
    "a limit, and facts that are new": Form(
        "ollama-chat",
        [
            line({"content": "so"}, done=False, sparkle=1),
            line({}, **END | {"done_reason": "length"}, total_duration=1, logprobs=[]),
        ],
        "so",
        "max_tokens",
    ),
    "one document": Form("ollama-chat", line({"content": "so"}, **END), "so"),
}

FORMS = {
    f"{api}: {name}": form
    for api, forms in (
        *(("anthropic", ANTHROPIC), ("chat", CHAT), ("responses", RESPONSES)),
        *(("google", GOOGLE), ("ollama", OLLAMA)),
    )
    for name, form in forms.items()
}
every_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


@every_form
def test_a_form_that_was_not_recorded_is_read_as_it_is(form):
    """By the reader as it is written here, and the independent reading says the same."""
    exchange = exchange_of(form)
    adapter = ADAPTERS[exchange.wire]

    answer, wrong = answers.judge(exchange, adapter)

    assert wrong is None
    calls = [(call.name, answers.meaning.call_of(call).arguments) for call in answer.message.calls]
    assert (answer.message.text or "", answer.message.stop) == (form.text, form.stop)
    assert (tuple(calls), answers.thinking_of(answer.message)) == (form.calls, form.thinking)
    assert (answer.usage.input, answer.usage.output) == form.usage
    content = answer.message.content
    parts = content if isinstance(content, tuple) else ()
    assert sum(type(part).__name__ == "Opaque" for part in parts) == form.opaque
    assert judge_sendable(exchange, answer, adapter) is None


# What may be added to any of them, and says nothing


def sprinkled(value, random, name=""):
    """JSON with fields in it that nobody knows, except where what is said may have any."""
    if isinstance(value, list):
        return [sprinkled(each, random, name) for each in value]
    if not isinstance(value, dict) or name in ("input", "args", "arguments"):
        return value
    made = {key: sprinkled(each, random, key) for key, each in value.items()}
    odd = random.choice((None, 1, "x", {"a": [1]}, [{"b": None}]))
    return made | {f"glitter_{random.randrange(9)}": odd}


def of_other_bytes(exchange, how, random):
    """The same answer, as another server, or another version of it, would write it."""
    data = exchange.data.decode()
    if how == "new fields":
        if not exchange.is_sse:
            rows = data.splitlines() if exchange.is_lines else [data]
            data = "\n".join(json.dumps(sprinkled(json.loads(row), random)) for row in rows)
            return replace(exchange, data=data.encode() + b"\n" * exchange.is_lines)
        rows = data.split("\n")
        for at, row in enumerate(rows):
            if row.startswith("data: {"):
                rows[at] = f"data: {json.dumps(sprinkled(json.loads(row[6:]), random))}"
        data = "\n".join(rows)
    elif how == "carriage returns":
        data = data.replace("\n", "\r\n")
    elif how == "no spaces":
        data = data.replace("data: ", "data:").replace("event: ", "event:")
    elif how == "keep-alives":
        data = ": waiting\n\n" + data.replace("\n\n", "\n\n: keep-alive\n\nid: 7\nretry: 100\n\n")
    return replace(exchange, data=data.encode())


@pytest.mark.parametrize("how", ["new fields", "carriage returns", "no spaces", "keep-alives"])
@every_form
def test_what_a_service_adds_changes_nothing(form, how):
    """Fields and comments that nobody knows, and every way to write a stream."""
    exchange, random = exchange_of(form), Random(f"{how}")
    if how != "new fields" and not exchange.is_sse:
        return
    adapter = ADAPTERS[exchange.wire]

    changed, wrong = answers.judge(of_other_bytes(exchange, how, random), adapter)

    answer = adapter.read(exchange)
    assert wrong is None or "block lost" in wrong  # of a block that is kept whole, with what is new
    assert heard(changed or adapter.read(of_other_bytes(exchange, how, random))) == heard(answer)


def heard(answer):
    said = [(call.name, call.arguments) for call in answer.message.calls]
    return answer.message.text, answers.thinking_of(answer.message), said, answer.message.stop


# Control


def test_control_a_reader_that_takes_another_word_for_the_end_is_found(monkeypatch):
    """Or agreeing would show nothing."""
    from holdfast.providers import anthropic_reader

    monkeypatch.delitem(anthropic_reader._STOPS, "model_context_window_exceeded")
    exchange = exchange_of(FORMS["anthropic: a window that is full"])

    _, wrong = answers.judge(exchange, ADAPTERS["anthropic"])

    assert wrong.startswith("stop:")


def test_an_error_in_the_middle_is_that_error_whatever_stands_around_it():
    """Typed, with what had come."""
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
    whole = events(words(["s", "o"]))
    for at in range(1, len(whole)):
        form = Form("messages", [*whole[:at], overloaded, *whole[at:]])
        exchange = exchange_of(form)

        with pytest.raises(ProviderError) as raised:
            ADAPTERS["anthropic"].read(exchange)

        assert type(raised.value).__name__ == "Overloaded"
        partial = raised.value.partial
        assert ((partial and partial.text) or "") in ("", "s", "so")
