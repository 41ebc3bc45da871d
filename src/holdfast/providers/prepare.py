"""A conversation as one target takes it: ids, names, roles, and only what it can verify.

`window.render` makes of any messages a conversation that no vendor finds broken; `prepare` fits
that to one of them, by its `Rules`. It is the first thing that happens to messages in every
`complete`, and renders what was not rendered yet, so a direct call is as safe as one of a session.

- A tool name or call id that the target does not allow becomes one that it does, the same one
  each time; `Prepared.names` leads back to ours.
- System messages go into the system instruction where the target has no such role.
- Where the target wants the user to begin, or to have the last word, and nobody did, a synthetic
  user message says so.
- Thinking goes back only to the model that thought it (`message.model`) and, where the vendor signs
  it together with what stood before it, only if that is still the same (`message.prefix`, a
  digest of system instruction, tools and messages). The same model gets signatures and opaque
  blocks as they came; any other gets what it can read.
- Media that the target does not take, and content that nobody here can read, is named in its
  place. A user's message is never dropped, whatever it holds.

It is total and pure, and stored messages stay as they are: what was changed is told in `repairs`.

| repair     | what was done                                                                    |
|------------|----------------------------------------------------------------------------------|
| stripped   | thinking, a signature or an opaque block that the target cannot verify: left out |
| not shown  | media or content that the target does not take: named in its place, or left out  |
| blank      | words that are only white space: left out, or named in a user's message          |
| recast     | a system message where there is no such role: in the system instruction          |
| refitted   | an id or name that the target does not allow: another                            |
| continued  | nobody had the first or the last word: a synthetic user's message                |

Each says in `part` what it was: of what is stripped "thinking", "opaque", a "signature" or the
"notes" on words; of what is not shown "image", "audio", "file", ...; of what is refitted "id" or
"name", with the new one in `became`.

Most of a window is the same at the next call, so what was made of each message is kept with the
messages (`Shown.made`) and only the rest is done.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import dropwhile
from typing import Any, NamedTuple, Protocol

from msgspec.structs import replace as _replaced  # unchecked: what it is given here was checked

from holdfast.messages import Content, Message, Role, ToolCall
from holdfast.notes import BLANK, CONTINUE, NOT_SHOWN
from holdfast.parts import CallRef, Opaque, Part, Text, Thinking
from holdfast.providers.names import Names, Spelling
from holdfast.providers.prefix import Prefix
from holdfast.tools import Tool
from holdfast.window.render import Repair, Shown, render

_NO_TIME = datetime(1970, 1, 1, tzinfo=UTC)


def takes_no_media(_part: Part, _role: Role) -> bool:
    """For `Rules.takes`: of a target that reads."""
    return False


def _detaches_nothing(_part: Part) -> bool:
    return False


class Rules(NamedTuple):
    """What a target takes.

    vendor           whose opaque blocks it takes
    tool_name        how the name of a tool may be spelled
    call_id          how the id of a call may be spelled
    has_system_role  takes system messages among the others
    first_is_user    the user has the first word
    last_is_user     the user, or a tool, has the last word
    has_blank_text   takes text that is only white space
    keeps_blank_between   takes it back where the model wrote it among opaque blocks
    keeps_thinking   takes thinking back
    binds_prefix     thinking is signed together with all that stood before it
    takes            whether it takes this image, audio or file in a message of this role
    takes_in_failure  takes anything but words in a result that is an error

    What a wire says in another form is told here for those who ask beforehand (`preflight.py`):

    has_calls        has a form for calls and results; else they are told in words
    has_any_arguments  takes arguments that are no JSON object as they were written
    detaches         whether this image, audio or file of a tool has to stand behind its result
    """

    vendor: str
    tool_name: Spelling
    call_id: Spelling
    has_system_role: bool = False
    first_is_user: bool = False
    last_is_user: bool = False
    has_blank_text: bool = True
    keeps_blank_between: bool = False
    keeps_thinking: bool = True
    binds_prefix: bool = False
    takes: Callable[[Any, Role], bool] = takes_no_media
    takes_in_failure: bool = True
    has_calls: bool = True
    has_any_arguments: bool = False
    detaches: Callable[[Any], bool] = _detaches_nothing


class Prepared(NamedTuple):
    """A conversation that can be sent.

    fragments   what the wire made of each message
    system      the system instruction, with the system messages if the target has no such role
    tools       the tools, under the names that the target sees
    names       our name for each tool whose name the target sees otherwise
    prefix      the digest of all this, for thinking that is signed under it; None if none is
    settled     so many of the fragments are the first of the next call as well
    made        what the wire made of those, for the next call: its own notes
    """

    messages: Sequence[Message]
    fragments: Sequence[Any]
    system: str | None
    tools: tuple[Tool, ...]
    names: Mapping[str, str]
    prefix: str | None
    repairs: tuple[Repair, ...]
    settled: int
    made: dict[str, Any]


class Target(Protocol):
    """For whom to prepare: a wire."""

    @property
    def name(self) -> str:
        """ "vendor:model", as in `message.model` of what it answered."""

    @property
    def rules(self) -> Rules: ...

    def fragment(self, message: Message, /) -> Any: ...


def prepare(
    target: Target, messages: Sequence[Message], system: str | None, tools: tuple[Tool, ...]
) -> Prepared:
    """The conversation as `target` takes it."""
    shown = as_shown(messages)
    head = _Head(target.rules, system, tools, _late(target.rules, shown))
    work = shown.made.get(target)
    if work is None or not work.goes_on(head, shown):
        work = shown.made[target] = _Work(target, head)
    work.add(shown)
    return work.prepared(shown.repairs)


def as_shown(messages: Sequence[Message]) -> Shown:
    """Messages that were rendered, as they are, and others rendered."""
    return messages if type(messages) is Shown else render(messages).messages


class _Head(NamedTuple):
    """What stands in front of the messages; `late` came among them, and is told there."""

    rules: Rules
    system: str | None
    tools: tuple[Tool, ...]
    late: tuple[str, ...]

    def prefix(self) -> Prefix:
        """Of all this: with one more late word, what was signed before cannot be verified."""
        told = [self.system or "", *self.late]
        return Prefix("\n\n".join(told) if self.late else self.system, self.tools)


def _late(rules: Rules, shown: Shown) -> tuple[str, ...]:
    """The system messages behind others, which change the head that thinking is signed under."""
    if not rules.binds_prefix or rules.has_system_role:
        return ()
    said = dropwhile(lambda message: message.role is Role.SYSTEM, shown)
    return tuple(each.text for each in said if each.role is Role.SYSTEM and each.text)


class _Work:
    """What was prepared so far of one conversation, for one target."""

    def __init__(self, target: Target, head: _Head) -> None:
        self._rules = rules = target.rules
        self._has_system_role = rules.has_system_role
        self._name = target.name
        self._fragment = target.fragment
        self._head = head
        self._names = Names(rules.tool_name, [tool.name for tool in head.tools])
        self._seen: tuple[Message, ...] = ()
        self._messages: list[Message] = []
        self._fragments: list[Any] = []
        self._made: dict[str, Any] = {}
        self._system = [head.system] if head.system else []
        self._prefix = head.prefix() if rules.binds_prefix else None
        # Id and name, as the target sees them, of the calls that wait for their results.
        self._called: dict[str, tuple[str, str]] = {}
        self._repairs: list[Repair] = []

    def goes_on(self, head: _Head, shown: Shown) -> bool:
        """Whether these messages begin with those that were prepared, under the same head."""
        return shown[: len(self._seen)] == self._seen and head == self._head

    def add(self, shown: Shown) -> None:
        prefix, fragment = self._prefix, self._fragment
        for message in shown[len(self._seen) :]:
            if _is_plain(message) and self._messages:  # most are, and there is nothing to fit
                self._messages.append(message)
                self._fragments.append(fragment(message))
            else:
                self._add(message)
            if prefix is not None:
                prefix.add(message)
        self._seen = tuple(shown)

    def prepared(self, repairs: tuple[Repair, ...]) -> Prepared:
        messages, fragments = self._messages.copy(), self._fragments.copy()
        if not messages or (self._rules.last_is_user and self._is_assistants(messages[-1])):
            behind = _continue(self._seen[-1] if self._seen else None, "last")
            repairs += (Repair("continued", behind.id),)
            messages.append(behind)
            fragments.append(self._fragment(behind))
        return Prepared(
            messages,
            fragments,
            "\n\n".join(self._system) or None,
            tuple(self._sent(tool) for tool in self._head.tools),
            self._names.back,
            None if self._prefix is None else self._prefix.digest,
            (*repairs, *self._repairs),
            len(self._fragments),
            self._made,
        )

    def _is_assistants(self, last: Message) -> bool:
        """Whether the assistant had the last word; a turn that paused goes on from there."""
        is_paused = last.stop == "pause_turn" and last.model == self._name
        return last.role is Role.ASSISTANT and not is_paused

    def _sent(self, tool: Tool) -> Tool:
        name = self._names.sent(tool.name)
        return tool if name == tool.name else tool.replace(name=name)

    # One message

    def _add(self, message: Message) -> None:
        role = message.role
        if role is Role.SYSTEM and not self._has_system_role:
            self._lift(message)
            return
        fitted = message if _is_plain(message) else self._fitted(message, role)
        if fitted is None:
            return
        message = fitted
        if not self._messages and self._rules.first_is_user and role is Role.ASSISTANT:
            first = _continue(message, "first")
            self._repairs.append(Repair("continued", message.id))
            self._append(first)
        self._append(message)

    def _lift(self, message: Message) -> None:
        """A system message into the system instruction, which holds words alone."""
        if message.text:
            self._system.append(message.text)
            self._repairs.append(Repair("recast", message.id, part="system"))
        for part in message.content if isinstance(message.content, tuple) else ():
            if type(part) is not Text:
                self._repairs.append(Repair("not shown", message.id, part=_kind_of(part)))

    def _append(self, message: Message) -> None:
        self._messages.append(message)
        self._fragments.append(self._fragment(message))

    def _fitted(self, message: Message, role: Role) -> Message | None:
        """The message as the target takes it; None if nothing is left of it."""
        content = self._content(message, role)
        if role is Role.TOOL:
            return self._fitted_result(message, content)
        calls = self._calls(message)
        if content is None and not calls:
            if role is not Role.USER:
                return None
            content = BLANK
        if content is message.content and calls is message.tool_calls:
            return message
        return _replaced(message, content=content, tool_calls=calls)

    def _fitted_result(self, message: Message, content: Content) -> Message:
        called = message.tool_call_id or ""
        assert called in self._called, "rendered: a result stands behind its call"
        id, name = self._called.pop(called)
        if content is message.content and id == called and name == message.name:
            return message
        return _replaced(message, content=content, tool_call_id=id, name=name)

    def _calls(self, message: Message) -> tuple[ToolCall, ...]:
        if not message.tool_calls:
            return message.tool_calls
        made = tuple(self._call(call, message) for call in message.tool_calls)
        return message.tool_calls if made == message.tool_calls else made

    def _call(self, call: ToolCall, message: Message) -> ToolCall:
        id, name = self._rules.call_id.fitted_apart(call.id), self._names.sent(call.name)
        signature = None
        self._called[call.id] = id, name
        if id != call.id:
            self._repairs.append(Repair("refitted", message.id, call.id, "id", id))
        if name != call.name:
            self._repairs.append(Repair("refitted", message.id, call.id, "name", name))
        if call.signature is not None:
            if message.model == self._name:
                signature = call.signature
            else:
                self._repairs.append(Repair("stripped", message.id, call.id, "signature"))
        if id == call.id and name == call.name and signature is call.signature:
            return call
        return _replaced(call, id=id, name=name, signature=signature)

    # What a message says

    def _content(self, message: Message, role: Role) -> Content:
        content = message.content
        if isinstance(content, str):
            if self._rules.has_blank_text or (content and not content.isspace()):
                return content
            self._repairs.append(Repair("blank", message.id))
            return None
        if content is None:
            return None
        kept = tuple(
            fitted for part in content if (fitted := self._part(part, message, role)) is not None
        )
        return content if kept == content else kept or None

    def _part(self, part: Part, message: Message, role: Role) -> Part | None:
        kind = type(part)
        if kind is Text:
            return self._text(part, message)  # type: ignore[arg-type]
        if message.is_error and role is Role.TOOL and not self._rules.takes_in_failure:
            return self._named(part, message)
        if kind is CallRef:
            id = self._rules.call_id.fitted_apart(part.id)  # type: ignore[union-attr]
            return part if id == part.id else CallRef(id)  # type: ignore[union-attr]
        if kind is Thinking or kind is Opaque:
            if self._can_verify(part, message, role):
                return part
            self._repairs.append(Repair("stripped", message.id, part=_kind_of(part)))
            return None
        if getattr(part, "blob", part) is None and self._rules.takes(part, role):
            return part
        return self._named(part, message)

    def _named(self, part: Part, message: Message) -> Text:
        """Words in the place of what cannot be shown."""
        kind = _kind_of(part)
        self._repairs.append(Repair("not shown", message.id, part=kind))
        return Text(NOT_SHOWN.format(kind="content" if kind == "opaque" else kind))

    def _text(self, part: Text, message: Message) -> Text | None:
        is_blank = not self._rules.has_blank_text and (not part.text or part.text.isspace())
        if is_blank and not (self._rules.keeps_blank_between and self._is_between(message)):
            self._repairs.append(Repair("blank", message.id))
            return None
        if not part.extra or message.model in (None, self._name):
            return part
        what = "signature" if part.extra.get("signature") else "notes"
        self._repairs.append(Repair("stripped", message.id, part=what))
        return Text(part.text) if part.text else None

    def _is_between(self, message: Message) -> bool:
        return message.model == self._name and any(
            type(part) is Opaque for part in message.content or ()
        )

    def _can_verify(self, part: Part, message: Message, role: Role) -> bool:
        if type(part) is Opaque:
            is_own = role is not Role.ASSISTANT or message.model == self._name
            return is_own and part.provider == self._rules.vendor
        if message.model != self._name or not self._rules.keeps_thinking:
            return False
        if self._prefix is None or message.prefix is None:
            return True
        return message.prefix == self._prefix.digest


def _is_plain(message: Message) -> bool:
    """Whether it is nothing but a user's or an assistant's words."""
    role, content = message.role, message.content
    if type(content) is not str or not (role is Role.USER or role is Role.ASSISTANT):
        return False
    return not message.tool_calls and not content.isspace()


def _kind_of(part: Part) -> str:
    return type(part).__name__.lower()


def _continue(beside: Message | None, where: str) -> Message:
    """A user's word where there has to be one; the same one whenever it is made."""
    if beside is None:
        return Message.user(CONTINUE, id=f"empty:{where}", timestamp=_NO_TIME, synthetic="continue")
    return Message.user(
        CONTINUE, id=f"{beside.id}:{where}", timestamp=beside.timestamp, synthetic="continue"
    )
