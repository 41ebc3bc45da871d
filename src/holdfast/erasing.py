"""Erasing: what a message said is really gone, from the log and from everything made of it.

With a message go those that cannot stand without it (a call and its results), its copies on other
branches, marks that repeat its words, folds whose summary was written from it, and what a draft
holds of it. Where such a fold hid messages, another hides them, which says nothing. What a memory
has of it goes before the log is changed. Sessions that were forked from this one are sessions of
their own and keep what they have.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import NamedTuple

from holdfast.conversation import STEER, Conversation, covers
from holdfast.entries import Fold, Mark
from holdfast.errors import Busy, InvalidInput
from holdfast.messages import Message
from holdfast.notes import folded
from holdfast.steps import drafts
from holdfast.steps.cleanup import SENT
from holdfast.steps.drafts import Draft
from holdfast.steps.leftovers import ABANDONED, abandoned, has_answer
from holdfast.stores.values import Stored

What = Message | str | int
Forgetting = Callable[[Collection[int]], AbstractAsyncContextManager[None]]
_HOLD = timedelta(seconds=5)
_Line = Sequence[Stored]


class _Said(NamedTuple):
    """A row that is a message."""

    seq: int
    entry: Message


async def erase(talk: Conversation, what: What, forgetting: Forgetting) -> int:
    """Erase a message (itself, or its id) or a turn (its number, from 1); how many entries went.

    A message is looked for on all branches, and in what was said and never answered; turns are
    those of the branch in use. Busy if a turn runs that has to do with it.
    """
    lines = await _lines(talk)
    rows = list({row.seq: row for line in lines.values() for row in line}.values())
    ids = _with_partners(rows, _chosen(talk, lines, what))
    chosen = {row.seq for row in _messages(rows) if row.entry.id in ids}
    marks = _marks(rows, ids)
    _check_running(talk, lines, ids, chosen)
    async with forgetting(chosen):
        await _rewrite_draft(talk, lines, ids)
        hidden = await _fold_again(talk, lines, chosen)
        return await talk.tenant.erase(talk.id, sorted(chosen | hidden | marks))


async def _lines(talk: Conversation) -> dict[str, _Line]:
    """All branches, by their names; what one shares with its parent is read once."""
    lines: dict[str, _Line] = {}
    for branch in talk.record.branches:  # a parent was opened before its branches
        parent = () if branch.parent is None else lines[branch.parent]
        shared = [row for row in parent if row.seq <= branch.fork]
        said = sum(row.kind == "message" for row in shared)
        read = await talk.tenant.read(talk.id, branch.name, max(0, said - 1))
        lines[branch.name] = [*shared, *(row for row in read if row.seq > branch.fork)]
    return lines


def _messages(rows: Iterable[Stored]) -> list[_Said]:
    return [_Said(row.seq, row.entry) for row in rows if type(row.entry) is Message]


# What goes


def _chosen(talk: Conversation, lines: Mapping[str, _Line], what: object) -> set[str]:
    """The ids of the messages that are meant."""
    if isinstance(what, int) and not isinstance(what, bool):
        if found := _turn(lines[talk.branch], what):
            return found
        raise InvalidInput("erase", f"finds no turn {what} on this branch")
    if not isinstance(what, Message | str):
        raise InvalidInput("erase", "takes a message, its id, or the number of a turn")
    id = what if isinstance(what, str) else what.id
    known: set[str | None] = {row.entry.id for line in lines.values() for row in _messages(line)}
    known |= {_abandoned(row) for line in lines.values() for row in line}
    known |= {draft.message.id for draft in _drafts(talk)}
    if id not in known:
        raise InvalidInput("erase", f"finds no message {id!r:.100} in this session")
    return {id}


def _turn(rows: Iterable[Stored], index: int) -> set[str]:
    turn = 0
    found = set()
    for row in _messages(rows):
        turn += row.entry.starts_turn
        if turn == index and turn:
            found.add(row.entry.id)
    return found


def _abandoned(row: Stored) -> str | None:
    """The id of a message that was never answered, and is kept by this mark."""
    mark = row.entry
    return mark.about if type(mark) is Mark and mark.what == ABANDONED else None


def _drafts(talk: Conversation) -> tuple[Draft, ...]:
    draft = drafts.read(talk.record.draft)
    return () if draft is None else (*draft.before, draft)


def _with_partners(rows: Sequence[Stored], chosen: set[str]) -> set[str]:
    """The messages, those that called for their results, and all results of these."""
    by_call: dict[str, set[str]] = {}  # all messages that have to do with a call
    calls: dict[str, set[str]] = {}
    for row in _messages(rows):
        names = {call.id for call in row.entry.calls}
        names |= {result.call_id for result in row.entry.results if result.call_id is not None}
        calls.setdefault(row.entry.id, set()).update(names)
        for name in names:
            by_call.setdefault(name, set()).add(row.entry.id)
    found, waiting = set(chosen), list(chosen)
    while waiting:
        for name in calls.get(waiting.pop(), ()):
            new = by_call[name] - found
            found |= new
            waiting += new
    return found


def _marks(rows: Sequence[Stored], ids: Collection[str]) -> set[int]:
    """Marks that repeat what was said, or from which it could be guessed."""
    said = [row.entry for row in _messages(rows) if row.entry.id in ids]
    steering = {message.extra.get(STEER) for message in said}
    once = {message.extra.get("once") for message in said} - {None}
    found = set()
    for row in rows:
        mark = row.entry
        if type(mark) is Mark and (
            mark.about in ids or mark.id in steering or _once_of(mark) in once
        ):
            found.add(row.seq)
    return found


def _once_of(mark: Mark) -> object:
    """The name under which what it speaks of was sent."""
    if mark.what == ABANDONED and (message := abandoned(mark)) is not None:
        return message.extra.get("once")
    return mark.data.get("once") if mark.what == SENT else None


# What is made of it


async def _fold_again(
    talk: Conversation, lines: Mapping[str, _Line], chosen: Collection[int]
) -> set[int]:
    """The folds that were made of it. What they hide stays hidden, behind a note that says nothing.

    On each branch where such a fold is in force there is another then.
    """
    found: set[int] = set()
    for name, line in lines.items():
        folds = [row for row in line if type(row.entry) is Fold]
        made = _made_of(line, chosen)
        found |= made
        again = []
        for place, row in enumerate(folds):
            is_in_force = not any(covers(later.entry, row.entry) for later in folds[place + 1 :])
            if row.seq in made and is_in_force:
                again.append(_saying_nothing(row.entry, line))
        if again:
            await talk.tenant.append(talk.id, again, branch=name)
    return found


def _made_of(line: _Line, chosen: Collection[int]) -> set[int]:
    """The folds of a branch that were made of what is erased, or of others that were.

    One is made of what it hides. A summary may tell as well what is hidden without a summary by
    folds that were made with it: it stands where the first of several parts was, for all of them.
    """
    seqs = [row.seq for row in line if row.seq in chosen]
    found: set[int] = set()
    told: list[Fold] = []  # the summaries among those that are found
    for batch in _made_together(line):
        silent = [fold for _, fold in batch if not _is_summary(fold)]
        for seq, fold in batch:
            is_summary = _is_summary(fold)
            parts = [fold, *silent] if is_summary else [fold]
            is_of_it = any(part.first <= each <= part.last for part in parts for each in seqs)
            is_of_told = is_summary and any(
                _overlaps(part, each) for part in parts for each in told
            )
            if fold.replacement is not None and (is_of_it or is_of_told):
                found.add(seq)
                told += [fold] if is_summary else []
    return found


def _made_together(line: _Line) -> list[list[tuple[int, Fold]]]:
    """The folds of a branch, those in one list that stand side by side and are the same one's."""
    batches: list[list[tuple[int, Fold]]] = []
    before: Fold | None = None
    for row in line:
        fold = row.entry if type(row.entry) is Fold else None
        if fold is not None and before is not None and fold.by and fold.by == before.by:
            batches[-1].append((row.seq, fold))
        elif fold is not None:
            batches.append([(row.seq, fold)])
        before = fold
    return batches


def _is_summary(fold: Fold) -> bool:
    return fold.replacement is not None and fold.replacement.synthetic == "summary"


def _overlaps(a: Fold, b: Fold) -> bool:
    return a.first <= b.last and b.first <= a.last


def _saying_nothing(fold: object, line: _Line) -> Fold:
    assert type(fold) is Fold
    covered = [each.entry for each in _messages(line) if fold.first <= each.seq <= fold.last]
    turns = sum(message.starts_turn for message in covered) or 1
    why = "a message that it was made of was erased"
    return Fold(first=fold.first, last=fold.last, replacement=folded(turns, covered[-1]), why=why)


# What a turn that was cut off holds


def _check_running(
    talk: Conversation, lines: Mapping[str, _Line], ids: Collection[str], chosen: Collection[int]
) -> None:
    """A turn that runs may say again what is erased of it; all else can go beside it."""
    draft = drafts.read(talk.record.draft)
    if draft is None or not draft.is_running:
        return
    line = lines.get(draft.branch, ())
    start = next((row.seq for row in _messages(line) if row.entry.id == draft.message.id), None)
    own = {row.seq for row in line if start is not None and row.seq >= start}
    if draft.message.id in ids or own & set(chosen):
        raise Busy(talk.record.key, draft.owner)


async def _rewrite_draft(
    talk: Conversation, lines: Mapping[str, _Line], ids: Collection[str]
) -> None:
    """Take out of a draft what goes, and what the log has anyway."""
    left = talk.record.draft
    if left is None or left.is_running:
        return

    def is_stored(draft: Draft) -> bool:
        return has_answer(lines.get(draft.branch, ()), draft.at or 0)

    kept = drafts.rewritten(left, lambda draft: draft.message.id not in ids, is_stored)
    input = {} if kept is None else kept.input
    lease = await talk.tenant.begin(talk.id, left.owner, _HOLD, input)
    if kept is not None:
        await talk.tenant.journal(lease, kept.journal)
    await talk.tenant.release(lease, drop=kept is None)
