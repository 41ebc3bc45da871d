"""What does a window policy cost, with prompts cached, and what does the model still see?

    python bench/window.py [--conversations FOLDER] [--windows 8000,32000,128000] [--all]
                           [--only replay|speed] [--rounds 7] [--check]

Conversations are replayed turn by turn. Each message of the assistant is one call of a model, and
before each the policy is asked what to fold. A prompt is billed as vendors do who cache prompts:
the messages that the prompt before it began with too cost 0.10 of the price of input, all others
1.25. Summaries are calls of their own: what they read costs 1, what they write 5, and they tell
nothing of what was planted. Answers cost the same for all and are left out.

Conversations are those in FOLDER (`$HOLDFAST_CORPUS/conversations`, or that of the corpus beside
the project), a conversation a line in `*.jsonl` or `*.jsonl.gz`; where there are none, they are
made up. At a window, sessions are the conversations of at least four windows of tokens, and the
short dialogues, strung together in order until there are 200 turns and four windows; the first
system prompt stays. Sessions in which one turn is larger than the window are told apart. With more
than fifty sessions, fifty are taken, evenly from the list; --all takes all.

The policies:

- everything: as if the window had no end;
- trim to fit: before each turn the oldest messages go, a call with its results, until the prompt
  fits, and within a turn when it would pass the window;
- keep last: so many turns that they fill 0.6 of the window in the mean;
- summarize at 80: at 80 % of the window all but the last five turns become a summary;
- steps 80 to 60, 80 to 50: at 80 % whole turns go, down to 60 or 50 %;
- CacheAware, the default of holdfast.

When what a policy shows would not fit, whole turns go, the oldest first, and then the oldest calls
of the current turn. Below the policies stands the

- offline optimum: the cheapest that can be done with the same mean fill, knowing the future
  (bench/window_optimum.py).

The columns:

- cost: in thousands of tokens of input;
- / trim: against trimming to fit in a window that is the policy's own mean prompt, session by
  session, all added up. Messages are trimmed, not turns, because most programs do so, and because
  the mean prompt is then nearly the same; a line below tells what it is against whole turns that
  are trimmed before every call;
- read: the share of the prompts that came from the cache;
- fill, worst: the mean and the largest prompt, as shares of the window;
- lost: the share of all that was said that is not shown at the end;
- folds: for each hundred turns;
- early, middle, late, all: the share of planted facts that is shown, in the mean over all turns, by
  thirds of what was said until then. Every fifth message of 20 tokens and more holds a fact; it is
  shown with the whole message, or with that part of it if it was shortened.

Tokens are those of o200k for all policies, counted once. With --check the exit status is 1 when a
bar is missed.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(Path(__file__).parent))

from window_billing import Outcome, pooled  # noqa: E402
from window_conversations import Talk, read_folder, sessions, spread  # noqa: E402
from window_generated import generated  # noqa: E402
from window_optimum import Optimum, optimum  # noqa: E402
from window_replay import replay  # noqa: E402
from window_rivals import FixedSteps, SummarizeAt  # noqa: E402
from window_sliding import (  # noqa: E402
    cut_at,
    everything,
    keep_last,
    replay_sliding,
    trim_each_turn,
    trim_to,
)
from window_speed import MESSAGES, speed  # noqa: E402
from window_table import HEAD, Bars, row  # noqa: E402

from holdfast.window.cache_aware import CacheAware  # noqa: E402

CORPUS = Path(os.environ.get("HOLDFAST_CORPUS") or ROOT.parent / "shared" / "corpus")
WINDOWS = (8_000, 32_000, 128_000)
SESSIONS_MAX = 50
KEPT_SHARE = 0.6
COUNTED = 5_000  # about so many messages are counted, of all
GENERATED_WINDOWS = 20  # so many windows of tokens are made up

COST_MAX = {8_000: 0.46, 32_000: 0.38, 128_000: 0.35}
FILL_MIN = 0.60
OPTIMUM_MAX = 1.20
MESSAGE_US_MAX = 200
PLAN_MS_MAX = 20
COUNTING_MIN = 0.9

OURS = CacheAware()
STEPS = (FixedSteps(0.8, 0.6), FixedSteps(0.8, 0.5))

Run = Callable[[Talk, int], Outcome]
POLICIES: dict[str, Run] = {
    "everything": lambda talk, window: replay_sliding(talk, window, everything),
    "trim to fit": lambda talk, window: replay_sliding(
        talk, window, trim_each_turn(window, window)
    ),
    "keep last": lambda talk, window: replay_sliding(
        talk, window, keep_last(_kept_turns(talk, window), window)
    ),
    SummarizeAt().name: lambda talk, window: replay(talk, SummarizeAt(), window),
    **{
        steps.name: lambda talk, window, steps=steps: replay(talk, steps, window) for steps in STEPS
    },
    OURS.name: lambda talk, window: replay(talk, OURS, window),
}
OPTIMUM = "offline optimum"


class Result(NamedTuple):
    """A policy in some sessions: what came of it, and of trimming at the same mean fill; and of
    trimming by whole turns, before every call."""

    talks: list[Talk]
    outcomes: list[Outcome]
    trims: list[Outcome]
    coarse: list[Outcome]

    @property
    def whole(self) -> Outcome:
        return pooled(self.outcomes)

    @property
    def ratio(self) -> float:
        return self.whole.cost / pooled(self.trims).cost

    @property
    def coarse_ratio(self) -> float:
        return self.whole.cost / pooled(self.coarse).cost

    def of_kind(self, kind: str) -> "Result":
        chosen = [at for at, talk in enumerate(self.talks) if talk.kind == kind]
        return Result(*([of[at] for at in chosen] for of in self))


class Compared(NamedTuple):
    """All policies at one window, and for each session the bound of the optimum."""

    results: dict[str, Result]
    bounds: list[float]

    @property
    def against_optimum(self) -> float:
        """Our cost against the bound, below which the optimum cannot be: a schedule that was found
        may show more than it has to, and cost more."""
        return self.results[OURS.name].whole.cost / sum(self.bounds)


def _kept_turns(talk: Talk, window: int) -> int:
    a_turn = (talk.total - talk.head_tokens) / len(talk.starts)
    return max(1, int((KEPT_SHARE * window - talk.head_tokens) / a_turn))


def measured(talks: Sequence[Talk], window: int, run: Run) -> Result:
    result = Result(list(talks), [], [], [])
    for talk in talks:
        outcome = run(talk, window)
        mean = outcome.mean_tokens
        result.outcomes.append(outcome)
        result.trims.append(replay_sliding(talk, window, trim_each_turn(mean, window)))
        result.coarse.append(replay_sliding(talk, window, trim_to(mean)))
    return result


def compare(talks: Sequence[Talk], window: int) -> Compared:
    results: dict[str, Result] = {}
    for name, run in POLICIES.items():
        progress(f"window {window:,}: {name} in {len(talks)} sessions")
        results[name] = measured(talks, window, run)
    progress(f"window {window:,}: {OPTIMUM}")
    ours = results[OURS.name].outcomes
    best = {
        talk.name: optimum(talk, window, outcome.mean_tokens)
        for talk, outcome in zip(talks, ours, strict=True)
    }
    results[OPTIMUM] = measured(talks, window, lambda talk, _: followed(best[talk.name], window))
    return Compared(results, [each.bound for each in best.values()])


def followed(best: Optimum, window: int) -> Outcome:
    """The books of the cheapest schedule."""
    return replay_sliding(best.schedule.talk, window, cut_at(best.schedule.cuts))


def report(compared: Compared) -> None:
    print(HEAD)
    for name, result in compared.results.items():
        print(row(name, result.whole, result.ratio), flush=True)
    ours = compared.results[OURS.name]
    for name in (*(steps.name for steps in STEPS), OURS.name, OPTIMUM):
        ratio = compared.results[name].coarse_ratio
        print(f"  {name}: {ratio:.3f} of trimming whole turns before every call")
    for kind in ("strung", "long"):
        some = ours.of_kind(kind)
        if some.talks:
            print(group_line(f"{OURS.name}, {len(some.talks)} {kind}", some))


def group_line(name: str, result: Result) -> str:
    whole = result.whole
    return f"  {name}: {result.ratio:.3f} of trim, fill {whole.fill:.2f} to {whole.worst_fill:.2f}"


def judge(bars: Bars, window: int, compared: Compared) -> None:
    ours = compared.results[OURS.name]
    if window in COST_MAX:
        bars.most("cost against trim to fit at the same mean fill", ours.ratio, COST_MAX[window])
    bars.least("mean fill", ours.whole.fill, FILL_MIN)
    bars.most(
        "cost against the bound of the offline optimum", compared.against_optimum, OPTIMUM_MAX
    )
    for steps in STEPS:
        facts = compared.results[steps.name].whole.retention[-1]
        bars.least(f"facts that are shown, as {steps.name}", ours.whole.retention[-1], facts)


def conversations(folder: Path, window: int) -> list[Talk]:
    """Those in the folder, or as many made up as a window of this size needs."""
    talks = read_folder(folder)
    where = f"in {folder}"
    if not talks:
        talks = generated(GENERATED_WINDOWS * window)
        where = f"made up: there are none in {folder}"
    print(f"{len(talks)} conversations, {sum(t.total for t in talks):,} tokens, {where}")
    return talks


def replayed(bars: Bars, talks: Sequence[Talk], options: argparse.Namespace) -> list[str]:
    """The tables of all windows; returns what the last line says of them."""
    said = []
    for window in options.windows:
        found = sessions(talks, window)
        print(f"\nwindow {window:,}: {len(found.fitting)} sessions {found.note}".rstrip())
        if not found.fitting:
            bars.least("sessions", 0, 1)
            continue
        taken = found.fitting if options.all else spread(found.fitting, SESSIONS_MAX)
        compared = compare(taken, window)
        report(compared)
        larger = found.too_large if options.all else spread(found.too_large, SESSIONS_MAX)
        if larger:
            name = f"{OURS.name}, {len(larger)} with turns larger than the window"
            print(group_line(name, measured(larger, window, POLICIES[OURS.name])))
        judge(bars, window, compared)
        ours = compared.results[OURS.name]
        said.append(
            f"{window:,}: {ours.ratio:.3f} of trim at fill {ours.whole.fill:.2f}, "
            f"{compared.against_optimum:.2f} of the optimum"
        )
    return said


def timed(bars: Bars, talks: Sequence[Talk], rounds: int) -> list[str]:
    progress("speed")
    messages = [each.message for talk in talks for each in talk.said]
    found = speed(OURS, messages[:: max(1, len(messages) // COUNTED)], rounds)
    print(f"\nspeed, {MESSAGES:,} messages")
    bars.most("a message more, added and rendered, us", found.message_us, MESSAGE_US_MAX)
    bars.most(f"a plan of {found.steps} steps, ms", found.plan_ms, PLAN_MS_MAX)
    print(f"  the same plan once more, ms {found.plan_again_ms:.2f}")
    print(f"  a plan that there is nothing to do, ms {found.plan_idle_ms:.3f}")
    pace = found.raw_ms / found.counted_ms
    bars.least("counting, against the tokeniser alone", pace, COUNTING_MIN)
    return [f"{found.message_us:.0f} us a message, {found.plan_ms:.1f} ms a plan"]


def progress(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def windows_of(text: str) -> list[int]:
    return [int(each) for each in text.split(",")]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--conversations", type=Path, default=CORPUS / "conversations")
    parser.add_argument("--windows", type=windows_of, default=list(WINDOWS), metavar="TOKENS,...")
    parser.add_argument("--all", action="store_true", help="all sessions, not fifty")
    parser.add_argument("--only", choices=("replay", "speed"))
    parser.add_argument("--rounds", type=int, default=7, help="of speed (default 7)")
    parser.add_argument("--check", action="store_true", help="fail when a bar is missed")
    options = parser.parse_args()
    talks = conversations(options.conversations, max(options.windows))
    bars = Bars()
    said = []
    if options.only != "replay":
        said += timed(bars, talks, options.rounds)
    if options.only != "speed":
        said += replayed(bars, talks, options)
    print(f"\n{bars.summary(said)}")
    return 1 if options.check and bars.missed else 0


if __name__ == "__main__":
    sys.exit(main())
