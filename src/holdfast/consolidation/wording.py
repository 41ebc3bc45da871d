"""What the model is told, and what it has to answer: a prompt and a tool that nanobot's users know.

[2026-02-01T12:00] USER: I live in Turin.
[2026-02-01T12:00] ASSISTANT [tools: look]: Let me see.
[2026-02-01T12:01] TOOL: 21 degrees
"""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from holdfast import strict, text
from holdfast.errors import HoldfastError, ProtocolError
from holdfast.messages import Message, Role
from holdfast.parts import Image, Text
from holdfast.tools import Tool
from holdfast.window.transcript import transcript

SYSTEM = (
    "You are a memory consolidation agent. "
    "Call the save_memory tool with your consolidation of the conversation."
)
TASK = (
    "Process this conversation and call the save_memory tool with your consolidation.\n\n"
    "## Current Long-term Memory\n{memory}\n\n"
    "## Conversation to Process\n{conversation}"
)
SAVE_MEMORY = Tool(
    "save_memory",
    "Keep what this conversation came to.",
    {
        "type": "object",
        "properties": {
            "history_entry": {
                "type": "string",
                "description": "What happened, in 2 to 5 sentences that begin with "
                "[YYYY-MM-DD HH:MM]. Use the names and words that somebody would search for.",
            },
            "memory_update": {
                "type": "string",
                "description": "The whole long-term memory as Markdown: what it held before, "
                "with what is new. Word for word as it was, if nothing is.",
            },
        },
        "required": ["history_entry", "memory_update"],
    },
)
HEADING = "## Long-term Memory\n"
RAW = "[{time}] [RAW] {count}\n{lines}"
MEMORY_CHARACTERS_MAX = 200_000
_RESULT_CHARACTERS = 500  # of a tool's result, in what the model is told
_TEXT_CHARACTERS = 20_000  # of anything else
_NESTED_MAX = 3


class Saved(NamedTuple):
    """What a model wants to have saved."""

    entry: str
    memory: str


def in_system(system: str | None, memory: str) -> str | None:
    """The system instruction with the long-term memory behind it, if there is one."""
    if not memory.strip():
        return system
    shown = HEADING + memory
    return f"{system}\n\n{shown}" if system else shown


def task(memory: str, lines: Iterable[str]) -> str:
    """What the model is asked."""
    return TASK.format(memory=memory or "(empty)", conversation="\n".join(lines))


def line(message: Message) -> str | None:
    """A message as the model is told it, or None if it says nothing."""
    said = _said(message)
    if not said:
        return None
    names = ", ".join(call.name for call in message.calls)
    tools = f" [tools: {names}]" if names else ""
    role = str(message.role).upper()
    return f"{_time(message)} {role}{tools}: {said}"


def _time(message: Message) -> str:
    return f"[{message.timestamp.isoformat()[:16]}]"


def _said(message: Message) -> str:
    content = message.content or ""
    if not isinstance(content, str):
        shown = ("[image]" if isinstance(p, Image) else _text_of(p) for p in content)
        content = "\n".join(each for each in shown if each)
    if not content:
        content = "\n".join(call.output for call in message.tool_calls if call.output)
    is_result = message.role.canonical is Role.TOOL or bool(message.results)
    size = _RESULT_CHARACTERS if is_result else _TEXT_CHARACTERS
    return content if len(content) <= size else content[:size] + "\n... (truncated)"


def _text_of(part: object) -> str:
    if isinstance(part, Text):
        return part.text
    name = type(part).__name__.lower()
    return "" if name in ("thinking", "callref", "opaque") else f"[{name}]"


def raw(messages: Sequence[Message], now: datetime) -> str:
    """The messages themselves, and nothing left out, for a history that no model could write."""
    lines = [f"{_time(each)} {said}" for each in messages if (said := transcript([each]))]
    count = "1 message" if len(messages) == 1 else f"{len(messages)} messages"
    return RAW.format(time=f"{now:%Y-%m-%d %H:%M}", count=count, lines="\n".join(lines))


def read_answer(message: Message, model: str) -> Saved:
    """What the model wants to have saved; ProtocolError if it has not called the tool as asked."""
    for call in message.calls:
        if call.name == SAVE_MEMORY.name:
            return _read_arguments(call.arguments, model)
    raise ProtocolError("it has not called save_memory", model)


def _read_arguments(arguments: str, model: str) -> Saved:
    """Arguments may come as an object, as text that holds one, or as a list of one."""
    found: object = arguments
    for _ in range(_NESTED_MAX):
        if isinstance(found, str):
            try:
                found = strict.parse(found).value
            except HoldfastError as error:
                raise ProtocolError("what it calls save_memory with is not JSON", model) from error
        if isinstance(found, list | tuple) and len(found) == 1:
            found = found[0]
    if not isinstance(found, dict):
        raise ProtocolError("what it calls save_memory with is not an object", model)
    entry, memory = found.get("history_entry"), found.get("memory_update")
    if entry is None or memory is None:
        raise ProtocolError("it calls save_memory without history_entry or memory_update", model)
    saved = Saved(_as_text(entry).rstrip(), _as_text(memory))
    if not saved.entry.strip():
        raise ProtocolError("it calls save_memory with an empty history_entry", model)
    if max(map(len, saved)) > MEMORY_CHARACTERS_MAX:
        raise ProtocolError(f"it saves more than {MEMORY_CHARACTERS_MAX:,} characters", model)
    return saved


def _as_text(value: object) -> str:
    written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.mend(written)[0]
