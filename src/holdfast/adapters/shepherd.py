"""Shepherd's session, over the same log and the same turns as all others.

    from holdfast.adapters import shepherd

    with shepherd.Session("sqlite:chats.db", backend=provider) as session:
        response = session.add_message(shepherd.USER, "Hello, I am Ada.")
        print(response.content, session.total_tokens)

It is synchronous: what is asked for is done when the call returns. The caller runs the tools. A
model that asks for some ends the response (`finish_reason` is "tool_calls"), and goes on when each
call has had its `add_message(TOOL_RESPONSE, ...)`. Failures are raised. `session.session` is the
session of holdfast beneath, for what this face has no name for.
"""

import json
import threading
from collections.abc import Callable, Iterable
from os import PathLike
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self

import holdfast.manager
from holdfast.adapters import shepherd_file
from holdfast.adapters.shepherd_file import PRE_INJECTION, TOKENS
from holdfast.adapters.shepherd_sampling import DEFAULTS, Sampling
from holdfast.adapters.shepherd_values import (
    ASSISTANT,
    FINISH_REASONS,
    FUNCTION,
    ROLES,
    SYSTEM,
    TOOL_REQUEST,
    TOOL_RESPONSE,
    USER,
    Callback,
    CallbackEvent,
    Message,
    MessageType,
    Response,
    check_tokens,
    type_of,
)
from holdfast.cancel import CancelToken
from holdfast.codec import shepherd as json_codec
from holdfast.errors import DoesNotFit, InvalidInput
from holdfast.events import Event, TextDelta, ThinkingDelta
from holdfast.loop_thread import LoopThread
from holdfast.messages import Message as Said
from holdfast.messages import Role, ToolCall
from holdfast.providers.base import Provider
from holdfast.results import TurnResult
from holdfast.session import Session as HoldfastSession
from holdfast.steps.targets import Target
from holdfast.tools import Tool
from holdfast.window.budget import Budget, answer_tokens

__all__ = [
    "ASSISTANT",
    "FUNCTION",
    "SYSTEM",
    "TOOL_REQUEST",
    "TOOL_RESPONSE",
    "USER",
    "Callback",
    "CallbackEvent",
    "Message",
    "MessageType",
    "Response",
    "Sampling",
    "Session",
]


class Session:
    """One conversation. Any thread may use it; one message at a time is being answered."""

    def __init__(
        self,
        url: str = "memory:",
        key: str = "cli:direct",
        *,
        backend: Provider | None = None,
        tools: Iterable[Tool] | None = None,
        sampling: Sampling = DEFAULTS,
    ) -> None:
        self.sampling = sampling.check()
        self._answering = threading.RLock()
        self._backend: Target | None = None
        self._read: tuple[object, tuple[Said, ...]] = (None, ())
        self._loop = LoopThread("holdfast-shepherd")
        try:
            manager = holdfast.manager.open(url)
            self._manager = self._loop.run(manager.__aenter__())
        except BaseException:
            self._loop.close()
            raise
        try:
            self.session: HoldfastSession = self._loop.run(manager.get_or_create(key))
            if backend is not None:
                self.backend = backend
            if tools is not None:
                self.tools = tuple(tools)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the store; twice is fine. The backend is the caller's, and stays open."""
        if self._loop.is_closed:
            return
        try:
            self._loop.run(self._manager.close())
        finally:
            self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # What is there

    @property
    def messages(self) -> tuple[Message, ...]:
        """The whole conversation, the system prompt first."""
        return tuple(map(self._shown, self._all()))

    @property
    def total_tokens(self) -> int:
        """As the backend reported, and counted for what came since."""
        said = self._all()
        reported = self._reported()
        if not reported:
            return sum(map(self._tokens, said))
        last = shepherd_file.last_index(said, Role.ASSISTANT)
        return sum(reported) + sum(map(self._tokens, said[last + 1 :]))

    @property
    def last_prompt_tokens(self) -> int:
        """Of the last call, as this backend reported; 0 if it was not asked since a switch."""
        return (self._reported() or (0, 0))[0]

    @property
    def last_user_message_index(self) -> int:
        """Into `messages`; -1 where there is none."""
        return shepherd_file.last_index(self._all(), Role.USER)

    @property
    def last_user_message_tokens(self) -> int:
        return self._tokens_at(self.last_user_message_index)

    @property
    def last_assistant_message_index(self) -> int:
        """Into `messages`; -1 where there is none."""
        return shepherd_file.last_index(self._all(), Role.ASSISTANT)

    @property
    def last_assistant_message_tokens(self) -> int:
        return self._tokens_at(self.last_assistant_message_index)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What the model is offered. The caller runs them."""
        return self.session.tools

    @tools.setter
    def tools(self, tools: Iterable[Tool]) -> None:
        # A call waits for its answer, as one that has to be approved does.
        declared = [tool.replace(run=None, approval=True) for tool in tools]
        self._loop.run(self.session.update(tools=declared))

    @property
    def backend(self) -> Provider | None:
        """Who answers: referred to, not owned. The conversation goes on with another."""
        return None if self._backend is None else self._backend.provider

    @backend.setter
    def backend(self, backend: Provider) -> None:
        if not isinstance(backend, Provider):
            raise InvalidInput("backend", f"is a Provider, not {type(backend).__name__}")
        self._loop.run(self._use(backend))
        self._backend = Target(backend)

    # What is done

    def add_message(
        self,
        type: MessageType,
        content: str,
        callback: Callback | None = None,
        tool_name: str = "",
        tool_id: str = "",
        prompt_tokens: int = 0,
        max_tokens: int = 0,
    ) -> Response:
        """Add a message, and have it answered if it is a user's or the last result of a tool.

        callback       hears of the answer while it comes; what is False stops it
        tool_name, id  for a TOOL_RESPONSE: the call that it answers
        prompt_tokens  of this message; 0 has it counted
        max_tokens     of the answer; 0 is a share of the backend's context, -1 is no limit
        """
        kind = type_of(type)
        check_tokens("prompt_tokens", prompt_tokens, 0)
        check_tokens("max_tokens", max_tokens, -1)
        with self._answering:
            said = self._said(kind, content, tool_name, tool_id, prompt_tokens)
            if kind is SYSTEM:
                self._loop.run(self.session.update(settings={"system": content}))
                return Response()
            if kind is USER:
                self._tune(max_tokens)
                return self._answered(lambda **how: self.session.send(said, **how), callback)
            self._loop.run(self.session.append(said))
            if kind is ASSISTANT:
                return Response()
            if waiting := self._waiting():
                return Response(finish_reason="tool_calls", tool_calls=waiting)
            return self.resume(callback, max_tokens)

    def resume(self, callback: Callback | None = None, max_tokens: int = 0) -> Response:
        """Go on where an answer failed or was cut off."""
        with self._answering:
            self._tune(max_tokens)
            return self._answered(lambda **how: self.session.resume(**how), callback)

    def clear_history(self) -> None:
        """Remove the conversation. The system prompt, the tools and the settings stay."""
        with self._answering:
            told = [each.text for each in self._all() if each.role is Role.SYSTEM and each.text]
            if told:  # first, so that nothing of it is lost whatever happens
                self._loop.run(self.session.update(settings={"system": "\n\n".join(told)}))
            self._loop.run(self.session.clear())

    def to_json(self) -> dict[str, Any]:
        """`{"messages": [{"role", "content"}, ...]}`."""
        found: dict[str, Any] = json.loads(json_codec.encode(self._all()))
        return found

    def save(self, folder: str | PathLike[str]) -> Path:
        """Save the messages in shepherd's own file, and give back where it is."""
        backend = self._needed().provider
        path = Path(folder) / shepherd_file.file_name(backend.vendor)
        said = [each for each in self._all() if each.role is not Role.SYSTEM]
        tokens = list(map(self._tokens, said))
        shepherd_file.write(
            path, shepherd_file.document(backend.vendor, backend.model, said, tokens)
        )
        return path

    def load(self, path: str | PathLike[str]) -> None:
        """Begin with the messages of such a file; a conversation that is there is not replaced."""
        saved = shepherd_file.read(Path(path).read_bytes())
        with self._answering:
            if self.session.count:
                raise InvalidInput("the session", "has messages: clear_history() first")
            if saved.messages:
                self._loop.run(self.session.append(*saved.messages))

    # Inside

    async def _use(self, backend: Provider) -> None:
        self.session.bind(backend)
        if self.session.settings.model != backend.name:
            await self.session.update(model=backend)
        try:
            self.session.window()  # the ledger learns what earlier calls reported
        except DoesNotFit:
            pass

    def _needed(self) -> Target:
        if self._backend is None:
            raise InvalidInput("backend", "is missing: session.backend = open_provider(...)")
        return self._backend

    def _all(self) -> tuple[Said, ...]:
        """The system prompt and the conversation; read again when it has changed."""
        session = self.session
        loaded = session.messages
        state = (session.branch, session.count, loaded[-1].id if loaded else "")
        if self._read[0] != state:
            self._read = (state, self._loop.run(session.read()))
        system = session.settings.system
        told = (Said.system(system, id="system"),) if system else ()
        return (*told, *self._read[1])

    def _shown(self, said: Said) -> Message:
        return Message(
            MessageType(json_codec.message_type(said)),
            said.text or "",
            self._tokens(said),
            said.name or "",
            said.tool_call_id or "",
            said.calls,
            said.extra.get(PRE_INJECTION) or "",
        )

    def _tokens(self, said: Said) -> int:
        """As reported, as the caller said, or as counted; without a backend nobody can count."""
        if self._backend is None:
            return int(said.extra.get(TOKENS, 0))
        reported = self.session.ledger.message(self._backend.name, said.id)
        return reported or said.extra.get(TOKENS) or self._backend.count(said)

    def _tokens_at(self, index: int) -> int:
        return 0 if index < 0 else self._tokens(self._all()[index])

    def _reported(self) -> tuple[int, int] | None:
        """Prompt and answer of the last call, if this backend was asked."""
        if self._backend is None:
            return None
        context = self.session.ledger.context(self._backend.name, 1)
        return (context.prompt_tokens, context.output_tokens) if context.is_reported else None

    def _said(
        self, kind: MessageType, content: str, tool_name: str, tool_id: str, prompt_tokens: int
    ) -> Said:
        """The message that is added."""
        if kind is USER and content == "":
            raise InvalidInput("content", "is empty: say something")
        extra: dict[str, object] = {TOKENS: prompt_tokens} if prompt_tokens > 0 else {}
        if kind in (TOOL_RESPONSE, FUNCTION):
            call = self._call(tool_name, tool_id)
            return Said.tool(content, call.id, name=call.name, extra=extra)
        return Said(Role(ROLES[kind]), content, extra=extra)

    def _last_reply(self) -> str | None:
        said = self.session.messages
        last = shepherd_file.last_index(said, Role.ASSISTANT)
        return None if last < 0 else said[last].id

    def _waiting(self) -> tuple[ToolCall, ...]:
        """The calls that nobody has answered yet."""
        said = self.session.messages
        last = shepherd_file.last_index(said, Role.ASSISTANT)
        if last < 0:
            return ()
        results = (result for each in said[last + 1 :] for result in each.results)
        answered = {result.call_id for result in results}
        return tuple(call for call in said[last].calls if call.id not in answered)

    def _call(self, tool_name: str, tool_id: str) -> ToolCall:
        """The call that a result is for: by its id, or where that is not told, by its name."""
        waiting = self._waiting()
        found = [
            call
            for call in waiting
            if (call.id == tool_id if tool_id else tool_name in ("", call.name))
        ]
        if len(found) != 1:
            known = ", ".join(f"{call.name} ({call.id})" for call in waiting) or "none"
            raise InvalidInput("tool_id", f"{tool_id!r} names no call: those that wait are {known}")
        return found[0]

    def _tune(self, max_tokens: int) -> None:
        """Have the settings of the next answer as the caller wants them."""
        target, session = self._needed(), self.session
        vendor = target.provider.vendor
        wanted: int | None = max_tokens if max_tokens > 0 else None
        if max_tokens == 0:
            room = target.room(Budget.of(session.settings.budget))
            wanted = answer_tokens(room.context, _output_limit(target.provider))
        temperature = None if self.sampling.temperature == -1 else self.sampling.temperature
        request = self.sampling.check().request(vendor)
        extra = {name: each for name, each in session.settings.extra.items() if name != vendor}
        changed = session.settings.replace(
            max_tokens=wanted,
            temperature=temperature,
            extra={**extra, vendor: request} if request else extra,
        )
        if changed != session.settings:
            names = ("max_tokens", "temperature", "extra")
            values = {name: changed.values.get(name) for name in names}
            self._loop.run(session.update(settings=values))

    def _answered(self, ask: Callable[..., Any], callback: Callback | None) -> Response:
        """Have a turn run, and tell the callback of it, here in the thread of the caller."""
        token = CancelToken()
        before = self._last_reply()
        heard: SimpleQueue[Event | None] = SimpleQueue()
        goes_on = True

        def tell() -> None:
            nonlocal goes_on
            goes_on = callback is None or _tell(heard, callback, token)

        # What the callback raises ends the turn, as a Ctrl-C does: what there is by then is kept.
        result: TurnResult = self._loop.run(
            ask(cancel=token, on_event=None if callback is None else heard.put),
            meanwhile=tell,
            at_end=lambda: heard.put(None),
        )
        is_new = result.message is not None and result.message.id != before
        response = Response(
            (result.text or "") if is_new else "",
            FINISH_REASONS[result.outcome],
            *(self._reported() or (0, 0)),
            result.pending,
        )
        if callback is not None and goes_on:
            _tell_end(response, callback)
        return response


def _output_limit(provider: Provider) -> int | None:
    try:
        return provider.output_limit
    except NotImplementedError:
        return None


def _tell(heard: "SimpleQueue[Event | None]", callback: Callback, token: CancelToken) -> bool:
    """Tell the callback what is heard, until there is no more or it has had enough."""
    while (event := heard.get()) is not None:
        kind = _HEARD.get(type(event))
        if kind is not None and callback(kind, event.text, "", "") is False:  # type: ignore[attr-defined]
            token.cancel("the callback asked for it")
            return False
    return True


_HEARD: dict[type[Event], CallbackEvent] = {
    TextDelta: CallbackEvent.CONTENT,
    ThinkingDelta: CallbackEvent.THINKING,
}


def _tell_end(response: Response, callback: Callback) -> None:
    """The answer is stored: tell why it ended, and what the model asks for."""
    events = [(CallbackEvent.STOP, response.finish_reason, "", "")]
    events += [
        (CallbackEvent.TOOL_CALL, call.arguments, call.name, call.id)
        for call in response.tool_calls
    ]
    if response.tool_calls:
        events.append((CallbackEvent.TOOL_CALLS_COMPLETE, "", "", ""))
    for event in events:
        if callback(*event) is False:
            return
