"""Accounts of tokens: what each turn had, and how full the context is."""

from holdfast.errors import InvalidInput
from holdfast.frozen import Value
from holdfast.usage import Usage


class TurnUsage(Value, frozen=True, kw_only=True):
    """What one turn had. The names are those that accounts of other programs have.

    prompt, output    of its last response: each prompt holds everything before it already
    total             both together
    thinking          of all its responses: what was thought is in no later prompt
    start_time ...    as the caller measured them
    function_calls    the tools that ran
    """

    prompt: int = 0
    output: int = 0
    total: int = 0
    thinking: int = 0
    start_time: str | None = None
    end_time: str | None = None
    duration_seconds: float | None = None
    function_calls: tuple[str, ...] = ()

    def and_then(self, usage: Usage) -> "TurnUsage":
        """With another response of the turn. One without tokens leaves what is known alone."""
        prompt, output = usage.input or 0, usage.output or 0
        turn = self.replace(thinking=self.thinking + (usage.reasoning or 0))
        if prompt + output == 0:
            return turn
        return turn.replace(prompt=prompt, output=output, total=prompt + output)

    def _settle(self) -> None:
        self._settle_counts("prompt", "output", "total", "thinking")
        self._settle_texts(optional=("start_time", "end_time"))
        self._settle_number(optional=("duration_seconds",))
        self._settle_tuple("function_calls", str)


class ContextUsage(Value, frozen=True, kw_only=True):
    """How full a model's context is, by what its last call reported, or by an estimate."""

    model: str
    context_limit: int
    prompt_tokens: int = 0
    output_tokens: int = 0
    turns: int = 0
    is_reported: bool = False

    @property
    def total_tokens(self) -> int:
        """Prompt and answer together: what the next prompt begins with."""
        return self.prompt_tokens + self.output_tokens

    @property
    def percent_used(self) -> float:
        """Of the context, from 0 to 100; more when it does not fit."""
        return 100 * self.total_tokens / self.context_limit

    @property
    def tokens_remaining(self) -> int:
        """What is free of the context; never less than none."""
        return max(0, self.context_limit - self.total_tokens)

    def _settle(self) -> None:
        self._settle_texts("model")
        self._settle_counts("context_limit", "prompt_tokens", "output_tokens", "turns")
        self._settle_flags("is_reported")
        if not self.context_limit:
            raise InvalidInput("context_limit", "is at least one token")
