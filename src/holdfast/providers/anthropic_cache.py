"""Where to set cache breakpoints, so that each request reads what the last one wrote.

The vendor keeps the prompt up to each block that is marked with `cache_control`, at most four of
them. A later request finds it again if the same blocks stand before one of *its* marks, at that
mark or at one of the 19 blocks before it. Thinking cannot be marked, and neither can empty text;
marks on a prompt that is too short for the cache do no harm.

One mark is for tools and system. The others follow from the messages alone, without knowing what
was sent before: a request is made before each message of the assistant, so the last request
ended right before the last of them.

| mark      | stands on                                                                          |
|-----------|------------------------------------------------------------------------------------|
| end       | the last block: what the next request will read                                    |
| last      | the end of the last request: what this one reads, however many blocks came since   |
| firm      | if the end is made up (a call that has no result yet, "[continue]"): what stands   |
|           | before it, because it will be something else next time                             |
| opening   | else the user's message that opened the turn of the last answer: when a new turn   |
|           | begins some models forget the thinking of the old one, and with it all that was    |
|           | kept behind it                                                                     |
"""

from collections.abc import Iterator, Sequence

import msgspec

from holdfast.providers.anthropic_fragments import Fragment

MARKS_MAX = 4
TTLS = ("5m", "1h")
_UNMARKED = "tb"  # thinking, and text without a visible character

Place = tuple[int, int]


def control(ttl: str) -> dict[str, str]:
    """A breakpoint, as it stands in a block."""
    return {"type": "ephemeral"} if ttl == "5m" else {"type": "ephemeral", "ttl": ttl}


def marked(fragments: Sequence[Fragment], ttl: str, count: int) -> list[Fragment]:
    """The fragments with at most `count` of their blocks marked; those passed stay as they are."""
    out = list(fragments)
    mark = b'"cache_control":' + msgspec.json.encode(control(ttl))
    for at, number in places(fragments)[:count]:
        out[at] = out[at].marked(number, mark)
    return out


def places(fragments: Sequence[Fragment]) -> list[Place]:
    """Which blocks to mark, the most useful first: the fragment, and the block in it."""
    count = len(fragments)
    last = _last_answer(fragments, count)
    firm = next((at for at in range(last + 1, count) if not fragments[at].is_firm), count)
    ends = [count, last]
    ends.append(firm if firm < count else _opening(fragments, last))
    found: list[Place] = []
    for end in ends:
        place = _last_place(fragments, end)
        if place is not None and place not in found:
            found.append(place)
    return found


def _last_answer(fragments: Sequence[Fragment], end: int) -> int:
    """The last message of the assistant; -1 if there is none."""
    return next((at for at in _backwards(end) if fragments[at].role == "assistant"), -1)


def _opening(fragments: Sequence[Fragment], end: int) -> int:
    """Behind the last message before `end` in which the user says something."""
    for at in _backwards(end):
        if fragments[at].role == "user" and fragments[at].kinds.strip("r"):
            return at + 1
    return 0


def _last_place(fragments: Sequence[Fragment], end: int) -> Place | None:
    """The last block before the fragment `end` that can be marked."""
    for at in _backwards(end):
        kinds = fragments[at].kinds
        for number in _backwards(len(kinds)):
            if kinds[number] not in _UNMARKED:
                return at, number
    return None


def _backwards(end: int) -> Iterator[int]:
    return iter(range(end - 1, -1, -1))
