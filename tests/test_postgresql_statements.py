"""The PostgreSQL store runs texts that were compiled from its tables and queries once for all."""

import postgresql_statements


def test_the_statements_are_those_of_the_tables_and_queries():
    """What the store imports is what `tables.py` and `queries.py` compile to now."""
    found = postgresql_statements.PATH.read_text(encoding="utf-8")

    assert found == postgresql_statements.statements(), "run python tests/postgresql_statements.py"
