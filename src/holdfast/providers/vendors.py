"""Vendors, and whether one can be used here: by a key, a program or a package, without asking it.

    found = vendors()["anthropic"]
    found.why           # "ANTHROPIC_API_KEY is set"; "" where it cannot be used
    found.way_out       # "set ANTHROPIC_API_KEY"

No key is read further than whether there is one.
"""

import os
import shutil
from importlib.util import find_spec
from typing import NamedTuple

from holdfast.providers.models import Model, model_of, table


class Vendor(NamedTuple):
    """A vendor of models. `why` says what makes it usable here, and is empty if nothing does."""

    name: str
    why: str
    way_out: str


# What has to be there: one of these variables, this program, or this package.
_VARIABLES = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "google": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "github": ("GITHUB_TOKEN",),
    "antigravity": ("ANTIGRAVITY_ACCOUNTS",),
    "ollama": ("OLLAMA_HOST",),
}
_PROGRAMS = {
    "ollama": ("ollama", "install Ollama, or set OLLAMA_HOST"),
    "claude-cli": ("claude", "install Claude Code and log in"),
}
_PACKAGES = {"local": ("xllamacpp", "pip install 'holdfast[local]'")}
# Whose models a vendor sells that has no rows of its own in the table.
_SELLS = {"antigravity": ("google", "anthropic"), "github": ("openai",)}


def vendors() -> dict[str, Vendor]:
    """Those that come with holdfast, and those that packages have registered."""
    names = dict.fromkeys([*_VARIABLES, *_PROGRAMS, *_PACKAGES])
    return {name: _look(name) for name in names} | _registered()


def models_of(vendor: str) -> tuple[Model, ...]:
    """The models of a vendor that are known here, without asking it."""
    if vendor == "local":
        from holdfast.providers.local.weights import MODELS

        return tuple(_local(name, each.context_tokens) for name, each in MODELS.items())
    if vendor == "claude-cli":
        from holdfast.providers.claude_cli.provider import ALIASES

        return tuple(model_of(vendor, name) for name in ALIASES)
    makers = _SELLS.get(vendor, (vendor,))
    rows = [each for each in table().values() if each.vendor in makers]
    return tuple(_sold(vendor, each) for each in rows)


def _look(name: str) -> Vendor:
    variables = _VARIABLES.get(name, ())
    way_out = f"set {' or '.join(variables)}"
    for variable in variables:
        if os.environ.get(variable):
            return Vendor(name, f"{variable} is set", way_out)
    if name in _PROGRAMS:
        program, way_out = _PROGRAMS[name]
        if path := shutil.which(program):
            return Vendor(name, f"{path} is there", way_out)
    if name in _PACKAGES:
        package, way_out = _PACKAGES[name]
        if find_spec(package) is not None:
            return Vendor(name, f"{package} is installed", way_out)
    return Vendor(name, "", way_out)


def _registered() -> dict[str, Vendor]:
    from importlib.metadata import entry_points

    return {
        each.name: Vendor(each.name, f"registered by {each.value}", "see its documentation")
        for each in entry_points(group="holdfast.providers")
    }


def _sold(vendor: str, model: Model) -> Model:
    name = f"{model.vendor}/{model.name}" if vendor == "github" else model.name
    return model_of(vendor, name).replace(name=name)


def _local(name: str, context: int) -> Model:
    return Model(vendor="local", name=name, context=context, output=context)
