"""Transcripts: a conversation as text, for whoever writes its summary.

    USER: What is the weather in Turin?
    ASSISTANT: [Called weather] {"city": "Turin"}
    TOOL: [Response from weather] 21 degrees, sunny
    ASSISTANT: It is sunny.

What tools were asked and what they answered is in it: without that a summary knows what was said
about the facts, and not the facts. What is not text is named.
"""

from collections.abc import Iterable, Iterator

from holdfast.messages import Content, Message, Result, ToolCall
from holdfast.parts import Audio, CallRef, File, Image, Opaque, Part, Text, Thinking


def transcript(messages: Iterable[Message]) -> str:
    """The messages as lines that begin with who speaks."""
    names: dict[str, str] = {}  # of the tools that were called, by the ids of the calls
    lines: list[str] = []
    for message in messages:
        who = message.role.canonical.upper()
        names.update((call.id, call.name) for call in message.tool_calls)
        lines += [f"{who}: {said}" for said in _said(message, names)]
    return "\n".join(lines)


def _said(message: Message, names: dict[str, str]) -> Iterator[str]:
    outputs = [call.output for call in message.tool_calls if call.output is not None]
    is_result = not outputs and bool(message.results)  # then the content is what came back
    if not is_result and message.content != "".join(outputs):
        yield from _words(message.content)
    for call in message.tool_calls:
        if call.output is None or call.arguments:
            yield _called(call)
    for result in message.results:
        yield _response(result, names)


def _called(call: ToolCall) -> str:
    return f"[Called {call.name}] {call.arguments}".rstrip()


def _response(result: Result, names: dict[str, str]) -> str:
    name = result.name or names.get(result.call_id or "") or "a tool"
    error = ", an error" if result.is_error else ""
    return f"[Response from {name}{error}] {' '.join(_words(result.content))}".rstrip()


def _words(content: Content) -> Iterator[str]:
    if isinstance(content, str):
        if content:
            yield content
        return
    for part in content or ():
        if words := _part(part):
            yield words


def _part(part: Part) -> str:
    if isinstance(part, Text):
        return part.text
    if isinstance(part, Thinking):
        return "[Thought, sealed]" if part.redacted else f"[Thought] {part.text}"
    if isinstance(part, CallRef):
        return ""  # only the place of a call, which is told by itself
    return f"[{_name(part)}]"


def _name(part: Part) -> str:
    if isinstance(part, File):
        return f"File {part.name}" if part.name else "File"
    if isinstance(part, Image | Audio):
        return type(part).__name__
    return f"Block of {part.provider}" if isinstance(part, Opaque) else "Something unreadable"
