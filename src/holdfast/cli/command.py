"""How commands are made: options that all of them take, and functions that may be coroutines."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from holdfast.cli.app import App


class PipeClosed(Exception):
    """Whoever read our output went away."""


def command(name: str, **attributes: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a command of a function, which is given an `App` first; it may be a coroutine function.

    A number that the function returns is the exit status.
    """

    def make(function: Callable[..., Any]) -> click.Command:
        @wraps(function)
        @click.pass_context
        def run(context: click.Context, /, **arguments: Any) -> Any:
            try:
                result = function(App(**context.ensure_object(dict)), **arguments)
                if inspect.iscoroutine(result):
                    import asyncio  # not for --help

                    result = asyncio.run(result)
            except BrokenPipeError as error:  # click would end the process, with status 1
                raise PipeClosed from error
            return result

        made: click.Command = click.command(name, **attributes)(common_options(run))  # type: ignore[no-untyped-call]
        for parameter in made.params:
            if (parameter.metavar or "").strip("[].…").startswith("REF"):
                parameter._custom_shell_complete = _keys
        made.params.sort(key=lambda parameter: not parameter.expose_value)  # its own come first
        return made

    return make


def common_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that may stand before the command's name and behind it; what is behind counts."""
    for option in reversed(
        [
            _common(
                "--store",
                metavar="URL",
                help="Where conversations are: sqlite:PATH, jsonl:DIR or postgresql://… "
                "[also HOLDFAST_STORE]",
            ),
            _common("--tenant", metavar="NAME", help="Whose conversations [also HOLDFAST_TENANT]"),
            _common(
                "--color",
                type=click.Choice(["auto", "always", "never"]),
                help="auto colours on a terminal, unless NO_COLOR is set",
            ),
            _common("--debug", "is_debug", is_flag=True, help="Show where an error came from"),
        ]
    ):
        function = option(function)
    return function


def _common(*names: str, **attributes: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(*names, expose_value=False, callback=_remember, **attributes)


def _keys(context: click.Context, _: click.Parameter, incomplete: str) -> Any:
    from holdfast.cli.completing import keys

    return keys(context, incomplete)


def _remember(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    given = context.ensure_object(dict)
    if value and parameter.name:
        given[parameter.name] = value
