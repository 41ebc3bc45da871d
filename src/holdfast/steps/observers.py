"""Who hears of a turn while it runs."""

import inspect
import logging
from collections.abc import Callable

from holdfast.cancel import CancelToken
from holdfast.errors import InvalidInput, ProviderError
from holdfast.events import (
    Event,
    Outcome,
    Retrying,
    TextDelta,
    ThinkingDelta,
    ToolCallReady,
    ToolCallStarted,
    TurnFinished,
    UsageUpdate,
)
from holdfast.messages import ToolCall
from holdfast.providers.retries import TRIES_MAX
from holdfast.results import TurnResult
from holdfast.usage import Usage
from holdfast.window.situation import Situation
from holdfast.window.triggers import Crossing

OnEvent = Callable[[Event], object]
_log = logging.getLogger("holdfast")


def checked(on_event: OnEvent | None) -> OnEvent | None:
    """An observer is a plain function: a turn does not wait for those who watch it."""
    is_function = callable(on_event) and not inspect.iscoroutinefunction(on_event)
    if on_event is None or is_function:
        return on_event
    raise InvalidInput("on_event", "is a plain function; to await something, use stream()")


class Observers:
    """Those who hear of a turn. What they do cannot break it; one that returns False stops it."""

    def __init__(self, cancel: CancelToken, *observers: OnEvent | None) -> None:
        self._cancel = cancel
        self._all = [each for each in observers if each is not None]
        self._crossing: Crossing | None = None  # notices that the window is full

    def tell(self, event: Event) -> None:
        for observer in self._all:
            try:
                if observer(event) is False:
                    self._cancel.cancel("an observer asked for it")
            except Exception:  # noqa: BLE001 - whoever watches cannot be mended here
                _log.exception("an observer of a turn failed")

    def watch(self, situation: Situation) -> None:
        """A model is asked: notice when its window fills up."""
        if self._crossing is None:
            self._crossing = Crossing(situation)

    def finish(self, key: str, result: TurnResult) -> TurnResult:
        """A turn of the session under this key has ended so."""
        if result.outcome is Outcome.RESPONSE and not result.text:
            _log.warning("a turn of session %r ended without words", key)
        self.tell(
            TurnFinished(
                outcome=result.outcome,
                message=result.message,
                usage=result.usage,
                cost=result.cost,
            )
        )
        return result

    # What a provider calls

    def say(self, text: str) -> None:
        if self._all:
            self.tell(TextDelta(text))

    def think(self, text: str) -> None:
        if self._all:
            self.tell(ThinkingDelta(text))

    def call(self, call: ToolCall) -> None:
        if self._all:
            self.tell(ToolCallStarted(id=call.id, name=call.name))
            self.tell(ToolCallReady(call))

    def use(self, usage: Usage) -> None:
        is_full = self._crossing is not None and self._crossing.tell(
            (usage.input or 0) + (usage.output or 0)
        )
        if self._all:
            self.tell(UsageUpdate(usage, is_full))

    def retry(self, error: ProviderError, attempt: int, delay_s: float) -> None:
        if self._all:
            self.tell(
                Retrying(error=str(error), attempt=attempt, attempts_max=TRIES_MAX, delay_s=delay_s)
            )
