"""A child: an isolated session for a subagent, and its way back into the one it belongs to.

A child is a session of its own, with its own log. Its parent sees nothing of it until it is merged
(a summary, or everything said in it) or discarded (a note), and then exactly once:

    merge       state "merging"      in the child, unless it ended in another way
                append, named        in the parent: repeated, it writes nothing
                state "merged"       in the child
    discard     state "discarding"
                append, named
                delete               the child

Whoever is cut off between two of these steps, or runs beside another who does the same, can begin
again: what was done is not done twice, and nothing is lost. To the one who comes second it is an
InvalidInput.

What a child is stands in its metadata:

| name              | what it says                                                  |
|-------------------|---------------------------------------------------------------|
| `child_of`        | the id of the parent                                          |
| `child_number`    | which of the parent's children it is, from 1                  |
| `child_inherited` | the seq of the last entry it was given when it was made       |
| `child_state`     | `merging`, `merged` or `discarding`; absent while it is open  |
"""

from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from inspect import isawaitable

from holdfast import notes
from holdfast.errors import (
    Busy,
    Conflict,
    InvalidInput,
    OnceMismatch,
    SessionExpired,
    SessionNotFound,
    TooLarge,
)
from holdfast.messages import Message, Role
from holdfast.outline import entries_of, look_back
from holdfast.stores.base import Tenant
from holdfast.stores.values import MAIN, Appended, Record, Stored

LINKS = OF, NUMBER, INHERITED, STATE = (
    "child_of",
    "child_number",
    "child_inherited",
    "child_state",
)
OPEN, MERGING, MERGED, DISCARDING = "open", "merging", "merged", "discarding"

# After these the parent is as it was, for certain.
_UNWRITTEN = (InvalidInput, TooLarge, SessionNotFound, SessionExpired)

Summarize = Callable[[Sequence[Message]], str | Awaitable[str]]


class Child:
    """A session for a subagent, and its way back into the session that it belongs to."""

    def __init__(self, tenant: Tenant, parent: Record, record: Record) -> None:
        if record.parent != parent.id or record.metadata.get(OF) != parent.id:
            raise InvalidInput("child", f"{record.key!r} is not one of session {parent.key!r}")
        self._tenant = tenant
        self._parent = parent
        self.record = record

    def __repr__(self) -> str:
        return f"<Child {self.number} of {self._parent.key!r}: {self.agent!r}, {self.state}>"

    @property
    def key(self) -> str:
        return self.record.key

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def agent(self) -> str:
        return self.record.agent

    @property
    def number(self) -> int:
        """Which of its parent's children it is, from 1: the `agent_id` in notes about it."""
        return int(self.record.metadata[NUMBER])

    @property
    def state(self) -> str:
        """open, merging, merged or discarding, as it was last seen."""
        return str(self.record.metadata.get(STATE, OPEN))

    async def refresh(self) -> None:
        """See what others have written; InvalidInput when the child is gone."""
        with self._or_gone():
            self.record = await fresh(self._tenant, self.record)

    async def merge(self, *, whole: bool = False, summarize: Summarize | None = None) -> Appended:
        """Give the parent what the child came to, exactly once. A second merge is InvalidInput.

        That is its last assistant message that is not empty, or what `summarize` makes of all that
        was said in it, as one assistant message. With `whole` it is all of that itself, without
        system messages: these are for the child. What the child inherited is never given back.
        In the parent none of it begins a turn. A child whose turn still runs is Busy.
        """
        if whole and summarize is not None:
            raise InvalidInput("summarize", "is for a merge that is not whole")
        await self.refresh()
        self._check_state(MERGING)
        if (draft := self.record.draft) is not None and draft.is_running:
            raise Busy(self.key, draft.owner)
        messages = await self._whole() if whole else [await self._summary(summarize)]
        await self._claim(MERGING)
        try:
            appended = await self._tell(messages, f"child:{self.id}:merge")
        except OnceMismatch:  # it is there already: who did it was cut off, or is not yet done
            await self._finish()
            raise self._over(MERGED) from None
        except _UNWRITTEN:
            with suppress(Conflict, SessionNotFound):
                await self._move(MERGING, None)
            raise
        await self._finish()
        return appended

    async def discard(self, reason: str) -> None:
        """Delete the child with all that was said in it. The parent gets a note, exactly once."""
        _check_reason(reason)
        await self.refresh()
        await self._claim(DISCARDING)
        note = notes.child_discarded(self.agent, reason)
        # A note with another reason is a note; and without a parent nobody misses it.
        with suppress(OnceMismatch, SessionNotFound):
            await self._tell([note], f"child:{self.id}:discard")
        if not await self._delete():
            raise self._over(DISCARDING)

    async def report(self, event: str, text: str = "", *, once: str | None = None) -> Appended:
        """Tell the parent of something that it has to know (see `notes.SubagentEvent`)."""
        return await self._tell([notes.subagent(self.agent, self.number, event, text)], once)

    # What the parent is given

    async def _summary(self, summarize: Summarize | None) -> Message:
        if summarize is None:
            given = await self._given()
            with self._or_gone():
                text = await look_back(
                    self._tenant,
                    self.id,
                    self.record.branch,
                    lambda stored: self._last_words(stored, given),
                )
            made_by = None
        else:
            said = summarize(await self._said())
            text = await said if isawaitable(said) else said
            made_by = "summary"
        if not text or not text.strip():
            return notes.child_silent(self.agent)
        return Message.assistant(
            text, author=self.agent, synthetic=made_by, extra={"child": self.id}
        )

    def _last_words(self, stored: Sequence[Stored], given: Collection[str]) -> str | None:
        """The last that the assistant said here; "" when it said nothing since the child began."""
        for message in reversed(self._own(stored, given)):
            is_said = message.role.canonical is Role.ASSISTANT
            if is_said and message.text and message.text.strip():
                return message.text
        return "" if stored and stored[0].seq <= self._inherited else None

    async def _whole(self) -> list[Message]:
        messages = [each for each in await self._said() if each.role is not Role.SYSTEM]
        return [self._merged(each) for each in messages] or [notes.child_silent(self.agent)]

    def _merged(self, message: Message) -> Message:
        """As it stands in the parent: said by the child's agent, and not by the parent's user."""
        if message.starts_turn:
            return message.replace(synthetic="child", author=self.agent)
        return message if message.author else message.replace(author=self.agent)

    async def _said(self) -> tuple[Message, ...]:
        """All that was said in the child, and not before it was made."""
        given = await self._given()
        with self._or_gone():
            stored = await self._tenant.read(self.id, self.record.branch, kind="message")
        return self._own(stored, given)

    def _own(self, stored: Sequence[Stored], given: Collection[str]) -> tuple[Message, ...]:
        own = entries_of(Message, (each for each in stored if each.seq > self._inherited))
        return tuple(message for message in own if message.id not in given)

    async def _given(self) -> frozenset[str]:
        """The ids of what it inherited: `replace` may have put that on another branch of it."""
        if not self._inherited or self.record.branch == MAIN:
            return frozenset()
        with self._or_gone():
            stored = await self._tenant.read(self.id, MAIN, 0, self._inherited, kind="message")
        given = entries_of(Message, (each for each in stored if each.seq <= self._inherited))
        return frozenset(message.id for message in given)

    @property
    def _inherited(self) -> int:
        return int(self.record.metadata[INHERITED])

    # Steps

    async def _tell(self, messages: Sequence[Message], once: str | None) -> Appended:
        parent = await fresh(self._tenant, self._parent)
        told = [self._redacted(message) for message in messages]
        return await self._tenant.append(parent.id, told, branch=parent.branch, once=once)

    def _redacted(self, message: Message) -> Message:
        """The message as it may be stored; one that is open knows how."""
        return message

    async def _delete(self) -> bool:
        """Remove the child; one that is open knows what a memory has of it."""
        return await self._tenant.delete(self.id)

    async def _claim(self, state: str) -> None:
        """Write down what is about to be done; who finds it written may go on with it.

        So one who finds the child later knows which of the two ways it was going.
        """
        try:
            with self._or_gone():
                await self._move(None, state)
        except Conflict:
            await self.refresh()
            self._check_state(state)

    async def _finish(self) -> None:
        try:
            with suppress(SessionNotFound):  # deleted meanwhile: its parent has it
                await self._move(MERGING, MERGED)
        except Conflict:
            raise self._over(MERGED) from None

    async def _move(self, old: str | None, new: str | None) -> None:
        self.record = await self._tenant.update(
            self.id, {"metadata": {STATE: new}}, expect={"metadata": {STATE: old}}
        )

    def _check_state(self, wanted: str) -> None:
        if self.state not in (OPEN, wanted):
            raise self._over(self.state)

    @contextmanager
    def _or_gone(self) -> Iterator[None]:
        """Another process may discard the child between any two steps."""
        try:
            yield
        except SessionNotFound:
            why = f"{self.key!r} is gone: it was discarded, or deleted"
            raise InvalidInput("child", why) from None

    def _over(self, state: str) -> InvalidInput:
        said = {
            MERGING: "is being merged: merge it again if that was cut off",
            MERGED: "was merged already",
            DISCARDING: "is discarded",
        }
        return InvalidInput("child", f"{self.key!r} {said[state]}")


def _check_reason(reason: object) -> None:
    if not isinstance(reason, str) or not reason.strip():
        raise InvalidInput("reason", "says in a word or two why the child is discarded")


async def fresh(tenant: Tenant, record: Record) -> Record:
    """The record as it is now; SessionNotFound when the session is another one by now."""
    now = await tenant.load(record.key)
    if now.id != record.id:
        raise SessionNotFound(record.key)
    return now
