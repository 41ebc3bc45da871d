"""What is told before the first prompt: which conversation this is, and what of it is there.

Whoever comes back wants to know that nothing was lost: how much was loaded, how much of it the
model is not shown in full, what was said last, and what became of a turn that was cut off.
"""

from typing import TYPE_CHECKING

from holdfast.cli import times
from holdfast.cli.screen import Screen, counted, one_line, safe

if TYPE_CHECKING:
    from holdfast.cli.chat.talk import Talk
    from holdfast.messages import Message
    from holdfast.session import Session
    from holdfast.steps.drafts import Draft

_ANSWER_LINES = 4
_PARTIAL_LINES = 20
_LOOKED_AT = 40  # messages: the last exchange is among them, or is not shown


async def greet(talk: "Talk", why: str) -> None:
    """Say it all, on stderr, with the model and why it is this one."""
    screen, session = talk.screen, talk.session
    if session is None:
        under = f", {one_line(talk.key, 80)}" if talk.key else ""
        screen.note(f"a new conversation{under}\n{safe(why)}")
    else:
        screen.note(f"{one_line(session.key, 80)}: {_held(session)}\n{safe(why)}")
        _show_last(screen, await _last_exchange(session))
        show_left(screen, session)
    screen.note("/help tells what you can do here, Ctrl-D leaves")


def show_left(screen: Screen, session: "Session") -> bool:
    """What a turn has left that did not end; whether /resume can go on with it."""
    draft = session.draft
    if draft is None:
        return False
    if draft.is_running:
        screen.note(
            f"another program is answering here ({one_line(draft.owner, 60)}): what you say waits "
            "for it",
            "yellow",
        )
        return False
    if draft.branch != session.branch:
        return False
    if not session.pending:
        if draft.ended != "limit":
            _show_unanswered(screen, session, draft)
        screen.note(f"{_why_left(draft)}: Enter or /resume goes on with it", "yellow")
    return True


def _show_unanswered(screen: Screen, session: "Session", draft: "Draft") -> None:
    """What was said, if the log has it not yet, and as much of an answer as had come."""
    if all(message.id != draft.message.id for message in session.messages[-_LOOKED_AT:]):
        screen.note(f"> {one_line(draft.text, screen.width - 3)}", "bold")
    if draft.partial:
        lines = safe(draft.partial).splitlines()
        if len(lines) > _PARTIAL_LINES:
            screen.note(f"[{len(lines) - _PARTIAL_LINES} lines before]")
        screen.note("\n".join(lines[-_PARTIAL_LINES:]), "italic")


def _why_left(draft: "Draft") -> str:
    if draft.ended == "limit":
        return "[this turn met a limit]"
    if draft.ended:
        return "[this was not answered: the model could not be asked]"
    if draft.partial:
        return "[this answer was cut off; it is kept]"
    return "[this was cut off before the answer began]"


def _held(session: "Session") -> str:
    """How much there is, and how much of it the model is shown otherwise."""
    if not session.count:
        return "nothing was answered in it yet"
    count = counted(session.count, "message")
    branch = "" if session.branch == "main" else f" on {one_line(session.branch, 40)}"
    folds = len(session.folds)
    told = "all of it is shown to the model"
    if folds:
        some = "1 fold shortens" if folds == 1 else f"{folds} folds shorten"
        told = f"{some} what the model is shown (/context)"
    return f"{count}{branch}, the last {times.shown(session.updated_at)}; {told}"


async def _last_exchange(session: "Session") -> "list[Message]":
    """What the user said last, and what came of it in words."""
    found = list(await session.read(max(0, session.count - _LOOKED_AT), None))
    starts = [place for place, message in enumerate(found) if message.starts_turn]
    if not starts:
        return []
    said = found[starts[-1] :]
    answers = [m for m in said[1:] if m.text and m.role.canonical == "assistant"]
    return [said[0], *answers[-1:]]


def _show_last(screen: Screen, exchange: "list[Message]") -> None:
    for number, message in enumerate(exchange):
        if number == 0:
            screen.note(f"> {one_line(message.text or '', screen.width - 3)}", "bold")
            continue
        lines = safe(message.text or "").splitlines()
        screen.note("\n".join(lines[:_ANSWER_LINES]))
        if len(lines) > _ANSWER_LINES:
            screen.note(f"[{len(lines) - _ANSWER_LINES} more lines: holdfast show]")
        if message.stop in ("cancelled", "interrupted"):
            screen.note(f"[{message.stop}]")
