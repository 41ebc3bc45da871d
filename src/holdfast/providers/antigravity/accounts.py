"""Google accounts of the user's own, as a file holds them, and whose turn it is.

    {
      "client_id": "...",                       the user's own OAuth client, if it is not in the
      "client_secret": "...",                   environment
      "accounts": [
        {
          "name": "ada@example.com",            any name that no other account has
          "refresh_token": "...",
          "project": "...",                     found out where it is missing
          "active": true,                       false: it is not used
          "client_id", "client_secret":         where they are not those above

          "access_token", "expires_at":         written here: a token, and until when it is good
          "limited_until": {"MODEL": time}      written here: until when it may not ask a model
        }
      ],
      "current": "ada@example.com"              written here: whose turn it is
    }

Times are seconds since 1970. What else stands in the file is kept. Everything here is pure.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from holdfast.errors import AuthError
from holdfast.frozen import EMPTY
from holdfast.providers.credentials import Secret, is_header_value, unusable

LIMITED_S = 60.0  # where the service does not say it
EARLY_S = 300.0  # a token is replaced so long before it ends
_NAME_LENGTH_MAX = 200


class Account(NamedTuple):
    """One account. `expires_at` and the values of `limited_until` are seconds since 1970."""

    name: str
    refresh_token: Secret
    access_token: Secret | None = None
    expires_at: float = 0.0
    project: str | None = None
    is_active: bool = True
    limited_until: Mapping[str, float] = EMPTY
    client_id: str | None = None
    client_secret: Secret | None = None

    def is_fresh(self, now_s: float) -> bool:
        """Whether its token is good for a while."""
        return self.access_token is not None and self.expires_at - now_s > EARLY_S

    def wait_s(self, model: str, now_s: float) -> float:
        """How long it may not ask a model."""
        return max(0.0, self.limited_until.get(model, 0.0) - now_s)


class Sheet(NamedTuple):
    """What a file holds."""

    accounts: tuple[Account, ...]
    current: str | None

    def account(self, name: str) -> Account | None:
        """The account of this name, if it is still there."""
        return next((each for each in self.accounts if each.name == name), None)

    @property
    def active(self) -> tuple[Account, ...]:
        """Those that are used, in the order of the file."""
        return tuple(each for each in self.accounts if each.is_active)


def sheet(document: Any, where: str) -> Sheet:
    """What a parsed file means; AuthError, with what to mend, if it is no such file."""
    if not isinstance(document, dict):
        raise wrong(where, 'is no {"accounts": [...]}')
    entries = document.get("accounts")
    if not isinstance(entries, list):
        raise wrong(where, 'has no list "accounts"')
    shared = _client(document, where)
    accounts = tuple(_account(each, shared, where) for each in entries)
    names = [each.name for each in accounts]
    if len(set(names)) < len(names):
        raise wrong(where, "has two accounts of one name")
    current = document.get("current")
    return Sheet(accounts, current if isinstance(current, str) else None)


def chosen(found: Sheet, model: str, now_s: float, *, rotate: bool) -> Account | None:
    """Whose turn it is: the current account, or behind it, in turn, the next that may ask.

    The first one where none may, and where there is no rotation. None if there is no account.
    """
    active = found.active
    if not rotate:
        return active[0] if active else None
    at = next((n for n, each in enumerate(active) if each.name == found.current), 0)
    in_turn = active[at:] + active[:at]
    free = (each for each in in_turn if not each.wait_s(model, now_s))
    return next(free, active[0] if active else None)


# Changes of a file


def change(document: dict[str, Any], name: str, **fields: Any) -> None:
    """Set fields of an account, if it is still there; None takes a field away."""
    for entry in document["accounts"]:
        if entry["name"] == name:
            entry |= fields
            for field in [field for field, value in fields.items() if value is None]:
                del entry[field]


def limit(document: dict[str, Any], name: str, model: str, until: float, now_s: float) -> None:
    """Note until when an account may not ask a model; what is over is forgotten."""
    for entry in document["accounts"]:
        if entry["name"] == name:
            limits = {k: v for k, v in entry.get("limited_until", {}).items() if v > now_s}
            entry["limited_until"] = {**limits, model: round(until, 3)}


# Reading


def wrong(where: str, why: str, way_out: str = "mend it, as the documentation shows") -> AuthError:
    """The error for a file that cannot be used as it is."""
    return unusable(f"the accounts file {where} {why}", way_out, "antigravity")


def _account(entry: Any, shared: tuple[str | None, Secret | None], where: str) -> Account:
    if not isinstance(entry, dict):
        raise wrong(where, "has an account that is no object")
    name = entry.get("name")
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= _NAME_LENGTH_MAX:
        raise wrong(where, 'has an account without a "name"')
    what = f"{where}, account {name!r},"
    refresh_token = _text(entry, "refresh_token", what)
    if refresh_token is None:
        raise wrong(what, 'has no "refresh_token"')
    access_token = _text(entry, "access_token", what)
    if access_token is not None and not is_header_value(access_token):
        raise wrong(what, 'has an "access_token" that no header can hold', "remove it")
    is_active = entry.get("active", True)
    if not isinstance(is_active, bool):
        raise wrong(what, 'has an "active" that is neither true nor false')
    client_id, client_secret = _client(entry, what)
    return Account(
        name,
        Secret(refresh_token),
        None if access_token is None else Secret(access_token),
        _time(entry.get("expires_at", 0), what),
        _text(entry, "project", what),
        is_active,
        _limits(entry.get("limited_until", {}), what),
        client_id or shared[0],
        client_secret if client_id else shared[1],
    )


def _client(holder: dict[str, Any], what: str) -> tuple[str | None, Secret | None]:
    secret = _text(holder, "client_secret", what)
    return _text(holder, "client_id", what), None if secret is None else Secret(secret)


def _text(holder: dict[str, Any], name: str, what: str) -> str | None:
    value = holder.get(name)
    if value is None:
        return None
    if isinstance(value, str) and value and value.isprintable() and not value.isspace():
        return value
    raise wrong(what, f'has a "{name}" that is no text of one line')


def _limits(value: Any, what: str) -> Mapping[str, float]:
    if not isinstance(value, dict):
        raise wrong(what, 'has a "limited_until" that is no object of times')
    return {model: _time(until, what) for model, until in value.items()}


def _time(value: Any, what: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise wrong(what, "has a time that is no number of seconds since 1970")
