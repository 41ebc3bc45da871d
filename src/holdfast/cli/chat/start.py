"""How `holdfast chat` begins: what is asked, which conversation is meant, and who answers."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from holdfast.cli import config
from holdfast.cli.app import App
from holdfast.cli.chat import models
from holdfast.cli.chat.interactive import Interactive
from holdfast.cli.chat.once import ask_once
from holdfast.cli.chat.prompt import prompt_for
from holdfast.cli.chat.question import is_closed, question
from holdfast.cli.chat.talk import Talk
from holdfast.cli.chat.toolbox import tools_in
from holdfast.cli.failures import USAGE, Failure
from holdfast.cli.references import find
from holdfast.cli.screen import one_line

if TYPE_CHECKING:
    from holdfast.manager import SessionManager
    from holdfast.session import Session
    from holdfast.tools import Tool


class Options(NamedTuple):
    """What stood on the command line."""

    words: tuple[str, ...] = ()
    is_latest: bool = False
    reference: str | None = None
    model: str | None = None
    system: str | None = None
    toolbox: Path | None = None
    no_save: bool = False
    is_json: bool = False
    is_quiet: bool = False

    def check(self) -> None:
        """Failure for what does not go together."""
        if self.is_latest and self.reference:
            raise Failure("-c means the latest conversation, -s another: leave one out", USAGE)
        if self.no_save and (self.is_latest or self.reference):
            raise Failure("--no-save is for a new conversation: leave out -c and -s", USAGE)


async def start(app: App, options: Options) -> int:
    """Talk; the exit status."""
    options.check()
    text = question(options.words, app.screen.note)
    if text is None:
        _check_terminal(app, is_json=options.is_json)
    tools = () if options.toolbox is None else tools_in(options.toolbox)
    if options.no_save:
        app = app.forgetful()
    with _logs_shown(app):
        return await _talk(app, options, text, tools)


async def _talk(app: App, options: Options, text: str | None, tools: "tuple[Tool, ...]") -> int:
    async with app.sessions(create=True, tools=tools) as sessions:
        session = await _found(sessions, "@" if options.is_latest else options.reference)
        kept = session.settings.model if session is not None else None
        choice = await models.choose(options.model, kept)
        talk = Talk(
            sessions,
            await models.opened(choice.name, app.screen),
            app.screen,
            session=session,
            tools=tools,
            key=options.reference,
            system=options.system,
            begins_with=config.setting("system")[0],
            is_kept=app.store_url != "memory:",
            is_shown=not options.is_json,
        )
        try:
            if text is None:
                await _converse(app, talk, choice, options)
                return 0
            return await _answer(app, talk, choice, options, text)
        finally:
            await talk.provider.close()


async def _converse(app: App, talk: Talk, choice: models.Choice, options: Options) -> None:
    prompt = prompt_for(app.screen, is_kept=talk.is_kept)
    conversation = Interactive(talk, prompt, go_on=app.go_on, is_quiet=options.is_quiet)
    async with models.warming_up(talk.provider):
        await conversation.run(choice.told)


async def _answer(app: App, talk: Talk, choice: models.Choice, options: Options, text: str) -> int:
    if talk.session is None and talk.key and not options.is_quiet:
        app.screen.note(f"there was no {one_line(talk.key, 80)} yet: it is begun")
    if talk.session is not None and options.reference and not options.is_quiet:
        key = talk.session.key
        if key != options.reference:  # by its beginning: who meant another one has to see it
            app.screen.note(f"{one_line(options.reference, 80)} means {one_line(key, 80)} here")
    if choice.is_found and not options.is_quiet:
        app.screen.note(choice.told)
    return await ask_once(
        talk,
        text,
        go_on=app.go_on,
        is_json=options.is_json,
        can_ask=_is_terminal(app),
        is_quiet=options.is_quiet,
    )


async def _found(sessions: "SessionManager", reference: str | None) -> "Session | None":
    """The conversation that is meant; None for one that is begun. Failure if it is nowhere.

    With a colon it is a whole key: what telegram:1 says is not for telegram:12.
    """
    from holdfast.errors import SessionNotFound
    from holdfast.keys import check_key

    if not reference:
        return None
    if ":" not in reference:
        return await find(sessions, reference)
    check_key(reference)
    try:
        return await sessions.get(reference)
    except SessionNotFound:
        return None


def _check_terminal(app: App, *, is_json: bool) -> None:
    """A conversation is held by somebody who sees it."""
    if is_json:
        raise Failure("--json is for one answer: write the question behind it", USAGE)
    if not _is_terminal(app):
        raise Failure(
            "a conversation needs a terminal to be typed and shown in: write the question behind "
            "chat, or pipe it in",
            USAGE,
        )


def _is_terminal(app: App) -> bool:
    return not is_closed() and sys.stdin.isatty() and app.screen.is_terminal


@contextmanager
def _logs_shown(app: App) -> Iterator[None]:
    """What the library warns of goes where everything else goes that is no answer."""
    import logging

    class ToScreen(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            app.screen.note(one_line(record.getMessage(), 1_000))

    logger, handler = logging.getLogger("holdfast"), ToScreen()
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
