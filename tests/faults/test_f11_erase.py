"""F11: what was erased is in no file of the store any more.

A canary goes in by every way there is: message, tool call and result, mark, fold, long text, the
words of search, partial output, metadata. Then the raw bytes of every file are searched, while the
store is open and after it was closed.
"""

import asyncio
import sqlite3
import subprocess
import sys
from datetime import timedelta

import pytest

from faults.tier import pick
from holdfast.entries import Call, Fold, Mark
from holdfast.messages import Message, ToolCall
from holdfast.stores import open_store
from holdfast.stores.values import Record
from holdfast.testing.faults import forks

LEASE = timedelta(seconds=60)
LONG = 300_000  # beyond any size at which a store might keep a text elsewhere


def canary(number):
    """A word that nothing else contains, and that an index cannot take apart."""
    return f"zqxjvkwpf{number:04d}bhdgmtrc"


SEARCH = """
import sys
from pathlib import Path

for path in sorted(Path(sys.argv[1]).rglob("*")):
    if path.is_file():
        data = path.read_bytes().lower()
        for word in sys.argv[2:]:
            if word.encode() in data:
                print(path.name)
"""


def hits(folder, words):
    """The files that hold one of the words, in whatever case.

    Another process looks: to close a file here would drop the locks that SQLite has on it.
    """
    command = [sys.executable, "-I", "-c", SEARCH, str(folder), *words]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    return found.stdout.split()


ENTRIES = {
    "a message": lambda word: Message.user(f"please keep {word} to yourself"),
    "a tool call": lambda word: Message.assistant(
        None, [ToolCall(id="c1", name="look", arguments=f'{{"for": "{word}"}}')]
    ),
    "a tool result": lambda word: Message.tool(f"found {word.upper()}", "c1"),
    "a long text": lambda word: Message.assistant(f"{word} " + "and so on " * (LONG // 10)),
    "fields beside the text": lambda word: Message.user("hi", author=word, extra={"note": word}),
    "a mark": lambda word: Mark(what="note", about=word, data={"text": word}),
    "a fold": lambda word: Fold(first=1, last=1, replacement=Message.user(word), why=word),
    "a receipt": lambda word: Call(model=word, request_id=word, window={"text": word}),
}


async def filled(tenant, key, word, kinds):
    """A session with the canary in these kinds of entries; its id and their seqs."""
    record = await tenant.create(Record(key=key))
    await tenant.append(record.id, [Message.user("the first")])
    done = await tenant.append(record.id, [ENTRIES[kind](word) for kind in kinds])
    await tenant.search(word)  # whatever was said before is in the index now
    return record.id, list(range(done.first, done.last + 1))


@pytest.fixture
def folder(fast_path):
    (fast_path / "store").mkdir()
    return fast_path / "store"


@pytest.mark.parametrize("kind", ENTRIES)
def test_an_erased_entry_is_nowhere(folder, kind):
    """erase: the canary is found before, and in no file afterwards; the rest is as it was."""
    word = canary(7)

    async def main():
        async with open_store(f"sqlite:{folder / 'store.db'}") as store:
            tenant = store.tenant()
            id, seqs = await filled(tenant, "s", word, [kind])
            assert hits(folder, [word])
            assert await tenant.erase(id, seqs) == 1
            assert hits(folder, [word]) == []
            assert (await tenant.search(word)).items == ()
            stored = await tenant.read(id)
            assert [each.entry and each.entry.text for each in stored] == ["the first", None]
            assert (await tenant.verify()).problems == ()

    asyncio.run(main())

    assert hits(folder, [word]) == []


def test_one_erase_after_the_other_leaves_nothing(folder):
    """Many messages and many sessions, erased one by one, with others in between."""
    words = [canary(number) for number in range(pick(6, 60))]

    async def main():
        async with open_store(f"sqlite:{folder / 'store.db'}") as store:
            tenant, placed = store.tenant(), {}
            for word in words:
                placed[word] = await filled(tenant, f"s{word[9:13]}", word, ["a message"])
            gone = []
            for word in reversed(words):
                assert await tenant.erase(*placed[word]) == 1
                gone.append(word)
                assert hits(folder, gone) == []
            assert (await tenant.verify()).problems == ()

    asyncio.run(main())


@pytest.mark.parametrize("how", ["clear", "delete"])
def test_a_session_that_was_cleared_or_deleted_is_nowhere(folder, how):
    """With its partial output and its input: clear at once, delete when the store is closed, and
    with its metadata."""
    word = canary(77)

    async def main():
        async with open_store(f"sqlite:{folder / 'store.db'}") as store:
            tenant = store.tenant()
            id, _ = await filled(tenant, "a session", word, ENTRIES)
            lease = await tenant.begin(id, "somebody", LEASE, {"text": word})
            await tenant.journal(lease, f"partial {word}")
            assert hits(folder, [word])
            if how == "delete":
                await tenant.update(id, {"metadata": {"title": word}})
                await tenant.delete(id)
            else:
                await tenant.clear(id)
                assert hits(folder, [word]) == []

    asyncio.run(main())

    assert hits(folder, [word]) == []


def test_what_others_have_open_does_not_keep_erased_bytes(programs, folder):
    """Another process that has the store open, and reads now and then, is no excuse."""
    if forks.missing():
        pytest.skip(forks.missing())
    word = canary(5)

    async def main():
        async with open_store(f"sqlite:{folder / 'store.db'}") as store:
            tenant = store.tenant()
            id, seqs = await filled(tenant, "s", word, ["a message"])
            run = programs("faults.subjects:look_for_ever").start(str(folder / "store.db"))
            await asyncio.sleep(0.2)
            try:
                assert await tenant.erase(id, seqs) == len(seqs)
                assert hits(folder, [word]) == []
            finally:
                run.kill()
                run.wait()

    asyncio.run(main())


def test_a_plain_delete_is_caught(folder):
    """Control: without secure_delete the row is gone and its bytes are not."""
    word = canary(9)
    connection = sqlite3.connect(folder / "raw.db")
    connection.execute("PRAGMA secure_delete=OFF").fetchone()
    connection.execute("CREATE TABLE entries(seq INTEGER PRIMARY KEY, text TEXT)")
    rows = [(number, f"{number} {word}" * 20) for number in range(50)]
    connection.executemany("INSERT INTO entries VALUES (?, ?)", rows)
    connection.commit()
    connection.execute("DELETE FROM entries")
    connection.commit()
    connection.close()

    assert hits(folder, [word])
