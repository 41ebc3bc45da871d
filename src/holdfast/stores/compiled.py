"""Statements of SQLAlchemy as text, for the stores that have a SQL database behind them.

They are compiled when a module is loaded. Afterwards the driver is given plain text and values,
which are always bound, in an order that was checked here.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Table, and_, bindparam, delete, insert, select, update
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.schema import CreateIndex, CreateTable
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import BindParameter, ClauseElement


def by(table: Table, *names: str) -> Any:
    """The condition that these columns have the values bound as `by_` and their name."""
    return and_(*(table.c[name] == bindparam(f"by_{name}") for name in names))


def _bound(*names: str) -> tuple[str, ...]:
    return tuple(f"by_{name}" for name in names)


def _values(names: Sequence[str]) -> dict[str, BindParameter[Any]]:
    return {name: bindparam(name) for name in names}


class Compiler:
    """Makes text of statements, for one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    def text(self, statement: ClauseElement, *names: str) -> str:
        """A statement as text, whose values are bound in the order of `names`."""
        compiled = statement.compile(dialect=self._dialect)
        assert isinstance(compiled, SQLCompiler) and tuple(compiled.positiontup or ()) == names
        return str(compiled)

    def table(self, table: Table) -> list[str]:
        """What makes a table and its indexes."""
        indexes = sorted(table.indexes, key=lambda index: str(index.name))
        made: list[ClauseElement] = [CreateTable(table), *map(CreateIndex, indexes)]
        return [str(each.compile(dialect=self._dialect)) for each in made]

    def insert(self, table: Table, *names: str) -> str:
        """A new row with these columns."""
        return self.text(insert(table).values(_values(names)), *names)

    def find(self, table: Table, columns: Sequence[Any], *names: str) -> str:
        """These columns of the rows that are found by those names."""
        return self.text(select(*columns).where(by(table, *names)), *_bound(*names))

    def update(self, table: Table, names: Sequence[str], *found_by: str) -> str:
        """Other values in the rows that are found by those names."""
        changed = update(table).where(by(table, *found_by)).values(_values(names))
        return self.text(changed, *names, *_bound(*found_by))

    def delete(self, table: Table, *names: str) -> str:
        """Without the rows that are found by those names."""
        return self.text(delete(table).where(by(table, *names)), *_bound(*names))
