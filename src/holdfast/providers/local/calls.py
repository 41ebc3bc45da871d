"""Tool calls of a model that was not taught any, by JSON that it cannot help but write.

The server holds the model to a grammar made from a JSON schema, so that it writes an answer or one
call, and nothing else:

    {"answer": "It is raining."}
    {"name": "weather", "arguments": {"city": "Turin"}}

`response_format` asks for that, `instructions` and `shots` tell the model in words and by example,
and `replies.py` takes apart what comes back. `answer_text` and `call_text` write earlier turns in
the same form. Everything here is pure, and takes whatever the schemas of tools hold.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.frozen import thaw
from holdfast.providers.local.grammar import Grammar
from holdfast.tools import Tool

_INTRODUCTION = """\
You answer in JSON. To use a tool, write {"name": "the tool", "arguments": {...}}. \
To say something, write {"answer": "what you say"}. The tools are:"""

_SHOTS_MAX = 2


def response_format(tools: Sequence[Tool], answer: Any = None) -> dict[str, Any]:
    """The field of this name in a request: an answer, or a call of one of the tools.

    `answer` is the schema that the answer has to have, if it is not plain text.
    """
    grammar = Grammar()
    said = {"type": "string"} if answer is None else grammar.add(answer)
    ways = [_object(answer=said)]
    for tool in tools:
        arguments = grammar.add(tool.parameters) or {"type": "object"}
        ways.append(_object(name={"const": tool.name}, arguments=arguments))
    schema: dict[str, Any] = {"oneOf": ways}
    if grammar.definitions:
        schema["$defs"] = grammar.definitions
    return {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}


def instructions(tools: Sequence[Tool]) -> str:
    """What the model is told about the tools, for the end of the system message."""
    return "\n".join([_INTRODUCTION, *map(_line, tools)])


def shots(tools: Sequence[Tool]) -> tuple[tuple[str, str], ...]:
    """Examples to put before the conversation: what a user says, and what is written then.

    A small model does what it has just seen done, and little else: with the answer last, it does
    not call. More examples would cost more of its small window than they bring.
    """
    if not tools:
        return ()
    said = ("Hello, how are you?", answer_text("I am fine, thank you."))
    return (said, *map(_shot, tools[:_SHOTS_MAX]))


def answer_text(words: str) -> str:
    """What the model would have written to say this."""
    return json.dumps({"answer": words}, ensure_ascii=False)


def call_text(name: str, arguments: str) -> str:
    """What the model would have written to make this call.

    Arguments that do not parse go into a string; `replies.py` takes them out again.
    """
    try:
        is_text = isinstance(json.loads(arguments), str)
    except (ValueError, RecursionError):
        is_text = True
    if is_text:
        arguments = json.dumps(arguments, ensure_ascii=False)
    return f'{{"name": {json.dumps(name, ensure_ascii=False)}, "arguments": {arguments}}}'


def _shot(tool: Tool) -> tuple[str, str]:
    arguments = json.dumps(thaw(_example(tool.parameters)), ensure_ascii=False)
    words = tool.description.partition("\n")[0].strip() or f"Use {tool.name}."
    return words, call_text(tool.name, arguments)


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _line(tool: Tool) -> str:
    properties = tool.parameters.get("properties", {})
    words = ", ".join(f"{name}: {_kind(schema)}" for name, schema in properties.items())
    about = " ".join(tool.description.split())
    return f"- {tool.name}({words})" + (f": {about}" if about else "")


def _kind(schema: Any) -> str:
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    if isinstance(kind, tuple):
        return " or ".join(map(str, kind))
    return kind if isinstance(kind, str) else "any"


def _example(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments for a shot: what is required, with a value of the right type."""
    properties = schema.get("properties", {})
    required = [name for name in schema.get("required", ()) if name in properties]
    return {name: _value(name, properties[name]) for name in required}


def _value(name: str, schema: Any) -> Any:
    told = schema if isinstance(schema, Mapping) else {}
    for word in ("examples", "enum"):
        if isinstance(told.get(word), tuple) and told[word]:
            return told[word][0]
    for word in ("const", "default"):
        if word in told:
            return told[word]
    values = {"integer": 5, "number": 5, "boolean": True, "array": [], "object": {}, "null": None}
    return values.get(_kind(told), f"some {name}")
