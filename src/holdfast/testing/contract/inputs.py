"""Promises about arguments: what is wrong is refused before anything is done."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

from holdfast.errors import InvalidInput, SessionNotFound, TooLarge
from holdfast.messages import Message
from holdfast.stores.base import Store, Tenant
from holdfast.stores.values import Record
from holdfast.testing.contract.harness import (
    HOUR,
    NOON,
    Contract,
    Place,
    on_store,
    on_tenant,
    refused,
    said,
    session,
    texts,
    unchanged,
)

LONE = "half of a pair: \ud83d"
NOT_TEXT: list[Any] = [None, 1, True, b"x", ["x"], {"$ne": None}, LONE]
NOT_ENTRIES: list[Any] = [None, 5, "text", b"bytes", {"a": 1}, ["text"], [None], [1], [{}]]
NOT_A_COUNT: list[Any] = [-1, True, 1.0, "1", b"1", [1]]
NOT_JSON: list[Any] = [None, 5, "text", ["x"], {1: 2}, {"a": object()}, {"a": float("nan")}]
NOT_JSON += [{"a": LONE}, {LONE: 1}, {"a": {1, 2}}, {"a": b"x"}, {"a": float("inf")}]
NOT_A_LEASE: list[Any] = ["x", 5, (), {"token": 1}]
NOT_A_TTL: list[Any] = [5, 1.5, "1h", timedelta(0), timedelta(seconds=-1)]
NOT_A_TIME: list[Any] = [5, "2024-02-29", datetime(2024, 2, 29), NOON.date()]  # noqa: DTZ001
NOT_A_FLAG: list[Any] = ["yes", None, 2, []]


async def _each(values: list[Any], call: Callable[[Any], Awaitable[object]]) -> None:
    """Each of these values is refused as an argument of `call`, and not with a TypeError."""
    for value in values:
        try:
            await refused(InvalidInput, call(value))
        except AssertionError as error:
            raise AssertionError(f"given {value!r}: {error}") from error


class Inputs(Contract):
    @on_tenant()
    async def test_create_checks_its_arguments(self, t: Tenant) -> None:
        create: Any = t.create
        await _each([None, "chat:1", {"key": "x"}, 5], create)
        await _each(NOT_ENTRIES, lambda v: create(Record(key="k"), v))
        await _each(NOT_A_FLAG, lambda v: create(Record(key="k"), keep_times=v))
        await _each(NOT_A_FLAG, lambda v: create(Record(key="k"), replace_expired=v))

        await refused(SessionNotFound, t.load("k"))

    @on_tenant()
    async def test_load_checks_its_arguments(self, t: Tenant) -> None:
        await _each([*NOT_TEXT, ""], t.load)
        await refused(TooLarge, t.load("k" * 1_025))
        await refused(TooLarge, t.load("é" * 513))

    @on_tenant()
    async def test_append_checks_its_arguments(self, t: Tenant) -> None:
        record = await session(t, "a")
        entry = said("x")
        append: Any = t.append

        async with unchanged(t, record.key):
            await _each(NOT_TEXT[:-1], lambda v: append(v, entry))
            await _each(NOT_ENTRIES, lambda v: append(record.id, v))
            await _each([entry[0], Record(key="x")], lambda v: append(record.id, v))
            await _each(NOT_TEXT, lambda v: append(record.id, entry, branch=v))
            await _each(NOT_A_COUNT[1:], lambda v: append(record.id, entry, after=v))
            await _each(NOT_A_LEASE, lambda v: append(record.id, entry, lease=v))
            await _each(NOT_TEXT[1:], lambda v: append(record.id, entry, once=v))
            await _each(NOT_A_FLAG, lambda v: append(record.id, entry, finish=v))

    @on_tenant("begin")
    async def test_begin_checks_its_arguments(self, t: Tenant) -> None:
        record = await session(t)
        begin: Any = t.begin

        async with unchanged(t, record.key):
            await _each(NOT_TEXT[:-1], lambda v: begin(v, "one", HOUR, {}))
            await _each(NOT_TEXT, lambda v: begin(record.id, v, HOUR, {}))
            await _each([*NOT_A_TTL, None], lambda v: begin(record.id, "one", v, {}))
            await _each(NOT_JSON, lambda v: begin(record.id, "one", HOUR, v))

    @on_tenant("begin")
    async def test_what_is_done_with_a_lease_checks_its_arguments(self, t: Tenant) -> None:
        record = await session(t)
        lease = await t.begin(record.id, "one", HOUR, {})
        journal: Any = t.journal
        renew: Any = t.renew
        release: Any = t.release

        async with unchanged(t, record.key):
            await _each([*NOT_A_LEASE, None], lambda v: journal(v, "x"))
            await _each(NOT_TEXT, lambda v: journal(lease, v))
            await _each([*NOT_A_LEASE, None], renew)
            await _each(NOT_A_TTL, lambda v: renew(lease, v))
            await _each([*NOT_A_LEASE, None], release)
            await _each(NOT_A_FLAG, lambda v: release(lease, drop=v))
            await _each(NOT_A_FLAG, lambda v: t.append(record.id, [], lease=lease, finish=v))

    @on_tenant("branch")
    async def test_branch_checks_its_arguments(self, t: Tenant) -> None:
        record = await session(t, "a", "b")
        branch: Any = t.branch

        async with unchanged(t, record.key):
            await _each(NOT_TEXT[:-1], lambda v: branch(v, "n", parent="main", at=1))
            await _each(NOT_TEXT, lambda v: branch(record.id, v, parent="main", at=1))
            await _each(NOT_TEXT, lambda v: branch(record.id, "n", parent=v, at=1))
            await _each([*NOT_A_COUNT, None], lambda v: branch(record.id, "n", parent="main", at=v))
            await _each(NOT_A_FLAG, lambda v: branch(record.id, "n", parent="main", at=1, use=v))

    @on_tenant()
    async def test_read_and_tail_check_their_arguments(self, t: Tenant) -> None:
        record = await session(t, "a", "b")
        read: Any = t.read
        tail: Any = t.tail

        await _each(NOT_TEXT[:-1], read)
        await _each(NOT_TEXT, lambda v: read(record.id, v))
        await _each([*NOT_A_COUNT, None], lambda v: read(record.id, start=v))
        await _each(NOT_A_COUNT, lambda v: read(record.id, stop=v))
        await _each(NOT_TEXT[1:-1], lambda v: read(record.id, kind=v))
        await _each(NOT_TEXT[:-1], tail)
        await _each(NOT_TEXT, lambda v: tail(record.id, v))
        await _each([*NOT_A_COUNT, None], lambda v: tail(record.id, count=v))

    @on_tenant()
    async def test_update_checks_its_arguments(self, t: Tenant) -> None:
        record = await session(t, "a", agent="x", metadata={"m": 1}, ttl=HOUR)
        update: Any = t.update

        async with unchanged(t, record.key):
            await _each(NOT_TEXT[:-1], lambda v: update(v, {"agent": "y"}))
            await _each([None, 5, "agent", ["agent"], {1: 2}], lambda v: update(record.id, v))
            await _each(NOT_TEXT, lambda v: update(record.id, {"agent": v, "ttl": None}))
            for name in ("metadata", "counters", "settings"):
                wrong = [each for each in NOT_JSON if each is not None]
                await _each(wrong, lambda v, name=name: update(record.id, {name: v}))  # type: ignore[misc]
            await _each(
                [{"temperature": "hot"}, {"max_tokens": -1}, {"model": 5}],
                lambda v: update(record.id, {"settings": v}),
            )
            await _each([5, "x", {"name": "x"}, [5], ["x"], [None]], _tools(t, record))
            await _each(NOT_A_TTL, lambda v: update(record.id, {"ttl": v}))
            await _each(NOT_TEXT, lambda v: update(record.id, {"branch": v}))
            await _each(
                [5, "agent", ["agent"], {"metadata": 5}, {"nope": 1}],
                lambda v: update(record.id, {"agent": "y"}, v),
            )

    @on_tenant("delete", "erase", "clear")
    async def test_what_removes_checks_its_arguments(self, t: Tenant) -> None:
        record = await session(t, "a", "b")
        erase: Any = t.erase
        clear: Any = t.clear
        delete: Any = t.delete

        async with unchanged(t, record.key):
            for remove in (delete, clear, lambda v: erase(v, [1])):
                await _each(NOT_TEXT[:-1], remove)
            await _each([None, 5, "1", b"\1", {"a": 1}], lambda v: erase(record.id, v))
            await _each([*NOT_A_COUNT, None, 0], lambda v: erase(record.id, [1, v]))

    @on_tenant()
    async def test_list_checks_its_arguments(self, t: Tenant) -> None:
        listed: Any = t.list
        await _each(NOT_TEXT[1:], lambda v: listed(agent=v))
        await _each([5, "x", ["x"], {1: 2}, {"a": object()}], lambda v: listed(metadata=v))
        await _each(NOT_A_TIME, lambda v: listed(since=v))
        await _each(NOT_A_TIME, lambda v: listed(until=v))
        await _each(NOT_TEXT[1:], lambda v: listed(page=v))

    @on_tenant("expire")
    async def test_expire_checks_its_arguments(self, t: Tenant) -> None:
        """A run that was refused does not count as one."""
        expire: Any = t.expire
        await _each(NOT_A_TIME, expire)
        await _each([5, "x", None, timedelta(-1)], lambda v: expire(NOON, grace=v))

        assert not (await t.expire(NOON - HOUR)).stopped

    @on_tenant("search")
    async def test_search_checks_its_arguments(self, t: Tenant) -> None:
        search: Any = t.search
        await _each(NOT_TEXT, search)
        await _each(NOT_TEXT[1:-1], lambda v: search("x", session=v))
        await _each(NOT_TEXT[1:], lambda v: search("x", page=v))

    @on_tenant("watch")
    async def test_watch_checks_its_arguments(self, t: Tenant) -> None:
        """At the call, or when the first entry is asked for."""
        record = await session(t, "a")
        watch: Any = t.watch

        async def first(id: Any, after: Any) -> object:
            return await anext(watch(id, after))

        await _each(NOT_TEXT[:-1], lambda v: first(v, 0))
        await _each(NOT_A_COUNT, lambda v: first(record.id, v))

    @on_tenant("verify")
    async def test_verify_checks_its_arguments(self, t: Tenant) -> None:
        verify: Any = t.verify
        await _each(NOT_TEXT[1:-1], verify)

    @on_store()
    async def test_a_tenant_has_a_name(self, place: Place) -> None:
        """It is text, of at most as many bytes as a name may have."""
        most = place.store.limits.name_bytes
        await _each(NOT_TEXT, lambda v: _list(place.store, v))
        await _list(place.store, "n" * most)
        await refused(TooLarge, _list(place.store, "n" * (most + 1)))
        await refused(TooLarge, _list(place.store, "é" * (most // 2 + 1)))


class Sizes(Contract):
    @on_store()
    async def test_an_entry_that_is_too_large(self, place: Place) -> None:
        """Wherever it stands in its batch, nothing of the batch is written."""
        t = place.tenant
        record = await session(t, "a")
        large = Message.user("x" * place.store.limits.entry_bytes)

        async with unchanged(t, record.key):
            await refused(TooLarge, t.append(record.id, [*said("b"), large]))
            await refused(TooLarge, t.create(Record(key="other"), [large]))
        await refused(SessionNotFound, t.load("other"))

    @on_store()
    async def test_too_many_entries(self, place: Place) -> None:
        t = place.tenant
        record = await session(t, "a")
        many = said("x") * (place.store.limits.entries + 1)

        async with unchanged(t, record.key):
            await refused(TooLarge, t.append(record.id, many))
            await refused(TooLarge, t.create(Record(key="other"), many))
        await refused(SessionNotFound, t.load("other"))

    @on_store()
    async def test_a_record_that_is_too_large(self, place: Place) -> None:
        """When it is made, and when it grows, by one change or by many."""
        t = place.tenant
        record = await session(t, metadata={"small": 1})
        most = place.store.limits.record_bytes

        async with unchanged(t, record.key):
            for field in ("metadata", "counters"):
                await refused(TooLarge, t.update(record.id, {field: {"x": "x" * most}}))
            await refused(TooLarge, t.update(record.id, {"settings": {"system": "x" * most}}))
            await refused(TooLarge, t.update(record.id, {"tools": [{"x": "x" * most}]}))
        given = Record(key="other", metadata={"x": "x" * most})  # type: ignore[arg-type]
        await refused(TooLarge, t.create(given))
        await refused(SessionNotFound, t.load("other"))
        third = {"x": "x" * (most // 3)}
        await t.update(record.id, {"metadata": {"a": third, "b": third}})
        async with unchanged(t, record.key):
            await refused(TooLarge, t.update(record.id, {"metadata": {"c": third}}))

    @on_store("branch")
    async def test_a_branch_name_that_is_too_long(self, place: Place) -> None:
        """Bytes count, not characters."""
        t = place.tenant
        record = await session(t, "a")
        most = place.store.limits.name_bytes
        await t.branch(record.id, "n" * most, parent="main", at=1)

        async with unchanged(t, record.key):
            for name in ("n" * (most + 1), "é" * (most // 2 + 1)):
                await refused(TooLarge, t.branch(record.id, name, parent="main", at=1))

    @on_store()
    async def test_a_once_name_that_is_too_long(self, place: Place) -> None:
        t = place.tenant
        record = await session(t, "a")
        most = place.store.limits.name_bytes
        await t.append(record.id, said("b"), once="n" * most)

        async with unchanged(t, record.key):
            for name in ("n" * (most + 1), "é" * (most // 2 + 1)):
                await refused(TooLarge, t.append(record.id, said("c"), once=name))
        await t.append(record.id, said("b"), once="n" * most)
        assert texts(await t.read(record.id)) == ["a", "b"]

    @on_store("begin")
    async def test_an_owner_or_a_chunk_that_is_too_long(self, place: Place) -> None:
        t = place.tenant
        record = await session(t)
        limits = place.store.limits
        async with unchanged(t, record.key):
            await refused(TooLarge, t.begin(record.id, "n" * (limits.name_bytes + 1), HOUR, {}))
        lease = await t.begin(record.id, "n" * limits.name_bytes, HOUR, {})
        await t.journal(lease, "x" * limits.chunk_bytes)

        async with unchanged(t, record.key):
            await refused(TooLarge, t.journal(lease, "x" * (limits.chunk_bytes + 1)))
            await refused(TooLarge, t.journal(lease, "é" * (limits.chunk_bytes // 2 + 1)))


def _tools(t: Tenant, record: Record) -> Callable[[Any], Awaitable[object]]:
    return lambda value: t.update(record.id, {"tools": value})


async def _list(store: Store, name: Any) -> object:
    return await store.tenant(name).list()
