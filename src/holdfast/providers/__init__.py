"""Providers: models of one vendor or another, each a function from a conversation to an answer.

`open_provider("vendor:model")` gives one; `base` says what all of them promise. Those over HTTP are
made of the same parts, and bring their own wire; a program takes the place of pipe and client:

    prepare        fits messages to the target     ┐
    wire           to_wire, and a Reader           ├ pure
    answer         an answer while it comes in     ┘
    pipe           bytes out, bytes in, limits
    exchange       tries, cancelling, partial answers
    http_provider  address, credentials, client

Nothing here imports an HTTP client or a vendor's module before it is needed.
"""

from typing import Any

from holdfast.errors import InvalidInput
from holdfast.providers.base import Provider, Response

__all__ = ["Provider", "Response", "open_provider"]

MODEL_LENGTH_MAX = 500

_VENDORS = {
    "anthropic": ("anthropic_provider", "AnthropicProvider"),
    "antigravity": ("antigravity.provider", "AntigravityProvider"),
    "claude-cli": ("claude_cli.provider", "ClaudeCliProvider"),
    "github": ("github_provider", "GitHubProvider"),
    "google": ("google_provider", "GoogleProvider"),
    "local": ("local.provider", "LocalProvider"),
    "ollama": ("ollama_provider", "OllamaProvider"),
    "openai": ("openai_provider", "OpenAIProvider"),
}


def open_provider(name: str, **options: Any) -> Provider:
    """The provider of a model, by its name "vendor:model". Nothing is sent before the first call.

        anthropic:claude-sonnet-4-5     ANTHROPIC_API_KEY
        openai:gpt-5                    OPENAI_API_KEY; with `base_url`, any server that speaks it
        google:gemini-2.5-pro           GEMINI_API_KEY or GOOGLE_API_KEY
        github:openai/gpt-4.1           GITHUB_TOKEN; Copilot with an OAuth token in `token_file`
        antigravity:claude-sonnet-4-5   ANTIGRAVITY_ACCOUNTS, the file of your own Google accounts
        ollama:qwen3                    no key; OLLAMA_HOST, or this machine
        local:smollm2-135m              no key: a small model in a process of its own
        claude-cli:sonnet               the login of Claude Code, whose program `claude` is started

    Others come from packages that register in the entry-point group `holdfast.providers`.

    These options are the same for all: `api_key` (a string, or a function that gives one),
    `base_url`, `timeout` (seconds, or `holdfast.providers.pipe.Timeouts`), `tries_max`, `size_max`
    (bytes of an answer), and, where you know better than the table of models, `context_limit`,
    `output_limit`, `prices`. Those over HTTP take `headers`, `client` (your own
    `httpx2.AsyncClient`, which you close) and `proxy`. The rest belongs to the vendor; an option
    that nobody knows is InvalidInput.
    """
    vendor, model = _split(name)
    if vendor in _VENDORS:
        from importlib import import_module

        module, kind = _VENDORS[vendor]
        maker = getattr(import_module(f"holdfast.providers.{module}"), kind).opened
    else:
        maker = _registered(vendor).load()
    provider = maker(model, **options)
    if not isinstance(provider, Provider):
        raise InvalidInput("a provider", f"{vendor!r} is registered, but makes no Provider")
    return provider


def check_provider(name: str) -> None:
    """InvalidInput where `open_provider` knows no such vendor; nothing is opened or imported."""
    vendor, _ = _split(name)
    if vendor not in _VENDORS:
        _registered(vendor)


def _split(name: str) -> tuple[str, str]:
    if type(name) is not str:
        raise InvalidInput("a provider's name", f"is a string, not {type(name).__name__}")
    vendor, colon, model = name.partition(":")
    if not colon or not vendor or not model.strip():
        raise InvalidInput("a provider's name", f"is vendor:model, not {name[:80]!r}")
    if len(model) > MODEL_LENGTH_MAX or not model.isprintable() or ".." in model.split("/"):
        raise InvalidInput("a model's name", f"cannot be {model[:80]!r}")
    return vendor.lower(), model


def _registered(vendor: str) -> Any:
    from importlib.metadata import entry_points

    found = entry_points(group="holdfast.providers")
    for each in found:
        if each.name == vendor:
            return each
    known = sorted({*_VENDORS, *(each.name for each in found)})
    raise InvalidInput(f"vendor {vendor[:80]!r}", f"is unknown here: there are {', '.join(known)}")
