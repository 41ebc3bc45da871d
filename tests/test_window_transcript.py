"""Transcripts: a conversation as text, with all that a summary has to know."""

from holdfast.messages import Message, ToolCall
from holdfast.parts import Audio, CallRef, File, Image, Opaque, Text, Thinking, Unknown
from holdfast.window.transcript import transcript


def test_words_calls_and_results_are_told_with_who_said_them():
    """S2-50, B29: `ROLE: text`, `[Called name]`, `[Response from name]`, with what was asked and
    what came back: a summary of the calls alone would not know the facts."""
    call = ToolCall(id="c1", name="weather", arguments='{"city": "Turin"}')

    text = transcript(
        [
            Message.system("Be brief."),
            Message.user("What is it like in Turin?"),
            Message.assistant("I will look.", [call]),
            Message.tool("21 degrees", "c1"),
            Message("model", "It is warm."),
        ]
    )

    assert text == (
        "SYSTEM: Be brief.\n"
        "USER: What is it like in Turin?\n"
        "ASSISTANT: I will look.\n"
        'ASSISTANT: [Called weather] {"city": "Turin"}\n'
        "TOOL: [Response from weather] 21 degrees\n"
        "ASSISTANT: It is warm."
    )


def test_results_in_the_older_style_are_told_once():
    """Where the content repeats the outputs, the outputs are told, each with its name."""
    calls = [
        ToolCall(id="a", name="f", arguments="", output="1"),
        ToolCall(id="b", name="g", arguments="", output="2", is_error=True),
    ]

    assert transcript([Message("function", "12", tool_calls=calls)]) == (
        "TOOL: [Response from f] 1\nTOOL: [Response from g, an error] 2"
    )
    assert transcript([Message("tool", "Both.", tool_calls=calls[:1])]) == (
        "TOOL: Both.\nTOOL: [Response from f] 1"
    )


def test_a_call_that_holds_its_output_is_told_with_it():
    """Some programs write both in one."""
    call = ToolCall(id="a", name="f", arguments='{"x": 1}', output="2")

    assert transcript([Message.assistant(None, [call])]) == (
        'ASSISTANT: [Called f] {"x": 1}\nASSISTANT: [Response from f] 2'
    )


def test_what_is_no_text_is_named():
    """A summary says that there was a picture, and what was thought."""
    parts = [
        Thinking("Which one?"),
        Thinking("", "c2VhbGVk", redacted=True),
        Text("This one."),
        Image(data=b"x"),
        Audio(data=b"x"),
        File(data=b"x", name="a.pdf"),
        File(data=b"x"),
        Opaque("somebody", {"type": "thing"}),
        Unknown({"type": "later"}),
        CallRef("c1"),
        Text(""),
    ]

    assert transcript([Message.assistant(parts)]).split("\n") == [
        "ASSISTANT: [Thought] Which one?",
        "ASSISTANT: [Thought, sealed]",
        "ASSISTANT: This one.",
        "ASSISTANT: [Image]",
        "ASSISTANT: [Audio]",
        "ASSISTANT: [File a.pdf]",
        "ASSISTANT: [File]",
        "ASSISTANT: [Block of somebody]",
        "ASSISTANT: [Something unreadable]",
    ]


def test_what_says_nothing_takes_no_line():
    """An empty message has nothing to be summed up."""
    assert transcript([Message.user(None), Message.assistant("")]) == ""
    assert transcript([Message.tool(None, "c1")]) == "TOOL: [Response from a tool]"
