"""Our tools, for a program that knows only its own: told in words, and called in words.

    <tool_call>
    {"name": "weather", "arguments": {"city": "Turin"}}
    </tool_call>

`instructions` tells the model so, `call_text` writes an earlier call in the same form, and a
`Splitter` takes apart what the model writes, while it comes. However the text is cut into pieces,
what comes out is the same. White space around a call is no part of what is said. What stands
between the tags and is no call at all is words; one whose arguments do not parse is a call all the
same, for whoever runs tools to answer.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from holdfast.providers.local import calls as written_calls
from holdfast.providers.local import replies
from holdfast.tools import Tool

OPEN, CLOSE = "<tool_call>", "</tool_call>"
_INSTRUCTIONS = f"""\
You can use tools, which somebody else runs for you. To use one, write a call of this form:

{OPEN}
{{"name": "the tool", "arguments": {{...}}}}
{CLOSE}

Between the tags stands one JSON object and nothing else; the arguments follow the tool's JSON \
Schema. Write several calls, one behind the other, when none needs the result of another. End \
your answer behind the last call: the results come in the next message, in the order of the \
calls. Never write a result yourself. There are no other tools that are called so than these, \
one JSON object a line:"""
# The end of a text that may become one of these; the end itself, if nothing may.
_MAY_OPEN = re.compile("|".join(re.escape(OPEN[:n]) for n in range(len(OPEN) - 1, 0, -1)) + r"|\Z")
_MAY_CLOSE = re.compile(
    "|".join([*(re.escape(CLOSE[:n]) for n in range(len(CLOSE) - 1, 0, -1)), r"\\", r"\Z"])
)
_MARKS = re.compile(r'\\["\\]|"|' + re.escape(CLOSE))
_NAMED = re.compile(r'\s*\{\s*"name"\s*:\s*"([^"\\]+)"\s*,\s*"arguments"\s*:\s*(.*)', re.DOTALL)
_encode = msgspec.json.Encoder().encode


class Written(NamedTuple):
    """A call as the model wrote it; `arguments` may be no JSON."""

    name: str
    arguments: str


def instructions(tools: Sequence[Tool]) -> str:
    """What the model is told about the tools, for the end of the system prompt."""
    return "\n".join([_INSTRUCTIONS, *map(_declared, sorted(tools, key=lambda tool: tool.name))])


def call_text(name: str, arguments: str) -> str:
    """What the model would have written to make this call."""
    return f"{OPEN}\n{written_calls.call_text(name, arguments)}\n{CLOSE}"


def _declared(tool: Tool) -> str:
    declared = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return _encode(declared).decode()


class Splitter:
    """Takes what a model writes in pieces, and gives words and calls in their order."""

    def __init__(self) -> None:
        self._left = ""  # not understood yet
        self._call: list[str] | None = None  # the pieces of the call that is being written
        self._is_in_string = False  # of its JSON
        self._is_behind_call = False

    def feed(self, piece: str) -> Iterator[str | Written]:
        """What this piece completes."""
        while piece:
            if self._call is None:
                words, piece = self._outside(piece)
                if words:
                    self._is_behind_call = False
                    yield words
            else:
                inner, piece = self._inside(piece)
                if inner is not None:
                    self._is_behind_call = True
                    yield from _read(inner) or (f"{OPEN}{inner}{CLOSE}",)

    def flush(self) -> str:
        """The words that were held back because a call might begin with them."""
        if self._call is not None:
            return ""
        words, self._left = self._left, ""
        return words if not self._is_behind_call or words.strip() else ""

    def finish(self) -> Iterator[str | Written]:
        """The rest, when no more comes: a call that was cut off is one that does not parse."""
        if self._call is not None:
            words, self._call = "".join([*self._call, self._left]), None
            yield from _read(words) or (OPEN + words,)
        elif words := self.flush():
            yield words

    def _outside(self, piece: str) -> tuple[str, str]:
        """Words up to the next call, and what stands behind its tag."""
        self._left += piece
        if self._is_behind_call:
            self._left = self._left.lstrip()
        words, tag, rest = self._left.partition(OPEN)
        if tag:
            self._left, self._call, self._is_in_string = "", [], False
            return words.rstrip(), rest
        # All but the end that may become a tag, and the space before that.
        held = next(m for m in _MAY_OPEN.finditer(words) if m.end() == len(words))
        words = words[: held.start()].rstrip()
        self._left = self._left[len(words) :]
        return words, ""

    def _inside(self, piece: str) -> tuple[str | None, str]:
        """The whole call, if it ends here, and what stands behind it.

        It ends at a tag that stands in no string of its JSON. Each character is looked at once: a
        call may hold a file.
        """
        assert self._call is not None
        text, at = self._left + piece, 0
        for mark in _MARKS.finditer(text):
            at = mark.end()
            if mark[0] == '"':
                self._is_in_string = not self._is_in_string
            elif mark[0] == CLOSE and not self._is_in_string:
                inner = "".join([*self._call, text[: mark.start()]])
                self._call, self._left = None, ""
                return inner, text[at:]
        held = next(m for m in _MAY_CLOSE.finditer(text, at) if m.end() == len(text)).start()
        self._call.append(text[:held])
        self._left = text[held:]
        return None, ""


def _read(inner: str) -> tuple[Written, ...]:
    """The call between the tags, or several; none if it is something else."""
    found = tuple(Written(*call) for call in replies.read(inner).calls)
    if not found and (named := _NAMED.fullmatch(inner)):
        return (Written(named[1], named[2].rstrip().removesuffix("}").rstrip()),)
    return found
