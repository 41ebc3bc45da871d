"""The SQLite store keeps every promise."""

import sqlite3

from holdfast.stores import open_store
from holdfast.testing import StoreContract


class TestSQLiteStore(StoreContract):
    def make(self, tmp_path):
        return open_store(self.url(tmp_path))

    def url(self, tmp_path):
        return f"sqlite:{tmp_path}/chats.db"

    def open_backup(self, path):
        return open_store(f"sqlite:{path}")

    async def damage(self, store, id, seq):
        db = sqlite3.connect(store.path)
        (number,) = db.execute("SELECT number FROM sessions WHERE id = ?", (id,)).fetchone()
        if seq:
            place = (number, seq)
            found = db.execute(
                "SELECT payload FROM entries WHERE session = ? AND seq = ?", place
            ).fetchone()
            statement = "UPDATE entries SET payload = ? WHERE session = ? AND seq = ?"
        else:
            place = (number,)
            found = db.execute("SELECT body FROM documents WHERE session = ?", place).fetchone()
            statement = "UPDATE documents SET body = ? WHERE session = ?"
        body = bytearray(found[0])
        body[len(body) // 2] ^= 1
        with db:
            db.execute(statement, (bytes(body), *place))
        db.close()
