"""What an Ollama server says of itself, read: where it is, how old, its models, its complaints.

All of it is pure; `ollama_provider.py` asks.
"""

import re
from typing import NamedTuple

from holdfast.errors import (
    AuthError,
    ConnectionFailed,
    ContextOverflow,
    InvalidInput,
    ProtocolError,
    ProviderError,
)
from holdfast.providers.address import Address
from holdfast.providers.fields import Object

PORT = 11434
MESSAGES_SINCE = (0, 14)  # the version that first spoke the Messages API
_VERSION = re.compile(r"(\d+)\.(\d+)")
_NUM_CTX = re.compile(r"^\s*num_ctx\s+(\d{1,9})\s*$", re.MULTILINE)
_NOWHERE = ("", "0.0.0.0", "[::]", "::")  # noqa: S104 - where a server listens, and nobody can call
_CLOUD = re.compile(r"[:-]cloud$")
_CLOUD_HOST = "ollama.com"


def address_of(given: str, what: str) -> Address:
    """The address of a server, in all the ways in which OLLAMA_HOST may be written.

    `host`, `host:port`, `:port`, `scheme://host:port/path`; `0.0.0.0`, which a server listens on,
    is this machine. Without a scheme the port is Ollama's own.
    """
    if not isinstance(given, str):
        raise InvalidInput(what, f"is a URL or host:port, not {type(given).__name__}")
    text = given.strip().strip("\"'").strip()
    scheme, mark, rest = text.rpartition("://")
    at, _, path = rest.partition("/")
    user, sign, at = at.rpartition("@")
    host, port = _split(at)
    host = "127.0.0.1" if host in _NOWHERE else host
    port = port or ("" if mark else str(PORT))
    path = re.sub(r"/(?:v1|api)$", "", f"/{path}".rstrip("/"))  # ours have it themselves
    colon = ":" if port else ""
    return Address(f"{scheme or 'http'}://{user}{sign}{host}{colon}{port}{path}", what)


def _split(at: str) -> tuple[str, str]:
    """Host and port. An IPv6 address has its brackets, or has no port."""
    if at.startswith("[") or at.count(":") < 2:
        host, colon, port = at.rpartition(":")
        return (host, port) if colon and "]" not in port else (at, "")
    return f"[{at}]", ""


def speaks_messages(document: Object) -> bool | None:
    """Whether a server of this version does (`/api/version`); None if that is not known."""
    found = _VERSION.match(str(document.get("version")))
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    return None if version == (0, 0) else version >= MESSAGES_SINCE  # 0.0.0 is built by hand


# Models


def is_cloud(model: str, host: str = "") -> bool:
    """Whether a model runs at Ollama's own service: asked there, or through another server."""
    return host == _CLOUD_HOST or bool(_CLOUD.search(model))


def is_same(listed: object, model: str) -> bool:
    """Whether a name in the server's list is this model: without a tag it is the latest."""
    return isinstance(listed, str) and _tagged(listed) == _tagged(model)


def _tagged(name: str) -> str:
    name = name.lower()
    return name if ":" in name.rpartition("/")[2] else f"{name}:latest"


def names_in(document: Object) -> list[Object]:
    """The models in a list of the server's, `/api/tags` or `/api/ps`."""
    found = document.get("models")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def name_of(listed: Object) -> str | None:
    """The name of a model in a list."""
    name = listed.get("name") or listed.get("model")
    return name if isinstance(name, str) else None


# Windows


class Card(NamedTuple):
    """What a model says of its window: `trained` for so many tokens, and loaded with `num_ctx`
    where its Modelfile says so."""

    trained: int | None = None
    num_ctx: int | None = None


def card_of(document: Object) -> Card:
    """The card of a model (`/api/show`)."""
    about = document.get("model_info")
    facts = about if isinstance(about, dict) else {}
    trained = [_tokens(facts[name]) for name in facts if name.endswith(".context_length")]
    said = _NUM_CTX.search(str(document.get("parameters")))
    return Card(next(filter(None, trained), None), _tokens(int(said[1])) if said else None)


def loaded_in(document: Object, model: str) -> int | None:
    """The window that a model is loaded with (`/api/ps`); None if it is not, or nobody says."""
    for each in names_in(document):
        if is_same(name_of(each), model):
            return _tokens(each.get("context_length"))
    return None


def _tokens(value: object) -> int | None:
    return value if type(value) is int and 0 < value < 2**53 else None


# Complaints

_MEMORY = "free memory, use a smaller model, or a smaller window (context_limit= with api='native')"
_WAYS_OUT = (
    (r"\bmemory\b|\bcudamalloc\b", _MEMORY),
    (r"\bmodel\b.{0,300}\bnot found\b", "run `ollama pull {model}`, or see list_models()"),
    (r"does not support tools", "use a model that was taught to call tools, or pass none"),
    (r"does not support thinking|\bthink\b", "leave settings.thinking out, or use another model"),
    (r"newer version of ollama", "update Ollama"),
)
_WINDOW = (
    "send less, or have a larger window: OLLAMA_CONTEXT_LENGTH of the server, or context_limit= "
    "with api='native'"
)
_START = "start it with `ollama serve`, or say where it is (OLLAMA_HOST, base_url=)"
_UPDATE = "update Ollama (0.14 or newer speaks this), or pass api='native'"
_NO_OLLAMA = "check the address (OLLAMA_HOST, base_url=): no Ollama server answers so"
_KEY = "set OLLAMA_API_KEY or pass api_key=; for a cloud model, run `ollama signin` there"


def way_out(error: ProviderError, model: str, *, is_native: bool) -> str | None:
    """What to do about an error, where Ollama's users can do something of their own.

    `is_native`: the server was asked in the API that all of them have.
    """
    if isinstance(error, ContextOverflow):
        return _WINDOW
    if isinstance(error, AuthError):
        return _KEY
    if isinstance(error, ConnectionFailed):
        return _START if error.status is None and "no connection to" in error.detail else None
    if isinstance(error, ProtocolError):
        if error.status not in (404, 405):
            return None
        return _NO_OLLAMA if is_native else _UPDATE
    said = (way for pattern, way in _WAYS_OUT if re.search(pattern, error.detail, re.IGNORECASE))
    way = next(said, None)
    return None if way is None else way.format(model=model)
