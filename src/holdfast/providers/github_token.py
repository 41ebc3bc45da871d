"""The token that Copilot takes: had from GitHub for the user's own, and good for half an hour.

GitHub says of each token when to have the next (`refresh_in`, in seconds, which needs no clock to
be right) and where Copilot is for this user (`endpoints.api`; elsewhere it answers 421).
"""

import time
from collections.abc import Awaitable, Callable

from holdfast.providers import fields
from holdfast.providers.credentials import Secret, unusable
from holdfast.providers.fields import Object
from holdfast.providers.shared_work import SharedWork

USUAL_S = 1_500.0
MARGIN_S = 300.0  # before it expires, where GitHub does not say when to have the next
LEAST_S = 60.0  # whatever the clock says


class CopilotToken:
    """The token of one user. Whoever asks at the same time waits for the same exchange.

    `fetch` gives GitHub's answer; `api` is where Copilot is, if it was said.
    """

    def __init__(
        self,
        fetch: Callable[[], Awaitable[Object]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.api: str | None = None
        self._fetch = fetch
        self._clock = clock
        self._secret: Secret | None = None
        self._fresh_until = 0.0
        self._work = SharedWork()

    async def read(self) -> Secret:
        """The token, a new one if the last is about to expire or was refused."""
        if self._secret is not None and self._clock() < self._fresh_until:
            return self._secret
        return await self._work.done("token", self._exchanged)

    def drop(self, refused: Secret) -> None:
        """Copilot did not take this one. Another that was had meanwhile stays."""
        if self._secret is not None and self._secret.reveal() == refused.reveal():
            self._secret = None

    async def _exchanged(self) -> Secret:
        document = await self._fetch()
        token = document.get("token")
        if not isinstance(token, str) or not token:
            raise unusable("GitHub gave no token for Copilot", "sign in again", "github")
        self.api = _api(document)
        self._secret = secret = Secret(token)
        self._fresh_until = self._clock() + _fresh_s(document)
        return secret


def _api(document: Object) -> str | None:
    endpoints = document.get("endpoints")
    api = endpoints.get("api") if isinstance(endpoints, dict) else None
    return api if isinstance(api, str) else None


def _fresh_s(document: Object) -> float:
    if refresh_in := fields.count_of(document, "refresh_in"):
        return float(refresh_in)
    expires_at = fields.count_of(document, "expires_at")
    return max(LEAST_S, expires_at - time.time() - MARGIN_S) if expires_at else USUAL_S
