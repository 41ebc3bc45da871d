"""Another access token for a refresh token, as OAuth 2.0 says it (RFC 6749, section 6).

Two pure halves: the request, by the user's own client, and what is read out of the answer. No
client of anybody's is shipped.
"""

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlencode

from holdfast.errors import AuthError, ProtocolError, ProviderError
from holdfast.providers import fields
from holdfast.providers.antigravity.accounts import Account
from holdfast.providers.attempts import Attempt
from holdfast.providers.credentials import Headers, Hidden, Secret, is_header_value, unusable
from holdfast.providers.fields import Object
from holdfast.providers.pipe import Request

TOKEN_URL = "https://oauth2.googleapis.com/token"  # noqa: S105 - an address
CLIENT_ID = "ANTIGRAVITY_CLIENT_ID"
CLIENT_SECRET = "ANTIGRAVITY_CLIENT_SECRET"  # noqa: S105 - the name of a variable
_VENDOR = "antigravity"
_LIFE_S = 3600.0  # where the answer does not say it
_LIFE_S_MAX = 1e7


class Token(NamedTuple):
    """A token, until when it is good, and another refresh token if there is one."""

    access_token: Secret
    expires_at: float
    refresh_token: Secret | None = None


def request(url: str, account: Account, variables: Mapping[str, str]) -> Attempt[Request]:
    """What to send. `variables` hold the client where the file of the accounts does not."""
    client_id = account.client_id or variables.get(CLIENT_ID)
    client_secret = account.client_secret
    if account.client_id is None and variables.get(CLIENT_SECRET):
        client_secret = Secret(variables[CLIENT_SECRET])
    if not client_id:
        raise unusable(
            f"there is no OAuth client for account {account.name!r}",
            "put your own client_id and client_secret into the accounts file, or set "
            f"{CLIENT_ID} and {CLIENT_SECRET}",
            _VENDOR,
        )
    form = {
        "grant_type": "refresh_token",
        "refresh_token": account.refresh_token.reveal(),
        "client_id": client_id,
    }
    if client_secret is not None:
        form["client_secret"] = client_secret.reveal()
    headers = Headers(
        {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
    )
    sent = Request("POST", url, headers, urlencode(form).encode())
    return Attempt(sent, Hidden([account.refresh_token, client_secret, account.access_token]))


def token(answer: Object, now_s: float) -> Token:
    """The token in an answer; ProtocolError if there is none."""
    access_token = fields.text_of(answer, "access_token")
    if not access_token or not is_header_value(access_token):
        raise ProtocolError("the answer to a refresh holds no access_token", _VENDOR)
    life_s = answer.get("expires_in", _LIFE_S)
    if isinstance(life_s, bool) or not isinstance(life_s, int | float) or life_s < 0:
        raise ProtocolError("expires_in is a number of seconds", _VENDOR)
    refresh_token = fields.text_of(answer, "refresh_token")
    return Token(
        Secret(access_token),
        round(now_s + min(life_s, _LIFE_S_MAX), 3),
        Secret(refresh_token) if refresh_token else None,
    )


def refused(error: ProviderError, account: Account) -> AuthError | None:
    """The error for a refresh that no repeating mends; None if it may pass by itself."""
    status = error.status or 0
    if not 400 <= status < 500 or status in (408, 429):
        return None
    return unusable(
        f"account {account.name!r} cannot be refreshed ({error.detail})",
        "sign in again and put its new refresh_token into the accounts file, or set its "
        '"active" to false',
        _VENDOR,
        error.status,
        error.request_id,
    )
