"""How the benchmarks here measure: both sides in one run, taking turns, the best of many."""

import gc
import time
from collections.abc import Callable


def best_ns(sides: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The shortest time of each side in nanoseconds. They take turns, so that a slow moment of
    the machine meets them all; the collector rests meanwhile."""
    found = dict.fromkeys(sides, float("inf"))
    was_on = gc.isenabled()
    for _ in range(rounds):
        for name, run in sides.items():
            gc.collect()
            gc.disable()
            start = time.perf_counter_ns()
            run()
            found[name] = min(found[name], time.perf_counter_ns() - start)
            if was_on:
                gc.enable()
    return found


class Bars:
    """A table of ratios, each with the bar that it must not pass."""

    def __init__(self) -> None:
        self._missed = 0
        print(f"{'':<42}{'ours':>10}{'limit':>10}{'ratio':>8}{'bar':>7}")

    def row(self, name: str, ours: float, limit: float, bar: float, unit: str) -> None:
        """Print a row; `unit` stands behind both numbers."""
        ratio = ours / limit
        missed = ratio > bar
        self._missed += missed
        numbers = f"{ours:>10.1f}{limit:>10.1f}{ratio:>8.2f}{bar:>7.2f}"
        print(f"{name + ', ' + unit:<42}{numbers}{'  MISSED' if missed else ''}")

    def status(self, check: bool) -> int:
        """The exit status: with --check, 1 when a bar was missed. Prints one line of summary."""
        print("all bars met" if not self._missed else f"{self._missed} bars missed")
        return 1 if check and self._missed else 0
