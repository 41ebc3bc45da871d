"""Makes the window smaller: what a policy has planned is carried out, and folds go into the log."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from holdfast.cancel import CancelToken
from holdfast.conversation import Conversation
from holdfast.entries import Entry, Fold
from holdfast.errors import ContextOverflow, HoldfastError
from holdfast.events import Folded
from holdfast.messages import Message
from holdfast.steps.answers import Answered, receipts
from holdfast.steps.keeper import Keeper
from holdfast.steps.observers import Observers
from holdfast.steps.orders import Redact, Setup
from holdfast.steps.summaries import summaries
from holdfast.steps.targets import Target
from holdfast.steps.windows import Request, Windows
from holdfast.window.plan import Plan
from holdfast.window.situation import Situation
from holdfast.window.view import View

_FOLDS_MAX = 8  # plans before one call: what is left may be less certain than what was there
Keep = Callable[[Sequence[Entry]], Awaitable[object]]
_log = logging.getLogger("holdfast")


class Folder:
    """Makes the window of a turn fit: before a call, when a model refuses it, and at the end."""

    def __init__(
        self,
        conversation: Conversation,
        setup: Setup,
        keeper: Keeper,
        observers: Observers,
        cancel: CancelToken,
    ) -> None:
        self._talk = conversation
        self._windows = setup.windows
        self._target = setup.target
        self._redacted = setup.redacted
        self._keeper = keeper
        self._observers = observers
        self._cancel = cancel

    async def fitted(self, unsaid: Sequence[Message], output: int | None) -> Request:
        """The request of the next call, with a window that was folded if it had to be."""
        for place in range(_FOLDS_MAX + 1):
            view = self._windows.view(unsaid)
            situation = self._windows.situation(view)
            if place == _FOLDS_MAX:
                break
            plan = self._windows.plan(view, situation)
            if not plan or not await self._fold(plan, view, situation, unsaid):
                break
        return self._windows.request(view, situation, output)

    async def shrink(
        self, request: Request, attempt: int, error: ContextOverflow, unsaid: Sequence[Message]
    ) -> None:
        """Make smaller what a model refused as too long; DoesNotFit where nothing more helps."""
        if error.partial is not None:  # some of an answer was heard, and another begins
            self._observers.retry(error, attempt, 0.0)
        plan = self._windows.plan_smaller(request.view, request.situation, attempt, error)
        await self._fold(plan, request.view, request.situation, unsaid)

    def is_full(self, unsaid: Sequence[Message]) -> bool:
        """Whether the window is to be made smaller once this is in the log."""
        return bool(self._windows.plan_behind(self._windows.view(unsaid))[0])

    async def fold_behind(self) -> None:
        """Make the window smaller behind the turn, which has its answer whatever comes of it."""
        view = self._windows.view()
        plan, situation = self._windows.plan_behind(view)
        try:
            await self._fold(plan, view, situation, finish=True)
        except (HoldfastError, asyncio.CancelledError) as error:
            _log.warning("the window could not be folded behind a turn: %s", error)

    async def _fold(
        self,
        plan: Plan,
        view: View,
        situation: Situation,
        unsaid: Sequence[Message] = (),
        *,
        finish: bool = False,
    ) -> bool:
        """Carry out a plan; False if there was nothing to do after all."""
        folds = await fold(
            plan,
            view,
            situation,
            conversation=self._talk,
            windows=self._windows,
            target=self._target,
            cancel=self._cancel,
            redacted=self._redacted,
            keep=lambda entries: self._keeper.keep(entries, finish=finish),
            pending=unsaid,
        )
        if folds:
            self._observers.tell(Folded(folds))
        return bool(folds)


async def fold(
    plan: Plan,
    view: View,
    situation: Situation,
    *,
    conversation: Conversation,
    windows: Windows,
    target: Target,
    cancel: CancelToken,
    redacted: Redact,
    keep: Keep,
    pending: Sequence[Message] = (),
) -> tuple[Fold, ...]:
    """Append the folds of a plan, with the receipts for its summaries, by `keep`.

    If a summary cannot be written, or says nothing, only what has to go is folded, without one.
    """
    texts: list[str] = []
    calls: Sequence[Entry] = ()
    if plan.to_summarize:
        written = await summaries(plan, target, situation.limit, cancel)
        texts = written.texts
        calls = receipts(Answered(None, written.exchanges), target, conversation.spent)
        if written.problem:
            _log.warning("a summary could not be written: %s", written.problem)
            plan, texts = windows.plan_without_summary(view, situation), []
    if not plan:
        if calls:  # they were paid for
            await keep(calls)
        return ()
    before = view.total
    folds = tuple(shown(each, redacted) for each in windows.folds(plan, texts, view))
    await keep([*folds, *calls])
    conversation.folded(before - windows.view(pending).total)
    await windows.folded()
    conversation.forget()
    return folds


def shown(fold: Fold, redacted: Redact) -> Fold:
    """The fold with what it shows as that may be stored."""
    if fold.replacement is None:
        return fold
    return fold.replace(replacement=redacted(fold.replacement))
