"""What went wrong: one sentence for people, one number for programs."""

import errno
import os
import sys
import traceback

import click

from holdfast import errors

FAILED = 1
USAGE = 2
NOT_FOUND = 3
BUSY = 4
DAMAGED = 5
REFUSED = 6
INTERRUPTED = 130
CLOSED_PIPE = 141

# The first that fits counts.
_STATUSES: tuple[tuple[type[BaseException], int], ...] = (
    (errors.SessionNotFound, NOT_FOUND),
    (errors.SessionExpired, NOT_FOUND),
    (errors.Busy, BUSY),
    (errors.Conflict, BUSY),
    (errors.LeaseLost, BUSY),
    (errors.DuplicateSession, BUSY),
    (errors.Corrupt, DAMAGED),
    (errors.NotCopied, DAMAGED),
    (errors.ProviderError, REFUSED),
    (errors.InvalidInput, USAGE),
    (errors.TooLarge, USAGE),
    (errors.Unsupported, USAGE),
    (errors.Cancelled, INTERRUPTED),
    (KeyboardInterrupt, INTERRUPTED),
    (click.Abort, INTERRUPTED),
    (FileNotFoundError, NOT_FOUND),
)


class Failure(Exception):
    """A command cannot go on; the words end with the way out."""

    def __init__(self, words: str, status: int = FAILED) -> None:
        super().__init__(words, status)
        self.words = words
        self.status = status

    def __str__(self) -> str:
        return self.words


def status_of(error: BaseException) -> int:
    """The exit status for an error."""
    if isinstance(error, Failure):
        return error.status
    if isinstance(error, click.ClickException):
        return error.exit_code
    for kind, status in _STATUSES:
        if isinstance(error, kind):
            return status
    return FAILED


def words_of(error: BaseException) -> str:
    """One sentence about an error, with the way out."""
    if isinstance(error, click.ClickException):
        return _usage_words(error)
    if isinstance(error, Failure | errors.HoldfastError):
        return str(error)
    if isinstance(error, OSError):
        return _system_words(error)
    return (
        f"this is a fault of holdfast itself ({type(error).__name__}: {error}): "
        "run it again with --debug, and report what it shows"
    )


def sentence(error: BaseException) -> str:
    """The same for people: harmless, and in one line, whatever was stored or received."""
    from holdfast.cli.screen import safe

    return " ".join(line.strip() for line in safe(words_of(error)).splitlines())


def report(error: BaseException, *, is_debug: bool = False) -> int:
    """Say on stderr what went wrong; the exit status."""
    from holdfast.cli.screen import Screen, end_line

    end_line()
    status = status_of(error)
    if is_debug:
        traceback.print_exception(error)
    elif isinstance(error, click.exceptions.NoArgsIsHelpError):  # nothing was asked for: no error
        print(error.format_message(), file=sys.stderr)
    elif status == INTERRUPTED:
        print("interrupted", file=sys.stderr)
    else:
        Screen("never").note(f"error: {sentence(error)}")
    return status


def _usage_words(error: click.ClickException) -> str:
    words = error.format_message().rstrip(".")
    context = getattr(error, "ctx", None)
    path = "holdfast" if context is None else context.command_path
    return f"{words}: see {path} --help"


def _system_words(error: OSError) -> str:
    what = error.strerror or str(error) or type(error).__name__
    where = f"{os.fspath(error.filename)}: " if isinstance(error.filename, str) else ""
    way_out = {
        errno.ENOSPC: "free some space and try again; what was stored is safe",
        errno.EDQUOT: "free some space and try again; what was stored is safe",
        errno.EACCES: "change its permissions, or name another place",
        errno.EPERM: "change its permissions, or name another place",
        errno.EROFS: "name a place that can be written to",
        errno.ENOENT: "check the name",
        errno.EBADF: "leave stdout open, or send it to /dev/null",
        errno.EEXIST: "name another place, or remove what is there",
    }.get(error.errno or 0, "correct that and try again")
    return f"{where}{what[0].lower()}{what[1:]}: {way_out}"
