"""The workbench of a session: what is loaded of it, what it is bound to, and its turns in line."""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress

from holdfast.bindings import Bindings, Choice
from holdfast.cancel import CancelToken
from holdfast.consolidation.wording import in_system
from holdfast.conversation import Conversation
from holdfast.entries import Entry, Fold
from holdfast.errors import Cancelled, Conflict, InvalidInput, StoreError
from holdfast.events import Outcome
from holdfast.messages import Message
from holdfast.results import TurnResult
from holdfast.steps import drafts
from holdfast.steps.calls import are_answered
from holdfast.steps.cleanup import nothing_to_resume
from holdfast.steps.folding import fold
from holdfast.steps.observers import OnEvent
from holdfast.steps.orders import Order, Setup, redacted
from holdfast.steps.standing import standing
from holdfast.steps.targets import Target
from holdfast.steps.waiting import Waiting
from holdfast.steps.windows import Windows
from holdfast.stores.base import Tenant
from holdfast.stores.values import Branch, Record, Stored
from holdfast.tools import Tool
from holdfast.turn import Turn
from holdfast.turn_queue import TurnQueue
from holdfast.window.budget import Budget
from holdfast.window.ledger import Ledger
from holdfast.window.plan import Policy
from holdfast.workshop import Model, Workshop

_COMPACT_TRIES = 3


class Workbench:
    """Where one session is worked on."""

    def __init__(self, workshop: Workshop, record: Record) -> None:
        self.workshop = workshop
        self.talk = self._conversation(record)
        self.queue = TurnQueue(workshop.owner)
        self.bindings = Bindings(workshop)
        self.remembered = ""  # of the memory, what the model is shown
        if not record.seq:  # nothing will be loaded
            self.recall()

    @property
    def tenant(self) -> Tenant:
        return self.workshop.tenant

    @property
    def record(self) -> Record:
        """As last read."""
        return self.talk.record

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What a model is offered: the session's own tools, or else the manager's."""
        if not self.record.tools:
            return self.workshop.tools
        return self.bindings.bound(self.record.tools)

    def redacted(self, message: Message) -> Message:
        """The message as it may be stored."""
        return redacted(message, self.workshop.redact)

    # What is loaded

    async def refresh(self) -> None:
        """See what others have written."""
        await self._look(is_all=True)

    async def _look(self, *, is_all: bool) -> None:
        """Read the record; go to the branch in use; with `is_all`, read what is new on it."""
        await self.talk.look()
        if not self.talk.is_in_use:
            await self.turn_to(self.record)
        elif is_all:
            await self.talk.catch_up()
        self.recall()

    async def turn_to(self, record: Record) -> Branch:
        """Go on with the branch that the record names."""
        talk = self._conversation(record, self.talk.ledger)
        await talk.load()
        self.talk = talk
        self.recall()
        self._changed_size()
        return record.branch_named(record.branch)

    def _conversation(self, record: Record, ledger: Ledger | None = None) -> Conversation:
        return Conversation(self.tenant, record, ledger, self._changed_size)

    def _changed_size(self) -> None:
        self.workshop.changed_size(self.record.key)

    # The memory

    def recall(self) -> None:
        """See what the model is shown of the memory."""
        memory = self.workshop.memory
        if memory is not None:
            self.remembered = memory.showing.recall(
                self.record, self.remembered, is_first=not self.talk.was_asked
            )

    async def remember(self) -> None:
        """Nothing is cached of what the model was shown: show it what the memory holds now."""
        if self.workshop.memory is not None:
            showing = self.workshop.memory.showing
            self.remembered = await showing.show(self.record, self.remembered)

    def said(self) -> None:
        """More was said: it may be time to summarise what is older."""
        if self.workshop.memory is not None:
            self.workshop.memory.after(self.record, self.talk.count)

    async def forked(self, new: Record) -> None:
        """Another session begins as this one."""
        if self.workshop.memory is not None:
            await self.workshop.memory.showing.forked(self.record, new)

    @asynccontextmanager
    async def forgetting(self, seqs: Collection[int] | None = None) -> AsyncIterator[None]:
        """These messages are about to go, or all: the memory has nothing of them any more."""
        memory = self.workshop.memory
        async with (
            nullcontext() if memory is None else memory.leaving.forgetting(self.record, seqs)
        ):
            yield
        self.recall()

    # The window

    def windows(self, target: Target, tools: Sequence[Tool] | None = None) -> Windows:
        """What this model is shown, of the session's tools or of others."""
        self.talk.learn(target.family, target.count)
        settings = self.workshop.completed(self.record.settings)
        budget = Budget.of(settings.budget)
        offered = self.tools if tools is None else tools
        system = in_system(settings.system, self.remembered)

        async def folded() -> str | None:
            await self.remember()
            return in_system(settings.system, self.remembered)

        return Windows(
            self.talk, target, system, offered, budget, self.workshop.policy, folded=folded
        )

    def target(self, model: Model | None = None) -> Target:
        """A model that is given, or else the session's, or the manager's."""
        return self.bindings.target(model, self.record.settings.model)

    async def compact(self, policy: Policy | None) -> tuple[Fold, ...]:
        """Make the window smaller now; the folds that were made."""
        target = self.target()

        async def keep(entries: Sequence[Entry]) -> object:
            return await self.talk.append(entries)

        for attempt in range(_COMPACT_TRIES):
            await self.refresh()
            windows = self.windows(target)
            view = windows.view()
            plan, situation = windows.plan_by_hand(view, policy)
            try:
                return await fold(
                    plan,
                    view,
                    situation,
                    conversation=self.talk,
                    windows=windows,
                    target=target,
                    cancel=CancelToken(),
                    redacted=self.redacted,
                    keep=keep,
                )
            except Conflict:
                if attempt + 1 == _COMPACT_TRIES:
                    raise
        return ()

    def check_fold(self, fold: Fold) -> None:
        """Refuse to hide a question that has no answer yet."""
        rows = self._open_turn()
        if rows and fold.replacement is None and fold.first <= rows[0].seq <= fold.last:
            raise InvalidInput(
                "the fold", "hides what has no answer yet: resume, or show something in its place"
            )

    # Turns

    def start(
        self, order: Order, choice: Choice | None, cancel: CancelToken, *observers: OnEvent | None
    ) -> "asyncio.Task[TurnResult]":
        """A turn, in a task of its own. One that is gone on with has a choice already."""
        self.workshop.check_loop()
        waiting = Waiting(self.tenant, self.record.id, self.workshop.owner, order.wait_s)
        task = self.workshop.start(self._run(order, waiting, choice, cancel, *observers))
        self.workshop.ends_by(task, cancel)
        return task

    async def _run(
        self,
        order: Order,
        waiting: Waiting,
        choice: Choice | None,
        cancel: CancelToken,
        *observers: OnEvent | None,
    ) -> TurnResult:
        """Run a turn when it is its turn."""
        try:
            async with self.queue.turn(self.record.id, self.record.key, waiting, cancel):
                await self._look(is_all=order.message is None)
                if order.message is None:
                    self._check_resumable(order)
                draft = drafts.read(self.record.draft)
                if self.workshop.memory is not None and not self.talk.was_asked:
                    await self.remember()
                setup = self._setup(choice or self.bindings.chosen_in(draft))
                turn = Turn(self.talk, setup, order.on(self.talk), waiting, cancel, *observers)
                try:
                    return await turn.run()
                finally:
                    await self._see_draft(turn)
                    self.said()
        except Cancelled:  # while it waited
            return TurnResult(Outcome.CANCELLED)

    def _check_resumable(self, order: Order) -> None:
        """Refuse to go on where there is nothing, before a draft is replaced by another."""
        if drafts.read(self.record.draft) is not None or self._open_turn():
            return
        if not are_answered(order.answers, self.talk.turn()):
            raise nothing_to_resume()

    def _open_turn(self) -> tuple[Stored, ...]:
        """The rows of the latest turn, if it has no answer yet."""
        rows = self.talk.turn()
        starts = bool(rows) and isinstance(rows[0].entry, Message) and rows[0].entry.starts_turn
        return rows if starts and not standing(rows).is_over else ()

    async def _see_draft(self, turn: Turn) -> None:
        """What is left of the turn: nothing, if its last append has ended it."""
        if turn.is_finished:
            self.talk.drop_draft()
            return
        with suppress(StoreError):
            await self.talk.look()

    def _setup(self, choice: Choice) -> Setup:
        """What a turn is run with."""
        workshop, target = self.workshop, self.target(choice.model)
        tools = self.tools if choice.tools is None else choice.tools
        return Setup(
            target=target,
            settings=workshop.completed(self.record.settings),
            tools=tools,
            windows=self.windows(target, tools),
            scribe=workshop.scribe,
            owner=workshop.owner,
            redact=workshop.redact,
            schema=choice.schema,
            options=choice.options,
        )
