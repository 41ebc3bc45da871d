"""Children of a session: made for it, numbered from 1, and found through it alone."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any
from weakref import WeakValueDictionary

from holdfast import ids
from holdfast.child import INHERITED, NUMBER, OF, Child, fresh
from holdfast.errors import (
    Conflict,
    DuplicateSession,
    InvalidInput,
    SessionExpired,
    SessionNotFound,
)
from holdfast.frozen import FrozenDict
from holdfast.messages import Message
from holdfast.outline import entries_of
from holdfast.settings import Settings
from holdfast.stores.base import Tenant
from holdfast.stores.values import Record, Summary
from holdfast.window.render import calls_of, results_of
from holdfast.window.view import View

MESSAGES_MAX = 1_000

_COUNTER = "children"
_TRIES_MAX = 1_000
_PAGE = 100
_numbering: WeakValueDictionary[tuple[asyncio.AbstractEventLoop, str], asyncio.Lock] = (
    WeakValueDictionary()
)


async def create(
    tenant: Tenant,
    record: Record,
    agent: str,
    *,
    inherit: int = 0,
    messages_max: int = MESSAGES_MAX,
    settings: Settings | None = None,
    tools: Sequence[Mapping[str, Any]] | None = None,
) -> Child:
    """A new child of a session, for `agent`. It lives as long as its parent may.

    It begins with the last `inherit` messages of its parent, at most `messages_max`, without calls
    and results that would stand alone. Settings and tools are the parent's unless given.
    """
    _check(agent, inherit, messages_max)
    number, parent = await _next_number(tenant, record)
    inherited = await _inherited(tenant, parent, min(inherit, messages_max))
    links = (parent.id, number, len(inherited))
    started = ids.now_us() * 1_000
    for nanos in range(started, started + _TRIES_MAX):
        child = Record(
            key=f"{parent.key}:child:{agent}:{nanos}",
            agent=agent,
            settings=parent.settings if settings is None else settings,
            metadata=FrozenDict(zip((OF, NUMBER, INHERITED), links, strict=True)),
            tools=parent.tools if tools is None else tuple(map(FrozenDict, tools)),
            ttl=parent.ttl,
            parent=parent.id,
        )
        with suppress(DuplicateSession):  # another one was made in the same nanosecond
            return Child(tenant, parent, await tenant.create(child, inherited))
    raise DuplicateSession(child.key)


async def children(tenant: Tenant, record: Record) -> tuple[Child, ...]:
    """The children of this session, by their numbers; those that were merged are among them.

    Another session's are not, nor those that have expired.
    """
    found = await _loaded(tenant, record, even_expired=False)
    return tuple(sorted(found, key=lambda child: child.number))


async def family(tenant: Tenant, record: Record) -> list[Record]:
    """A session, its children and theirs, whether they have expired or not."""
    found = [record]
    for each in found:
        found += [child.record for child in await _loaded(tenant, each, even_expired=True)]
    return found


async def _loaded(tenant: Tenant, record: Record, *, even_expired: bool) -> list[Child]:
    found = []
    for each in await _listed(tenant, {OF: record.id}):
        with suppress(SessionNotFound, SessionExpired, InvalidInput):  # gone, or only called so
            loaded = await tenant.load(each.key, even_expired=even_expired)
            found.append(Child(tenant, record, loaded))
    return found


async def find(tenant: Tenant, record: Record, number: int) -> Child:
    """The child of this session with a number, or InvalidInput."""
    for each in await _listed(tenant, {OF: record.id, NUMBER: number}):
        with suppress(SessionNotFound, SessionExpired, InvalidInput):
            return Child(tenant, record, await tenant.load(each.key))
    raise InvalidInput("child", f"there is no {number!r} of session {record.key!r}")


async def _listed(tenant: Tenant, metadata: Mapping[str, Any]) -> list[Summary]:
    found: list[Summary] = []
    page: str | None = None
    while True:
        listed = await tenant.list(metadata=metadata, limit=_PAGE, page=page)
        found += (each for each in listed.items if not each.damage)
        if (page := listed.next) is None:
            return found


def _check(agent: object, inherit: object, messages_max: object) -> None:
    if not isinstance(agent, str) or not agent:
        raise InvalidInput("agent", "is the name of who talks in the child")
    for name, value in (("inherit", inherit), ("messages_max", messages_max)):
        if type(value) is not int or value < 0:
            raise InvalidInput(name, f"is a whole number from 0 up, not {value!r}")


async def _next_number(tenant: Tenant, record: Record) -> tuple[int, Record]:
    """A number that no child of this session had, and the session as it is now.

    Tasks of this process come one after the other, and only other processes can be in the way.
    """
    place = (asyncio.get_running_loop(), record.id)
    async with _numbering.setdefault(place, asyncio.Lock()):
        for _ in range(_TRIES_MAX):
            parent = await fresh(tenant, record)
            last = parent.counters.get(_COUNTER)
            highest = await _highest_number(tenant, parent) if last is None else int(last)
            with suppress(Conflict):
                changes = {"counters": {_COUNTER: highest + 1}}
                expected = {"counters": {_COUNTER: last}}
                return highest + 1, await tenant.update(parent.id, changes, expect=expected)
    raise Conflict(record.key, 0, 0, f"counters.{_COUNTER}")


async def _highest_number(tenant: Tenant, record: Record) -> int:
    """Counters are emptied when a session is cleared, and its children may live on."""
    listed = await _listed(tenant, {OF: record.id})
    numbers = [each.metadata.get(NUMBER) for each in listed]
    return max((number for number in numbers if isinstance(number, int)), default=0)


async def _inherited(tenant: Tenant, record: Record, count: int) -> tuple[Message, ...]:
    stored = await tenant.tail(record.id, record.branch, count)
    return paired(entries_of(Message, stored))


def paired(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Those of `messages` that can stand by themselves: each call with its results, or neither."""
    view = View(lambda _: 0)
    for seq, message in enumerate(messages, start=1):
        view.add(seq, message)
    waiting = [seq for seq, each in enumerate(messages, start=1) if _is_alone(view, seq, each)]
    gone: set[int] = set()
    while waiting:
        seq = waiting.pop()
        if seq not in gone:
            gone.add(seq)
            waiting += view.partners.get(seq, ())  # a pair goes together
    return tuple(each for seq, each in enumerate(messages, start=1) if seq not in gone)


def _is_alone(view: View, seq: int, message: Message) -> bool:
    if calls_of(message):
        return not view.is_answered(seq)
    return bool(results_of(message)) and not view.partners.get(seq)
