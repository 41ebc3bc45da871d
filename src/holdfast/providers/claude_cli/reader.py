"""Reads what the program prints: a line of JSON for each thing that happens.

| line            | what is read of it                                                           |
|-----------------|------------------------------------------------------------------------------|
| stream_event    | an event of the Messages API: words, thinking, calls, while they come        |
| assistant       | a whole message; only if its events did not come before                      |
| user            | results of the tools that the program ran                                    |
| result          | the end: how it went, tokens and money of all together, the session          |
| rate_limit_event| until when a limit that was met holds                                        |
| system          | whether the program has folded its session                                   |

What a subagent says (`parent_tool_use_id`) is a part of the result of its tool. Lines of another
kind, and what is no JSON, are passed over. Without a `result` there is no end.

Where the program runs the tools, a call of the model and its result are blocks of the vendor's.
Where it does not, a call is ours; the program has then told its model that there is no such tool,
and that session cannot be gone on with.
"""

from typing import Any

from holdfast.errors import ProtocolError
from holdfast.messages import Stop
from holdfast.providers.answer import Answer
from holdfast.providers.anthropic_reader import AnthropicReader
from holdfast.providers.claude_cli import VENDOR
from holdfast.providers.claude_cli.failures import of_result
from holdfast.providers.fields import Object, decode_object, object_of, objects_of, text_of
from holdfast.providers.wire import Reader

_SYNTHETIC = "<synthetic>"  # words of the program's own, which its `result` repeats
_TOLD = ("total_cost_usd", "num_turns", "duration_ms", "duration_api_ms", "permission_denials")
_LIMITS = "error_max_"  # the answer is good as far as it goes
# The model stopped so, and the program calls that an error.
_GOOD_STOPS = (Stop.MAX_TOKENS, Stop.SAFETY)


class ClaudeCliReader(Reader):
    """Folds one run of the program into an Answer.

    `answer.extra` has the `session_id`, and `resumable`: whether the session of the program has
    seen what was asked, and this answer, and nothing else.
    """

    def __init__(self, answer: Answer, *, runs_tools: bool = False) -> None:
        super().__init__(answer)
        self._runs_tools = runs_tools
        self._message: AnthropicReader | None = None  # whose events are coming
        self._streamed: set[str | None] = set()  # ids of messages whose events came
        self._is_resumable = True
        self._has_said = False
        self._request_id: str | None = None
        self._resets_at_s: Any = None

    def feed(self, name: str, data: bytes) -> None:  # noqa: ARG002 - lines have none
        if self.is_complete:
            return
        try:
            line = decode_object(data)
        except ProtocolError:
            return  # something else has printed it
        kind = line.get("type")
        if line.get("parent_tool_use_id") is not None:
            return
        if kind == "stream_event":
            self._happened(object_of(line, "event"))
        elif kind == "assistant":
            self._said(line)
        elif kind == "user":
            self._gave_back(line)
        elif kind == "result":
            self._ended(line)
        elif kind == "rate_limit_event":
            info = object_of(line, "rate_limit_info")
            if info.get("status") == "rejected":
                self._resets_at_s = info.get("resetsAt")
        elif kind == "system" and line.get("subtype") == "compact_boundary":
            self._is_resumable = False

    def read(self, body: Object) -> None:  # noqa: ARG002 - there is none
        raise ProtocolError("the program prints lines, not one document")

    # Messages

    def _happened(self, event: Object) -> None:
        kind = event.get("type")
        if kind == "error":
            return  # the program tries again, or ends with it
        if kind == "message_start" or self._message is None:
            self._message = self._reader()
            self._streamed.add(text_of(object_of(event, "message"), "id"))
        if kind == "content_block_start":
            self._note(object_of(event, "content_block"))
        self._message.take(event)

    def _said(self, line: Object) -> None:
        message = object_of(line, "message") if "message" in line else line
        self._request_id = text_of(line, "request_id") or self._request_id
        if message.get("model") == _SYNTHETIC or text_of(message, "id") in self._streamed:
            return
        if isinstance(message.get("content"), str):
            message = message | {"content": [{"type": "text", "text": message["content"]}]}
        for block in objects_of(message, "content"):
            self._note(block)
        if message.get("content") is not None:
            self._reader().read(message)

    def _gave_back(self, line: Object) -> None:
        content = object_of(line, "message").get("content", line.get("content"))
        for block in content if self._runs_tools and isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("type") == "tool_result":
                self.answer.add_opaque(VENDOR, block)

    def _reader(self) -> AnthropicReader:
        return AnthropicReader(self.answer, VENDOR, runs_tools=self._runs_tools)

    def _note(self, block: Object) -> None:
        self._has_said = True
        if block.get("type") != "tool_use":
            return
        if self._runs_tools:
            self.answer.has_output = True  # what a tool did is not done a second time
        else:
            self._is_resumable = False

    # The end

    def _ended(self, line: Object) -> None:
        reader = self._reader()
        reader.used(object_of(line, "usage"))
        session = line.get("session_id")
        self.answer.about(
            session_id=session if isinstance(session, str) else None,
            **{name: line[name] for name in _TOLD if line.get(name)},
        )
        subtype = text_of(line, "subtype") or ""
        if subtype.startswith(_LIMITS):
            self._met_a_limit(subtype)
        elif line.get("is_error") or subtype != "success":
            if self.answer.stop not in _GOOD_STOPS:
                raise of_result(line, self._request_id, self._resets_at_s)
        else:
            reader.stopped(line)
            if self.answer.stop is None:
                self.answer.stopped(Stop.STOP)
            self.answer.about(resumable=self._is_resumable)
            if not self._has_said:
                self.answer.add_text(text_of(line, "result") or "")
        self.is_complete = True

    def _met_a_limit(self, subtype: str) -> None:
        """Where we run the tools, the program stops at each call: that is how it ends then."""
        if self._runs_tools or not self.answer.has_calls:
            self.answer.stopped(subtype.removeprefix("error_"))
