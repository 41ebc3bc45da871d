"""The wire of the `claude` program: what it is told on its standard input, and what it prints.

What it takes is words and media of a user, so everything else is said in words: results of tools,
and in a new session of the program what was said before (`transcript`). What it is to know besides,
the system instruction, our tools and a schema for the answer, is told anew with every call, in a
file: it is kept by no session of the program.

The program reads commands (`/clear`) and names of files (`@notes.txt`) out of the text that a
message ends with. So every message ends with a text of ours.
"""

import hashlib
import re
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import msgspec

from holdfast.errors import InvalidInput
from holdfast.frozen import thaw
from holdfast.messages import Message, Role
from holdfast.notes import NOT_SHOWN
from holdfast.parts import CallRef, File, Image, Opaque, Part, Text
from holdfast.providers import anthropic_blocks
from holdfast.providers.answer import Answer
from holdfast.providers.anthropic import BY_SCHEMA
from holdfast.providers.base import Callbacks
from holdfast.providers.claude_cli import VENDOR
from holdfast.providers.claude_cli.answer import AnswerWithCalls
from holdfast.providers.claude_cli.calls import call_text, instructions
from holdfast.providers.claude_cli.reader import ClaudeCliReader
from holdfast.providers.fields import Object, encode
from holdfast.providers.names import Spelling
from holdfast.providers.prepare import Rules
from holdfast.providers.wire import Ask, Framing, Reader, Wire, wanted

Mode = Literal["passthrough", "delegated"]
MODES = ("passthrough", "delegated")
RETURNED = "Tool {name!r} (call_id: {id}) returned:\n{words}"
FAILED = "Tool {name!r} (call_id: {id}) failed:\n{words}"
BEHIND = "[End of the message.]"
TRANSCRIPT = (
    "What was said before, one message a line, as JSON. You are the assistant in it. Go on with "
    "the conversation: answer what follows behind these lines."
)
ATTACHED = "[attachment {number}]"
_ANY = Spelling(re.compile(r"(?!)"), 1_000)  # names and ids stand in words
_encode = msgspec.json.Encoder().encode


class Fragment(NamedTuple):
    """One message: words, and media as JSON of a block. `is_reply`: the model said it."""

    is_reply: bool
    parts: tuple[str | bytes, ...]


class ClaudeCliWire(Wire):
    """The program, for one model.

    mode    "passthrough": it only asks the model, and we run the tools; "delegated": it runs tools
            of its own, and ours are there besides
    """

    vendor: ClassVar[str] = VENDOR
    api: ClassVar[str] = "claude-cli"
    framing: Framing = "lines"
    rules = Rules(
        vendor=VENDOR,
        tool_name=_ANY,
        call_id=_ANY,
        last_is_user=True,
        has_blank_text=False,
        keeps_thinking=False,
        takes=anthropic_blocks.takes,
    )

    def __init__(
        self, model: str, *, vendor: str | None = None, mode: Mode = "passthrough"
    ) -> None:
        super().__init__(model, vendor=vendor)
        if mode not in MODES:
            raise InvalidInput("mode", f"is {' or '.join(MODES)}, not {mode!r:.40}")
        self.mode = mode

    def fragment(self, message: Message) -> Fragment:
        if message.role is Role.ASSISTANT:
            return Fragment(True, (_replied(message),))
        content = message.content
        parts = (Text(content),) if isinstance(content, str) else content or ()
        words = [_shown(part) for part in parts]
        if message.role is not Role.TOOL:
            return Fragment(False, tuple(words))
        form = FAILED if message.is_error else RETURNED
        said = "\n".join(each for each in words if isinstance(each, str))
        told = form.format(name=message.name, id=message.tool_call_id, words=said)
        return Fragment(False, (told, *(each for each in words if isinstance(each, bytes))))

    def to_wire(self, ask: Ask) -> Object:
        """What a new session is told: the system prompt, and a message."""
        return {"system": self.system(ask), "message": self.message(ask.prepared.fragments)}

    def system(self, ask: Ask) -> str:
        """What is told with every call."""
        if wanted(ask, VENDOR):
            why = "is not for a program: give options to open_provider"
            raise InvalidInput(f"settings.extra[{VENDOR!r}]", why)
        prepared = ask.prepared
        told = [prepared.system] if prepared.system and prepared.system.strip() else []
        if prepared.tools:
            told.append(instructions(prepared.tools))
        if ask.schema is not None:
            told.append(BY_SCHEMA + encode(ask.schema))
        return "\n\n".join(told)

    def message(self, fragments: Sequence[Fragment]) -> Object:
        """A user's message that says all this: behind the last reply as it is, before in JSON."""
        new = len(fragments)
        while new and not fragments[new - 1].is_reply:
            new -= 1
        blocks = _transcript(fragments[:new]) if new else []
        blocks += [_block(part) for fragment in fragments[new:] for part in fragment.parts]
        return {"role": "user", "content": [*blocks, _block(BEHIND)]}

    def path(self, ask: Ask) -> str:  # noqa: ARG002 - there is none
        return ""

    def reader(self, answer: Answer) -> Reader:
        return ClaudeCliReader(answer, runs_tools=self.mode == "delegated")

    def answer(self, ask: Ask, callbacks: Callbacks | None = None) -> Answer:
        return AnswerWithCalls(self.name, ask.prepared.tools, callbacks=callbacks)


def digest(fragments: Sequence[Fragment]) -> str:
    """By which conversations are told apart: what is said in them, and nothing else."""
    hashed = hashlib.blake2b(digest_size=20)
    for fragment in fragments:
        hashed.update(b"%d,%d;" % (fragment.is_reply, len(fragment.parts)))
        for part in fragment.parts:
            said = part.encode() if isinstance(part, str) else part
            hashed.update(b"%d,%d;" % (isinstance(part, str), len(said)))
            hashed.update(said)
    return hashed.hexdigest()


# What is said


def _shown(part: Part) -> str | bytes:
    """A part of what a user or a tool says: words, or a block of media."""
    if isinstance(part, Text):
        return part.text
    if isinstance(part, Image | File):
        return anthropic_blocks.media(part)
    return NOT_SHOWN.format(kind=type(part).__name__.lower())


def _replied(message: Message) -> str:
    """What the model said, as it would write it here: its calls, too."""
    calls = {call.id: call for call in message.tool_calls}
    content = message.content
    said: list[str] = []
    for part in (Text(content),) if isinstance(content, str) else content or ():
        if type(part) is Text:
            said.append(part.text)
        elif type(part) is Opaque:
            said.append(_ran(thaw(part.data)))
        elif type(part) is CallRef and (call := calls.pop(part.id, None)) is not None:
            said.append(call_text(call.name, call.arguments))
    said += [call_text(call.name, call.arguments) for call in calls.values()]
    return "\n".join(each for each in said if each.strip())


def _ran(block: dict[str, Any]) -> str:
    """A tool that the program ran, or what that gave back."""
    if "input" in block:
        return f"[Called {block.get('name')}] {encode(block['input'])}"
    content = block.get("content")
    told = content if isinstance(content, list) else [{"text": content}]
    texts = [each.get("text") for each in told if isinstance(each, dict)]
    words = "\n".join(text for text in texts if isinstance(text, str))
    return f"[Response] {words}" if words else ""


def _transcript(fragments: Sequence[Fragment]) -> list[msgspec.Raw]:
    """What was said before, in one text, and the media of it behind."""
    lines, media = [TRANSCRIPT], list[bytes]()
    for fragment in fragments:
        words: list[str] = []
        for part in fragment.parts:
            if isinstance(part, bytes):
                media.append(part)
                part = ATTACHED.format(number=len(media))
            words.append(part)
        role = "assistant" if fragment.is_reply else "user"
        lines.append(encode({"role": role, "content": "\n".join(words)}))
    blocks = [_block("\n".join(lines))]
    for number, each in enumerate(media, start=1):
        blocks += [_block(ATTACHED.format(number=number)), _block(each)]
    return blocks


def _block(part: str | bytes) -> msgspec.Raw:
    return msgspec.Raw(part if isinstance(part, bytes) else _encode({"type": "text", "text": part}))
