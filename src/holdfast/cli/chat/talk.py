"""One conversation that is being had: a session, the model that answers, and turns."""

import secrets
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from holdfast.cli.chat import models
from holdfast.cli.chat.display import Display
from holdfast.cli.chat.interrupts import cancelling
from holdfast.cli.failures import USAGE, Failure
from holdfast.cli.screen import Screen, one_line

if TYPE_CHECKING:
    from holdfast.manager import SessionManager
    from holdfast.messages import Message, ToolCall
    from holdfast.providers.base import Provider
    from holdfast.results import TurnResult
    from holdfast.session import Session
    from holdfast.tools import Tool


class Talk:
    """A conversation. One that is new is made when the first thing is said, and not before."""

    def __init__(
        self,
        sessions: "SessionManager",
        provider: "Provider",
        screen: Screen,
        *,
        session: "Session | None" = None,
        tools: "tuple[Tool, ...]" = (),
        key: str | None = None,
        system: str | None = None,
        begins_with: str | None = None,
        is_kept: bool = True,
        is_shown: bool = True,
    ) -> None:
        """`key` is for what is not there yet; `is_shown` says whether words are.

        `system` is what the model is told from now on, `begins_with` in a new conversation.
        """
        self.sessions = sessions
        self.provider = provider
        self.screen = screen
        self.session = session
        self._tools = tools
        self.is_kept = is_kept
        self.key = key
        self._system = system
        self._begins_with = system or begins_with
        self._is_shown = is_shown

    @property
    def tools(self) -> "tuple[Tool, ...]":
        """What the model may call."""
        return self._tools if self.session is None else self.session.tools

    @property
    def pending(self) -> "tuple[ToolCall, ...]":
        """The calls that wait for a yes or a no."""
        return () if self.session is None else self.session.pending

    @property
    def unanswered(self) -> "Message | None":
        """What was said here last, if its turn has not come to its end; None if it has."""
        draft = None if self.session is None else self.session.draft
        if self.session is None or draft is None or draft.branch != self.session.branch:
            return None
        return draft.message

    @property
    def has_left(self) -> bool:
        """Whether there is a turn to go on with."""
        return self.unanswered is not None

    async def say(self, text: str) -> "TurnResult":
        """One turn."""
        session = await self._ready()
        return await self._turn(partial(session.send, text))

    async def resume(self, answers: "dict[str, bool] | None" = None) -> "TurnResult":
        """Go on with the turn that was cut off, failed, or waits."""
        session = await self._ready()
        return await self._turn(partial(session.resume, answers))

    async def use(self, provider: "Provider") -> None:
        """Another model answers from now on, or the one before if that cannot be stored."""
        before, self.provider = self.provider, provider
        try:
            if self.session is not None:
                await self._ready()
        except BaseException:
            self.provider = before
            await provider.close()
            raise
        await before.close()

    async def leave(self, key: str | None = None) -> None:
        """What is said next begins a new conversation; Failure if there is one of this key."""
        if key is not None and await self._is_there(key):
            shown = one_line(key, 80)
            raise Failure(
                f"there is a conversation {shown!r} already: name another key, or continue that "
                f"one with -s {shown}",
                USAGE,
            )
        self.session, self.key = None, key

    async def _ready(self) -> "Session":
        """The session, made if need be, which knows who answers."""
        name = self.provider.name
        if self.session is None:
            self.session = await self.sessions.get_or_create(
                self.key or await self._new_key(),
                settings=models.settings_for(name, self._begins_with),
            )
        session = self.session
        if session.settings.model != name or self._system not in (None, session.settings.system):
            changes = models.changes_for(name, session.settings)
            changes |= {"system": self._system} if self._system else {}
            await session.update(settings=changes, model=self.provider)
        self._system = None
        session.bind(self.provider)
        return session

    async def _new_key(self) -> str:
        """A key that nobody has."""
        key = f"cli:{secrets.token_hex(3)}"
        while await self._is_there(key):
            key = f"cli:{secrets.token_hex(3)}"
        return key

    async def _is_there(self, key: str) -> bool:
        """Whether a conversation has this key, or had it and is not forgotten yet."""
        from holdfast.errors import SessionExpired, SessionNotFound

        try:
            await self.sessions.get(key)
        except SessionNotFound:
            return False
        except SessionExpired:
            pass
        return True

    async def _turn(self, start: "Callable[..., Awaitable[TurnResult]]") -> "TurnResult":
        """Run it, and show it while it runs. Ctrl-C cancels it."""
        from holdfast.cancel import CancelToken

        token = CancelToken()
        with cancelling(token):  # before anything is shown: what is seen can be stopped
            display = Display(
                self.screen,
                waits_for=self.provider.model,
                calls=self.pending,
                is_shown=self._is_shown,
            )
            try:
                result = await start(cancel=token, on_event=display.tell)
            finally:
                display.close()
        if display.error is not None:
            raise display.error
        return result


def as_json(talk: Talk, result: "TurnResult") -> dict[str, Any]:
    """A turn for programs."""
    assert talk.session is not None
    usage = result.usage
    return {
        "key": talk.session.key,
        "id": talk.session.id,
        "branch": talk.session.branch,
        "model": talk.provider.name,
        "outcome": str(result.outcome),
        "text": result.text,
        "usage": {name: getattr(usage, name) for name in usage.__struct_fields__},
        "cost": None if result.cost is None else str(result.cost),
        "rounds": result.rounds,
    }
