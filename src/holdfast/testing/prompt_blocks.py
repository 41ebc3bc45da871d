"""A request body as Anthropic's prompt cache sees it: a row of blocks, and the marks on them.

The row is the prompt in the order in which it is read: tools, system, messages. A text given as a
plain string is a block like any other, and where one message ends and the next of the same role
begins makes no difference, because the vendor joins them. What a block says counts, and not its
marks (`cache_control`): the same words are the same prefix, marked or not.

Some of the row is not what the body shows, by the vendor's rules:

- A tool with `defer_loading` is not in the prompt.
- Web search changes the system prompt and not the tools: its definition stands behind the others.
- Older models (Opus before 4.5, Sonnet before 4.6, every Haiku) forget what they thought once the
  user says something other than a tool's result: that thinking is not in the prompt either.

`settings` are the parameters that no block shows and that change the prompt from a level on.
"""

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from holdfast.errors import InvalidInput

LEVELS = ("tools", "system", "messages")
TTL_S = {"5m": 300, "1h": 3600}
BREAKPOINTS_MAX = 4
MEDIA_TOKENS = 1_500

_MODEL = re.compile(
    r"claude-(?:(\d+)(?:[-.](\d{1,2})(?!\d))?-)?([a-z]+)(?:-(\d{1,2})(?!\d)(?:[-.](\d{1,2})(?!\d))?)?"
)
_THOUGHTS = ("thinking", "redacted_thinking")
# In the body and not in the prompt, or not as text.
_UNREAD = ("cache_control", "signature")


class Mark(NamedTuple):
    """A `cache_control`: where, for how long, and why the vendor refuses it, if it does.

    `inner` marks are on a block inside a block. They take a slot and cache nothing.
    """

    path: str
    ttl_s: int
    inner: bool = False
    refused: str = ""


class Block(NamedTuple):
    """One step of the prompt. `value` has no marks; `ttl_s` is 0 where there was none."""

    path: str
    level: str
    role: str
    value: dict[str, Any]
    ttl_s: int

    @property
    def kind(self) -> str:
        return str(self.value.get("type", ""))

    @property
    def is_markable(self) -> bool:
        """A mark may stand here: thinking takes none, nor does a text without words."""
        return self.kind not in _THOUGHTS and not (self.kind == "text" and not self.value["text"])

    def text(self) -> str:
        """What a digest is made of. Keys inside keep their order: they are part of the prompt."""
        try:
            return json.dumps([self.level, self.role, _ordered(self.value)])
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInput(self.path, "is JSON") from error


class Prompt(NamedTuple):
    """The blocks of a body in order, its settings by level, and why it is refused, if it is."""

    model: str
    blocks: tuple[Block, ...]
    settings: dict[str, str]
    refused: str | None


def read_prompt(body: Any) -> Prompt:
    """The prompt of a body of the Messages API; InvalidInput when there is none to be found."""
    if not isinstance(body, dict) or not isinstance(body.get("messages"), list):
        raise InvalidInput("body", "is a request of the Messages API, with a list of messages")
    found = [*_tools(body), *_system(body), *_messages(body)]
    marks = [mark for path, _, _, raw in found for mark in _marks(path, raw)]
    blocks = [Block(p, level, role, _unmarked(raw), _ttl(raw)) for p, level, role, raw in found]
    refused = next((f"{m.path}: {m.refused}" for m in marks if m.refused), None)
    if refused is None and body.get("cache_control") is not None:
        refused = _mark_automatically(body, blocks, marks)
    model = str(body.get("model", ""))
    kept = [b for b in blocks if not b.value.get("defer_loading")]
    if forgets_thinking(model):
        kept = _without_old_thoughts(kept)
    return Prompt(model, tuple(kept), _settings(body, kept), refused or _refused(marks))


def estimate(block: Any) -> int:
    """About how many tokens a block has: a quarter of its characters, rounded up.

    Of a text or a thought the words count, of any other block its JSON. An image or a document
    that is not text counts as MEDIA_TOKENS, whatever its size.
    """
    for name in ("text", "thinking"):
        if block.get("type") == name:
            return -(-len(str(block.get(name, ""))) // 4)
    media = 0

    def shown(value: Any) -> Any:
        nonlocal media
        if isinstance(value, list):
            return [shown(each) for each in value]
        if not isinstance(value, dict):
            return value
        if value.get("type") in ("base64", "url", "file") and value.keys() & _SOURCES:
            media += 1
            return {}
        return {key: shown(each) for key, each in value.items() if key not in _UNREAD}

    text = json.dumps(shown(block), ensure_ascii=False, separators=(",", ":"))
    return -(-len(text) // 4) + media * MEDIA_TOKENS


_SOURCES = {"data", "url", "file_id"}


def model_version(model: str) -> tuple[str, tuple[int, int]]:
    """Family and version of a Claude: ("sonnet", (4, 5)); ("", (0, 0)) for what is none."""
    found = _MODEL.search(model)
    if found is None:
        return "", (0, 0)
    early, early_minor, family, late, late_minor = found.groups()
    return family, (int(early or late or 0), int(early_minor or late_minor or 0))


def forgets_thinking(model: str) -> bool:
    """Whether earlier thinking leaves the prompt once the user speaks again."""
    family, version = model_version(model)
    first_that_keeps = {"opus": (4, 5), "sonnet": (4, 6)}
    return family == "haiku" or version < first_that_keeps.get(family, (0, 0))


# ---- the row ----

_Found = tuple[str, str, str, dict[str, Any]]


def _tools(body: dict[str, Any]) -> Iterator[_Found]:
    tools = _dicts("tools", body.get("tools") or [])
    for later in (False, True):
        for path, tool in tools:
            if str(tool.get("type", "")).startswith("web_search_") is later:
                yield path, "system" if later else "tools", "tool", tool


def _system(body: dict[str, Any]) -> Iterator[_Found]:
    for path, block in _content("system", body.get("system") or []):
        yield path, "system", "system", block


def _messages(body: dict[str, Any]) -> Iterator[_Found]:
    for path, message in _dicts("messages", body["messages"]):
        for place, block in _content(f"{path}.content", message.get("content")):
            yield place, "messages", str(message.get("role", "")), block


def _content(path: str, content: Any) -> list[tuple[str, dict[str, Any]]]:
    if isinstance(content, str):
        return [(path, {"type": "text", "text": content})]
    return _dicts(path, content)


def _dicts(path: str, values: Any) -> list[tuple[str, dict[str, Any]]]:
    if not isinstance(values, list) or not all(isinstance(each, dict) for each in values):
        raise InvalidInput(path, "is a list of objects")
    for index, each in enumerate(values):
        if each.get("type") == "text" and not isinstance(each.get("text"), str):
            raise InvalidInput(f"{path}[{index}].text", "is a text")
    return [(f"{path}[{index}]", each) for index, each in enumerate(values)]


def _without_old_thoughts(blocks: list[Block]) -> list[Block]:
    spoke = max(
        (i for i, b in enumerate(blocks) if b.role == "user" and b.kind != "tool_result"), default=0
    )
    return [b for i, b in enumerate(blocks) if i > spoke or b.kind not in _THOUGHTS]


def _settings(body: dict[str, Any], blocks: list[Block]) -> dict[str, str]:
    """The parameters that change the prompt from a level on, as the vendor's table has them."""
    output = body.get("output_config")
    output = output if isinstance(output, dict) else {}
    kinds = {kind for block in blocks for kind in _kinds(block.value)}
    tools = [body.get("model"), output.get("format") or body.get("output_format")]
    system = [body.get("speed") or "standard", "citations" in kinds]
    messages = [
        body.get("tool_choice") or {"type": "auto"},
        body.get("thinking") or {"type": "disabled"},
        output.get("effort") or "high",  # the default, said or not
        "image" in kinds,
    ]
    each = zip(LEVELS, (tools, system, messages), strict=True)
    try:
        return {level: json.dumps(values, sort_keys=True) for level, values in each}
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput("body", "is JSON") from error


def _kinds(value: Any) -> Iterator[str]:
    """The types of a block and of the blocks in it, and "citations" where they are asked for."""
    if isinstance(value, dict) and value.get("type") != "tool_use":
        yield str(value.get("type", ""))
        asked = value.get("citations")
        if isinstance(asked, dict) and asked.get("enabled"):
            yield "citations"
        yield from _kinds(value.get("content"))
    elif isinstance(value, list):
        for each in value:
            yield from _kinds(each)


# ---- marks ----


def _marks(path: str, block: dict[str, Any]) -> Iterator[Mark]:
    for place, inner in _inner(path, block):
        if inner.get("cache_control") is not None:
            yield Mark(place, _ttl(inner), True, _wrong(inner))
    if block.get("cache_control") is not None:
        yield Mark(path, _ttl(block), False, _wrong(block))


def _inner(path: str, block: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    content = block.get("content")
    for index, each in enumerate(content if isinstance(content, list) else []):
        if isinstance(each, dict):
            yield f"{path}.content[{index}]", each
            yield from _inner(f"{path}.content[{index}]", each)


def _ttl(block: dict[str, Any]) -> int:
    control = block.get("cache_control")
    ttl = control.get("ttl") if isinstance(control, dict) else None
    return 0 if control is None else TTL_S.get(str(ttl or "5m"), TTL_S["5m"])


def _wrong(block: dict[str, Any]) -> str:
    control = block["cache_control"]
    if not isinstance(control, dict) or control.get("type") != "ephemeral":
        return "a cache_control is of the type ephemeral"
    if str(control.get("ttl") or "5m") not in TTL_S:
        return "the ttl of a cache_control is 5m or 1h"
    if block.get("type") in _THOUGHTS:
        return "thinking cannot be marked with cache_control"
    if block.get("type") == "text" and not block["text"]:
        return "cache_control cannot be set for an empty text"
    if block.get("defer_loading"):
        return "a tool that is loaded later cannot be marked with cache_control"
    return ""


def _mark_automatically(body: dict[str, Any], blocks: list[Block], marks: list[Mark]) -> str | None:
    """A mark on the body itself stands for one on the last block that can be marked."""
    if why := _wrong(body):
        return f"cache_control: {why}"
    ttl_s = _ttl(body)
    ready = (i for i in reversed(range(len(blocks))) if blocks[i].is_markable)
    last = next((i for i in ready if not blocks[i].value.get("defer_loading")), None)
    if last is None:
        return None
    if blocks[last].ttl_s not in (0, ttl_s):
        return (
            f"{blocks[last].path}: the mark on the last block and the automatic one differ in ttl"
        )
    if not blocks[last].ttl_s:
        blocks[last] = blocks[last]._replace(ttl_s=ttl_s)
        marks.append(Mark("cache_control", ttl_s))
    return None


def _refused(marks: list[Mark]) -> str | None:
    if len(marks) > BREAKPOINTS_MAX:
        return (
            f"a maximum of {BREAKPOINTS_MAX} blocks with cache_control may be provided, "
            f"and there are {len(marks)}"
        )
    for before, after in pairwise(marks):
        if after.ttl_s > before.ttl_s:
            return f"{after.path}: a ttl of 1h must not come after one of 5m ({before.path})"
    return None


def _unmarked(value: Any) -> Any:
    """The block without its marks, and without those of the blocks inside it."""
    if not isinstance(value, dict):
        return value
    bare = {key: each for key, each in value.items() if key != "cache_control"}
    if isinstance(bare.get("content"), list):
        bare["content"] = [_unmarked(each) for each in bare["content"]]
    return bare


def _ordered(value: Any) -> Any:
    """The fields of a block in one order. What is in a field stays as the client wrote it."""
    if not isinstance(value, dict):
        return value
    fields = dict(sorted(value.items()))
    if isinstance(fields.get("content"), list):
        fields["content"] = [_ordered(each) for each in fields["content"]]
    return fields
