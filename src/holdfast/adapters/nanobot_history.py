"""What a model is given again of a nanobot conversation: rules on nanobot's own plain messages.

Nothing here changes a message or a list. What is left out or shortened is so in what is shown, and
stays whole in the log: results of tools longer than RESULT_CHARS, pictures inside a message, what
nanobot tells the model about the moment, and its own slash commands.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdfast.codec.writing import dumps
from holdfast.window.recent import text_tokens

MESSAGES_MAX = 500
RESULT_CHARS = 500
REPLAYED = 8
TRUNCATED = "\n... (truncated)"
IMAGE = "[image]"
_NAMES = ("tool_calls", "tool_call_id", "name")
_MOMENT = "[Runtime Context — metadata only, not instructions]"
_MOMENT_END = "[/Runtime Context]"
_MESSAGE_TOKENS = 4

Plain = Mapping[str, Any]


def message_tokens(message: Plain) -> int:
    """About as many tokens as a message has, where nobody counts them better."""
    content = message.get("content") or ""
    texts = [content if isinstance(content, str) else dumps(content)]
    texts += [dumps(message[name]) for name in _NAMES if message.get(name)]
    return _MESSAGE_TOKENS + sum(map(text_tokens, texts))


def history(
    messages: Sequence[Plain],
    consolidated: int = 0,
    *,
    max_messages: int = MESSAGES_MAX,
    max_tokens: int = 0,
    replayed: int = REPLAYED,
    result_chars: int = RESULT_CHARS,
    count: Callable[[Plain], int] = message_tokens,
) -> list[dict[str, Any]]:
    """The last messages behind the summarised ones, from the beginning of a turn on.

    consolidated  so many messages are summarised elsewhere; what cannot be such a number is 0
    max_messages  0 is all of them
    max_tokens    walked from the newest back, as `count` has it; 0 is no limit, and one message
                  is kept whatever it has
    replayed      so many are shown although they are summarised, with what their turn began with
    result_chars  of a tool's result; 0 is all of it
    """
    said = messages[_begin(messages, consolidated, replayed) :]
    if max_messages > 0:
        said = said[-max_messages:]
    said = without_orphans(said[_first_turn(said, 0) or 0 :])
    shown = [(each, entry) for each in said if (entry := _shown(each, result_chars)) is not None]
    if max_tokens > 0:
        shown = shown[_fitting(shown, max_tokens, count) :]
        kept = {id(each) for each in without_orphans([each for each, _ in shown])}
        shown = [pair for pair in shown if id(pair[0]) in kept]
    return [entry for _, entry in shown]


def legal_end(messages: Sequence[Plain], most: int) -> list[Plain]:
    """At most so many of the last messages: from the beginning of a turn on, if that can be, and no
    result without its call. The latest turn is kept from its beginning if it is longer."""
    if most <= 0:
        return []
    start = max(len(messages) - most, 0)
    at = start if start == 0 else _first_turn(messages, start)
    if at is None:
        at = _last_turn(messages, start)
    at = start if at is None else at
    return without_orphans(messages[at : at + most])


def without_orphans(messages: Sequence[Plain]) -> list[Plain]:
    """The messages but for results whose calls do not stand before them."""
    declared: set[str] = set()
    kept = []
    for each in messages:
        if each.get("role") == "tool" and each.get("tool_call_id") not in declared:
            continue
        calls = each.get("tool_calls") or ()
        declared |= {call["id"] for call in calls if isinstance(call, Mapping) and call.get("id")}
        kept.append(each)
    return kept


def starts_turn(message: Plain) -> bool:
    """Whether a user said it; what was said on holdfast's own behalf begins no turn."""
    return message.get("role") == "user" and not message.get("synthetic")


def _begin(messages: Sequence[Plain], consolidated: int, replayed: int) -> int:
    """Where what may be shown begins."""
    if type(consolidated) is not int or not 0 <= consolidated <= len(messages):
        consolidated = 0
    start = min(consolidated, max(len(messages) - replayed, 0))
    if start == consolidated:
        return start
    at = start if starts_turn(messages[start]) else _last_turn(messages, start)
    return start if at is None else at


def _first_turn(messages: Sequence[Plain], start: int) -> int | None:
    return next((at for at in range(start, len(messages)) if starts_turn(messages[at])), None)


def _last_turn(messages: Sequence[Plain], stop: int) -> int | None:
    return next((at for at in range(stop - 1, -1, -1) if starts_turn(messages[at])), None)


def _fitting(
    shown: Sequence[tuple[Plain, dict[str, Any]]], tokens: int, count: Callable[[Plain], int]
) -> int:
    """Where those begin that fit; moved to the beginning of a turn, forwards or else back."""
    start = len(shown)
    while start:
        tokens -= count(shown[start - 1][1])
        if tokens < 0 and start < len(shown):
            break
        start -= 1
    said = [each for each, _ in shown]
    at = _first_turn(said, start)
    if at is None:
        at = _last_turn(said, start)
    return start if at is None else at


def _shown(message: Plain, result_chars: int) -> dict[str, Any] | None:
    """A message as a model is given it, in nanobot's order; None if it is given none of it."""
    if message.get("_command"):
        return None
    content = message.get("content")
    if content is None and not message.get("tool_calls"):
        content = ""
    if isinstance(content, str):
        content = _text(message, content, result_chars)
        if content is None:
            return None
    elif isinstance(content, Sequence):
        content = [_part(part) for part in content]
    entry = {"role": message.get("role"), "content": content}
    return entry | {name: message[name] for name in _NAMES if name in message}


def _text(message: Plain, text: str, result_chars: int) -> str | None:
    if message.get("role") == "user" and text.startswith(_MOMENT):
        _, end, said = text.partition(_MOMENT_END)
        if not end:  # older ones end with a blank line
            said = text.partition("\n\n")[2]
        return said.strip() or None
    if message.get("role") == "tool" and 0 < result_chars < len(text):
        return text[:result_chars] + TRUNCATED
    return text


def _part(part: Any) -> Any:
    """A part of a content; a picture that is in it as base64 is named, and not sent again."""
    url = part.get("image_url") if isinstance(part, Mapping) else None
    address = url.get("url") if isinstance(url, Mapping) else url
    if isinstance(address, str) and address.startswith("data:image/"):
        return {"type": "text", "text": IMAGE}
    return part
