"""How fast the window itself is, for bench/window.py: a message more, a plan, a count.

Views are of a made-up conversation of 10,000 messages. A message more is added and all of it is
rendered. A plan is asked for when the window is full, so that there is something to decide, and
when it is not. Counting is through a new ledger, of the messages that are replayed, against the
tokeniser alone on the same texts (bench/window_raw.py).
"""

import random
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import NamedTuple

import window_raw as raw
from measure import best_ns
from window_billing import PRICES
from window_generated import said

from holdfast.messages import Message
from holdfast.providers.tokens import counter, message_counter
from holdfast.window import Policy, Situation, View
from holdfast.window.ledger import Ledger

MESSAGES = 10_000
MORE = 300
FULL = 0.99  # so much of what there is the window has room for

_o200k = counter("o200k")


class Speed(NamedTuple):
    """Microseconds of a message more, milliseconds of plans, and counting against the limit.

    A first plan has yet to count what it makes; the same plan again knows it. An idle one is that
    there is nothing to do.
    """

    message_us: float
    plan_ms: float
    plan_again_ms: float
    plan_idle_ms: float
    steps: int
    counted_ms: float
    raw_ms: float


def speed(policy: Policy, counted: list[Message], rounds: int) -> Speed:
    """All of it; `counted` are the messages whose tokens are counted."""
    messages = list(islice(conversation(), MESSAGES + MORE))
    ours, limit = counting(counted, rounds)
    view = filled(messages[:MESSAGES])
    full = Situation(limit=int(view.total * FULL), used=view.total, prices=PRICES)
    roomy = Situation(limit=view.total * 2, used=view.total, prices=PRICES)
    first = min(
        took_ns(policy.plan, filled(messages[:MESSAGES]), full, rounds=1) for _ in range(rounds)
    )
    return Speed(
        plan_ms=first / 1e6,
        plan_again_ms=took_ns(policy.plan, view, full, rounds=rounds) / 1e6,
        plan_idle_ms=took_ns(policy.plan, view, roomy, rounds=rounds) / 1e6,
        steps=len(policy.plan(view, full).steps),
        message_us=adding_us(view, messages[MESSAGES:]),
        counted_ms=ours / 1e6,
        raw_ms=limit / 1e6,
    )


def took_ns(run: Callable[..., object], *given: object, rounds: int) -> float:
    """The shortest of so many times."""
    return best_ns({"run": partial(run, *given)}, rounds)["run"]


def filled(messages: list[Message]) -> View:
    """A view of them by a counter that had counted none."""
    view = View(fresh_count())
    for seq, message in enumerate(messages, start=1):
        view.add(seq, message)
    return view


def conversation() -> Iterator[Message]:
    """Without an end; always the same."""
    rnd = random.Random(3)
    for number in range(MESSAGES):
        for message in islice(said(rnd, 100), 0 if number == 0 else 1, None):
            yield _renamed(message, number)


def _renamed(message: Message, number: int) -> Message:
    calls = tuple(call.replace(id=f"{number}:{call.id}") for call in message.tool_calls)
    answered = message.tool_call_id
    return message.replace(
        tool_calls=calls, tool_call_id=None if answered is None else f"{number}:{answered}"
    )


def fresh_count() -> Callable[[Message], int]:
    """A counter of messages that has counted none yet."""
    return Ledger().counter("o200k", message_counter(_o200k))


def adding_us(view: View, more: list[Message]) -> float:
    """The median of what it takes to add a message and to have all of them rendered."""
    times = []
    for number, message in enumerate(more, start=1):
        start = time.perf_counter_ns()
        view.add(MESSAGES + number, message)
        view.rendered()
        times.append((time.perf_counter_ns() - start) / 1e3)
    return statistics.median(times)


def counting(messages: list[Message], rounds: int) -> tuple[float, float]:
    """Nanoseconds for all messages, the least of so many rounds: through a ledger, and by the
    tokeniser alone.

    A message is counted once in its life, and a vocabulary remembers what it has seen. So in each
    round both sides begin with one that has seen nothing.
    """
    texts = [text for message in messages for text in texts_of(message)]
    ours, limit = [], []
    for _ in range(rounds):
        count = message_counter(counter.__wrapped__("o200k"))
        tokenizer = raw.tokenizer()
        count(Message.user("loaded"))
        ours.append(took_ns(sum, map(Ledger().counter("o200k", count), messages), rounds=1))
        limit.append(took_ns(raw.count_all, texts, tokenizer, rounds=1))
    return min(ours), min(limit)


def texts_of(message: Message) -> list[str]:
    """All that is counted in it."""
    called = [text for call in message.tool_calls for text in (call.name, call.arguments)]
    return [message.text, *called] if message.text else called
