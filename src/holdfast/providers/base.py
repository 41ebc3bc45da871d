"""What a provider promises.

A provider is a function: the whole conversation in, one response out. It holds an address,
credentials and a client, never messages, so one object serves any number of sessions at once, and
swapping models in mid-conversation is passing the same messages to another object.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from holdfast.cancel import CancelToken
from holdfast.errors import ProviderError
from holdfast.frozen import EMPTY, FrozenDict, Value
from holdfast.messages import Message, ToolCall
from holdfast.parts import Thinking
from holdfast.settings import Settings
from holdfast.tools import Tool
from holdfast.usage import Usage

if TYPE_CHECKING:
    from holdfast.providers.preflight import Preflight


class Response(Value, frozen=True, kw_only=True):
    """What a model answered.

    message      the assistant's message, to be appended as it is
    usage        the tokens of this call
    model        which model answered, as the service says
    id           the service's id of this answer
    request_id   the service's id of the request, for its support
    extra        other facts of the vendor, as JSON
    """

    message: Message
    usage: Usage = Usage()
    model: str | None = None
    id: str | None = None
    request_id: str | None = None
    extra: FrozenDict = EMPTY

    @property
    def text(self) -> str | None:
        """The words of the answer; None when there are none."""
        return self.message.text

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tools it asks for, in order."""
        return self.message.calls

    @property
    def thinking(self) -> str | None:
        """What the model thought before it answered, if it shows it."""
        if not isinstance(self.message.content, tuple):
            return None
        return "".join(part.text for part in self.message.content if type(part) is Thinking) or None

    @property
    def stop(self) -> str | None:
        """Why the model stopped (see `holdfast.messages.Stop`)."""
        return self.message.stop

    def __str__(self) -> str:
        return self.text or ""


class Callbacks(NamedTuple):
    """Who hears of an answer while it comes."""

    on_chunk: Callable[[str], object] | None = None
    on_usage_update: Callable[[Usage], object] | None = None
    on_thinking: Callable[[str], object] | None = None
    on_tool_call: Callable[[ToolCall], object] | None = None

    @property
    def want_stream(self) -> bool:
        """Whether anybody wants to hear of the answer before it is complete."""
        return any((self.on_chunk, self.on_thinking, self.on_tool_call))


class Provider(ABC):
    """A model of one vendor. Third parties subclass this; `complete` is all they have to write.

    One that makes its requests by a wire of ours has it as `wire`, and `preflight` asks that.
    """

    vendor: str
    model: str

    @property
    def name(self) -> str:
        """As in `open_provider(name)`, and in `message.model` of what it answers."""
        return f"{self.vendor}:{self.model}"

    @abstractmethod
    async def complete(
        self,
        messages: Sequence[Message],
        system_instruction: str | None = None,
        tools: Sequence[Tool] | None = None,
        *,
        response_schema: Mapping[str, Any] | None = None,
        settings: Settings | None = None,
        conversation: str | None = None,
        cancel_token: CancelToken | None = None,
        on_chunk: Callable[[str], object] | None = None,
        on_usage_update: Callable[[Usage], object] | None = None,
        on_thinking: Callable[[str], object] | None = None,
        on_tool_call: Callable[[ToolCall], object] | None = None,
        on_retry: Callable[[ProviderError, int, float], object] | None = None,
    ) -> Response:
        """The model's answer to the whole conversation.

        Any messages can be passed: what no vendor would accept is repaired for the request, and
        the messages themselves stay as they are. `response_schema` is a JSON Schema that the text
        of the answer then follows. Of `settings`, those about the answer are used; what stands in
        `settings.extra` under the vendor's name goes into the request as it is. `conversation` is
        a hint that tells conversations apart, for routing to a warm cache.

        With any of `on_chunk`, `on_thinking` and `on_tool_call` the answer is streamed, and they
        are called as it comes: pieces of thinking, pieces of text, and each call when it is
        complete, before anything that follows it. Of one block thinking comes before text, text
        before calls. `on_usage_update` hears of the tokens, as far as they are known, whenever the
        service says more. What a callback raises ends the call and reaches the caller.

        A failure is a ProviderError named for what can be done about it. What passes by itself
        (RateLimited, Overloaded, ConnectionFailed) was then tried again for a while, which
        `on_retry` heard of (the error, failed tries, seconds until the next), but never after a
        callback was given some output. If the answer broke off, `error.partial` is the Response
        as far as it came, without calls that were not complete; likewise in the Cancelled that
        is raised, within a second, when `cancel_token` is cancelled. Nothing else changes.
        """

    def preflight(
        self,
        messages: Sequence[Message],
        system_instruction: str | None = None,
        tools: Sequence[Tool] | None = None,
    ) -> "Preflight":
        """What this model would be given of a conversation, told beforehand; nothing is sent.

        What has to be dropped, converted, renamed or mended for it, how many tokens that is, what
        its cache would have to be given anew, and whether it fits.
        """
        from holdfast.providers.preflight import preflight

        return preflight(self, messages, system_instruction, tools)

    async def count_tokens(
        self,
        messages: Sequence[Message],
        system_instruction: str | None = None,
        tools: Sequence[Tool] | None = None,
    ) -> int:
        """How many tokens the prompt has: the service's count if it offers one, else ours."""
        raise NotImplementedError

    @property
    def context_limit(self) -> int:
        """How many tokens the model's window holds."""
        raise NotImplementedError

    @property
    def output_limit(self) -> int:
        """How many tokens the model writes at most in one answer."""
        raise NotImplementedError

    async def list_models(self, prefix: str = "") -> tuple[str, ...]:
        """The models that these credentials may use, whose name begins with `prefix`."""
        raise NotImplementedError

    async def verify(self) -> None:
        """Return if the service is there and accepts the credentials; else a ProviderError."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close the connections that this object opened. Closing twice is fine."""
        return

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
