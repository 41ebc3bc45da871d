"""The machine: versions, packages, keys by the names of their variables, proxies, plugins."""

import os
import platform
import re
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, entry_points, version
from importlib.util import find_spec

from holdfast.health.finding import Finding
from holdfast.providers.vendors import vendors

_PACKAGES = ("click", "msgspec", "httpx2")
# What each extra brings, by a module of it.
_EXTRAS = {
    "chat": "prompt_toolkit",
    "local": "xllamacpp",
    "postgres": "asyncpg",
    "schema": "jsonschema",
    "tokens": "splintr",
}
_PROXIES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
_GROUPS = ("holdfast.stores", "holdfast.providers", "holdfast.formats")
PYTHON_MIN = (3, 11)


def findings() -> list[Finding]:
    """What is to be said of where this process runs."""
    return [*_versions(), *_extras(), *_keys(), *_proxies(), *_plugins()]


def _versions() -> Iterator[Finding]:
    where = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    yield Finding("ok", "holdfast", f"version {_version('holdfast')}, {where}")
    if os.name != "posix":
        what = "a power cut may take what was acknowledged on this system"
        yield Finding("warning", "holdfast", what, "use Linux or macOS where that matters")
    told = [f"{name} {_version(name)}" for name in _PACKAGES]
    yield Finding("ok", "packages", ", ".join(told))


def _extras() -> Iterator[Finding]:
    there = [extra for extra, module in _EXTRAS.items() if find_spec(module) is not None]
    yield Finding("ok", "extras", f"installed: {', '.join(there) or 'none'}")
    for extra in _EXTRAS:
        if extra not in there:
            way_out = f"pip install 'holdfast[{extra}]', if it is wanted"
            yield Finding("ok", "extras", f"{extra} is not installed", way_out)


def _keys() -> Iterator[Finding]:
    found = vendors()
    for each in found.values():
        if each.why:
            yield Finding("ok", "models", f"{each.name}: {each.why}")
    if not any(each.why for each in found.values()):
        what = "no model can be used here"
        yield Finding("warning", "models", what, "set ANTHROPIC_API_KEY or another vendor's key")


def _proxies() -> Iterator[Finding]:
    for name in _PROXIES:
        if value := os.environ.get(name):
            shown = re.sub(r"//[^/@]*@", "//***@", value)
            yield Finding("ok", "network", f"{name} is {shown}")


def _plugins() -> Iterator[Finding]:
    """What other packages have registered. One that cannot be loaded disturbs no other."""
    for group in _GROUPS:
        for each in entry_points(group=group):
            try:
                each.load()
            except Exception as error:  # noqa: BLE001 - it is other people's code
                what = f"{group} {each.name} ({each.value}) does not load: {error}"
                yield Finding("error", "plugins", what, "update or uninstall its package")
            else:
                yield Finding("ok", "plugins", f"{group} {each.name} ({each.value})")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return f"? (of {sys.executable})"
