"""Messages as every vendor can take them: each call with its results behind it, nothing empty.

A log keeps what was said, in whatever order it came: calls that were cut off, results that came
late or twice, or whose call is folded away. `render` makes of any such messages a conversation in
which

1. only the assistant calls tools, and no two calls have the same id, or an empty one;
2. behind a message with calls stand their results, one for each call, in the order of the calls,
   each a tool message of its own;
3. thinking, and the places of calls among the words, stand in the assistant's messages alone;
4. roles are today's (`role.canonical`), and every message but a result says something.

It is total: whatever is stored, it raises nothing. It changes as little as it can: a message that
is right is passed on as it is, the very object, and what was rendered is rendered to itself. What
it had to change is told in `repairs`; what it made up is marked with `synthetic`.

| repair     | what was wrong, and what is shown                                                 |
|------------|-----------------------------------------------------------------------------------|
| unanswered | a call without a result: an error that says so                                    |
| moved      | a result that stood elsewhere: directly behind its call                           |
| orphan     | a result without a call, or a second one: as the user's words, if it has any      |
| renamed    | a call with an id that is taken, or empty: another id, in its result too          |
| misplaced  | a call, a thought or a place of a call where it cannot stand: not shown           |
| empty      | a message that says nothing: not shown; a user's that held anything is named      |
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Self

from holdfast.messages import Content, Message, Result, Role, ToolCall
from holdfast.notes import BLANK, ORPHAN, UNANSWERED
from holdfast.parts import CallRef, Part, Text, Thinking

_CANONICAL = {role: role.canonical for role in Role}


class Repair(NamedTuple):
    """Something that had to be changed: what, in which message, and which call it concerns.

    part     the kind of thing in it, where the message has several: "thinking", "image", "id"
    became   the new spelling of an id or a name
    """

    what: str
    message_id: str
    call_id: str = ""
    part: str = ""
    became: str = ""


class Shown(tuple[Message, ...]):
    """Messages that can be sent: only `render` makes one.

    `made` is what was made of them, by whom: a note for whoever prepares the next window of the
    same conversation, most of which is the same. It lives with the messages, so that nobody who is
    passed them has to keep any. `repairs` tells what was done to them, likewise.
    """

    made: dict[Any, Any]
    repairs: tuple[Repair, ...]

    def __new__(
        cls,
        messages: Iterable[Message] = (),
        made: dict[Any, Any] | None = None,
        repairs: tuple[Repair, ...] = (),
    ) -> Self:
        self = super().__new__(cls, messages)
        self.made = {} if made is None else made
        self.repairs = repairs
        return self

    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]:
        return type(self), (tuple(self), None, self.repairs)


class Rendered(NamedTuple):
    """Messages that can be sent, and what was done to them."""

    messages: Shown
    repairs: tuple[Repair, ...]


def render(messages: Iterable[Message], *, last: Shown | None = None) -> Rendered:
    """The messages as they can be sent; `last` is what was shown before in this conversation."""
    renderer = Renderer()
    for message in messages:
        renderer.add(message)
    return renderer.rendered(None if last is None else last.made)


class _Group:
    """An assistant's message with calls, and the places of their results, which stand behind it."""

    __slots__ = ("calls", "ids", "message_id", "open", "start")

    def __init__(self, message: Message, ids: list[str], start: int) -> None:
        self.message_id = message.id
        self.calls = message.tool_calls
        self.ids = ids  # of the calls, as the log has them
        self.start = start  # where the message stands in what is shown
        self.open = dict.fromkeys(range(len(self.calls)))  # the calls that have no result yet


class Renderer:
    """Renders a conversation as it grows: a message more costs what that message costs.

    With `count`, the tokens of each message that is shown are counted, once.
    """

    def __init__(self, count: Callable[[Message], int] | None = None) -> None:
        self._count = count
        self._tokens: list[int] = []
        self._total = 0
        self._shown: list[Message] = []
        self._repairs: list[Repair] = []
        self._last: _Group | None = None
        self._groups: dict[str, _Group] = {}  # the latest with a call of this id, as the log has it
        self._open: dict[int, _Group] = {}  # those that wait for results, by where they start
        self._new: list[_Group] = []  # those that came since the places of results were filled
        self._taken: set[str] = set()
        self._hash, self._hashed_count = hashlib.sha256(), 0

    @property
    def tokens(self) -> Sequence[int]:
        """Of each message that is shown, if they are counted."""
        self._fill()
        return self._tokens

    @property
    def total(self) -> int:
        """All these tokens together."""
        self._fill()
        return self._total

    def rendered(self, made: dict[Any, Any] | None = None) -> Rendered:
        """All that was added; `made` is the note that `Shown` carries on."""
        self._fill()
        unanswered = [
            Repair("unanswered", group.message_id, group.calls[place].id)
            for group in self._open.values()
            for place in group.open
        ]
        repairs = (*self._repairs, *unanswered)
        return Rendered(Shown(self._shown, made, repairs), repairs)

    def hashed(self, encode: Callable[[Message], bytes]) -> "hashlib._Hash":
        """A hash over what is shown, going on from where the last one was taken."""
        self._fill()
        for message in self._shown[self._hashed_count :]:
            self._hash.update(hashlib.sha256(encode(message)).digest())
        self._hashed_count = len(self._shown)
        return self._hash.copy()

    def _show(self, message: Message) -> None:
        self._shown.append(message)
        if self._count is not None:
            self._tokens.append(tokens := self._count(message))
            self._total += tokens

    def _put(self, group: _Group, place: int, result: Message) -> None:
        """In the place that is kept for the result of a call."""
        index = group.start + 1 + place
        if index < self._hashed_count:
            self._hash, self._hashed_count = hashlib.sha256(), 0
        self._shown[index] = result
        if self._count is not None:
            tokens = self._count(result)
            self._total += tokens - self._tokens[index]
            self._tokens[index] = tokens

    def _fill(self) -> None:
        """Say of the calls that have no result that they have none."""
        for group in self._new:
            for place in group.open:
                message = self._shown[group.start]
                self._put(group, place, _unanswered(message, group.calls[place], place))
        self._new.clear()

    def add(self, message: Message) -> None:
        role = _CANONICAL[message.role]
        if role is Role.TOOL or message.tool_call_id is not None or message.tool_calls:
            self._add_with_tools(message, role)
        elif type(message.content) is str and message.content:
            self._show(message if role is message.role else message.replace(role=role))
        else:
            self._say(message, role, self._cleaned(message, message.content, role))

    def _add_with_tools(self, message: Message, role: Role) -> None:
        calls = calls_of(message)
        if calls:
            self._call(message, calls)
        elif message.calls:
            self._repairs += [Repair("misplaced", message.id, call.id) for call in message.calls]
        results = results_of(message)
        own = iter([at for at, call in enumerate(calls) if call.output is not None])
        for index, result in enumerate(results):
            slot = (self._last, next(own)) if calls and self._last else self._slot_of(result)
            self._answer(message, result, index, slot)
        if not calls and says_more(message, results):
            role = Role.USER if role is Role.TOOL else role
            self._say(message, role, self._cleaned(message, message.content, role))

    # What is said

    def _say(self, message: Message, role: Role, content: Content) -> None:
        """A message without calls and results, if it says anything."""
        if not content and role is Role.USER and _holds_more_than_text(message.content):
            content = BLANK  # a user's message is not dropped
        if not content:
            if message.content or not message.tool_calls:
                self._repairs.append(Repair("empty", message.id))
            return
        plain = message.role is role and content is message.content
        if not plain or message.tool_calls or message.tool_call_id is not None:
            message = message.replace(
                role=role, content=content, tool_calls=(), tool_call_id=None, is_error=False
            )
        self._show(message)

    def _cleaned(
        self, message: Message, content: Content, role: Role, ids: dict[str, str] | None = None
    ) -> Content:
        """Content of a message, without what cannot stand there, the same if all of it can.

        `ids` has the calls that may be named, with the ids under which they are shown.
        """
        if not isinstance(content, tuple):
            return content or None
        kept: list[Part] = []
        ids = {} if ids is None else ids
        for part in content:
            if type(part) is Text and not part.text:
                continue
            if type(part) is Thinking and role is not Role.ASSISTANT:
                self._repairs.append(Repair("misplaced", message.id))
            elif type(part) is CallRef and part.id not in ids:
                self._repairs.append(Repair("misplaced", message.id, part.id))
            elif type(part) is CallRef and (new := ids.pop(part.id)) != part.id:
                kept.append(CallRef(new))
            else:
                kept.append(part)
        return (content if tuple(kept) == content else tuple(kept)) or None

    # Calls

    def _call(self, message: Message, calls: tuple[ToolCall, ...]) -> None:
        """An assistant's message with calls; one that has its output in it is answered, too."""
        ids: dict[str, str] = {}
        made: list[ToolCall] = []
        for call in calls:
            id = self._free_id(call.id)
            if id != call.id:
                self._repairs.append(Repair("renamed", message.id, call.id))
            self._taken.add(id)
            ids.setdefault(call.id, id)
            plain = id == call.id and call.output is None
            made.append(call if plain else call.replace(id=id, output=None, is_error=False))
        content = self._cleaned(message, message.content, Role.ASSISTANT, ids)
        new = tuple(made)
        is_same = (
            all(a is b for a, b in zip(new, calls, strict=True)) and content == message.content
        )
        if not is_same or message.role is not Role.ASSISTANT or message.tool_call_id is not None:
            message = message.replace(
                role=Role.ASSISTANT, content=content, tool_calls=new, tool_call_id=None
            )
        self._last = group = _Group(message, [call.id for call in calls], len(self._shown))
        self._open[group.start] = group
        self._new.append(group)
        self._show(message)
        self._shown += [message] * len(new)  # until there is a result, or somebody looks
        if self._count is not None:
            self._tokens += [0] * len(new)
        for id in group.ids:
            self._groups[id] = group

    def _free_id(self, id: str) -> str:
        if id and id not in self._taken:
            return id
        base, number = id or "call", 2 if id else 1
        while (new := f"{base}-{number}") in self._taken:
            number += 1
        return new

    # Results

    def _answer(
        self, message: Message, result: Result, index: int, slot: tuple[_Group, int] | None
    ) -> None:
        """Put a result, the one of this index in its message, where it belongs."""
        if slot is None:
            self._show_orphan(message, result, index)
            return
        group, place = slot
        call = group.calls[place]
        if group.start + len(group.calls) + 1 != len(self._shown):
            self._repairs.append(Repair("moved", message.id, call.id))
        del group.open[place]
        if not group.open:
            del self._open[group.start]
        self._put(group, place, self._result_message(message, result, index, call))

    def _slot_of(self, result: Result) -> tuple[_Group, int] | None:
        """Where a result belongs: the latest call of its id, or, if it has none, the next of its
        name in the last message with calls."""
        group = self._last if result.call_id is None else self._groups.get(result.call_id)
        if group is None:
            return None
        for index in group.open:
            if result.call_id is None:
                is_it = result.name in (None, group.calls[index].name)
            else:
                is_it = group.ids[index] == result.call_id
            if is_it:
                return group, index
        return None

    def _result_message(
        self, message: Message, result: Result, index: int, call: ToolCall
    ) -> Message:
        content = self._cleaned(message, result.content, Role.TOOL)
        is_plain = (
            message.role is Role.TOOL
            and message.tool_call_id == call.id
            and not message.tool_calls
            and content == (message.content or None)
        )
        if is_plain:
            return message
        return message.replace(
            role=Role.TOOL,
            content=content,
            tool_calls=(),
            tool_call_id=call.id,
            name=result.name or call.name,
            is_error=result.is_error,
            id=f"{message.id}:{index}" if message.tool_calls else message.id,
        )

    def _show_orphan(self, message: Message, result: Result, index: int) -> None:
        self._repairs.append(Repair("orphan", message.id, result.call_id or ""))
        content = self._cleaned(message, result.content, Role.USER)
        if not content:
            return
        title = ORPHAN.format(name=result.name or "a tool")
        content = f"{title}\n{content}" if isinstance(content, str) else (Text(title), *content)
        self._show(_made(message, Role.USER, content, "orphan", index))


def calls_of(message: Message) -> tuple[ToolCall, ...]:
    """The calls that a message makes, of which some may hold their output already.

    Only the assistant calls. Outputs without arguments only say what came back, whoever holds them.
    """
    calls = message.tool_calls
    if not calls or _CANONICAL[message.role] is not Role.ASSISTANT:
        return ()
    are_results = all(call.output is not None and not call.arguments for call in calls)
    return () if are_results else calls


def results_of(message: Message) -> tuple[Result, ...]:
    """The results that a message holds: outputs, a tool's words, or a user's that name a call."""
    role = _CANONICAL[message.role]
    is_result = role is Role.TOOL or (role is Role.USER and message.tool_call_id is not None)
    return message.results if is_result or _has_outputs(message) else ()


def says_more(message: Message, results: tuple[Result, ...]) -> bool:
    """Whether a message has words beside its results.

    A result may be the words themselves; and beside outputs some programs write them once more.
    """
    if not results or not _has_outputs(message):
        return not results
    content = message.content
    return bool(content) and content != "".join(str(result.content) for result in results)


def _has_outputs(message: Message) -> bool:
    return any(call.output is not None for call in message.tool_calls)


def _unanswered(message: Message, call: ToolCall, index: int) -> Message:
    """In the place of a result that is not there."""
    return _made(
        *(message, Role.TOOL, UNANSWERED, "unanswered", index),
        tool_call_id=call.id,
        name=call.name,
        is_error=True,
    )


def _holds_more_than_text(content: Content) -> bool:
    return isinstance(content, tuple) and any(type(part) is not Text for part in content)


def _made(
    source: Message,
    role: Role,
    content: Content,
    synthetic: str,
    index: int,
    *,
    tool_call_id: str | None = None,
    name: str | None = None,
    is_error: bool = False,
) -> Message:
    """A message that nobody said; the same one whenever it is made."""
    return Message(
        role,
        content,
        tool_call_id=tool_call_id,
        name=name,
        is_error=is_error,
        id=f"{source.id}:{index}:{synthetic}",
        timestamp=source.timestamp,
        synthetic=synthetic,
    )
