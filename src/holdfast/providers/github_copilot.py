"""Copilot: the models of a subscription, asked with a token that GitHub gives for the user's own.

The token is had before the first call, and anew before it expires. Where Copilot refuses it all
the same, a call is repeated once, with a new one. Nothing of this is written anywhere, and nothing
is shipped: who has not signed in with an app of theirs cannot use it.
"""

from collections.abc import Callable
from os import environ
from typing import Any, ClassVar, Self

from holdfast.errors import InvalidInput, ProviderError
from holdfast.providers import github_wires
from holdfast.providers.address import Address
from holdfast.providers.attempts import Attempt, Attempts, Outgoing, SameAttempts
from holdfast.providers.credentials import Credentials, Headers, Hidden, Key, Secret, unusable
from holdfast.providers.fields import Object
from holdfast.providers.github_shared import FILE_VARIABLE, OPTIONS, GitHub
from holdfast.providers.github_token import CopilotToken
from holdfast.providers.http_provider import address_of
from holdfast.providers.pipe import Request, Timeouts
from holdfast.providers.token_file import path_of, read_token
from holdfast.providers.wire import Wire

TOKEN_URL = "https://api.github.com/copilot_internal/v2/token"  # noqa: S105 - an address
IDLE_S = 120.0
UNAUTHORIZED = 401
_HOMES = (".githubcopilot.com", ".ghe.com")  # where GitHub may send its users to
_SIGN_IN = "sign in to Copilot again"
_FILE = f"pass token_file=, or set {FILE_VARIABLE}"


class CopilotProvider(GitHub):
    """Its options are told in `GitHubProvider`, which opens it."""

    address_default = "https://api.githubcopilot.com"
    models_path = "models"
    headers: ClassVar = {
        "copilot-integration-id": "vscode-chat",
        "editor-version": "holdfast/0.1",
        "editor-plugin-version": "holdfast/0.1",
    }
    token: CopilotToken
    _oauth: Credentials
    _token_url: Address
    _follows = False  # goes where GitHub says that Copilot is

    @classmethod
    def opened(
        cls, model: str, token_file: Any, token_url: str | None, options: dict[str, Any]
    ) -> Self:
        """The provider of a model."""
        kind = _wire_class(model)
        own, common = cls.sorted_options(options, kind, *OPTIONS)
        oauth = _oauth(token_file, common.pop("api_key", None))
        common.setdefault("timeout", Timeouts(idle=IDLE_S))
        base_url = common.pop("base_url", None)
        made: Self = cls(
            kind(model, **own),
            address_of(cls, base_url),
            api_key=lambda: made._short_lived(),
            **common,
        )
        made.token = CopilotToken(made._exchanged)
        made._oauth = Credentials(oauth)
        made._token_url = Address(TOKEN_URL if token_url is None else token_url, "token_url")
        made._follows = base_url is None
        return made

    # The token

    def attempts(self, outgoing: Outgoing) -> Attempts[Request]:
        return _Tries(self, outgoing)

    async def _short_lived(self) -> Secret | str:
        if not self._oauth.is_given and self._works_without_key:
            return ""
        secret = await self.token.read()
        if self._follows and self.token.api is not None:
            self.address = _home(self.token.api) or self.address
        return secret

    async def _exchanged(self) -> Object:
        """What GitHub gives for the user's own token; the tries are those of the call."""
        oauth = await self._oauth.read(self.vendor)
        if oauth is None:
            raise unusable("there is no OAuth token", _FILE, self.vendor)
        headers = Headers({"accept": "application/json", "user-agent": "holdfast"} | self.headers)
        headers["authorization"] = f"token {oauth.reveal()}"
        request = Request("GET", str(self._token_url), headers)
        try:
            return await self.ask_once(Attempt(request, Hidden([oauth])))
        except ProviderError as error:
            if error.status not in (401, 403, 404):
                raise
            why = f"GitHub gives no token for Copilot ({error.detail})"
            facts = (self.vendor, error.status, error.request_id)
            raise unusable(why, _SIGN_IN, *facts) from error

    @property
    def way_to_a_key(self) -> str:
        return f"{_SIGN_IN}: {_FILE}"

    # The models

    @property
    def listed_as(self) -> str:
        return github_wires.bare(self.model)

    def name_of(self, listed: Object) -> str | None:
        """Its name, unless the account has not agreed to its terms."""
        policy = listed.get("policy")
        is_off = isinstance(policy, dict) and policy.get("state") == "disabled"
        return None if is_off else super().name_of(listed)


class _Tries(SameAttempts):
    """A token that Copilot refuses makes room for a new one, once."""

    def __init__(self, provider: CopilotProvider, outgoing: Outgoing) -> None:
        super().__init__(provider, outgoing)
        self._copilot = provider
        self._sent: Secret | None = None
        self._is_renewed = False

    async def next(self) -> Attempt[Request]:
        self._sent = None
        self._sent = key = await self._copilot.key()
        return self._copilot.signed(self._outgoing, key)

    async def renewed(self, error: ProviderError) -> bool:
        if error.status != UNAUTHORIZED or self._sent is None or self._is_renewed:
            return False
        self._is_renewed = True
        self._copilot.token.drop(self._sent)
        return True


def _wire_class(model: str) -> type[Wire]:
    if github_wires.is_for_responses(model):
        return github_wires.CopilotResponsesWire
    return github_wires.CopilotChatWire


def _oauth(token_file: Any, api_key: Key | None) -> Key | Callable[[], Secret] | None:
    """The user's own token: as passed, or out of the file, which is read each time."""
    if token_file is not None and api_key is not None:
        raise InvalidInput("token_file", "stands beside an api_key: pass one of them")
    if api_key is not None:
        return api_key
    if token_file is not None:
        path = path_of(token_file, "token_file")
    elif environ.get(FILE_VARIABLE):
        path = path_of(environ[FILE_VARIABLE], FILE_VARIABLE)
    else:
        return None
    return lambda: read_token(path)


def _home(api: str) -> Address | None:
    """Where Copilot is, as GitHub says, if that is at GitHub's."""
    try:
        address = Address(api, "endpoints.api")
    except InvalidInput:
        return None
    is_there = str(address).startswith("https://") and address.host.endswith(_HOMES)
    return address if is_there else None
