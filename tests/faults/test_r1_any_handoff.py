"""R1, for conversations that move: whoever goes on with one, and whoever comes back to it.

Real conversations are said by one vendor after another, each in its own wire form, with thoughts,
proofs, blocks and ids of its own; recorded ones go on elsewhere and come back to where they were
recorded. Every request is judged (`handoff_judge.py`): the vendor accepts it, each call has its own
result, nothing said is missing, and what only one model can check is shown to that one alone, and
to it to the letter. Faults planted in preparing requests are the controls.

All vendors of `vendor_wires` take part, those with two wires with both, two with a second model,
and the program of Claude Code: what a new session of it is told, and what one that it goes on with
has seen. Services with an accent have rows of their own. The full tier moves all 901 conversations,
three times each, and goes on from every recorded answer.
"""

import asyncio
import gzip
import json
from random import Random

import pytest

from faults.handoffs import (
    PARTIES,
    Journey,
    journey_from,
    own_vendor,
    recorded_exchanges,
    tools_for,
    wire_of,
)
from faults.tier import pick
from holdfast import Role, codec
from holdfast.parts import Thinking
from holdfast.providers import prepare
from holdfast.providers.claude_cli.sessions import Sessions
from holdfast.testing.replay.ours import wire_for
from recorded_turns import CORPUS, needs_traffic
from talks import TALKS
from vendor_wires import SERVICES, VENDORS

ORDERS = pick(1, 3)
STOPS = pick(2, len(PARTIES))
TALK_ORDERS = pick(5, 200)
LONG = pick(250, 10**9)  # messages; longer conversations are for the full tier
# In the short tier, of each file so many conversations are left out for one that is taken.
EVERY = {
    "api-tools": 2,
    "coding-sessions": 5,
    "pair-programming": 15,
    "provider-sequences": 9,
    "software-agents": 11,
    "tau-bench": 90,
}
CONVERSATIONS = {
    path.name.partition(".")[0]: path for path in (CORPUS / "conversations").glob("*.jsonl.gz")
}


def read(line):
    """The messages of a conversation of the corpus."""
    raw = json.loads(line)["messages"]
    return [message for each in raw for message in codec.read_plain(json.dumps(each))]


def conversations(name):
    """Those of a file that this tier takes, by number."""
    every = pick(EVERY.get(name, 50), 1)
    with gzip.open(CONVERSATIONS[name], "rt", encoding="utf-8", newline="\n") as lines:
        for number, line in enumerate(lines):
            if number % every == 0 and len(messages := read(line)) <= LONG:
                yield number, messages


def journey(messages, seed, parties=PARTIES):
    """The conversation, moved in the order of this seed; a third has tools of unusual names."""
    random = Random(seed)
    if random.random() < 0.3:
        messages = [_renamed(message) for message in messages]
    moved = Journey(random, parties, tools_for(messages))
    asyncio.run(moved.travel(messages))
    return moved


def _renamed(message):
    calls = [call.replace(name=f"my.{call.name}") for call in message.tool_calls]
    is_result = message.tool_call_id is not None
    name = f"my.{message.name}" if is_result and message.name else message.name
    return message.replace(tool_calls=calls, name=name)


@pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.__name__)
def test_a_conversation_moves_across_all_vendors(talk):
    """S2-71, S2-115: whatever is hard about it, in any order of vendors."""
    for seed in range(TALK_ORDERS):
        moved = journey(talk(), seed)

        assert moved.wrongs == [], f"seed {seed}"


@pytest.mark.parametrize("name", sorted({*EVERY, *CONVERSATIONS}))
def test_a_real_conversation_moves_across_all_vendors(name):
    """S2-72, S2-115: turns on one, then on another, in mid-conversation, and back to the first."""
    if name not in CONVERSATIONS:
        pytest.skip(f"no conversations of {name} in {CORPUS}")
    for number, messages in conversations(name):
        for order in range(ORDERS):
            seed = f"{name} {number} {order}"

            moved = journey(messages, seed)

            assert moved.wrongs == [], seed


@pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.__name__)
def test_a_conversation_moves_across_services_that_speak_with_an_accent(talk):
    """Of each host in the tables, and from and to the vendors whose wires they speak."""
    for seed in range(pick(1, 60)):
        moved = journey(talk(), seed, (*SERVICES, *VENDORS[:4]))

        assert moved.wrongs == [], f"seed {seed}"


@needs_traffic
def test_a_recorded_conversation_comes_back_to_where_it_was_recorded():
    """S2-79a, S2-115: real signatures and blocks, which the vendors in between are not shown and
    do not change."""
    came_back, sealed = 0, set()
    exchanges = recorded_exchanges()
    for exchange in exchanges[:: pick(8, 1)]:
        for order in range(ORDERS):
            moved = journey_from(exchange, Random(f"{exchange.name} {order}"), PARTIES)
            if moved is None:
                continue
            own = own_vendor(exchange), wire_for(exchange)
            asyncio.run(moved.leave_and_come_back(*own, STOPS))

            assert moved.wrongs == [], f"{exchange.name}, order {order}"
            came_back += 1
            sealed |= {exchange.wire for mark in moved.marks if "signature" in mark.what}

    assert came_back > 80 and sealed >= {"anthropic", "google", "openai-responses"}


# The controls


def _no_thoughts(work, part, message, role):
    return type(part) is not Thinking and VERIFIES(work, part, message, role)


def _all_thoughts(work, part, message, role):
    return type(part) is Thinking or VERIFIES(work, part, message, role)


def _unsigned(work, call, message):
    return CALL(work, call, message).replace(signature=None)


def _other_arguments(work, call, message):
    return CALL(work, call, message).replace(arguments="{}")


def _other_result(work, message, content):
    """Of two results the second says what the first one said."""
    first = work._made.setdefault("first", content)
    return RESULT(work, message, first)


def _no_results(work, message):
    return None if message.role is Role.TOOL else ADD(work, message)


def _no_short_answers(work, message):
    is_short = message.role is Role.ASSISTANT and len(message.text or "") < 30
    return None if is_short and not message.calls else ADD(work, message)


VERIFIES, CALL = prepare._Work._can_verify, prepare._Work._call
RESULT, ADD = prepare._Work._fitted_result, prepare._Work._add
FAULTS = {
    "a proof of a thought is dropped": ("_can_verify", _no_thoughts, "not given back its proof"),
    "a proof of a call is dropped": ("_call", _unsigned, "not given back its proof"),
    "a proof is shown to another": ("_can_verify", _all_thoughts, "is shown the proof of"),
    "a call has other arguments": ("_call", _other_arguments, "('assistant', 'call'"),
    "a call has another result": ("_fitted_result", _other_result, "('tool', 'result'"),
    "a call has no result": ("_add", _no_results, "tool"),
    "an answer is missing": ("_add", _no_short_answers, "the request says"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_control_a_fault_in_preparing_is_found(fault, monkeypatch):
    """Planted faults, each of which the judge has a sentence for."""
    name, broken, words = FAULTS[fault]
    monkeypatch.setattr(prepare._Work, name, broken)

    journeys = (journey(talk(), seed) for seed in range(4) for talk in TALKS)

    assert any(words in wrong for each in journeys for wrong in each.wrongs)


def test_control_a_session_of_the_program_that_missed_something_is_found(monkeypatch):
    """One that is told the last message alone, although others have spoken since."""

    def gone_on(sessions, conversation, fragments):
        seen = sessions._seen.pop(conversation, None)
        return seen and seen._replace(messages=len(fragments) - 1)

    monkeypatch.setattr(Sessions, "take", gone_on)

    journeys = (journey(talk(), seed) for seed in range(4) for talk in TALKS)

    wrongs = [wrong for each in journeys for wrong in each.wrongs]
    assert any("claude-cli: the request does not say" in wrong for wrong in wrongs)


def test_control_a_journey_visits_every_vendor():
    """Each says something; of those that prove what they think, proofs and blocks are kept."""
    said, marked, resumed = set(), set(), 0
    for seed in range(6):
        moved = journey(TALKS[-1](), seed)
        resumed += moved.program.resumed
        said |= {message.model for message in moved.log}
        marked |= {(mark.owner, mark.what) for mark in moved.marks}

    assert said >= {wire_of(vendor).name for vendor in PARTIES}
    for vendor in PARTIES:
        if not wire_of(vendor).rules.keeps_thinking:
            continue
        kept = ["thought"] * vendor.thinks + ["proof"] * vendor.proves
        assert {(wire_of(vendor).name, what) for what in kept} <= marked
    assert len({owner for owner, what in marked if what == "search"}) > 2
    assert resumed
