"""Do two requests say the same?

Both are read into conversations (`history`), and those into a flat list of items: who said it, what
kind of thing it is, what it says. What a vendor does not care about is gone by then: the order of
keys, cache marks, whether a text is a string or a block, whether two messages of the same role are
one, whether the system speaks in a field or in a message. Ids of calls have to be the same, unless
the wire would not take them or has none; which result belongs to which call, always.
"""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from holdfast.frozen import thaw
from holdfast.messages import Message, Role, ToolCall
from holdfast.parts import Audio, CallRef, File, Image, Opaque, Part, Text, Thinking
from holdfast.testing.replay.history.base import Conversation
from holdfast.testing.replay.history.google import WRAPPERS
from holdfast.testing.replay.readings.base import Call, Reading, digest, parsed
from holdfast.testing.replay.recordings import (
    ANTHROPIC,
    CLAUDE_CLI,
    CODE_ASSIST,
    GOOGLE,
    OLLAMA,
    OPENAI_CHAT,
)

KINDS = ("text", "thinking", "signature", "redacted", "call", "block", "media", "result")
# What a vendor numbers or notes by itself, and does not want back.
_NOT_SAID = ("id", "status", "cache_control", "annotations", "logprobs", "created_by")

# Which ids of calls a wire takes. Others have to be renamed by whoever sends them.
_IDS = {
    ANTHROPIC: re.compile(r"[a-zA-Z0-9_-]+"),
    OPENAI_CHAT: re.compile(r".{1,40}", re.DOTALL),
    "openai-responses": re.compile(r".{1,64}", re.DOTALL),
    CLAUDE_CLI: re.compile(r"(?!)"),  # they stand in words
    # Ids are the client's own affair at Google's.
    **dict.fromkeys((GOOGLE, CODE_ASSIST), re.compile(r"(?!)")),
    OLLAMA: re.compile(r".+", re.DOTALL),
}


class Item(NamedTuple):
    """One thing said. `number` is the place of a call among the calls, for a result its call's."""

    role: str
    kind: str
    value: Any
    id: str | None = None
    number: int | None = None

    def __str__(self) -> str:
        return f"{self.role} {self.kind} {_short(self.value)}" + (
            f" id {self.id}" if self.id else ""
        )


def items(messages: Iterable[Message]) -> list[Item]:
    """What the messages say, without the system's."""
    found: list[Item] = []
    numbers: dict[str, int] = {}
    for message in messages:
        role = message.role.canonical
        if role is Role.SYSTEM:
            continue
        if results := message.results:
            for result in results:
                number = numbers.get(result.call_id or result.name or "")
                value = (_result(result.content), result.is_error)
                found.append(Item("tool", "result", value, result.call_id, number))
                found += [i for i in _parts(result.content, "tool") if i.kind in ("media", "block")]
            continue
        for item in _said(message, role):
            if item.kind == "call":
                item = item._replace(number=len(numbers))
                numbers[item.id or ""] = len(numbers)
            found.append(item)
    return _merged(found)


def _said(message: Message, role: str) -> list[Item]:
    calls = {call.id: call for call in message.calls}
    found: list[Item] = []
    for part in message.content if isinstance(message.content, tuple) else ():
        if isinstance(part, CallRef):
            if call := calls.pop(part.id, None):
                found += _call(call)
        else:
            found += _parts((part,), role)
    if isinstance(message.content, str):
        found += _parts(message.content, role)
    return found + [item for call in calls.values() for item in _call(call)]


def _call(call: ToolCall) -> list[Item]:
    item = Item("assistant", "call", (call.name, parsed(call.arguments)), call.id)
    return [item, *_signature("assistant", call.signature)]


def _signature(role: str, signature: Any) -> list[Item]:
    if not isinstance(signature, str) or not signature:
        return []
    return [Item(role, "signature", _one_alphabet(signature))]


def _one_alphabet(signature: str) -> str:
    """Base64 has two alphabets, and some clients change from one to the other."""
    return signature.replace("-", "+").replace("_", "/").rstrip("=")


def _parts(content: str | tuple[Part, ...] | None, role: str) -> list[Item]:
    if isinstance(content, str) or content is None:
        return [Item(role, "text", (content,))] if content and content.strip() else []
    return [item for part in content for item in _part(part, role)]


def _part(part: Part, role: str) -> list[Item]:
    if isinstance(part, Text):
        said = [Item(role, "text", (part.text,))] if part.text.strip() else []
        return said + _signature(role, part.extra.get("signature"))
    if isinstance(part, Thinking):
        if part.redacted:
            return [Item(role, "redacted", part.signature)]
        said = [Item(role, "thinking", _squeezed(part.text))] if part.text.strip() else []
        return said + _signature(role, part.signature)
    if isinstance(part, Image | Audio | File):
        return [Item(role, "media", digest(part.data) if part.data is not None else part.url)]
    if isinstance(part, Opaque):
        return _block(thaw(part.data), role)
    return [Item(role, "block", str(part))]


def _block(data: dict[str, Any], role: str) -> list[Item]:
    if data.get("type") == "reasoning":
        texts = [*(data.get("summary") or ()), *(data.get("content") or ())]
        said = _squeezed("".join(str(each.get("text", "")) for each in texts))
        thought = [Item(role, "thinking", said)] if said else []
        return thought + _signature(role, data.get("encrypted_content"))
    if set(data) == {"reasoning_details"}:
        return _details(data["reasoning_details"], role)
    found = [Item(role, "block", said_of(data))]
    return found + _signature(role, data.get("thoughtSignature"))


def _details(details: list[dict[str, Any]], role: str) -> list[Item]:
    said = _squeezed("".join(d.get("text") or d.get("summary") or "" for d in details))
    found = [Item(role, "thinking", said)] if said else []
    for detail in details:
        found += _signature(role, detail.get("signature")) + _signature(role, detail.get("data"))
    return found


def said_of(block: Any) -> Any:
    """A vendor's block without what the vendor notes in it for itself."""
    if isinstance(block, dict):
        kept = {k: said_of(v) for k, v in block.items() if k not in _NOT_SAID and v is not None}
        return {k: v for k, v in kept.items() if k != "thoughtSignature"}
    return [said_of(each) for each in block] if isinstance(block, list | tuple) else block


def _result(content: str | tuple[Part, ...] | None) -> Any:
    """A result says the same as JSON, as text of JSON, and in a field of its own."""
    if isinstance(content, tuple):
        content = "".join(part.text for part in content if isinstance(part, Text))
    value: Any = content or ""
    while True:
        if isinstance(value, str):
            inside = parsed(value) if value.strip()[:1] in ("{", "[", '"') else value
            if inside == value:
                return _squeezed(value)
            value = inside
        elif isinstance(value, dict) and len(value) == 1 and next(iter(value)) in WRAPPERS:
            (value,) = value.values()
        else:
            return value


def _merged(found: list[Item]) -> list[Item]:
    """Texts of the same speaker next to each other are one, in pieces."""
    merged: list[Item] = []
    for item in found:
        last = merged[-1] if merged else None
        if item.kind == "text" and last and (last.kind, last.role) == ("text", item.role):
            merged[-1] = last._replace(value=last.value + item.value)
        else:
            merged.append(item)
    return merged


# Comparing


def difference(ours: Sequence[Item], theirs: Sequence[Item], wire: str) -> str | None:
    """The first thing that one says and the other does not, in words; None if there is none."""
    for our, their in zip(ours, theirs, strict=False):
        if not same(our, their, wire):
            return f"ours: {our}; theirs: {their}"
    if len(ours) > len(theirs):
        return f"ours says more: {ours[len(theirs)]}"
    return f"ours lacks: {theirs[len(ours)]}" if len(ours) < len(theirs) else None


def same(our: Item, their: Item, wire: str) -> bool:
    """Whether two items say the same."""
    if (our.role, our.kind) != (their.role, their.kind):
        return False
    if our.kind == "text":
        return same_text(our.value, their.value)
    if our.kind in ("call", "result") and our.number != their.number:
        return False
    return our.value == their.value and (our.kind != "call" or _same_id(our, their, wire))


def _same_id(our: Item, their: Item, wire: str) -> bool:
    is_fit = _IDS[wire].fullmatch(their.id or "")
    return our.id == their.id or not is_fit or their.id == their.value[0]


def same_text(ours: tuple[str, ...], theirs: tuple[str, ...]) -> bool:
    """Pieces may have been put together with a space or a line between them."""
    if len(ours) == len(theirs):
        return "".join(ours).strip() == "".join(theirs).strip()
    return _squeezed("".join(ours)) == _squeezed("".join(theirs))


def same_system(ours: Conversation, theirs: Conversation) -> bool:
    """Whether the system says the same, wherever it says it."""
    return _squeezed(_system(ours)) == _squeezed(_system(theirs))


def _system(conversation: Conversation) -> str:
    said = [m.text or "" for m in conversation.messages if m.role is Role.SYSTEM]
    return (conversation.system or "") + "".join(said)


def by_kind(said: Iterable[Item]) -> dict[str, Any]:
    """What one answer says, kind by kind."""
    found: dict[str, list[Any]] = {kind: [] for kind in KINDS}
    for item in said:
        value = (item.id, *item.value) if item.kind == "call" else item.value
        found[item.kind].append(value)
    found["text"] = [_squeezed("".join(piece for pieces in found["text"] for piece in pieces))]
    found["thinking"] = [_squeezed("".join(found["thinking"]))]
    found["signature"] = sorted(found["signature"])
    return dict(found)


def of_reading(reading: Reading) -> dict[str, Any]:
    """The same of a recorded answer, as it was read from its bytes."""
    return {
        "text": [_squeezed(reading.text + reading.refusal)],
        "thinking": [_squeezed(reading.thinking)],
        "signature": sorted(map(_one_alphabet, reading.signatures)),
        "redacted": list(reading.redacted),
        "call": [(call.id, call.name, call.arguments) for call in reading.calls],
        "block": [said_of(block) for block in reading.blocks],
        "media": list(reading.media),
        "result": [],
    }


def same_calls(ours: list[Any], theirs: list[Any], wire: str) -> bool:
    """Calls as `by_kind` has them; an id that is not there is any id."""
    if len(ours) != len(theirs):
        return False
    return all(
        our[1:] == their[1:]
        and (our[0] == their[0] or not _IDS[wire].fullmatch(their[0] or "") or their[0] == their[1])
        for our, their in zip(ours, theirs, strict=True)
    )


def call_of(call: ToolCall) -> Call:
    """A call of ours, as readings have it."""
    return Call(call.id, call.name, parsed(call.arguments), call.signature)


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 160 else f"{text[:120]}...{text[-30:]}"
