"""The outline of a branch: its turns, what they cost, and how to read only the end of it."""

from collections.abc import Callable, Iterable, Sequence
from decimal import Context, Decimal, localcontext
from itertools import pairwise
from typing import TypeVar

from holdfast import history
from holdfast.entries import Call, Entry
from holdfast.errors import InvalidInput
from holdfast.messages import Message
from holdfast.stores.base import Tenant
from holdfast.stores.values import Record, Stored
from holdfast.usage import Usage

_TAIL = 16  # messages, when the last of something is looked for; then four times as many
_EXACT = Context(prec=200)

_Kind = TypeVar("_Kind")
_Found = TypeVar("_Found")


class Turn(history.Turn, frozen=True, kw_only=True):
    """A turn of a stored branch: also its entries, what the user said, and what it cost.

    `first_seq` is the seq of the user's message, and `last_seq` that of the last entry before the
    next turn. `calls` counts the receipts between them; `usage` and `cost` add them up, and are
    None where no receipt says anything.
    """

    first_seq: int
    last_seq: int
    message: Message
    usage: Usage = Usage()
    cost: Decimal | None = None
    calls: int = 0


async def turns(tenant: Tenant, record: Record) -> tuple[Turn, ...]:
    """The turns on the branch in use, in order. An erased message begins none."""
    return turns_of(await tenant.read(record.id, record.branch))


def turns_of(stored: Sequence[Stored]) -> tuple[Turn, ...]:
    """The turns among the entries of a branch."""
    starts = [at for at, each in enumerate(stored) if _starts_turn(each.entry)]
    bounds = enumerate(pairwise((*starts, len(stored))), start=1)
    return tuple(_turn(index, stored[start:stop]) for index, (start, stop) in bounds)


def _starts_turn(entry: Entry | None) -> bool:
    return isinstance(entry, Message) and entry.starts_turn


def _turn(index: int, own: Sequence[Stored]) -> Turn:
    message = own[0].entry
    assert isinstance(message, Message)
    receipts = entries_of(Call, own)
    return Turn(
        index=index,
        first=own[0].position,
        last=own[-1].position,
        first_seq=own[0].seq,
        last_seq=own[-1].seq,
        message=message,
        usage=usage_of(receipts),
        cost=cost_of(receipts),
        calls=len(receipts),
    )


def entries_of(kind: type[_Kind], stored: Iterable[Stored]) -> tuple[_Kind, ...]:
    """Those of one kind among the entries of a branch, without the erased ones."""
    return tuple(each.entry for each in stored if isinstance(each.entry, kind))


def usage_of(receipts: Iterable[Call]) -> Usage:
    """The tokens of some receipts, added up."""
    return sum((each.usage for each in receipts), Usage())


def cost_of(receipts: Iterable[Call]) -> Decimal | None:
    """What they cost, as far as they say; None when none does."""
    costs = [each.cost for each in receipts if each.cost is not None]
    with localcontext(_EXACT):  # whatever precision the caller's own context has
        return sum(costs, Decimal(0)) if costs else None


def end_of(stored: Sequence[Stored], found: Sequence[Turn], turn: int) -> int:
    """The seq of the last entry that stands before the turn behind `turn`; 0 if there is none."""
    if type(turn) is not int:
        raise InvalidInput("turn", f"is a whole number, not {type(turn).__name__}")
    if not 0 <= turn <= len(found):
        raise InvalidInput("turn", f"{turn} is not there: this branch has turns 0 to {len(found)}")
    if turn:
        return found[turn - 1].last_seq
    before = [each.seq for each in stored if not found or each.seq < found[0].first_seq]
    return before[-1] if before else 0


async def look_back(
    tenant: Tenant,
    id: str,
    branch: str,
    find: Callable[[tuple[Stored, ...]], _Found | None],
) -> _Found | None:
    """What `find` finds in the end of a branch; it is shown more and more until it does.

    None when it found nothing in all of it.
    """
    count = _TAIL
    while True:
        stored = await tenant.tail(id, branch, count)
        if (found := find(stored)) is not None or is_whole(stored):
            return found
        count *= 4


def is_whole(stored: Sequence[Stored]) -> bool:
    """Whether an end of a branch is all of it."""
    return not stored or stored[0].position == 0
