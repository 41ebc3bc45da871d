"""A provider that is made of a wire, whatever carries it: HTTP, or a program that is started.

What a vendor's answer is read by, how its tokens are counted where nobody else counts them, and
what its model takes, is the same for both. How the question gets there is `answered`.
"""

import logging
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from holdfast.cancel import CancelToken
from holdfast.errors import ContextOverflow, ProviderError
from holdfast.messages import Message, ToolCall
from holdfast.providers.base import Callbacks, Provider, Response
from holdfast.providers.options import checked_count, checked_limit, checked_prices
from holdfast.providers.retries import TRIES_MAX
from holdfast.providers.wire import Ask, Wire
from holdfast.settings import Settings
from holdfast.tools import Tool
from holdfast.usage import Prices, Usage

if TYPE_CHECKING:
    from holdfast.providers.models import Model

_log = logging.getLogger("holdfast")
OnRetry = Callable[[ProviderError, int, float], object]


class WireProvider(Provider):
    """What all vendors share. The options are those of `open_provider`."""

    def __init__(
        self,
        wire: Wire,
        *,
        tries_max: int = TRIES_MAX,
        context_limit: int | None = None,
        output_limit: int | None = None,
        prices: Prices | None = None,
    ) -> None:
        self.model = wire.model
        self.wire = wire
        self._tries_max = checked_count("tries_max", tries_max, TRIES_MAX)
        self._context_limit = checked_limit("context_limit", context_limit)
        self._output_limit = checked_limit("output_limit", output_limit)
        self._prices = checked_prices(prices)
        self._told_limit: int | None = None  # as a refusal said

    # What a vendor says

    @abstractmethod
    async def answered(
        self,
        ask: Ask,
        callbacks: Callbacks,
        cancel_token: CancelToken | None,
        on_retry: OnRetry | None,
    ) -> Response:
        """The answer to a question that the wire can put."""

    async def count_at_service(self, ask: Ask) -> int | None:  # noqa: ARG002 - others look at it
        """The tokens of a prompt by the service's own count; None if it offers none."""
        return None

    def explain(self, error: ProviderError) -> None:  # noqa: ARG002 - others look at it
        """Say what somebody who asks this vendor can do about an error (`error.way_out`)."""
        return

    def overflowed(self, error: ContextOverflow) -> None:
        """A prompt was too long: what is said of the window is true from now on."""
        told, found = error.tokens_max, error.tokens_found
        is_passed = found is None or (told is not None and found > told)
        if told and is_passed and told < self.context_limit:
            words = "%s says that it takes %d tokens, and not %d: from now on it is sent no more"
            _log.warning(words, self.name, told, self.context_limit)
            self._told_limit = told

    # The promise

    async def complete(
        self,
        messages: Sequence[Message],
        system_instruction: str | None = None,
        tools: Sequence[Tool] | None = None,
        *,
        response_schema: Mapping[str, Any] | None = None,
        settings: Settings | None = None,
        conversation: str | None = None,
        cancel_token: CancelToken | None = None,
        on_chunk: Callable[[str], object] | None = None,
        on_usage_update: Callable[[Usage], object] | None = None,
        on_thinking: Callable[[str], object] | None = None,
        on_tool_call: Callable[[ToolCall], object] | None = None,
        on_retry: OnRetry | None = None,
    ) -> Response:
        callbacks = Callbacks(on_chunk, on_usage_update, on_thinking, on_tool_call)

        def question() -> Ask:
            return self.wire.ask(
                messages,
                system_instruction,
                tools,
                schema=response_schema,
                settings=settings,
                conversation=conversation,
                stream=callbacks.want_stream,
            )

        return await self.put(question, callbacks, cancel_token, on_retry)

    async def put(
        self,
        question: Callable[[], Ask],
        callbacks: Callbacks,
        cancel_token: CancelToken | None = None,
        on_retry: OnRetry | None = None,
    ) -> Response:
        """Put a question to the model. A vendor may do something before and behind it, also
        choose another wire: the question is then made for that one."""
        ask = question()
        try:
            return await self.answered(ask, callbacks, cancel_token, on_retry)
        except ContextOverflow as error:
            self.overflowed(error)
            raise

    async def count_tokens(
        self,
        messages: Sequence[Message],
        system_instruction: str | None = None,
        tools: Sequence[Tool] | None = None,
    ) -> int:
        counted = await self.count_at_service(self.wire.ask(messages, system_instruction, tools))
        if counted is not None:
            return counted
        from holdfast.providers.tokens import counter, prompt_tokens

        known = self._known
        return prompt_tokens(
            messages,
            counter(known.family),
            system=system_instruction,
            tools=tools or (),
            images=known.images,
        )

    @property
    def context_limit(self) -> int:
        return self.at_most(self._context_limit or self._known.context)

    def at_most(self, limit: int) -> int:
        """The limit, or what a refusal has said, where that is less."""
        return limit if self._told_limit is None else min(limit, self._told_limit)

    @property
    def output_limit(self) -> int:
        return self._output_limit or self._known.output

    @property
    def prices(self) -> Prices | None:
        """What its tokens cost: as it was opened with, or as the table of models says."""
        return self._prices or self._known.prices

    @cached_property
    def _known(self) -> "Model":
        from holdfast.providers.models import model_of

        return model_of(self.vendor, self.model)
