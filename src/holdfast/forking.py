"""Two lines side by side: a new session that starts as this one, and two branches compared."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from decimal import Decimal

from holdfast.child import LINKS
from holdfast.entries import Call, Entry, Fold, Mark
from holdfast.frozen import FrozenDict, Value
from holdfast.messages import Message
from holdfast.outline import (
    cost_of,
    end_of,
    entries_of,
    is_whole,
    look_back,
    turns_of,
    usage_of,
)
from holdfast.stores.base import Tenant
from holdfast.stores.values import Record, Stored
from holdfast.usage import Usage

ERASED = "erased"


class Diff(Value, frozen=True, kw_only=True):
    """Two branches: what they share, and what each has behind that.

    `common` counts the messages that both begin with, and `common_seq` is the last entry they
    share (0 when there is none). Usage and cost are those of each side's own receipts.
    """

    a: str
    b: str
    common: int
    common_seq: int
    only_a: tuple[Message, ...]
    only_b: tuple[Message, ...]
    usage_a: Usage
    usage_b: Usage
    cost_a: Decimal | None
    cost_b: Decimal | None


async def fork(tenant: Tenant, record: Record, key: str, at: int | None = None) -> Record:
    """A new session under `key` that starts as this one, or as this one was behind turn `at`.

    It has the same agent, settings, metadata, tools and ttl, and on its branch "main" the entries
    of the branch in use, with their ids; marks stand where something was erased. It is made in one
    piece: DuplicateSession, or TooLarge when there are more entries than the store takes at a time,
    means that nothing was.
    """
    stored: Sequence[Stored] = await tenant.read(record.id, record.branch)
    if at is not None:
        last = end_of(stored, turns_of(stored), at)
        stored = [each for each in stored if each.seq <= last]
    # What is forked from a child is nobody's child.
    metadata = {name: value for name, value in record.metadata.items() if name not in LINKS}
    new = Record(
        key=key,
        agent=record.agent,
        settings=record.settings,
        metadata=FrozenDict(metadata),
        tools=record.tools,
        ttl=record.ttl,
        parent=record.id,
    )
    return await tenant.create(new, _copied(stored))


def _copied(stored: Iterable[Stored]) -> list[Entry]:
    """The entries of a new log. Its seqs count from 1, and folds say what they said by these.

    An erased entry keeps its place: folds that end there would mean the same as others otherwise.
    """
    entries: list[Entry] = []
    seqs: list[int] = []  # those that they had
    for each in stored:
        entry = Mark(what=ERASED) if each.entry is None else each.entry
        if isinstance(entry, Fold):
            first, last = bisect_left(seqs, entry.first), bisect_right(seqs, entry.last)
            if first == last:
                continue  # it is over nothing on this branch
            entry = entry.replace(first=first + 1, last=last)
        entries.append(entry)
        seqs.append(each.seq)
    return entries


# Comparing


async def diff(tenant: Tenant, record: Record, a: str, b: str) -> Diff:
    """What two branches share, and what each has behind that.

    It is told by where they forked and not by what is said on them, and costs what the part costs
    that they do not share.
    """
    seq = _common_seq(_path(record, a), _path(record, b))
    common, own_a = await behind(tenant, record.id, a, seq)
    # What follows the last common message without being one stands with it.
    rest = await tenant.read(record.id, b, max(common - 1, 0))
    own_b = [each for each in rest if each.seq > seq]
    calls_a, calls_b = entries_of(Call, own_a), entries_of(Call, own_b)
    return Diff(
        a=a,
        b=b,
        common=common,
        common_seq=seq,
        only_a=entries_of(Message, own_a),
        only_b=entries_of(Message, own_b),
        usage_a=usage_of(calls_a),
        usage_b=usage_of(calls_b),
        cost_a=cost_of(calls_a),
        cost_b=cost_of(calls_b),
    )


def _path(record: Record, name: str) -> list[tuple[str, int]]:
    """The way to the end of a branch: each branch on it, and the last seq that is taken of it."""
    branch = record.branch_named(name)
    path = [(name, branch.head)]
    while branch.parent is not None:
        path.append((branch.parent, branch.fork))
        branch = record.branch_named(branch.parent)
    return path[::-1]


def _common_seq(a: Sequence[tuple[str, int]], b: Sequence[tuple[str, int]]) -> int:
    seq = 0
    for (one, last), (other, other_last) in zip(a, b, strict=False):
        if one != other:
            break
        seq = min(last, other_last)
        if last != other_last:
            break
    return seq


async def behind(tenant: Tenant, id: str, branch: str, seq: int) -> tuple[int, list[Stored]]:
    """How many messages a branch has up to an entry of it, and what stands behind that."""

    def reaching(stored: tuple[Stored, ...]) -> tuple[Stored, ...] | None:
        return stored if is_whole(stored) or stored[0].seq <= seq else None

    stored = await look_back(tenant, id, branch, reaching) or ()
    before = [each for each in stored if each.seq <= seq and each.kind == "message"]
    common = before[-1].position + 1 if before else 0
    return common, [each for each in stored if each.seq > seq]
