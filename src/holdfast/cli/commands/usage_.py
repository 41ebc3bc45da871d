"""`holdfast usage`: tokens, cost, and how full the window was."""

from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from holdfast.cli import amounts, times
from holdfast.cli.app import App, NoStore
from holdfast.cli.command import command as make
from holdfast.cli.commands.show_ import check_branch
from holdfast.cli.listing import summaries
from holdfast.cli.plot import plot
from holdfast.cli.references import look
from holdfast.cli.screen import Screen, one_line
from holdfast.cli.sums import HEADS, Sums, cells_of, plain_bill

if TYPE_CHECKING:
    from holdfast.bills import Bill, Fill
    from holdfast.manager import SessionManager
    from holdfast.peek import Peek, TurnRows

_EPILOG = """\b
What no service reported is shown as ?, and a sum of which a part is not known has a +.
What was said in a conversation before it was forked is in the sums of the older one alone.
Costs are in the currency of the models' prices: US dollars, unless you gave others.
\b
Examples:
  holdfast usage @                     by turn, with the fill of its window
  holdfast usage --by model --since 30d
  holdfast usage --by day --json"""


@make("usage", epilog=_EPILOG)
@click.argument("reference", metavar="[REF]", required=False)
@click.option(
    "--by",
    type=click.Choice(["turn", "model", "day", "session"]),
    help="What is added up [turn for one conversation, session for all]",
)
@click.option("--branch", metavar="NAME", help="The turns of another branch than the one in use")
@click.option("--since", metavar="TIME", help="Only calls since: 12h, 7d, 2026-01-31")
@click.option("--json", "is_json", is_flag=True, help="For programs")
@click.option("--no-plot", is_flag=True, help="Without the plot")
@click.option("--no-pager", is_flag=True, help="Never through a pager")
async def command(
    app: App,
    reference: str | None,
    by: str | None,
    branch: str | None,
    since: str | None,
    is_json: bool,
    no_plot: bool,
    no_pager: bool,
) -> None:
    """Tokens and cost of the conversation REF, or of all of them."""
    after = times.moment(since) if since else None
    by = by or ("turn" if reference else "session")
    if by == "turn":
        async with app.sessions() as sessions:
            peek = await look(sessions, reference or "@")
            told = await _of_one(peek, check_branch(peek, branch), after)
        if is_json:
            app.screen.json(told.plain())
        else:
            with app.screen.paged(is_wanted=not no_pager):
                told.print(app.screen, is_plotted=not no_plot)
        return
    sums = Sums(by)
    try:
        async with app.sessions() as sessions:
            await _add_up(app, sessions, reference, sums, after)
    except NoStore:
        if not app.is_default_store:
            raise
    if is_json:
        app.screen.json(sums.plain())
    else:
        with app.screen.paged(is_wanted=not no_pager):
            sums.print(app.screen)
    for key in sums.damaged:
        app.screen.note(f"left out, because it is damaged: {one_line(key, 100)}")


# One conversation


class _Turn(NamedTuple):
    number: int
    when: datetime | None
    bill: "Bill"
    fill: "Fill"

    def cells(self) -> list[str]:
        tokens = amounts.tokens(self.fill.tokens, is_estimate=not self.fill.is_reported)
        folds = f", folded {self.fill.folds} times" if self.fill.folds > 1 else ", folded"
        folds = folds if self.fill.folds else ""
        when = "" if self.when is None else times.shown(self.when)
        return [str(self.number), when, *cells_of(self.bill), tokens + folds]

    def plain(self) -> dict[str, Any]:
        return {
            "turn": self.number,
            "timestamp": None if self.when is None else times.plain(self.when),
            **plain_bill(self.bill),
            "fill": self.fill._asdict(),
        }


class _One(NamedTuple):
    """The turns of a branch; `total` is of all branches."""

    peek: "Peek"
    branch: str
    turns: list[_Turn]
    total: "Bill"

    def plain(self) -> dict[str, Any]:
        record = self.peek.record
        return {
            "key": record.key,
            "id": record.id,
            "branch": self.branch,
            "turns": [turn.plain() for turn in self.turns],
            "total": plain_bill(self.total),
        }

    def print(self, screen: Screen, *, is_plotted: bool) -> None:
        rows = [turn.cells() for turn in self.turns]
        rows.append(["", "in all", *cells_of(self.total), ""])
        screen.table(rows, ["TURN", "WHEN", *HEADS, "WINDOW"])
        if is_plotted:
            width = min(screen.width, 100)
            lines = list(plot(screen, [(turn.number, turn.fill) for turn in self.turns], width))
            for line in ["", *lines] if lines else []:
                screen.print(line)


async def _of_one(peek: "Peek", branch: str, after: datetime | None) -> _One:
    from holdfast.bills import Bill, bill_of, fill_of

    turns = [
        _Turn(turn.number, _when(turn), bill_of(turn.rows), fill_of(turn.rows))
        async for turn in peek.turns(branch)
        if turn.number and (after is None or _when(turn) >= after)
    ]
    total = Bill()
    async for call in peek.receipts(after):
        total = total.plus(call)
    return _One(peek, branch, turns, total)


def _when(turn: "TurnRows") -> datetime:
    """When the user said what begins it."""
    when: datetime = getattr(turn.rows[0].entry, "timestamp")  # noqa: B009 - any but an unknown
    return when


# Many of them


async def _add_up(
    app: App,
    sessions: "SessionManager",
    reference: str | None,
    sums: Sums,
    after: datetime | None,
) -> None:
    """Every receipt since, on whichever branch. What is damaged is told of, and hides no other."""
    from holdfast.errors import Corrupt, SessionNotFound

    if reference is not None:
        await _add(await look(sessions, reference), sums, after)
        return
    tell, done = app.screen.progress("conversations"), 0
    async for summary in summaries(sessions, since=after):
        try:
            await _add(await sessions.peek(summary.key), sums, after)
        except SessionNotFound:  # removed a moment ago
            continue
        except Corrupt:
            sums.damaged.append(summary.key)
        done += 1
        tell(done)


async def _add(peek: "Peek", sums: Sums, after: datetime | None) -> None:
    async for call in peek.receipts(after):
        sums.add(peek.key, call)
