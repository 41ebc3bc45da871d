"""What would Anthropic's prompt cache have read and written? Bills request bodies.

    cache = PromptCache()
    first = cache.bill(body, now_s=0)
    again = cache.bill(body, now_s=30)
    assert again.cache_read == first.cache_write

No network and no vendor: the rules are those that Anthropic publishes ("Prompt caching" and "Tool
use with prompt caching" in its documentation, as of 2026), and this module shares nothing with the
code that places breakpoints. The rules:

1.  A prompt is read in the order tools, system, messages. A block marked with `cache_control`
    (`{"type": "ephemeral"}`, with a `ttl` of "5m", the default, or "1h") is a breakpoint.
2.  A breakpoint writes one entry: the digest of everything up to and including its block. No entry
    is written for any earlier place. Blocks must be the same to the letter, the order of the keys
    in a tool's input included; a mark is not part of what it marks.
3.  A read looks backward from each breakpoint for entries that *earlier requests wrote*, at most
    20 places, the breakpoint's own being the first. The longest prefix found is read.
4.  At most 4 breakpoints. `cache_control` on the body itself marks the last block that can be
    marked and takes one of the 4, unless that block has the same mark already. Refused: a fifth,
    a 1h mark behind a 5m one, an automatic mark whose ttl differs from the one on its block.
5.  Thinking, empty texts and deferred tools cannot be marked (refused). Blocks inside a block
    cannot be cached by themselves: such a mark takes a slot and writes nothing. Thinking is cached
    as part of what comes after it.
6.  A prefix below the model's minimum is not cached, although marked; nobody is told.
7.  An entry lives for its ttl, and each use starts the time anew. It can be read once the answer
    to the request that wrote it has begun: requests sent at the same moment do not share.
8.  What changes a level changes what follows: tool definitions, model and output format change
    all; web search, citations and speed change system and messages; `tool_choice`, thinking
    parameters, effort and whether there is any image change the messages. `prompt_blocks` tells
    which models forget earlier thinking.
9.  Billed are: as read, the tokens up to the longest hit; as written, those from there to the last
    breakpoint (for 1h up to the last breakpoint of 1h, for 5m behind it); as input, the rest.
10. Nothing is shared between workspaces: one `PromptCache` is one workspace.

Where the rules leave something open, the stricter reading is taken, so that who does well here
does not do worse there. Every block is a place of the lookback (since 2026 the vendor counts a run
of `tool_use`, and a run of `tool_result`, as one: `runs_as_one=True`). A use starts anew the time
of the entry read and of those at the request's own breakpoints, of no others. A 1h mark on what a
living 5m entry holds does not make that entry live longer. Not modelled: tokens that the vendor
adds (of tool use, of server tools), its own writes while a server tool runs, context editing.

**What could have been read.** `Billed.readable` is what an ideal client would have read, and
`Total.share` is reads divided by it. It is the longest row of blocks from the start that this body
has in common with any body billed earlier, in tokens; marks are ignored, settings (rule 8) are not.
It has to end at a block that can be marked and to reach the minimum, and the earlier body has to
be within its ttl: the longest that any of its marks asked for, or 5 minutes if it had none. To
send the row again starts its time anew. The ideal client needs no lookback and not just 4
breakpoints, so no client reads more; one that changes its past may read less, however well it
marks.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from holdfast.errors import InvalidInput
from holdfast.testing.prompt_blocks import (
    LEVELS,
    TTL_S,
    Prompt,
    estimate,
    model_version,
    read_prompt,
)

__all__ = ["Billed", "Breakpoint", "PromptCache", "Total", "estimate", "min_tokens_of", "replay"]

LOOKBACK = 20

# The shortest prefix that is cached, from a version on; the newest first.
_MINIMUM: dict[str, tuple[tuple[tuple[int, int], int], ...]] = {
    "opus": (((5, 0), 512), ((4, 8), 1024), ((4, 7), 2048), ((4, 5), 4096), ((0, 0), 1024)),
    "sonnet": (((5, 5), 512), ((0, 0), 1024)),
    "haiku": (((4, 5), 4096), ((0, 0), 2048)),
    "fable": (((0, 0), 512),),
    "mythos": (((5, 0), 512), ((0, 0), 2048)),
}


class Breakpoint(NamedTuple):
    """A marked block: where, the tokens up to and including it, and whether that is enough."""

    path: str
    tokens: int
    ttl_s: int
    cached: bool


@dataclass(frozen=True)
class Billed:
    """What one request cost, in tokens of the prompt: `input + cache_read + cache_write` is all.

    `input` is what the vendor calls `input_tokens`: the rest, behind the last breakpoint.
    `cache_write_1h` is the part of `cache_write` that is billed for an hour. `readable` is what an
    ideal client would have read. A refused request costs nothing and leaves no trace.
    """

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    cache_write_1h: int = 0
    readable: int = 0
    breakpoints: tuple[Breakpoint, ...] = ()
    refused: str | None = None

    @property
    def total(self) -> int:
        """The tokens of the whole prompt."""
        return self.input + self.cache_read + self.cache_write


@dataclass(frozen=True)
class Total:
    """Several requests together: `sum(totals, Total())` pools those of several conversations.

    `refused` has the words for each request that was refused; they are in no other field.
    """

    reads: int = 0
    could: int = 0
    writes: int = 0
    input: int = 0
    requests: int = 0
    refused: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """The part that was read of what could have been; 1.0 when there was nothing to read."""
        return self.reads / self.could if self.could else 1.0

    def __add__(self, other: "Total") -> "Total":
        return Total(
            self.reads + other.reads,
            self.could + other.could,
            self.writes + other.writes,
            self.input + other.input,
            self.requests + other.requests,
            self.refused + other.refused,
        )


@dataclass
class _Entry:
    """Something that can be read: since when, for how long, and when it was last used."""

    since_s: float
    ttl_s: int
    used_s: float

    def is_alive(self, now_s: float) -> bool:
        return now_s < self.used_s + self.ttl_s


class PromptCache:
    """The cache of one workspace, empty at first. Time is the caller's: seconds from anywhere.

    `count_tokens` gets a block (a tool, or a block of system or of a message, without marks).
    `min_tokens` is the shortest prefix that is cached; None takes it from the model of each body.
    `answers_after_s` is how long after a request its answer begins, and its entries can be read.
    `runs_as_one` counts a run of calls, or of results, as one place of the lookback.
    """

    def __init__(
        self,
        count_tokens: Callable[[Any], int] = estimate,
        min_tokens: int | None = 1024,
        *,
        answers_after_s: float = 0.0,
        runs_as_one: bool = False,
    ) -> None:
        self._count_tokens = count_tokens
        self._min_tokens = min_tokens
        self._answers_after_s = answers_after_s
        self._runs_as_one = runs_as_one
        self._now_s = -math.inf
        self._entries: dict[bytes, _Entry] = {}  # what was written, at breakpoints
        self._sent: dict[bytes, _Entry] = {}  # every row of blocks that was sent
        self._tokens: dict[bytes, int] = {}

    def bill(self, body: dict[str, Any], now_s: float) -> Billed:
        """Send `body` at `now_s`: what is read and written, and what later requests may read."""
        if not now_s >= self._now_s:
            raise InvalidInput("now_s", f"is {self._now_s} or later, not {now_s!r}")
        prompt = read_prompt(body)
        if prompt.refused:
            return Billed(refused=prompt.refused)
        row = _Row(prompt, self._size)
        breakpoints = row.breakpoints(self._minimum(prompt))
        cached = [at for at, found in breakpoints if found.cached]
        hit = self._hit(row, cached, now_s)
        readable = self._readable(row, now_s)
        self._now_s = now_s
        self._write(row, hit, cached, now_s)
        self._remember(row, now_s)
        return _bill(row, hit, tuple(found for _, found in breakpoints), readable)

    def readable(self, body: dict[str, Any], now_s: float) -> int:
        """What an ideal client would read with `body` at `now_s`. Sends nothing."""
        return self._readable(_Row(read_prompt(body), self._size), now_s)

    def _size(self, text: str, block: dict[str, Any]) -> int:
        """A conversation sends its past again and again; each block is counted once."""
        key = hashlib.sha256(text.encode()).digest()
        if key not in self._tokens:
            self._tokens[key] = self._count_tokens(block)
        return self._tokens[key]

    def _minimum(self, prompt: Prompt) -> int:
        return min_tokens_of(prompt.model) if self._min_tokens is None else self._min_tokens

    def _is_ready(self, entry: _Entry | None, now_s: float) -> bool:
        if entry is None or not entry.is_alive(now_s):
            return False
        return now_s > entry.since_s + self._answers_after_s

    def _hit(self, row: "_Row", breakpoints: list[int], now_s: float) -> int | None:
        """The last block of the longest prefix that a breakpoint finds."""
        hits = (
            at
            for start in breakpoints
            for at in row.lookback(start, runs_as_one=self._runs_as_one)
            if self._is_ready(self._entries.get(row.keys[at]), now_s)
        )
        return max(hits, default=None)

    def _readable(self, row: "_Row", now_s: float) -> int:
        minimum = self._minimum(row.prompt)
        for at in reversed(range(len(row.keys))):
            if row.tokens[at] < minimum:
                return 0
            ready = self._is_ready(self._sent.get(row.keys[at]), now_s)
            if ready and row.prompt.blocks[at].is_markable:
                return row.tokens[at]
        return 0

    def _write(self, row: "_Row", hit: int | None, breakpoints: list[int], now_s: float) -> None:
        for at in breakpoints if hit is None else [*breakpoints, hit]:
            entry = self._entries.get(row.keys[at])
            if entry is not None and entry.is_alive(now_s):
                entry.used_s = now_s
            else:
                ttl_s = row.prompt.blocks[at].ttl_s
                self._entries[row.keys[at]] = _Entry(now_s, ttl_s, now_s)

    def _remember(self, row: "_Row", now_s: float) -> None:
        ttl_s = max((block.ttl_s for block in row.prompt.blocks), default=0) or TTL_S["5m"]
        for key in row.keys:
            sent = self._sent.get(key)
            if sent is not None and sent.is_alive(now_s):
                sent.ttl_s, sent.used_s = max(sent.ttl_s, ttl_s), now_s
            else:
                self._sent[key] = _Entry(now_s, ttl_s, now_s)


class _Row:
    """The blocks of a prompt with, for each, the digest and the tokens of all up to it."""

    def __init__(self, prompt: Prompt, size: Callable[[str, dict[str, Any]], int]) -> None:
        self.prompt = prompt
        self.tokens: list[int] = []
        self.keys: list[bytes] = []
        digest, level, total = hashlib.sha256(), 0, 0
        digest.update(prompt.settings[LEVELS[0]].encode() + b"\0")
        for block in prompt.blocks:
            while LEVELS[level] != block.level:
                level += 1
                digest.update(prompt.settings[LEVELS[level]].encode() + b"\0")
            text = block.text()
            digest.update(text.encode() + b"\0")
            total += size(text, block.value)
            self.keys.append(digest.digest())
            self.tokens.append(total)

    def breakpoints(self, minimum: int) -> list[tuple[int, Breakpoint]]:
        return [
            (at, Breakpoint(block.path, tokens, block.ttl_s, tokens >= minimum))
            for at, (block, tokens) in enumerate(zip(self.prompt.blocks, self.tokens, strict=True))
            if block.ttl_s
        ]

    def lookback(self, start: int, *, runs_as_one: bool) -> Iterator[int]:
        """The blocks that a breakpoint looks at, itself first."""
        places, last = 0, None
        for at in range(start, -1, -1):
            kind = self.prompt.blocks[at].kind
            if not (runs_as_one and kind == last and kind in ("tool_use", "tool_result")):
                places += 1
            if places > LOOKBACK:
                return
            last = kind
            yield at


def _bill(row: _Row, hit: int | None, breakpoints: tuple[Breakpoint, ...], readable: int) -> Billed:
    total = row.tokens[-1] if row.tokens else 0
    read = 0 if hit is None else row.tokens[hit]
    cached = [each for each in breakpoints if each.cached]
    end = max((each.tokens for each in cached), default=0)
    hour = max((each.tokens for each in cached if each.ttl_s == TTL_S["1h"]), default=0)
    return Billed(
        input=total - max(read, end),
        cache_read=read,
        cache_write=max(0, end - read),
        cache_write_1h=max(0, hour - read),
        readable=readable,
        breakpoints=breakpoints,
    )


def min_tokens_of(model: str) -> int:
    """The shortest prefix that is cached with this model; 1,024 for one that is not known."""
    family, version = model_version(model)
    steps = _MINIMUM.get(family, (((0, 0), 1024),))
    return next(tokens for since, tokens in steps if version >= since)


def replay(
    bodies: Iterable[dict[str, Any]], gap_s: float = 30, *, cache: PromptCache | None = None
) -> Total:
    """Send `bodies` one after the other, `gap_s` apart, through a new cache or the one given."""
    cache = PromptCache() if cache is None else cache
    start_s = max(0.0, cache._now_s + gap_s)
    total = Total()
    for number, body in enumerate(bodies):
        billed = cache.bill(body, start_s + number * gap_s)
        total += Total(
            billed.cache_read,
            billed.readable,
            billed.cache_write,
            billed.input,
            1,
            (f"request {number}: {billed.refused}",) if billed.refused else (),
        )
    return total
