"""What the tests of copying share: every pair of stores, a store that misbehaves, and the judge."""

from contextlib import asynccontextmanager
from itertools import product

from holdfast.stores import open_store
from holdfast.stores.base import Tenant

# A store more is one line more.
STORES = {
    "memory": lambda _: open_store("memory:"),
    "sqlite": lambda folder: open_store(f"sqlite:{folder}/chats.db", durability="fast"),
}
PAIRS = list(product(STORES, STORES))
IDS = [f"{one} to {two}" for one, two in PAIRS]


@asynccontextmanager
async def pair(kinds, folder):
    """A tenant in each of two stores of these kinds."""
    for name in ("one", "two"):
        (folder / name).mkdir(exist_ok=True)
    one, two = (
        STORES[kind](folder / name) for kind, name in zip(kinds, ("one", "two"), strict=True)
    )
    async with one, two:
        yield one.tenant(), two.tenant()


async def summaries(tenant):
    """All sessions of a tenant."""
    page = await tenant.list()
    found = list(page.items)
    while page.next is not None:
        page = await tenant.list(page=page.next)
        found += page.items
    return found


async def everything(tenant):
    """All that can be read of a tenant through the contract: sessions, branches, named appends.

    It goes by `read`, branch by branch; a copy goes by `export`, over all of them.
    """
    found = {}
    for each in await summaries(tenant):
        part = await tenant.export(each.id, limit=100_000)
        record = part.record
        branches = {b.name: await tenant.read(each.id, b.name) for b in record.branches}
        if record.draft is not None:
            record = record.replace(draft=record.draft.replace(owner=""))
        found[each.key] = (record, branches, await tenant.names(each.id))
    return found


async def same(source, target):
    """Whether two tenants have the same, and both are in order."""
    one, two = await everything(source), await everything(target)
    assert two == one
    assert (await target.verify()).problems == ()
    return True


class Proxy(Tenant):
    """A tenant through which every operation can be seen, refused or changed."""

    def __init__(self, inner):
        self.inner, self.name = inner, inner.name

    def operation(self, name, args, rest):
        return getattr(self.inner, name)(*args, **rest)


def _delegate(name):
    def call(self, *args, **rest):
        return self.operation(name, args, rest)

    return call


for _name in Tenant.__abstractmethods__:
    setattr(Proxy, _name, _delegate(_name))
Proxy.__abstractmethods__ = frozenset()
