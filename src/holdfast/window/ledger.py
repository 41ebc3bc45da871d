"""The ledger: what is known about tokens, of the messages, of each turn, and of the last call.

    ledger = Ledger()
    count = ledger.counter("o200k", message_counter(counter("o200k")))
    view = View(count)                                                 # each message counted once
    ...
    ledger.estimate("gpt-5", counted)                                  # before a call
    ledger.report("gpt-5", counted, usage, answer=reply, count=count)  # after it

What a vendor reports is the truth about what was sent. Only what came or went since is estimated,
at the ratio of reported to counted tokens that the answers of the model have taught (`known.py`,
`learning.py`). `counted` is what a request has by the counter: `view.total` and what is no message,
the system prompt and the tools. How much of it is declarations of tools can be told (`tools=`),
which makes the ratio of texts better.

A ledger belongs to one session. It holds no messages, only their counts; `values` is what has to
survive a restart.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from holdfast.entries import Call, Entry
from holdfast.errors import AuthError, ConnectionFailed, InvalidInput, ProviderError
from holdfast.messages import Message, Stop
from holdfast.usage import Usage
from holdfast.window.accounts import ContextUsage, TurnUsage
from holdfast.window.known import Counted, Estimate, Known
from holdfast.window.learning import ERROR_UNKNOWN
from holdfast.window.view import Count

VERSION = 1


class Ledger:
    """The tokens of one session.

    `by` names what counts (a vocabulary, its version): what was learned with another counter does
    not hold for this one, and is not taken from `values`.
    """

    def __init__(self, by: str = "") -> None:
        self._by = by
        self._counts: dict[str, dict[str | Message, int]] = {}
        self._known: dict[str, Known] = {}
        self._reported: dict[str, dict[str, int]] = {}  # by model and message
        self._turn = TurnUsage()
        self._turns: list[TurnUsage] = []
        self._last: tuple[str, Usage] | None = None
        self._spent = Usage()

    # Messages

    def counter(self, family: str, count: Count) -> Count:
        """`count`, asked once for each message: what a message says never changes.

        `family` names the way of counting; with a rule for pictures of its own it is another. What
        nobody said (`synthetic`) is known by all it says, because it is made anew to be shown.
        """
        counts = self._counts.setdefault(family, {})

        def counted(message: Message) -> int:
            key = message.id if message.synthetic is None else message
            found = counts.get(key)
            if found is None:
                found = counts[key] = count(message)
            return found

        return counted

    def message(self, model: str, id: str) -> int | None:
        """The tokens that this model reported for one message; None if it did not."""
        return self._reported.get(model, {}).get(id)

    # Reports

    def report(
        self,
        model: str,
        counted: int,
        usage: Usage,
        *,
        tools: int = 0,
        answer: Message | None = None,
        count: Count | None = None,
        newest: str | None = None,
        changed: int | None = None,
        stated: float = ERROR_UNKNOWN,
        context: int | None = None,
    ) -> None:
        """A request that was counted as `counted` was answered.

        answer   the message that came of it, which `count` counts as it counts the others
        newest   the id of the last message sent, where only that was new since the last answer
        changed  what came and went since the last report, where that is more than the difference
        stated   the error that the counter states
        context  the most that the model can read at once

        A report without tokens of the prompt changes no estimate. Nor does one of far more than
        the model can read: a vendor that ran tools of its own adds up the prompts of its rounds.
        """
        request = Counted(counted, tools).check()
        if answer is not None and count is None:
            raise InvalidInput("count", "is needed to count the answer")
        self.took(model, usage)
        if not usage.input or _is_sum(usage.input, request, context):
            return
        known = self._known.setdefault(model, Known(stated))
        reported = self._reported.setdefault(model, {})
        added = known.take(request, usage.input, changed)
        if newest is not None and added is not None and added > 0:
            reported[newest] = round(added)
        if answer is not None and count is not None:
            known.answered(answer, usage, count)
            if usage.output:
                reported[answer.id] = usage.output

    def calibrate(self, model: str, counted: int, tokens: int, *, tools: int = 0) -> None:
        """A request that is counted as `counted` has `tokens`, though nobody answered it.

        That is known from a probe (`baseline_of`: the system prompt and the tools, before the first
        call), or from the refusal of a request that was too long.
        """
        request = Counted(counted, tools).check()
        self._known.setdefault(model, Known()).take(request, Counted(tokens).check().all, None)

    def replay(self, entries: Iterable[Entry], count: Count) -> None:
        """What the calls in a log have reported, in order.

        A call tells by its `window` what it was counted as: `counted`, `tools`, and `by` whom; and
        what `changed`, if that was more than the difference. One that does not, was counted by
        another, or was cut off teaches nothing; what it used is added up. An answer that took
        several calls is none of which one of them tells the tokens.
        """
        found = list(entries)
        said = {entry.id: entry for entry in found if type(entry) is Message}
        calls = [entry for entry in found if type(entry) is Call]
        took = Counter(call.about for call in calls)
        for call in calls:
            answer = said.get(call.about or "") if took[call.about] == 1 else None
            self._replay(call, answer, count)

    def _replay(self, call: Call, answer: Message | None, count: Count) -> None:
        counted: Any = call.window.get("counted")
        tools: Any = call.window.get("tools", 0)
        try:
            Counted(counted, tools).check()
        except InvalidInput:
            counted = None
        is_other = call.window.get("by", "") != self._by or call.stop == Stop.CANCELLED
        if counted is None or is_other:
            self.took(call.model, call.usage)
        else:
            self.report(
                call.model,
                counted,
                call.usage,
                tools=tools,
                answer=answer,
                count=count,
                changed=_whole(call.window.get("changed")),
                context=_whole(call.window.get("context")),
            )

    # Estimates

    def estimate(
        self,
        model: str,
        counted: int,
        *,
        tools: int = 0,
        changed: int | None = None,
        stated: float = ERROR_UNKNOWN,
    ) -> Estimate:
        """What a request that is counted as `counted` has, in tokens of the model.

        It is the last report of that model, with its answer, and the ratio times what came or went
        since; or the ratio times everything, where that is less to be unsure of. `changed` is how
        much came and went, if that is more than the difference. Without any report, all is
        estimated, and `stated` is how far off its counter says that it may be.
        """
        known = self._known.get(model) or Known(stated)
        return known.estimate(Counted(counted, tools).check(), changed, stated)

    def scale(self, model: str) -> float:
        """Tokens of the model for each that the view counts."""
        return self._known[model].learned.text if model in self._known else 1.0

    def error(self, model: str, stated: float = ERROR_UNKNOWN) -> float:
        """The share of what is not reported that 95 of 100 estimates were off by, at most.

        Until enough was seen it is what the counter states, or the worst that was seen.
        """
        return self._known[model].learned.error(stated) if model in self._known else stated

    # Accounts

    def took(self, model: str, usage: Usage) -> None:
        """A call has taken so much, from which nothing is learned."""
        self._last = (model, usage)
        self._spent += usage
        self._turn = self._turn.and_then(usage)

    @property
    def last(self) -> Usage | None:
        """What the last call had: `last.input` in its prompt, `last.output` in its answer."""
        return None if self._last is None else self._last[1]

    @property
    def spent(self) -> Usage:
        """What all calls of the session had, added up."""
        return self._spent

    @property
    def turn(self) -> TurnUsage:
        """The turn that runs, so far."""
        return self._turn

    @property
    def turns(self) -> tuple[TurnUsage, ...]:
        """The turns that are over and had tokens, in order."""
        return tuple(self._turns)

    def end_turn(
        self,
        start_time: str | None = None,
        end_time: str | None = None,
        duration_seconds: float | None = None,
        function_calls: Iterable[str] = (),
    ) -> TurnUsage | None:
        """The turn is over. It is kept if anything was reported for it, and given back."""
        turn = self._turn.replace(
            start_time=start_time,
            end_time=end_time,
            duration_seconds=duration_seconds,
            function_calls=tuple(function_calls),
        )
        self._turn = TurnUsage()
        if not turn.total:
            return None
        self._turns.append(turn)
        return turn

    def context(self, model: str, limit: int, estimate: Estimate | None = None) -> ContextUsage:
        """How full the context of a model is: as its last call reported, or as estimated.

        After a change of the model there is no report that holds; without an estimate it is then
        said to be empty.
        """
        turns = len(self._turns)
        if self._last is not None and self._last[0] == model and self._last[1].input:
            usage = self._last[1]
            return ContextUsage(
                model=model,
                context_limit=limit,
                prompt_tokens=usage.input or 0,
                output_tokens=usage.output or 0,
                turns=turns,
                is_reported=True,
            )
        used = 0 if estimate is None else estimate.tokens
        return ContextUsage(model=model, context_limit=limit, prompt_tokens=used, turns=turns)

    def revert(self, turns: int) -> None:
        """Only the first `turns` turns are left, and the context is not that of the last call.

        What was reported still helps: what is gone is taken off as if it were folded.
        """
        if type(turns) is not int or turns < 0:
            raise InvalidInput("turns", f"is a whole number from 0 up, not {turns!r}")
        del self._turns[turns:]
        self._turn = TurnUsage()
        self._last = None

    def skip(self) -> None:
        """Calls stand here that are not replayed: the last report says nothing of the next one."""
        for known in self._known.values():
            known.forget()

    def clear(self) -> None:
        """The conversation is gone: its counts, turns and reports.

        What was learned of the models is kept, and so is what was spent.
        """
        for counts in self._counts.values():
            counts.clear()  # in place: a counter that was given out goes on counting
        self.skip()
        self._reported.clear()
        self.revert(0)

    # JSON

    @property
    def values(self) -> dict[str, Any]:
        """What has to survive a restart, as JSON. Counts are made again."""
        last = None if self._last is None else [self._last[0], _counts_of(self._last[1])]
        return {
            "v": VERSION,
            "by": self._by,
            "models": {model: known.values for model, known in self._known.items()},
            "spent": _counts_of(self._spent),
            "last": last,
            "turns": [_turn_values(turn) for turn in self._turns],
        }

    @classmethod
    def of(cls, values: Mapping[str, Any], by: str = "") -> "Ledger":
        """The ledger in `values`. What was learned with another counter than `by` is left out."""
        self = cls(by)
        try:
            if values["v"] != VERSION:
                raise InvalidInput("ledger", f"has version {values['v']!r}, not {VERSION}")
            self._spent = Usage(*values["spent"])
            if values["last"] is not None:
                self._last = (str(values["last"][0]), Usage(*values["last"][1]))
            self._turns = [TurnUsage(**turn) for turn in values["turns"]]
            if values["by"] == by:
                self._known = {model: Known.of(each) for model, each in values["models"].items()}
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise InvalidInput("ledger", f"is not what a ledger wrote: {error!r}") from error
        return self


def baseline_of(probe: Usage | ProviderError) -> int | None:
    """What a request has before anything is said, from a probe that says one character.

    None is "not known": the probe was refused, or nothing was reported. Whoever is not let in or
    cannot be reached will not be by the next request either: such an error is raised.
    """
    if isinstance(probe, AuthError | ConnectionFailed):
        raise probe
    if isinstance(probe, ProviderError) or not probe.input:
        return None
    return probe.input - 1


def _counts_of(usage: Usage) -> list[int | None]:
    return [getattr(usage, name) for name in usage.__struct_fields__]


def _turn_values(turn: TurnUsage) -> dict[str, Any]:
    fields = {name: getattr(turn, name) for name in turn.__struct_fields__}
    return {**fields, "function_calls": list(turn.function_calls)}


def _whole(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _is_sum(reported: int, request: Counted, context: int | None) -> bool:
    """Whether this is the sum of several prompts. No counter is wrong by half of it."""
    return context is not None and reported > max(context, 2 * request.all)
