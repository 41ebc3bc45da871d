"""Gemini, at Google's own API (by a key) or at Vertex (by a project and a token)."""

from typing import Any, Self
from urllib.parse import quote

from holdfast.errors import InvalidInput
from holdfast.providers.fields import Object, count_of
from holdfast.providers.google import GoogleWire
from holdfast.providers.http_provider import HttpProvider, address_of
from holdfast.providers.wire import Ask

_VERTEX = "https://{}aiplatform.googleapis.com/v1"


class GoogleProvider(HttpProvider):
    """`project` (and `location`) choose Vertex, and `access_token` is sent to it as a bearer's.

    The other options beside the common ones are those of the wire.
    """

    vendor = "google"
    address_default = "https://generativelanguage.googleapis.com/v1beta"
    address_variable = "GOOGLE_GEMINI_BASE_URL"
    key_variables = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
    key_header = "x-goog-api-key"
    models_path = "models?pageSize=1000"

    @classmethod
    def opened(cls, model: str, *, access_token: Any = None, **options: Any) -> Self:
        """The provider of a model."""
        own, common = cls.sorted_options(options, GoogleWire, "access_token")
        if own.get("project") is not None and common.get("base_url") is None:
            location = own.get("location", "global")
            if not isinstance(location, str) or not location.replace("-", "").isalnum():
                raise InvalidInput("location", "is a region such as europe-west4, or global")
            common["base_url"] = _VERTEX.format("" if location == "global" else f"{location}-")
        if access_token is not None:
            if common.get("api_key") is not None:
                raise InvalidInput("access_token", "stands beside an api_key: pass one of them")
            common["api_key"] = access_token
        address = address_of(cls, common.pop("base_url", None))
        made = cls(GoogleWire(model, **own), address, **common)
        if access_token is not None:
            made.key_header = "authorization"
        made.is_vertex = own.get("project") is not None
        return made

    is_vertex = False

    async def count_at_service(self, ask: Ask) -> int | None:
        path = self.wire.path(ask).partition(":generateContent")[0]
        body = self.wire.to_wire(ask)
        if not self.is_vertex:
            body = {"generateContentRequest": {"model": path, **body}}
        return count_of(await self.post(f"{path}:countTokens", body), "totalTokens")

    def name_of(self, listed: Object) -> str | None:
        name = listed.get("name")
        return name.removeprefix("models/") if isinstance(name, str) else None

    def next_page(self, document: Object) -> str | None:
        token = document.get("nextPageToken")
        if not isinstance(token, str) or not token:
            return None
        return f"{self.models_path}&pageToken={quote(token, safe='')}"
