"""A lock for each key, so that nobody waits for what is done to a session of somebody else."""

import threading
from contextlib import AbstractContextManager
from typing import Protocol
from weakref import WeakValueDictionary


class Lock(AbstractContextManager[bool], Protocol):
    """What `threading.RLock` gives: whoever has it may take it again."""

    def acquire(self, blocking: bool = True) -> bool: ...

    def release(self) -> None: ...


class KeyLocks:
    """Locks that are there for as long as somebody has or waits for them."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._locks: WeakValueDictionary[str, Lock] = WeakValueDictionary()

    def of(self, key: str) -> Lock:
        """The lock of this key, the same one to all who ask at once."""
        with self._guard:
            lock = self._locks.get(key)
            if lock is None:
                lock = self._locks[key] = threading.RLock()
            return lock
