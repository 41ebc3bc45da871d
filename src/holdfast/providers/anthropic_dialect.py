"""How services differ that speak the Messages API: pure data, chosen by the host of the base URL.

Many who serve models of their own speak it beside OpenAI's wire, so that programs made for Claude
can be pointed at them: the requests are Anthropic's, what stands behind them is not. A server that
nobody here knows is spoken to as Anthropic is.
"""

from typing import NamedTuple

from holdfast.providers.hosts import by_host


class AnthropicDialect(NamedTuple):
    """How a service speaks.

    is_bearer   the key is sent as a bearer's token, and not as `x-api-key`
    has_cache   takes breakpoints; others cache by themselves, or not at all
    has_count   counts the tokens of a request (`count_tokens`)
    has_media   takes pictures and documents
    signs       signs thinking, and takes none back that it did not sign; others take it as it is,
                and some miss it in a tool loop
    """

    is_bearer: bool = False
    has_cache: bool = True
    has_count: bool = True
    has_media: bool = True
    signs: bool = True


CLAUDE = AnthropicDialect()
SELLER = CLAUDE._replace(is_bearer=True, has_count=False)  # of Claude itself, among others
OTHER = AnthropicDialect(is_bearer=True, has_cache=False, has_count=False, signs=False)

# By the end of the host's name.
HOSTS: dict[str, AnthropicDialect] = {
    "api.anthropic.com": CLAUDE,
    "openrouter.ai": SELLER,
    "ai-gateway.vercel.sh": SELLER,
    "api.deepseek.com": OTHER._replace(is_bearer=False, has_media=False),
    "api.moonshot.ai": OTHER,
    "api.moonshot.cn": OTHER,
    "api.kimi.com": OTHER,
    "api.minimax.io": OTHER._replace(has_cache=True),
    "api.minimaxi.com": OTHER._replace(has_cache=True),
    "api.z.ai": OTHER,
    "open.bigmodel.cn": OTHER,
    "aliyuncs.com": OTHER,
}


def dialect_of(base_url: str) -> AnthropicDialect:
    """The dialect of the service at this address."""
    return by_host(HOSTS, base_url, CLAUDE)
