"""What OpenAI's two wires share: names, schemas, sampling, and the rules of strict schemas.

A strict schema is the subset that "Structured Outputs" supports: the root is an object, every
object says `additionalProperties: false` and requires all of its properties, and composition
other than a nested `anyOf` is not there. Sentences in quotation marks are the vendor's.
"""

import re
from collections.abc import Iterator

from holdfast.testing.validators.base import Node

# "string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
# Chat Completions: "with a maximum length of 64". Responses: "string too long. Expected a string
# with maximum length 128".
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
LONG_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
TOOLS_MAX = 128
DESCRIPTION_MAX = 1_048_576
EFFORTS = {"none", "minimal", "low", "medium", "high", "xhigh", "max"}
TIERS = {"auto", "default", "flex", "scale", "priority"}
VERBOSITIES = {"low", "medium", "high"}
DETAILS = {"auto", "low", "high", "original"}

COMPOSITION = ("allOf", "oneOf", "not", "if", "then", "else", "dependentRequired")
PROPERTIES_MAX = 5000
NESTING_MAX = 10


def settings(request: Node, *, lenient: bool) -> None:
    """Check what both wires call by the same name."""
    request["temperature"].between(0, 2)
    request["top_p"].between(0, 1)
    request["top_logprobs"].between(0, 20, "integer")
    request["stream"].maybe("boolean")
    request["store"].maybe("boolean")
    request["parallel_tool_calls"].maybe("boolean")
    request["user"].maybe("string")
    if not lenient:
        request["service_tier"].maybe_among(TIERS)
    if request["stream_options"].here and request["stream"].value is not True:
        # "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        request["stream_options"].wrong("only-with-stream", "there is no stream")
    if request["metadata"].maybe("object") and len(request["metadata"].keys) > 16:
        request["metadata"].wrong("too-many", "at most 16 pairs of metadata are allowed")


def needs_tools(request: Node, *, lenient: bool) -> None:
    """Check the number of tools, and that nothing speaks of tools when there are none."""
    tools = request["tools"]
    tools.maybe("array")
    if tools.value == [] and not lenient:
        # "Invalid 'tools': empty array. Expected an array with minimum length 1"
        tools.wrong("empty-tools", "leave the field out when there are no tools")
    if tools.is_a("array") and len(tools.value) > TOOLS_MAX:
        tools.wrong("too-many", f"{len(tools.value)} tools, and at most {TOOLS_MAX} are allowed")
    if tools.value or lenient:
        return
    for field in ("tool_choice", "parallel_tool_calls"):
        if request[field].here:
            # "'tool_choice' is only allowed when 'tools' are specified."
            request[field].wrong("only-with-tools", "there are no tools")


def function(tool: Node, names: re.Pattern[str]) -> None:
    """Check a function as both wires describe it: name, description, parameters, strict."""
    tool["name"].matches(names, "tool-name")
    if tool["description"].maybe("string") and len(tool["description"].text) > DESCRIPTION_MAX:
        # "Invalid 'tools[0].function.description': string too long. Expected a string with
        # maximum length 1048576". It was 1024 once, and longer ones are taken now.
        tool["description"].wrong("too-long", f"more than {DESCRIPTION_MAX} characters")
    tool["strict"].maybe("boolean")
    parameters = tool["parameters"]
    if not parameters.maybe("object"):
        return
    if parameters.value and parameters["type"].value != "object":
        # "schema must be a JSON Schema of 'type: "object"', got 'type: "None"'."
        parameters["type"].wrong("schema-not-object", "the schema of a tool is of type object")
    if tool["strict"].value is True:
        strict_schema(parameters)
    else:
        _arrays_have_items(parameters)


def json_schema(holder: Node, *, lenient: bool) -> None:
    """Check the schema of an answer: name, schema, strict."""
    if not lenient or holder["name"].here:
        holder["name"].matches(NAME, "schema-name")
    holder["description"].maybe("string")
    holder["strict"].maybe("boolean")
    if not holder["schema"].expect("object"):
        return
    if holder["strict"].value is True:
        strict_schema(holder["schema"])


def strict_schema(schema: Node) -> None:
    """Write down where `schema` leaves what strict mode supports."""
    if schema["type"].value != "object" and not schema["$ref"].here:
        # "schema must be a JSON Schema of 'type: "object"', got 'type: "array"'."
        schema["type"].wrong("schema-not-object", "the root of a strict schema is an object")
    if schema["anyOf"].here:
        schema["anyOf"].wrong("schema-union-at-root", "anyOf may not stand at the root")
    properties = 0
    for part, depth in _parts(schema):
        properties += _strict_part(part)
        if depth == NESTING_MAX + 1:
            part.wrong("schema-too-deep", f"more than {NESTING_MAX} levels of nesting")
    if properties > PROPERTIES_MAX:
        schema.wrong("too-many", f"more than {PROPERTIES_MAX} properties")


def _strict_part(part: Node) -> int:
    """Check one schema inside a strict one, and return how many properties it has."""
    for keyword in COMPOSITION:
        if keyword in part.keys:
            # "In context=(), 'allOf' is not permitted."
            part[keyword].wrong("schema-keyword", f"{keyword} is not permitted in strict mode")
    kinds = part["type"].value if part["type"].is_a("array") else [part["type"].value]
    if "array" in kinds and not part["items"].here and not part["prefixItems"].here:
        part.wrong("array-without-items", "array schema missing items")
    if "object" not in kinds and not part["properties"].here:
        return 0
    if part["additionalProperties"].value is not False:
        # "In context=(), 'additionalProperties' is required to be supplied and to be false."
        part["additionalProperties"].wrong("strict-additional", "this must be there and be false")
    properties = part["properties"].keys
    required = {key.text for key in part["required"]}
    missing = [key for key in properties if key not in required]
    if missing:
        # "'required' is required to be supplied and to be an array including every key in
        # properties. Missing 'a'."
        part["required"].wrong("strict-required", f"{', '.join(missing)} must be required too")
    if unknown := sorted(required.difference(properties)):
        part["required"].wrong("strict-required", f"{', '.join(unknown)}: no such properties")
    return len(properties)


def _arrays_have_items(schema: Node) -> None:
    for part, _ in _parts(schema):
        is_array = part["type"].value == "array"
        if is_array and not part["items"].here and not part["prefixItems"].here:
            # "In context=('properties', 'a'), array schema missing items."
            part.wrong("array-without-items", "array schema missing items")


def _parts(schema: Node) -> Iterator[tuple[Node, int]]:
    """Every schema inside a schema, with the number of objects around it. No $ref is followed."""
    todo = [(schema, 0)]
    while todo:
        part, depth = todo.pop()
        if not part.is_a("object"):
            continue
        yield part, depth
        for group in ("properties", "$defs", "definitions"):
            inner = depth + (group == "properties")
            todo += [(part[group][key], inner) for key in part[group].keys]
        todo.append((part["items"], depth))
        for keyword in ("anyOf", "prefixItems"):
            todo += [(choice, depth) for choice in part[keyword]]


def speaks_of_json(texts: list[str]) -> bool:
    """ "'messages' must contain the word 'json' in some form, to use 'response_format' of type
    'json_object'."
    """
    return any("json" in text.lower() for text in texts)


def data_url(node: Node) -> None:
    """If the value is a data URL, its bytes have to be base64."""
    head, comma, data = node.text.partition(",")
    if node.text.startswith("data:"):
        if not comma or not head.endswith(";base64"):
            node.wrong("bad-data-url", "a data URL here is data:<type>;base64,<data>")
        else:
            Node(data, node.path, node.found).base64()
