"""The calls of tools in a turn, with what is known of each: its result, how long it took."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.messages import Message, Result
    from holdfast.stores.values import Stored

Place = tuple[str, str]  # the id of the message that makes a call, and that of the call


class Calls:
    """What is known of the calls of a turn. Some models count their ids anew in every answer."""

    def __init__(self, rows: Sequence["Stored"]) -> None:
        from holdfast.entries import Mark
        from holdfast.messages import Message

        self.results: dict[Place, Result] = {}
        self.took: dict[Place, float] = {}
        self.unknown: set[Place] = set()
        self.started: dict[Place, datetime] = {}
        self.is_shown_there: set[str] = set()  # ids of messages that hold nothing but such results
        self._callers: dict[str, str] = {}
        for row in rows:
            if isinstance(row.entry, Message):
                self._hear(row.entry)
            elif isinstance(row.entry, Mark) and row.entry.about in self._callers:
                place = (self._callers[row.entry.about], row.entry.about)
                if row.entry.what == "started":
                    self.started[place] = row.entry.timestamp
                elif row.entry.what == "unknown":
                    self.unknown.add(place)

    def _hear(self, said: "Message") -> None:
        self._callers.update(dict.fromkeys([call.id for call in said.calls], said.id))
        for result in said.results:
            id = result.call_id or ""
            place = (self._callers.get(id, ""), id)
            if id not in self._callers or place in self.results:
                continue
            self.results[place] = result
            if place in self.started:
                self.took[place] = (said.timestamp - self.started[place]).total_seconds()
            if said.tool_call_id == id:
                self.is_shown_there.add(said.id)


def in_line(text: str) -> str:
    """The arguments of a call in one line: path="src" depth=2."""
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(found, dict):
        return text
    return " ".join(f"{n}={json.dumps(v, ensure_ascii=False)}" for n, v in found.items())


def pretty(text: str) -> str:
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return text


def text_of(result: "Result") -> str:
    from holdfast.parts import Text

    content = result.content
    if not isinstance(content, tuple):
        return content or ""
    return "\n".join(
        part.text if isinstance(part, Text) else f"[{type(part).__name__.lower()}]"
        for part in content
    )
