"""Requests read into messages, compared in meaning, and found to follow each other."""

import copy
import dataclasses
import json

import pytest

import replay_fakes
import replay_recordings as ours
from holdfast.messages import Role
from holdfast.parts import File, Image, Opaque, Text, Thinking
from holdfast.testing.replay import meaning
from holdfast.testing.replay.history import conversation
from holdfast.testing.replay.history.google import camel, unwrapped
from holdfast.testing.replay.sequences import next_of


def of(wire, number=1):
    return conversation(ours.ALL[wire]().exchanges[number])


def with_body(wire, change):
    """The next request of a recording, changed by `change`."""
    exchange = ours.ALL[wire]().exchanges[1]
    body = copy.deepcopy(exchange.request)
    change(body)
    return conversation(dataclasses.replace(exchange, request=body))


def difference(wire, change):
    theirs, changed = of(wire), with_body(wire, change)
    assert meaning.same_system(changed, theirs)
    items = meaning.items(changed.messages)
    return meaning.difference(items, meaning.items(theirs.messages), wire)


def test_arguments_that_are_no_text_say_the_same():
    """As clients of Mistral send them."""

    def parse(body):
        for message in body["messages"]:
            for call in message.get("tool_calls") or ():
                call["function"]["arguments"] = json.loads(call["function"]["arguments"])

    assert any(message.calls for message in of("openai-chat").messages)
    assert difference("openai-chat", parse) is None


def test_a_reference_to_a_part_of_a_result_says_no_more_than_the_part():
    """One that names no part is what the tool said."""
    picture = {"inlineData": {"mimeType": "image/png", "data": "iVBO", "displayName": "p-1"}}

    def said(response):
        def change(body):
            body["contents"][2]["parts"][0]["functionResponse"] |= {
                "response": response,
                "parts": [picture],
            }

        return with_body("google", change).messages[2].content[0].text

    assert said({"rain": True, "media": [{"$ref": "p-1"}]}) == '{"rain": true}'
    assert said({"result": "It will.", "image": {"$ref": "p-1"}}) == "It will."
    assert said({"media": [{"$ref": "p-2"}]}) == '{"media": [{"$ref": "p-2"}]}'
    assert said({"none": None, "empty": []}) == '{"none": null, "empty": []}'


@pytest.mark.parametrize("wire", ours.ALL)
def test_a_request_is_read_into_messages(wire):
    read = of(wire)
    user, answer, result = read.messages[:3]

    assert (user.role, user.content) == (Role.USER, "Will it rain in Turin?")
    assert answer.text == "One moment…"
    assert [call.name for call in answer.calls] == ["weather"]
    assert (result.role, result.content) == (Role.TOOL, "It will.")
    assert result.tool_call_id == answer.calls[0].id
    assert read.system == "Be brief."
    assert [tool.name for tool in read.tools] == ["weather"]
    assert answer.model == read.settings.model


def test_what_only_one_vendor_knows_is_opaque():
    content = of("anthropic").messages[1].content
    kinds = [type(part) for part in content]

    assert kinds == [Thinking, Thinking, Text, Opaque, Opaque]
    assert content[0].signature == ours.SEALED
    assert content[1].redacted
    assert content[3].data["name"] == "web_search"
    assert [type(p) for p in of("openai-responses").messages[1].content] == [Thinking, Text]
    assert of("google").messages[1].tool_calls[0].signature == ours.SEALED


def test_media_are_read_as_what_they_are():
    png = "data:image/png;base64,aGVsbG8="
    parts = [
        {"type": "text", "text": "Look."},
        {"type": "image_url", "image_url": {"url": png}},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,aGVsbG8="}},
    ]
    body = {"model": "x", "messages": [{"role": "user", "content": parts}]}
    exchange = ours.made("openai-chat", ours.exchange("chat-completions", "/", body, {}))

    (message,) = conversation(exchange.exchanges[0]).messages

    assert message.content[1:] == (
        Image(data=b"hello", media_type="image/png"),
        Image(url="https://example.com/a.png"),
        File(data=b"hello", media_type="application/pdf"),
    )


def test_google_is_read_in_both_spellings():
    """Names of the wire are changed, names in arguments are not."""
    raw = {"function_call": {"name": "f", "args": {"a_b": {"c_d": 1}}}, "thought_signature": "x"}

    assert camel(raw) == {
        "functionCall": {"name": "f", "args": {"a_b": {"c_d": 1}}},
        "thoughtSignature": "x",
    }
    assert unwrapped({"result": "It will."}) == "It will."
    assert unwrapped({"rain": True, "mm": 3}) == '{"rain": true, "mm": 3}'


# ---- the same in other words ----


def text_as_block(body):
    body["messages"][0]["content"] = [
        {"type": "text", "text": "Will it rain ", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "in Turin?"},
    ]


def results_apart(body):
    *rest, last = body["messages"]
    body["messages"] = rest + [{**last, "content": [block]} for block in last["content"]]


def system_as_blocks(body):
    body["system"] = [{"type": "text", "text": "Be brief."}]


def system_as_developer(body):
    body["messages"][0]["role"] = "developer"


def system_as_message(body):
    said = body.pop("instructions")
    body["input"].insert(0, {"role": "developer", "content": said})


def without_item_ids(body):
    body["input"] = [{k: v for k, v in i.items() if k != "id"} for i in body["input"]]


def other_wrapper(body):
    response = body["contents"][2]["parts"][0]["functionResponse"]
    response["response"] = {"output": '"It will."'}


def ids_of_its_own(body):
    body["contents"][1]["parts"][2]["functionCall"]["id"] = "x"
    body["contents"][2]["parts"][0]["functionResponse"]["id"] = "x"


def other_alphabet(body):
    part = body["contents"][1]["parts"][2]
    part["thought_signature"] = part.pop("thoughtSignature").rstrip("=")


@pytest.mark.parametrize(
    ("wire", "change"),
    [
        ("anthropic", text_as_block),
        ("anthropic", results_apart),
        ("anthropic", system_as_blocks),
        ("openai-chat", system_as_developer),
        ("openai-responses", system_as_message),
        ("openai-responses", without_item_ids),
        ("google", other_wrapper),
        ("google", ids_of_its_own),
        ("google", other_alphabet),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_what_a_vendor_does_not_care_about_makes_no_difference(wire, change):
    assert difference(wire, change) is None


# ---- something else ----


def other_role(body):
    body["messages"][0]["role"] = "assistant"


def other_text(body):
    body["messages"][0]["content"] = "Will it rain in Tunis?"


def lost_signature(body):
    body["messages"][1]["content"][0]["signature"] = "x"


def lost_thinking(body):
    del body["messages"][1]["content"][0]


def lost_block(body):
    del body["messages"][1]["content"][4]


def other_id(body):
    body["messages"][1]["content"][5]["id"] = "toolu_2"
    body["messages"][2]["content"][0]["tool_use_id"] = "toolu_2"


def other_arguments(body):
    body["messages"][2]["tool_calls"][0]["function"]["arguments"] = '{"city": "Tunis"}'


def other_name(body):
    body["messages"][2]["tool_calls"][0]["function"]["name"] = "wether"


def lost_result(body):
    body["messages"].pop()


def other_result(body):
    body["messages"][-1]["content"] = "It will not."


def result_of_another(body):
    body["messages"][-1]["tool_call_id"] = "call_2"


def lost_reasoning(body):
    body["input"].pop(1)


def lost_thought_signature(body):
    del body["contents"][1]["parts"][2]["thoughtSignature"]


@pytest.mark.parametrize(
    ("wire", "change"),
    [
        *[("anthropic", c) for c in (other_role, other_text, lost_signature, lost_thinking)],
        *[("anthropic", c) for c in (lost_block, other_id)],
        *[("openai-chat", c) for c in (other_arguments, other_name, lost_result, other_result)],
        ("openai-chat", result_of_another),
        ("openai-responses", lost_reasoning),
        ("google", lost_thought_signature),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_difference_is_found(wire, change):
    assert difference(wire, change)


@pytest.mark.parametrize("wire", ours.ALL)
def test_a_request_written_again_says_the_same(wire):
    """From the body to messages, to a body in its plainest form, to messages."""
    theirs = of(wire)
    exchange = ours.ALL[wire]().exchanges[1]
    body = replay_fakes.BODIES[wire](theirs)

    again = conversation(dataclasses.replace(exchange, request=body))

    items = meaning.items(again.messages), meaning.items(theirs.messages)
    assert meaning.difference(*items, wire) is None
    assert meaning.same_system(again, theirs)


@pytest.mark.parametrize("wire", ours.ALL)
def test_the_next_request_is_found(wire):
    recording = ours.ALL[wire]()

    following = next_of(recording, 0)

    assert following.exchange.number == 1
    assert [message.role for message in following.answer] == [Role.ASSISTANT]
    assert following.tail[0].content == "It will."
    assert next_of(recording, 1) is None


def test_another_conversation_is_not_the_next():
    first = ours.exchange("messages", "/", ours.ANTHROPIC_ASKED, ours.ANTHROPIC_ANSWER)
    body = copy.deepcopy(ours.ANTHROPIC_NEXT)
    body["messages"][0]["content"] = "Will it snow?"
    other = ours.exchange("messages", "/", body, ours.ANTHROPIC_ANSWER)
    answer = copy.deepcopy(ours.ANTHROPIC_ANSWER)
    answer["content"][5]["input"] = {"city": "Tunis"}
    twice = ours.exchange("messages", "/", ours.ANTHROPIC_ASKED, answer)
    following = ours.exchange("messages", "/", ours.ANTHROPIC_NEXT, ours.ANTHROPIC_ANSWER)

    assert next_of(ours.made("anthropic", first, other), 0) is None
    assert next_of(ours.made("anthropic", twice, following), 0) is None


def test_an_answer_that_the_service_remembers_is_followed_too():
    first = ours.exchange("responses", "/", ours.RESPONSES_ASKED, ours.RESPONSE)
    output = {"type": "function_call_output", "call_id": "call_1", "output": "It will."}
    body = {"model": "gpt-x", "previous_response_id": "resp_1", "input": [output]}
    second = ours.exchange("responses", "/", body, ours.RESPONSE)

    following = next_of(ours.made("openai-responses", first, second), 0)

    assert following.is_remembered
    assert [message.content for message in following.tail] == ["It will."]
