"""One message, encoded, and how fragments become the messages of a request.

A `Fragment` is made once of each message (`anthropic_blocks.py`) and put together again and again.
What can only be judged with its neighbours is judged here: which fragments are one message, and
whether the calls of a server's tools have their results.
"""

from collections.abc import Callable, Iterable
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple


class Fragment(NamedTuple):
    """One message, encoded: `json` is its blocks, put together.

    kinds     a letter for each block: t thinking, b blank text, c call, r result, s call of a
              server's tool, o other block of the vendor, x text and media
    served    for each block of the vendor the id of the call it makes ("+id"), answers ("-id"),
              or belongs to, as a call that a server's code makes does ("*id"); else ""
    is_firm   False if it may be something else in the next request
    """

    role: str
    json: bytes
    blocks: tuple[bytes, ...]
    kinds: str
    served: tuple[str, ...] = ()
    is_firm: bool = True

    @staticmethod
    def of(
        role: str,
        blocks: tuple[bytes, ...],
        kinds: str,
        served: tuple[str, ...] = (),
        is_firm: bool = True,
    ) -> "Fragment":
        """The fragment of these blocks."""
        json = blocks[0] if len(blocks) == 1 else b",".join(blocks)
        return made((role, json, blocks, kinds, served, is_firm))

    def marked(self, number: int, mark: bytes) -> "Fragment":
        """The same, with one more field in one of its blocks."""
        blocks = list(self.blocks)
        blocks[number] = b"%s,%s}" % (blocks[number][:-1], mark)
        return self.of(self.role, tuple(blocks), *self[3:])


# A fragment of its fields, in half the time of the __new__ that NamedTuple writes.
made: Callable[[tuple[Any, ...]], Fragment] = partial(tuple.__new__, Fragment)

Block = tuple[bytes, str, str]  # its JSON, its letter in `kinds`, and what it has in `served`

_served_of = itemgetter(4)
_BETWEEN = {
    "user": b']},{"role":"user","content":[',
    "assistant": b']},{"role":"assistant","content":[',
}


def of_blocks(role: str, blocks: list[Block]) -> Fragment:
    """The fragment of these blocks, without those that cannot stand where they do."""
    kinds = "".join([kind for _, kind, _ in blocks])
    if "b" in kinds and "s" not in kinds:
        return of_blocks(role, [block for block in blocks if block[1] != "b"])
    if kinds.endswith("t"):
        kinds = kinds.rstrip("t")
        blocks = blocks[: len(kinds)]
    if not blocks:
        return Fragment.of(role, (), "")
    jsons, _, served = zip(*blocks, strict=True)
    return Fragment.of(role, jsons, kinds, served if any(served) else ())


def without_halves(fragments: list[Fragment]) -> list[Fragment]:
    """Calls of a server's tools have their results, and results their calls, or are left out.

    A turn that paused ends in a call whose result is still to come: at the very end it may stand.
    """
    if not any(map(_served_of, fragments)):
        return fragments
    last = len(fragments)
    while last and fragments[last - 1].role == "assistant":
        last -= 1
    pairs = _Pairs(fragments)
    return [
        of_blocks(each.role, pairs.kept(each, is_last=at >= last)) if each.served else each
        for at, each in enumerate(fragments)
    ]


class _Pairs:
    """Which calls of servers' tools are answered behind them."""

    def __init__(self, fragments: Iterable[Fragment]) -> None:
        self._answered: set[str] = set()
        called: set[str] = set()
        for mark in (mark for each in fragments for mark in each.served):
            id = mark[1:]
            if mark.startswith("+"):
                called.add(id)
            elif mark.startswith("*") or (mark and id in called):
                self._answered.add(id)
        self._called: set[str] = set()  # so far

    def kept(self, fragment: Fragment, *, is_last: bool) -> list[Block]:
        """The blocks of the next fragment that may stand."""
        blocks = zip(fragment.blocks, fragment.kinds, fragment.served, strict=True)
        return [block for block in blocks if self._may_stand(block[2], is_last)]

    def _may_stand(self, mark: str, is_last: bool) -> bool:
        id = mark[1:]
        if mark.startswith("-"):
            return id in self._called
        if not mark.startswith("+"):
            return True
        if id in self._answered or is_last:
            self._called.add(id)
            return True
        return False


def joined(fragments: Iterable[Fragment]) -> bytes:
    """The messages: consecutive fragments of one role are one message."""
    pieces = [b"["]
    add = pieces.append
    spoken = ""
    for each in fragments:
        role, json = each[0], each[1]
        if not json:
            continue
        if role == spoken:
            add(b",")
        else:
            add(_BETWEEN[role])
            spoken = role
        add(json)
    if not spoken:
        return b"[]"
    pieces[1] = pieces[1][3:]  # nothing stands before the first
    add(b"]}]")
    return b"".join(pieces)
