"""What does holdfast add to a model call?

    python bench/providers.py [--rounds 15] [--check]

Reading: a streamed answer of 4,000 deltas (thinking, words, the arguments of a call), cut into
pieces of 1,400 bytes, through the whole reader with all four callbacks; microseconds a delta. The
limit is splitting the same bytes, decoding each event with msgspec and joining the words.

Preparing: a window of 1,000 messages, from messages to the body of the request; microseconds a
message, the first time and at the next call of the same conversation, which has four more. To write
the body down is then a copy, because its parts are JSON already; the limit there is msgspec
encoding the same body from dicts.

With --check the exit status is 1 when a bar is missed.
"""

import argparse
import gc
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

import providers_raw as raw
from measure import best_ns
from stores_table import Table
from values import WORDS
from values import messages as mixed

from holdfast import Message, Tool, ToolCall
from holdfast.providers.anthropic import AnthropicWire
from holdfast.providers.base import Callbacks
from holdfast.providers.google import GoogleWire
from holdfast.providers.openai_chat import OpenAIChatWire
from holdfast.providers.openai_responses import OpenAIResponsesWire
from holdfast.providers.stream import EventStream
from holdfast.providers.wire import Wire
from holdfast.window.render import Shown, render

DELTAS = 4_000
PIECE = 1_400
WINDOW = 1_000
READ_US_MAX = 4.0
FIRST_US_MAX = 5.0
NEXT_US_MAX = 0.5
TOOLS = (Tool("read_file", "Reads a file.", {"type": "object", "properties": {}}),)


class Case(NamedTuple):
    """A wire, a stream as its service writes it, and where the words of an event are."""

    wire: Wire
    events: Callable[[], Iterator[dict[str, Any]]]
    words: Callable[[Any], str | None]
    is_named: bool = False
    is_done: bool = False


def anthropic() -> Iterator[dict[str, Any]]:
    usage = {"input_tokens": 10, "output_tokens": 1}
    yield {"type": "message_start", "message": {"id": "m", "model": "x", "usage": usage}}
    blocks = (
        ({"type": "thinking", "thinking": ""}, "thinking_delta", "thinking"),
        ({"type": "text", "text": ""}, "text_delta", "text"),
        (
            {"type": "tool_use", "id": "c", "name": "read_file", "input": {}},
            "input_json_delta",
            "partial_json",
        ),
    )
    for index, (block, kind, field) in enumerate(blocks):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        for piece in pieces(index):
            delta = {"type": kind, field: piece}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": usage}
    yield {"type": "message_stop"}


def chat() -> Iterator[dict[str, Any]]:
    base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "x"}
    for index in range(3):
        for number, piece in enumerate(pieces(index)):
            call: dict[str, Any] = {"index": 0, "function": {"arguments": piece}}
            if number == 0:
                call |= {"id": "call_1", "type": "function"}
                call["function"]["name"] = "read_file"
            delta = ({"reasoning_content": piece}, {"content": piece}, {"tool_calls": [call]})[
                index
            ]
            yield base | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield base | {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    yield base | {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": DELTAS}}


def responses() -> Iterator[dict[str, Any]]:
    yield {"type": "response.created", "response": {"id": "r", "model": "x", "output": []}}
    items = (
        {"type": "reasoning", "id": "rs", "summary": []},
        {"type": "message", "id": "msg", "role": "assistant", "content": []},
        {"type": "function_call", "id": "fc", "call_id": "c", "name": "read_file", "arguments": ""},
    )
    kinds = (
        ("response.reasoning_summary_text.delta", {"summary_index": 0}),
        ("response.output_text.delta", {"content_index": 0, "logprobs": []}),
        ("response.function_call_arguments.delta", {}),
    )
    for index, (item, (kind, more)) in enumerate(zip(items, kinds, strict=True)):
        yield {"type": "response.output_item.added", "output_index": index, "item": item}
        for number, piece in enumerate(pieces(index)):
            where = {"sequence_number": number, "item_id": item["id"], "output_index": index}
            yield {"type": kind, **where, **more, "delta": piece}
        yield {
            "type": "response.output_item.done",
            "output_index": index,
            "item": whole(item, index),
        }
    done = [whole(item, index) for index, item in enumerate(items)]
    usage = {"input_tokens": 10, "output_tokens": DELTAS}
    answer = {"id": "r", "model": "x", "status": "completed", "output": done, "usage": usage}
    yield {"type": "response.completed", "response": answer}


def whole(item: dict[str, Any], index: int) -> dict[str, Any]:
    """An item of the Responses API at its end."""
    said = "".join(pieces(index))
    if index == 0:
        return item | {"summary": [{"type": "summary_text", "text": said}]}
    if index == 1:
        return item | {"content": [{"type": "output_text", "text": said, "annotations": []}]}
    return item | {"arguments": said}


def google() -> Iterator[dict[str, Any]]:
    for index in range(2):
        for piece in (*pieces(index), *pieces(index)[: DELTAS // 6]):
            part = {"text": piece, "thought": True} if index == 0 else {"text": piece}
            yield {"candidates": [{"content": {"parts": [part], "role": "model"}, "index": 0}]}
    call = {"functionCall": {"name": "read_file", "args": {"path": "a"}}}
    yield {
        "candidates": [{"content": {"parts": [call], "role": "model"}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": DELTAS},
    }


def pieces(index: int) -> list[str]:
    """A third of the deltas: words, or the arguments of a call."""
    count = DELTAS // 3
    if index < 2:
        return [f"{WORDS[number % len(WORDS)]} " for number in range(count)]
    return ['{"path":"', *(f"a{number}/" for number in range(count - 2)), '"}']


def google_words(event: Any) -> str | None:
    return event["candidates"][0]["content"]["parts"][0].get("text")


def chat_words(event: Any) -> str | None:
    choices = event["choices"]
    return choices[0]["delta"].get("content") if choices else None


CASES = {
    "anthropic": Case(
        AnthropicWire("claude-sonnet-4-5"),
        anthropic,
        lambda event: event["delta"].get("text") if "delta" in event else None,
        is_named=True,
    ),
    "openai chat": Case(OpenAIChatWire("gpt-4.1"), chat, chat_words, is_done=True),
    "openai responses": Case(
        OpenAIResponsesWire("gpt-5"), responses, lambda event: event.get("delta"), is_named=True
    ),
    "google": Case(GoogleWire("gemini-2.5-pro"), google, google_words),
}


def streamed(case: Case) -> list[bytes]:
    """The stream as it comes out of a socket."""
    events = []
    for event in case.events():
        name = b"event: %b\n" % event["type"].encode() if case.is_named else b""
        events.append(b"%bdata: %b\n\n" % (name, raw.encode(event)))
    data = b"".join(events) + (b"data: [DONE]\n\n" if case.is_done else b"")
    return [data[at : at + PIECE] for at in range(0, len(data), PIECE)]


def reader_of(case: Case, chunks: Sequence[bytes]) -> Callable[[], object]:
    ask = case.wire.ask([Message.user("Hello")], stream=True)

    def run() -> object:
        heard: list[object] = []
        told = Callbacks(heard.append, heard.append, heard.append, heard.append)
        answer = case.wire.answer(ask, told)
        reader, stream = case.wire.reader(answer), EventStream()
        for chunk in chunks:
            for name, data in stream.feed(chunk):
                reader.feed(name, data)
        reader.finish(stream.left_over)
        assert reader.is_complete and len(heard) >= DELTAS * 2 // 3
        return answer.response()

    return run


def reading(table: Table, rounds: int) -> None:
    table.title("Read a streamed answer, with all callbacks (us a delta)")
    for name, case in CASES.items():
        chunks = streamed(case)
        limits = partial(raw.read, chunks, case.words)
        found = best_ns({"ours": reader_of(case, chunks), "raw": limits}, rounds)
        ours, limit = (found[side] / DELTAS / 1e3 for side in ("ours", "raw"))
        table.row(name, ours, limit)
        table.row("  of which the most is", ours, most=READ_US_MAX)


def conversation(name: str) -> list[Message]:
    """A window as agents have it: each call with its result, of this model's own making."""
    made: list[Message] = []
    for message in mixed(WINDOW + 4):
        if message.tool_calls:
            call: ToolCall = message.tool_calls[0]
        if message.tool_call_id is not None:
            message = message.replace(tool_call_id=call.id)
        made.append(message.replace(model=name) if message.model else message)
    return made


def preparing(table: Table, rounds: int) -> None:
    table.title(f"Prepare a window of {WINDOW:,} messages (us a message)")
    bound = CASES["anthropic"]._replace(wire=AnthropicWire("claude-opus-5-5"))
    for name, case in {**CASES, "anthropic, prefix-bound thinking": bound}.items():
        wire, said = case.wire, conversation(case.wire.name)
        shown = render(said[:WINDOW]).messages
        first = best_us(partial(Shown, shown), partial(sent, wire), rounds)
        again = best_us(partial(going_on, wire, shown, said), partial(sent, wire), rounds)
        body = sent(wire, render(said).messages)
        encoded = best_us(partial(dict, body), raw.encode, rounds)
        plain = raw.decode(raw.encode(body))
        limit = best_us(partial(dict, plain), raw.encode, rounds)
        table.row(f"{name}, the first time", first / WINDOW, most=FIRST_US_MAX)
        table.row(f"{name}, at the next call", again / len(said), most=NEXT_US_MAX)
        table.row("  and to write it down", encoded / len(said), limit / len(said))


def going_on(wire: Wire, shown: Shown, said: Sequence[Message]) -> Shown:
    """The window of the next call, when the one before was sent."""
    before = Shown(shown)
    sent(wire, before)
    return render(said, last=before).messages


def best_us(setup: Callable[[], Any], run: Callable[[Any], object], rounds: int) -> float:
    """The shortest time of `run` on what `setup` gives; nothing is freed meanwhile."""
    found = float("inf")
    for _ in range(rounds):
        given = setup()
        gc.collect()
        gc.disable()
        start = time.perf_counter_ns()
        made = run(given)
        found = min(found, (time.perf_counter_ns() - start) / 1e3)
        gc.enable()
        del made
    return found


def sent(wire: Wire, shown: Shown) -> dict[str, Any]:
    return wire.to_wire(wire.ask(shown, "Be brief.", TOOLS, stream=True))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=15, help="of each side (default 15)")
    parser.add_argument("--check", action="store_true", help="fail when a bar is missed")
    options = parser.parse_args()
    table = Table()
    reading(table, options.rounds)
    preparing(table, options.rounds)
    return table.status(options.check)


if __name__ == "__main__":
    sys.exit(main())
