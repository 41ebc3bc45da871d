"""Summaries: what a fold shows in the place of what it hides, written by a model."""

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.cancel import CancelToken
from holdfast.errors import Cancelled
from holdfast.messages import Message
from holdfast.settings import Settings
from holdfast.steps.answers import Answered, Exchange
from holdfast.steps.asking import asked
from holdfast.steps.targets import Target
from holdfast.window.plan import Plan, Step
from holdfast.window.transcript import transcript

_CHARACTERS_A_TOKEN = 3  # rather too few: what is summed up has to fit too
_SHARE = 0.5  # of the window: so much is summed up at a time
_WORDS_A_TOKEN = 0.6


class Written(NamedTuple):
    """A text for each summary, and the calls that it took.

    `problem` is why there are fewer: one could not be written, or said nothing.
    """

    texts: list[str]
    exchanges: tuple[Exchange, ...]
    problem: Exception | str = ""


async def summaries(plan: Plan, target: Target, limit: int, cancel: CancelToken) -> Written:
    """The summaries that a plan wants. What a provider does wrong is not raised, whatever it is."""
    texts: list[str] = []
    exchanges: list[Exchange] = []
    problem: Exception | str = ""
    for step in plan.to_summarize:
        text = ""
        try:
            for piece in _pieces(step, limit):
                answered = await _write(target, _task(step, text, piece), step.tokens_after, cancel)
                exchanges += answered.exchanges
                text = (answered.message and answered.message.text) or text
        except Cancelled:
            raise
        except Exception as error:  # noqa: BLE001 - it may be anybody's, and told to nobody but us
            problem = error
        else:
            problem = "" if text.strip() else "it says nothing"
        if problem:
            break
        texts.append(text)
    return Written(texts, tuple(exchanges), problem)


def _pieces(step: Step, limit: int) -> Sequence[str]:
    """The conversation as text, in pieces of which each fits."""
    text = transcript(step.messages)
    size = max(1_000, int(limit * _SHARE) * _CHARACTERS_A_TOKEN)
    return [text[at : at + size] for at in range(0, len(text), size)]


def _task(step: Step, before: str, piece: str) -> Message:
    words = max(30, int(step.tokens_after * _WORDS_A_TOKEN))
    task = step.task.replace("{words}", str(words))
    so_far = f"\n\nThe summary so far, to be gone on with:\n{before}" if before else ""
    return Message.user(f"{task}{so_far}\n\n<conversation>\n{piece}\n</conversation>")


async def _write(target: Target, question: Message, tokens: int, cancel: CancelToken) -> Answered:
    settings = Settings(max_tokens=max(64, tokens))
    exchange = await asked(target, cancel, [question], settings=settings)
    return Answered(exchange.response.message, (exchange,))
