"""How far off are the token counters?

    python bench/tokens.py [--corpus FOLDER] [--check]

Estimates, and o200k times a factor for Claude, against the vocabularies themselves: on prose of
ten languages, code, JSON, logs and noise (bench/token_texts.py) and on the conversations of a
corpus, in chunks of up to 2,000 characters. Then whole requests against the usage that vendors
reported for them, from the recorded traffic of the corpus. Then the ledger: how far off its
estimates are of what was not reported yet, after three answers of a model and from 200 tokens up
(tests/recorded_usage.py says how that is read). What is not installed is left out, and said to be.
The fractions of the estimates were fitted to texts of these kinds, many of them the same: expect
somewhat more on others.

With --check the exit status is 1 when 95 of 100 texts do not stay below the error that a counter
states, or when the ledger is further off for texts that came since a report than 8 % (the median)
or 25 % (95 of 100), or when counting fresh messages is slower than 0.9 times the bare vocabulary.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(ROOT / "tests"))

from token_texts import talks, texts  # noqa: E402

import recorded_usage  # noqa: E402
from holdfast import Message  # noqa: E402
from holdfast.providers import tokens  # noqa: E402
from holdfast.providers.models import model_of  # noqa: E402
from holdfast.window.ledger import Ledger  # noqa: E402
from recorded_prompts import prompts  # noqa: E402

CORPUS = Path(os.environ.get("HOLDFAST_CORPUS") or ROOT.parent / "shared" / "corpus")
FAMILIES = ("o200k", "cl100k", "gemini", "claude-3", "claude-4.7")
OPEN = ("llama3", "qwen", "deepseek", "mistral", "kimi", "glm")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, default=CORPUS)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if not find_spec("splintr"):
        print("splintr-rs is not installed: there is nothing to compare with")
        return 1
    items = [(kind, text) for kind, several in texts().items() for text in several]
    items += [("conversations", text) for text in list(talks(options.corpus, 300_000))[::3]]
    print(f"{len(items)} texts, {sum(len(text) for _, text in items):,} characters")
    misses = _against_vocabularies(items)
    _against_usage(options.corpus / "traffic")
    misses += _ledger(options.corpus)
    misses += _speed([text for _, text in items])
    for miss in misses:
        print("MISSED", miss)
    return 1 if options.check and misses else 0


def _against_vocabularies(items: list[tuple[str, str]]) -> list[str]:
    print(f"\n{'counter':28} {'p95':>6} {'stated':>6} {'low p5':>7}   mean by kind")
    misses = []
    for family in (*FAMILIES, *OPEN):
        exact = tokens.counter(family)
        if family.startswith("claude") and not find_spec("ctok"):
            print(f"{family:28} ctok is not installed: not compared")
            continue
        truth = [exact.count(text) for _, text in items]
        misses += _line(f"{family}, estimated", tokens.estimator(family), items, truth)
        if family.startswith("claude"):
            scaled = tokens.scaled(family)
            misses += _line(f"{family}, o200k x factor", scaled, items, truth)
    return misses


def _line(
    name: str, counter: tokens.Counter, items: list[tuple[str, str]], truth: list[int]
) -> list[str]:
    by_kind: dict[str, list[float]] = {}
    errors = []
    for (kind, text), true in zip(items, truth, strict=True):
        errors.append(counter.count(text) / true - 1)
        by_kind.setdefault(kind, []).append(errors[-1])
    p95 = _quantile(sorted(map(abs, errors)), 0.95)
    means = " ".join(f"{kind} {sum(e) / len(e):+.0%}" for kind, e in by_kind.items())
    low = _quantile(sorted(errors), 0.05)
    print(f"{name:28} {p95:6.0%} {counter.error:6.0%} {low:7.0%}   {means}")
    return [f"{name}: {p95:.1%} > {counter.error:.1%}"] if p95 > counter.error else []


def _against_usage(traffic: Path) -> None:
    print(
        f"\n{'whole requests':22} {'n':>4} {'median':>7} {'p95':>6} {'sum':>6}   tokens off: p5 p95"
    )
    kinds: dict[tuple[str, str, str], list[tuple[int, int]]] = {}
    for prompt in prompts(traffic):
        model = model_of(prompt.vendor, prompt.model)
        for name, make in _counters():
            counter = make(model.family)
            counted = tokens.prompt_tokens(
                prompt.messages,
                counter,
                system=prompt.system,
                tools=prompt.tools,
                images=model.images,
            )
            kind = "tools" if prompt.tools else "no tools"
            kinds.setdefault((prompt.vendor, kind, name), []).append((counted, prompt.tokens))
    for (vendor, kind, name), pairs in sorted(kinds.items()):
        off = sorted(abs(counted / true - 1) for counted, true in pairs)
        differences = sorted(counted - true for counted, true in pairs)
        whole = sum(counted for counted, _ in pairs) / sum(true for _, true in pairs) - 1
        low, high = _quantile(differences, 0.05), _quantile(differences, 0.95)
        print(
            f"{vendor + ', ' + kind:22} {len(pairs):4} {_quantile(off, 0.5):7.1%} "
            f"{_quantile(off, 0.95):6.0%} {whole:+6.0%}   {low:+} {high:+}   {name}"
        )
    if not kinds:
        print(f"no recorded traffic in {traffic}")


def _ledger(corpus: Path) -> list[str]:
    print(f"\n{'the ledger, unreported':34} {'n':>4} {'median':>7} {'p95':>6}   within the margin")
    talks = {
        "traffic": recorded_usage.traffic(corpus / "traffic"),
        "sessions": recorded_usage.sessions(corpus / "formats"),
    }
    misses = []
    for name, make in _counters():
        found = {kind: recorded_usage.follow(each, make) for kind, each in talks.items()}
        found["both"] = [*found["traffic"], *found["sessions"]]
        for kind, several in found.items():
            for what, chosen in _readings(several):
                line = f"{kind}, {what}"
                if not chosen:
                    continue
                median, p95 = recorded_usage.errors(chosen)
                safe = sum(each.reported <= each.estimated + each.margin for each in chosen)
                share = safe / len(chosen)
                print(f"{line:34} {len(chosen):4} {median:7.1%} {p95:6.1%}   {share:4.0%}   {name}")
                if what == "suffix, texts" and (median > 0.08 or p95 > 0.25):
                    misses.append(f"ledger, {line}, {name}: {median:.1%}, {p95:.1%}")
    return misses


def _readings(
    found: list[recorded_usage.Outcome],
) -> Iterator[tuple[str, list[recorded_usage.Outcome]]]:
    """The estimates, by what was unreported: with pictures and documents, without, and all."""
    for reading in ("suffix", "whole", "pooled"):
        chosen = [each for each in found if reading in (each.reading, "pooled")]
        yield f"{reading}, texts", [each for each in chosen if not each.has_media]
        yield f"{reading}, pictures", [each for each in chosen if each.has_media]
        yield f"{reading}, all", chosen


def _speed(texts: list[str]) -> list[str]:
    """Counting messages that a ledger has not seen, against the bare vocabulary."""
    from splintr import Tokenizer

    encode = Tokenizer.from_pretrained("o200k_base").encode_ordinary
    counter = tokens.counter("o200k")
    messages = [Message.user(text) for text in texts]

    def count() -> None:
        ledger = Ledger().counter("o200k", tokens.message_counter(counter))
        for message in messages:
            ledger(message)

    def bare() -> None:
        for text in texts:
            len(encode(text))

    for _ in range(5):  # until both are warm
        bare()
        count()
    shares = sorted(_seconds(bare) / _seconds(count) for _ in range(31))
    share = shares[15]  # side by side and the middle one: other programs disturb both
    print(f"\ncounting {len(texts)} fresh messages: {share:.2f} times as fast as o200k alone")
    return [f"counting: {share:.2f} < 0.90"] if share < 0.9 else []


def _seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def _counters() -> list[tuple[str, Callable[[str], tokens.Counter]]]:
    return [("best installed", tokens.counter), ("estimated", tokens.estimator)]


def _quantile(ordered: list, share: float):
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


if __name__ == "__main__":
    sys.exit(main())
