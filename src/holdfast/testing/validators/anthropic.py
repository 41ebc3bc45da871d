"""What Anthropic's Messages API accepts.

The body is read field by field (`_settings`, `_tools`, `_system`), then message by message
(`_message`, whose blocks are in `anthropic_blocks`), and last as a conversation: who speaks first,
which call has its result in the next message, where thinking has to stand, how many cache
breakpoints there are. Sentences in quotation marks are the vendor's.

`lenient` is for servers that speak this wire and are not Anthropic (Ollama): nobody signs thinking
there, and it goes with any other setting.

Two rules need more than the body and are left out: with the interleaved-thinking header a budget
may exceed `max_tokens`, and some models refuse fields that others take.
"""

import re
from typing import Any

from holdfast.testing.validators import anthropic_blocks as blocks
from holdfast.testing.validators.base import Node, Problem, repeated, root

FIELDS = {
    *("model", "messages", "max_tokens", "system", "metadata", "stop_sequences", "stream"),
    *("temperature", "top_k", "top_p", "thinking", "tools", "tool_choice", "service_tier"),
    *("container", "context_management", "mcp_servers", "cache_control", "output_config"),
    *("output_format", "inference_geo", "speed"),
}
BREAKPOINTS_MAX = 4
BUDGET_MIN = 1024
BY_SERVER = ("server_tool_use", "mcp_tool_use")

# "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
# "tools.0.custom.input_schema.properties: Property keys should match pattern ..."
PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
SERVER_TOOL = re.compile(r"[a-z0-9_]+_20\d{6}")


def problems(body: Any, *, lenient: bool = False) -> list[Problem]:
    """Everything for which the Messages API would refuse `body`."""
    request = root(body)
    if not request.expect("object"):
        return request.found
    request.only(FIELDS)
    _settings(request)
    _thinking(request)
    _tools(request)
    _tool_choice(request)
    _system(request["system"])
    if request["messages"].expect("array"):
        _messages(request)
    _breakpoints(request)
    return [each for each in request.found if not (lenient and _is_borne(each))]


def _is_borne(problem: Problem) -> bool:
    is_unsigned = problem.rule in ("missing-field", "empty-value")
    is_unsigned = is_unsigned and problem.path.endswith("].signature")
    return is_unsigned or problem.rule == "thinking-excludes"


# ---- settings ----


def _settings(request: Node) -> None:
    request["model"].filled()
    if request["max_tokens"].expect("integer"):
        # "Set to `0` to populate the prompt cache without generating a response."
        request["max_tokens"].between(0)
    request["temperature"].between(0, 1)
    request["top_p"].between(0, 1)
    request["top_k"].between(0, kind="integer")
    request["stream"].maybe("boolean")
    if request["metadata"].maybe("object"):
        request["metadata"].only({"user_id"})
    request["service_tier"].maybe_among({"auto", "standard_only"})
    if request["stop_sequences"].maybe("array"):
        for stop in request["stop_sequences"]:
            if stop.expect("string") and not stop.text.strip():
                # "stop_sequences: each stop sequence must contain non-whitespace"
                stop.wrong("blank-stop-sequence", "a stop sequence needs a visible character")
    if request["mcp_servers"].maybe("array"):
        for server in request["mcp_servers"]:
            server["type"].among({"url"})
            server["url"].filled()
            server["name"].filled()
    for holder in (request["output_config"]["format"], request["output_format"]):
        if holder.maybe("object"):
            holder["type"].among({"json_schema"})
            holder["schema"].expect("object")


def _thinking(request: Node) -> None:
    thinking = request["thinking"]
    if not thinking.maybe("object"):
        return
    if not thinking["type"].among({"enabled", "disabled", "adaptive"}):
        return
    if thinking["type"].value != "enabled":
        return
    budget, limit = thinking["budget_tokens"], request["max_tokens"]
    is_fit = budget.expect("integer") and budget.between(BUDGET_MIN)
    if is_fit and limit.is_a("integer") and budget.value >= limit.value:
        # "`max_tokens` must be greater than `thinking.budget_tokens`."
        budget.wrong("budget-too-large", "the budget must be below max_tokens")
    _thinking_excludes(request)


def _thinking_excludes(request: Node) -> None:
    """ "Thinking isn't compatible with `temperature` or `top_k` modifications as well as forced
    tool use [...] When thinking is enabled, you can set `top_p` to values between 1 and 0.95."
    """
    if request["temperature"].is_a("number") and request["temperature"].value != 1:
        request["temperature"].wrong("thinking-excludes", "with thinking this may only be 1")
    if request["top_k"].here:
        request["top_k"].wrong("thinking-excludes", "with thinking this may not be set")
    if request["top_p"].is_a("number") and request["top_p"].value < 0.95:
        request["top_p"].wrong("thinking-excludes", "with thinking this is at least 0.95")
    if request["tool_choice"]["type"].text in {"any", "tool"}:
        # "Thinking may not be enabled when tool_choice forces tool use."
        request["tool_choice"].wrong("thinking-excludes", "with thinking no tool may be forced")


# ---- tools ----


def _tools(request: Node) -> None:
    if not request["tools"].maybe("array"):
        return
    for tool in request["tools"]:
        if not tool.expect("object"):
            continue
        blocks.cache_control(tool)
        if tool["type"].here and tool["type"].value != "custom":
            _server_tool(tool)
        else:
            _custom_tool(tool)
    for name in repeated([tool["name"] for tool in request["tools"]]):
        # "tools: Tool names must be unique."
        name.wrong("duplicate-tool", f"there are two tools named {name.text!r}")


def _server_tool(tool: Node) -> None:
    if not tool["type"].filled():
        return
    if tool["type"].value == "mcp_toolset":
        tool["mcp_server_name"].filled()
        return
    tool["type"].matches(SERVER_TOOL, "unknown-tool-type")
    tool["name"].filled()
    if tool["type"].text.startswith("computer_"):
        tool["display_width_px"].expect("integer")
        tool["display_height_px"].expect("integer")


def _custom_tool(tool: Node) -> None:
    tool["name"].matches(TOOL_NAME, "tool-name")
    tool["description"].maybe("string")
    schema = tool["input_schema"]
    if not schema.expect("object"):
        return
    if schema["type"].value != "object":
        # "tools.0.custom.input_schema.type: Input should be 'object'"
        schema["type"].wrong("schema-not-object", "the schema of a tool is of type object")
    for keyword in ("oneOf", "allOf", "anyOf"):
        if keyword in schema.keys:
            # "input_schema does not support oneOf, allOf, or anyOf at the top level"
            schema[keyword].wrong("schema-union-at-root", "not supported at the top level")
    if schema["properties"].maybe("object"):
        for key in schema["properties"].keys:
            if not PROPERTY.fullmatch(key):
                why = f"{key[:80]!r} does not match {PROPERTY.pattern}"
                schema["properties"].wrong("property-name", why)


def _tool_choice(request: Node) -> None:
    choice = request["tool_choice"]
    if not choice.maybe("object"):
        return
    if not request["tools"].value:
        # "tool_choice may only be specified while providing tools."
        choice.wrong("tool-choice-without-tools", "there are no tools to choose from")
    if choice["type"].among({"auto", "any", "tool", "none"}) and choice["type"].value == "tool":
        names = {tool["name"].text for tool in request["tools"]}
        if choice["name"].filled() and choice["name"].value not in names:
            # "Tool 'x' not found in provided tools"
            choice["name"].wrong("unknown-tool", f"there is no tool {choice['name'].value!r}")
    choice["disable_parallel_tool_use"].maybe("boolean")


def _system(system: Node) -> None:
    if system.maybe("string", "array"):
        if system.text and not system.text.strip():
            # "system: text content blocks must contain non-whitespace text"
            system.wrong("blank-text", "this text has no visible character")
        for block in system:
            if block.expect("object") and block["type"].among({"text"}, "block-not-allowed"):
                blocks.check(block)


# ---- messages ----


def _messages(request: Node) -> None:
    messages = list(request["messages"])
    if not messages:
        # "messages: at least one message is required"
        request["messages"].wrong("no-messages", "at least one message is required")
        return
    for message in messages:
        _message(message, is_last=message.path == messages[-1].path)
    if messages[0]["role"].text in {"assistant", "system"}:
        # "messages: first message must use the "user" role"
        messages[0]["role"].wrong("first-not-user", "the first message is the user's")
    ids = [block["id"] for message in messages for block in _blocks(message, "tool_use")]
    for id in repeated(ids):
        # "messages.3.content.1: `tool_use` ids must be unique"
        id.wrong("duplicate-call-id", f"there are two calls with the id {id.text!r}")
    for before, message in zip([None, *messages], messages, strict=False):
        _results_belong(message, before)
        if before and message["role"].text == "system" and before["role"].text != "user":
            # "accepts role: "system" messages immediately after a user turn"
            message["role"].wrong("system-out-of-turn", "it follows a message of the user")
    for message, after in zip(messages, [*messages[1:], None], strict=True):
        _calls_are_answered(message, after)
    _server_pairs(messages)
    _last_turn(request, messages)


def _message(message: Node, *, is_last: bool) -> None:
    if not message.expect("object"):
        return
    message.only({"role", "content"})
    message["role"].among({"user", "assistant", "system"}, "unknown-role")
    role, content = message["role"].text, message["content"]
    if not content.expect("string", "array"):
        return
    may_be_empty = is_last and role == "assistant"
    if not content.value and not may_be_empty:
        # "messages.1: all messages must have non-empty content except for the optional final
        # assistant message"
        content.wrong("empty-content", "a message says something")
    if content.is_a("string") and content.value and not content.text.strip():
        content.wrong("blank-text", "this text has no visible character")
    allowed = blocks.ALLOWED.get(role, frozenset())
    # Between the results of a search the model writes "\n", and it is taken back.
    may_be_blank = bool(_blocks(message, *BY_SERVER))
    for block in content:
        if block.expect("object") and blocks.is_known(block, allowed):
            blocks.check(block, may_be_blank=may_be_blank)
    _ends_well(message, is_last=is_last)


def _ends_well(message: Node, *, is_last: bool) -> None:
    if message["role"].text != "assistant":
        return
    content = message["content"]
    last = list(content)[-1] if content.is_a("array") and content.value else None
    if last is not None and last["type"].text in {"thinking", "redacted_thinking"}:
        # "messages.1: The final block in an assistant message cannot be `thinking`."
        last.wrong("thinking-last", "thinking is followed by what was thought about")
    text = content.text or (last["text"].text if last else "")
    if is_last and text != text.rstrip():
        # "messages: final assistant content cannot end with trailing whitespace"
        content.wrong("trailing-whitespace", "the words to go on from end in whitespace")


def _blocks(message: Node, *types: str) -> list[Node]:
    return [block for block in message["content"] if block["type"].text in types]


def _results_belong(message: Node, before: Node | None) -> None:
    """A result answers a call of the message directly before it, once, and comes first."""
    if message["role"].text != "user":
        return
    asked = _blocks(before, "tool_use") if before and before["role"].text == "assistant" else []
    calls = {call["id"].text for call in asked}
    results = _blocks(message, "tool_result")
    for result in results:
        id = result["tool_use_id"]
        if id.text and id.text not in calls:
            # "unexpected `tool_use_id` found in `tool_result` blocks: toolu_1. Each `tool_result`
            # block must have a corresponding `tool_use` block in the previous message."
            id.wrong("tool-result-without-call", f"the message before has no call {id.text!r}")
    for id in repeated([result["tool_use_id"] for result in results]):
        # "each tool_use must have a single result. Found multiple `tool_result` blocks with id"
        id.wrong("duplicate-result", f"{id.text!r} is answered twice")
    others_seen = False
    for block in message["content"]:
        is_result = block["type"].text == "tool_result"
        if is_result and others_seen:
            # "the tool_result blocks must come FIRST in the content array"
            block.wrong("tool-result-not-first", "results stand before everything else")
        others_seen = others_seen or not is_result


def _calls_are_answered(message: Node, after: Node | None) -> None:
    if message["role"].text != "assistant":
        return
    results = _blocks(after, "tool_result") if after and after["role"].text == "user" else []
    answered = {result["tool_use_id"].text for result in results}
    for call in _blocks(message, "tool_use"):
        if call["id"].text not in answered:
            # "`tool_use` ids were found without `tool_result` blocks immediately after: toolu_1.
            # Each `tool_use` block must have a corresponding `tool_result` block in the next
            # message."
            call["id"].wrong("tool-call-without-result", "the next message has no result for it")


def _server_pairs(messages: list[Node]) -> None:
    """Results of server tools follow their call. A turn that paused may end without them."""
    calls: dict[str, Node] = {}
    answered = set()
    for message in messages:
        for block in message["content"]:
            kind = block["type"].text
            # Code that itself calls a tool of the program goes on when it has the result.
            answered.add(block["caller"]["tool_id"].text if kind == "tool_use" else "")
            if kind in BY_SERVER:
                calls[block["id"].text] = block
            elif kind.endswith("_tool_result") and message["role"].text == "assistant":
                id = block["tool_use_id"]
                if id.text and id.text not in calls:
                    id.wrong("tool-result-without-call", f"no call {id.text!r} stands before it")
                answered.add(id.text)
    last = messages[-1].path
    for called, call in calls.items():
        if called not in answered and not call.path.startswith(f"{last}."):
            # "`web_search` tool use with id `srvtoolu_1` was found without a corresponding
            # `web_search_tool_result` block"
            call.wrong("tool-call-without-result", f"the result of {called!r} is missing")


def _last_turn(request: Node, messages: list[Node]) -> None:
    """With thinking enabled, a turn that is still running its tools began with thinking.

    "Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled,
    a final `assistant` message must start with a thinking block (preceeding the lastmost set of
    `tool_use` and `tool_result` blocks)."
    """
    if request["thinking"]["type"].text != "enabled":
        return
    said = [message for message in messages if message["role"].text != "system"]
    if said and said[-1]["role"].text == "assistant" and not _blocks(said[-1], *BY_SERVER):
        # "pre-filling isn't supported" with thinking
        said[-1].wrong("prefill-with-thinking", "with thinking no answer can be begun")
        return
    first = None
    for message in reversed(said):
        if message["role"].text == "assistant":
            first = message
        elif not _blocks(message, "tool_result"):
            break
    if first is None or not _blocks(first, "tool_use"):
        return
    start = next(iter(first["content"]))
    if start["type"].text not in {"thinking", "redacted_thinking"}:
        start.wrong("thinking-missing", "a turn with thinking and tool use begins with thinking")


# ---- cache breakpoints ----


def _breakpoints(request: Node) -> None:
    blocks.cache_control(request)
    marks = [*_marks(request["tools"]), *_marks(request["system"])]
    for message in request["messages"]:
        marks += _marks(message["content"])
    if request["cache_control"].here:
        marks.append(request["cache_control"])
    if len(marks) > BREAKPOINTS_MAX:
        # "A maximum of 4 blocks with cache_control may be provided. Found 5."
        why = f"{len(marks)} breakpoints, and at most {BREAKPOINTS_MAX} are allowed"
        marks[BREAKPOINTS_MAX].wrong("too-many-breakpoints", why)
    short_seen = False
    for mark in marks:
        is_long = mark["ttl"].text == "1h"
        if is_long and short_seen:
            # "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block.
            # Note that blocks are processed in the following order: `tools`, `system`, `messages`"
            mark.wrong("ttl-order", "an hour may not follow five minutes")
        short_seen = short_seen or not is_long


def _marks(holders: Node) -> list[Node]:
    found = []
    for holder in holders:
        if holder["type"].text == "tool_result":
            found += _marks(holder["content"])
        if holder["cache_control"].here:
            found.append(holder["cache_control"])
    return found
