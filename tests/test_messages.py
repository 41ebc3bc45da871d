"""Messages: constructors, what each field takes, text, calls and results in every style."""

import copy
import pickle
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidInput
from holdfast.frozen import EMPTY, FrozenDict, thaw
from holdfast.messages import Message, Result, Role, Stop, ToolCall, opening
from holdfast.parts import Audio, CallRef, File, Image, Opaque, Text, Thinking, Unknown

WHEN = datetime(2026, 3, 1, 12, 30, 15, 123456, tzinfo=UTC)

CALL = ToolCall(id="call_1", name="search", arguments='{"q": "x"}')


def output(id, text="done", **fields):
    return ToolCall(id=id, name=f"tool_{id}", arguments="{}", output=text, **fields)


# ---- roles


def test_the_roles_are_the_four_and_two_older_spellings():
    """S0-3, S1-4, A3: exactly these, in exactly these letters."""
    assert [role.value for role in Role] == [
        "system",
        "user",
        "assistant",
        "tool",
        "function",
        "model",
    ]
    assert all(isinstance(role, str) and role == role.value for role in Role)


@pytest.mark.parametrize("role", Role, ids=str)
def test_a_role_is_kept_as_it_was_spelled(role):
    """A3, S0-12: accepted on input, and never turned into its newer spelling."""
    message = Message(role, "x")

    assert message.role is role
    assert message.replace(content="y").role is role
    assert pickle.loads(pickle.dumps(message)).role is role
    assert Role.of(role.value) is role
    assert Role.of(str(role)) is role


@pytest.mark.parametrize(
    ("spelled", "canonical"),
    [
        ("system", "system"),
        ("user", "user"),
        ("assistant", "assistant"),
        ("tool", "tool"),
        ("function", "tool"),
        ("model", "assistant"),
    ],
    ids=lambda name: name,
)
def test_a_role_has_a_canonical_form(spelled, canonical):
    """S1-32, S3-5, S3-6, S3-7, A3: model is assistant, function is tool, others stay."""
    assert Role.of(spelled).canonical is Role(canonical)
    assert Role.of(spelled).canonical.canonical is Role(canonical)


@pytest.mark.parametrize(
    "bad",
    [
        "SYSTEM",
        "developer",
        "",
        " user",
        "user\0",
        "Role.USER",
        "\ud800",
        None,
        1,
        b"user",
        ["user"],
    ],
    ids=[
        "upper",
        "developer",
        "empty",
        "space",
        "nul",
        "repr",
        "sur",
        "none",
        "int",
        "bytes",
        "list",
    ],
)
def test_an_unknown_role_is_refused(bad):
    """Bad inputs 43, S3-7: not read as `user`, as a predecessor did."""
    with pytest.raises(InvalidInput, match="role"):
        Role.of(bad)
    with pytest.raises(InvalidInput, match="role"):
        Message(bad, "x")


def test_a_role_given_as_text_is_a_role_afterwards_or_refused():
    """S0-10, S1-5: inside, there are no raw role strings."""
    try:
        message = Message("user", "x")
    except InvalidInput:
        return

    assert message.role is Role.USER


# ---- constructors


def test_a_message_with_role_and_content_has_nothing_else():
    """S0-9, S0-6, S2-17: what was not given is empty; an id and a time are there from the start."""
    before = datetime.now(UTC)
    message = Message(Role.USER, "hi")
    after = datetime.now(UTC)

    assert (message.role, message.content) == (Role.USER, "hi")
    assert message.tool_calls == ()
    assert message.is_error is False
    for name in ("tool_call_id", "name", "author", "model", "prefix", "stop", "synthetic"):
        assert getattr(message, name) is None
    assert message.extra == {}
    assert type(message.extra) is FrozenDict
    assert UUID(message.id).version == 7
    assert before <= message.timestamp <= after
    assert message.timestamp.utcoffset() == timedelta(0)


def test_content_may_be_left_out():
    """`content` is None by default."""
    assert Message(Role.ASSISTANT).content is None


def test_the_fields_are_those_that_were_designed():
    """S0-6, S1-22: every name of the signature, and no other."""
    assert [field.name for field in msgspec.structs.fields(Message)] == [
        *("role", "content", "tool_calls", "tool_call_id", "name", "author", "is_error", "id"),
        *("timestamp", "model", "prefix", "stop", "synthetic", "extra"),
    ]


def test_only_role_and_content_go_by_position():
    """Everything behind the star is named."""
    with pytest.raises(TypeError):
        Message(Role.USER, "x", ())
    with pytest.raises(TypeError):
        ToolCall("call_1", "search", "{}")


def test_a_field_that_does_not_exist_is_refused():
    """A misspelled field is not swallowed; unknown ones of others belong into extra."""
    with pytest.raises((TypeError, InvalidInput)):
        Message(Role.USER, "x", autor="Ada")
    with pytest.raises((TypeError, InvalidInput)):
        Message.user("x", tool_call="y")


def test_the_short_constructors_set_their_role():
    """S0-9, S0-10: system, user, assistant, tool."""
    assert Message.system("s").role is Role.SYSTEM
    assert Message.user("u").role is Role.USER
    assert Message.assistant("a").role is Role.ASSISTANT
    assert Message.assistant().content is None
    result = Message.tool("r", "call_1")
    assert (result.role, result.content, result.tool_call_id) == (Role.TOOL, "r", "call_1")
    assert result.is_error is False
    assert Message.tool("r", "call_1", is_error=True).is_error is True


def test_an_assistant_asks_for_tools():
    """S0-6: calls by position or by name, as a tuple afterwards."""
    assert Message.assistant(None, [CALL]).tool_calls == (CALL,)
    assert Message.assistant("wait", tool_calls=(CALL, CALL)).tool_calls == (CALL, CALL)


FIELDS = {
    "name": "ada",
    "author": "helper",
    "id": "m-1",
    "timestamp": WHEN,
    "model": "acme:large",
    "prefix": "sha256:00",
    "stop": "stop",
    "synthetic": "notice",
    "extra": {"k": [1]},
}


@pytest.mark.parametrize(
    "make",
    [
        Message.system,
        Message.user,
        Message.assistant,
        lambda content, **fields: Message.tool(content, "call_1", **fields),
        lambda content, **fields: Message(Role.MODEL, content, **fields),
    ],
    ids=["system", "user", "assistant", "tool", "message"],
)
def test_every_constructor_passes_the_other_fields_on(make):
    """S1-22 and the rest: author, model, stop and all others are kept as given."""
    message = make("x", **FIELDS)

    for name, value in FIELDS.items():
        kept = getattr(message, name)
        assert (thaw(kept) if name == "extra" else kept) == value


def test_opening_says_the_system_prompt_first_if_there_is_one():
    """S0-11: a system message only if it has anything to say; then the user's."""
    both = opening("hello", "be kind")

    assert [(m.role, m.content) for m in both] == [
        (Role.SYSTEM, "be kind"),
        (Role.USER, "hello"),
    ]
    assert [(m.role, m.content) for m in opening("hello")] == [(Role.USER, "hello")]
    assert [(m.role, m.content) for m in opening("hello", "")] == [(Role.USER, "hello")]
    assert [(m.role, m.content) for m in opening("hello", None)] == [(Role.USER, "hello")]
    assert isinstance(both, tuple)


# ---- what each field takes

PARTS = (
    Text("t"),
    Image(data=b"x"),
    Audio(url="https://example.org/a"),
    File(blob="sha256:aa"),
    Thinking("hm"),
    CallRef("call_1"),
    Opaque("acme", {"a": 1}),
    Unknown({"type": "new"}),
)

OPTIONAL_TEXTS = ("tool_call_id", "name", "author", "model", "prefix", "stop", "synthetic")

NOT_TEXT = {"number": 1, "bytes": b"x", "true": True, "list": ["x"], "object": {"a": 1}}

REFUSED = {
    "content": {
        "number": 1,
        "bytes": b"x",
        "bytearray": bytearray(b"x"),
        "true": True,
        "object": {"type": "text", "text": "x"},
        "set": {"x"},
        "list-of-numbers": [1],
        "list-of-none": [None],
        "list-of-dicts": [{"type": "text", "text": "x"}],
        "nested-list": [[Text("x")]],
        "part-alone": Text("x"),
        "message": [Message.user("x")],
        "call": [CALL],
    },
    "tool_calls": {
        "none": None,
        "call-alone": CALL,
        "text": "call",
        "dict": {"id": "x"},
        "list-of-dicts": [{"id": "x", "name": "y", "arguments": "{}"}],
        "list-of-text": ["x"],
        "list-of-none": [None],
        "list-of-parts": [Text("x")],
        "set": {CALL},
        "number": 1,
    },
    **dict.fromkeys(OPTIONAL_TEXTS, NOT_TEXT),
    "id": {**NOT_TEXT, "none": None, "uuid": UUID(int=7)},
    "is_error": {"1": 1, "0": 0, "none": None, "text": "true"},
    "timestamp": {
        "naive": datetime(2026, 1, 1),
        "text": "2026-01-01T00:00:00Z",
        "number": 1_700_000_000,
        "negative": -1,
        "float": 1.5,
        "none": None,
        "date": date(2026, 1, 1),
        "delta": timedelta(1),
    },
    "extra": {
        "none": None,
        "list": [],
        "pairs": [("a", 1)],
        "text": "x",
        "number": 1,
        "number-as-key": {1: 2},
        "nan": {"a": float("nan")},
        "bytes": {"a": b"x"},
        "object": {"a": object()},
        "datetime": {"a": WHEN},
        "surrogate": {"a": "\ud800"},
        "surrogate-key": {"\ud800": 1},
    },
}

CASES = [(field, name) for field, bad in REFUSED.items() for name in bad]


@pytest.mark.parametrize(("field", "name"), CASES, ids=[f"{f}-{n}" for f, n in CASES])
def test_a_field_refuses_what_it_cannot_keep_and_says_which_field(field, name):
    """Bad inputs 43, 44, 54, 55: typed, at once, and with the name of the field."""
    with pytest.raises(InvalidInput, match=field):
        Message(**{"role": Role.USER, "content": "x", field: REFUSED[field][name]})


@pytest.mark.parametrize(("field", "name"), CASES, ids=[f"{f}-{n}" for f, n in CASES])
def test_replacing_a_field_goes_by_the_same_rules(field, name):
    """`message.replace` is no way around the checks."""
    message = Message.user("x")

    with pytest.raises(InvalidInput, match=field):
        message.replace(**{field: REFUSED[field][name]})


def test_every_field_is_in_the_table():
    """A control of this file: a field added later cannot go unchecked."""
    assert set(REFUSED) | {"role"} == set(Message.__struct_fields__)


@pytest.mark.parametrize("kind", [list, tuple], ids=["list", "tuple"])
def test_content_takes_parts_of_every_kind_in_order(kind):
    """S2-18, A2: the order of text and calls is kept; a list becomes a tuple."""
    message = Message.user(kind(PARTS))

    assert message.content == PARTS
    assert type(message.content) is tuple


def test_words_in_a_list_become_text_parts():
    """The short constructors take plain words among the parts."""
    message = Message.user(["look:", Image(data=b"x")])

    assert message.content == (Text("look:"), Image(data=b"x"))


@pytest.mark.parametrize(
    "content",
    [
        "",
        "a\0b",
        "a\u2028b\u2029c\x85d\x0be\x0cf\rg",
        "\ufffe\uffff",
        "e" + "\u0301" * 10_000,
        '{"_type": "metadata", "key": "x"}',
        '{"lc": 1, "type": "constructor"}',
        "{0.__class__} %s ${jndi:x} {{7*7}}",
        "\n\nHuman: <|im_start|>system </tool_result>",
        "x" * 5_000_000,
    ],
    ids=["empty", "nul", "ends", "non", "marks", "meta", "lc", "format", "roles", "long"],
)
def test_any_storable_text_is_kept_to_the_letter(content):
    """Bad inputs 32, 33, 35, 41, 48 to 53: text is text."""
    message = Message.user(content)

    assert message.content == content
    assert message.role is Role.USER
    assert len(repr(message)) > 0


def test_an_empty_list_of_parts_is_content_with_nothing_in_it():
    """Bad inputs 44."""
    assert Message.user([]).content == ()
    assert Message.user([]).text is None


TEXTS = (*OPTIONAL_TEXTS, "content", "id")


@pytest.mark.parametrize("field", TEXTS)
@pytest.mark.parametrize(
    "bad", ["\ud800", "\udc00", "cut \ud83d", "\ud83d\ude00"], ids=["high", "low", "cut", "pair"]
)
def test_a_lone_surrogate_is_refused_in_every_text_field(field, bad):
    """Bad inputs 31: a caller learns it at once, not when it is stored."""
    with pytest.raises(InvalidInput, match=field):
        Message(**{"role": Role.USER, "content": "x", field: bad})


@pytest.mark.parametrize("field", TEXTS)
def test_nul_is_kept_in_every_text_field(field):
    """Bad inputs 32: NUL is kept everywhere."""
    message = Message(**{"role": Role.USER, "content": "x", field: "a\0b"})

    assert getattr(message, field) == "a\0b"


def test_a_surrogate_among_the_words_in_a_list_is_refused():
    """Bad inputs 31: in every position of the content."""
    for content in (["ok", "\ud800"], ["\ud800"]):
        with pytest.raises(InvalidInput):
            Message.user(content)


@pytest.mark.parametrize("id", ["no id", "None", "0", " ", "../x", "m" * 5000], ids=lambda i: i[:5])
def test_an_id_that_was_given_is_kept_whatever_it_looks_like(id):
    """bad inputs 41: an id for life; also one that reads like a placeholder."""
    assert Message.user("x", id=id).id == id
    assert Message.user("x", id=id).replace(content="y").id == id


# ---- tool calls

CALL_TEXTS = ("id", "name", "arguments", "output", "signature")


def test_a_tool_call_is_flat():
    """S0-4, S0-5, S1-25: strings side by side; no nested `function`, no `type`."""
    assert ToolCall.__struct_fields__[:4] == ("id", "name", "arguments", "output")
    assert set(ToolCall.__struct_fields__) >= {"signature", "extra"}
    assert (CALL.id, CALL.name, CALL.arguments) == ("call_1", "search", '{"q": "x"}')
    assert (CALL.output, CALL.signature, CALL.is_error) == (None, None, False)
    assert CALL.extra == {}


@pytest.mark.parametrize(
    "arguments",
    ["", "{}", '{"q": "x', "[1]", "null", "not json", ' { "a" : 1 } ', '{"a":NaN}', "x" * 10**7],
    ids=["empty", "braces", "cut", "list", "null", "words", "spaces", "nan", "10-mb"],
)
def test_arguments_are_kept_exactly_as_the_model_wrote_them(arguments):
    """S0-4, bad inputs 46: JSON text that may not parse; never parsed, never written anew."""
    call = ToolCall(id="c", name="n", arguments=arguments)

    assert call.arguments == arguments


def test_the_output_of_a_call_is_kept_with_its_id_and_name():
    """S1-25, S1-26: equal to the original text, and to the original metadata."""
    call = ToolCall(id="fc_1", name="lookup", arguments="", output='{"b": 1,  "a": [2]}')

    assert (call.id, call.name, call.output) == ("fc_1", "lookup", '{"b": 1,  "a": [2]}')


def test_a_call_keeps_its_signature():
    """S1-27, S2-24: without the vendor's proof it would refuse its own call."""
    assert ToolCall(id="c", name="n", arguments="{}", signature="c2ln").signature == "c2ln"


@pytest.mark.parametrize("field", CALL_TEXTS)
@pytest.mark.parametrize("name", [*NOT_TEXT, "surrogate", "cut"])
def test_a_text_of_a_call_takes_storable_text_only(field, name):
    """S0-4, bad inputs 31, 46: an object as arguments is not JSON text."""
    bad = {**NOT_TEXT, "surrogate": "\ud800", "cut": "a\ud83d"}[name]

    with pytest.raises(InvalidInput, match=field):
        ToolCall(**{"id": "c", "name": "n", "arguments": "{}", field: bad})


@pytest.mark.parametrize("field", CALL_TEXTS)
def test_nul_is_kept_in_every_text_of_a_call(field):
    """Bad inputs 32."""
    call = ToolCall(**{"id": "c", "name": "n", "arguments": "{}", field: "a\0b"})

    assert getattr(call, field) == "a\0b"


@pytest.mark.parametrize("field", ["id", "name", "arguments"])
def test_a_call_needs_id_name_and_arguments(field):
    """Bad inputs 45: None is not a string."""
    given = {"id": "c", "name": "n", "arguments": "{}"}

    with pytest.raises(InvalidInput, match=field):
        ToolCall(**{**given, field: None})


@pytest.mark.parametrize("bad", [1, 0, None, "x"], ids=["1", "0", "none", "text"])
def test_the_error_flag_of_a_call_is_a_boolean(bad):
    """A flag is True or False."""
    with pytest.raises(InvalidInput, match="is_error"):
        ToolCall(id="c", name="n", arguments="{}", is_error=bad)


def test_two_calls_with_one_id_are_kept():
    """Bad inputs 45: history keeps what was said; who runs the tools decides."""
    message = Message.assistant(None, [CALL, CALL.replace(arguments="{}")])

    assert [call.id for call in message.calls] == ["call_1", "call_1"]


# ---- text


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("words", "words"),
        (None, None),
        ("", None),
        ((), None),
        ((Text("a"),), "a"),
        ((Text("a"), Text("b")), "ab"),
        ((Text("a"), Image(data=b"x"), Text(" b")), "a b"),
        ((Text(""), Text("a")), "a"),
        ((Text(""),), None),
        ((Image(data=b"x"),), None),
        ((Thinking("secret"), Text("said")), "said"),
        ((Thinking("secret"),), None),
        ((Text("a"), CallRef("call_1"), Text("b")), "ab"),
        ((Opaque("acme", {"text": "no"}), Unknown("no"), Text("yes")), "yes"),
        (" ", " "),
        ("\0", "\0"),
    ],
    ids=[
        *("str", "none", "empty", "no-parts", "one", "two", "image", "empty-first", "all-empty"),
        *("only-image", "thinking", "only-thinking", "call-ref", "opaque", "space", "nul"),
    ],
)
def test_the_text_of_a_message_is_its_words_put_together(content, text):
    """S2-19: all non-empty text, nothing between, no thinking; None when there are no words."""
    assert Message(Role.ASSISTANT, content).text == text


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_words_given_as_parts_or_as_one_text_read_the_same(words):
    """S2-19, A2: the text does not depend on how it was cut."""
    assert Message.user([Text(word) for word in words]).text == Message.user("".join(words)).text


# ---- calls and results


def test_calls_are_the_tools_a_message_asks_for():
    """S2-19, S3-7: in order; what came back is not asked for."""
    second = CALL.replace(id="call_2")

    assert Message.assistant("wait", [CALL, second]).calls == (CALL, second)
    assert Message(Role.MODEL, None, tool_calls=[CALL]).calls == (CALL,)
    assert Message.assistant("done").calls == ()
    assert Message.user("x").calls == ()
    assert Message.tool("r", "call_1").calls == ()


@pytest.mark.parametrize("role", [Role.TOOL, Role.FUNCTION, Role.USER], ids=str)
def test_a_message_that_lists_outputs_asks_for_nothing(role):
    """S1-25: calls with an output are results."""
    assert Message(role, None, tool_calls=[output("a"), output("b")]).calls == ()


def test_an_assistant_without_calls_has_no_results():
    """Results are what tools gave back, and nothing else."""
    for message in (
        Message.system("s"),
        Message.user("u"),
        Message.assistant("a"),
        Message.assistant(None, [CALL]),
        Message(Role.MODEL, "m", tool_calls=[CALL]),
    ):
        assert message.results == ()


def test_a_tool_message_holds_one_result():
    """S0-1, S0-23: a result and its call are paired by id."""
    (result,) = Message.tool("42", "call_1", name="search").results

    assert result == Result(call_id="call_1", name="search", content="42", is_error=False)


def test_a_tool_message_may_hold_parts():
    """S2-18: results with attachments."""
    content = (Text("see"), Image(data=b"x"))

    (result,) = Message.tool(content, "call_1").results

    assert result.content == content
    assert result.name is None


def test_a_failed_tool_says_so_in_its_result():
    """S2-18, S0-29: `is_error` goes with the result."""
    (result,) = Message.tool("error: no", "call_1", is_error=True).results

    assert result.is_error is True


@pytest.mark.parametrize("role", [Role.TOOL, Role.FUNCTION, Role.USER], ids=str)
def test_a_message_that_lists_outputs_holds_a_result_for_each(role):
    """S1-25, S1-26, A2: in order, each with its own id, name, text and error."""
    message = Message(role, None, tool_calls=[output("a", "1"), output("b", "2", is_error=True)])

    assert message.results == (
        Result(call_id="a", name="tool_a", content="1", is_error=False),
        Result(call_id="b", name="tool_b", content="2", is_error=True),
    )


def test_an_empty_output_is_an_output():
    """S1-25: None is "there is none"; the empty text is what the tool gave."""
    (result,) = Message(Role.TOOL, None, tool_calls=[output("a", "")]).results

    assert result.content == ""


def test_a_legacy_function_message_holds_a_result_without_an_id():
    """S1-4, S3-5, A3: the function role names the function and has no call id."""
    (result,) = Message(Role.FUNCTION, '{"t": 20}', name="weather").results

    assert result == Result(call_id=None, name="weather", content='{"t": 20}', is_error=False)


def test_a_tool_message_without_an_id_still_holds_a_result():
    """Bad inputs 43, 45: kept as it was said; whoever renders it decides."""
    (result,) = Message(Role.TOOL, "r").results

    assert (result.call_id, result.content) == (None, "r")


def test_reading_a_message_does_not_change_it():
    """Derived views are computed; the value stays the same."""
    message = Message(Role.TOOL, None, tool_calls=[output("a")])
    before = msgspec.json.encode(message)

    assert (message.text, message.calls) == (None, ())
    assert message.results == message.results
    assert msgspec.json.encode(message) == before


# ---- turns

STARTS = {
    "user": (Message.user("x"), True),
    "user-empty": (Message.user(""), True),
    "user-none": (Message(Role.USER), True),
    "user-image-only": (Message.user([Image(data=b"x")]), True),
    "user-image-first": (Message.user([Image(data=b"x"), Text("what?")]), True),
    "user-named": (Message.user("x", name="ada", author="ada"), True),
    "user-with-a-call-without-output": (Message(Role.USER, "x", tool_calls=[CALL]), True),
    "user-summary": (Message.user("x", synthetic="summary"), False),
    "user-notice": (Message.user("x", synthetic="notice"), False),
    "user-cancel-note": (Message.user("x", synthetic="cancelled"), False),
    "user-nudge": (Message.user("x", synthetic="nudge"), False),
    "user-with-outputs": (Message(Role.USER, None, tool_calls=[output("a")]), False),
    "user-with-outputs-and-words": (Message(Role.USER, "and?", tool_calls=[output("a")]), False),
    "user-with-an-empty-output": (Message(Role.USER, None, tool_calls=[output("a", "")]), False),
    "user-answering-a-call": (Message(Role.USER, "42", tool_call_id="call_1"), False),
    "system": (Message.system("x"), False),
    "assistant": (Message.assistant("x"), False),
    "assistant-with-calls": (Message.assistant(None, [CALL]), False),
    "model": (Message(Role.MODEL, "x"), False),
    "tool": (Message.tool("x", "call_1"), False),
    "tool-with-outputs": (Message(Role.TOOL, None, tool_calls=[output("a")]), False),
    "function": (Message(Role.FUNCTION, "x", name="f"), False),
}


@pytest.mark.parametrize("name", STARTS)
def test_a_turn_starts_at_a_user_message_without_result_that_somebody_said(name):
    """A17, S2-47, S2-64: one definition; it does not ask what the first part is."""
    message, expected = STARTS[name]

    assert message.starts_turn is expected


# ---- time


class FixedZone(tzinfo):
    """A zone of the caller's own making."""

    def __init__(self, offset):
        self.offset = offset

    def utcoffset(self, when):
        return self.offset

    def dst(self, when):
        return None

    def tzname(self, when):
        return "own"


class MyDatetime(datetime):
    pass


ZONED = {
    "utc": WHEN,
    "fixed": WHEN.astimezone(timezone(timedelta(hours=5, minutes=45))),
    "named": WHEN.astimezone(timezone(timedelta(hours=-3), "here")),
    "zoneinfo-utc": datetime(2026, 3, 1, tzinfo=ZoneInfo("UTC")),
    "zoneinfo-winter": datetime(2026, 1, 1, 12, tzinfo=ZoneInfo("Europe/Berlin")),
    "zoneinfo-summer": datetime(2026, 7, 1, 12, tzinfo=ZoneInfo("Europe/Berlin")),
    "zoneinfo-fold-0": datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=0),
    "zoneinfo-fold-1": datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1),
    "zoneinfo-gap": datetime(2026, 3, 29, 2, 30, tzinfo=ZoneInfo("Europe/Berlin")),
    "zoneinfo-sub-minute": datetime(1890, 1, 1, 12, tzinfo=ZoneInfo("Europe/Berlin")),
    "fixed-sub-minute": datetime(2026, 1, 1, tzinfo=timezone(timedelta(minutes=19, seconds=32))),
    "fixed-microseconds": datetime(2026, 1, 1, tzinfo=timezone(timedelta(microseconds=1))),
    "negative-sub-minute": datetime(2026, 1, 1, tzinfo=timezone(-timedelta(seconds=1))),
    "own-zone": datetime(2026, 1, 1, tzinfo=FixedZone(timedelta(hours=2))),
    "subclass": MyDatetime(2026, 1, 1, tzinfo=UTC),
    "before-1970": datetime(1901, 1, 1, tzinfo=UTC),
    "future": datetime(2099, 1, 1, tzinfo=UTC),
    "first": datetime.min.replace(tzinfo=UTC),
    "last": datetime.max.replace(tzinfo=UTC),
}


@pytest.mark.parametrize("name", ZONED)
def test_a_time_is_kept_as_the_same_instant_in_a_plain_form(name):
    """bad inputs 54: aware, exact, and of plain types whatever zone it came in."""
    given = ZONED[name]

    kept = Message.user("x", timestamp=given).timestamp

    assert type(kept) is datetime
    assert type(kept.tzinfo) is timezone
    assert kept.astimezone(UTC) == given.astimezone(UTC)
    if given.utcoffset() % timedelta(minutes=1) == timedelta(0):
        assert kept.utcoffset() == given.utcoffset()
        assert kept.replace(tzinfo=None) == given.replace(tzinfo=None, fold=0)


@pytest.mark.parametrize("name", ZONED)
def test_a_time_survives_json_and_pickle(name):
    """Bad inputs 54: never a later failure, and no second lost in an offset JSON cannot say."""
    message = Message.user("x", timestamp=ZONED[name])

    written = msgspec.json.decode(msgspec.json.encode(message.timestamp), type=datetime)

    assert written == message.timestamp
    assert pickle.loads(pickle.dumps(message)) == message
    assert hash(message) == hash(copy.deepcopy(message))


@pytest.mark.parametrize(
    "edge",
    [
        datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-12))),
        datetime.min.replace(tzinfo=timezone(timedelta(minutes=19, seconds=32))),
        datetime.max.replace(tzinfo=timezone(-timedelta(minutes=19, seconds=32))),
    ],
    ids=["first", "last", "first-sub-minute", "last-sub-minute"],
)
def test_a_time_at_the_edge_of_the_calendar_is_kept_or_refused(edge):
    """Bad inputs 54: year 0001 and 9999, never an OverflowError."""
    try:
        message = Message.user("x", timestamp=edge)
    except InvalidInput:
        return

    assert message.timestamp == edge
    assert msgspec.json.decode(msgspec.json.encode(message.timestamp), type=datetime) == edge
    assert hash(message) == hash(message.replace())


def test_a_zone_that_does_not_say_its_offset_is_no_zone():
    """Bad inputs 54: Python calls such a time naive."""
    with pytest.raises(InvalidInput, match="timestamp"):
        Message.user("x", timestamp=datetime(2026, 1, 1, tzinfo=FixedZone(None)))


def test_a_zone_that_changes_afterwards_changes_nothing():
    """Nothing a caller passed in can change what is stored."""
    zone = FixedZone(timedelta(hours=2))
    message = Message.user("x", timestamp=datetime(2026, 1, 1, 12, tzinfo=zone))

    zone.offset = timedelta(hours=9)

    assert message.timestamp == datetime(2026, 1, 1, 10, tzinfo=UTC)


# ---- values


def twin(**changes):
    given = {"role": Role.USER, "content": "x", "id": "m-1", "timestamp": WHEN, **changes}
    return Message(**given)


def test_messages_are_compared_and_hashed_by_content():
    """Values; equal ones are one member of a set."""
    assert twin() == twin()
    assert hash(twin()) == hash(twin())
    assert len({twin(), twin(), twin(content="y")}) == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"role": Role.SYSTEM},
        {"content": "y"},
        {"content": (Text("x"),)},
        {"tool_calls": (CALL,)},
        *({name: "other"} for name in OPTIONAL_TEXTS),
        {"is_error": True},
        {"id": "m-2"},
        {"timestamp": WHEN + timedelta(microseconds=1)},
        {"extra": {"k": 1}},
    ],
    ids=lambda changes: "-".join([*changes, str(type(next(iter(changes.values()))).__name__)]),
)
def test_every_field_counts_in_a_comparison(changes):
    """What differs is another message."""
    assert twin() != twin(**changes)
    assert twin().replace(**changes) == twin(**changes)


def test_the_older_spelling_of_a_role_is_another_message():
    """A3: kept as spelled, so compared as spelled."""
    assert twin(role=Role.MODEL) != twin(role=Role.ASSISTANT)


def test_two_messages_with_the_same_words_are_two_messages():
    """Each has an id for life."""
    one, two = Message.user("x"), Message.user("x")

    assert one != two
    assert one.id < two.id


def test_replace_makes_a_new_message_and_leaves_the_old_one():
    """A message never changes; what differs is a new one, with the same id unless told."""
    message = twin()

    other = message.replace(content="y", author="helper")

    assert (message.content, message.author) == ("x", None)
    assert (other.content, other.author, other.id) == ("y", "helper", "m-1")
    assert message.replace() == message


def test_replacing_a_field_that_does_not_exist_is_refused():
    """A misspelled field is not swallowed."""
    with pytest.raises((TypeError, AttributeError, InvalidInput)):
        twin().replace(autor="x")


def test_the_empty_extra_is_shared():
    """A snapshot costs nothing: messages without extra hold one and the same empty object."""
    assert Message.user("a").extra is Message.user("b").extra is EMPTY


def test_a_message_can_be_shown():
    """A repr that names the class and the words; for people, in a debugger."""
    assert "Message" in repr(twin())
    assert "'x'" in repr(twin())


def test_a_list_of_messages_is_plain_data():
    """S2-118, S1-8: a context can be stored as JSON and handed to another model."""
    messages = [
        Message.system("s"),
        twin(),
        Message.assistant(None, [CALL]),
        Message.tool("r", "c"),
    ]

    written = msgspec.json.encode(messages)

    assert [row["role"] for row in msgspec.json.decode(written)] == [
        *("system", "user", "assistant", "tool"),
    ]
    assert msgspec.json.decode(written, type=list[Message]) == messages


def test_the_reasons_for_stopping_are_words_that_a_message_keeps():
    """S2-21: one set of words for all vendors; a vendor's own word is kept as well."""
    stopped = Message.assistant("x", stop=Stop.MAX_TOKENS)

    assert stopped.stop == Stop.MAX_TOKENS == "max_tokens"
    assert type(stopped.stop) is str
    assert Message.assistant("x", stop="pause_turn").stop == "pause_turn"
    assert set(Stop) == {
        *("stop", "tool_use", "max_tokens", "safety", "error", "cancelled", "unknown")
    }
