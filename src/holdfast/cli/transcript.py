"""A conversation as people read it: who, when, what; tools and thoughts folded to one line.

What was said is indented, and stands under a line that says who said it: no text can pass for such
a line, whatever is in it.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from holdfast.cli import amounts
from holdfast.cli.calls import Calls, Place, in_line, pretty, text_of
from holdfast.cli.screen import Screen, cut, one_line, safe, wrapped

if TYPE_CHECKING:
    from holdfast.entries import Fold, Mark
    from holdfast.messages import Message, Result, ToolCall
    from holdfast.parts import Part
    from holdfast.peek import TurnRows
    from holdfast.steps.drafts import Draft
    from holdfast.stores.values import Stored

_INDENT = "  "
_STYLES = {"user": ("bold", "green"), "assistant": ("bold", "cyan"), "system": ("bold", "magenta")}
_LONG = 72  # columns of what is said in one line
_TOLD = {  # marks that everybody wants to know of
    "interrupted": "the answer was cut off here",
    "cancelled": "cancelled",
    "abandoned": "this was never answered",
    "branched": "here the branch leaves",
    "adopted": "written by another program",
    "damaged": "what stood here was damaged",
    "unknown": "how this tool ended is not known",
}
_ENDED = {
    "failed": "the turn failed, and can be resumed",
    "pending": "the turn waits for an answer to its calls",
    "limit": "the turn met a limit, and can be resumed",
}


class Transcript:
    """Makes lines of the turns of one branch."""

    def __init__(self, screen: Screen, folds: Sequence["Fold"] = (), *, is_full: bool) -> None:
        self._screen = screen
        self._folds = tuple(folds)
        self._told: set[int] = set()  # places of folds that were told of
        self._is_full = is_full
        self._width = max(20, screen.width - len(_INDENT))
        self._day = ""
        self._branch = ""

    def print(self, turn: "TurnRows") -> None:
        """Print what was said in a turn."""
        for line in self.lines(turn):
            self._screen.print(line)

    def lines(self, turn: "TurnRows") -> Iterator[str]:
        from holdfast.entries import Mark, UnknownEntry
        from holdfast.messages import Message

        calls = Calls(turn.rows)
        hidden = self._hidden(turn.rows)
        for row in turn.rows:
            entry = row.entry
            if type(entry) is Message:
                yield from self._folds_at(row.seq)
                if entry.id in calls.is_shown_there:
                    continue
                number = turn.number if entry.starts_turn else None
                yield from self._message(entry, row, number, calls, row.seq in hidden)
            elif type(entry) is Mark and (entry.what != "branched" or self._is_new(row.branch)):
                yield from self._mark(entry)
            elif type(entry) is UnknownEntry:
                yield self._aside(f"an entry of a newer version: {entry.kind}")
            elif entry is None and row.kind == "message":
                yield self._aside(f"message {row.position} was erased")
            self._branch = row.branch

    def draft(self, draft: "Draft", rows: Sequence["Stored"]) -> Iterator[str]:
        """A turn that is not in the log yet, or not whole; the last one there is has these rows."""
        if all(getattr(row.entry, "id", None) != draft.message.id for row in rows):
            yield self._head("user", draft.message.timestamp, [])
            yield from self._text(draft.text)
            yield ""
        if draft.thinking or draft.partial:
            yield self._head("assistant", None, ["so far" if draft.is_running else "cut off"])
            if draft.thinking:
                yield from self._thought(draft.thinking)
            yield from self._text(draft.partial)
            yield ""
        if draft.is_running:
            state = f"the turn runs now, by {draft.owner}"
        else:
            state = _ENDED.get(draft.ended, "the turn was cut off, and can be resumed")
        yield self._aside(state, "yellow")

    # Messages

    def _message(
        self, said: "Message", row: "Stored", turn: int | None, calls: Calls, is_hidden: bool
    ) -> Iterator[str]:
        told = [each for each in (said.author, said.name, said.model) if each]
        if said.synthetic:
            told.append(f"made by holdfast: {said.synthetic}")
        if said.stop not in (None, "stop", "tool_use", "unknown"):
            told.append(str(said.stop))
        if is_hidden:
            told.append("folded")
        if turn is not None:
            told.append(f"turn {turn}")
        elif said.starts_turn:
            told.append(f"message {row.position}")
        yield self._head(str(said.role), said.timestamp, told)
        yield from self._content(said, calls)
        yield ""

    def _head(self, role: str, when: datetime | None, told: Sequence[str]) -> str:
        shown = [] if when is None else [self._when(when)]
        dot = f" {self._screen.sign('·', '-')} "
        rest = cut(
            dot.join([*shown, *(one_line(each, _LONG) for each in told)]), self._width - len(role)
        )
        name = self._screen.styled(safe(role, keep=""), *_STYLES.get(role, ("bold",)))
        return f"{name}  {self._screen.styled(rest, 'dim')}" if rest else name

    def _when(self, when: datetime) -> str:
        """The time; with the day where that is another than that of the message before."""
        here = when.astimezone()
        day, self._day = self._day, f"{here:%Y-%m-%d}"
        return f"{here:%H:%M:%S}" if day == self._day else f"{here:%Y-%m-%d %H:%M:%S}"

    def _content(self, said: "Message", calls: Calls) -> Iterator[str]:
        from holdfast.parts import CallRef

        waiting = {call.id: call for call in said.calls}
        if said.results:
            for result in said.results:
                yield from self._result(result)
        elif isinstance(said.content, tuple):
            for part in said.content:
                if isinstance(part, CallRef):
                    if (call := waiting.pop(part.id, None)) is not None:
                        yield from self._call((said.id, call.id), call, calls)
                else:
                    yield from self._part(part)
        elif said.content:
            yield from self._text(said.content)
        for call in waiting.values():
            yield from self._call((said.id, call.id), call, calls)

    def _part(self, part: "Part") -> Iterator[str]:
        from holdfast.parts import Media, Opaque, Text, Thinking

        if isinstance(part, Text):
            yield from self._text(part.text)
        elif isinstance(part, Thinking):
            yield from self._thought("" if part.redacted else part.text)
        elif isinstance(part, Media):
            kind = type(part).__name__.lower()
            where = part.url or getattr(part, "name", None) or ""
            size = "" if part.data is None else f" {len(part.data):,} bytes"
            yield self._folded(f"{kind} {part.media_type or ''}{size} {where}")
        elif isinstance(part, Opaque):
            yield self._folded(f"a block of {part.provider} that no other model reads")
        else:
            yield self._folded("a part that this version does not know")

    def _text(self, text: str, *styles: str) -> Iterator[str]:
        if not text:
            return
        shown = safe(text.replace("\r\n", "\n")).expandtabs(4).rstrip("\n")
        lines = wrapped(shown, self._width) if self._screen.is_terminal else shown.split("\n")
        for line in lines:
            yield (_INDENT + self._screen.styled(line, *styles)).rstrip()

    def _thought(self, text: str) -> Iterator[str]:
        if self._is_full and text:
            yield self._folded("thinking:")
            yield from self._text(text, "dim")
        else:
            room = max(10, min(_LONG, self._width - 30))
            told = f"{one_line(text, room)} ({len(text):,} characters)" if text else "not shown"
            yield self._folded(f"thinking: {told}")

    def _folded(self, text: str, *styles: str) -> str:
        sign = self._screen.sign("▸", ">")
        told = one_line(text, self._width - 2)
        return f"{_INDENT}{self._screen.styled(f'{sign} {told}', *(styles or ('dim',)))}"

    # Tools

    def _call(self, place: Place, call: "ToolCall", calls: Calls) -> Iterator[str]:
        arrow = self._screen.sign("→", "->")
        outcome, is_error = self._outcome(place, calls)
        room = max(10, self._width - 6 - len(call.name) - len(outcome))
        shown = f"{call.name} {one_line(in_line(call.arguments), min(room, _LONG))}".rstrip()
        yield self._folded(f"{shown} {arrow} {outcome}", "red" if is_error else "yellow")
        if self._is_full:
            yield from self._text(pretty(call.arguments), "dim")
            if (result := calls.results.get(place)) is not None:
                yield self._folded(f"{call.name} {arrow}")
                yield from self._text(text_of(result))

    def _outcome(self, place: Place, calls: Calls) -> tuple[str, bool]:
        result = calls.results.get(place)
        if place in calls.unknown:
            return "outcome unknown", True
        if result is None:
            return ("started, no result" if place in calls.started else "no result"), True
        text = text_of(result)
        took = calls.took.get(place)
        told = amounts.size(text) + ("" if took is None or took < 0.1 else f", {took:.1f} s")
        if result.is_error:
            return f"failed: {one_line(text.removeprefix('error: '), 40)}", True
        return f"ok, {told}", False

    def _result(self, result: "Result") -> Iterator[str]:
        """One that stands apart from its call."""
        text = text_of(result)
        name = result.name or "a tool"
        if self._is_full:
            yield self._folded(f"result of {name}:")
            yield from self._text(text)
        else:
            room = max(10, min(_LONG, self._width - 30 - len(name)))
            told = f"{one_line(text, room)} ({amounts.size(text)})"
            yield self._folded(f"result of {name}: {told}", *(("red",) if result.is_error else ()))

    # Folds and marks

    def _is_new(self, branch: str) -> bool:
        """Whether the rows of this branch begin; one that was gone back to has such marks too."""
        return branch not in ("main", self._branch)

    def _hidden(self, rows: Sequence["Stored"]) -> frozenset[int]:
        from holdfast.window.view import covered

        seqs = [row.seq for row in rows if row.kind == "message"]
        if not seqs or not self._folds:
            return frozenset()
        over = [each for each in self._folds if each.first <= seqs[-1] and seqs[0] <= each.last]
        return frozenset(covered(seqs, over))

    def _folds_at(self, seq: int) -> Iterator[str]:
        for place, fold in enumerate(self._folds):
            if place in self._told or fold.is_open or not fold.first <= seq <= fold.last:
                continue
            self._told.add(place)
            instead = "nothing" if fold.replacement is None else "something shorter"
            if fold.replacement is not None and fold.replacement.synthetic == "summary":
                instead = "a summary"
            saved = ""
            if fold.tokens_before is not None and fold.tokens_after is not None:
                saved = f", {fold.tokens_after:,} tokens for {fold.tokens_before:,}"
            why = f": {fold.why}" if fold.why else ""
            yield self._aside(
                f"folded by {fold.by or 'hand'}: the model is shown {instead}{saved}{why}",
                "magenta",
            )
            if self._is_full and fold.replacement is not None:
                yield from self._text(fold.replacement.text or "", "magenta")

    def _mark(self, mark: "Mark") -> Iterator[str]:
        if mark.what not in _TOLD:
            if self._is_full:
                about = f" {mark.about}" if mark.about else ""
                yield self._aside(f"{mark.what}{about}")
            return
        reason = mark.data.get("reason") or mark.data.get("from")
        told = (
            f"{'' if mark.what == 'branched' else ':'} {reason}"
            if isinstance(reason, str) and reason
            else ""
        )
        if mark.what == "abandoned":
            from holdfast.steps.leftovers import abandoned

            if (said := abandoned(mark)) is not None:
                yield self._head("user", said.timestamp, [])
                yield from self._text(said.text or "")
        yield self._aside(_TOLD[mark.what] + told, "yellow")
        yield ""

    def _aside(self, text: str, *styles: str) -> str:
        told = f"[{one_line(text, 4 * self._width)}]"
        lines = wrapped(told, self._width) if self._screen.is_terminal else [told]
        return "\n".join(self._screen.styled(line, *(styles or ("dim",))) for line in lines)
