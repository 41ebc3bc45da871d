"""A provider over HTTP: a wire, an address, credentials, a client.

Vendors differ in their wires and in a few small things, which are the methods below that say so:
where the service is, how a key is sent, how tokens are counted and models listed. All else is here.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from holdfast.cancel import CancelToken
from holdfast.errors import AuthError, InvalidInput, InvalidRequest, ProviderError
from holdfast.providers import pipe
from holdfast.providers.address import Address
from holdfast.providers.attempts import Attempt, Attempts, FixedAttempts, Outgoing, SameAttempts
from holdfast.providers.base import Callbacks, Response
from holdfast.providers.credentials import Credentials, Headers, Hidden, Key, Secret, unusable
from holdfast.providers.fields import Object
from holdfast.providers.options import checked_count, checked_headers, checked_proxy, names_of
from holdfast.providers.retries import TRIES_MAX
from holdfast.providers.wire import Ask, Wire
from holdfast.providers.wire_provider import OnRetry, WireProvider
from holdfast.usage import Prices

if TYPE_CHECKING:
    import httpx2

    from holdfast.providers.exchange import Exchange

_encode = msgspec.json.Encoder().encode
_PRIVATE = re.compile(r"auth|key|token|secret|cookie|password")
_CREDENTIALS = {"authorization", "x-api-key", "api-key", "x-goog-api-key"}


class HttpProvider(WireProvider):
    """What all vendors over HTTP share. The options are those of `open_provider`."""

    vendor: str
    address_default: ClassVar[str]
    address_variable: ClassVar[str | None] = None
    key_variables: ClassVar[tuple[str, ...]] = ()
    key_header: str = "authorization"  # any other holds the key alone
    key_default: ClassVar[str | None] = None  # no secret, for servers that look at none
    models_path: str = "models"
    headers: ClassVar[Mapping[str, str]] = {}  # of every request

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
        super().__init__(
            wire,
            tries_max=tries_max,
            context_limit=context_limit,
            output_limit=output_limit,
            prices=prices,
        )
        self.address = address
        self._credentials = Credentials(api_key, self.variables())
        self._headers = checked_headers(headers)
        self._client = client
        self._pipe = pipe.Pipe(
            client=client,
            proxy=checked_proxy(proxy),
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

    def variables(self) -> tuple[str, ...]:
        """Where the environment may have the key; the first that is set holds it."""
        return self.key_variables

    async def ready(self) -> None:
        """Have what a request needs; called before each. The address may change here."""
        return

    def attempts(self, outgoing: Outgoing) -> Attempts[pipe.Request]:
        """The tries of one request. Credentials and addresses may change between two of them."""
        return SameAttempts(self, outgoing)

    async def models(self, path: str) -> Object:
        """A page of the list of models."""
        return await self.get(path, is_list=True)

    def name_of(self, listed: Object) -> str | None:
        """The name of a model, in one entry of the service's list."""
        name = listed.get("id")
        return name if isinstance(name, str) else None

    def next_page(self, document: Object) -> str | None:  # noqa: ARG002 - others look at it
        """The path of the list of models from here on; None at the end."""
        return None

    def explain(self, error: ProviderError) -> None:
        if error.status is None or error.way_out != type(error).way_out:
            return
        if isinstance(error, AuthError):
            error.way_out = f"{AuthError.way_out}; for another one, {self.way_to_a_key}"
        elif isinstance(error, InvalidRequest) and _is_about_the_model(error):
            error.way_out = _OTHER_MODEL.format(model=self.model)

    # The promise

    async def answered(
        self,
        ask: Ask,
        callbacks: Callbacks,
        cancel_token: CancelToken | None,
        on_retry: OnRetry | None,
    ) -> Response:
        wire = self.wire  # it may be another one when the answer comes
        body, headers = _encode(wire.to_wire(ask)), wire.headers(ask)
        if ask.stream:
            headers["accept"] = "text/event-stream, application/json"
        async with nullcontext() if cancel_token is None else cancel_token.guard():
            path = wire.path(ask)
            exchange = await self._exchange("POST", lambda: self.address.join(path), body, headers)
        return await exchange.complete(wire, ask, callbacks, cancel_token, on_retry)

    async def list_models(self, prefix: str = "") -> tuple[str, ...]:
        names: dict[str, None] = {}
        path: str | None = self.models_path
        for _ in range(_PAGES_MAX):
            if path is None:
                break
            document = await self.models(path)
            names |= dict.fromkeys(filter(None, map(self.name_of, _listed(document))))
            path = self.next_page(document)
        return tuple(sorted(name for name in names if name.startswith(prefix)))

    async def verify(self) -> None:
        await self.models(self.models_path)

    async def close(self) -> None:
        await self._pipe.close()

    def __repr__(self) -> str:
        return f"<provider {self.name} at {self.address}>"

    # Requests

    async def get(
        self,
        path: str,
        *,
        under: Address | None = None,
        is_list: bool = False,
        tries_max: int | None = None,
    ) -> Object:
        """The JSON object at a path of the service; a list, if one `is_list`, is its `data`."""
        exchange = await self._exchange(
            "GET", lambda: (under or self.address).join(path), None, {}, tries_max
        )
        return await exchange.document(is_list=is_list)

    async def post(self, path: str, body: Object, *, tries_max: int | None = None) -> Object:
        """The JSON object that answers another one."""
        exchange = await self._exchange(
            "POST", lambda: self.address.join(path), _encode(body), {}, tries_max
        )
        return await exchange.document()

    async def _exchange(
        self,
        method: str,
        url: Callable[[], str],
        body: bytes | None,
        more: Mapping[str, str],
        tries_max: int | None = None,
    ) -> "Exchange[pipe.Request]":
        """A request that can be sent."""
        from holdfast.providers.exchange import Exchange

        await self.ready()
        attempts = self.attempts(Outgoing(method, url, body, more))
        tries_max = tries_max or self._tries_max
        return Exchange(self._pipe, attempts, self.vendor, tries_max, self.explain)

    async def ask_once(self, attempt: Attempt[pipe.Request]) -> Object:
        """The JSON object that answers a request that is signed already. It is tried once: for
        what a try of another request needs."""
        from holdfast.providers.exchange import Exchange

        return await Exchange(self._pipe, FixedAttempts(attempt), self.vendor, 1).document()

    def signed(self, outgoing: Outgoing, key: Secret | None) -> Attempt[pipe.Request]:
        """A request with its credentials: this key, and what the caller gave besides."""
        headers = Headers({"accept": "application/json", "user-agent": "holdfast"})
        if outgoing.body is not None:
            headers["content-type"] = "application/json"
        headers |= self.headers
        headers |= outgoing.headers
        if self.address.userinfo is not None:
            headers["authorization"] = self.address.userinfo.reveal()
        bare = self._key_default if key is None else key.reveal()
        if bare is not None:
            is_bearer = self.key_header == "authorization"
            headers[self.key_header] = f"Bearer {bare}" if is_bearer else bare
        headers |= {name: value.reveal() for name, value in self._headers.items()}
        private = [value for name, value in self._headers.items() if _PRIVATE.search(name)]
        request = pipe.Request(outgoing.method, outgoing.url(), headers, outgoing.body)
        return Attempt(request, Hidden([key, self.address.userinfo, *private]))

    async def key(self) -> Secret | None:
        """The key as it is now; None where none is needed, else AuthError."""
        if self.address.userinfo is not None and not self._credentials.is_given:
            return None
        key = await self._credentials.read(self.vendor)
        if key is None and not self._works_without_key:
            raise unusable("there is no key", self.way_to_a_key, self.vendor)
        return key

    @property
    def way_to_a_key(self) -> str:
        """What to do when there is none."""
        return self._credentials.way_out

    @property
    def _key_default(self) -> str | None:
        is_other = self.address.userinfo is not None or self._has_other_way
        return None if is_other else self.key_default

    @property
    def _works_without_key(self) -> bool:
        """The caller has another way in, or the service is on this machine and may want none."""
        return self.address.is_loopback or self._has_other_way or self.key_default is not None

    @property
    def _has_other_way(self) -> bool:
        if _CREDENTIALS & self._headers.keys():
            return True
        client = self._client
        return client is not None and (
            client.auth is not None or any(name in client.headers for name in _CREDENTIALS)
        )


_PAGES_MAX = 100
_NOT_FOUND = 404
_OTHER_MODEL = "look for {model!r} in what list_models() tells, and check the address"
_NO_MODEL = re.compile(
    r"\bmodels?\b.{0,200}\b(not exist|not found|not a valid|not available|no longer)\b"
    r"|\b(unknown|invalid|no such)\s+model\b|\bmodel is not supported\b",
    re.IGNORECASE | re.DOTALL,
)


def _is_about_the_model(error: InvalidRequest) -> bool:
    return error.status == _NOT_FOUND or _NO_MODEL.search(error.detail) is not None


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
