"""Recorded calls with the tokens that were reported for them, and a ledger that follows them.

`traffic(folder)` reads recorded requests and answers, `sessions(folder)` the files of long sessions
that programs kept with the usage of each call. `follow(talks, make)` gives them to a ledger, call
by call, and says how far off its estimates were:

* suffix   a request that goes on with one that was reported: what it has beyond that
* whole    a request that stands alone: all of it, for a model that has answered before

An estimate is judged when the model has answered `ANSWERS_MIN` times and at least `TOKENS_MIN`
tokens were not reported. Everything that was reported is learned from, but not judged is what a
count of what was sent cannot be right for: what a vendor adds (its own tools, files, addresses,
output schemas), and sounds.
"""

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.messages import Message, ToolCall
from holdfast.parts import Audio, File, Image, Opaque, Text, Thinking, Unknown
from holdfast.providers.models import model_of
from holdfast.providers.tokens import Counter, message_tokens, prompt_tokens, tools_tokens
from holdfast.testing.replay import Recording, readings, sequences
from holdfast.testing.replay.history import Conversation, conversation
from holdfast.testing.replay.recordings import Exchange, read_file
from holdfast.tools import Tool
from holdfast.usage import Usage
from holdfast.window.ledger import Ledger
from recorded_prompts import Unfit, _read

ANSWERS_MIN = 3
TOKENS_MIN = 200
VENDORS = {"azure-openai": "azure", "openai-chat": "openai", "openai-responses": "openai"}
FOLDERS = ("anthropic", "azure-openai", "google", *VENDORS, "openai-compatible", "ollama")


class Step(NamedTuple):
    """One call. `new` is the place of the first message that the call before did not have."""

    vendor: str
    model: str
    system: str | None
    tools: tuple[Tool, ...]
    messages: tuple[Message, ...]
    usage: Usage
    answer: Message | None
    new: int | None  # None: it does not go on with a call that was recorded
    is_fit: bool


class Outcome(NamedTuple):
    """How an estimate came out."""

    file: str
    model: str
    reading: str
    has_media: bool
    estimated: int
    margin: int
    reported: int
    unreported: int

    @property
    def error(self) -> float:
        """Relative to what was not reported."""
        return abs(self.estimated - self.reported) / self.unreported


Talk = tuple[str, list[Step]]


def follow(talks: list[Talk], make: Callable[[str], Counter]) -> list[Outcome]:
    """One ledger over all talks, in this order."""
    ledger, found, answers = Ledger(), [], {}
    for file, steps in talks:
        before = 0
        for step in steps:
            model = model_of(step.vendor, step.model)
            counter = make(model.family)
            count = ledger.counter(
                f"{model.family} {model.images}",
                lambda message, c=counter, i=model.images: message_tokens(message, c, i),
            )
            name = f"{step.vendor}:{model.name}"
            tools = tools_tokens(step.tools, counter)
            counted = sum(map(count, step.messages)) + tools
            counted += prompt_tokens((), counter, system=step.system)
            if step.new is None:
                ledger.clear()
                before = 0
            estimate = ledger.estimate(name, counted, tools=tools, stated=counter.error)
            unreported = step.usage.input - before
            is_long = unreported >= TOKENS_MIN
            if step.is_fit and is_long and answers.get(name, 0) >= ANSWERS_MIN:
                reading = "whole" if step.new is None else "suffix"
                media = _has_media(step.messages[step.new or 0 :])
                numbers = estimate.tokens, estimate.margin, step.usage.input, unreported
                found.append(Outcome(file, name, reading, media, *numbers))
            ledger.report(
                name,
                counted,
                step.usage,
                tools=tools,
                answer=step.answer,
                count=count,
                stated=counter.error,
            )
            answers[name] = answers.get(name, 0) + 1
            before = step.usage.input
    return found


def errors(outcomes: list[Outcome]) -> tuple[float, float]:
    """The median and the 95th of 100 errors."""
    ordered = sorted(outcome.error for outcome in outcomes)
    return quantile(ordered, 0.5), quantile(ordered, 0.95)


def quantile(ordered: list, share: float) -> Any:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _parts(messages: tuple[Message, ...]) -> Iterator[Any]:
    for message in messages:
        yield from message.content if isinstance(message.content, tuple) else ()


def _has_media(messages: tuple[Message, ...]) -> bool:
    return any(isinstance(part, Image | File) for part in _parts(messages))


# ---- recorded traffic ----


def traffic(folder: Path, folders: tuple[str, ...] = FOLDERS) -> list[Talk]:
    """Every recorded file, in the order of the names, as the calls in it."""
    found = []
    for provider in sorted(set(folders)):
        for path in sorted((folder / provider).glob("*.json")):
            if json.loads(path.read_bytes())["provenance"] != "recorded":
                continue
            recording = read_file(path)
            if isinstance(recording, Recording) and (steps := _steps(recording)):
                found.append((f"{provider}/{path.name}", steps))
    return found


def _steps(recording: Recording) -> list[Step]:
    """The calls in a file. One that goes on with another stands behind it."""
    read = {}
    for exchange in recording.exchanges:
        usage = readings.read(exchange).usage if exchange.wire and exchange.status == 200 else None
        said = conversation(exchange)
        if usage is not None and usage.input and said is not None and not said.is_elsewhere:
            read[exchange.number] = (exchange, said, usage)
    nexts = {number: _next(recording, number, read) for number in read}
    reached = {found.exchange.number for found in nexts.values() if found}
    steps: list[Step] = []
    for number in read:
        before, at = None, number
        while number not in reached and at is not None:
            found = nexts[at]
            steps.append(_step(*read[at], before, found))
            before, at = found, found.exchange.number if found else None
    return steps


def _next(recording: Recording, number: int, read: dict[int, Any]) -> sequences.Next | None:
    found = sequences.next_of(recording, number)
    if found is None or found.is_remembered or found.exchange.number not in read:
        return None
    is_same = found.exchange.model == recording.exchanges[number].model
    return found if is_same else None


def _step(
    exchange: Exchange,
    said: Conversation,
    usage: Usage,
    before: sequences.Next | None,
    after: sequences.Next | None,
) -> Step:
    new = None
    if before is not None:
        new = len(said.messages) - len(before.answer) - len(before.tail)
    return Step(
        vendor=VENDORS.get(exchange.provider, exchange.service),
        model=exchange.model,
        system=said.system,
        tools=said.tools,
        messages=tuple(map(_decoded, said.messages)),
        usage=usage,
        answer=_joined(after.answer) if after else None,
        new=new,
        is_fit=_is_fit(exchange, said, new),
    )


def _decoded(message: Message) -> Message:
    """Google takes pictures in the other alphabet of base64 too, which is still text here."""
    if not any(isinstance(part, Image) and part.data for part in _parts((message,))):
        return message
    parts = [
        part.replace(data=base64.urlsafe_b64decode(part.data + b"=="))
        if isinstance(part, Image) and part.data and part.data.isascii()
        else part
        for part in message.content
    ]
    return message.replace(content=parts)


def _joined(answer: tuple[Message, ...]) -> Message:
    """An answer that a wire holds as several items is one message."""
    if len(answer) == 1:
        return answer[0]
    parts: list[Any] = []
    for message in answer:
        content = message.content or ()
        parts += [Text(content)] if isinstance(content, str) else content
    return Message.assistant(parts, [call for each in answer for call in each.tool_calls])


def _is_fit(exchange: Exchange, said: Conversation, new: int | None) -> bool:
    """Whether a count of what was sent, from `new` on, can be right."""
    if said.left_out:  # tools of the vendor's own, and what they bring along
        return False
    for part in _parts(said.messages[new or 0 :]):
        if isinstance(part, Opaque | Unknown | Audio):
            return False
        if isinstance(part, Image | File) and not part.data:
            return False
    if new is not None:
        return True
    if said.response_schema or exchange.request.get("format"):
        return False
    try:
        _read(exchange.request.get("generateContentRequest") or exchange.request)
    except (Unfit, KeyError, TypeError, ValueError):
        return False
    return True


# ---- long sessions ----


def sessions(folder: Path) -> list[Talk]:
    """Sessions that programs kept in files, with the usage of each call.

    Their system prompts and tools were not kept, so that only what came after a report counts.
    """
    kinds = (("pi-session", "*.jsonl", _pi), ("claude-code", "aisessions*.jsonl", _claude))
    return [
        (f"{name}/{path.name}", read(path))
        for name, pattern, read in kinds
        for path in sorted((folder / name).glob(pattern))
    ]


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("{"):
            yield json.loads(line)


def _pi(path: Path) -> list[Step]:
    talk = _Kept("anthropic")
    for line in _lines(path):
        raw = line.get("message")
        if line["type"] != "message" or not isinstance(raw, dict):
            continue
        if raw["role"] != "assistant":
            talk.said.append(_pi_input(raw))
        elif raw["stopReason"] in ("error", "aborted"):
            talk.break_off()
        else:
            used = raw["usage"]
            tokens = used["input"] + used["cacheRead"] + used["cacheWrite"]
            talk.answer(raw["model"], Usage(tokens, used["output"]), _pi_answer(raw))
    return talk.steps


def _claude(path: Path) -> list[Step]:
    talk = _Kept("anthropic")
    blocks: list[dict[str, Any]] = []
    lines = [line for line in _lines(path) if line["type"] in ("user", "assistant")]
    for line, after in zip(lines, [*lines[1:], None], strict=True):
        raw = line["message"]
        if line.get("isSidechain"):
            continue
        if line["type"] == "user":
            talk.said += _claude_input(raw["content"])
            continue
        blocks += raw["content"]
        if after is not None and after["message"].get("id") == raw.get("id"):
            continue  # the same answer goes on in the next line, which has its usage
        used = raw["usage"]
        names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        tokens = sum(used.get(name) or 0 for name in names)
        talk.answer(raw["model"], Usage(tokens, used["output_tokens"]), _claude_answer(blocks))
        blocks = []
    return talk.steps


class _Kept:
    """A session as it was kept: what was said so far, and the calls that were made."""

    def __init__(self, vendor: str) -> None:
        self.vendor = vendor
        self.said: list[Message] = []
        self.steps: list[Step] = []
        self._sent: int | None = None  # so many messages the last call had

    def break_off(self) -> None:
        """A call failed: what the next one is sent of it was not kept."""
        self._sent = None

    def answer(self, model: str, usage: Usage, answer: Message) -> None:
        if not usage.input:
            self.break_off()
            return
        new, self._sent = self._sent, len(self.said)
        said = tuple(self.said)
        fit = new is not None and not any(isinstance(p, Image) for p in _parts(said[new:]))
        self.steps.append(Step(self.vendor, model, None, (), said, usage, answer, new, fit))
        self.said.append(answer)


def _pi_input(raw: dict[str, Any]) -> Message:
    parts = [
        Text(each["text"]) if each["type"] == "text" else Image(data=b"") for each in raw["content"]
    ]
    if raw["role"] == "user":
        return Message.user(parts)
    return Message.tool(parts, raw["toolCallId"])


def _pi_answer(raw: dict[str, Any]) -> Message:
    parts: list[Any] = []
    calls = []
    for each in raw["content"]:
        if each["type"] == "text":
            parts.append(Text(each["text"]))
        elif each["type"] == "thinking":
            parts.append(Thinking(each["thinking"], each.get("thinkingSignature")))
        else:
            calls.append(_call(each["id"], each["name"], each["arguments"]))
    return Message.assistant(parts, calls)


def _claude_input(content: Any) -> Iterator[Message]:
    if isinstance(content, str):
        yield Message.user(content)
        return
    for block in content:
        if block["type"] == "text":
            yield Message.user(block["text"])
        elif block["type"] == "tool_result":
            inner = block.get("content") or ""
            if not isinstance(inner, str):
                inner = "".join(each.get("text", "") for each in inner)
            yield Message.tool(inner, block["tool_use_id"])


def _claude_answer(blocks: list[dict[str, Any]]) -> Message:
    parts: list[Any] = []
    calls = []
    for block in blocks:
        if block["type"] == "text":
            parts.append(Text(block["text"]))
        elif block["type"] == "thinking":
            parts.append(Thinking(block["thinking"], block.get("signature")))
        elif block["type"] == "tool_use":
            calls.append(_call(block["id"], block["name"], block["input"]))
    return Message.assistant(parts, calls)


def _call(id: str, name: str, arguments: Any) -> ToolCall:
    return ToolCall(id=id, name=name, arguments=json.dumps(arguments, ensure_ascii=False))
