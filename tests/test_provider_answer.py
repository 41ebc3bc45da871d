"""An answer while it comes in: the message it becomes, and who hears what of it in which order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import ProtocolError
from holdfast.messages import Stop, ToolCall
from holdfast.parts import CallRef, Opaque, Text, Thinking
from holdfast.providers import fields
from holdfast.providers.answer import CALLS_MAX, Answer
from holdfast.providers.base import Callbacks
from holdfast.usage import Usage


class Heard(list):
    """What the callbacks were told, in order."""

    @property
    def callbacks(self):
        return Callbacks(
            on_chunk=lambda text: self.append(("text", text)),
            on_thinking=lambda text: self.append(("thinking", text)),
            on_tool_call=lambda call: self.append(("call", call)),
            on_usage_update=lambda usage: self.append(("usage", usage)),
        )


def answer(heard=None, **options):
    return Answer("acme:one", callbacks=None if heard is None else heard.callbacks, **options)


# Words


def test_plain_words_become_plain_text():
    one = answer()
    one.add_text("Tu")
    one.add_text("rin")
    one.stopped(Stop.STOP)

    response = one.response()

    assert (response.message.content, response.text, response.stop) == ("Turin", "Turin", "stop")
    assert response.message.model == "acme:one"
    assert str(response) == "Turin"


def test_everything_is_told_in_the_order_in_which_it_came():
    heard = Heard()
    one = answer(heard)
    one.add_thinking("hm")
    one.add_text("Let me look.")
    one.begin_call(0, id="c1", name="look")
    one.add_arguments(0, '{"a"')
    one.add_arguments(0, ": 1}")
    one.end_call(0)
    one.add_text("Done.")

    assert [kind for kind, _ in heard] == ["thinking", "text", "call", "text"]
    assert heard[2][1] == ToolCall(id="c1", name="look", arguments='{"a": 1}')
    assert one.response().message.content == (
        Thinking("hm"),
        Text("Let me look."),
        CallRef("c1"),
        Text("Done."),
    )


def test_a_call_that_nothing_follows_needs_no_place():
    one = answer()
    one.add_text("Let me look.")
    one.end_call(0, arguments="{}")
    one.end_call(1, arguments="{}")

    message = one.response().message

    assert message.content == "Let me look."
    assert len(message.tool_calls) == 2


def test_blocks_of_the_same_kind_stay_apart_if_the_vendor_says_so():
    one = answer()
    one.begin_block()
    one.add_text("a")
    one.note(citations=[{"url": "x"}])
    one.end_block()
    one.begin_block()
    one.add_text("b")
    one.begin_block()  # and nothing in it

    assert one.response().message.content == (Text("a", {"citations": [{"url": "x"}]}), Text("b"))


def test_a_signature_comes_in_pieces_and_is_kept_without_words():
    one = answer(prefix="abc")
    one.begin_block(is_thinking=True)
    one.sign("si")
    one.sign("g")
    one.end_block()
    one.add_redacted("sealed")
    one.add_text("Turin")

    message = one.response().message

    assert message.content == (
        Thinking("", "sig"),
        Thinking("", "sealed", redacted=True),
        Text("Turin"),
    )
    assert message.prefix == "abc"


def test_an_answer_without_thinking_has_no_prefix():
    one = answer(prefix="abc")
    one.add_text("Turin")

    assert one.response().message.prefix is None


def test_a_block_without_a_form_of_ours_is_kept_as_it_came():
    one = answer()
    one.add_opaque("acme", {"type": "thing", "deep": [1, {"a": None}]})

    assert one.response().message.content == (
        Opaque("acme", {"type": "thing", "deep": [1, {"a": None}]}),
    )


# Characters


@given(st.text(st.characters(exclude_categories=()), max_size=12), st.data())
def test_however_text_is_cut_no_half_character_gets_through(text, data):
    """A pair that is cut in two is put together; half a pair is U+FFFD, and counted."""
    heard = Heard()
    one = answer(heard)
    units = text.encode("utf-16-le", "surrogatepass")
    pieces = [
        units[at : at + 2].decode("utf-16-le", "surrogatepass") for at in range(0, len(units), 2)
    ]
    while pieces:
        count = data.draw(st.integers(1, len(pieces)))
        one.add_text("".join(pieces[:count]))
        del pieces[:count]

    said = one.response().text or ""

    assert said == units.decode("utf-16-le", "replace")
    said.encode()
    for _, told in heard:
        told.encode()


def test_half_a_pair_is_marked():
    one = answer()
    one.add_text("a\ud83d")
    one.add_text("b")

    message = one.response().message

    assert (message.content, message.extra) == ("a\ufffdb", {"mended": 1})


# Calls


def test_calls_can_be_written_at_the_same_time():
    one = answer()
    one.begin_call("x", id="c1", name="look")
    one.begin_call("y", id="c2", name="find")
    one.add_arguments("y", "[")
    one.add_arguments("x", "{}")
    one.add_arguments("y", "]")
    one.end_calls()

    first, second = one.response().calls

    assert (first.id, first.arguments, second.name, second.arguments) == ("c1", "{}", "find", "[]")


def test_names_are_ours_again():
    one = answer(names={"fs_read": "fs.read"})
    one.begin_call(0, id="c1", name="fs_read")
    one.end_call(0)

    assert one.response().calls == (ToolCall(id="c1", name="fs.read", arguments="{}"),)


def test_a_call_without_an_id_gets_one():
    """S1-49: and no other call gets the same."""
    one = answer(new_id=iter(["1", "2"]).__next__)
    one.end_call(0, arguments="{}")
    one.end_call(1, arguments="{}")

    assert [call.id for call in one.response().calls] == ["call_1", "call_2"]


def test_two_calls_with_one_id_are_told_apart():
    """Some compatible servers give the same to both; each result has its call."""
    one = answer(new_id=iter(["1"]).__next__)
    one.begin_call(0, id="call_0", name="look")
    one.begin_call(1, id="call_0", name="find")
    one.end_calls()

    assert [(call.id, call.name) for call in one.response().calls] == [
        ("call_0", "look"),
        ("call_1", "find"),
    ]


def test_a_call_is_told_once():
    heard = Heard()
    one = answer(heard)
    one.begin_call(0, id="c1", name="look")
    one.begin_call(0, id="c9", name="other")
    one.end_call(0, arguments="{}")
    one.end_call(0, arguments='{"again": 1}')

    assert [call.id for _, call in heard] == ["c1"]
    assert one.response().calls[0].arguments == "{}"


def test_an_answer_does_not_grow_for_ever():
    one = answer()
    for key in range(CALLS_MAX):
        one.begin_call(key)

    with pytest.raises(ProtocolError):
        one.begin_call(CALLS_MAX)


# What broke off


def test_what_broke_off_is_there_without_calls_that_were_not_complete():
    one = answer()
    one.add_text("Let me")
    one.end_call(0, arguments="{}")
    one.begin_call(1, id="c2", name="look")
    one.add_arguments(1, '{"a')

    partial = one.partial()

    assert (partial.text, len(partial.calls), partial.stop) == ("Let me", 1, "error")
    assert one.partial(Stop.CANCELLED).stop == "cancelled"


def test_where_nothing_came_there_is_nothing():
    assert answer().partial() is None


# Facts


def test_usage_is_told_when_more_of_it_is_known():
    """S2-12: on_usage_update gets one Usage."""
    heard = Heard()
    one = answer(heard)
    one.used(input=10, cache_read=4)
    one.used(input=10, output=None)
    one.used(output=3)

    assert [usage for _, usage in heard] == [Usage(10, None, 4), Usage(10, 3, 4)]
    assert one.response().usage == Usage(10, 3, 4)


def test_facts_of_the_service_are_kept():
    one = answer()
    one.about(model="one-2026", id="msg_1", request_id="req_1", tier="std", nothing=None)
    one.about(model=None)

    response = one.response()

    assert (response.model, response.id, response.request_id) == ("one-2026", "msg_1", "req_1")
    assert response.extra == {"tier": "std"}
    assert response.stop == Stop.UNKNOWN


def test_odd_json_of_a_service_is_kept_as_far_as_it_goes():
    one = answer()
    one.about(odd={"half": "\ud83d", "nan": float("nan"), "big": 2**80})

    assert one.response().extra["odd"] == {"half": "\ufffd", "nan": None, "big": 2**80}


def test_json_that_is_too_deep_to_be_kept_is_a_protocol_error():
    deep = {}
    for _ in range(500):
        deep = {"a": deep}

    with pytest.raises(ProtocolError):
        answer().add_opaque("acme", deep)


# JSON of a service


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"a": "\\ud83d"}', {"a": "\ud83d"}),
        (b'{"a": "\xff"}', {"a": "\ufffd"}),
        (b'{"a": NaN}', {"a": pytest.approx(float("nan"), nan_ok=True)}),
        (b'{"a": 1e999}', {"a": float("inf")}),
    ],
)
def test_json_that_is_almost_right_is_read(data, value):
    assert fields.decode(data) == value


@pytest.mark.parametrize("data", [b"", b"{", b"<html>", b"[" * 100_000, b'"a" "b"'])
def test_what_is_no_json_is_a_protocol_error(data):
    with pytest.raises(ProtocolError):
        fields.decode(data)


@pytest.mark.parametrize("data", [b"[]", b"1", b"null", b'"x"'])
def test_an_answer_is_an_object(data):
    with pytest.raises(ProtocolError):
        fields.decode_object(data)


@pytest.mark.parametrize(
    "count", [-1, 10**13, "5", 1.5, True, None, [1], {"a": 1}, float("inf"), float("nan")]
)
def test_a_count_that_makes_no_sense_is_none(count):
    assert fields.count_of({"n": count}, "n") is None


def test_counts_are_taken():
    assert (fields.count_of({"n": 5}, "n"), fields.count_of({"n": 5.0}, "n")) == (5, 5)


@pytest.mark.parametrize("read", [fields.text_of, fields.object_of, fields.objects_of])
@pytest.mark.parametrize("value", [1, True, ["a"], "x", {"a": 1}, 1.5])
def test_a_field_of_the_wrong_type_is_named(read, value):
    right = {fields.text_of: str, fields.object_of: dict, fields.objects_of: list}[read]
    if type(value) is right and value != ["a"]:
        assert read({"field": value}, "field") == value
        return

    with pytest.raises(ProtocolError, match="field"):
        read({"field": value}, "field")
