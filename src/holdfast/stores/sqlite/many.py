"""Statements for many rows, made of the text of the statement for one."""

from functools import cache

from holdfast.stores.sqlite.statements import FIND_HEADS, INSERT_DRAFT, INSERT_PLAIN_ROW

ROWS_AT_ONCE = 64  # in one INSERT
_DRAFTS_AT_ONCE = (64, 8, 1)  # a round of a journal has some dozens


@cache
def find_heads(count: int) -> str:
    """Heads by their ids, each with the branch in use; for so many ids."""
    start, one, end = FIND_HEADS.partition("(?)")
    assert one and not end
    return f"{start}({', '.join('?' * count)})"


def _repeated(statement: str, count: int) -> str:
    """An INSERT of one row as one of many."""
    insert, values = statement.split(" VALUES ")
    return f"{insert} VALUES {', '.join([values] * count)}"


INSERT_PLAIN_ROWS = _repeated(INSERT_PLAIN_ROW, ROWS_AT_ONCE)
INSERT_DRAFTS = [(count, _repeated(INSERT_DRAFT, count)) for count in _DRAFTS_AT_ONCE]
