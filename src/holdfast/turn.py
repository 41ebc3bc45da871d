"""A turn: from what the user says to where the model has nothing more to do.

Its state is the log. Each finished step is stored before the next begins, so a turn can be
cancelled, killed, wait for somebody, or move to another machine, and is gone on with from the log
alone:

    begin       the lease, and a draft with what the user said, in one commit
    clean up    what a turn that was cut off has left
    step        as the log says: run the tools that the model asked for, or ask the model
                  ask    fold if the window is full; call; append what was said and the receipt
                  run    append that they start; run; append each result as it comes
    end         the last append drops the draft and releases the lease

A failed call leaves the log as it was, and the draft. A turn whose branch was left by a revert
finishes on it; one that has lost its lease puts what it has on a branch of its own. Both raise.

This is where window, model, tools and store meet. What each of the steps does stands in `steps/`.
"""

import asyncio
from contextlib import aclosing, suppress

from holdfast.cancel import CancelToken
from holdfast.conversation import Conversation
from holdfast.entries import Call
from holdfast.errors import Cancelled, ContextOverflow, HoldfastError, ToolUnavailable
from holdfast.events import Outcome, ToolResult, TurnStarted
from holdfast.results import TurnResult, outcome_of, result_of
from holdfast.steps.answers import Answered, receipts
from holdfast.steps.asking import Asker
from holdfast.steps.calls import Calls
from holdfast.steps.folding import Folder
from holdfast.steps.leftovers import cancelled
from holdfast.steps.limits import Limits, Meter
from holdfast.steps.observers import Observers, OnEvent
from holdfast.steps.orders import Order, Setup
from holdfast.steps.review import Review
from holdfast.steps.standing import Standing, is_unfinished
from holdfast.steps.tool_runs import run_calls
from holdfast.steps.turn_log import TurnLog, begin
from holdfast.steps.waiting import Waiting


class Turn:
    """One turn of a conversation; `run` once."""

    def __init__(
        self,
        conversation: Conversation,
        setup: Setup,
        order: Order,
        waiting: Waiting,
        cancel: CancelToken,
        *observers: OnEvent | None,
    ) -> None:
        self.cancel = cancel.child()
        self.is_finished = False  # nothing is left of it but the log
        self._talk = conversation
        self._setup = setup
        self._order = order
        self._waiting = waiting
        self._observers = Observers(self.cancel, *observers)
        self._limits = Limits.of(setup.settings.limits)
        self._review = Review(setup.schema)

    async def run(self) -> TurnResult:
        """Run the turn to its end. What fails is raised; what is finished is stored."""
        key = self._talk.record.key
        try:
            log = await begin(self._talk, self._setup, self._order, self._waiting, self.cancel)
        except Cancelled:
            return self._observers.finish(key, TurnResult(Outcome.CANCELLED))
        self._log = log
        try:
            await self._start(log)
            outcome = self._review.again(log.standing) if log.is_past else await self._run()
            self.is_finished = await log.end(outcome)
            log.check_branch()
            if log.is_past:
                self._review.check(self._setup.target.name)
        except asyncio.CancelledError:  # the loop ends: nobody waits for the answer any more
            await self._give_up("the program is ending")
            raise
        except BaseException as error:
            await log.fail(error)
            raise
        data, limit = self._review.data, self._meter.limit
        return self._observers.finish(key, result_of(log.rows, outcome, data=data, limit=limit))

    async def _run(self) -> Outcome:
        try:
            return await self._steps()
        except Cancelled as error:  # before anything, in a tool, while something was summed up
            return await self._keep_cancelled(Answered(None, cancelled=error.reason))

    async def _steps(self) -> Outcome:
        """One step after another, as the log says, until there is none."""
        while not self._log.is_over:  # the last append lets go; a cancel comes too late then
            self.cancel.raise_if_cancelled()
            now = self._log.standing
            if now.waiting:
                if await self._run_calls(now):
                    return Outcome.PENDING
            elif self._talk.steering and not self._log.is_new:
                await self._log.keep(self._talk.steering)
            elif now.is_over:
                return outcome_of(now.reply)
            elif self._meter.is_over(self._talk.spent):  # summaries count as well
                return Outcome.LIMIT
            else:
                answered = await self._ask()
                if answered.cancelled is not None:
                    return await self._keep_cancelled(answered)
                await self._keep_answer(answered)
        return outcome_of(self._log.standing.reply)

    async def _ask(self) -> Answered:
        """Ask, with a window that fits. A model that finds it too long is asked again, for less."""
        unsaid, windows = self._log.unsaid, self._setup.windows
        attempt = 0
        while True:
            request = await self._folder.fitted(unsaid, self._setup.settings.max_tokens)
            self._log.journal.begin(self._talk.head)
            self._observers.watch(request.situation)
            try:
                answered = await self._asker.ask(request.window, request.output)
            except ContextOverflow as error:
                attempt += 1
                await self._folder.shrink(request, attempt, error, unsaid)
            else:
                return windows.reported(request, answered)

    async def _keep_answer(self, answered: Answered) -> None:
        """Append what the user and the model said, with the receipt; that may end the turn."""
        assert answered.message is not None
        reply = self._setup.redacted(answered.message)
        more = [*self._calls.begin(answered.message, reply), *self._review.urged(reply)]
        is_last = not more and not reply.calls and not is_unfinished(reply)
        is_full = is_last and self._folder.is_full((*self._log.unsaid, reply))
        self._meter.rounds += 1
        entries = [reply, *self._receipts(answered), *more]
        await self._log.keep(entries, finish=is_last and not is_full)
        if not more:
            self._review.check(self._setup.target.name)
        if is_full and not self._talk.steering:
            await self._folder.fold_behind()

    async def _run_calls(self, now: Standing) -> bool:
        """Run the calls that can be run. True if there are some that wait for an answer."""
        found = self._calls.round(now)
        if found.entries:
            await self._log.keep(found.entries)
        async with aclosing(run_calls(found.jobs, cancel=self.cancel)) as results:
            async for _, message in results:
                kept = self._setup.redacted(message)
                await self._log.keep([kept])
                self._observers.tell(ToolResult(kept))
        if found.missing:
            raise ToolUnavailable(found.missing[0])
        return bool(found.waiting)

    async def _keep_cancelled(self, answered: Answered) -> Outcome:
        """Append what there is: the words so far, results of tools, and why it ended."""
        log, said, why = self._log, answered.message, answered.cancelled or ""
        words = [] if said is None else [self._setup.redacted(said)]
        is_noted = bool(self._setup.settings.extra.get("cancel_note"))
        ended = cancelled(log.standing, log.message.id, why, words, is_noted=is_noted)
        await log.keep([*words, *self._receipts(answered), *ended], finish=True)
        return Outcome.CANCELLED

    async def _start(self, log: TurnLog) -> None:
        """Clean up behind the turns before; get ready for this one."""
        talk, setup, observers = self._talk, self._setup, self._observers
        await log.start()
        self._meter = Meter(self._limits, talk.spent)
        self._calls = Calls(setup, log.answers, talk.id, log.message.id, self.cancel)
        self._folder = Folder(talk, setup, log.keeper, observers, self.cancel)
        self._asker = Asker(
            setup, talk.id, log.journal, observers, self.cancel, self._limits.continuations
        )
        observers.tell(TurnStarted(session_id=talk.id, message=log.message))

    async def _give_up(self, why: str) -> None:
        """Keep what there is, when the task itself is cancelled."""
        log = self._log
        try:
            if not log.is_over and log.is_started:
                with suppress(HoldfastError):
                    await log.look()  # an append that was cancelled with it may be there
                    if not log.standing.is_over:
                        await self._keep_cancelled(Answered(log.unkept(), cancelled=why))
        finally:  # also when it is cancelled again
            await log.leave()

    def _receipts(self, answered: Answered) -> list[Call]:
        return receipts(answered, self._setup.target, self._talk.spent)
