"""Windows for the tests of policies: histories as views, situations around them, and what must be
true of every plan, whichever policy made it."""

from collections import Counter
from random import Random

import random_histories
from holdfast.messages import Message, Role, ToolCall
from holdfast.parts import Image, Text, Thinking
from holdfast.window import Budget, Situation, View
from holdfast.window.plan import apply

# What says in the rendered window that a call and its result have lost each other.
UNPAIRED = ("unanswered", "orphan")


def count(message):
    """A token for each four characters or part of that, fifty for a picture, four for itself."""
    tokens = 4
    content = message.content
    for part in content if isinstance(content, tuple) else (Text(content or ""),):
        if type(part) in (Text, Thinking):
            tokens += -(-len(part.text) // 4)
        else:
            tokens += 50 if type(part) is Image else 3
    for call in message.tool_calls:
        tokens += 2 + -(-len(call.name + call.arguments + (call.output or "")) // 4)
    return tokens


def view_of(messages, *, first_seq=1):
    """A view of messages with a seq each."""
    view = View(count)
    for seq, message in enumerate(messages, start=first_seq):
        view.add(seq, message)
    return view


def situation_of(view, *, fill=0.85, limit=None, base=0, scale=1.0, margin=0, **fields):
    """A situation in which the view fills this share of the limit; `fields` go into the budget."""
    trigger = fields.pop("trigger", "before")
    draft = Situation(limit=1, used=0, scale=scale)
    used = base + draft.tokens(view.total)
    limit = max(1, int(used / fill)) if limit is None else limit
    return Situation(
        limit=limit,
        used=used,
        base=base,
        scale=scale,
        margin=margin,
        trigger=trigger,
        budget=Budget(**fields),
    )


def folded(view, plan, situation):
    """The view with the folds of a plan, each summary as long as it may be."""

    def tokens(message):
        return situation.tokens(count(message))

    texts = ["s" * 4 * step.tokens_after * 2 for step in plan.to_summarize]
    return view.with_folds(apply(plan, texts, tokens))


def shown(view):
    """The messages of the log that a view shows as they are, by seq."""
    return {item.first: item.message for item in view.items if item.fold is None}


def unpaired(view):
    """How often calls and results miss each other, by message; ids of calls may change."""
    repairs = view.rendered().repairs
    return Counter(
        (each.what, each.message_id.partition(":shortened")[0])
        for each in repairs
        if each.what in UNPAIRED
    )


def words(tokens, letter="w"):
    """Text of so many tokens."""
    return letter * (4 * tokens)


def turn(number, *, calls=0, tokens=100, answer=True):
    """A turn with some calls; each of its messages has about `tokens` tokens."""
    said = [Message.user(words(tokens, "u"), id=f"u{number}")]
    for each in range(1, calls + 1):
        id = f"c{number}.{each}"
        call = ToolCall(id=id, name="look", arguments="{}")
        said.append(Message.assistant(None, [call], id=f"a{number}.{each}"))
        said.append(Message.tool(words(tokens, "r"), id, name="look", id=f"r{number}.{each}"))
    if answer:
        said.append(Message.assistant(words(tokens, "a"), id=f"a{number}"))
    return said


def turns(number, **fields):
    """So many turns."""
    return [message for each in range(1, number + 1) for message in turn(each, **fields)]


def ids(view):
    """The ids of what is shown, in order."""
    return [item.message.id for item in view.items]


def odd_history(seed):
    """Messages in which anything may be wrong, with long results here and there."""
    random = Random(seed)
    said = [m for _ in range(random.randrange(1, 6)) for m in random_histories.history(random)]
    if random.random() < 0.3:
        said.insert(0, Message.system("You help."))
    return [_longer(random, message) for message in said]


def _longer(random, message):
    if isinstance(message.content, str) and random.random() < 0.4:
        return message.replace(content=message.content + " word" * random.randrange(600))
    return message


def must_stay(view, budget, keep_turns):
    """The seqs that no plan may hide: written down a second time, from the log alone."""
    items = view.items
    log = shown(view)
    turn_of = {item.first: item.turn for item in items}
    requests = [seq for seq, message in log.items() if message.starts_turn]
    answers = [i.first for i in items if i.message.role.canonical is Role.ASSISTANT]
    first = [seq for seq in requests[:1] if turn_of[seq] == 1]
    stays = {*first, *requests[-1:], *answers[-1:]}
    stays |= {seq for seq, message in log.items() if message.role is Role.SYSTEM}
    stays |= {seq for seq in log if turn_of[seq] in budget.pinned}
    latest = view.turn - keep_turns
    stays |= {seq for seq in log if turn_of[seq] > latest}
    return stays & log.keys()  # what a fold shows in a shorter form already is not looked at
