"""Drafts: what a store keeps of a turn while it runs, and what is left of one that was cut off.

A draft has the input, written before the model is asked, and the output so far, in pieces:

| piece          | meaning                                                                   |
|----------------|---------------------------------------------------------------------------|
| `["at", seq]`  | a model is asked, with the branch at this entry; what follows is its answer |
| `["t", text]`  | more words of the answer                                                  |
| `["k", text]`  | more of what the model thinks                                             |
| `["end", why]` | the turn ended with an error, or waits: `failed`, `pending`, `limit`      |

A draft without an end is that of a turn that runs, or whose process was killed.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from holdfast import codec
from holdfast.errors import InvalidInput
from holdfast.frozen import EMPTY, FrozenDict
from holdfast.messages import Message
from holdfast.stores import values

FAILED, PENDING, LIMIT = "failed", "pending", "limit"


class Draft(NamedTuple):
    """A turn that runs, failed, waits, or was cut off.

    message     what the user said
    branch      where
    once        the name under which it was sent, if it has one
    options     with which it was sent: model, tools, schema
    partial     the words of the answer that was cut off
    thinking    what the model thought before
    at          the entry behind which that answer would stand; None when no model was asked
    ended       why it ended: failed, pending, limit; "" when it runs or was cut off
    is_running  whether somebody holds its lease
    owner       who began it
    token       of its lease
    before      the drafts of turns before that this one has not cleaned up behind yet, oldest first
    """

    message: Message
    branch: str
    once: str | None = None
    options: FrozenDict = EMPTY
    partial: str = ""
    thinking: str = ""
    at: int | None = None
    ended: str = ""
    is_running: bool = False
    owner: str = ""
    token: int = 0
    before: "tuple[Draft, ...]" = ()

    @property
    def text(self) -> str:
        """What the user said, in words."""
        return self.message.text or ""

    def is_sent_as(self, once: str | None, branch: str) -> bool:
        """Whether it was sent under this name, on this branch."""
        return once is not None and (self.once, self.branch) == (once, branch)

    @property
    def is_cut_off(self) -> bool:
        """Whether its process is gone, and nobody knows how far it came."""
        return not self.ended and not self.is_running


def written(
    message: Message,
    branch: str,
    *,
    once: str | None = None,
    options: Mapping[str, Any] = EMPTY,
    before: values.Draft | None = None,
) -> dict[str, Any]:
    """The input of a draft, as a store takes it."""
    draft: dict[str, Any] = {"message": codec.record(message).decode(), "branch": branch}
    if once is not None:
        draft["once"] = once
    if options:
        draft["options"] = options
    if before is not None and not before.is_running:
        draft["before"] = _still_left(message.id, before)
    return draft


def _still_left(id: str, draft: values.Draft) -> list[Mapping[str, Any]]:
    """A draft and those in it, for the one of the message `id` that replaces them; oldest first.

    A turn that has asked a model had cleaned up behind others: theirs are left out. So are those
    of a turn that was tried again and had said nothing, or tried crashes would add up for ever.
    """
    input = dict(draft.input)
    earlier: Sequence[Mapping[str, Any]] = input.pop("before", None) or ()
    found = _read(input, draft.chunks, None)
    if found is None:
        return list(earlier)
    last: Mapping[str, Any] = {"input": input, "chunks": draft.chunks, "token": draft.token}
    chain = [last] if found.at is not None else [*earlier, last]
    later, kept = {id}, []
    for each in reversed(chain):
        tried = _read(each["input"], each["chunks"], None)
        if tried is None:
            continue
        says_more = bool(tried.partial or tried.thinking) and not tried.ended
        if says_more or tried.message.id not in later:
            kept.append(each)
        later.add(tried.message.id)
    return kept[::-1]


class Rewritten(NamedTuple):
    """A draft as a store takes it again: what is begun with, and what is journaled then."""

    input: dict[str, Any]
    journal: str


def rewritten(
    draft: values.Draft, is_kept: Callable[[Draft], bool], is_stored: Callable[[Draft], bool]
) -> Rewritten | None:
    """The draft, and those in it, as far as they are kept; None if none is.

    Of what a model has said only the last answer is kept, and that only if it is not stored.
    """
    input = dict(draft.input)
    chain = [*(input.pop("before", None) or ()), {"input": input, "chunks": draft.chunks}]
    kept: list[dict[str, Any]] = []
    for each in chain:
        found = _read(each["input"], each["chunks"], None)
        if found is not None and is_kept(found):
            output = _written_output(found, is_stored(found))
            kept.append({**each, "chunks": [output]})
    if not kept:
        return None
    last = kept.pop()
    before = {"before": kept} if kept else {}
    return Rewritten({**last["input"], **before}, last["chunks"][0])


def _written_output(draft: Draft, is_stored: bool) -> str:
    pieces: list[tuple[str, Any]] = []
    if draft.at is not None and not is_stored:
        pieces += [("at", draft.at), ("k", draft.thinking), ("t", draft.partial)]
    if draft.ended:
        pieces.append(("end", draft.ended))
    return json.dumps(pieces, ensure_ascii=False)


def read(draft: values.Draft | None) -> Draft | None:
    """What a store has; None when there is none, or one that no turn has written."""
    return None if draft is None else _read(draft.input, draft.chunks, draft)


def _read(
    input: Mapping[str, Any], chunks: Sequence[str], draft: values.Draft | None, token: int = 0
) -> Draft | None:
    message = message_in(input.get("message"))
    if message is None:
        return None
    at, words, thoughts, ended = _output(chunks)
    earlier = (
        _read(each.get("input") or EMPTY, each.get("chunks") or (), None, each.get("token", 0))
        for each in input.get("before") or ()
    )
    return Draft(
        message=message,
        branch=str(input.get("branch", values.MAIN)),
        once=input.get("once"),
        options=FrozenDict(input.get("options") or {}),
        partial=words,
        thinking=thoughts,
        at=at,
        ended=ended,
        is_running=draft is not None and draft.is_running,
        owner="" if draft is None else draft.owner,
        token=token if draft is None else draft.token,
        before=tuple(each for each in earlier if each is not None),
    )


def message_in(record: object) -> Message | None:
    """A message that was kept as text; None when it is none."""
    if not isinstance(record, str):
        return None
    try:
        entry = codec.read_record(record.encode())
    except InvalidInput:
        return None
    return entry if isinstance(entry, Message) else None


def _output(chunks: Sequence[str]) -> tuple[int | None, str, str, str]:
    at: int | None = None
    ended = ""
    words: list[str] = []
    thoughts: list[str] = []
    for chunk in chunks:
        for kind, said in json.loads(chunk):
            if kind == "at":
                at, words, thoughts = said, [], []
            elif kind == "t":
                words.append(said)
            elif kind == "k":
                thoughts.append(said)
            elif kind == "end":
                ended = said
    return at, "".join(words), "".join(thoughts), ended
