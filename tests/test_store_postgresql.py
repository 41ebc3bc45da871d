"""The PostgreSQL store keeps every promise."""

import asyncpg
import pytest

from holdfast.stores import open_store
from holdfast.testing import StoreContract
from postgres_server import name_of, server


class TestPostgreSQLStore(StoreContract):
    @pytest.fixture(autouse=True)
    def _database(self):
        """Each test finds an empty store."""
        self.names = set()
        yield
        for name in self.names:
            server().give_back(name)

    def make(self, tmp_path):
        return open_store(self.url(tmp_path))

    def url(self, tmp_path):
        name = name_of(tmp_path)
        self.names.add(name)
        return server().database(name)

    async def damage(self, store, id, seq):
        (name,) = self.names
        db = await asyncpg.connect(server().admin_of(name))
        place = "(SELECT session FROM holdfast.sessions WHERE id = $1)"
        table, column, rest = ("entries", "payload", [seq]) if seq else ("documents", "body", [])
        where = f"session = {place}" + (" AND seq = $2" if seq else "")
        body = bytearray(
            await db.fetchval(
                f"SELECT {column} FROM holdfast.{table} WHERE {where}", id.encode(), *rest
            )
        )
        body[len(body) // 2] ^= 1
        await db.execute(
            f"UPDATE holdfast.{table} SET {column} = ${len(rest) + 2} WHERE {where}",
            *(id.encode(), *rest, bytes(body)),
        )
        await db.close()
