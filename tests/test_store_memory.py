"""The memory store keeps every promise."""

from holdfast.stores import open_store
from holdfast.testing import StoreContract


class TestMemoryStore(StoreContract):
    is_shared = False

    def make(self, tmp_path):
        return open_store("memory:")
