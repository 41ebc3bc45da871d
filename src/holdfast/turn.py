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
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import aclosing, suppress
from typing import Any, NamedTuple

from holdfast.cancel import CancelToken
from holdfast.conversation import Conversation
from holdfast.entries import Call, Entry, Mark
from holdfast.errors import (
    Cancelled,
    Conflict,
    ContextOverflow,
    HoldfastError,
    InvalidInput,
    LimitReached,
    OnceMismatch,
    ProtocolError,
    ToolUnavailable,
)
from holdfast.events import Folded, Outcome, ToolResult, TurnFinished, TurnStarted
from holdfast.frozen import EMPTY, FrozenDict
from holdfast.messages import Message, Stop, ToolCall
from holdfast.notes import REPAIR, cancel_note, nudge
from holdfast.results import TurnResult, outcome_of, result_of
from holdfast.settings import Settings
from holdfast.steps import drafts
from holdfast.steps.asking import Answered, Asker, receipts
from holdfast.steps.calls import Answers, check_answers, sort_calls, started
from holdfast.steps.cleanup import Start, start_again, start_new
from holdfast.steps.folding import fold
from holdfast.steps.hold import take_hold
from holdfast.steps.keeper import Keeper
from holdfast.steps.leftovers import closed, has_answer, partial
from holdfast.steps.limits import NOTHING_SPENT, Limits
from holdfast.steps.observers import Observers, OnEvent
from holdfast.steps.schemas import Schema
from holdfast.steps.scribe import Scribe
from holdfast.steps.standing import Standing, standing
from holdfast.steps.targets import Target
from holdfast.steps.tool_runs import Job, run_calls
from holdfast.steps.windows import Windows
from holdfast.stores.values import Stored
from holdfast.tools import Running, Tool
from holdfast.window.budget import Budget
from holdfast.window.plan import Plan, Policy
from holdfast.window.situation import Situation
from holdfast.window.triggers import Crossing
from holdfast.window.view import View

NUDGES_MAX = 3
OVERFLOWS_MAX = 2
_FOLDS_MAX = 3  # plans before one call: what is left may be less certain than what was there
CANCELLED = "cancelled"
_EMPTY_STOPS = (None, str(Stop.TOOL_USE), str(Stop.UNKNOWN))
_log = logging.getLogger("holdfast")

Redact = Callable[[Message], Message]


class Setup(NamedTuple):
    """How a turn is run: who is asked, with which tools, how its window is kept."""

    target: Target
    settings: Settings
    tools: tuple[Tool, ...]
    policy: Policy
    scribe: Scribe
    owner: str
    redact: Redact | None = None
    schema: Schema | None = None
    options: Mapping[str, Any] = EMPTY


class Order(NamedTuple):
    """What is asked of a turn. Without a message, one that was cut off is gone on with."""

    message: Message | None = None
    once: str | None = None
    answers: Answers | None = None
    wait_s: float | None = None


class Turn:
    """One turn of a conversation; `run` once."""

    def __init__(
        self,
        conversation: Conversation,
        setup: Setup,
        order: Order,
        cancel: CancelToken,
        *observers: OnEvent | None,
    ) -> None:
        self.cancel = cancel.child()
        self.is_finished = False  # nothing is left of it but the log
        self._talk = conversation
        self._setup = setup
        self._order = order
        self._observers = Observers(self.cancel, *observers)
        settings = setup.settings
        self._limits = Limits.of(settings.limits)
        budget = Budget.of(settings.budget)
        self._windows = Windows(
            conversation, setup.target, settings.system, setup.tools, budget, setup.policy
        )
        self._said: Message | None = None  # what the user said: the first message of the turn
        self._is_new = False  # it is not in the log yet
        self._past: tuple[Stored, ...] | None = None  # its rows, if it was run before
        self._answers: Answers | None = None  # until it has started
        self._asked: dict[str, ToolCall] = {}  # calls as the model made them, before redaction
        self._started: set[str] = set()  # those that this turn has started itself
        self._rounds = 0
        self._spent_before = NOTHING_SPENT  # by the session, when this began
        self._nudges = 0
        self._is_repaired = False
        self._data: Any = None
        self._problem = ""  # of an answer that does not follow its schema
        self._limit: LimitReached | None = None

    # The flow

    async def run(self) -> TurnResult:
        """Run the turn to its end. What fails is raised; what is finished is stored."""
        try:
            await self._begin()
        except Cancelled:
            return self._result(Outcome.CANCELLED)
        try:
            start = await self._start()
            outcome = await self._run() if start.past is None else self._ended_before()
            await self._end(outcome)
        except asyncio.CancelledError:  # the loop ends: nobody waits for the answer any more
            await self._give_up("the program is ending")
            raise
        except BaseException as error:
            await self._fail(error)
            raise
        return self._result(outcome)

    async def _run(self) -> Outcome:
        try:
            return await self._steps()
        except Cancelled as error:  # before anything, in a tool, while something was summed up
            return await self._keep_cancelled(Answered(None, cancelled=error.reason))

    async def _steps(self) -> Outcome:
        """One step after another, as the log says, until there is none."""
        while not self._hold.is_over:  # the last append lets go; a cancel comes too late then
            self.cancel.raise_if_cancelled()
            now = self._standing()
            if now.waiting:
                if await self._run_calls(now):
                    return Outcome.PENDING
            elif self._talk.steering and not self._is_new:
                await self._keeper.keep(self._talk.steering)
            elif now.is_over:
                return outcome_of(now.reply)
            elif self._is_limit_met():
                return Outcome.LIMIT
            else:
                asked = await self._ask()
                if asked.answered.cancelled is not None:
                    return await self._keep_cancelled(asked.answered)
                await self._keep_answer(asked)
        return outcome_of(self._standing().reply)

    async def _begin(self) -> None:
        """Take the lease; what the user said is stored with it."""
        self._hold = await take_hold(
            self._talk,
            self._setup.owner,
            self._draft,
            self._setup.scribe,
            self.cancel,
            wait_s=self._order.wait_s,
            is_silent=self._setup.redact is not None,  # a secret may come in two pieces
        )
        self._keeper = Keeper(self._talk, self._hold)

    async def _start(self) -> Start:
        """Clean up behind the turns before; find out what was said, and whether it is answered."""
        order = self._order
        if order.message is None:
            start = await start_again(self._talk, self._hold, self._keeper)
        else:
            start = await start_new(self._talk, self._hold, self._keeper, order.message, order.once)
        self._said, self._is_new, self._past = start
        self._spent_before = self._talk.spent
        self._keeper.at = self._talk.head
        self._answers = check_answers(order.answers, self._standing())
        self._observers.tell(TurnStarted(session_id=self._talk.id, message=start.message))
        return start

    async def _end(self, outcome: Outcome) -> None:
        """Let go, unless the last append has done so; tell if the branch was left meanwhile."""
        why = _ENDINGS.get(outcome, "")
        await self._hold.let_go(why, drop=not why)
        self.is_finished = self._hold.is_dropped
        self._talk.ledger.end_turn()
        if not self._talk.is_in_use:
            raise Conflict(self._talk.record.key, self._talk.head, self._talk.record.seq)

    async def _fail(self, error: BaseException) -> None:
        """Let go, with the draft as it is to be found: there, unless nothing was begun."""
        left, order = self._hold.left, self._order
        if self._said is not None and self._answers is not None:
            await self._hold.let_go(_ending(error))
        elif order.message is None or (
            left is not None and left.is_sent_as(order.once, self._talk.branch)
        ):  # it could not even start: what was left of it before is as it was
            await self._hold.let_go("" if left is None else left.ended, drop=left is None)
        else:
            await self._hold.let_go(_ending(error), drop=isinstance(error, _REFUSED))

    def _ended_before(self) -> Outcome:
        """The outcome of a turn that was run before."""
        reply = self._standing().reply
        if self._setup.schema is not None and reply is not None:
            self._data = self._setup.schema.check(reply.text).value
        return outcome_of(reply)

    async def _give_up(self, why: str) -> None:
        """Keep what there is, when the task itself is cancelled.

        An append that was cancelled with it may have happened: the log is looked at first.
        """
        try:
            if not self._hold.is_over and self._said is not None:
                with suppress(HoldfastError):
                    await self._talk.refresh()
                    self._is_new = self._talk.turn_of(self._said.id) is None
                    if not self._standing().is_over:
                        await self._keep_cancelled(Answered(self._unkept(), cancelled=why))
        finally:  # also when it is cancelled again
            await self._hold.let_go()

    def _unkept(self) -> Message | None:
        """What a model has said and is not in the log."""
        journal = self._hold.journal
        if not journal.text or has_answer(self._rows(), journal.at):
            return None
        return partial(journal.text, stop=str(Stop.CANCELLED))

    def _draft(self) -> dict[str, Any]:
        """What is stored before anything else: the input, or that of the turn gone on with."""
        talk, order = self._talk, self._order
        before = talk.record.draft
        left = drafts.read(before)
        if left is not None and (order.message is None or left.is_sent_as(order.once, talk.branch)):
            message, branch, once = left.message, left.branch, left.once
        elif order.message is not None:
            message, branch, once = order.message, talk.branch, order.once
        else:
            rows = talk.turn()
            first = rows[0].entry if rows else None
            message = first if isinstance(first, Message) else Message.user(None)
            branch, once = talk.branch, None
        return drafts.written(
            message, branch, once=once, options=self._setup.options, before=before
        )

    # Where it stands

    def _rows(self) -> tuple[Stored, ...]:
        """The rows of this turn; none before it is in the log."""
        if self._past is not None:
            return self._past
        if self._said is None or self._is_new:
            return ()
        return self._talk.turn_of(self._said.id, is_last=True) or ()

    def _standing(self) -> Standing:
        return standing(self._rows())

    def _is_limit_met(self) -> bool:
        """Whether a limit forbids to ask again. One that forbids to begin is raised."""
        spent = self._talk.spent  # summaries count as well
        limit = self._limits.met(self._rounds, spent.since(self._spent_before), spent)
        if limit is not None and not self._rounds:
            raise limit
        self._limit = limit
        return limit is not None

    def _result(self, outcome: Outcome) -> TurnResult:
        rows = self._rows()
        pending = standing(rows).waiting if outcome is Outcome.PENDING else ()
        result = result_of(rows, outcome, pending=pending, data=self._data, limit=self._limit)
        if outcome is Outcome.RESPONSE and not result.text:
            _log.warning("a turn of session %r ended without words", self._talk.record.key)
        self._observers.tell(
            TurnFinished(
                outcome=outcome, message=result.message, usage=result.usage, cost=result.cost
            )
        )
        return result

    # Asking the model

    async def _ask(self) -> "_Asked":
        """Ask, with a window that fits. A model that finds it too long is asked again, for less."""
        setup = self._setup
        asker = Asker(
            setup.target,
            setup.settings,
            self._hold.journal,
            self._observers,
            self.cancel,
            conversation=self._talk.id,
            schema=None if setup.schema is None else setup.schema.declared,
            continuations_max=self._limits.continuations,
        )
        attempt = 0
        while True:
            view, situation = await self._fitted()
            window = self._windows.window(view, situation)
            counted = self._windows.counted(view)
            output = self._windows.output_tokens(situation, setup.settings.max_tokens)
            self._hold.journal.begin(self._talk.head)
            if self._observers.crossing is None:
                self._observers.crossing = Crossing(situation)
            try:
                answered = await asker.ask(window.messages, window.system, window.tools, output)
            except ContextOverflow as error:
                attempt += 1
                if error.partial is not None:  # some of an answer was heard, and another begins
                    self._observers.retry(error, attempt, 0.0)
                plan = self._windows.plan_smaller(view, situation, attempt, error)
                await self._fold(plan, view, situation)
                continue
            if answered.exchanges and answered.message is not None:
                self._windows.report(counted, answered.reported, answered.message, view)
            told = {"counted": counted.all, "tools": counted.tools, "by": setup.target.family}
            told["context"] = self._windows.context
            return _Asked(answered, FrozenDict({**window.manifest, **told}), window.digest)

    def _unsaid(self) -> tuple[Message, ...]:
        return (self._said,) if self._is_new and self._said is not None else ()

    async def _fitted(self) -> tuple[View, Situation]:
        """The view of the next call, folded if it has to be."""
        for _ in range(_FOLDS_MAX):
            view = self._windows.view(self._unsaid())
            situation = self._windows.situation(view)
            plan = self._windows.plan(view, situation)
            if not plan or not await self._fold(plan, view, situation):
                break
        return view, situation

    async def _fold(
        self, plan: Plan, view: View, situation: Situation, *, finish: bool = False
    ) -> bool:
        """Carry out a plan; False if there was nothing to do after all."""
        folds = await fold(
            plan,
            view,
            situation,
            conversation=self._talk,
            windows=self._windows,
            target=self._setup.target,
            cancel=self.cancel,
            keep=lambda entries: self._keeper.keep(entries, finish=finish),
            pending=self._unsaid(),
        )
        if folds:
            self._observers.tell(Folded(folds))
        return bool(folds)

    async def _keep_answer(self, asked: "_Asked") -> None:
        """Append what the user and the model said, with the receipt; that may end the turn."""
        answered = asked.answered
        assert answered.message is not None
        self._rounds += 1
        reply = self._redacted(answered.message)
        self._asked = {call.id: call for call in answered.message.calls}
        receipt = self._receipts(asked)
        more = [*self._starting(reply), *self._urging(reply)]
        is_full = not more and not reply.calls and self._is_full_behind(reply)
        await self._keeper.keep(
            [*self._unsaid(), reply, *receipt, *more],
            finish=not more and not reply.calls and not is_full,
        )
        self._is_new = False
        if self._problem and not more:
            raise ProtocolError(
                f"the answer does not follow the schema: {self._problem}", self._setup.target.name
            )
        if is_full and not self._talk.steering:
            await self._fold_behind()

    def _receipts(self, asked: "_Asked") -> list[Call]:
        target, spent = self._setup.target, self._talk.spent
        return receipts(asked.answered, target, spent, asked.manifest, asked.digest)

    def _starting(self, reply: Message) -> list[Entry]:
        """Marks for the calls that can run at once: they stand in the log before they do."""
        runs = sort_calls(Standing(reply, reply.calls), self._setup.tools, {}).run
        self._started |= {call.id for call, _ in runs}
        return started(reply, runs)

    def _urging(self, reply: Message) -> list[Entry]:
        """What the model is told when its answer will not do, a few times at most."""
        if reply.calls:
            return []
        if not reply.text and reply.stop in _EMPTY_STOPS and self._nudges < NUDGES_MAX:
            self._nudges += 1
            return [nudge()]
        if self._setup.schema is None or reply.stop == Stop.SAFETY:
            return []
        self._data, self._problem = self._setup.schema.check(reply.text)
        if not self._problem or self._is_repaired:
            return []
        self._is_repaired = True
        return [nudge(REPAIR.format(why=self._problem))]

    def _is_full_behind(self, reply: Message) -> bool:
        """Whether the window is to be made smaller once this answer is in the log."""
        return bool(self._windows.plan_behind(self._windows.view((*self._unsaid(), reply)))[0])

    async def _fold_behind(self) -> None:
        """Make the window smaller behind the turn, which has its answer whatever comes of it."""
        view = self._windows.view()
        plan, situation = self._windows.plan_behind(view)
        try:
            await self._fold(plan, view, situation, finish=True)
        except (HoldfastError, asyncio.CancelledError) as error:
            _log.warning("the window could not be folded behind a turn: %s", error)

    # Running tools

    async def _run_calls(self, now: Standing) -> bool:
        """Run the calls that can be run. True if there are some that wait for an answer."""
        assert now.reply is not None and self._said is not None
        found = sort_calls(
            now._replace(started=now.started - self._started),
            self._setup.tools,
            self._answers or {},
        )
        fresh = [run for run in found.run if run[0].id not in self._started]
        self._started |= {call.id for call, _ in fresh}
        if entries := [*found.answers, *started(now.reply, fresh)]:
            await self._keeper.keep(entries)
        jobs = [Job(self._asked.get(c.id, c), tool, self._running(c)) for c, tool in found.run]
        async with aclosing(run_calls(jobs, cancel=self.cancel)) as results:
            async for _, message in results:
                kept = self._redacted(message)
                await self._keeper.keep([kept])
                self._observers.tell(ToolResult(kept))
        if found.missing:
            raise ToolUnavailable(found.missing[0])
        return bool(found.waiting)

    def _running(self, call: ToolCall) -> Running:
        assert self._said is not None
        session, turn = self._talk.id, self._said.id
        return Running(session, turn, call.id, f"{session}:{turn}:{call.id}", self.cancel)

    # What was cut off

    async def _keep_cancelled(self, answered: Answered) -> Outcome:
        """Append what there is: the words so far, results of tools, and why it ended."""
        assert self._said is not None
        entries: list[Entry] = [*self._unsaid()]
        if answered.message is not None:
            entries.append(self._redacted(answered.message))
        entries += self._receipts(_Asked(answered))
        entries += closed(self._standing())
        why = FrozenDict({"reason": answered.cancelled or ""})
        entries.append(Mark(what=CANCELLED, about=self._said.id, data=why))
        if self._setup.settings.extra.get("cancel_note"):
            entries.append(cancel_note(answered.text))
        await self._keeper.keep(entries, finish=True)
        self._is_new = False
        return Outcome.CANCELLED

    def _redacted(self, message: Message) -> Message:
        return redacted(message, self._setup.redact)


class _Asked(NamedTuple):
    """An answer, and what the model was shown."""

    answered: Answered
    manifest: FrozenDict = EMPTY
    digest: str | None = None


def redacted(message: Message, redact: Redact | None) -> Message:
    """The message as it may be stored."""
    if redact is None:
        return message
    kept: object = redact(message)
    if not isinstance(kept, Message):
        raise InvalidInput("redact", f"gives a Message back, not {type(kept).__name__}")
    return kept


_REFUSED = (InvalidInput, OnceMismatch, Conflict)  # of what cannot be sent so, ever
_ENDINGS = {Outcome.PENDING: drafts.PENDING, Outcome.LIMIT: drafts.LIMIT}


def _ending(error: BaseException) -> str:
    """What a draft says of a turn that ended with this error."""
    return drafts.PENDING if isinstance(error, ToolUnavailable) else drafts.FAILED
