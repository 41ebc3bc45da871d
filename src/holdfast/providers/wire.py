"""A wire: what there is to know about one vendor's API, without any I/O.

Two pure halves. `to_wire` makes the body of a request from an `Ask`; a `Reader` folds the events
of the answer into an `Answer`. Between them is a pipe that knows nothing about vendors
(`pipe.py`), and in front of them stands `prepare`, which fits messages to the wire's `Rules`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

from holdfast.errors import InvalidInput
from holdfast.frozen import FrozenDict, freeze
from holdfast.messages import Message
from holdfast.providers.answer import Answer
from holdfast.providers.base import Callbacks
from holdfast.providers.fields import Object
from holdfast.providers.prepare import Prepared, Rules, prepare
from holdfast.settings import Settings
from holdfast.tools import Tool

Framing = Literal["events", "lines", "array"]
_ADDED = ("tools", "include")  # the lists to which a caller's own are added


class Ask(NamedTuple):
    """One question to a model: the conversation as it can be sent, and how to answer.

    schema      a JSON Schema for the text of the answer, or None
    stream      whether the answer is to come in pieces
    """

    prepared: Prepared
    schema: FrozenDict | None = None
    settings: Settings = Settings()
    conversation: str | None = None
    stream: bool = False


class Reader(ABC):
    """Folds one answer, streamed or whole, into an `Answer`.

    An error that the service reports inside an answer is raised as `failures.failure` says. A
    document that is none is a ProtocolError; unknown events and fields are passed over.
    """

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.is_complete = False  # the service said that the answer ends here

    @abstractmethod
    def feed(self, name: str, data: bytes) -> None:
        """One event of a stream: its name ("message" where the service gave none) and its data."""

    @abstractmethod
    def read(self, body: Object) -> None:
        """The whole answer, in one document."""

    def finish(self, left_over: bytes) -> None:  # noqa: ARG002 - most have no use for it
        """The stream ended; `left_over` is what was not a whole event. May complete the answer."""
        return


class Wire(ABC):
    """One API of a vendor, for one model. Holds options, never messages; everything is pure.

    vendor    whose opaque blocks it takes back, and the first half of the provider's name
    api       by which rules a request is judged (`holdfast.testing.validators`)
    framing   how a stream is cut into events
    """

    vendor: ClassVar[str]
    api: ClassVar[str]
    framing: Framing = "events"
    rules: Rules

    def __init__(self, model: str, *, vendor: str | None = None) -> None:
        self.model = model
        self.name = f"{vendor or self.vendor}:{model}"

    @abstractmethod
    def fragment(self, message: Message) -> Any:
        """What one prepared message becomes; depends on nothing else, so that it is made once."""

    @abstractmethod
    def to_wire(self, ask: Ask) -> Object:
        """The body of the request. Parts of it may be `msgspec.Raw`, JSON that is ready to send."""

    @abstractmethod
    def path(self, ask: Ask) -> str:
        """Where the request goes, behind the base URL, with its query."""

    def headers(self, ask: Ask) -> dict[str, str]:  # noqa: ARG002 - others look at it
        """Headers that this request needs, credentials apart."""
        return {}

    @abstractmethod
    def reader(self, answer: Answer) -> Reader:
        """A reader for one answer to a request of this wire."""

    # What is the same for all

    def ask(
        self,
        messages: Sequence[Message],
        system: str | None = None,
        tools: Sequence[Tool] | None = None,
        *,
        schema: Mapping[str, Any] | None = None,
        settings: Settings | None = None,
        conversation: str | None = None,
        stream: bool = False,
    ) -> Ask:
        """The question as it can be put to this wire's model."""
        return Ask(
            prepare(self, messages, system, tuple(tools or ())),
            None if schema is None else freeze(schema, "response_schema"),
            settings or Settings(),
            conversation,
            stream,
        )

    def answer(self, ask: Ask, callbacks: Callbacks | None = None) -> Answer:
        """An empty answer to this question."""
        prepared = ask.prepared
        return Answer(self.name, prefix=prepared.prefix, names=prepared.names, callbacks=callbacks)


def wanted(ask: Ask, vendor: str) -> Mapping[str, Any]:
    """The fields that the caller wants in the body: `settings.extra` under the vendor's name."""
    fields = ask.settings.extra.get(vendor)
    if fields is None or isinstance(fields, Mapping):
        return fields or {}
    raise InvalidInput(f"settings.extra[{vendor!r}]", "is a dict: fields of the request")


def merge(body: Object, fields: Mapping[str, Any]) -> None:
    """Put a caller's fields into a body: tools behind ours, objects merged, others set."""
    for name, value in fields.items():
        ours = body.get(name)
        if name in _ADDED and isinstance(value, list | tuple):
            body[name] = [*(ours or ()), *(each for each in value if each not in (ours or ()))]
        elif isinstance(ours, dict) and isinstance(value, Mapping):
            body[name] = {**ours, **value}
        else:
            body[name] = value
