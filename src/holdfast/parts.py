"""What a message is made of when plain text will not do.

| part     | holds                                                                             |
|----------|-----------------------------------------------------------------------------------|
| Text     | words                                                                             |
| Image    | a picture: its bytes, an address, or the digest of a stored blob                  |
| Audio    | sound, likewise                                                                   |
| File     | a document, likewise, with its name                                               |
| Thinking | what the model thought before it answered, with the vendor's signature            |
| CallRef  | the place of a tool call among the words, when words follow it                    |
| Opaque   | a vendor's block with no form here: goes back to that vendor as it came, and to   |
|          | no other                                                                          |
| Unknown  | an element of somebody's content list that this version cannot read: kept as is   |
"""

from typing import Any

import msgspec

from holdfast.errors import InvalidInput
from holdfast.frozen import EMPTY, FrozenDict, JSONObject, Value, decode_hook, freeze


class PartValue(Value, frozen=True, tag_field="type"):
    """The base of the parts: `type` tells them apart in JSON."""


class Text(PartValue, frozen=True, tag="text"):
    """Words."""

    text: str
    extra: JSONObject = EMPTY

    def _settle(self) -> None:
        self._settle_texts("text")
        self._settle_objects("extra")


class Media(PartValue, frozen=True, kw_only=True):
    """The base of Image, Audio and File: exactly one of `data`, `url` and `blob` is set.

    `blob` is the digest under which a store keeps large data apart from the log.
    """

    data: bytes | None = None
    url: str | None = None
    blob: str | None = None
    media_type: str | None = None
    extra: JSONObject = EMPTY

    def _settle(self) -> None:
        data: object = self.data
        if isinstance(data, bytearray | memoryview):
            self._set("data", bytes(data))
        elif data is not None and type(data) is not bytes:
            raise InvalidInput("data", f"is bytes, not {type(data).__name__}")
        if sum(source is not None for source in (self.data, self.url, self.blob)) != 1:
            raise InvalidInput(type(self).__name__, "has exactly one of data, url and blob")
        self._settle_texts(optional=("url", "blob", "media_type"))
        self._settle_objects("extra")


class Image(Media, frozen=True, tag="image"):
    """A picture."""


class Audio(Media, frozen=True, tag="audio"):
    """Sound."""


class File(Media, frozen=True, tag="file", kw_only=True):
    """A document, such as a PDF."""

    name: str | None = None

    def _settle(self) -> None:
        super()._settle()
        self._settle_texts(optional=("name",))


class Thinking(PartValue, frozen=True, tag="thinking"):
    """What the model thought before it answered.

    `signature` is the vendor's proof, without which it refuses the thinking of an earlier turn.
    When `redacted`, the text is empty and the signature holds the vendor's sealed block.
    """

    text: str
    signature: str | None = None
    redacted: bool = False
    extra: JSONObject = EMPTY

    def _settle(self) -> None:
        self._settle_texts("text", optional=("signature",))
        self._settle_flags("redacted")
        self._settle_objects("extra")


class CallRef(PartValue, frozen=True, tag="call"):
    """Here stood the tool call `id`, before the words that follow."""

    id: str

    def _settle(self) -> None:
        self._settle_texts("id")


class Opaque(PartValue, frozen=True, tag="opaque"):
    """A block of `provider`'s own, replayed to it word for word and shown to no other."""

    provider: str
    data: FrozenDict

    def _settle(self) -> None:
        self._settle_texts("provider")
        self._settle_objects("data")


class Unknown:
    """An element of a content list that this version cannot read, kept as it was: any JSON value.

    Not a struct, because its JSON is `raw` itself: a later version finds what was written.
    """

    __slots__ = ("raw",)
    raw: Any

    def __new__(cls, raw: Any) -> "Unknown":
        if (part := known_part_of(raw)) is not None:
            kind = type(part).__name__
            raise InvalidInput("raw", f"is a {kind} part, and would be read as one: use {kind}")
        self = super().__new__(cls)
        object.__setattr__(self, "raw", freeze(raw, "raw"))
        return self

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"an Unknown part cannot change: {name}")

    __delattr__ = __setattr__  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return self.raw == other.raw if isinstance(other, Unknown) else NotImplemented

    def __hash__(self) -> int:
        return hash((Unknown, self.raw))

    def __repr__(self) -> str:
        return f"Unknown({self.raw!r})"

    def __reduce__(self) -> tuple[type["Unknown"], tuple[Any]]:
        return Unknown, (self.raw,)

    def __copy__(self) -> "Unknown":
        return self

    def __deepcopy__(self, memo: object) -> "Unknown":
        return self


KnownPart = Text | Image | Audio | File | Thinking | CallRef | Opaque
Part = KnownPart | Unknown
_KINDS: dict[str, Any] = {
    str(kind.__struct_config__.tag): kind
    for kind in (Text, Image, Audio, File, Thinking, CallRef, Opaque)
}


def part_names(raw: Any) -> tuple[str, ...]:
    """The names that mean something in the part that `raw` says it is; none if it is not ours."""
    name = raw.get("type") if isinstance(raw, dict) else None
    kind = _KINDS.get(name) if isinstance(name, str) else None
    return () if kind is None else ("type", *kind.__struct_fields__)


def known_part_of(raw: Any) -> KnownPart | None:
    """The part in its own JSON, what else came with it in `extra`; None if it is not one of ours.

    An object that says it is one of ours and lacks what makes it one is not.
    """
    names = part_names(raw)
    if not names:
        return None
    fields = {name: value for name, value in raw.items() if name in names}
    unknown = {name: value for name, value in raw.items() if name not in names}
    try:
        part: KnownPart = msgspec.convert(fields, _KINDS[raw["type"]], dec_hook=decode_hook)
        if unknown:
            extra = getattr(part, "extra", None)
            if extra is None or extra.keys() & unknown.keys():
                return None
            return part.replace(extra=unknown | extra)
        return part.replace()  # which runs the checks of a new value
    except (InvalidInput, msgspec.ValidationError):
        return None


PART_TYPES = (Text, Image, Audio, File, Thinking, CallRef, Opaque, Unknown)
