"""What has to be true between any two steps of a state machine of turns, as a plain model.

The book holds every row of every branch as it was last seen. From step to step a log only grows:
what was seen has to be there again, at the same place, but for what the step was told to erase.
So whatever was ever acknowledged is looked for for ever.
"""

import re
from collections import Counter
from pathlib import Path

from faults.turn_oracle import request_problems
from holdfast import codec
from holdfast.entries import Fold, Mark
from holdfast.errors import SessionNotFound
from holdfast.messages import Message
from stateful_world import VENDORS, WORD


class Book:
    """Sessions by key: for each branch its rows, and what users said and where it has to be."""

    def __init__(self, world):
        self.world = world
        self.keys = []
        self.branches = {}  # by key and name of the branch: rows
        self.inputs = {}  # by the id of the session, and that of the message: what was said
        self.gone = {}  # by the id of the session: words that were erased
        self.given = []  # key and id: what the results of turns had since the last step
        self.steps = 0

    def ids(self, key):
        """The ids of all messages of a session, on all branches."""
        return {_id(row) for rows in self.branches[key].values() for row in rows} - {None}

    # What a step may do

    def may_erase(self, key, chosen):
        """Messages that are to go, with all that cannot stand without them: by their ids."""
        rows = [row for rows in self.branches[key].values() for row in rows]
        found = set(chosen)
        while True:
            calls = {name for row in rows if _id(row) in found for name in _call_ids(row.entry)}
            more = {_id(row) for row in rows if calls & _call_ids(row.entry)} - found
            if not more:
                return found
            found |= more

    def erased(self, session, ids):
        """The step has erased these messages: their words are nowhere."""
        rows = [row for rows in self.branches[session.key].values() for row in rows]
        words = {word for row in rows if _id(row) in ids for word in words_of(row.entry)}
        self.gone.setdefault(session.id, set()).update(words)
        self.unsay(session.id, ids)

    def unsay(self, session_id, ids):
        """These messages need not be there any more, nor what was sent again in their words."""
        said = self.inputs.get(session_id, {})
        texts = {said[id] for id in ids if id in said}
        self.inputs[session_id] = {id: text for id, text in said.items() if text not in texts}

    def cleared(self, session):
        """Nothing of the conversation is left."""
        rows = [row for rows in self.branches[session.key].values() for row in rows]
        words = {word for row in rows for word in words_of(row.entry)}
        self.gone.setdefault(session.id, set()).update(words)
        self.branches.pop(session.key)
        self.inputs.pop(session.id, None)

    def forget(self, key):
        """The session was deleted."""
        self.keys.remove(key)
        self.branches.pop(key, None)

    # What has to be true

    async def check(self, erasable=frozenset()):
        """Everything. `erasable` are the ids of messages that may be gone since the last time."""
        self.steps += 1
        world = self.world
        assert world.wrong == [], world.wrong
        for id, message in world.begun:
            self.inputs.setdefault(id, {})[message.id] = message.text
        world.begun.clear()
        for key in self.keys:
            session = await world.manager.get(key)
            await session.refresh()
            await self._check_session(session, erasable)
        lost = [(key, id) for key, id in self.given if id not in self.ids(key)]
        assert not lost, f"given to a caller and lost: {lost}"
        self.given.clear()
        world.acknowledged.clear()
        twice = Counter(key for kind, key in world.effects.all() if kind == "once")
        assert not [key for key, times in twice.items() if times > 1], "a tool ran twice"
        assert (await world.tenant.verify()).problems == ()

    async def _check_session(self, session, erasable):
        found = {}
        for branch in session.branches:
            found[branch.name] = rows = await self.world.tenant.read(session.id, branch.name)
            check_places(branch, rows)
            check_forked(branch, rows, found, session)
        for name, before in self.branches.get(session.key, {}).items():
            check_grown(name, before, found[name], erasable)
        for id, name, entries in self.world.acknowledged:
            if id == session.id:
                there = {getattr(row.entry, "id", None) for row in found[name]} | set(erasable)
                lost = [each for each in entries if each.id not in there]
                assert not lost, f"acknowledged on {name!r} and lost: {lost}"
        self.branches[session.key] = found
        self._check_inputs(session, found)
        self._check_gone(session, found)
        await check_session(session, found[session.branch])
        self._check_window(session)

    def _check_inputs(self, session, found):
        rows = [row.entry for rows in found.values() for row in rows if row.entry is not None]
        there = {entry.id for entry in rows if isinstance(entry, Message)}
        there |= {e.about for e in rows if isinstance(e, Mark) and e.what == "abandoned"}
        if session.draft is not None:
            there |= {each.message.id for each in (session.draft, *session.draft.before)}
        sent = {e.text for e in rows if isinstance(e, Message) and "once" in e.extra}  # not again
        said = self.inputs.get(session.id, {})
        lost = [text for id, text in said.items() if id not in there and text not in sent]
        assert not lost, f"a user said this, and it is lost: {lost}"

    def _check_gone(self, session, found):
        entries = [row.entry for rows in found.values() for row in rows]
        there = {word for entry in entries for word in words_of(entry)} | draft_words(session)
        back = there & self.gone.get(session.id, set())
        assert not back, f"erased, and still there: {back}"

    def _check_window(self, session):
        """As the next vendor would be asked, each in its turn."""
        window = session.window(VENDORS[self.steps % len(VENDORS)])
        if window.messages:
            wrong = request_problems(window.messages, window.system, window.tools)
            assert wrong == [], wrong

    async def check_searched(self, session):
        """No search finds what was erased."""
        for word in sorted(self.gone.get(session.id, ()))[:5]:
            found = await self.world.tenant.search(word, session=session.id)
            assert found.items == (), f"{word} is found: {found.items}"

    def check_bytes(self):
        """With the store closed: what was erased is in no file, unless another session has it."""
        living = set().union(*(words_of(row.entry) for row in self._rows()), *self._drafted())
        gone = set().union(*self.gone.values()) - living if self.gone else set()
        for path in Path(self.world.path).parent.iterdir():
            if path.is_file() and not path.name.endswith(".effects"):
                left = gone & {word.decode() for word in _BYTES.findall(path.read_bytes())}
                assert not left, f"{path.name} holds {left}"

    def _rows(self):
        lines = [rows for branches in self.branches.values() for rows in branches.values()]
        return [row for rows in lines for row in rows]

    def _drafted(self):
        return [
            set(WORD.findall(text or "")) for by in self.inputs.values() for text in by.values()
        ]


_BYTES = re.compile(WORD.pattern.encode())


def _id(row):
    return row.entry.id if isinstance(row.entry, Message) else None


def _call_ids(entry):
    if not isinstance(entry, Message):
        return set()
    return {call.id for call in entry.calls} | {each.call_id for each in entry.results}


def words_of(entry):
    """The words that are said in an entry."""
    return set() if entry is None else set(WORD.findall(codec.record(entry).decode()))


def draft_words(session):
    """The words of what was cut off, and of the output that is written down of it."""
    record = session._record.draft
    return set() if record is None else set(WORD.findall(f"{record.input} {record.chunks}"))


def check_places(branch, rows):
    """Seqs grow, positions count messages, and the branch knows how many it has."""
    seqs = [row.seq for row in rows]
    assert seqs == sorted(set(seqs)), f"{branch.name!r} has seqs {seqs}"
    said = 0
    for row in rows:
        said += row.kind == "message"
        assert row.position == max(0, said - 1), f"{row} is not at position {said - 1}"
    assert branch.count == said
    assert branch.head == (seqs[-1] if seqs else branch.fork) or not seqs


def check_forked(branch, rows, found, session):
    """A branch begins as its parent does up to where it forked."""
    if branch.parent is None or branch.parent not in found:
        return
    shared = [row.seq for row in found[branch.parent] if row.seq <= branch.fork]
    assert [row.seq for row in rows if row.seq <= branch.fork] == shared, session.key


def check_grown(name, before, now, erasable):
    """What was there is there, at its place, but for what may be gone."""
    assert len(now) >= len(before), f"{name!r} had {len(before)} entries and has {len(now)}"
    hidden = {row.seq for row in before if _id(row) in erasable}
    for old, new in zip(before, now, strict=False):
        assert (old.seq, old.kind) == (new.seq, new.kind), f"{new} is in the place of {old}"
        if new.entry is None and old.entry is not None:
            assert is_erasable(old.entry, erasable, hidden), f"{old} was erased too"
        elif new.entry is not None:
            assert new.entry == old.entry, f"{old} has changed to {new}"


def is_erasable(entry, erasable, hidden):
    """A message that may go, a mark about it, or a fold that was made of it."""
    if isinstance(entry, Fold):
        return any(entry.first <= seq <= entry.last for seq in hidden)
    about = getattr(entry, "about", None)
    return getattr(entry, "id", None) in erasable or about in erasable or is_steering(entry)


def is_steering(entry):
    return isinstance(entry, Mark) and entry.what in ("steer", "sent")


async def check_session(session, rows):
    """What a session says of itself is what its branch holds."""
    said = [row.entry for row in rows if row.kind == "message"]
    there = [entry for entry in said if entry is not None]
    assert session.count == len(said)
    assert list(session.messages) == there[len(there) - len(session.messages) :]
    assert await session.read() == tuple(there)
    assert session.draft is None or not session.draft.is_running
    starts = [at for at, each in enumerate(said) if each is not None and each.starts_turn]
    turns = await session.turns()
    assert [(turn.index, turn.first) for turn in turns] == list(enumerate(starts, start=1))
    assert [turn.last for turn in turns] == [*(at - 1 for at in starts[1:]), len(said) - 1][
        : len(starts)
    ]


async def is_there(world, key):
    try:
        await world.tenant.load(key)
    except SessionNotFound:
        return False
    return True
