"""`holdfast models`: models that can be used here."""

from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.app import App
from holdfast.cli.command import command as make
from holdfast.cli.failures import NOT_FOUND, REFUSED, Failure
from holdfast.cli.screen import safe

if TYPE_CHECKING:
    from holdfast.providers.models import Model
    from holdfast.providers.vendors import Vendor

_HEADS = ["MODEL", "WINDOW", "ANSWER", "$ IN", "$ OUT", "$ CACHED"]


@make(
    "models",
    epilog="Examples:\n\n\b\n"
    "holdfast models anthropic\n"
    "holdfast models --all\n"
    "\nPrices are dollars for a million tokens, for estimates, from a table that is as old as this "
    "release.",
)
@click.argument("vendor", required=False)
@click.option("--all", "is_all", is_flag=True, help="Also of vendors that cannot be used here")
@click.option("--live", "is_live", is_flag=True, help="Ask the vendors which they have")
@click.option("--json", "is_json", is_flag=True, help="For programs")
async def command(
    app: App, vendor: str | None, is_all: bool, is_live: bool, is_json: bool
) -> int | None:
    """Models of the vendors that can be used here, by a key, a program or a package.

    Nothing is sent, but with --live.
    """
    from holdfast.providers.model_table import AS_OF
    from holdfast.providers.vendors import models_of, vendors

    known = vendors()
    if vendor is not None and vendor not in known:
        raise Failure(f"{vendor!r} is no vendor: there are {', '.join(known)}", NOT_FOUND)
    chosen = [each for each in known.values() if vendor is None or each.name == vendor]
    shown = [each for each in chosen if each.why or is_all or vendor is not None]
    found, failed = [], ""
    for each in shown:
        models, error = await _asked(each.name) if is_live else (models_of(each.name), "")
        failed = failed or error
        found.append((each, models, error))
    if is_json:
        told = [_plain(each, models, error) for each, models, error in found]
        app.screen.json({"as_of": str(AS_OF), "vendors": told})
    else:
        _print(app, found, [each for each in chosen if each not in shown])
    return REFUSED if failed else None


async def _asked(vendor: str) -> "tuple[tuple[Model, ...], str]":
    """What the vendor itself says it has, or why it could not be asked."""
    from holdfast.errors import HoldfastError
    from holdfast.providers import open_provider
    from holdfast.providers.models import model_of
    from holdfast.providers.vendors import models_of

    try:
        first = next((each.name for each in models_of(vendor)), "any")
        async with open_provider(f"{vendor}:{first}", tries_max=1) as provider:
            names = await provider.list_models()
    except HoldfastError as error:
        return (), str(error)
    return tuple(model_of(vendor, name) for name in names), ""


def _print(
    app: App, found: "list[tuple[Vendor, tuple[Model, ...], str]]", others: "list[Vendor]"
) -> None:
    for vendor, models, error in found:
        why = vendor.why or f"cannot be used here: {vendor.way_out}"
        app.screen.note(safe(f"{vendor.name}: {why}"), "bold")
        if error:
            app.screen.note(safe(f"  {error}"), "red")
        if not models and not error:
            app.screen.note("  what it has is not known here: say --live")
    rows = [_cells(vendor, model) for vendor, models, _ in found for model in models]
    if rows:
        app.screen.table(rows, _HEADS)
    if not found:
        app.screen.note("no vendor can be used here")
    for vendor in others:
        app.screen.note(safe(f"{vendor.name}: {vendor.way_out}"))


def _cells(vendor: "Vendor", model: "Model") -> list[str]:
    name = f"{vendor.name}:{model.name}"
    guess = "" if model.is_known else "~"
    prices = ["-", "-", "-"]
    if (paid := model.prices) is not None:
        cached = "-" if paid.cache_read is None else str(paid.cache_read)
        prices = [str(paid.input), str(paid.output), cached]
    return [name, f"{guess}{model.context:,}", f"{guess}{model.output:,}", *prices]


def _plain(vendor: "Vendor", models: "tuple[Model, ...]", error: str) -> dict[str, Any]:
    return {
        "name": vendor.name,
        "is_usable": bool(vendor.why),
        "why": vendor.why,
        "way_out": vendor.way_out,
        "error": error,
        "models": [_plain_model(vendor, each) for each in models],
    }


def _plain_model(vendor: "Vendor", model: "Model") -> dict[str, Any]:
    prices = None
    if (paid := model.prices) is not None:
        names = ("input", "output", "cache_read", "cache_write")
        prices = {n: None if getattr(paid, n) is None else str(getattr(paid, n)) for n in names}
        prices["currency"] = paid.currency
    return {
        "name": f"{vendor.name}:{model.name}",
        "context": model.context,
        "output": model.output,
        "prices_per_million": prices,
        "is_known": model.is_known,
    }
