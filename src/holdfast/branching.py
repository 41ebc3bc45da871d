"""Branches: going back, going elsewhere, starting over, and comparing where one came to.

Nothing here destroys anything. A branch is a line through the log, and going back opens another
one that shares the beginning; the branch that is left stays as it is.

A new branch is made ready before it is used:

    branch(use=False)   it is there, and nobody looks at it
    append              a mark that says where it came from, and what it begins with
    update(branch=...)  it is the branch in use, if that is still the one that was left
    append              when a turn runs there: a mark on the branch that was left; and when
                        somebody wrote there meanwhile, what that cost

Whoever is cut off in between leaves the old branch in use. The mark at the beginning is
`Mark(what="branched", data={"from": ..., "at": ..., "spent": ...})`. What a session has spent runs
on in it, from the last receipt on the branch that is left: going back gives no money back. The mark
`Mark(what="left", data={"to": ...})` moves the head, so a turn that runs there meets a Conflict and
learns that another branch is in use.
"""

from collections.abc import Sequence

from holdfast.entries import Call, Entry, Mark
from holdfast.errors import InvalidInput
from holdfast.frozen import FrozenDict, Value
from holdfast.messages import Message
from holdfast.outline import end_of, look_back, turns_of
from holdfast.stores.base import Tenant
from holdfast.stores.values import Branch, Record, Stored

BRANCHED = "branched"
LEFT = "left"

_PAGE = 1_000  # entries in one append
_TRIES_MAX = 1_000


class Reverted(Value, frozen=True, kw_only=True):
    """What `revert` did: how many turns it took away, how many are left, and on which branch."""

    turns_removed: int
    turn_count: int
    branch: str
    message: str
    record: Record


async def revert(tenant: Tenant, record: Record, turn: int) -> Reverted:
    """Keep turns 1 to `turn` and go on from there, on a new branch; 0 keeps none of them.

    What stands before the first turn stays. A turn that is not there is InvalidInput; at the last
    one nothing is done. Conflict says that somebody else has changed branches meanwhile.
    """
    stored = await tenant.read(record.id, record.branch)
    count = len(found := turns_of(stored))
    at = end_of(stored, found, turn)
    if turn == count:
        said = f"Already at turn {turn}"
    else:
        record = await _open(tenant, record, None, f"turn-{turn}", at, spent_in(stored))
        gone = "1 turn" if count - turn == 1 else f"{count - turn} turns"
        said = f"Reverted to turn {turn}: {gone} removed"
    return Reverted(
        turns_removed=count - turn,
        turn_count=turn,
        branch=record.branch,
        message=said,
        record=record,
    )


async def branch_at(tenant: Tenant, record: Record, turn: int, name: str | None = None) -> Record:
    """Open a branch behind `turn`, also behind the last one, and use it.

    A name that is taken is InvalidInput. Without one it is called after the turn.
    """
    stored = await tenant.read(record.id, record.branch)
    at = end_of(stored, turns_of(stored), turn)
    return await _open(tenant, record, name, f"turn-{turn}", at, spent_in(stored))


async def replace(tenant: Tenant, record: Record, messages: Sequence[Message]) -> Record:
    """Go on with these messages in the place of all there are, on a new branch."""
    said = tuple(messages)
    for each in said:
        if not isinstance(each, Message):
            raise InvalidInput("messages", f"are of type Message, not {type(each).__name__}")
    total = await spent(tenant, record)
    return await _open(tenant, record, None, "replaced", 0, total, said)


async def go_on(
    tenant: Tenant, record: Record, stem: str, branch: str, at: int, entries: Sequence[Entry]
) -> Record:
    """Go on with these entries from the entry `at` of a branch (0: from the beginning)."""
    total = await spent(tenant, record)
    return await _open(tenant, record, None, stem, at, total, entries, parent=branch)


async def checkout(tenant: Tenant, record: Record, name: str) -> Record:
    """Use another branch. One that is not there is InvalidInput; the one in use stays so."""
    if name == record.branch:
        return record
    known = await spent(tenant, record, name)
    total = await _carry_over(tenant, record, name, known)
    return await _use(tenant, record, name, total)


# Opening a branch


async def _open(
    tenant: Tenant,
    record: Record,
    name: str | None,
    stem: str,
    at: int,
    total: FrozenDict | None,
    said: Sequence[Entry] = (),
    parent: str | None = None,
) -> Record:
    """A branch that goes on from the entry `at`, in use when it is complete.

    Without `parent` it is one of the branch in use.
    """
    branch = await _open_aside(tenant, record, name, stem, at, parent)
    entries: list[Entry] = [_branched(record, at, total), *said]
    after = branch.head
    for start in range(0, len(entries), _PAGE):
        page = entries[start : start + _PAGE]
        done = await tenant.append(record.id, page, branch=branch.name, after=after)
        after = done.last
    return await _use(tenant, record, branch.name, total)


async def _open_aside(
    tenant: Tenant,
    record: Record,
    name: str | None,
    stem: str,
    at: int,
    parent: str | None = None,
) -> Branch:
    """A new branch that is not in use. Who is given no name takes the first that is free."""
    now, wanted = record, name or ""
    for _ in range(_TRIES_MAX):
        wanted = _free_name(now, stem) if name is None else name
        try:
            opened = await tenant.branch(
                record.id, wanted, parent=parent or record.branch, at=at, use=False
            )
        except InvalidInput:
            if name is not None:
                raise
            now = await tenant.load(record.key)  # perhaps another process took the name
            if now.id != record.id or not _has_branch(now, wanted):
                raise
        else:
            return opened.branch_named(wanted)
    raise InvalidInput("name", f"every name tried was taken, the last was {wanted!r}: give one")


def _free_name(record: Record, stem: str) -> str:
    """turn-3, or turn-3-2 if that is taken, or turn-3-3, ..."""
    taken = {each.name for each in record.branches}
    name, number = stem, 1
    while name in taken:
        number += 1
        name = f"{stem}-{number}"
    return name


def _has_branch(record: Record, name: str) -> bool:
    return any(each.name == name for each in record.branches)


async def _use(tenant: Tenant, record: Record, name: str, total: FrozenDict | None) -> Record:
    """Use a branch instead of the one that is in use in `record`, or raise Conflict.

    `total` is what was spent, as the branch says.
    """
    old = record.branch
    now = await tenant.update(record.id, {"branch": name}, expect={"branch": old})
    has_moved = now.branch_named(old).head != record.branch_named(old).head
    is_running = now.draft is not None and now.draft.is_running
    if not has_moved and not is_running:
        return now
    if has_moved:  # somebody wrote there, perhaps a turn, and after the money was counted
        await _carry_over(tenant, record, name, total)
    if is_running:
        mark = Mark(what=LEFT, data=FrozenDict({"to": name}))
        await tenant.append(record.id, [mark], branch=old)
    return await tenant.load(record.key)


async def _carry_over(
    tenant: Tenant, record: Record, name: str, known: FrozenDict | None
) -> FrozenDict | None:
    """Let a branch know what was spent on the one in `record`, if that is more than is `known`."""
    total = await spent(tenant, record)
    if _calls(total) <= _calls(known):
        return known
    head = record.branch_named(record.branch).head
    await tenant.append(record.id, [_branched(record, head, total)], branch=name)
    return total


# What was spent


async def spent(tenant: Tenant, record: Record, branch: str | None = None) -> FrozenDict | None:
    """What the session had spent when the last thing that says so came to a branch.

    None when nothing does. Only as much of the end of the branch is read as it takes.
    """
    name = record.branch if branch is None else branch
    return await look_back(tenant, record.id, name, spent_in)


def spent_in(stored: Sequence[Stored]) -> FrozenDict | None:
    """The same among these entries."""
    for each in reversed(stored):
        entry, said = each.entry, None
        if isinstance(entry, Call):
            said = entry.extra.get("spent")
        elif isinstance(entry, Mark) and entry.what == BRANCHED:
            said = entry.data.get("spent")
        if isinstance(said, FrozenDict):
            return said
    return None


def _branched(record: Record, at: int, total: FrozenDict | None) -> Mark:
    said = {"from": record.branch, "at": at, "spent": total}
    return Mark(what=BRANCHED, data=FrozenDict(said))


def _calls(total: FrozenDict | None) -> int:
    calls = 0 if total is None else total.get("calls")
    return calls if isinstance(calls, int) else 0
