"""How bench/window.py prints: policies at each window, bars, and one line at the end."""

from collections.abc import Sequence

from window_billing import Outcome

HEAD = (
    f"  {'':<24}{'cost':>9}{'/ trim':>8}{'read':>7}{'fill':>7}{'worst':>7}{'lost':>7}{'folds':>7}"
    f"   {'early':>6}{'middle':>7}{'late':>6}{'all':>7}"
)


def row(name: str, outcome: Outcome, ratio: float) -> str:
    """The line of one policy; `ratio` is its cost against that of trimming at the same fill."""
    early, middle, late, all_facts = outcome.retention
    return (
        f"  {name:<24}{outcome.cost / 1e3:>9,.0f}{ratio:>8.3f}{outcome.read_share:>7.1%}"
        f"{outcome.fill:>7.2f}{outcome.worst_fill:>7.2f}{outcome.lost_share:>7.0%}"
        f"{outcome.folds_a_hundred_turns:>7.1f}"
        f"   {early:>6.0%}{middle:>7.0%}{late:>6.0%}{all_facts:>7.1%}"
    )


class Bars:
    """What has to hold, with what was found. A bar is the most or the least that it may be."""

    def __init__(self) -> None:
        self.missed: list[str] = []
        self.met = 0

    def most(self, name: str, found: float, bar: float) -> None:
        self._row(name, found, f"<= {bar:g}", is_met=found <= bar)

    def least(self, name: str, found: float, bar: float) -> None:
        self._row(name, found, f">= {bar:.4g}", is_met=found >= bar)

    def _row(self, name: str, found: float, bar: str, *, is_met: bool) -> None:
        if is_met:
            self.met += 1
        else:
            self.missed.append(name)
        verdict = "ok" if is_met else "MISSED"
        print(f"  {name:<58}{found:>10.4g}  {bar:<11}{verdict}", flush=True)

    @property
    def verdict(self) -> str:
        """How many bars were met."""
        if not self.missed:
            return f"all {self.met} bars met"
        return f"{len(self.missed)} of {self.met + len(self.missed)} bars missed"

    def summary(self, words: Sequence[str]) -> str:
        """The last line: how many bars were met, and the numbers that matter."""
        return f"window: {'; '.join([self.verdict, *words])}"
