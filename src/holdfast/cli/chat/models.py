"""Who answers: the model that was named, the one that the session had, or one that is found here.

What is found comes in this order: a key in the environment, an Ollama that runs, Claude Code, the
small model on this machine. It is said which it is, why, and how to choose another.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.cli import config
from holdfast.cli.failures import REFUSED, USAGE, Failure
from holdfast.cli.screen import Screen

if TYPE_CHECKING:
    from holdfast.providers.base import Provider
    from holdfast.settings import Settings

# Of each vendor whose key may be in the environment, in the order in which they are looked for: a
# model for talking that is neither the smallest nor the dearest.
MODELS = {
    "anthropic": "claude-sonnet-5-5",
    "openai": "gpt-6.1-sol",
    "google": "gemini-3.8-flash",
    "github": "openai/gpt-4.1",
}
CLAUDE = "claude-cli:sonnet"
LOCAL = "local:smollm2-135m"
_LOOK_S_MAX = 0.5  # for an Ollama to show itself
_KEY = "ANTHROPIC_API_KEY or another vendor's"
_WAYS = f"set {_KEY}, or name one with -m vendor:model"

# A small model needs to be told to be brief, and does not know when to stop.
_BRIEF = "You are a friendly assistant. Answer in one or two short sentences."
_SMALL: dict[str, Any] = {"system": _BRIEF, "max_tokens": 400, "limits": {"continuations": 0}}


class Choice(NamedTuple):
    """A model, and in words why it is this one; `is_found` if nobody has named it."""

    name: str
    why: str
    is_found: bool = False

    @property
    def told(self) -> str:
        """One line for people."""
        _, _, model = self.name.partition(":")
        return f"{model} answers: {self.why}; -m vendor:model names another"


async def choose(given: str | None, kept: str | None) -> Choice:
    """The model that was `given`, that of the session, of the settings, or one that is found."""
    if kept and not given:
        return Choice(kept, "as before")
    name, where = config.setting("model", given)
    return Choice(name, f"named by {where}") if name else await find()


async def find() -> Choice:
    """A model that can be used here, or Failure."""
    from holdfast.providers.vendors import vendors

    known = vendors()
    for vendor, model in MODELS.items():
        if why := known[vendor].why:
            return Choice(f"{vendor}:{model}", why, is_found=True)
    if running := await _of_ollama():
        return Choice(running, "an Ollama runs here", is_found=True)
    if why := known["claude-cli"].why:
        return Choice(CLAUDE, why, is_found=True)
    if not known["local"].why:
        small = f"install a small one with `{known['local'].way_out}`"
        raise Failure(f"no model can be used here: {_WAYS}, or {small}", REFUSED)
    why = f"a small model on this machine, as no key was found (set {_KEY})"
    return Choice(LOCAL, why, is_found=True)


async def opened(name: str, screen: Screen) -> "Provider":
    """The model of this name, ready to be asked from here; Failure with the way out if not."""
    if is_local(name):
        return await _local(name, screen)
    from holdfast.errors import AuthError
    from holdfast.providers import open_provider
    from holdfast.providers.http_provider import HttpProvider

    provider = open_provider(name)
    if not isinstance(provider, HttpProvider):
        return provider
    try:
        await provider.key()
    except AuthError as error:
        variables = " or ".join(provider.variables())
        if not variables:
            raise
        way_out = f"set {variables}, or name another model with -m vendor:model"
        raise Failure(f"there is no key for {name}: {way_out}", REFUSED) from error
    return provider


async def _local(name: str, screen: Screen) -> "Provider":
    """With its weights, which are fetched before anything is typed, so that it is seen how far it
    is."""
    from holdfast.providers.local import weights
    from holdfast.providers.local.provider import LocalProvider
    from holdfast.providers.vendors import vendors

    local = vendors()["local"]
    if not local.why:
        raise Failure(f"{name} needs an extra: `{local.way_out}`, or {_WAYS}", USAGE)
    model = name.partition(":")[2]
    if weights.weights(model) is None:
        screen.note(f"the weights of {model} are fetched, once")
        await weights.pull(model, screen.progress(model, 1e6, "MB"))
    return LocalProvider.opened(model)


@asynccontextmanager
async def warming_up(provider: "Provider") -> AsyncIterator[None]:
    """Load a local model while the first line is typed. What fails is told when it is asked."""
    import asyncio
    from contextlib import suppress

    from holdfast.errors import HoldfastError
    from holdfast.providers.local.provider import LocalProvider

    async def load() -> None:
        if isinstance(provider, LocalProvider):
            with suppress(HoldfastError, OSError):
                await provider.ready()

    loading = asyncio.get_running_loop().create_task(load())
    try:
        yield
    finally:
        loading.cancel()
        await asyncio.wait([loading])


def is_local(name: str) -> bool:
    """Whether a model runs on this machine, small."""
    return name.partition(":")[0].lower() == "local"


def settings_for(name: str, system: str | None) -> "Settings":
    """The settings of a new conversation."""
    from holdfast.settings import Settings

    values = dict(_SMALL) if is_local(name) else {}
    return Settings.of(values | ({"system": system} if system else {})).replace(model=name)


def changes_for(name: str, before: "Settings") -> dict[str, Any]:
    """What changes in the settings with the model: what is for a small one is for no other."""
    values = before.values
    own = {n: value for n, value in _SMALL.items() if values.get(n) == value}
    if is_local(name):
        return {n: value for n, value in _SMALL.items() if n not in values}
    return dict.fromkeys(own) if is_local(before.model or "") else {}


async def _of_ollama() -> str | None:
    """A model of an Ollama that runs: the one that was changed last, as its list has it."""
    import asyncio

    from holdfast.errors import HoldfastError
    from holdfast.providers import ollama_server as server
    from holdfast.providers.ollama_provider import OllamaProvider

    try:
        provider = OllamaProvider.opened("any", tries_max=1)
        async with asyncio.timeout(_LOOK_S_MAX):
            await _connect(str(provider.address))
            listed = await provider.models(provider.models_path)
            await provider.close()
    except (HoldfastError, OSError, TimeoutError):
        return None
    names = map(server.name_of, server.names_in(listed))
    found = next((name for name in names if name and "embed" not in name), None)
    return f"ollama:{found}" if found else None


async def _connect(url: str) -> None:
    """OSError where nothing listens; then no HTTP client is loaded, which takes longer."""
    import asyncio
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    _, writer = await asyncio.open_connection(parts.hostname, port)
    writer.close()
