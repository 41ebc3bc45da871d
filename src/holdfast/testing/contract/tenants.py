"""Promises about tenants: nobody sees, changes or even learns of what is another's."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from holdfast import ids
from holdfast.errors import LeaseLost, SessionNotFound, Unsupported
from holdfast.stores.base import Store, Tenant
from holdfast.stores.values import Branch, Lease, Part, Record
from holdfast.testing.contract.harness import (
    HOUR,
    Contract,
    Place,
    on_store,
    only,
    refused,
    said,
    session,
    state,
    texts,
    unchanged,
)

Operation = Callable[[Tenant, str], Awaitable[object]]


async def _first(t: Tenant, id: str) -> object:
    return await anext(t.watch(id, 0))


def _lease(id: str) -> Lease:
    return Lease(id, 1, "somebody", HOUR)


def _part(id: str) -> Part:
    return Part(Record(key="chat:1", id=id, branches=(Branch(name="main"),)))


# Every operation that takes the id of a session, or a lease on one.
OPERATIONS: dict[str, list[Operation]] = {
    "append": [
        lambda t, id: t.append(id, said("x")),
        lambda t, id: t.append(id, said("x"), after=1),
        lambda t, id: t.append(id, said("x"), after=99),
        lambda t, id: t.append(id, said("x"), branch="other"),
        lambda t, id: t.append(id, said("x"), branch="nowhere"),
        lambda t, id: t.append(id, said("x"), once="used"),
        lambda t, id: t.append(id, said("x"), lease=_lease(id)),
        lambda t, id: t.append(id, said("x"), lease=_lease(id), finish=True),
        lambda t, id: t.append(id, []),
    ],
    "begin": [lambda t, id: t.begin(id, "me", HOUR, {})],
    "line_up": [
        lambda t, id: t.line_up(id, "me", "a place", waited=timedelta(0), patience=HOUR),
        lambda t, id: t.line_up(id, "me", "a place", waited=HOUR, patience=HOUR),
    ],
    "step_out": [lambda t, id: t.step_out(id, "a place")],
    "journal": [lambda t, id: t.journal(_lease(id), "x")],
    "renew": [lambda t, id: t.renew(_lease(id))],
    "release": [lambda t, id: t.release(_lease(id), drop=True)],
    "branch": [
        lambda t, id: t.branch(id, "new", parent="main", at=0),
        lambda t, id: t.branch(id, "other", parent="main", at=1),
    ],
    "read": [lambda t, id: t.read(id), lambda t, id: t.read(id, "other", 0, 1)],
    "tail": [lambda t, id: t.tail(id), lambda t, id: t.tail(id, "nowhere")],
    "size": [lambda t, id: t.size(id)],
    "update": [
        lambda t, id: t.update(id, {"agent": "x"}),
        lambda t, id: t.update(id, {"agent": "x"}, {"agent": "y"}),
        lambda t, id: t.update(id, {"branch": "other"}),
    ],
    "delete": [lambda t, id: t.delete(id)],
    "erase": [lambda t, id: t.erase(id, [1]), lambda t, id: t.erase(id, [99])],
    "clear": [lambda t, id: t.clear(id)],
    "search": [lambda t, id: t.search("hidden", session=id)],
    "export": [lambda t, id: t.export(id), lambda t, id: t.export(id, 1, 0)],
    "names": [lambda t, id: t.names(id)],
    "restore": [lambda t, id: t.restore(_part(id), after=1)],
    "watch": [_first],
    "verify": [lambda t, id: t.verify(id)],
}
# Those that take no id.
OTHERS: dict[str, Callable[[Tenant], Awaitable[object]]] = {
    "create": lambda t: t.create(Record(key="made")),
    "load": lambda t: t.load("chat:1"),
    "list": lambda t: t.list(),
    "expire": lambda t: t.expire(),
    "search": lambda t: t.search("hidden"),
    "verify": lambda t: t.verify(),
}
NAMES = [
    "",
    "a",
    "A",
    "a ",
    " a",
    "a.",
    "a/b",
    "a\\b",
    "a/../a",
    "..",
    ".",
    "/",
    "é",
    "e\u0301",
    "a\0b",
    "a\n",
    "\0",
    "%",
    "_",
    "*",
    "'; DROP TABLE sessions;--",
    "CON",
    "a.jsonl",
    "\u202ea",
    "аdmin",
    "admin",
    "n" * 1_024,
    "n" * 1_023 + "m",
    "🐘" * 256,
]


async def _outcome(call: Callable[[], Awaitable[object]], id: str) -> str:
    """What came of it, in words, with the id that was asked for left out."""
    try:
        return f"returned {await call()!r}".replace(id, "ID")
    except Exception as error:  # noqa: BLE001 - whatever it is, it is compared
        return f"raised {type(error).__name__}{error.args!r}: {error}".replace(id, "ID")


class Tenants(Contract):
    @on_store()
    async def test_another_tenant_s_session_answers_like_one_that_is_not_there(
        self, place: Place
    ) -> None:
        """The same error with the same words, whatever is tried; and nothing happens to it."""
        theirs, mine = place.store.tenant("theirs"), place.store.tenant("mine")
        can = OPERATIONS.keys() - place.store.unsupported
        record = await session(theirs, "hidden", key="their key", agent="y")
        await theirs.append(record.id, said("x"), once="used")
        if "branch" in can:
            await theirs.branch(record.id, "other", parent="main", at=1)
        if "begin" in can:
            await theirs.begin(record.id, "their owner", HOUR, {"say": "hidden"})
        await session(mine, "my own", key="my key")

        async with unchanged(theirs, record.key), unchanged(mine, "my key"):
            for name in sorted(can):
                for operation in OPERATIONS[name]:
                    found = []
                    for id in (record.id, ids.new_id()):
                        outcome = await _outcome(lambda: operation(mine, id), id)  # noqa: B023
                        assert "their" not in outcome
                        found.append(outcome)
                    assert found[0] == found[1], name

    @on_store("begin")
    async def test_a_lease_is_of_use_to_its_tenant_alone(self, place: Place) -> None:
        """Whoever has got hold of another's lease, token and all, can do nothing with it."""
        theirs, mine = place.store.tenant("theirs"), place.store.tenant("mine")
        record = await session(theirs, "a")
        lease = await theirs.begin(record.id, "their owner", HOUR, {"say": "hidden"})

        async with unchanged(theirs, record.key):
            await refused((LeaseLost, SessionNotFound), mine.journal(lease, "x"))
            await refused((LeaseLost, SessionNotFound), mine.renew(lease))
            await refused(SessionNotFound, mine.append(record.id, said("x"), lease=lease))
            await mine.release(lease, drop=True)

        await theirs.journal(lease, "still theirs")

    @on_store("delete")
    async def test_so_does_one_that_was_deleted(self, place: Place) -> None:
        t = place.tenant
        record = await session(t, "hidden")
        await t.delete(record.id)
        for name in sorted(OPERATIONS.keys() - place.store.unsupported):
            for operation in OPERATIONS[name]:
                found = [
                    await _outcome(lambda: operation(t, id), id)  # noqa: B023
                    for id in (record.id, ids.new_id())
                ]
                assert found[0] == found[1], name

    @on_store()
    async def test_an_unknown_id_is_told_by_its_id(self, place: Place) -> None:
        """Reading and writing a session that is not there is SessionNotFound."""
        can = OPERATIONS.keys() - place.store.unsupported
        reading = {"read", "tail", "size", "names", "export"}
        writing = {"append", "begin", "line_up", "branch", "update"}
        for name in sorted(can & (reading | writing)):
            for operation in OPERATIONS[name]:
                id = ids.new_id()
                error = await refused(SessionNotFound, operation(place.tenant, id))
                assert error.args == (id,)
        for name in sorted(can & {"erase", "clear", "watch"}):
            await refused(SessionNotFound, OPERATIONS[name][0](place.tenant, ids.new_id()))
        for name in sorted(can & {"journal", "renew"}):
            await refused(
                (LeaseLost, SessionNotFound), OPERATIONS[name][0](place.tenant, ids.new_id())
            )

    @on_store()
    async def test_no_key_of_another_tenant_is_there(self, place: Place) -> None:
        theirs, mine = place.store.tenant("theirs"), place.store.tenant("mine")
        await session(theirs, "hidden", key="their key")

        error = await refused(SessionNotFound, mine.load("their key"))

        assert error.args == ("their key",)
        assert (await mine.list()).items == ()

    @on_store()
    async def test_one_key_in_two_tenants_is_two_sessions(self, place: Place) -> None:
        one, two = place.store.tenant("one"), place.store.tenant("two")
        first, second = await session(one, "a", agent="x"), await session(two, "b", agent="y")

        await one.append(first.id, said("c"))
        await two.update(second.id, {"agent": "z"})

        assert (await state(one, "chat:1"))[0].agent == "x"
        assert (await state(two, "chat:1"))[0].agent == "z"
        assert texts(await one.read(first.id)) == ["a", "c"]
        assert texts(await two.read(second.id)) == ["b"]
        if "delete" not in place.store.unsupported:
            await one.delete(first.id)
            assert texts(await two.read(second.id)) == ["b"]

    @on_store()
    async def test_one_id_in_two_tenants_is_two_sessions(self, place: Place) -> None:
        """As when a session is copied from one to the other. The id tells nobody that another
        has it."""
        one, two = place.store.tenant("one"), place.store.tenant("two")
        first = await session(one, "a")

        second = await two.create(Record(key="copy", id=first.id), said("b"))

        assert second.id == first.id
        await two.append(first.id, said("c"), once="x")
        assert texts(await one.read(first.id)) == ["a"]
        assert texts(await two.read(first.id)) == ["b", "c"]
        assert [item.key for item in (await one.list()).items] == ["chat:1"]

    @on_store()
    async def test_any_text_is_a_name_and_no_two_are_the_same(self, place: Place) -> None:
        """Case, accents, spaces, signs of paths and of SQL: each is a tenant of its own."""
        for number, name in enumerate(NAMES):
            t = place.store.tenant(name)
            assert t.name == name
            await session(t, f"said {number}", key="chat:1")

        for number, name in enumerate(NAMES):
            t = place.store.tenant(name)
            found = only((await t.list()).items)
            assert texts(await t.read(found.id)) == [f"said {number}"]

    @on_store()
    async def test_no_name_means_the_empty_one(self, place: Place) -> None:
        await session(place.store.tenant(), "a")

        assert len((await place.store.tenant("").list()).items) == 1

    @on_store()
    async def test_what_a_store_declares_it_raises(self, place: Place) -> None:
        """Each name in `unsupported` is an operation, and raises Unsupported when it is asked."""
        record = await session(place.tenant, "a")
        for name in sorted(place.store.unsupported):
            for call in _calls(place, name, record):
                await refused(Unsupported, call())
        known = OPERATIONS.keys() | OTHERS.keys() | {"backup"}
        assert place.store.unsupported <= known


def _calls(place: Place, name: str, record: Record) -> list[Callable[[], Awaitable[object]]]:
    calls = [_bound(operation, place.tenant, record.id) for operation in OPERATIONS.get(name, [])]
    if name in OTHERS:
        calls.append(lambda: OTHERS[name](place.tenant))
    if name == "backup":
        calls.append(lambda: place.store.backup(place.tmp_path / "backup"))
    return calls


def _bound(operation: Operation, t: Tenant, id: str) -> Callable[[], Awaitable[object]]:
    return lambda: operation(t, id)


def every_call(store: Store, t: Tenant, record: Record, path: Any) -> dict[str, Any]:
    """One call of each operation that the store can do, to see what it says when it is closed."""
    calls: dict[str, Any] = {
        f"{name} {number}": _bound(operation, t, record.id)
        for name in OPERATIONS.keys() - store.unsupported
        for number, operation in enumerate(OPERATIONS[name])
    }
    for name in OTHERS.keys() - store.unsupported:
        calls[name] = lambda name=name: OTHERS[name](t)
    if "backup" not in store.unsupported:
        calls["backup"] = lambda: store.backup(path)
    return calls
