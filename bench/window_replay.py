"""Replays a session turn by turn through a view, as a turn would: plan, apply, fold, send.

Before every call the policy is asked, its folds are added to the view, and what the view renders
is the prompt that is paid for. A summary is as long as its step allows, and tells nothing of what
was planted.
"""

import re
from collections.abc import Callable

from window_billing import PRICES, Outcome, common, opened
from window_conversations import FACT_PATTERN, Talk
from window_rivals import Fit

from holdfast.messages import Message
from holdfast.providers.tokens import counter, message_tokens
from holdfast.window import Plan, Policy, Situation, View, apply

CACHE_TTL_S = 300.0
PAUSE_S = 5.0
FILLER = "and so on "  # three tokens

_o200k = counter("o200k")
_find_facts = re.compile(FACT_PATTERN).findall


class Counts:
    """The tokens of messages: of those of a session as they are known, of others by counting."""

    def __init__(self, talk: Talk) -> None:
        self._known = {each.message.id: (each.message, each.tokens) for each in talk.said}
        self._other: dict[tuple[object, ...], int] = {}

    def __contains__(self, id: str) -> bool:
        return id in self._known

    def __call__(self, message: Message) -> int:
        known = self._known.get(message.id)
        if known is not None and known[0] is message:
            return known[1]
        key = (message.id, message.content, message.tool_calls)
        if key not in self._other:
            self._other[key] = message_tokens(message, _o200k)
        return self._other[key]


class Replay:
    """One session with one policy in a window of `limit` tokens."""

    def __init__(self, talk: Talk, policy: Policy, limit: int) -> None:
        self.talk = talk
        self.policy = policy
        self.limit = limit
        self.outcome = opened(talk, limit)
        self.count = Counts(talk)
        self.view = View(self.count)
        self.seq = 0
        self.sent: tuple[Message, ...] = ()
        self.sent_tokens = 0
        self.facts = {each.fact: n for n, each in enumerate(e for e in talk.said if e.fact)}
        self.fact_of = {each.message.id: each.fact for each in talk.said if each.fact}
        self.shown = bytearray(len(self.facts))
        self.said_facts = 0

    def run(self) -> Outcome:
        turn = -1
        calls = set(self.talk.calls)
        for at, (message, _, fact) in enumerate(self.talk.said):
            if at in calls:
                self._decide()
                self._pay()
                if self.talk.turn[at] != turn:
                    turn = self.talk.turn[at]
                    self.outcome.sample(self.shown, self.said_facts)
            self._log(message)
            if fact is not None:
                self.shown[self.said_facts] = 1
                self.said_facts += 1
        self.outcome.lost = self.talk.total - self._kept()
        return self.outcome

    def _log(self, entry: object) -> None:
        self.seq += 1
        self.view.add(self.seq, entry)  # type: ignore[arg-type]

    def _decide(self) -> None:
        self._carry_out(self.policy.plan)
        if self.view.total > self.limit:
            self._carry_out(Fit().plan)

    def _carry_out(self, plan_of: Callable[[View, Situation], Plan]) -> None:
        plan = plan_of(self.view, self._situation())
        if not plan:
            return
        texts = []
        for step in plan.to_summarize:
            self.outcome.bill_summary(sum(map(self.count, step.messages)), step.tokens_after)
            texts.append(FILLER * step.tokens_after)  # too long: cut to what is allowed
        for fold in apply(plan, texts, self.count):
            self._log(fold)
        self.outcome.folds += 1
        self._look_for_facts()

    def _situation(self) -> Situation:
        return Situation(
            limit=self.limit,
            used=self.view.total,
            prices=PRICES,
            cache_ttl_s=CACHE_TTL_S,
            pause_s=PAUSE_S if self.sent else None,
        )

    def _pay(self) -> None:
        now = self.view.rendered().messages
        same = common(self.sent, now)
        cached = self.sent_tokens if same == len(self.sent) else sum(self.view.tokens[:same])
        self.sent, self.sent_tokens = now, self.view.total
        self.outcome.bill(self.sent_tokens, cached)

    def _look_for_facts(self) -> None:
        """After a fold: in whole messages, and in the words of what stands for others."""
        self.shown[:] = bytes(len(self.shown))
        for item in self.view.items:
            if item.fold is None:
                found = [self.fact_of[item.message.id]] if item.message.id in self.fact_of else []
            else:
                found = _find_facts(item.message.text or "")
            for fact in found:
                if fact in self.facts:
                    self.shown[self.facts[fact]] = 1

    def _kept(self) -> int:
        """The tokens that are shown at the end of what was said; a shorter form counts as such."""
        return sum(
            item.tokens
            for item in self.view.items
            if (item.message.id in self.count if item.fold is None else _is_shorter(item.message))
        )


def _is_shorter(message: Message) -> bool:
    """Whether what a fold shows is a shorter form of a message, rather than a note."""
    return message.tool_call_id is not None or message.synthetic is None


def replay(talk: Talk, policy: Policy, limit: int) -> Outcome:
    return Replay(talk, policy, limit).run()
