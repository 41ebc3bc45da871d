"""Programs on plain sqlite3 with one known fault each, and one with none; and one on plain files.

Each row of the fault programme runs its control through the same tools and the same oracle as the
store: a row that does not notice its control is worth nothing. `fault` names what is wrong:

    ""               nothing: WAL, FULL, one transaction for each step
    "normal"         synchronous=NORMAL: acknowledged before it is on the disk
    "off"            synchronous=OFF
    "two commits"    a step of several entries is several transactions
    "swallow"        an error is taken for success
    "no digests"     nothing tells a flipped bit from what was written (true of all of them)
"""

import json
import os
import signal
import sqlite3

from faults.log import Log, text_of, wal_size
from holdfast.testing.faults import lines
from holdfast.testing.faults.disk import file_size_max

SCHEMA = """
CREATE TABLE IF NOT EXISTS sessions(session TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS entries(session TEXT, seq INTEGER, text TEXT, PRIMARY KEY(session, seq));
"""


def connect(path, fault=""):
    """A connection that is set up as the control wants it."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=30)
    level = {"normal": "NORMAL", "off": "OFF"}.get(fault, "FULL")
    connection.execute("PRAGMA journal_mode=WAL").fetchone()
    connection.execute(f"PRAGMA synchronous={level}")
    return connection


def play(path, log_path, steps, fault="", and_die=False):
    """Do the steps, one after the other, and log them."""
    connection = connect(path, fault)
    connection.executescript(SCHEMA)
    _do_all(connection, steps, Log(log_path), path, fault)
    if and_die:
        os.kill(os.getpid(), signal.SIGKILL)
    connection.close()


def play_files(path, log_path, steps):
    """The same in a file a session, which is written over as a whole, as nanobot did at first."""
    log, sessions = Log(log_path), {}
    os.makedirs(path, exist_ok=True)
    for step in steps:
        log.begins(step)
        key, values = step["session"], step.get("values", [])
        if step["do"] == "delete":
            del sessions[key]
            os.unlink(f"{path}/{key}.jsonl")
        else:
            said = sessions.setdefault(key, [])
            if step["do"] == "erase":
                said[:] = [None if value in values else value for value in said]
            else:
                said += values
            with open(f"{path}/{key}.jsonl", "w", encoding="utf-8") as file:
                file.write("".join(json.dumps(value) + "\n" for value in said))
        log.done()


def play_and_die(path, log_path, steps, fault=""):
    """The same, and then gone without a word."""
    play(path, log_path, steps, fault, and_die=True)


def play_with_short_writes(path, log_path, steps, room):
    """The first half of the steps while no file can grow by more than `room`, then the rest."""
    log, half = Log(log_path), len(steps) // 2
    connection = connect(path)
    connection.executescript(SCHEMA)
    _do_all(connection, steps[:1], log, path)
    with file_size_max(wal_size(path) + room):
        _do_all(connection, steps[1:half], log, path)
    _do_all(connection, steps[half:], log, path)
    connection.close()


def play_for_ever(path, log_path, fault=""):
    """Create a session and append to it until the end comes."""
    play(path, log_path, endless(), fault)


def endless():
    """One session that grows without end."""
    yield {"do": "create", "session": "s"}
    number = 0
    while True:
        number += 1
        yield {"do": "append", "session": "s", "values": [f"v{number}"]}


def _do_all(connection, steps, log, path, fault=""):
    absent = set()
    for step in steps:
        if step["do"] == "look" or step["session"] in absent:
            continue  # nothing to do, or the step that it builds on has failed
        log.begins(step)
        try:
            _do(connection, step, fault)
        except sqlite3.Error as error:
            if connection.in_transaction:
                try:
                    connection.execute("ROLLBACK")
                except sqlite3.Error:
                    pass
            if fault != "swallow":
                log.failed(error, typed=True)
                absent |= {step["session"]} if step["do"] == "create" else set()
                continue
        log.done(wal=wal_size(path))


def _do(connection, step, fault):
    key = step["session"]
    if step["do"] == "append" and fault == "two commits":
        for value in step["values"]:
            _insert(connection, key, [value])
        return
    if step["do"] == "append":
        _insert(connection, key, step["values"])
    elif step["do"] == "create":
        connection.execute("INSERT INTO sessions VALUES (?)", (key,))
    elif not _has(connection, key):
        raise sqlite3.IntegrityError("there is no such session")
    elif step["do"] == "erase":
        for value in step["values"]:
            connection.execute(
                "UPDATE entries SET text = NULL WHERE session = ? AND text = ?",
                (key, text_of(value)),
            )
    elif step["do"] == "delete":
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM entries WHERE session = ?", (key,))
        connection.execute("DELETE FROM sessions WHERE session = ?", (key,))
        connection.execute("COMMIT")
    else:
        raise ValueError(step["do"])


def _has(connection, key):
    sql = "SELECT 1 FROM sessions WHERE session = ?"
    return connection.execute(sql, (key,)).fetchone() is not None


def _insert(connection, key, values):
    connection.execute("BEGIN IMMEDIATE")
    if not _has(connection, key):
        raise sqlite3.IntegrityError("there is no such session")
    sql = "SELECT coalesce(max(seq), 0) FROM entries WHERE session = ?"
    last = connection.execute(sql, (key,)).fetchone()[0]
    rows = [(key, last + at, text_of(value)) for at, value in enumerate(values, start=1)]
    connection.executemany("INSERT INTO entries VALUES (?, ?, ?)", rows)
    connection.execute("COMMIT")


def play_to_line(path, log_path, steps, number, fault=""):
    """Play the steps, and die at the `number`th line of this file; 0: note all lines."""
    if number:
        lines.kill_at([__file__], number)
        play(path, log_path, steps, fault)
    else:
        write = lines.record([__file__])
        play(path, log_path, steps, fault)
        write(f"{log_path}.lines")


def open_without_looking(path):
    """Ask for WAL, and never look whether it was given."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE entries(text TEXT)")
    connection.close()


def switch(path):
    """Switch a database out of WAL and back, in every way that there is, and write to it."""
    connection = sqlite3.connect(path, isolation_level=None)
    for mode in ("PERSIST", "WAL", "TRUNCATE", "WAL", "DELETE"):
        connection.execute(f"PRAGMA journal_mode={mode}").fetchone()
    connection.execute("CREATE TABLE notes(text TEXT)")
    connection.execute("PRAGMA journal_mode=WAL").fetchone()
    connection.close()


def write_anew(path):
    """Write all of a database anew, in the mode that has journals."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=DELETE").fetchone()
    connection.execute("CREATE TABLE notes AS SELECT zeroblob(20000)")
    connection.execute("DROP TABLE notes")
    connection.execute("VACUUM")
    connection.close()
