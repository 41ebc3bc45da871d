"""The vendors as tests of turns meet them: answers in each one's real wire form, requests judged.

    async with served(vendor, vendor.says("Hello, Ada.")) as (server, model):
        ...                                  # the vendor's own provider, at a server on loopback

An answer is a stream, its first words in events of their own. When `served` is left, every request
that came has to be one that the vendor would take.
"""

import json
import re
from collections.abc import Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import starmap
from typing import Any, NamedTuple

import holdfast
from holdfast import Message
from holdfast.providers import anthropic_dialect, openai_chat_dialect
from holdfast.providers.address import Address
from holdfast.providers.claude_cli.wire import ATTACHED, TRANSCRIPT
from holdfast.providers.local.provider import LocalProvider
from holdfast.providers.local.wire import LocalWire
from holdfast.providers.openai_chat_dialect import OPENAI, UNKNOWN
from holdfast.testing import claude_cli, validators
from holdfast.testing.replay.history import conversation
from holdfast.testing.replay.recordings import Exchange
from holdfast.testing.replay.server import Answer, Server

PROOF = "c2lnbmVkIGJ5IHRoZSB2ZW5kb3I="  # what only the vendor that gave it can check
EVENTS = {"content-type": "text/event-stream"}
LINES = {"content-type": "application/x-ndjson"}
JSON = {"content-type": "application/json"}


class Said(NamedTuple):
    """What an answer says: thoughts, with a proof where the vendor gives one; words; a call.

    `search` is what a tool of the vendor's own looked for: blocks that only that vendor knows.
    """

    text: str = ""
    thought: str = ""
    call: str = ""  # the name of a tool
    number: int = 1  # by which the ids of a conversation differ
    tokens: int = 300  # of the prompt
    arguments: str = ""  # of the call, as JSON; made up where there are none
    search: str = ""

    @property
    def words(self) -> list[str]:
        """As they come: the first ones one by one, then the rest."""
        *first, rest = re.fullmatch(r"(?s)(\s*\S+)?(\s*\S+)?(\s*\S+)?(.*)", self.text).groups()
        return [words for words in (*first, rest) if words]

    @property
    def stop(self) -> str:
        return "tool" if self.call else "end"


@dataclass(frozen=True)
class Vendor:
    """A wire. `at` is where a body has the conversation.

    `thinks` is whether answers have thoughts, `proves` whether those are signed.
    `has_calls` is whether a request has calls in a form of their own, not in words.
    """

    name: str
    api: str
    model: str
    at: str
    events: Callable[[Said], bytes]
    refusal: tuple[int, Any]  # of a prompt that is too long
    opened: Callable[..., Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    thinks: bool = True
    proves: bool = True
    has_calls: bool = True
    is_lenient: bool = False

    def says(self, text: str = "", *, proof: str = PROOF, **more: Any) -> Answer:
        """The answer that says this; `proof` is what only this vendor could check."""
        kind = EVENTS if self.api not in ("ollama", "claude-cli") else LINES
        data = self.events(Said(text, **more))
        return Answer(headers=kind, data=data.replace(PROOF.encode(), proof.encode()))

    def stops(self, answer: Answer, behind: str) -> Answer:
        """The answer until the event in which this stands; then nothing more comes."""
        at = answer.data.index(behind.encode())
        edge = rb"\n" if self.api == "ollama" else rb"\r?\n\r?\n"
        end = re.compile(edge).search(answer.data, at)
        assert end is not None
        return replace(answer, stop_at=end.end(), then="stall")

    def refuses(self) -> Answer:
        """What it says of a prompt that is too long."""
        status, body = self.refusal
        if isinstance(body, bytes):
            return Answer(status, EVENTS, body)
        return Answer(status, JSON, json.dumps(body).encode(), is_chunked=False)

    def problems(self, body: Any) -> list[str]:
        """For what the vendor would refuse a request."""
        found = validators.problems(self.api, body, lenient=self.is_lenient, model=self.model)
        return [f"{self.name}: {problem}" for problem in found]

    def shown(self, body: Any) -> tuple[Message, ...]:
        """The conversation in a request, read apart from what makes requests."""
        exchange = Exchange(
            *("ours", 0, self.name, self.name, self.api, self.api, None, f"models/{self.model}:"),
            *(body, 200, {}, b"", False),
        )
        found = conversation(exchange)
        assert found is not None
        return found.messages

    def texts(self, body: Any) -> str:
        """All the words of a request, in order."""
        return json.dumps(_inside(body)[self.at], ensure_ascii=False)

    def blocks(self, body: Any) -> list[str]:
        """A request as the row of blocks that the model reads, each to the letter.

        Marks of Anthropic's cache are no part of what they mark.
        """
        body = _inside(body)
        head = ("tools", "system", "instructions", "systemInstruction")
        row = [_text(body[name]) for name in head if name in body]
        if self.api == "claude-cli":
            return row + _lines_told(body[self.at]["content"])
        for item in body[self.at]:
            content = item.get("content", item.get("parts"))
            role = item.get("role", item.get("type"))
            if self.api in ("anthropic", "google", "code-assist") and isinstance(content, list):
                row += [f"{role}: {_text(block)}" for block in content]
            else:
                row.append(_text(item))
        return row


def _inside(body: Any) -> Any:
    """What is asked, out of its envelope."""
    return body.get("request", body)


def _text(value: Any) -> str:
    return json.dumps(_unmarked(value), ensure_ascii=False)


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _unmarked(v) for name, v in value.items() if name != "cache_control"}
    return [_unmarked(each) for each in value] if isinstance(value, list) else value


@asynccontextmanager
async def served(vendor, *answers, **options):
    """A server that gives the vendor's answers in turn, and the provider that asks it."""
    async with Server(*answers) as server:
        given = {"tries_max": 1, **vendor.options, **options}
        async with vendor.opened(vendor.model, server.url, given) as provider:
            yield server, provider
    assert [each for r in server.requests for each in vendor.problems(r.body)] == []


def sse(*events, named=False, done=False):
    """Events as they stand in a stream."""
    lines = []
    for event in events:
        name = f"event: {event['type']}\n" if named else ""
        lines.append(f"{name}data: {json.dumps(event, ensure_ascii=False)}\n\n")
    return ("".join(lines) + ("data: [DONE]\n\n" if done else "")).encode()


def arguments(said):
    """Of a call, in two pieces."""
    if said.arguments:
        half = len(said.arguments) // 2
        return [said.arguments[:half], said.arguments[half:]]
    return ['{"city": ', f'"Turin {said.number}"}}']


# Anthropic


def _anthropic(said):
    usage = {"input_tokens": said.tokens, "output_tokens": 1}
    start = {"id": f"msg_{said.number}", "type": "message", "role": "assistant", "content": []}
    start |= {"model": "claude-sonnet-4-6", "stop_reason": None, "usage": usage}
    events = [{"type": "message_start", "message": start}, {"type": "ping"}]
    for index, (empty, deltas) in enumerate(_anthropic_blocks(said)):
        events.append({"type": "content_block_start", "index": index, "content_block": empty})
        events += [{"type": "content_block_delta", "index": index, "delta": d} for d in deltas]
        events.append({"type": "content_block_stop", "index": index})
    reason = {"tool": "tool_use", "end": "end_turn"}[said.stop]
    delta = {"stop_reason": reason, "stop_sequence": None}
    events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 20}})
    return sse(*events, {"type": "message_stop"}, named=True)


def _anthropic_blocks(said):
    if said.thought:
        deltas = [{"type": "thinking_delta", "thinking": said.thought}]
        deltas.append({"type": "signature_delta", "signature": PROOF})
        yield {"type": "thinking", "thinking": "", "signature": ""}, deltas
    if said.search:
        id = f"srvtoolu_{said.number}"
        query = {"type": "input_json_delta", "partial_json": json.dumps({"query": said.search})}
        call = {"type": "server_tool_use", "id": id, "name": "web_search", "input": {}}
        yield call, [query]
        yield {"type": "web_search_tool_result", "tool_use_id": id, "content": []}, []
    if said.text:
        deltas = [{"type": "text_delta", "text": word} for word in said.words]
        yield {"type": "text", "text": ""}, deltas
    if said.call:
        call = {"type": "tool_use", "id": f"toolu_{said.number}", "name": said.call, "input": {}}
        pieces = arguments(said)
        yield call, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]


# Chat Completions


def _chat(said, thought=()):
    def chunk(delta, reason=None, **more):
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice], **more}

    events = [chunk({"role": "assistant", "content": ""}), *map(chunk, thought)]
    events += [chunk({"content": word}) for word in said.words]
    if said.call:
        call = {"index": 0, "id": f"call_{said.number}", "type": "function"}
        call["function"] = {"name": said.call, "arguments": ""}
        pieces = [{"index": 0, "function": {"arguments": each}} for each in arguments(said)]
        events += [chunk({"tool_calls": [each]}) for each in (call, *pieces)]
    events.append(chunk({}, {"tool": "tool_calls", "end": "stop"}[said.stop]))
    usage = {"prompt_tokens": said.tokens, "completion_tokens": 20}
    usage["total_tokens"] = said.tokens + 20
    last = {**chunk({}), "choices": [], "usage": usage}
    return sse(*events, last, done=True)


def _copilot(said):
    """Its thoughts come with a seal, which may be behind them."""
    thought = [{"reasoning_text": said.thought}, {"reasoning_opaque": PROOF}]
    return _chat(said, thought if said.thought else ())


def _thinking(said):
    """As most servers say it that show what their models think, and sign nothing."""
    return _chat(said, [{"reasoning_content": said.thought}] if said.thought else ())


def _local(said):
    """The local model was taught no tools: a call is words of its own form."""
    if not said.call:
        return _chat(said)
    call = {"name": said.call, "arguments": json.loads("".join(arguments(said)))}
    return _chat(said._replace(text=json.dumps(call), call=""))


# Responses


def _responses(said):
    response = {"id": f"resp_{said.number}", "object": "response", "model": "gpt-5"}
    events = [{"type": "response.created", "response": {**response, "status": "in_progress"}}]
    output = []
    for index, (item, empty, deltas) in enumerate(_responses_items(said)):
        at = {"output_index": index, "item_id": item["id"]}
        events.append({"type": "response.output_item.added", **at, "item": {**item, **empty}})
        events += [{**delta, **at} for delta in deltas]
        events.append({"type": "response.output_item.done", **at, "item": item})
        output.append(item)
    usage = {"input_tokens": said.tokens, "output_tokens": 20, "total_tokens": said.tokens + 20}
    whole = {**response, "status": "completed", "output": output, "usage": usage}
    return sse(*events, {"type": "response.completed", "response": whole}, named=True)


def _responses_items(said):
    number = said.number
    if said.thought:
        item = {"type": "reasoning", "id": f"rs_{number}", "encrypted_content": PROOF}
        item["summary"] = [{"type": "summary_text", "text": said.thought}]
        delta = {"type": "response.reasoning_summary_text.delta", "summary_index": 0}
        yield item, {"summary": []}, [{**delta, "delta": said.thought}]
    if said.search:
        item = {"type": "web_search_call", "id": f"ws_{number}", "status": "completed"}
        yield item | {"action": {"type": "search", "query": said.search}}, {}, []
    if said.text:
        item = {"type": "message", "id": f"msg_{number}", "role": "assistant"}
        item["content"] = [{"type": "output_text", "text": said.text, "annotations": []}]
        delta = {"type": "response.output_text.delta", "content_index": 0}
        yield item, {"content": []}, [{**delta, "delta": word} for word in said.words]
    if said.call:
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}"}
        item |= {"name": said.call, "arguments": "".join(arguments(said))}
        delta = {"type": "response.function_call_arguments.delta"}
        yield item, {"arguments": ""}, [{**delta, "delta": each} for each in arguments(said)]


# Google


def _google(said):
    parts = [{"text": said.thought, "thought": True}] if said.thought else []
    if said.search:
        parts.append({"executableCode": {"language": "PYTHON", "code": said.search}})
        parts.append({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": ""}})
    parts += [{"text": word} for word in said.words]
    if said.call:
        call = {"name": said.call, "args": json.loads("".join(arguments(said)))}
        parts.append({"functionCall": call, "thoughtSignature": PROOF})
    elif said.thought:
        parts.append({"text": "", "thoughtSignature": PROOF})
    usage = {"promptTokenCount": said.tokens, "candidatesTokenCount": 20}
    usage["totalTokenCount"] = said.tokens + 20
    chunks = [{"candidates": [{"content": {"role": "model", "parts": [p]}}]} for p in parts]
    chunks[-1]["candidates"][0]["finishReason"] = "STOP"
    chunks[-1]["usageMetadata"] = usage
    return sse(*chunks).replace(b"\n", b"\r\n")


# Code Assist: Claude, in Google's words, in an envelope


def _code_assist(said):
    parts = [{"text": said.thought, "thought": True}] if said.thought else []
    parts += [{"text": "", "thought": True, "thoughtSignature": PROOF}] if said.thought else []
    parts += [{"text": word} for word in said.words]
    if said.call:
        call = {"name": said.call, "args": json.loads("".join(arguments(said)))}
        parts.append({"functionCall": call | {"id": f"toolu_vrtx_{said.number}"}})
    usage = {"promptTokenCount": said.tokens, "candidatesTokenCount": 20}
    chunks = [{"candidates": [{"content": {"role": "model", "parts": [p]}}]} for p in parts]
    chunks[-1]["candidates"][0]["finishReason"] = {"tool": "OTHER", "end": "STOP"}[said.stop]
    chunks[-1]["usageMetadata"] = usage | {"totalTokenCount": said.tokens + 20}
    return sse(*({"response": each, "traceId": f"trace-{said.number}"} for each in chunks))


# Ollama's own


def _ollama(said):
    def line(message, **more):
        message = {"role": "assistant", "content": "", **message}
        return {"model": "qwen3", "created_at": "now", "message": message, "done": False, **more}

    lines = [line({"thinking": said.thought})] if said.thought else []
    lines += [line({"content": word}) for word in said.words]
    if said.call:
        function = {"name": said.call, "arguments": json.loads("".join(arguments(said)))}
        lines.append(line({"tool_calls": [{"id": f"call_{said.number}", "function": function}]}))
    # As many as the conversations here have: with fewer, it would be asked whether some were cut.
    counts = {"prompt_eval_count": max(said.tokens, 2_000), "eval_count": 20}
    lines.append(line({}, done=True, done_reason="stop", **counts))
    return "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in lines).encode()


# Providers


def _by_name(vendor, path="", **more):
    def opened(model, url, options):
        given = {"base_url": url + path, "api_key": "none", **more, **options}
        return holdfast.open_provider(f"{vendor}:{model}", **given)

    return opened


class LocalAt(LocalProvider):
    """The provider of a local model whose server is not started here."""

    async def ready(self):
        return


def _copilot_at(model, url, options):
    """A server on this machine needs no token."""
    return holdfast.open_provider(f"github:{model}", path="copilot", base_url=url, **options)


def _local_at(model, url, options):
    return LocalAt(LocalWire(model), Address(url), api_key="none", **options)


TOO_LONG = "This model's maximum context length is 4096 tokens. However, your messages resulted in "
TOO_LONG += "9000 tokens. Please reduce the length of the messages."
CHAT_ERROR = {"message": TOO_LONG, "type": "invalid_request_error", "param": "messages"}
RESPONSE_ERROR = {
    "code": "context_length_exceeded",
    "message": "Your input exceeds the context window of this model. Please adjust your input and "
    "try again.",
}
FAILED = {"id": "resp_0", "object": "response", "status": "failed", "error": RESPONSE_ERROR}
LLAMA = "the request exceeds the available context size. try increasing the context size or enable "
LLAMA += "context shift"
OLLAMA = "request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it"

VENDORS = (
    Vendor(
        name="anthropic",
        api="anthropic",
        model="claude-sonnet-4-6",
        at="messages",
        events=_anthropic,
        refusal=(
            400,
            {
                "type": "error",
                "error": {
                    "type": "invalid_request_error",
                    "message": "prompt is too long: 210000 tokens > 200000 maximum",
                },
            },
        ),
        opened=_by_name("anthropic"),
    ),
    Vendor(
        name="openai-chat",
        api="openai-chat",
        model="gpt-4.1",
        at="messages",
        events=_chat,
        refusal=(400, {"error": {**CHAT_ERROR, "code": "context_length_exceeded"}}),
        opened=_by_name("openai", "/v1", api="chat", dialect=OPENAI),
        thinks=False,
        proves=False,
    ),
    Vendor(
        name="openai-responses",
        api="openai-responses",
        model="gpt-5",
        at="input",
        events=_responses,
        refusal=(200, sse({"type": "response.failed", "response": FAILED}, named=True)),
        opened=_by_name("openai", "/v1", api="responses", is_compatible=False),
    ),
    Vendor(
        name="google",
        api="google",
        model="gemini-3-pro-preview",
        at="contents",
        events=_google,
        refusal=(
            400,
            {
                "error": {
                    "code": 400,
                    "message": "The input token count (1250074) exceeds the maximum number of "
                    "tokens allowed (1048576).",
                    "status": "INVALID_ARGUMENT",
                }
            },
        ),
        opened=_by_name("google", "/v1beta"),
    ),
    Vendor(
        name="code-assist",
        api="code-assist",
        model="claude-sonnet-4-5-thinking",
        at="contents",
        events=_code_assist,
        refusal=(
            400,
            {
                "error": {
                    "code": 400,
                    "message": json.dumps(
                        {
                            "type": "error",
                            "error": {
                                "type": "invalid_request_error",
                                "message": "prompt is too long: 210000 tokens > 200000 maximum",
                            },
                            "request_id": "req_vrtx_1",
                        }
                    ),
                    "status": "INVALID_ARGUMENT",
                }
            },
        ),
        opened=_by_name("antigravity"),
    ),
    Vendor(
        name="copilot",
        api="openai-chat",
        model="claude-sonnet-4.5",
        at="messages",
        events=_copilot,
        refusal=(
            400,
            {
                "error": {
                    "message": "prompt token count of 140499 exceeds the limit of 128000",
                    "code": "model_max_prompt_tokens_exceeded",
                }
            },
        ),
        opened=_copilot_at,
        is_lenient=True,
    ),
    Vendor(
        name="ollama",
        api="ollama",
        model="qwen3",
        at="messages",
        events=_ollama,
        refusal=(400, {"error": json.dumps({"error": {"code": 400, "message": OLLAMA}})}),
        opened=_by_name("ollama", api="native"),
        options={"context_limit": 200_000},
        proves=False,
    ),
    Vendor(
        name="local",
        api="openai-chat",
        model="smollm2-135m",
        at="messages",
        events=_local,
        refusal=(
            400,
            {
                "error": {
                    "code": 400,
                    "message": LLAMA,
                    "type": "exceed_context_size_error",
                    "n_prompt_tokens": 2500,
                    "n_ctx": 2048,
                }
            },
        ),
        opened=_local_at,
        options={"context_limit": 8_192},
        thinks=False,
        proves=False,
        has_calls=False,
        is_lenient=True,
    ),
)

_NAMED = {vendor.name: vendor for vendor in VENDORS}
# The other wire of a vendor that has two.
SECOND_WIRES = (
    replace(
        _NAMED["anthropic"],
        name="ollama, messages",
        model="gpt-oss",
        events=lambda said: _anthropic(said).replace(PROOF.encode(), b""),  # nobody signs there
        refusal=_NAMED["ollama"].refusal,
        opened=_by_name("ollama", api="messages"),
        options={"context_limit": 200_000},
        proves=False,
        is_lenient=True,
    ),
    replace(
        _NAMED["openai-responses"],
        name="copilot, responses",
        model="gpt-5.1-codex",
        refusal=_NAMED["copilot"].refusal,
        opened=_copilot_at,
    ),
)


def _chat_service(host, dialect):
    thinks = dialect.thinking == "always"
    return replace(
        _NAMED["openai-chat"],
        name=host,
        model=f"of-{host}",
        events=_thinking if thinks else _chat,
        opened=_by_name("openai", "/v1", api="chat", dialect=dialect),
        thinks=thinks,
        is_lenient=True,
    )


def _claude_service(host, dialect):
    unsigned = lambda said: _anthropic(said).replace(PROOF.encode(), b"")  # noqa: E731
    return replace(
        _NAMED["anthropic"],
        name=f"{host}, messages",
        model=f"of-{host}-too",
        events=_anthropic if dialect.signs else unsigned,
        opened=_by_name("anthropic", dialect=dialect),
        proves=dialect.signs,
        is_lenient=True,
    )


# Services that speak one of these wires with an accent.
SERVICES = (
    *starmap(_chat_service, {**openai_chat_dialect.HOSTS, "other": UNKNOWN}.items()),
    *starmap(_claude_service, anthropic_dialect.HOSTS.items()),
)


# A program: everything it is told is words of a user


def _program(said):
    """Its model was taught no tools of ours: a call is words of its own form."""
    words = said.text
    if said.call:
        call = {"name": said.call, "arguments": json.loads("".join(arguments(said)))}
        words = f"{words}\n<tool_call>\n{json.dumps(call)}\n</tool_call>".strip()
    steps = claude_cli.says(words, thought=said.thought, tokens=(said.tokens, 20))
    lines = [json.dumps(step["line"], ensure_ascii=False) for step in steps]
    return "".join(f"{line}\n" for line in lines).replace("SESSION", f"{said.number}").encode()


def _lines_told(content):
    """What a program is told, line by line, each with who says it: in a transcript, and behind it.

    Where a document stands, there is its number.
    """
    told, attached = [("user", block) for block in content[:-1]], 0
    if told and told[0][1].get("text", "").startswith(TRANSCRIPT):
        before = [json.loads(line) for line in told[0][1]["text"].splitlines()[1:]]
        said = [(each["role"], {"type": "text", "text": each["content"]}) for each in before]
        behind = 1
        while behind + 1 < len(told) and told[behind + 1][1]["type"] != "text":
            behind, attached = behind + 2, attached + 1
        told = said + told[behind:]
    rows = []
    for role, block in told:
        attached += block["type"] != "text"
        words = block.get("text", ATTACHED.format(number=attached))
        rows += [f"{role}: {line}" for line in words.split("\n")]
    return rows


PROGRAM = Vendor(
    name="claude-cli",
    api="claude-cli",
    model="sonnet",
    at="message",
    events=_program,
    refusal=(0, b""),  # of a program, an exit: see test_provider_claude_cli.py
    opened=lambda model, url, options: holdfast.open_provider(f"claude-cli:{model}", **options),
    proves=False,
    has_calls=False,
)
