"""A session: one conversation, kept in a store."""

import json
from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from holdfast import branching, children, forking, ids, outline
from holdfast.cancel import CancelToken
from holdfast.child import Child
from holdfast.conversation import STEER
from holdfast.entries import Fold, Mark
from holdfast.erasing import erase
from holdfast.errors import InvalidInput
from holdfast.frozen import FrozenDict
from holdfast.inputs import (
    Input,
    messages_of,
    named_settings,
    policy_of,
    said,
    seconds,
    sent,
    token_under,
)
from holdfast.messages import Message, ToolCall
from holdfast.preview import Preview, preview
from holdfast.results import TurnResult
from holdfast.settings import Settings
from holdfast.steps import drafts
from holdfast.steps.drafts import PENDING, Draft
from holdfast.steps.folding import shown
from holdfast.steps.observers import OnEvent, checked
from holdfast.steps.orders import Answers, Order
from holdfast.steps.standing import standing
from holdfast.stores.base import Tenant
from holdfast.stores.values import Appended, Branch, Chunk, Record, Stored
from holdfast.streams import Stream, finished
from holdfast.subagent import Subagent
from holdfast.tools import Tool
from holdfast.window.ledger import Ledger
from holdfast.window.plan import Policy
from holdfast.window.window import Window
from holdfast.workbench import Workbench
from holdfast.workshop import Model, Workshop


class Session:
    """One conversation. A `SessionManager` gives it out, the same object to everybody who asks.

    What it says of itself is as fresh as the last thing that was done with it, or `refresh`:
    another process may have written since.
    """

    def __init__(self, workshop: Workshop, record: Record) -> None:
        self._bench = Workbench(workshop, record)

    # For the manager's cache

    @property
    def is_over(self) -> bool:
        """Whether it is known here that there is no such session any more, or that it expired."""
        ttl = self._record.ttl
        return self._bench.talk.is_gone or (ttl is not None and ids.now() - self.updated_at > ttl)

    @property
    def size(self) -> int:
        """About how many bytes the loaded entries take."""
        return self._bench.talk.size

    def __repr__(self) -> str:
        return f"<Session {self.key!r}, {self.count} messages on {self.branch!r}>"

    # What it is

    @property
    def key(self) -> str:
        return self._record.key

    @property
    def id(self) -> str:
        return self._record.id

    @property
    def agent(self) -> str:
        return self._record.agent

    @property
    def settings(self) -> Settings:
        return self._record.settings

    @property
    def metadata(self) -> FrozenDict:
        return self._record.metadata

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Those that a model is offered here: the session's own, or else the manager's."""
        return self._bench.tools

    @property
    def ledger(self) -> Ledger:
        """What is known about tokens."""
        return self._bench.talk.ledger

    @property
    def branch(self) -> str:
        """The branch in use."""
        return self._bench.talk.branch

    @property
    def branches(self) -> tuple[Branch, ...]:
        return self._record.branches

    @property
    def ttl(self) -> timedelta | None:
        """How long it lives after it was last written to; None is for ever."""
        return self._record.ttl

    @property
    def created_at(self) -> datetime:
        return self._record.created_at

    @property
    def updated_at(self) -> datetime:
        return self._record.updated_at

    @property
    def draft(self) -> Draft | None:
        """A turn that runs, failed, waits, or was cut off; None when there is none."""
        return drafts.read(self._record.draft)

    @property
    def pending(self) -> tuple[ToolCall, ...]:
        """The calls that wait for an answer here: `resume({call.id: True})`."""
        draft = self.draft
        if draft is None or draft.ended != PENDING or draft.branch != self.branch:
            return ()
        return standing(self._bench.talk.turn()).waiting

    @property
    def folds(self) -> tuple[Stored, ...]:
        """The folds on the branch in use that no later one covers whole."""
        return tuple(self._bench.talk.folds)

    @property
    def messages(self) -> tuple[Message, ...]:
        """What is loaded: the end of the conversation, without a gap."""
        return self._bench.talk.messages

    @property
    def count(self) -> int:
        """How many messages are on the branch in use, loaded or not."""
        return self._bench.talk.count

    def bind(self, model: Model | None = None, tools: Iterable[Tool] = ()) -> None:
        """Give the objects to what the session knows by name; nothing is stored."""
        if model is not None:
            self._bench.bindings.use_model(model)
        self._bench.bindings.use_tools(tools)

    # Reading

    async def load(self, *, is_all: bool = False) -> None:
        """Read what the window shows, or everything; the manager does so when it opens one."""
        await self._bench.talk.load(is_all=is_all)
        self._bench.recall()

    async def read(self, start: int = 0, stop: int | None = None) -> tuple[Message, ...]:
        """The messages at these positions of the branch in use; erased ones are left out."""
        stored = await self._tenant.read(self.id, self.branch, start, stop, kind="message")
        return tuple(each.entry for each in stored if isinstance(each.entry, Message))

    async def refresh(self) -> None:
        """See what others have written."""
        await self._bench.refresh()

    def window(self, model: Model | None = None) -> Window:
        """What the next call of the model would be given, if nothing more were said."""
        windows = self._bench.windows(self._bench.target(model))
        view, situation, _ = windows.foreseen()
        return windows.window(view, situation)

    def preview(self, model: Model | None = None) -> Preview:
        """The same, part by part, with what is known of its tokens and what would be folded."""
        bench, target = self._bench, self._bench.target(model)
        windows = bench.windows(target)
        settings = bench.workshop.completed(self.settings)
        return preview(windows, target, self.ledger, settings, self.id)

    async def watch(self, after: int | None = None) -> AsyncIterator[Stored | Chunk]:
        """Entries as they come, on all branches, and the words of a running turn.

        `after` is the seq of the last entry that was seen: whoever was cut off goes on from there.
        The words of the turn that runs are given from its beginning, numbered.
        """
        async for news in self._tenant.watch(self.id, after):
            if isinstance(news, Chunk):
                words = "".join(said for kind, said in json.loads(news.text) if kind == "t")
                if words:
                    yield news._replace(text=words)
            else:
                yield news

    # Writing

    async def append(self, *messages: Message, once: str | None = None) -> Appended:
        """Add messages behind whatever is on the branch in use, all or none.

        With `once`, repeating the call with the same content changes nothing and returns what the
        first call did.
        """
        kept = [self._bench.redacted(message) for message in messages_of(messages)]
        await self.refresh()
        appended = await self._tenant.append(self.id, kept, branch=self.branch, once=once)
        await self.refresh()
        self._bench.said()
        return appended

    async def fold(
        self, start: int, stop: int, replacement: Message | None = None, *, why: str = ""
    ) -> Appended:
        """In the window, show the messages at positions `start` to `stop` as `replacement`, or not.

        They stay in the log. A range that is empty or not all there is InvalidInput, and so is
        hiding a question that has no answer yet: a model would be asked for nothing.
        """
        await self.refresh()
        stored = await self._tenant.read(self.id, self.branch, start, stop, kind="message")
        if not stored or len(stored) != stop - start:
            raise InvalidInput("stop", f"{start} to {stop} are not messages of {self.branch!r}")
        fold = Fold(first=stored[0].seq, last=stored[-1].seq, replacement=replacement, why=why)
        self._bench.check_fold(fold)
        kept = shown(fold, self._bench.redacted)
        appended = await self._tenant.append(self.id, [kept], branch=self.branch)
        await self.refresh()
        await self._bench.remember()
        return appended

    async def update(
        self,
        *,
        settings: Settings | Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        agent: str | None = None,
        ttl: timedelta | None = None,
        tools: Iterable[Tool] | None = None,
        model: Model | None = None,
        expect: Mapping[str, Any] | None = None,
    ) -> None:
        """Change what is named; what is not stays as it is.

        Of settings and metadata, names that are not mentioned stay, and None takes one away. With
        `expect`, Conflict unless the names in it still have these values.
        """
        named = named_settings(settings)
        if model is not None:
            named["model"] = self._bench.bindings.use_model(model)
        given = {
            "settings": named or None,
            "metadata": metadata,
            "agent": agent,
            "ttl": ttl,
            "tools": None if tools is None else self._bench.bindings.use_tools(tools),
        }
        changes = {name: value for name, value in given.items() if value is not None}
        self._bench.talk.see(await self._tenant.update(self.id, changes, expect))

    # Turns

    async def send(
        self,
        input: Input,
        *,
        once: str | None = None,
        cancel: CancelToken | None = None,
        on_event: OnEvent | None = None,
        tools: Iterable[Tool] | None = None,
        model: Model | None = None,
        schema: Mapping[str, Any] | None = None,
        wait: float | None = None,
    ) -> TurnResult:
        """Say something to the model, and run what it asks for, until it has answered.

        input     text, a user's Message, or parts (text, pictures, files)
        once      a name for this input: sent again under it, it is not asked again
        cancel    stops the turn when it is cancelled; what there is by then is kept
        on_event  a function that hears of the turn while it runs; False stops the turn
        tools     only these are offered in this turn
        model     only this turn asks it
        schema    a JSON Schema that the answer has to follow; `result.data` is its value
        wait      seconds to wait for a turn that runs; 0 is Busy at once
        """
        order = self._order(input, once, wait)
        token = token_under(cancel)
        choice = self._bench.bindings.choose(tools, model, schema)
        task = self._bench.start(order, choice, token, checked(on_event))
        return await finished(task, token)

    def stream(
        self,
        input: Input,
        *,
        once: str | None = None,
        cancel: CancelToken | None = None,
        on_event: OnEvent | None = None,
        tools: Iterable[Tool] | None = None,
        model: Model | None = None,
        schema: Mapping[str, Any] | None = None,
        wait: float | None = None,
        detach: bool = False,
    ) -> Stream:
        """The same as `send`, as events to be read while the turn runs: `async for`.

        Leaving early cancels the turn and keeps what was said; with `detach` it goes on.
        """
        order = self._order(input, once, wait)
        token = token_under(cancel)
        choice = self._bench.bindings.choose(tools, model, schema)
        start = partial(self._bench.start, order, choice, token, checked(on_event))
        return Stream(start, token, detach=detach)

    async def resume(
        self,
        answers: Answers | None = None,
        *,
        cancel: CancelToken | None = None,
        on_event: OnEvent | None = None,
        wait: float | None = None,
    ) -> TurnResult:
        """Go on with a turn that failed, was cut off, met a limit, or waits for answers.

        `answers` says for each call that waits, by its id: True, run it; False, do not; or text
        that the model is given in the place of the tool's result.
        """
        token = token_under(cancel)
        order = Order(answers=answers, wait_s=seconds(wait))
        return await finished(self._bench.start(order, None, token, checked(on_event)), token)

    async def steer(self, text: str) -> None:
        """Say something to the turn that runs: it is stored now, and seen at its next step."""
        if not isinstance(text, str):
            raise InvalidInput("text", f"is what is said to the turn, not {type(text).__name__}")
        message = self._bench.redacted(said(text))
        await self.refresh()
        draft = self.draft
        if draft is None or not draft.is_running:
            raise InvalidInput("steer", "is for a turn that runs, and none does: use send")
        mark = Mark(
            what=STEER, about=draft.message.id, data=FrozenDict({"text": message.text or ""})
        )
        await self._tenant.append(self.id, [mark], branch=draft.branch)
        await self.refresh()

    def cancel(self) -> bool:
        """Stop the turn that runs here; False if there is none. From any task or thread."""
        return self._bench.queue.cancel("session.cancel() was called")

    async def compact(self, policy: Policy | None = None) -> tuple[Fold, ...]:
        """Make the window smaller now, as a policy has it; the folds that were made."""
        return await self._bench.compact(policy_of(policy))

    async def erase(self, what: Message | str | int) -> int:
        """Really remove a message (itself or its id) or a turn (its number), and what was made of
        it; how many entries of the log went. What cannot stand without it goes too."""
        await self.refresh()
        erased = await erase(self._bench.talk, what, self._bench.forgetting)
        await self._bench.talk.look()
        await self._bench.talk.load()
        return erased

    async def clear(self) -> None:
        """Remove the conversation, really, and what a memory has of it. Key, id, settings, tools
        and metadata stay. To keep what memory holds: `memory.start_anew(session)`."""
        async with self._bench.forgetting():
            record = await self._tenant.clear(self.id)
            self._bench.talk.ledger.clear()
            await self._bench.turn_to(record)

    # Branches

    async def turns(self) -> tuple[outline.Turn, ...]:
        """The turns on the branch in use: their places, what was said, what they cost."""
        await self.refresh()
        return await outline.turns(self._tenant, self._record)

    async def revert(self, turn: int) -> branching.Reverted:
        """Keep turns 1 to `turn` and go on from there, on a new branch; 0 keeps none of them.

        What is left stays where it is. To say something else in the place of turn 3:
        `await session.revert(2)`, then send.
        """
        await self.refresh()
        done = await branching.revert(self._tenant, self._record, turn)
        if done.turns_removed:
            self._bench.talk.ledger.revert(min(done.turn_count, len(self._bench.talk.ledger.turns)))
        await self._bench.turn_to(done.record)
        return done

    async def branch_at(self, turn: int, name: str | None = None) -> Branch:
        """Open a branch behind `turn`, also behind the last one, and use it."""
        await self.refresh()
        return await self._bench.turn_to(
            await branching.branch_at(self._tenant, self._record, turn, name)
        )

    async def checkout(self, name: str) -> Branch:
        """Use another branch."""
        await self.refresh()
        return await self._bench.turn_to(await branching.checkout(self._tenant, self._record, name))

    async def replace(self, messages: Iterable[Message]) -> Branch:
        """Go on with these messages in the place of all there are, on a new branch."""
        kept = [self._bench.redacted(message) for message in messages_of(messages)]
        await self.refresh()
        return await self._bench.turn_to(await branching.replace(self._tenant, self._record, kept))

    async def diff(self, a: str, b: str | None = None) -> forking.Diff:
        """What two branches share, what only one of them has, and what each cost behind that.

        Without `b` it is the branch in use.
        """
        await self.refresh()
        return await forking.diff(self._tenant, self._record, a, self.branch if b is None else b)

    async def fork(self, key: str, at: int | None = None) -> "Session":
        """A new session under another key, that starts as this one, or as it was behind a turn."""
        await self.refresh()
        await self._bench.forked(await forking.fork(self._tenant, self._record, key, at))
        return await self._open(key)

    async def child(self, agent: str, inherit: int = 0) -> Subagent:
        """An isolated session for a subagent, with the last messages of this one if asked for."""
        await self.refresh()
        made = await children.create(self._tenant, self._record, agent, inherit=inherit)
        return await self._subagent(made)

    async def children(self) -> tuple[Subagent, ...]:
        """The children of this session, by their numbers."""
        found = await children.children(self._tenant, self._record)
        return tuple([await self._subagent(each) for each in found])

    # Inside

    @property
    def _record(self) -> Record:
        return self._bench.record

    @property
    def _tenant(self) -> Tenant:
        return self._bench.tenant

    def _order(self, input: Input, once: str | None, wait: float | None) -> Order:
        """What a user says, as it may be stored, under its name, which no hook takes away."""
        message = sent(self._bench.redacted(said(input)), once)
        is_given = isinstance(input, Message)
        return Order(message, once, wait_s=seconds(wait), is_given=is_given)

    async def _open(self, key: str) -> "Session":
        """Another session of the same manager, which binds what this one was given."""
        session: Session = await self._bench.workshop.open_session(key)
        session._bench.bindings.adopt(self._bench.bindings)
        return session

    async def _subagent(self, child: Child) -> Subagent:
        return Subagent(self, child.record, await self._open(child.key))
