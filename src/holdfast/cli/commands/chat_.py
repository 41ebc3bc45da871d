"""`holdfast chat`: talk to a model; what is said is kept."""

from pathlib import Path
from typing import Any

import click

from holdfast.cli.app import App
from holdfast.cli.command import command as make

_EXAMPLES = """
\b
Examples:
  holdfast chat                            a conversation; /help tells what you can do in it
  holdfast chat "I am Ada."                one question, and its answer
  holdfast chat -c "Who am I?"             the same conversation goes on
  tail -n 100 app.log | holdfast chat "What failed?"
  holdfast chat -m anthropic:claude-sonnet-5-5
"""


@make("chat", epilog=_EXAMPLES)
@click.argument("words", metavar="[TEXT | -]", nargs=-1)
@click.option("-c", "--continue", "is_latest", is_flag=True, help="Go on with the latest one")
@click.option(
    "-s", "reference", metavar="REF", help="Go on with this one, or begin it under this key"
)
@click.option("-m", "--model", metavar="NAME", help="Who answers, as vendor:model")
@click.option("--system", metavar="TEXT", help="What the model is told before everything else")
@click.option(
    "--tools",
    "toolbox",
    metavar="FILE.py",
    type=click.Path(path_type=Path),
    help="What the model may call: functions under @holdfast.tool",
)
@click.option("--no-save", is_flag=True, help="Keep nothing of it")
@click.option("--json", "is_json", is_flag=True, help="One answer, for programs")
@click.option("-q", "--quiet", "is_quiet", is_flag=True, help="Say nothing but the answer")
async def command(app: App, **given: Any) -> int:
    """Talk to a model. Without TEXT it is a conversation; with it, one question and its answer.

    What is piped in stands behind TEXT as a block of its own; - reads it where nothing is piped.
    """
    from holdfast.cli.chat.start import Options, start

    return await start(app, Options(**given))
