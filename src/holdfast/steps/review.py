"""Whether an answer will do, and what the model is told where it does not."""

from typing import Any

from holdfast.errors import ProtocolError
from holdfast.events import Outcome
from holdfast.messages import Message, Stop
from holdfast.notes import REPAIR, nudge
from holdfast.results import outcome_of
from holdfast.steps.schemas import Schema
from holdfast.steps.standing import Standing, is_unfinished

NUDGES_MAX = 3
_EMPTY_STOPS = (None, str(Stop.TOOL_USE), str(Stop.UNKNOWN))


class Review:
    """The answers of one turn, looked at as they come.

    data     the value of an answer that follows its schema
    problem  what is wrong with the last one, if it does not
    """

    def __init__(self, schema: Schema | None) -> None:
        self.data: Any = None
        self.problem = ""
        self._schema = schema
        self._nudges = 0
        self._is_repaired = False

    def read(self, reply: Message | None) -> None:
        """An answer, if it has to follow a schema."""
        if self._schema is not None and reply is not None:
            self.data, self.problem = self._schema.check(reply.text)

    def again(self, standing: Standing) -> Outcome:
        """The outcome of a turn that was run before, or was left without an answer."""
        reply = standing.reply
        if reply is None or reply.calls or is_unfinished(reply):
            return Outcome.CANCELLED
        self.read(reply)
        return outcome_of(reply)

    def check(self, model: str) -> None:
        """ProtocolError if the model has not done as it was told, twice."""
        if self.problem:
            raise ProtocolError(f"the answer does not follow the schema: {self.problem}", model)

    def urged(self, reply: Message) -> list[Message]:
        """What the model is told when its answer will not do, a few times at most."""
        if reply.calls:
            return []
        if not reply.text and reply.stop in _EMPTY_STOPS and self._nudges < NUDGES_MAX:
            self._nudges += 1
            return [nudge()]
        if reply.stop == Stop.SAFETY:
            return []
        self.read(reply)
        if not self.problem or self._is_repaired:
            return []
        self._is_repaired = True
        return [nudge(REPAIR.format(why=self.problem))]
