"""What OpenAI's Responses API accepts.

The input is a list of items: messages, what the model did (calls, reasoning), what came of it
(outputs), and items of server tools, which are taken back as they came. Items are checked one by
one (`_item`), then as a list: each call has its output behind it and each output its call before
it, and reasoning stands before the item it led to. Sentences in quotation marks are the vendor's.

One rule needs more than the body and is left out: where the server remembers that reasoning led
to an item, the item is refused without it ("Item 'fc_1' of type 'function_call' was provided
without its required 'reasoning' item"). A renderer that keeps ids keeps the reasoning as well.

`lenient` is for servers that speak this wire and are neither OpenAI nor Azure (xAI, DeepSeek, ...).
They are known to take fields of their own, ids in a form of their own, and reasoning with its
text and no encrypted content. One rule is added: an assistant's message between a call and its
output ends the turn for them ("No tool output found for tool call call-a."), which OpenAI allows,
because its own models answer like that.
"""

import re
from typing import Any

from holdfast.testing.validators import openai_shared as shared
from holdfast.testing.validators.base import Node, Problem, repeated, root

FIELDS = {
    *("background", "client_metadata", "context_management", "conversation", "include", "input"),
    *("instructions", "max_output_tokens", "max_tool_calls", "metadata", "model", "moderation"),
    *("parallel_tool_calls", "previous_response_id", "prompt", "prompt_cache_key"),
    *("prompt_cache_retention", "reasoning", "safety_identifier", "service_tier", "store"),
    *("stream", "stream_options", "temperature", "text", "tool_choice", "tools", "top_logprobs"),
    *("top_p", "truncation", "user"),
}
INCLUDES = {
    *(
        "reasoning.encrypted_content",
        "message.output_text.logprobs",
        "message.input_image.image_url",
    ),
    *("file_search_call.results", "web_search_call.results", "web_search_call.action.sources"),
    *("code_interpreter_call.outputs", "computer_call_output.output.image_url"),
}
TOOL_TYPES = {
    *("function", "custom", "file_search", "web_search", "web_search_preview", "computer"),
    *("computer_use_preview", "code_interpreter", "image_generation", "local_shell", "shell"),
    *("mcp", "apply_patch", "tool_search", "namespace"),
}
ROLES = {"user", "assistant", "system", "developer"}
# A call, and the item that answers it; both carry the call_id.
ANSWERS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "computer_call": "computer_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
}
CALLS_OF = {output: call for call, output in ANSWERS.items()}
# Items of server tools and of the vendor itself: they go back as they came.
BY_SERVER = {
    *("file_search_call", "web_search_call", "code_interpreter_call", "image_generation_call"),
    *("mcp_list_tools", "mcp_call", "mcp_approval_request", "local_shell_call", "compaction"),
    *("tool_search_call", "tool_search_output", "program", "program_output"),
}
BY_PROGRAM = {"mcp_approval_response", "local_shell_call_output", "additional_tools"}
TYPES = {"message", "reasoning", "item_reference", *ANSWERS, *CALLS_OF, *BY_SERVER, *BY_PROGRAM}
# What a model says; reasoning leads to one of these.
SAID = {"message", *ANSWERS, *BY_SERVER, "reasoning", "item_reference"}

# "Invalid 'input[2].id': 'call_1'. Expected an ID that begins with 'fc'."
PREFIXES = {"message": "msg", "function_call": "fc", "reasoning": "rs", "custom_tool_call": "ctc"}
# "Expected an ID that contains letters, numbers, underscores, or dashes"
ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
CALL_ID_MAX = 64
OUTPUT_TOKENS_MIN = 16


def problems(body: Any, *, lenient: bool = False) -> list[Problem]:
    """Everything for which the Responses API would refuse `body`."""
    request = root(body)
    if not request.expect("object"):
        return request.found
    if not lenient:
        request.only(FIELDS)  # "Unknown parameter: 'x'."
    shared.settings(request, lenient=lenient)
    _settings(request, lenient=lenient)
    _format(request, lenient=lenient)
    has_more_tools = any(_type(item) == "additional_tools" for item in request["input"])
    shared.needs_tools(request, lenient=lenient or has_more_tools)
    _tools(request)
    _tool_choice(request["tool_choice"])
    if request["input"].maybe("string", "array"):
        items = list(request["input"])
        for item in items:
            if item.expect("object"):
                _item(item, lenient=lenient)
        _pairs(request, items, lenient=lenient)
        _reasoning(request, items, lenient=lenient)
    return request.found


# ---- settings ----


def _settings(request: Node, *, lenient: bool) -> None:
    sources = ("input", "prompt", "previous_response_id", "conversation")
    if not any(request[source].here for source in sources):
        # "Missing required parameter: 'input'."
        request["input"].wrong("missing-field", "there is nothing to answer")
    if request["input"].value == [] and not any(request[source].here for source in sources[1:]):
        request["input"].wrong("no-messages", "at least one item is required")
    if not request["prompt"].here:
        request["model"].filled()
    if request["previous_response_id"].here and request["conversation"].here:
        # The reference: previous_response_id "cannot be used in conjunction with conversation".
        request["conversation"].wrong("two-histories", "previous_response_id is set as well")
    request["instructions"].maybe("string")
    # "integer below minimum value. Expected a value >= 16"
    request["max_output_tokens"].between(OUTPUT_TOKENS_MIN, kind="integer")
    request["truncation"].maybe_among({"auto", "disabled"})
    if request["background"].value is True and request["store"].value is False:
        # What runs in the background is kept, to be asked for later.
        request["background"].wrong("background-not-stored", "this needs store to be true")
    if request["reasoning"].maybe("object") and not lenient:
        request["reasoning"]["effort"].maybe_among(shared.EFFORTS)
        request["reasoning"]["summary"].maybe_among({"auto", "concise", "detailed"})
    if request["include"].maybe("array") and not lenient:
        for include in request["include"]:
            include.among(INCLUDES)


def _format(request: Node, *, lenient: bool) -> None:
    if not request["text"].maybe("object"):
        return
    request["text"]["verbosity"].maybe_among(shared.VERBOSITIES)
    format = request["text"]["format"]
    if not format.maybe("object"):
        return
    if not format["type"].among({"text", "json_object", "json_schema"}):
        return
    if format["type"].value == "json_schema":
        shared.json_schema(format, lenient=lenient)
    if format["type"].value == "json_object" and not lenient:
        texts = [request["input"].text] + [item["content"].text for item in request["input"]]
        texts += [part["text"].text for item in request["input"] for part in item["content"]]
        if not shared.speaks_of_json(texts):
            format.wrong("json-unmentioned", "no item of the input speaks of JSON")


def _tools(request: Node) -> None:
    for tool in request["tools"]:
        if not tool.expect("object") or not tool["type"].among(TOOL_TYPES, "unknown-tool-type"):
            continue
        if tool["type"].value == "function":
            shared.function(tool, shared.LONG_NAME)
        elif tool["type"].value == "custom":
            tool["name"].matches(shared.LONG_NAME, "tool-name")
        elif tool["type"].value == "mcp":
            tool["server_label"].filled()
            if not tool["connector_id"].here:
                tool["server_url"].filled()
        elif tool["type"].value == "file_search":
            tool["vector_store_ids"].expect("array")
        elif tool["type"].value == "namespace":
            tool["name"].filled()
            tool["tools"].expect("array")
    named = [tool["name"] for tool in request["tools"] if tool["type"].text != "mcp"]
    for name in repeated(named):
        name.wrong("duplicate-tool", f"there are two tools named {name.text!r}")


def _tool_choice(choice: Node) -> None:
    if not choice.maybe("string", "object"):
        return
    if choice.is_a("string"):
        choice.among({"none", "auto", "required"})
    elif choice["type"].filled() and choice["type"].value in {"function", "custom"}:
        choice["name"].filled()


# ---- items ----


def _type(item: Node) -> str:
    """A message may leave its type out."""
    return "message" if not item["type"].here and item["role"].here else item["type"].text


def _item(item: Node, *, lenient: bool) -> None:
    kind = _type(item)
    if kind != "message" and not item["type"].among(TYPES, "unknown-item"):
        return
    if item["id"].here and not lenient:
        _id(item["id"], kind)
    if kind == "message":
        _message(item, lenient=lenient)
    elif kind == "reasoning":
        _reasoning_item(item)
    elif kind in ANSWERS:
        _call(item, kind)
    elif kind in CALLS_OF:
        _call_id(item["call_id"])
        if item["output"].expect("string", "array", "object"):
            for part in item["output"]:
                _part(part, {"input_text", "input_image", "input_file"})
    elif kind == "item_reference":
        item["id"].filled()
    elif kind == "compaction":
        item["encrypted_content"].filled()


def _id(id: Node, kind: str) -> None:
    prefix = PREFIXES.get(kind, "")
    if id.matches(ID, "item-id") and not id.text.startswith(prefix):
        id.wrong("item-id", f"the id of a {kind} begins with {prefix!r}")


def _call(item: Node, kind: str) -> None:
    _call_id(item["call_id"])
    if kind in {"function_call", "custom_tool_call"}:
        item["name"].matches(shared.LONG_NAME, "tool-name")
        item["arguments" if kind == "function_call" else "input"].expect("string")


def _call_id(id: Node) -> None:
    if id.filled() and len(id.value) > CALL_ID_MAX:
        # "Invalid 'input[1].call_id': string too long. Expected a string with maximum length 64"
        id.wrong("call-id", f"an id has at most {CALL_ID_MAX} characters")


def _message(item: Node, *, lenient: bool) -> None:
    if not item["role"].among(ROLES, "unknown-role"):
        return
    if not lenient:
        item.only({"type", "role", "content", "id", "status", "phase"})
    if not item["content"].expect("string", "array"):
        return
    # "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'."
    said = {"output_text", "refusal"}
    heard = {"input_text", "input_image", "input_file", "input_audio"}
    for part in item["content"]:
        _part(part, said if item["role"].value == "assistant" else heard)


def _part(part: Node, allowed: set[str]) -> None:
    if not part.expect("object") or not part["type"].among(allowed, "part-not-allowed"):
        return
    kind = part["type"].value
    if kind in {"input_text", "output_text"}:
        part["text"].expect("string")
    elif kind == "refusal":
        part["refusal"].expect("string")
    elif kind == "input_image":
        part["detail"].maybe_among(shared.DETAILS)
        if not part["file_id"].here and part["image_url"].filled():
            shared.data_url(part["image_url"])
    elif kind == "input_file":
        _file(part)
    elif part["input_audio"].expect("object"):
        part["input_audio"]["data"].base64()
        part["input_audio"]["format"].among({"wav", "mp3"}, "media-type")


def _file(part: Node) -> None:
    if part["file_id"].here or part["file_url"].here:
        part["file_id" if part["file_id"].here else "file_url"].filled()
    elif part["file_data"].filled():
        part["filename"].filled()
        shared.data_url(part["file_data"])


def _reasoning_item(item: Node) -> None:
    item["encrypted_content"].maybe("string")
    if item["summary"].expect("array"):
        for part in item["summary"]:
            if part["type"].among({"summary_text"}, "part-not-allowed"):
                part["text"].expect("string")
    if item["content"].maybe("array"):
        for part in item["content"]:
            if part["type"].among({"reasoning_text"}, "part-not-allowed"):
                part["text"].expect("string")


# ---- the list ----


def _pairs(request: Node, items: list[Node], *, lenient: bool) -> None:
    """Each call has one output behind it, each output its call before it."""
    is_continued = request["previous_response_id"].here or request["conversation"].here
    calls: dict[str, Node] = {}
    answered: set[str] = set()
    interrupted: set[str] = set()
    searched: set[str] = set()
    for item in items:
        kind, id = _type(item), item["call_id"].text
        if kind in ANSWERS and id:
            if id in calls:
                item["call_id"].wrong("duplicate-call-id", f"there are two calls {id!r}")
            calls.setdefault(id, item)
        elif kind == "tool_search_call" and id:
            searched.add(id)  # the program may answer it with a function_call_output
        elif kind == "message" and (lenient or item["role"].text != "assistant"):
            interrupted |= set(calls) - answered
        elif kind in CALLS_OF and id:
            is_called = id in calls or id in searched or is_continued
            _output(item["call_id"], is_called, answered, interrupted)
            answered.add(id)
    for id, call in calls.items():
        if id not in answered:
            # "No tool output found for function call call_1."
            call["call_id"].wrong("tool-call-without-result", f"no output answers {id!r}")


def _output(id: Node, is_called: bool, answered: set[str], interrupted: set[str]) -> None:
    if not is_called:
        # "No tool call found for function call output with call_id call_1."
        id.wrong("tool-result-without-call", f"no call {id.text!r} stands before")
    elif id.text in answered:
        id.wrong("duplicate-result", f"{id.text!r} is answered twice")
    elif id.text in interrupted:
        id.wrong("call-interrupted", "a message stands between the call and its output")


def _reasoning(request: Node, items: list[Node], *, lenient: bool) -> None:
    """Reasoning is known to the server, or brings its content, and leads to something."""
    for id in repeated([item["id"] for item in items if _type(item) != "item_reference"]):
        # "Duplicate item found with id rs_1. Remove duplicate items from your input"
        id.wrong("duplicate-item", f"there are two items with the id {id.text!r}")
    for item, after in zip(items, [*items[1:], None], strict=False):
        if _type(item) != "reasoning":
            continue
        has_content = bool(item["encrypted_content"].text) or (lenient and item["content"].here)
        if not has_content and (request["store"].value is False or not item["id"].here):
            # "Item with id 'rs_1' not found. Items are not persisted when `store` is set to
            # false."
            item.wrong("reasoning-not-kept", "it is not stored, and has no encrypted_content")
        if not _is_led_to(item, after, lenient=lenient):
            # "Item 'rs_1' of type 'reasoning' was provided without its required following item."
            item.wrong("reasoning-leads-nowhere", "what the model then said has to follow")


def _is_led_to(item: Node, after: Node | None, *, lenient: bool) -> bool:
    """Is `after` what the reasoning led to? Reasoning with an id wants a message with its own."""
    if after is None or _type(after) not in SAID:
        return False
    if _type(after) != "message":
        return True
    is_known = lenient or not item["id"].here or after["id"].here
    return after["role"].text == "assistant" and is_known
