"""The commands of the program, and how it ends."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

import click

from holdfast.cli import failures
from holdfast.cli.command import PipeClosed, common_options

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_STDOUT, _STDERR = 1, 2

# Each command with what its line in the list says, in the order in which people need them. Its
# module is `commands/NAME.py`, imported when it is called, and has it under the name `command`.
COMMANDS = {
    "chat": "Talk to a model, and keep what is said",
    "ls": "Conversations, the latest first",
    "show": "What was said in a conversation",
    "search": "Messages that hold all of these words",
    "context": "Exactly what the next request would hold, and why",
    "usage": "Tokens, cost, and how full the window was",
    "tree": "The branches of a conversation",
    "diff": "What two branches share, and what they do not",
    "fork": "A new conversation that starts as this one",
    "rm": "Remove conversations",
    "erase": "Remove a conversation or a message so that no byte of it is left",
    "export": "A conversation as JSON, nanobot's JSONL or Markdown",
    "import": "Conversations from such a file",
    "copy": "Bring conversations to another store",
    "backup": "A copy of the whole store, as it is at one moment",
    "verify": "Hold every stored byte against its digest",
    "doctor": "What is wrong here, and what to do about it",
    "models": "Models that can be used here",
    "config": "Settings, and where they come from",
    "completion": "Let your shell complete commands and names",
}


class Program(click.Group):
    """The commands, each imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"holdfast.cli.commands.{cmd_name}_")
        command: click.Command = module.command
        return command

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002
        formatter: click.HelpFormatter,
    ) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list["CompletionItem"]:
        from click.shell_completion import CompletionItem

        named = [
            CompletionItem(name, help=meaning)  # from the table: nothing is imported
            for name, meaning in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return named + click.Command.shell_complete(self, ctx, incomplete)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, 1)
            hint = f"did you mean {near[0]}" if near else f"there are {', '.join(COMMANDS)}"
            raise click.UsageError(f"{error.format_message().rstrip('.')}: {hint}", ctx) from None


def _version(context: click.Context, _: click.Parameter, is_wanted: bool) -> None:
    if is_wanted:
        from importlib.metadata import version

        click.echo(f"holdfast {version('holdfast')}")
        context.exit()


@click.group(
    cls=Program,
    name="holdfast",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Begin with `holdfast chat`. Each command has its own --help.",
)
@common_options
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version)
def program() -> None:
    """Conversations with language models: kept, searched, branched, and never lost."""


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    _have_streams()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # letters that the terminal cannot show are no error
            stream.reconfigure(errors="backslashreplace")
    if "_HOLDFAST_COMPLETE" in os.environ:
        from holdfast.cli.completing import quietly

        return quietly(lambda: program.main(given, prog_name="holdfast", standalone_mode=False))
    try:
        result = program.main(given, prog_name="holdfast", standalone_mode=False)
        sys.stdout.flush()
    except (BrokenPipeError, PipeClosed):
        return _pipe_closed()
    except BaseException as error:  # the end of the program: said in words, and by a number
        if isinstance(error, SystemExit):
            raise
        status = failures.report(error, is_debug="--debug" in given)
        _give_up_output()
        return status
    return result if isinstance(result, int) else 0


def _have_streams() -> None:
    """What was closed (`>&-`) leads nowhere, or a file of the store would get its number.

    Whoever prints to such a stdout is told that it cannot be written to.
    """
    while (number := os.open(os.devnull, os.O_RDONLY)) <= _STDERR:
        pass
    os.close(number)
    stdout: object = sys.stdout
    stderr: object = sys.stderr
    if stdout is None:
        sys.stdout = open(_STDOUT, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def _pipe_closed() -> int:
    """Whoever read our output has enough."""
    _give_up_output()
    return failures.CLOSED_PIPE


def _give_up_output() -> None:
    """What cannot be written is not tried again at the end of Python, which has its own status."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
