"""What begins with a slash: commands to the program, and not said to the model.

`//` at the beginning says a slash. A path (`/etc/hosts is missing`) is no command either.
"""

import re
from collections.abc import Awaitable, Callable, Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from holdfast.cli.chat import models, outcomes, reports
from holdfast.cli.chat.talk import Talk
from holdfast.cli.failures import USAGE, Failure
from holdfast.cli.screen import one_line, safe

if TYPE_CHECKING:
    from holdfast.session import Session

_COMMAND = re.compile(r"/([A-Za-z?]*)(?:\s+(.*))?\Z", re.DOTALL)
_VENDORS = ("anthropic", "claude-cli", "github", "google", "local", "ollama", "openai")


class Leave(Exception):
    """The conversation is over for now."""


class Slash(NamedTuple):
    """A command: what may stand behind it, what it is for, and what carries it out."""

    argument: str
    help: str
    run: Callable[[Talk, str], Awaitable[None]]


class Said(NamedTuple):
    """What was typed, as what it is: words for the model, or a command with what follows it."""

    words: str = ""
    command: str = ""
    argument: str = ""
    is_nothing: bool = False

    @property
    def is_turn(self) -> bool:
        """Whether the model is asked."""
        return self.is_nothing or bool(self.words) or self.command == "resume"


def read(typed: str) -> Said:
    """What somebody means who has typed this."""
    if not typed.strip():
        return Said(is_nothing=True)
    if typed.startswith("//"):
        return Said(words=typed[1:])
    found = _COMMAND.match(typed.strip())
    if found is None:
        return Said(words=typed)
    return Said(command=found[1].lower(), argument=(found[2] or "").strip())


async def obey(talk: Talk, said: Said) -> None:
    """Carry out a command, or Failure; Leave if it was /quit."""
    name = _ALIASES.get(said.command, said.command)
    if name not in COMMANDS:
        near = get_close_matches(name, COMMANDS, 1)
        way_out = f"did you mean /{near[0]}?" if near else "/help lists them"
        raise Failure(f"there is no command /{said.command}: {way_out}", USAGE)
    await COMMANDS[name].run(talk, said.argument)


def complete(typed: str) -> Iterable[str]:
    """What the last word of this may be going to be."""
    if typed.startswith("/") and " " not in typed:
        return [f"/{name}" for name in COMMANDS if name.startswith(typed[1:])]
    if typed.startswith("/model "):
        word = typed.rpartition(" ")[2]
        return [name for name in _models() if name.startswith(word)]
    return []


def _models() -> list[str]:
    from holdfast.providers.models import table

    known = [f"{m.vendor}:{m.name}" for m in table().values() if m.vendor in _VENDORS]
    return [*known, models.CLAUDE, models.LOCAL]


# ---- the commands ----


async def _new(talk: Talk, argument: str) -> None:
    kept = talk.session
    await talk.leave(argument or None)
    talk.screen.note("a new conversation")
    if kept is not None and talk.is_kept:
        talk.screen.note(f"the one before is kept: -s {one_line(kept.key, 80)} continues it")


async def _model(talk: Talk, argument: str) -> None:
    if argument:
        await talk.use(await models.opened(argument, talk.screen))
    talk.screen.note(f"{safe(talk.provider.name)} answers; /model vendor:model names another")


async def _tools(talk: Talk, _: str) -> None:
    reports.tools(talk)


async def _context(talk: Talk, _: str) -> None:
    await _begun(talk)
    reports.context(talk)


async def _usage(talk: Talk, _: str) -> None:
    await _begun(talk)
    await reports.usage(talk)


async def _branch(talk: Talk, argument: str) -> None:
    session = await _begun(talk)
    if argument in {branch.name for branch in session.branches}:
        await session.checkout(argument)
    elif argument:
        await session.branch_at(len(await session.turns()), argument)
    reports.branches(talk)


async def _revert(talk: Talk, argument: str) -> None:
    session = await _begun(talk)
    turns = await session.turns()
    if not argument.isdecimal():
        reports.turns(talk, turns)
        raise Failure(f"/revert N keeps turns 1 to N, of {len(turns)}", USAGE)
    done = await session.revert(int(argument))
    talk.screen.note(f"{done.message}; /branch lists what was left: nothing is lost")


async def _undo(talk: Talk, _: str) -> None:
    session = await _begun(talk)
    turns = await session.turns()
    left = session.branch
    taken = talk.unanswered
    if taken is not None and all(turn.message.id != taken.id for turn in turns):
        await session.branch_at(len(turns))  # only its branch has it: it is in no turn yet
    elif turns:
        await session.revert(len(turns) - 1)
        taken = turns[-1].message
    else:
        raise Failure("there is nothing to take back: no turn is left", USAGE)
    said = one_line(taken.text or "", 60)
    talk.screen.note(f"taken back: {said}\nit is kept: /branch {safe(left)} goes back to it")


async def _resume(talk: Talk, _: str) -> None:
    await _begun(talk)
    await outcomes.go_on(talk)


async def _help(talk: Talk, _: str) -> None:
    width = max(len(f"{name} {each.argument}") for name, each in COMMANDS.items()) + 1
    for name, each in COMMANDS.items():
        talk.screen.note(f"/{f'{name} {each.argument}':{width}} {each.help}")
    talk.screen.note(
        "Alt-Enter, or a backslash at the end of a line, begins another line\n"
        "Ctrl-C stops an answer and keeps what had come; Ctrl-D leaves\n"
        "// at the beginning says a slash"
    )


async def _quit(_: Talk, __: str) -> None:
    raise Leave


async def _begun(talk: Talk) -> "Session":
    """The conversation; Failure while there is none."""
    if talk.session is None:
        raise Failure("nothing was said yet: say something first", USAGE)
    await talk.session.refresh()
    return talk.session


COMMANDS = {
    "new": Slash("[KEY]", "begin another conversation", _new),
    "model": Slash("[NAME]", "who answers, or vendor:model from now on", _model),
    "tools": Slash("", "what the model may call", _tools),
    "context": Slash("", "what the next request would hold", _context),
    "branch": Slash("[NAME]", "list branches, use one, or begin one", _branch),
    "revert": Slash("N", "go back to turn N, on a new branch", _revert),
    "undo": Slash("", "take back what was said last", _undo),
    "resume": Slash("", "go on with a turn that was cut off", _resume),
    "usage": Slash("", "tokens and cost", _usage),
    "help": Slash("", "this list", _help),
    "quit": Slash("", "leave; the conversation is kept", _quit),
}
_ALIASES = {"exit": "quit", "q": "quit", "bye": "quit", "h": "help", "?": "help", "": "help"}
