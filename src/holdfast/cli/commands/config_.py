"""`holdfast config`: settings, and where they come from."""

import click

from holdfast.cli import config
from holdfast.cli.app import App
from holdfast.cli.command import command as make
from holdfast.cli.failures import FAILED, USAGE, Failure
from holdfast.cli.screen import safe

_COLORS = ("auto", "always", "never")


@make(
    "config",
    epilog="Examples:\n\n\b\n"
    "holdfast config set model anthropic:claude-sonnet-4-5\n"
    "holdfast config get store\n"
    f"\nThe settings are {', '.join(config.NAMES)}.",
)
@click.argument(
    "action", type=click.Choice(["list", "get", "set", "unset", "path"]), default="list"
)
@click.argument("name", required=False)
@click.argument("value", required=False)
@click.option("--json", "is_json", is_flag=True, help="For programs")
def command(app: App, action: str, name: str | None, value: str | None, is_json: bool) -> None:
    """List settings with where they come from, or get, set or unset one in the file.

    The command line counts before the environment, and that before the file.
    """
    wanted = {"list": 0, "path": 0, "get": 1, "unset": 1, "set": 2}[action]
    if (name is not None) + (value is not None) != wanted:
        takes = ("nothing more", "the name of a setting", "a name and a value")[wanted]
        raise Failure(f"config {action} takes {takes}: see holdfast config --help", USAGE)
    if action == "path":
        app.screen.print(safe(str(config.config_path())))
        return
    if action == "list":
        _list(app, is_json=is_json)
        return
    assert name is not None
    config.check_name(name)
    if action == "get":
        _get(app, name, is_json=is_json)
    else:
        _change(app, name, value)


def _list(app: App, *, is_json: bool) -> None:
    rows = []
    for name, (variable, meaning) in config.NAMES.items():
        value, where = config.setting(name)
        if name == "store" and not value:
            value, where = config.default_store(), "the default"
        shown = config.shown(value)
        rows.append(
            {"name": name, "value": shown, "from": where, "variable": variable}
            | {"meaning": meaning}
        )
    if is_json:
        app.screen.json(rows)
        return
    cells = [[r["name"], r["value"] or "-", r["from"] or "not set", r["meaning"]] for r in rows]
    app.screen.table(cells, ["NAME", "VALUE", "FROM", "MEANING"])


def _get(app: App, name: str, *, is_json: bool) -> None:
    value, where = config.setting(name)
    if is_json:
        app.screen.json({"name": name, "value": value, "from": where})
    elif value:
        app.screen.print(safe(value))
    else:
        raise Failure(f"{name} is not set: set it with holdfast config set {name} …", FAILED)


def _change(app: App, name: str, value: str | None) -> None:
    values = config.read_config()
    if value is None:
        values.pop(name, None)
    else:
        _check(name, value)
        values[name] = value
    config.write_config(values)
    variable = config.NAMES[name][0]
    if config.setting(name)[1] == variable:
        app.screen.note(f"{variable} is set too, and counts before the file: unset it", "yellow")


def _check(name: str, value: str) -> None:
    """That it could be used at all; nothing is opened."""
    if name == "color" and value not in _COLORS:
        raise Failure(f"color is {', '.join(_COLORS)}, not {value!r}", USAGE)
    if name == "store":
        from holdfast.stores import open_store

        open_store(value)
    if name == "model":
        from holdfast.providers import open_provider

        open_provider(value)
