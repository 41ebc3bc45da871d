"""Asking before something is removed."""

import sys

import click

from holdfast.cli.failures import FAILED, USAGE, Failure
from holdfast.cli.screen import safe


def confirm(question: str, *, is_yes: bool) -> None:
    """Go on if it was said beforehand, or is said now; Failure if not, or if nobody can be asked.

    The question goes to stderr: stdout is data.
    """
    if is_yes:
        return
    if not sys.stdin.isatty():
        raise Failure("nobody can be asked here: say --yes, or look first with --dry-run", USAGE)
    from holdfast.cli.chat.interrupts import raising

    try:
        with raising():
            is_agreed = click.confirm(safe(question), err=True)
    except click.Abort:
        print(file=sys.stderr)  # behind the question
        raise
    if not is_agreed:
        raise Failure("nothing was removed: you said no", FAILED)
