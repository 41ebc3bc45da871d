"""The file in which jaato (Python) saves a session, version 2.1; those of 1.x and 2.x are read.

| name                                         | meaning                                         |
|----------------------------------------------|-------------------------------------------------|
| version                                      | "2.1"                                           |
| session_id                                   | when it began, as 20260201_120000               |
| description                                  | what it is about, or null                       |
| created_at, updated_at                       | local times                                     |
| turn_count, turn_accounting[], user_inputs[] | turns, their tokens, what the user typed        |
| metadata                                     | an object                                       |
| connection                                   | project, location, model                        |
| workspace_path                               | where it was, or null                           |
| history[]                                    | messages in parts, see `codec.jaato`            |
| budget_state, interrupted_turn               | what jaato goes on with, or null                |

Two blanks deep, characters not escaped. Names that are not in the table are kept.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from holdfast import strict
from holdfast.codec import foreign, jaato
from holdfast.errors import InvalidInput
from holdfast.frozen import EMPTY, FrozenDict, thaw
from holdfast.messages import Message
from holdfast.strict import LIMITS, Limits

VERSION = "2.1"
NAMES = (
    *("version", "session_id", "description", "created_at", "updated_at"),
    *("turn_count", "turn_accounting", "user_inputs", "metadata", "connection"),
    *("workspace_path", "history", "budget_state", "interrupted_turn"),
)
_READ = re.compile(r"[12](\.\d+)*")
_KINDS: dict[str, tuple[type, Any]] = {
    "metadata": (FrozenDict, EMPTY),
    "connection": (FrozenDict, EMPTY),
    "turn_accounting": (tuple, ()),
    "user_inputs": (tuple, ()),
    "session_id": (str, ""),
    "turn_count": (int, 0),
}


class State(NamedTuple):
    """What a file holds: the messages, and every other name as it stands there.

    `mended` counts broken characters that were replaced when it was read.
    """

    messages: tuple[Message, ...]
    said: FrozenDict = EMPTY
    mended: int = 0


def encode(messages: Sequence[Message], said: FrozenDict) -> bytes:
    """A file of these messages; `said` has the other names, and those that are missing are null."""
    found: dict[str, Any] = {name: said.get(name) for name in NAMES}
    found |= {name: said.get(name, empty) for name, (_, empty) in _KINDS.items()}
    found |= {"version": VERSION, "history": [jaato.message_dict(each) for each in messages]}
    found |= {name: value for name, value in said.items() if name not in found}
    return json.dumps(thaw(found), indent=2, ensure_ascii=False, allow_nan=False).encode()


def decode(data: bytes | str, limits: Limits = LIMITS) -> State:
    """What a file says; InvalidInput where it is none, or of a version that is not known."""
    value, mended = strict.parse(data, limits, "a session of jaato")
    raw = foreign.object_of(value, "a session of jaato")
    version = str(raw.get("version"))
    if not _READ.fullmatch(version):
        raise InvalidInput(
            "a session of jaato", f"has version {version[:20]}: 1.x and 2.x can be read"
        )
    history = raw.get("history")
    if type(history) is not tuple:
        raise InvalidInput("a session of jaato", "has a list named history, and this one has none")
    for name, (kind, _) in _KINDS.items():
        if raw.get(name) is not None and type(raw[name]) is not kind:
            raise InvalidInput(name, "is of another kind in a session of jaato")
    messages = tuple(jaato.message_of(foreign.object_of(each, "a message")) for each in history)
    said = {n: v for n, v in raw.items() if n not in ("version", "history") and v is not None}
    return State(messages, FrozenDict(said), mended)
