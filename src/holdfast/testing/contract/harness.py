"""What the promises are tested with: a store that is opened and closed, a clock, and short words.

A promise is an async method that gets a tenant (`on_tenant`) or the whole place (`on_store`). Its
decorator makes a plain test of it: it takes pytest's `tmp_path`, has the store made there, opens
it, runs the method in an event loop of its own, and closes the store.
"""

import asyncio
import inspect
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, TypeVar
from unittest import SkipTest

from holdfast import ids
from holdfast.entries import Call, Entry, Fold, Mark, UnknownEntry
from holdfast.frozen import FrozenDict
from holdfast.ids import IdSource
from holdfast.messages import Message
from holdfast.stores.base import Store, Tenant
from holdfast.stores.values import MAIN, Record, Stored

TIME_LIMIT_S = 120.0  # for one test: a store that hangs fails
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
NOON = datetime(2024, 2, 20, 12, tzinfo=UTC)

_Error = TypeVar("_Error", bound=BaseException)
_Item = TypeVar("_Item")
_Test = Callable[[Any, Path], None]


class Contract:
    """What whoever writes a store tells the contract about it. See `StoreContract`."""

    is_shared: ClassVar[bool] = True

    def make(self, tmp_path: Path) -> Store:
        """A store, not opened yet, whose data is in `tmp_path`."""
        raise NotImplementedError("give the contract your store: def make(self, tmp_path)")

    def url(self, tmp_path: Path) -> str:  # noqa: ARG002 - for those who give it
        """What `holdfast.stores.open_store` opens as the same store, in another process."""
        raise SkipTest("declared: another process cannot open this store (no `url`)")

    def open_backup(self, path: Path) -> Store:
        """A store, not opened yet, on what `backup(path)` wrote."""
        raise NotImplementedError(
            "say how a backup is opened: def open_backup(self, path); "
            "or name backup in the store's `unsupported`"
        )

    async def damage(self, store: Store, id: str, seq: int) -> None:  # noqa: ARG002 - likewise
        """Change a byte of what is stored of the entry `seq` (0: of the record), behind its back.

        `store` is open, and stays so. Leave this out, and what is promised about damage is skipped.
        """
        raise SkipTest("declared: nobody can damage this store from outside (no `damage`)")


class Clock:
    """The time that the store is told: the real one until it is set, then it stands still."""

    def __init__(self) -> None:
        self._ns: int | None = None

    def __call__(self) -> int:
        return time.time_ns() if self._ns is None else self._ns

    def set(self, moment: datetime = NOON) -> datetime:
        self._ns = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000
        return moment

    def forward(self, by: timedelta = timedelta(seconds=1)) -> datetime:
        return self.set(ids.now() + by)


class Place:
    """A store with its surroundings: what a promise about more than one tenant needs."""

    def __init__(self, contract: Contract, store: Store, tmp_path: Path, clock: Clock) -> None:
        self.contract = contract
        self.store = store
        self.tmp_path = tmp_path
        self.clock = clock
        self.tenant = store.tenant()
        self._stores = AsyncExitStack()

    async def another(self) -> Store:
        """A second store object on the same data; it is closed with the first."""
        store = self.contract.make(self.tmp_path)
        return await self._stores.enter_async_context(store)

    async def open(self, store: Store) -> Store:
        return await self._stores.enter_async_context(store)

    async def aclose(self) -> None:
        await self._stores.aclose()


def on_tenant(
    *needs: str, shared: bool = False
) -> Callable[[Callable[[Any, Tenant], Awaitable[None]]], _Test]:
    """A promise about one tenant. `needs` are the operations without which it means nothing."""

    def decorate(promise: Callable[[Any, Tenant], Awaitable[None]]) -> _Test:
        return _test(promise, lambda self, place: promise(self, place.tenant), needs, shared)

    return decorate


def on_store(
    *needs: str, shared: bool = False
) -> Callable[[Callable[[Any, Place], Awaitable[None]]], _Test]:
    """A promise about a store. A `shared` one needs a second object on the same data."""

    def decorate(promise: Callable[[Any, Place], Awaitable[None]]) -> _Test:
        return _test(promise, promise, needs, shared)

    return decorate


def _test(
    promise: Callable[..., Any],
    run: Callable[[Any, Place], Awaitable[None]],
    needs: Sequence[str],
    shared: bool,
) -> _Test:
    def test(self: Any, tmp_path: Path) -> None:
        if shared and not self.is_shared:
            raise SkipTest("declared: no two objects of this store share their data")
        asyncio.run(_scenario(self, tmp_path, needs, run))

    test.__name__, test.__qualname__ = promise.__name__, promise.__qualname__
    test.__doc__, test.__module__ = promise.__doc__, promise.__module__
    # pytest shows the promise as the source, and asks for the arguments of the test.
    test.__signature__ = inspect.signature(test)  # type: ignore[attr-defined]
    test.__wrapped__ = promise  # type: ignore[attr-defined]
    return test


async def _scenario(
    contract: Contract,
    tmp_path: Path,
    needs: Sequence[str],
    run: Callable[[Any, Place], Awaitable[None]],
) -> None:
    clock = Clock()
    with ids.using(IdSource(clock_ns=clock)):
        store = contract.make(tmp_path)
        if missing := store.unsupported.intersection(needs):
            raise SkipTest(f"declared: this store cannot {', '.join(sorted(missing))}")
        async with asyncio.timeout(TIME_LIMIT_S):
            await store.open()
            place = Place(contract, store, tmp_path, clock)
            try:
                await run(contract, place)
            finally:
                await place.aclose()
                await store.close()


# Short words


async def refused(kind: type[_Error] | tuple[type[_Error], ...], call: Awaitable[object]) -> _Error:
    """The error that `call` raises; it is a failure if it raises none, or one of another kind."""
    kinds = kind if isinstance(kind, tuple) else (kind,)
    wanted = " or ".join(each.__name__ for each in kinds)
    try:
        result = await call
    except kinds as error:
        return error
    except Exception as error:
        raise AssertionError(f"{wanted} was promised, and it raised {error!r}") from error
    raise AssertionError(f"{wanted} was promised, and it returned {result!r}")


@asynccontextmanager
async def unchanged(t: Tenant, key: str, *, but_time: bool = False) -> AsyncIterator[None]:
    """Inside the block nothing happens to the session (but for the time of its last write)."""
    record, rows = await state(t, key)
    yield
    record_now, rows_now = await state(t, key)
    if but_time:
        record_now = record_now.replace(updated_at=record.updated_at)
    assert record_now == record
    assert rows_now == rows


async def state(t: Tenant, key: str) -> tuple[Record, dict[str, tuple[Stored, ...]]]:
    """Everything about a session: its record, and what is on each of its branches."""
    record = await t.load(key)
    names = [branch.name for branch in record.branches]
    return record, {name: await t.read(record.id, name) for name in names}


async def session(t: Tenant, *texts: str, key: str = "chat:1", **fields: Any) -> Record:
    """A new session, in which these texts were said."""
    return await t.create(Record(key=key, **fields), said(*texts))


def said(*texts: str) -> list[Message]:
    return [Message.user(text) for text in texts]


def texts(rows: Sequence[Stored]) -> list[str | None]:
    """What the messages among `rows` say; None for one that was erased."""
    return [
        row.entry.text if isinstance(row.entry, Message) else None
        for row in rows
        if row.kind == "message"
    ]


def seqs(rows: Sequence[Stored]) -> list[int]:
    return [row.seq for row in rows]


def only(items: Sequence[_Item]) -> _Item:
    """The one item that there is."""
    assert len(items) == 1, f"one was promised, and there are {len(items)}"
    return items[0]


def kind_of(entry: Entry) -> str:
    if isinstance(entry, UnknownEntry):
        return entry.kind
    return type(entry).__name__.lower()


def mark(what: str = "noted", **data: Any) -> Mark:
    return Mark(what=what, data=FrozenDict(data))


def call(model: str = "vendor:model") -> Call:
    return Call(model=model)


def fold(first: int, last: int, text: str = "in short") -> Fold:
    return Fold(first=first, last=last, replacement=Message.user(text))


def unknown(kind: str = "vote", raw: str = '{"yes": 1.0,"no":[ ]}') -> UnknownEntry:
    """An entry of a newer version, with spaces that nobody who reads and writes would keep."""
    return UnknownEntry(kind=kind, raw=f'{{"v":1,"{kind}":{raw}}}'.encode())


def positions(entries: Sequence[Entry]) -> list[int]:
    """The position of each entry of a branch, by the rule of `Stored`."""
    found: list[int] = []
    count = 0
    for entry in entries:
        count += isinstance(entry, Message)
        found.append(max(count - 1, 0))
    return found


async def head(t: Tenant, key: str, branch: str = MAIN) -> int:
    return (await t.load(key)).branch_named(branch).head


def exact(value: Any) -> str:
    """JSON as text in which 1, 1.0, True and "1" differ, and the order of names does not."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name!r}: {exact(value[name])}' for name in sorted(value))}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(exact, value))}]"
    return repr(value)


# JSON that a store may be tempted to change.
ODD_JSON: dict[str, Any] = {
    "integers": [0, -1, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)],
    "reals": [0.1, 1.0, -0.0, 1e300, 5e-324, 1.7976931348623157e308],
    "constants": [True, False, None],
    "texts": ["", " ", "1", "true", "null", "\0", "\u2028\u2029\x85\r\n", "🐘", "e\u0301", "é"],
    "empty": [{}, [], ""],
    "": {"": ""},
    "__proto__": {"__class__": "constructor"},
    "a.b['c'][0]$": "'; DROP TABLE sessions;--",
    "$ne": {"$where": "1"},
    "{0.__class__}": "%s ${jndi:ldap://x} {{7*7}}",
    "deep": json.loads('{"d":[' * 20 + "1" + "]}" * 20),
}
