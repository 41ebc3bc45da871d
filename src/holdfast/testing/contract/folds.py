"""Promises about the folds of a record: those on the branch in use that no later one covers."""

from holdfast.stores.base import Tenant
from holdfast.stores.values import Record
from holdfast.testing.contract.harness import (
    Contract,
    fold,
    mark,
    on_tenant,
    said,
    seqs,
    session,
)

TEN = tuple("abcdefghij")


async def _folds(t: Tenant, record: Record) -> list[int]:
    return seqs((await t.load(record.key)).folds)


class Folds(Contract):
    @on_tenant()
    async def test_a_fold_is_in_the_record(self, t: Tenant) -> None:
        """As it stands in the log."""
        record = await session(t, *TEN)
        assert record.folds == ()

        await t.append(record.id, [fold(1, 4), mark(), *said("k"), fold(5, 6)])

        rows = await t.read(record.id, kind="fold")
        assert (await t.load(record.key)).folds == rows
        assert seqs(rows) == [11, 14]

    @on_tenant()
    async def test_folds_of_a_new_session(self, t: Tenant) -> None:
        record = await t.create(Record(key="chat:1"), [*said("a", "b"), fold(1, 2)])

        assert seqs(record.folds) == [3]
        assert await t.load(record.key) == record

    @on_tenant()
    async def test_a_later_fold_that_covers_an_earlier_one_whole_hides_it(self, t: Tenant) -> None:
        """A part of it is not enough, and neither is coming first."""
        record = await session(t, *TEN)  # 1 to 10
        for entry, expected in (
            (fold(2, 4), [11]),
            (fold(3, 6), [11, 12]),  # overlaps
            (fold(3, 3), [11, 12, 13]),  # lies within both
            (fold(2, 4), [12, 14]),  # the same again, and with it what lies within
            (fold(8, 9), [12, 14, 15]),  # apart
            (fold(1, 7), [15, 16]),
            (fold(1, 10), [17]),
            (fold(1, 9), [17, 18]),  # later and smaller
        ):
            await t.append(record.id, [entry])
            assert await _folds(t, record) == expected

    @on_tenant()
    async def test_folds_of_one_batch_hide_each_other_too(self, t: Tenant) -> None:
        record = await session(t, *TEN)

        await t.append(record.id, [fold(1, 2), fold(3, 4), fold(1, 3), fold(1, 9)])

        assert await _folds(t, record) == [14]

    @on_tenant("branch")
    async def test_folds_are_those_of_the_branch_in_use(self, t: Tenant) -> None:
        """Those that it inherited and its own."""
        record = await session(t, *TEN)
        await t.append(record.id, [fold(1, 3)])  # 11
        branched = await t.branch(record.id, "other", parent="main", at=11)
        assert seqs(branched.folds) == [11]
        await t.append(record.id, [fold(4, 5)], branch="other")  # 12
        await t.append(record.id, [fold(6, 7)], branch="main")  # 13

        assert await _folds(t, record) == [11, 12]
        assert seqs((await t.update(record.id, {"branch": "main"})).folds) == [11, 13]
        assert await _folds(t, record) == [11, 13]

    @on_tenant("branch")
    async def test_a_branch_that_leaves_before_the_covering_fold_sees_the_earlier_one(
        self, t: Tenant
    ) -> None:
        """And one that covers on a branch hides nothing on another."""
        record = await session(t, *TEN)
        await t.append(record.id, [fold(1, 3)])  # 11
        await t.append(record.id, [fold(1, 5)])  # 12
        assert await _folds(t, record) == [12]

        assert seqs((await t.branch(record.id, "before", parent="main", at=11)).folds) == [11]
        assert seqs((await t.branch(record.id, "none", parent="main", at=10)).folds) == []
        assert seqs((await t.branch(record.id, "after", parent="main", at=12)).folds) == [12]
        await t.append(record.id, [fold(1, 9)], branch="after")  # 13
        assert await _folds(t, record) == [13]
        assert seqs((await t.update(record.id, {"branch": "main"})).folds) == [12]
        assert seqs((await t.update(record.id, {"branch": "before"})).folds) == [11]

    @on_tenant()
    async def test_a_long_run_of_folds(self, t: Tenant) -> None:
        """Each covers the one before, as when a long talk is summed up again and again."""
        record = await session(t, *TEN)
        for number in range(1, 101):
            await t.append(record.id, [fold(1, number), *said("m")])

        assert await _folds(t, record) == [10 + 199]

    @on_tenant("clear")
    async def test_clear_takes_the_folds_away(self, t: Tenant) -> None:
        record = await session(t, "a", "b")
        await t.append(record.id, [fold(1, 2)])

        assert (await t.clear(record.id)).folds == ()
        assert await _folds(t, record) == []

    @on_tenant("erase")
    async def test_what_an_erased_fold_said_is_not_in_the_record(self, t: Tenant) -> None:
        record = await session(t, "a", "b")
        await t.append(record.id, [fold(1, 2, "a secret in short")])

        await t.erase(record.id, [3])

        assert "secret" not in repr(await t.load(record.key))
