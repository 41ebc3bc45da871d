"""The program `holdfast`: conversations on the command line.

What a program may read goes to stdout, everything else (progress, notes, errors) to stderr. An
error is one sentence that ends with the way out. The exit statuses are stable:

    0    done
    1    it could not be done: the disk is full, the store cannot be reached
    2    wrong arguments, or settings that make no sense
    3    no such session, store or file, or a name that means several
    4    somebody else is at it: a turn runs, or another program wrote first
    5    damaged data
    6    the model's service refused or could not be reached
    130  interrupted with Ctrl-C
    141  whoever read our output went away

`program` knows the commands, `commands/` has one file for each, and nothing is imported before it
is needed: a list of sessions loads no provider.
"""

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program with these arguments, or those of the process; its exit status."""
    from holdfast.cli.program import run

    return run(arguments)
