"""Recordings of our own writing, one conversation for each wire: a question, a call and its result.

They have the shape of the recorded traffic, and cover the same ground where that is absent.
"""

import json

from holdfast.testing.replay.recordings import recording

ARGUMENTS = '{"city": "Turin", "unit": "c"}'
SEALED = "c2lnbmVkIGJ5IHRoZSB2ZW5kb3I="
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


def sse(*events, done=False, named=False):
    """The events as a stream, each with its name where the vendor names them."""
    lines = []
    for event in events:
        name = f"event: {event['type']}\n" if named else ""
        lines.append(f"{name}data: {json.dumps(event, ensure_ascii=False)}\n\n")
    return "".join(lines) + ("data: [DONE]\n\n" if done else "")


def exchange(api, path, request, response, status=200):
    framing = "ndjson" if api == "ollama-chat" else "sse"
    is_stream = isinstance(response, str)
    kind = {framing: response} if is_stream else {"body": response}
    media_type = {"sse": "text/event-stream", "ndjson": "application/x-ndjson"}[framing]
    media_type = media_type if is_stream else "application/json"
    return {
        "api": api,
        "request": {"method": "POST", "path": path, "headers": {}, "body": request},
        "response": {"status": status, "headers": {"content-type": media_type}, **kind},
    }


def raw_file(provider, *exchanges, tags=("text", "tools")):
    return {"id": "x", "provider": provider, "tags": list(tags), "exchanges": list(exchanges)}


def made(provider, *exchanges, tags=("text", "tools"), file="ours.json"):
    return recording(raw_file(provider, *exchanges, tags=tags), file)


# ---- Anthropic ----

ANTHROPIC_TOOLS = [{"name": "weather", "input_schema": SCHEMA}]
ANTHROPIC_ASKED = {
    "model": "claude-x",
    "max_tokens": 4000,
    "system": "Be brief.",
    "tools": ANTHROPIC_TOOLS,
    "messages": [{"role": "user", "content": "Will it rain in Turin?"}],
}
ANTHROPIC_BLOCKS = [
    {"type": "thinking", "thinking": "I look it up. ☂", "signature": SEALED},
    {"type": "redacted_thinking", "data": "c2VhbGVk"},
    {"type": "text", "text": "One moment…"},
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
    {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": json.loads(ARGUMENTS)},
]
ANTHROPIC_USAGE = {
    "input_tokens": 10,
    "cache_read_input_tokens": 3,
    "cache_creation_input_tokens": 2,
    "output_tokens": 7,
}
ANTHROPIC_ANSWER = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-x",
    "content": ANTHROPIC_BLOCKS,
    "stop_reason": "tool_use",
    "usage": ANTHROPIC_USAGE,
}
ANTHROPIC_NEXT = {
    **ANTHROPIC_ASKED,
    "messages": [
        *ANTHROPIC_ASKED["messages"],
        {"role": "assistant", "content": ANTHROPIC_BLOCKS},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "It will."},
                {"type": "text", "text": "And tomorrow?", "cache_control": {"type": "ephemeral"}},
            ],
        },
    ],
}


def anthropic_stream():
    start = {**ANTHROPIC_ANSWER, "content": [], "stop_reason": None}
    start["usage"] = {**ANTHROPIC_USAGE, "output_tokens": 1}
    events = [{"type": "message_start", "message": start}, {"type": "ping"}]
    pieces = {
        "thinking": ("thinking_delta", "thinking"),
        "text": ("text_delta", "text"),
    }
    for index, block in enumerate(ANTHROPIC_BLOCKS):
        kind = block["type"]
        empty = {**block, **({"input": {}} if "input" in block else {})}
        deltas = []
        if kind in pieces:
            delta, field = pieces[kind]
            empty = {**block, field: "", **({"signature": ""} if kind == "thinking" else {})}
            deltas = [{"type": delta, field: part} for part in halves(block[field])]
        if kind == "thinking":
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        if "input" in block:
            parts = halves(json.dumps(block["input"]))
            deltas = [{"type": "input_json_delta", "partial_json": part} for part in parts]
        events.append({"type": "content_block_start", "index": index, "content_block": empty})
        events += [{"type": "content_block_delta", "index": index, "delta": d} for d in deltas]
        events.append({"type": "content_block_stop", "index": index})
    usage = {"output_tokens": 7}
    delta = {"stop_reason": "tool_use", "stop_sequence": None}
    events.append({"type": "message_delta", "delta": delta, "usage": usage})
    events.append({"type": "message_stop"})
    return sse(*events, named=True)


def halves(text):
    return [text[: len(text) // 2], text[len(text) // 2 :]]


def anthropic(stream=False):
    first = anthropic_stream() if stream else ANTHROPIC_ANSWER
    last = {**ANTHROPIC_ANSWER, "stop_reason": "end_turn"}
    last["content"] = [{"type": "text", "text": "Sun."}]
    return made(
        "anthropic",
        exchange("messages", "/v1/messages", ANTHROPIC_ASKED, first),
        exchange("messages", "/v1/messages", ANTHROPIC_NEXT, last),
    )


# ---- OpenAI Chat Completions ----

CHAT_CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "weather", "arguments": ARGUMENTS},
}
CHAT_ASKED = {
    "model": "gpt-x",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Will it rain in Turin?"},
    ],
    "tools": [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}],
}
CHAT_USAGE = {
    "prompt_tokens": 15,
    "completion_tokens": 7,
    "total_tokens": 22,
    "prompt_tokens_details": {"cached_tokens": 3},
    "completion_tokens_details": {"reasoning_tokens": 2},
}
CHAT_MESSAGE = {"role": "assistant", "content": "One moment…", "tool_calls": [CHAT_CALL]}
CHAT_ANSWER = {
    "id": "chatcmpl-1",
    "choices": [{"index": 0, "message": CHAT_MESSAGE, "finish_reason": "tool_calls"}],
    "usage": CHAT_USAGE,
}
CHAT_NEXT = {
    **CHAT_ASKED,
    "messages": [
        *CHAT_ASKED["messages"],
        CHAT_MESSAGE,
        {"role": "tool", "tool_call_id": "call_1", "content": "It will."},
    ],
}


CHUNK = "chat.completion.chunk"


def chat_chunk(delta, reason=None, **more):
    return {
        "id": "chatcmpl-1",
        "object": CHUNK,
        "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
        **more,
    }


def chat_stream():
    first, second = halves(ARGUMENTS)
    begun = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": ""}}
    call = {"index": 0, **begun}
    return sse(
        {"id": "", "object": "", "choices": [], "prompt_filter_results": []},  # as Azure begins
        chat_chunk({"role": "assistant", "content": ""}),
        chat_chunk({"content": "One "}),
        chat_chunk({"content": "moment…"}),
        chat_chunk({"tool_calls": [call]}),
        chat_chunk({"tool_calls": [{"index": 0, "function": {"arguments": first}}]}),
        chat_chunk({"tool_calls": [{"index": 0, "function": {"arguments": second}}]}),
        chat_chunk({}, "tool_calls"),
        {"id": "chatcmpl-1", "object": CHUNK, "choices": [], "usage": CHAT_USAGE},
        done=True,
    )


def openai_chat(stream=False, provider="openai-chat"):
    path = "/v1/chat/completions"
    last = {"role": "assistant", "content": "Sun."}
    answer = {**CHAT_ANSWER, "choices": [{"index": 0, "message": last, "finish_reason": "stop"}]}
    return made(
        provider,
        exchange("chat-completions", path, CHAT_ASKED, chat_stream() if stream else CHAT_ANSWER),
        exchange("chat-completions", path, CHAT_NEXT, answer),
    )


# ---- OpenAI Responses ----

REASONING = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "I look it up."}],
    "encrypted_content": SEALED,
}
RESPONSE_CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "weather",
    "arguments": ARGUMENTS,
}
RESPONSE_SAID = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "One moment…", "annotations": []}],
}
RESPONSES_ASKED = {
    "model": "gpt-x",
    "instructions": "Be brief.",
    "input": "Will it rain in Turin?",
    "store": False,
    "tools": [{"type": "function", "name": "weather", "parameters": SCHEMA}],
}
RESPONSES_USAGE = {
    "input_tokens": 15,
    "input_tokens_details": {"cached_tokens": 3},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 22,
}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "status": "completed",
    "model": "gpt-x",
    "output": [REASONING, RESPONSE_SAID, RESPONSE_CALL],
    "usage": RESPONSES_USAGE,
}
RESPONSES_NEXT = {
    **RESPONSES_ASKED,
    "input": [
        {"role": "user", "content": "Will it rain in Turin?"},
        REASONING,
        RESPONSE_SAID,
        RESPONSE_CALL,
        {"type": "function_call_output", "call_id": "call_1", "output": "It will."},
    ],
}


EMPTY_TEXT = {"type": "output_text", "text": "", "annotations": []}


def responses_stream():
    first, second = halves(ARGUMENTS)
    begun = {**RESPONSE, "status": "in_progress", "output": [], "usage": None}
    said = {"output_index": 1, "content_index": 0}
    thought = {"output_index": 0, "summary_index": 0}
    call = {"output_index": 2}
    return sse(
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", **thought, "item": {**REASONING, "summary": []}},
        {"type": "response.reasoning_summary_text.delta", **thought, "delta": "I look "},
        {"type": "response.reasoning_summary_text.delta", **thought, "delta": "it up."},
        {"type": "response.output_item.done", **thought, "item": REASONING},
        {"type": "response.output_item.added", **said, "item": {**RESPONSE_SAID, "content": []}},
        {"type": "response.content_part.added", **said, "part": EMPTY_TEXT},
        {"type": "response.output_text.delta", **said, "delta": "One "},
        {"type": "response.output_text.delta", **said, "delta": "moment…"},
        {"type": "response.output_item.done", **said, "item": RESPONSE_SAID},
        {"type": "response.output_item.added", **call, "item": {**RESPONSE_CALL, "arguments": ""}},
        {"type": "response.function_call_arguments.delta", **call, "delta": first},
        {"type": "response.function_call_arguments.delta", **call, "delta": second},
        {"type": "response.output_item.done", **call, "item": RESPONSE_CALL},
        {"type": "response.completed", "response": RESPONSE},
        named=True,
    )


def openai_responses(stream=False, provider="openai-responses"):
    last = {**RESPONSE, "id": "resp_2", "output": [RESPONSE_SAID]}
    first = responses_stream() if stream else RESPONSE
    return made(
        provider,
        exchange("responses", "/v1/responses", RESPONSES_ASKED, first),
        exchange("responses", "/v1/responses", RESPONSES_NEXT, last),
    )


# ---- Google ----

GOOGLE_PARTS = [
    {"text": "I look it up.", "thought": True},
    {"text": "One moment…"},
    {
        "functionCall": {"name": "weather", "args": json.loads(ARGUMENTS)},
        "thoughtSignature": SEALED,
    },
]
GOOGLE_ASKED = {
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
    "contents": [{"role": "user", "parts": [{"text": "Will it rain in Turin?"}]}],
    "tools": [{"functionDeclarations": [{"name": "weather", "parameters": {"type": "OBJECT"}}]}],
}
GOOGLE_USAGE = {
    "promptTokenCount": 12,
    "toolUsePromptTokenCount": 3,
    "cachedContentTokenCount": 3,
    "candidatesTokenCount": 5,
    "thoughtsTokenCount": 2,
    "totalTokenCount": 22,
}
GOOGLE_NEXT = {
    **GOOGLE_ASKED,
    "contents": [
        *GOOGLE_ASKED["contents"],
        {"role": "model", "parts": GOOGLE_PARTS},
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "weather", "response": {"result": "It will."}}}
            ],
        },
    ],
}


def google_answer(parts, reason="STOP", usage=GOOGLE_USAGE):
    candidate = {"content": {"role": "model", "parts": parts}, "index": 0}
    if reason:
        candidate["finishReason"] = reason
    return {"candidates": [candidate], "usageMetadata": usage, "responseId": "r1"}


def google_stream():
    begun = {"promptTokenCount": 12}
    chunks = [google_answer([part], None, begun) for part in GOOGLE_PARTS]
    return [*chunks, google_answer([{"text": ""}])]


def google(stream=False):
    path = "/v1beta/models/gemini-x:generateContent"
    api, answer = "generate-content", google_answer(GOOGLE_PARTS)
    if stream == "array":
        api, answer = "stream-generate-content", google_stream()
    elif stream:
        api, answer = "stream-generate-content", sse(*google_stream()).replace("\n", "\r\n")
    return made(
        "google",
        exchange(api, path, GOOGLE_ASKED, answer),
        exchange("generate-content", path, GOOGLE_NEXT, google_answer([{"text": "Sun."}])),
    )


# ---- Code Assist ----


def wrapped(answer, **beside):
    return {"response": answer, "traceId": "trace-1", **beside}


def code_assist(stream=False):
    def asked(request):
        return {"model": "gemini-x", "project": "p", "user_prompt_id": "1", "request": request}

    path = "/v1internal:generateContent"
    api, answer = "code-assist-generate", wrapped(google_answer(GOOGLE_PARTS))
    if stream:
        api, path = "code-assist-stream", "/v1internal:streamGenerateContent?alt=sse"
        answer = sse(*map(wrapped, google_stream())).replace("\n", "\r\n")
    last = wrapped(google_answer([{"text": "Sun."}]))
    return made(
        "code-assist",
        exchange(api, path, asked(GOOGLE_ASKED), answer),
        exchange("code-assist-generate", path, asked(GOOGLE_NEXT), last),
    )


# ---- Ollama ----

OLLAMA_CALL = {"id": "call_1", "function": {"name": "weather", "arguments": json.loads(ARGUMENTS)}}
OLLAMA_SAID = {
    "role": "assistant",
    "content": "One moment…",
    "thinking": "I look it up.",
    "tool_calls": [OLLAMA_CALL],
}
OLLAMA_END = {
    "done": True,
    "done_reason": "stop",
    "prompt_eval_count": 15,
    "prompt_eval_cached_count": 3,
    "eval_count": 7,
}
OLLAMA_ASKED = {
    "model": "qwen-x",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Will it rain in Turin?"},
    ],
    "tools": [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}],
}
OLLAMA_RESULT = {
    "role": "tool",
    "content": "It will.",
    "tool_name": "weather",
    "tool_call_id": "call_1",
}
OLLAMA_NEXT = {
    **OLLAMA_ASKED,
    "messages": [*OLLAMA_ASKED["messages"], OLLAMA_SAID, OLLAMA_RESULT],
}


def ollama_line(message, **more):
    said = {"role": "assistant", "content": "", **message}
    return {"model": "qwen-x", "created_at": "now", "message": said, "done": False, **more}


def ollama_stream():
    pieces = [{"thinking": "I look "}, {"thinking": "it up."}, {"content": "One "}]
    pieces += [{"content": "moment…"}, {"tool_calls": [OLLAMA_CALL]}]
    lines = [*map(ollama_line, pieces), ollama_line({}, **OLLAMA_END)]
    return "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in lines)


def ollama(stream=False):
    path, last = "/api/chat", ollama_line({"content": "Sun."}, **OLLAMA_END)
    first = ollama_stream() if stream else ollama_line(OLLAMA_SAID, **OLLAMA_END)
    return made(
        "ollama",
        exchange("ollama-chat", path, OLLAMA_ASKED, first),
        exchange("ollama-chat", path, OLLAMA_NEXT, last),
    )


ALL = {
    "anthropic": anthropic,
    "openai-chat": openai_chat,
    "openai-responses": openai_responses,
    "google": google,
    "code-assist": code_assist,
    "ollama": ollama,
}
STREAMS = {
    **{wire: lambda make=make: make(stream=True) for wire, make in ALL.items()},
    "google-array": lambda: google(stream="array"),
}
