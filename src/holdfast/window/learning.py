"""What is learned of a model: how many of its tokens there are for each that is counted.

    learned = Learned(error=0.25)                   # as far off as the counter says that it may be
    learned.take(text=1_200, tools=0, tokens=1_380, doubt=130)
    learned.text                                    # 1.14: so many tokens for each that is counted

There are two ratios, one for texts and one for the declarations of tools, which vendors show to
their models in a form of their own. Each answer moves them as far as it is worth: a long request
more than a short one, the first answers more than later ones, and never as far as to believe one
answer alone. That is a Kalman filter of two numbers.
"""

import math
from collections.abc import Mapping
from typing import Any

from holdfast.errors import InvalidInput

# How far off a ratio may be before the first answer, and how much it may drift between two.
_TEXT_SPREAD, _TOOLS_SPREAD = 0.05, 0.30
_TEXT_DRIFT, _TOOLS_DRIFT = 0.01, 0.05
_RANGE = (0.2, 5.0)

# An answer may be off by what is around the messages, and by a share of what was counted.
_NOISE_TOKENS, _NOISE_SHARE = 12, 0.10
_SURPRISE_MAX = 2.0  # standard deviations that one answer may move the ratios by
_UNSURE_MAX = 2.0  # so many times less sure one answer makes, at most

# More or less than this many times what was expected is not believed at first: some servers report
# what they had cached, or nothing of a picture. The third in a row is.
_BELIEVED = (0.5, 2.0)
_REFUSED_MAX = 2
_SMALL = 100

_ERRORS_KEPT = 60
_ERRORS_MIN = 20  # what is missing to so many is filled up with what the counter states
_ERROR_MIN = 0.05  # frames are not published: no counter is better, whatever it states
_ERROR_MAX = 1.0
_ERROR_TOKENS = 200  # of fewer tokens than these an error says more about frames than about texts
ERROR_UNKNOWN = 0.10


class Learned:
    """What the answers of one model have taught. `error` is what its counter says of itself."""

    def __init__(self, error: float = ERROR_UNKNOWN) -> None:
        self.text = 1.0
        self.tools = 1.0
        self.answers = 0
        self._ratios: list[float] = []  # those that single answers had
        self._refused = 0
        # The variances of both ratios and what they have in common.
        self._text_doubt = max(error, _TEXT_SPREAD) ** 2
        self._tools_doubt = _TOOLS_SPREAD**2
        self._shared_doubt = 0.0

    def tokens(self, text: float, tools: float = 0) -> float:
        """So many tokens of the model for what was counted; less than none for what is gone."""
        return self.text * text + self.tools * tools

    def error(self, stated: float = ERROR_UNKNOWN) -> float:
        """The relative error that 95 of 100 estimates stay below, as far as was seen.

        It is that of the ratio as it is now: an answer that was far from what was believed before
        it is none any more once it is what is believed.
        """
        errors = [min(_ERROR_MAX, abs(ratio / self.text - 1)) for ratio in self._ratios]
        missing = _ERRORS_MIN - len(errors)
        seen = sorted(errors + [max(stated, _ERROR_MIN)] * missing)
        return seen[math.ceil(0.95 * len(seen)) - 1]

    def judge(self, estimated: float, unreported: float, reported: int) -> None:
        """Remember how far off an estimate was, if enough was unreported to say something."""
        if unreported >= _ERROR_TOKENS and self.answers:
            short = (reported - estimated) / unreported
            self._ratios.append(_within(self.text * (1 + short), _RANGE))
            del self._ratios[:-_ERRORS_KEPT]

    def take(self, text: float, tools: float, tokens: float, doubt: float = 0) -> None:
        """`tokens` were reported for what was counted as `text` and `tools`.

        All are negative for what was taken out. `doubt` is how far off `tokens` may be itself.
        """
        self.answers += 1
        if self._is_believed(text, tools, tokens, doubt):
            noise = _NOISE_TOKENS + _NOISE_SHARE * (abs(text) + abs(tools)) + doubt
            self._move(text, tools, tokens, noise)

    def _is_believed(self, text: float, tools: float, tokens: float, doubt: float) -> bool:
        expected = self.tokens(text, tools)
        low, high = sorted((expected * _BELIEVED[0], expected * _BELIEVED[1]))
        is_usual = low <= tokens <= high
        if is_usual or abs(tokens - expected) <= _SMALL + doubt:
            if is_usual or not _is_short(text, tools):  # which tells neither way
                self._refused = 0
            return True
        self._refused += 1
        return self._refused > _REFUSED_MAX

    def _move(self, text: float, tools: float, tokens: float, noise: float) -> None:
        self._text_doubt += _TEXT_DRIFT**2
        self._tools_doubt += _TOOLS_DRIFT**2
        to_text = self._text_doubt * text + self._shared_doubt * tools
        to_tools = self._shared_doubt * text + self._tools_doubt * tools
        spread = text * to_text + tools * to_tools + noise**2
        most = _SURPRISE_MAX * math.sqrt(spread)
        surprise = tokens - self.tokens(text, tools)
        step = max(-most, min(most, surprise)) / spread
        self.text = _within(self.text + to_text * step, _RANGE)
        self.tools = _within(self.tools + to_tools * step, _RANGE)
        # Whoever is surprised is less sure than before, so that a second answer counts for more;
        # but a few words with a long frame around them say nothing about ratios.
        again = _within(abs(surprise) / most, (1.0, _UNSURE_MAX)) ** 2
        again = 1.0 if _is_short(text, tools) else again
        self._text_doubt = (self._text_doubt - to_text * to_text / spread) * again
        self._tools_doubt = (self._tools_doubt - to_tools * to_tools / spread) * again
        self._shared_doubt = (self._shared_doubt - to_text * to_tools / spread) * again

    # JSON

    @property
    def values(self) -> dict[str, Any]:
        """Everything that was learned, as JSON."""
        return {
            "text": self.text,
            "tools": self.tools,
            "answers": self.answers,
            "refused": self._refused,
            "doubts": [self._text_doubt, self._tools_doubt, self._shared_doubt],
            "ratios": list(self._ratios),
        }

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Learned":
        """From `values`, checked: what was stored may have been written by anybody."""
        self = cls()
        try:
            self.text = _within(number(values["text"]), _RANGE)
            self.tools = _within(number(values["tools"]), _RANGE)
            self.answers, self._refused = int(values["answers"]), int(values["refused"])
            doubts = [number(each) for each in values["doubts"]]
            self._text_doubt, self._tools_doubt, self._shared_doubt = doubts
            self._ratios = [abs(number(each)) for each in values["ratios"]][-_ERRORS_KEPT:]
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InvalidInput("learned", f"is not what a ledger wrote: {error!r}") from error
        if self._text_doubt <= 0 or self._tools_doubt <= 0:
            raise InvalidInput("learned.doubts", "are more than 0")
        return self


def _is_short(text: float, tools: float) -> bool:
    """Whether there is no more of it than of what is around a message."""
    return abs(text) + abs(tools) <= _NOISE_TOKENS


def _within(ratio: float, bounds: tuple[float, float]) -> float:
    return min(bounds[1], max(bounds[0], ratio))


def number(value: Any) -> float:
    """A finite number of JSON; anything else is a ValueError."""
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError(f"{value!r} is no number")
    return float(value)
