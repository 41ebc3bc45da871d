"""What a store takes and gives: records, branches, leases, stored entries, pages."""

from datetime import datetime, timedelta
from typing import Generic, NamedTuple, TypeVar

import msgspec

from holdfast import ids
from holdfast.entries import Entry
from holdfast.errors import InvalidInput
from holdfast.frozen import EMPTY, FrozenDict, Value
from holdfast.identity import NO_ID, NO_TIME, settled_time
from holdfast.keys import check_key
from holdfast.settings import Settings

MAIN = "main"
CURSOR = "last_consolidated"  # a counter that nanobot keeps too, in line 1 of its files
ALL_TIME = timedelta(days=365_000)
_Item = TypeVar("_Item")


class Limits(Value, frozen=True, kw_only=True):
    """The most that a store takes at a time; more is TooLarge, and nothing is written."""

    entry_bytes: int = 64 * 1024 * 1024
    entries: int = 100_000
    record_bytes: int = 4 * 1024 * 1024
    name_bytes: int = 1_024
    chunk_bytes: int = 1024 * 1024
    page: int = 1_000

    def _settle(self) -> None:
        self._settle_counts(*self.__struct_fields__)


LIMITS = Limits()


def check_limits(limits: object) -> Limits:
    """The limits that a caller gave a store."""
    if not isinstance(limits, Limits):
        raise InvalidInput("limits", f"is a Limits, not {type(limits).__name__}")
    return limits


class Stored(msgspec.Struct, frozen=True, gc=False):
    """An entry and where it stands.

    `position` is the place of the message on its branch, and for any other entry that of the last
    message before it (0 when there is none). `entry` is None when it was erased.
    """

    seq: int
    position: int
    branch: str
    kind: str
    entry: Entry | None


class Chunk(NamedTuple):
    """A piece of the partial output of a running turn, as `journal` was given it.

    `token` tells the turns of a session apart, and `number` counts the pieces of one, from 1.
    """

    token: int
    number: int
    text: str


class Branch(Value, frozen=True, kw_only=True):
    """A line through the log: that of `parent` up to the entry `fork`, then its own entries.

    `head` is the seq of its last entry, or `fork` while it has none of its own; `count` is how
    many messages are on it, those of its parents included.
    """

    name: str
    parent: str | None = None
    fork: int = 0
    head: int = 0
    count: int = 0


class Draft(Value, frozen=True, kw_only=True):
    """A turn that runs, or that was cut off: its input, and its output so far.

    `is_running` tells the two apart: whether somebody holds the lease it was begun under.
    """

    token: int
    owner: str
    input: FrozenDict = EMPTY
    chunks: tuple[str, ...] = ()
    is_running: bool = False


class Record(Value, frozen=True, kw_only=True):
    """A session's head: everything about it but its entries.

    A caller who creates a session gives the first group; the store fills in the second.

    key         the caller's name for it
    id          its own name for life; a session made anew under the same key has another one
    agent       who talks in it
    settings, metadata, tools, counters
                JSON that belongs to the session; `tools` are declarations
    ttl         how long it lives after it was last written to; None is for ever
    parent      the id of the session that it was made from, if any

    created_at, updated_at
    branch      the branch in use
    branches    all of them
    seq         the last seq that was given to anything in this session
    folds       the folds on the branch in use that no later one covers whole
    draft       the running turn, or one that was cut off
    """

    key: str
    id: str = NO_ID
    agent: str = ""
    settings: Settings = Settings()
    metadata: FrozenDict = EMPTY
    tools: tuple[FrozenDict, ...] = ()
    counters: FrozenDict = EMPTY
    ttl: timedelta | None = None
    parent: str | None = None

    created_at: datetime = NO_TIME
    updated_at: datetime = NO_TIME
    branch: str = MAIN
    branches: tuple[Branch, ...] = ()
    seq: int = 0
    folds: tuple[Stored, ...] = ()
    draft: Draft | None = None

    def _settle(self) -> None:
        check_key(self.key)
        if self.id is NO_ID:
            self._set("id", ids.new_id())
        ids.time_of(self.id)
        self._settle_texts("agent", "branch", optional=("parent",))
        if not isinstance(self.settings, Settings):
            raise InvalidInput("settings", f"is a Settings, not {type(self.settings).__name__}")
        self._settle_objects("metadata", "counters")
        self._settle_tuple("tools", dict)
        self._set("tools", tuple(FrozenDict(tool) for tool in self.tools))
        check_ttl(self.ttl)
        for name in ("created_at", "updated_at"):
            if (time := getattr(self, name)) is not NO_TIME:
                self._set(name, settled_time(time, name))

    def branch_named(self, name: str) -> Branch:
        """The branch of this name, or InvalidInput."""
        for branch in self.branches:
            if branch.name == name:
                return branch
        known = ", ".join(repr(branch.name) for branch in self.branches[-8:])
        raise InvalidInput(f"branch {name!r}", f"is not in session {self.key!r}: there are {known}")


def check_durability(level: object) -> None:
    """A level of durability has one of two names."""
    if level not in ("sync", "fast"):
        raise InvalidInput("durability", "is 'sync' or 'fast', and nothing else")


def check_ttl(ttl: object, name: str = "ttl") -> None:
    """A time to live is None or a timedelta above zero."""
    if ttl is None:
        return
    if not isinstance(ttl, timedelta):
        raise InvalidInput(name, f"is a timedelta or None, not {type(ttl).__name__}")
    if not timedelta(0) < ttl <= ALL_TIME:
        raise InvalidInput(name, f"is above zero and at most {ALL_TIME.days} days, not {ttl}")


class Summary(msgspec.Struct, frozen=True, gc=False):
    """A session in a list. `damage` says what is wrong when its record cannot be read."""

    id: str
    key: str
    agent: str
    created_at: datetime
    updated_at: datetime
    metadata: FrozenDict = EMPTY
    damage: str = ""


class Found(NamedTuple):
    """A message that a search found, and where; `damage` says why it cannot be read, if so."""

    session_id: str
    key: str
    stored: Stored
    damage: str = ""


class Page(NamedTuple, Generic[_Item]):
    """A piece of a long answer; `next` asks for the following one and is None at the end."""

    items: tuple[_Item, ...]
    next: str | None = None


class Appended(NamedTuple):
    """What an append did: the seq of its first and last entry, and where.

    `messages` is how many messages the branch has now. An append of nothing has `first` behind
    `last`, which is the head of the branch.
    """

    first: int
    last: int
    branch: str
    messages: int


class Named(NamedTuple):
    """A named append, as its store remembers it: what it did, and a digest of what it said.

    The digest is BLAKE2b of 16 bytes, with `salt`; both are None when the content was erased.
    """

    name: str
    result: Appended
    salt: bytes | None
    digest: bytes | None


class Origin(NamedTuple):
    """What is known of a session that was restored from another store.

    `updated_at` is the time of its last write there, as far as that was restored; as long as it is
    also the record's own, nobody else has written to the session. `is_whole` says that nothing of
    it was missing then.
    """

    updated_at: datetime
    is_whole: bool


class Part(msgspec.Struct, frozen=True):
    """A piece of a session at one moment, on its way to another store.

    `record` is without its folds, which are among the entries. `entries` are those behind some seq,
    on all branches, in the order of their seqs. `named` are named appends, for `restore`.
    """

    record: Record
    entries: tuple[Stored, ...] = ()
    named: tuple[Named, ...] = ()
    origin: Origin | None = None


class Lease(NamedTuple):
    """The right to run a turn on a session. `token` grows with every lease on it.

    `left` is the draft of a turn that was cut off before, which this one has replaced.
    """

    session_id: str
    token: int
    owner: str
    ttl: timedelta
    left: Draft | None = None


class Expired(NamedTuple):
    """What `expire` did. `stopped` says why it did nothing, when the clock looks wrong."""

    marked: int
    deleted: int
    stopped: str = ""


class Problem(NamedTuple):
    """Something stored that is not what was written."""

    key: str
    branch: str
    seq: int
    what: str

    def __str__(self) -> str:
        place = f", branch {self.branch!r}, entry {self.seq}" if self.seq else ""
        return f"session {self.key!r}{place}: {self.what}"


class Verified(NamedTuple):
    """What `verify` went over, and everything wrong that it found."""

    sessions: int
    entries: int
    problems: tuple[Problem, ...]
