"""An answer in pieces: cut off because it was too long, by a kill, or by a pause of the service."""

from collections.abc import Sequence

from holdfast.messages import Content, Message, Role
from holdfast.parts import CallRef, Part, Text, Thinking
from holdfast.steps.standing import is_unfinished


def last_answer(messages: Sequence[Message]) -> Message | None:
    """What the model said last, with the pieces before it that it goes on from."""
    answer: Message | None = None
    goes_on = False
    for message in messages:
        if message.role.canonical is not Role.ASSISTANT:
            goes_on = False
            continue
        if goes_on and answer is not None:
            message = message.replace(content=joined(answer, message).content)
        answer, goes_on = message, is_unfinished(message) and not message.calls
    return answer


def joined(first: Message, more: Message) -> Message:
    """An answer and its continuation, as one. It is the first that goes on.

    What was thought before the continuation is kept, without its signature: it was signed where it
    no longer stands.
    """
    thought = [part if type(part) is not Thinking else Thinking(part.text) for part in _parts(more)]
    parts = [*_parts(first)]
    for part in thought:
        if type(part) is Text and parts and type(parts[-1]) is Text and not part.extra:
            parts[-1] = parts[-1].replace(text=parts[-1].text + part.text)
        else:
            parts.append(part)
    return first.replace(
        content=_content(parts), tool_calls=(*first.tool_calls, *more.tool_calls), stop=more.stop
    )


def without_calls(message: Message) -> Message | None:
    """What is said in a message, without the calls; None when nothing is."""
    parts = [part for part in _parts(message) if type(part) is not CallRef]
    content = _content(parts)
    return None if not content else message.replace(content=content, tool_calls=())


def _parts(message: Message) -> Sequence[Part]:
    if isinstance(message.content, str):
        return [Text(message.content)] if message.content else []
    return message.content or ()


def _content(parts: Sequence[Part]) -> Content:
    if len(parts) == 1 and type(parts[0]) is Text and not parts[0].extra:
        return parts[0].text
    return tuple(parts) or None
