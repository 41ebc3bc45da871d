"""Carries out what a policy has planned: summaries are written, and folds go into the log."""

import logging
from collections.abc import Awaitable, Callable, Sequence

from holdfast.cancel import CancelToken
from holdfast.conversation import Conversation
from holdfast.entries import Entry, Fold
from holdfast.errors import ProviderError
from holdfast.frozen import EMPTY
from holdfast.messages import Message
from holdfast.steps.asking import Answered, receipts
from holdfast.steps.summaries import summaries
from holdfast.steps.targets import Target
from holdfast.steps.windows import Windows
from holdfast.window.plan import Plan
from holdfast.window.situation import Situation
from holdfast.window.view import View

Keep = Callable[[Sequence[Entry]], Awaitable[object]]
_log = logging.getLogger("holdfast")


async def fold(
    plan: Plan,
    view: View,
    situation: Situation,
    *,
    conversation: Conversation,
    windows: Windows,
    target: Target,
    cancel: CancelToken,
    keep: Keep,
    pending: Sequence[Message] = (),
) -> tuple[Fold, ...]:
    """Append the folds of a plan, with the receipts for its summaries, by `keep`.

    If a summary cannot be written, only what has to go is folded, without one.
    """
    texts: list[str] = []
    calls: Sequence[Entry] = ()
    if plan.to_summarize:
        try:
            texts, exchanges = await summaries(plan, target, situation.limit, cancel)
            written = Answered(None, tuple(exchanges))
            calls = receipts(written, target, conversation.spent, EMPTY, None)
        except ProviderError as error:
            _log.warning("a summary could not be written: %s", error)
            plan = windows.plan_without_summary(view, situation)
    if not plan:
        return ()
    before = view.total
    folds = windows.folds(plan, texts, view)
    await keep([*folds, *calls])
    conversation.folded(before - windows.view(pending).total)
    conversation.forget()
    return folds
