"""Windows as no careful program would leave them, made from a seed: logs with folds, and budgets.

The messages are those of `random_histories.py`, or a conversation in which nothing is wrong. Folds
have any range: over nothing, into what comes later, over half of a pair, over each other; and any
message in the place of others. The same seed gives the same window.
"""

from random import Random

import random_histories as made
from holdfast.entries import Fold, Mark
from holdfast.messages import Message, Role, ToolCall
from holdfast.parts import Text
from holdfast.window import Budget, Situation, View

LONG = "All work and no play makes a dull day. " * 60
TRIGGERS = ("before", "before", "before", "after", "manual", "overflow")


def count(message: Message) -> int:
    """Tokens enough to tell a long message from a short one, without a vocabulary."""
    content = message.content if isinstance(message.content, tuple) else ()
    others = sum(type(part) is not Text for part in content)
    calls = sum(6 + len(call.arguments + (call.output or "")) // 4 for call in message.tool_calls)
    return 4 + len(message.text or "") // 4 + 20 * others + calls


def talk(random: Random) -> list[Message]:
    """A conversation in which nothing is wrong."""
    said = [Message.system("Be brief.")] if random.random() < 0.3 else []
    for turn in range(random.randrange(1, 12)):
        said.append(Message.user(f"u{turn} " + LONG[: random.choice((0, 40, 400))]))
        for number in range(random.choice((0, 0, 1, 1, 2, 4))):
            ids = [f"c{turn}-{number}-{place}" for place in range(random.choice((1, 1, 2, 3)))]
            calls = [ToolCall(id=id, name="look", arguments="{}") for id in ids]
            said.append(Message.assistant(random.choice((None, "Let me see.")), calls))
            said += [Message.tool(LONG[: random.choice((9, 90, 900, 2_000))], id) for id in ids]
        if random.random() < 0.9:
            said.append(Message.assistant(f"m{turn} " + LONG[: random.choice((0, 40, 400))]))
    return said


def broken_talk(random: Random) -> list[Message]:
    """Messages in any order, of any shape; some of them are long."""
    said = [each for _ in range(random.choice((1, 1, 2, 4))) for each in made.history(random)]
    for place, message in enumerate(said):
        if isinstance(message.content, str) and random.random() < 0.15:
            said[place] = message.replace(content=LONG[: random.choice((400, 2_000))])
    return said


def fold(random: Random, seq_max: int, said: list[Message]) -> Fold:
    """A fold of any range, up to a little more than there is."""
    first = random.randrange(1, seq_max + 4)
    last = min(seq_max + 6, first + random.choice((0, 0, 1, 2, 3, 8, 30)))
    if random.random() < 0.2:
        return Fold(first=first, last=last, is_open=True)
    return Fold(first=first, last=last, replacement=_replacement(random, said))


def _replacement(random: Random, said: list[Message]) -> Message | None:
    kind = random.random()
    if kind < 0.3 or not said:
        return None
    if kind < 0.6:
        return Message.user("[summary] " + made.words(random), synthetic="summary")
    if kind < 0.8:
        return random.choice(said).replace(content="shorter", id=f"{random.random()}")
    return made.message(random)


def log(random: Random, said: list[Message], folds: float) -> list[tuple]:
    """Entries with their seqs: `said`, with gaps, marks and, in a share of the places, folds."""
    found, seq = [], 0
    for message in said:
        seq += random.choice((1, 1, 1, 2, 5))
        found.append((seq, message))
        if random.random() < 0.1:
            seq += 1
            found.append((seq, Mark(what="interrupted")))
        if random.random() < folds:
            seq += 1
            found.append((seq, fold(random, seq, said)))
    return found


def view_of(entries: list[tuple], **fields) -> View:
    view = View(count, **fields)
    for seq, entry in entries:
        view.add(seq, entry)
    return view


def situation(random: Random, view: View) -> Situation:
    """Some window for this view: mostly one that is nearly full, or too small."""
    base, scale = random.choice((0, 0, 30, 200)), random.choice((1.0, 1.0, 0.8, 1.37))
    target = random.choice((0.0, 0.3, 0.6, 0.6, 0.9))
    budget = Budget(
        start=random.choice((target, 0.8, 0.95, 1.0)) if target <= 0.8 else 0.9,
        target=target,
        pressure=random.choice((0.0, 0.9, 0.9, 1.0)),
        keep_turns=random.choice((0, 1, 2, 5)),
        pinned=random.choice(((), (), (1,), (2, 3))),
    )
    used = base + int(-(-view.total * scale // 1))
    share = random.choice((0.05, 0.4, 0.7, 0.9, 1.0, 1.05, 1.5, 4.0))
    return Situation(
        limit=max(1, int(used * share)),
        used=used,
        margin=random.choice((0, 0, used // 20)),
        base=base,
        scale=scale,
        budget=budget,
        trigger=random.choice(TRIGGERS),
        cache_ttl_s=random.choice((None, 300.0)),
        pause_s=random.choice((None, 10.0, 4_000.0)),
    )


def now(situation: Situation, view: View) -> Situation:
    """The same, with what the view has now."""
    return situation.replace(used=situation.base + situation.tokens(view.total))


def is_users(message: Message) -> bool:
    """Whether a user said it, and it says something."""
    if message.role is not Role.USER or message.results:
        return False
    if isinstance(message.content, tuple):
        return any(type(part) is not Text or part.text for part in message.content)
    return bool(message.content)
