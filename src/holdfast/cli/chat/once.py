"""One question, one answer: for scripts and pipes, and for who wants no more."""

from typing import TYPE_CHECKING

from holdfast.cli.chat import outcomes
from holdfast.cli.chat.talk import Talk, as_json
from holdfast.cli.screen import one_line, safe

if TYPE_CHECKING:
    from holdfast.results import TurnResult


async def ask_once(
    talk: Talk, text: str, *, go_on: str, is_json: bool, can_ask: bool, is_quiet: bool
) -> int:
    """The exit status. The answer goes to stdout, as it comes, or whole as JSON."""
    from holdfast.errors import HoldfastError

    try:
        result = await talk.say(text)
    except HoldfastError:
        if talk.has_left and talk.is_kept:
            talk.screen.note(f"what you said is kept: {go_on} tries again")
        raise
    if can_ask:
        result = await outcomes.settle(talk, result)
    if is_json:
        talk.screen.json(as_json(talk, result))
    _tell(talk, result, go_on, is_quiet=is_quiet)
    return outcomes.status(result)


def _tell(talk: Talk, result: "TurnResult", go_on: str, *, is_quiet: bool) -> None:
    if told := outcomes.told(result, f"{go_on} goes on"):
        talk.screen.note(safe(told), "yellow")
    session = talk.session
    if session is not None and talk.is_kept and talk.screen.is_terminal and not is_quiet:
        talk.screen.note(f"[{one_line(session.key, 80)} is kept: {go_on} goes on with it]")
