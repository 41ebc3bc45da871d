"""What Code Assist accepts: the body of generateContent, in an envelope.

Nothing is published of it. The envelope is that of its clients, and an unknown name is refused
there as everywhere: 'Invalid JSON payload received. Unknown name "x": Cannot find field.' The
inside is judged by `google.py`. A model that is not Gemini is another vendor's, for whom the
service translates the inside, and then that vendor's rules hold, too; sentences in quotation marks
are Claude's.
"""

import re
from typing import Any

from holdfast.testing.validators.base import Problem
from holdfast.testing.validators.google import Proto, check

ENVELOPE = {
    *("model", "project", "request", "requestType", "userAgent", "requestId", "userPromptId"),
    "enabledCreditTypes",
}
INSIDE = {"sessionId"}
# What remains of a schema on its way: "Unknown name "const" at '...parameters': Cannot find field."
SCHEMA = {
    *("type", "description", "properties", "required", "items", "enum", "anyOf", "title"),
    *("nullable", "format"),
}
# "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", and Google's 64.
NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
# "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
ID = re.compile(r"[a-zA-Z0-9_-]+")
BUDGET_MIN = 1_024
OUTPUT_MAX = 64_000


def problems(body: Any, *, model: str | None = None) -> list[Problem]:
    """Everything for which the service would refuse `body`."""
    envelope = Proto(body, "", [])
    if not envelope.expect("object"):
        return envelope.found
    envelope.known(ENVELOPE)
    for name in ("project", "requestType", "userAgent", "requestId", "userPromptId"):
        if envelope[name].here:
            envelope[name].filled()
    envelope["model"].filled()
    request = envelope["request"]
    asked = envelope["model"].text or model or ""
    check(request, asked, INSIDE)
    request["sessionId"].maybe("string")
    if request.is_a("object") and asked and not asked.startswith("gemini-"):
        _translated(request)
    return envelope.found


def _translated(request: Proto) -> None:
    """What a model of another vendor wants besides."""
    for tool in request["tools"].each():
        for function in tool["functionDeclarations"].each():
            _function(function)
    contents = [content for content in request["contents"].each() if content.is_a("object")]
    for content in contents:
        parts = [part for part in content["parts"].each() if part.is_a("object")]
        for part in parts:
            _part(part)
        if parts and parts[-1]["thought"].value is True:
            # "The final block in an assistant message cannot be `thinking`."
            parts[-1].wrong("thought-last", "there is nothing behind this thought")
    _thinking(request["generationConfig"], contents)


def _function(function: Proto) -> None:
    if not function.is_a("object"):
        return
    function["name"].matches(NAME, "tool-name")
    if function["parametersJsonSchema"].here:
        # "tools.0.custom.input_schema: Field required"
        function["parametersJsonSchema"].wrong("schema-lost", "a schema stands in `parameters`")
    todo = [function["parameters"]]
    while todo:
        schema = todo.pop()
        if not schema.maybe("object"):
            continue
        schema.known(SCHEMA)
        inside = schema["properties"]
        todo += [Proto(inside.value[k], f"{inside.path}.{k}", schema.found) for k in inside.keys]
        todo += [schema["items"], *schema["anyOf"].each()]
        for value in schema["enum"].each():
            value.expect("string")


def _part(part: Proto) -> None:
    if part["thought"].value is True and not part["thoughtSignature"].here:
        # "messages.1.content.0.thinking.signature: Field required"
        part.wrong("thought-unsigned", "this thought has no signature")
    is_words = part["text"].is_a("string") and not part["thoughtSignature"].here
    if is_words and not part["text"].text.strip():
        # "messages: text content blocks must contain non-whitespace text"
        part["text"].wrong("blank-text", "a text is not only white space")
    for name in ("functionCall", "functionResponse"):
        if part[name].is_a("object"):
            part[name]["id"].matches(ID, "call-id")
            part[name]["name"].matches(NAME, "tool-name")


def _thinking(config: Proto, contents: list[Proto]) -> None:
    limit, thinking = config["maxOutputTokens"], config["thinkingConfig"]
    limit.between(1, OUTPUT_MAX, "integer")
    config["temperature"].between(0, 1)
    if not thinking.is_a("object"):
        return
    if thinking["thinkingLevel"].here:
        thinking["thinkingLevel"].wrong("level-not-budget", "this model thinks by a budget")
    budget = thinking["thinkingBudget"]
    # "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
    if not budget.between(BUDGET_MIN, kind="integer"):
        return
    if limit.is_a("integer") and limit.value <= budget.value:
        # "`max_tokens` must be greater than `thinking.budget_tokens`."
        limit.wrong("budget-too-large", "all of the answer would be thought")
    if config["temperature"].here:
        # "`temperature` may only be set to 1 when thinking is enabled."
        config["temperature"].wrong("temperature-with-thinking", "a thought takes no temperature")
    _began(contents)


def _began(contents: list[Proto]) -> None:
    """The turn whose tools are running began with a thought.

    "When `thinking` is enabled, a final `assistant` message must start with a thinking block."
    """
    first: Proto | None = None
    for content in reversed(contents):
        parts = [part for part in content["parts"].each() if part.is_a("object")]
        if content["role"].text == "model":
            first = parts[0] if parts and _calls(parts) else first
        elif not any(part["functionResponse"].here for part in parts):
            break
    if first is not None and first["thought"].value is not True:
        first.wrong("turn-without-thought", "this turn did not begin with a thought")


def _calls(parts: list[Proto]) -> bool:
    return any(part["functionCall"].here for part in parts)
