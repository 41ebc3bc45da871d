"""What the model of a turn is shown: how full its window is, what to fold, what is sent."""

from collections.abc import Awaitable, Callable, Sequence
from math import ceil
from typing import NamedTuple

from holdfast import ids
from holdfast.conversation import Conversation
from holdfast.entries import Fold
from holdfast.errors import ContextOverflow
from holdfast.frozen import FrozenDict
from holdfast.messages import Message
from holdfast.providers.limits import limits_of
from holdfast.steps.answers import Answered
from holdfast.steps.targets import Target
from holdfast.tools import Tool
from holdfast.window.budget import Budget, Room
from holdfast.window.evict import Evict
from holdfast.window.fit import fitting
from holdfast.window.known import Counted, Estimate
from holdfast.window.overflow import numbers, recover
from holdfast.window.plan import Plan, Policy, apply
from holdfast.window.situation import Situation
from holdfast.window.view import View
from holdfast.window.window import Window, window


class Request(NamedTuple):
    """What a model is about to be asked with, and what that was made of.

    `output` is the longest answer to ask for; None is as long as the model can.
    """

    window: Window
    view: View
    situation: Situation
    counted: Counted
    output: int | None


class Windows:
    """The windows of a conversation for one model, one system prompt and one set of tools."""

    def __init__(
        self,
        conversation: Conversation,
        target: Target,
        system: str | None,
        tools: Sequence[Tool],
        budget: Budget,
        policy: Policy,
        *,
        folded: Callable[[], Awaitable[str | None]] | None = None,
    ) -> None:
        """`folded` is asked for the system prompt behind a fold, when it may change."""
        self._conversation = conversation
        self._target = target
        self._system = system
        self._tools = tuple(tools)
        self.budget = budget
        self._policy = policy
        self._folded_system = folded
        self.base = target.base(system, self._tools)

    async def folded(self) -> None:
        """A fold was made, so no prefix is cached: now the system prompt may change too."""
        if self._folded_system is not None:
            self._system = await self._folded_system()
            self.base = self._target.base(self._system, self._tools)

    @property
    def context(self) -> int:
        """The model's window, as it is known now: of some it is found out by asking them."""
        return limits_of(self._target.provider, self._target.model).context

    @property
    def room(self) -> Room:
        """Tokens of the model's window: all, for the answer, for the request."""
        return self._target.room(self.budget)

    def view(self, pending: Sequence[Message] = ()) -> View:
        """The log with its folds, and what is about to be appended."""
        return self._conversation.view(self._target.family, self._target.count, pending)

    def situation(self, view: View, trigger: str = "before") -> Situation:
        """How full the window is, and how dear."""
        estimate = self.estimate(view)
        scale = self._conversation.ledger.scale(self._target.name)
        return Situation(
            limit=self.room.prompt,
            used=estimate.tokens,
            margin=estimate.margin,
            base=int(self.base.all * scale),
            scale=scale,
            budget=self.budget,
            trigger=trigger,
            prices=self._target.prices,
            cache_ttl_s=self._target.model.cache_ttl_s,
            pause_s=self._pause_s(),
        )

    def estimate(self, view: View) -> Estimate:
        """How many tokens the request has, as far as that is known."""
        name, counted = self._target.name, self.counted(view)
        return self._conversation.ledger.estimate(
            name,
            counted.all,
            tools=counted.tools,
            changed=self._conversation.changed(name, counted.all),
            stated=self._target.counter.error,
        )

    def counted(self, view: View) -> Counted:
        """The request by the counter: all of it, and its tools."""
        return Counted(view.total + self.base.all, self.base.tools)

    def foreseen(self) -> tuple[View, Situation, Plan]:
        """What the next request is made of, if nothing more is said, and what is folded for it.

        A fold that needs a summary is not in the view: somebody has to write it first.
        """
        view = self.view()
        situation = self.situation(view)
        plan = self.plan(view, situation)
        if plan and not plan.to_summarize:
            view = view.with_folds(apply(plan))
            situation = self.situation(view)
        return view, situation, plan

    def plan(self, view: View, situation: Situation) -> Plan:
        """What to fold before a call, so that the request fits; DoesNotFit if nothing helps."""
        return fitting(self._policy, view, self._folded(situation))

    def plan_without_summary(self, view: View, situation: Situation) -> Plan:
        """The same where nobody can write a summary: only what has to go."""
        return fitting(Evict(), view, self._folded(situation))

    def _folded(self, situation: Situation) -> Situation:
        """The situation with the margin that there will be when enough is folded.

        Behind a fold nothing is known from reports, and all that is left is estimated: then so much
        may be left that it fits even if the estimate is short by its error.
        """
        if not situation.over:
            return situation
        error = self._conversation.ledger.error(self._target.name, self._target.counter.error)
        return situation.replace(margin=ceil(situation.limit * error / (1 + error)))

    def plan_behind(self, view: View) -> tuple[Plan, Situation]:
        """What to fold behind a turn."""
        situation = self.situation(view, "after")
        return self._policy.plan(view, situation), situation

    def plan_by_hand(self, view: View, policy: Policy | None) -> tuple[Plan, Situation]:
        """What to fold because somebody asks for it."""
        situation = self.situation(view, "manual")
        return (policy or self._policy).plan(view, situation), situation

    def plan_smaller(
        self, view: View, situation: Situation, attempt: int, error: ContextOverflow
    ) -> Plan:
        """What to fold because the model refused the request as too long.

        A service may tell how much it takes and not how much it got: that is then our count.
        """
        reported: tuple[int, int] | None = numbers(str(error))
        if error.tokens_max:
            reported = (error.tokens_found or situation.used, error.tokens_max)
        return recover(view, situation, attempt=attempt, reported=reported, policy=self._policy)

    def folds(self, plan: Plan, summaries: Sequence[str], view: View) -> tuple[Fold, ...]:
        """The folds of a plan, as entries."""
        situation = self.situation(view)
        made = apply(plan, summaries, lambda message: situation.tokens(view.count(message)))
        return tuple(map(self._conversation.placed, made))

    def window(self, view: View, situation: Situation) -> Window:
        """Exactly what is sent."""
        return window(view, situation, system=self._system, tools=self._tools)

    def request(self, view: View, situation: Situation, wanted: int | None) -> Request:
        """The same, with how long the answer may be, where `wanted` is what somebody wants."""
        shown = self.window(view, situation)
        output = self._output_tokens(situation, wanted)
        return Request(shown, view, situation, self.counted(view), output)

    def _output_tokens(self, situation: Situation, wanted: int | None) -> int | None:
        room = self.room
        free = max(1, room.reserve, room.context - situation.used - situation.margin)
        if wanted is not None:
            return min(wanted, free)
        longest = limits_of(self._target.provider, self._target.model).output
        return None if free >= longest else free

    def reported(self, request: Request, answered: Answered) -> Answered:
        """Learn from an answer what the request had; the answer, with what was shown for it."""
        counted = request.counted
        changed = self._conversation.changed(self._target.name, counted.all)
        if answered.exchanges and answered.message is not None:
            self._conversation.reported(self._target.name, counted.all)
            self._conversation.ledger.report(
                self._target.name,
                counted.all,
                answered.reported,
                tools=counted.tools,
                answer=answered.message,
                count=request.view.count,
                changed=changed,
                stated=self._target.counter.error,
                context=self.context,
            )
        if answered.cut is not None:
            self._conversation.ledger.took(self._target.name, answered.cut.response.usage)
        told = {"counted": counted.all, "tools": counted.tools, "by": self._target.family}
        told["context"] = self.context
        if changed is not None:
            told["changed"] = changed
        shown = FrozenDict({**request.window.manifest, **told})
        return answered._replace(shown=shown, digest=request.window.digest)

    def _pause_s(self) -> float | None:
        call = self._conversation.last_call
        return None if call is None else max(0.0, (ids.now() - call.timestamp).total_seconds())
