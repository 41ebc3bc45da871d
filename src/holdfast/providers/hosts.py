"""Services known by the host of their base URL, and where their users keep the key.

What is known of a service stands in a table by the end of its host's name: how it speaks
(`openai_chat_dialect`, `anthropic_dialect`), and here the variable of the environment that holds
its key. So the base URL alone is enough to open a provider of it.
"""

from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import urlsplit

T = TypeVar("T")

KEYS = {
    "openai.azure.com": "AZURE_OPENAI_API_KEY",
    "services.ai.azure.com": "AZURE_OPENAI_API_KEY",
    "openrouter.ai": "OPENROUTER_API_KEY",
    "ai-gateway.vercel.sh": "AI_GATEWAY_API_KEY",
    "router.huggingface.co": "HF_TOKEN",
    "api.deepseek.com": "DEEPSEEK_API_KEY",
    "api.moonshot.ai": "MOONSHOT_API_KEY",
    "api.moonshot.cn": "MOONSHOT_API_KEY",
    "api.kimi.com": "KIMI_API_KEY",
    "api.minimax.io": "MINIMAX_API_KEY",
    "api.minimaxi.com": "MINIMAX_API_KEY",
    "api.z.ai": "ZAI_API_KEY",
    "open.bigmodel.cn": "ZHIPUAI_API_KEY",
    "aliyuncs.com": "DASHSCOPE_API_KEY",
    "api.mistral.ai": "MISTRAL_API_KEY",
    "api.perplexity.ai": "PERPLEXITY_API_KEY",
    "api.groq.com": "GROQ_API_KEY",
    "api.cerebras.ai": "CEREBRAS_API_KEY",
    "api.x.ai": "XAI_API_KEY",
    "api.together.xyz": "TOGETHER_API_KEY",
    "api.fireworks.ai": "FIREWORKS_API_KEY",
}


def by_host(table: Mapping[str, T], url: str, unknown: T) -> T:
    """The entry of the service at an address."""
    host = urlsplit(url).hostname or ""
    known = (name for name in table if host == name or host.endswith(f".{name}"))
    return table.get(next(known, ""), unknown)


def key_variables(url: str, usual: tuple[str, ...]) -> tuple[str, ...]:
    """The variables that may hold the key of the service at an address: its own, then the usual."""
    own = by_host(KEYS, url, "")
    return usual if not own or own in usual else (own, *usual)
