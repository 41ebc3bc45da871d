"""What can be found of a message, in every store."""

import re

from holdfast.messages import Message

_JSON_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)


def text_of(message: Message) -> str:
    """What can be found of a message: its text, and its tools' names, arguments and outputs.

    Not its thinking, pictures, ids and signatures. JSON counts as what it says: a word behind `\\n`
    is found, and so is one that was written as `\\u5317\\u4eac`.
    """
    found = [_plain(message.text or "") if message.results else message.text or ""]
    for call in message.tool_calls:
        found += [call.name, _unescaped(call.arguments), _plain(call.output or "")]
    return "\n".join(found)


def _plain(text: str) -> str:
    shape = text.strip()
    return _unescaped(text) if shape[:1] + shape[-1:] in ("{}", "[]", '""') else text


def _unescaped(json: str) -> str:
    """JSON text with its characters written out. All that needs no `\\u` stands between words."""
    found = _JSON_ESCAPE.sub(lambda escape: chr(int(escape[1], 16)) if escape[1] else " ", json)
    return found.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
