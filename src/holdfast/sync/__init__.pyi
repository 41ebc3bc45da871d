"""Made by tests/sync_stub.py of the asynchronous classes. Do not edit."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from datetime import datetime
from datetime import timedelta
from holdfast import branching
from holdfast import forking
from holdfast import outline
from holdfast.archive import Archive
from holdfast.archive import Restored
from holdfast.archive import Told
from holdfast.cancel import CancelToken
from holdfast.child import Summarize
from holdfast.consolidation.desk import Desk
from holdfast.consolidation.files import VERSIONS_MAX
from holdfast.consolidation.leaving import Leaving
from holdfast.consolidation.places import Scope
from holdfast.consolidation.showing import Showing
from holdfast.entries import Call
from holdfast.entries import Entry
from holdfast.entries import Fold
from holdfast.errors import HoldfastError
from holdfast.errors import ProviderError
from holdfast.events import Event
from holdfast.frozen import FrozenDict
from holdfast.inputs import Input
from holdfast.live import Cache
from holdfast.manager import DEFAULT_CACHE
from holdfast.memory import Status
from holdfast.messages import Message
from holdfast.messages import ToolCall
from holdfast.peek import Line
from holdfast.peek import TurnRows
from holdfast.preview import Preview
from holdfast.providers.base import Provider as AsyncProvider
from holdfast.providers.base import Response
from holdfast.providers.preflight import Preflight
from holdfast.removal import Erased
from holdfast.results import TurnResult
from holdfast.retention import Gone
from holdfast.retention import Retained
from holdfast.retention import Retention
from holdfast.settings import Settings
from holdfast.steps.drafts import Draft
from holdfast.steps.limits import Spent
from holdfast.steps.observers import OnEvent
from holdfast.steps.orders import Answers
from holdfast.steps.orders import Redact
from holdfast.stores.base import GRACE
from holdfast.stores.copying import Choice
from holdfast.stores.copying import Copied
from holdfast.stores.values import Appended
from holdfast.stores.values import Branch
from holdfast.stores.values import Chunk
from holdfast.stores.values import Expired
from holdfast.stores.values import Found
from holdfast.stores.values import LIMITS
from holdfast.stores.values import Lease
from holdfast.stores.values import Limits
from holdfast.stores.values import MAIN
from holdfast.stores.values import Named
from holdfast.stores.values import Page
from holdfast.stores.values import Part
from holdfast.stores.values import Record
from holdfast.stores.values import Stored
from holdfast.stores.values import Summary
from holdfast.stores.values import Verified
from holdfast.sweeping import EVERY
from holdfast.tools import Tool
from holdfast.usage import Usage
from holdfast.window.budget import Budget
from holdfast.window.ledger import Ledger
from holdfast.window.plan import Policy
from holdfast.window.window import Window
from holdfast.workshop import Shared
from pathlib import Path
from types import TracebackType
from typing import Any
from typing import ClassVar
from typing import Self
from typing import Unpack

class SessionManager:
    """The sessions of one tenant in a store: `async with holdfast.open(url) as sessions`."""

    def __init__(self, store: Store, tenant: str='', *, cache: Cache | int=DEFAULT_CACHE, expire_every: timedelta | None=EVERY, **shared: Unpack[Shared]) -> None:
        """`shared` is what `open` takes: models, tools, budget, policy, redaction, a name."""
        ...

    @property
    def store(self) -> Store:
        """Where they are."""
        ...

    def places(self) -> tuple[str, ...]:
        """Where what is said may be, in words: what an erase goes through."""
        ...

    @property
    def memory(self) -> Memory | None:
        """What was given to `open`."""
        ...

    def get(self, key: str, *, load: str='window') -> Session:
        """The session of this key, or SessionNotFound, or SessionExpired.

        What the window shows is loaded; with `load="all"`, everything. One that is open here
        already is given as it is: `send`, `append` and `refresh` look what others have written.
        """
        ...

    def get_or_create(self, key: str, *, agent: str='', settings: Settings | None=None, metadata: Mapping[str, Any] | None=None, ttl: timedelta | None=None, model: str | Provider | AsyncProvider | None=None, tools: Iterable[Tool] | None=None) -> Session:
        """The session of this key; made now if there is none, or if the one there has expired.

        However many tasks, processes and machines ask at once, one session is made, and all of them
        get it. What is given here is for one that is made; but a model and tools that are objects
        are bound to the session that is found too, where it has them by name. On one that has
        expired while a turn runs on it, it is Busy until that turn has ended.
        """
        ...

    def peek(self, key: str) -> Peek:
        """The session of this key, to be read without being opened; also one that has expired."""
        ...

    def invalidate(self, key: str) -> bool:
        """Look at the store before this session is given out again; whether it was open here."""
        ...

    def list(self, *, agent: str | None=None, metadata: Mapping[str, Any] | None=None, since: datetime | None=None, until: datetime | None=None, limit: int=50, page: str | None=None) -> Page[Summary]:
        """Sessions, those written to last first; `page` is the `next` of the page before.

        `agent` and every name in `metadata` have to be equal; `since` (inclusive) and `until`
        (exclusive) bound the time of the last write.
        """
        ...

    def index(self, *, on_progress: Callable[[float, float | None], object] | None=None) -> None:
        """Make ready for a search what was said since the last one, as every search does."""
        ...

    def search(self, query: str, *, key: str | None=None, limit: int=20, page: str | None=None) -> Page[Found]:
        """Messages that hold every word of `query`, the newest first; in one session, if named."""
        ...

    def delete(self, key: str) -> bool:
        """Remove a session, expired or not; False if there is none. A turn that runs here ends.

        One whose record is damaged goes too, unless a memory may have something of it.
        """
        ...

    def erase(self, key: str) -> Erased:
        """Remove a session and its children so that no byte of them is left, or SessionNotFound.

        What a memory has of them goes too. The receipt says where was looked. Backups, copies and
        forks are other data: they keep what they have.
        """
        ...

    def expire(self) -> Expired:
        """Mark what has expired, delete what was marked long ago; also done in the background."""
        ...

    def retain(self, policy: Retention, *, dry_run: bool=False, on_gone: Callable[[Gone], object] | None=None) -> Retained:
        """Delete the sessions that a policy does not keep; with `dry_run`, only say which.

        What is written to meanwhile stays. `on_gone` hears of each as it goes.
        """
        ...

    def copy(self, to: str | Store, **chosen: Unpack[Choice]) -> Copied:
        """Copy sessions to the same tenant of another store, by URL or open.

        `chosen` is what `holdfast.stores.copying.copy` takes: which, and what of conflicts.
        """
        ...

    def backup(self, path: str | Path, *, on_progress: Callable[[float], object] | None=None) -> None:
        """Write a copy of the whole store, all tenants, as it is at one moment, to a new place."""
        ...

    def verify(self, key: str | None=None, *, on_progress: Callable[[int], object] | None=None) -> Verified:
        """Hold what is stored of a session, or of all, against its digests; tell what is wrong.

        `on_progress` hears how many sessions have been gone over.
        """
        ...

    def export(self, key: str, *, on_progress: Told | None=None) -> Archive:
        """A session whole, expired or not, as it is at one moment: see `holdfast.formats`.

        `on_progress` hears how many of its entries have been read.
        """
        ...

    def restore(self, archive: Archive, *, key: str | None=None, dry_run: bool=False, on_progress: Told | None=None) -> Restored:
        """Make the session of an archive, with its ids and times, under its key or another one.

        One that is there already is found to be so, and an archive of it that is newer adds what is
        new. What has gone its own way here is DuplicateSession, and stays as it is.
        """
        ...

    def close(self) -> None:
        """Finish what was asked for: turns that run, models that were opened here, the store.

        Cancelled, it ends the turns instead, which keep what they have. Cancelled once more, it
        leaves them as a crash would.
        """
        ...

    def __enter__(self) -> Self:
        ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        ...

class Session:
    """One conversation. A `SessionManager` gives it out, the same object to everybody who asks.

    What it says of itself is as fresh as the last thing that was done with it, or `refresh`:
    another process may have written since.
    """

    @property
    def is_over(self) -> bool:
        """Whether it is known here that there is no such session any more, or that it expired."""
        ...

    @property
    def size(self) -> int:
        """About how many bytes the loaded entries take."""
        ...

    @property
    def key(self) -> str:
        ...

    @property
    def id(self) -> str:
        ...

    @property
    def agent(self) -> str:
        ...

    @property
    def settings(self) -> Settings:
        ...

    @property
    def metadata(self) -> FrozenDict:
        ...

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Those that a model is offered here: the session's own, or else the manager's."""
        ...

    @property
    def ledger(self) -> Ledger:
        """What is known about tokens."""
        ...

    @property
    def branch(self) -> str:
        """The branch in use."""
        ...

    @property
    def branches(self) -> tuple[Branch, ...]:
        ...

    @property
    def ttl(self) -> timedelta | None:
        """How long it lives after it was last written to; None is for ever."""
        ...

    @property
    def created_at(self) -> datetime:
        ...

    @property
    def updated_at(self) -> datetime:
        ...

    @property
    def draft(self) -> Draft | None:
        """A turn that runs, failed, waits, or was cut off; None when there is none."""
        ...

    @property
    def pending(self) -> tuple[ToolCall, ...]:
        """The calls that wait for an answer here: `resume({call.id: True})`."""
        ...

    @property
    def folds(self) -> tuple[Stored, ...]:
        """The folds on the branch in use that no later one covers whole."""
        ...

    @property
    def messages(self) -> tuple[Message, ...]:
        """What is loaded: the end of the conversation, without a gap."""
        ...

    @property
    def count(self) -> int:
        """How many messages are on the branch in use, loaded or not."""
        ...

    def bind(self, model: str | Provider | AsyncProvider | None=None, tools: Iterable[Tool]=()) -> None:
        """Give the objects to what the session knows by name; nothing is stored."""
        ...

    def load(self, *, is_all: bool=False) -> None:
        """Read what the window shows, or everything; the manager does so when it opens one."""
        ...

    def read(self, start: int=0, stop: int | None=None) -> tuple[Message, ...]:
        """The messages at these positions of the branch in use; erased ones are left out."""
        ...

    def refresh(self) -> None:
        """See what others have written."""
        ...

    def window(self, model: str | Provider | AsyncProvider | None=None) -> Window:
        """What the next call of the model would be given, if nothing more were said."""
        ...

    def preview(self, model: str | Provider | AsyncProvider | None=None) -> Preview:
        """The same, part by part, with what is known of its tokens and what would be folded."""
        ...

    def watch(self, after: int | None=None) -> Iterator[Stored | Chunk]:
        """Entries as they come, on all branches, and the words of a running turn.

        `after` is the seq of the last entry that was seen: whoever was cut off goes on from there.
        The words of the turn that runs are given from its beginning, numbered.
        """
        ...

    def append(self, *messages: Message, once: str | None=None) -> Appended:
        """Add messages behind whatever is on the branch in use, all or none.

        With `once`, repeating the call with the same content changes nothing and returns what the
        first call did.
        """
        ...

    def fold(self, start: int, stop: int, replacement: Message | None=None, *, why: str='') -> Appended:
        """In the window, show the messages at positions `start` to `stop` as `replacement`, or not.

        They stay in the log. A range that is empty or not all there is InvalidInput, and so is
        hiding a question that has no answer yet: a model would be asked for nothing.
        """
        ...

    def update(self, *, settings: Settings | Mapping[str, Any] | None=None, metadata: Mapping[str, Any] | None=None, agent: str | None=None, ttl: timedelta | None=None, tools: Iterable[Tool] | None=None, model: str | Provider | AsyncProvider | None=None, expect: Mapping[str, Any] | None=None) -> None:
        """Change what is named; what is not stays as it is.

        Of settings and metadata, names that are not mentioned stay, and None takes one away. With
        `expect`, Conflict unless the names in it still have these values.
        """
        ...

    def send(self, input: Input, *, once: str | None=None, cancel: CancelToken | None=None, on_event: OnEvent | None=None, tools: Iterable[Tool] | None=None, model: str | Provider | AsyncProvider | None=None, schema: Mapping[str, Any] | None=None, wait: float | None=None) -> TurnResult:
        """Say something to the model, and run what it asks for, until it has answered.

        input     text, a user's Message, or parts (text, pictures, files)
        once      a name for this input: sent again under it, it is not asked again
        cancel    stops the turn when it is cancelled; what there is by then is kept
        on_event  a function that hears of the turn while it runs; False stops the turn
        tools     only these are offered in this turn
        model     only this turn asks it
        schema    a JSON Schema that the answer has to follow; `result.data` is its value
        wait      seconds to wait for a turn that runs; 0 is Busy at once
        """
        ...

    def stream(self, input: Input, *, once: str | None=None, cancel: CancelToken | None=None, on_event: OnEvent | None=None, tools: Iterable[Tool] | None=None, model: str | Provider | AsyncProvider | None=None, schema: Mapping[str, Any] | None=None, wait: float | None=None, detach: bool=False) -> Stream:
        """The same as `send`, as events to be read while the turn runs: `async for`.

        Leaving early cancels the turn and keeps what was said; with `detach` it goes on.
        """
        ...

    def resume(self, answers: Answers | None=None, *, cancel: CancelToken | None=None, on_event: OnEvent | None=None, wait: float | None=None) -> TurnResult:
        """Go on with a turn that failed, was cut off, met a limit, or waits for answers.

        `answers` says for each call that waits, by its id: True, run it; False, do not; or text
        that the model is given in the place of the tool's result.
        """
        ...

    def steer(self, text: str) -> None:
        """Say something to the turn that runs: it is stored now, and seen at its next step."""
        ...

    def cancel(self) -> bool:
        """Stop the turn that runs here; False if there is none. From any task or thread."""
        ...

    def compact(self, policy: Policy | None=None) -> tuple[Fold, ...]:
        """Make the window smaller now, as a policy has it; the folds that were made."""
        ...

    def erase(self, what: Message | str | int) -> int:
        """Really remove a message (itself or its id) or a turn (its number), and what was made of
        it; how many entries of the log went. What cannot stand without it goes too."""
        ...

    def clear(self) -> None:
        """Remove the conversation, really, and what a memory has of it. Key, id, settings, tools
        and metadata stay. To keep what memory holds: `memory.start_anew(session)`."""
        ...

    def turns(self) -> tuple[outline.Turn, ...]:
        """The turns on the branch in use: their places, what was said, what they cost."""
        ...

    def revert(self, turn: int) -> branching.Reverted:
        """Keep turns 1 to `turn` and go on from there, on a new branch; 0 keeps none of them.

        What is left stays where it is. To say something else in the place of turn 3:
        `await session.revert(2)`, then send.
        """
        ...

    def branch_at(self, turn: int, name: str | None=None) -> Branch:
        """Open a branch behind `turn`, also behind the last one, and use it."""
        ...

    def checkout(self, name: str) -> Branch:
        """Use another branch."""
        ...

    def replace(self, messages: Iterable[Message]) -> Branch:
        """Go on with these messages in the place of all there are, on a new branch."""
        ...

    def diff(self, a: str, b: str | None=None) -> forking.Diff:
        """What two branches share, what only one of them has, and what each cost behind that.

        Without `b` it is the branch in use.
        """
        ...

    def fork(self, key: str, at: int | None=None) -> Session:
        """A new session under another key, that starts as this one, or as it was behind a turn."""
        ...

    def child(self, agent: str, inherit: int=0) -> Subagent:
        """An isolated session for a subagent, with the last messages of this one if asked for."""
        ...

    def children(self) -> tuple[Subagent, ...]:
        """The children of this session, by their numbers."""
        ...

class Subagent:
    """A child of a session, open: `session` is where it works."""
    record: Record

    @property
    def key(self) -> str:
        ...

    @property
    def id(self) -> str:
        ...

    @property
    def agent(self) -> str:
        ...

    @property
    def number(self) -> int:
        """Which of its parent's children it is, from 1: the `agent_id` in notes about it."""
        ...

    @property
    def state(self) -> str:
        """open, merging, merged or discarding, as it was last seen."""
        ...

    def refresh(self) -> None:
        """See what others have written; InvalidInput when the child is gone."""
        ...

    def merge(self, *, whole: bool=False, summarize: Summarize | None=None) -> Appended:
        ...

    def discard(self, reason: str) -> None:
        ...

    def report(self, event: str, text: str='', *, once: str | None=None) -> Appended:
        """Tell the parent of something that it has to know (see `notes.SubagentEvent`)."""
        ...
    session: Session

class Stream:
    """The events of one turn, to be read once; `result` when they have ended."""
    result: TurnResult | None

    def __iter__(self) -> Iterator[Event]:
        ...

    def __enter__(self) -> Self:
        ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        ...

    def close(self) -> None:
        """Leave it now: the turn is cancelled, and what was said is kept when this returns."""
        ...

class Peek:
    """What a store has of a session, as of the moment at which it was looked at."""
    record: Record

    @property
    def key(self) -> str:
        ...

    @property
    def branch(self) -> Branch:
        """The branch in use."""
        ...

    @property
    def expired_at(self) -> datetime | None:
        """When it expired; None if it has not."""
        ...

    @property
    def draft(self) -> Draft | None:
        """A turn that runs, failed, waits, or was cut off; None when there is none."""
        ...

    def read(self, start: int=0, stop: int | None=None, *, branch: str | None=None) -> tuple[Stored, ...]:
        """The messages at these positions of a branch, with the entries that stand beside them."""
        ...

    def turns(self, branch: str | None=None) -> Iterator[TurnRows]:
        """All of a branch, turn by turn; no more is held than one turn and a page."""
        ...

    def last_turns(self, count: int, branch: str | None=None) -> tuple[TurnRows, ...]:
        """The last turns of a branch. No more of it is read than it takes, so that their numbers
        are known only where that is all."""
        ...

    def log(self) -> Iterator[Stored]:
        """The entries of all branches, each once, in the order in which they were written."""
        ...

    def receipts(self, since: datetime | None=None) -> Iterator[Call]:
        """The calls that were made in this session, on all its branches.

        A session that was forked begins with receipts of another one: they are left out.
        """
        ...

    def turn_at(self, position: int, branch: str | None=None) -> int:
        """The number of the turn in which the message at a position stands."""
        ...

    def folds(self, branch: str | None=None) -> tuple[Fold, ...]:
        """The folds on a branch that no later one covers whole, in the order they were made."""
        ...

    def spent(self) -> Spent:
        """What the session has spent by its last receipt, on all its branches."""
        ...

    def lines(self) -> tuple[Line, ...]:
        """The branches, with where they left their parents."""
        ...

    def children(self) -> list[Record]:
        """The records of the sessions that were made for subagents of this one."""
        ...

    def diff(self, a: str, b: str | None=None) -> forking.Diff:
        """What two branches share, what only one of them has, and what each cost behind that.

        Without `b` it is the branch in use.
        """
        ...

class Memory:
    """The memory of the sessions of one manager: `holdfast.open(url, memory=Memory(...))`."""
    model: str | (Provider | AsyncProvider)
    window: int

    def __init__(self, folder: Any, model: str | (Provider | AsyncProvider), window: int=100, scope: Scope='session', *, on_event: OnEvent | None=None, failures_max: int=3, versions_max: int=VERSIONS_MAX) -> None:
        """
        folder        where the files are: in `memory` below it, as in a workspace of nanobot
        model         "vendor:model" or a provider: who says what to keep
        window        so many messages that are not summarised are too many; half of them are left
        scope         whose memory it is: each "session" has its own, or the sessions of a "tenant"
                      share one, or all that use this folder do ("workspace")
        on_event      a function that hears of each consolidation (`holdfast.events`)
        failures_max  after so many failures in a row the messages themselves go into HISTORY.md
        versions_max  how many earlier versions of MEMORY.md are kept
        """
        ...

    def use(self, desk: Desk) -> None:
        """Work for a manager; for one at a time."""
        ...

    def let_go(self) -> None:
        """That manager is closed: what is kept can be read, and another one may come."""
        ...

    def text(self, session: Session) -> str:
        """MEMORY.md of a session."""
        ...

    def history(self, session: Session) -> str:
        """HISTORY.md of a session."""
        ...

    def paths(self, session: Session) -> tuple[str, str]:
        """Where MEMORY.md and HISTORY.md of a session are."""
        ...

    def status(self, session: Session) -> Status:
        """How a session stands with its memory."""
        ...

    def consolidate(self, session: Session, *, is_all: bool=False) -> int:
        """Summarise what is new of a session, but the last half window, or really all of it.

        Returns how many messages that were. A model that fails is a ProviderError; it has changed
        nothing then.
        """
        ...

    def start_anew(self, session: Session) -> None:
        """Summarise everything that is new, then clear the conversation: `/new`.

        What memory holds stays. If the model fails, or the files cannot be written, that is a
        ProviderError or a StoreError, nothing is cleared, and it can be done again; a turn that
        runs is Busy.
        """
        ...

    def after(self, record: Record, count: int) -> None:
        """There are so many messages now: if enough is new, summarise it in the background."""
        ...

    @property
    def showing(self) -> Showing:
        """What models are shown."""
        ...

    @property
    def leaving(self) -> Leaving:
        """How what it has of sessions and messages goes when these do."""
        ...

class Store:
    """A place where sessions are kept: `await open_store(url)`, or `async with open_store(url)`."""
    unsupported: ClassVar[frozenset[str]] = frozenset()
    limits: Limits = LIMITS

    def tenant(self, name: str='') -> Tenant:
        """The sessions of one tenant. Any text is a name, and no two names share anything."""
        ...

    def tenants(self) -> tuple[str, ...]:
        """The tenants that have sessions."""
        ...

    def open(self) -> None:
        """Make the store ready; what is wrong with it is told now and not later."""
        ...

    def backup(self, path: str | Path, *, on_progress: Callable[[float], object] | None=None) -> None:
        """Write a copy of the whole store, as it is at one moment, to a place that is empty.

        What is written to the store meanwhile is in the copy whole or not at all. The copy can
        be opened as a store. `on_progress` hears which share of it is done, up to 1.0, from any
        thread; what it raises ends the copying, and nothing is left of it.
        """
        ...

    def close(self) -> None:
        """Finish what was asked for, then let go of everything. Later calls: StoreUnavailable.

        It is gone through with when it is cancelled; whoever calls it again waits for the end.
        """
        ...

    def problems(self) -> list[str]:
        """What is wrong with the place where the data is, each with the way out."""
        ...

    def places(self) -> tuple[str, ...]:
        """Where its data may be, in words: what an erase goes through."""
        ...

    def __enter__(self) -> Self:
        ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        ...

class Tenant:
    """One tenant's sessions, and all that can be done with them."""
    name: str

    def create(self, record: Record, entries: Sequence[Entry]=(), *, keep_times: bool=False, replace_expired: bool=False) -> Record:
        """Make a session, with its first entries on branch "main", or raise DuplicateSession.

        Of `record`, what a caller may give is taken; the rest is the store's. The session was
        created and updated now, unless `keep_times` asks for the record's own times, as a copy
        from another store does. An expired session still has its key; with `replace_expired` it
        is deleted in the same commit, if it has expired then and no turn runs on it.
        """
        ...

    def load(self, key: str, *, even_expired: bool=False) -> Record:
        """The session of this key, or SessionNotFound, or SessionExpired. Never deletes.

        A session has expired when more than its `ttl` has passed since it was last written to;
        with `even_expired` that is no reason not to give its record.
        A record that is not what was written is Corrupt.
        """
        ...

    def append(self, id: str, entries: Sequence[Entry], *, branch: str=MAIN, after: int | None=None, lease: Lease | None=None, once: str | None=None, finish: bool=False) -> Appended:
        """Add `entries` to the end of `branch`, all or none.

        `after` is the head of that branch as the caller last saw it; None means behind whatever is
        there. If the branch has moved on, Conflict says where it is now. With a `lease`, LeaseLost
        if it is not the one in force. A session that has expired is SessionExpired.

        `once` names this append for the life of the session, across its branches, until it is
        cleared. It is looked at first: a repeat with the same content (ids and times aside)
        returns the first result and writes nothing, and other content is OnceMismatch.

        `finish` also drops the draft and releases the lease, in the same commit; it needs a
        lease. A repeat with `once` finishes too.

        When this returns, the entries survive the process being killed and, at level "sync", the
        power going out. When it is cancelled, it was withdrawn or is complete by the time
        CancelledError is raised; it never happens later.
        """
        ...

    def begin(self, id: str, owner: str, ttl: timedelta, draft: Mapping[str, Any], *, seen: int | None=None, place: str='') -> Lease:
        """Take the lease on a session and store the draft of its turn, in one commit.

        Busy names the `owner` who has it. A lease is free when it was released, when the process
        that took it is gone, and when its time is over, by a clock that does not jump. What
        is left of a turn that was cut off comes back in `lease.left`, and is replaced. `seen` is
        the token of the draft that the caller knows of, 0 for none: Conflict if another one would
        be replaced. While others wait in line for it, it is Busy for all but the first of them,
        who says by its `place` which one it is, and leaves the line with this.
        """
        ...

    def line_up(self, id: str, owner: str, place: str, *, waited: timedelta, patience: timedelta) -> bool:
        """Wait in line for the lease on a session; whether it is free now for this one.

        `place` is a name that nobody else has. Who has `waited` longer stands further ahead, so the
        line is one for all processes. Calling it again asks how it stands. A place is lost when
        its process is gone, when its `patience` is over, and when it did not take a lease that was
        free for two seconds while another wanted it; then this call gives one again.
        """
        ...

    def step_out(self, id: str, place: str) -> None:
        """Wait no longer. No error if there is no such place, or no such session."""
        ...

    def journal(self, lease: Lease, chunk: str) -> None:
        """Add a piece of partial output to the draft, or raise LeaseLost.

        It survives the process being killed; it may be lost when the power goes out.
        """
        ...

    def journal_all(self, pieces: Sequence[tuple[Lease, str]]) -> Sequence[HoldfastError | None]:
        """`journal` for many turns at once; for each piece the error, or None where it is kept."""
        ...

    def renew(self, lease: Lease, ttl: timedelta | None=None) -> Lease:
        """Let the lease's time begin anew (with another `ttl` if given), or raise LeaseLost.

        A lease whose time is over can be renewed as long as nobody else has taken it.
        """
        ...

    def release(self, lease: Lease, *, drop: bool=False) -> None:
        """Give the lease back; with `drop`, forget the draft as well. No error if it was lost."""
        ...

    def branch(self, id: str, name: str, *, parent: str, at: int, use: bool=True) -> Record:
        """Open a branch that goes on from the entry `at` of `parent` (0: from the beginning).

        With `use` it becomes the branch in use. The cost does not depend on how long the log is.
        A name that is taken, an unknown parent, and an entry that is not on it are InvalidInput.
        """
        ...

    def read(self, id: str, branch: str=MAIN, start: int=0, stop: int | None=None, *, kind: str | None=None) -> tuple[Stored, ...]:
        """The messages at positions `start` to `stop` of a branch, and what stands with them.

        Entries that are not messages stand with the last message before them, and those before
        the first message with that one. Without `stop`, to the end of the branch. Positions count
        from 0; beyond the end there is nothing, and below 0 is InvalidInput. `kind` leaves out
        entries of other kinds. Reading finds every damaged row that it passes: Corrupt.
        """
        ...

    def tail(self, id: str, branch: str=MAIN, count: int=50) -> tuple[Stored, ...]:
        """The last `count` messages of a branch, and everything that stands behind the first."""
        ...

    def size(self, id: str) -> int:
        """How many bytes the entries of a session take, on all branches, without what holds them.

        What was erased takes none, and a large text that stands in several entries counts once.
        """
        ...

    def update(self, id: str, changes: Mapping[str, Any], expect: Mapping[str, Any] | None=None) -> Record:
        """Change fields of the record: agent, settings, metadata, counters, tools, ttl, branch.

        settings, metadata and counters are changed name by name: a name that is not mentioned
        stays as it is, and None takes a name away. So two writers who change different names
        never undo each other's work. `expect` has the same shape: Conflict unless each name in it
        still has that value (None: is not there). An unknown field is InvalidInput.
        An expired session may be updated; that, like every write, lets its time begin anew.
        """
        ...

    def delete(self, id: str, *, seen: Record | None=None) -> bool:
        """Remove a session with everything in it; False if it was not there.

        `seen` is its record as the caller last saw it: Conflict if it was written to since, and
        Busy if a turn runs on it.
        """
        ...

    def erase(self, id: str, seqs: Sequence[int]) -> int:
        """Really remove what these entries say; returns how many still had something to say.

        Their places stay (`Stored.entry` is None), and the chain still verifies. Afterwards the
        content is in no file of the store, no log, no index, no cache. A seq that is not in the
        session is InvalidInput, and then nothing is erased. StoreUnavailable may also mean that it
        is erased for every reader, but that its bytes could not be removed yet: ask again.
        """
        ...

    def clear(self, id: str, *, seen: Record | None=None) -> Record:
        """Really remove all entries, branches, drafts and `once` names; the record stays.

        `seen` is its record as the caller last saw it: Conflict if it was written to since, and
        Busy if a turn runs on it.

        There is one branch again, "main", and it is empty. Counters are emptied. No seq is used
        again, and an append that was prepared before is a Conflict. A running turn loses its lease.
        About StoreUnavailable, see `erase`.
        """
        ...

    def list(self, *, agent: str | None=None, metadata: Mapping[str, Any] | None=None, since: datetime | None=None, until: datetime | None=None, limit: int=50, page: str | None=None) -> Page[Summary]:
        """Sessions, those written to last first, expired ones included.

        `agent` and every name in `metadata` must be equal; `since` (inclusive) and `until`
        (exclusive) bound the time of the last write. A damaged record is listed as such and
        never hides the others. `page` is the `next` of the page before.
        """
        ...

    def expire(self, now: datetime | None=None, *, grace: timedelta=GRACE) -> Expired:
        """Mark sessions that have expired, and delete those marked longer than `grace` ago.

        A clock that went back, or that jumped ahead by more than 30 days since the last run,
        looks wrong: then nothing is deleted or marked, the reason is returned, and the next
        run trusts the clock again if it goes on from there. A mark is gone when the session is
        written to. A session with a running turn is not deleted.
        """
        ...

    def index(self, *, on_progress: Callable[[float, float | None], object] | None=None) -> None:
        """Make ready for a search what was appended since the last one, as every search does.

        `on_progress` hears how many entries are done, and of how many if that is known. A store
        that has nothing to make ready does nothing.
        """
        ...

    def search(self, query: str, *, session: str | None=None, limit: int=20, page: str | None=None) -> Page[Found]:
        """Messages that hold every word of `query`, the newest first. `session` is an id.

        Whole words count; case, width and accents do not. Chinese, Japanese and Korean are found
        by any run of characters. A query without a word finds nothing, and no sign in it is an
        operator. Everything appended before the call is searched, and it does not wait for what is
        appended later. A message that is damaged is told as such, without its content, and hides no
        other. What stays is on one page and no other, whatever comes and goes between pages.
        """
        ...

    def watch(self, id: str, after: int | None=None) -> Iterator[Stored | Chunk]:
        """Entries behind the seq `after` as they come, on all branches, and live partial output.

        Without `after`, from now on. Never ends by itself, but when the session is deleted:
        SessionNotFound. The chunks of the turn that runs are given from its beginning.
        """
        ...

    def export(self, id: str, after: int=0, limit: int=1000) -> Part:
        """A session as it is at one moment, whether it has expired or not, for `restore`.

        Of its log, the entries behind the seq `after`, at most `limit`, and fewer if they are
        large; but at least one, if there is one and `limit` is not 0. Damage is Corrupt.
        """
        ...

    def names(self, id: str, after: str='', limit: int=1000) -> tuple[Named, ...]:
        """The named appends of a session, for `restore`: at most `limit`, behind the name `after`.

        They are in the order of their names, by code points.
        """
        ...

    def restore(self, part: Part, *, after: int | None, is_whole: bool=False) -> int:
        """Make or continue a session as `part` says, with its ids, seqs and times.

        `after` is the seq that the session is at here, as last seen, and None if it is not here.
        What is here was restored before, and is never changed after anybody else has written to it:
        Conflict. So it is if the session is not at `after`. If there is another one with this key
        or id, DuplicateSession.

        Everything in the record is taken over, but a turn that runs: neither its lease nor its
        draft. Entries behind `after` are added, and named appends that are not known here. An entry
        that is here already may be given again when it has been erased: it is erased here too. If
        the record tells that the session was cleared, what is here is removed first. `is_whole`
        says that this completes the log: InvalidInput unless every branch then ends as the record
        says. Returns the seq that the session is at.
        """
        ...

    def verify(self, id: str | None=None, *, on_progress: Callable[[int], object] | None=None) -> Verified:
        """Go over a session, or all of this tenant's, and report whatever is not what was written.

        Never raises for what it finds. `on_progress` hears how many sessions it has gone over.
        """
        ...

class Provider:
    """A model of one vendor. Third parties subclass this; `complete` is all they have to write.

    One that makes its requests by a wire of ours has it as `wire`, and `preflight` asks that.
    """
    vendor: str
    model: str

    @property
    def name(self) -> str:
        """As in `open_provider(name)`, and in `message.model` of what it answers."""
        ...

    def complete(self, messages: Sequence[Message], system_instruction: str | None=None, tools: Sequence[Tool] | None=None, *, response_schema: Mapping[str, Any] | None=None, settings: Settings | None=None, conversation: str | None=None, cancel_token: CancelToken | None=None, on_chunk: Callable[[str], object] | None=None, on_usage_update: Callable[[Usage], object] | None=None, on_thinking: Callable[[str], object] | None=None, on_tool_call: Callable[[ToolCall], object] | None=None, on_retry: Callable[[ProviderError, int, float], object] | None=None) -> Response:
        """The model's answer to the whole conversation.

        Any messages can be passed: what no vendor would accept is repaired for the request, and
        the messages themselves stay as they are. `response_schema` is a JSON Schema that the text
        of the answer then follows. Of `settings`, those about the answer are used; what stands in
        `settings.extra` under the vendor's name goes into the request as it is. `conversation` is
        a hint that tells conversations apart, for routing to a warm cache.

        With any of `on_chunk`, `on_thinking` and `on_tool_call` the answer is streamed, and they
        are called as it comes: pieces of thinking, pieces of text, and each call when it is
        complete, before anything that follows it. Of one block thinking comes before text, text
        before calls. `on_usage_update` hears of the tokens, as far as they are known, whenever the
        service says more. What a callback raises ends the call and reaches the caller.

        A failure is a ProviderError named for what can be done about it. What passes by itself
        (RateLimited, Overloaded, ConnectionFailed) was then tried again for a while, which
        `on_retry` heard of (the error, failed tries, seconds until the next), but never after a
        callback was given some output. If the answer broke off, `error.partial` is the Response
        as far as it came, without calls that were not complete; likewise in the Cancelled that
        is raised, within a second, when `cancel_token` is cancelled. Nothing else changes.
        """
        ...

    def preflight(self, messages: Sequence[Message], system_instruction: str | None=None, tools: Sequence[Tool] | None=None) -> Preflight:
        """What this model would be given of a conversation, told beforehand; nothing is sent.

        What has to be dropped, converted, renamed or mended for it, how many tokens that is, what
        its cache would have to be given anew, and whether it fits.
        """
        ...

    def count_tokens(self, messages: Sequence[Message], system_instruction: str | None=None, tools: Sequence[Tool] | None=None) -> int:
        """How many tokens the prompt has: the service's count if it offers one, else ours."""
        ...

    @property
    def context_limit(self) -> int:
        """How many tokens the model's window holds."""
        ...

    @property
    def output_limit(self) -> int:
        """How many tokens the model writes at most in one answer."""
        ...

    def list_models(self, prefix: str='') -> tuple[str, ...]:
        """The models that these credentials may use, whose name begins with `prefix`."""
        ...

    def verify(self) -> None:
        """Return if the service is there and accepts the credentials; else a ProviderError."""
        ...

    def close(self) -> None:
        """Close the connections that this object opened. Closing twice is fine."""
        ...

    def __enter__(self) -> Self:
        ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        ...

def open(url: str, *, model: str | Provider | AsyncProvider | None=None, providers: Iterable[Provider | AsyncProvider]=(), tools: Iterable[Tool]=(), budget: Budget | Mapping[str, Any] | None=None, policy: Policy | None=None, redact: Redact | None=None, owner: str | None=None, memory: Memory | None=None, tenant: str='', cache: Cache | int=DEFAULT_CACHE, expire_every: timedelta | None=EVERY, **options: Any) -> SessionManager:
    """The sessions in the store at `url`, for `async with` or `await`.

    model      "vendor:model" or a provider: who answers where a session has no model of its own
    providers  models by object, which sessions find by their name
    tools      what models are offered where a session declares no tools of its own, and what runs
               those that it does
    budget     how windows are filled where a session's settings do not say
    policy     how windows are kept (CacheAware)
    redact     makes of each message the one that is stored and shown to models
    owner      how this process is named to others that wait for its turns
    memory     where what was said long ago is summarised, and shown to models again
    tenant     whose sessions; no other tenant's are seen or touched
    cache      how many sessions that nobody uses stay open for their next message
    expire_every
               how often expired sessions are looked for in the background; None is never
    options    go to the store, such as durability="fast" (see `open_store`)
    """
    ...

def open_store(url: str, **options: Any) -> Store:
    """The store at a URL: `await` it, or use it in `async with`, and it is open.

        memory:             forgotten when it is closed
        sqlite:PATH         one file (sqlite:///PATH and sqlite:////ABSOLUTE/PATH are the same)
        jsonl:DIR           a folder of nanobot's session files; with ?names=base64url, or
                            ?names=plain, for new files the names of a nanobot of today or of early
                            2026 (unless told, those of the files that are there)
        postgresql://...    a PostgreSQL database; several hosts may be named (needs the extra
                            holdfast[postgres])

    Other schemes come from packages that register in the entry-point group `holdfast.stores`.
    `options` go to the store: `limits`, and for those on disk `durability`, "sync" or "fast".
    """
    ...

def open_provider(name: str, **options: Any) -> Provider:
    """The provider of a model, by its name "vendor:model". Nothing is sent before the first call.

        anthropic:claude-sonnet-4-5     ANTHROPIC_API_KEY
        openai:gpt-5                    OPENAI_API_KEY; with `base_url`, any server that speaks it
        google:gemini-2.5-pro           GEMINI_API_KEY or GOOGLE_API_KEY
        github:openai/gpt-4.1           GITHUB_TOKEN; Copilot with an OAuth token in `token_file`
        antigravity:claude-sonnet-4-5   ANTIGRAVITY_ACCOUNTS, the file of your own Google accounts
        ollama:qwen3                    no key; OLLAMA_HOST, or this machine
        local:smollm2-135m              no key: a small model in a process of its own
        claude-cli:sonnet               the login of Claude Code, whose program `claude` is started

    Others come from packages that register in the entry-point group `holdfast.providers`.

    These options are the same for all: `api_key` (a string, or a function that gives one),
    `base_url`, `timeout` (seconds, or `holdfast.providers.pipe.Timeouts`), `tries_max`, `size_max`
    (bytes of an answer), and, where you know better than the table of models, `context_limit`,
    `output_limit`, `prices`. Those over HTTP take `headers`, `client` (your own
    `httpx2.AsyncClient`, which you close) and `proxy`. The rest belongs to the vendor; an option
    that nobody knows is InvalidInput.
    """
    ...
