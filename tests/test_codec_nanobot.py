"""Lines and files of nanobot, of every era, and of its Go port."""

import json
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from holdfast import codec
from holdfast.codec import lango, nanobot
from holdfast.entries import UnknownEntry
from holdfast.errors import InvalidInput
from holdfast.messages import Message, Role
from shapes import GOLDENS, NOON, from_line, one, read, to_line

METADATA = nanobot.Metadata(
    key="telegram:12345678",
    created_at="2026-01-01T00:00:00",
    updated_at="2026-02-01T12:00:01.000005",
)


def test_the_metadata_line_of_the_contract_is_reproduced_exactly():
    """S4-11, S4-12, S4-15, S4-20: Python's spaces, key order, `\\n` behind the line."""
    assert nanobot.encode_metadata(METADATA) == read("nanobot_metadata.jsonl")
    assert nanobot.decode(read("nanobot_metadata.jsonl")) == METADATA


def test_metadata_with_a_title_and_an_offset_is_written_in_these_bytes():
    """S4-24: title, goal_state and others live in the inner object."""
    metadata = METADATA.replace(
        metadata={"title": "Grüße", "title_user_edited": True, "goal_state": None},
        last_consolidated=2,
    )

    assert nanobot.encode_metadata(metadata) == read("nanobot_metadata_titled.jsonl")
    assert nanobot.decode(read("nanobot_metadata_titled.jsonl")) == metadata
    assert nanobot.encode_metadata(metadata, ascii=True) == read(
        "nanobot_metadata_titled.jsonl"
    ).replace("Grüße".encode(), rb"Gr\u00fc\u00dfe")


def offset(value):
    line = {"_type": "metadata", "key": "k", "metadata": {}, "last_consolidated": value}
    return json.dumps(line).encode()


@pytest.mark.parametrize("value", [-1, 1.0, 1.5, "1", True, False, None, [], {}, -(2**70)])
def test_an_offset_that_cannot_be_one_is_zero(value):
    """S4-23: otherwise all history would be hidden (bad input 56)."""
    found = nanobot.decode(offset(value)).last_consolidated

    assert found == 0
    assert type(found) is int


def test_an_offset_beyond_the_messages_is_zero():
    """S4-22, S4-23: it must never exceed the number of messages (bad input 56)."""
    file = offset(3) + b"\n" + b'{"role": "user", "content": "x"}\n' * 2

    assert nanobot.decode_file(file, zone=UTC).metadata.last_consolidated == 0
    assert METADATA.replace(last_consolidated=2).within(2).last_consolidated == 2
    assert METADATA.replace(last_consolidated=3).within(2).last_consolidated == 0


def test_an_offset_that_equals_the_number_of_messages_stays():
    file = offset(2) + b"\n" + b'{"role": "user", "content": "x"}\n' * 2

    assert nanobot.decode_file(file, zone=UTC).metadata.last_consolidated == 2


def test_unknown_records_and_metadata_lines_do_not_count_as_messages():
    """The offset is an index into the messages; private records are none (S4-22)."""
    file = (
        offset(2)
        + b'\n{"_type": "provider_state", "state": {}}\n{"role": "user", "content": "x"}\n'
    )

    assert nanobot.decode_file(file, zone=UTC).metadata.last_consolidated == 0


@pytest.mark.parametrize("value", ["null", "{}"])
def test_metadata_that_is_null_is_empty(value):
    """S4-23 (bad input 55): nanobot itself coerced it after a crash."""
    line = b'{"_type": "metadata", "key": "k", "metadata": %b}' % value.encode()

    assert nanobot.decode(line).metadata == {}


def test_metadata_of_the_first_era_has_neither_key_nor_offset():
    """S4-24: 2026-02-01."""
    found = nanobot.decode(
        b'{"_type": "metadata", "created_at": "2026-02-01T11:00:00", "metadata": {}}'
    )

    assert (found.key, found.last_consolidated) == (None, 0)
    assert found.created_at == "2026-02-01T11:00:00"


def test_unknown_fields_of_metadata_survive():
    """S4-25."""
    line = read("nanobot_metadata.jsonl").replace(b"}\n", b', "mood": [1.0]}\n')

    found = nanobot.decode(line)

    assert found.extra == {"mood": (1.0,)}
    assert json.loads(nanobot.encode_metadata(found)) == json.loads(line)


@pytest.mark.parametrize("name", ["key", "created_at", "updated_at", "metadata"])
@pytest.mark.parametrize("value", [5, [1], True, "text"], ids=json.dumps)
def test_metadata_of_the_wrong_type_is_refused_or_kept(name, value):
    """Nothing that gets in is lost: what cannot be used survives, or is refused by name."""
    line = json.dumps({"_type": "metadata", name: value}).encode()
    try:
        found = nanobot.decode(line)
    except InvalidInput:
        return

    assert json.loads(nanobot.encode_metadata(found))[name] == value


@pytest.mark.parametrize("time", ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00", "yesterday", ""])
def test_times_of_metadata_are_the_text_that_stood_there(time):
    """A13, B4: Python's, Go's and broken ones alike."""
    line = json.dumps({"_type": "metadata", "created_at": time, "updated_at": time}).encode()

    found = nanobot.decode(line)

    assert (found.created_at, found.updated_at) == (time, time)


# --- nanobot: messages ----------------------------------------------------------------------


def test_a_line_of_nanobot_itself_gets_our_id_behind_and_stays_the_same_before_it():
    """S4-14, S4-25: what nanobot wrote is written again, and our id is the last key."""
    for name in GOLDENS:
        if name.startswith("nanobot") and "our_fields" not in name:
            ours = read(name)
            theirs = ours[: ours.rindex(b', "id"')] + b"}\n"

            found = from_line(theirs)

            assert to_line(found) == theirs[:-2] + b', "id": "%b"}\n' % found.id.encode()


def test_the_id_is_the_last_key_even_behind_extra_fields():
    message = Message.user("x", id="i", timestamp=NOON, author="a", extra={"zz": 1, "name2": 2})

    assert list(json.loads(to_line(message)))[-1] == "id"


@pytest.mark.parametrize(
    ("time", "text"),
    [
        (NOON, "2026-02-01T12:00:00"),
        (NOON.replace(microsecond=5), "2026-02-01T12:00:00.000005"),
        (NOON.astimezone(timezone(timedelta(hours=5, minutes=30))), "2026-02-01T12:00:00"),
    ],
)
def test_a_time_of_our_own_is_written_in_local_time_without_a_zone(time, text):
    """S4-16: Python's isoformat; microseconds only when there are any."""
    assert json.loads(to_line(Message.user("x", timestamp=time)))["timestamp"] == text


def test_the_zone_is_where_nanobot_runs():
    zone = timezone(timedelta(hours=2))
    message = Message.user("x", timestamp=NOON)

    line = nanobot.encode(message, zone=zone)

    assert json.loads(line)["timestamp"] == "2026-02-01T14:00:00"
    assert one(nanobot.decode(line, zone=zone)).timestamp == NOON


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-02-01T12:00:00", NOON),
        ("2026-02-01T12:00:00Z", NOON),
        ("2026-02-01T12:00:00.000Z", NOON),
        ("2026-02-01T13:00:00+01:00", NOON),
        ("2026-02-01 12:00:00", NOON),
        ("2026-02-01T12:00:00.123456789Z", NOON.replace(microsecond=123456)),
        ("0001-01-01T00:00:00", datetime(1, 1, 1, tzinfo=UTC)),
        ("9999-12-31T23:59:59.999999", datetime.max.replace(tzinfo=UTC)),
        ("2036-02-01T12:00:00", NOON.replace(year=2036)),
    ],
)
def test_a_time_is_understood_and_written_as_it_stood(text, time):
    """S4-16, S4-17, A13, B4: every writer's time, kept as given (bad input 54)."""
    line = json.dumps({"role": "user", "content": "x", "timestamp": text}).encode()

    found = from_line(line)

    assert found.timestamp == time
    assert json.loads(to_line(found))["timestamp"] == text


@pytest.mark.parametrize(
    "value", ["yesterday", "", -1, 1769947200, 1.5, None, True, [], "0000-00-00"]
)
def test_a_time_that_is_none_does_not_lose_the_message(value):
    """S4-26: nanobot takes now for a bad timestamp; the text that stood there is kept (54)."""
    line = json.dumps({"role": "user", "content": "x", "timestamp": value}).encode()

    found = from_line(line)

    assert found.content == "x"
    assert found.timestamp.tzinfo is not None
    if value is not None:
        assert json.loads(to_line(found))["timestamp"] == value


def test_a_line_without_a_time_gets_one():
    """S4-24: not every era wrote one for every message."""
    assert from_line(b'{"role": "user", "content": "x"}').timestamp.tzinfo is not None


EASTERN, WESTERN = timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))


@pytest.mark.parametrize("zone", [UTC, EASTERN, WESTERN], ids=["utc", "east", "west"])
@pytest.mark.parametrize("own", [UTC, EASTERN, WESTERN], ids=["utc", "east", "west"])
@pytest.mark.parametrize("time", [datetime.min, datetime.max], ids=["first", "last"])
def test_the_first_and_the_last_moment_can_be_written(time, own, zone):
    """Bad input 54: years 0001 and 9999, in whichever zone; no OverflowError on a later day."""
    message = Message.user("x", id="i", timestamp=time.replace(tzinfo=own))

    found = one(nanobot.decode(nanobot.encode(message, zone=zone), zone=zone))

    assert found.timestamp == message.timestamp
    assert one(lango.decode(lango.encode(message))).timestamp == message.timestamp
    assert codec.read_record(codec.record(message)) == message
    assert codec.read_foreign_record(codec.record(message)) == (message,)


@pytest.mark.parametrize("hour", range(7, 12))
@pytest.mark.parametrize("day", [datetime(2026, 11, 1), datetime(2026, 3, 8)], ids=["back", "on"])
def test_a_time_of_our_own_survives_the_hour_in_which_clocks_change(day, hour):
    """
    01:30 comes twice in the night in which clocks go back: a local time alone would lose an hour.
    Text of a time that would not be read as the same time is no text for it (54).
    """
    zone = ZoneInfo("America/Los_Angeles")
    message = Message.user("x", timestamp=day.replace(hour=hour, minute=30, tzinfo=UTC))

    found = one(nanobot.decode(nanobot.encode(message, zone=zone), zone=zone))

    assert found.timestamp == message.timestamp


def test_a_changed_time_is_written_and_not_the_old_text():
    """The text beside the time is for the same time only."""
    found = from_line(read("nanobot_user.jsonl")).replace(timestamp=NOON.replace(year=2030))

    assert json.loads(to_line(found))["timestamp"] == "2030-02-01T12:00:00"


def test_separators_inside_a_line_do_not_split_it():
    """S4-18: split on `\\n` only (bad input 35)."""
    file = read("nanobot_metadata.jsonl") + read("nanobot_line_separator.jsonl") * 2

    entries = nanobot.decode_file(file, zone=UTC).entries

    assert [message.content for message in entries] == ["one\u2028two\u2029three\x85four"] * 2


def test_characters_are_escaped_on_request_only():
    """A torn write cannot cut a character in two when every byte is ASCII."""
    message = Message.user("Grüße \U0001f600\u2028", id="i", timestamp=NOON)

    assert nanobot.encode(message, zone=UTC, ascii=True) == (
        rb'{"role": "user", "content": "Gr\u00fc\u00dfe \ud83d\ude00\u2028", '
        rb'"timestamp": "2026-02-01T12:00:00", "id": "i"}' + b"\n"
    )
    assert "Grüße \U0001f600\u2028".encode() in to_line(message)


_ALL = "".join(map(chr, range(0x250))) + "\u2028\ufeff\U0001f600"


@pytest.mark.parametrize("ascii", [True, False])
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"tool_call_id": _ALL, "name": "", "author": "a", "model": "m"},
        {"prefix": "p", "stop": "stop", "synthetic": "note"},
    ],
)
def test_a_line_of_text_alone_has_the_bytes_that_python_writes(ascii, fields):
    """Most lines are put together without an encoder, and nobody can tell."""
    message = Message(Role.TOOL, _ALL, **fields)
    line = nanobot.encode(message, ascii=ascii)

    found = json.loads(line)

    assert json.dumps(found, ensure_ascii=ascii).encode() + b"\n" == line
    assert list(found) == ["role", "content", "timestamp", *fields, "id"]
    assert {name: found[name] for name in fields} == fields
    assert (found["role"], found["content"], found["id"]) == ("tool", _ALL, message.id)


def test_a_line_holds_no_line_end_but_its_own():
    for text in ("a\nb", "a\r\nb", "\n", "\x0b\x0c\x1c\x1d\x1e\x85"):
        line = to_line(Message.user(text, extra={"a\n": "\n"}, id="i\n"))

        assert line.count(b"\n") == 1
        assert line.endswith(b"}\n")
        assert from_line(line).content == text


def test_a_half_surrogate_in_a_file_is_mended_with_a_mark():
    """S4-27: in nanobot it makes the save fail after the file was truncated."""
    message, mark = nanobot.decode(rb'{"role": "user", "content": "x\ud800"}', zone=UTC)

    assert message.content == "x\ufffd"
    assert (mark.what, mark.about) == ("mended", message.id)
    assert to_line(message).decode()


@pytest.mark.parametrize(
    "line",
    [
        b'{"_type": "provider_state", "state": {"a":  1.0, "b": "\\u0041"}}',
        b'{"_type":"provider_state","state":{}}',
        b'{"_type": "future", "role": "user", "content": "x"}',
        b'{"_type": null, "role": "user", "content": "x"}',
        b'{"_type": 7}',
        b'{"role": "developer", "content": "x",  "timestamp": "2026-02-01T12:00:00"}',
        b'{"role": "SYSTEM", "content": "x"}',
        b'{"role": "", "content": "x"}',
    ],
)
def test_an_unknown_record_or_role_is_kept_as_it_is_and_is_no_message(line):
    """S4-25, A4: it survives load → save untouched, and is never shown to a model."""
    (found,) = nanobot.decode(line, zone=UTC)

    assert isinstance(found, UnknownEntry)
    assert codec.read_record(codec.record(found)) == found
    assert nanobot.encode(found) == line + b"\n"
    file = nanobot.decode_file(read("nanobot_metadata.jsonl") + line + b"\n", zone=UTC)
    assert file.entries == (found,)


@pytest.mark.parametrize(
    "extra",
    [
        {"_type": "metadata"},
        {"_type": "metadata", "key": "other", "last_consolidated": 99, "metadata": {}},
        {"_type": "provider_state"},
        {"role": "system"},
        {"content": "y"},
        {"id": "other"},
        {"tool_calls": [{"id": "c", "name": "f", "arguments": ""}]},
    ],
    ids=json.dumps,
)
def test_a_message_cannot_pass_for_a_metadata_line_or_for_another_message(extra):
    """Bad input 48: whatever extra holds, the line reads as the message that was written."""
    message = Message.user("x", id="i", timestamp=NOON, extra=extra)
    try:
        line = to_line(message)
    except InvalidInput:
        return

    found = from_line(line)

    assert isinstance(found, Message)
    assert (found.role, found.content, found.id, found.tool_calls) == (Role.USER, "x", "i", ())
    file = nanobot.decode_file(nanobot.encode_metadata(METADATA) + line, zone=UTC)
    assert file.metadata == METADATA
    assert len(file.entries) == 1


def test_words_that_look_like_metadata_are_words():
    """Bad input 48."""
    text = read("nanobot_metadata.jsonl").decode()

    assert from_line(to_line(Message.user(text))).content == text


@pytest.mark.parametrize(
    "name", ["author", "is_error", "model", "prefix", "stop", "synthetic", "id"]
)
@pytest.mark.parametrize("value", [5, [1], {"a": 1}, None, 1.5], ids=json.dumps)
def test_a_field_of_nanobots_that_is_named_like_ours_is_not_lost(name, value):
    """S4-25: another program may use the name for something else; load → save keeps it."""
    line = json.dumps({"role": "user", "content": "x", name: value}).encode()

    found = from_line(line)
    written = json.loads(to_line(found))

    if name != "id":  # whose place on the line is ours
        assert written[name] == value
    assert from_line(to_line(found)).replace(timestamp=NOON, extra={}) == found.replace(
        timestamp=NOON, extra={}
    )


def test_empty_texts_and_absent_ones_stay_apart_on_a_line():
    """What our own fields hold comes back equal."""
    for message in (
        Message.user("", id="i", timestamp=NOON, name="", author="", model="", stop=""),
        Message.user(None, id="i", timestamp=NOON),
        Message(Role.TOOL, "x", tool_call_id="", id="i", timestamp=NOON),
    ):
        found = from_line(to_line(message))

        assert found.replace(extra={}) == message


# --- nanobot: files -------------------------------------------------------------------------


def test_a_file_of_the_first_era_is_read():
    """S4-24, 2026-02-01: no key, no offset, ASCII-escaped."""
    file = nanobot.decode_file(read("nanobot_era_2026_02_01.jsonl"), zone=UTC)

    assert file.metadata == nanobot.Metadata(
        created_at="2026-02-01T11:00:00", updated_at="2026-02-01T12:00:00"
    )
    assert [(m.role.value, m.content) for m in file.entries] == [
        ("user", "Grüße \U0001f600"),
        ("assistant", "Hi there!"),
    ]
    assert json.loads(to_line(file.entries[1]))["timestamp"] == "2026-02-01T12:00:01.500000"


def test_a_file_with_provider_state_is_read_and_the_state_is_kept():
    """S4-24, 2026-07-30: the second line is private, never shown or sent as a message."""
    data = read("nanobot_era_2026_07_30.jsonl")

    file = nanobot.decode_file(data, zone=UTC)

    state, *messages = file.entries
    assert isinstance(state, UnknownEntry)
    assert nanobot.encode(state) == data.split(b"\n")[1] + b"\n"
    assert [type(message) for message in messages] == [Message, Message]
    assert file.metadata.last_consolidated == 1


def test_a_file_of_the_go_port_is_read_and_its_times_are_kept():
    """S4-17, A13: compact, keys sorted, times in UTC with `Z`."""
    file = nanobot.decode_file(read("nanobot_go.jsonl"), zone=timezone(timedelta(hours=3)))

    first, second = file.entries
    assert file.metadata.key == "telegram:12345678"
    assert file.metadata.last_consolidated == 1
    assert (first.content, first.timestamp) == ("1 < 2", NOON)
    assert second.extra["tools_used"] == ("web_search",)
    line = nanobot.encode(first, zone=timezone(timedelta(hours=3)))
    assert json.loads(line)["timestamp"] == "2026-02-01T12:00:00Z"


def test_the_seeds_own_example_is_read_with_its_whole_history():
    """S4-12, S4-23: last_consolidated is 10 with two messages; nothing may be hidden."""
    file = nanobot.decode_file(read("nanobot_seed_example.jsonl"), zone=UTC)

    assert file.metadata.last_consolidated == 0
    assert [m.content for m in file.entries] == ["Hello", "Hi there!"]


def test_blank_lines_are_skipped_and_the_last_metadata_counts():
    """S4-19: metadata is recognised wherever it stands."""
    first = nanobot.encode_metadata(METADATA)
    last = nanobot.encode_metadata(METADATA.replace(key="other"))
    user = read("nanobot_user.jsonl")

    file = nanobot.decode_file(b"\n" + first + b"  \n\n" + user + b"\r\n" + last, zone=UTC)

    assert file.metadata.key == "other"
    assert len(file.entries) == 1


def test_a_file_without_metadata_is_read():
    """S4-19: a record without `_type` metadata is a message."""
    file = nanobot.decode_file(read("nanobot_user.jsonl"), zone=UTC)

    assert file.metadata == nanobot.Metadata()
    assert len(file.entries) == 1


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b""])
def test_a_file_may_end_its_lines_in_any_way(ending):
    """Windows writes `\\r\\n`, and a last line may lack its end."""
    data = read("nanobot_user.jsonl").rstrip(b"\n") + ending

    assert len(nanobot.decode_file(data, zone=UTC).entries) == 1


def test_a_line_that_cannot_be_read_is_named():
    """B1: one broken line must not be taken for an empty session; the error says which."""
    good = read("nanobot_metadata.jsonl") + read("nanobot_user.jsonl")

    for bad in (b'{"role": "user", "con', b"\0\0\0", b"[]", b"1", good[:40]):
        with pytest.raises(InvalidInput, match=r"line 3\b"):
            nanobot.decode_file(good + bad + b"\n" + good, zone=UTC)


def test_a_line_of_many_megabytes_is_read():
    """B3: in the Go port a line over 1 MiB loses the session."""
    text = "x" * (2 * 1024 * 1024)
    file = read("nanobot_metadata.jsonl") + to_line(Message.user(text))

    assert nanobot.decode_file(file, zone=UTC).entries[0].content == text


def test_the_empty_file_has_nothing_in_it():
    """Bad input 66, as far as the codec goes."""
    for data in (b"", b"\n", b"\n\n  \n"):
        assert nanobot.decode_file(data, zone=UTC) == (nanobot.Metadata(), ())


def test_a_whole_file_is_written_as_it_was_but_for_our_ids():
    """S4-14, S4-21, S4-25: load → save keeps every line of Python's nanobot."""
    lines = [read(name) for name in GOLDENS if name.startswith("nanobot")]
    data = read("nanobot_metadata_titled.jsonl") + b"".join(lines)

    file = nanobot.decode_file(data, zone=UTC)

    assert nanobot.encode_metadata(file.metadata) + b"".join(map(to_line, file.entries)) == data


def test_an_unknown_line_with_broken_characters_is_mended_and_can_be_stored():
    """S4-25, S4-27: it is kept in any store, and a mark says that it was mended."""
    entry, mark = nanobot.decode(rb'{"_type": "future", "x": "a\ud800"}')

    assert codec.read_record(codec.record(entry)) == entry
    assert nanobot.encode(entry) == '{"_type": "future", "x": "a\ufffd"}\n'.encode()
    assert (mark.what, mark.data) == ("mended", {"characters": 1})


def test_broken_characters_in_metadata_leave_a_mark():
    """S4-27: the mark stands among the entries, because the metadata is none."""
    file = nanobot.decode_file(rb'{"_type": "metadata", "key": "a\ud800"}' + b"\n")

    assert file.metadata.key == "a\ufffd"
    assert [(mark.what, mark.data) for mark in file.entries] == [("mended", {"characters": 1})]


def test_an_unknown_entry_of_others_is_no_line():
    """A record of a newer holdfast means nothing to nanobot."""
    with pytest.raises(InvalidInput, match="hologram"):
        nanobot.encode(UnknownEntry(kind="hologram", raw=b'{"v":1,"hologram":7}'))
