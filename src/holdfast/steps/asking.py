"""One answer of a model: asked for, and continued while it is cut off because it is too long."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from holdfast.cancel import CancelToken
from holdfast.errors import Cancelled, ProtocolError, ProviderError
from holdfast.messages import Message, Stop, ToolCall
from holdfast.providers.base import Response
from holdfast.steps.answers import Answered, Exchange, checked_answer, is_answer, piece
from holdfast.steps.journal import Journal
from holdfast.steps.leftovers import partial
from holdfast.steps.limits import CONTINUED_TOKENS_MAX
from holdfast.steps.observers import Observers
from holdfast.steps.orders import Setup
from holdfast.steps.pieces import joined, without_calls
from holdfast.steps.targets import Target
from holdfast.text import mend
from holdfast.tools import Tool
from holdfast.usage import Usage
from holdfast.window.window import Window

GRACE_S = 0.5  # for a provider to end in its own way; a cancel is through in twice that
Complete = Callable[..., Awaitable[object]]


async def asked(
    target: Target, cancel: CancelToken, *question: object, **options: object
) -> Exchange:
    """Ask a provider, which may be anybody's: what is no answer is a ProtocolError.

    One that does not heed a cancel by itself is cancelled at the await it hangs on.
    """
    start = time.monotonic()
    complete: Complete = target.provider.complete
    try:
        async with cancel.guard(GRACE_S):
            found = await complete(*question, cancel_token=cancel, **options)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise ProtocolError("the provider has cancelled its own work", target.name) from error
    return _exchange(checked_answer(found, target.name), start)


def _exchange(response: Response, start: float) -> Exchange:
    """A call that has ended, and was begun at `start`."""
    return Exchange(response, int((time.monotonic() - start) * 1000))


def _cut(error: Cancelled, start: float) -> Exchange | None:
    """The call that somebody cut off, if its answer had begun: that is to be paid for as well."""
    response: object = error.partial
    if not is_answer(response):
        return None
    message = response.message.replace(stop=str(Stop.CANCELLED))
    return _exchange(response.replace(message=message), start)


class Asker:
    """Asks one model. What it says is journaled and told to the observers while it comes."""

    def __init__(
        self,
        setup: Setup,
        conversation: str,
        journal: Journal,
        observers: Observers,
        cancel: CancelToken,
        continuations_max: int,
    ) -> None:
        self._target = setup.target
        self._settings = setup.settings
        self._schema = None if setup.schema is None else setup.schema.declared
        self._conversation = conversation
        self._journal = journal
        self._observers = observers
        self._cancel = cancel
        self._continuations_max = continuations_max

    async def ask(self, window: Window, output: int | None) -> Answered:
        """The answer. What fails is raised, unless there is an answer that only could not go on."""
        exchanges: list[Exchange] = []
        message: Message | None = None
        while True:
            start = time.monotonic()
            try:
                shown = window.messages if message is None else (*window.messages, message)
                exchanges.append(await self._complete(shown, window.system, window.tools, output))
            except Cancelled as error:
                said = self._cut_off(message, error)
                return Answered(said, tuple(exchanges), error.reason, cut=_cut(error, start))
            except ProviderError:
                if message is None:
                    raise
                break
            more = exchanges[-1].response.message
            message = more if message is None else joined(message, more)
            if not self._goes_on(message, exchanges):
                break
        return Answered(message, tuple(exchanges))

    async def _complete(
        self,
        messages: Sequence[Message],
        system: str | None,
        tools: Sequence[Tool],
        output: int | None,
    ) -> Exchange:
        return await asked(
            self._target,
            self._cancel,
            messages,
            system,
            tools,
            response_schema=self._schema,
            settings=self._settings.replace(max_tokens=output),
            conversation=self._conversation,
            on_chunk=self._say,
            on_usage_update=self._use,
            on_thinking=self._think,
            on_tool_call=self._call,
            on_retry=self._observers.retry,
        )

    # What a provider calls, which may be anybody's

    def _say(self, text: object) -> None:
        words = self._words(text)
        self._journal.say(words)
        self._observers.say(words)

    def _think(self, text: object) -> None:
        thoughts = self._words(text)
        self._journal.think(thoughts)
        self._observers.think(thoughts)

    def _use(self, usage: object) -> None:
        self._observers.use(piece(usage, Usage, self._target.name))

    def _call(self, call: object) -> None:
        self._observers.call(piece(call, ToolCall, self._target.name))

    def _words(self, text: object) -> str:
        """Words that can be stored and told."""
        words = piece(text, str, self._target.name)
        return words if words.isascii() else mend(words)[0]

    def _goes_on(self, message: Message, exchanges: Sequence[Exchange]) -> bool:
        """Whether an answer is to be continued: never in the middle of a call."""
        if message.stop != Stop.MAX_TOKENS or message.calls or not message.text:
            return False
        written = sum(each.response.usage.output or 0 for each in exchanges)
        is_room = len(exchanges) <= self._continuations_max and written < CONTINUED_TOKENS_MAX
        return is_room and bool(exchanges[-1].response.text)

    def _cut_off(self, before: Message | None, error: Cancelled) -> Message | None:
        """What there is of an answer that somebody cut off, without its calls."""
        said = without_calls(error.partial.message) if is_answer(error.partial) else None
        if said is None and before is None:
            words, thoughts = self._journal.text, "".join(self._journal.thoughts)
            said = partial(words, thoughts) if words or thoughts else None
        whole = said if before is None else before if said is None else joined(before, said)
        if whole is None:
            return None
        return whole.replace(stop=str(Stop.CANCELLED), model=self._target.name)
