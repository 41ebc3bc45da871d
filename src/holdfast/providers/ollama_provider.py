"""Models of an Ollama server: on this machine, in the network, or at Ollama's own service.

Two APIs lead to them. The one that is like Anthropic's is taken where the server has it (0.14 or
newer), and else Ollama's own; what was found out is remembered. The size of the window is found
out too, before the first question: in one API it is the server's, in the other it is asked for.
"""

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from os import environ
from typing import TYPE_CHECKING, Any, Self, TypeVar

from holdfast.cancel import CancelToken
from holdfast.errors import (
    Cancelled,
    ConnectionFailed,
    ContextOverflow,
    InvalidInput,
    InvalidRequest,
    ProtocolError,
    ProviderError,
)
from holdfast.messages import Stop
from holdfast.providers import ollama_server as server
from holdfast.providers.base import Callbacks, Response
from holdfast.providers.fields import Object
from holdfast.providers.http_provider import HttpProvider
from holdfast.providers.ollama_messages import OllamaMessagesWire
from holdfast.providers.ollama_window import Sent, is_cut, is_suspicious, sent
from holdfast.providers.shared_work import SharedWork
from holdfast.providers.wire import Ask, Wire

if TYPE_CHECKING:
    from holdfast.providers.tokens import Counter
    from holdfast.providers.wire_provider import OnRetry

CONTEXT = 32_768  # where nothing is known of a window, and what is asked for
CONTEXT_MIN = 512  # who says less is mistaken
OUTPUT = 8_192
LOOK_S_MAX = 5.0
MESSAGES, NATIVE = "messages", "native"
_log = logging.getLogger("holdfast")

E = TypeVar("E", bound=ProviderError)


class OllamaProvider(HttpProvider):
    """Options beside the common ones:

    api             "messages" or "native"; without it, whichever the server has
    context_limit   the window: asked for in the native API; in the other, at most the server's
    """

    vendor = "ollama"
    address_default = f"http://localhost:{server.PORT}"
    address_variable = "OLLAMA_HOST"
    key_variables = ("OLLAMA_API_KEY",)
    key_default = "ollama"
    models_path = "/api/tags"

    _api: str | None = None  # as it was said, or found out
    _is_said = False
    _window: int | None = None  # as it was last found out
    _is_looked_for = False
    _work: SharedWork

    @classmethod
    def opened(cls, model: str, *, api: str | None = None, **options: Any) -> Self:
        """The provider of a model."""
        if api not in (None, MESSAGES, NATIVE):
            raise InvalidInput("api", f"is {MESSAGES} or {NATIVE}, not {api!r:.40}")
        _, common = cls.sorted_options(options, Wire, "api")  # type: ignore[type-abstract]
        given, what = common.pop("base_url", None), "base_url"
        if given is None:
            given, what = environ.get(cls.address_variable) or cls.address_default, "OLLAMA_HOST"
        made = cls(OllamaMessagesWire(model), server.address_of(given, what), **common)
        made._api, made._is_said = api, api is not None
        made._work = SharedWork()
        made.wire = made._wire()
        return made

    # What this vendor says otherwise

    @property
    def context_limit(self) -> int:
        wanted = self._context_limit or self._window or CONTEXT
        return wanted if self._window is None else min(wanted, self._window)

    @property
    def output_limit(self) -> int:
        return self._output_limit or min(OUTPUT, max(1, self.context_limit // 2))

    def overflowed(self, error: ContextOverflow) -> None:
        """The window is found out otherwise, and may be larger again."""

    def name_of(self, listed: Object) -> str | None:
        return server.name_of(listed)

    def explain(self, error: ProviderError) -> None:
        super().explain(error)
        way_out = server.way_out(error, self.model, is_native=self._api == NATIVE)
        error.way_out = way_out or error.way_out

    async def verify(self) -> None:
        """Also: the model is there."""
        document = await self._soon(self.get(self.models_path, tries_max=1))
        names = map(server.name_of, server.names_in(document))
        if not self._is_cloud and not any(server.is_same(name, self.model) for name in names):
            raise self._explained(InvalidRequest(f"model {self.model!r} not found", self.vendor))

    async def put(
        self,
        question: Callable[[], Ask],
        callbacks: Callbacks,
        cancel_token: CancelToken | None = None,
        on_retry: "OnRetry | None" = None,
    ) -> Response:
        token = cancel_token or CancelToken()
        async with token.guard():
            await self._find_out()
            wire, ask = self.wire, question()
            size = sent(ask, self._counter)
            await self._refuse_what_cannot_fit(size)
        try:
            # Another call may have found out meanwhile that the server wants another wire.
            asked = lambda: ask if self.wire is wire else question()  # noqa: E731 - a line
            response = await super().put(asked, callbacks, cancel_token, on_retry)
        except ProtocolError as error:
            if not self._takes_other_api(error, wire):
                raise
            return await self.put(question, callbacks, cancel_token, on_retry)
        except ContextOverflow as error:
            self._shrink(error.tokens_max)
            raise
        self._api, self._is_looked_for = self._api or MESSAGES, True
        with suppress(Cancelled):  # the answer is complete
            async with token.guard():
                await self._refuse_what_was_cut(size, response)
        return response

    # Which API, and which window

    async def _find_out(self) -> None:
        """What is not known yet, once for all who ask at the same time."""
        if not self._is_looked_for or self._api is None:
            await self._work.done("server", self._look)

    async def _look(self) -> None:
        """A server that does not say it may answer all the same; one that is not there is for the
        question itself to notice."""
        before = self._api, self._window
        try:
            if self._api is None:
                version = await self._looked(self.get("/api/version", tries_max=1))
                speaks = server.speaks_messages(version)
                self._api = None if speaks is None else MESSAGES if speaks else NATIVE
            if not self._is_looked_for:
                self._window = await self._found_window()
        except ConnectionFailed:
            pass
        if before != (self._api, self._window):
            self.wire = self._wire()

    async def _found_window(self) -> int | None:
        if self._api == NATIVE and self._context_limit is not None:
            return None  # that is what is asked for
        card = server.card_of(await self._looked(self._asked("/api/show")))
        if self._api == NATIVE:
            return card.num_ctx or min(CONTEXT, card.trained or CONTEXT)
        if self._is_cloud:
            return card.trained
        found = await self._loaded() or card.num_ctx
        if found is None:  # it is not loaded; the question would do that anyway
            await self._looked(self._asked("/api/generate", stream=False), is_slow=True)
            found = await self._loaded()
        return found

    async def _loaded(self) -> int | None:
        """The window that the server has loaded the model with; None if it does not say."""
        document = await self._looked(self.get("/api/ps", tries_max=1))
        return server.loaded_in(document, self.model)

    def _takes_other_api(self, error: ProtocolError, asked: Wire) -> bool:
        """Whether this server knows nothing of the Messages API: then the other is taken."""
        is_unknown = error.status in (404, 405) and isinstance(asked, OllamaMessagesWire)
        if self._is_said or not is_unknown:
            return False
        if self._api != NATIVE:  # no other call has found it out meanwhile
            self._api, self._window = NATIVE, None
            self.wire = self._wire()
        return True

    def _shrink(self, window: int | None) -> None:
        if window is not None and CONTEXT_MIN <= window < self.context_limit:
            self._window = window
            self.wire = self._wire()

    def _wire(self) -> Wire:
        if self._api != NATIVE:
            most = self._output_limit or self._window
            return OllamaMessagesWire(self.model, output_tokens_max=most)
        from holdfast.providers.ollama import OllamaWire

        return OllamaWire(self.model, num_ctx=self.context_limit)

    # What does not fit

    async def _refuse_what_cannot_fit(self, size: Sent) -> None:
        """A prompt that is longer than the window for certain would be cut: it is not sent."""
        window = self.context_limit if self._api == NATIVE else self._window
        if window is None or size.at_least <= window:
            return
        if self._api != NATIVE:  # there it is as large as is asked for
            self._window = window = await self._loaded_now() or window
        if size.at_least > window:
            raise self._overflow(size, window, "the prompt is longer than the window")

    async def _refuse_what_was_cut(self, size: Sent, response: Response) -> None:
        counted = response.usage.input or 0  # of a prompt that was all in the cache, some say none
        asked = self.context_limit if self._api == NATIVE else self._window
        if not is_suspicious(size, counted, asked):
            return
        window = await self._loaded_now() or asked
        if window is None or not is_cut(size, counted, window):
            return
        _log.warning(
            "%s at %s has cut a prompt of some %d tokens in silence: it read %d, and its window "
            "has %d",
            *(self.name, self.address, size.tokens, counted, window),
        )
        self._shrink(window)
        error = self._overflow(size, window, f"the prompt was cut in silence to {counted} tokens")
        error.partial = response.replace(message=response.message.replace(stop=str(Stop.ERROR)))
        raise error

    async def _loaded_now(self) -> int | None:
        try:
            return await self._loaded()
        except ConnectionFailed:
            return None

    def _overflow(self, size: Sent, window: int, why: str) -> ContextOverflow:
        tokens = max(size.tokens, window + 1)
        detail = f"{why}: {tokens} tokens > {window}"
        error = ContextOverflow(detail, self.vendor, tokens_found=tokens, tokens_max=window)
        return self._explained(error)

    @property
    def _is_cloud(self) -> bool:
        return server.is_cloud(self.model, self.address.host)

    @property
    def _counter(self) -> "Counter":
        from holdfast.providers.tokens import counter

        return counter(self._known.family)

    # Short questions

    async def _asked(self, path: str, **more: Any) -> Object:
        return await self.post(path, {"model": self.model, **more}, tries_max=1)

    async def _looked(self, asking: Awaitable[Object], *, is_slow: bool = False) -> Object:
        """What the server says to a question that not every server has an answer to."""
        try:
            return await (asking if is_slow else self._soon(asking))
        except ConnectionFailed:
            raise
        except ProviderError:
            return {}

    async def _soon(self, asking: Awaitable[Object]) -> Object:
        import asyncio  # here, because it is slow to import

        limit = asyncio.timeout(LOOK_S_MAX)
        try:
            async with limit:
                return await asking
        except TimeoutError:
            if not limit.expired():
                raise
            why = f"no answer from {self.address.host} within {LOOK_S_MAX:g} s"
            raise ConnectionFailed(why, self.vendor) from None

    def _explained(self, error: E) -> E:
        self.explain(error)
        return error
