"""What Google's generateContent accepts, on the Gemini API and on Vertex.

The body is a protobuf message in JSON: names may be in camelCase or snake_case, an unknown name
is refused, a list of one may stand without its brackets, and an enum may be a number. Paths in
problems are in camelCase, whatever the body writes. Where the two services differ, the stricter
one counts, unless a request that the other accepts was recorded. Sentences in quotation marks
are the vendor's.

The model is in the address. Where it is given (as `model`, or in the body), the rule of Gemini 3
on thought signatures is applied; without it, nobody knows.
"""

import re
from collections import Counter
from collections.abc import Collection
from functools import lru_cache
from typing import Any

from holdfast.testing.validators.base import Node, Problem, repeated

FIELDS = {
    *("model", "contents", "tools", "toolConfig", "safetySettings", "systemInstruction"),
    *("generationConfig", "cachedContent", "labels", "modelArmorConfig", "serviceTier", "store"),
}
CONFIG = {
    *("temperature", "topP", "topK", "candidateCount", "maxOutputTokens", "stopSequences"),
    *("presencePenalty", "frequencyPenalty", "responseMimeType", "responseSchema"),
    *("responseJsonSchema", "_responseJsonSchema", "seed", "responseLogprobs", "logprobs"),
    *("audioTimestamp", "responseModalities", "mediaResolution", "speechConfig"),
    *("thinkingConfig", "imageConfig", "routingConfig", "modelSelectionConfig"),
    *("enableEnhancedCivicAnswers", "enableAffectiveDialog", "modelConfig"),
}
TOOLS = {
    *("functionDeclarations", "googleSearch", "googleSearchRetrieval", "codeExecution"),
    *("urlContext", "fileSearch", "computerUse", "googleMaps", "enterpriseWebSearch"),
    *("retrieval", "mcpServers", "parallelAiSearch"),
}
DATA = {
    *("text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode"),
    *("codeExecutionResult", "toolCall", "toolResponse"),
}
BESIDE_DATA = {"thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata"}
BY_MODEL = {"functionCall", "executableCode", "codeExecutionResult", "toolCall", "toolResponse"}

# "Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z,
# 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128."
NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
MODES = {"AUTO", "ANY", "NONE", "VALIDATED", "MODE_UNSPECIFIED"}
LEVELS = {"minimal", "low", "medium", "high", "thinking_level_unspecified"}
STOPS_MAX = 5
SIGNED = re.compile(r"gemini-([3-9]|\d\d)\b")


class Proto(Node):
    """A node whose fields go by both spellings."""

    def __getitem__(self, key: str) -> "Proto":
        value = None
        if isinstance(self.value, dict):
            value = next((self.value[k] for k in self.keys if camel(k) == key), None)
        return Proto(value, f"{self.path}.{key}" if self.path else key, self.found)

    @property
    def names(self) -> list[str]:
        """The fields that are there, in camelCase. A null is as good as nothing here."""
        return [camel(key) for key in self.keys if self.value[key] is not None]

    def each(self) -> "list[Proto]":
        """The items of a repeated field, which may be a single one."""
        values = self.value if isinstance(self.value, list) else [self.value]
        if isinstance(self.value, list):
            return [Proto(value, f"{self.path}[{n}]", self.found) for n, value in enumerate(values)]
        return [self] if self.here else []

    def known(self, fields: set[str]) -> None:
        """'Invalid JSON payload received. Unknown name "x": Cannot find field.'"""
        for name in self.names:
            if name not in fields:
                self[name].wrong("unknown-field", "the vendor knows no such field")


@lru_cache(1_000)
def camel(name: str) -> str:
    head, *rest = name.split("_")
    if not head:
        return name  # _responseJsonSchema
    return head + "".join(word[:1].upper() + word[1:] for word in rest)


def problems(body: Any, *, model: str | None = None) -> list[Problem]:
    """Everything for which generateContent would refuse `body`."""
    request = Proto(body, "", [])
    check(request, model)
    return request.found


def check(request: Proto, model: str | None, more: Collection[str] = ()) -> None:
    """The same of a body that may stand inside another one, which knows `more` fields."""
    if not request.expect("object"):
        return
    request.known(FIELDS.union(more))
    _config(request["generationConfig"])
    _system(request["systemInstruction"])
    names = _tools(request)
    _tool_config(request["toolConfig"]["functionCallingConfig"], names)
    _safety(request["safetySettings"])
    _cached(request)
    contents = request["contents"].each()
    if not contents:
        # "GenerateContentRequest.contents: contents is not specified"
        request["contents"].wrong("no-messages", "contents is not specified")
        return
    for content in contents:
        if content.expect("object"):
            _content(content, is_only=len(contents) == 1)
    _turns(contents)
    if SIGNED.search(model or request["model"].text):
        _signatures(contents)


# ---- settings ----


def _config(config: Proto) -> None:
    if not config.maybe("object"):
        return
    config.known(CONFIG)
    # "it has a temperature value of 1000 but the supported range is from 0 (inclusive) to 2.0001
    # (exclusive)"
    config["temperature"].between(0, 2)
    config["topP"].between(0, 1)
    config["topK"].between(1)
    config["candidateCount"].between(1, 8, "integer")
    config["maxOutputTokens"].between(1, kind="integer")
    config["presencePenalty"].between(-2, 2)
    config["frequencyPenalty"].between(-2, 2)
    config["seed"].maybe("integer")
    if len(config["stopSequences"].each()) > STOPS_MAX:
        config["stopSequences"].wrong("too-many", f"at most {STOPS_MAX} are allowed")
    _response_schema(config)
    thinking = config["thinkingConfig"]
    if thinking.maybe("object"):
        thinking.known({"includeThoughts", "thinkingBudget", "thinkingLevel"})
        thinking["thinkingBudget"].between(-1, kind="integer")
        level = thinking["thinkingLevel"]
        if level.is_a("string") and level.text.lower() not in LEVELS:  # both cases are taken
            level.wrong("unknown-value", f"{level.text!r} is none of {', '.join(sorted(LEVELS))}")
        if thinking["thinkingBudget"].here and thinking["thinkingLevel"].here:
            # "You can only set only one of thinking budget and thinking level."
            thinking.wrong("two-limits", "there are a budget and a level of thinking")


def _response_schema(config: Proto) -> None:
    schemas = [
        config[name]
        for name in ("responseSchema", "responseJsonSchema", "_responseJsonSchema")
        if config[name].here
    ]
    for schema in schemas:
        schema.expect("object")
        if config["responseMimeType"].text not in {"application/json", "text/x.enum"}:
            # The reference wants a compatible responseMimeType beside a schema.
            schema.wrong("schema-without-mime-type", "responseMimeType must be application/json")
    if len(schemas) > 1:
        schemas[1].wrong("two-schemas", "there are two schemas for the answer")


def _system(system: Proto) -> None:
    """A Content without a role, or with any. Its text may be empty."""
    if not system.maybe("object"):
        return
    system.known({"role", "parts"})
    if not system["parts"].each():
        system["parts"].wrong("empty-content", "an instruction has at least one part")
    for part in system["parts"].each():
        if part.names != ["text"]:
            # The reference says of systemInstruction: "Currently, text only."
            part.wrong("part-not-allowed", "a system instruction holds text alone")
        else:
            part["text"].expect("string")


def _safety(settings: Proto) -> None:
    for setting in settings.each():
        if setting.expect("object"):
            setting["category"].expect("string", "integer")
            setting["threshold"].expect("string", "integer")


def _cached(request: Proto) -> None:
    """ "CachedContent can not be used with GenerateContent request setting system_instruction,
    tools or tool_config."
    """
    if request["cachedContent"].maybe("string"):
        for name in ("systemInstruction", "tools", "toolConfig"):
            if request[name].here:
                request[name].wrong("set-in-cache", "the cached content has its own")


# ---- tools ----


def _tools(request: Proto) -> set[str]:
    """Check the tools, and return the names of the functions."""
    functions = []
    for tool in request["tools"].each():
        if not tool.expect("object"):
            continue
        tool.known(TOOLS)
        functions += tool["functionDeclarations"].each()
    for function in functions:
        if function.expect("object"):
            _function(function)
    names: list[Node] = [function["name"] for function in functions]
    for name in repeated(names):
        # "Duplicate function declaration found: x"
        name.wrong("duplicate-tool", f"there are two functions named {name.text!r}")
    return {name.text for name in names}


def _function(function: Proto) -> None:
    function["name"].matches(NAME, "tool-name")
    function["description"].maybe("string")
    if function["parameters"].here and function["parametersJsonSchema"].here:
        # "parameters_json_schema must not be set when parameters is set"
        function["parameters"].wrong("two-schemas", "parametersJsonSchema is set as well")
    schema = function["parameters"]
    if schema.maybe("object") and schema.value:
        kind = schema["type"]
        if kind.value != 6 and kind.text.upper() != "OBJECT":  # 6 is OBJECT in the enum
            # "parameters schema should be of type OBJECT"
            kind.wrong("schema-not-object", "the schema of a function is of type OBJECT")
    function["parametersJsonSchema"].maybe("object")


def _tool_config(config: Proto, names: set[str]) -> None:
    if not config.maybe("object"):
        return
    if config["mode"].is_a("string"):
        config["mode"].among(MODES)
    allowed = config["allowedFunctionNames"].each()
    if allowed and config["mode"].text not in {"ANY", "VALIDATED"}:
        # "This should only be set when the Mode is ANY or VALIDATED."
        config["allowedFunctionNames"].wrong("names-without-mode", "this needs mode ANY")
    for name in allowed:
        if name.expect("string") and name.text not in names:
            # "Function names should match [FunctionDeclaration.name]."
            name.wrong("unknown-tool", f"there is no function {name.text!r}")


# ---- contents ----


def _content(content: Proto, *, is_only: bool) -> None:
    content.known({"role", "parts"})
    if content["role"].here or not is_only:
        # "Please use a valid role: user, model."
        content["role"].among({"user", "model"}, "unknown-role")
    parts = content["parts"].each()
    if not parts:
        # "contents.parts must not be empty."
        content["parts"].wrong("empty-content", "parts must not be empty")
    is_model = content["role"].text == "model"
    for part in parts:
        if part.expect("object"):
            _part(part, is_model=is_model)
            # "Unable to submit request because it must have a text parameter." What a model sends
            # is taken back: an empty text beside a call, or with a signature at a stream's end.
            is_sent = part["thoughtSignature"].here or _having(content, "functionCall")
            if part["text"].value == "" and not (is_model and is_sent):
                part["text"].wrong("empty-text", "a text may not be empty")


def _part(part: Proto, *, is_model: bool) -> None:
    part.known(DATA | BESIDE_DATA)
    data = [name for name in part.names if name in DATA]
    if len(data) != 1:
        # "contents.parts[0].data: required oneof field 'data' must have one initialized field"
        part.wrong("part-data", f"a part holds one thing, and this one {len(data)}")
    if part["thoughtSignature"].here:
        part["thoughtSignature"].base64(url_safe=True)
        if not is_model:
            part["thoughtSignature"].wrong("signature-not-of-model", "only a model signs")
    part["thought"].maybe("boolean")
    for name in data:
        if (name in BY_MODEL and not is_model) or (name == "functionResponse" and is_model):
            # "Please ensure that function response turn comes immediately after a function call
            # turn."; a response is the user's, a call the model's.
            part[name].wrong("part-not-allowed", f"{name} may not stand in this role")
        _data(part, name)


def _data(part: Proto, name: str) -> None:
    data = part[name]
    if name == "text":
        data.expect("string")
        return
    if not data.expect("object"):
        return
    if name == "inlineData":
        data["mimeType"].filled()
        data["data"].base64(url_safe=True)
    elif name == "fileData":
        data["fileUri"].filled()
        data["mimeType"].maybe("string")
    elif name == "functionCall":
        data["name"].matches(NAME, "tool-name")
        data["args"].maybe("object")
        data["id"].maybe("string")
    elif name == "functionResponse":
        # "contents[2].parts[0].function_response.name: Name cannot be empty."
        data["name"].matches(NAME, "tool-name")
        data["response"].expect("object")
        data["id"].maybe("string")


# ---- the conversation ----


def _role(content: Proto) -> str:
    return content["role"].text or "user"


def _having(content: Proto, name: str) -> list[Proto]:
    return [part[name] for part in content["parts"].each() if part[name].here]


def _turns(contents: list[Proto]) -> None:
    """Calls are answered by the next content, each once. The user has the last word."""
    before: Proto | None = None
    for content in contents:
        calls = _having(before, "functionCall") if before is not None else []
        _answers(content, calls, _having(content, "functionResponse"))
        is_call = bool(_having(content, "functionCall"))
        if is_call and (before is None or _role(before) == "model"):
            # "Please ensure that function call turn comes immediately after a user turn or after
            # a function response turn."
            content.wrong("call-out-of-turn", "a call follows the user or a response")
        before = content
    if before is not None and _role(before) == "model":
        # "Please ensure that single turn requests end with a user role or the role field is empty."
        # Of longer ones nothing is published; there is nothing to answer in them either.
        before.wrong("last-not-user", "the last content is the user's")


def _answers(content: Proto, calls: list[Proto], responses: list[Proto]) -> None:
    if responses and not calls:
        # "Please ensure that function response turn comes immediately after a function call turn."
        responses[0].wrong("tool-result-without-call", "no call stands directly before")
    elif len(calls) != len(responses):
        # "Please ensure that the number of function response parts is equal to the number of
        # function call parts of the function call turn."
        content.wrong("tool-result-count", f"{len(calls)} calls and {len(responses)} responses")
    elif Counter(call["name"].text for call in calls) != Counter(r["name"].text for r in responses):
        responses[0].wrong("tool-result-name", "the names are not those of the calls")
    asked = {call["id"].text for call in calls} - {""}
    answered: list[Node] = [response["id"] for response in responses]
    for id in answered:
        if calls and id.text and asked and id.text not in asked:
            id.wrong("tool-result-id", f"no call with the id {id.text!r} stands directly before")
    for id in repeated(answered):
        id.wrong("duplicate-result", f"{id.text!r} is answered twice")


def _signatures(contents: list[Proto]) -> None:
    """In the current turn the first call of each step carries its signature.

    "Function call is missing a thought_signature in functionCall parts." The current turn begins
    at the last content of the user that is not a response; parallel calls are signed once.
    """
    for content in reversed(contents):
        if _role(content) == "user":
            if not _having(content, "functionResponse"):
                return
            continue
        calls = [part for part in content["parts"].each() if part["functionCall"].here]
        if calls and not calls[0]["thoughtSignature"].here:
            calls[0].wrong("signature-missing", "Gemini 3 wants the signature of this call back")
