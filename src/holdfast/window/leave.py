"""Leaving items out of the window: the steps of a plan, with a note where something is missing.

In the place of turns stands how many there were. In the place of calls of the turn that is running
stands which they were, as far as that is cheap: a model that does not know that it has read a file
reads it again, and again. The note is part of the fold and stays as it is until the next one.
"""

from collections.abc import Iterable, Sequence

from holdfast.messages import Message, ToolCall
from holdfast.notes import CUT, calls_folded, folded, notified, told_calls
from holdfast.window.keep import is_note
from holdfast.window.plan import Step, runs
from holdfast.window.render import calls_of
from holdfast.window.situation import Situation
from holdfast.window.view import Item, View

_TOLD_SHARE = 0.05  # of the window: so much a note about calls may take
_TOLD_MAX = 24  # calls that are told one by one, the latest
_TOLD_CHARACTERS = 60  # of the arguments of each


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
    note = _note(view, items, start, stop, situation, notify_by)
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


def with_notes(items: Sequence[Item], chosen: Iterable[int], turn: int | None = None) -> set[int]:
    """The chosen places and the notes beside them, so that one note stands for all.

    With `turn`, only the notes within that turn.
    """
    found = set(chosen)
    notes = [
        place
        for place, item in enumerate(items)
        if is_note(item) and (turn is None or item.turn == turn)
    ]
    for place in notes:
        if place - 1 in found:
            found.add(place)
    for place in reversed(notes):
        if place + 1 in found:
            found.add(place)
    return found


def _note(
    view: View,
    items: Sequence[Item],
    start: int,
    stop: int,
    situation: Situation,
    notify_by: str,
) -> Message | None:
    """What to say in the place of turns, or of calls within the current one."""
    if items[start].turn >= view.turn:
        most = int(situation.limit * _TOLD_SHARE / situation.scale)
        return _note_of_calls(view, items[start:stop], most)
    turns = _turns(view, items, start, stop)
    before = items[stop - 1].message
    return notified(turns, notify_by, before) if notify_by else folded(turns, before)


def _note_of_calls(view: View, gone: Sequence[Item], tokens_max: int) -> Message | None:
    """Which calls are gone, with those that an earlier note in their place tells of. The latest are
    told with what they asked, so many as there is room for; None if there are no calls."""
    counts: dict[str, int] = {}
    latest: list[str] = []
    for item in gone:
        before, told = told_calls(item.message) if is_note(item) else ({}, [])
        for call in calls_of(item.message):
            before[call.name] = before.get(call.name, 0) + 1
            told.append(_told(call))
        for name, times in before.items():
            counts[name] = counts.get(name, 0) + times
        latest += told
    if not counts:
        return None
    for shown in range(min(len(latest), _TOLD_MAX), -1, -1):
        note = calls_folded(counts, latest[len(latest) - shown :], gone[-1].message)
        if view.count(note) <= tokens_max:
            return note
    return calls_folded({"": sum(counts.values())}, (), gone[-1].message)


def _told(call: ToolCall) -> str:
    asked = " ".join(call.arguments.split())
    if len(asked) > _TOLD_CHARACTERS:
        asked = asked[:_TOLD_CHARACTERS] + CUT
    return f"{call.name} {asked}" if asked not in ("", "{}") else call.name


def _turns(view: View, items: Sequence[Item], start: int, stop: int) -> int:
    """How many turns items[start:stop] stand for, those that folds among them stand for too."""
    behind = items[stop].turn if stop < len(items) else view.turn + 1
    behind = max(behind, items[stop - 1].turn + 1)
    return max(1, behind - max(1, items[start].turn))
