"""`holdfast show`: what was said in a conversation."""

import re
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli import times
from holdfast.cli.app import App
from holdfast.cli.command import command as make
from holdfast.cli.failures import NOT_FOUND, USAGE, Failure
from holdfast.cli.references import look
from holdfast.cli.screen import Screen, columns, cut, one_line, safe
from holdfast.cli.transcript import Transcript

if TYPE_CHECKING:
    from holdfast.entries import Fold
    from holdfast.messages import Message
    from holdfast.peek import Peek, TurnRows
    from holdfast.stores.values import Stored

_RANGE = re.compile(r"(\d{1,9})?(-)?(\d{1,9})?\Z")
_EPILOG = """\b
Examples:
  holdfast show @                 the conversation written to last
  holdfast show @ --last 1        its last question and answer
  holdfast show telegram:12 --turn 3-5 --full
  holdfast show @ --json | jq -r '.messages[].content'"""


@make("show", epilog=_EPILOG)
@click.argument("reference", metavar="[REF]", default="@")
@click.option("--turn", "turns", metavar="N", help="Only these turns: 3, 3-5, 3-, -5")
@click.option("--last", metavar="N", type=click.IntRange(1), help="Only the last N turns")
@click.option("--branch", metavar="NAME", help="Another branch than the one in use")
@click.option("--full", "is_full", is_flag=True, help="Unfold tool calls, results and thinking")
@click.option("--json", "is_json", is_flag=True, help="For programs: everything of each message")
@click.option("--no-pager", is_flag=True, help="Never through a pager")
async def command(
    app: App,
    reference: str,
    turns: str | None,
    last: int | None,
    branch: str | None,
    is_full: bool,
    is_json: bool,
    no_pager: bool,
) -> None:
    """What was said in the conversation REF (without it, the latest one)."""
    if turns and last:
        raise Failure("--turn and --last say two things: give one of them", USAGE)
    first, end = _range(turns)
    async with app.sessions() as sessions:
        peek = await look(sessions, reference)
        name = check_branch(peek, branch)
        if is_json:
            chosen = [turn async for turn in _chosen(peek, name, first, end, last)]
            app.screen.json(plain(peek, name, chosen, await peek.folds(name)))
            return
        with app.screen.paged(is_wanted=not no_pager):
            print_heading(app.screen, peek, name)
            await _print(app.screen, peek, name, (first, end, last), is_full=is_full)


async def _print(
    screen: Screen,
    peek: "Peek",
    branch: str,
    chosen: tuple[int, int | None, int | None],
    *,
    is_full: bool,
) -> None:
    from holdfast.steps.leftovers import unstored

    transcript = Transcript(screen, await peek.folds(branch), is_full=is_full)
    rows: tuple[Stored, ...] = ()
    is_anything = False
    async for turn in _chosen(peek, branch, *chosen):
        transcript.print(turn)
        rows = turn.rows
        is_anything = True
    first, end, _ = chosen
    if (draft := peek.draft) is not None and draft.branch == branch and end is None:
        for line in transcript.draft(unstored(draft, rows), rows):
            screen.print(line)
    elif not is_anything:
        screen.note("nothing was said there" if first or end is not None else "nothing said yet")


def check_branch(peek: "Peek", name: str | None) -> str:
    """The branch that is meant, or Failure."""
    names = [each.name for each in peek.record.branches]
    if name is not None and name not in names:
        raise Failure(
            f"there is no branch {name!r} in {peek.key}: there are {', '.join(names)}", NOT_FOUND
        )
    return name or peek.record.branch


def print_heading(screen: Screen, peek: "Peek", branch: str) -> None:
    """Which conversation it is, in one line."""
    record = peek.record
    count = record.branch_named(branch).count
    told = [
        record.agent,
        record.settings.model or "",
        f"{count:,} message{'' if count == 1 else 's'}",
        "" if (branch, len(record.branches)) == ("main", 1) else f"branch {branch}",
        "" if peek.expired_at is None else f"expired {times.shown(peek.expired_at)}",
    ]
    rest = f" {screen.sign('·', '-')} ".join(one_line(each, 60) for each in told if each)
    key = cut(safe(record.key, keep=""), screen.width)
    rest = cut(rest, max(10, screen.width - columns(key) - 2))
    screen.print(f"{screen.styled(key, 'bold')}  {screen.styled(rest, 'dim')}")
    screen.print()


def _range(text: str | None) -> tuple[int, int | None]:
    """The first and the last turn that are wanted."""
    if text is None:
        return 0, None
    found = _RANGE.match(text)
    if found is None or not (found[1] or found[3]):
        raise Failure(f"{text!r} are no turns: say 3, 3-5, 3- or -5", USAGE)
    first, end = int(found[1] or 0), int(found[3]) if found[3] else None
    if not found[2]:
        return first, first
    if end is not None and end < first:
        raise Failure(f"{text} ends before it begins: say {end}-{first}", USAGE)
    return first, end


async def _chosen(
    peek: "Peek", branch: str, first: int, end: int | None, last: int | None
) -> AsyncIterator["TurnRows"]:
    if last is not None:
        for turn in await peek.last_turns(last, branch):
            yield turn
        return
    found = False
    async for turn in peek.turns(branch):
        number = turn.number or 0
        if end is not None and number > end:
            break
        if number >= first:
            found = True
            yield turn
    if first and not found:
        raise Failure(f"there is no turn {first}: see holdfast show {peek.key}", NOT_FOUND)


# For programs


def plain(
    peek: "Peek", branch: str, turns: list["TurnRows"], folds: tuple["Fold", ...]
) -> dict[str, Any]:
    """The conversation as JSON; docs/cli-reading.md says what is what."""
    from holdfast.entries import Mark
    from holdfast.messages import Message
    from holdfast.steps.leftovers import unstored
    from holdfast.window.view import covered

    record, draft = peek.record, peek.draft
    if draft is not None and turns:
        draft = unstored(draft, turns[-1].rows)
    rows = [(turn.number, row) for turn in turns for row in turn.rows]
    hidden = set(covered([row.seq for _, row in rows if row.kind == "message"], folds))
    return {
        "key": record.key,
        "id": record.id,
        "agent": record.agent,
        "model": record.settings.model,
        "branch": branch,
        "branches": [each.name for each in record.branches],
        "created_at": times.plain(record.created_at),
        "updated_at": times.plain(record.updated_at),
        "expired_at": None if peek.expired_at is None else times.plain(peek.expired_at),
        "count": record.branch_named(branch).count,
        "messages": [
            _message(turn, row, row.entry, row.seq in hidden)
            for turn, row in rows
            if isinstance(row.entry, Message)
        ],
        "folds": [fold_plain(each) for each in folds],
        "marks": [_mark(row, row.entry) for _, row in rows if isinstance(row.entry, Mark)],
        "draft": None
        if draft is None or draft.branch != branch
        else {
            "text": draft.text,
            "partial": draft.partial,
            "thinking": draft.thinking,
            "state": draft.ended or ("running" if draft.is_running else "cut off"),
            "owner": draft.owner,
        },
    }


def _message(turn: int | None, row: "Stored", said: "Message", is_folded: bool) -> dict[str, Any]:
    from holdfast.codec.plain import plain_dict
    from holdfast.frozen import thaw

    others = {
        "model": said.model,
        "stop": said.stop,
        "synthetic": said.synthetic,
        "is_error": said.is_error,
        "extra": thaw(said.extra),
    }
    return {
        "id": said.id,
        "seq": row.seq,
        "position": row.position,
        "turn": turn,
        "timestamp": times.plain(said.timestamp),
        **plain_dict(said),
        **{name: value for name, value in others.items() if value},
        "folded": is_folded,
    }


def fold_plain(fold: "Fold") -> dict[str, Any]:
    """A fold as JSON."""
    from holdfast.codec.plain import plain_dict

    return {
        "first": fold.first,
        "last": fold.last,
        "by": fold.by,
        "why": fold.why,
        "is_open": fold.is_open,
        "tokens_before": fold.tokens_before,
        "tokens_after": fold.tokens_after,
        "replacement": None if fold.replacement is None else plain_dict(fold.replacement),
    }


def _mark(row: "Stored", mark: Any) -> dict[str, Any]:
    from holdfast.frozen import thaw

    return {
        "seq": row.seq,
        "what": mark.what,
        "about": mark.about,
        "timestamp": times.plain(mark.timestamp),
        "data": thaw(mark.data),
    }
