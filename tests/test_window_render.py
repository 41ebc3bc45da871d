"""Rendering: any messages become a conversation in which calls and results are complete.

The rules are those of holdfast/window/render.py; `wrongs` writes them down a second time, as
questions about the outcome, and is asked about explicit cases, about random messages of every kind,
and about real conversations.
"""

import gzip
import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import codec
from holdfast.messages import Message, Role, ToolCall
from holdfast.notes import BLANK, UNANSWERED
from holdfast.parts import CallRef, Image, Opaque, Text, Thinking
from holdfast.window.render import Renderer, Repair, render

ROOT = Path(__file__).parent.parent
CORPUS = Path(os.environ.get("HOLDFAST_CORPUS") or ROOT.parent / "shared" / "corpus")
CONVERSATIONS = sorted((CORPUS / "conversations").glob("*.jsonl.gz"))


def call(id="c1", name="look", arguments="{}", **fields):
    return ToolCall(id=id, name=name, arguments=arguments, **fields)


def asks(*calls, content=None):
    return Message.assistant(content, tool_calls=calls)


HI = Message.user("hi")


def parts_of(message):
    return message.content if isinstance(message.content, tuple) else ()


def wrongs(messages):
    """What the rules are broken by, in words; nothing if they are kept."""
    found, ids = [], set()
    pending = []  # calls whose results have to come next
    for message in messages:
        if pending:
            if message.role is not Role.TOOL or message.tool_call_id != pending.pop(0):
                found.append("a result does not stand behind its call")
                pending = []
        elif message.role is Role.TOOL or message.tool_call_id is not None:
            found.append("a result without a call")
        if message.role not in (Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL):
            found.append("an old role")
        if message.tool_calls and message.role is not Role.ASSISTANT:
            found.append("a call that is not the assistant's")
        if any(each.output is not None for each in message.tool_calls):
            found.append("a result in a call")
        own = [each.id for each in message.tool_calls]
        found += ["an id twice" for id in own if id in ids]
        found += ["an id twice" for _ in range(len(own) - len(set(own)))]
        found += ["an empty id" for id in own if not id]
        ids.update(own)
        pending += own
        if not message.content and not message.tool_calls and message.role is not Role.TOOL:
            found.append("a message that says nothing")
        refs = [part.id for part in parts_of(message) if type(part) is CallRef]
        if len(refs) != len(set(refs)) or not set(refs) <= set(own):
            found.append("a place of a call that is not there")
        if message.role is not Role.ASSISTANT and any(
            type(part) is Thinking for part in parts_of(message)
        ):
            found.append("a thought that is not the assistant's")
        if any(type(part) is Text and not part.text for part in parts_of(message)):
            found.append("an empty text")
    return found + ["a call at the end without its result"] * bool(pending)


def rendered(*messages):
    """The outcome, which keeps the rules and is rendered to itself."""
    outcome = render(messages)
    assert wrongs(outcome.messages) == []
    again = render(outcome.messages)
    assert again.repairs == ()
    assert len(again.messages) == len(outcome.messages)
    assert all(a is b for a, b in zip(again.messages, outcome.messages, strict=True))
    return outcome


def repairs(outcome):
    return [each.what for each in outcome.repairs]


# What is right


def test_what_is_right_is_passed_on_as_it_is():
    """The very objects, and nothing to repair."""
    messages = (
        Message.system("Be brief."),
        HI,
        asks(call("c1"), call("c2"), content=[Thinking("hm", "sig"), Text("Wait.")]),
        Message.tool("1", "c1"),
        Message.tool([Text("2"), Image(url="https://example.org/a.png")], "c2", is_error=True),
        Message.assistant([Text("a"), Opaque("vendor", {"x": 1})]),
        Message.user("thanks"),
    )

    outcome = rendered(*messages)

    assert outcome.repairs == ()
    assert all(a is b for a, b in zip(outcome.messages, messages, strict=True))


def test_nothing_is_rendered_to_nothing():
    assert render(()) == ((), ())


# Results


def test_a_call_without_a_result_gets_one_that_says_so():
    """S2-38: as a cancel leaves it."""
    asked = asks(call("c1"))

    outcome = rendered(HI, asked, Message.user("go on"))

    result = outcome.messages[2]
    assert outcome.repairs == (Repair("unanswered", asked.id, "c1"),)
    assert (result.content, result.is_error, result.tool_call_id) == (UNANSWERED, True, "c1")
    assert result.synthetic == "unanswered"
    assert render((HI, asked)).messages == outcome.messages[:3]  # the same whenever it is made


def test_a_half_answered_group_keeps_what_was_answered_and_said():
    """S2-40, B21: no result is left without its call, and no word of the model is lost."""
    asked = asks(call("c1"), call("c2"), call("c3"), content="Let me look.")
    answer = Message.tool("two", "c2")

    outcome = rendered(HI, asked, answer)

    assert outcome.messages[1] is asked
    assert [each.tool_call_id for each in outcome.messages[2:]] == ["c1", "c2", "c3"]
    assert outcome.messages[3] is answer
    assert repairs(outcome) == ["unanswered", "unanswered"]


def test_results_stand_behind_their_calls_in_the_order_of_the_calls():
    """Whatever came in between."""
    asked = asks(call("c1"), call("c2"))
    one, two, note = Message.tool("1", "c1"), Message.tool("2", "c2"), Message.user("hurry")

    outcome = rendered(HI, asked, two, note, one)

    assert outcome.messages == (HI, asked, one, two, note)
    assert outcome.repairs == (Repair("moved", one.id, "c1"),)


@pytest.mark.parametrize("content", ["23 degrees", (Text("23"), Image(url="https://a.b/c.png"))])
def test_a_result_without_its_call_is_shown_as_words(content):
    """B21: its call is folded away, or was never there; what it says is not lost."""
    orphan = Message.tool(content, "gone", name="weather")

    outcome = rendered(orphan, HI)

    shown = outcome.messages[0]
    assert (shown.role, shown.synthetic) == (Role.USER, "orphan")
    assert "weather" in shown.text and "23" in shown.text
    assert not shown.starts_turn
    assert [part for part in parts_of(shown) if type(part) is Image] == [
        part for part in parts_of(orphan) if type(part) is Image
    ]
    assert outcome.repairs == (Repair("orphan", orphan.id, "gone"),)


def test_a_result_without_a_call_that_says_nothing_is_left_out():
    outcome = rendered(Message.tool("", "gone"), HI)

    assert outcome.messages == (HI,)
    assert repairs(outcome) == ["orphan"]


def test_the_first_of_two_results_counts():
    """The other is shown, as one without a call."""
    outcome = rendered(HI, asks(call()), Message.tool("first", "c1"), Message.tool("late", "c1"))

    assert outcome.messages[2].content == "first"
    assert "late" in outcome.messages[3].text
    assert repairs(outcome) == ["orphan"]


def test_a_result_before_its_call_is_none_of_it():
    outcome = rendered(Message.tool("early", "c1"), HI, asks(call()))

    assert repairs(outcome) == ["orphan", "unanswered"]


def test_results_without_ids_go_by_name_and_order():
    """S1-50: as vendors without call ids write them."""
    asked = asks(call("c1", "look"), call("c2", "hear"), call("c3", "look"))
    results = [
        Message(Role.FUNCTION, text, name=name)
        for text, name in (("b", "hear"), ("a", "look"), ("c", "look"))
    ]

    outcome = rendered(HI, asked, *results)

    assert [(m.tool_call_id, m.content) for m in outcome.messages[2:]] == [
        ("c1", "a"),
        ("c2", "b"),
        ("c3", "c"),
    ]
    assert outcome.repairs == ()


def test_results_that_are_listed_as_calls_with_outputs():
    """One message for several results becomes one for each; words beside them are kept."""
    asked = asks(call("c1"), call("c2"))
    outputs = [call("c1", output="1"), call("c2", output="2", is_error=True)]
    both = Message(Role.FUNCTION, "by the way", tool_calls=outputs)

    outcome = rendered(HI, asked, both)

    one, two, words = outcome.messages[2:]
    assert [(m.role, m.tool_call_id, m.content, m.is_error) for m in (one, two)] == [
        (Role.TOOL, "c1", "1", False),
        (Role.TOOL, "c2", "2", True),
    ]
    assert (words.role, words.content) == (Role.USER, "by the way")
    assert len({m.id for m in (one, two, words)}) == 3


@pytest.mark.parametrize("role", [Role.TOOL, Role.USER, Role.ASSISTANT])
def test_outputs_without_arguments_are_results_whoever_holds_them(role):
    """S1-49, B35: and their words are not shown a second time."""
    outputs = [call("c1", arguments="", output="[1]"), call("c2", arguments="", output="{}")]

    outcome = rendered(HI, asks(call("c1"), call("c2")), Message(role, "[1]{}", tool_calls=outputs))

    assert [(m.role, m.content) for m in outcome.messages[2:]] == [
        (Role.TOOL, "[1]"),
        (Role.TOOL, "{}"),
    ]


def test_an_assistants_call_that_has_its_output_is_a_call_and_its_result():
    outcome = rendered(HI, asks(call("c1", output="1"), call("c2")))

    assert [each.output for each in outcome.messages[1].tool_calls] == [None, None]
    assert [m.content for m in outcome.messages[2:]] == ["1", UNANSWERED]


def test_a_users_message_may_hold_a_result():
    result = Message(Role.USER, "done", tool_call_id="c1")

    outcome = rendered(HI, asks(call()), result)

    assert (outcome.messages[2].role, outcome.messages[2].content) == (Role.TOOL, "done")


def test_a_result_may_be_empty_but_holds_no_empty_text():
    outcome = rendered(
        HI, asks(call("a"), call("b")), Message.tool([Text("")], "a"), Message.tool("", "b")
    )

    assert [m.content for m in outcome.messages[2:]] == [None, ""]


# Ids


def test_an_id_that_comes_again_is_renamed_with_its_result():
    """Some services count calls from 1 in every answer."""
    first, second = asks(call("c1", "look")), asks(call("c1", "hear"))

    outcome = rendered(
        HI, first, Message.tool("1", "c1"), HI, second, Message.tool("2", "c1"), asks(call("c1-2"))
    )

    ids = [each.id for m in outcome.messages for each in m.tool_calls]
    assert ids == ["c1", "c1-2", "c1-2-2"]
    assert [m.content for m in outcome.messages if m.role is Role.TOOL] == ["1", "2", UNANSWERED]
    assert repairs(outcome) == ["renamed", "renamed", "unanswered"]


def test_calls_of_one_message_with_the_same_id_or_none():
    asked = asks(call("x"), call("x"), call(""), content=[CallRef("x"), Text("then"), CallRef("")])

    outcome = rendered(HI, asked, Message.tool("1", "x"), Message.tool("2", "x"))

    assert [each.id for each in outcome.messages[1].tool_calls] == ["x", "x-2", "call-1"]
    assert parts_of(outcome.messages[1]) == (CallRef("x"), Text("then"), CallRef("call-1"))
    assert [m.content for m in outcome.messages[2:]] == ["1", "2", UNANSWERED]


# What cannot stand where it stands


def test_what_cannot_stand_there_is_not_shown():
    odd = Message(
        Role.USER, [Thinking("secret"), Text(""), Text("words"), CallRef("x")], tool_calls=[call()]
    )

    outcome = rendered(odd)

    assert outcome.messages[0].content == (Text("words"),)
    assert outcome.messages[0].tool_calls == ()
    assert repairs(outcome) == ["misplaced", "misplaced", "misplaced"]


@pytest.mark.parametrize("content", [None, "", (), (Text(""),)])
def test_a_message_that_says_nothing_is_left_out(content):
    """S1-50."""
    outcome = rendered(HI, Message(Role.ASSISTANT, content), Message(Role.USER, content))

    assert outcome.messages == (HI,)
    assert repairs(outcome).count("empty") == 2


@pytest.mark.parametrize("part", [CallRef("x"), Thinking("hm")])
def test_a_user_message_is_not_dropped_because_nothing_in_it_can_be_shown(part):
    said = Message.user([part])

    outcome = rendered(HI, said)

    assert [each.id for each in outcome.messages] == [HI.id, said.id]
    assert outcome.messages[1].content == BLANK


def test_old_roles_are_todays():
    outcome = rendered(
        HI, Message(Role.MODEL, "yes", tool_calls=[call()]), Message(Role.MODEL, "x")
    )

    assert [m.role for m in outcome.messages] == ["user", "assistant", "tool", "assistant"]


# Anything


IDS = st.sampled_from(["a", "b", "a-2", "call-1", ""])
CALLS = st.builds(
    ToolCall,
    id=IDS,
    name=st.sampled_from(["look", "hear"]),
    arguments=st.just("{}"),
    output=st.sampled_from([None, None, "", "out"]),
    is_error=st.booleans(),
)
WORDS = st.sampled_from(["", "w1", "w2", "w3"])
PARTS = st.one_of(
    WORDS.map(Text),
    st.just(Thinking("t", "s")),
    IDS.map(CallRef),
    st.just(Image(url="https://a.b/c.png")),
    st.just(Opaque("vendor", {"a": 1})),
)
MESSAGES = st.builds(
    Message,
    st.sampled_from(Role),
    st.none() | WORDS | st.lists(PARTS, max_size=3),
    tool_calls=st.lists(CALLS, max_size=3),
    tool_call_id=st.none() | IDS,
    name=st.sampled_from([None, "look", "hear"]),
    is_error=st.booleans(),
)


@pytest.mark.usefixtures("uncovered")
@settings(max_examples=1_000)
@given(st.lists(MESSAGES, max_size=8))
def test_whatever_is_stored_can_be_sent(messages):
    """Total, idempotent, deterministic; and no word that was said is lost."""
    outcome = rendered(*messages)

    assert render(messages) == outcome
    said = " ".join(m.text or "" for m in outcome.messages)
    for message in messages:
        for word in (message.text or "").split():
            assert word in said
        for each in message.tool_calls:
            assert (each.output or "") in said
    assert len({m.id for m in outcome.messages}) == len(outcome.messages)


def tokens_of(message):
    """Any number that tells messages apart, a result from what stood in its place among them."""
    return 3 + len(message.text or "") + 7 * len(message.tool_calls) + 2 * message.is_error


@pytest.mark.usefixtures("uncovered")
@settings(max_examples=500)
@given(st.lists(MESSAGES, max_size=8), st.sets(st.integers(0, 7)))
def test_rendering_one_by_one_is_rendering_all(messages, looked_at):
    """Whenever somebody looks in between: what is shown, what was repaired, and its tokens."""
    renderer = Renderer(tokens_of)

    for at, message in enumerate(messages):
        renderer.add(message)
        if at in looked_at:
            assert renderer.rendered() == render(messages[: at + 1])
            assert renderer.total == sum(renderer.tokens)

    whole = render(messages)
    assert renderer.rendered() == whole
    assert list(renderer.tokens) == [tokens_of(each) for each in whole.messages]
    assert renderer.total == sum(renderer.tokens)


def test_a_message_more_is_counted_once():
    """And none that was counted before is counted again, but for the places of results."""
    counted = []
    renderer = Renderer(lambda message: counted.append(message.id) or 1)
    asked, late = asks(call("c1"), call("c2")), Message.tool("late", "c1")
    for message in (HI, asked, Message.tool("2", "c2")):
        renderer.add(message)
    before = (renderer.total, counted.copy())

    renderer.add(late)

    assert before[0] == renderer.total == 4
    assert counted == [*before[1], late.id]
    assert len(set(counted)) == len(counted)


@pytest.mark.skipif(
    not CONVERSATIONS, reason=f"no corpus of conversations in {CORPUS} (HOLDFAST_CORPUS)"
)
def test_real_conversations_can_be_sent_at_every_length(subtests):
    """Also when they are cut off anywhere, as a crash or a fold leaves them."""
    for path in CONVERSATIONS:
        with subtests.test(path=path.name), gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in list(lines)[:40]:
                raw = json.loads(line)["messages"][:60]
                messages = [m for each in raw for m in codec.read_plain(json.dumps(each))]
                messages = [m for m in messages if type(m) is Message]
                for at in range(0, len(messages), 7):
                    rendered(*messages[at:])
                    rendered(*messages[:at])
