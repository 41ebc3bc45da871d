"""The file in which shepherd saves a session, `.shepherd_session.<provider>.json`, version 1.

| name                                                      | meaning                            |
|-----------------------------------------------------------|------------------------------------|
| version                                                   | 1                                  |
| timestamp                                                 | when it was saved, local time      |
| provider, model                                           | with whom                          |
| messages[]                                                |                                    |
|   role, content, tokens                                   | always                             |
|   tool_name, tool_call_id, tool_calls_json,               | where they are not empty; calls as |
|   pre_injection_content                                   | JSON text                          |
| last_user_message_index, last_assistant_message_index     | into messages; -1 is none          |

Keys are sorted, two blanks deep, as shepherd's JSON library writes them. The system prompt, totals,
tools and sampling are not in it. What a message of ours has besides is not in it either: a saved
file is for other programs, and the store keeps the conversation.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from holdfast import ids, private_files, strict
from holdfast.codec import foreign
from holdfast.errors import InvalidInput
from holdfast.frozen import FrozenDict
from holdfast.messages import Message, Role, ToolCall

VERSION = 1
PRE_INJECTION = "pre_injection_content"
TOKENS = "tokens"


class Saved(NamedTuple):
    """What a file holds. Indices that are none of a message are -1."""

    provider: str
    model: str
    messages: tuple[Message, ...]
    last_user_message_index: int
    last_assistant_message_index: int


def file_name(provider: str) -> str:
    """The name of the file for a provider."""
    return f".shepherd_session.{re.sub(r'[^A-Za-z0-9.-]', '-', provider)}.json"


def document(
    provider: str, model: str, messages: Sequence[Message], tokens: Sequence[int]
) -> dict[str, Any]:
    """What is saved of these messages, which have so many tokens each."""
    rows = [_row(message, count) for message, count in zip(messages, tokens, strict=True)]
    return {
        "version": VERSION,
        "timestamp": ids.now().astimezone().strftime("%Y-%m-%dT%H:%M:%S"),
        "provider": provider,
        "model": model,
        "messages": rows,
        "last_user_message_index": last_index(messages, Role.USER),
        "last_assistant_message_index": last_index(messages, Role.ASSISTANT),
    }


def write(path: Path, saved: dict[str, Any]) -> None:
    """Put it in the place of what was saved before: a reader finds the old or the new."""
    data = json.dumps(saved, indent=2, sort_keys=True, ensure_ascii=False).encode()
    private_files.replace(path, data)


def read(data: bytes) -> Saved:
    """What shepherd saved, or InvalidInput."""
    value, _ = strict.parse(data, what="the saved session")
    saved = foreign.object_of(value, "the saved session")
    if saved.get("version") != VERSION:
        found = str(saved.get("version"))[:20]
        raise InvalidInput("the saved session", f"has version {found}: only {VERSION} can be read")
    rows = saved.get("messages")
    if type(rows) is not tuple:
        raise InvalidInput("the saved session", "has a list of messages, and this one has none")
    messages = tuple(_message(foreign.object_of(row, "a message")) for row in rows)
    return Saved(
        _text(saved, "provider"),
        _text(saved, "model"),
        messages,
        _index(saved.get("last_user_message_index"), len(messages)),
        _index(saved.get("last_assistant_message_index"), len(messages)),
    )


def last_index(messages: Sequence[Message], role: Role) -> int:
    """The place of the last message of a role; -1 where there is none."""
    for place in range(len(messages) - 1, -1, -1):
        if messages[place].role.canonical is role:
            return place
    return -1


def _row(message: Message, tokens: int) -> dict[str, Any]:
    more = {
        "tool_name": message.name or "",
        "tool_call_id": message.tool_call_id or "",
        "tool_calls_json": json.dumps([_call(call) for call in message.calls], ensure_ascii=False)
        if message.calls
        else "",
        PRE_INJECTION: message.extra.get(PRE_INJECTION) or "",
    }
    own = {"role": str(message.role), "content": message.text or "", "tokens": tokens}
    return own | {name: value for name, value in more.items() if value}


def _call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _message(row: FrozenDict) -> Message:
    calls = _text(row, "tool_calls_json")
    parsed = strict.parse(calls, what="tool_calls_json").value if calls else None
    extra: dict[str, Any] = {}
    if type(row.get("tokens")) is int and row["tokens"] > 0:
        extra[TOKENS] = row["tokens"]
    if before := _text(row, PRE_INJECTION):
        extra[PRE_INJECTION] = before
    return Message(
        Role.of(_text(row, "role")),
        _text(row, "content"),
        tool_calls=foreign.calls_of(parsed, foreign.call_of),
        tool_call_id=_text(row, "tool_call_id") or None,
        name=_text(row, "tool_name") or None,
        extra=FrozenDict(extra),
    )


def _text(row: FrozenDict, name: str) -> str:
    value = row.get(name, "")
    if type(value) is not str:
        raise InvalidInput(name, "is text in a saved session")
    return value


def _index(value: object, count: int) -> int:
    return value if type(value) is int and 0 <= value < count else -1
