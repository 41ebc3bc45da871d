"""The view: what a model is shown of a log, with its folds applied.

    view = View(count)                    # count: tokens of a message, for one family of models
    for seq, entry in log:                # the entries of one branch, in order
        view.add(seq, entry)
    view.rendered()                       # messages that can be sent
    view.total                            # their tokens
    view.items                            # what is shown and what it stands for: what policies see

A message is shown unless the latest fold over it hides it. A fold's replacement stands in the place
of the first message that the fold covers; a fold that a later one covers whole says nothing any
more, one that is covered in part still shows its replacement. An open fold shows what earlier ones
hid.

A call and its results go together. A result whose call is hidden is hidden too; one that is hidden
while its call is shown leaves a note in its place, so that the model does not take the call for one
that failed.

A message more costs what that message costs; a fold costs one pass over all.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from holdfast.entries import Entry, Fold
from holdfast.messages import Message, Role
from holdfast.notes import folded_result
from holdfast.window.render import Rendered, Renderer

Count = Callable[[Message], int]


class Item(NamedTuple):
    """Something that is shown: a message of the log, or what a fold puts in the place of some.

    message    what is shown, before it is rendered
    tokens     of it, as counted
    first      the seq of the message, or of the first and the last that the fold covers
    last
    turn       the turn of the first of them, counted from 1; 0 is what stands before all turns
    fold       the fold, if it is one
    """

    message: Message
    tokens: int
    first: int
    last: int
    turn: int
    fold: Fold | None = None


class Group(NamedTuple):
    """What is shown of one turn: items[start:stop]."""

    turn: int
    start: int
    stop: int
    tokens: int


class _Said:
    """A message of the log, and what it belongs to."""

    __slots__ = ("calls", "message", "owners", "seq", "turn")

    def __init__(self, seq: int, message: Message, turn: int) -> None:
        self.seq = seq
        self.message = message
        self.turn = turn
        self.calls: dict[str, None] = {}  # of an assistant's message: the ids of its calls
        self.owners: tuple[_Said, ...] = ()  # of results: the messages that called for them


class View:
    """A log as a model is shown it. `turns` is how many turns stand before what is added."""

    def __init__(self, count: Count, *, turns: int = 0) -> None:
        self._count = count
        self._turns_before = turns
        self._turn = turns
        self._said: list[_Said] = []
        self._folds: list[tuple[int, Fold]] = []
        self._callers: dict[str, _Said] = {}  # the latest message that made a call of this id
        self._last_folded = 0
        self._items: list[Item] = []
        self._renderer = Renderer(count)
        self._made: dict[Any, Any] = {}
        self._rendered: Rendered | None = None

    @property
    def count(self) -> Count:
        """How the tokens of a message are counted here."""
        return self._count

    @property
    def items(self) -> tuple[Item, ...]:
        """All that is shown, in order, before it is rendered."""
        return tuple(self._items)

    @property
    def folds(self) -> tuple[Fold, ...]:
        """The folds that say something, in the order in which they were made."""
        return tuple(fold for _, fold in self._folds)

    @property
    def turn(self) -> int:
        """The number of the latest turn; 0 when there is none."""
        return self._turn

    @property
    def total(self) -> int:
        """The tokens of all that is shown, rendered."""
        return self._renderer.total

    @property
    def tokens(self) -> tuple[int, ...]:
        """The tokens of each message that is shown, rendered."""
        return tuple(self._renderer.tokens)

    def __len__(self) -> int:
        """How many items are shown."""
        return len(self._items)

    def add(self, seq: int, entry: Entry) -> None:
        """The next entry of the branch. Entries that are never shown change nothing."""
        if type(entry) is Message:
            said = self._place(seq, entry)
            self._said.append(said)
            if seq <= self._last_folded:
                self._show_again()
            elif not self._is_orphaned(said):
                self._show(self._item(said))
            self._rendered = None
        elif type(entry) is Fold:
            kept = [each for each in self._folds if not _covers(entry, each[1])]
            self._folds = [*kept, (seq, entry)]
            self._last_folded = max(self._last_folded, entry.last)
            self._show_again()

    def rendered(self) -> Rendered:
        """What is shown, as it can be sent."""
        if self._rendered is None:
            self._rendered = self._renderer.rendered(self._made)
        return self._rendered

    def with_folds(self, folds: Iterable[Fold]) -> "View":
        """Another view: as this one would be with these folds."""
        view = View(self._count, turns=self._turns_before)
        for each in self._said:
            view._said.append(view._place(each.seq, each.message))
        top = self._said[-1].seq if self._said else 0
        view._folds = list(self._folds)
        for seq, fold in enumerate(folds, start=top + 1):
            kept = [each for each in view._folds if not _covers(fold, each[1])]
            view._folds = [*kept, (seq, fold)]
        view._last_folded = max((fold.last for _, fold in view._folds), default=0)
        view._show_again()
        return view

    def groups(self) -> tuple[Group, ...]:
        """The items by turns, in order."""
        found: list[Group] = []
        start = tokens = 0
        for index, item in enumerate(self._items):
            if index and item.turn != self._items[start].turn:
                found.append(Group(self._items[start].turn, start, index, tokens))
                start, tokens = index, 0
            tokens += item.tokens
        if self._items:
            found.append(Group(self._items[start].turn, start, len(self._items), tokens))
        return tuple(found)

    # The log

    def _place(self, seq: int, message: Message) -> _Said:
        """A message, with its turn and, if it is a result, who called for it."""
        self._turn += message.starts_turn
        said = _Said(seq, message, self._turn)
        role = message.role.canonical
        if role is Role.ASSISTANT:
            for call in message.tool_calls:
                if call.output is None:
                    said.calls[call.id] = None
                    self._callers[call.id] = said
        elif role is Role.TOOL or message.tool_call_id is not None:
            ids = [result.call_id for result in message.results]
            owners = [self._callers.get(id) for id in ids if id is not None]
            if owners and len(owners) == len(ids) and None not in owners:
                said.owners = tuple(owners)  # type: ignore[arg-type]
        return said

    # What is shown

    def _show_again(self) -> None:
        """Everything from the beginning, after a fold."""
        self._items = []
        self._renderer = Renderer(self._count)
        for item in self._all_items():
            self._show(item)
        self._rendered = None

    def _show(self, item: Item) -> None:
        self._items.append(item)
        self._renderer.add(item.message)

    def _item(self, said: _Said) -> Item:
        return Item(said.message, self._count(said.message), said.seq, said.seq, said.turn)

    def _all_items(self) -> Iterator[Item]:
        hidden = self._hidden()
        waiting = sorted(self._folds, key=lambda each: (each[1].first, each[0]))
        place = 0
        for said in self._said:
            while place < len(waiting) and waiting[place][1].first <= said.seq:
                yield from self._replacement(waiting[place][1], said.turn)
                place += 1
            if said.seq not in hidden:
                yield self._item(said)
            elif said.owners and all(owner.seq not in hidden for owner in said.owners):
                yield from self._notes(said)
        # Folds over nothing that is there say nothing.

    def _hidden(self) -> set[int]:
        """The messages that are not shown, with the results whose calls are not."""
        hidden = set(_covered([said.seq for said in self._said], self._folds))
        shown = [fold.replacement for _, fold in self._folds if fold.replacement is not None]
        kept = {call.id for message in shown for call in message.tool_calls}
        for said in self._said:
            is_orphan = said.owners and all(owner.seq in hidden for owner in said.owners)
            if is_orphan and kept.isdisjoint(each.call_id for each in said.message.results):
                hidden.add(said.seq)
        return hidden

    def _is_orphaned(self, said: _Said) -> bool:
        """Whether a new message answers calls that are all folded away."""
        if not said.owners or not self._last_folded:
            return False
        if min(owner.seq for owner in said.owners) > self._last_folded:
            return False
        hidden = self._hidden()
        return all(owner.seq in hidden for owner in said.owners)

    def _replacement(self, fold: Fold, turn: int) -> Iterator[Item]:
        message = fold.replacement
        if message is None or fold.is_open:
            return
        yield Item(message, self._count(message), fold.first, fold.last, turn, fold)

    def _notes(self, said: _Said) -> Iterator[Item]:
        """In the place of results that are hidden while their calls are shown."""
        answered = {
            result.call_id
            for _, fold in self._folds
            if fold.replacement is not None and fold.first <= said.seq <= fold.last
            for result in fold.replacement.results
        }
        for index, result in enumerate(said.message.results):
            if result.call_id not in answered:
                note = folded_result(said.message, result, index)
                yield Item(note, self._count(note), said.seq, said.seq, said.turn)


def _covers(later: Fold, earlier: Fold) -> bool:
    return later.first <= earlier.first and earlier.last <= later.last


def _covered(seqs: list[int], folds: list[tuple[int, Fold]]) -> Iterator[int]:
    """Those of `seqs`, in order, that the latest fold over them hides."""
    starting = sorted(folds, key=lambda each: each[1].first)
    over: list[tuple[int, Fold]] = []
    place = 0
    for seq in seqs:
        while place < len(starting) and starting[place][1].first <= seq:
            over.append(starting[place])
            place += 1
        over = [each for each in over if each[1].last >= seq]
        if over and not max(over, key=lambda each: each[0])[1].is_open:
            yield seq
