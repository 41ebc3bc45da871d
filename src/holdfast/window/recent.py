"""The latest messages that fit a number of tokens: a view for reading, that makes no folds.

    recent(messages, history_budget("claude-sonnet-4-5"))

For callers who only want "as much of the end as fits", with an estimate that needs no vocabulary.
Nothing is changed by it, and nothing is remembered.
"""

import re
from collections.abc import Callable, Sequence

from holdfast.errors import InvalidInput
from holdfast.messages import Message

# The first name that a model's own contains decides: gpt-4o before gpt-4.
_BUDGETS = (
    ("claude", 100_000),
    ("gemini", 200_000),
    ("gpt-4o", 64_000),
    ("gpt-4-turbo", 64_000),
    ("gpt-4", 32_000),
    ("gpt-3.5", 8_000),
)
_BUDGET_ELSE = 32_000

_MESSAGE_TOKENS = 4
_CJK = re.compile("[\u4e00-\u9fff\u3400-\u4dbf\uac00-\ud7af]")


def history_budget(model: str) -> int:
    """How many tokens of history a model is given, by a part of its name in any case."""
    name = model.lower()
    return next((tokens for part, tokens in _BUDGETS if part in name), _BUDGET_ELSE)


def text_tokens(text: str) -> int:
    """About as many tokens as a text has: two Chinese or Korean characters each, or four others."""
    cjk = len(_CJK.findall(text))
    return (len(text) - cjk) // 4 + cjk // 2


def rough_tokens(message: Message) -> int:
    """About as many tokens as a message has, with its calls and what came back."""
    tokens = _MESSAGE_TOKENS + text_tokens(message.text or "")
    for call in message.tool_calls:
        texts = (call.id, call.name, call.arguments, call.output or "")
        tokens += sum(map(text_tokens, texts))
    return tokens


def recent(
    messages: Sequence[Message], budget: int, count: Callable[[Message], int] = rough_tokens
) -> tuple[Message, ...]:
    """The latest of `messages` that have no more than `budget` tokens; at least the last one.

    If any are left out, the rest does not begin with results whose calls are missing, or with
    calls whose results are.
    """
    if type(budget) is not int or budget < 0:
        raise InvalidInput("budget", f"is a whole number of tokens from 0 up, not {budget!r}")
    start = len(messages)
    while start:
        budget -= count(messages[start - 1])
        if budget < 0 and start < len(messages):
            break
        start -= 1
    if start:
        start = _whole_from(messages, start)
    return tuple(messages[start:])


def _whole_from(messages: Sequence[Message], start: int) -> int:
    """The first place from `start` on where no call and no result stands alone; the last is."""
    while start < len(messages) - 1:
        first, following = messages[start], messages[start + 1]
        is_alone = first.calls and not _is_result(following)
        if not _is_result(first) and not is_alone:
            break
        start += 1
    return start


def _is_result(message: Message) -> bool:
    return bool(message.results)
