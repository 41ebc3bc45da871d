"""The model of a turn: who is asked, and how its tokens are counted."""

from collections.abc import Sequence

from holdfast.providers.base import Provider
from holdfast.providers.limits import limits_of, prices_of
from holdfast.providers.models import Model, model_of
from holdfast.providers.tokens import Counter, counter, message_counter, prompt_tokens, tools_tokens
from holdfast.tools import Tool
from holdfast.usage import Prices
from holdfast.window.budget import Budget, Room
from holdfast.window.known import Counted


class Target:
    """A provider, with what the window has to know of its model."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self.name = provider.name
        self.model: Model = model_of(provider.vendor, provider.model)
        self.family = f"{self.model.family}:{self.model.images}"
        self.counter: Counter = counter(self.model.family)
        self.count = message_counter(self.counter, self.model.images)
        self._base: tuple[object, Counted] | None = None

    @property
    def prices(self) -> Prices | None:
        """What its tokens cost, as far as that is known."""
        return prices_of(self.provider, self.model)

    def room(self, budget: Budget) -> Room:
        """How much it may read and write."""
        limits = limits_of(self.provider, self.model)
        return budget.room(limits.context, limits.output, self.model.prompt)

    def base(self, system: str | None, tools: Sequence[Tool]) -> Counted:
        """What a request has before anything is said: all of it, and its tools."""
        told = (system, tuple(tools))
        if self._base is None or self._base[0] != told:
            declared = tools_tokens(tools, self.counter)
            around = prompt_tokens((), self.counter, system=system)
            self._base = (told, Counted(around + declared, declared))
        return self._base[1]
