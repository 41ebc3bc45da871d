"""Conversations of nobody, for bench/window.py where there is no folder of real ones.

Dialogues with tools of some ten turns, and long sessions of work: users say little, assistants
twice as much, and what tools give back is mostly short and sometimes thousands of tokens long. The
same ones every time.
"""

import json
import random
from collections.abc import Iterator

from window_conversations import Talk, talk_of

from holdfast.messages import Message, ToolCall

SEED = 20
LONG_EVERY = 12  # so many dialogues for each long session
LONG_TURNS = 120
RESULT_WORDS = 60  # the median; one in twenty is six times as long
RESULT_SPREAD = 1.1
RESULT_WORDS_MAX = 2_500
SYSTEM = (
    "You help the guests of a small harbour town. Look up boats, rooms and tides with the tools "
    "before you answer, never promise what the tools do not say, and ask before you book. "
)
WORDS = (
    *("boat", "harbour", "morning", "ticket", "window", "tide", "room", "lamp", "bread"),
    *("early", "guest", "north", "island", "ferry", "price", "between", "without", "rather"),
    *("seven", "bicycle", "storm", "quiet", "return", "after", "please", "cabin", "luggage"),
)
TOOLS = ("find_boats", "find_rooms", "read_tides", "book")


def generated(tokens: int) -> list[Talk]:
    """Conversations of so many tokens in all, or some more."""
    rnd = random.Random(SEED)
    talks: list[Talk] = []
    planted = total = 0
    while total < tokens:
        number = len(talks)
        is_long = number % LONG_EVERY == LONG_EVERY - 1
        turns = LONG_TURNS if is_long else rnd.randint(6, 14)
        kind = "long" if is_long else "dialogue"
        talk = talk_of(f"generated:{number}", said(rnd, turns), planted, kind)
        planted += len(talk.facts)
        total += talk.total
        talks.append(talk)
    return talks


def said(rnd: random.Random, turns: int) -> Iterator[Message]:
    """A conversation of so many turns, each with up to three rounds of tools."""
    yield Message.system(SYSTEM * 6)
    for turn in range(turns):
        yield Message.user(_words(rnd, rnd.randint(10, 60)))
        for number in range(rnd.choice((0, 1, 1, 2, 3))):
            name = rnd.choice(TOOLS)
            arguments = json.dumps({"day": rnd.randint(1, 31), "for": _words(rnd, 6)})
            call = ToolCall(id=f"call-{turn}-{number}", name=name, arguments=arguments)
            yield Message.assistant(_words(rnd, rnd.randint(0, 20)) or None, [call])
            yield Message.tool(_result(rnd), call.id, name=name)
        yield Message.assistant(_words(rnd, rnd.randint(20, 120)))


def _words(rnd: random.Random, count: int) -> str:
    return " ".join(rnd.choices(WORDS, k=count))


def _result(rnd: random.Random) -> str:
    """Rows as JSON, of a length with a heavy tail."""
    left = min(RESULT_WORDS_MAX, int(RESULT_WORDS * rnd.lognormvariate(0, RESULT_SPREAD)))
    rows = []
    while left > 0:
        rows.append({"id": rnd.getrandbits(32), "about": _words(rnd, min(12, left))})
        left -= 20  # as many tokens as such a row has beside its words
    return json.dumps(rows)
