"""F07: one flipped bit anywhere in the files of a store, and files made to do harm.

Whatever bit it is, what is given back is what was written, or an error or `verify` says that it is
not. Nothing in a file runs as code.
"""

import collections
import sqlite3

import pytest

from faults import oracle, subjects
from faults.log import read_log
from faults.tier import need, pick
from holdfast.testing.faults import damage, forks

STORE, RAW = "faults.subjects:play", "faults.controls:play"


@pytest.fixture(autouse=True)
def _can_run():
    need(forks.missing())


def made(programs, folder, program):
    """A store that was written and closed, or killed; its states, the last one at the end."""
    (folder / "base").mkdir()
    script = subjects.growing_script(program.startswith(STORE))
    run = programs(program).start(str(folder / "base" / "store.db"), str(folder / "log"), script)
    run.wait()
    return oracle.states(read_log(folder / "log"))


def flips(folder, states, examine, count):
    """Flip `count` bits, spread over all files by their size; the answers, and the odd ones.

    A log with a flipped bit ends there, as SQLite reads it; nothing tells that from a log whose
    end was never written. So of a log the steps before the bit are all that can be asked for.
    """
    base, copy = folder / "base", folder / "copy"
    files = [path.relative_to(base) for path in sorted(base.rglob("*")) if path.is_file()]
    places = [(file, at) for file in files for at in range((base / file).stat().st_size)]
    answers, odd = collections.Counter(), []
    for bit in damage.bits(len(places), count, seed=7):
        file, at = places[bit // 8]
        damage.copy(base, copy)
        (copy / file).write_bytes(damage.flipped((base / file).read_bytes(), at * 8 + bit % 8))
        answer = examine(copy / "store.db", states)
        answers[answer.split()[0]] += 1
        may = ("intact", "detected", *(["shorter"] if file.name.endswith("-wal") else []))
        if answer not in may:
            odd.append((file.name, at, bit % 8, answer))
    return answers, odd


@pytest.mark.parametrize(
    ("program", "share"),
    [(STORE, 0.8), (f"{STORE}_and_die", 0.2)],
    ids=["a store that was closed", "a store that was killed"],
)
def test_no_flipped_bit_goes_unnoticed(programs, fast_path, program, share):
    """0 silent wrong messages and 0 uncaught exceptions in all flips."""
    states = made(programs, fast_path, program)

    answers, odd = flips(fast_path, states, oracle.examine, int(share * pick(200, 10_000)))

    assert odd == [], answers
    assert answers["detected"] + answers["shorter"] > 0


def test_flips_in_a_table_without_digests_are_caught(programs, fast_path):
    """Control: on plain sqlite3 a good part of the flips is silent."""
    states = made(programs, fast_path, RAW)

    answers, _ = flips(fast_path, states, oracle.examine_raw, pick(100, 300))

    assert answers["silent"] > 10, answers


def foreign_schema(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE sessions(id INTEGER PRIMARY KEY, junk BLOB)")
        connection.execute("INSERT INTO sessions VALUES (1, x'80049522')")
    connection.close()


def views_for_tables(path):
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA writable_schema=ON")
    for name in tables(connection):
        connection.execute("DELETE FROM sqlite_master WHERE name = ?", (name,))
        sql = f'CREATE VIEW "{name}" AS SELECT load_extension(char(47)) AS a'
        row = ("view", name, name, 0, sql)
        connection.execute("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", row)
    connection.commit()
    connection.close()


def hostile_triggers(path):
    connection = sqlite3.connect(path)
    for number, name in enumerate(tables(connection)):
        for when in ("INSERT", "UPDATE", "DELETE"):
            try:
                connection.execute(
                    f'CREATE TRIGGER "t{number}{when}" AFTER {when} ON "{name}" '
                    "BEGIN SELECT writefile('owned', 'x'); END"
                )
            except sqlite3.OperationalError:
                pass  # a table of the search index
    connection.commit()
    connection.close()


def tables(connection):
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return [name for (name,) in rows if not name.startswith("sqlite_")]


def other_log(path):
    path.with_name(path.name + "-wal").write_bytes(b"\x37\x7f\x06\x82" + bytes(range(256)) * 64)


HOSTILE = {
    "an empty file": lambda path: path.write_bytes(b""),
    "zeros": lambda path: path.write_bytes(bytes(1 << 16)),
    "text": lambda path: path.write_bytes(b'{"_type":"metadata"}\n' * 100),
    "half a database": lambda path: path.write_bytes(path.read_bytes()[: 4096 + 100]),
    "only a header": lambda path: path.write_bytes(path.read_bytes()[:100]),
    "an absurd page size": lambda path: path.write_bytes(
        path.read_bytes()[:16] + b"\xff\xff" + path.read_bytes()[18:]
    ),
    "the log of another database": other_log,
    "tables of another program": lambda path: (path.unlink(), foreign_schema(path)),
    "views in place of tables": views_for_tables,
    "triggers that call functions": hostile_triggers,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_file_is_refused_or_read_and_never_run(programs, fast_path, kind, monkeypatch):
    """Opening, reading and writing end well or in an error of ours, and no file appears."""
    states = made(programs, fast_path, STORE)
    path = fast_path / "base" / "store.db"
    HOSTILE[kind](path)
    (fast_path / "cwd").mkdir()
    monkeypatch.chdir(fast_path / "cwd")

    found = oracle.read_store(path)

    assert found.complaints or found.sessions in ({}, states[-1])
    assert list((fast_path / "cwd").iterdir()) == []
