"""Makes the statements of the SQLite store out of its tables.

    python tests/sqlite_statements.py           writes src/holdfast/stores/sqlite/statements.py
    python tests/sqlite_statements.py --print   shows it

They are written in `holdfast.stores.sqlite.tables`; tests/test_sqlite_statements.py holds the file
against what those compile to now.
"""

from pathlib import Path

import holdfast
from holdfast.stores.sqlite import tables
from statement_constants import main, module

PATH = Path(holdfast.__file__).parent / "stores" / "sqlite" / "statements.py"
DOCSTRING = """Made by tests/sqlite_statements.py of `tables.py`. Do not edit.

Every statement that the SQLite store runs on its tables, as text. Values are bound in the order in
which the statement speaks of them."""


def statements():
    """The text of the file."""
    return module(DOCSTRING, tables)


if __name__ == "__main__":
    main(PATH, statements())
