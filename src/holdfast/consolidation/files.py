"""The files of one memory: MEMORY.md, HISTORY.md, and what is known of both.

Whoever changes anything here holds the lock of the memory. A consolidation touches three things
that no system changes together: two files, and a counter in a store. So a fourth one decides:

    decide   state.json is put in place, with all that has to be done: from then on it is done
    finish   MEMORY.md is replaced, HISTORY.md and made.jsonl are added to; each of these can be
             done again and changes nothing then
    move     state.json says that they are done, and that a counter has to be moved
    moved    the counter has been moved

Whoever comes after a crash goes on with it, before anything else is looked at. Until the counter
has been moved, its session's place is the one that is written here.
"""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from holdfast import text
from holdfast.consolidation import disk, state
from holdfast.consolidation.places import OWN
from holdfast.consolidation.state import Made, Move, Owner, Pending, Shown, State

MEMORY, HISTORY = "MEMORY.md", "HISTORY.md"
VERSIONS_MAX = 10


class Seen(NamedTuple):
    """MEMORY.md as it stands, and the digest of its bytes."""

    memory: str
    digest: str


class Entry(NamedTuple):
    """What a consolidation came to. `memory` is None where MEMORY.md stays as it is."""

    owner: Owner
    move: Move
    seqs: tuple[int, ...]
    entry: str
    memory: str | None


class Files:
    """A folder of memory. What is done here takes the time of a disk."""

    def __init__(self, folder: Path, versions_max: int = VERSIONS_MAX) -> None:
        self.folder = folder
        self.memory = folder / MEMORY
        self.history = folder / HISTORY
        self._own = folder / OWN
        self._state = self._own / "state.json"
        self._made = self._own / "made.jsonl"
        self._versions = self._own / "versions"
        self._versions_max = versions_max

    # Reading

    def seen(self) -> Seen:
        """MEMORY.md, whatever wrote it."""
        data = disk.read(self.memory)
        return Seen(text.decode(data)[0], state.digest(data))

    def past(self) -> str:
        """HISTORY.md, whatever wrote it."""
        return text.decode(disk.read(self.history))[0]

    def settled(self) -> State:
        """How it stands, once everything that was decided is carried out."""
        now = self._read()
        return now if now.pending is None else self._finish(now, now.pending)

    def _read(self) -> State:
        data = disk.read(self._state)
        return state.read(data, State, self._state) if data else State()

    def made(self) -> list[Made]:
        """What the entries of HISTORY.md were made of."""
        data = disk.read(self._made)
        return [state.read(line, Made, self._made) for line in data.split(b"\n") if line]

    # A consolidation

    def decide(self, what: Entry) -> State:
        """Do it: once this has begun to be there, it is there whole, whatever happens."""
        now = self.settled()
        number = now.number + 1
        before = self.seen().memory
        memory = None if what.memory is None or what.memory == before else what.memory
        lines = now.lines
        if memory is not None:
            lines = state.origins(memory, before, now.lines, number)
        line = Made(
            number=number,
            session=what.move.session,
            seqs=what.seqs,
            entry=what.entry,
            is_remembered=memory is not None,
        )
        pending = Pending(
            move=what.move,
            memory=memory,
            lines=lines,
            entry=what.entry,
            history_at=disk.size(self.history),
            made=state.written(line).decode(),
            made_at=disk.size(self._made),
        )
        owners = {**now.owners, what.move.session: what.owner}
        return self._finish(self._save(now, pending=pending, owners=owners), pending)

    def _finish(self, now: State, pending: Pending) -> State:
        number = now.number + 1
        if pending.memory is not None:
            self._rewrite(pending.memory, number)
        if pending.entry:
            self._add_entry(pending)
        if pending.entry or pending.memory is not None:  # redaction may leave one of them alone
            disk.add(self._made, pending.made_at, pending.made.encode())
        moves = (*now.moves, pending.move)
        return self._save(now, number=number, lines=pending.lines, moves=moves, pending=None)

    def _rewrite(self, memory: str, number: int) -> None:
        """Replace MEMORY.md; what stood there, whoever wrote it, is kept as a version."""
        before = disk.read(self.memory)
        if before == memory.encode():
            return
        if before:
            disk.write(self._versions / f"{number}.md", before)
        disk.write(self.memory, memory.encode())
        for _, path in list(disk.numbered(self._versions))[: -self._versions_max or None]:
            disk.remove(path)

    def _add_entry(self, pending: Pending) -> None:
        before = disk.read(self.history)[: pending.history_at]
        gap = b"" if not before or before.endswith(b"\n") else b"\n\n"
        entry = pending.entry.rstrip() + "\n\n"
        disk.add(self.history, pending.history_at, gap + entry.encode())

    def moved(self, move: Move) -> State:
        """A counter stands where it has to, or its session is gone."""
        now = self.settled()
        return self._save(now, moves=tuple(each for each in now.moves if each != move))

    def note(self, session: str, owner: Owner) -> None:
        """Remember something of a session."""
        now = self.settled()
        self._save(now, owners={**now.owners, session: owner})

    def _save(self, now: State, **changes: object) -> State:
        new = state.changed(now, changes)
        disk.write(self._state, state.written(new))
        return new

    # What a model is shown

    def shown(self, session: str) -> Shown | None:
        """What a session's model is shown; None if nothing ever was."""
        path = self._shown(session)
        data = disk.read(path)
        return state.read(data, Shown, path) if data else None

    def show(self, session: str, owner: Owner, memory: str) -> None:
        """From now on, this is shown."""
        there = self.shown(session)
        if (there.text if there else "") == memory:
            return
        number = self.settled().number
        shown = Shown(tenant=owner.tenant, key=owner.key, number=number, text=memory)
        disk.write(self._shown(session), state.written(shown))

    def _shown(self, session: str) -> Path:
        return self._own / "shown" / f"{session}.json"

    # Taking away

    def owners(self) -> dict[str, Owner]:
        """The sessions that something is kept of, or shown to."""
        found = dict(self._read().owners)
        folder = self._own / "shown"
        for path in folder.glob("*.json") if folder.is_dir() else ():
            if path.stem not in found and (shown := self.shown(path.stem)):
                found[path.stem] = Owner(tenant=shown.tenant, key=shown.key)
        return found

    def forget(self, session: str, seqs: Collection[int] | None) -> None:
        """Take away what was made of these messages of a session, or of all of them.

        The entries of HISTORY.md go whole. Of MEMORY.md the lines stay that stood there, word for
        word, before the first of these entries was made: every later one was written by a model
        that had read what has to go. So do the versions from before, and no others.

        What tells which these are goes last: cut off anywhere, this can be done again.
        """
        now, made = self.settled(), self.made()
        gone = [each for each in made if _is_of(each, session, seqs)]
        if remembered := [each.number for each in gone if each.is_remembered]:
            self._forget_from(now, min(remembered))
        self._cut([each.entry for each in gone])
        self._sweep()
        if seqs is None:
            disk.remove(self._shown(session))
        self._forget_made(now, session, seqs, [each for each in made if each not in gone])

    def _forget_from(self, now: State, first: int) -> None:
        memory = self.seen().memory
        kept = state.without(memory, now.lines, first)
        if kept != memory:
            disk.write(self.memory, kept.encode())
        for number, path in disk.numbered(self._versions):
            if number > first:
                disk.remove(path)
        for session in self.owners():
            shown = self.shown(session)
            if shown is not None and shown.number >= first:
                again = state.changed(shown, {"number": first - 1, "text": kept})
                disk.write(self._shown(session), state.written(again))

    def _cut(self, entries: Sequence[str]) -> None:
        """Take entries out of HISTORY.md."""
        before = history = disk.read(self.history)
        for entry in entries:
            if whole := entry.rstrip().encode():
                history = _cut_out(history, whole)
        if history != before:
            disk.write(self.history, history)

    def _sweep(self) -> None:
        """Take away what a write that was cut off has left."""
        for folder in (self.folder, self._own, self._versions, self._own / "shown"):
            for path in folder.glob("*.tmp") if folder.is_dir() else ():
                if folder is not self.folder or path.stem in (MEMORY, HISTORY):
                    disk.remove(path)

    def _forget_made(
        self, now: State, session: str, seqs: Collection[int] | None, kept: Sequence[Made]
    ) -> None:
        lines = {state.digest(line) for line in self.seen().memory.splitlines()}
        owners, moves = dict(now.owners), now.moves
        if seqs is None:
            owners.pop(session, None)
            moves = tuple(each for each in moves if each.session != session)
        elif session in owners:  # an error may repeat what its model was asked
            owners[session] = state.changed(owners[session], {"why": ""})
        still = {name: number for name, number in now.lines.items() if name in lines}
        if (still, owners, moves) != (now.lines, now.owners, now.moves):
            self._save(now, lines=still, owners=owners, moves=moves)
        if len(kept) != len(self.made()):
            disk.write(self._made, b"".join(map(state.written, kept)))

    def remove(self) -> None:
        """Take all of it away; what tells where it is from goes last here too."""
        for path in (self.memory, self.history):
            disk.remove(path)
        disk.remove_all(self.folder)


def _is_of(made: Made, session: str, seqs: Collection[int] | None) -> bool:
    return made.session == session and (seqs is None or not set(seqs).isdisjoint(made.seqs))


def _cut_out(history: bytes, entry: bytes) -> bytes:
    """The history without an entry; where somebody has changed that, without its lines."""
    for piece in (entry + b"\n\n", entry):
        at = _place(history, piece)
        if at >= 0:
            return history[:at] + history[at + len(piece) :]
    lines = {line for line in entry.splitlines() if line.strip()}
    kept = history.splitlines(keepends=True)
    return b"".join(line for line in kept if line.rstrip(b"\r\n") not in lines)


def _place(history: bytes, piece: bytes) -> int:
    """Where it stands: at the beginning of a line, or else anywhere; below 0 if it does not."""
    at = history.find(piece)
    while at > 0 and history[at - 1 : at] != b"\n":  # another entry may end with the same words
        at = history.find(piece, at + 1)
    return at if at >= 0 else history.find(piece)
