"""Claude, at Anthropic or wherever else the Messages API is spoken."""

from typing import Any, ClassVar, Self
from urllib.parse import quote

from holdfast.errors import ProviderError
from holdfast.providers.anthropic import VERSION, AnthropicWire
from holdfast.providers.anthropic_dialect import dialect_of
from holdfast.providers.fields import Object, count_of
from holdfast.providers.hosts import key_variables
from holdfast.providers.http_provider import HttpProvider, address_of
from holdfast.providers.wire import Ask

_MODELS = "/v1/models?limit=1000"
_OWN_HOST = "api.anthropic.com"
_NOT_THERE = (404, 405, 501)  # others who speak this wire may not count


class AnthropicProvider(HttpProvider):
    """The options beside the common ones are those of `AnthropicWire`."""

    vendor = "anthropic"
    address_default = "https://api.anthropic.com"
    address_variable = "ANTHROPIC_BASE_URL"
    key_variables = ("ANTHROPIC_API_KEY",)
    key_header = "x-api-key"
    models_path = _MODELS
    headers: ClassVar = {"anthropic-version": VERSION}
    wire: AnthropicWire
    _counts = True

    @classmethod
    def opened(cls, model: str, **options: Any) -> Self:
        """The provider of a model."""
        own, common = cls.sorted_options(options, AnthropicWire)
        own.setdefault("output_tokens_max", common.get("output_limit") or _output_limit(model))
        address = address_of(cls, common.pop("base_url", None))
        own.setdefault("dialect", dialect_of(str(address)))
        made = cls(AnthropicWire(model, **own), address, **common)
        if made.wire.dialect.is_bearer:
            made.key_header = "authorization"
        return made

    def variables(self) -> tuple[str, ...]:
        return key_variables(str(self.address), self.key_variables)

    async def count_at_service(self, ask: Ask) -> int | None:
        if not self._counts or not self.wire.dialect.has_count:
            return None
        try:
            document = await self.post("/v1/messages/count_tokens", self.wire.to_count(ask))
        except ProviderError as error:
            if self.address.host == _OWN_HOST or error.status not in _NOT_THERE:
                raise
            self._counts = False
            return None
        return count_of(document, "input_tokens")

    def next_page(self, document: Object) -> str | None:
        last = document.get("last_id")
        if document.get("has_more") is not True or not isinstance(last, str):
            return None
        return f"{_MODELS}&after_id={quote(last, safe='')}"


def _output_limit(model: str) -> int | None:
    """What the model writes at most: it refuses to be asked for more, and old ones write little."""
    from holdfast.providers.models import model_of

    known = model_of("anthropic", model)
    return known.output if known.is_known else None
