"""The sessions that a manager has open: one live object for each key, ever.

Whoever holds a session keeps it alive, and everybody else who asks for its key is given the same
one. Beside that the manager itself holds those that were used last, as many as `Cache` allows, so
that the next message of a chat does not have to read its window again. What is let go of is not
lost: nothing is in a session that is not in its store.
"""

from collections import OrderedDict
from typing import NamedTuple
from weakref import WeakValueDictionary

from holdfast.errors import InvalidInput
from holdfast.frozen import Value
from holdfast.session import Session


class Cache(Value, frozen=True, kw_only=True):
    """How much a manager holds of what nobody uses: so many sessions, of about so many bytes."""

    sessions: int = 1_000
    bytes: int = 256 * 1024 * 1024

    def _settle(self) -> None:
        self._settle_counts(*self.__struct_fields__)


def checked_cache(cache: object) -> Cache:
    """What a caller passed as `cache`: a Cache, or how many sessions."""
    if isinstance(cache, Cache):
        return cache
    if type(cache) is int and cache >= 0:
        return Cache(sessions=cache)
    raise InvalidInput("cache", f"is a Cache or a number of sessions, not {cache!r:.80}")


class _Held(NamedTuple):
    """A session that is held, and what was measured of it."""

    session: Session
    size: int


class Live:
    """Sessions by key. Belongs to one event loop, as their manager does."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._all: WeakValueDictionary[str, Session] = WeakValueDictionary()
        self._held: OrderedDict[str, _Held] = OrderedDict()  # the one used last at the end
        self._stale: set[str] = set()
        self._bytes = 0

    @property
    def held(self) -> int:
        """How many are held for their next use."""
        return len(self._held)

    def fresh(self, key: str) -> Session | None:
        """The session of this key, if it can be given out as it is."""
        held = self._held.get(key)
        session = self._all.get(key) if held is None else held.session
        if session is None or key in self._stale or session.is_over:
            return None
        if held is None:
            self._hold(session)
        else:
            self._held.move_to_end(key)
        return session

    def known(self, key: str) -> Session | None:
        """The session of this key, whatever has become of it."""
        return self._all.get(key)

    def put(self, session: Session) -> None:
        """This is the session of its key, as its store has it."""
        self._all[session.key] = session
        self._stale.discard(session.key)
        self._hold(session)

    def weigh(self, key: str) -> None:
        """What is loaded of this session has changed: others may have to go for it."""
        held = self._held.get(key)
        if held is not None:
            self._hold(held.session)

    def invalidate(self, key: str) -> bool:
        """Let go of it, and look at the store before it is given out again; was it here?"""
        is_known = key in self._all and key not in self._stale
        self._let_go(key)
        if key in self._all:  # somebody else has it, and whoever asks is given the same one
            self._stale.add(key)
        return is_known

    def clear(self) -> None:
        """Hold nothing any more."""
        self._held.clear()
        self._bytes = 0

    def _hold(self, session: Session) -> None:
        """Hold it, and let go of those that were not used for longest."""
        self._let_go(session.key)
        size = session.size
        self._held[session.key] = _Held(session, size)
        self._bytes += size
        most = self._cache
        while len(self._held) > most.sessions or (self._bytes > most.bytes and self._held):
            self._let_go(next(iter(self._held)))
        if len(self._stale) > len(self._all):
            self._stale.intersection_update(self._all)

    def _let_go(self, key: str) -> None:
        held = self._held.pop(key, None)
        if held is not None:
            self._bytes -= held.size
