"""Policies on real conversations, strung together until they are long enough to be folded."""

import gzip
import json
import os
from pathlib import Path

import pytest

from holdfast import codec
from holdfast.errors import DoesNotFit
from holdfast.messages import Message
from holdfast.window.budget_policy import BudgetPolicy
from holdfast.window.evict import Evict
from holdfast.window.fit import fitting
from holdfast.window.hybrid import Hybrid
from holdfast.window.observe import Observe
from holdfast.window.overflow import recover
from holdfast.window.summarize import Summarize
from holdfast.window.truncate import Truncate
from window_cases import folded, must_stay, shown, situation_of, unpaired, view_of

ROOT = Path(__file__).parent.parent
CORPUS = Path(os.environ.get("HOLDFAST_CORPUS") or ROOT.parent / "shared" / "corpus")
CONVERSATIONS = sorted((CORPUS / "conversations").glob("*.jsonl.gz"))
POLICIES = (Evict(), Truncate(2), Summarize(2), Hybrid(2, 4), BudgetPolicy(), Observe())
SHARES = (0.9, 0.5, 0.2, 0.05)  # of what the conversation has, that fits

pytestmark = pytest.mark.skipif(
    not CONVERSATIONS, reason=f"no corpus of conversations in {CORPUS} (HOLDFAST_CORPUS)"
)


def talks(path):
    """Some conversations of a file; short ones follow each other in one."""
    said = []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in list(lines)[:24]:
            raw = json.loads(line)["messages"]
            read = [m for each in raw for m in codec.read_plain(json.dumps(each))]
            said += [m for m in read if type(m) is Message and (m.role != "system" or not said)]
            if len(said) > 60:
                yield said[:400]
                said = []
    if said:
        yield said


def test_real_conversations_are_made_to_fit(subtests):
    """What fits fits as it is counted, nothing loses its pair, and what has to stay stays."""
    for path in CONVERSATIONS:
        with subtests.test(path=path.name):
            views = [view_of(said) for said in talks(path)]
            fits = [fit(policy, view, share) for view in views for policy in POLICIES
                    for share in SHARES]  # fmt: skip

            assert sum(fits) > 0.5 * len(fits)


def fit(policy, view, share):
    """Whether it could be made to fit; that it does then is asserted."""
    situation = situation_of(view, limit=int(view.total * share), keep_turns=2)
    try:
        plan = fitting(policy, view, situation)
    except DoesNotFit:
        return False
    after = folded(view, plan, situation)
    assert after.total <= plan.tokens_after <= situation.limit
    assert unpaired(after) <= unpaired(view)
    shorter = {step.first for step in plan.steps if step.kind == "shorten"}
    assert must_stay(view, situation.budget, 0) <= shown(after).keys() | shorter
    return True


def test_real_conversations_recover_from_an_overflow(subtests):
    """Twice, each time smaller, down to what the refusal said."""
    for path in CONVERSATIONS:
        with subtests.test(path=path.name):
            for said in talks(path):
                view = view_of(said)
                for attempt in (1, 2):
                    situation = situation_of(view, fill=0.9)
                    reported = (int(view.total * 1.3), int(view.total * 1.1))
                    try:
                        plan = recover(view, situation, attempt=attempt, reported=reported)
                    except DoesNotFit:
                        break
                    after = folded(view, plan, situation)
                    assert after.total < view.total
                    assert unpaired(after) <= unpaired(view)
                    view = after
