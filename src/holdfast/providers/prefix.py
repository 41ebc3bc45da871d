"""The digest of what stood before a message: under which its thinking was signed.

    prefix = SHA-256 of a line for the head and one for each message, the first 16 bytes, in hex
    head     [system instruction, [[name, description, parameters] of each tool, by name]]
    message  [role, content, [[id, name, arguments] of each call], tool_call_id, is_error]

Lines are JSON. A message is what it says: its id, its time and where it is stored are no part of
it. The definition is kept, because digests are stored with messages.
"""

import hashlib
from collections.abc import Iterable

import msgspec

from holdfast.messages import Message, Role
from holdfast.tools import Tool

_SIZE = 32  # characters
_encode = msgspec.json.Encoder(enc_hook=lambda part: part.raw).encode  # an Unknown is what it holds
# A message that is only words, as `_encode` would write it: most are.
_PLAIN = {role: b'["%b",%%b,[],null,false]\n' % role.value.encode() for role in Role}


class Prefix:
    """Everything up to here."""

    def __init__(self, system: str | None, tools: Iterable[Tool]) -> None:
        declared = sorted((tool.name, tool.description, _encode(tool.parameters)) for tool in tools)
        told = [(name, words, msgspec.Raw(schema)) for name, words, schema in declared]
        self._hash = hashlib.sha256(_encode((system, told)) + b"\n")

    def add(self, message: Message) -> None:
        """One more message."""
        content = message.content
        has_more = message.tool_calls or message.tool_call_id is not None or message.is_error
        if type(content) is str and not has_more:
            self._hash.update(_PLAIN[message.role] % _encode(content))
            return
        calls = [(call.id, call.name, call.arguments) for call in message.tool_calls]
        said = (message.role, content, calls, message.tool_call_id, message.is_error)
        self._hash.update(_encode(said) + b"\n")

    @property
    def digest(self) -> str:
        """Of all that was added so far."""
        return self._hash.hexdigest()[:_SIZE]
