"""The contract can be kept, and what breaks it is caught.

A plain store (`naive_store.py`) passes all of it. Stores with one fault each (`contract_faults.py`)
each fail the test that is named for them: a promise that no fault can break promises nothing.
"""

import ast
import inspect
import subprocess
import sys
from pathlib import Path
from unittest import SkipTest

import pytest

import holdfast.testing
from contract_faults import FAULTS, store_of
from holdfast.errors import HoldfastError, Unsupported
from holdfast.stores.base import Store, Tenant
from holdfast.testing import StoreContract
from naive_store import NaiveStore, NaiveTenant, open_backup

CASES = [(fault, test) for test, faults in FAULTS.items() for fault in faults]
MODULES = sorted((Path(holdfast.testing.__file__).parent / "contract").glob("*.py"))


class TestNaiveStore(StoreContract):
    """A plain store keeps every promise."""

    def make(self, tmp_path):
        return NaiveStore(tmp_path)

    def open_backup(self, path):
        return open_backup(path)

    async def damage(self, store, id, seq):
        for data in store.data.values():
            if id in data.sessions:
                data.sessions[id].damage.add(seq)


def contract_of(kind, **fields):
    """The contract for stores of this kind."""
    make = {"make": lambda self, tmp_path: kind(tmp_path)}
    return type("Contract", (TestNaiveStore,), make | fields)()


def promises_of(kind):
    return [name for name in dir(kind) if name.startswith("test_")]


@pytest.mark.parametrize(
    ("fault", "test"), CASES, ids=[f"{fault.__name__}-{test}" for fault, test in CASES]
)
def test_a_planted_fault_is_caught(fault, test, tmp_path, monkeypatch):
    """By the test that is about it, which fails with its own words or with the store's."""
    monkeypatch.setattr("holdfast.testing.contract.watching.PATIENCE_S", 0.5)
    contract = contract_of(store_of(fault))

    with pytest.raises((AssertionError, HoldfastError)):
        getattr(contract, test)(tmp_path)


def test_many_faults_are_planted():
    """In every part of the contract."""
    homes = {getattr(StoreContract, test).__wrapped__.__module__ for test in FAULTS}

    assert len({fault for fault, _ in CASES}) >= 80
    assert {name.rsplit(".", 1)[1] for name in homes} == {
        path.stem for path in MODULES if path.stem not in ("__init__", "harness")
    }


class WithoutSearch(NaiveStore):
    """It declares what it cannot do."""

    unsupported = frozenset({"search", "watch", "backup", "begin"})

    class tenant_type(NaiveTenant):  # noqa: N801 - as it is named there
        async def search(self, query, **rest):
            raise Unsupported("search", "this store")

        def watch(self, id, after=None):
            raise Unsupported("watch", "this store")

        async def begin(self, *rest, **more):
            raise Unsupported("begin", "this store")

    async def backup(self, path, *, on_progress=None):
        raise Unsupported("back up", "this store")


def test_what_a_store_declares_is_not_asked_of_it(tmp_path):
    """Every test passes, or is skipped and says which declaration is the reason."""
    contract = contract_of(WithoutSearch)
    skipped = {}
    for number, name in enumerate(promises_of(contract)):
        if name == "test_many_branches_on_a_long_log":  # the longest, and about none of this
            continue
        folder = tmp_path / str(number)
        folder.mkdir()
        try:
            getattr(contract, name)(folder)
        except SkipTest as reason:
            skipped[name] = str(reason)

    assert all(reason.startswith("declared: ") for reason in skipped.values())
    assert skipped["test_pages_of_hits"] == "declared: this store cannot search"
    assert skipped["test_from_the_beginning"] == "declared: this store cannot watch"
    assert "test_what_a_store_declares_it_raises" not in skipped
    assert "test_entries_come_back_in_the_order_of_their_seq" not in skipped


class SaysItCannot(NaiveStore):
    unsupported = frozenset({"search"})


class SaysNonsense(NaiveStore):
    unsupported = frozenset({"fly"})


@pytest.mark.parametrize("kind", [SaysItCannot, SaysNonsense])
def test_a_declaration_is_tested_too(kind, tmp_path):
    """A store cannot pass by declaring what it does, or what nobody asked for."""
    with pytest.raises(AssertionError):
        contract_of(kind).test_what_a_store_declares_it_raises(tmp_path)


def test_a_store_that_shares_nothing_says_so(tmp_path):
    contract = contract_of(NaiveStore, is_shared=False)

    with pytest.raises(SkipTest, match="declared: no two objects"):
        contract.test_busy_across_two_stores_on_the_same_data(tmp_path)


def test_a_contract_without_a_store_says_what_is_missing(tmp_path):
    with pytest.raises(NotImplementedError, match="def make"):
        StoreContract().test_an_empty_log(tmp_path)


def test_a_store_that_hangs_fails(tmp_path, monkeypatch):
    monkeypatch.setattr("holdfast.testing.contract.harness.TIME_LIMIT_S", 0.05)

    class Hangs(NaiveStore):
        class tenant_type(NaiveTenant):  # noqa: N801 - as it is named there
            async def create(self, *rest, **others):
                import asyncio

                await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        contract_of(Hangs).test_an_empty_log(tmp_path)


def test_no_promise_hides_another():
    """The contract is put together of many classes; two tests of one name would be one test."""
    names = [
        node.name
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef)
        and node.name.startswith("test_")
    ]

    assert sorted(names) == sorted(set(names)) == sorted(promises_of(StoreContract))


def test_every_promise_is_a_plain_test():
    """It takes pytest's tmp_path, and shows the promise as its source."""
    for name in promises_of(StoreContract):
        test = getattr(StoreContract, name)

        assert list(inspect.signature(test).parameters) == ["self", "tmp_path"]
        assert inspect.unwrap(test).__name__ == test.__name__ == name


def test_every_operation_is_tried():
    """Each one that the base classes name is called somewhere in the contract."""
    source = "\n".join(path.read_text(encoding="utf-8") for path in MODULES)

    for name in Tenant.__abstractmethods__ | Store.__abstractmethods__:
        assert f".{name}(" in source, name


def test_the_contract_is_loaded_when_it_is_asked_for():
    """Tools for testing are of use without pytest, and without what the contract needs."""
    program = (
        "import sys, holdfast.testing, holdfast.testing.checker\n"
        "assert 'holdfast.testing.contract' not in sys.modules\n"
        "assert holdfast.testing.StoreContract.__name__ == 'StoreContract'\n"
        "assert not {'pytest', 'hypothesis'} & set(sys.modules)\n"
    )

    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
    with pytest.raises(AttributeError, match="Nonsense"):
        holdfast.testing.Nonsense  # noqa: B018
