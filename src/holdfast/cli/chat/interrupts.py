"""Ctrl-C: it cancels what runs, which keeps what it has; pressed again it ends the program."""

import asyncio
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, Self

if TYPE_CHECKING:
    from holdfast.cancel import CancelToken


class Presses:
    """Ctrl-C in a conversation, from its first prompt to its last, where nothing else hears it.

    What is being done is stopped, and the prompt comes back. Between two things there is nothing to
    stop: who presses a moment too late does not leave. Pressed again before the prompt is there, it
    ends the program.
    """

    def __init__(self) -> None:
        self._work: asyncio.Task[None] | None = None
        self._is_pressed = False

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._pressed)
        return self

    def __exit__(self, *_: object) -> None:
        _hand_back(self._pressed, self._before)

    def forget(self) -> None:
        """What was pressed until now is over."""
        self._is_pressed = False

    def was_pressed(self) -> bool:
        """Since it was forgotten."""
        return self._is_pressed

    async def stopping(self, work: Coroutine[Any, Any, None]) -> bool:
        """Do this, unless it was pressed already; whether it came to its end."""
        if self.was_pressed():
            work.close()
            return False
        self._work = asyncio.get_running_loop().create_task(work)
        try:
            await self._work
        except asyncio.CancelledError:
            if not self.was_pressed():  # we are cancelled ourselves
                raise
            return False
        finally:
            self._work = None
        return True

    def _pressed(self, *_: object) -> None:
        if self._is_pressed:
            _end_program()
        self._is_pressed = True
        if self._work is not None:
            self._work.get_loop().call_soon_threadsafe(self._work.cancel)


@contextmanager
def cancelling(token: "CancelToken") -> Iterator[None]:
    """Inside, Ctrl-C cancels this token."""

    def pressed(*_: object) -> None:
        if not token.cancel("Ctrl-C was pressed"):
            _end_program()

    with _handled_by(pressed):
        yield


@contextmanager
def raising() -> Iterator[None]:
    """Inside, Ctrl-C is KeyboardInterrupt at once, as it is for a program without an event loop.

    For whatever waits for somebody without the loop: a key, or what is piped in.
    """
    with _handled_by(signal.default_int_handler):
        yield


@contextmanager
def _handled_by(handler: "signal._HANDLER") -> Iterator[None]:
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        _hand_back(handler, before)


def _hand_back(ours: "signal._HANDLER", before: "signal._HANDLER") -> None:
    """Let those hear of it who did before us, unless the program is being ended."""
    if signal.getsignal(signal.SIGINT) == ours:
        signal.signal(signal.SIGINT, before)


def _end_program() -> NoReturn:
    """It may be anything that is interrupted, the event loop itself among it: what is cleaned up
    behind it must not bring back a handler of a loop that is gone."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    raise KeyboardInterrupt
