"""R1, for windows: whatever is folded, by whomever, the request is one that the vendor accepts.

Logs with folds as no careful program would make them, then made smaller by every policy under
budgets of every kind: 21,000 windows for every wire. Requests are judged by validators that share
nothing with what makes them, plans by questions that know nothing of how they came about
(`window_judge.py`). Policies and requests that are wrong are found by the same tools: those are the
controls.
"""

import json
from importlib import import_module
from importlib.util import find_spec
from random import Random

import msgspec
import pytest

import random_histories as made
import random_windows as windows
from faults import window_judge as judge
from faults.tier import need, pick
from holdfast.entries import Fold
from holdfast.errors import DoesNotFit
from holdfast.messages import Message, Role
from holdfast.providers import prepare
from holdfast.providers.anthropic import AnthropicWire
from holdfast.providers.google import GoogleWire
from holdfast.providers.ollama import OllamaWire
from holdfast.providers.ollama_messages import OllamaMessagesWire
from holdfast.providers.openai_chat import OpenAIChatWire
from holdfast.providers.openai_responses import OpenAIResponsesWire
from holdfast.testing import validators
from holdfast.window import Evict, View
from holdfast.window.plan import Step, planned
from holdfast.window.render import Rendered, Shown, render

LOGS = pick(200, 7_000)  # for each wire, of each log three windows
PLANS = pick(121, 2_000)  # for each policy
ROUNDS = 3
POLICIES = judge.policies()
MISSING = "" if find_spec("holdfast.window.fit") else "there is no holdfast.window.fit"
WIRES = {
    "anthropic": [
        AnthropicWire("claude-sonnet-4-5"),
        AnthropicWire("claude-3-haiku-20240307"),
        OllamaMessagesWire("qwen3:8b"),
    ],
    "openai-chat": [OpenAIChatWire("gpt-4.1"), OpenAIChatWire("gpt-5")],
    "openai-responses": [OpenAIResponsesWire("gpt-5"), OpenAIResponsesWire("gpt-4.1")],
    "google": [GoogleWire("gemini-2.5-pro"), GoogleWire("gemini-3-pro-preview")],
    "ollama": [OllamaWire("qwen3:8b"), OllamaWire("gpt-oss:20b", num_ctx=8_192)],
}


def folded(seed):
    """The log of this seed, with folds in it, and its view."""
    random = Random(seed)
    said = windows.talk(random) if seed % 3 == 0 else windows.broken_talk(random)
    log = windows.log(random, said, random.choice((0.0, 0.1, 0.3)))
    return random, log, windows.view_of(log)


def asked(wire, view, random):
    """What the wire is asked for the view, and the body that it makes of it."""
    ask = wire.ask(
        view.rendered().messages,
        random.choice((None, "Be brief.")),
        made.tools(random),
        settings=made.settings(random),
    )
    return ask, json.loads(msgspec.json.encode(wire.to_wire(ask)))


def problems(api, wire, view, random):
    """For what a vendor would refuse what is made of the view, and what it drops."""
    ask, body = asked(wire, view, random)
    is_other = wire.vendor == "ollama"  # speaks that wire, and is not its vendor
    problems = validators.problems(api, body, model=wire.model, lenient=is_other)
    found = [str(each) for each in problems]
    shown = {message.id for message in ask.prepared.messages}
    return found + [
        "a user's message that is shown is dropped"
        for item in view.items
        if windows.is_users(item.message) and item.message.id not in shown
    ]


def grown(view, log, random):
    """The conversation goes on behind what was folded."""
    for message in windows.broken_talk(random)[:6]:
        log.append((log[-1][0] + 1 if log else 1, message))
        view.add(*log[-1])


@pytest.mark.parametrize("api", WIRES)
def test_every_window_is_accepted(api):
    """S2-43: as it is folded, and after a policy has made it smaller, again and again."""
    for seed in range(LOGS):
        random, log, view = folded(seed)
        policy = POLICIES[seed % len(POLICIES)]
        wire = WIRES[api][seed // len(POLICIES) % len(WIRES[api])]
        for turn in range(ROUNDS):
            where = f"seed {seed}, {policy.name}, {wire.model}, round {turn}"

            found = problems(api, wire, view, random)

            assert not found, f"{where}: {found[0]}"
            situation = windows.situation(random, view)
            plan = policy.plan(view, situation)
            for fold in judge.carried_out(plan, situation, random):
                log.append((log[-1][0] + 1, fold))
                view.add(*log[-1])
            grown(view, log, random)


@pytest.mark.parametrize("api", WIRES)
def test_a_request_is_made_of_itself_again(api):
    """What was rendered and prepared once is passed on as it is."""
    for seed in range(LOGS // 5):
        random, _, view = folded(seed)
        wire = WIRES[api][seed % len(WIRES[api])]

        ask, body = asked(wire, view, random)

        prepared = ask.prepared
        again = wire.ask(prepared.messages, prepared.system, prepared.tools, settings=ask.settings)
        assert json.loads(msgspec.json.encode(wire.to_wire(again))) == body, f"seed {seed}"
        shown = view.rendered().messages
        assert render(shown) == (shown, ()), f"seed {seed}"


@pytest.mark.parametrize("policy", POLICIES, ids=judge.name_of)
def test_no_policy_does_what_none_may(policy):
    """Whatever the log, the folds in it and the budget: see `window_judge.wrongs`."""
    for seed in range(PLANS):
        random, log, view = folded(seed)
        for turn in range(ROUNDS):
            situation = windows.situation(random, view)

            plan = policy.plan(view, situation)

            folds = judge.carried_out(plan, situation, random)
            found = judge.wrongs(view, situation, plan, folds)
            assert not found, f"seed {seed}, round {turn}: {found[0]}"
            assert policy.plan(view, situation) == plan, f"seed {seed}: not the same again"
            for fold in folds:
                log.append((log[-1][0] + 1, fold))
                view.add(*log[-1])
            grown(view, log, random)


@pytest.mark.parametrize("policy", POLICIES, ids=judge.name_of)
def test_no_turn_goes_that_there_is_room_for(policy):
    """In conversations in which nothing is wrong, where tokens can be added up."""
    for seed in range(PLANS):
        random = Random(seed)
        view = windows.view_of(windows.log(random, windows.talk(random), 0.0))
        situation = windows.situation(random, view)

        plan = policy.plan(view, situation)

        folds = judge.carried_out(plan, situation, random)
        found = judge.too_deep(view, situation, plan, folds)
        assert not found, f"seed {seed}: {found[0]}"


@pytest.mark.parametrize("policy", POLICIES, ids=judge.name_of)
def test_what_is_made_to_fit_fits(policy):
    """By its own count and ours, with the margin as long as anything can go for it; or DoesNotFit
    names what does not.

    What fits as it is, or could be made to as far as is known, never raises it.
    """
    need(MISSING)
    for seed in range(PLANS):
        random, _, view = folded(seed)
        situation = windows.situation(random, view)

        plan, error = fitted(policy, view, situation)

        if error is not None:
            assert error.what and error.tokens > error.tokens_max >= 0, f"seed {seed}: {error!r}"
            assert situation.used > situation.limit, f"seed {seed}: it fits"
            continue
        folds = judge.carried_out(plan, situation, random)
        rest = view.with_folds(folds)
        used = judge.sent_tokens(rest, situation)
        room = situation.limit - situation.margin
        assert used <= situation.limit + len(folds), f"seed {seed}: {used} tokens for {room}"
        if used > room + len(folds):
            more, _ = fitted(Evict(), rest, windows.now(situation, rest))
            assert not more, f"seed {seed}: {used} tokens for {room}, and more can go"
        found = judge.wrongs(view, situation, plan, folds)
        assert not found, f"seed {seed}: {found[0]}"


def fitted(policy, view, situation):
    """The plan after which it fits, or the error that says that none does."""
    try:
        return import_module("holdfast.window.fit").fitting(policy, view, situation), None
    except DoesNotFit as error:
        return None, error


# The controls


class Broken:
    """A policy with one fault: `steps` are what it folds, due or not."""

    name = "broken"

    def __init__(self, steps):
        self._steps = steps

    def plan(self, view, situation):
        return planned(self.name, situation, self._steps(view), "why not")


def step(items, **fields):
    tokens = sum(item.tokens for item in items)
    fields = {"kind": "drop", "tokens_before": tokens} | fields
    return Step(first=items[0].first, last=max(item.last for item in items), **fields)


FAULTS = {
    "not due": lambda view: [step(view.items[:1])],
    "makes": lambda view: [step(view.items[:1], replacement=Message.user(windows.LONG * 9))],
    "and the plan says": lambda view: [step(view.items[:1], tokens_before=10**6)],
    "is lost": lambda view: [step(view.items)],
}


@pytest.mark.parametrize("wrong", FAULTS)
def test_control_a_policy_that_does_what_none_may_is_found(wrong):
    """Each of the questions has a policy to which the answer is yes."""
    policy, found = Broken(FAULTS[wrong]), []
    for seed in range(200):
        random, _, view = folded(seed)
        if view.items:
            situation = windows.situation(random, view)
            plan = policy.plan(view, situation)
            folds = judge.carried_out(plan, situation, random)
            found += judge.wrongs(view, situation, plan, folds)

    assert any(wrong in each for each in found)


def test_control_a_policy_that_goes_too_deep_is_found():
    """One that leaves out all turns but the last as soon as one has to go."""
    policy, found, tried = Broken(lambda view: [step(older)] if older else []), 0, 0
    for seed in range(300):
        random = Random(seed)
        view = windows.view_of(windows.log(random, windows.talk(random), 0.0))
        older = [item for item in view.items if 0 < item.turn < view.turn]
        situation = windows.situation(random, view)
        if len({item.turn for item in older}) < 4 or situation.budget.target < 0.5:
            continue
        plan = policy.plan(view, situation)
        tried += 1
        found += bool(judge.too_deep(view, situation, plan, plan_folds(plan)))

    assert found > tried / 4 > 5


def plan_folds(plan):
    return [Fold(first=each.first, last=each.last) for each in plan.steps]


def test_control_a_view_that_does_not_pair_is_found():
    """Of the same views the items as they are: calls and results stand apart in many."""
    found = 0
    for seed in range(300):
        _, _, view = folded(seed)
        found += bool(judge.unpaired([item.message for item in view.items]))

    assert found > 100


def test_control_a_view_that_counts_wrong_is_found(monkeypatch):
    """One that takes no notice of what rendering adds."""
    monkeypatch.setattr(View, "total", property(lambda view: len(view.items)))
    found = []
    for seed in range(100):
        random, _, view = folded(seed)
        situation = windows.situation(random, view)
        plan = judge.OldestFirst().plan(view, situation)
        found += judge.wrongs(view, situation, plan, judge.carried_out(plan, situation, random))

    assert any("and the plan says" in each for each in found)


@pytest.mark.parametrize("api", WIRES)
def test_control_without_repairs_many_windows_are_refused(api, monkeypatch):
    """The same views sent as they are: the validators find what is wrong with them."""

    def unrendered(messages, **_):
        said = [message for message in messages if message.role in (Role.USER, Role.ASSISTANT)]
        return Rendered(Shown(said), ())

    monkeypatch.setattr(prepare, "render", unrendered)
    monkeypatch.setattr(
        View, "rendered", lambda view: Rendered([item.message for item in view.items], ())
    )
    wire, refused = WIRES[api][0], 0
    for seed in range(200):
        random, _, view = folded(seed)
        _, body = asked(wire, view, random)
        refused += bool(validators.problems(api, body, model=wire.model))

    assert refused > 40


def test_control_the_folds_are_broken():
    """Folds of every kind are among them, and most views are other than the log."""
    folds, notes, changed = [], 0, 0
    for seed in range(300):
        _, log, view = folded(seed)
        said = [entry for _, entry in log if type(entry) is Message]
        folds += [entry for _, entry in log if type(entry) is Fold]
        notes += sum(item.message.synthetic == "folded" for item in view.items)
        changed += [item.message for item in view.items] != said

    assert any(fold.is_open for fold in folds) and notes > 20
    assert any(fold.replacement and fold.replacement.calls for fold in folds)
    assert any(fold.replacement and fold.replacement.results for fold in folds)
    assert changed > 100
