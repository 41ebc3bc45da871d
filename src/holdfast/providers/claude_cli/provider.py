"""Claude through the `claude` program of Claude Code, with the login that it has.

    claude-cli:sonnet

The program is started for each call. It keeps sessions of its own on disk, which save it from
being told everything anew; what the provider remembers of them is in `sessions.py`.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Self

from holdfast.cancel import CancelToken
from holdfast.errors import (
    AuthError,
    ConnectionFailed,
    InvalidInput,
    InvalidRequest,
    ProviderError,
)
from holdfast.providers import pipe
from holdfast.providers.attempts import Attempt, FixedAttempts
from holdfast.providers.base import Callbacks, Response
from holdfast.providers.claude_cli import VENDOR
from holdfast.providers.claude_cli.command import (
    PRIVATE,
    SECRETS,
    SESSION_ID,
    Options,
    checked_env,
    checked_texts,
    environment,
)
from holdfast.providers.claude_cli.failures import is_lost_session
from holdfast.providers.claude_cli.pipe import Program, Question
from holdfast.providers.claude_cli.sessions import Seen, Sessions
from holdfast.providers.claude_cli.wire import ClaudeCliWire, Mode
from holdfast.providers.credentials import Credentials, Hidden, Key, Secret
from holdfast.providers.fields import decode_object
from holdfast.providers.options import checked_count, names_of
from holdfast.providers.retries import TRIES_MAX
from holdfast.providers.wire import Ask
from holdfast.providers.wire_provider import OnRetry, WireProvider
from holdfast.settings import Settings
from holdfast.usage import Prices

PROGRAM = "claude"
CONTEXT = 200_000
CONTEXT_LONG = 1_000_000  # asked for by the name of the model: `sonnet[1m]`
ALIASES = ("haiku", "opus", "sonnet")
_OVER_HTTP = ("headers", "client", "proxy")


class ClaudeCliProvider(WireProvider):
    """The options beside the common ones:

    mode             "passthrough": the program only asks the model, and your tools are run by you;
                     "delegated": it runs the tools of Claude Code in `cwd`, and yours are there too
    program          its name, or where it is
    cwd              where it works; by default this process's folder in delegated mode, else one of
                     its own
    permission_mode  delegated: what it may do unasked ("acceptEdits", "plan", ...)
    max_turns        delegated: after how many rounds it stops
    setting_sources  whose settings it reads ("user", "project", "local"); none in passthrough mode
    sessions         whether it may keep sessions on disk and go on with them
    env              variables for it alone
    arguments        more of its command line, which everybody on this machine can read
    """

    vendor = VENDOR
    wire: ClaudeCliWire

    def __init__(
        self,
        wire: ClaudeCliWire,
        *,
        program: str = PROGRAM,
        cwd: str | os.PathLike[str] | None = None,
        permission_mode: str | None = None,
        max_turns: int | None = None,
        setting_sources: Sequence[str] | None = None,
        sessions: bool = True,
        env: Mapping[str, str | Secret] | None = None,
        arguments: Sequence[str] = (),
        api_key: Key | None = None,
        base_url: str | None = None,
        timeout: "float | pipe.Timeouts | None" = None,
        tries_max: int = TRIES_MAX,
        context_limit: int | None = None,
        output_limit: int | None = None,
        prices: Prices | None = None,
        size_max: int = pipe.SIZE_MAX,
    ) -> None:
        long = wire.model.lower().endswith("[1m]")
        super().__init__(
            wire,
            tries_max=tries_max,
            context_limit=context_limit or (CONTEXT_LONG if long else CONTEXT),
            output_limit=output_limit,
            prices=prices,
        )
        self._credentials = Credentials(api_key)
        self._options = Options(
            wire.mode,
            permission_mode,
            max_turns,
            None if setting_sources is None else checked_texts("setting_sources", setting_sources),
            checked_env(None if base_url is None else {"ANTHROPIC_BASE_URL": base_url})
            | checked_env(env),
            checked_texts("arguments", arguments),
        ).checked()
        self._keeps = sessions
        self._sessions = Sessions()
        self._program = Program(
            _checked_program(program),
            self._options,
            cwd=os.getcwd() if cwd is None and self._options.is_delegated else _path(cwd),
            timeouts=pipe.Timeouts.of(timeout),
            size_max=checked_count("size_max", size_max),
        )

    @classmethod
    def opened(cls, model: str, *, mode: Mode = "passthrough", **options: Any) -> Self:
        """The provider of a model."""
        known = names_of(cls)
        for name in options:
            if name in _OVER_HTTP:
                raise InvalidInput(f"option {name!r}", "is not for a program: it has its own")
            if name not in known:
                listed = ", ".join(sorted({*known, "mode"}))
                raise InvalidInput(f"option {name!r:.80}", f"is unknown here: there are {listed}")
        return cls(ClaudeCliWire(model, mode=mode), **options)

    def explain(self, error: ProviderError) -> None:
        program = self._program.name
        if isinstance(error, AuthError):
            error.way_out = f"start {program} once and log in, or pass api_key="
        elif isinstance(error, ConnectionFailed):
            error.way_out = f"see what `{program} --print hello` says here, then try again"
        elif isinstance(error, InvalidRequest) and "unknown option" in error.detail:
            error.way_out = "update Claude Code (it has to be 2.1 or newer), or see your arguments="
        elif isinstance(error, InvalidRequest) and "model" in error.detail:
            error.way_out = f"name another model: {', '.join(ALIASES)}, or a full name"

    async def answered(
        self,
        ask: Ask,
        callbacks: Callbacks,
        cancel_token: CancelToken | None,
        on_retry: OnRetry | None,
    ) -> Response:
        from holdfast.providers.exchange import Exchange

        async def answer(seen: Seen | None) -> Response:
            question = Question(self.wire, ask, seen, key=key, is_kept=conversation is not None)
            tries = FixedAttempts(Attempt(question, self._hidden(key)))
            exchange = Exchange(self._program, tries, VENDOR, self._tries_max, self.explain)
            return await exchange.complete(self.wire, ask, callbacks, cancel_token, on_retry)

        conversation = ask.conversation if self._keeps else None
        fragments = ask.prepared.fragments
        async with nullcontext() if cancel_token is None else cancel_token.guard():
            key = await self._credentials.read(VENDOR)
        seen = None if conversation is None else self._sessions.take(conversation, fragments)
        try:
            response = await answer(seen)
        except InvalidRequest as error:
            if seen is None or not is_lost_session(error):
                raise
            response = await answer(None)
        session = response.extra.get("session_id")
        is_whole = response.extra.get("resumable") and SESSION_ID.fullmatch(session or "")
        if conversation is not None and session and is_whole:
            said = [*fragments, self.wire.fragment(response.message)]
            self._sessions.keep(conversation, session, said)
        return response

    async def list_models(self, prefix: str = "") -> tuple[str, ...]:
        # The program lists none; these names are always those of the latest.
        return tuple(name for name in ALIASES if name.startswith(prefix))

    async def verify(self) -> None:
        key = await self._credentials.read(VENDOR)
        env = environment(self._options, self.model, Settings(), key)
        reply = await self._program.start(["auth", "status"], env)
        try:
            printed = await reply.body()
        finally:
            await reply.close()
        if not printed.lstrip().startswith(b"{"):
            error = reply.broke_off(VENDOR)
        elif decode_object(printed).get("loggedIn"):
            return
        else:
            error = AuthError("the program is not logged in", VENDOR)
        self.explain(error)
        self._hidden(key).error(error)
        raise error

    async def close(self) -> None:
        self._sessions.clear()
        self._program.close()

    def __repr__(self) -> str:
        return f"<provider {self.name} through {self._program.name}>"

    def _hidden(self, key: Secret | None) -> Hidden:
        given = [value for name, value in self._options.env.items() if PRIVATE.search(name)]
        inherited = [Secret(os.environ[name]) for name in SECRETS if os.environ.get(name)]
        return Hidden([key, *given, *inherited])


def _checked_program(program: Any) -> str:
    name = os.fspath(program) if isinstance(program, str | os.PathLike) else None
    if isinstance(name, str) and name and "\0" not in name:
        return name
    raise InvalidInput("program", "is the name of a program, or where it is")


def _path(path: Any) -> str | None:
    if path is None:
        return None
    if isinstance(path, str | os.PathLike) and isinstance(found := os.fspath(path), str):
        return found
    raise InvalidInput("cwd", "is the name of a folder")
