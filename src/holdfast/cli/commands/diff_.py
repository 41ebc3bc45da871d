"""`holdfast diff`: what two branches share, and what they do not."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli import amounts, times
from holdfast.cli.app import App
from holdfast.cli.command import command as make
from holdfast.cli.commands.show_ import check_branch
from holdfast.cli.references import look
from holdfast.cli.screen import Screen, one_line, safe, wrapped

if TYPE_CHECKING:
    from holdfast.forking import Diff
    from holdfast.messages import Message

_EPILOG = """\b
Examples:
  holdfast tree @                 the names of the branches
  holdfast diff @ main            main, and the branch in use
  holdfast diff @ main turn-3 --full"""


@make("diff", epilog=_EPILOG)
@click.argument("reference", metavar="REF")
@click.argument("branch")
@click.argument("other", metavar="[BRANCH]", required=False)
@click.option("--full", "is_full", is_flag=True, help="All of each message, not its first line")
@click.option("--json", "is_json", is_flag=True, help="For programs")
@click.option("--no-pager", is_flag=True, help="Never through a pager")
async def command(
    app: App,
    reference: str,
    branch: str,
    other: str | None,
    is_full: bool,
    is_json: bool,
    no_pager: bool,
) -> None:
    """What two branches of REF share, and what only one has; the other is the one in use."""
    async with app.sessions() as sessions:
        peek = await look(sessions, reference)
        found = await peek.diff(check_branch(peek, branch), check_branch(peek, other))
    if is_json:
        app.screen.json(_plain(peek.key, found))
        return
    with app.screen.paged(is_wanted=not no_pager):
        count = f"{found.common:,} message{'' if found.common == 1 else 's'}"
        app.screen.print(f"{count} in both")
        _print(app.screen, "-", "red", found.a, found.only_a, found, is_full=is_full)
        _print(app.screen, "+", "green", found.b, found.only_b, found, is_full=is_full)


def _print(
    screen: Screen,
    sign: str,
    color: str,
    name: str,
    messages: Sequence["Message"],
    found: "Diff",
    *,
    is_full: bool,
) -> None:
    is_a = sign == "-"
    usage, cost = (found.usage_a, found.cost_a) if is_a else (found.usage_b, found.cost_b)
    told = [f"{len(messages):,} message{'' if len(messages) == 1 else 's'}"]
    if usage.input is not None or usage.output is not None:
        told.append(f"{amounts.tokens(usage.input)} in, {amounts.tokens(usage.output)} out")
        told.append(f"cost {amounts.money(cost)}")
    rest = f" {screen.sign('·', '-')} ".join(told)
    screen.print()
    head = f"{sign * 3} only on {one_line(name, 100)}"
    screen.print(f"{screen.styled(head, 'bold', color)}  {screen.styled(rest, 'dim')}")
    for message in messages:
        for line in _lines(screen, message, is_full=is_full):
            screen.print(screen.styled(f"{sign} {line}", color))


def _lines(screen: Screen, message: "Message", *, is_full: bool) -> list[str]:
    calls = [f"{call.name} {call.arguments}" for call in message.calls]
    text = " ".join([message.text or "", *calls]).strip()
    if not is_full:
        room = screen.width - 14 if screen.is_terminal else 160
        return [f"{message.role}: {one_line(text, max(10, room))}"]
    shown = safe(text.replace("\r\n", "\n")).expandtabs(4)
    lines = wrapped(shown, max(20, screen.width - 4)) if screen.is_terminal else shown.split("\n")
    return [f"{message.role}:", *(f"  {line}" for line in lines)]


def _plain(key: str, found: "Diff") -> dict[str, Any]:
    def side(messages: Sequence["Message"], usage: Any, cost: Any) -> dict[str, Any]:
        from holdfast.codec.plain import plain_dict

        return {
            "messages": [
                {"id": m.id, "timestamp": times.plain(m.timestamp), **plain_dict(m)}
                for m in messages
            ],
            "input": usage.input,
            "output": usage.output,
            "cache_read": usage.cache_read,
            "cost": None if cost is None else str(cost),
        }

    return {
        "key": key,
        "a": found.a,
        "b": found.b,
        "common": found.common,
        "common_seq": found.common_seq,
        "only_a": side(found.only_a, found.usage_a, found.cost_a),
        "only_b": side(found.only_b, found.usage_b, found.cost_b),
    }
