"""Would the vendor accept this request? Judges the bodies that go over a wire.

    from holdfast.testing import validators

    for problem in validators.problems("anthropic", body):
        print(problem)

Each validator is written from what the vendor publishes and from the sentences of its errors, and
shares nothing with the code that makes our requests: the two can only agree by being right. They
are strict about structure (roles, order, pairs, ids, required fields, ranges) and silent about
what a body cannot show: whether the model exists, whether a signature verifies, whether it fits.

| module             | the wire                                                      |
|--------------------|---------------------------------------------------------------|
| `anthropic`        | Messages API                                                  |
| `openai_chat`      | Chat Completions, of OpenAI, Azure and compatible servers     |
| `openai_responses` | Responses, of the same                                        |
| `google`           | generateContent, of the Gemini API and of Vertex              |
| `code_assist`      | Code Assist: the same in an envelope, for models of others too |
| `ollama`           | Ollama's own chat; its Messages API is `anthropic`, lenient   |
| `claude_cli`       | what the program of Claude Code is told                       |

They are pure and total: any JSON value gets its problems listed, and none raises.
"""

from typing import Any

from holdfast.testing.validators import (
    anthropic,
    claude_cli,
    code_assist,
    google,
    ollama,
    openai_chat,
    openai_responses,
)
from holdfast.testing.validators.base import Problem, text_problems

__all__ = ["APIS", "Problem", "problems"]

APIS = (
    *("anthropic", "openai-chat", "openai-responses", "google", "code-assist", "ollama"),
    "claude-cli",
)


def problems(
    api: str, body: Any, *, lenient: bool = False, model: str | None = None
) -> list[Problem]:
    """Everything for which the vendor would refuse `body`; nothing when it would accept it.

    `api` is one of APIS. `lenient` is for servers that speak a wire of OpenAI's or Anthropic's and
    are not they; the modules say what it relaxes, and it changes nothing for the other wires.
    `model` is for Google, who has the model in the address, and whose rules on signatures depend
    on it.
    """
    if api == "anthropic":
        found = anthropic.problems(body, lenient=lenient)
    elif api == "openai-chat":
        found = openai_chat.problems(body, lenient=lenient)
    elif api == "openai-responses":
        found = openai_responses.problems(body, lenient=lenient)
    elif api == "google":
        found = google.problems(body, model=model)
    elif api == "code-assist":
        found = code_assist.problems(body, model=model)
    elif api == "ollama":
        found = ollama.problems(body)
    elif api == "claude-cli":
        found = claude_cli.problems(body)
    else:
        raise ValueError(f"no validator for {api!r}: take one of {', '.join(APIS)}")
    return text_problems(body) + found
