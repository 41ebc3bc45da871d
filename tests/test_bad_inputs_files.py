"""Bad inputs 21 to 23, 61 to 65 and 70 to 74: where a store lies, and what lies there.

URLs, options, names and folders that are not what they seem; and the files of the SQLite store,
with rows, tables, pages, logs and formats changed, before it is opened and while it is in use. What
comes of it is right or an error of ours; nothing outside of the store changes, and neither does a
file that is refused.

It ends with negative controls: stores and files that are wrong, on which these tests have to fail.
"""

import asyncio
import gc
import json
import os
import random
import select
import shutil
import signal
import sqlite3
import struct
import subprocess
import tempfile
import time
import warnings
from contextlib import asynccontextmanager, closing, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path

import pytest

import holdfast
from bad_inputs import (
    DATABASE,
    DAY,
    HOUR,
    MIB,
    SECRET,
    STORES,
    Fake,
    Sandbox,
    all_of,
    asked_for,
    describe,
    outcome_of,
    place_in,
    run,
)
from holdfast import errors
from holdfast.entries import Call, Fold, Mark, UnknownEntry
from holdfast.errors import HoldfastError
from holdfast.messages import Message
from holdfast.settings import Settings
from holdfast.stores import Record, open_store
from holdfast.stores.sqlite import commits, file, header
from holdfast.stores.values import Limits

posix_only = pytest.mark.skipif(os.name != "posix", reason="modes and links are POSIX")


@pytest.fixture
def sandbox(tmp_path, monkeypatch):
    made = Sandbox(tmp_path).enter(monkeypatch)
    yield made
    made.empty()


# --- options and URLs: 61, 63, 64 -----------------------------------------------------------------


def opened(url, **options):
    """What comes of opening a store, in the words of the tables."""

    async def scenario():
        async with open_store(url, **options) as store:
            tenant = store.tenant("t")
            await tenant.create(Record(key="k"), [Message.user("x")])
            assert [each.entry.text for each in await tenant.read((await tenant.load("k")).id)] == [
                "x"
            ]

    try:
        store = open_store(url, **options)
        if SECRET in repr(store) or SECRET in repr(holdfast.SessionManager(store)):
            return "a repr that tells a secret"
        run(scenario())
    except Exception as error:
        return outcome_of(error)
    return "opened"


URLS = {
    "empty": ("", "InvalidInput"),
    "no scheme": ("chats.db", "InvalidInput"),
    "colon": (":", "InvalidInput"),
    "no text": (5, "InvalidInput"),
    "None": (None, "InvalidInput"),
    "bytes": (b"memory:", "InvalidInput"),
    "a path": (Path("chats.db"), "InvalidInput"),
    "memory with a path": ("memory:x", "InvalidInput"),
    "memory with parameters": ("memory:?cache=shared", "InvalidInput"),
    "memory in capitals": ("MEMORY:", "opened"),
    "space before": (" memory:", "InvalidInput"),
    "unknown scheme": (f"redis://u:{SECRET}@h/0", "InvalidInput"),
    "another database": (f"postgresql://u:{SECRET}@h/d?sslmode=none", "InvalidInput"),
    "a password for SQLite": (f"sqlite://u:{SECRET}@h/chats.db", "InvalidInput"),
    "a password alone": (SECRET, "InvalidInput"),
    "scheme of 1 MiB": ("s" * MIB + ":", "InvalidInput"),
    "scheme with a NUL": ("sql\0ite:x", "InvalidInput"),
    "scheme that is a module": ("os.system:id", "InvalidInput"),
    "no file": ("sqlite:", "InvalidInput"),
    "no file behind slashes": ("sqlite:///", "InvalidInput"),
    "a host": ("sqlite://host/chats.db", "InvalidInput"),
    "SQLite's memory": ("sqlite::memory:", "InvalidInput"),
    "shared memory": ("sqlite:file:x?mode=memory&cache=shared", "InvalidInput"),
    "vfs": ("sqlite:data/chats.db?vfs=unix-none", "InvalidInput"),
    "parameters": ("sqlite:data/chats.db?mode=ro", "InvalidInput"),
    "half a character": ("sqlite:data/\ud800.db", "InvalidInput"),
    "NUL": ("sqlite:data/a\0b.db", "InvalidInput"),
    "folder by its slash": ("sqlite:data/", "InvalidInput"),
    "folder": ("sqlite:data", "StoreUnavailable"),
    "dot": ("sqlite:.", "StoreUnavailable|InvalidInput"),
    "two dots": ("sqlite:..", "StoreUnavailable|InvalidInput"),
    "a file as a folder": ("sqlite:canary/chats.db", "StoreUnavailable"),
    "a link": ("sqlite:link", "StoreUnavailable"),
    "a canary": ("sqlite:canary", "Corrupt|StoreUnavailable"),
    "a canary upwards": ("sqlite:../../../etc/passwd", "Corrupt|StoreUnavailable"),
    "a device": ("sqlite:/dev/null", "StoreUnavailable"),
    "a name of 300 bytes": ("sqlite:data/" + "k" * 300, "StoreUnavailable|InvalidInput"),
    "a path of 5,000 bytes": ("sqlite:data/" + "k/" * 2_500 + "x", "StoreUnavailable|InvalidInput"),
}


@pytest.mark.parametrize("name", URLS, ids=lambda name: f"64-{name}".replace(" ", "-"))
def test_a_url_has_the_outcome_in_the_table(sandbox, name):
    """64: no password in an error or a repr, and nothing that is not ours is opened or changed."""
    url, expected = URLS[name]
    before = sandbox.seen()

    assert opened(url) in expected.split("|")

    assert sandbox.seen() == before


@posix_only
def test_an_absolute_path_to_a_file_of_others_is_refused_unchanged(sandbox):
    """64: sqlite:////etc/passwd."""
    before = sandbox.seen()

    for url in (f"sqlite:///{sandbox.root}/etc/passwd", f"sqlite:{sandbox.root}/etc/passwd"):
        assert opened(url) in ("Corrupt", "StoreUnavailable")

    assert sandbox.seen() == before


# As the name of the file: plain characters, whatever they mean to a shell, a URL or SQLite.
PLAIN_NAMES = [
    *(
        "a b",
        "a#b",
        "a%20b",
        "%2e%2e%2fx",
        "file:x",
        "a;b",
        "-rf",
        "$HOME",
        "a\\b",
        "a\nb",
        "~root",
    ),
    *("a:memory:", "\u202eb", "caf\u00e9", "cafe\u0301", "'; DROP TABLE x;--", "{0}", "CON", "a."),
]


@posix_only
@pytest.mark.parametrize("name", PLAIN_NAMES)
def test_a_file_has_the_very_name_that_was_asked_for(sandbox, name):
    """64: the store is at that name and beside it, and nowhere else."""
    folder = sandbox.root / "alone"
    folder.mkdir(mode=0o700)
    before = sandbox.seen()

    assert opened(f"sqlite:{folder}/{name}") == "opened"

    added = sandbox.seen().keys() - before.keys()
    assert f"alone/{name}" in added
    assert {each for each in added if not each.startswith(f"alone/{name}")} == set()
    shutil.rmtree(folder)
    folder.mkdir(mode=0o700)
    assert sandbox.seen() == before


OPTIONS = {
    "durability": [("sync", "opened"), ("fast", "opened"), ("SYNC", "InvalidInput")]
    + [
        (each, "InvalidInput") for each in ("", None, True, 2, ["sync"], b"sync", "sync; x", "full")
    ],
    "limits": [(Limits(page=5), "opened")]
    + [(each, "InvalidInput") for each in (None, {}, {"page": 5}, 5, "none", Limits)],
    "table": [(each, "InvalidInput") for each in ("m; DROP", '"m"', "m" * 64, "select", "t\xe4")],
    "schema": [("public", "InvalidInput")],
    "password": [(SECRET, "InvalidInput")],
}


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        pytest.param(name, *each, id=f"{63 if name in ('table', 'schema') else 64}-{name}-{number}")
        for name, values in OPTIONS.items()
        for number, each in enumerate(values)
    ],
)
def test_an_option_has_the_outcome_in_the_table(sandbox, option, value, expected):
    """61, 63, 64: an option that is unknown, or has another value than it may, is InvalidInput."""
    assert opened(sandbox.url("sqlite"), **{option: value}) == expected


@pytest.mark.parametrize("option", ["durability", "table", "password"])
def test_the_memory_store_refuses_options_that_it_has_not(option):
    """61: an unknown setting is an error of ours."""
    assert opened("memory:", **{option: SECRET}) == "InvalidInput"


@pytest.mark.parametrize(
    "limits", [None, {}, 5, Limits], ids=["64-None", "64-dict", "64-five", "64-class"]
)
def test_the_memory_store_takes_limits_only_as_limits(limits):
    assert opened("memory:", limits=limits) == "InvalidInput"


# --- what has our names: 21, 22, 23 ---------------------------------------------------------------


def put(kind, path, target):
    """Something else at a name of ours; what it leads to is `target`."""
    if kind == "link to a file":
        path.symlink_to(target)
    elif kind == "link to nothing":
        path.symlink_to(target.with_name("nothing"))
    elif kind == "link to a folder":
        path.symlink_to(target.parent, target_is_directory=True)
    elif kind == "link to itself":
        path.symlink_to(path)
    elif kind == "FIFO":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()


KINDS = [
    "link to a file",
    "link to nothing",
    "link to a folder",
    "link to itself",
    "FIFO",
    "folder",
]


@posix_only
@pytest.mark.parametrize(
    ("suffix", "kind"),
    [
        pytest.param(
            s, k, id=f"{21 if 'link' in k else 23}-{s or 'database'}-{k.replace(' ', '-')}"
        )
        for s in ("", "-wal", "-shm", "-journal", "-lock", "-owners")
        for k in KINDS
        if (s, k) != ("-owners", "folder")
    ],
)
def test_a_name_of_ours_that_leads_elsewhere_is_refused(sandbox, suffix, kind):
    """21, 22, 23: who can put a link there could have any file written, or deleted."""
    victims = sandbox.root / "victims"
    victims.mkdir()
    for name in ("file", "0" * 32, "f" * 32):  # the latter look like names that we give
        (victims / name).write_text("canary")
    put(kind, beside(sandbox.path, suffix), victims / "file")
    before = sandbox.seen()

    async def scenario():
        async with sandbox.open("sqlite") as store:
            tenant = store.tenant("")
            record = await tenant.create(Record(key="k"))
            lease = await tenant.begin(record.id, "me", HOUR, {})
            await tenant.release(lease)

    with pytest.raises(HoldfastError) as caught:
        run(scenario())

    assert outcome_of(caught.value) == "StoreUnavailable"
    assert sandbox.seen() == before
    assert describe(beside(sandbox.path, suffix), content=False).split()[0][0] in "lpd"


@posix_only
def test_a_hard_link_is_told(sandbox):
    """23: a second name of the file may be anybody's."""

    async def scenario():
        async with sandbox.open("sqlite") as store:
            os.link(sandbox.path, sandbox.root / "second")
            return store.problems()

    assert any("hard link" in each and str(sandbox.path) in each for each in run(scenario()))


@posix_only
def test_a_folder_that_is_a_link_holds_the_store_and_nothing_else_is_touched(sandbox):
    """22: a folder may be on another disk; its link is followed once, by the system."""
    elsewhere = sandbox.root / "elsewhere"
    sandbox.data.rename(elsewhere)
    sandbox.data.symlink_to(elsewhere, target_is_directory=True)
    before = sandbox.seen()

    assert opened(sandbox.url("sqlite")) == "opened"

    added = sandbox.seen().keys() - before.keys()
    assert added and all(each.startswith(f"elsewhere/{DATABASE}") for each in added)


# --- the environment: 65 --------------------------------------------------------------------------

EVIL = "import os\nopen(os.path.join(os.path.dirname(__file__), 'imported'), 'a').close()\n"


@pytest.mark.parametrize("kind", STORES)
def test_nothing_is_taken_from_a_hostile_environment(sandbox, monkeypatch, kind):
    """65: no module from PYTHONPATH or the working folder, and no text in temporary files."""
    for folder in (sandbox.work, sandbox.temporary):
        for name in ("sitecustomize", "usercustomize", "json", "sqlite3", "sys", "site", "re"):
            (folder / f"{name}.py").write_text(EVIL)
    monkeypatch.setenv("PYTHONPATH", str(sandbox.temporary))
    monkeypatch.setenv("PYTHONSTARTUP", str(sandbox.temporary / "json.py"))
    monkeypatch.setenv("SQLITE_TMPDIR", str(sandbox.temporary))

    async def scenario():
        async with place_in(sandbox, kind) as place:
            made = await place.subject(*[Message.user(f"word{n} " * 500) for n in range(300)])
            await place.tenant.search("word7")
            await place.tenant.list(metadata={"a": 1})
            await place.tenant.erase(made.id, [1, 2, 3])
            await place.tenant.clear(made.id)
            await place.tenant.delete(made.id)

    run(scenario())


def test_a_temporary_folder_that_is_not_there_is_not_needed(sandbox, monkeypatch):
    """65: TMPDIR may point anywhere."""
    for name in ("TMPDIR", "SQLITE_TMPDIR", "TEMP", "TMP"):
        monkeypatch.setenv(name, "/nonexistent/\nfolder")
    monkeypatch.setattr(tempfile, "tempdir", None)

    async def scenario():
        async with place_in(sandbox, "sqlite") as place:
            made = await place.subject(*[Message.user("word " * 5_000) for n in range(50)])
            await place.tenant.search("word")
            await place.tenant.erase(made.id, [1])

    run(scenario())


@posix_only
@pytest.mark.parametrize(
    "mode", [0o777, 0o707, 0o770, 0o1777], ids=["65-777", "65-707", "65-770", "65-1777"]
)
def test_a_folder_that_others_can_write_to_is_named(sandbox, mode):
    """65: whoever can write there can replace the file; `problems` says so, and the way out."""

    async def scenario():
        async with sandbox.open("sqlite") as store:
            sound = store.problems()
            sandbox.data.chmod(mode)
            return sound, store.problems()

    sound, found = run(scenario())

    assert not any(f"{sandbox.data} can" in each for each in sound)
    assert any(str(sandbox.data) in each and "chmod 700" in each for each in found)


# --- files of the SQLite store: a sound one, and what may come of a damaged one -------------------

LARGE = "large " * 8_000


async def fill(store):
    """Sessions of which one has a row in every table."""
    tenant = store.tenant("")
    await tenant.create(
        Record(key="control", agent="controller", metadata={"is": "control"}),
        [Message.user("controlword"), Mark(what="noted"), Message.assistant("said")],
    )
    record = Record(
        key="victim",
        agent="robot",
        settings=Settings(model="vendor:model", system="be kind"),
        metadata={"is": "victim"},
        tools=[{"name": "look"}],
        counters={"turns": 2},
        ttl=3_650 * DAY,
        parent="another",
    )
    victim = await tenant.create(record, [Message.user("victimword"), Message.assistant("aye")])
    await tenant.append(
        victim.id,
        [
            Fold(first=1, last=2, replacement=Message.user("in short")),
            Call(model="vendor:model"),
            Mark(what="noted", data={"a": 1}),
            Message.tool(LARGE, "c"),
            UnknownEntry(kind="vote", raw=b'{"v":1,"vote":[1.0 ]}'),
        ],
        once="turn 1",
    )
    await tenant.branch(victim.id, "side", parent="main", at=2)
    await tenant.append(victim.id, [Message.user("on the side")], branch="side")
    lease = await tenant.begin(victim.id, "worker", HOUR, {"input": "hello"})
    await tenant.journal(lease, "partial")
    await tenant.release(lease)
    await store.tenant("other").create(Record(key="victim"), [Message.user("of another")])
    await tenant.search("victimword")
    await tenant.expire()


class Truth:
    """What was written: a session as it was read from the sound file."""

    def __init__(self, record, read, summary):
        self.record = record
        self.id = record.id
        self.read = read
        self.summary = summary

    @classmethod
    async def of(cls, tenant, key):
        record = await tenant.load(key)
        read = {
            branch.name: await tenant.read(record.id, branch.name) for branch in record.branches
        }
        (summary,) = [each for each in await all_of(tenant) if each.key == key]
        return cls(record, read, summary)


class Sound:
    """A sound file, and the truth about it."""

    def __init__(self, folder):
        self.path = folder / DATABASE
        folder.mkdir()

        async def made():
            async with open_store(f"sqlite:{self.path}", durability="fast") as store:
                await fill(store)
            async with open_store(f"sqlite:{self.path}", durability="fast") as store:
                self.control = await Truth.of(store.tenant(""), "control")
                self.victim = await Truth.of(store.tenant(""), "victim")
                self.other = await Truth.of(store.tenant("other"), "victim")

        run(made())
        self.loose = folder / "loose.db"
        shutil.copy(self.path, self.loose)
        self.schema = loosened(self.loose)
        with closing(sqlite3.connect(self.path)) as db:
            (self.number,) = db.execute(
                "SELECT number FROM sessions WHERE id = ? AND tenant = ''", (self.victim.id,)
            ).fetchone()

    def copy_to(self, path):
        shutil.copy(self.path, path)
        path.chmod(0o600)
        return path


def loosened(path):
    """Let every column be NULL, in the text of the schema; the text as it was."""
    with closing(sqlite3.connect(path)) as db:
        texts = dict(db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'"))
        db.execute("PRAGMA journal_mode=DELETE")
        db.execute("PRAGMA writable_schema=ON")
        for name, text in texts.items():
            if "VIRTUAL" not in text and not name.startswith("sqlite_"):
                loose = text.replace(" NOT NULL", "")
                db.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (loose, name))
        db.commit()
    return texts


def tightened(db, texts):
    db.execute("PRAGMA writable_schema=ON")
    for name, text in texts.items():
        if not name.startswith("sqlite_"):
            db.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (text, name))
    db.commit()
    db.execute("PRAGMA journal_mode=WAL")


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return Sound(tmp_path_factory.mktemp("sound") / "store")


DAMAGE = ("Corrupt", "StoreUnavailable", "SessionNotFound")


async def wrongs_of_victim(store, sound):
    """What the damaged session answers that is neither right nor an error about damage."""
    tenant, truth = store.tenant(""), sound.victim
    found = {"load": await asked_for(lambda: tenant.load("victim"), truth.record.__eq__)}
    for branch, rows in truth.read.items():
        found[f"read {branch}"] = await asked_for(
            lambda branch=branch: tenant.read(truth.id, branch), rows.__eq__
        )
        found[f"tail {branch}"] = await asked_for(
            lambda branch=branch: tenant.tail(truth.id, branch, 1),
            lambda few, rows=rows: few and rows[-len(few) :] == few,
        )
    found["list"] = await asked_for(
        lambda: all_of(tenant),
        lambda items: all(
            each.damage or each in (truth.summary, sound.control.summary) for each in items
        ),
    )
    found["search"] = await asked_for(
        lambda: tenant.search("victimword"),
        lambda page: all(
            each.session_id == truth.id
            and (each.damage or each.stored == truth.read["main"][0])
            and (each.stored.entry is None) == bool(each.damage)
            for each in page.items
        ),
    )
    found["verify"] = await asked_for(lambda: tenant.verify(truth.id))
    return {name: each for name, each in found.items() if each not in ("right", *DAMAGE)}


async def wrongs_of_control(store, sound, *, is_searched=True):
    """What another session in the same file does not do as before."""
    tenant, truth = store.tenant(""), sound.control
    other = store.tenant("other")
    found = {
        "load": await asked_for(lambda: tenant.load("control"), truth.record.__eq__),
        "read": await asked_for(lambda: tenant.read(truth.id), truth.read["main"].__eq__),
        "tail": await asked_for(lambda: tenant.tail(truth.id), truth.read["main"].__eq__),
        "list": await asked_for(lambda: all_of(tenant), lambda items: truth.summary in items),
        "list by agent": await asked_for(
            lambda: all_of(tenant, agent="controller"), [truth.summary].__eq__
        ),
        "list by metadata": await asked_for(
            lambda: all_of(tenant, metadata={"is": "control"}), [truth.summary].__eq__
        ),
        "verify": await asked_for(lambda: tenant.verify(truth.id), lambda v: v.problems == ()),
        "verify all": await asked_for(lambda: tenant.verify()),
        "load of another tenant": await asked_for(
            lambda: other.load("victim"), sound.other.record.__eq__
        ),
        "list of another tenant": await asked_for(
            lambda: all_of(other), [sound.other.summary].__eq__
        ),
    }
    if is_searched:
        found["search"] = await asked_for(
            lambda: tenant.search("controlword"),
            lambda page: [each.key for each in page.items] == ["control"],
        )
    return {f"control: {name}": each for name, each in found.items() if each != "right"}


def is_refusal(outcome):
    """Whether it is an error of ours, and a decent one."""
    kind = getattr(errors, outcome, None)
    return isinstance(kind, type) and issubclass(kind, HoldfastError)


async def wrongs_of_writing(store, sound):
    """What goes wrong when both are written to; the damaged one may refuse, the other may not."""
    tenant, truth = store.tenant(""), sound.victim
    first = truth.read["main"]
    turn = [each.entry for each in first if each.seq > 2]
    found = {
        "once": await asked_for(
            lambda: tenant.append(truth.id, turn, once="turn 1"),
            lambda done: tuple(done) == (3, 7, "main", 3),
        ),
        "begin": await asked_for(lambda: tenant.begin(truth.id, "me", HOUR, {})),
        "append": await asked_for(lambda: tenant.append(truth.id, [Message.user("more")])),
        "update": await asked_for(lambda: tenant.update(truth.id, {"metadata": {"a": 1}})),
        "branch": await asked_for(lambda: tenant.branch(truth.id, "new", parent="main", at=1)),
        "expire": await asked_for(lambda: tenant.expire()),
    }
    wrong = {n: each for n, each in found.items() if each != "right" and not is_refusal(each)}
    control = sound.control
    more = [Message.user("more")]
    head = control.record.branches[0].head
    done = await asked_for(
        lambda: tenant.append(control.id, more, after=head), lambda done: done.messages == 3
    )
    if done != "right":
        wrong["control: append"] = done
    count = len(control.read["main"]) + (done == "right")
    read = await asked_for(
        lambda: tenant.read(control.id),
        lambda rows: rows[:3] == control.read["main"] and len(rows) == count,
    )
    if read != "right":
        wrong["control: read again"] = read
    return wrong


# --- poisoned rows: 71 ----------------------------------------------------------------------------

PICKLE = b"cos\nsystem\n(S'touch pwned'\ntR."
NOT_UTF8 = object()
POISONS = {
    "BLOB": {
        "NULL": None,
        "text": "' OR 1=1 --",
        "not UTF-8": NOT_UTF8,
        "nothing": b"",
        "pickle": PICKLE,
        "msgpack ext": b"\xc7\x03\x05abc",
        "deep JSON": b"[" * 100_000,
        "one": 1,
    },
    "TEXT": {
        "NULL": None,
        "text": "' OR 1=1 --",
        "not UTF-8": NOT_UTF8,
        "nothing": "",
        "pickle": PICKLE,
        "deep JSON": "[" * 100_000,
    },
    "INTEGER": {
        "NULL": None,
        "text": "' OR 1=1 --",
        "not UTF-8": NOT_UTF8,
        "pickle": PICKLE,
        "zero": 0,
        "minus one": -1,
        "five": 5,
        "largest": 2**63 - 1,
        "real": 1.5,
    },
}


def family(declared):
    for name, word in (("BLOB", "BLOB"), ("TEXT", "TEXT"), ("TEXT", "CHAR"), ("INTEGER", "INT")):
        if word in declared.upper():
            return name
    return "BLOB"


def columns():
    """All columns of all tables that the store makes: table, column, family."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / DATABASE

        async def made():
            async with open_store(f"sqlite:{path}", durability="fast"):
                pass

        run(made())
        gc.collect()  # so that nothing of the store is left when its folder goes
        with closing(sqlite3.connect(path)) as db:
            return columns_in(db)


def columns_in(db):
    tables = db.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
    ).fetchall()
    return [
        (table, row[1], family(row[2]))
        for (table,) in sorted(tables)
        for row in db.execute(f'PRAGMA table_info("{table}")')
    ]


def poisoned(path, sound, table, column, value):
    """A file in which one row of the victim's has another value; False if SQLite refuses it."""
    shutil.copy(sound.loose, path)
    path.chmod(0o600)
    with closing(sqlite3.connect(path)) as db:
        found = db.execute(f'PRAGMA table_info("{table}")').fetchall()
        names = [row[1] for row in found]
        keys = [row[1] for row in found if row[5]] or ["rowid"]
        if table == "sessions":
            where = f"number = {sound.number}"
        elif "session" in names:
            where = f"session = {sound.number}"
        else:
            where = "1"
        chosen = ", ".join(f'"{key}"' if key != "rowid" else key for key in keys)
        row = db.execute(f'SELECT {chosen} FROM "{table}" WHERE {where} LIMIT 1').fetchone()
        assert row is not None, f"the sound file has nothing in {table}"
        is_key = " AND ".join(f'"{key}" IS ?' if key != "rowid" else "rowid IS ?" for key in keys)
        put, values = ("CAST(x'ff61' AS TEXT)", ()) if value is NOT_UTF8 else ("?", (value,))
        try:
            db.execute("PRAGMA ignore_check_constraints=ON")
            db.execute(f'UPDATE "{table}" SET "{column}" = {put} WHERE {is_key}', (*values, *row))
            db.commit()
        except sqlite3.Error:
            return False
        tightened(db, sound.schema)
    return True


class Child:
    """Functions that run one after the other in a process of their own, where they may hang."""

    def __init__(self, functions):
        self._names = list(functions)
        self._reading, writing = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # that this process has threads
            self._child = os.fork()
        if self._child == 0:
            try:
                for function in functions.values():
                    os.write(writing, json.dumps(function()).encode()[:60_000] + b"\n")
            finally:
                os._exit(0)
        os.close(writing)

    def results(self, deadline):
        """What they returned, as JSON would; of the first that did not, that it hangs or died."""
        said, end = b"", "died"
        try:
            while True:
                left = max(0, deadline - time.monotonic())
                if not select.select([self._reading], [], [], left)[0]:
                    end = "hangs"
                    break
                if not (piece := os.read(self._reading, 65_536)):
                    break
                said += piece
        finally:
            os.close(self._reading)
            with suppress(ProcessLookupError):
                os.kill(self._child, signal.SIGKILL)
            os.waitpid(self._child, 0)
        lines = said.decode().split("\n")[:-1]
        found = dict(zip(self._names, map(json.loads, lines), strict=False))
        return found | {name: {"it": end} for name in self._names[len(lines) :][:1]}


def guarded_all(functions, seconds=15, at_once=2):
    """The results of functions that may hang or crash, and not take this process with them."""
    if not hasattr(os, "fork"):
        return {name: function() for name, function in functions.items()}
    deadline = time.monotonic() + seconds
    names = list(functions)
    shares = [{name: functions[name] for name in names[n::at_once]} for n in range(at_once)]
    found = {}
    for child in [Child(share) for share in shares if share]:
        found |= child.results(deadline)
    return found


def guarded(function, seconds=15):
    """The same for one."""
    return guarded_all({"it": function}, seconds)["it"]


async def wrongs(path, sound, *, is_searched=True):
    """Everything that a store on this file does wrong; a file that it refuses whole is its right
    only where the damage is in no session's rows."""
    try:
        store = await open_store(f"sqlite:{path}", durability="fast")
    except Exception as error:
        return {"open": outcome_of(error)}
    try:
        found = await wrongs_of_control(store, sound, is_searched=is_searched)
        found |= await wrongs_of_victim(store, sound)
        found |= await wrongs_of_writing(store, sound)
        return found
    finally:
        await store.close()


OF_SEARCH = ("search", "words")
OWN_SUFFIXES = {"", "-wal", "-shm", "-journal", "-lock", "-owners"}


# What cannot be told: a name that was never used, and a time of the last write in a list, which
# shows columns and records; loading the session tells.
UNTOLD = {
    ("once", "session"): "once",
    ("once", "name"): "once",
    ("sessions", "updated"): "list",
}


@pytest.mark.parametrize(
    ("table", "column", "kind"),
    [pytest.param(*each, id=f"71-{each[0]}.{each[1]}") for each in columns()],
)
def test_a_poisoned_row_is_damage_of_its_session_alone(sandbox, sound, table, column, kind):
    """71: the session it belongs to says so or is right; another loads, reads and is listed."""
    is_index = table.partition("_")[0] in OF_SEARCH
    before = sandbox.seen()
    asking = {}
    for name, value in POISONS[kind].items():
        path = sandbox.root / f"{name} poison" / DATABASE
        path.parent.mkdir(mode=0o700)
        if poisoned(path, sound, table, column, value):
            asking[name] = partial(wrongs, path, sound, is_searched=not is_index)

    found = guarded_all({name: lambda ask=ask: run(ask()) for name, ask in asking.items()})

    untold = UNTOLD.get((table, column))
    wrong = {name: each.keys() - {untold} for name, each in found.items()}
    assert {name: found[name] for name in found if wrong[name]} == {}
    assert found
    for folder in sandbox.root.glob("* poison"):
        assert {each.name.removeprefix(DATABASE) for each in folder.iterdir()} <= OWN_SUFFIXES
        shutil.rmtree(folder)
    assert sandbox.seen() == before


def test_every_table_has_a_row_to_poison(sound):
    with closing(sqlite3.connect(sound.path)) as db:
        found = {
            table: db.execute(f'SELECT 1 FROM "{table}"').fetchone() for table, *_ in columns_in(db)
        }

    assert all(found.values()), found


def test_a_row_that_cannot_be_decoded_leaves_other_reads_fresh(sandbox, sound):
    """71: after an error, what was appended is seen; no reader stays in the past."""
    assert poisoned(sandbox.path, sound, "sessions", "agent", NOT_UTF8)

    async def scenario():
        async with sandbox.open("sqlite") as store:
            tenant = store.tenant("")
            with suppress(HoldfastError):
                await tenant.list()
            with suppress(HoldfastError):
                await tenant.load("victim")
            await tenant.append(sound.control.id, [Message.user("more")])
            return (await tenant.load("control")).seq

    assert run(scenario()) == sound.control.record.seq + 1


# --- other people's schema, pages and logs: 70 ----------------------------------------------------


def edited(path, *statements, is_schema=False):
    """Run statements on a file, as another program would."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        if is_schema:
            db.execute("PRAGMA writable_schema=ON")
        for statement in statements:
            db.execute(statement)
    return path


def beside(path, suffix):
    return path.with_name(path.name + suffix)


def bytes_of(path):
    return describe(path), sorted(each.name for each in path.parent.glob(f"{DATABASE}*"))


PLANTED = {
    "trigger that deletes": [
        "CREATE TRIGGER t AFTER INSERT ON entries BEGIN DELETE FROM sessions WHERE number = 1; END"
    ],
    "trigger that changes": [
        "CREATE TRIGGER t AFTER UPDATE ON sessions BEGIN UPDATE documents SET body = x'00'; END"
    ],
    "trigger that refuses": [
        "CREATE TRIGGER t BEFORE INSERT ON entries BEGIN SELECT RAISE(ABORT, 'no'); END"
    ],
    "trigger that ignores": [
        "CREATE TRIGGER t BEFORE INSERT ON entries BEGIN SELECT RAISE(IGNORE); END"
    ],
    "trigger of another table": [
        "CREATE TABLE x(a)",
        "CREATE TRIGGER t AFTER INSERT ON x BEGIN DELETE FROM sessions; END",
    ],
    "view for a table": [
        "ALTER TABLE clocks RENAME TO hidden",
        "CREATE VIEW clocks AS SELECT tenant, load_extension('x') AS seen FROM hidden",
    ],
    "generated column": [
        "ALTER TABLE entries ADD COLUMN g GENERATED ALWAYS AS (length(payload)) VIRTUAL"
    ],
    "another column": ["ALTER TABLE sessions ADD COLUMN x DEFAULT 1"],
    "unique index": ["CREATE UNIQUE INDEX x ON sessions(agent)"],
    "index of an expression": ["CREATE INDEX x ON entries(abs(position))"],
    "partial index": ["CREATE UNIQUE INDEX x ON entries(kind) WHERE rid < 0"],
    "table missing": ["DROP TABLE drafts"],
    "table renamed": ["ALTER TABLE once RENAME TO twice"],
    "index missing": ["DROP INDEX sessions_newest"],
}


def refused(sandbox):
    """What comes of opening the file, which must not be changed if it is refused."""
    before = bytes_of(sandbox.path)[0]

    async def scenario():
        async with sandbox.open("sqlite"):
            return "opened"

    try:
        return run(scenario())
    except Exception as error:
        outcome = outcome_of(error)
    return outcome if bytes_of(sandbox.path)[0] == before else f"{outcome}, and it was changed"


@pytest.mark.parametrize("name", PLANTED, ids=lambda name: f"70-{name}".replace(" ", "-"))
def test_a_schema_that_somebody_has_changed_is_refused(sandbox, sound, name):
    """70: what would run by itself, or is not as we made it, is seen before anything is written."""
    before = sandbox.seen()
    sound.copy_to(sandbox.path)
    edited(sandbox.path, *PLANTED[name])

    assert refused(sandbox) == "Corrupt"

    assert sandbox.seen() == before


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("CREATE TABLE notes(a)", id="70-table-of-others"),
        pytest.param("CREATE VIEW v AS SELECT load_extension('x')", id="70-view-of-others"),
        pytest.param("CREATE TABLE n(a, b AS (a || load_extension('x')))", id="70-generated"),
        pytest.param("ANALYZE", id="70-statistics"),
    ],
)
def test_what_stands_beside_our_tables_is_harmless(sandbox, sound, statement):
    """70: it is never asked; everything works as before."""
    before = sandbox.seen()
    sound.copy_to(sandbox.path)
    with suppress(sqlite3.Error):  # some versions refuse to make such a table
        edited(sandbox.path, statement)

    assert guarded(lambda: run(wrongs(sandbox.path, sound))) == {}

    assert sandbox.seen() == before


SCHEMA_EDITS = {
    "constraint away": "UPDATE sqlite_schema SET sql = replace(sql, ' NOT NULL', '')"
    " WHERE name = 'entries'",
    "no SQL": "UPDATE sqlite_schema SET sql = 'nonsense' WHERE name = 'entries'",
    "SQL of another kind": "UPDATE sqlite_schema SET sql = 'CREATE TABLE entries(a)'"
    " WHERE name = 'entries'",
    "two tables on one page": "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM"
    " sqlite_schema WHERE name = 'documents') WHERE name = 'blobs'",
    "index on a page of a table": "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM"
    " sqlite_schema WHERE name = 'entries') WHERE name = 'sessions_newest'",
    "page that is not there": "UPDATE sqlite_schema SET rootpage = 1000000 WHERE name = 'drafts'",
    "page of the schema": "UPDATE sqlite_schema SET rootpage = 1 WHERE name = 'clocks'",
    "table away": "DELETE FROM sqlite_schema WHERE name = 'once'",
    "a name twice": "INSERT INTO sqlite_schema SELECT * FROM sqlite_schema WHERE name = 'clocks'",
    "everything away": "DELETE FROM sqlite_schema",
}


@pytest.mark.parametrize("name", SCHEMA_EDITS, ids=lambda name: f"70-{name}".replace(" ", "-"))
def test_an_edited_schema_is_damage_or_changes_nothing(sandbox, sound, name):
    """70: refused as it is, or every answer is right or an error about damage."""
    sound.copy_to(sandbox.path)
    edited(sandbox.path, SCHEMA_EDITS[name], is_schema=True)
    outcome = guarded(lambda: {"open": refused(sandbox)})["open"]
    if outcome == "opened":
        wrong = guarded(lambda: run(wrongs(sandbox.path, sound)))
        answers = {each for each in wrong.values() if each not in DAMAGE}
        assert answers == set()
    else:
        assert outcome in ("Corrupt", "StoreUnavailable")


@pytest.mark.parametrize("size", [512, 1024, 65536], ids=lambda size: f"70-pages-of-{size}")
def test_a_file_with_pages_of_any_size_works(sandbox, sound, size):
    """70: a size that SQLite has is as good as ours."""
    sound.copy_to(sandbox.path)
    edited(
        sandbox.path,
        *("PRAGMA journal_mode=DELETE", f"PRAGMA page_size={size}", "VACUUM"),
        "PRAGMA journal_mode=WAL",
    )
    with closing(sqlite3.connect(sandbox.path)) as db:
        assert db.execute("PRAGMA page_size").fetchone() == (size,)

    assert guarded(lambda: run(wrongs(sandbox.path, sound))) == {}


@pytest.mark.parametrize("size", [0, 3, 256, 513, 65535], ids=lambda size: f"70-header-says-{size}")
def test_a_file_with_pages_of_a_size_that_there_is_not_is_refused(sandbox, sound, size):
    sound.copy_to(sandbox.path)
    with sandbox.path.open("r+b") as file:
        file.seek(16)
        file.write(size.to_bytes(2, "big"))

    assert refused(sandbox) in ("Corrupt", "StoreUnavailable")


JOURNAL_MAGIC = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
PAGE_SIZE = 4096


def foreign_store(folder, *, is_growing=True):
    """The bytes of the database and the WAL of another store, while that is in use.

    If it is not growing, all that was written since it was opened is two bytes of a draft.
    """
    folder.mkdir()
    path = folder / "foreign.db"

    async def made():
        async with open_store(f"sqlite:{path}", durability="fast") as store:
            for number in range(20):
                record = Record(key=f"foreign {number}")
                last = await store.tenant("").create(record, [Message.user(f"foreign {SECRET}")])
            if is_growing:
                return path.read_bytes(), beside(path, "-wal").read_bytes()
            lease = await store.tenant("").begin(last.id, "me", HOUR, {})
        async with open_store(f"sqlite:{path}", durability="fast") as store:
            await store.tenant("").journal(lease, "ab")
            return path.read_bytes(), beside(path, "-wal").read_bytes()

    return run(made())


def foreign_program(folder, mode):
    """The same of another program's database; or its journal, in the middle of a transaction."""
    folder.mkdir()
    path = folder / "program.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(f"PRAGMA journal_mode={mode}")
        db.execute("CREATE TABLE notes(a)")
        db.executemany("INSERT INTO notes VALUES(?)", [("x" * 3_000,)] * 200)
        db.execute("PRAGMA cache_size=5")
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE notes SET a = 'y' || a")
        log = Path(f"{path}-{'wal' if mode == 'WAL' else 'journal'}")
        found = path.read_bytes(), log.read_bytes()
        db.execute("COMMIT")
    return found


def own_bytes(sandbox):
    """Every file of the store, with its bytes."""
    return {
        path.name: path.read_bytes() for path in sandbox.data.glob(f"{DATABASE}*") if path.is_file()
    }


def refused_for(sandbox, sound, suffix):
    """What is wrong when a stray lies beside the file: it has to be named, nothing may change,
    and when it is moved away everything has to be there."""
    before, outside = own_bytes(sandbox), sandbox.seen()
    stray = beside(sandbox.path, suffix)

    async def opened():
        async with sandbox.open("sqlite"):
            pass

    try:
        run(opened())
        found = ["it was opened"]
    except Exception as error:
        is_told = f"{stray.name}: " in str(error) and "move it away" in str(error)
        found = [] if outcome_of(error) == "StoreUnavailable" and is_told else [repr(error)]
    if own_bytes(sandbox) != before or sandbox.seen() != outside:
        found.append("something was changed")
    if stray.exists():
        stray.rename(sandbox.temporary / "stray")
    wrong = guarded(lambda: run(wrongs(sandbox.path, sound)))
    return found + [f"{name}: {each}" for name, each in wrong.items()]


def wal_after_a_checkpoint(folder):
    """The WAL of another store, started again from its beginning by whoever came next."""
    folder.mkdir()
    path = folder / "foreign.db"

    async def made():
        async with open_store(f"sqlite:{path}", durability="fast") as store:
            record = await store.tenant("").create(Record(key="foreign"))
            lease = await store.tenant("").begin(record.id, "me", HOUR, {})
            with store._file.locked():
                store._commits._move(store._commits._db, "PASSIVE")
            await store.tenant("").journal(lease, "ab")
            return beside(path, "-wal").read_bytes()

    return run(made())


STRAY_WALS = {
    "of a store that grew": lambda folder: foreign_store(folder)[1],
    "of a store that changed two bytes": lambda folder: foreign_store(folder, is_growing=False)[1],
    "of a store after a checkpoint": wal_after_a_checkpoint,
}


@pytest.mark.parametrize("name", STRAY_WALS, ids=lambda name: f"70-{name}".replace(" ", "-"))
@pytest.mark.parametrize("is_new", [False, True], ids=["70-used-before", "70-never-locked"])
def test_the_wal_of_another_store_is_refused_unchanged(sandbox, sound, tmp_path, name, is_new):
    """70: SQLite takes any WAL of the right name; ours carries the stamp of its file."""
    wal = STRAY_WALS[name](tmp_path / "foreign")
    sound.copy_to(sandbox.path)
    if not is_new:
        beside(sandbox.path, "-lock").touch(0o600)
    beside(sandbox.path, "-wal").write_bytes(wal)

    assert refused_for(sandbox, sound, "-wal") == []


def test_the_wal_of_the_original_is_refused_beside_a_backup(sandbox, sound, tmp_path):
    """70: who puts a backup in the place of a store may forget that its WAL lies there too."""
    wal, backup = [], tmp_path / "backup.db"
    sound.copy_to(sandbox.path)

    async def scenario():
        async with sandbox.open("sqlite") as store:
            await store.backup(backup)
            await store.tenant("").append(sound.control.id, [Message.user("later")])
            wal.append(beside(sandbox.path, "-wal").read_bytes())

    run(scenario())
    sandbox.empty()
    shutil.copy(backup, sandbox.path)
    beside(sandbox.path, "-wal").write_bytes(wal[0])

    assert refused_for(sandbox, sound, "-wal") == []


def test_the_wal_of_another_program_is_refused_unchanged(sandbox, sound, tmp_path):
    """70: it would turn our file into its own."""
    _, wal = foreign_program(tmp_path / "foreign", "WAL")
    sound.copy_to(sandbox.path)
    beside(sandbox.path, "-wal").write_bytes(wal)

    assert refused(sandbox) in ("StoreUnavailable", "Corrupt")

    assert beside(sandbox.path, "-wal").read_bytes() == wal


def test_a_wal_of_noise_changes_nothing(sandbox, sound):
    noise = random.Random(70).randbytes(100_000)
    sound.copy_to(sandbox.path)
    beside(sandbox.path, "-wal").write_bytes(noise)

    assert guarded(lambda: run(wrongs(sandbox.path, sound))) == {}


def journal_of_a_store(folder):
    """Of a copy of our own kind, in the mode that has journals, when it is about to commit."""
    database, _ = foreign_store(folder)
    path = folder / "copy.db"
    path.write_bytes(database)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=DELETE")
        db.execute("BEGIN IMMEDIATE")
        db.execute("CREATE TABLE notes AS SELECT 1")  # and so the first page is in it
        db.execute("PRAGMA cache_size=1")
        db.execute("CREATE TABLE more AS SELECT zeroblob(500000)")
        journal = beside(path, "-journal").read_bytes()
        db.execute("ROLLBACK")
    return journal


STRAY_JOURNALS = {
    "of another program": lambda folder: foreign_program(folder, "DELETE")[1],
    "of another store": journal_of_a_store,
    # Nothing but a header, which says that the database had one page: SQLite would cut it.
    "that cuts": lambda folder: struct.pack(">8s5I484x", JOURNAL_MAGIC, 0, 1, 1, 512, PAGE_SIZE),
    "of pages of another size": lambda folder: struct.pack(
        ">8s5I484x1032x", JOURNAL_MAGIC, 1, 1, 1, 512, 1024
    ),
}


@pytest.mark.parametrize("name", STRAY_JOURNALS, ids=lambda name: f"70-{name}".replace(" ", "-"))
def test_a_hot_journal_of_another_database_is_refused_unchanged(sandbox, sound, tmp_path, name):
    """70: SQLite plays it back into any file; one in WAL mode has none of its own."""
    journal = STRAY_JOURNALS[name](tmp_path / "foreign")
    assert journal[:8] == JOURNAL_MAGIC
    sound.copy_to(sandbox.path)
    assert sandbox.path.read_bytes()[16:20] == PAGE_SIZE.to_bytes(2, "big") + b"\2\2"
    beside(sandbox.path, "-journal").write_bytes(journal)

    assert refused_for(sandbox, sound, "-journal") == []


def test_a_hot_journal_of_noise_changes_nothing(sandbox, sound):
    noise = random.Random(71).randbytes(100_000)
    sound.copy_to(sandbox.path)
    beside(sandbox.path, "-journal").write_bytes(noise)
    outcome = guarded(lambda: {"open": refused(sandbox)})["open"]

    if outcome == "opened":
        assert guarded(lambda: run(wrongs(sandbox.path, sound))) == {}
    else:
        assert outcome in ("StoreUnavailable", "Corrupt")


def test_a_transaction_of_another_program_that_was_cut_off_is_undone(sandbox, sound, tmp_path):
    """70: a hot journal that does belong to the file brings back what it was."""
    path = sound.copy_to(tmp_path / "cut.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=DELETE")
        db.execute("PRAGMA cache_size=1")
        db.execute("BEGIN IMMEDIATE")
        db.execute('UPDATE documents SET body = zeroblob(9000), "check" = 0')
        db.execute("UPDATE entries SET payload = zeroblob(9000), link = zeroblob(9000)")
        cut, journal = path.read_bytes(), beside(path, "-journal").read_bytes()
        db.execute("ROLLBACK")
    assert journal[:4] == b"\xd9\xd5\x05\xf9"
    sandbox.path.write_bytes(cut)
    sandbox.path.chmod(0o600)
    beside(sandbox.path, "-journal").write_bytes(journal)

    assert guarded(lambda: run(wrongs(sandbox.path, sound))) == {}


# --- formats: 72 ----------------------------------------------------------------------------------

VERSIONS = {
    "newer": (["PRAGMA user_version=99"], "FormatTooNew"),
    "newest": (["PRAGMA user_version=2147483647"], "FormatTooNew"),
    "negative": (["PRAGMA user_version=-1"], "Corrupt"),
    "older with newer tables": (["PRAGMA user_version=1"], "Corrupt"),
    "none with tables": (["PRAGMA user_version=0"], "Corrupt"),
    "half an index": (["DROP TABLE words"], "Corrupt"),
    "index without its state": (["DROP TABLE search"], "Corrupt"),
    "older with half an index": (["DROP TABLE words", "PRAGMA user_version=1"], "Corrupt"),
    "older with a table missing": (
        ["DROP TABLE words", "DROP TABLE search", "DROP TABLE blobs", "PRAGMA user_version=1"],
        "Corrupt",
    ),
    "another program": (["PRAGMA application_id=1"], "StoreUnavailable"),
    "nobody": (["PRAGMA application_id=0"], "StoreUnavailable"),
}


@pytest.mark.parametrize("name", VERSIONS, ids=lambda name: f"72-{name}".replace(" ", "-"))
def test_a_format_that_is_not_ours_is_refused_with_its_bytes_unchanged(sandbox, sound, name):
    """72: newer, negative, or left half-way by somebody; nothing is put beside it but the lock."""
    statements, expected = VERSIONS[name]
    sound.copy_to(sandbox.path)
    edited(sandbox.path, *statements)
    before = bytes_of(sandbox.path)

    assert refused(sandbox) == expected

    after = bytes_of(sandbox.path)
    assert after[0] == before[0]
    if expected == "FormatTooNew":
        assert after[1] == before[1]


def test_an_older_format_is_brought_up_and_loses_nothing(sandbox, sound):
    """72: version 1 had no search index; it is made, and everything is found."""
    sound.copy_to(sandbox.path)
    edited(sandbox.path, "DROP TABLE words", "DROP TABLE search", "PRAGMA user_version=1")

    assert guarded(lambda: run(wrongs(sandbox.path, sound))) == {}


# --- while the store is open: 74 ------------------------------------------------------------------


async def answers_meanwhile(store, sound, *, is_erasing):
    """What is asked while something is wrong: right, or an error of ours."""
    tenant, truth = store.tenant(""), sound.control
    asking = {
        "load": (lambda: tenant.load("control"), lambda found: found.key == "control"),
        "read": (lambda: tenant.read(truth.id), lambda rows: rows[:3] == truth.read["main"]),
        "list": (
            lambda: all_of(tenant),
            lambda found: {each.key for each in found} >= {"control", "victim"},
        ),
        "search": (lambda: tenant.search("controlword"), lambda page: len(page.items) == 1),
        "verify": (lambda: tenant.verify(), None),
        "update": (lambda: tenant.update(truth.id, {"counters": {"n": 1}}), None),
        "begin": (lambda: tenant.begin(sound.victim.id, "me", HOUR, {}), None),
        "erase": (lambda: tenant.erase(sound.victim.id, [1]), None),
        "append": (lambda: tenant.append(truth.id, [Message.user("meanwhile")]), None),
    }
    if not is_erasing:
        del asking["erase"]
    found = {name: await asked_for(ask, right) for name, (ask, right) in asking.items()}
    problems = await asked_for(lambda: asyncio.to_thread(store.problems))
    return found | {"problems": problems}


async def wrongs_while_open(sandbox, sound, disturbance, *, is_erasing=True):
    """Disturb a store that is in use, ask it, undo that, and ask again; all that went wrong."""
    async with sandbox.open("sqlite") as store:
        await answers_before(store, sound)
        with disturbance(sandbox):
            meanwhile = await answers_meanwhile(store, sound, is_erasing=is_erasing)
        found = {
            f"meanwhile: {name}": each
            for name, each in meanwhile.items()
            if each != "right" and not is_refusal(each)
        }
        tenant, truth = store.tenant(""), sound.control
        count = len(truth.read["main"]) + (meanwhile["append"] == "right")
        afterwards = {
            "load": await asked_for(lambda: tenant.load("control")),
            "read": await asked_for(
                lambda: tenant.read(truth.id),
                lambda rows: rows[:3] == truth.read["main"] and len(rows) == count,
            ),
            "append": await asked_for(
                lambda: tenant.append(truth.id, [Message.user("afterwards")]),
                lambda done: done.messages == count,  # one of the entries is a mark
            ),
            "list": await asked_for(
                lambda: all_of(tenant),
                lambda found: {e.key for e in found} == {"control", "victim"},
            ),
            "search": await asked_for(
                lambda: tenant.search("afterwards"), lambda page: len(page.items) == 1
            ),
            "verify": await asked_for(lambda: tenant.verify(), lambda v: v.problems == ()),
            "begin": await asked_for(
                lambda: tenant.begin(truth.id, "me", HOUR, {}), lambda lease: lease.token == 1
            ),
        }
        found |= {f"afterwards: {n}": each for n, each in afterwards.items() if each != "right"}
    return found


async def answers_before(store, sound):
    """Have connections that read, and one that writes."""
    tenant = store.tenant("")
    await asyncio.gather(*[tenant.read(sound.control.id) for _ in range(4)])
    await tenant.load("victim")
    await tenant.search("controlword")


@contextmanager
def overwritten(sandbox, change):
    """Other bytes in the same file, and then the old ones again."""
    whole = sandbox.path.read_bytes()
    with sandbox.path.open("r+b") as file:
        change(file, len(whole))
    yield
    with sandbox.path.open("r+b") as file:
        file.write(whole)
        file.truncate(len(whole))


@contextmanager
def moved(path, put=None):
    """Something at another place for a while, and whatever `put` makes in its place."""
    aside = path.with_name(f"{path.name} aside")
    path.rename(aside)
    if put is not None:
        put(path)
    yield
    if os.path.lexists(path):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    aside.rename(path)


@contextmanager
def unwritable(paths):
    """Files or folders that cannot be changed. Modes do not stop root, an attribute does."""
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    modes = {path: path.stat().st_mode for path in paths}
    for path in paths:
        if is_root:
            done = subprocess.run(["chattr", "+i", path], capture_output=True, check=False)
            if done.returncode:
                pytest.skip("root, on a file system without attributes")
        else:
            path.chmod(0o400 if path.is_file() else 0o500)
    try:
        yield
    finally:
        for path, mode in modes.items():
            if is_root:
                subprocess.run(["chattr", "-i", path], capture_output=True, check=False)
            else:
                path.chmod(mode)


def own_files(sandbox):
    """The files of the store that are written to; -shm is mapped, and must stay as it is."""
    return [
        path
        for path in sandbox.data.glob(f"{DATABASE}*")
        if path.is_file() and not path.name.endswith("-shm")
    ]


IN_PLACE = {
    "truncated to nothing": lambda file, size: file.truncate(0),
    "truncated to half": lambda file, size: file.truncate(size // 2),
    "truncated to 100 bytes": lambda file, size: file.truncate(100),
    "zeros": lambda file, size: file.write(bytes(size)),
    "noise": lambda file, size: file.write(random.Random(74).randbytes(size)),
    "header changed": lambda file, size: file.write(b"nonsense" * 12),
}
DISTURBANCES = {
    "deleted": lambda s: moved(s.path),
    "replaced by nothing": lambda s: moved(s.path, lambda path: path.touch()),
    "replaced by a folder": lambda s: moved(s.path, lambda path: path.mkdir()),
    "replaced by a link": lambda s: moved(s.path, lambda path: path.symlink_to(s.root / "canary")),
    "replaced by a copy": lambda s: moved(
        s.path, lambda path: shutil.copy(path.with_name(f"{path.name} aside"), path)
    ),
    "folder removed": lambda s: moved(s.data),
    "folder replaced": lambda s: moved(s.data, lambda path: path.mkdir()),
    "lock removed": lambda s: moved(beside(s.path, "-lock")),
    "lock a folder": lambda s: moved(beside(s.path, "-lock"), lambda path: path.mkdir()),
    "lock a link": lambda s: moved(
        beside(s.path, "-lock"), lambda path: path.symlink_to(s.root / "canary")
    ),
    "read-only": lambda s: unwritable(own_files(s)),
    "folder read-only": lambda s: unwritable([s.data]),
    "nothing at all": lambda s: nullcontext(),
}


@posix_only
@pytest.mark.parametrize("name", IN_PLACE, ids=lambda name: f"74-{name}".replace(" ", "-"))
def test_an_open_store_survives_what_is_written_to_its_file(sandbox, sound, name):
    """74: other bytes for a while, and then the old ones again."""
    sound.copy_to(sandbox.path)

    def disturbed():
        # Erasing moves the log into the file, and the old bytes would then be too old.
        return run(
            wrongs_while_open(
                sandbox, sound, lambda s: overwritten(s, IN_PLACE[name]), is_erasing=False
            )
        )

    assert guarded(disturbed, seconds=20) == {}


@posix_only
@pytest.mark.parametrize("name", DISTURBANCES, ids=lambda name: f"74-{name}".replace(" ", "-"))
def test_an_open_store_survives_what_is_done_to_its_file(sandbox, sound, name):
    """74: meanwhile an error of ours or the truth; afterwards it works, without reopening."""
    before = sandbox.seen()
    sound.copy_to(sandbox.path)

    found = guarded(lambda: run(wrongs_while_open(sandbox, sound, DISTURBANCES[name])), seconds=20)

    assert found == {}
    assert sandbox.seen() == before


@posix_only
def test_a_file_that_stays_deleted_is_told_with_the_way_out(sandbox, sound):
    """74: nothing is made anew behind the caller's back; opening the path again does that."""

    async def scenario():
        async with sandbox.open("sqlite") as store:
            sandbox.path.unlink()
            for ask in (store.tenant("").load("control"), store.tenant("").create(Record(key="k"))):
                with pytest.raises(HoldfastError) as caught:
                    await ask
                assert outcome_of(caught.value) == "StoreUnavailable"
                assert "replaced or deleted" in str(caught.value)
            assert not sandbox.path.exists()
        async with sandbox.open("sqlite") as store:
            assert (await store.tenant("").list()).items == ()

    sound.copy_to(sandbox.path)
    run(scenario())


@posix_only
def test_an_append_after_the_wal_was_deleted_is_refused_or_kept(sandbox, sound):
    """74: what was acknowledged into a file that no longer has a name is lost with the process."""
    sound.copy_to(sandbox.path)
    copy = sandbox.root / "copy.db"

    async def scenario():
        async with sandbox.open("sqlite") as store:
            tenant = store.tenant("")
            await tenant.append(sound.control.id, [Message.user("before")])
            beside(sandbox.path, "-wal").unlink()
            try:
                done = await tenant.append(sound.control.id, [Message.user("after")])
            except HoldfastError as error:
                return outcome_of(error)
            for suffix in ("", "-wal"):  # as if the process were killed now
                with suppress(FileNotFoundError):
                    shutil.copy(f"{sandbox.path}{suffix}", f"{copy}{suffix}")
        async with open_store(f"sqlite:{copy}") as store:
            left = (await store.tenant("").load("control")).seq
            return "kept" if left == done.last else f"{done.last - left} appends are lost"

    assert run(scenario()) in ("kept", "StoreUnavailable", "Corrupt")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_closed_store_makes_no_files_when_the_process_forks(sandbox, sound):
    """74: what was closed is let go of; its folder may be gone, or another's."""
    sound.copy_to(sandbox.path)

    async def scenario():
        store = await sandbox.open("sqlite")
        await store.close()
        return store

    store = run(scenario())
    sandbox.empty()

    assert guarded(lambda: {"it": "ran"}) == {"it": "ran"}

    assert bytes_of(sandbox.path) == ("nothing", [])
    del store


# --- negative controls ----------------------------------------------------------------------------


class Hiding(Fake):
    """Damage is passed over."""

    class Tenant(Fake.Tenant):
        async def read(self, *rest, **more):
            return (await self._real.read(*rest, **more))[1:]

        async def load(self, key):
            return (await self._real.load(key)).replace(agent="nobody")

        async def search(self, *rest, **more):
            raise sqlite3.DatabaseError("malformed")

        async def append(self, id, entries, **more):
            raise errors.Corrupt("session", "damaged")


def test_control_wrong_answers_of_a_damaged_file_are_noticed(sandbox, sound):
    sound.copy_to(sandbox.path)

    async def scenario():
        async with sandbox.open("sqlite") as store:
            fake = Hiding(store)
            return (
                await wrongs_of_victim(fake, sound)
                | await wrongs_of_control(fake, sound)
                | await wrongs_of_writing(fake, sound)
            )

    found = run(scenario())

    assert found["load"].startswith("wrong") and found["read main"].startswith("wrong")
    assert found["search"] == found["control: search"] == "raw DatabaseError"
    assert found["control: append"] == "Corrupt"


def without_looking(*_):
    """In place of what looks at a WAL or a journal: it never finds anything."""
    return False


STRAYS = {"-wal": STRAY_WALS, "-journal": STRAY_JOURNALS}


@pytest.mark.parametrize(("suffix", "name"), [(s, name) for s in STRAYS for name in STRAYS[s]])
def test_control_a_store_that_takes_any_wal_or_journal_is_noticed(
    sandbox, sound, tmp_path, monkeypatch, suffix, name
):
    monkeypatch.setattr(header, "is_another", without_looking)
    monkeypatch.setattr(file, "check_journal", without_looking)
    sound.copy_to(sandbox.path)
    beside(sandbox.path, suffix).write_bytes(STRAYS[suffix][name](tmp_path / "foreign"))

    assert refused_for(sandbox, sound, suffix)


@pytest.mark.parametrize("name", [name for name in STRAY_WALS if "grew" not in name])
def test_control_a_wal_that_was_started_without_its_first_page_is_noticed(
    sandbox, sound, tmp_path, monkeypatch, name
):
    monkeypatch.setattr(commits, "write_first_page", without_looking)
    sound.copy_to(sandbox.path)
    beside(sandbox.path, "-wal").write_bytes(STRAY_WALS[name](tmp_path / "foreign"))

    assert refused_for(sandbox, sound, "-wal")


def test_control_a_sound_file_has_no_wrongs(sandbox, sound):
    sound.copy_to(sandbox.path)

    assert guarded(lambda: run(wrongs(sandbox.path, sound))) == {}


def test_control_a_poison_is_really_in_the_file(sandbox, sound):
    assert poisoned(sandbox.path, sound, "entries", "payload", PICKLE)

    with closing(sqlite3.connect(sandbox.path)) as db:
        (count,) = db.execute(
            "SELECT count(*) FROM entries WHERE payload = ?", (PICKLE,)
        ).fetchone()
        text = db.execute("SELECT sql FROM sqlite_schema WHERE name = 'entries'").fetchone()

    assert count == 1
    assert text == (sound.schema["entries"],)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_control_what_hangs_or_dies_is_noticed():
    assert guarded(lambda: select.select([], [], [], 30), seconds=0.2) == {"it": "hangs"}
    assert guarded(lambda: os.kill(os.getpid(), signal.SIGKILL)) == {"it": "died"}
    assert guarded(lambda: {"a": 1}) == {"a": 1}


def test_control_a_changed_file_is_noticed(sandbox, sound):
    before = sound.copy_to(sandbox.path) and bytes_of(sandbox.path)
    edited(sandbox.path, "PRAGMA user_version=1")

    assert bytes_of(sandbox.path) != before


class Forgetful(Fake):
    """After an error nothing is remembered, and errors are those of the system."""

    class Tenant(Fake.Tenant):
        async def load(self, key):
            raise OSError(5, "Input/output error")

        async def append(self, id, entries, **more):
            return await self._real.append(id, [], **more)


def test_control_a_store_that_does_not_recover_is_noticed(sandbox, sound, monkeypatch):
    sound.copy_to(sandbox.path)
    real = sandbox.open

    @asynccontextmanager
    async def wrong(kind):
        async with real(kind) as store:
            yield Forgetful(store)

    monkeypatch.setattr(sandbox, "open", wrong)
    monkeypatch.setitem(globals(), "answers_before", lambda store, sound: asyncio.sleep(0))

    found = run(wrongs_while_open(sandbox, sound, lambda sandbox: nullcontext()))

    assert found["meanwhile: load"] == found["afterwards: load"] == "raw OSError"
    assert found["afterwards: append"].startswith("wrong")
