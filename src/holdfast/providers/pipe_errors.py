"""What went wrong on the way, as one of our errors.

No words of a request are repeated, and of an address only the host: the rest may hold a key.
"""

import ssl
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx2

from holdfast.errors import ConnectionFailed, InvalidRequest, ProtocolError, ProviderError
from holdfast.providers.refusals import mask

if TYPE_CHECKING:
    from holdfast.providers.pipe import Timeouts

_BROKE_OFF = ("disconnected", "closed connection", "incomplete")


def failed(error: Exception, url: str, timeouts: "Timeouts") -> ProviderError:
    """The error to raise for one of the HTTP client's."""
    host = host_of(url)
    if isinstance(error, httpx2.ConnectTimeout | httpx2.PoolTimeout):
        return ConnectionFailed(
            f"no connection to {host} within {timeouts.connect:g} s (connect limit)"
        )
    if isinstance(error, httpx2.TimeoutException):
        return ConnectionFailed(f"nothing came from {host} for {timeouts.idle:g} s (idle limit)")
    if isinstance(error, httpx2.ProxyError):
        return ConnectionFailed(f"the proxy did not let us through to {host}: {_said(error)}")
    if isinstance(error, httpx2.ConnectError):
        return _not_connected(error, host)
    if isinstance(error, httpx2.NetworkError):
        return ConnectionFailed(f"the connection to {host} broke{_because(error)}")
    if isinstance(error, httpx2.RemoteProtocolError):
        if any(words in str(error) for words in _BROKE_OFF):
            return ConnectionFailed(f"{host} closed the connection before the answer was complete")
        return ProtocolError(f"what {host} sends is no HTTP: {_said(error)}")
    if isinstance(error, httpx2.DecodingError):
        return ProtocolError(f"the answer of {host} cannot be unpacked: {_said(error)}")
    if isinstance(
        error, httpx2.UnsupportedProtocol | httpx2.InvalidURL | httpx2.LocalProtocolError
    ):
        return InvalidRequest(f"no request to {host} can be made of this ({type(error).__name__})")
    return ConnectionFailed(f"no answer from {host} ({type(error).__name__})")


def is_final(error: BaseException) -> bool:
    """Whether the service could not show who it is, so that another try cannot help."""
    cause = error.__cause__
    found = _ssl_error(cause) if isinstance(cause, httpx2.ConnectError) else None
    return found is not None and not isinstance(found, ssl.SSLEOFError)  # that one just hung up


def host_of(url: str) -> str:
    """The host and port of an address: what may be shown of it."""
    try:
        parts = urlsplit(url)
        return parts.netloc.rpartition("@")[2] or "the service"
    except ValueError:
        return "the service"


def _not_connected(error: Exception, host: str) -> ProviderError:
    cause = _ssl_error(error)
    if isinstance(cause, ssl.SSLCertVerificationError):
        return ConnectionFailed(
            f"the certificate of {host} is not accepted: {cause.verify_message}"
        )
    if cause is not None:
        return ConnectionFailed(f"no TLS with {host}: {cause.reason or 'the handshake failed'}")
    return ConnectionFailed(f"no connection to {host}{_because(error)}")


def _ssl_error(error: BaseException) -> ssl.SSLError | None:
    at: BaseException | None = error
    while at is not None:
        if isinstance(at, ssl.SSLError):
            return at
        at = at.__cause__ or at.__context__
    return None


def _because(error: BaseException) -> str:
    """The system's own word for it, if there is one."""
    at: BaseException | None = error
    while at is not None:
        if isinstance(at, OSError) and at.strerror:
            return f": {at.strerror}"
        at = at.__cause__ or at.__context__
    return ""


def _said(error: Exception) -> str:
    return mask(str(error))[:200]
