"""The budget of a window: how many tokens a request may have, and from when on it is made smaller.

    budget = Budget(context=32_000)
    room = budget.room(context=200_000, output=64_000)     # the model's own limits
    room.context, room.reserve, room.prompt                # 32000, 6144, 25856

What a model may read and write together is divided: `reserve` is kept for the answer, and `prompt`
is what the request may have, system prompt and tools included.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from holdfast.errors import InvalidInput
from holdfast.frozen import Value

# Between a small context and a large one, the share of its half that an answer may take grows.
_SHARE_MIN, _SHARE_MAX = 0.33, 0.60
_CONTEXT_LARGE = 80_000


class Room(NamedTuple):
    """Tokens: of prompt and answer together, kept for the answer, left for the prompt."""

    context: int
    reserve: int
    prompt: int


class Budget(Value, frozen=True, kw_only=True):
    """How a window is filled. Shares are of what the prompt may have.

    context     the most that prompt and answer may have together; None is the model's own limit
    reserve     what is kept for the answer; None is `answer_tokens` of the context
    start       from this share on a policy makes the window smaller
    target      down to this share
    pressure    from this share on it may also take what it would rather keep; 0 is always: then
                policies fold whenever the window is over its target
    keep_turns  so many of the latest turns are kept whole
    pinned      turns that are always kept, counted from 1
    """

    context: int | None = None
    reserve: int | None = None
    start: float = 0.80
    target: float = 0.60
    pressure: float = 0.90
    keep_turns: int = 5
    pinned: tuple[int, ...] = ()

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Budget":
        """The budget in a JSON object, such as `settings.budget`."""
        if not isinstance(values, Mapping):
            raise InvalidInput("budget", f"is a dict, not {type(values).__name__}")
        for name in values:
            if name not in cls.__struct_fields__:
                known = ", ".join(cls.__struct_fields__)
                raise InvalidInput(f"budget.{name}", f"is not known: there are {known}")
        return cls(**values)

    def room(self, context: int, output: int | None = None, prompt: int | None = None) -> Room:
        """What there is room for with a model of these limits.

        `context` is what its prompt and answer may have together, `output` its longest answer and
        `prompt` its longest prompt, where those are limited too.
        """
        if self.context is not None:
            context = min(self.context, context)
        reserve = self.reserve
        if reserve is None:
            reserve = answer_tokens(context, output)
        elif output is not None:
            reserve = min(reserve, output)
        left = max(0, context - reserve)
        return Room(context, reserve, left if prompt is None else min(left, prompt))

    def _settle(self) -> None:
        self._settle_counts("keep_turns", optional=("context", "reserve"))
        self._settle_number("start", "target", "pressure")
        for name in ("start", "target", "pressure"):
            if getattr(self, name) > 1:
                raise InvalidInput(name, f"is a share from 0 to 1, not {getattr(self, name)}")
        if self.target > self.start:
            raise InvalidInput("target", f"is {self.target}, above start ({self.start})")
        if self.context == 0:
            raise InvalidInput("context", "is at least one token")
        if None not in (self.context, self.reserve) and self.reserve >= self.context:  # type: ignore[operator]
            raise InvalidInput("reserve", f"is {self.reserve}, all of the context or more")
        self._settle_tuple("pinned", int)
        for turn in self.pinned:
            if isinstance(turn, bool) or turn < 1:
                raise InvalidInput("pinned", f"holds the numbers of turns, from 1 up, not {turn!r}")


def answer_tokens(context: int, output: int | None = None) -> int:
    """What is kept for an answer by default: more than a third of half the context, at most 0.6."""
    half = context // 2
    tokens = int(half * _share(half))
    return min(tokens, output) if output else tokens


def result_share(context: int) -> float:
    """The share of the free context that one input or one tool result may take."""
    return _share(context)


def result_limit(
    context: int, reserved: int, configured: int | None = None, *, is_all: bool = False
) -> int:
    """The most tokens that one input or one tool result may have.

    `reserved` is what is not free of the context: the prompt so far, and what is kept for the
    answer. `configured` is the caller's own limit, which can only make it smaller; it does not
    hold for a tool that was asked to read everything (`is_all`).
    """
    for name, tokens in (("context", context), ("reserved", reserved), ("configured", configured)):
        if tokens is not None and (type(tokens) is not int or tokens < 0):
            raise InvalidInput(name, f"is a whole number from 0 up, not {tokens!r}")
    limit = int(max(0, context - reserved) * result_share(context))
    return limit if configured is None or is_all else min(limit, configured)


def _share(tokens: int) -> float:
    growth = tokens / _CONTEXT_LARGE * (_SHARE_MAX - _SHARE_MIN)
    return min(_SHARE_MAX, max(_SHARE_MIN, _SHARE_MIN + growth))


def max_tokens(room: Room, used: int, setting: int = 0) -> int | None:
    """How long the answer to a prompt of `used` tokens may be.

    `setting` is the caller's: a number is taken as it is, -1 is no limit (None), and 0 is what the
    prompt leaves free, at most what is kept for an answer. Everything in the prompt is in `used`,
    and nothing is taken off a second time.
    """
    if setting < -1:
        raise InvalidInput("max_tokens", f"is -1, 0 or a number of tokens, not {setting}")
    if setting:
        return None if setting == -1 else setting
    return max(0, min(room.context - used, room.reserve))
