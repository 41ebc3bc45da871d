"""What a tool gave back, as the message that a model reads.

| returned                                    | content of the message                           |
|---------------------------------------------|--------------------------------------------------|
| str                                         | as it is                                         |
| bytes                                       | the text, if they are UTF-8; otherwise an error  |
| Text, Image, Audio or File, or a list of    | those parts                                      |
| these and str, with at least one of these   |                                                  |
| all else that JSON can carry, also None     | compact JSON, keys in their order; a number that |
|                                             | JSON has no word for is "NaN" or "Infinity"      |

What JSON cannot carry, and what is too large, is an error that says so: nothing is cut or left
out. Half of a surrogate pair becomes U+FFFD, and `extra["mended"]` says how often, as in a model's
reply.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from holdfast import text
from holdfast.errors import InvalidInput
from holdfast.frozen import EMPTY, FrozenDict
from holdfast.messages import Message, ToolCall
from holdfast.parts import PART_TYPES, Audio, File, Image, Part, Text

RESULT_BYTES_MAX = 8 * 1024 * 1024
_SHOWN_MAX = 300  # characters of a name, and names of a list, that an error repeats
_SHOWABLE = (Text, Image, Audio, File)
_WAY_OUT = "return text, numbers, lists, dicts, dataclasses, or parts"


class Content(NamedTuple):
    """What a message will hold; `mended` counts the broken characters that were replaced."""

    content: str | tuple[Part, ...]
    mended: int = 0


# ---- messages ----


def answered(call: ToolCall, found: Content) -> Message:
    """The tool message for what a tool gave back."""
    return _message(call, found, is_error=False)


def failed(call: ToolCall, error: BaseException, bytes_max: int = RESULT_BYTES_MAX) -> Message:
    """The tool message for what a tool raised: its words, or its name if it has none."""
    words = _words_of(error)
    if len(words) > bytes_max:
        words = f"{words[:bytes_max]} [cut: there are {len(words):,} characters]"
    return _message(call, Content(*text.mend(f"error: {words}")), is_error=True)


def unknown_tool(call: ToolCall, offered: Iterable[str]) -> Message:
    """The tool message for a call of something that was not offered: it names what was."""
    names = list(offered)
    listed = ", ".join(names[:_SHOWN_MAX]) + (", ..." if len(names) > _SHOWN_MAX else "")
    way_out = f"the tools are {listed}" if names else "there are no tools now"
    words = f"error: there is no tool {call.name[:_SHOWN_MAX]!r}: {way_out}"
    return _message(call, Content(words), is_error=True)


def _message(call: ToolCall, found: Content, *, is_error: bool) -> Message:
    return Message.tool(
        found.content,
        call.id,
        name=call.name,
        is_error=is_error,
        extra=FrozenDict({"mended": found.mended}) if found.mended else EMPTY,
    )


def _words_of(error: BaseException) -> str:
    try:
        words = str(error)
    except BaseException:  # noqa: BLE001 - a tool's own class, whose words are broken too
        words = ""
    return words if words.strip() else type(error).__name__


# ---- what was returned ----


def content_of(value: Any, bytes_max: int = RESULT_BYTES_MAX) -> Content:
    """What a tool returned as content, a copy that nothing can change; or InvalidInput."""
    if isinstance(value, str):
        _check_size(_size_of(value, bytes_max), bytes_max)
        return Content(*text.mend(str.__str__(value)))
    if isinstance(value, bytes | bytearray | memoryview):
        return _from_bytes(memoryview(value), bytes_max)
    if isinstance(value, PART_TYPES):
        return _from_parts((value,), bytes_max)
    if isinstance(value, list | tuple) and any(isinstance(item, PART_TYPES) for item in value):
        return _from_parts(tuple(value), bytes_max)
    return _from_json(value, bytes_max)


def _from_bytes(view: memoryview, bytes_max: int) -> Content:
    _check_size(view.nbytes, bytes_max)
    try:
        return Content(view.tobytes().decode())
    except UnicodeDecodeError:
        raise InvalidInput(
            "the result",
            f"is {view.nbytes:,} bytes that are not UTF-8 text: return text, or an Image, Audio or "
            "File part",
        ) from None


def _from_parts(items: tuple[Any, ...], bytes_max: int) -> Content:
    _check_size(sum(_size_of_item(item, bytes_max) for item in items), bytes_max)
    parts: list[Part] = []
    mended = 0
    for item in items:
        if isinstance(item, str):
            words, count = text.mend(str.__str__(item))
            parts.append(Text(words))
            mended += count
        elif isinstance(item, _SHOWABLE):
            parts.append(item)
        else:
            raise InvalidInput(
                "the result",
                f"has a {type(item).__name__} among its parts: Text, Image, Audio, File and str "
                "can stand there",
            )
    return Content(tuple(parts), mended)


def _from_json(value: Any, bytes_max: int) -> Content:
    try:
        mender = _Mender()
        data = _encoded(value, mender)
    except InvalidInput:
        raise
    except RecursionError:
        raise InvalidInput("the result", "is nested too deeply, or holds itself") from None
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            "the result", f"is a {_name(value)} that JSON cannot carry ({error}): {_WAY_OUT}"
        ) from error
    _check_size(len(data), bytes_max)
    return Content(data.decode(), mender.mended)


def _encoded(value: Any, mender: "_Mender") -> bytes:
    try:
        data = msgspec.json.encode(value, enc_hook=_plainer)
    except UnicodeEncodeError:
        data = b""
    # msgspec writes null for a number that is not finite, and refuses half of a surrogate pair.
    # Both are rare: only where one may be is the value walked through here.
    if data and b"null" not in data:
        return data
    plain = msgspec.to_builtins(value, str_keys=True, enc_hook=_plainer)
    return msgspec.json.encode(mender.mend(plain))


def _plainer(value: Any) -> Any:
    """For msgspec, what it does not know."""
    if isinstance(value, Mapping):
        return dict(value)
    where = "for a key" if isinstance(value, tuple | frozenset) else "in it"
    raise InvalidInput(
        "the result", f"has a {_name(value)} {where}, which JSON cannot carry: {_WAY_OUT}"
    )


class _Mender:
    """Puts into a JSON value, on a walk through it, what JSON can carry."""

    def __init__(self) -> None:
        self.mended = 0

    def mend(self, value: Any) -> Any:
        if isinstance(value, str):
            words, count = text.mend(value)
            self.mended += count
            return words
        if isinstance(value, float) and not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        if isinstance(value, list | tuple):
            return [self.mend(item) for item in value]
        return self._mend_object(value) if isinstance(value, dict) else value

    def _mend_object(self, value: dict[str, Any]) -> dict[str, Any]:
        found = {self.mend(key): self.mend(item) for key, item in value.items()}
        if len(found) < len(value):  # they differed in what was broken
            raise InvalidInput("the result", "has keys that hold halves of surrogate pairs")
        return found


# ---- sizes ----


def _check_size(size: int, bytes_max: int) -> None:
    if size > bytes_max:
        raise InvalidInput(
            "the result",
            f"is too large: {size:,} bytes, and at most {bytes_max:,} are taken; "
            "ask for a smaller part of it",
        )


def _size_of_item(item: Any, bytes_max: int) -> int:
    if isinstance(item, Text):
        return _size_of(item.text, bytes_max)
    if isinstance(item, Image | Audio | File):
        return len(item.data or b"") + len(item.url or "")
    return _size_of(item, bytes_max) if isinstance(item, str) else 0


def _size_of(words: str, bytes_max: int) -> int:
    """Its bytes in UTF-8, counted without a second copy of what is too large anyway."""
    if words.isascii():
        return len(words)
    step = max(bytes_max, 1)
    pieces = (words[start : start + step] for start in range(0, len(words), step))
    return sum(len(piece.encode("utf-8", "surrogatepass")) for piece in pieces)


def _name(value: Any) -> str:
    return type(value).__name__[:_SHOWN_MAX]
