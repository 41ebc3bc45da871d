"""An answer in which calls are written as words, and arguments may have lost their types."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from holdfast.messages import Stop
from holdfast.providers.answer import Answer
from holdfast.providers.base import Response
from holdfast.providers.claude_cli.calls import Splitter, Written
from holdfast.providers.claude_cli.typed import typed
from holdfast.tools import Tool


class AnswerWithCalls(Answer):
    """The answer of a model that was told of `tools` in words. Without tools, words are words."""

    def __init__(self, model: str, tools: Sequence[Tool] = (), **options: Any) -> None:
        super().__init__(model, **options)
        self._schemas = {tool.name: tool.parameters for tool in tools}
        self._splitter = Splitter() if tools else None

    def add_text(self, words: str) -> None:
        if self._splitter is None:
            super().add_text(words)
        else:
            self._say(self._splitter.feed(words))

    def end_block(self) -> None:
        # A call may go on in the next block: the program goes on where a limit cut the model off.
        if self._splitter is not None and (words := self._splitter.flush()):
            super().add_text(words)
        super().end_block()

    def end_call(self, key: Hashable, *, arguments: str | None = None, **more: Any) -> None:
        call = self._calls.get(key)
        schema = None if call is None else self._schemas.get(call.name)
        if schema is not None and arguments is not None:
            arguments = typed(arguments, schema)
        super().end_call(key, arguments=arguments, **more)

    def response(self) -> Response:
        if self._splitter is not None:
            self._say(self._splitter.finish())
        if self.has_calls and self.stop == Stop.STOP:
            self.stopped(Stop.TOOL_USE)
        return super().response()

    def _say(self, said: Iterable[str | Written]) -> None:
        for each in said:
            if isinstance(each, str):
                super().add_text(each)
            else:
                key = object()
                self.begin_call(key, name=each.name)
                self.end_call(key, arguments=each.arguments)
