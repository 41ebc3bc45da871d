"""P2: a model refuses a request as too long, and the turn gets through, or says what does not fit.

A model with a window of 8k or 32k counts more tokens than we thought, and refuses in the words of
ten services. What was sent is made smaller at most twice, each time really; then it is answered, or
DoesNotFit names the part that is too large. What the user said is in every request, and there are
three of them at most. A small loop stands for the turn. Loops with one fault each are the controls.
"""

import json
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from typing import NamedTuple

import pytest

from faults import window_judge as judge
from faults.tier import need
from holdfast.errors import ContextOverflow, DoesNotFit, RateLimited
from holdfast.frozen import EMPTY
from holdfast.messages import Message, ToolCall
from holdfast.providers.failures import failure
from holdfast.window import Plan, Situation, View, apply
from holdfast.window.cache_aware import CacheAware
from random_windows import LONG, count, now

MISSING = "" if find_spec("holdfast.window.overflow") else "there is no holdfast.window.overflow"
OVERFLOW = None if MISSING else import_module("holdfast.window.overflow")
CALLS_MAX = 3
WINDOWS = (8_000, 32_000)


class Wording(NamedTuple):
    """How a service refuses; <found>, <max> and <over> are numbers."""

    sentence: str
    fields: Mapping = EMPTY
    status: int = 400


INVALID = {"type": "invalid_request_error"}
TOO_LONG = {"code": "context_length_exceeded"} | INVALID
WORDINGS = {
    "anthropic": Wording("prompt is too long: <found> tokens > <max> maximum", INVALID),
    "openai": Wording(
        "This model's maximum context length is <max> tokens. However, your messages resulted in "
        "<found> tokens. Please reduce the length of the messages.",
        TOO_LONG,
    ),
    "openai responses": Wording(
        "Your input exceeds the context window of this model. Please adjust your input and try "
        "again.",
        TOO_LONG,
    ),
    "google": Wording(
        "The input token count (<found>) exceeds the maximum number of tokens allowed (<max>).",
        {"code": 400, "status": "INVALID_ARGUMENT"},
    ),
    "copilot": Wording(
        "prompt token count of <found> exceeds the limit of <max>",
        {"code": "model_max_prompt_tokens_exceeded"},
    ),
    "github models": Wording(
        "Request body too large for gpt-4o model. Max size: <max> tokens.",
        {"code": "tokens_limit_reached"},
        status=413,
    ),
    "mistral": Wording(
        "Prompt contains <found> tokens and 0 draft tokens, too large for model with <max> "
        "maximum context length",
        INVALID,
    ),
    "llama.cpp": Wording(
        "request (<found> tokens) exceeds the available context size (<max> tokens), try "
        "increasing it",
        {"code": 400, "type": "exceed_context_size_error"},
    ),
    "ollama": Wording("prompt too long; exceeded max context length by <over> tokens"),
    "bedrock": Wording("Input is too long for requested model."),
}
# A limit in a time, in words that are close to these.
PER_MINUTE = Wording(
    "Request too large for gpt-4o on tokens per min (TPM): Limit <max>, Requested <found>.",
    {"code": "rate_limit_exceeded"},
    status=429,
)


def refusal(wording, found, limit):
    """The error that comes of such an answer."""
    sentence = wording.sentence
    for name, number in {"found": found, "max": limit, "over": found - limit}.items():
        sentence = sentence.replace(f"<{name}>", str(number))
    body = json.dumps({"error": {"message": sentence} | dict(wording.fields)})
    return failure("fake", wording.status, {}, body.encode())


class FakeModel:
    """Refuses what is longer than its window, by its own count, in the words of a service."""

    def __init__(self, window, wording, *, factor=1.0, base=0):
        self.window = window
        self.wording = wording
        self.factor = factor
        self.base = base
        self.sent = []

    def tokens(self, messages):
        return self.base + int(self.factor * sum(map(count, messages)))

    def answer(self, messages):
        self.sent.append(messages)
        found = self.tokens(messages)
        if found > self.window:
            raise refusal(self.wording, found, self.window)
        return Message.assistant("Here you are.")


class Outcome(NamedTuple):
    """How a turn ended: with an answer or an error, after which requests, on which view."""

    answer: Message | None
    error: Exception | None
    sent: list
    view: View


def turn(view, model, situation, recover=None, policy=None):
    """One turn: make it fit, send, and after a refusal recover and send again."""
    recover = recover or OVERFLOW.recover
    try:
        view = _folded(view, _planned(policy or CacheAware(), view, situation), situation)
        for attempt in range(1, 9):
            try:
                return Outcome(model.answer(view.rendered().messages), None, model.sent, view)
            except ContextOverflow as error:
                plan = recover(
                    view, now(situation, view), attempt=attempt, reported=_reported(error)
                )
                view = _folded(view, plan, situation)
    except (DoesNotFit, RateLimited) as error:
        return Outcome(None, error, model.sent, view)
    return Outcome(None, None, model.sent, view)


def _planned(policy, view, situation):
    if find_spec("holdfast.window.fit"):
        return import_module("holdfast.window.fit").fitting(policy, view, situation)
    return policy.plan(view, situation)


def _folded(view, plan, situation):
    texts = ["In short."] * len(plan.to_summarize)
    return view.with_folds(apply(plan, texts, lambda each: situation.tokens(count(each))))


def _reported(error):
    if error.tokens_found is not None and error.tokens_max is not None:
        return error.tokens_found, error.tokens_max
    return OVERFLOW.numbers(str(error)) if OVERFLOW else None


def wrongs(outcome, model, asked):
    """What is wrong with how a turn ended; `asked` is what the user said."""
    found = []
    sizes = [model.tokens(messages) for messages in outcome.sent]
    if len(sizes) > CALLS_MAX:
        found.append(f"{len(sizes)} calls were spent")
    if any(later >= earlier for earlier, later in pairwise(sizes)):
        found.append(f"a request did not get smaller: {sizes}")
    if any(asked.id not in {each.id for each in messages} for messages in outcome.sent):
        found.append("what the user said was not sent")
    if asked.id not in {item.message.id for item in outcome.view.items}:
        found.append("what the user said is not shown any more")
    if outcome.answer is None and not isinstance(outcome.error, DoesNotFit):
        found.append("there is neither an answer nor an error that says what does not fit")
    return found + [each for messages in outcome.sent for each in judge.unpaired(messages)]


# Conversations


def call(id):
    return ToolCall(id=id, name="look", arguments='{"at": "it"}')


def pair(id, tokens):
    return [Message.assistant(None, [call(id)]), Message.tool((LONG * 200)[: tokens * 4], id)]


def many_turns(number):
    """Words alone."""
    return [Message.user(f"u{number} {LONG[:400]}"), Message.assistant(LONG[:1_200])]


def tool_turns(number):
    """Calls and their results."""
    return [Message.user(f"u{number}"), *pair(f"c{number}", 400), Message.assistant("ok")]


def one_long_turn(number):
    """One turn that calls and calls: its request is far from the end."""
    asked = [Message.user("Read them all.")] if number == 0 else []
    return asked + pair(f"c{number}", 700)


def one_long_result(number, tokens=0):
    """All of it is what one tool gave back, just now."""
    return [Message.user("Read it."), *pair("c1", tokens)] if number == 0 else []


TALKS = (many_turns, tool_turns, one_long_turn, one_long_result)


def started(talk, window, share=1.0):
    """A view that has this share of the window by our count; and what was asked last."""
    tokens = int(window * share)
    said = [Message.user("Hello."), Message.assistant("Hi.")]
    for number in range(tokens):
        more = talk(number) if talk is not one_long_result else talk(number, tokens - 60)
        if not more or sum(map(count, said + more)) > tokens - 20:
            break
        said += more
    if not said[-1].results:
        said.append(Message.user("And now?"))
    # The rest goes into the first answer, so that it is exactly as much.
    missing = tokens - sum(map(count, said))
    said[1] = Message.assistant((LONG * 20)[: 4 * (missing + count(said[1]) - 4)])
    view = View(count)
    for seq, message in enumerate(said, start=1):
        view.add(seq, message)
    assert abs(view.total - tokens) <= 4
    return view, next(message for message in reversed(said) if message.starts_turn)


def situation_of(view, window, base=0):
    return Situation(limit=window, used=base + view.total, base=base)


@pytest.mark.parametrize("name", WORDINGS)
def test_the_wording_is_known(name):
    """Each is read as what it is, with the numbers that it names."""
    sentence = WORDINGS[name].sentence

    error = refusal(WORDINGS[name], 9_000, 8_000)

    assert type(error) is ContextOverflow
    assert error.tokens_max == (8_000 if "<max>" in sentence else None)
    assert error.tokens_found == (9_000 if "<found>" in sentence else None)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", WORDINGS)
def test_a_refused_turn_gets_through(name, window, subtests):
    """S2-58: the model counts more than we do, by half at most, which is more than any
    estimate is wrong by."""
    need(MISSING)
    for talk in TALKS:
        for factor in (1.02, 1.2, 1.5):
            with subtests.test(talk=talk.__name__, factor=factor):
                view, asked = started(talk, window, 0.99)
                model = FakeModel(window, WORDINGS[name], factor=factor)

                outcome = turn(view, model, situation_of(view, window))

                assert wrongs(outcome, model, asked) == []
                assert outcome.answer is not None, outcome.error
                assert 2 <= len(outcome.sent) <= CALLS_MAX


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", WORDINGS)
def test_however_wrong_the_count_is_the_turn_ends(name, window, subtests):
    """With an answer, or with the part that does not fit: never silently, never for ever."""
    need(MISSING)
    for talk in TALKS:
        for factor in (2.5, 10.0, 1_000.0):
            with subtests.test(talk=talk.__name__, factor=factor):
                view, asked = started(talk, window, 0.9)
                model = FakeModel(window, WORDINGS[name], factor=factor)

                outcome = turn(view, model, situation_of(view, window))

                assert wrongs(outcome, model, asked) == []


@pytest.mark.parametrize("policy", judge.policies(), ids=judge.name_of)
def test_a_window_that_is_full_is_made_to_fit_before_it_is_sent(policy, subtests):
    """Where the count is right, nothing is refused, whatever the policy."""
    need(MISSING)
    for window in WINDOWS:
        for talk in TALKS:
            with subtests.test(talk=talk.__name__, window=window):
                view, asked = started(talk, window, 3.0)
                model = FakeModel(window, WORDINGS["anthropic"])

                outcome = turn(view, model, situation_of(view, window), policy=policy)

                assert wrongs(outcome, model, asked) == []
                assert (outcome.error, len(outcome.sent)) == (None, 1)


# What nothing cures


@pytest.mark.parametrize("window", WINDOWS)
def test_what_the_user_said_is_named_when_it_does_not_fit(window):
    """It is neither cut nor dropped."""
    need(MISSING)
    view, _ = started(many_turns, window, 0.5)
    asked = Message.user((LONG * 200)[: window * 5])
    view.add(1_000, asked)
    model = FakeModel(window, WORDINGS["openai"])

    outcome = turn(view, model, situation_of(view, window))

    assert wrongs(outcome, model, asked) == []
    assert "user's message" in outcome.error.what
    assert (outcome.error.tokens, outcome.sent) == (count(asked), [])
    assert outcome.error.tokens_max < outcome.error.tokens


@pytest.mark.parametrize("window", WINDOWS)
def test_the_system_prompt_is_named_when_it_does_not_fit(window):
    """With the tools: no fold can make them smaller."""
    need(MISSING)
    view, asked = started(many_turns, window, 0.2)
    model = FakeModel(window, WORDINGS["anthropic"], base=window + 1)

    outcome = turn(view, model, situation_of(view, window, base=window + 1))

    assert wrongs(outcome, model, asked) == []
    assert "system prompt" in outcome.error.what
    assert outcome.sent == []


@pytest.mark.parametrize("name", WORDINGS)
def test_a_window_that_nothing_fits(name):
    """A model that refuses everything: the error has a name, and three calls were spent at most."""
    need(MISSING)
    view, asked = started(tool_turns, 8_000, 0.9)
    model = FakeModel(0, WORDINGS[name])

    outcome = turn(view, model, situation_of(view, 8_000))

    assert wrongs(outcome, model, asked) == []
    assert isinstance(outcome.error, DoesNotFit) and outcome.error.what
    assert 1 <= len(outcome.sent) <= CALLS_MAX


def test_a_system_prompt_that_only_the_model_finds_too_large_is_named():
    """The refusal says how little fits: less than what is no message."""
    need(MISSING)
    view, asked = started(many_turns, 8_000, 0.3)
    model = FakeModel(3_000, WORDINGS["anthropic"], base=4_000)

    outcome = turn(view, model, situation_of(view, 8_000, base=4_000))

    assert wrongs(outcome, model, asked) == []
    assert "system prompt" in outcome.error.what


def test_a_limit_in_a_time_is_not_a_window():
    """Nothing is folded for it."""
    need(MISSING)
    view, _ = started(many_turns, 8_000, 0.9)
    model = FakeModel(4_000, PER_MINUTE)

    outcome = turn(view, model, situation_of(view, 8_000))

    assert isinstance(outcome.error, RateLimited)
    assert (len(outcome.sent), outcome.view.folds) == (1, ())


# Summaries


SUMMARIES = {"empty": "", "blank": " \n", "long": LONG * 500, "nul": "\x00" * 9, "word": "word"}


class SumsUp(CacheAware, frozen=True, kw_only=True):
    """CacheAware that has turns summed up."""

    is_summing_up: bool = True


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize(
    "text",
    ["", " \n", LONG * 500, "\x00" * 9, "word"],
    ids=["empty", "blank", "long", "nul", "word"],
)
def test_a_summary_never_makes_the_window_larger(text, window):
    """One that is longer than what it sums up is cut, and one that says nothing is a note."""
    view, asked = started(tool_turns, window, 1.1)
    situation = situation_of(view, window).replace(trigger="manual")
    plan = SumsUp().plan(view, situation)
    assert plan.to_summarize

    folds = apply(plan, [text] * len(plan.to_summarize), lambda each: situation.tokens(count(each)))

    after = view.with_folds(folds)
    assert now(situation, after).used <= plan.tokens_after < window
    assert asked.id in {item.message.id for item in after.items}
    assert all(fold.replacement.text.strip() for fold in folds if fold.replacement)
    assert judge.unpaired(after.rendered().messages) == []


# The controls


def no_smaller(view, situation, *, attempt, reported=None):
    """Hopes for the best."""
    if attempt > 2:
        raise DoesNotFit("the request", situation.used, situation.limit)
    return Plan(by="hope", reason="try the same again")


def without_the_user(view, situation, *, attempt, reported=None):
    """Drops what is longest or latest, whatever it is."""
    everything = judge.left_out_run(view, view.items, 0, len(view), situation, "all")
    return judge.planned("blunt", situation, [everything], "")


def for_ever(view, situation, *, attempt, reported=None):
    """One item at a time, as long as there is one."""
    return judge.planned(
        "patient", situation, [judge.left_out_run(view, view.items, 0, 1, situation, "one")], ""
    )


CONTROLS = {
    "did not get smaller": (no_smaller, 1.2),
    "what the user said": (without_the_user, 1.2),
    "calls were spent": (for_ever, 1.2),
    "neither an answer nor an error": (for_ever, 1_000.0),
}


@pytest.mark.parametrize("wrong", CONTROLS)
def test_control_a_loop_with_a_fault_is_found(wrong):
    recover, factor = CONTROLS[wrong]
    view, asked = started(many_turns, 8_000, 0.95)
    model = FakeModel(8_000, WORDINGS["anthropic"], factor=factor)

    outcome = turn(view, model, situation_of(view, 8_000), recover=recover)

    assert any(wrong in each for each in wrongs(outcome, model, asked))
