"""Promises about branches: each is a line of its own through the one log."""

from holdfast.errors import Conflict, InvalidInput
from holdfast.stores.base import Tenant
from holdfast.stores.values import Appended, Record
from holdfast.testing.contract.harness import (
    HOUR,
    Contract,
    Place,
    fold,
    mark,
    on_store,
    on_tenant,
    refused,
    said,
    seqs,
    session,
    texts,
    unchanged,
)


class Branches(Contract):
    @on_tenant("branch")
    async def test_a_branch_goes_on_from_the_middle(self, t: Tenant) -> None:
        """It has what its parent had up to there, and then its own; the parent stays as it is."""
        record = await session(t, "a", "b", "c")

        record = await t.branch(record.id, "other", parent="main", at=2)
        done = await t.append(record.id, said("x"), branch="other")

        assert done == Appended(4, 4, "other", 3)
        assert texts(await t.read(record.id, "other")) == ["a", "b", "x"]
        assert seqs(await t.read(record.id, "other")) == [1, 2, 4]
        assert texts(await t.read(record.id, "main")) == ["a", "b", "c"]

    @on_tenant("branch")
    async def test_the_record_tells_of_the_branch(self, t: Tenant) -> None:
        """A new branch has its fork for a head, and counts the messages of its parent."""
        record = await session(t, "a", "b", "c")

        record = await t.branch(record.id, "other", parent="main", at=2)

        other = record.branch_named("other")
        assert (other.parent, other.fork, other.head, other.count) == ("main", 2, 2, 2)
        main = record.branch_named("main")
        assert (main.parent, main.head, main.count) == (None, 3, 3)
        assert {branch.name for branch in record.branches} == {"main", "other"}
        assert await t.load(record.key) == record

    @on_tenant("branch")
    async def test_a_branch_from_the_beginning_and_one_from_the_head(self, t: Tenant) -> None:
        record = await session(t, "a", "b")
        await t.branch(record.id, "empty", parent="main", at=0)
        await t.branch(record.id, "full", parent="main", at=2)
        assert await t.read(record.id, "empty") == ()

        first = await t.append(record.id, said("x"), branch="empty", after=0)
        second = await t.append(record.id, said("y"), branch="full", after=2)

        assert (first, second) == (Appended(3, 3, "empty", 1), Appended(4, 4, "full", 3))
        rows = await t.read(record.id, "empty")
        assert [(row.seq, row.position, row.branch) for row in rows] == [(3, 0, "empty")]
        assert texts(await t.read(record.id, "full")) == ["a", "b", "y"]

    @on_tenant("branch")
    async def test_a_branch_of_a_session_without_entries(self, t: Tenant) -> None:
        record = await session(t)
        await t.branch(record.id, "other", parent="main", at=0)

        await t.append(record.id, said("a"), branch="other")

        assert texts(await t.read(record.id, "other")) == ["a"]
        assert await t.read(record.id, "main") == ()

    @on_tenant("branch")
    async def test_a_branch_of_a_branch(self, t: Tenant) -> None:
        """Deep down, each has the beginning of every one above it, up to where it left."""
        record = await session(t, "0a", "0b")
        parent, expected = "main", ["0a", "0b"]
        for depth in range(1, 12):
            at = seqs(await t.read(record.id, parent))[-2]
            name = f"deep {depth}"
            await t.branch(record.id, name, parent=parent, at=at)
            await t.append(record.id, said(f"{depth}a", f"{depth}b"), branch=name)
            parent, expected = name, [*expected[:-1], f"{depth}a", f"{depth}b"]

            rows = await t.read(record.id, name)
            assert texts(rows) == expected
            assert [row.position for row in rows] == list(range(len(expected)))

    @on_tenant("branch")
    async def test_a_fork_at_an_entry_that_the_parent_inherited(self, t: Tenant) -> None:
        """Such an entry is on the parent too; what the parent has of its own is left out."""
        record = await session(t, "a", "b", "c")
        await t.branch(record.id, "child", parent="main", at=3)
        await t.append(record.id, said("x"), branch="child")

        await t.branch(record.id, "grandchild", parent="child", at=1)
        await t.append(record.id, said("y"), branch="grandchild")

        assert texts(await t.read(record.id, "grandchild")) == ["a", "y"]

    @on_tenant("branch")
    async def test_branches_that_grow_in_turn_do_not_mix(self, t: Tenant) -> None:
        """Seqs are given out over all branches, without a gap; heads and positions are each
        branch's own."""
        record = await session(t, "a", "b")
        await t.branch(record.id, "other", parent="main", at=1)
        heads = {"main": 2, "other": 1}
        for number in range(3, 23):
            name = "main" if number % 3 else "other"
            done = await t.append(record.id, said(f"{number}"), branch=name, after=heads[name])
            assert (done.first, done.branch) == (number, name)
            heads[name] = done.last

        loaded = await t.load(record.key)
        assert loaded.seq == 22
        for name, beginning in (("main", ["a", "b"]), ("other", ["a"])):
            rows = await t.read(record.id, name)
            own = [f"{n}" for n in range(3, 23) if bool(n % 3) == (name == "main")]
            assert texts(rows) == beginning + own
            assert [row.position for row in rows] == list(range(len(rows)))
            assert {row.branch for row in rows if row.seq > 2} == {name}
            branch = loaded.branch_named(name)
            assert (branch.head, branch.count) == (heads[name], len(rows))

    @on_tenant("branch")
    async def test_after_is_about_the_branch_alone(self, t: Tenant) -> None:
        record = await session(t, "a", "b")
        await t.branch(record.id, "other", parent="main", at=1)
        await t.append(record.id, said("x"), branch="other", after=1)

        await t.append(record.id, said("c"), branch="main", after=2)
        error = await refused(Conflict, t.append(record.id, said("y"), branch="other", after=4))

        assert (error.expected, error.found) == (4, 3)

    @on_tenant("branch")
    async def test_what_a_parent_gets_later_is_not_on_its_branch(self, t: Tenant) -> None:
        record = await session(t, "a")
        await t.branch(record.id, "other", parent="main", at=1)
        await t.append(record.id, said("later"), branch="main")

        assert texts(await t.read(record.id, "other")) == ["a"]
        assert texts(await t.tail(record.id, "other")) == ["a"]

    @on_tenant("branch")
    async def test_use_makes_it_the_branch_in_use(self, t: Tenant) -> None:
        record = await session(t, "a")
        assert record.branch == "main"

        kept = await t.branch(record.id, "one", parent="main", at=1, use=False)
        used = await t.branch(record.id, "two", parent="main", at=1)

        assert (kept.branch, used.branch) == ("main", "two")
        assert (await t.load(record.key)).branch == "two"

    @on_tenant("branch")
    async def test_read_and_append_go_by_main_unless_told(self, t: Tenant) -> None:
        """The branch in use is for whoever asks the record; it is not a hidden argument."""
        record = await session(t, "a")
        await t.branch(record.id, "other", parent="main", at=1)

        assert (await t.append(record.id, said("b"))).branch == "main"
        assert texts(await t.read(record.id)) == ["a", "b"]

    @on_tenant("branch")
    async def test_an_entry_that_is_not_on_the_parent(self, t: Tenant) -> None:
        """Beyond its head, on a sibling, behind the place where the parent left its own parent."""
        record = await session(t, "a", "b", "c")  # 1 2 3
        await t.branch(record.id, "other", parent="main", at=2)
        await t.append(record.id, said("x"), branch="other")  # 4
        await t.append(record.id, said("d"))  # 5

        async with unchanged(t, record.key):
            for parent, at in (
                ("main", 4),
                ("main", 6),
                ("main", 2**63),
                ("main", -1),
                ("other", 3),
                ("other", 5),
            ):
                await refused(InvalidInput, t.branch(record.id, "new", parent=parent, at=at))

    @on_tenant("branch")
    async def test_a_name_that_is_taken_and_a_parent_that_is_unknown(self, t: Tenant) -> None:
        record = await session(t, "a")
        await t.branch(record.id, "other", parent="main", at=1, use=False)

        async with unchanged(t, record.key):
            for name in ("other", "main"):
                await refused(InvalidInput, t.branch(record.id, name, parent="main", at=1))
            await refused(InvalidInput, t.branch(record.id, "new", parent="nowhere", at=1))
            await refused(InvalidInput, t.branch(record.id, "new", parent="new", at=0))

    @on_tenant("branch")
    async def test_nothing_in_a_branch_name_is_special(self, t: Tenant) -> None:
        record = await session(t, "a")
        names = ["Main", "main ", "a/b", "..", "é", "e\u0301", "a\0b", "%", "'; DROP TABLE x;--"]
        names.append("n" * 1024)
        for name in names:
            await t.branch(record.id, name, parent="main", at=1)
            await t.append(record.id, said(name), branch=name)

        for name in names:
            assert texts(await t.read(record.id, name)) == ["a", name]
        loaded = await t.load(record.key)
        assert sorted(branch.name for branch in loaded.branches) == sorted(["main", *names])
        assert loaded.branch == names[-1]

    @on_tenant("branch")
    async def test_entries_of_all_kinds_before_a_fork(self, t: Tenant) -> None:
        """A fork may be at an entry that is not a message; positions go by the path."""
        record = await t.create(
            Record(key="chat:1"), [mark(), *said("a"), mark("two"), *said("b"), fold(2, 2)]
        )
        await t.branch(record.id, "at mark", parent="main", at=3)
        await t.branch(record.id, "before all", parent="main", at=1)

        await t.append(record.id, [mark("three"), *said("x")], branch="at mark")
        await t.append(record.id, [mark("four"), *said("y")], branch="before all")

        rows = await t.read(record.id, "at mark")
        assert [(row.seq, row.position) for row in rows] == [(1, 0), (2, 0), (3, 0), (6, 0), (7, 1)]
        rows = await t.read(record.id, "before all")
        assert [(row.seq, row.position) for row in rows] == [(1, 0), (8, 0), (9, 0)]
        assert (await t.load(record.key)).branch_named("before all").count == 1

    @on_tenant("branch")
    async def test_many_branches_on_a_long_log(self, t: Tenant) -> None:
        """Each is read as its own path, whichever is asked for."""
        record = await session(t, *(f"m{number}" for number in range(400)))
        for number in range(300):
            at = number * 7 % 400 + 1
            await t.branch(record.id, f"b{number}", parent="main", at=at, use=False)
            await t.append(record.id, said(f"own {number}"), branch=f"b{number}", after=at)

        loaded = await t.load(record.key)
        assert len(loaded.branches) == 301
        for number in range(0, 300, 17):
            at = number * 7 % 400 + 1
            branch = loaded.branch_named(f"b{number}")
            assert (branch.fork, branch.count, branch.head) == (at, at + 1, 401 + number)
            assert texts(await t.tail(record.id, f"b{number}", 2)) == [
                f"m{at - 1}",
                f"own {number}",
            ]

    @on_store("branch")
    async def test_opening_a_branch_is_a_write(self, place: Place) -> None:
        t = place.tenant
        place.clock.set()
        record = await session(t, "a", ttl=HOUR)

        moment = place.clock.forward(HOUR)
        branched = await t.branch(record.id, "other", parent="main", at=1)

        assert branched.updated_at == moment
        place.clock.forward(HOUR)
        assert await t.load(record.key) == branched
