"""The table of formats, and Markdown, which is for people."""

import dataclasses
from datetime import UTC, datetime
from importlib.metadata import EntryPoint

import pytest
from hypothesis import HealthCheck, given, settings

import holdfast.formats
from archives import archives
from holdfast import Message, ToolCall, formats
from holdfast.archive import archive_of
from holdfast.entries import Call, Fold
from holdfast.errors import InvalidInput
from holdfast.formats import document, markdown
from holdfast.parts import Image, Opaque, Text, Thinking

THEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
OTHER = dataclasses.replace(document.FORMAT, name="other", recognises=lambda data: data == b"other")


def archive(*entries, **fields):
    fields = {"created_at": THEN, "updated_at": THEN} | fields
    return archive_of("cli:direct", entries, **fields)


def shown(*entries):
    return b"".join(markdown.write([archive(*entries)])).decode()


def registered(monkeypatch, value):
    entry = EntryPoint("other", value, "holdfast.formats")
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [entry])


def test_each_format_has_the_name_that_it_is_found_by():
    assert formats.names() == ("json", "nanobot", "markdown")
    for name in formats.names():
        assert formats.named(name).name == name


def test_a_package_can_register_another(monkeypatch):
    registered(monkeypatch, "test_formats:OTHER")

    assert formats.names() == ("json", "nanobot", "markdown", "other")
    assert formats.named("other").name == "other"
    assert formats.recognised(b"other").name == "other"


def test_what_is_registered_and_is_no_format_is_refused(monkeypatch):
    registered(monkeypatch, "test_formats:THEN")

    with pytest.raises(InvalidInput, match="no Format"):
        formats.named("other")


@pytest.mark.parametrize("data", [b"", b"# Title\n", b"{}", b"\x00\x01", b'{"role": "poet"}'])
def test_data_in_no_format_is_refused_with_the_names_of_all(data):
    with pytest.raises(InvalidInput, match="json, nanobot, markdown"):
        formats.recognised(data)


def test_an_unknown_name_is_refused_with_the_names_of_all():
    with pytest.raises(InvalidInput, match="json, nanobot, markdown"):
        formats.named("pdf")


# Markdown


def test_a_conversation_can_be_read_by_people():
    text = shown(
        Message.user("What is *this*?", timestamp=THEN, author="Ada"),
        Message.assistant(
            (Thinking("hm"), Text("A test.")),
            tool_calls=[ToolCall(id="c", name="look_up", arguments='{"a": 1}')],
            timestamp=THEN,
            model="m",
        ),
        Message.tool("found ``` it", tool_call_id="c", timestamp=THEN),
    )

    assert "## User (Ada) · 2026-01-02 03:04" in text
    assert "What is *this*?" in text
    assert "<summary>thinking</summary>" in text
    assert '```json\n{"a": 1}\n```' in text
    assert "````\nfound ``` it\n````" in text


def test_what_markdown_leaves_out_is_told():
    told = markdown.losses(
        archive(
            Message.assistant((Thinking("a", signature="s"), Thinking("b", signature="s"))),
            Message.user((Image(data=b"x"), Opaque("v", {"a": 1}))),
            Fold(first=1, last=1),
            Call(model="m"),
            Call(model="m"),
            agent="helper",
        )
    )

    assert told == [
        "not in Markdown: 1 fold",
        "not in Markdown: 2 receipts of model calls",
        "not in Markdown: 2 thinking signatures",
        "not in Markdown: 1 vendor's block",
        "not in Markdown: 1 pictures or files",
    ]
    assert markdown.losses(archive(Message.user("plain"))) == []


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(archives())
def test_no_stored_text_steers_a_terminal_out_of_markdown(one):
    text = b"".join(markdown.write([one])).decode()

    assert [c for c in text if not (c.isprintable() or c in "\n\t\u200c\u200d")] in ([], ["\u3000"])
    assert "\x1b" not in text


def test_a_key_cannot_be_mark_up():
    one = archive(Message.user("x"))
    renamed = one._replace(record=one.record.replace(key="a<b>*c*"))

    assert b"# a\\<b\\>\\*c\\*\n" in b"".join(markdown.write([renamed]))


def test_the_module_names_what_it_gives():
    assert set(holdfast.formats.__all__) == {"Format", "Reading", "named", "names", "recognised"}
