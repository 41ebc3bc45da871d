"""Makes the statements of the PostgreSQL store out of its tables and queries.

    python tests/postgresql_statements.py           writes .../stores/postgresql/statements.py
    python tests/postgresql_statements.py --print   shows it

They are written in `holdfast.stores.postgresql.tables` and `queries`;
tests/test_postgresql_statements.py holds the file against what those compile to now.
"""

from pathlib import Path

import holdfast
from holdfast.stores.postgresql import queries, tables
from statement_constants import main, module

PATH = Path(holdfast.__file__).parent / "stores" / "postgresql" / "statements.py"
DOCSTRING = """Made by tests/postgresql_statements.py of `tables.py` and `queries.py`. Do not edit.

What makes the tables, and every statement that the PostgreSQL store runs on them but those of group
commit (`batch.py`), as text. The numbers of values are in the order in which they are bound."""


def statements():
    """The text of the file."""
    return module(DOCSTRING, tables, queries)


if __name__ == "__main__":
    main(PATH, statements())
