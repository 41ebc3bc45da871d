"""Plans: what a policy wants folded, and why, before anything is done.

    plan = policy.plan(view, situation)
    summaries = [await summarize(transcript(step.messages)) for step in plan.to_summarize]
    folds = apply(plan, summaries)          # append these to the log

A policy is pure: the same view and situation give the same plan. Only `apply` makes entries of it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from holdfast.entries import Fold
from holdfast.errors import InvalidInput
from holdfast.frozen import EMPTY, FrozenDict, Value
from holdfast.messages import Message
from holdfast.notes import CUT, SUMMARY_TASK, folded, summarized
from holdfast.window.situation import Situation
from holdfast.window.view import Count, Item, View

KINDS = ("drop", "shorten", "summarize")


class Step(Value, frozen=True, kw_only=True):
    """One fold to make: of the messages from seq `first` to `last`.

    kind           drop: `replacement` is shown, or nothing; shorten: `replacement`, a shorter form;
                   summarize: a summary of `messages`, which somebody has to write
    tokens_before  what the window has for them now, in tokens of the model
    tokens_after   what it will have; for a summary, the most that it may have
    task           what is asked of whoever writes a summary, in at most so many "{words}"
    """

    first: int
    last: int
    kind: str
    replacement: Message | None = None
    messages: tuple[Message, ...] = ()
    tokens_before: int = 0
    tokens_after: int = 0
    why: str = ""
    task: str = SUMMARY_TASK

    def _settle(self) -> None:
        if self.kind not in KINDS:
            raise InvalidInput("kind", f"is one of {', '.join(KINDS)}, not {self.kind!r}")
        self._settle_counts("first", "last", "tokens_before", "tokens_after")
        self._settle_tuple("messages", Message)
        if self.kind == "summarize" and not self.messages:
            raise InvalidInput("messages", "are missing: there is nothing to sum up")


class Plan(Value, frozen=True, kw_only=True):
    """What to fold. Without steps there is nothing to do, and `reason` says why not.

    by             the policy that made it
    reason         the decision, in words and numbers
    tokens_before  of the whole request, in tokens of the model
    tokens_after   once all is folded; summaries are counted at their longest
    numbers        those on which the decision rests
    """

    by: str
    reason: str
    steps: tuple[Step, ...] = ()
    tokens_before: int = 0
    tokens_after: int = 0
    numbers: FrozenDict = EMPTY

    @property
    def to_summarize(self) -> tuple[Step, ...]:
        """The steps for which somebody has to write a summary, in order."""
        return tuple(step for step in self.steps if step.kind == "summarize")

    @property
    def freed(self) -> int:
        """How many tokens fewer the request will have."""
        return max(0, self.tokens_before - self.tokens_after)

    def __bool__(self) -> bool:
        return bool(self.steps)

    def _settle(self) -> None:
        self._settle_texts("by", "reason")
        self._settle_tuple("steps", Step)
        self._settle_counts("tokens_before", "tokens_after")
        self._settle_objects("numbers")


class Policy(Protocol):
    """Decides what a model is no longer shown. Pure: no I/O, no clock, no provider."""

    @property
    def name(self) -> str:
        """What its folds are signed with."""

    def plan(self, view: View, situation: Situation) -> Plan:
        """What to fold now; a plan without steps when nothing has to be."""


def nothing(by: str, situation: Situation, reason: str) -> Plan:
    """The plan to leave everything as it is."""
    used = situation.used
    return Plan(by=by, reason=reason, tokens_before=used, tokens_after=used)


def planned(
    by: str,
    situation: Situation,
    steps: Iterable[Step],
    reason: str,
    numbers: Mapping[str, Any] = EMPTY,
) -> Plan:
    """The plan of these steps, in the order of the log, with its sums."""
    ordered = tuple(sorted(steps, key=lambda step: step.first))
    freed = sum(step.tokens_before - step.tokens_after for step in ordered)
    return Plan(
        by=by,
        reason=reason,
        steps=ordered,
        tokens_before=situation.used,
        tokens_after=max(0, situation.used - freed),
        numbers=FrozenDict(numbers),
    )


def runs(items: Sequence[Item], chosen: Iterable[int]) -> list[tuple[int, int]]:
    """The places in `chosen`, put together where they stand side by side: [start, stop) each.

    An item is left out if folding it would hide one that is not chosen: if it stands for messages
    among which others are shown (a fold with something open in it), or where folds overlap.
    """
    found: list[tuple[int, int]] = []
    for index in sorted(set(chosen)):
        if index + 1 < len(items) and items[index + 1].first <= items[index].last:
            continue
        if found and found[-1][1] == index and not _hides_before(items, found[-1][0], index):
            found[-1] = (found[-1][0], index + 1)
        elif not _hides_before(items, index, index):
            found.append((index, index + 1))
    return found


def _hides_before(items: Sequence[Item], start: int, last: int) -> bool:
    """Whether a fold of items[start] to items[last] would cover one that stands before them."""
    before = start - 1
    while before >= 0 and items[before].first == items[start].first:
        if items[before].last <= items[last].last:
            return True
        before -= 1
    return False


def apply(
    plan: Plan, summaries: Sequence[str] = (), tokens: Count | None = None
) -> tuple[Fold, ...]:
    """The folds of a plan, to be appended to the log in this order.

    `summaries` has a text for each of `plan.to_summarize`. `tokens` counts a message in tokens of
    the model; with it, a summary that is longer than its step allows is cut: a fold never makes
    the window larger. One that says nothing is replaced by a note.
    """
    wanted = plan.to_summarize
    if len(summaries) != len(wanted):
        raise InvalidInput("summaries", f"are {len(wanted)} for this plan, not {len(summaries)}")
    texts = iter(summaries)
    folds = []
    for step in plan.steps:
        replacement, after = step.replacement, step.tokens_after
        if step.kind == "summarize":
            replacement = _summary(step, next(texts), tokens)
            after = after if tokens is None else tokens(replacement)
        folds.append(
            Fold(
                first=step.first,
                last=step.last,
                replacement=replacement,
                by=plan.by,
                why=step.why or plan.reason,
                tokens_before=step.tokens_before,
                tokens_after=after,
            )
        )
    return tuple(folds)


def _summary(step: Step, text: str, tokens: Count | None) -> Message:
    last = step.messages[-1]
    turns = sum(message.starts_turn for message in step.messages) or 1
    if not text.strip():
        return folded(turns, last)
    message = summarized(text)
    while tokens is not None and (has := tokens(message)) > step.tokens_after:
        if not text:
            return folded(turns, last)  # there is not even room for what stands around a summary
        text = text[: int(len(text) * min(0.9, step.tokens_after / has))]
        message = summarized(text + CUT)
    return message
