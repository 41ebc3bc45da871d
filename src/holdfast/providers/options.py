"""Options of a provider, checked when it is opened: a mistake is found before anything is sent.

What may be secret, a header or the address of a proxy, is not repeated in an error.
"""

import re
from collections.abc import Mapping
from typing import Any

from holdfast.errors import InvalidInput
from holdfast.providers.credentials import Secret, is_header_value
from holdfast.usage import Prices

_HEADER_NAME = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]{1,200}")
_OURS = {"host", "content-length", "transfer-encoding", "connection", "content-encoding"}


def names_of(kind: type) -> set[str]:
    """The keyword options of a class, by its constructor."""
    return set(getattr(kind.__init__, "__kwdefaults__", None) or ())  # type: ignore[misc]


def checked_headers(headers: Any) -> dict[str, Secret]:
    """Headers by their names in lower case."""
    if headers is None:
        return {}
    if not isinstance(headers, Mapping):
        raise InvalidInput("headers", "is a dict of names and values")
    checked = {}
    for name, value in headers.items():
        lower = name.lower() if isinstance(name, str) else ""
        if not _HEADER_NAME.fullmatch(lower) or lower in _OURS:
            raise InvalidInput(f"header {name!r:.80}", "cannot be set")
        if not isinstance(value, str | Secret):
            raise InvalidInput(f"header {lower!r}", f"is a string, not {type(value).__name__}")
        secret = Secret(value) if isinstance(value, str) else value
        if not is_header_value(secret.reveal()):
            raise InvalidInput(f"header {lower!r}", "has characters that no header can hold")
        checked[lower] = secret
    return checked


def checked_proxy(proxy: Any) -> Secret | None:
    """The address of a proxy. Its scheme is checked by the client, when one is made."""
    if proxy is None:
        return None
    if not isinstance(proxy, str) or not proxy.isprintable() or "://" not in proxy:
        raise InvalidInput("proxy", "is an address such as http://host:port")
    return Secret(proxy)


def checked_prices(prices: Any) -> Prices | None:
    """Prices, or None."""
    if prices is None or isinstance(prices, Prices):
        return prices
    raise InvalidInput("prices", f"is a holdfast.usage.Prices, not {type(prices).__name__}")


def checked_count(name: str, value: Any, count_max: int = 2**53) -> int:
    """A whole number from 1 up."""
    if type(value) is int and 0 < value <= count_max:
        return value
    raise InvalidInput(name, f"is a whole number from 1 to {count_max}, not {value!r:.40}")


def checked_limit(name: str, value: Any) -> int | None:
    """A number of tokens, or None for what the table says."""
    return None if value is None else checked_count(name, value)
