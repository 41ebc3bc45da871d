"""The search index of the SQLite store: finds what `stores.words` says, and forgets for good."""

import sqlite3
import sys
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import codec
from holdfast.entries import Mark
from holdfast.errors import Corrupt
from holdfast.messages import Message, ToolCall
from holdfast.parts import Image, Text, Thinking
from holdfast.stores import words
from holdfast.stores.sqlite import search

ENTRIES = """CREATE TABLE entries(rid INTEGER PRIMARY KEY, session INTEGER, seq INTEGER,
    branch INTEGER, position INTEGER, kind TEXT, payload BLOB)"""
SESSIONS = "CREATE TABLE sessions(number INTEGER PRIMARY KEY, tenant TEXT, key TEXT)"
TENANTS = {1: "acme", 2: "acme", 3: "other"}  # of the sessions


def opened(path=":memory:"):
    """A log with three sessions, and its index."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA secure_delete = ON")
    if sys.version_info >= (3, 12):  # as the store has it: then FTS5's own tables are protected
        db.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
    for statement in (ENTRIES, SESSIONS, *search.TABLES):
        db.execute(statement)
    db.executemany("INSERT INTO sessions VALUES(?, ?, '')", TENANTS.items())
    return db


@pytest.fixture
def db():
    db = opened()
    yield db
    db.close()


def add(db, text, session=1):
    """Append a message, given itself or by its text, and tell its rid."""
    message = text if isinstance(text, Message) else Message.user(text)
    insert = "INSERT INTO entries(session, kind, payload) VALUES(?, 'message', ?)"
    return db.execute(insert, (session, codec.record(message))).lastrowid


def indexed(db, *texts, session=1):
    rids = [add(db, text, session) for text in texts]
    search.fill(db, 1_000)
    return rids


def find(db, query, tenant="acme", session=None, before=None, limit=100):
    return search.find(db, query, tenant=tenant, session=session, before=before, limit=limit)


def rows(db, *rids):
    """What `remove` wants to know of these entries."""
    marks = ",".join("?" * len(rids))
    return db.execute(
        "SELECT rid, session, tenant, payload FROM entries JOIN sessions ON number = session"
        f" WHERE rid IN ({marks}) ORDER BY rid",
        rids,
    ).fetchall()


def erase(db, *rids, purge=True):
    """What the store does to erase, apart from the chain."""
    db.execute("BEGIN IMMEDIATE")
    search.remove(db, rows(db, *rids))
    db.executemany("UPDATE entries SET payload = NULL WHERE rid = ?", [(rid,) for rid in rids])
    if purge:
        search.purge(db)
    db.execute("COMMIT")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def documents(db):
    """Every word in the index with the rid it is of, marks too."""
    db.execute("CREATE VIRTUAL TABLE IF NOT EXISTS temp.v USING fts5vocab(main, words, instance)")
    return sorted(db.execute("SELECT doc, term FROM temp.v"))


# ---- what is found ----


@dataclass
class Model:
    """What the index has to say, by going through everything."""

    said: list[tuple[int, int, str]]  # rid, session, text

    def find(self, query, tenant, session, before, limit):
        wanted = words.query(query)
        found = [
            rid
            for rid, where, text in reversed(self.said)
            if TENANTS[where] == tenant
            and session in (None, where)
            and (before is None or rid < before)
            and wanted
            and all(self._holds(text, *each) for each in wanted)
        ]
        return found[:limit]

    @staticmethod
    def _holds(text, word, is_prefix):
        return any(w.startswith(word) if is_prefix else w == word for w in words.words(text))


# Few words, so that they meet; and what a careless tokeniser or query would stumble over.
WORDS = (
    ["a", "ab", "abc", "b", "read_file", "É", "e", "s1", "_s1", "_s2", "AND", "NOT", "NEAR(a b)"]
    + ["北", "北京", "京", "北京塔", "東京タワー", "ー", "한국", "\U00020000\U00020001", "हिन्दी"]
    + ['"', '"a"', "a*", "-a", "t:a", "^a", "\0", "a\0b", "(", ")", "{t} : a", "'", ";", "+", "ﬁ"]
)
phrases = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join) | st.text(max_size=8)


@settings(max_examples=300)
@given(
    said=st.lists(st.tuples(st.sampled_from(list(TENANTS)), phrases), max_size=12),
    queries=st.lists(phrases | st.sampled_from(WORDS), min_size=1, max_size=6),
    step=st.integers(1, 13),
    gone=st.sets(st.integers(1, 12)),
    limit=st.integers(1, 3),
)
def test_the_index_finds_what_a_walk_through_everything_finds(said, queries, step, gone, limit):
    """Filled in steps of any size, with some messages removed; in pages of any size, for a tenant
    or in a session."""
    db = opened()
    model = Model([(add(db, text, where), where, text) for where, text in said])
    while search.fill(db, step):
        pass
    search.remove(db, rows(db, *gone))
    model.said = [each for each in model.said if each[0] not in gone]

    for query in queries:
        for tenant, session in [("acme", None), ("acme", 2), ("other", None), ("other", 1)]:
            expected = model.find(query, tenant, session, None, 100)
            assert find(db, query, tenant, session) == expected
            paged, page = [], find(db, query, tenant, session, limit=limit)
            while page and len(paged) <= len(expected):
                paged += page
                page = find(db, query, tenant, session, before=page[-1], limit=limit)
            assert paged == expected
    db.close()


def test_filling_in_small_steps_gives_what_filling_at_once_gives():
    """How far behind the index was changes nothing."""
    dbs = opened(), opened()
    for db in dbs:
        for number in range(50):
            add(db, f"number {number} 北京塔 {'odd' if number % 2 else 'even'}", 1 + number % 3)
    at_once, in_steps = dbs

    assert search.fill(at_once, 1_000) == 50
    assert [search.fill(in_steps, 7) for _ in range(9)] == [7] * 7 + [1, 0]
    assert documents(at_once) == documents(in_steps)
    for db in dbs:
        db.close()


def test_pending_tells_how_far_behind_the_index_is(db):
    """What is appended is to be found only when it was filled in."""
    assert search.pending(db) == 0
    (rid,) = [add(db, "hello")]
    assert search.pending(db) == 1
    assert find(db, "hello") == []

    assert search.fill(db, 10) == 1
    assert search.pending(db) == 0
    assert find(db, "hello") == [rid]


def test_a_single_cjk_character_is_found_wherever_it_stands(db):
    """It begins a pair, or it is the last of its run; 北京塔 is three places for one character."""
    first, second, third = indexed(db, "去北京塔", "塔 first", "京都")

    assert find(db, "京") == [third, first]
    assert find(db, "塔") == [second, first]
    assert find(db, "北京") == find(db, "北京塔") == [first]
    assert find(db, "京北") == []


def test_a_word_is_found_whole_unless_it_is_cjk(db):
    """The beginning of a word in a script with spaces is another word."""
    indexed(db, "reading")

    assert find(db, "read") == find(db, "read*") == []


def test_tenants_never_see_what_others_said(db):
    """Not even in a session whose number they guess."""
    (mine,) = indexed(db, "the secret", session=1)
    (theirs,) = indexed(db, "the secret", session=3)

    assert find(db, "secret", tenant="acme") == [mine]
    assert find(db, "secret", tenant="other") == [theirs]
    assert find(db, "secret", tenant="acme", session=3) == []
    assert find(db, "secret", tenant="nobody") == find(db, "secret", tenant="") == []


def test_marks_cannot_be_written_or_asked_for(db):
    """A user who types a mark types the word in it."""
    mark = search._tenant_mark("other")
    (rid,) = indexed(db, f"I write {mark} and _s3")

    assert find(db, mark) == find(db, "_s3") == find(db, "s3") == [rid]
    assert find(db, "write", tenant="other") == find(db, "write", session=3) == []
    assert find(db, "_s1") == find(db, "_s") == find(db, "_t") == []


@pytest.mark.parametrize("tenant", ["_s1", 'a" OR "b', "", "acme\0", "北京", "t*"])
def test_any_name_is_the_name_of_a_tenant(db, tenant):
    """It is part of a query to FTS5, as a digest."""
    db.execute("UPDATE sessions SET tenant = ? WHERE number = 2", (tenant,))
    (rid,) = indexed(db, "hello b", session=2)

    assert find(db, "hello", tenant=tenant) == [rid]
    assert find(db, "hello", tenant="acme") == []


@pytest.mark.parametrize(
    "query",
    ['"', '"hello', "hello*", "NEAR(hello hello)", "-hello", "t:hello", "t : hello", "hello\0x"]
    + ["^hello", "hello AND", "NOT hello", "hello OR zzz", "{t}: hello", "hel+lo", "'; DROP", "*"],
)
def test_nothing_in_a_query_is_an_operator(db, query):
    """It never fails, and what is found holds all its words."""
    (rid,) = indexed(db, "hello")
    (all_of_it,) = indexed(db, f"before {query} after")

    found = find(db, query)
    assert all_of_it in found or not words.query(query)
    assert rid not in found or {word for word, _ in words.query(query)} == {"hello"}


def test_a_query_may_be_long(db):
    """There is no number of words at which it fails."""
    text = " ".join(f"w{number}" for number in range(3_000))
    (rid,) = indexed(db, text)

    assert find(db, text) == [rid]
    assert find(db, f"{text} more") == []


# ---- what is indexed ----


def test_text_calls_and_outputs_are_searched_and_nothing_else():
    """Neither thinking nor its signature, nor the bytes of a picture, nor ids."""
    call = ToolCall(id="callid", name="read_file", arguments='{"path":"src"}', signature="callsig")
    done = ToolCall(id="callid", name="grep", arguments="{}", output="matched")
    parts = [Thinking("pondering", "sig"), Text("spoken"), Image(data=b"\0\1" * 50)]
    message = Message.assistant(parts, [call, done], name="who", model="vendor")

    assert words.words(search.text_of(message)) == (
        ["spoken", "read", "file", "path", "src", "grep", "matched"]
    )
    assert search.text_of(Message.tool("result", "callid")) == "result"
    assert search.text_of(Message.assistant(None)) == ""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"code":"one\\ntwo\\tthree"}', ["code", "one", "two", "three"]),
        ('{"city":"\\u5317\\u4eac"}', ["city", "北京", "京"]),
        ('{"path":"C:\\\\new\\\\table"}', ["path", "c", "new", "table"]),
        ('{"a":"\\ud840\\udc00"}', ["a", "\U00020000"]),
        ('{"a":"x\\ud840', ["a", "x"]),
        ('{"a":"x\\u12', ["a", "x", "12"]),
        ("not json\\", ["not", "json"]),
    ],
)
def test_json_is_searched_for_what_it_says(arguments, expected):
    """Escapes are read, in JSON that breaks off too, whether it is an argument or an output."""
    call = ToolCall(id="1", name="", arguments=arguments)
    assert words.words(search.text_of(Message.assistant(None, [call]))) == expected
    if arguments.endswith("}"):
        assert words.words(search.text_of(Message.tool(arguments, "1"))) == expected


def test_what_is_not_json_keeps_its_backslashes():
    """A path stays a path, in what a user says and in what a tool prints."""
    for message in (Message.user('{"C:\\new"}'), Message.tool("C:\\new", "1")):
        assert words.words(search.text_of(message)) == ["c", "new"]


def test_only_messages_are_indexed(db):
    """Other kinds of entries are gone over, and so is one whose session is gone."""
    insert = "INSERT INTO entries(session, kind, payload) VALUES(?, ?, ?)"
    db.execute(insert, (1, "mark", codec.record(Mark(what="hello"))))
    db.execute(insert, (1, "mark", codec.record(Message.user("hello"))))
    db.execute(insert, (99, "message", codec.record(Message.user("hello"))))
    db.execute(insert, (1, "message", codec.record(Message.user("!?"))))
    db.execute(insert, (1, "message", None))

    assert search.fill(db, 10) == 5
    assert search.pending(db) == 0
    assert documents(db) == []


def test_what_cannot_be_read_is_passed_over(db):
    """The index is no judge of the log: every damage, at every byte, and what follows is found."""
    record = codec.record(Message.user("hello"))
    insert = "INSERT INTO entries(session, kind, payload) VALUES(1, 'message', ?)"
    for at in range(len(record)):
        for byte in (record[at] ^ 1, record[at] ^ 128, 0):
            db.execute(insert, (record[:at] + bytes([byte]) + record[at + 1 :],))
        db.execute(insert, (record[:at],))
    for odd in (b"", b'{"v":2,"message":{}}', "text", 7, b"[" * 10_000):
        db.execute(insert, (odd,))
    rid = add(db, "the last")

    search.fill(db, 10_000)

    assert search.pending(db) == 0
    assert find(db, "last") == [rid]


def test_a_store_may_keep_parts_of_a_record_elsewhere(db):
    """`record_of` puts it together; what it cannot put together is passed over too."""

    def whole(rid, payload):
        if rid == 1:
            raise Corrupt("a payload", "a part is lost")
        return payload.replace(b"...", b"hello")

    lost, found = add(db, "..."), add(db, "...")

    assert search.fill(db, 10, whole) == 2
    assert (lost, find(db, "hello")) == (1, [found])


# ---- what is forgotten ----


def test_removing_takes_out_these_and_no_others(db):
    """What the index has not reached yet is left alone, and so is what was erased before."""
    first, second = indexed(db, "one hello", "two hello")
    third = add(db, "three hello")

    search.remove(db, rows(db, first))
    db.execute("UPDATE entries SET payload = NULL WHERE rid = ?", (first,))
    changes = db.total_changes
    search.remove(db, rows(db, first, third))
    assert db.total_changes == changes
    search.fill(db, 10)

    assert find(db, "hello") == [third, second]
    assert find(db, "one") == []
    assert {rid for rid, _ in documents(db)} == {second, third}


def in_files(path, word):
    return sum(
        file.read_bytes().count(word)
        for file in path.parent.iterdir()
        if not file.name.endswith("-shm")
    )


# Words that begin like their neighbours are stored without the beginning, so an end is looked for.
@pytest.mark.parametrize("secret", ["zanzibarsecretend", "neighbourbsecretend"])
@pytest.mark.parametrize("batch", [1, 10, 200])
def test_an_erased_word_is_in_no_byte_of_the_files(tmp_path, secret, batch):
    """Whether it stood alone or between words that begin like it, and in whichever segments.
    Without the purge it would be: otherwise this test would see nothing."""
    path = tmp_path / "store.db"
    db = opened(path)
    kept = [add(db, f"word{number} neighboura{number} neighbourc{number}") for number in range(200)]
    gone = [add(db, f"some {secret} word{number}") for number in (1, 2, 3)]
    kept += [add(db, f"word{number} and more") for number in range(100)]
    while search.fill(db, batch):
        pass
    assert find(db, secret) == gone[::-1]

    erase(db, *gone, purge=False)
    assert find(db, secret) == []
    assert in_files(path, b"secretend") > 0

    erase(db)  # nothing more, but with a purge
    assert in_files(path, b"secretend") == 0
    assert find(db, "more") == kept[:-101:-1]
    assert find(db, "word2") == [kept[202], kept[2]]
    db.close()


def test_other_connections_search_on_through_a_purge(tmp_path):
    """One in the middle of reading sees what was there, and the next search what is there now."""
    path = tmp_path / "store.db"
    db, other = opened(path), sqlite3.connect(path, isolation_level=None)
    first, gone = indexed(db, "hello one", "hello two")
    assert find(other, "hello") == [gone, first]

    other.execute("BEGIN")
    assert find(other, "one") == [first]
    erase(db, gone)
    assert find(other, "hello") == [gone, first]
    other.execute("COMMIT")

    assert find(other, "hello") == [first]
    (third,) = indexed(other, "hello three")
    assert find(db, "hello") == find(other, "hello") == [third, first]
    db.execute("INSERT INTO words(words) VALUES('integrity-check')")
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()
    other.close()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python 3.11 cannot set it")
@pytest.mark.parametrize("is_defensive", [True, False])
def test_a_purge_leaves_the_connection_as_defensive_as_it_was(db, is_defensive):
    """For a moment it has to write what is protected from everybody."""
    db.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, is_defensive)

    search.purge(db)

    assert db.getconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE) is is_defensive


def test_a_word_that_others_said_stays(tmp_path):
    """Erasing one message takes nothing from another."""
    db = opened(tmp_path / "store.db")
    first, second = indexed(db, "shared alone", "shared")

    erase(db, first)

    assert find(db, "shared") == [second]
    db.close()


def test_purging_never_wears_the_index_out(db, monkeypatch):
    """FTS5 counts its levels up at every optimize, and calls 2,000 of them malformed. Beginning
    anew costs a refill, now and then."""
    texts = [f"word{number} w{number * 7}" for number in range(400)]
    kept = indexed(db, *texts)
    monkeypatch.setattr(search, "PURGES_MAX", 5)

    fills = []
    for number in range(14):
        (rid,) = indexed(db, f"gone{number}")
        erase(db, rid)
        fills.append(search.pending(db) > 0)
        search.fill(db, 1_000)

    assert fills == ([False] * 5 + [True]) * 2 + [False] * 2
    assert find(db, "word3") == [kept[3]]
    levels = db.execute("SELECT length(block) FROM words_data WHERE id = 10").fetchone()[0]
    assert levels < 100


@pytest.mark.parametrize("damage", ["payload", "rules", "mixed"])
def test_an_index_that_cannot_be_told_what_to_forget_begins_anew(tmp_path, damage):
    """A damaged payload does not tell its words any more, and other rules tell other words."""
    path = tmp_path / "store.db"
    db = opened(path)
    first, gone = indexed(db, "kept", "zanzibarsecretend")
    if damage == "payload":
        db.execute("UPDATE entries SET payload = x'00' WHERE rid = ?", (gone,))
    else:
        db.execute("UPDATE search SET rules = 'of another version'")
    if damage == "mixed":
        indexed(db, "added by this version")

    erase(db, gone)

    assert in_files(path, b"secretend") == 0
    assert find(db, "kept") == []
    search.fill(db, 10)
    assert find(db, "kept") == [first]
    erase(db, first)
    assert search.pending(db) == 0
    db.close()


def test_a_rid_that_is_used_again_is_indexed(db):
    """SQLite gives the rids of deleted rows to the next ones, if they were the highest."""
    kept, gone = indexed(db, "kept", "gone")

    search.remove(db, rows(db, gone))
    db.execute("DELETE FROM entries WHERE rid = ?", (gone,))
    search.settle(db)
    again = add(db, "new")
    assert again == gone
    assert search.pending(db) == 1
    search.fill(db, 10)

    assert find(db, "new") == [again]
    assert find(db, "gone") == []
    assert find(db, "kept") == [kept]


def test_settling_an_empty_or_unfilled_log_is_harmless(db):
    """`filled` only ever goes down by it, to what is there."""
    add(db, "one")
    search.settle(db)
    assert search.pending(db) == 1
    search.fill(db, 10)
    search.settle(db)
    assert search.pending(db) == 0

    search.remove(db, rows(db, 1))
    db.execute("DELETE FROM entries")
    search.settle(db)
    assert search.pending(db) == 0
    assert find(db, "one") == []
    assert indexed(db, "two") == find(db, "two") == [1]


# ---- around it ----


def test_a_rollback_takes_the_index_back_with_the_log(db):
    """Both are in one file and one transaction."""
    db.execute("BEGIN IMMEDIATE")
    indexed(db, "hello")
    db.execute("ROLLBACK")

    assert search.pending(db) == 0
    assert find(db, "hello") == []
    assert indexed(db, "other") == find(db, "other")


def test_the_lack_of_fts5_is_told(db):
    """Some SQLite libraries are built without it: everything but search works there."""

    class Without:
        def execute(self, statement):
            return iter([("json_each",), ("rtree",)])

    assert search.has_fts5(db)
    assert not search.has_fts5(Without())
