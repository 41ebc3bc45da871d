"""What Ollama's own chat accepts (`/api/chat`).

Most of its rules are the types of its Go structs: a body that does not decode into them is refused
("json: cannot unmarshal array into Go struct field ChatRequest.messages.content of type string").
Sentences in quotation marks are the server's.

Two kinds of problem it does not tell, and they are told here because something is lost without a
word: a field that it does not know is passed over, and calls and results that do not belong
together go into the model's template as they are.
"""

import re
from typing import Any

from holdfast.testing.validators.base import Node, Problem, root

FIELDS = {
    *("model", "messages", "tools", "format", "options", "stream", "think", "keep_alive"),
    *("truncate", "shift", "logprobs", "top_logprobs", "runner"),
}
# "invalid role: x, must be one of [system user assistant tool]"
ROLES = {"system", "user", "assistant", "tool"}
MESSAGE_FIELDS = {
    *("role", "content", "thinking", "images", "tool_calls", "tool_name", "tool_call_id"),
}
# "invalid think value: x (must be "high", "medium", "low", true, or false)"
LEVELS = {"high", "medium", "low", "max"}
WHOLE = {
    *("num_ctx", "num_batch", "num_gpu", "main_gpu", "num_thread", "num_keep", "num_predict"),
    *("seed", "top_k", "repeat_last_n", "mirostat"),
}
FLOATS = {
    *("temperature", "top_p", "min_p", "tfs_z", "typical_p", "repeat_penalty"),
    *("presence_penalty", "frequency_penalty", "mirostat_tau", "mirostat_eta"),
}
OTHERS = {"stop", "use_mmap", "use_mlock", "low_vram", "numa", "penalize_newline", "vocab_only"}
LOGPROBS_MAX = 20
JSON = ("", "json")
# host/namespace/model:tag, each of them letters, digits and a few marks
MODEL = re.compile(r"[\w.-]+(?:(?::\d+)?/[\w.-]+){0,3}(?::[\w.-]+)?", re.ASCII)


def problems(body: Any) -> list[Problem]:
    """Everything for which `/api/chat` would refuse `body`, or pass over what it says."""
    request = root(body)
    if not request.expect("object"):
        return request.found
    request.only(FIELDS)
    _settings(request)
    _options(request["options"])
    _tools(request["tools"])
    if request["messages"].expect("array"):
        _messages(request["messages"])
    return request.found


# ---- settings ----


def _settings(request: Node) -> None:
    if request["model"].filled():  # "model is required"
        request["model"].matches(MODEL, "model-name")  # "invalid model name"
    for name in ("stream", "truncate", "shift", "logprobs"):
        request[name].maybe("boolean")
    # "top_logprobs must be between 0 and 20"
    request["top_logprobs"].between(0, LOGPROBS_MAX, "integer")
    request["keep_alive"].maybe("string", "number")
    if request["think"].maybe("boolean", "string") and request["think"].is_a("string"):
        request["think"].among(LEVELS)
    format = request["format"]
    if format.maybe("string", "object") and format.is_a("string") and format.text not in JSON:
        # "invalid format: x; expected "json" or a valid JSON Schema object"
        format.wrong("bad-format", "this is neither json nor a schema")


def _options(options: Node) -> None:
    if not options.maybe("object"):
        return
    options.only(WHOLE | FLOATS | OTHERS)  # "invalid option provided", in the server's log alone
    for name in WHOLE:
        options[name].maybe("integer")  # "option "num_ctx" must be of type integer"
    for name in FLOATS:
        options[name].maybe("number")
    options["num_ctx"].between(1)
    options["stop"].maybe("array")
    for stop in options["stop"]:
        stop.expect("string")


# ---- tools ----


def _tools(tools: Node) -> None:
    if not tools.maybe("array"):
        return
    for tool in tools:
        if tool.expect("object") and tool["function"].expect("object"):
            tool["type"].among({"function"})
            function = tool["function"]
            function["name"].filled()
            function["description"].maybe("string")
            _parameters(function["parameters"])


def _parameters(schema: Node) -> None:
    """A struct, too: `type` is a word, `properties` are objects, and what they have is typed."""
    if not schema.expect("object"):
        return
    schema["type"].maybe("string")
    _strings(schema["required"])
    if not schema["properties"].maybe("object"):
        return
    for name in schema["properties"].keys:
        _property(schema["properties"][name])


def _property(schema: Node) -> None:
    if not schema.expect("object"):
        return
    if schema["type"].maybe("string", "array"):
        _strings(schema["type"])
    schema["description"].maybe("string")
    schema["enum"].maybe("array")
    schema["anyOf"].maybe("array")


def _strings(names: Node) -> None:
    if names.is_a("string"):
        return
    if names.maybe("array"):
        for name in names:
            name.expect("string")


# ---- messages ----


def _messages(messages: Node) -> None:
    if not messages.value:
        # "If the messages array is empty, the model will be loaded into memory."
        messages.wrong("no-messages", "without messages a model is loaded, and nothing answered")
    for message in messages:
        _message(message)
    _pairs(list(messages))


def _message(message: Node) -> None:
    if not message.expect("object"):
        return
    message.only(MESSAGE_FIELDS)
    message["role"].among(ROLES, "unknown-role")
    for name in ("content", "thinking", "tool_name", "tool_call_id"):
        message[name].maybe("string")
    if message["images"].maybe("array"):
        for image in message["images"]:
            image.base64()  # "illegal base64 data at input byte 4"
    if message["tool_calls"].maybe("array"):
        for call in message["tool_calls"]:
            _call(call)
    is_said = any(message[name].value for name in ("content", "images", "tool_calls", "thinking"))
    if not is_said and message["role"].text != "tool":
        message.wrong("empty-content", "a message says something")


def _call(call: Node) -> None:
    if call.expect("object") and call["function"].expect("object"):
        call["id"].maybe("string")
        call["function"]["name"].filled()
        # "cannot unmarshal string into Go struct field [...] of type map[string]interface {}"
        call["function"]["arguments"].expect("object")


def _pairs(messages: list[Node]) -> None:
    """Each call has its result directly behind its message: by the id, or else in order."""
    waiting: list[Node] = []
    for message in [*messages, root({})]:
        if message["role"].text == "tool":
            _answered(message, waiting)
            continue
        for call in waiting:
            call.wrong("tool-call-without-result", "no result follows this call")
        waiting = list(message["tool_calls"]) if message["role"].text == "assistant" else []


def _answered(result: Node, waiting: list[Node]) -> None:
    id = result["tool_call_id"].text
    found = next((call for call in waiting if id and call["id"].text == id), None)
    if found is None and waiting and not (id and waiting[0]["id"].text):
        found = waiting[0]
    if found is None:
        result.wrong("tool-result-without-call", "no call before it waits for this result")
    else:
        waiting.remove(found)
