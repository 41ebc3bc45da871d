"""The counter of a session: how many of the messages on its branch are summarised.

It is nanobot's `last_consolidated`, a number of messages. That says nothing about other branches,
so there is a second value beside it: for each branch the seq of the last message that was
summarised.

    {"last_consolidated": 35, "consolidated": {"branch": "main", "at": 35, "seqs": {"main": 71}}}

A branch without a seq has that of its parent, as far as they share messages. Where `at` is not the
counter, another program has moved it, and it is taken at its word for the branch in use.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from holdfast.consolidation.ranges import usable
from holdfast.consolidation.state import Move
from holdfast.errors import Conflict, SessionNotFound
from holdfast.frozen import EMPTY
from holdfast.stores.base import Tenant
from holdfast.stores.values import CURSOR, Record

PLACES = "consolidated"
_TRIES_MAX = 5


def known(record: Record) -> int | None:
    """Where the counter stands on the branch in use; None where the log has to be asked."""
    count = record.branch_named(record.branch).count
    places = _places(record)
    cursor = record.counters.get(CURSOR, 0)
    if not places or cursor != places.get("at") or places.get("branch") == record.branch:
        return usable(cursor, count)
    return None


async def position(tenant: Tenant, record: Record) -> int:
    """Where the counter stands on the branch in use."""
    found = known(record)
    if found is not None:
        return found
    last = _last(record, record.branch)
    if not last:
        return 0
    rows = await tenant.read(record.id, record.branch, kind="message")
    return sum(row.seq <= last for row in rows)


def _places(record: Record) -> Mapping[str, Any]:
    places = record.counters.get(PLACES)
    return places if isinstance(places, dict) else EMPTY


def _seqs(record: Record) -> dict[str, int]:
    seqs = _places(record).get("seqs")
    found = seqs if isinstance(seqs, dict) else EMPTY
    return {name: seq for name, seq in found.items() if type(seq) is int}


def _last(record: Record, branch: str) -> int:
    """The seq of the last message on a branch that is summarised."""
    seqs = _seqs(record)
    line = record.branch_named(branch)
    limit = 2**62
    while line.name not in seqs:
        if line.parent is None:
            return 0
        limit = min(limit, line.fork)
        line = record.branch_named(line.parent)
    return min(limit, seqs[line.name])


async def adopt(tenant: Tenant, record: Record, at: int) -> None:
    """Let the counter say where it stands on the branch in use, if nobody was quicker."""
    names = (CURSOR, PLACES)
    expect = {name: record.counters.get(name) for name in names}
    places = {"branch": record.branch, "at": at, "seqs": _seqs(record)}
    with suppress(Conflict):
        await tenant.update(
            record.id, {"counters": {CURSOR: at, PLACES: places}}, {"counters": expect}
        )


async def move(tenant: Tenant, key: str, what: Move) -> None:
    """See that a counter stands where it has to, unless its session is not as it was any more."""
    for attempt in range(_TRIES_MAX):
        try:
            record = await tenant.load(key, even_expired=True)
            if record.id != what.session or not await _is_there(tenant, record, what):
                return
            changes, expect = _changes(record, what)
            await tenant.update(record.id, {"counters": changes}, {"counters": expect})
        except SessionNotFound:
            return
        except Conflict:
            if attempt + 1 == _TRIES_MAX:
                raise
        else:
            return


async def _is_there(tenant: Tenant, record: Record, what: Move) -> bool:
    """Whether the last message is where it was, and the counter is not there already."""
    if all(each.name != what.branch for each in record.branches):
        return False
    if _seqs(record).get(what.branch, 0) >= what.seq:
        return False
    rows = await tenant.read(record.id, what.branch, what.stop - 1, what.stop, kind="message")
    return bool(rows) and rows[0].seq == what.seq


def _changes(record: Record, what: Move) -> tuple[dict[str, Any], dict[str, Any]]:
    """What becomes of the counters, and what they have to be now."""
    seqs = {**_seqs(record), what.branch: what.seq}
    at, branch = max(what.stop, known(record) or 0), what.branch
    if branch != record.branch:  # somebody has changed branches: the log has to be asked there
        at, branch = record.counters.get(CURSOR, 0), ""
    names = (CURSOR, PLACES)
    changes = {CURSOR: at, PLACES: {"branch": branch, "at": at, "seqs": seqs}}
    return changes, {name: record.counters.get(name) for name in names}
