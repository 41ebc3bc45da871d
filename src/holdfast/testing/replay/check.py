"""Judging a folder of recordings: the verdicts, and the table that tells them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.errors import InvalidInput
from holdfast.testing.replay import answers, cuts, follow
from holdfast.testing.replay.adapter import Adapter, Answer
from holdfast.testing.replay.recordings import Exchange, Recording, Unreadable, read_folder
from holdfast.testing.replay.sequences import next_of

# What a recording may do to the judge. It is told of the recording, and the others are judged.
_UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, InvalidInput)
SHARES = {"a": 1.0, "b": 1.0, "c": 0.98, "cut": 1.0}
MEANINGS = {
    "a": "answers read as they are",
    "b": "sendable again",
    "c": "next requests that say the same",
    "cut": "streams that fail when they are cut",
}


@dataclass(frozen=True)
class Verdict:
    """What was found about one exchange. A check that was not made is not in `made`."""

    exchange: Exchange
    made: tuple[str, ...] = ()
    wrong: Mapping[str, str] = field(default_factory=dict)
    explained: tuple[str, ...] = ()


@dataclass
class Report:
    """All verdicts."""

    verdicts: list[Verdict] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)

    def share(self, check: str) -> tuple[int, int]:
        """How many passed, of how many."""
        made = [verdict for verdict in self.verdicts if check in verdict.made]
        return sum(check not in verdict.wrong for verdict in made), len(made)

    @property
    def is_good(self) -> bool:
        """Whether everything that was judged is within its share, and something was."""
        if self.unreadable or not self.share("a")[1]:
            return False
        return all(
            passed >= SHARES[check] * made
            for check in SHARES
            for passed, made in [self.share(check)]
        )


def check_folder(
    folder: Path, adapters: Mapping[str, Adapter], *, cut_step: int | None = None
) -> Report:
    """Judge every recording below `folder`. With `cut_step`, streams are also cut (see `cuts`)."""
    report = Report()
    for recording in read_folder(folder):
        if isinstance(recording, Unreadable):
            report.unreadable.append(recording)
        else:
            report.verdicts += check_recording(recording, adapters, cut_step=cut_step)
    return report


def check_recording(
    recording: Recording, adapters: Mapping[str, Adapter], *, cut_step: int | None = None
) -> Iterator[Verdict]:
    """Judge the exchanges of one recording."""
    for exchange in recording.exchanges:
        adapter = adapters.get(exchange.wire or "")
        if exchange.why_not or adapter is None:
            yield Verdict(exchange)
        else:
            yield _check(recording, exchange, adapter, cut_step)


def _check(
    recording: Recording, exchange: Exchange, adapter: Adapter, cut_step: int | None
) -> Verdict:
    made, wrong, explained = ["a"], dict[str, str](), list[str]()
    try:
        answer, problem = answers.judge(exchange, adapter)
    except _UNREADABLE as error:
        answer, problem = None, f"the judge cannot read it: {type(error).__name__}: {error}"
    if problem is not None:
        wrong["a"] = problem
    if answer is not None:
        try:
            explained = _check_history(recording, exchange, answer, adapter, made, wrong)
        except _UNREADABLE as error:
            made = [
                *dict.fromkeys([*made, "c"])
            ]  # a request that cannot be judged is no request that passed
            wrong["c"] = f"the judge cannot read a request: {type(error).__name__}: {error}"
    if cut_step and exchange.is_stream and exchange.status < 400:
        made.append("cut")
        if (first := next(cuts.judge(exchange, adapter, cut_step), None)) is not None:
            wrong["cut"] = first
    return Verdict(exchange, tuple(made), wrong, tuple(explained))


def _check_history(
    recording: Recording,
    exchange: Exchange,
    answer: Answer,
    adapter: Adapter,
    made: list[str],
    wrong: dict[str, str],
) -> list[str]:
    """(b) and (c), noted in `made` and `wrong`; what was explained."""
    made.append("b")
    if (problem := follow.judge_sendable(exchange, answer, adapter)) is not None:
        wrong["b"] = problem
    if (following := next_of(recording, exchange.number)) is None:
        return []
    made.append("c")
    problem, explained = follow.judge_next(exchange, answer, following, adapter)
    if problem is not None:
        wrong["c"] = problem
    return explained


# The table


def table(report: Report) -> Iterator[str]:
    """The report, line by line; the last line is the share that passed."""
    judged = [verdict for verdict in report.verdicts if verdict.made]
    yield _row("vendor", "tag", "files", "exchanges", *(f"({check})" for check in SHARES))
    for provider in sorted({verdict.exchange.provider for verdict in judged}):
        own = [verdict for verdict in judged if verdict.exchange.provider == provider]
        yield _counted(provider, "all", own)
        for tag in sorted({tag for verdict in own for tag in verdict.exchange.tags}):
            yield _counted(provider, tag, [v for v in own if tag in v.exchange.tags])
    yield from _not_judged(report)
    yield from _told(judged, report.unreadable)
    yield _last(report)


def _row(*cells: object) -> str:
    widths = (18, 24, 6, 10, 10, 10, 10, 10)
    return "  ".join(
        str(cell).ljust(width) for cell, width in zip(cells, widths, strict=True)
    ).rstrip()


def _counted(provider: str, tag: str, verdicts: list[Verdict]) -> str:
    files = {verdict.exchange.file for verdict in verdicts}
    cells = []
    for check in SHARES:
        passed, made = Report(verdicts).share(check)
        cells.append(f"{passed}/{made}" if made else "-")
    return _row(provider, tag, len(files), len(verdicts), *cells)


def _not_judged(report: Report) -> Iterator[str]:
    counts: dict[tuple[str, str], int] = {}
    for verdict in report.verdicts:
        if not verdict.made:
            why = verdict.exchange.why_not or "no adapter"
            key = (verdict.exchange.provider, why)
            counts[key] = counts.get(key, 0) + 1
    for (provider, why), count in sorted(counts.items()):
        yield f"{provider}: {count} exchanges not judged: {why}"


def _told(judged: Iterable[Verdict], unreadable: Iterable[Unreadable]) -> Iterator[str]:
    for file in unreadable:
        yield f"unreadable: {file.file}: {file.why}"
    for verdict in judged:
        for reason in verdict.explained:
            yield f"explained (c) {verdict.exchange.name}: {reason}"
    for verdict in judged:
        for check, problem in verdict.wrong.items():
            yield f"FAILED ({check}) {verdict.exchange.name}: {problem}"


def _last(report: Report) -> str:
    said = []
    for check, words in MEANINGS.items():
        passed, made = report.share(check)
        if made:
            said.append(f"({check}) {words} {_percent(passed, made)} of {made}")
    passed = sum(report.share(check)[0] for check in SHARES)
    made = sum(report.share(check)[1] for check in SHARES)
    whole = f"passed {_percent(passed, made)} of {made} checks" if made else "nothing was judged"
    return "; ".join([whole, *said])


def _percent(passed: int, made: int) -> str:
    """Never rounded up to 100 %."""
    return f"{int(10_000 * passed / made) / 100:g} %"
