"""Messages as blocks of the Messages API, encoded.

A message becomes a `Fragment`: its role and its blocks, each of them JSON that is ready to send.

- A tool's message is a `tool_result` block of the user's; results stand behind their call, so they
  come first when the user's blocks are put together.
- Arguments go out as the model wrote them if they are a JSON object, and else as
  `{"arguments": "what was written"}`.
- Thinking without a signature is left out, and so is thinking with nothing behind it: the vendor
  refuses both. Others who speak this wire sign nothing, and take it as it is.
- The vendor's own blocks (Opaque) go back as they came, but for breakpoints, which are set anew.
  What no request may hold, such as the note that another model answered, is left out.
"""

import re
from base64 import b64encode
from typing import Any

import msgspec

from holdfast.messages import Message, Role, ToolCall
from holdfast.notes import BLANK
from holdfast.parts import CallRef, File, Image, Opaque, Part, Text, Thinking
from holdfast.providers.anthropic_fragments import Block, Fragment, made, of_blocks

IMAGES = frozenset(("image/jpeg", "image/png", "image/gif", "image/webp"))
PDF = "application/pdf"
CALL_ID = re.compile(r"[a-zA-Z0-9_-]+\Z")
_SERVER_ID = re.compile(r"srvtoolu_[a-zA-Z0-9_]+\Z")
_PASSING = frozenset(("unanswered", "continue"))  # made up, and perhaps not in the next request
_CALLS_OF_SERVER = frozenset(("server_tool_use", "mcp_tool_use"))

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def fragment(message: Message, name: str, vendor: str, *, signs: bool = True) -> Fragment:
    """The message for the model `name`, as one of "user" or of "assistant".

    `signs`: the service signs thinking, and refuses what it did not sign.
    """
    role, content = message.role, message.content
    if role is Role.TOOL:
        is_firm = message.synthetic not in _PASSING
        return Fragment.of("user", (_result(message, vendor),), "r", (), is_firm)
    if type(content) is str and not message.tool_calls:
        spoken = "assistant" if role is Role.ASSISTANT else "user"
        json = _text(content)
        return made((spoken, json, (json,), "x", (), message.synthetic not in _PASSING))
    if role is Role.ASSISTANT:
        return of_blocks("assistant", _said(message, name, vendor, signs))
    parts = (Text(content),) if isinstance(content, str) else content or ()
    shown = [_shown(part, vendor, is_result=False) for part in parts]
    blocks = tuple(block for block in shown if block is not None) or (_text(BLANK),)
    return Fragment.of("user", blocks, "x" * len(blocks))


# What an assistant said


def _said(message: Message, name: str, vendor: str, signs: bool) -> list[Block]:
    is_own = message.model == name
    if isinstance(message.content, str):
        words: Block = (_text(message.content), "x", "")
        return [words, *[_call(call, is_own) for call in message.tool_calls]]
    calls = {call.id: call for call in message.tool_calls}
    blocks: list[Block] = []
    for part in message.content or ():
        block: Block | None = None
        if type(part) is Text:
            block = _words(part)
        elif type(part) is Thinking:
            block = _thought(part, signs)
        elif type(part) is CallRef:
            call = calls.pop(part.id, None)
            block = None if call is None else _call(call, is_own)
        elif type(part) is Opaque and part.provider == vendor:
            block = _replayed(part.data)
        if block is not None:
            blocks.append(block)
    blocks += [_call(call, is_own) for call in calls.values()]
    return blocks


def _words(part: Text) -> Block:
    block = _text(part.text)
    if part.extra and (citations := part.extra.get("citations")):
        block = b'%s,"citations":%s}' % (block[:-1], _encode(citations))
    return block, "x" if part.text and not part.text.isspace() else "b", ""


def _thought(part: Thinking, signs: bool) -> Block | None:
    if not part.signature and (signs or part.redacted or not part.text):
        return None
    if part.redacted:
        return _encode({"type": "redacted_thinking", "data": part.signature}), "t", ""
    words, signature = _encode(part.text), _encode(part.signature or "")
    return b'{"type":"thinking","thinking":%s,"signature":%s}' % (words, signature), "t", ""


def _call(call: ToolCall, is_own: bool) -> Block:
    head = b'{"type":"tool_use","id":%s,"name":%s,"input":%s'
    block = head % (_encode(call.id), _encode(call.name), _input(call.arguments))
    caller = call.extra.get("caller") if is_own and call.extra else None
    if isinstance(caller, dict) and isinstance(caller.get("tool_id"), str):
        # Code that a server runs made this call, and goes on with its result.
        return b'%s,"caller":%s}' % (block, _encode(caller)), "c", f"*{caller['tool_id']}"
    return block + b"}", "c", ""


def _input(arguments: str) -> bytes:
    """The arguments, which have to be an object: as they were written, if they are one."""
    try:
        if type(_decode(arguments)) is dict:
            return arguments.encode()
    except (msgspec.DecodeError, RecursionError):
        pass
    return _encode({"arguments": arguments}) if arguments.strip() else b"{}"


def _replayed(data: dict[str, Any]) -> Block | None:
    """A block that the vendor wrote into an answer; None if it may not stand in a request."""
    kind = data.get("type")
    if not isinstance(kind, str):
        return None
    block = _unmarked(data)
    if kind in _CALLS_OF_SERVER:
        spelling = _SERVER_ID if kind == "server_tool_use" else CALL_ID
        is_good = _has_texts(block, "name") and isinstance(block.get("input"), dict)
        if kind == "mcp_tool_use":
            is_good = is_good and _has_texts(block, "server_name")
        if is_good and _is_id(block.get("id"), spelling):
            return _encode(block), "s", f"+{block['id']}"
        return None
    if kind.endswith("_tool_result"):
        is_good = isinstance(block.get("content"), str | tuple | list | dict)
        if is_good and _is_id(block.get("tool_use_id"), CALL_ID):
            return _encode(block), "o", f"-{block['tool_use_id']}"
        return None
    if kind == "compaction" or (kind == "container_upload" and _has_texts(block, "file_id")):
        return _encode(block), "o", ""
    return None


def _is_id(id: Any, spelling: re.Pattern[str]) -> bool:
    return isinstance(id, str) and spelling.match(id) is not None


# What a user or a tool says


def takes(part: Any, role: Role) -> bool:
    """Whether a message of this role may hold this picture or document."""
    if role is Role.ASSISTANT or not isinstance(part, Image | File):
        return False
    is_image = isinstance(part, Image)
    if part.url is not None:
        is_web = part.url.startswith(("https://", "http://"))
        return is_web and (is_image or part.media_type in (None, PDF))
    if not part.data:
        return False
    if isinstance(part, Image):
        return part.media_type in IMAGES
    return part.media_type == PDF or _plain_text(part) is not None


def _plain_text(part: File) -> str | None:
    """The words in a document that is text; None if it is none, or empty."""
    if part.data is None or not (part.media_type or "").startswith("text/"):
        return None
    try:
        words = part.data.decode()
    except UnicodeDecodeError:
        return None
    return words if words.strip() else None


def _shown(part: Part, vendor: str, is_result: bool) -> bytes | None:
    """A part of what a user or a tool says; None if it cannot be shown."""
    if isinstance(part, Text):
        return _text(part.text) if part.text.strip() else None
    if isinstance(part, Image | File):
        return media(part)
    if isinstance(part, Opaque) and part.provider == vendor:
        return _given(part.data, is_result)
    return None


def media(part: Image | File) -> bytes:
    """A picture or a document that `takes` lets through."""
    block: dict[str, Any] = {"type": "image" if type(part) is Image else "document"}
    if part.url is not None:
        block["source"] = {"type": "url", "url": part.url}
    elif type(part) is File and (words := _plain_text(part)) is not None:
        block["source"] = {"type": "text", "media_type": "text/plain", "data": words}
    else:
        data = b64encode(part.data or b"").decode()
        block["source"] = {"type": "base64", "media_type": part.media_type, "data": data}
    if type(part) is File:
        if part.name:
            block["title"] = part.name
        for name in ("context", "citations"):
            if value := part.extra.get(name):
                block[name] = value
    return _encode(block)


def _given(data: dict[str, Any], is_result: bool) -> bytes | None:
    """A block of the vendor's that a program passes on: a file it keeps there, a search result."""
    kind = data.get("type")
    if kind in ("image", "document"):
        is_good = _has_source(data)
    elif kind == "search_result":
        is_good = _has_texts(data, "source", "title") and bool(data.get("content"))
    elif is_result:
        is_good = kind == "tool_reference" and _has_texts(data, "tool_name")
    else:
        is_good = kind == "container_upload" and _has_texts(data, "file_id")
    return _encode(_unmarked(data)) if is_good else None


def _has_source(block: dict[str, Any]) -> bool:
    source = block.get("source")
    if not isinstance(source, dict) or not isinstance(source.get("type"), str):
        return False
    needed = {"base64": "data", "url": "url", "file": "file_id", "text": "data"}
    return _has_texts(source, needed.get(source["type"], "type"))


def _has_texts(block: dict[str, Any], *names: str) -> bool:
    return all(isinstance(block.get(name), str) and block[name] for name in names)


def _unmarked(block: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in block.items() if name != "cache_control"}


def _result(message: Message, vendor: str) -> bytes:
    block = b'{"type":"tool_result","tool_use_id":' + _encode(message.tool_call_id)
    content = message.content
    if isinstance(content, str):
        block += b',"content":' + _encode(content)
    elif content:
        inner = [_shown(part, vendor, is_result=True) for part in content]
        block += b',"content":[%s]' % b",".join(each for each in inner if each is not None)
    return block + (b',"is_error":true}' if message.is_error else b"}")


def _text(words: str) -> bytes:
    return b'{"type":"text","text":%s}' % _encode(words)
