"""The conversation that the files in `format` hold, whatever store wrote them."""

from holdfast.entries import Fold, UnknownEntry
from holdfast.messages import Message


async def read_everything(store):
    """Records, entries of all kinds, branches, drafts, large texts, what is unknown, tenants."""
    tenant = store.tenant()
    record = await tenant.load("telegram:1")
    assert (record.agent, record.settings.model) == ("helper", "anthropic:claude")
    assert record.metadata == {"title": "Parcels", "n": 1}
    assert record.tools == ({"name": "track"},)
    assert [branch.name for branch in record.branches] == ["main", "again"]
    assert record.branch == "again"
    assert record.draft.input == {"said": "More?"}
    assert record.draft.chunks == ("There ", "is more.")
    assert not record.draft.is_running
    main = await tenant.read(record.id, "main")
    assert [each.kind for each in main] == [
        *("message", "message", "message", "mark", "message", "call", "fold", "dream"),
    ]
    assert main[4].entry.text == "In Bremen. " * 4000
    assert isinstance(main[6].entry, Fold)
    assert isinstance(main[7].entry, UnknownEntry)
    again = await tenant.read(record.id, "again")
    assert [each.entry.text for each in again][-1] == "Never mind."
    assert len((await store.tenant("other").list()).items) == 1


async def use(store):
    """Append, search, erase, verify."""
    tenant = store.tenant()
    record = await tenant.load("telegram:1")
    head = record.branch_named("again").head
    await tenant.append(record.id, [Message.user("Hello?")], branch="again", after=head)
    assert [found.stored.seq for found in (await tenant.search("包裹")).items] == [1]
    assert [found.stored.seq for found in (await tenant.search("bremen")).items] == [5]
    assert await tenant.erase(record.id, [1]) == 1
    assert (await tenant.search("包裹")).items == ()
    assert (await tenant.verify()).problems == ()
