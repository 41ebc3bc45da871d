"""Ctrl-C: it cancels what runs, which keeps what it has; pressed again it ends the program."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.cancel import CancelToken


@contextmanager
def cancelling(token: "CancelToken") -> Iterator[None]:
    """Inside, Ctrl-C cancels this token."""

    def pressed(*_: object) -> None:
        if not token.cancel("Ctrl-C was pressed"):
            raise KeyboardInterrupt

    with _handled_by(pressed):
        yield


@contextmanager
def raising() -> Iterator[None]:
    """Inside, Ctrl-C is KeyboardInterrupt at once, as it is for a program without an event loop."""
    with _handled_by(signal.default_int_handler):
        yield


@contextmanager
def _handled_by(handler: "signal._HANDLER") -> Iterator[None]:
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
