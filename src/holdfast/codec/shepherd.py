"""Shepherd's `to_json` (C++): `{"messages": [{"role", "content"}, ...]}`, for saving and logging.

It carries the role, in today's words, and the text of each message, and nothing else. Shepherd's
message types are a view of the same messages (`message_type`): its `tool_name` is our `name`, its
`tool_call_id` and `tool_calls` are ours, and its token counts live in the ledger, not in messages.
"""

from collections.abc import Iterable

from holdfast import strict
from holdfast.codec import foreign
from holdfast.codec.writing import dumps
from holdfast.entries import Entry
from holdfast.errors import InvalidInput
from holdfast.frozen import FrozenDict
from holdfast.messages import Message, Role
from holdfast.strict import LIMITS, Limits

_NAMES = ("role", "content")


def message_type(message: Message) -> str:
    """SYSTEM, USER, ASSISTANT, TOOL_REQUEST, TOOL_RESPONSE or FUNCTION (the legacy response)."""
    if message.role is Role.FUNCTION:
        return "FUNCTION"
    role = message.role.canonical
    if role is Role.ASSISTANT and message.calls:
        return "TOOL_REQUEST"
    return "TOOL_RESPONSE" if role is Role.TOOL else role.name


def encode(messages: Iterable[Message]) -> bytes:
    """The messages as shepherd writes them."""
    rows = [
        {"role": str(message.role.canonical), "content": _content(message)} for message in messages
    ]
    return dumps({"messages": rows}).encode()


def decode(data: bytes | str, limits: Limits = LIMITS) -> tuple[Entry, ...]:
    """The messages that shepherd wrote; a mark when characters had to be mended."""
    value, mended = strict.parse(data, limits, "the document")
    document = foreign.object_of(value, "the document")
    rows = document.get("messages")
    if type(rows) is not tuple:
        raise InvalidInput("the document", "has a list of messages, and this one has none")
    if other := [name for name in document if name != "messages"]:
        raise InvalidInput("the document", f"has {other[0][:80]!r}, which to_json does not write")
    messages = [_message(foreign.object_of(row, "a message")) for row in rows]
    return (*messages, *foreign.mended_marks(None, mended))


def _message(raw: FrozenDict) -> Message:
    return foreign.message_of(raw, _NAMES, extra=foreign.gather(raw, _NAMES))


def _content(message: Message) -> str:
    """The words of the message, or of the results it lists."""
    if message.text is not None or not message.results:
        return message.text or ""
    return "\n".join(str(result.content or "") for result in message.results)
