"""Messages as items of OpenAI's Responses API.

What a model says is a list of items there: reasoning, messages, calls, and what server tools did.
An assistant's message becomes those items again, in their order, and a tool's message the output
of its call. Three rules of the API shape this, since nothing is stored on the other side:

- Reasoning goes back with its encrypted content, or not at all; and never without the item that it
  led to.
- An item that reasoning led to has an id by which the two are known to belong together. So ids
  go back only where the reasoning does.
- Open servers give the text of the reasoning, take it back, and have ids in a form of their own.

What holds for the whole list (an id twice, a call of a server tool without its output) is looked
at in `openai_responses_input`.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from holdfast.frozen import EMPTY
from holdfast.messages import Message, Role, ToolCall
from holdfast.notes import BLANK
from holdfast.parts import CallRef, File, Image, Opaque, Part, Text, Thinking
from holdfast.providers import openai_shared as shared
from holdfast.providers.fields import Object
from holdfast.providers.openai_responses_input import ANSWERS, CALLS, TAKEN, Fragment
from holdfast.providers.openai_responses_media import part_of

_encode = msgspec.json.Encoder().encode
_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_PREFIXES = {"message": "msg", "function_call": "fc", "reasoning": "rs", "custom_tool_call": "ctc"}
_PHASES = ("commentary", "final_answer")
# What an item cannot do without, where the service would refuse it.
_NEEDED = {
    "compaction": ("encrypted_content",),
    "custom_tool_call": ("name", "input", "call_id"),
    "local_shell_call_output": ("id",),  # of the call
}
_PARTS = {
    "input_text": (("text",),),
    "input_image": (("image_url",), ("file_id",)),
    "input_file": (("file_id",), ("file_url",), ("file_data", "filename")),
}
_PAIRED = {*CALLS, *ANSWERS}
_CUSTOM = "custom_tool_call"
CALL_ID_MAX = 64


class Items(NamedTuple):
    """Makes the items for one model.

    name            "vendor:model": whose reasoning and ids may go back
    is_compatible   the server speaks this API, and is neither OpenAI's nor Azure's
    """

    name: str
    is_compatible: bool = False

    def fragment(self, message: Message) -> Fragment:
        """The items of one message."""
        role, content = message.role, message.content
        if role is Role.TOOL:
            return _result(message)
        if type(content) is str and not message.tool_calls:
            return Fragment(_encode({"role": role.value, "content": content}))
        if role is Role.ASSISTANT:
            return _fragment_of(self._said(message), message)
        return _fragment_of(self._heard(message), message)

    # What a user or the system says

    def _heard(self, message: Message) -> list[Object]:
        """A message, with whatever items a program put among its parts around it."""
        items: list[Object] = []
        parts: list[Object] = []
        for part in message.content or ():
            if type(part) is Opaque and part.data.get("type") not in _PARTS:
                items += self._replayed(part.data)
            elif (heard := heard_part(part)) is not None:  # type: ignore[arg-type]
                parts.append(heard)
        if parts or not items:
            parts = parts or [{"type": "input_text", "text": BLANK}]
            items.append({"role": message.role.value, "content": parts})
        return items

    # What the model says

    def _said(self, message: Message) -> list[Object]:
        is_own = message.model == self.name
        items: list[Object] = []
        has_ids = False  # what comes now was led to by reasoning that goes back as well
        for part in _in_order(message):
            kind = type(part)
            if kind is Text:
                self._say(items, part, is_own, has_ids)  # type: ignore[arg-type]
            elif kind is ToolCall:
                items.append(self._call(part, is_own, has_ids))  # type: ignore[arg-type]
            elif kind is Thinking:
                thought = self._reasoning(part) if is_own else None  # type: ignore[arg-type]
                has_ids = thought is not None
                items += [thought] if thought is not None else []
            elif kind is Opaque:
                items += self._replayed(part.data)  # type: ignore[union-attr, arg-type]
        return self._arranged(items)

    def _say(self, items: list[Object], part: Text, is_own: bool, has_ids: bool) -> None:
        """Add words to the message that was begun last, or begin another."""
        extra = part.extra if is_own else EMPTY
        id = self._id("message", extra) if has_ids and extra else None
        phase = extra.get("phase")
        last = items[-1] if items else EMPTY
        if last.get("type") == "message" and (last.get("id"), last.get("phase")) == (id, phase):
            last["content"].append(_said_part(part.text, extra))
            return
        item: Object = {"type": "message", "role": "assistant"}
        if id:
            item |= {"id": id, "status": "completed"}
        if phase in _PHASES:
            item["phase"] = phase
        item["content"] = [_said_part(part.text, extra)]
        items.append(item)

    def _call(self, call: ToolCall, is_own: bool, has_ids: bool) -> Object:
        extra = call.extra if is_own else EMPTY
        is_custom = call.extra.get("type") == "custom" and (is_own or not self.is_compatible)
        kind = _CUSTOM if is_custom else "function_call"
        item: Object = {"type": kind, "call_id": call.id, "name": call.name}
        if is_custom:
            item["input"] = shared.free_text(call.arguments)
        else:
            item["arguments"] = call.arguments or "{}"
        if has_ids and (id := self._id(kind, extra)):
            item["id"] = id
        if type(namespace := extra.get("namespace")) is str:
            item["namespace"] = namespace
        if isinstance(caller := extra.get("caller"), Mapping):
            item["caller"] = caller
        return item

    def _reasoning(self, part: Thinking) -> Object | None:
        """Reasoning as it came; None if the service could not make anything of it."""
        content = _texts(part, "content", "reasoning_text") if self.is_compatible else None
        if not part.signature and not content:
            return None
        item: Object = {"type": "reasoning", "summary": _summary(part)}
        if id := self._id("reasoning", part.extra):
            item["id"] = id
        if content:
            item["content"] = content
        if part.signature:
            item["encrypted_content"] = part.signature
        return item

    def _replayed(self, data: Mapping[str, Any]) -> Iterator[Object]:
        """An item that came as it is, if the service takes it back."""
        kind = data.get("type")
        if kind not in TAKEN:
            return
        needed = _NEEDED.get(kind, ("call_id",) if kind in CALLS or kind in ANSWERS else ())
        if not all(type(value := data.get(name)) is str and value for name in needed):
            return
        if len(data.get("call_id") or "") > CALL_ID_MAX:
            return
        item = dict(data)
        if "id" in item and not self._id(kind, data):
            del item["id"]
        yield item

    def _id(self, kind: str, holder: Mapping[str, Any]) -> str | None:
        """The id of an item, if the service would know it."""
        id = holder.get("id")
        if type(id) is not str or not id:
            return None
        if self.is_compatible:
            return id
        return id if _ID.fullmatch(id) and id.startswith(_PREFIXES.get(kind, "")) else None

    def _arranged(self, items: list[Object]) -> list[Object]:
        if self.is_compatible and _has_words_behind_calls(items):
            # To an open server, words between a call and its output end the turn.
            calls = [item for item in items if item["type"] in CALLS]
            items = [item for item in items if item["type"] not in CALLS] + calls
        if any(item["type"] == "reasoning" for item in items):
            items = led_somewhere(items, is_compatible=self.is_compatible)
        return [_shortened(item) for item in items]


def led_somewhere(items: list[Object], *, is_compatible: bool) -> list[Object]:
    """The items without reasoning that leads to nothing.

    "Item 'rs_1' of type 'reasoning' was provided without its required following item": that has
    to be something the model said, and, for reasoning with an id, a message with its own.
    """
    kept: list[Object] = []
    after: Object | None = None
    for item in reversed(items):
        if item.get("type") == "reasoning":
            if after is None or not _is_said(after):
                continue
            if "role" in after and "id" not in after and not is_compatible:
                item = {name: value for name, value in item.items() if name != "id"}
        kept.append(item)
        after = item
    return kept[::-1]


def heard_part(part: Part) -> Object | None:
    """A part of what a user or a tool says; None if it cannot be said here."""
    if type(part) is Text:
        return {"type": "input_text", "text": part.text}
    if type(part) is Image or type(part) is File:
        return part_of(part)
    if type(part) is not Opaque:
        return None
    ways = _PARTS.get(part.data.get("type", ""), ())
    is_whole = any(all(type(part.data.get(name)) is str for name in way) for way in ways)
    return dict(part.data) if is_whole else None


def _has_words_behind_calls(items: list[Object]) -> bool:
    kinds = [item["type"] for item in items]
    first = next((place for place, kind in enumerate(kinds) if kind in CALLS), len(kinds))
    return "message" in kinds[first:]


def _in_order(message: Message) -> Iterator[Part | ToolCall]:
    """The parts of an assistant's message, each call where it stood, the others at the end."""
    calls = {call.id: call for call in message.tool_calls}
    content = message.content
    for part in (Text(content),) if type(content) is str else content or ():
        if type(part) is not CallRef:
            yield part  # type: ignore[misc]
        elif (call := calls.pop(part.id, None)) is not None:
            yield call
    yield from calls.values()


def _said_part(text: str, extra: Mapping[str, Any]) -> Object:
    if extra.get("refusal") is True:
        return {"type": "refusal", "refusal": text}
    part: Object = {"type": "output_text", "text": text}
    annotations = extra.get("annotations")
    if isinstance(annotations, tuple) and all(isinstance(each, Mapping) for each in annotations):
        part["annotations"] = annotations
    return part


def _summary(part: Thinking) -> Any:
    summary = _texts(part, "summary", "summary_text")
    if summary is not None or _texts(part, "content", "reasoning_text"):
        return summary or []
    return [{"type": "summary_text", "text": part.text}] if part.text else []


def _texts(part: Thinking, name: str, kind: str) -> Any:
    """The parts of the reasoning of this kind, as they came."""
    parts = part.extra.get(name)
    if not isinstance(parts, tuple):
        return None
    is_good = all(
        isinstance(each, Mapping) and each.get("type") == kind and type(each.get("text")) is str
        for each in parts
    )
    return parts if is_good else None


def _is_said(item: Object) -> bool:
    if "role" in item:
        return bool(item["role"] == "assistant")
    return item.get("type") not in ANSWERS


def _shortened(item: Object) -> Object:
    """A message that is only words, in the short form that every server knows."""
    if item["type"] == "message" and len(item) == 3 and len(item["content"]) == 1:
        part = item["content"][0]
        if part["type"] == "output_text" and len(part) == 2:
            return {"role": "assistant", "content": part["text"]}
    return item


def _fragment_of(items: list[Object], message: Message) -> Fragment:
    ids = tuple(item["id"] for item in items if "id" in item)
    customs: tuple[str, ...] = ()
    if any(call.extra for call in message.tool_calls):
        customs = tuple(item["call_id"] for item in items if item.get("type") == _CUSTOM)
    is_loose = len(ids) > 1 and len(set(ids)) < len(ids)
    for part in message.content or ():
        if type(part) is Opaque and part.data.get("type") in _PAIRED:
            is_loose = True
    is_special = bool(ids or customs or is_loose)
    return Fragment(_encode(items)[1:-1], is_special, ids, customs, None, is_loose)


def _result(message: Message) -> Fragment:
    content = message.content
    output: Any = content or ""
    if isinstance(content, tuple):
        output = [heard for part in content if (heard := heard_part(part)) is not None]
        if len(output) == 1 and output[0]["type"] == "input_text":
            output = output[0]["text"]
    if not output:
        output = "Error" if message.is_error else ""
    id = message.tool_call_id
    item = {"type": "function_call_output", "call_id": id, "output": output}
    return Fragment(_encode(item), answers=id)
