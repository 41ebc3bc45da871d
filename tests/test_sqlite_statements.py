"""The SQLite store runs texts that were compiled from its tables once for all."""

import sqlite3

import pytest

import sqlite_statements
from holdfast.stores.sqlite import formats, many, statements


def test_the_statements_are_those_of_the_tables():
    """What the store imports is what `tables.py` compiles to now."""
    found = sqlite_statements.PATH.read_text(encoding="utf-8")

    assert found == sqlite_statements.statements(), "run python tests/sqlite_statements.py"


@pytest.fixture
def db():
    db = sqlite3.connect(":memory:", isolation_level=None)
    for statement in formats._steps(1):
        db.execute(statement)
    yield db
    db.close()


def test_heads_are_found_by_any_number_of_ids(db):
    """A statement for many ids is made of the one for one, and finds as many sessions."""
    for number in range(1, 4):
        values = (f"t{number}", f"id{number}", f"k{number}", "a", *range(3), None, 0, 1, 1, 0)
        db.execute(statements.INSERT_SESSION, (*values, None, "p", "b", 0, 0))

    one = db.execute(many.find_heads(1), ["id2"]).fetchall()
    three = db.execute(many.find_heads(4), ["id1", "id3", "id2", "id1"]).fetchall()

    assert [row[2] for row in one] == ["id2"]
    assert sorted(row[2] for row in three) == ["id1", "id2", "id3"]


def test_rows_at_once_are_as_many_rows_of_the_same_columns(db):
    """Each value stands where the statement for one row would have put it."""
    values = ("kind", 5, b"link", b"salt", b"payload")
    rows = [(1, seq, 1, seq, *values) for seq in range(1, many.ROWS_AT_ONCE + 2)]

    db.execute(many.INSERT_PLAIN_ROWS, [each for row in rows[:-1] for each in row])
    db.execute(statements.INSERT_PLAIN_ROW, rows[-1])

    found = db.execute(
        'SELECT session, seq, branch, position, kind, "check", link, salt, payload FROM entries'
    )
    assert found.fetchall() == rows
