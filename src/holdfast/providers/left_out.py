"""What a wire leaves out of messages that are its own model's, found out by asking it.

`prepare` keeps what a model may have back: its thinking, its signatures, its own blocks. Its API
still does not take all of that: not a thought without a signature, not half of a pair, not a block
that only answers may hold. Each wire knows that for itself, in the place where it writes such a
thing, and nothing has to be said twice: a thing without which the request would be the same is
not in it.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace as _replaced  # unchecked: nobody keeps what is made here

from holdfast.frozen import FrozenDict
from holdfast.messages import Message, ToolCall
from holdfast.notes import CONTINUE
from holdfast.parts import Opaque, Part, Text, Thinking
from holdfast.window.render import Repair

if TYPE_CHECKING:
    from holdfast.providers.wire import Ask, Wire

_encode = msgspec.json.Encoder().encode
_OTHERS = '{"left":"out"}'  # the arguments of no call


def left_out(wire: "Wire", ask: "Ask") -> Iterator[Repair]:
    """The parts of prepared messages that are not in the request."""
    requests = _Requests(wire, ask)
    for at, message in enumerate(ask.prepared.messages):
        # What depends on other messages is a vendor's own block, or what led to one.
        is_loose = _has_opaque(message)
        for less, repair in _less(message):
            is_same = wire.fragment(less) == ask.prepared.fragments[at]
            if is_same or (is_loose and requests.are_same(at, less)):
                yield repair


class _Requests:
    """Requests with one message more or less of a question, held next to each other."""

    def __init__(self, wire: "Wire", ask: "Ask") -> None:
        self._wire = wire
        self._ask = ask
        self._whole: bytes | None = None
        self._next = Message.user(CONTINUE)

    def are_same(self, at: int, less: Message) -> bool:
        """Whether the request is the same with `less` in the place of the message there.

        What is in it when nothing stands around it is in it in any case: then the long request
        need not be made.
        """
        messages = self._ask.prepared.messages
        if self._body([messages[at], self._next]) != self._body([less, self._next]):
            return False
        if self._whole is None:
            self._whole = self._body(messages)
        return self._body([*messages[:at], less, *messages[at + 1 :]]) == self._whole

    def _body(self, messages: Sequence[Message]) -> bytes:
        """The request that says these messages, without notes of an earlier one."""
        fragments = [*map(self._wire.fragment, messages)]
        prepared = self._ask.prepared._replace(
            messages=messages, fragments=fragments, settled=0, made={}
        )
        return _encode(self._wire.to_wire(self._ask._replace(prepared=prepared)))


def _has_opaque(message: Message) -> bool:
    content = message.content
    return isinstance(content, tuple) and any(type(part) is Opaque for part in content)


def _less(message: Message) -> Iterator[tuple[Message, Repair]]:
    """The message without each of what may be left out, one at a time."""
    content = message.content if isinstance(message.content, tuple) else ()
    for at, part in enumerate(content):
        found = _less_of_part(part)
        if found is not None:
            other, what = found
            kept = (*content[:at], *other, *content[at + 1 :])
            yield _replaced(message, content=kept or None), Repair("stripped", message.id, "", what)
    calls = message.tool_calls
    for at, call in enumerate(calls):
        for less, what in _less_of_call(call):
            kept_calls = (*calls[:at], less, *calls[at + 1 :])
            repair = Repair("stripped", message.id, call.id, what)
            yield _replaced(message, tool_calls=kept_calls), repair


def _less_of_part(part: Part) -> tuple[tuple[Part, ...], str] | None:
    """What is left of a part without what may be left out, and what that is."""
    if type(part) is Thinking or type(part) is Opaque:
        return (), type(part).__name__.lower()
    if type(part) is Text and part.extra.get("signature"):
        notes = FrozenDict({k: v for k, v in part.extra.items() if k != "signature"})
        return (Text(part.text, extra=notes),), "signature"
    return None


def _less_of_call(call: ToolCall) -> Iterator[tuple[ToolCall, str]]:
    if call.signature is not None:
        yield _replaced(call, signature=None), "signature"
    if call.extra:  # it cannot be taken away from its result: with other arguments it is another
        yield _replaced(call, arguments=_OTHERS), "call"
