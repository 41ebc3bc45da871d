"""The log of one turn: how it begins, what stands in it, what is added, and how it ends."""

from collections.abc import Sequence

from holdfast.cancel import CancelToken
from holdfast.conversation import Conversation
from holdfast.entries import Entry
from holdfast.errors import Conflict
from holdfast.events import Outcome
from holdfast.messages import Message, Stop
from holdfast.steps.calls import check_answers
from holdfast.steps.cleanup import draft_for, start
from holdfast.steps.endings import ending_of, failed
from holdfast.steps.hold import Hold, take_hold
from holdfast.steps.journal import Journal
from holdfast.steps.keeper import Keeper
from holdfast.steps.leftovers import has_answer, partial
from holdfast.steps.orders import Answers, Order, Setup
from holdfast.steps.standing import Standing, standing
from holdfast.steps.waiting import Waiting
from holdfast.stores.values import Stored


class TurnLog:
    """The lease is held from when this is made; nothing is in the log before `start`.

    message     what the user said: the first message of the turn
    is_new      it is not in the log yet
    is_past     the turn was run before, to its end
    is_started  all of this is known
    """

    message: Message
    answers: Answers

    def __init__(self, conversation: Conversation, hold: Hold, order: Order) -> None:
        self.is_new = True
        self.is_past = self.is_started = False
        self.keeper = Keeper(conversation, hold)
        self._past: tuple[Stored, ...] | None = None  # its rows, if it was run before
        self._talk = conversation
        self._hold = hold
        self._order = order

    async def start(self) -> None:
        """Clean up behind the turns before; find out what was said, and whether it is answered."""
        found = await start(self._talk, self._hold, self.keeper, self._order)
        self.message, self.is_new, self._past = found
        self.is_past = self._past is not None
        self.keeper.at = self._talk.head
        self.answers = check_answers(self._order.answers, self.rows)
        self.is_started = True

    # What stands in it

    @property
    def is_over(self) -> bool:
        """Whether the lease was let go: the last append does that."""
        return self._hold.is_over

    @property
    def journal(self) -> Journal:
        """Where a model's words go while they come."""
        return self._hold.journal

    @property
    def unsaid(self) -> tuple[Message, ...]:
        """What is to be appended before anything else is."""
        return (self.message,) if self.is_new else ()

    @property
    def rows(self) -> tuple[Stored, ...]:
        """The rows of this turn; none before it is in the log."""
        if self._past is not None:
            return self._past
        if self.is_new:
            return ()
        return self._talk.turn_of(self.message.id, is_last=True) or ()

    @property
    def standing(self) -> Standing:
        """Where it stands."""
        return standing(self.rows)

    def unkept(self) -> Message | None:
        """What a model has said and is not in the log."""
        if not self.journal.text or has_answer(self.rows, self.journal.at):
            return None
        return partial(self.journal.text, stop=str(Stop.CANCELLED))

    async def look(self) -> None:
        """Read the log again: an append that was cut off may have happened."""
        await self._talk.refresh()
        self.is_new = self._talk.turn_of(self.message.id) is None

    # What is added

    async def keep(self, entries: Sequence[Entry], *, finish: bool = False) -> None:
        """Append what was done, behind what the user said; with `finish` that ends the turn."""
        await self.keeper.keep([*self.unsaid, *entries], finish=finish)
        self.is_new = False

    # How it ends

    async def end(self, outcome: Outcome) -> bool:
        """Let go, unless the last append has done so; whether nothing is left but the log."""
        ending = ending_of(outcome)
        await self._hold.let_go(ending.why, drop=ending.is_dropped)
        self._talk.ledger.end_turn()
        return self._hold.is_dropped

    def check_branch(self) -> None:
        """Conflict if the branch was left meanwhile."""
        if not self._talk.is_in_use:
            raise Conflict(self._talk.record.key, self._talk.head, self._talk.record.seq)

    async def fail(self, error: BaseException) -> None:
        """Let go, with the draft as it is to be found."""
        left, branch = self._hold.left, self._talk.branch
        ending = failed(error, self._order, left, branch, has_started=self.is_started)
        await self._hold.let_go(ending.why, drop=ending.is_dropped)

    async def leave(self) -> None:
        """Let go, whatever was done."""
        await self._hold.let_go()


async def begin(
    conversation: Conversation, setup: Setup, order: Order, waiting: Waiting, cancel: CancelToken
) -> TurnLog:
    """Take the lease; what the user said is stored with it."""
    hold = await take_hold(
        conversation,
        setup.owner,
        lambda: draft_for(conversation, order, setup.options),
        setup.scribe,
        waiting,
        cancel,
        is_silent=setup.redact is not None,  # a secret may come in two pieces
    )
    return TurnLog(conversation, hold, order)
