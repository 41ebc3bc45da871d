"""When the window is made smaller, and the word for why.

| reason        | when                                                                          |
|---------------|-------------------------------------------------------------------------------|
| manual        | somebody asks for it                                                          |
| context_limit | a model refused the request as too long                                       |
| threshold     | so much is used as the budget says (`start`); if `pressure` is 0, more than   |
|               | its `target`                                                                  |
| turn_limit    | so many turns are shown as may be                                             |
| pre_message   | the next request might not fit, although less than `start` is used            |
"""

from holdfast.errors import InvalidInput
from holdfast.window.plan import Policy
from holdfast.window.situation import Situation


def due(situation: Situation, turns: int, turns_max: int | None = None) -> str | None:
    """Why the window has to be made smaller now, in one word; None when it need not be.

    `turns` is how many turns are shown.
    """
    if situation.trigger == "manual":
        return "manual"
    if situation.trigger == "overflow":
        return "context_limit"
    if is_full(situation):
        return "threshold"
    if turns_max is not None and turns >= turns_max:
        return "turn_limit"
    return "pre_message" if situation.trigger == "before" and situation.over else None


def is_full(situation: Situation) -> bool:
    """Whether so much is used that the window is to be made smaller."""
    budget = situation.budget
    if budget.pressure == 0:
        return situation.fill > budget.target
    return situation.fill >= budget.start


def is_pressed(situation: Situation) -> bool:
    """Whether what would rather be kept may be taken too."""
    is_refused = situation.trigger == "overflow" or situation.over > 0
    return is_refused or situation.fill >= situation.budget.pressure


def goal(situation: Situation) -> int:
    """How many tokens the request should have once it is made smaller."""
    return int(situation.limit * situation.budget.target)


class Crossing:
    """Notices, once in a turn, that the use of the window has reached the threshold.

    One is made for each turn and told each count of tokens that a stream reports.
    """

    def __init__(self, situation: Situation) -> None:
        self._situation = situation
        self._is_crossed = False

    @property
    def is_crossed(self) -> bool:
        """Whether the window is to be made smaller after this turn."""
        return self._is_crossed

    def tell(self, used: int) -> bool:
        """True the first time that `used` tokens are too many; never again."""
        if self._is_crossed or not is_full(self._situation.replace(used=used)):
            return False
        self._is_crossed = True
        return True


def required(policy: Policy | None) -> Policy:
    """The policy for a compaction that somebody asks for: without one there is none to be had."""
    if policy is None:
        raise InvalidInput("policy", "is missing: pass one, or open the session with one")
    return policy
