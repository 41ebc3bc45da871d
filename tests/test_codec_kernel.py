"""The canonical message of the tau kernel, as its encoder writes it."""

import json

from holdfast.codec import kernel
from holdfast.messages import Message, Role, ToolCall
from holdfast.parts import Unknown
from shapes import one


def test_the_kernel_knows_four_fields_and_flat_calls():
    """S0-6, S0-7, S0-26: role, content, tool_call_id, tool_calls; nothing else of a message."""
    message = Message(
        Role.ASSISTANT,
        "x",
        tool_calls=(
            ToolCall(
                id="c",
                name="f",
                arguments="{}",
                output="o",
                signature="s",
                is_error=True,
                extra={"a": 1},
            ),
        ),
        tool_call_id="t",
        name="n",
        author="a",
        extra={"b": 2},
        model="m",
    )

    assert kernel.encode(message) == (
        b'{"role":"assistant","content":"x","tool_call_id":"t",'
        b'"tool_calls":[{"id":"c","name":"f","arguments":"{}"}]}'
    )


def test_the_kernel_escapes_as_go_does():
    """S0-26: <, >, &, U+2028 and U+2029 are escaped, in keys and texts; the rest is UTF-8."""
    message = Message.user([Unknown({"type": "<&>", "é\u2029": "\0\n\x7f"})])

    found = kernel.encode(message)

    assert b"<" not in found
    assert rb"\u003c\u0026\u003e" in found
    assert "é".encode() + rb"\u2029" in found
    assert rb"\u0000\n" in found
    assert json.loads(found)["content"] == [{"type": "<&>", "é\u2029": "\0\n\x7f"}]


def test_the_kernel_reads_nested_calls_too():
    """S0-27: a later kernel writes `{id, type, function}`."""
    found = one(
        kernel.decode(
            b'{"role":"assistant","content":null,"tool_calls":'
            b'[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}'
        )
    )

    assert found.tool_calls == (ToolCall(id="c", name="f", arguments="{}"),)


def test_options_of_a_picture_are_kept_for_the_kernel():
    """S0-32: `image_url` is `{url, …options}`."""
    data = (
        b'{"role":"user","content":[{"type":"image_url",'
        b'"image_url":{"url":"https://example.com/a.png","detail":"high"}}]}'
    )

    assert kernel.encode(one(kernel.decode(data))) == data
