"""`holdfast context`: exactly what the next request would hold, and why."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli import amounts, config
from holdfast.cli.app import App
from holdfast.cli.command import command as make
from holdfast.cli.commands.show_ import fold_plain
from holdfast.cli.failures import USAGE, Failure
from holdfast.cli.references import find
from holdfast.cli.screen import Screen, columns, cut, one_line, safe

if TYPE_CHECKING:
    from holdfast.preview import Piece, Preview
    from holdfast.session import Session

_EPILOG = """\b
Tokens with a ~ are estimated; the others were reported by the model's service.
\b
Examples:
  holdfast context @
  holdfast context @ -m openai:gpt-5     what another model would be given
  holdfast context @ --request | jq .    the request itself; nothing is sent"""


@make("context", epilog=_EPILOG)
@click.argument("reference", metavar="[REF]", default="@")
@click.option("-m", "--model", metavar="MODEL", help="For this model: vendor:model")
@click.option("--request", "is_request", is_flag=True, help="The body of the request, as JSON")
@click.option("--json", "is_json", is_flag=True, help="For programs")
@click.option("--no-pager", is_flag=True, help="Never through a pager")
async def command(
    app: App,
    reference: str,
    model: str | None,
    is_request: bool,
    is_json: bool,
    no_pager: bool,
) -> None:
    """What the next request of the conversation REF would hold, if nothing more were said."""
    async with app.sessions() as sessions:
        session = await find(sessions, reference)
        told = session.preview(model or session.settings.model or _usual_model(session))
        if is_request:
            app.screen.json(told.request())
        elif is_json:
            app.screen.json(_plain(session, told))
        else:
            with app.screen.paged(is_wanted=not no_pager):
                for line in _lines(app.screen, session, told):
                    app.screen.print(line)


def _usual_model(session: "Session") -> str:
    name, _ = config.setting("model")
    if not name:
        raise Failure(f"{session.key} has no model: name one with -m vendor:model", USAGE)
    return name


def _lines(screen: Screen, session: "Session", told: "Preview") -> Iterator[str]:
    window, room = told.window, told.room
    dot = f" {screen.sign('·', '-')} "
    yield (
        f"{screen.styled(one_line(session.key, 200), 'bold')}  "
        + screen.styled(one_line(told.model, 200), "dim")
    )
    yield ""
    yield screen.styled(f"{'TOKENS':>10}  WHAT", "dim")
    if window.system is not None:
        yield _row(screen, told.system_tokens, False, "system", window.system)
    if window.tools:
        names = ", ".join(tool.name for tool in window.tools)
        yield _row(screen, told.tools_tokens, False, f"{len(window.tools)} tools", names)
    for piece in told.pieces:
        yield _row(screen, piece.tokens, piece.is_measured, _what(piece), _text(piece))
    yield ""
    estimated = max(0, window.used - told.measured)
    parts = [f"{told.measured:,} measured", f"{estimated:,} estimated"]
    if window.margin:
        parts.append(f"perhaps {window.margin:,} more")
    share = amounts.share(window.used / window.limit if window.limit else None)
    yield f"{window.used:>10,}  in all{dot}{dot.join(parts)}"
    yield f"{_fold_from(told):>10,}  from here on it is folded, by its budget"
    yield f"{window.limit:>10,}  may be in a request{dot}{share} is used"
    yield f"{room.context:>10,}  the window{dot}{room.reserve:,} kept for the answer"
    yield from _notes(told)


def _fold_from(told: "Preview") -> int:
    return int(told.room.prompt * told.budget.start)


def _row(screen: Screen, tokens: int, is_measured: bool, what: str, text: str) -> str:
    count = amounts.tokens(tokens, is_estimate=not is_measured)
    told = safe(what, keep="")
    room = max(10, screen.width - 14 - columns(told)) if screen.is_terminal else 100
    head = screen.styled(told, "bold")
    return f"{count:>10}  {head}  {screen.styled(one_line(text, room), 'dim')}"


def _what(piece: "Piece") -> str:
    if piece.fold is not None:
        return f"{piece.message.role} [for {_places(piece.fold.first, piece.fold.last)}]"
    if piece.message.synthetic:
        return f"{piece.message.role} [{piece.message.synthetic}]"
    return str(piece.message.role)


def _text(piece: "Piece") -> str:
    said = piece.message
    calls = [f"{call.name} {call.arguments}" for call in said.calls]
    results = [f"result of {each.name or each.call_id}:" for each in said.results]
    return " ".join([*results, said.text or "", *calls])


def _places(first: int, last: int) -> str:
    return f"entry {first}" if first == last else f"entries {first} to {last}"


def _notes(told: "Preview") -> Iterator[str]:
    window = told.window
    for fold in window.folds:
        yield ""
        verb = "unfolded" if fold.is_open else "folded"
        saved = ""
        if fold.tokens_before is not None and fold.tokens_after is not None:
            saved = f", {fold.tokens_after:,} tokens for {fold.tokens_before:,}"
        by = fold.by or "hand"
        yield _cut(f"{_places(fold.first, fold.last)} {verb} by {by}{saved}")
        if fold.why:
            yield "  " + _cut(fold.why)
    for repair in window.repairs:
        call = f", call {repair.call_id}" if repair.call_id else ""
        yield _cut(f"mended: {repair.what} (message {repair.message_id}{call})")
    if told.plan:
        yield ""
        is_done = not told.plan.to_summarize
        what = "folded for this request" if is_done else "before it is sent a summary is written"
        yield _cut(f"{what}, by {told.plan.by}: {told.plan.reason}")


def _cut(text: str) -> str:
    return cut(" ".join(safe(text).split()), 1_000)


def _plain(session: "Session", told: "Preview") -> dict[str, Any]:
    window, plan = told.window, told.plan
    return {
        "key": session.key,
        "id": session.id,
        "branch": session.branch,
        "model": told.model,
        "context": told.room.context,
        "reserve": told.room.reserve,
        "fold_from": _fold_from(told),
        "limit": window.limit,
        "used": window.used,
        "measured": told.measured,
        "margin": window.margin,
        "digest": window.digest,
        "system": None
        if window.system is None
        else {"text": window.system, "tokens": told.system_tokens},
        "tools": {
            "tokens": told.tools_tokens,
            "declarations": [_thawed(tool.declaration) for tool in window.tools],
        },
        "messages": [_piece_plain(piece) for piece in told.pieces],
        "folds": [fold_plain(each) for each in window.folds],
        "repairs": [each._asdict() for each in window.repairs],
        "plan": None
        if not plan
        else {
            "by": plan.by,
            "reason": plan.reason,
            "needs_summary": bool(plan.to_summarize),
            "tokens_before": plan.tokens_before,
            "tokens_after": plan.tokens_after,
        },
    }


def _piece_plain(piece: "Piece") -> dict[str, Any]:
    from holdfast.codec.plain import plain_dict

    return {
        "id": piece.message.id,
        "tokens": piece.tokens,
        "is_measured": piece.is_measured,
        "first": piece.first,
        "last": piece.last,
        "is_fold": piece.fold is not None,
        "synthetic": piece.message.synthetic,
        **plain_dict(piece.message),
    }


def _thawed(value: Any) -> Any:
    from holdfast.frozen import thaw

    return thaw(value)
