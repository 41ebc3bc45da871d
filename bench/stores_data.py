"""What bench/stores.py stores: turns, and files that are full of them.

A turn is a user message of about 300 characters, a reply of about 500 and the receipt of the call.
"""

import asyncio
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from search_texts import texts

from holdfast import Message, codec
from holdfast.entries import Call, Entry
from holdfast.frozen import FrozenDict
from holdfast.stores import Record, Store, Tenant, open_store
from holdfast.usage import Usage

TENANT = "acme"
MODEL = "vendor:model-1"
FILL_ENTRIES = 3_000
CREATE_AT_ONCE = 1_000


class Turn(NamedTuple):
    """One turn as we are given it, and as the raw driver is: kind and payload of each row."""

    entries: list[Entry]
    rows: list[tuple[str, bytes]]


def turn(said: str, answer: str) -> Turn:
    reply = Message.assistant(answer, model=MODEL, stop="stop")
    receipt = Call(
        model=MODEL,
        about=reply.id,
        usage=Usage(1_840, 131),
        stop="stop",
        latency_ms=911,
        request_id="req_011CSHoEeqs5C35K2UUqR7Fy",
    )
    entries: list[Entry] = [Message.user(said), reply, receipt]
    kinds = ("message", "message", "call")
    rows = [(kind, codec.record(each)) for kind, each in zip(kinds, entries, strict=True)]
    return Turn(entries, rows)


def turns(count: int) -> list[Turn]:
    """Turns of one size, so that the time of one can be held against that of another."""
    words = " ".join(texts(300)).split(" ")
    text = " ".join(words * (1 + count * 900 // 50_000))
    return [turn(text[at : at + 300], text[at + 300 : at + 800]) for at in _steps(text, count)]


def _steps(text: str, count: int) -> Iterator[int]:
    step = max(1, (len(text) - 800) // count)
    return iter(range(0, step * count, step))


def various_turns(count: int) -> Iterator[Turn]:
    """Turns of all sizes, as conversations have them (bench/search_texts.py)."""
    drawn = texts(count * 2)
    return (turn(said, answer) for said, answer in zip(drawn, drawn, strict=True))


def opened(path: Path, *, durability: str = "sync") -> Store:
    return open_store(f"sqlite:{path}", durability=durability)


async def session(tenant: Tenant, key: str, messages: int, pool: Sequence[Turn]) -> str:
    """A session with so many messages, made of turns; its id."""
    made = await tenant.create(Record(key=key))
    left = messages // 2
    while left:
        some = [pool[number % len(pool)] for number in range(min(left, FILL_ENTRIES // 3))]
        await tenant.append(made.id, [entry for each in some for entry in each.entries])
        left -= len(some)
    return made.id


async def sessions(tenant: Tenant, count: int, first: int = 0) -> list[str]:
    """Empty sessions with some metadata; their ids."""
    ids: list[str] = []
    for start in range(first, first + count, CREATE_AT_ONCE):
        made = await asyncio.gather(
            *(
                tenant.create(
                    Record(
                        key=f"telegram:{number}",
                        agent="support",
                        metadata=FrozenDict({"title": f"Chat {number}", "user": number}),
                    )
                )
                for number in range(start, min(start + CREATE_AT_ONCE, first + count))
            )
        )
        ids += [each.id for each in made]
    return ids


def copy(path: Path) -> Path:
    """The same file for the raw driver. The store is closed: there is no WAL beside it."""
    target = path.with_name(f"raw-{path.name}")
    shutil.copyfile(path, target)
    return target
