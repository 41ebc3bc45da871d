"""What is asked: words on the command line, what comes through a pipe, or both.

The words come first; what was piped stands behind them as a block of its own, so that a model can
tell one from the other:

    what failed?

    <stdin>
    ERROR: no such file
    </stdin>
"""

import sys
from collections.abc import Callable, Sequence

from holdfast.cli.chat.interrupts import raising
from holdfast.cli.failures import USAGE, Failure

BYTES_MAX = 4 * 1024 * 1024  # more than a million tokens: no model reads as much
STDIN = "-"


def question(words: Sequence[str], note: Callable[[str], object]) -> str | None:
    """What is asked, or None where a conversation is wanted instead.

    `note` hears of bytes that had to be replaced.
    """
    said = " ".join(word for word in words if word != STDIN)
    is_read = STDIN in words or is_piped()
    if not words and not is_read:
        return None
    piped = _read(note) if is_read else ""
    if said.strip() and piped.strip():
        return f"{said}\n\n<stdin>\n{piped}\n</stdin>"
    found = said if said.strip() else piped
    if not found.strip():
        raise Failure("nothing was asked: write it behind chat, or pipe it in", USAGE)
    return found


def is_piped() -> bool:
    """Whether something other than a terminal is to be read."""
    return not is_closed() and not sys.stdin.isatty()


def is_closed() -> bool:
    """Whether there is nothing to read from at all."""
    stdin: object = sys.stdin
    return stdin is None or sys.stdin.closed


def _read(note: Callable[[str], object]) -> str:
    if is_closed():
        return ""
    with raising():
        data = sys.stdin.buffer.read(BYTES_MAX + 1)
    if len(data) > BYTES_MAX:
        raise Failure(
            f"more than {BYTES_MAX // 1024**2} MB were piped in, which no model can read: pass a "
            "part of it, as in `tail -c 100000 log | holdfast chat …`",
            USAGE,
        )
    try:
        return data.decode("utf-8").rstrip("\n")
    except UnicodeDecodeError:
        note("what was piped in is not all UTF-8: the rest was replaced by U+FFFD")
        return data.decode("utf-8", "replace").rstrip("\n")
