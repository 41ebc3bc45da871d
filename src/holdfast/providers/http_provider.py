"""A provider over HTTP: a wire, an address, credentials, a client.

Vendors differ in their wires and in a few small things, which are the methods below that say so:
where the service is, how a key is sent, how tokens are counted and models listed. All else is here.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from holdfast.cancel import CancelToken
from holdfast.errors import AuthError, InvalidInput, ProviderError
from holdfast.messages import Message, ToolCall
from holdfast.providers import pipe
from holdfast.providers.address import Address
from holdfast.providers.base import Callbacks, Provider, Response
from holdfast.providers.credentials import Credentials, Headers, Hidden, Key, Secret
from holdfast.providers.fields import Object
from holdfast.providers.options import (
    checked_count,
    checked_headers,
    checked_limit,
    checked_prices,
    checked_proxy,
    names_of,
)
from holdfast.providers.retries import TRIES_MAX
from holdfast.providers.wire import Ask, Wire
from holdfast.settings import Settings
from holdfast.tools import Tool
from holdfast.usage import Prices, Usage

if TYPE_CHECKING:
    import httpx2

    from holdfast.providers.exchange import Exchange
    from holdfast.providers.models import Model

_encode = msgspec.json.Encoder().encode
_PRIVATE = re.compile(r"auth|key|token|secret|cookie|password")
_CREDENTIALS = {"authorization", "x-api-key", "api-key", "x-goog-api-key"}


class HttpProvider(Provider):
    """What all vendors share. The options are those of `open_provider`."""

    vendor: str
    address_default: ClassVar[str]
    address_variable: ClassVar[str | None] = None
    key_variables: ClassVar[tuple[str, ...]] = ()
    key_header: str = "authorization"  # any other holds the key alone
    models_path: str = "models"
    headers: ClassVar[Mapping[str, str]] = {}  # of every request
    is_direct: ClassVar[bool] = False  # proxies of the environment are not for it

    def __init__(
        self,
        wire: Wire,
        address: Address,
        *,
        api_key: Key | None = None,
        headers: Mapping[str, str] | None = None,
        client: "httpx2.AsyncClient | None" = None,
        proxy: str | None = None,
        timeout: "float | pipe.Timeouts | None" = None,
        tries_max: int = TRIES_MAX,
        context_limit: int | None = None,
        output_limit: int | None = None,
        prices: Prices | None = None,
        size_max: int = pipe.SIZE_MAX,
    ) -> None:
        if client is not None and proxy is not None:
            raise InvalidInput("proxy", "is for a client that is made here: give it to yours")
        self.model = wire.model
        self.wire = wire
        self.address = address
        self._credentials = Credentials(api_key, self.key_variables)
        self._headers = checked_headers(headers)
        self._tries_max = checked_count("tries_max", tries_max, TRIES_MAX)
        self._context_limit = checked_limit("context_limit", context_limit)
        self._output_limit = checked_limit("output_limit", output_limit)
        self._prices = checked_prices(prices)
        self._client = client
        self._pipe = pipe.Pipe(
            client=client,
            proxy=checked_proxy(proxy),
            is_direct=self.is_direct,
            timeouts=pipe.Timeouts.of(timeout),
            size_max=checked_count("size_max", size_max),
        )

    @classmethod
    def sorted_options(
        cls, options: Mapping[str, Any], wire: type[Wire], *more: str
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Those of the wire, and those of all vendors; InvalidInput for one that nobody knows."""
        common = {"base_url", *names_of(HttpProvider)}
        own = names_of(wire) - common - {"vendor", "path", "api_version"}
        for name in options:
            if name not in common | own:
                known = ", ".join(sorted({*common, *own, *more}))
                raise InvalidInput(f"option {name!r:.80}", f"is unknown here: there are {known}")
        return (
            {name: value for name, value in options.items() if name in own},
            {name: value for name, value in options.items() if name in common},
        )

    # What a vendor may say otherwise

    async def ready(self) -> None:
        """Have what a request needs; called before each. The address may change here."""
        return

    def url(self, ask: Ask) -> str:
        """Where a question goes."""
        return self.address.join(self.wire.path(ask))

    async def count_at_service(self, ask: Ask) -> int | None:  # noqa: ARG002 - others look at it
        """The tokens of a prompt by the service's own count; None if it offers none."""
        return None

    def name_of(self, listed: Object) -> str | None:
        """The name of a model, in one entry of the service's list."""
        name = listed.get("id")
        return name if isinstance(name, str) else None

    def next_page(self, document: Object) -> str | None:  # noqa: ARG002 - others look at it
        """The path of the list of models from here on; None at the end."""
        return None

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
        on_retry: Callable[[ProviderError, int, float], object] | None = None,
    ) -> Response:
        callbacks = Callbacks(on_chunk, on_usage_update, on_thinking, on_tool_call)
        ask = self.wire.ask(
            messages,
            system_instruction,
            tools,
            schema=response_schema,
            settings=settings,
            conversation=conversation,
            stream=callbacks.want_stream,
        )
        body = _encode(self.wire.to_wire(ask))
        headers = self.wire.headers(ask)
        if ask.stream:
            headers["accept"] = "text/event-stream, application/json"
        async with nullcontext() if cancel_token is None else cancel_token.guard():
            exchange = await self._exchange("POST", lambda: self.url(ask), body, headers)
        return await exchange.complete(self.wire, ask, callbacks, cancel_token, on_retry)

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
        return self._context_limit or self._known.context

    @property
    def output_limit(self) -> int:
        return self._output_limit or self._known.output

    @property
    def prices(self) -> Prices | None:
        """What its tokens cost: as it was opened with, or as the table of models says."""
        return self._prices or self._known.prices

    async def list_models(self, prefix: str = "") -> tuple[str, ...]:
        names: dict[str, None] = {}
        path: str | None = self.models_path
        for _ in range(_PAGES_MAX):
            if path is None:
                break
            document = await self.get(path)
            names |= dict.fromkeys(filter(None, map(self.name_of, _listed(document))))
            path = self.next_page(document)
        return tuple(sorted(name for name in names if name.startswith(prefix)))

    async def verify(self) -> None:
        await self.get(self.models_path)

    async def close(self) -> None:
        await self._pipe.close()

    def __repr__(self) -> str:
        return f"<provider {self.name} at {self.address}>"

    # Requests

    async def get(self, path: str) -> Object:
        """The JSON object at a path of the service."""
        exchange = await self._exchange("GET", lambda: self.address.join(path), None, {})
        return await exchange.document()

    async def post(self, path: str, body: Object) -> Object:
        """The JSON object that answers another one."""
        exchange = await self._exchange("POST", lambda: self.address.join(path), _encode(body), {})
        return await exchange.document()

    async def _exchange(
        self, method: str, url: Callable[[], str], body: bytes | None, more: Mapping[str, str]
    ) -> "Exchange":
        """A request that can be sent."""
        from holdfast.providers.exchange import Exchange

        await self.ready()
        key = await self._key()
        headers = Headers({"accept": "application/json", "user-agent": "holdfast"})
        if body is not None:
            headers["content-type"] = "application/json"
        headers |= self.headers
        headers |= more
        if self.address.userinfo is not None:
            headers["authorization"] = self.address.userinfo.reveal()
        if key is not None:
            bare = key.reveal()
            is_bearer = self.key_header == "authorization"
            headers[self.key_header] = f"Bearer {bare}" if is_bearer else bare
        headers |= {name: value.reveal() for name, value in self._headers.items()}
        private = [value for name, value in self._headers.items() if _PRIVATE.search(name)]
        hidden = Hidden([key, self.address.userinfo, *private])
        request = pipe.Request(method, url(), headers, body)
        return Exchange(self._pipe, request, self.vendor, hidden, self._tries_max)

    async def _key(self) -> Secret | None:
        if self.address.userinfo is not None and not self._credentials.is_given:
            return None
        key = await self._credentials.read(self.vendor)
        if key is None and not self._works_without_key:
            raise AuthError(f"there is no key: {self._credentials.way_out}", self.vendor)
        return key

    @property
    def _works_without_key(self) -> bool:
        """The caller has another way in, or the service is on this machine and may want none."""
        if self.address.is_loopback or _CREDENTIALS & self._headers.keys():
            return True
        client = self._client
        return client is not None and (
            client.auth is not None or any(name in client.headers for name in _CREDENTIALS)
        )

    @property
    def _known(self) -> "Model":
        from holdfast.providers.models import model_of

        return model_of(self.vendor, self.model)


_PAGES_MAX = 100


def address_of(kind: type[HttpProvider], base_url: str | None) -> Address:
    """The address of a service: as given, as the environment says, or the vendor's own."""
    from os import environ

    variable = kind.address_variable
    if base_url is None and variable is not None and environ.get(variable):
        return Address(environ[variable], variable)
    return Address(kind.address_default if base_url is None else base_url)


def _listed(document: Object) -> list[Object]:
    found = document.get("data", document.get("models"))
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
