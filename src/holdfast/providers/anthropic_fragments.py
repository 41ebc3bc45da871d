"""One message, encoded, and how fragments become the messages of a request.

A `Fragment` is made once of each message (`anthropic_blocks.py`) and put together again and again.
What can only be judged with its neighbours is judged here: which fragments are one message, and
whether the calls of a server's tools have their results.
"""

from collections.abc import Iterable
from typing import NamedTuple


class Fragment(NamedTuple):
    """One message, encoded.

    kinds     a letter for each block: t thinking, b blank text, c call, r result, s call of a
              server's tool, o other block of the vendor, x text and media
    served    for each block of the vendor the id of the call it makes ("+id"), answers ("-id"),
              or belongs to, as a call that a server's code makes does ("*id"); else ""
    is_firm   False if it may be something else in the next request
    """

    role: str
    blocks: tuple[bytes, ...]
    kinds: str
    served: tuple[str, ...] = ()
    is_firm: bool = True


class Block(NamedTuple):
    json: bytes
    kind: str = "x"
    served: str = ""


def of_blocks(role: str, blocks: Iterable[Block]) -> Fragment:
    """The fragment of these blocks, without those that cannot stand where they do."""
    kept = list(blocks)
    if not any(block.kind == "s" for block in kept):
        kept = [block for block in kept if block.kind != "b"]
    while kept and kept[-1].kind == "t":
        kept.pop()
    served = tuple(block.served for block in kept)
    return Fragment(
        role,
        tuple(block.json for block in kept),
        "".join(block.kind for block in kept),
        served if any(served) else (),
    )


def without_halves(fragments: list[Fragment]) -> list[Fragment]:
    """Calls of a server's tools have their results, and results their calls, or are left out.

    A turn that paused ends in a call whose result is still to come: at the very end it may stand.
    """
    if not any(fragment.served for fragment in fragments):
        return fragments
    last = len(fragments)
    while last and fragments[last - 1].role == "assistant":
        last -= 1
    called: set[str] = set()
    answered = {mark[1:] for each in fragments for mark in each.served if mark[:1] in ("-", "*")}
    out = []
    for at, each in enumerate(fragments):
        if each.served:
            kept = []
            for block in map(Block, each.blocks, each.kinds, each.served):
                mark, id = block.served[:1], block.served[1:]
                if mark == "+" and (id in answered or at >= last):
                    called.add(id)
                elif mark == "+" or (mark == "-" and id not in called):
                    continue
                kept.append(block)
            each = of_blocks(each.role, kept)
        out.append(each)
    return out


def joined(fragments: Iterable[Fragment]) -> bytes:
    """The messages: consecutive fragments of one role are one message."""
    messages: list[bytes] = []
    blocks: list[bytes] = []
    spoken = ""
    for each in fragments:
        role = each[0]
        if role != spoken and each[1]:
            if blocks:
                messages.append(_message(spoken, blocks))
                blocks = []
            spoken = role
        blocks += each[1]
    if blocks:
        messages.append(_message(spoken, blocks))
    return b"[%s]" % b",".join(messages)


def _message(role: str, blocks: list[bytes]) -> bytes:
    return b'{"role":"%s","content":[%s]}' % (role.encode(), b",".join(blocks))
