"""Conversations of our own writing, with what makes it hard to move one to another vendor."""

from holdfast import Message, ToolCall
from holdfast.parts import File, Image, Text

PNG = b"\x89PNG\r\n\x1a\n" + bytes(24)
PDF = b"%PDF-1.4 nothing in it"


def user(*said):
    return Message.user(said[0] if len(said) == 1 else list(said))


def calls(words, *named):
    """An answer that calls tools: (id, name, arguments) of each."""
    return Message.assistant(words, [ToolCall(id=i, name=n, arguments=a) for i, n, a in named])


def several_at_once():
    """Calls side by side, one of which fails; names that few vendors allow; a late instruction."""
    return [
        Message.system("Be brief."),
        user("Read both files, and tell me the time."),
        calls(
            "One moment.",
            ("c1", "fs.read", '{"path": "a.txt"}'),
            ("c2", "fs.read", '{"path": "b \\"quoted\\".txt"}'),
            ("c3", "9lives", "{}"),
        ),
        Message.tool("There is no such file.", "c2", name="fs.read", is_error=True),
        Message.tool('{"text": "first", "size": 5}', "c1", name="fs.read"),
        Message.tool("Noon.", "c3", name="9lives"),
        Message.assistant("a.txt says first; b.txt is not there; it is noon."),
        Message.system("From here on, answer in Italian."),
        user("And now?"),
        calls(None, ("c4", "fs.read", '{"path": "c.txt"}')),
        Message.tool("", "c4", name="fs.read"),
        Message.assistant("È vuoto."),
    ]


def cut_off():
    """A call that nobody answered, and a result that nobody asked for."""
    return [
        user("What is in the shop?"),
        calls("I look.", ("c1", "look", '{"at": "shop"}'), ("c2", "count", '{"what": "shelves"}')),
        Message.tool("Bread.", "c1", name="look"),
        user("Never mind. What else?"),
        Message.assistant("Only bread was seen."),
        Message.tool("Milk.", "gone", name="look"),
        user("I see milk."),
        Message.assistant("So there is milk, too."),
    ]


def the_same_id_again():
    """Ids that repeat, or that few vendors can write, and arguments that are no object."""
    return [
        user("Try it."),
        calls(None, ("c1", "try", "[1, 2]")),
        Message.tool("No.", "c1", name="try"),
        calls("Again.", ("c1", "try", '{"cut": ')),
        Message.tool("No!", "c1", name="try"),
        calls(None, ("an id with spaces " + "x" * 80, "try", "")),
        Message.tool("Yes.", "an id with spaces " + "x" * 80, name="try"),
        Message.assistant("The third time it worked."),
        user("Thank you."),
        Message.assistant("You are welcome."),
    ]


def pictures():
    """What is seen, by the user and by a tool, which not every model takes."""
    picture = Image(data=PNG, media_type="image/png")
    paper = File(data=PDF, media_type="application/pdf", name="a.pdf")
    return [
        user(Text("What is this?"), picture, paper),
        Message.assistant("A picture and a paper."),
        user("Take another one."),
        calls("Cheese!", ("c1", "camera", '{"zoom": 2}')),
        Message.tool([Text("Taken."), picture], "c1", name="camera"),
        Message.assistant("It is the same."),
        user("Good."),
        Message.assistant("Indeed."),
    ]


def long_chat():
    """Words and nothing else, in more answers than there are vendors."""
    said = [(f"Question {n}?", f"Answer {n}:\n\n- *one*\n- {'two ' * n}") for n in range(1, 17)]
    return [each for q, a in said for each in (user(q), Message.assistant(a))]


TALKS = (several_at_once, cut_off, the_same_id_again, pictures, long_chat)
