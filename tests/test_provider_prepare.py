"""A conversation as one target takes it: what is changed, what is told, and what is not touched."""

import pickle
import re
from random import Random

import pytest

from holdfast.messages import Message, Role, ToolCall
from holdfast.notes import BLANK, CONTINUE
from holdfast.parts import CallRef, File, Image, Opaque, Text, Thinking, Unknown
from holdfast.providers.names import Spelling
from holdfast.providers.prepare import Rules, prepare
from holdfast.tools import Tool
from holdfast.window.render import render
from random_histories import history, tools

SPELLING = Spelling(re.compile(r"[^A-Za-z0-9_-]"), 64)
RULES = Rules(
    "acme",
    tool_name=SPELLING,
    call_id=SPELLING,
    first_is_user=True,
    last_is_user=True,
    has_blank_text=False,
    binds_prefix=True,
    takes=lambda part, role: type(part) is Image and role is not Role.ASSISTANT,
)
HI, BYE = Message.user("hi"), Message.user("bye")


class Wire:
    """A target that counts how many messages it was asked to write."""

    def __init__(self, rules=RULES, model="one"):
        self.rules = rules
        self.name = f"acme:{model}"
        self.written = 0

    def fragment(self, message):
        self.written += 1
        return message.id


ONE = "acme:one"


def prepared(*messages, wire=None, system=None, offered=()):
    return prepare(wire or Wire(), messages, system, tuple(offered))


def whats(outcome):
    return [each.what for each in outcome.repairs]


def test_what_the_target_takes_is_passed_on_as_it_is():
    call = ToolCall(id="c1", name="look", arguments="{}")
    asked = Message.assistant([Thinking("hm", "sig"), Text("I see.")], [call], model=ONE)
    messages = (HI, asked, Message.tool("sunny", "c1", name="look"))

    outcome = prepared(*messages, offered=[Tool("look")])

    assert all(a is b for a, b in zip(outcome.messages, messages, strict=True))
    assert outcome.fragments == [message.id for message in messages]
    assert outcome.repairs == ()


# Names and ids


def test_names_and_ids_are_fitted_in_calls_results_and_places_alike():
    call = ToolCall(id="c 1", name="fs.read", arguments="{}")
    asked = Message.assistant([CallRef("c 1"), Text("and now")], [call])

    outcome = prepared(HI, asked, Message.tool("text", "c 1"), offered=[Tool("fs.read")])

    _, sent, result = outcome.messages
    (called,) = sent.tool_calls
    assert called.name == result.name == outcome.tools[0].name == "fs_read"
    assert called.id == result.tool_call_id == sent.content[0].id
    assert re.fullmatch("[A-Za-z0-9_-]+", called.id)
    assert outcome.names == {"fs_read": "fs.read"}
    assert [(each.what, each.part, each.became) for each in outcome.repairs] == [
        ("refitted", "id", called.id),
        ("refitted", "name", "fs_read"),
    ]


def test_names_are_those_of_one_conversation():
    """B44: what another conversation offers under the same name changes nothing here."""
    ours, theirs = [Tool("math.add")], [Tool("math add")]

    found = [prepared(HI, offered=tools).names for tools in (ours, theirs, ours)]

    assert found == [{"math_add": "math.add"}, {"math_add": "math add"}, {"math_add": "math.add"}]


def test_only_what_is_passed_is_offered():
    """S3-37: the list of tools is the one source; what the history called is no part of it."""
    asked = Message.assistant(None, [ToolCall(id="c1", name="gone", arguments="{}")])

    assert prepared(HI, asked).tools == ()
    assert [tool.name for tool in prepared(HI, asked, offered=[Tool("look")]).tools] == ["look"]


def test_a_result_is_named_for_its_call():
    """Whoever wrote it, and whatever it was called then: some targets match by name."""
    call = ToolCall(id="c1", name="look", arguments="{}")

    outcome = prepared(HI, Message.assistant(None, [call]), Message.tool("1", "c1", name="other"))

    assert outcome.messages[-1].name == "look"


# Roles


def test_system_messages_go_into_the_instruction_where_there_is_no_such_role():
    outcome = prepared(Message.system("Be kind."), HI, Message.system("Be brief."), system="Be.")

    assert outcome.system == "Be.\n\nBe kind.\n\nBe brief."
    assert outcome.messages == [HI]
    assert [(each.what, each.part) for each in outcome.repairs] == [("recast", "system")] * 2


def test_what_an_instruction_cannot_hold_is_told():
    """It holds words alone: a picture in a system message is not shown there."""
    said = Message.system([Text("Look."), Image(data=b"\x89PNG")])

    outcome = prepared(said, HI)

    assert outcome.system == "Look."
    assert [(each.what, each.part) for each in outcome.repairs] == [
        ("recast", "system"),
        ("not shown", "image"),
    ]


def test_system_messages_stay_where_there_is_such_a_role():
    rules = RULES._replace(has_system_role=True)
    messages = (Message.system("Be kind."), HI)

    outcome = prepared(*messages, wire=Wire(rules), system="Be.")

    assert (outcome.system, outcome.messages) == ("Be.", list(messages))


@pytest.mark.parametrize("messages", [(), (Message.system("x"),), (Message.assistant("hello"),)])
def test_the_user_has_the_first_and_the_last_word(messages):
    outcome = prepared(*messages)

    assert outcome.messages[0].role is outcome.messages[-1].role is Role.USER
    assert {each.content for each in outcome.messages if each.role is Role.USER} == {CONTINUE}
    assert all(each.synthetic for each in outcome.messages if each.role is Role.USER)
    assert set(whats(outcome)) - {"recast"} == {"continued"}
    assert prepared(*messages).messages == outcome.messages or messages == ()


# Thinking


def thought(model=ONE, prefix=None, text="Turin."):
    return Message.assistant([Thinking("hm", "sig"), Text(text)], model=model, prefix=prefix)


def test_thinking_goes_back_to_the_model_that_thought_it():
    outcome = prepared(HI, thought(), BYE)

    assert type(outcome.messages[1].content[0]) is Thinking


@pytest.mark.parametrize("model", [None, "acme:two", "other:one"])
def test_thinking_goes_to_no_other_model(model):
    outcome = prepared(HI, thought(model), BYE)

    assert outcome.messages[1].content == (Text("Turin."),)
    assert whats(outcome) == ["stripped"]


def test_thinking_that_was_signed_under_this_prefix_is_kept():
    """The digest of a request is what a later request finds before the answer to it."""
    prefix = prepared(HI, system="Be.", offered=[Tool("look")]).prefix

    outcome = prepared(HI, thought(prefix=prefix), BYE, system="Be.", offered=[Tool("look")])

    assert type(outcome.messages[1].content[0]) is Thinking
    assert outcome.repairs == ()


@pytest.mark.parametrize(
    "changed",
    [
        {"system": "Be quick."},
        {"offered": [Tool("look", "Looks.")]},
        {"messages": (Message.user("hi there"),)},
        {"messages": (HI, Message.assistant("What?"))},
        {"messages": ()},
    ],
    ids=["system", "tools", "words", "one more", "one less"],
)
def test_thinking_whose_prefix_has_changed_is_stripped(changed):
    base = {"messages": (HI,), "system": "Be.", "offered": [Tool("look")]}
    prefix = prepared(*base["messages"], system="Be.", offered=base["offered"]).prefix
    now = base | changed

    outcome = prepared(
        *now["messages"], thought(prefix=prefix), BYE, system=now["system"], offered=now["offered"]
    )

    assert "stripped" in whats(outcome)
    assert all(
        type(part) is not Thinking
        for each in outcome.messages
        if isinstance(each.content, tuple)
        for part in each.content
    )


def test_a_system_message_that_comes_late_changes_what_thinking_was_signed_under():
    """It is told in the system instruction, in front of all that was signed before it came. One
    that was there from the beginning is no change."""
    early = Message.system("Be kind.")
    prefix = prepared(early, HI, system="Be.").prefix
    said = (early, HI, thought(prefix=prefix))

    kept = prepared(*said, BYE, system="Be.")
    outcome = prepared(*said, Message.system("Be brief."), BYE, system="Be.")

    assert "stripped" not in whats(kept) and "stripped" in whats(outcome)
    again = thought(prefix=outcome.prefix, text="Rome.")
    later = prepared(*said, Message.system("Be brief."), BYE, again, HI, system="Be.")
    assert [each.message_id for each in later.repairs if each.what == "stripped"] == [said[2].id]


def test_exactly_the_blocks_behind_the_change_are_stripped():
    """What stood before an edit was signed under a prefix that is still there."""
    first = thought(prefix=prepared(HI).prefix)
    edited = Message.user("something else")
    second = thought(prefix=prepared(HI, first, BYE).prefix, text="Rome.")

    kept = prepared(HI, first, BYE, second, BYE)
    outcome = prepared(HI, first, edited, second, BYE)

    assert whats(kept) == []
    assert [each.message_id for each in outcome.repairs] == [second.id]
    assert type(outcome.messages[1].content[0]) is Thinking


def test_a_prefix_is_about_what_was_said_and_not_about_who_stored_it_when():
    again = Message.user("hi")

    assert again.id != HI.id
    assert prepared(again).prefix == prepared(HI).prefix


def test_a_target_that_signs_thinking_alone_keeps_it_behind_any_prefix():
    wire = Wire(RULES._replace(binds_prefix=False))

    outcome = prepared(HI, thought(prefix="00"), BYE, wire=wire)

    assert type(outcome.messages[1].content[0]) is Thinking
    assert outcome.prefix is None


def test_switching_back_is_lossless():
    """Another model's answer in between changes nothing about what stood before it."""
    first = thought(prefix=prepared(HI).prefix)
    between = Message.assistant("From another.", model="other:model")

    outcome = prepared(HI, first, BYE, between, BYE)

    assert outcome.messages[1] is first


def test_signatures_and_opaque_blocks_are_for_their_own_model():
    call = ToolCall(id="c1", name="look", arguments="{}", signature="sig")
    parts = [Text("a", extra={"signature": "s"}), Opaque("acme", {"x": 1}), Opaque("b", {"x": 1})]

    own = prepared(HI, Message.assistant(parts, [call], model=ONE), Message.tool("1", "c1"))
    other = prepared(
        HI, Message.assistant(parts, [call], model="acme:two"), Message.tool("1", "c1")
    )

    assert own.messages[1].content == (parts[0], parts[1])
    assert own.messages[1].tool_calls == (call,)
    assert other.messages[1].content == (Text("a"),)
    assert other.messages[1].tool_calls[0].signature is None
    assert [each.part for each in own.repairs] == ["opaque"]
    assert [each.part for each in other.repairs] == ["signature", "opaque", "opaque", "signature"]


# Content


def test_media_that_the_target_does_not_take_is_named_in_its_place():
    picture, paper = Image(data=b"\x89PNG"), File(data=b"%PDF", name="a.pdf")
    stored = Image(blob="ab" * 16)

    outcome = prepared(Message.user([picture, paper, stored, Text("look")]))

    first, second, third, last = outcome.messages[0].content
    assert first is picture and last == Text("look")
    assert "file" in second.text and "image" in third.text
    assert whats(outcome) == ["not shown", "not shown"]


def test_a_result_that_failed_is_words_where_nothing_else_is_taken():
    """Anthropic refuses a picture in a result that is an error; others take it."""
    call = ToolCall(id="c1", name="look", arguments="{}")
    failed = Message.tool([Text("no"), Image(data=b"\x89PNG")], "c1", is_error=True)
    said = (HI, Message.assistant(None, [call]), failed)

    strict = prepared(*said, wire=Wire(RULES._replace(takes_in_failure=False)))

    assert [part.text for part in strict.messages[-1].content] == [
        "no",
        "[image that this model is not shown]",
    ]
    assert prepared(*said).messages[-1].content == failed.content


@pytest.mark.parametrize(
    "content",
    ["", " \n", None, [], [Text(" ")], [Opaque("other", {"x": 1})], [Unknown({"type": "later"})]],
    ids=["empty", "blank", "none", "no parts", "blank part", "opaque", "unknown"],
)
def test_a_blank_message_says_nothing_wrong(content):
    """A user's is shown as long as it held anything; an assistant's is left out."""
    said = Message.user(content)

    outcome = prepared(HI, said, Message.assistant(content), BYE)

    shown = [each for each in outcome.messages if each.id == said.id]
    assert [each.text for each in shown] == ([BLANK] if content else []) or "unknown" in shown[
        0
    ].text
    assert all(each.text and each.text.strip() for each in outcome.messages)
    assert [each.role for each in outcome.messages[-2:]] != [Role.ASSISTANT, Role.ASSISTANT]


# What is kept for the next time


def test_the_next_window_writes_only_what_is_new():
    wire = Wire()
    call = ToolCall(id="c1", name="fs.read", arguments="{}")
    shown = render([HI, Message.assistant(None, [call]), Message.tool("1", "c1")]).messages
    first = prepare(wire, shown, "Be.", (Tool("fs.read"),))
    assert wire.written == 3

    longer = render([*shown, Message.assistant("It is 1."), BYE], last=shown).messages
    second = prepare(wire, longer, "Be.", (Tool("fs.read"),))

    assert wire.written == 5
    assert second == prepare(Wire(), tuple(longer), "Be.", (Tool("fs.read"),))
    assert first.messages == second.messages[:3] and len(first.messages) == 3


@pytest.mark.parametrize("seed", range(60))
def test_what_is_kept_is_never_seen_in_the_outcome(seed):
    """Windows that grow, shrink, change and change heads come out as if each were the first."""
    random, wire, shown = Random(seed), Wire(), None
    said = history(random)
    for _ in range(6):
        what = random.random()
        if what < 0.6:
            said = said + history(random)[:2]
        elif what < 0.8:
            said = said[random.randrange(len(said) + 1) :]
        else:
            said = said[: random.randrange(len(said) + 1)]
        system, offered = random.choice(["Be.", "Be."]), tuple(tools(Random(seed // 2)))
        if random.random() < 0.2:
            system = "Be other."
        shown = render(said, last=shown).messages

        kept = prepare(wire, shown, system, offered)

        fresh = prepare(Wire(), render(said).messages, system, offered)
        assert kept[1:] == fresh[1:]
        assert list(kept.messages) == list(fresh.messages) or not said


def test_a_window_is_pickled_without_what_was_made_of_it():
    shown = render([HI]).messages
    prepare(Wire(), shown, None, ())

    again = pickle.loads(pickle.dumps(shown))

    assert again == shown and type(again) is type(shown) and again.made == {}
    assert again.repairs == shown.repairs


def test_what_was_done_to_a_window_is_told_by_whoever_prepares_it():
    call = ToolCall(id="c1", name="look", arguments="{}")

    shown = render([HI, Message.assistant(None, [call])]).messages

    assert whats(prepare(Wire(), shown, None, ())) == ["unanswered"]


@pytest.mark.parametrize("seed", range(300))
def test_any_history_can_be_prepared_and_no_user_message_is_lost(seed):
    random = Random(seed)
    said, offered = history(random), tools(random)

    outcome = prepared(*said, offered=offered)

    sent = {each.id for each in outcome.messages}
    assert outcome.messages[0].role is Role.USER
    assert outcome.messages[-1].role is not Role.ASSISTANT
    for message in said:
        if message.role is Role.USER and message.content and not message.results:
            assert message.id in sent, "a user's message was dropped"
    again = prepare(Wire(), tuple(outcome.messages), None, tuple(offered))
    assert [each.content for each in again.messages] == [each.content for each in outcome.messages]
