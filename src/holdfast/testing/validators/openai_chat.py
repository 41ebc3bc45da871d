"""What OpenAI's Chat Completions accept.

First the settings and the tools, then each message by its role, then the conversation: every call
of an assistant is answered by the tool messages that directly follow it. Sentences in quotation
marks are the vendor's.

`lenient` is for servers that speak this wire and are neither OpenAI nor Azure (OpenRouter, Groq,
DeepSeek, Mistral, ...). They are known to take fields of their own anywhere
(`reasoning_content`, `cache_control`, `provider`), tools of their own types, an empty list of
tools, `tool_choice` without tools, longer call ids, unnamed schemas, and a file by its address.
Roles, order and pairs are theirs too, because a chat template stands behind them.
"""

import re
from typing import Any

from holdfast.testing.validators import openai_shared as shared
from holdfast.testing.validators.base import Node, Problem, repeated, root

FIELDS = {
    *("model", "messages", "audio", "frequency_penalty", "function_call", "functions"),
    *("logit_bias", "logprobs", "max_completion_tokens", "max_tokens", "metadata", "modalities"),
    *("n", "parallel_tool_calls", "prediction", "presence_penalty", "prompt_cache_key"),
    *("prompt_cache_retention", "reasoning_effort", "response_format", "safety_identifier"),
    *("seed", "service_tier", "stop", "store", "stream", "stream_options", "temperature"),
    *("tool_choice", "tools", "top_logprobs", "top_p", "user", "verbosity", "web_search_options"),
}
MESSAGE_FIELDS = {
    "system": {"content", "name"},
    "developer": {"content", "name"},
    "user": {"content", "name"},
    "assistant": {"content", "name", "refusal", "audio", "tool_calls", "function_call"}
    | {"annotations"},
    "tool": {"content", "tool_call_id"},
    "function": {"content", "name"},
}
PARTS = {
    "system": {"text"},
    "developer": {"text"},
    "user": {"text", "image_url", "input_audio", "file"},
    "assistant": {"text", "refusal"},
    "tool": {"text"},
    "function": {"text"},
}
# "Expected a string that matches the pattern '^[^\s<|\\/>]+$'."
PARTICIPANT = re.compile(r"[^\s<|\\/>]{1,64}")
CALL_ID_MAX = 40
CALLS_MAX = 128
STOPS_MAX = 4
# "Unsupported value: 'messages[0].role' does not support 'system' with this model."
NO_SYSTEM = ("o1-mini", "o1-preview")


def problems(body: Any, *, lenient: bool = False) -> list[Problem]:
    """Everything for which Chat Completions would refuse `body`."""
    request = root(body)
    if not request.expect("object"):
        return request.found
    if not lenient:
        request.only(FIELDS)  # "Unrecognized request argument supplied: x"
    request["model"].filled()
    shared.settings(request, lenient=lenient)
    _settings(request)
    _response_format(request, lenient=lenient)
    shared.needs_tools(request, lenient=lenient)
    _tools(request, lenient=lenient)
    if request["messages"].expect("array"):
        _messages(request, lenient=lenient)
    return request.found


# ---- settings ----


def _settings(request: Node) -> None:
    request["n"].between(1, 128, "integer")
    request["frequency_penalty"].between(-2, 2)
    request["presence_penalty"].between(-2, 2)
    request["max_tokens"].between(1, kind="integer")
    request["max_completion_tokens"].between(1, kind="integer")
    request["seed"].maybe("integer")
    request["logprobs"].maybe("boolean")
    request["reasoning_effort"].maybe_among(shared.EFFORTS)
    request["verbosity"].maybe_among(shared.VERBOSITIES)
    if request["max_tokens"].here and request["max_completion_tokens"].here:
        # "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
        request["max_tokens"].wrong("two-limits", "max_completion_tokens is set as well")
    if request["top_logprobs"].here and request["logprobs"].value is not True:
        # "The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled."
        request["top_logprobs"].wrong("only-with-logprobs", "logprobs is not enabled")
    if request["stop"].maybe("string", "array"):
        for stop in request["stop"]:
            stop.expect("string")
        if request["stop"].is_a("array") and len(request["stop"].value) > STOPS_MAX:
            request["stop"].wrong("too-many", f"at most {STOPS_MAX} sequences are allowed")


def _response_format(request: Node, *, lenient: bool) -> None:
    format = request["response_format"]
    if not format.maybe("object"):
        return
    if not format["type"].among({"text", "json_object", "json_schema"}):
        return
    if format["type"].value == "json_schema" and format["json_schema"].expect("object"):
        shared.json_schema(format["json_schema"], lenient=lenient)
    if format["type"].value == "json_object" and not lenient:
        texts = [m["content"].text for m in request["messages"]]
        texts += [p["text"].text for m in request["messages"] for p in m["content"]]
        if not shared.speaks_of_json(texts):
            format.wrong("json-unmentioned", "no message speaks of JSON")


# ---- tools ----


def _tools(request: Node, *, lenient: bool) -> None:
    for tool in request["tools"]:
        if not tool.expect("object"):
            continue
        if lenient and tool["type"].text not in {"function", "custom"}:
            tool["type"].filled()  # "openrouter:web_search", and what else there is
        elif tool["type"].among({"function", "custom"}, "unknown-tool-type"):
            _tool(tool)
    names = [tool[tool["type"].text]["name"] for tool in request["tools"]]
    for name in repeated(names):
        name.wrong("duplicate-tool", f"there are two tools named {name.text!r}")
    if request["functions"].maybe("array"):
        for function in request["functions"]:
            if function.expect("object"):
                shared.function(function, shared.NAME)
    _tool_choice(request["tool_choice"], {name.text for name in names}, lenient=lenient)


def _tool(tool: Node) -> None:
    kind = tool["type"].text
    if not tool[kind].expect("object"):
        return
    if kind == "function":
        shared.function(tool["function"], shared.NAME)
        return
    tool["custom"]["name"].matches(shared.NAME, "tool-name")
    if tool["custom"]["format"].maybe("object"):
        tool["custom"]["format"]["type"].among({"text", "grammar"})


def _tool_choice(choice: Node, names: set[str], *, lenient: bool) -> None:
    if not choice.maybe("string", "object"):
        return
    if choice.is_a("string"):
        choice.among({"none", "auto", "required"} | ({"any"} if lenient else set()))
        return
    if not choice["type"].among({"function", "custom", "allowed_tools"}):
        return
    if choice["type"].value == "allowed_tools":
        choice["allowed_tools"].expect("object")
        return
    name = choice[choice["type"].value]["name"]
    if name.filled() and name.value not in names:
        # "Tool choice 'x' not found in 'tools' parameter."
        name.wrong("unknown-tool", f"there is no tool {name.value!r}")


# ---- messages ----


def _messages(request: Node, *, lenient: bool) -> None:
    messages = list(request["messages"])
    if not messages:
        # "Invalid 'messages': empty array. Expected an array with minimum length 1"
        request["messages"].wrong("no-messages", "at least one message is required")
    for message in messages:
        if message.expect("object") and message["role"].among(set(PARTS), "unknown-role"):
            _message(message, lenient=lenient)
            if message["role"].value == "system" and request["model"].text.startswith(NO_SYSTEM):
                message["role"].wrong("no-system-role", "this model takes no system message")
    _pairs(messages)


def _message(message: Node, *, lenient: bool) -> None:
    role, content = message["role"].text, message["content"]
    if not lenient:
        message.only(MESSAGE_FIELDS[role] | {"role"})
    if message["name"].here:
        message["name"].matches(PARTICIPANT, "participant-name")
    if role == "assistant":
        _assistant(message, lenient=lenient)
    elif role == "function":
        message["name"].filled()
        content.maybe("string")
    else:
        content.expect("string", "array")
    if role == "tool":
        message["tool_call_id"].filled()
    if content.is_a("array"):
        if not content.value:
            # "Invalid 'messages[0].content': empty array. Expected an array with minimum length 1"
            content.wrong("empty-content", "a message has at least one part")
        for part in content:
            if part.expect("object") and part["type"].among(PARTS[role], "part-not-allowed"):
                _part(part, lenient=lenient)


def _assistant(message: Node, *, lenient: bool) -> None:
    content, calls = message["content"], message["tool_calls"]
    said = any(message[key].here for key in ("tool_calls", "function_call", "refusal", "audio"))
    if not said and not content.here:
        # "Invalid value for 'content': expected a string, got null."
        content.wrong("empty-content", "without calls an assistant says something")
    content.maybe("string", "array")
    if message["function_call"].maybe("object"):
        message["function_call"]["name"].matches(shared.NAME, "tool-name")
        message["function_call"]["arguments"].expect("string")
    if not calls.maybe("array"):
        return
    if not calls.value:
        # "Invalid 'messages[1].tool_calls': empty array. Expected an array with minimum length 1"
        calls.wrong("empty-calls", "leave the field out when there are no calls")
    if len(calls.value) > CALLS_MAX:
        calls.wrong("too-many", f"at most {CALLS_MAX} calls are allowed")
    for call in calls:
        if call.expect("object"):
            _call(call, lenient=lenient)
    for id in repeated([call["id"] for call in calls]):
        id.wrong("duplicate-call-id", f"there are two calls with the id {id.text!r}")


def _call(call: Node, *, lenient: bool) -> None:
    if call["id"].filled() and len(call["id"].value) > CALL_ID_MAX and not lenient:
        # "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum
        # length 40"
        call["id"].wrong("call-id", f"an id has at most {CALL_ID_MAX} characters")
    if call["type"].among({"function", "custom"}):
        inner = call[call["type"].value]
        if inner.expect("object"):
            inner["name"].matches(shared.NAME, "tool-name")
            # An empty string is taken; arguments that do not parse are not looked at.
            inner["arguments" if call["type"].value == "function" else "input"].expect("string")


def _part(part: Node, *, lenient: bool) -> None:
    kind = part["type"].text
    if kind in {"text", "refusal"}:
        part[kind].expect("string")
    elif kind == "image_url":
        image = part["image_url"]
        if image.expect("object", "string"):
            url = image if image.is_a("string") else image["url"]
            if url.filled():
                shared.data_url(url)
            image["detail"].maybe_among(shared.DETAILS)
    elif kind == "input_audio":
        if part["input_audio"].expect("object"):
            part["input_audio"]["data"].base64()
            part["input_audio"]["format"].among({"wav", "mp3"}, "media-type")
    elif part["file"].expect("object"):
        _file(part["file"], lenient=lenient)


def _file(file: Node, *, lenient: bool) -> None:
    if file["file_id"].here:
        file["file_id"].filled()
    elif file["file_data"].filled():
        # "Missing required parameter: 'messages[0].content[0].file.filename'."
        file["filename"].filled()
        if not file["file_data"].text.startswith("data:") and not lenient:
            file["file_data"].wrong("bad-data-url", "the bytes of a file go as a data URL")
        shared.data_url(file["file_data"])


def _pairs(messages: list[Node]) -> None:
    """The tool messages after a message with calls answer exactly these, once each."""
    asked: dict[str, Node] = {}
    answered: set[str] = set()
    for message in [*messages, None]:
        if message is None or message["role"].text != "tool":
            _unanswered(asked, answered)
            calls = list(message["tool_calls"]) if message is not None else []
            asked = {call["id"].text: call["id"] for call in calls}
            answered = set()
            continue
        id = message["tool_call_id"]
        if id.text in answered:
            # "Duplicate value for 'tool_call_id' of 'x' in message[3]"
            id.wrong("duplicate-result", f"{id.text!r} is answered twice")
        elif id.text and id.text not in asked:
            # "messages with role 'tool' must be a response to a preceeding message with
            # 'tool_calls'."
            id.wrong("tool-result-without-call", f"no call {id.text!r} stands directly before")
        answered.add(id.text)


def _unanswered(asked: dict[str, Node], answered: set[str]) -> None:
    for id, node in asked.items():
        if id and id not in answered:
            # "An assistant message with 'tool_calls' must be followed by tool messages responding
            # to each 'tool_call_id'."
            node.wrong("tool-call-without-result", f"no tool message answers {id!r}")
