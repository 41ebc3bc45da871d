"""What a turn says, as it comes: words to stdout, everything else to stderr.

On a terminal a line that is rewritten tells what goes on: what the model thinks, which tool runs.
Of thoughts one line is left, and one of each tool, with how it ended. Anywhere else there are the
words of the answer and nothing more.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from holdfast.cli.screen import Screen, columns, counted, one_line, safe

if TYPE_CHECKING:
    from holdfast.events import Event
    from holdfast.messages import Message, ToolCall

_ARGUMENTS_COLUMNS = 60


class Display:
    """Hears the events of one turn. `error` is what went wrong with showing them."""

    def __init__(
        self,
        screen: Screen,
        *,
        waits_for: str = "",
        calls: "Sequence[ToolCall]" = (),
        is_shown: bool = True,
    ) -> None:
        """`calls` are those that waited before this turn went on."""
        self.error: OSError | None = None
        self._screen = screen
        self._is_shown = is_shown
        self._live = Live(screen)
        self._calls = {call.id: call for call in calls}
        self._thought = ""
        self._is_line_open = False
        self._live.show(f"{waits_for} …" if waits_for else "")

    def tell(self, event: "Event") -> bool:
        """Show it; False stops the turn, as there is nobody left to be shown anything."""
        try:
            self._tell(event)
        except OSError as error:
            self.error = self.error or error
            return False
        return True

    def close(self) -> None:
        """No more comes."""
        try:
            self._live.clear()
            self._end_thought()
            self._end_line()
            sys.stdout.flush()
        except OSError as error:
            self.error = self.error or error

    def _tell(self, event: "Event") -> None:
        from holdfast import events

        match event:
            case events.TextDelta(text=text):
                if text and self._is_shown:
                    self._say(text)
            case events.ThinkingDelta(text=text):
                self._thought += text
                self._live.show(f"thinking: {self._thought.rstrip().rpartition(chr(10))[2]}")
            case events.ToolCallReady(call=call):
                self._end_thought()
                self._calls[call.id] = call
                self._live.show(f"{call_in_words(call)} …")
            case events.ToolResult(message=message):
                self._end_call(message)
            case events.Retrying(error=error, attempt=attempt, attempts_max=most, delay_s=delay):
                self._note(f"{error}; again in {delay:.0f} s ({attempt} of {most})")
            case events.Folded(folds=folds):
                why = next((fold.why for fold in folds if fold.why), "to make room")
                self._note(f"the model is shown less of what was said before: {why}")
            case _:
                pass

    def _say(self, text: str) -> None:
        self._live.clear()
        self._end_thought()
        shown = safe(text.replace("\r\n", "\n"))
        self._screen.print(shown, end="")
        sys.stdout.flush()
        self._is_line_open = not shown.endswith("\n")

    def _end_call(self, message: "Message") -> None:
        for result in message.results:
            call = self._calls.pop(result.call_id or "", None)
            name = result.name or "a tool" if call is None else call_in_words(call)
            sign = self._screen.sign
            ended, style = (sign("✓", "ok:"), "dim")
            if result.is_error:
                ended, style = (sign("✗", "failed:"), "red")
            said = one_line(message.text or "nothing", self._screen.width)
            self._note(f"{ended} {name} {sign('→', '->')} {said}", style)
        if self._calls:
            self._live.show(f"{call_in_words(next(iter(self._calls.values())))} …")

    def _end_thought(self) -> None:
        words, self._thought = len(self._thought.split()), ""
        if words:
            self._note(f"[thought, {counted(words, 'word')}]")

    def _note(self, text: str, *styles: str) -> None:
        """A line of its own, for people at a terminal."""
        self._live.clear()
        self._end_line()
        if self._screen.is_terminal:
            self._screen.note(one_line(text, self._screen.width - 1), *styles)

    def _end_line(self) -> None:
        if self._is_line_open:
            self._screen.print()
            sys.stdout.flush()
            self._is_line_open = False


class Live:
    """A line on stderr that is rewritten; nothing, where nobody would see that."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._shown = ""

    def show(self, text: str) -> None:
        """This in the place of what was there. Always one line, narrower than the terminal."""
        if self._screen.can_rewrite:
            self._write(one_line(text, self._screen.width - 1))

    def clear(self) -> None:
        """Nothing is there, and the next word begins where it was."""
        if self._shown:
            self._write("")
            print("\r", end="", file=sys.stderr, flush=True)

    def _write(self, text: str) -> None:
        blank = " " * max(0, columns(self._shown) - columns(text))
        styled = self._screen.styled(text, "dim", on=sys.stderr)
        print(f"\r{styled}{blank}", end="", file=sys.stderr, flush=True)
        self._shown = text


def call_in_words(call: "ToolCall") -> str:
    """A call as a program would write it: read_file(path="notes.txt")."""
    import json

    try:
        given = json.loads(call.arguments or "{}")
    except ValueError:
        given = None
    shown = call.arguments
    if isinstance(given, Mapping):
        shown = ", ".join(f"{n}={json.dumps(v, ensure_ascii=False)}" for n, v in given.items())
    return f"{one_line(call.name, 60)}({one_line(shown, _ARGUMENTS_COLUMNS)})"
