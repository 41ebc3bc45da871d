"""What a format is: two pure functions, and an honest word on what it does not carry."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from holdfast.archive import Archive
from holdfast.entries import Call, Fold, Mark, UnknownEntry
from holdfast.messages import Message
from holdfast.parts import Opaque, Thinking, Unknown
from holdfast.stores.values import CURSOR


class Reading(NamedTuple):
    """What was found in a file, and sentences about what was not taken as it stood there."""

    archives: tuple[Archive, ...]
    notes: tuple[str, ...] = ()


def _never(_: bytes) -> bool:
    return False


@dataclass(frozen=True, kw_only=True)
class Format:
    """A way to write conversations down.

    write        from archives to pieces of a file; the same archives always give the same bytes
    losses       what an archive holds and this format does not, in sentences
    read         from a file and its name ("" if it has none) to archives; None if nobody could.
                 What cannot be right is InvalidInput, TooLarge or FormatTooNew, with its place
    recognises   whether a file, or the beginning of one, is in this format
    holds_many   whether several conversations fit into one file
    """

    name: str
    title: str
    suffix: str
    write: Callable[[Iterable[Archive]], Iterator[bytes]]
    losses: Callable[[Archive], Sequence[str]]
    read: Callable[..., Reading] | None = None
    recognises: Callable[[bytes], bool] = _never
    holds_many: bool = False


# What an archive may hold, one and many, and how many of it there are.
_KINDS: dict[str, tuple[str, str, Callable[[Archive], int]]] = {
    "branches": ("branch", "branches", lambda it: len(it.record.branches) - 1),
    "others": ("message on other branches", "messages on other branches", lambda it: _others(it)),
    "folds": ("fold", "folds", lambda it: _count(it, Fold)),
    "calls": ("receipt of a model call", "receipts of model calls", lambda it: _count(it, Call)),
    "marks": ("mark", "marks", lambda it: _count(it, Mark)),
    "unknown": ("entry of an unknown kind", "entries of unknown kinds", lambda it: _foreign(it)),
    "erased": ("erased place", "erased places", lambda it: _erased(it)),
    "once": ("name of an append", "names of appends", lambda it: len(it.named)),
    "draft": ("unfinished turn", "unfinished turns", lambda it: int(it.record.draft is not None)),
    "settings": ("setting", "settings", lambda it: len(it.record.settings.values)),
    "agent": ("agent's name", "agents' names", lambda it: int(bool(it.record.agent))),
    "metadata": ("field of metadata", "fields of metadata", lambda it: len(it.record.metadata)),
    "counters": ("counter", "counters", lambda it: len(set(it.record.counters) - {CURSOR})),
    "tools": ("declared tool", "declared tools", lambda it: len(it.record.tools)),
    "ttl": ("time to live", "times to live", lambda it: int(it.record.ttl is not None)),
    "signatures": ("thinking signature", "thinking signatures", lambda it: _signatures(it)),
    "blocks": ("vendor's block", "vendor's blocks", lambda it: _parts(it, Opaque | Unknown)),
    "extra": ("message's extra fields", "messages' extra fields", lambda it: _extra(it)),
}


def losses_of(archive: Archive, title: str, *kinds: str) -> list[str]:
    """A sentence for each of these kinds of which the archive has some."""
    found = []
    for kind in kinds:
        one, many, count_of = _KINDS[kind]
        if (count := count_of(archive)) > 0:
            found.append(f"not in {title}: {count:,} {one if count == 1 else many}")
    return found


def _count(archive: Archive, kind: type) -> int:
    return sum(type(each.entry) is kind for each in archive.entries)


def _others(archive: Archive) -> int:
    said = sum(type(each.entry) is Message for each in archive.entries)
    return said - len(archive.messages())


def _foreign(archive: Archive) -> int:
    return sum(type(each.entry) is UnknownEntry for each in archive.entries)


def _erased(archive: Archive) -> int:
    return sum(each.entry is None for each in archive.entries)


def _signatures(archive: Archive) -> int:
    return sum(
        bool(part.signature) or part.redacted
        for message in archive.messages()
        if isinstance(message.content, tuple)
        for part in message.content
        if isinstance(part, Thinking)
    ) + sum(bool(call.signature) for message in archive.messages() for call in message.tool_calls)


def _parts(archive: Archive, kinds: object) -> int:
    return sum(
        isinstance(part, kinds)  # type: ignore[arg-type]
        for message in archive.messages()
        if isinstance(message.content, tuple)
        for part in message.content
    )


def _extra(archive: Archive) -> int:
    return sum(bool(message.extra) for message in archive.messages())
