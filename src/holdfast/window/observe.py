"""Observe: what was said becomes observations, and these become reflections.

    reflection | observations, the older before the newer | what is not observed yet | current turn

An *observation* is a short list of dated notes in the place of messages. When there are many, a
*reflection* takes their place: it is made of what they say, not of the messages again. When there
are many of those, they are merged into one. Both are summaries in folds like any other, so they
last, are erased, and belong to a branch as folds do, and nothing is stored twice. A fold tells by
`by` ("observe") and `why` ("observation", "reflection") what it is.

| when                                                                 | what is done              |
|----------------------------------------------------------------------|---------------------------|
| `message_tokens` are reached by what is not observed before the      | it is observed            |
| current turn                                                         |                           |
| `observation_tokens` are reached by observations, or there are more  | they become a reflection  |
| than `observations_max`                                              |                           |
| there are `merge_at` reflections, or more than `reflections_max`     | they become one           |
| both have more than `memory_tokens`, or than half of the room        | each of the last two      |
| more than `budget_tokens` stand before the current turn, the window  | all that is not observed  |
| has to be made smaller, or somebody asks for it                      | is, however little it is  |

All but the last is looked at behind a turn, when the answer is in the log already: then who waits
for the first word of an answer waits for no observation. The last is looked at before a call too.

What `keep.py` locks stays as it is, and between it each stretch is observed by itself: a fold is
made of nothing but what it stands for, so that whatever is erased is found in it. One observation
or reflection alone is not summed up again: it would only lose. When no summary can be written all
stays as it is, unless the window is full, and it is tried again behind the next turn. Nothing goes
without a word here: what does not fit the model's window even so is left to `fit.py`.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC
from typing import NamedTuple

from holdfast.frozen import Value
from holdfast.messages import Message
from holdfast.notes import OBSERVATION_TASK, REFLECTION_TASK
from holdfast.window.keep import is_note, is_summary, kept
from holdfast.window.outcome import measured
from holdfast.window.pairs import Pairs
from holdfast.window.plan import Plan, Step, nothing, planned, runs
from holdfast.window.situation import Situation
from holdfast.window.summarize import summed_up
from holdfast.window.triggers import due
from holdfast.window.view import Item, View

NAME = "observe"
MESSAGE, OBSERVATION, REFLECTION = "message", "observation", "reflection"
_MEMORY_SHARE = 0.5  # of the room there is: so much observations and reflections may take
_BEHIND = "behind the turn"


class Stretch(NamedTuple):
    """Items side by side, from place `start` to before `stop`, that are the same, and notes.

    `number` and `tokens` are of those that tell something that is to be summed up.
    """

    kind: str
    start: int
    stop: int
    number: int
    tokens: int


class Observe(Value, frozen=True, kw_only=True):
    """Observes what is before the current turn. All tokens are the model's.

    message_tokens      from so many on, what is not observed yet is observed
    observation_tokens  from so many on, observations become a reflection
    budget_tokens       the most that all before the current turn may have, but for what is locked
    memory_tokens       the most that observations and reflections may have of that
    merge_at            so many reflections become one
    reflections_max     the most reflections that a model is shown
    observations_max    the most observations
    keep_turns          so many of the latest turns are not observed; the current one never is
    """

    message_tokens: int = 1_000
    observation_tokens: int = 2_000
    budget_tokens: int = 8_000
    memory_tokens: int = 4_000
    merge_at: int = 5
    reflections_max: int = 5
    observations_max: int = 20
    keep_turns: int = 1

    @property
    def name(self) -> str:
        return NAME

    def plan(self, view: View, situation: Situation) -> Plan:
        why = due(situation, 0)
        is_short = situation.used - situation.base <= self.budget_tokens
        if why is None and is_short and situation.trigger != "after":
            return nothing(NAME, situation, "it is looked at again behind the turn")
        items, pairs = view.items, Pairs(view)
        stays = kept(view, items, pairs, situation.budget, max(1, self.keep_turns))
        free = [place for place in range(len(items)) if not stays.has(place)]
        if why is None and _tokens(items, free, situation) > self.budget_tokens:
            why = "budget_tokens"
        if why is None and situation.trigger == "after":
            why = _BEHIND
        if why is None:
            return nothing(NAME, situation, "what is long is of the current turn, or is locked")
        stretches = _whole(items, free, pairs, situation)
        steps = [
            step
            for stretch in self._due(stretches, situation, is_full=why != _BEHIND)
            for step in self._steps(stretch, view, situation)
        ]
        made = ", ".join(step.why for step in steps) or "nothing has to be observed"
        numbers = {"trigger": why, "items": sum(len(step.messages) for step in steps)}
        plan = planned(NAME, situation, steps, f"{why}: {made}", numbers)
        return measured(plan, view, situation)

    def _due(
        self, stretches: Sequence[Stretch], situation: Situation, *, is_full: bool
    ) -> Iterator[Stretch]:
        """Those of which something is to be made now; `is_full` is when all that can be is."""
        number, tokens = {}, {}
        for kind in (OBSERVATION, REFLECTION):
            number[kind] = sum(each.number for each in stretches if each.kind == kind)
            tokens[kind] = sum(each.tokens for each in stretches if each.kind == kind)
        is_long = sum(tokens.values()) > self._memory_max(situation)
        most = min(self.merge_at - 1, self.reflections_max)
        due_now = {
            OBSERVATION: is_long
            or number[OBSERVATION] > self.observations_max
            or tokens[OBSERVATION] >= self.observation_tokens,
            REFLECTION: is_long or number[REFLECTION] > most,
        }
        for each in stretches:
            if each.kind == MESSAGE:
                if each.number and (is_full or each.tokens >= self.message_tokens):
                    yield each
            elif each.number > 1 and due_now[each.kind]:  # one alone would only lose
                yield each

    def _steps(self, stretch: Stretch, view: View, situation: Situation) -> Iterator[Step]:
        """The step that puts what is made of a stretch in its place, if that is shorter."""
        is_raw = stretch.kind == MESSAGE
        kind = OBSERVATION if is_raw else REFLECTION
        longest = self._memory_max(situation) // 4
        places = range(stretch.start, stretch.stop)
        for step in summed_up(view, view.items, places, situation, kind, tokens_max=longest):
            if step.tokens_after < step.tokens_before:
                yield step.replace(task=_task(step) if is_raw else REFLECTION_TASK)

    def _memory_max(self, situation: Situation) -> int:
        room = min(self.budget_tokens, max(0, situation.limit - situation.base))
        return min(self.memory_tokens, int(room * _MEMORY_SHARE))

    def _settle(self) -> None:
        self._settle_counts(*self.__struct_fields__)


def kind_of(item: Item) -> str:
    """Whether it is an observation, a reflection, or anything else: then it is a message."""
    fold = item.fold
    if fold is None or fold.by != NAME or not is_summary(item):
        return MESSAGE
    return fold.why if fold.why in (OBSERVATION, REFLECTION) else MESSAGE


def _whole(
    items: Sequence[Item], free: Sequence[int], pairs: Pairs, situation: Situation
) -> list[Stretch]:
    """The stretches, without calls and results between which something stays: so do they."""
    while True:
        found = list(_stretches(items, free, situation))
        ranges = [range(each.start, each.stop) for each in found]
        torn = {
            p for each in ranges for p in each if any(q not in each for q in pairs.with_all((p,)))
        }
        if not torn:
            return found
        free = [place for place in free if place not in torn]


def _stretches(
    items: Sequence[Item], free: Sequence[int], situation: Situation
) -> Iterator[Stretch]:
    """The free items of one kind that stand side by side. Notes go with what is before them."""
    groups: list[tuple[str, list[int]]] = []
    for place in free:
        kind = "" if is_note(items[place]) else kind_of(items[place])
        if groups and kind in ("", groups[-1][0]):
            groups[-1][1].append(place)
        elif kind:
            groups.append((kind, [place]))
    for kind, places in groups:
        for start, stop in runs(items, places):  # apart where something stays between them
            told = [p for p in range(start, stop) if _is_told(items[p], kind)]
            yield Stretch(kind, start, stop, len(told), _tokens(items, told, situation))


def _is_told(item: Item, kind: str) -> bool:
    """Whether it counts among those of its kind: what sums up others already is no message."""
    return not is_note(item) and (kind != MESSAGE or not is_summary(item))


def _tokens(items: Sequence[Item], places: Sequence[int], situation: Situation) -> int:
    return situation.tokens(sum(items[place].tokens for place in places))


def _task(step: Step) -> str:
    """What whoever writes an observation is told: when it was that they spoke, too."""
    first, last = (_date(step.messages[place]) for place in (0, -1))
    return OBSERVATION_TASK.replace("{first}", first).replace("{last}", last)


def _date(message: Message) -> str:
    return message.timestamp.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
