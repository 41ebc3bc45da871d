"""Whether a server has cut a prompt in silence.

A prompt that is longer than the window is not refused but cut, at its front, and nothing in the
answer says so but the number of tokens in the prompt. There may be fewer than were sent for two
reasons: the prompt was cut, or the server does not count what it had in its cache. So a small
number is only a suspicion, and **the window decides**, asked for anew from the server:

| tokens counted                     | what was sent, against the window   | the prompt was |
|------------------------------------|-------------------------------------|----------------|
| as many as we count, or more       |                                     | read whole     |
| fewer than there are for certain   | has more tokens for certain         | cut            |
| fewer, and just what a cut leaves  | may have more                       | cut            |
| fewer                              | fits, or may fit                    | in the cache   |
| fewer                              | nobody says how large the window is | in the cache   |

However much of a prompt is in a cache, what is longer than the window cannot have been read; and
what fits into it is not cut, however little of it is counted. A cut leaves the whole window, or,
since version 0.30, half of it and the few tokens at the front that are kept.
"""

from math import ceil
from typing import NamedTuple

from holdfast.messages import Message
from holdfast.providers.tokens import Counter, prompt_tokens, tools_tokens
from holdfast.providers.wire import Ask

KEPT_MAX = 8  # tokens at the front that a cut leaves (num_keep), and the mark of the beginning
_ERROR_MIN = 0.05  # templates are not published: no counter is better
# A template may show tools in fewer words than their JSON has.
_TOOLS_SHARE = 0.5
_FAR_OFF = 0.75  # of what was sent: a count so small is worth a question, whatever was known
_SMALL = 2_048  # characters: there is no window that this does not fit into


class Sent(NamedTuple):
    """How many tokens a prompt has: for certain, as counted, and at most.

    Only words count for certain: a template may leave out what was thought before, and pictures
    cost each model something else.
    """

    at_least: int
    tokens: int
    at_most: int


def sent(ask: Ask, count: Counter) -> Sent:
    """The prompt of a question, measured."""
    prepared = ask.prepared
    system = prepared.system or ""
    if len(system) + sum(map(_length, prepared.messages)) <= _SMALL and not prepared.tools:
        return Sent(0, 0, 0)  # not worth loading a vocabulary
    words = count.count(system) + sum(_words(each, count) for each in prepared.messages)
    tools = tools_tokens(prepared.tools, count)
    tokens = prompt_tokens(prepared.messages, count, system=system, tools=prepared.tools)
    error = max(count.error, _ERROR_MIN)
    least = (words + tools * _TOOLS_SHARE) * (1 - error)
    return Sent(int(least), tokens, ceil(tokens * (1 + error)))


def _length(message: Message) -> int:
    return len(message.text or "") + sum(len(call.arguments) for call in message.calls)


def _words(message: Message, count: Counter) -> int:
    called = sum(count.count(call.name) + count.count(call.arguments) for call in message.calls)
    return count.count(message.text or "") + called


def is_suspicious(sent: Sent, counted: int, window: int | None) -> bool:
    """Whether so few tokens were counted that the window has to be asked for.

    `window` is the last that was known: a server may have been started anew with a smaller one.
    """
    if counted >= sent.tokens:
        return False
    if window is None or sent.at_most > window:
        return True
    return counted < max(sent.at_least, sent.tokens * _FAR_OFF)


def is_cut(sent: Sent, counted: int, window: int) -> bool:
    """Whether a suspicious prompt was cut to this window. The table above is the rule."""
    if counted < sent.at_least and sent.at_least > window:
        return True
    half = window // 2
    is_mark = half <= counted <= half + KEPT_MAX or window - KEPT_MAX <= counted <= window
    return sent.at_most > window and is_mark
