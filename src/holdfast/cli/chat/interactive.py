"""A conversation at a terminal: one thing after another, until somebody leaves."""

from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.cli import failures
from holdfast.cli.chat import greeting, outcomes, reports, slash
from holdfast.cli.chat.interrupts import Presses
from holdfast.cli.chat.prompt import Prompt
from holdfast.cli.chat.talk import Talk
from holdfast.cli.screen import one_line, safe

if TYPE_CHECKING:
    from holdfast.results import TurnResult

_PRESSES = 2  # of Ctrl-C, one after the other, to leave


class Interactive:
    """What is typed is said, or carried out. What fails is told, and the prompt comes back."""

    def __init__(self, talk: Talk, prompt: Prompt, *, go_on: str, is_quiet: bool = False) -> None:
        """`go_on` is the command that continues the latest conversation."""
        self._talk = talk
        self._prompt = prompt
        self._go_on = go_on
        self._is_quiet = is_quiet
        self._ctrl_c = Presses()

    async def run(self, why: str) -> None:
        """Until somebody leaves. `why` says who answers."""
        with self._ctrl_c:
            await self._run(why)

    async def _run(self, why: str) -> None:
        if not self._is_quiet:
            await greeting.greet(self._talk, why)
        if self._talk.pending:
            await self._act("/resume")
        presses = 0
        while presses < _PRESSES:
            if not presses:
                self._ctrl_c.forget()  # it was for what is over
            try:
                typed = await self._typed()
            except EOFError:
                break
            if typed is None:
                presses += 1
                self._ctrl_c.forget()
                if presses < _PRESSES:
                    self._talk.screen.note("Ctrl-C again leaves, and so does Ctrl-D")
                continue
            presses = 0
            if not await self._act(typed):
                break
        self._say_goodbye()

    async def _typed(self) -> str | None:
        """What was typed; None for Ctrl-C, also where the prompt is only about to come."""
        typed = None

        async def ask() -> None:
            nonlocal typed
            with suppress(KeyboardInterrupt):  # it would end the loop, were it to leave the task
                typed = await self._prompt.ask()

        await self._ctrl_c.stopping(ask())
        return typed

    async def _act(self, typed: str) -> bool:
        """Whether to go on."""
        from holdfast.errors import HoldfastError

        said = slash.read(typed)
        try:
            if not await self._ctrl_c.stopping(self._do(said)):
                self._talk.screen.note("[stopped]", "yellow")
        except slash.Leave:
            return False
        except BrokenPipeError:
            raise
        except (HoldfastError, failures.Failure, OSError) as error:
            self._talk.screen.note(f"error: {failures.sentence(error)}", "red")
            if said.is_turn and self._talk.has_left:
                self._talk.screen.note("what you said is kept: Enter or /resume tries again")
        return True

    async def _do(self, said: slash.Said) -> None:
        if said.is_nothing:
            if self._talk.has_left:
                self._tell(await outcomes.go_on(self._talk))
        elif said.words:
            self._tell(await outcomes.settle(self._talk, await self._talk.say(said.words)))
        elif said.command == "resume":
            self._tell(await outcomes.go_on(self._talk))
        else:
            await slash.obey(self._talk, said)

    def _tell(self, result: "TurnResult") -> None:
        screen = self._talk.screen
        if told := outcomes.told(result):
            screen.note(safe(told), "yellow")
        if not self._is_quiet and result.usage.total is not None:
            screen.note(f"[{reports.in_words(result.usage, result.cost)}]")
        screen.note("")

    def _say_goodbye(self) -> None:
        session, screen = self._talk.session, self._talk.screen
        if session is None or self._is_quiet:
            return
        key = one_line(session.key, 80)
        if self._talk.is_kept:
            screen.note(f"{key} is kept: {self._go_on} goes on with it")
        else:
            screen.note("nothing of this is kept, as you wanted")
