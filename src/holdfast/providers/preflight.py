"""Preflight: what a model would be given of a conversation, told before it is asked.

    window = session.window(model=gpt)
    print(gpt.preflight(window.messages, window.system, window.tools))

It is what `prepare` reports of the request that would be made, and what the wire leaves out of it
(`left_out.py`), with the tokens of the very messages that would be sent. Nothing is sent, and
nothing is changed.

| group     | repair                                       | what that means                      |
|-----------|----------------------------------------------|--------------------------------------|
| dropped   | stripped, not shown, blank, empty, misplaced | it is not shown, or only named       |
| converted | recast                                       | it is shown in another form or place |
| renamed   | refitted, renamed                            | an id or a name is another           |
| mended    | all others                                   | what no vendor accepts is put right  |
"""

from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from holdfast.errors import DoesNotFit
from holdfast.frozen import FrozenDict
from holdfast.messages import Message, Role
from holdfast.parts import Audio, File, Image
from holdfast.providers.left_out import left_out
from holdfast.providers.limits import limits_of, prices_of
from holdfast.providers.models import Model, model_of
from holdfast.providers.prepare import Rules, as_shown
from holdfast.providers.tokens import counter, message_counter, prompt_tokens
from holdfast.tools import Tool
from holdfast.usage import Usage
from holdfast.window.budget import Budget, Room
from holdfast.window.render import Repair, Shown

if TYPE_CHECKING:
    from holdfast.providers.base import Provider
    from holdfast.providers.wire import Wire

_GROUPS = {
    **dict.fromkeys(("stripped", "not shown", "blank", "empty", "misplaced"), "dropped"),
    "recast": "converted",
    **dict.fromkeys(("refitted", "renamed"), "renamed"),
}
_decode = msgspec.json.Decoder().decode


class Largest(NamedTuple):
    """A part of a request, in words, and its tokens; `message_id` if it is a message."""

    what: str
    tokens: int
    message_id: str | None = None


class Preflight(NamedTuple):
    """What a model would be given.

    model          who would be asked, as "vendor:model"
    source         the model that answered last; None if none did
    repairs        all that would be changed, and in which message
    tools          the tools whose names it would see otherwise: ours, and those
    tokens         of the whole request, by the counter of its family
    margin         so many more it may be
    source_tokens  of the same conversation by the counter of `source`; None without one
    room           tokens of its window: all, kept for the answer, left for the request
    largest        the largest part of the request: what to shorten if it does not fit
    cache_tokens   so many of them have to be written to its cache, at most; None if it is not
                   known to have one
    cost           of the request, those included; None without prices
    currency       of the cost
    """

    model: str
    source: str | None
    repairs: tuple[Repair, ...]
    tools: FrozenDict
    tokens: int
    margin: int
    source_tokens: int | None
    room: Room
    largest: Largest
    cache_tokens: int | None
    cost: Decimal | None
    currency: str

    @property
    def dropped(self) -> tuple[Repair, ...]:
        """What the model would not be shown."""
        return self._of("dropped")

    @property
    def converted(self) -> tuple[Repair, ...]:
        """What it would be shown in another form or place."""
        return self._of("converted")

    @property
    def renamed(self) -> tuple[Repair, ...]:
        """Ids and names that would be others, in calls and their results alike."""
        return self._of("renamed")

    @property
    def mended(self) -> tuple[Repair, ...]:
        """What was wrong for every model: calls without results, and the like."""
        return self._of("mended")

    @property
    def fits(self) -> bool:
        """Whether the request fits beside an answer, even if it is counted short by the margin."""
        return self.tokens + self.margin <= self.room.prompt

    @property
    def problem(self) -> DoesNotFit | None:
        """If it does not fit: what is too large for what is left beside the rest."""
        if self.fits:
            return None
        what, tokens, _ = self.largest
        left = self.room.prompt - self.margin - (self.tokens - tokens)
        if left <= 0:  # not for this part alone: without it the rest would not fit either
            return DoesNotFit("the request", self.tokens + self.margin, self.room.prompt)
        return DoesNotFit(what, tokens, left)

    def _of(self, group: str) -> tuple[Repair, ...]:
        return tuple(each for each in self.repairs if _GROUPS.get(each.what, "mended") == group)

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def preflight(
    provider: "Provider",
    messages: Sequence[Message],
    system_instruction: str | None = None,
    tools: Sequence[Tool] | None = None,
) -> Preflight:
    """What the model of `provider` would be given of these messages."""
    known, tools = model_of(provider.vendor, provider.model), tuple(tools or ())
    shown = as_shown(messages)
    seen = _seen(provider, shown, system_instruction, tools)
    size = _size(seen, known)
    source = _source(shown)
    new = size.behind(_own_from(shown, provider.name)) if source == provider.name else size.all
    cached = None if known.cache_min_tokens is None else new
    if cached and size.all < (known.cache_min_tokens or 0):
        cached = 0
    limits, prices = limits_of(provider, known), prices_of(provider, known)
    usage = Usage(size.all, 0, cache_read=size.all - new if cached else 0, cache_write=cached or 0)
    return Preflight(
        model=provider.name,
        source=source,
        repairs=seen.repairs,
        tools=FrozenDict({ours: theirs for theirs, ours in seen.names.items()}),
        tokens=size.all,
        margin=ceil(size.all * counter(known.family).error),
        source_tokens=None
        if source is None
        else _tokens_by(source, shown, system_instruction, tools),
        room=Budget().room(limits.context, limits.output, known.prompt),
        largest=size.largest,
        cache_tokens=cached,
        cost=None if prices is None else usage.cost(prices),
        currency="USD" if prices is None else prices.currency,
    )


# What it would see


class _Seen(NamedTuple):
    messages: Sequence[Message]
    system: str | None
    tools: tuple[Tool, ...]
    names: Mapping[str, str]
    repairs: tuple[Repair, ...]


def _seen(provider: "Provider", shown: Shown, system: str | None, tools: tuple[Tool, ...]) -> _Seen:
    """What is sent; of a provider that is not ours, what is the same for all."""
    wire: Wire | None = getattr(provider, "wire", None)
    if wire is None:
        return _Seen(shown, system, tools, {}, shown.repairs)
    ask = wire.ask(shown, system, tools)
    sent = ask.prepared
    repairs = (*sent.repairs, *_recast(sent.messages, wire.rules), *left_out(wire, ask))
    return _Seen(sent.messages, sent.system, sent.tools, sent.names, repairs)


def _recast(messages: Iterable[Message], rules: Rules) -> Iterator[Repair]:
    """What is said in another form than the one in which it came."""
    for message in messages:
        for call in message.tool_calls:
            if not rules.has_calls:
                yield Repair("recast", message.id, call.id, "call")
            elif not rules.has_any_arguments and not _is_object(call.arguments):
                yield Repair("recast", message.id, call.id, "arguments")
        if message.role is Role.TOOL:
            called, content = message.tool_call_id or "", message.content
            if not rules.has_calls:
                yield Repair("recast", message.id, called, "result")
            for part in content if isinstance(content, tuple) else ():
                if isinstance(part, Image | Audio | File) and rules.detaches(part):
                    yield Repair("recast", message.id, called, type(part).__name__.lower())


def _is_object(arguments: str) -> bool:
    """Whether these are the arguments of a call as they should be; none at all are, too."""
    try:
        return not arguments.strip() or type(_decode(arguments)) is dict
    except (msgspec.DecodeError, RecursionError):
        return False


# How much that is


class _Size(NamedTuple):
    """Tokens: of system prompt and tools, and of each message."""

    base: int
    each: tuple[int, ...]
    messages: Sequence[Message]

    @property
    def all(self) -> int:
        return self.base + sum(self.each)

    @property
    def largest(self) -> Largest:
        pairs = zip(self.messages, self.each, strict=True)
        named = [Largest(_name(message), tokens, message.id) for message, tokens in pairs]
        told = Largest("the system prompt with the tools", self.base)
        return max([told, *named], key=lambda part: part.tokens)

    def behind(self, ids: set[str]) -> int:
        """Of the messages with these ids."""
        pairs = zip(self.messages, self.each, strict=True)
        return sum(tokens for message, tokens in pairs if message.id in ids)


def _size(seen: _Seen, known: Model) -> _Size:
    count = counter(known.family)
    base = prompt_tokens((), count, system=seen.system, tools=seen.tools)
    each = map(message_counter(count, known.images), seen.messages)
    return _Size(base, tuple(each), seen.messages)


def _name(message: Message) -> str:
    if message.role is Role.TOOL:
        return f"the result of {message.name or 'a tool'}"
    who = {Role.USER: "a user's message", Role.ASSISTANT: "an answer"}
    return who.get(message.role, "a system message")


def _source(messages: Sequence[Message]) -> str | None:
    """Who answered last."""
    answers = (m.model for m in reversed(messages) if m.role is Role.ASSISTANT and m.model)
    return next(answers, None)


def _own_from(messages: Sequence[Message], name: str) -> set[str]:
    """The ids of what came since the last request to this model."""
    last = max(at for at, m in enumerate(messages) if m.model == name)
    return {message.id for message in messages[last:]}


def _tokens_by(
    name: str, messages: Sequence[Message], system: str | None, tools: Sequence[Tool]
) -> int:
    vendor, _, model = name.partition(":")
    known = model_of(vendor, model)
    count = counter(known.family)
    return prompt_tokens(messages, count, system=system, tools=tools, images=known.images)


# In words


def _lines(told: Preflight) -> Iterator[str]:
    moved = "" if told.source in (None, told.model) else f"{told.source} -> "
    yield f"{moved}{told.model}: {'fits' if told.fits else told.problem}"
    by = "" if told.source_tokens is None else f"; {told.source_tokens:,} by {told.source}"
    room = told.room
    yield f"  tokens     {told.tokens:,}, up to {told.tokens + told.margin:,}{by}"
    yield f"  window     {room.prompt:,} of {room.context:,}, {room.reserve:,} for the answer"
    cached = "not known" if told.cache_tokens is None else f"{told.cache_tokens:,} tokens to write"
    paid = "" if told.cost is None else f", {told.cost.normalize():f} {told.currency}"
    yield f"  cache      {cached}{paid}"
    for group in ("dropped", "converted", "renamed", "mended"):
        if found := told._of(group):
            yield f"  {group:10} {_tallied(found)}"
    if told.tools:
        names = ", ".join(f"{ours!r} as {theirs!r}" for ours, theirs in told.tools.items())
        yield f"  tools      {names}"


def _tallied(repairs: Iterable[Repair]) -> str:
    tally = Tally((each.part or each.what) for each in repairs)
    return ", ".join(f"{what} ({count})" for what, count in tally.items())
