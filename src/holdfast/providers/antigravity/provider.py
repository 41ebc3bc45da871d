"""Code Assist by the user's own Google accounts: any number, two quotas, three endpoints."""

import time
from collections.abc import Sequence
from os import PathLike, environ
from typing import Any, Self

import msgspec

from holdfast.errors import InvalidInput, ProviderError
from holdfast.providers.address import Address
from holdfast.providers.antigravity import oauth, projects
from holdfast.providers.antigravity.accounts import Account
from holdfast.providers.antigravity.accounts_file import AccountsFile
from holdfast.providers.antigravity.families import PREFIX
from holdfast.providers.antigravity.keeper import Keeper
from holdfast.providers.antigravity.tries import Tries
from holdfast.providers.antigravity.wire import CodeAssistWire, method
from holdfast.providers.attempts import Attempts, Outgoing
from holdfast.providers.fields import Object, object_of, objects_of, text_of
from holdfast.providers.http_provider import HttpProvider
from holdfast.providers.pipe import Request

ACCOUNTS = "ANTIGRAVITY_ACCOUNTS"
_encode = msgspec.json.Encoder().encode


class AntigravityProvider(HttpProvider):
    """Options beside the common ones:

    accounts    the path of the user's accounts file; without it that of ANTIGRAVITY_ACCOUNTS. An
                `api_key` is an access token, and is used instead of accounts
    rotate      False: the first active account is used, whatever it is refused for
    project     for accounts that have none, and for an `api_key`
    endpoints   addresses to try, in order, instead of those of the quota; `base_url` is one
    token_url   where tokens are refreshed

    and those of the wire.
    """

    vendor = "antigravity"
    wire: CodeAssistWire
    endpoints: tuple[Address, ...]
    keeper: Keeper | None = None
    project: str | None = None
    token_url = oauth.TOKEN_URL

    @classmethod
    def opened(
        cls,
        model: str,
        *,
        accounts: str | PathLike[str] | None = None,
        rotate: bool = True,
        project: str | None = None,
        endpoints: Sequence[str] | None = None,
        token_url: str = oauth.TOKEN_URL,
        **options: Any,
    ) -> Self:
        """The provider of a model."""
        more = ("accounts", "rotate", "project", "endpoints", "token_url")
        own, common = cls.sorted_options(options, CodeAssistWire, *more)
        wire = CodeAssistWire(model, **own)
        addresses = _addresses(endpoints, common.pop("base_url", None), wire.family.endpoints)
        made = cls(wire, addresses[0], **common)
        made.headers = wire.family.headers  # type: ignore[misc]
        made.endpoints = addresses
        made.project = _checked_project(project)
        made.token_url = str(Address(token_url, "token_url"))
        if not isinstance(rotate, bool):
            raise InvalidInput("rotate", "is True or False")
        if common.get("api_key") is None:
            accounts = environ.get(ACCOUNTS) or None if accounts is None else accounts
        elif accounts is not None:
            raise InvalidInput("accounts", "stands beside an api_key: pass one of them")
        if accounts is not None:
            quota = f"{wire.family.name}:{wire.name_at_service}"
            file = AccountsFile(accounts)
            made.keeper = Keeper(file, quota, rotate=rotate, refresh=made.refreshed)
        return made

    @property
    def way_to_a_key(self) -> str:
        return f"pass accounts=, the path of your accounts file, or set {ACCOUNTS}"

    def attempts(self, outgoing: Outgoing) -> Attempts[Request]:
        return Tries(self, outgoing)

    async def list_models(self, prefix: str = "") -> tuple[str, ...]:
        """Those of the quota that this model is on, by the names that `open_provider` takes."""
        answer = await self.post(method(self.wire.family.models), {})
        if self.wire.family.models == "fetchAvailableModels":
            names = [f"{PREFIX}{name}" for name in object_of(answer, "models")]
        else:
            names = [text_of(each, "modelId") or "" for each in objects_of(answer, "buckets")]
        return tuple(sorted({name for name in names if name and name.startswith(prefix)}))

    async def verify(self) -> None:
        await self.post(projects.LOAD, projects.ASKED)

    # What a try may need before it

    async def refreshed(self, account: Account) -> oauth.Token:
        """Another token for an account."""
        try:
            answer = await self.ask_once(oauth.request(self.token_url, account, environ))
        except ProviderError as error:
            if (refused := oauth.refused(error, account)) is not None:
                raise refused from error
            raise
        return oauth.token(answer, time.time())

    def asking(self, account: Account, endpoint: Address) -> projects.Asking:
        """How to ask an endpoint in the name of an account."""

        async def asked(verb: str, path: str, body: Object | None) -> Object:
            sent = None if body is None else _encode(body)
            outgoing = Outgoing(verb, lambda: endpoint.join(path), sent)
            return await self.ask_once(self.signed(outgoing, account.access_token))

        return projects.Asking(
            post=lambda path, body: asked("POST", path, body),
            get=lambda path: asked("GET", path, None),
        )


def _addresses(
    endpoints: Sequence[str] | None, base_url: str | None, usual: Sequence[str]
) -> tuple[Address, ...]:
    """The endpoints, in the order in which they are tried."""
    if base_url is not None:
        if endpoints is not None:
            raise InvalidInput("endpoints", "stand beside a base_url: pass one of them")
        return (Address(base_url),)
    given = usual if endpoints is None else endpoints
    if not isinstance(given, list | tuple) or not given:
        raise InvalidInput("endpoints", "is a list of addresses")
    addresses = tuple(Address(each, "endpoints") for each in given)
    if any(each.userinfo is not None for each in addresses):
        raise InvalidInput("endpoints", "have no name and password in them: use headers=")
    return addresses


def _checked_project(project: Any) -> str | None:
    if project is None or (isinstance(project, str) and project.isprintable() and project):
        return project
    raise InvalidInput("project", "is the id of a project of Google Cloud")
