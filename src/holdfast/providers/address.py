"""Where a service is: a base URL that was checked once, and can be shown.

A name and password in it (https://name:password@host) are taken out at once and sent as a header.
A query or fragment is refused: a key there would be in the log of every proxy on the way.
"""

from base64 import b64encode
from ipaddress import ip_address
from urllib.parse import unquote, urlsplit

from holdfast.errors import InvalidInput
from holdfast.providers.credentials import Secret

LENGTH_MAX = 2_000


class Address:
    """A base URL. `str` shows it, without credentials."""

    def __init__(self, url: str, what: str = "base_url") -> None:
        # Nothing of the URL is repeated in an error: it may hold a password.
        if not isinstance(url, str):
            raise InvalidInput(what, f"is a URL, not {type(url).__name__}")
        if not (url.isascii() and url.isprintable() and " " not in url) or len(url) > LENGTH_MAX:
            raise InvalidInput(what, f"is a URL of at most {LENGTH_MAX} ASCII characters")
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            raise InvalidInput(what, "is no URL that can be read") from None
        if parts.scheme not in ("http", "https") or not host:
            raise InvalidInput(what, "begins with https:// (or http://) and a host")
        if parts.query or parts.fragment:
            raise InvalidInput(what, "has no query and no fragment: use api_key= and headers=")
        self.userinfo = _basic(parts.username, parts.password)
        self.host = host
        shown = f"[{host}]" if ":" in host else host
        self._base = f"{parts.scheme}://{shown}{'' if port is None else f':{port}'}{parts.path}"
        self._base = self._base.rstrip("/")

    def join(self, path: str) -> str:
        """The address of `path`. A version that ends the base and begins the path is said once."""
        path = path.lstrip("/")
        version = path.partition("/")[0]
        if version[:1] == "v" and version[1:2].isdigit() and self._base.endswith(f"/{version}"):
            path = path[len(version) + 1 :]
        return f"{self._base}/{path}"

    @property
    def is_loopback(self) -> bool:
        """Whether it is this machine."""
        return is_loopback(self.host)

    def __str__(self) -> str:
        return self._base

    def __repr__(self) -> str:
        return f"<Address {self._base}>"


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _basic(name: str | None, password: str | None) -> Secret | None:
    if not name and not password:
        return None
    pair = f"{unquote(name or '')}:{unquote(password or '')}".encode()
    return Secret(f"Basic {b64encode(pair).decode()}")
