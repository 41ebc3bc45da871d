"""The JSONL store keeps every promise."""

import json

from holdfast.stores import open_store
from holdfast.testing import StoreContract


class TestJsonlStore(StoreContract):
    def make(self, tmp_path):
        return open_store(self.url(tmp_path))

    def url(self, tmp_path):
        return f"jsonl:{tmp_path}/sessions"

    def open_backup(self, path):
        return open_store(f"jsonl:{path}")

    async def damage(self, store, id, seq):
        """Flip a bit in the sidecar: what is changed in nanobot's file is adopted instead."""
        for path in store.path.glob("**/logs/*.log"):
            lines = path.read_bytes().split(b"\n")
            if id.encode() not in lines[-2]:
                continue
            for at, line in enumerate(lines[:-1]):
                record = json.loads(line[9:])
                if seq == 0 and "doc" in record:
                    place = line.index(b"key")
                elif record.get("row", [0])[0] == seq != 0:
                    place = line.index(b"content") + 12
                else:
                    continue
                body = bytearray(line)
                body[place] ^= 1
                lines[at] = bytes(body)
            other = path.with_suffix(".damaged")
            other.write_bytes(b"\n".join(lines))
            other.replace(path)
