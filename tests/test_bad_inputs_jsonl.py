"""Bad inputs 21 to 23, 66 to 69, 73 and 74 for the JSONL store: what lies in its folder, and what
is done to it while it is open.

Whatever it is: the other sessions are listed and used, errors are ours, what is not ours stays as
it is, and nothing outside of the folder is touched.
"""

import asyncio
import gzip
import json
import os
import shutil
import sqlite3
import tracemalloc

import pytest

from holdfast.errors import HoldfastError, SessionNotFound
from holdfast.messages import Message
from holdfast.stores import Record, open_store
from sessions_for_tests import asynchronous

KEY, FILE = "cli:direct", "cli_direct.jsonl"
MIB = 1024 * 1024


def start_of(path):
    with path.open("rb") as file:
        return file.read(MIB)


def line(**fields):
    return json.dumps(fields).encode() + b"\n"


METADATA = line(_type="metadata", key=KEY, metadata={}, last_consolidated=0)
A, B = line(role="user", content="a"), line(role="assistant", content="b")
WHOLE = METADATA + A + B


def sparse(path, size, start=b""):
    path.write_bytes(start)
    os.truncate(path, size)


def database(path):
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE t(x)")
    db.close()


# What is in the file, and the messages in it; None where it is nobody's, and stays as it is.
FILES = {
    "66 nothing": (b"", None),
    "66 a newline": (b"\n", None),
    "66 a GiB of zeros": (lambda path: sparse(path, 1024 * MIB), None),
    "66 a line of 2 GiB": (lambda path: sparse(path, 2048 * MIB, METADATA[:-2]), None),
    "66 100 MiB of zeros behind": (lambda path: sparse(path, 100 * MIB, WHOLE), ["a", "b"]),
    "67 half a line": (WHOLE + B[:20], ["a", "b"]),
    "67 half a line and a whole one": (METADATA + A[:20] + B, ["b"]),
    "67 zeros in the middle": (METADATA + A + bytes(4096) + B, ["a", "b"]),
    "68 a byte-order mark": (b"\xef\xbb\xbf" + WHOLE, ["a", "b"]),
    "68 UTF-16": (WHOLE.decode().encode("utf-16"), None),
    "68 carriage returns": (WHOLE.replace(b"\n", b"\r\n"), ["a", "b"]),
    "68 gzip": (gzip.compress(WHOLE), None),
    "68 SQLite": (database, None),
    "69 no metadata": (A + B, ["a", "b"]),
    "69 metadata last": (A + B + METADATA, ["a", "b"]),
    "69 metadata twice": (METADATA + A + METADATA + B, ["a", "b"]),
    "69 the key of another": (line(_type="metadata", key="other:one", metadata={}) + A, None),
    "69 a key that is no text": (line(_type="metadata", key=7, metadata={}) + A, ["a"]),
    "69 a key that is none": (line(_type="metadata", key="", metadata={}) + A, ["a"]),
    "JSON that is too deep": (METADATA + b'{"role":' + b"[" * 100_000 + b"\n" + A, ["a"]),
    "a number without end": (
        METADATA + b'{"role": "user", "n": ' + b"9" * 5_000 + b"}\n" + A,
        ["a"],
    ),
    "no objects": (b"[1, 2]\nnull\n3\n", None),
}


@pytest.mark.parametrize("case", FILES)
@asynchronous
async def test_a_file_of_any_kind_harms_nobody(tmp_path, case):
    """Found in it is what is intact; what is nobody's is left alone, and its name with it."""
    content, wanted = FILES[case]
    file = tmp_path / FILE
    async with open_store(f"jsonl:{tmp_path}", durability="fast") as store:
        await store.tenant().create(Record(key="beside"), [Message.user("beside")])
    content(file) if callable(content) else file.write_bytes(content)
    size, head = file.stat().st_size, start_of(file)
    tracemalloc.start()

    async with open_store(f"jsonl:{tmp_path}", durability="fast") as store:
        tenant = store.tenant()
        listed = {each.key for each in (await tenant.list()).items}
        assert "beside" in listed
        if wanted is None:
            with pytest.raises(SessionNotFound):
                await tenant.load(KEY)
            record = await tenant.create(Record(key=KEY))
            wanted = []
            if size > 1:
                assert (file.stat().st_size, start_of(file)) == (size, head)
        else:
            assert KEY in listed
            record = await tenant.load(KEY)
        rows = await tenant.read(record.id)
        assert [each.entry.text for each in rows if isinstance(each.entry, Message)] == wanted
        await tenant.append(record.id, [Message.user("next")])
        assert len((await tenant.search("next")).items) == 1
        assert all(each.key != "beside" for each in (await tenant.verify()).problems)
    assert tracemalloc.get_traced_memory()[1] < 1024 * MIB
    tracemalloc.stop()


def _replace(place):
    text = (place / FILE).read_bytes()
    (place / "new").write_bytes(text)
    (place / "new").replace(place / FILE)


def _log(place):
    return next(
        each for each in (place / ".holdfast/logs").iterdir() if b"first" in each.read_bytes()
    )


# What is done while the store is open, and what is then in the session; None: it may be gone.
CHANGES = {
    "74 truncated to nothing": (lambda place: os.truncate(place / FILE, 0), ["first"]),
    "74 cut in the middle": (lambda place: os.truncate(place / FILE, 100), ["first"]),
    "74 replaced by a copy": (_replace, ["first"]),
    "74 deleted": (lambda place: (place / FILE).unlink(), None),
    "74 overwritten with noise": (
        lambda place: (place / FILE).write_bytes(b"\xff" * 999),
        ["first"],
    ),
    "74 another's key": (
        lambda place: (place / FILE).write_bytes(METADATA.replace(b"cli", b"abc")),
        ["first"],
    ),
    "74 a folder in its place": (
        lambda place: ((place / FILE).unlink(), (place / FILE).mkdir()),
        None,
    ),
    "21 a link in its place": (
        lambda place: ((place / FILE).unlink(), (place / FILE).symlink_to("/etc/passwd")),
        None,
    ),
    "74 the sidecar deleted": (lambda place: _log(place).unlink(), ["first"]),
    "74 the sidecar cut": (lambda place: os.truncate(_log(place), 40), None),
    "74 the sidecar emptied": (lambda place: os.truncate(_log(place), 0), None),
    "74 all our files deleted": (lambda place: shutil.rmtree(place / ".holdfast"), None),
    "74 the folder deleted": (shutil.rmtree, None),
    "74 the lock deleted": (lambda place: (place / ".session-files.lock").unlink(), ["first"]),
}


@pytest.mark.parametrize("case", CHANGES)
@asynchronous
async def test_an_open_store_survives_what_is_done_to_its_files(tmp_path, case):
    """Errors are ours; what can be found is found; and a session can be made and used afterwards,
    by the same store or by the next."""
    change, wanted = CHANGES[case]
    place = tmp_path / "s"
    async with open_store(f"jsonl:{place}", durability="fast") as store:
        tenant = store.tenant()
        record = await tenant.create(Record(key=KEY), [Message.user("first")])
        await tenant.read(record.id)
        change(place)
        found = None
        try:
            found = await tenant.load(KEY)
            rows = await tenant.read(found.id, found.branch)
            assert [each.entry.text for each in rows if isinstance(each.entry, Message)] == (
                wanted or ["first"]
            )
            await tenant.append(found.id, [Message.user("second")])
        except HoldfastError:
            assert wanted is None
        await _answers(tenant)

    async with open_store(f"jsonl:{place}", durability="fast") as store:
        tenant = store.tenant()
        await _answers(tenant)
        made = await tenant.create(Record(key="another"), [Message.user("x")])
        assert len(await tenant.read(made.id)) == 1


async def _answers(tenant):
    """Every question is answered, or with an error of ours."""
    for ask in (tenant.list(), tenant.search("first"), tenant.verify(), tenant.load("nobody")):
        try:
            await ask
        except HoldfastError:
            continue


def test_names_that_are_equal_after_normalisation_are_two_sessions(tmp_path):
    """73: NFC and NFD, upper and lower case, with and without a space behind."""
    keys = ["caf\u00e9", "cafe\u0301", "CAFE", "cafe", "cafe ", "cafe."]

    async def scenario():
        async with open_store(f"jsonl:{tmp_path}", durability="fast") as store:
            for key in keys:
                await store.tenant().create(Record(key=key), [Message.user(key)])
            found = []
            for key in keys:
                record = await store.tenant().load(key)
                found += [row.entry.text for row in await store.tenant().read(record.id)]
            return found

    assert asyncio.run(scenario()) == keys
