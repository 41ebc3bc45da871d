"""OpenAI's models, Azure's, and whatever server speaks either of OpenAI's two APIs.

OpenAI itself is asked through Responses; any other server through Chat Completions, which they all
speak, unless `api` says otherwise.
"""

from os import environ
from typing import Any, Self

from holdfast.errors import InvalidInput
from holdfast.providers.address import Address
from holdfast.providers.hosts import key_variables
from holdfast.providers.http_provider import HttpProvider, address_of
from holdfast.providers.wire import Wire

_OWN_HOST = "api.openai.com"
_APIS = ("responses", "chat")


class OpenAIProvider(HttpProvider):
    """Options beside the common ones:

    api           "responses" or "chat"
    azure         the endpoint of a resource, https://NAME.openai.azure.com; True takes that of
                  AZURE_OPENAI_ENDPOINT. The model is then the name of a deployment
    api_version   Azure's dated API; without it the one that has no date (v1)

    and those of the wire.
    """

    vendor = "openai"
    address_default = "https://api.openai.com/v1"
    address_variable = "OPENAI_BASE_URL"
    key_variables = ("OPENAI_API_KEY",)

    @classmethod
    def opened(
        cls,
        model: str,
        *,
        api: str | None = None,
        azure: str | bool = False,
        api_version: str | None = None,
        **options: Any,
    ) -> Self:
        """The provider of a model."""
        if api is not None and api not in _APIS:
            raise InvalidInput("api", f"is {' or '.join(_APIS)}, not {api!r:.40}")
        if azure:
            return _Azure._opened(model, api or "chat", azure, api_version, options)  # type: ignore[return-value]
        if api_version is not None:
            raise InvalidInput("api_version", "is for azure=")
        base_url = options.pop("base_url", None)
        address = address_of(cls, base_url)
        is_own = address.host == _OWN_HOST
        api = api or ("responses" if is_own else "chat")
        own, common = cls.sorted_options(options, _wire_class(api), "api", "azure", "api_version")
        return cls(_wire(api, model, address, own, is_own), address, **common)

    def variables(self) -> tuple[str, ...]:
        return key_variables(str(self.address), self.key_variables)


class _Azure(OpenAIProvider):
    key_variables = ("AZURE_OPENAI_API_KEY",)
    key_header = "api-key"

    @classmethod
    def _opened(
        cls,
        model: str,
        api: str,
        azure: str | bool,
        api_version: str | None,
        options: dict[str, Any],
    ) -> Self:
        endpoint = azure if isinstance(azure, str) else environ.get("AZURE_OPENAI_ENDPOINT", "")
        if options.pop("base_url", None) is not None or not endpoint:
            raise InvalidInput("azure", "is the endpoint, https://NAME.openai.azure.com")
        if api_version is not None and not str(api_version).replace("-", "").isalnum():
            raise InvalidInput("api_version", "is a date such as 2024-10-21")
        endpoint = endpoint.rstrip("/").removesuffix("/openai/v1").removesuffix("/openai")
        address = Address(endpoint if api_version else f"{endpoint}/openai/v1", "azure")
        own, common = cls.sorted_options(options, _wire_class(api), "api", "azure", "api_version")
        if api_version is not None:
            own["api_version"] = api_version
            if api == "responses":
                own["path"] = "/openai/responses"
        made = cls(_wire(api, model, address, own, is_own=True), address, **common)
        if api_version is not None:
            made.models_path = f"openai/models?api-version={api_version}"
        return made


def _wire_class(api: str) -> type[Wire]:
    if api == "chat":
        from holdfast.providers.openai_chat import OpenAIChatWire

        return OpenAIChatWire
    from holdfast.providers.openai_responses import OpenAIResponsesWire

    return OpenAIResponsesWire


def _wire(api: str, model: str, address: Address, own: dict[str, Any], is_own: bool) -> Wire:
    if api == "chat":
        own.setdefault("base_url", str(address))  # by which it knows the server's dialect
    elif not is_own:
        own.setdefault("is_compatible", True)
    return _wire_class(api)(model, **own)
