"""A long run of random operations, next to a model that is too simple to be wrong."""

import random
from typing import Any

from holdfast.errors import Conflict, OnceMismatch
from holdfast.messages import Message
from holdfast.stores.base import Tenant
from holdfast.stores.values import Appended, Record
from holdfast.testing.contract.harness import (
    Contract,
    Place,
    mark,
    on_store,
    refused,
    session,
    texts,
)

OPERATIONS = 300
SEEDS = (1, 2, 3)


class Model:
    """What a session should hold: for each branch, the seq and text of its entries in order.

    A mark has no text of its own here (""), and an erased entry has None.
    """

    def __init__(self) -> None:
        self.seq = 0
        self.branches: dict[str, list[int]] = {"main": []}
        self.heads = {"main": 0}
        self.texts: dict[int, str | None] = {}
        self.once: dict[str, tuple[list[str], Appended]] = {}
        self.metadata: dict[str, Any] = {}

    def messages(self, branch: str) -> list[int]:
        return [seq for seq in self.branches[branch] if self.texts[seq] != ""]

    def append(self, branch: str, said: list[str]) -> Appended:
        first = self.seq + 1
        for text in said:
            self.seq += 1
            self.texts[self.seq] = text
            self.branches[branch].append(self.seq)
            self.heads[branch] = self.seq
        return Appended(first, self.seq, branch, len(self.messages(branch)))


class Random:
    """Does one thing after the other to both, and compares."""

    def __init__(self, t: Tenant, record: Record, seed: int, can: set[str]) -> None:
        self._t, self._record = t, record
        self._chance = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret
        self._model = Model()
        self._can = can

    async def run(self) -> None:
        weights = {
            "append": 10,
            "stale": 2,
            "once": 4,
            "read": 6,
            "update": 3,
            "load": 3,
            "branch": 2,
            "erase": 2,
            "clear": 0.15,
        }
        names = [
            name
            for name in weights
            if name not in ("branch", "erase", "clear") or name in self._can
        ]
        for _ in range(OPERATIONS):
            (name,) = self._chance.choices(names, [weights[name] for name in names])
            await getattr(self, f"_{name}")()
        await self._load()
        for branch in self._model.branches:
            await self._compare(branch, 0, None)

    def _any_branch(self) -> str:
        return self._chance.choice(list(self._model.branches))

    def _said(self) -> list[str]:
        words = ["" if self._chance.random() < 0.3 else "word" for _ in range(4)]
        number = self._chance.randrange(10**9)
        return [word and f"{word} {number}" for word in words[: self._chance.randint(1, 4)]]

    def _entries(self, said: list[str]) -> list[Any]:
        return [Message.user(text) if text else mark() for text in said]

    async def _append(self) -> None:
        branch, said = self._any_branch(), self._said()
        after = self._chance.choice([None, self._model.heads[branch]])
        done = await self._t.append(
            self._record.id, self._entries(said), branch=branch, after=after
        )
        assert done == self._model.append(branch, said)

    async def _stale(self) -> None:
        branch = self._any_branch()
        head = self._model.heads[branch]
        after = max(0, head + self._chance.choice([-2, -1, 1, 5]))
        if after == head:
            return
        stale = self._t.append(
            self._record.id, self._entries(["stale"]), branch=branch, after=after
        )
        error = await refused(Conflict, stale)
        assert (error.expected, error.found) == (after, head)

    async def _once(self) -> None:
        name, branch = f"once {self._chance.randrange(8)}", self._any_branch()
        said = self._chance.choice([self._said(), *(said for said, _ in self._model.once.values())])
        known = self._model.once.get(name)
        try:
            done = await self._t.append(
                self._record.id, self._entries(said), branch=branch, once=name
            )
        except OnceMismatch:
            assert known is not None
            assert known[0] != said
            return
        if known is None:
            known = self._model.once[name] = (said, self._model.append(branch, said))
        assert known == (said, done)

    async def _read(self) -> None:
        branch = self._any_branch()
        count = len(self._model.messages(branch))
        start, stop = self._chance.randint(0, count + 2), self._chance.randint(0, count + 2)
        await self._compare(branch, start, self._chance.choice([stop, None]))

    async def _compare(self, branch: str, start: int, stop: int | None) -> None:
        rows = await self._t.read(self._record.id, branch, start, stop)
        expected, count = [], 0
        for seq in self._model.branches[branch]:
            count += self._is_message(seq)
            place = max(count - 1, 0)
            if start <= place and (stop is None or place < stop):
                expected.append((seq, place))
        assert [(row.seq, row.position) for row in rows] == expected
        assert texts(rows) == [
            self._model.texts[seq] for seq, _ in expected if self._is_message(seq)
        ]

    def _is_message(self, seq: int) -> bool:
        return self._model.texts[seq] != ""

    async def _update(self) -> None:
        name = f"n{self._chance.randrange(5)}"
        values: list[Any] = [None, True, 1, 1.5, "x", [1], {"a": {}}]
        value = self._chance.choice(values)
        done = await self._t.update(self._record.id, {"metadata": {name: value}})
        self._model.metadata.pop(name, None)
        if value is not None:
            self._model.metadata[name] = tuple(value) if isinstance(value, list) else value
        assert done.metadata == self._model.metadata

    async def _load(self) -> None:
        found = await self._t.load(self._record.key)
        assert found.seq == self._model.seq
        assert found.metadata == self._model.metadata
        assert {branch.name: (branch.head, branch.count) for branch in found.branches} == {
            name: (self._model.heads[name], len(self._model.messages(name)))
            for name in self._model.branches
        }

    async def _branch(self) -> None:
        parent = self._any_branch()
        name = f"branch {len(self._model.branches)}"
        own = self._model.branches[parent]
        at = self._chance.choice([0, *own])
        await self._t.branch(self._record.id, name, parent=parent, at=at)
        self._model.branches[name] = own[: own.index(at) + 1] if at else []
        self._model.heads[name] = at

    async def _erase(self) -> None:
        # Whether a repeat of what was erased is known or a mismatch is not promised.
        named = {
            seq for _, done in self._model.once.values() for seq in range(done.first, done.last + 1)
        }
        known = [seq for seq in self._model.texts if self._is_message(seq) and seq not in named]
        seqs = self._chance.sample(known, min(len(known), 2))
        count = sum(self._model.texts[seq] is not None for seq in seqs)
        assert await self._t.erase(self._record.id, seqs) == count
        self._model.texts |= dict.fromkeys(seqs)

    async def _clear(self) -> None:
        cleared = await self._t.clear(self._record.id)
        metadata = self._model.metadata
        self._model = Model()
        self._model.metadata = metadata
        self._model.seq = cleared.seq
        self._model.heads["main"] = cleared.branch_named("main").head


class Runs(Contract):
    @on_store()
    async def test_a_long_run_of_random_operations_is_as_the_model_says(self, place: Place) -> None:
        """Appends, branches, reads, updates, erasures and clears, in any order."""
        can = {"branch", "erase", "clear"} - place.store.unsupported
        for seed in SEEDS:
            record = await session(place.tenant, key=f"seed {seed}")
            try:
                await Random(place.tenant, record, seed, can).run()
            except AssertionError as error:
                raise AssertionError(f"with the seed {seed}: {error}") from error
        if "verify" not in place.store.unsupported:
            assert (await place.tenant.verify()).problems == ()
