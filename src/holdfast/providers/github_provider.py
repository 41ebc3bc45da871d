"""GitHub's models, on one of two paths: GitHub Models, or Copilot.

    github:openai/gpt-4.1     GitHub Models, with a personal access token (GITHUB_TOKEN)
    github:gpt-5-codex        Copilot, with the OAuth token of the user's own that an app which
                              signed in has left in a file (token_file=)

Copilot is asked where there is such a file and no key was passed; `path` decides otherwise. Both
are OpenAI's wires with an accent, and stateless like all others.
"""

from os import environ
from typing import Any

from holdfast.errors import InvalidInput
from holdfast.providers.address import Address
from holdfast.providers.github_shared import FILE_VARIABLE, OPTIONS, GitHub
from holdfast.providers.http_provider import address_of
from holdfast.providers.openai_chat import OpenAIChatWire
from holdfast.providers.openai_chat_dialect import GITHUB

_PATHS = ("models", "copilot")


class GitHubProvider(GitHub):
    """GitHub Models. Options beside the common ones, on both paths:

    path         "models" or "copilot"; else it follows from what there is to sign in with
    token_file   the file that holds the OAuth token for Copilot, for nobody else to read
                 (mode 0600); in the environment GITHUB_COPILOT_TOKEN_FILE
    token_url    where that token is exchanged for one of Copilot's
    """

    address_default = "https://models.github.ai/inference"
    key_variables = ("GITHUB_TOKEN",)
    models_path = "catalog/models"

    @classmethod
    def opened(
        cls,
        model: str,
        *,
        path: str | None = None,
        token_file: Any = None,
        token_url: str | None = None,
        **options: Any,
    ) -> GitHub:
        """The provider of a model, on its path."""
        if path is not None and path not in _PATHS:
            raise InvalidInput("path", f"is {' or '.join(_PATHS)}, not {path!r:.40}")
        if path is None and options.get("api_key") is None:
            has_file = token_file is not None or environ.get(FILE_VARIABLE)
            path = "copilot" if has_file else "models"
        if path == "copilot":
            from holdfast.providers.github_copilot import CopilotProvider

            return CopilotProvider.opened(model, token_file, token_url, options)
        for name, value in (("token_file", token_file), ("token_url", token_url)):
            if value is not None:
                raise InvalidInput(name, "is for Copilot: pass path='copilot', and no api_key")
        own, common = cls.sorted_options(options, OpenAIChatWire, *OPTIONS)
        own = {"vendor": cls.vendor, "dialect": GITHUB, **own}
        address = address_of(cls, common.pop("base_url", None))
        return cls(OpenAIChatWire(model, **own), address, **common)

    @property
    def catalogue(self) -> Address:
        """It stands beside the models, also beside those of an organisation."""
        root = str(self.address).removesuffix("/inference")
        return Address(root.partition("/orgs/")[0])
