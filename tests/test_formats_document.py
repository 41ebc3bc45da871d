"""Everything about conversations, as one JSON document: out and back without a loss."""

import asyncio
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from archives import archives
from holdfast import formats
from holdfast.archive import put, take
from holdfast.errors import Corrupt, FormatTooNew, HoldfastError, InvalidInput
from holdfast.formats import document
from holdfast.stores import open_store
from holdfast.testing.contract.transfers import varied

SLOW = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)


def written(*given):
    return b"".join(document.write(given))


def shortened(stored):
    """So that a test of every byte does not take minutes."""
    if stored.kind == "message" and stored.entry is not None:
        return replace(stored, entry=stored.entry.replace(content=stored.entry.content[:20]))
    return stored


def example():
    """An archive with something of everything, but the long text."""

    async def main():
        async with open_store("memory:") as store:
            record = await varied(store.tenant())
            found = await take(store.tenant(), record.id)
            return found._replace(entries=tuple(map(shortened, found.entries)))

    return asyncio.run(main())


EXAMPLE = example()


@SLOW
@given(st.lists(archives(), max_size=2))
def test_what_was_written_is_read_again_whole(some):
    """Any log with any branches, any entry, any text: equal in every field, and no note."""
    data = written(*some)

    assert formats.recognised(data).name == "json"
    assert document.read(data) == (tuple(some), ())
    assert written(*document.read(data).archives) == data


@SLOW
@given(archives())
def test_nothing_in_a_document_can_steer_a_terminal(archive):
    """Only newlines are control characters, and nothing turns the direction of writing."""
    text = written(archive).decode()

    steering = [c for c in text if c != "\n" and not (c.isprintable() or c == " ")]
    assert [c for c in steering if ord(c) < 0xA0 or 0x2000 <= ord(c) < 0x2100] == []
    json.loads(text)


def test_a_document_is_put_into_a_store_and_comes_out_the_same(tmp_path):
    """The whole way: store, document, another store, document; the bytes are the same."""
    data = written(EXAMPLE)

    async def main():
        async with open_store(f"sqlite:{tmp_path}/chats.db") as store:
            await put(store.tenant(), document.read(data).archives[0])
            return written(await take(store.tenant(), EXAMPLE.record.id))

    assert asyncio.run(main()) == data


def test_each_entry_is_a_line():
    """So that two exports can be compared by any program."""
    lines = written(EXAMPLE).decode().splitlines()

    told = [json.loads(line.rstrip(",")) for line in lines if line.startswith('{"seq"')]
    assert [each["seq"] for each in told] == [each.seq for each in EXAMPLE.entries]


def test_a_document_that_is_cut_anywhere_is_refused():
    """No byte can be missing but the newline at the end: nothing half is ever read."""
    data = written(EXAMPLE)

    for end in range(len(data) - 1):
        with pytest.raises(HoldfastError):
            document.read(data[:end])

    assert document.read(data[:-1]).archives == (EXAMPLE,)


def test_a_flipped_bit_is_an_error_of_ours_or_another_conversation(uncovered):
    """Any byte with any bit flipped: typed errors alone, whatever it says then."""
    data = bytearray(written(EXAMPLE))

    for at in range(0, len(data), 7):
        data[at] ^= 1 << at % 8
        try:
            document.read(bytes(data))
        except HoldfastError:
            pass
        data[at] ^= 1 << at % 8


def changed(**changes):
    raw = json.loads(written(EXAMPLE))
    raw["conversations"][0]["session"] |= changes
    return json.dumps(raw).encode()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'{"format":"holdfast","version":1,"version":1}', "twice"),
        (b'{"format":"holdfast","version":1,"conversations":[NaN]}', "NaN"),
        (b'{"format":"holdfast","version":1,"conversations":{}}', "no list"),
        (b'{"format":"holdfast","version":1,"conversations":[1]}', "conversation 1"),
        (b'{"format":"holdfast","version":1,"conversations":[{}]}', "a session"),
        (b'{"format":"else","version":1}', "not a JSON export"),
        (b"[]", "the file"),
        (b"", "not JSON"),
        (changed(key=""), "key"),
        (changed(id="x"), "UUID"),
        (changed(created_at="yesterday"), "time"),
        (changed(branches=[{"name": 3}]), "name"),
        (changed(branches=[]), "branch"),
        (changed(settings=[1]), "settings"),
        (changed(ttl_us="long"), "ttl_us"),
        (changed(draft={"token": 1, "owner": "me", "chunks": [1]}), "chunks"),
    ],
)
def test_what_cannot_be_right_is_refused_with_its_place(data, said):
    with pytest.raises(InvalidInput, match=said):
        document.read(data)


def test_a_newer_document_is_refused_by_its_version():
    with pytest.raises(FormatTooNew):
        document.read(b'{"format":"holdfast","version":2,"conversations":[]}')


def test_what_is_not_known_here_is_told():
    """Fields that a later version may have are named; the rest is read."""
    raw = json.loads(written(EXAMPLE))
    raw["more"] = 1
    raw["conversations"][0]["session"]["mood"] = "good"

    found = document.read(json.dumps(raw).encode())

    assert found.archives == (EXAMPLE,)
    assert [note for note in found.notes if "'more'" in note]
    assert [note for note in found.notes if "'mood'" in note]


def test_an_entry_that_a_later_version_wrote_is_kept():
    """A field of a message that is not known here survives the way in and out."""
    raw = json.loads(written(EXAMPLE))
    entry = next(
        each["record"]
        for each in raw["conversations"][0]["entries"]
        if "message" in each.get("record", ())
    )
    entry["message"]["mood"] = "good"

    found = document.read(json.dumps(raw).encode()).archives[0]

    assert b'"mood":"good"' in written(found)


def test_a_record_that_cannot_be_read_is_named():
    raw = json.loads(written(EXAMPLE))
    raw["conversations"][0]["entries"][0] = {
        "seq": 3,
        "branch": "main",
        "record": {"v": 1, "message": {"id": 7}},
    }

    with pytest.raises((InvalidInput, Corrupt)):
        document.read(json.dumps(raw).encode())
