"""Sessions on an Ollama server whose window is smaller than it looks (`ollama_double.py`).

A prompt that the server would cut, or has cut, without a word is folded until it fits: nothing of
the log is lost, and what the model reads is what was sent.
"""

import pytest

from holdfast import Message, Settings, open_provider
from holdfast.errors import DoesNotFit
from holdfast.events import Folded, Retrying, TextDelta
from ollama_double import Ollama
from sessions_for_tests import asynchronous, events_of, messages, talking

SAID = "so " * 300
TOLD = [
    message
    for number in range(20)
    for message in (Message.user(f"Question {number}? {SAID}"), Message.assistant(SAID))
]
UNCUT = Settings(system="Be brief.", limits={"continuations": 0})
VERSIONS = ["0.33.2", "0.20.0", "0.9.0"]  # half of the window is left, all of it, its own API


def talking_to(ollama, file_url, **options):
    model = open_provider("ollama:qwen3:8b", base_url=ollama.url, **options)
    return model, talking(file_url, model=model, settings=UNCUT)


@asynchronous
async def test_a_session_that_is_longer_than_the_real_window_is_folded_first(file_url):
    """32,768 tokens are taken for granted until the server has said 4,096: then the window of the
    turn is that, before anything was answered, and of every turn that follows."""
    async with Ollama(window=4_096).served() as ollama:
        model, talk = talking_to(ollama, file_url)
        async with talk as (session, _):
            await session.append(*TOLD)
            heard = []
            result = await session.send("Well?", on_event=heard.append)
            again = await session.send("And now?")

            assert (result.text, again.text) == ("Fine.", "Fine.")
            assert events_of(Folded, heard) and not events_of(Retrying, heard)
            assert "".join(event.text for event in events_of(TextDelta, heard)) == "Fine."
            assert (await messages(session))[: len(TOLD)] == TOLD
            assert model.context_limit == 4_096
        await model.close()

    assert len(ollama.prompts) == 2
    assert all(len(words) < 4_096 and words[:2] == ["Be", "brief."] for words in ollama.prompts)
    assert ollama.prompts[0][-1] == "Well?" and ollama.prompts[1][-2:] == ["And", "now?"]


@pytest.mark.parametrize("version", VERSIONS)
@asynchronous
async def test_a_prompt_that_was_cut_in_silence_is_folded_and_sent_again(file_url, version):
    """The server was started anew with a smaller window. Its answer to what was left of the prompt
    is not kept; who has heard some of it is told that another begins."""
    async with Ollama(version, window=32_768).served() as ollama:
        model, talk = talking_to(ollama, file_url)
        async with talk as (session, _):
            await session.append(*TOLD)
            await session.send("Well?")
            ollama.trained = ollama.loaded["qwen3:8b"] = 4_096
            heard = []
            result = await session.send("And now?", on_event=heard.append)

            assert result.text == "Fine." and result.outcome == "response"
            (retrying,) = events_of(Retrying, heard)
            assert "cut in silence" in retrying.error
            kinds = [type(event) for event in heard]
            assert kinds.index(TextDelta) < kinds.index(Retrying) < kinds.index(Folded)
            said = [message.text for message in await messages(session)]
            assert said[: len(TOLD)] == [message.text for message in TOLD]
            assert said[len(TOLD) :] == ["Well?", "Fine.", "And now?", "Fine."]
            assert model.context_limit == 4_096
        await model.close()

    whole, cut, folded = ollama.prompts
    assert len(cut) <= 4_096 < len(whole)
    assert len(folded) < 4_096 and folded[:2] == ["Be", "brief."] and folded[-1] == "now?"


@asynchronous
async def test_what_does_not_fit_at_all_is_told(file_url):
    """One message that is longer than the window: the draft has it, the server never saw it."""
    async with Ollama(window=4_096).served() as ollama:
        model, talk = talking_to(ollama, file_url)
        async with talk as (session, _):
            with pytest.raises(DoesNotFit):
                await session.send("so " * 9_000)

            assert session.draft.text.startswith("so so") and await messages(session) == []
        await model.close()

    assert ollama.prompts == []


@asynchronous
async def test_a_conversation_goes_on_where_nothing_is_counted_that_was_cached(file_url):
    """Version 0.30 counts a token or two of a prompt that it has read before: nothing is folded."""
    async with Ollama("0.30.1", window=32_768, counts=False).served() as ollama:
        model, talk = talking_to(ollama, file_url)
        async with talk as (session, _):
            await session.append(*TOLD)
            heard = []
            for number in range(3):
                await session.send(f"Question {number}?", on_event=heard.append)

            assert not events_of(Folded, heard) and not events_of(Retrying, heard)
        await model.close()

    assert [len(words) for words in ollama.prompts] == sorted(map(len, ollama.prompts))
    assert len(ollama.prompts) == 3 and model.context_limit == 32_768
