"""Entries: the rows of a log. A message is one; these are the others.

| kind    | what it is                                                                          |
|---------|-------------------------------------------------------------------------------------|
| message | one thing said (`holdfast.messages.Message`)                                        |
| fold    | in the window, show this instead of that; the log keeps both                        |
| call    | the receipt of one model call                                                       |
| mark    | a fact that is never shown: tool started, approval given, interrupted, mended, ...  |
| others  | written by a newer version: kept byte for byte and passed over (`UnknownEntry`)     |
"""

from datetime import datetime
from decimal import Decimal
from typing import Annotated

import msgspec

from holdfast import strict
from holdfast.errors import InvalidInput
from holdfast.frozen import EMPTY, FrozenDict, Value
from holdfast.identity import NO_ID, NO_TIME, settle_identity
from holdfast.messages import Message
from holdfast.usage import Usage, amount

NO_USAGE = Usage()


class EntryValue(Value, frozen=True, kw_only=True):
    """What all entries share."""

    id: str = NO_ID
    timestamp: Annotated[datetime, msgspec.Meta(tz=True)] = NO_TIME
    extra: FrozenDict = EMPTY

    def _settle(self) -> None:
        settle_identity(self)
        self._settle_objects("extra")


class Fold(EntryValue, frozen=True, kw_only=True):
    """In the window, the messages from seq `first` to `last` are shown as `replacement`, or not.

    With `is_open` they are shown as they are, whatever earlier folds say: it unfolds. `by` names
    who made it (a policy, a user) and `why` says why in words; `tokens_before` and `tokens_after`
    count what the window held for these messages without and with the fold.
    """

    first: int
    last: int
    replacement: Message | None = None
    is_open: bool = False
    by: str = ""
    why: str = ""
    tokens_before: int | None = None
    tokens_after: int | None = None

    def _settle(self) -> None:
        super()._settle()
        for name in ("first", "last"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise InvalidInput(name, f"is the seq of an entry, from 1 up, not {value!r}")
        if self.first > self.last:
            raise InvalidInput("first", f"is {self.first}, behind last ({self.last})")
        if self.replacement is not None and not isinstance(self.replacement, Message):
            raise InvalidInput("replacement", "is a Message or None")
        self._settle_flags("is_open")
        if self.is_open and self.replacement is not None:
            raise InvalidInput("replacement", "is None where the messages themselves are shown")
        self._settle_texts("by", "why")
        self._settle_counts(optional=("tokens_before", "tokens_after"))


class Call(EntryValue, frozen=True, kw_only=True):
    """The receipt of one model call.

    `about` is the id of the message that came of it. `window` says what the model was shown and
    `digest` is the digest of exactly that; `request_id` is what the vendor's support asks for.
    """

    model: str
    about: str | None = None
    usage: Usage = NO_USAGE
    stop: str | None = None
    latency_ms: int | None = None
    cost: Decimal | None = None
    window: FrozenDict = EMPTY
    digest: str | None = None
    request_id: str | None = None

    def _settle(self) -> None:
        super()._settle()
        self._settle_texts("model", optional=("about", "stop", "digest", "request_id"))
        if not isinstance(self.usage, Usage):
            raise InvalidInput("usage", f"is a Usage, not {type(self.usage).__name__}")
        if self.usage == NO_USAGE:  # a default that is the very object is left out when written
            self._set("usage", NO_USAGE)
        self._settle_counts(optional=("latency_ms",))
        if self.cost is not None:
            self._set("cost", amount("cost", self.cost))
        self._settle_objects("window")


class Mark(EntryValue, frozen=True, kw_only=True):
    """A fact about the session that is never shown to a model.

    `what` names the fact in one word (`mended`, `interrupted`), `about` is the id of the message
    or call it concerns, and `data` holds the particulars.
    """

    what: str
    about: str | None = None
    data: FrozenDict = EMPTY

    def _settle(self) -> None:
        super()._settle()
        self._settle_texts("what", optional=("about",))
        if not self.what:
            raise InvalidInput("what", "is empty: name the fact")
        self._settle_objects("data")


RECORD_VERSION = 1
KINDS = ("message", "fold", "call", "mark")


class UnknownEntry(Value, frozen=True, kw_only=True):
    """An entry of a kind that this version does not know, kept as the record that was read.

    `raw` is that record, `{"v":1,"<kind>":...}`, byte for byte: what is kept can be read again.
    """

    kind: str
    raw: bytes

    def _settle(self) -> None:
        self._settle_texts("kind")
        if type(self.raw) is not bytes:
            raise InvalidInput("raw", f"is bytes, not {type(self.raw).__name__}")
        if self.kind in KINDS:
            raise InvalidInput("kind", f"{self.kind!r} is known: read the record instead")
        value, mended = strict.parse(self.raw, strict.OWN_LIMITS, "raw")
        is_record = isinstance(value, dict) and value.keys() == {"v", self.kind}
        if mended or not is_record or (type(value["v"]), value["v"]) != (int, RECORD_VERSION):
            wanted = f'{{"v":{RECORD_VERSION},"{self.kind}":...}}'
            raise InvalidInput("raw", f"is not the record of such an entry: {wanted}")


Entry = Message | Fold | Call | Mark | UnknownEntry
ENTRY_TYPES = frozenset((Message, Fold, Call, Mark, UnknownEntry))
_KINDS: dict[type, str] = dict(zip((Message, Fold, Call, Mark), KINDS, strict=True))


def kind_of(entry: Entry) -> str:
    """The name under which an entry is stored."""
    return entry.kind if type(entry) is UnknownEntry else _KINDS[type(entry)]
