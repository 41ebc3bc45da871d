"""The next thing that is said. With prompt_toolkit if it is installed, else with plain `input`."""

import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import Protocol

from holdfast.cli import config
from holdfast.cli.chat.interrupts import raising
from holdfast.cli.chat.lines import Lines
from holdfast.cli.chat.slash import complete
from holdfast.cli.screen import Screen


class Prompt(Protocol):
    """Asks for what is said next."""

    async def ask(self) -> str:
        """What was typed; EOFError for Ctrl-D, KeyboardInterrupt for Ctrl-C."""
        ...


def prompt_for(screen: Screen, *, is_kept: bool) -> Prompt:
    """The best prompt there is here; with `is_kept`, what is typed is there the next time too."""
    lines = Lines(config.state_folder() / "chat-history" if is_kept else None)
    if not screen.can_rewrite:
        return Plain(lines)
    if find_spec("prompt_toolkit") is None:
        screen.note("a better prompt comes with `pip install 'holdfast[chat]'`")
        return Plain(lines)
    from holdfast.cli.chat.editor import Editor

    return Editor(lines, complete, has_color=screen.has_color)


class Plain:
    """One line at a time; a backslash at its end begins another."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        if os.environ.get("TERM", "dumb") != "dumb":
            _use_readline(lines)

    async def ask(self) -> str:
        """The loop stands still meanwhile: nothing runs in it that somebody waits for."""
        with raising():
            said = [input("> ")]  # noqa: ASYNC250
            while said[-1].endswith("\\"):
                said[-1] = said[-1][:-1]
                said.append(input("  "))  # noqa: ASYNC250
        text = "\n".join(said)
        if text:
            self._lines.add(text)
        return text


def _use_readline(lines: Lines) -> None:
    try:
        import readline
    except ImportError:  # Windows has none
        return
    readline.clear_history()
    for text in lines.all:
        if "\n" not in text:
            readline.add_history(text)
    readline.set_completer_delims(" ")
    readline.set_completer(_completer(readline.get_line_buffer))
    readline.parse_and_bind("tab: complete")


def _completer(line: Callable[[], str]) -> Callable[[str, int], str | None]:
    """In readline's own way: asked for one after the other, until there is none."""

    def found(_: str, number: int) -> str | None:
        candidates = list(complete(line()))
        return candidates[number] if number < len(candidates) else None

    return found
