"""The blocks of Anthropic's messages: which may stand where, and what each of them needs.

The blocks that a program writes itself are checked field by field, unknown fields included
("Extra inputs are not permitted"). Those that only the vendor writes (server tools, compaction)
are sent back as they came; of these the ids and the required fields are looked at, and new kinds
of results are let through by their name.
"""

import re

from holdfast.testing.validators.base import Node

IMAGES = {"image/jpeg", "image/png", "image/gif", "image/webp"}
# "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
ID = re.compile(r"[a-zA-Z0-9_-]+")
# "server_tool_use.id: String should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'"
SERVER_ID = re.compile(r"srvtoolu_[a-zA-Z0-9_]+")
# The published schema: minLength 1, maxLength 200.
CALL_NAME = re.compile(r".{1,200}", re.DOTALL)

ALLOWED = {
    "user": frozenset(
        {"text", "image", "document", "search_result", "tool_result", "container_upload"}
    ),
    "assistant": frozenset(
        {"text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "mcp_tool_use"}
        | {"container_upload", "compaction"}
    ),
    "system": frozenset({"text", "tool_addition", "tool_removal"}),
}
IN_RESULT = frozenset({"text", "image", "document", "search_result", "tool_reference"})

FIELDS = {
    "text": {"text", "citations", "cache_control"},
    "image": {"source", "cache_control"},
    "document": {"source", "title", "context", "citations", "cache_control"},
    "search_result": {"source", "title", "content", "citations", "cache_control"},
    "tool_use": {"id", "name", "input", "caller", "cache_control"},
    "tool_result": {"tool_use_id", "content", "is_error", "cache_control"},
    "tool_reference": {"tool_name", "cache_control"},
    "thinking": {"thinking", "signature"},
    "redacted_thinking": {"data"},
}


def is_known(block: Node, allowed: frozenset[str]) -> bool:
    """May a block of this type stand here? An assistant's may be the result of any server tool."""
    kind = block["type"]
    if "tool_use" in allowed and kind.text.endswith("_tool_result"):
        return True
    return kind.among(allowed, "block-not-allowed")


def check(block: Node, *, may_be_blank: bool = False) -> None:
    """Write down what is wrong with one block, by its type."""
    kind = block["type"].text
    if kind in FIELDS:
        block.only(FIELDS[kind] | {"type"})
    cache_control(block)
    if kind == "text":
        _text(block, may_be_blank)
    elif kind in {"image", "document"}:
        _source(block["source"], kind)
    elif kind == "search_result":
        _search_result(block)
    elif kind == "tool_use":
        _tool_use(block)
    elif kind == "tool_result":
        _tool_result(block)
    elif kind == "thinking":
        block["thinking"].expect("string")
        block["signature"].filled()  # "thinking.signature: Field required"
    elif kind == "redacted_thinking":
        block["data"].filled()
    else:
        _of_the_vendor(block, kind)


def _text(block: Node, may_be_blank: bool) -> None:
    text = block["text"]
    if not text.expect("string"):
        return
    if not text.value:
        # "messages: text content blocks must be non-empty"
        text.wrong("empty-text", "a text block may not be empty")
    elif not text.value.strip() and not may_be_blank:
        # "messages: text content blocks must contain non-whitespace text"
        text.wrong("blank-text", "this text has no visible character")


def _source(source: Node, kind: str) -> None:
    if not source.expect("object"):
        return
    types = {"base64", "url", "file"} | ({"text", "content"} if kind == "document" else set())
    if not source["type"].among(types):
        return
    if source["type"].value == "base64":
        media = IMAGES if kind == "image" else {"application/pdf"}
        source["media_type"].among(media, "media-type")
        source["data"].base64()
    elif source["type"].value == "url":
        source["url"].filled()
    elif source["type"].value == "file":
        source["file_id"].filled()
    elif source["type"].value == "text":
        source["media_type"].among({"text/plain"}, "media-type")
        source["data"].filled()
    elif source["content"].expect("string", "array"):
        for inner in source["content"]:
            if inner["type"].among({"text", "image"}, "block-not-allowed"):
                check(inner)


def _search_result(block: Node) -> None:
    block["source"].filled()
    block["title"].filled()
    if block["content"].expect("array"):
        if not block["content"].value:
            block["content"].wrong("empty-content", "a search result holds some text")
        for inner in block["content"]:
            if inner["type"].among({"text"}, "block-not-allowed"):
                check(inner)


def _tool_use(block: Node) -> None:
    block["id"].matches(ID, "call-id")
    block["name"].matches(CALL_NAME, "tool-name")
    block["input"].expect("object")  # "tool_use.input: Input should be a valid dictionary"


def _tool_result(block: Node) -> None:
    block["tool_use_id"].matches(ID, "call-id")
    block["is_error"].maybe("boolean")
    if not block["content"].maybe("string", "array"):
        return
    for inner in block["content"]:
        if not inner.expect("object") or not inner["type"].among(IN_RESULT, "block-not-allowed"):
            continue
        if block["is_error"].value is True and inner["type"].value != "text":
            # "tool_result: all content must be type `text` if `is_error` is true"
            inner.wrong("error-not-text", "a failed call is told of in text")
        check(inner)


def _of_the_vendor(block: Node, kind: str) -> None:
    if kind == "server_tool_use":
        block["id"].matches(SERVER_ID, "call-id")
        block["name"].filled()
        block["input"].expect("object")
    elif kind == "mcp_tool_use":
        block["id"].matches(ID, "call-id")
        block["name"].filled()
        block["server_name"].filled()
        block["input"].expect("object")
    elif kind.endswith("_tool_result"):
        block["tool_use_id"].matches(ID, "call-id")
        block["content"].expect("string", "array", "object")
    elif kind == "container_upload":
        block["file_id"].filled()
    elif kind == "tool_reference":
        block["tool_name"].filled()
    elif kind in {"tool_addition", "tool_removal"}:
        block["tool"].expect("object")


def cache_control(holder: Node) -> None:
    """Check the breakpoint that a block, a tool or the body may carry."""
    mark = holder["cache_control"]
    if mark.maybe("object"):
        mark.only({"type", "ttl", "scope"})
        mark["type"].among({"ephemeral"})
        mark["ttl"].maybe_among({"5m", "1h"})
