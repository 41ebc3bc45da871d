"""The line of those who wait for the lease of a session, in the order in which they asked for it.

They stand behind the process that has the lease, in the same text: its name is the first line, and
the second one, where there is any, has the line as JSON. So a session for which nobody waits has
nothing of it, and giving a lease back changes nothing of it.

When the lease is free it is the turn of the first in line. Whoever comes behind and finds it free
sets a limit for that: if the first has not taken it by then, or if its process is gone, it is
passed over, and may line up again.
"""

from datetime import timedelta
from typing import NamedTuple

import msgspec

from holdfast.errors import Corrupt
from holdfast.stores.head import Head, Stamp
from holdfast.stores.shelf import Shelf

TURN = timedelta(seconds=2)  # for the first in line, to take a lease that is free


class Claim(NamedTuple):
    """One who waits: since when, and until when, by the clock of leases; its name in the line."""

    asked: int
    stamp: Stamp
    place: str
    owner: str


class Turn(NamedTuple):
    """The limit that was set for the first in line, behind the lease with this token."""

    token: int
    place: str
    until: int


class Line(NamedTuple):
    """Who has the lease, if anybody has; and those who wait, the first one first."""

    holder: str | None
    claims: tuple[Claim, ...] = ()
    turn: Turn | None = None

    def ahead_of(self, place: str) -> str | None:
        """Who has the lease, or is to have it before the one at this place; None if nobody."""
        if self.holder is not None or not self.claims or self.claims[0].place == place:
            return self.holder
        return self.claims[0].owner

    def without(self, place: str) -> "Line":
        """The same when somebody has left."""
        return self._replace(claims=tuple(each for each in self.claims if each.place != place))

    def joined(self, claim: Claim) -> "Line":
        """The same with another, unless it is there: behind all who asked before it did."""
        if any(each.place == claim.place for each in self.claims):
            return self
        claims = sorted((*self.claims, claim), key=lambda each: each.asked)
        return self._replace(claims=tuple(claims))


def line_of(shelf: Shelf, head: Head) -> Line:
    """The line as it stands now, without those who are gone or have let their turn pass."""
    is_held = head.owner is not None and not shelf.is_over(head.stamp)
    _, _, written = head.process.partition("\n")
    if not written:
        return Line(head.owner if is_held else None)
    claims, turn = _read(head, written)
    if is_held:
        return Line(head.owner, claims, turn)
    while claims and _is_passed_over(shelf, head, claims[0], turn):
        claims, turn = claims[1:], None
    return Line(None, claims, turn)


def save(shelf: Shelf, head: Head, line: Line) -> None:
    """Keep the line with the head, and set a limit for the first where the lease is free."""
    first = line.claims[0] if line.claims and line.holder is None else None
    turn = line.turn
    if first is None:
        turn = None
    elif turn is None or not _is_for(turn, head, first):
        turn = Turn(head.token, first.place, shelf.stamp(TURN).until)
    process, _, before = head.process.partition("\n")
    written = _encode((line.claims, turn)).decode() if line.claims else ""
    if written != before:
        head.process = f"{process}\n{written}" if written else process
        shelf.save(head)


def _is_passed_over(shelf: Shelf, head: Head, first: Claim, turn: Turn | None) -> bool:
    if turn is None or not _is_for(turn, head, first):
        return shelf.is_over(first.stamp)
    return shelf.is_over(first.stamp._replace(until=min(first.stamp.until, turn.until)))


def _is_for(turn: Turn, head: Head, first: Claim) -> bool:
    return (turn.token, turn.place) == (head.token, first.place)


def _read(head: Head, written: str) -> tuple[tuple[Claim, ...], Turn | None]:
    try:
        return _decode(written)
    except msgspec.MsgspecError as error:
        raise Corrupt(f"session {head.key!r}", "who waits for it cannot be read") from error


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(tuple[tuple[Claim, ...], Turn | None]).decode
