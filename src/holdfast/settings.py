"""Settings: how a session talks to its model. JSON values, stored with the session."""

from collections.abc import Mapping
from typing import Any

from holdfast.errors import InvalidInput
from holdfast.frozen import EMPTY, JSONObject, Value, thaw


class Settings(Value, frozen=True, kw_only=True):
    """The settings of a session; None means "as the model or the library has it by default".

    model        "vendor:model"
    system       what the model is told before everything else
    thinking     how hard it thinks: a level ("low", "high"), or a budget in tokens
    temperature  how freely it chooses its words
    max_tokens   the most it may write in one answer
    budget       how its window is filled (the fields of `holdfast.window.Budget`)
    limits       where a turn stops: rounds, tokens, money
    extra        whatever else the caller wants to keep with them
    """

    model: str | None = None
    system: str | None = None
    thinking: str | int | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    budget: JSONObject = EMPTY
    limits: JSONObject = EMPTY
    extra: JSONObject = EMPTY

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Settings":
        """The settings in a JSON object; names that are not settings go to `extra` and survive."""
        if not isinstance(values, Mapping):
            raise InvalidInput("settings", f"is a dict, not {type(values).__name__}")
        own = {name: value for name, value in values.items() if name in cls.__struct_fields__}
        settings = cls(**own)
        other = {name: value for name, value in values.items() if name not in own}
        if twice := other.keys() & settings.extra.keys():
            raise InvalidInput(min(twice), "stands both in extra and beside it")
        return settings.replace(extra={**other, **settings.extra})

    @property
    def values(self) -> dict[str, Any]:
        """The settings that are set, as a JSON object: what `of` takes."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        return {n: thaw(value) for n, value in fields.items() if value is not None and value != {}}

    def _settle(self) -> None:
        self._settle_texts(optional=("model", "system"))
        if isinstance(self.thinking, str):
            self._settle_texts("thinking")
        else:
            self._settle_counts(optional=("thinking",))
        self._settle_counts(optional=("max_tokens",))
        self._settle_number(optional=("temperature",))
        self._settle_objects("budget", "limits", "extra")
