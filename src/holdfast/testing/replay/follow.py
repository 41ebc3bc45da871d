"""(b) and (c): is an answer, as history, sendable again, and does it say what it said?"""

from dataclasses import replace

from holdfast.messages import Message
from holdfast.testing import validators
from holdfast.testing.replay import meaning, readings
from holdfast.testing.replay.adapter import Adapter, Answer
from holdfast.testing.replay.history import Conversation, conversation
from holdfast.testing.replay.history.base import plain_settings, schema_tool
from holdfast.testing.replay.readings import Reading
from holdfast.testing.replay.recordings import (
    ANTHROPIC,
    CLAUDE_CLI,
    CODE_ASSIST,
    GOOGLE,
    OLLAMA,
    Exchange,
)
from holdfast.testing.replay.sequences import Next

_VENDORS = {
    ANTHROPIC: "anthropic",
    CLAUDE_CLI: "claude-cli",
    GOOGLE: "google",
    CODE_ASSIST: "antigravity",
    OLLAMA: "ollama",
}


def judge_sendable(exchange: Exchange, answer: Answer, adapter: Adapter) -> str | None:
    """(b) What the vendor would refuse, if the conversation went on after this answer."""
    before = conversation(exchange) or _made_up(exchange)
    said = _continued(before, answer.message)
    try:
        body = adapter.body(said)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
        return f"{type(error).__name__} instead of a request: {error}"
    problems = validators.problems(
        exchange.wire or "", body, lenient=exchange.is_lenient, model=exchange.model
    )
    return str(problems[0]) if problems else None


def _made_up(exchange: Exchange) -> Conversation:
    """What may have been asked, where the request was not kept."""
    vendor = _VENDORS.get(exchange.wire or "", "openai")
    return Conversation(
        wire=exchange.wire or "",
        service=exchange.service,
        is_lenient=exchange.is_lenient,
        messages=(Message.user("Hello."),),
        settings=plain_settings(f"{vendor}:{exchange.model}", max_tokens=16_000),
    )


def _continued(before: Conversation, answer: Message) -> Conversation:
    """The conversation with the answer, results for its calls, and the user's next words."""
    results = [Message.tool("done", call.id, name=call.name) for call in answer.calls]
    # A turn that was paused goes on when it is sent back as it is.
    tail = results or ([] if answer.stop == "pause_turn" else [Message.user("Go on.")])
    declared = {tool.name for tool in before.tools}
    wanted = {call.name: call for call in answer.calls if call.name and call.name not in declared}
    tools = [schema_tool(name, "A tool.", None) for name in wanted]
    messages = (*before.messages, answer, *tail)
    return replace(before, messages=messages, tools=(*before.tools, *tools), is_elsewhere=False)


def judge_next(
    exchange: Exchange, answer: Answer, following: Next, adapter: Adapter
) -> tuple[str | None, list[str]]:
    """(c) The first thing in which our next request differs from the recorded one, and what of
    the recorded one is not the answer that was given: the client's own doing, explained."""
    before = conversation(exchange)
    assert before is not None, "a next request was found by the messages of this one"
    tail = _renamed(following, answer.message)
    messages = (*before.messages, answer.message, *tail)
    wanted = replace(following.conversation, messages=messages, is_elsewhere=False)
    try:
        body = adapter.body(wanted)
        ours = conversation(replace(following.exchange, request=body))
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
        return f"{type(error).__name__} instead of a request: {error}", []
    assert ours is not None
    return _compare(exchange, before, ours, following)


def _renamed(following: Next, answer: Message) -> tuple[Message, ...]:
    """The recorded results, for our calls: a client may have given them ids of its own."""
    theirs = [call.id for message in following.answer for call in message.calls]
    ours = [call.id for call in answer.calls]
    ids = dict(zip(theirs, ours, strict=False))
    return tuple(
        m.replace(tool_call_id=ids.get(m.tool_call_id, m.tool_call_id)) if m.tool_call_id else m
        for m in following.tail
    )


def _compare(
    exchange: Exchange, before: Conversation, ours: Conversation, following: Next
) -> tuple[str | None, list[str]]:
    wire = exchange.wire or ""
    explained = ["the service remembered the history"] if following.is_remembered else []
    if not following.is_remembered and not meaning.same_system(ours, following.conversation):
        return "the system's words", explained
    said = meaning.items(ours.messages)
    start = meaning.items(before.messages)
    wrong = meaning.difference(said[: len(start)], start, wire)
    if wrong is not None:
        return f"before the answer: {wrong}", explained
    tail = meaning.items(following.tail)
    if not following.is_remembered:  # results are numbered by the calls before them
        whole = meaning.items((*before.messages, *following.answer, *following.tail))
        tail = whole[len(whole) - len(tail) :]
    end = max(len(start), len(said) - len(tail))
    if following.is_remembered:  # there are no calls in it to count results by
        tail = [item._replace(number=None) for item in tail]
        behind = [item._replace(number=None) for item in said[end:]]
    else:
        behind = said[end:]
    wrong = meaning.difference(behind, tail, wire)
    if wrong is not None:
        return f"after the answer: {wrong}", explained
    wrong, more = _compare_answer(said[len(start) : end], following, readings.read(exchange), wire)
    return wrong, explained + more


def _compare_answer(
    said: list[meaning.Item], following: Next, reading: Reading, wire: str
) -> tuple[str | None, list[str]]:
    """Kind by kind: as the client sent it back, or as it was given."""
    ours, got = meaning.by_kind(said), meaning.of_reading(reading)
    theirs = meaning.by_kind(meaning.items(following.answer))
    explained: list[str] = []
    for kind in meaning.KINDS:
        if _same(kind, ours, theirs, wire) and not following.is_remembered:
            continue
        if not _same(kind, ours, got, wire):
            expected = got if following.is_remembered else theirs
            return f"{kind} of the answer: {ours[kind]}, not {expected[kind]}"[:400], explained
        if not following.is_remembered:
            explained.append(f"the client changed or left out the {kind} of the answer")
    return None, explained


def _same(
    kind: str, ours: dict[str, list[object]], other: dict[str, list[object]], wire: str
) -> bool:
    if kind == "call":
        return meaning.same_calls(ours[kind], other[kind], wire)
    return ours[kind] == other[kind]
