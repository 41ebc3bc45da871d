"""The tries of one request: by which account, at which endpoint, and what a failure changes.

| failure                            | then                                                       |
|------------------------------------|------------------------------------------------------------|
| 401                                | the token is replaced, once for each account               |
| RateLimited                        | the account waits, and the next one that may ask is asked  |
| no connection, 5xx, garbage, 404   | the next endpoint is asked                                 |
| anything else, 403 among it        | nothing                                                    |

Accounts change only for RateLimited, endpoints never for 401, 403 and 429. An account that was
refused waits as long as the service says, or 60 seconds. When no account may ask, the first one is
asked all the same, and RateLimited says how long it is until one of them may.
"""

import re
from math import ceil
from typing import TYPE_CHECKING

import msgspec

from holdfast import ids
from holdfast.errors import (
    ConnectionFailed,
    InvalidRequest,
    Overloaded,
    ProtocolError,
    ProviderError,
    RateLimited,
)
from holdfast.providers.antigravity import projects
from holdfast.providers.antigravity.accounts import Account
from holdfast.providers.attempts import Attempt, Attempts, Outgoing
from holdfast.providers.pipe import Request

if TYPE_CHECKING:
    from holdfast.providers.antigravity.provider import AntigravityProvider

_NEVER_ELSEWHERE = (401, 403, 429)
_ELSEWHERE = (ConnectionFailed, Overloaded, ProtocolError)
# What the service wants to know beside what is asked, by its methods.
_OF_QUESTION = ("project", "requestId")
_BESIDE = {
    "generateContent": _OF_QUESTION,
    "streamGenerateContent": _OF_QUESTION,
    "fetchAvailableModels": ("project",),
    "retrieveUserQuota": ("project",),
}
_UNANSWERED = re.compile(r"tool_result_missing|tool_use` ids were found without `tool_result")
_encode = msgspec.json.Encoder().encode


class Tries(Attempts[Request]):
    """The tries of one request of a provider."""

    def __init__(self, provider: "AntigravityProvider", outgoing: Outgoing) -> None:
        self._provider = provider
        self._outgoing = outgoing
        self._path = outgoing.url().removeprefix(str(provider.address))
        self._beside = _BESIDE.get(self._path.rpartition(":")[2].partition("?")[0], ())
        self._at = 0  # which endpoint
        self._account: Account | None = None
        self._is_asked = False  # somebody of the service, in the name of the account
        self._is_sent = False  # the request itself
        self._refused: set[str] = set()  # accounts whose token was replaced

    async def next(self) -> Attempt[Request]:
        provider, keeper = self._provider, self._provider.keeper
        self._is_asked = self._is_sent = False
        if keeper is None:
            key = await provider.key()
        else:
            self._account = await keeper.account()
            key = self._account.access_token
        self._is_asked = True
        endpoint = provider.endpoints[self._at]
        outgoing = self._outgoing._replace(
            url=lambda: endpoint.join(self._path), body=await self._body()
        )
        self._is_sent = True
        return provider.signed(outgoing, key)

    async def amended(self, error: ProviderError) -> bool:
        if not self._is_asked:
            return False
        if self._is_sent:
            self._explain(error)
        if isinstance(error, RateLimited):
            return await self._is_other_account_free(error)
        if error.status == 401:
            return self._is_token_replaced()
        return self._is_elsewhere(error)

    # What is sent

    async def _body(self) -> bytes | None:
        """The body with what depends on who asks: put in front, because the rest is long."""
        body = self._outgoing.body
        beside: dict[str, str] = {}
        if "project" in self._beside and (name := await self._project()):
            beside["project"] = name
        if "requestId" in self._beside:
            beside["requestId"] = f"agent-{ids.new_id()}"
        if not beside or body is None:
            return body
        return _encode(beside)[:-1] + (b"," if body != b"{}" else b"") + body[1:]

    async def _project(self) -> str | None:
        provider, account = self._provider, self._account
        if account is None or provider.keeper is None:
            return provider.project
        if known := account.project or provider.project:
            return known
        asking = provider.asking(account, provider.endpoints[self._at])
        return await provider.keeper.project(
            account, lambda: projects.found_out(account.name, asking)
        )

    # What a failure changes

    async def _is_other_account_free(self, error: RateLimited) -> bool:
        keeper = self._provider.keeper
        if keeper is None or self._account is None or not keeper.rotates:
            return False
        wait_s = await keeper.limited(self._account, error.retry_after_s)
        if wait_s is not None:
            error.retry_after_s = ceil(wait_s)
        return wait_s is None

    def _is_token_replaced(self) -> bool:
        """The next try brings another token, unless this account's was replaced already."""
        keeper, account = self._provider.keeper, self._account
        if keeper is None or account is None or account.name in self._refused:
            return False
        keeper.refuse(account)
        self._refused.add(account.name)
        return True

    def _is_elsewhere(self, error: ProviderError) -> bool:
        """The next try is at the next endpoint; behind the last it begins anew, after a wait."""
        is_other = isinstance(error, _ELSEWHERE) or error.status == 404
        if not is_other or error.status in _NEVER_ELSEWHERE:
            return False
        self._at = (self._at + 1) % len(self._provider.endpoints)
        return self._at > 0

    def _explain(self, error: ProviderError) -> None:
        """Say what this service means by it."""
        more = None
        if error.status == 403:
            who = "" if self._account is None else f" of account {self._account.name!r}"
            more = f"the plan or the project{who} has no quota or no permission for this"
        elif error.status == 404:
            more = f"there is no model {self._provider.model!r} here, see list_models()"
        elif isinstance(error, InvalidRequest) and _UNANSWERED.search(error.detail):
            more = "a call of a tool has no result behind it: add the result"
        if more is not None:
            error.detail = f"{error.detail}: {more}" if error.detail else more
