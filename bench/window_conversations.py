"""Conversations for bench/window.py: read from a folder, with facts planted, and strung together.

A folder holds `*.jsonl` or `*.jsonl.gz`, a conversation a line: `{"id", "messages"}`, messages in
the form of OpenAI's chat API. They are rendered once, so that every call has its result, and the
ids of messages and calls are made unique, so that conversations can stand behind each other.

Of the messages of 20 tokens and more, every fifth is given a fact, whoever says it but the system:
a word that stands nowhere else, in a place of its text that depends on the message's id alone.
"""

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

from holdfast import codec
from holdfast.messages import Message, Role
from holdfast.providers.tokens import counter, message_tokens
from holdfast.window.render import render

DIALOGUES = "tau-bench"  # the file of short dialogues, where there is one
DIALOGUE_TOKENS_MAX = 16_000
TURNS_MIN = 200
WINDOWS_MIN = 4
ROUNDS_MAX = 50
FACT_EVERY = 5
FACT_TOKENS_MIN = 20
FACT = "fact-{:06d}"
FACT_PATTERN = r"fact-\d{6,}"

_o200k = counter("o200k")


class Said(NamedTuple):
    """A message, its tokens, and the fact that was planted in it."""

    message: Message
    tokens: int
    fact: str | None = None


class Talk:
    """A conversation. Its head is what is always shown: what stands before the first turn, most
    often a system prompt.

    Places are indexes of messages. `starts` are those at which turns begin, `calls` those of the
    assistant's messages, each of which answers a prompt of what was said before it.
    """

    def __init__(
        self, name: str, said: Sequence[Said], kind: str = "long", *, head: int | None = None
    ) -> None:
        self.name = name
        self.kind = kind
        self.said = tuple(said)
        roles = [each.message.role for each in said]
        self.starts = [at for at, each in enumerate(said) if each.message.starts_turn]
        first = self.starts[0] if self.starts else len(said)
        self.head = first if head is None else head
        self.calls = [at for at in range(self.head, len(said)) if roles[at] is Role.ASSISTANT]
        self.is_result = [role is Role.TOOL for role in roles]
        self.turn = [number - 1 for number in accumulate(m.message.starts_turn for m in said)]
        self.sums = list(accumulate((each.tokens for each in said), initial=0))
        self.facts = [at for at, each in enumerate(said) if each.fact is not None]

    @property
    def total(self) -> int:
        return self.sums[-1]

    @property
    def head_tokens(self) -> int:
        return self.sums[self.head]

    @cached_property
    def turn_tokens_max(self) -> int:
        """The largest turn, with the head before it."""
        bounds = [*self.starts, len(self.said)]
        sizes = (self.sums[stop] - self.sums[start] for start, stop in pairwise(bounds))
        return self.head_tokens + max(sizes, default=0)

    @cached_property
    def first_calls(self) -> set[int]:
        """The first call of each turn."""
        first: dict[int, int] = {}
        for call in self.calls:
            first.setdefault(self.turn[call], call)
        return set(first.values())

    def with_request(self) -> "Talk":
        """The same with its first request in the head."""
        return Talk(self.name, self.said, self.kind, head=self.starts[0] + 1)

    def tokens(self, start: int, stop: int) -> int:
        """Of the messages from `start` up to `stop`."""
        return self.sums[stop] - self.sums[start]

    def __repr__(self) -> str:
        return f"<talk {self.name}: {len(self.starts)} turns, {self.total:,} tokens>"


class Sessions(NamedTuple):
    """What is replayed at one window; `too_large` have a turn that is larger than it."""

    fitting: list[Talk]
    too_large: list[Talk]
    note: str


def read_folder(folder: Path) -> list[Talk]:
    """All conversations of a folder, in the order of files and lines."""
    talks: list[Talk] = []
    planted = 0
    for path in sorted([*folder.glob("*.jsonl"), *folder.glob("*.jsonl.gz")]):
        kind = "dialogue" if path.name.startswith(DIALOGUES) else "long"
        for number, line in enumerate(_lines(path)):
            raw = json.loads(line)["messages"]
            entries = [entry for each in raw for entry in codec.read_plain(json.dumps(each))]
            messages = [entry for entry in entries if isinstance(entry, Message)]
            talk = talk_of(f"{path.name.partition('.')[0]}:{number}", messages, planted, kind)
            planted += len(talk.facts)
            talks.append(talk)
    return talks


def _lines(path: Path) -> Iterator[str]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", newline="\n") as lines:
        yield from lines


def talk_of(name: str, messages: Iterable[Message], planted: int = 0, kind: str = "long") -> Talk:
    """A conversation of these messages, with facts in them; `planted` is how many there are
    already elsewhere."""
    said = []
    long_enough = 0
    for number, message in enumerate(render(messages).messages):
        message = _made_unique(message, name, number)
        tokens = message_tokens(message, _o200k)
        fact = None
        is_text = isinstance(message.content, str) and message.role is not Role.SYSTEM
        if is_text and tokens >= FACT_TOKENS_MIN:
            long_enough += 1
            if long_enough % FACT_EVERY == 1:
                fact = FACT.format(planted)
                planted += 1
                message = _with_fact(message, fact)
                tokens = message_tokens(message, _o200k)
        said.append(Said(message, tokens, fact))
    return Talk(name, said, kind)


def _made_unique(message: Message, name: str, number: int) -> Message:
    calls = tuple(call.replace(id=f"{name}:{call.id}") for call in message.tool_calls)
    answered = message.tool_call_id
    return message.replace(
        id=f"{name}:{number}",
        tool_calls=calls,
        tool_call_id=None if answered is None else f"{name}:{answered}",
    )


def _with_fact(message: Message, fact: str) -> Message:
    """With the fact at a word's end, somewhere from the first character to the last."""
    text = str(message.content)
    at = zlib.crc32(message.id.encode()) * len(text) >> 32
    end = text.find(" ", at)
    end = len(text) if end < 0 else end
    return message.replace(content=f"{text[:end]} {fact}{text[end:]}")


# Sessions


def sessions(talks: Sequence[Talk], window: int) -> Sessions:
    """The conversations of four windows and more, and the dialogues strung into such."""
    dialogues = [talk for talk in talks if talk.kind == "dialogue"]
    if not dialogues:
        dialogues = [talk for talk in talks if _is_dialogue(talk)]
    short = {id(talk) for talk in dialogues}
    long = [talk for talk in talks if id(talk) not in short and talk.total >= WINDOWS_MIN * window]
    strung, rounds = string(dialogues, window)
    found = [*long, *strung]
    note = f"the dialogues were gone through {rounds} times" if rounds > 1 else ""
    return Sessions(
        [talk for talk in found if talk.turn_tokens_max <= window],
        [talk for talk in found if talk.turn_tokens_max > window],
        note,
    )


def _is_dialogue(talk: Talk) -> bool:
    has_tools = any(each.message.tool_calls for each in talk.said)
    return has_tools and talk.total < DIALOGUE_TOKENS_MAX


def string(dialogues: Sequence[Talk], window: int) -> tuple[list[Talk], int]:
    """Dialogues in sessions of 200 turns and four windows at least, and how often each is used.

    The first system prompt of a session is kept. Where there are too few for one session, they
    are gone through again, with other ids and other facts.
    """
    made: list[Talk] = []
    said: list[Said] = []
    turns = tokens = rounds = 0
    facts = sum(len(talk.facts) for talk in dialogues)
    while dialogues and not made and rounds < ROUNDS_MAX:
        for talk in dialogues:
            start = talk.head if said else 0
            said += _again(talk, rounds, facts)[start:]
            turns += len(talk.starts)
            tokens += talk.tokens(start, len(talk.said))
            if turns >= TURNS_MIN and tokens >= WINDOWS_MIN * window:
                made.append(Talk(f"strung:{len(made)}", said, "strung"))
                said, turns, tokens = [], 0, 0
        rounds += 1
    return made, rounds


def _again(talk: Talk, round: int, facts: int) -> Sequence[Said]:
    """What is said in a dialogue; after the first round under other ids, with other facts."""
    if not round:
        return talk.said
    again = []
    for number, (message, tokens, fact) in enumerate(talk.said):
        if fact is not None:
            new = FACT.format(int(fact.removeprefix("fact-")) + round * facts)
            message = message.replace(content=str(message.content).replace(fact, new))
            fact = new
        message = _made_unique(message, f"{talk.name}:{round}", number)
        again.append(Said(message, tokens, fact))
    return again


def spread(talks: Sequence[Talk], count: int) -> list[Talk]:
    """At most so many of them, from the whole list evenly."""
    if len(talks) <= count:
        return list(talks)
    return [talks[number * len(talks) // count] for number in range(count)]
