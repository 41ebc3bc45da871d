"""What a policy may not do, written down as questions about its plan and what comes of it.

`policies()` lists all that there are, and a small one of our own. `wrongs` and `too_deep` know
nothing of how they decide: they have the view and the situation before, the plan, and its folds.
"""

from importlib import import_module
from importlib.util import find_spec

from holdfast.entries import Fold
from holdfast.messages import Role
from holdfast.window import apply
from holdfast.window.leave import left_out_run
from holdfast.window.plan import nothing, planned, runs
from random_windows import count, now

_MODULES = {
    "cache_aware": "CacheAware",
    "evict": "Evict",
    "truncate": "Truncate",
    "summarize": "Summarize",
    "hybrid": "Hybrid",
    "budget_policy": "BudgetPolicy",
    "observe": "Observe",
}
# These keep a number of turns, whatever the tokens; the others go down to a number of tokens.
_KEEPS_TURNS = {"truncate", "summarize", "hybrid", "observe"}


class OldestFirst:
    """Leaves out whole turns, the oldest first, down to the target: as plain as a policy can be."""

    name = "oldest-first"

    def plan(self, view, situation):
        plan = nothing(self.name, situation, "not due, or nothing can go")
        asked = [item.turn for item in view.items if is_request(item)]
        gone = []
        for group in view.groups() if is_due(situation) else ():
            if plan.tokens_after <= goal(situation) or group.turn >= max(asked, default=0):
                break
            if group.turn:
                gone += range(group.start, group.stop)
                plan = self._left_out(view, gone, situation)
        return plan

    def _left_out(self, view, gone, situation):
        """The plan to leave these items out, with what is really left then."""
        free = [place for place in gone if view.items[place].message.role is not Role.SYSTEM]
        steps = [
            left_out_run(view, view.items, *run, situation, "old") for run in runs(view.items, free)
        ]
        plan = planned(self.name, situation, steps, "down to the target")
        left = now(situation, view.with_folds(apply(plan))).used
        if left >= situation.used:
            return nothing(self.name, situation, "it would not get smaller")
        return plan.replace(tokens_after=left)


def policies():
    """Every policy that there is."""
    found = [OldestFirst()]
    for module, name in _MODULES.items():
        if find_spec(f"holdfast.window.{module}"):
            kind = getattr(import_module(f"holdfast.window.{module}"), name)
            found.append(kind())
            if name == "CacheAware":
                found.append(kind(is_summing_up=True))
    return found


def name_of(policy):
    """A name for each of `policies`: some are there twice, made otherwise."""
    return f"{policy.name}, summing up" if getattr(policy, "is_summing_up", False) else policy.name


def carried_out(plan, situation, random):
    """The folds of a plan, with summaries that nobody would want to read."""
    texts = [
        random.choice(("", " ", "In short.", "word " * 3_000, "\x00")) for _ in plan.to_summarize
    ]
    return apply(plan, texts, lambda message: situation.tokens(count(message)))


def is_due(situation):
    """Whether there is a reason to make the window smaller."""
    budget, fill = situation.budget, situation.fill
    if situation.trigger in ("manual", "overflow") or situation.over:
        return True
    return fill >= budget.start or (budget.pressure == 0 and fill > budget.target)


def has_own_reason(view, situation, plan):
    """Whether the policy has thresholds of its own, and they may be reached."""
    if plan.by != "observe":
        return False
    if situation.tokens(sum(item.tokens for item in view.items)) > 8_000:
        return True
    raw = situation.tokens(sum(item.tokens for item in view.items if item.turn < view.turn))
    made = [item for item in view.items if item.fold is not None and item.fold.by == "observe"]
    return situation.trigger == "after" and (raw >= 1_000 or len(made) >= 5)


def goal(situation):
    """Below so many tokens nobody has to go."""
    return int(situation.limit * situation.budget.target)


def is_request(item):
    """Whether it is what a user asked, or stands for it."""
    return item.message.starts_turn


def sent_tokens(view, situation):
    """What a request has that is made of the view, counted anew."""
    counted = sum(count(message) for message in view.rendered().messages)
    return situation.base + situation.tokens(counted)


def wrongs(view, situation, plan, folds):
    """What is wrong with a plan, in words; nothing if it is right."""
    after = view.with_folds(folds)
    used = sent_tokens(after, situation)
    found = unpaired(after.rendered().messages)
    if folds and not is_due(situation) and not has_own_reason(view, situation, plan):
        found.append("something is folded although it is not due")
    if folds and used >= situation.used:
        found.append(f"folding makes {used} of {situation.used} tokens")
    if used > plan.tokens_after + len(folds):  # each step is rounded
        found.append(f"{used} tokens are left, and the plan says {plan.tokens_after}")
    return found + _lost(view, after)


def _lost(view, after):
    """What is never left out: what the system says, and what has to be answered."""
    shown = {item.message.id for item in after.items}
    said = [item.message for item in view.items if item.fold is None]
    told = [each for each in said if each.role is Role.SYSTEM and not each.results]
    asked = [item.message for item in view.items if is_request(item)]
    return [
        f"the {message.role}'s message is lost"
        for message in told + asked[-1:]
        if message.id not in shown and not any(id.startswith(f"{message.id}:") for id in shown)
    ]


def unpaired(messages):
    """The calls and results that do not stand together."""
    found, waiting = [], []
    for message in messages:
        if waiting and (message.role, message.tool_call_id) != (Role.TOOL, waiting[0]):
            found.append(f"the call {waiting[0]!r} has no result behind it")
            waiting = []
        if message.role is Role.TOOL:
            found += [] if waiting else ["a result stands alone"]
            waiting = waiting[1:]
        waiting += [call.id for call in message.tool_calls]
    return found + [f"the call {id!r} has no result" for id in waiting]


def too_deep(view, situation, plan, folds):
    """Whether a turn was left out that there was room for, in words.

    With the newest turn that went, more would be left than the plan aims at. Who takes messages by
    their worth, one by one, may have to take one that is larger than what was too much: then more
    would be left with that one.
    """
    shown = {item.message.id for item in view.with_folds(folds).items}
    asked = [item for item in view.items if is_request(item)]
    gone = {item.turn for item in asked if item.message.id not in shown}
    if plan.by in _KEEPS_TURNS:
        turns = 1 if plan.by == "observe" else max(1, situation.budget.keep_turns)
        kept = view.turn - turns
        return [f"turn {turn} is one to be kept" for turn in gone if turn > kept]
    if not gone:
        return []
    aim = plan.numbers.get("goal", goal(situation))
    tried = [_without(max(gone), view, folds)]
    if plan.by == "budget":
        tried += [[fold for fold in folds if fold is not each] for each in folds]
    used = [sent_tokens(view.with_folds(less), situation) for less in tried]
    if max(used) + len(folds) + 1 > aim:  # each step is rounded
        return []
    return [f"with turn {max(gone)} there would be {used[0]} of {aim} tokens"]


def _without(turn, view, folds):
    """The folds, but for the items of a turn."""
    found = []
    for fold in folds:
        items = [item for item in view.items if fold.first <= item.first <= fold.last]
        if all(item.turn != turn for item in items):
            found.append(fold)
            continue
        older = [item for item in items if item.turn < turn]
        newer = [item for item in items if item.turn > turn]
        found += [_fold_of(part, fold) for part in (older, newer) if part]
    return found


def _fold_of(items, fold):
    last = max(item.last for item in items)
    return Fold(first=items[0].first, last=last, replacement=fold.replacement)
