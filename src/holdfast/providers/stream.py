"""From bytes that arrive in pieces to whole events, lines and elements.

Services stream an answer in three ways, and there is a reader for each: `EventStream` reads
text/event-stream as the WHATWG standard says, `LineStream` one JSON document a line, and
`ArrayStream` a JSON array element by element. They do no I/O and decode no JSON: what they give
is bytes, so text that is not UTF-8 is found by whoever decodes it.

    reader = EventStream()
    for chunk in body:
        for event in reader.feed(chunk):
            ...
    reader.finish()
    if reader.is_unfinished:
        ...    # the connection broke inside an event

Three promises hold for all of them:

- *However the bytes are cut into chunks, the items are the same*, and so is the error behind
  them. A chunk that holds good items and then an error gives the items; the next call raises.
- *Nothing is given before its end was seen*: the blank line of an event, the newline of a line,
  the closing bracket or quote of an element (the comma or bracket behind a bare number). The end
  of the stream ends none of them, because a broken connection looks just the same. What had
  begun is in `left_over`. Services do send that last blank line; where a recording lacks it, it
  was trimmed, and what stands there is a mark such as `data: [DONE]`. A reader for a wire that
  has such a mark may look for it in `left_over`: half of it cannot be taken for the whole.
- *A byte is looked at a fixed number of times*, and what is kept is at most the item that has
  begun. An item of more than `size_max` bytes is a ProtocolError.

Whether the answer itself is complete is a different question, for the reader of the wire API: an
answer can also break off between two events.
"""

import re
from typing import Generic, NamedTuple, TypeVar

from holdfast.errors import ProtocolError

SIZE_MAX = 16 * 1024 * 1024

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
NEWLINE = ord("\n")
RETURN = ord("\r")
MESSAGE = "message"

Item = TypeVar("Item")


class Event(NamedTuple):
    """One event of a stream. `name` is "message" where the service gave none."""

    name: str
    data: bytes


_made = tuple.__new__  # in half the time of the __new__ that NamedTuple writes


class _Stream(Generic[Item]):
    """What the three readers share: the mark at the start, the item that has begun, the limit."""

    item = "item"

    def __init__(self, size_max: int = SIZE_MAX) -> None:
        self.size_max = size_max
        self._mark: bytes | None = b""  # what may become a byte order mark; None: it was decided
        self._begun = bytearray()
        self._failure: ProtocolError | None = None

    def feed(self, chunk: bytes) -> list[Item]:
        """Take the next bytes, and return the items that they complete."""
        if self._failure is not None:
            raise self._failure
        if self._mark is not None:
            chunk = self._after_mark(chunk)
        items: list[Item] = []
        if chunk:
            try:
                self._read(chunk, items)
            except ProtocolError as error:
                self._failure = error
                if not items:
                    raise
        return items

    def finish(self) -> list[Item]:
        """The stream has ended: raise the error that the last items hid, if there is one.

        The end completes no item, so the list is empty; `is_unfinished` tells whether one had
        begun.
        """
        if self._failure is not None:
            raise self._failure
        return []

    @property
    def left_over(self) -> bytes:
        """The bytes of the item that has begun and has not ended; of an event, with LF for CR."""
        return self._mark or bytes(self._begun)

    @property
    def is_unfinished(self) -> bool:
        """Whether a stream that ended here would have broken off."""
        return self._failure is not None or bool(self.left_over)

    def _read(self, chunk: bytes, items: list[Item]) -> None:
        raise NotImplementedError

    def _after_mark(self, chunk: bytes) -> bytes:
        assert self._mark is not None
        chunk = self._mark + chunk
        if len(chunk) < len(BYTE_ORDER_MARK) and BYTE_ORDER_MARK.startswith(chunk):
            self._mark = chunk
            return b""
        self._mark = None
        return chunk.removeprefix(BYTE_ORDER_MARK)

    def _check(self, size: int) -> None:
        if size > self.size_max:
            raise ProtocolError(f"{self.item} of the answer has more than {self.size_max} bytes")


class EventStream(_Stream[Event]):
    """Reads text/event-stream.

    Events without a data field are dropped, as are comments and fields other than `event` and
    `data`. An event counts with all its lines, comments too, against `size_max`. Comments alone,
    at the end of a stream, are not an event that has begun.
    """

    item = "an event"

    # A line that is not empty and not a comment.
    _field = re.compile(rb"(?:\A|\n)[^:\n]")

    def __init__(self, size_max: int = SIZE_MAX) -> None:
        super().__init__(size_max)
        self._after_cr = False

    @property
    def left_over(self) -> bytes:
        left = super().left_over
        return left if not left.endswith(b"\n") or self._field.search(left) else b""

    def _read(self, chunk: bytes, items: list[Event]) -> None:
        text = self._with_newlines(chunk) if RETURN in chunk or self._after_cr else chunk
        begun = self._begun
        if begun:
            blank = text.startswith(b"\n") and begun.endswith(b"\n")
            begun += text
            if not blank and b"\n\n" not in text:
                self._check(len(begun) - begun.endswith(b"\n"))
                return
            text = bytes(begun)
            begun.clear()
        *blocks, last = text.split(b"\n\n")
        del text  # a large event would be held once more
        for block in blocks:
            if len(block) > self.size_max:
                self._check(len(block.lstrip(b"\n")))
            # Nearly every event is a line of data, perhaps behind a line with its name.
            if block.startswith(b"data: ") and NEWLINE not in block:
                items.append(_made(Event, (MESSAGE, block[6:])))
                continue
            cut = block.find(b"\n") + 1
            if (
                block.startswith(b"data: ", cut)
                and block.startswith(b"event: ")
                and block.find(b"\n", cut) < 0
            ):
                name = block[7 : cut - 1].decode("utf-8", "replace") or MESSAGE
                items.append(_made(Event, (name, block[cut + 6 :])))
            elif event := _event(block):
                items.append(event)
        if last:
            begun += last.lstrip(b"\n")
            self._check(len(begun) - begun.endswith(b"\n"))

    def _with_newlines(self, chunk: bytes) -> bytes:
        """CR, LF and CRLF end a line. A CR ends it at once; an LF behind it may come later."""
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        self._after_cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _event(block: bytes) -> Event | None:
    """The event of these lines; None if it has no data."""
    name = b""
    data: bytes | bytearray | None = None
    start = 0
    while start < len(block):
        stop = block.find(b"\n", start)
        line = block[start:] if stop < 0 else block[start:stop]
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"event":
            name = value
        elif field == b"data":
            data = value if data is None else _joined(data, value)
        start += len(line) + 1
    if data is None:
        return None
    return Event(name.decode("utf-8", "replace") or MESSAGE, bytes(data))


def _joined(data: bytes | bytearray, value: bytes) -> bytearray:
    """Grows in place: an event may have a million data lines."""
    if isinstance(data, bytes):
        data = bytearray(data)
    data += b"\n"
    data += value
    return data


class LineStream(_Stream[bytes]):
    """Reads lines that end with LF or CRLF, and passes over blank ones."""

    item = "a line"

    @property
    def left_over(self) -> bytes:
        return super().left_over.strip()

    def _read(self, chunk: bytes, items: list[bytes]) -> None:
        begun = self._begun
        first, newline, rest = chunk.partition(b"\n")
        begun += first
        self._check(len(begun))
        if not newline:
            return
        if line := bytes(begun).strip():
            items.append(line)
        begun.clear()
        *lines, last = rest.split(b"\n")
        for line in lines:
            self._check(len(line))
            if line := line.strip():
                items.append(line)
        begun += last
        self._check(len(begun))


# Where an ArrayStream is.
BEFORE = "before the array"
FIRST = "before the first element"
NEXT = "behind a comma"
INSIDE = "inside an object or array"
QUOTED = "inside a string"
BARE = "inside a number or word"
BEHIND = "behind an element"
AFTER = "after the array"


class ArrayStream(_Stream[bytes]):
    """Reads the elements of one JSON array.

    Brackets are counted, in and out of strings told apart; whether an element is good JSON is
    for its decoder to say. What stands between elements has to be right. The stream is
    unfinished until the bracket that closes the array has come.
    """

    item = "an element"

    _space = re.compile(rb"[ \t\r\n]*")
    # A string without escapes is one match; of any other, the quote that opens it is.
    _structure = re.compile(rb'[\[\]{}]|"(?:[^"\\]*")?')
    _quote_or_escape = re.compile(rb'["\\]')
    _bare_end = re.compile(rb"[ \t\r\n,\]]")

    def __init__(self, size_max: int = SIZE_MAX) -> None:
        super().__init__(size_max)
        self._where = BEFORE
        self._depth = 0  # of brackets, inside the element
        self._escaped = False  # the last chunk ended behind a backslash

    @property
    def is_unfinished(self) -> bool:
        return self._where is not AFTER or super().is_unfinished

    def _read(self, chunk: bytes, items: list[bytes]) -> None:
        position = 0
        while position < len(chunk):
            if self._where in (INSIDE, QUOTED, BARE):
                end = self._end(chunk, position)
                self._begun += chunk[position:end]
                self._check(len(self._begun))
                if self._where is BEHIND:
                    items.append(bytes(self._begun))
                    self._begun.clear()
                position = end
            else:
                position = self._between(chunk, position)

    def _between(self, chunk: bytes, position: int) -> int:
        """Pass over white space and one mark; stop in front of an element."""
        space = self._space.match(chunk, position)
        position = space.end() if space else position
        if position == len(chunk):
            return position
        where, mark = self._where, chunk[position : position + 1]
        if where is BEFORE and mark == b"[":
            self._where = FIRST
        elif where is BEHIND and mark == b",":
            self._where = NEXT
        elif where in (FIRST, BEHIND) and mark == b"]":
            self._where = AFTER
        elif where in (FIRST, NEXT) and mark not in b",]}:":
            self._where = INSIDE if mark in b'[{"' else BARE
            return position
        else:
            raise ProtocolError(f"the answer is not a JSON array: {mark!r} stands {where}")
        return position + 1

    def _end(self, chunk: bytes, position: int) -> int:
        """Go on inside an element, to its end or to the end of the chunk."""
        if self._where is BARE:
            found = self._bare_end.search(chunk, position)
            if found:
                self._where = BEHIND
            return found.start() if found else len(chunk)
        while position < len(chunk) and self._where is not BEHIND:
            position = (
                self._end_of_string(chunk, position)
                if self._where is QUOTED
                else self._end_of_brackets(chunk, position)
            )
        return position

    def _end_of_brackets(self, chunk: bytes, position: int) -> int:
        """To the bracket that closes the element, or into a string that is not a simple one."""
        for found in self._structure.finditer(chunk, position):
            mark = found[0]
            if mark == b'"':
                self._where = QUOTED
                return found.end()
            if len(mark) == 1:
                self._depth += 1 if mark in b"[{" else -1
            if not self._depth:
                self._where = BEHIND
                return found.end()
        return len(chunk)

    def _end_of_string(self, chunk: bytes, position: int) -> int:
        if self._escaped:
            self._escaped = False
            return position + 1
        found = self._quote_or_escape.search(chunk, position)
        if not found:
            return len(chunk)
        if found[0] == b'"':
            self._where = INSIDE if self._depth else BEHIND
        else:
            self._escaped = True
        return found.end()
