"""What differs from one Claude to the next, by the version in its name.

| from | what changed                                                                             |
|------|------------------------------------------------------------------------------------------|
| 4.5  | answers by a JSON Schema (`output_config.format`)                                        |
| 4.6  | thinking is adaptive, steered by `output_config.effort`; a budget still works            |
| 4.7  | a budget and a temperature are refused                                                   |
| 5.0  | thinks unless told not to                                                                |
| 5.1  | always thinks; thinking is signed together with all that stood before it                 |

A name without a version is taken for a new model; one that is no Claude, as compatible
servers have, for an old one: most of them know what was there first.
"""

import re
from typing import Any, NamedTuple

from holdfast.errors import InvalidInput
from holdfast.settings import Settings

BUDGET_MIN = 1_024
TOKENS_MAX = 8_192
TOKENS_MAX_THINKING = 16_000
ANSWER_MIN = 6_000  # what is left for the answer behind the largest budget
BUDGETS = {
    "minimal": BUDGET_MIN,
    "low": 4_000,
    "medium": 10_000,
    "high": 24_000,
    "xhigh": 32_000,
    "max": 48_000,
}
_EFFORTS = {"minimal": "low", "xhigh": "high"}  # where the model does not know the level itself
_VERSION = re.compile(r"claude-(?:[a-z]+-)*(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")
_UNVERSIONED = (5, 0)


class Thought(NamedTuple):
    """How the model thinks before it answers, as fields of a request."""

    thinking: dict[str, Any] | None = None
    effort: str | None = None
    tokens_max: int = TOKENS_MAX


class Traits(NamedTuple):
    """What a model takes. The table above says which does."""

    has_schema: bool
    is_adaptive: bool
    takes_budget: bool
    takes_temperature: bool
    thinks_unasked: bool
    always_thinks: bool

    @property
    def binds_prefix(self) -> bool:
        """Whether thinking is signed together with all that stood before it."""
        return self.always_thinks

    @classmethod
    def of(cls, model: str) -> "Traits":
        """Those of the model of this name."""
        version = _version_of(model)
        return cls(
            has_schema=version >= (4, 5),
            is_adaptive=version >= (4, 6),
            takes_budget=version < (4, 7),
            takes_temperature=version < (4, 7),
            thinks_unasked=version >= (5, 0),
            always_thinks=version >= (5, 1),
        )

    def thought(self, settings: Settings, output_tokens_max: int | None) -> Thought:
        """What the settings ask for, as this model takes it.

        A budget leaves room for an answer within `max_tokens`, and falls away where there is none.
        """
        level = settings.thinking
        if level is None:
            tokens_max = TOKENS_MAX_THINKING if self.thinks_unasked else TOKENS_MAX
            return Thought(tokens_max=_limit(settings, tokens_max, output_tokens_max))
        if level == "off" or level == 0:
            return self._off(settings, output_tokens_max)
        if isinstance(level, str) and level not in BUDGETS:
            known = ", ".join(["off", *BUDGETS])
            raise InvalidInput(
                "thinking", f"is a number of tokens or one of {known}, not {level!r}"
            )
        if self.is_adaptive and (isinstance(level, str) or not self.takes_budget):
            tokens_max = _limit(settings, TOKENS_MAX_THINKING, output_tokens_max)
            return Thought({"type": "adaptive"}, self._effort(level), tokens_max)
        budget = BUDGETS[level] if isinstance(level, str) else level
        return _budgeted(budget, settings, output_tokens_max)

    def _off(self, settings: Settings, output_tokens_max: int | None) -> Thought:
        tokens_max = _limit(settings, TOKENS_MAX, output_tokens_max)
        if self.always_thinks:
            return Thought(effort="low", tokens_max=tokens_max)
        return Thought({"type": "disabled"} if self.thinks_unasked else None, None, tokens_max)

    def _effort(self, level: str | int) -> str:
        if isinstance(
            level, int
        ):  # no faithful conversion exists: by what the levels are elsewhere
            return next((name for name in ("low", "medium") if level <= BUDGETS[name]), "high")
        is_known = level in ("low", "medium", "high", "max") or not self.takes_budget
        return level if is_known and level != "minimal" else _EFFORTS[level]


def _budgeted(budget: int, settings: Settings, output_tokens_max: int | None) -> Thought:
    budget = max(budget, BUDGET_MIN)
    default = max(TOKENS_MAX_THINKING, budget + ANSWER_MIN)
    tokens_max = _limit(settings, default, output_tokens_max)
    for_answer = min(ANSWER_MIN, tokens_max // 4)
    room = max(tokens_max - for_answer, BUDGET_MIN)
    budget = min(budget, room, tokens_max - 1)
    if budget < BUDGET_MIN:
        return Thought(tokens_max=tokens_max)
    return Thought({"type": "enabled", "budget_tokens": budget}, None, tokens_max)


def _limit(settings: Settings, default: int, output_tokens_max: int | None) -> int:
    asked = default if settings.max_tokens is None else settings.max_tokens
    return asked if output_tokens_max is None else min(asked, output_tokens_max)


def _version_of(model: str) -> tuple[int, int]:
    name = model.lower()
    found = _VERSION.search(name)
    if found is None:
        return _UNVERSIONED if "claude" in name else (0, 0)
    return int(found[1]), int(found[2] or 0)
