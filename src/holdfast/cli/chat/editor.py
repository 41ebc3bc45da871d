"""The prompt, edited with prompt_toolkit: history, several lines, Tab.

Enter sends. Alt-Enter (or Esc, then Enter) begins a new line, and so does Enter behind a backslash.
What is pasted stays together, however many lines it has.
"""

from collections.abc import AsyncGenerator, Callable, Iterable

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import History
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.shortcuts import CompleteStyle

from holdfast.cli.chat.lines import Lines

Complete = Callable[[str], Iterable[str]]


class Editor:
    """Asks for what is said next."""

    def __init__(self, lines: Lines, complete: Complete, *, has_color: bool) -> None:
        self._session: PromptSession[str] = PromptSession(
            FormattedText([("bold" if has_color else "", "> ")]),
            multiline=True,
            prompt_continuation="  ",
            key_bindings=_keys(),
            history=_History(lines),
            completer=_Completer(complete),
            complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE,  # takes no room below the prompt
            color_depth=None if has_color else ColorDepth.DEPTH_1_BIT,
        )

    async def ask(self) -> str:
        """What was typed; EOFError for Ctrl-D, KeyboardInterrupt for Ctrl-C."""
        return await self._session.prompt_async()


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.char_before_cursor == "\\" and buffer.document.is_cursor_at_the_end:
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


class _History(History):
    def __init__(self, lines: Lines) -> None:
        super().__init__()
        self._lines = lines

    async def load(self) -> AsyncGenerator[str, None]:
        """All are here already: nothing has to be read in a thread."""
        if not self._loaded:
            self._loaded_strings = list(self.load_history_strings())
            self._loaded = True
        for text in self._loaded_strings:
            yield text

    def load_history_strings(self) -> Iterable[str]:
        return reversed(self._lines.all)

    def store_string(self, string: str) -> None:
        self._lines.add(string)


class _Completer(Completer):
    def __init__(self, complete: Complete) -> None:
        self._complete = complete

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:  # noqa: ARG002
        typed = document.text_before_cursor
        start = len(typed) - len(typed.rpartition(" ")[2])
        for found in self._complete(typed):
            yield Completion(found, start - len(typed))
