"""What is known of one model's tokens: its last report, and what its answers have taught.

What a vendor reports is the truth about what was sent, and about what was written: the answer
stands in the next prompt with as many tokens. Only what came or went since is estimated.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from holdfast.errors import InvalidInput
from holdfast.messages import Message
from holdfast.parts import Thinking
from holdfast.usage import Usage
from holdfast.window.learning import ERROR_UNKNOWN, Learned, number
from holdfast.window.view import Count

_FRAME_SHARE = 0.05  # in the next prompt an answer differs by its frame, and by little else
_THOUGHT_SHARE = 0.5  # some servers drop from it what was thought
_GUESS_SHARE = 0.1


class Estimate(NamedTuple):
    """Tokens of a request before it is sent.

    tokens    as many as it should have
    margin    so many more it may have: 95 of 100 have no more
    reported  of these tokens, so many are known from reports; 0 when there was none
    """

    tokens: int
    margin: int
    reported: int = 0

    @property
    def most(self) -> int:
        """The tokens with their margin."""
        return self.tokens + self.margin


class Counted(NamedTuple):
    """What a counter says of a request: all of it, and the declarations of tools in it."""

    all: int
    tools: int = 0

    @property
    def text(self) -> int:
        """Everything but the tools."""
        return self.all - self.tools

    def check(self) -> "Counted":
        """Itself, if it is possible."""
        if type(self.all) is not int or self.all < 0:
            raise InvalidInput("counted", f"is a whole number from 0 up, not {self.all!r}")
        if type(self.tools) is not int or not 0 <= self.tools <= self.all:
            why = f"is a part of what is counted ({self.all}), not {self.tools!r}"
            raise InvalidInput("tools", why)
        return self


class Answer(NamedTuple):
    """An answer that stands in the next prompt.

    weighs   as counted
    carried  as reported, or as best known
    doubt    how far off `carried` may be
    """

    weighs: int = 0
    carried: float = 0.0
    doubt: float = 0.0


class Known:
    """What is known of one model. `stated` is the error that its counter states."""

    def __init__(self, stated: float = ERROR_UNKNOWN) -> None:
        self.learned = Learned(stated)
        self._input: int | None = None  # the last report; None before the first
        self._counted = Counted(0)  # the same request, as counted
        self._answer = Answer()

    def take(self, counted: Counted, reported: int, changed: int | None) -> float | None:
        """A report. Gives back what the vendor counted for what came since the one before."""
        learned = self.learned
        added = None if self._input is None else reported - self._input - self._answer.carried
        text, tools = self._change(counted)
        # Of what came while as much went the ratio cannot be seen: then all of it tells more.
        hidden = max(0, (changed or 0) - abs(counted.all - self._counted.all))
        if added is None or hidden > abs(text):
            whole = learned.tokens(counted.text, counted.tools)
            learned.judge(whole, whole, reported)
            learned.take(counted.text, counted.tools, reported)
        else:
            learned.judge(*self._reckon(counted, changed), reported)
            learned.take(text, tools, added, self._answer.doubt + _GUESS_SHARE * hidden)
        self._input, self._counted, self._answer = reported, counted, Answer()
        return added

    def answered(self, answer: Message, usage: Usage, count: Count) -> None:
        """The report just taken was of a request that this message answers."""
        self._answer = _answer(answer, usage, self.learned, count)

    def forget(self) -> None:
        """The last report holds no more; what was learned does."""
        self._input, self._counted, self._answer = None, Counted(0), Answer()

    def estimate(self, counted: Counted, changed: int | None, stated: float) -> Estimate:
        """What such a request has; see Ledger.estimate."""
        tokens, unreported = self._reckon(counted, changed)
        margin = unreported * self.learned.error(stated)
        reported = 0.0 if self._input is None else self._input + self._answer.carried
        return Estimate(_up(tokens), _up(margin), int(min(tokens, reported)))

    def _reckon(self, counted: Counted, changed: int | None) -> tuple[float, float]:
        """The tokens, and how many of them nobody has reported."""
        learned = self.learned
        whole = learned.tokens(counted.text, counted.tools)
        if self._input is None:
            return whole, whole
        if counted == self._counted and not changed:
            return self._input, 0  # the request that was sent, once more
        text, tools = self._change(counted)
        came_and_went = learned.tokens(max(changed or 0, abs(text)), abs(tools))
        if came_and_went > whole:  # most of what was reported is folded away: less to be unsure of
            return whole, whole
        tokens = self._input + self._answer.carried + learned.tokens(text, tools)
        return max(0.0, tokens), self._answer.carried + came_and_went

    def _change(self, counted: Counted) -> tuple[int, int]:
        """What came since the last report and its answer, as counted: texts, and tools."""
        text = counted.text - self._counted.text - self._answer.weighs
        return text, counted.tools - self._counted.tools

    # JSON

    @property
    def values(self) -> dict[str, Any]:
        """Everything, as JSON."""
        return {
            "learned": self.learned.values,
            "input": self._input,
            "counted": list(self._counted),
            "answer": list(self._answer),
        }

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Known":
        """From `values`, checked."""
        self = cls()
        self.learned = Learned.of(values["learned"])
        self._counted = Counted(*values["counted"]).check()
        weighs, carried, doubt = values["answer"]
        self._answer = Answer(Counted(weighs).check().all, number(carried), number(doubt))
        if values["input"] is not None:
            self._input = Counted(values["input"]).check().all
        return self


def _answer(answer: Message, usage: Usage, learned: Learned, count: Count) -> Answer:
    """What an answer will have in the next prompt: what was written.

    What was thought before it stays only while the turn goes on with results of its calls, and
    only where the message holds the vendor's thinking.
    """
    weighs = count(answer)
    written, thought = usage.output or 0, usage.reasoning or 0
    is_thinking = _holds_thinking(answer)
    if not written:
        return Answer(weighs, learned.tokens(weighs), _GUESS_SHARE * weighs)
    if not thought and not is_thinking:
        return Answer(weighs, written, _FRAME_SHARE * written)
    if is_thinking and answer.calls:
        doubt = _FRAME_SHARE * written + _THOUGHT_SHARE * (thought or weighs)
        return Answer(weighs, written, doubt)
    # Vendors round what was thought, and some hide more than they say: at most it is what is seen.
    seen = learned.tokens(count(_without_thinking(answer)))
    carried = min(seen, written - thought) if written > thought else seen
    return Answer(weighs, carried, _FRAME_SHARE * carried + _GUESS_SHARE * thought)


def _holds_thinking(message: Message) -> bool:
    parts = message.content if isinstance(message.content, tuple) else ()
    signed = any(call.signature for call in message.tool_calls)
    return signed or any(type(part) is Thinking for part in parts)


def _without_thinking(message: Message) -> Message:
    parts = message.content if isinstance(message.content, tuple) else ()
    if not any(type(part) is Thinking for part in parts):
        return message
    kept = tuple(part for part in parts if type(part) is not Thinking)
    # Under an id of its own, because counts are kept by the id.
    return message.replace(content=kept or None, id=f"{message.id}:said")


def _up(tokens: float) -> int:
    return -int(-tokens // 1)
