"""The number of tests must not fall unnoticed.

`count.txt` is a log. Each line is `<number> <reason>`, and the last line counts: a full run
that accounts for fewer tests fails. A test is accounted for when it passed, or when it was skipped
by name with its reason, as where the recorded traffic is not at hand. Tests that are lost by
accident (a renamed file, a misspelled name) then show up. Who takes tests away on purpose adds a
line that says why.

Everything here is pure; `conftest.py` feeds it with what pytest reports.
"""

import re
from dataclasses import dataclass, field
from itertools import pairwise

LOWERING_REASON_LENGTH_MIN = 10
RECORD_COMMAND = 'scripts/test --record "reason"'


@dataclass(frozen=True)
class Line:
    """One line of the log: from here on, `number` tests have to pass."""

    number: int
    reason: str


@dataclass(frozen=True)
class Verdict:
    """Whether the run may pass, and the sentence that says so. Nothing to say is ''."""

    ok: bool
    sentence: str = ""


@dataclass
class Tally:
    """What happened in a run. `skipped` and `xfailed` hold a test's name and its reason."""

    passed: int = 0
    failed: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)
    xfailed: list[tuple[str, str]] = field(default_factory=list)

    @property
    def accounted(self):
        """The tests that passed, and those that said why they did not run."""
        return self.passed + sum(1 for _, reason in self.skipped if reason.strip())


def parse(text):
    """Read the log. A line that is not `<number> <reason>` is a ValueError with its place."""
    lines = []
    for place, row in enumerate(text.splitlines(), start=1):
        match = re.fullmatch(r"([0-9]+) +(\S.*)", row)
        if match is None:
            raise ValueError(f"line {place} is not '<number> <reason>': {row!r}")
        lines.append(Line(int(match[1]), match[2].rstrip()))
    if not lines:
        raise ValueError("the log is empty: it needs at least one line")
    return lines


def problems(lines):
    """Return a sentence for each line that lowers the number without a real reason."""
    return [
        f"line {place} lowers the number from {before.number} to {after.number} with the reason "
        f"{after.reason!r}: say why, in {LOWERING_REASON_LENGTH_MIN} characters or more"
        for place, (before, after) in enumerate(pairwise(lines), start=2)
        if after.number < before.number and len(after.reason) < LOWERING_REASON_LENGTH_MIN
    ]


def judge(lines, passed, where="tests/count.txt"):
    """Compare the number of tests accounted for with the last line of the log."""
    expected = lines[-1].number
    if passed < expected:
        return Verdict(
            False,
            f"{passed} tests are accounted for, and {where} says {expected}: find those that are "
            f"missing, or say why they are gone with {RECORD_COMMAND}",
        )
    if passed > expected:
        return Verdict(
            True, f"{passed} tests, and {where} says {expected}: record it with {RECORD_COMMAND}"
        )
    return Verdict(True)


def record(text, passed, reason):
    """Return the log with a line for `passed` tests, or the same log if nothing changed.

    A reason that the log would not accept is a ValueError.
    """
    lines = parse(text)
    if lines[-1].number == passed:
        return text
    row = f"{passed} {' '.join(reason.split())}"
    longer = text if text.endswith("\n") else text + "\n"
    longer += row + "\n"
    found = set(problems(parse(longer))) - set(problems(lines))
    if found:
        raise ValueError(found.pop())
    return longer


def summary(tally):
    """Return the lines that say what ran, and what was skipped and why."""
    numbers = [f"{tally.passed} passed"]
    numbers += [f"{tally.failed} failed"] if tally.failed else []
    numbers += [f"{len(tally.skipped)} skipped"]
    numbers += [f"{len(tally.xfailed)} failed as expected"] if tally.xfailed else []
    lines = ["tests: " + ", ".join(numbers)]
    lines += [f"skipped: {name}: {reason}" for name, reason in sorted(tally.skipped)]
    lines += [f"failed as expected: {name}: {reason}" for name, reason in sorted(tally.xfailed)]
    return lines
