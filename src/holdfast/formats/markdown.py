"""Markdown, for people: what was said on the branch in use. Nothing reads it back.

Tool calls, results and thinking are folded where Markdown is shown as a page. What could steer a
terminal is shown as what it is.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from holdfast.archive import Archive
from holdfast.formats.base import Format, losses_of
from holdfast.messages import Message, ToolCall
from holdfast.parts import CallRef, Media, Opaque, Part, Text, Thinking
from holdfast.text import safe

_WHO = {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool"}
_LOST = (
    *("others", "branches", "folds", "calls", "marks", "unknown", "erased", "once", "draft"),
    *("settings", "metadata", "counters", "tools", "ttl", "signatures", "blocks", "extra"),
)


def write(archives: Iterable[Archive]) -> Iterator[bytes]:
    """The conversations, one under the other, in pieces."""
    for number, archive in enumerate(archives):
        if number:
            yield b"\n---\n\n"
        yield _head(archive).encode()
        for message in archive.messages():
            yield _message(message).encode()


def losses(archive: Archive) -> list[str]:
    media = sum(
        isinstance(part, Media) and part.data is not None
        for message in archive.messages()
        if isinstance(message.content, tuple)
        for part in message.content
    )
    found = losses_of(archive, FORMAT.title, *_LOST)
    return found + ([f"not in {FORMAT.title}: {media:,} pictures or files"] if media else [])


FORMAT = Format(
    name="markdown",
    title="Markdown",
    suffix=".md",
    write=write,
    losses=losses,
    holds_many=True,
)


def _head(archive: Archive) -> str:
    record = archive.record
    facts = [f"- id: {record.id}"]
    if record.agent:
        facts.append(f"- agent: {_flat(record.agent)}")
    if record.settings.model:
        facts.append(f"- model: {_flat(str(record.settings.model))}")
    facts.append(f"- from {_time(record.created_at)} to {_time(record.updated_at)}, UTC")
    return f"# {_flat(record.key)}\n\n" + "\n".join(facts) + "\n"


def _message(message: Message) -> str:
    role = message.role.canonical
    who = _WHO.get(str(role), str(role))
    names = [name for name in (message.author, message.name, message.model) if name]
    head = f"\n## {who}" + (f" ({_flat(', '.join(names))})" if names else "")
    pieces = [f"{head} · {_time(message.timestamp)}\n"]
    pieces += _content(message)
    pieces += [_call(call) for call in message.tool_calls]
    if message.stop in ("cancelled", "interrupted"):
        pieces.append(f"*({message.stop})*\n")
    return "\n".join(pieces)


def _content(message: Message) -> list[str]:
    content = message.content
    if content is None:
        return []
    if isinstance(content, str):
        if message.role.canonical == "tool":
            return [_folded("error" if message.is_error else "result", _fenced(content))]
        return [f"{safe(content)}\n"] if content else []
    return [said for part in content if (said := _part(part))]


def _part(part: Part) -> str:
    if isinstance(part, Text):
        return f"{safe(part.text)}\n" if part.text else ""
    if isinstance(part, Thinking):
        return _folded("thinking", safe(part.text)) if part.text else ""
    if isinstance(part, Media):
        kind = type(part).__name__.lower()
        where = f" {_flat(part.url)}" if part.url and not part.url.startswith("data:") else ""
        return f"*({kind}{where})*\n"
    if isinstance(part, CallRef):
        return ""
    what = f"a block of {_flat(part.provider)}" if isinstance(part, Opaque) else "an unknown part"
    return f"*({what})*\n"


def _call(call: ToolCall) -> str:
    body = _fenced(call.arguments, "json")
    if call.output is not None:
        body += f"\n{_fenced(call.output)}"
    return _folded(f"calls {_flat(call.name)}", body)


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{_escaped(title)}</summary>\n\n{body}\n\n</details>\n"


def _fenced(text: str, kind: str = "") -> str:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{kind}\n{safe(text)}\n{fence}"


def _flat(text: str) -> str:
    """In one line, and no mark-up."""
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", " ".join(safe(text, keep=" \t\n").split()))


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _time(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M}"
