"""What the `claude` program passes on to its model as it was said.

The body is what one start of it is told: `system`, the words of a file, and `message`, that of the
one line on its standard input. The message goes to the Messages API, whose rules hold for it. Of
the text that it ends with, the program makes something else when it begins with a command or names
a file: that is no refusal, and worse.
"""

import re
from typing import Any

from holdfast.testing.validators import anthropic
from holdfast.testing.validators.base import Problem, root

FIELDS = {"system", "message"}
# "/clear now" is a command, "/etc/hosts" is none; "@notes.txt" is read wherever it stands.
COMMAND = re.compile(r"/[\w:-]+(?!\S)")
NAMED = re.compile(r"(?:^|\s)@\S")


def problems(body: Any) -> list[Problem]:
    """Everything that the program, or the service behind it, would not take as it was said."""
    request = root(body)
    if not request.expect("object"):
        return request.found
    request.only(FIELDS)
    request["system"].expect("string")
    if not request["message"].expect("object"):
        return request.found
    content = request["message"]["content"]
    last = list(content)[-1:] or [content]
    said = last[0]["text"].text if last[0].is_a("object") else last[0].text
    if COMMAND.match(said) or NAMED.search(said):
        last[0].wrong("interpreted", "the program makes something of its own of this text")
    message = {"model": "claude", "max_tokens": 1, "messages": [request["message"].value]}
    return request.found + anthropic.problems(message)
