"""Recorded traffic: a folder of JSON files, each a few exchanges between a client and a service.

A file is `{id, provider, service, tags, provenance, exchanges: [{api, request, response}]}`. A
response holds its `body` (JSON; an array is Google's stream without `alt=sse`), or the raw text
of a stream as `sse` or `ndjson`. What a reader needs of it is here as bytes: `exchange.data`. Of a
program that was started, the request is its command line and what it was told, and the status is
the code with which it ended.

Not every exchange can be judged. `exchange.why_not` says why it is left out: its vendor is not
built yet, it is no call of a model, or the file is not what it should be.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

ANTHROPIC = "anthropic"
OPENAI_CHAT = "openai-chat"
OPENAI_RESPONSES = "openai-responses"
GOOGLE = "google"
CODE_ASSIST = "code-assist"
OLLAMA = "ollama"
CLAUDE_CLI = "claude-cli"
WIRES = (ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES, GOOGLE, CODE_ASSIST, OLLAMA, CLAUDE_CLI)

# Whose folders are judged. A file of `errors-reported` belongs to the vendor that it names.
BUILT = (
    *("anthropic", "openai-chat", "openai-responses", "azure-openai", "openai-compatible"),
    *("github-models", "google", "code-assist", "ollama", "claude-cli"),
)
# OpenAI's rules hold for OpenAI and Azure; other servers that speak its wires are laxer.
LENIENT = ("openai-compatible", "google", "github-models", "ollama")

_WIRE_OF = {
    "messages": ANTHROPIC,
    "chat-completions": OPENAI_CHAT,
    "responses": OPENAI_RESPONSES,
    "generate-content": GOOGLE,
    "stream-generate-content": GOOGLE,
    "code-assist-generate": CODE_ASSIST,
    "code-assist-stream": CODE_ASSIST,
    "ollama-chat": OLLAMA,
    "ollama-generate": OLLAMA,
    "claude-cli-stream-json": CLAUDE_CLI,
}
VERTEX = "vertex"
_AT_VERTEX = "-vertex"
NOT_BUILT = "not built yet"
NO_CALL = "not a model call"

# What of the recorded headers was true of the recorded connection alone.
_OF_CONNECTION = ("content-length", "transfer-encoding", "content-encoding", "connection")


@dataclass(frozen=True)
class Exchange:
    """One request and what came back. `number` counts from 0 in its file.

    `data` is the whole answer as bytes. `request` is the recorded body, None where it was not
    kept. `wire` is one of WIRES, or None with `why_not`.
    """

    file: str
    number: int
    provider: str
    service: str
    api: str
    wire: str | None
    why_not: str | None
    path: str
    request: Any
    status: int
    headers: Mapping[str, str]
    data: bytes
    is_sse: bool
    tags: tuple[str, ...] = field(default=(), compare=False)
    is_lines: bool = False

    @property
    def name(self) -> str:
        """Where it stands, for a reader of the report."""
        return f"{self.provider}/{self.file}#{self.number}"

    @property
    def is_stream(self) -> bool:
        """Whether the answer comes in events: then a cut can leave something that looks whole."""
        is_array = self.wire == GOOGLE and self.data[:1] == b"["
        return self.is_sse or self.is_lines or is_array

    @property
    def is_lenient(self) -> bool:
        """Whether the service is another than the one whose wire it speaks."""
        return self.provider in LENIENT

    @property
    def model(self) -> str:
        """Which model was asked; Google has it in the address."""
        named = self.request.get("model") if isinstance(self.request, dict) else None
        if self.wire != GOOGLE and isinstance(named, str) and named:
            return named
        if model := self.path.partition("models/")[2].partition(":")[0].partition("?")[0]:
            return model
        answered = re.search(rb'"model(?:Version)?": ?"([^"]+)"', self.data)
        return answered[1].decode() if answered else "a-model"

    def cut(self, length: int) -> "Exchange":
        """The same exchange with no more than the first `length` bytes of the answer."""
        return replace(self, data=self.data[:length])


@dataclass(frozen=True)
class Recording:
    """One file: a sequence of exchanges, in the order in which they were recorded."""

    file: str
    provider: str
    tags: tuple[str, ...]
    exchanges: tuple[Exchange, ...]


@dataclass(frozen=True)
class Unreadable:
    """A file that is no recording, and why."""

    file: str
    why: str


def read_folder(folder: Path) -> Iterator[Recording | Unreadable]:
    """Every recording below `folder`, in the order of the names. INDEX.json is a list of them."""
    for path in sorted(folder.rglob("*.json")):
        if path.name != "INDEX.json":
            yield read_file(path)


def read_file(path: Path) -> Recording | Unreadable:
    """The recording in a file; what cannot be read is told, not raised."""
    try:
        return recording(json.loads(path.read_bytes()), path.name)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return Unreadable(path.name, f"{type(error).__name__}: {error}")


def recording(raw: Mapping[str, Any], file: str) -> Recording:
    """The recording in a parsed file."""
    tags = tuple(raw.get("tags") or ())
    exchanges = tuple(
        _exchange(raw, each, file, number, tags) for number, each in enumerate(raw["exchanges"])
    )
    return Recording(file, raw["provider"], tags, exchanges)


def _exchange(
    raw: Mapping[str, Any], each: Mapping[str, Any], file: str, number: int, tags: tuple[str, ...]
) -> Exchange:
    request, response = each["request"], each["response"]
    headers = {
        str(name).lower(): str(value)
        for name, value in (response.get("headers") or {}).items()
        if str(name).lower() not in _OF_CONNECTION
    }
    api = each.get("api") or raw.get("api") or ""
    wire = _WIRE_OF.get(api.removesuffix(_AT_VERTEX))
    return Exchange(
        file=file,
        number=number,
        provider=raw["provider"],
        service=VERTEX if api.endswith(_AT_VERTEX) else raw.get("service") or raw["provider"],
        api=api,
        wire=wire,
        why_not=_why_not(raw["provider"], api, wire),
        path=request.get("path") or "",
        request=request.get("body"),
        status=response["status"],
        headers=headers,
        data=_bytes(response),
        is_sse="sse" in response,
        tags=tags,
        is_lines="ndjson" in response,
    )


def _why_not(provider: str, api: str, wire: str | None) -> str | None:
    if provider not in BUILT:
        return NOT_BUILT
    if api.startswith("count-tokens"):
        return NO_CALL
    return None if wire else NOT_BUILT


def _bytes(response: Mapping[str, Any]) -> bytes:
    for name in ("sse", "ndjson"):
        if name in response:
            return str(response[name]).encode()
    body = response["body"]
    if isinstance(body, list):  # as Google sends a stream: an object, a comma, an object
        return b"[" + b",\r\n".join(map(_json, body)) + b"]"
    return _json(body)


def _json(value: Any) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # half a surrogate pair, which JSON can hold and UTF-8 cannot
        return json.dumps(value).encode()
