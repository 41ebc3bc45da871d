"""Leaving items out of the window: the steps of a plan, with a note where turns are missing."""

from collections.abc import Iterable, Sequence

from holdfast.messages import Message
from holdfast.notes import folded, notified
from holdfast.window.keep import is_note
from holdfast.window.plan import Step, runs
from holdfast.window.situation import Situation
from holdfast.window.view import Item, View


def left_out(
    view: View,
    items: Sequence[Item],
    chosen: Iterable[int],
    situation: Situation,
    why: str,
    notify_by: str = "",
) -> list[Step]:
    """A step for each run of the chosen items; none for a note alone, which would be replaced by
    itself. With `notify_by` the first note is longer: it says who left something out, and why."""
    steps = []
    for start, stop in runs(items, chosen):
        if all(map(is_note, items[start:stop])):
            continue
        step = left_out_run(view, items, start, stop, situation, why, notify_by)
        notify_by = notify_by if step.replacement is None else ""
        steps.append(step)
    return steps


def left_out_run(
    view: View,
    items: Sequence[Item],
    start: int,
    stop: int,
    situation: Situation,
    why: str,
    notify_by: str = "",
) -> Step:
    """Show items[start:stop] no more, with a note in their place unless that is as long as they."""
    gone = items[start:stop]
    tokens = sum(item.tokens for item in gone)
    note = _note(view, items, start, stop, notify_by)
    size = 0 if note is None else view.count(note)
    if size >= tokens:
        note, size = None, 0
    return Step(
        first=gone[0].first,
        last=max(item.last for item in gone),
        kind="drop",
        replacement=note,
        tokens_before=situation.tokens(tokens),
        tokens_after=situation.tokens(size),
        why=why,
    )


def with_notes(items: Sequence[Item], chosen: Iterable[int]) -> set[int]:
    """The chosen places and the notes beside them, so that one note stands for all."""
    found = set(chosen)
    notes = [place for place, item in enumerate(items) if item.fold is not None and is_note(item)]
    for place in notes:
        if place - 1 in found:
            found.add(place)
    for place in reversed(notes):
        if place + 1 in found:
            found.add(place)
    return found


def _note(
    view: View, items: Sequence[Item], start: int, stop: int, notify_by: str
) -> Message | None:
    """What to say in the place of turns. Calls that go from within the current turn are not told
    of: a user's words between a call and the next would be taken for an interruption."""
    if items[start].turn >= view.turn:
        return None
    turns = _turns(view, items, start, stop)
    before = items[stop - 1].message
    return notified(turns, notify_by, before) if notify_by else folded(turns, before)


def _turns(view: View, items: Sequence[Item], start: int, stop: int) -> int:
    """How many turns items[start:stop] stand for, those that folds among them stand for too."""
    behind = items[stop].turn if stop < len(items) else view.turn + 1
    behind = max(behind, items[stop - 1].turn + 1)
    return max(1, behind - max(1, items[start].turn))
