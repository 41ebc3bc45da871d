"""`holdfast doctor`: what is wrong here, and what to do about it."""

import os
import stat
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from holdfast.cli import config
from holdfast.cli.app import App
from holdfast.cli.command import command as make
from holdfast.cli.failures import FAILED, Failure
from holdfast.cli.screen import Screen, safe

if TYPE_CHECKING:
    from holdfast.health import Finding

_SIGNS = {"ok": ("ok     ", "green"), "warning": ("warning", "yellow"), "error": ("error  ", "red")}


@make(
    "doctor",
    epilog="Examples:\n\n\b\n"
    "holdfast doctor\n"
    "until holdfast doctor -q; do sleep 1; done\n"
    "\nThe exit status is 1 where something is wrong, so a script can wait for a standby.",
)
@click.option("-q", "--quiet", "is_quiet", is_flag=True, help="Only what is wrong or doubtful")
@click.option("--json", "is_json", is_flag=True, help="For programs")
async def command(app: App, is_quiet: bool, is_json: bool) -> int:
    """Look at the store, the machine, the settings and the keys; each finding has its way out.

    Nothing is changed or sent, and no key is shown.
    """
    from holdfast import health

    try:
        url, screen = app.store_url, app.screen
    except Failure:  # what is wrong with the settings is a finding
        url, screen = config.default_store(), Screen()
    found = [*_settings(url), *await health.examine(url)]
    if is_json:
        screen.json([each._asdict() for each in found])
    else:
        _print(screen, [each for each in found if not is_quiet or each.level != "ok"])
    return FAILED if any(each.level == "error" for each in found) else 0


def _settings(url: str) -> "Iterator[Finding]":
    """The file of settings, and what the environment says instead."""
    from holdfast.health import Finding

    path = config.config_path()
    try:
        count = len(config.read_config())
        mode = stat.S_IMODE(os.stat(path).st_mode) if path.exists() else 0o600
        yield Finding("ok", "settings", f"{path} has {count} of them")
        if mode & 0o077 and os.name == "posix":
            yield Finding("error", "settings", f"{path} can be used by others", f"chmod 600 {path}")
    except Failure as failure:
        what, _, way_out = str(failure).rpartition(": ")
        yield Finding("error", "settings", what, way_out)
    known = {variable for variable, _ in config.NAMES.values()}
    known |= {"HOLDFAST_HOME", "HOLDFAST_DATA", "HOLDFAST_PROGRAM"}
    for name in sorted(os.environ):
        if name in known:
            value = config.shown(os.environ[name])
            yield Finding("ok", "settings", f"{name} is {value!r}, and counts before the file")
        elif name.startswith("HOLDFAST_"):
            what = f"{name} is set, and means nothing here"
            yield Finding("warning", "settings", what, f"there are {', '.join(sorted(known))}")
    yield Finding("ok", "settings", f"the store is {config.shown(url)}")


def _print(screen: Screen, findings: "list[Finding]") -> None:
    for each in findings:
        sign, color = _SIGNS[each.level]
        screen.print(
            f"{screen.styled(sign, color)}  {safe(each.about, keep='')}: {safe(each.what)}"
        )
        if each.way_out:
            screen.print(f"         {screen.styled(safe(each.way_out), 'dim')}")
