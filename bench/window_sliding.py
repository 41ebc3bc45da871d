"""Policies that only ever let go of the oldest: what they show is worked out, not folded.

What they show is the head, the turns from one on, and, where that turn alone is too large, its
beginning and its end. That is five numbers, so that a trim before every call, which would be a fold
each time, is replayed in no time. Nothing is put in the place of what is gone.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import NamedTuple

from window_billing import Outcome, opened
from window_conversations import Talk

NOTHING = -1  # the end of a prompt that was never sent


class Prompt(NamedTuple):
    """The head and the messages from `cut` to `gap` and from `resume` to `end`."""

    cut: int
    gap: int
    resume: int
    end: int

    def tokens(self, talk: Talk) -> int:
        shown = talk.tokens(self.cut, self.gap) + talk.tokens(self.resume, self.end)
        return talk.head_tokens + shown

    def from_turn(self, talk: Talk, turn: int) -> "Prompt":
        cut = talk.starts[turn]
        return self if cut == self.cut else Prompt(cut, cut, cut, self.end)


Slide = Callable[[Talk, Prompt], Prompt]


def replay_sliding(talk: Talk, window: int, slide: Slide) -> Outcome:
    """A session in which `slide` says before every call what is shown, from what was and is new."""
    outcome = opened(talk, window)
    before = Prompt(talk.head, talk.head, talk.head, NOTHING)
    shown = bytearray(len(talk.facts))
    turn = -1
    for call in talk.calls:
        now = slide(talk, before._replace(end=call))
        is_fold = now[:3] != before[:3]
        outcome.folds += is_fold
        outcome.bill(now.tokens(talk), cached(talk, before, now))
        if talk.turn[call] != turn:
            turn = talk.turn[call]
            _show(talk, now, shown)
            outcome.sample(shown, bisect_left(talk.facts, call))
        before = now
    last = before._replace(end=len(talk.said))
    outcome.lost = talk.total - last.tokens(talk)
    return outcome


def cached(talk: Talk, before: Prompt, now: Prompt) -> int:
    """The tokens with which both prompts begin."""
    if before.end == NOTHING:
        return 0
    if before.cut != now.cut:
        return talk.head_tokens
    if before[1:3] == now[1:3]:
        return before.tokens(talk)
    same = min(now.gap, before.gap if before.gap != before.resume else before.end)
    return talk.head_tokens + talk.tokens(now.cut, max(now.cut, same))


def _show(talk: Talk, prompt: Prompt, shown: bytearray) -> None:
    shown[:] = bytes(len(shown))
    parts = ((0, talk.head), (prompt.cut, prompt.gap), (prompt.resume, prompt.end))
    for start, stop in parts:
        first, last = bisect_left(talk.facts, start), bisect_left(talk.facts, stop)
        shown[first:last] = b"\x01" * (last - first)


# What they do


def everything(_: Talk, prompt: Prompt) -> Prompt:
    """As if no window had an end."""
    return prompt


def trim_to(limit: float) -> Slide:
    """Before every call, whole turns go, the oldest first, until the prompt fits; and if the
    current turn alone does not, its oldest calls with their results."""

    def slide(talk: Talk, prompt: Prompt) -> Prompt:
        if prompt.tokens(talk) <= limit:
            return prompt
        current = talk.turn[prompt.end]
        turn = talk.turn[prompt.cut]
        while turn < current and prompt.tokens(talk) > limit:
            turn += 1
            prompt = prompt.from_turn(talk, turn)
        return prompt if prompt.tokens(talk) <= limit else _trim_inside(talk, prompt, limit)

    return slide


def trim_each_turn(limit: float, window: int) -> Slide:
    """Before each turn the oldest messages go, a call with its results, until the prompt fits the
    limit; within a turn only what has to go so that it fits the window."""
    hard = trim_to(window)

    def slide(talk: Talk, prompt: Prompt) -> Prompt:
        start = talk.starts[talk.turn[prompt.end]]
        if prompt.end in talk.first_calls and prompt.tokens(talk) > limit:
            cut = prompt.cut
            while (
                cut < start and prompt._replace(cut=cut, gap=cut, resume=cut).tokens(talk) > limit
            ):
                cut += 1
                while cut < start and talk.is_result[cut]:
                    cut += 1
            prompt = Prompt(cut, cut, cut, prompt.end)
        return hard(talk, prompt)

    return slide


def _trim_inside(talk: Talk, prompt: Prompt, limit: float) -> Prompt:
    """Never the turn's first message, nor the last that is no result, nor its results."""
    at = max(prompt.resume, prompt.cut + 1)
    while prompt.tokens(talk) > limit:
        at += 1
        while at < prompt.end and talk.is_result[at]:
            at += 1
        if at >= prompt.end:
            break
        prompt = Prompt(prompt.cut, prompt.cut + 1, at, prompt.end)
    return prompt


def keep_last(turns: int, limit: int) -> Slide:
    """So many turns, the current one included; trimmed where they do not fit."""
    trim = trim_to(limit)

    def slide(talk: Talk, prompt: Prompt) -> Prompt:
        first = max(talk.turn[prompt.cut], talk.turn[prompt.end] - turns + 1)
        return trim(talk, prompt.from_turn(talk, first))

    return slide


def cut_at(cuts: Sequence[int]) -> Slide:
    """At each call what is shown begins at the given place: a plan made beforehand."""
    planned: dict[int, int] = {}

    def slide(talk: Talk, prompt: Prompt) -> Prompt:
        if not planned:
            planned.update(zip(talk.calls, cuts, strict=True))
        cut = planned[prompt.end]
        return prompt if cut == prompt.cut else Prompt(cut, cut, cut, prompt.end)

    return slide
