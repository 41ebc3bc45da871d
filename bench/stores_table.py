"""How bench/stores.py measures and prints: rounds in which the sides take turns, and medians."""

import os
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

Side = Callable[[int], Awaitable[list[float]]]


def quantile(values: Sequence[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


async def medians(sides: Mapping[str, Side], rounds: int) -> dict[str, list[float]]:
    """The median time of each side in each round, in seconds. In a round every side has its turn,
    so that a slow moment of the machine meets them all."""
    found: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds):
        names = list(sides) if number % 2 else list(sides)[::-1]
        for name in names:
            found[name].append(statistics.median(await sides[name](number)))
    return found


def ratio(ours: Sequence[float], raw: Sequence[float]) -> float:
    """How much more ours is, round by round; the median of that."""
    return statistics.median(a / b for a, b in zip(ours, raw, strict=True))


def sync_us(folder: Path) -> float:
    """What this disk takes to make three pages durable; the median, in microseconds."""
    path = folder / "sync"
    times = []
    with path.open("wb", buffering=0) as file:
        file.write(bytes(4_096 * 256))
        os.fsync(file.fileno())
        for number in range(300):
            file.seek(4_096 * 3 * (number % 80))
            file.write(os.urandom(4_096 * 3))
            start = time.perf_counter()
            os.fdatasync(file.fileno()) if hasattr(os, "fdatasync") else os.fsync(file.fileno())
            times.append(time.perf_counter() - start)
    path.unlink()
    return statistics.median(times) * 1e6


class Table:
    """Figures beside their limits. A bar is the most or the least that a ratio may be."""

    def __init__(self) -> None:
        self.missed: list[str] = []
        self._title = ""
        print(f"{'':<50}{'ours':>11}{'raw':>11}{'ratio':>8}  {'bar':<8}")

    def title(self, words: str) -> None:
        self._title = words
        print(f"\n{words}", flush=True)

    def row(
        self,
        name: str,
        ours: float,
        raw: float | None = None,
        ratio: float | None = None,
        *,
        most: float | None = None,
        least: float | None = None,
    ) -> None:
        """Print a row. Without a raw figure, `ours` itself is held against the bar."""
        if ratio is None:
            ratio = ours if raw is None else ours / raw
        bar, verdict = "", ""
        if most is not None or least is not None:
            bar = f"<= {most:g}" if most is not None else f">= {least:g}"
            is_met = ratio <= most if most is not None else ratio >= (least or 0)
            verdict = "ok" if is_met else "MISSED"
            if not is_met:
                self.missed.append(f"{self._title}: {name.strip()}")
        shown = "" if raw is None else _number(raw)
        part = "" if raw is None and ratio == ours else f"{ratio:.2f}"
        line = f"  {name:<48}{_number(ours):>11}{shown:>11}{part:>8}  {bar:<8}{verdict}"
        print(line.rstrip(), flush=True)

    def note(self, words: str) -> None:
        print(f"  {words}", flush=True)

    def status(self, check: bool) -> int:
        """The exit status: with --check, 1 when a bar was missed."""
        print(f"\n{len(self.missed)} bars missed" if self.missed else "\nall bars met")
        for name in self.missed:
            print(f"  {name}")
        return 1 if check and self.missed else 0


def _number(value: float) -> str:
    if value >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
