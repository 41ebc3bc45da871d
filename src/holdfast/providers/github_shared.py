"""What both of GitHub's paths share: how long a prompt may be, and where that is found out.

It depends on the plan and not only on the model: a model of a million tokens takes 8,000 of them on
the free one. The service says so when it refuses a prompt, and from then on that is the limit;
before, it is what the service's list of models says, once that was read, or our own table.
"""

from typing import NamedTuple

from holdfast.providers import fields
from holdfast.providers.address import Address
from holdfast.providers.fields import Object
from holdfast.providers.http_provider import HttpProvider

FILE_VARIABLE = "GITHUB_COPILOT_TOKEN_FILE"
OPTIONS = ("path", "token_file", "token_url")
_CONTEXT = ("max_input_tokens", "max_prompt_tokens", "max_context_window_tokens")


class Limits(NamedTuple):
    """What the service's list says of a model."""

    context: int | None = None
    output: int | None = None


class GitHub(HttpProvider):
    """A provider on either path."""

    vendor = "github"
    _listed = Limits()

    @property
    def listed_as(self) -> str:
        """The name of the model in the service's list."""
        return self.model

    @property
    def catalogue(self) -> Address:
        """Where the models are listed, at `models_path`."""
        return self.address

    @property
    def context_limit(self) -> int:
        return self.at_most(self._context_limit or self._listed.context or self._known.context)

    @property
    def output_limit(self) -> int:
        return self._output_limit or self._listed.output or self._known.output

    async def models(self, path: str) -> Object:
        document = await self.get(path, under=self.catalogue, is_list=True)
        for listed in fields.objects_of(document, "data"):
            if listed.get("id") == self.listed_as:
                self._listed = _limits(listed)
        return document


def _limits(listed: Object) -> Limits:
    """GitHub Models has them in `limits`, Copilot in those of `capabilities`."""
    capabilities = listed.get("capabilities")
    limits = listed.get("limits") or (
        capabilities.get("limits") if isinstance(capabilities, dict) else None
    )
    if not isinstance(limits, dict):
        return Limits()
    context = next(filter(None, (fields.count_of(limits, name) for name in _CONTEXT)), None)
    return Limits(context, fields.count_of(limits, "max_output_tokens") or None)
