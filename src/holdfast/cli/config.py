"""Settings of the user, and where things are.

What is said on the command line counts first, then the environment, then the file config.toml, then
what holdfast does by itself. Folders follow the XDG base directories; HOLDFAST_HOME puts all of
them in one place.

    config.toml    in $XDG_CONFIG_HOME/holdfast (~/.config/holdfast)
    holdfast.db    the conversations, in $XDG_DATA_HOME/holdfast (~/.local/share/holdfast)
    chat-history   lines typed at the prompt, in $XDG_STATE_HOME/holdfast (~/.local/state/holdfast)
"""

import json
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.cli.failures import USAGE, Failure

# Each name that the file may hold, the variable that goes before it, and what it is for.
NAMES = {
    "store": ("HOLDFAST_STORE", "where conversations are kept: a store URL"),
    "model": ("HOLDFAST_MODEL", "who answers in a new conversation: vendor:model"),
    "system": ("HOLDFAST_SYSTEM", "the system instruction of new conversations"),
    "tenant": ("HOLDFAST_TENANT", "whose conversations, in a store that several share"),
    "color": ("HOLDFAST_COLOR", "auto, always or never"),
}


def config_path() -> Path:
    """The file with the user's settings, which need not exist."""
    return _folder("XDG_CONFIG_HOME", ".config", "config") / "config.toml"


def data_folder() -> Path:
    return _folder("XDG_DATA_HOME", ".local/share", "data")


def state_folder() -> Path:
    return _folder("XDG_STATE_HOME", ".local/state", "state")


def default_store() -> str:
    """Where conversations are kept unless told otherwise."""
    return f"sqlite:{data_folder() / 'holdfast.db'}"


def read_config() -> dict[str, str]:
    """What the file says; nothing, where there is none."""
    path = config_path()
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Failure(f"{path} is not TOML ({error}): mend it, or remove it", USAGE) from error
    for name, value in values.items():
        check_name(name, f" in {path}")
        if not isinstance(value, str):
            raise Failure(f"{name} in {path} is a text in quotation marks: mend it", USAGE)
    return values


def write_config(values: Mapping[str, str]) -> None:
    """Put the file in the place of the one that is there, readable for nobody else."""
    from holdfast.private_files import replace

    path = config_path()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # A basic string of TOML has the escapes of JSON.
    lines = [f"{name} = {json.dumps(value)}\n" for name, value in sorted(values.items())]
    replace(path, "".join(lines).encode())


def setting(name: str, given: str | None = None) -> tuple[str, str]:
    """A setting and where it comes from; ("", "") where nobody has said anything."""
    variable, _ = NAMES[name]
    if given:
        return given, "the command line"
    if value := os.environ.get(variable, ""):
        return value, variable
    if value := read_config().get(name, ""):
        return value, str(config_path())
    return ("", "")


def shown(value: str) -> str:
    """A setting without the password that a store's URL may hold."""
    value = re.sub(r"(?<=//)([^/@:]*):[^@]*@", r"\1:***@", value)
    return re.sub(r"([?&]password=)[^&]*", r"\1***", value)


def check_name(name: str, where: str = "") -> None:
    if name not in NAMES:
        raise Failure(f"{name!r}{where} is no setting: there are {', '.join(NAMES)}", USAGE)


def _folder(variable: str, usual: str, below_home: str) -> Path:
    if home := os.environ.get("HOLDFAST_HOME"):
        return Path(home).expanduser().absolute() / below_home
    # The XDG rules: a path that is not absolute is to be ignored.
    given: Any = os.environ.get(variable, "")
    base = Path(given) if os.path.isabs(given) else Path.home() / usual
    return base / "holdfast"
