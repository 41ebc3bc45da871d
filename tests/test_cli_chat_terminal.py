"""`holdfast chat` at a terminal: the real program, as a person sees it and types.

A vendor's stream that halts stands for an answer that takes its time, so no test waits for a clock.
The local model is asked for real.
"""

import asyncio
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import holdfast
from cli_vendors import ANTHROPIC, KEY, vendor, wait_for_partial
from commands import Commands
from holdfast import Settings, sync
from holdfast.providers.local import weights
from holdfast.testing import FakeProvider
from local_model import need_model
from terminals import ALT_ENTER, CTRL_C, CTRL_D, ENTER, TAB, Terminal
from test_cli_chat import REFUSED, kept

CHAT = [sys.executable, "-m", "holdfast", "chat"]
SGR = re.compile(rb"\x1b\[[\d;]*m")


@pytest.fixture
def run(tmp_path):
    """The program, in a home of its own."""
    return Commands(tmp_path / "home")


@pytest.fixture
def chat(run):
    """Starts `holdfast chat` in a terminal."""

    def chat(*arguments, columns=80, **environment):
        return Terminal([*CHAT, *arguments], run.environment | environment, columns=columns)

    return chat


def say(terminal, text, *wanted):
    """Type it, and wait for the answer and the prompt behind it."""
    prompts = prompts_in(terminal.text)
    terminal.type(text + ENTER)
    terminal.wait_until(lambda shown: all(each in shown for each in wanted))
    terminal.wait_for_prompt(prompts + 1)


def prompts_in(text):
    return sum(line[:1] == ">" for line in text.splitlines())


def leave(terminal):
    terminal.wait_for_prompt(1)
    terminal.type(CTRL_D)
    assert terminal.wait_for_end() == 0
    return terminal.text


def test_the_first_five_minutes(run, chat):
    """Without a key the local model answers, and says how to have another. It is stopped, gone on
    with in another process, searched, reverted, and read elsewhere: nothing is lost."""
    need_model()
    local = {"HOLDFAST_DATA": str(weights.data_folder())}
    with chat(**local) as terminal:
        terminal.wait_for_prompt(1)
        first = terminal.text
        say(terminal, "I am Ada, and I like walruses.", "written]")
        left = leave(terminal)
    answered = kept(run)
    with (
        vendor(ANTHROPIC.stops(ANTHROPIC.says("You are Ada. Forever."), "Ada")) as (_, remote),
        chat("-c", "-m", "anthropic:claude-sonnet-5-5", **remote) as terminal,
    ):
        terminal.wait_for_prompt(2)
        second = terminal.text
        terminal.type("Who am I?" + ENTER)
        terminal.wait_for("You are Ada.")
        terminal.type(CTRL_C)
        terminal.wait_for("[stopped; what was said is kept]")
        terminal.wait_for_prompt(3)
        stopped = kept(run)
        say(terminal, "/revert 1", "Reverted to turn 1: 1 turn removed")
        reverted = kept(run)
        say(terminal, "/branch main", "* main")
        leave(terminal)

    assert "a new conversation\nsmollm2-135m answers" in first and "ANTHROPIC_API_KEY" in first
    assert "is kept: holdfast chat -c goes on with it" in left
    assert answered[0] == ("user", "I am Ada, and I like walruses.") and answered[1][1]
    assert "2 messages" in second and "> I am Ada, and I like walruses." in second
    assert answered[1][1].split()[0] in second
    assert stopped[2:] == [("user", "Who am I?"), ("assistant", "You are Ada.")]
    assert reverted == answered and kept(run) == stopped
    with sync.open(run.store) as sessions:
        *_, found = sessions.search("like walruses").items  # the model may say it after her
        assert found.stored.entry.text == "I am Ada, and I like walruses."
    for command in (["search", "like walruses"], ["show", "@"], ["export", "@", "-f", "markdown"]):
        if find_spec(f"holdfast.cli.commands.{command[0]}_"):
            done = run(*command)
            assert done.status == 0 and "walruses" in done.out


def test_an_answer_that_was_killed_is_shown_as_far_as_it_came_and_gone_on_with(run, chat):
    """kill -9 in the middle of an answer: the next start shows what was said and what had come of
    the answer, says that it was cut off, and Enter goes on with it."""
    begun = ANTHROPIC.stops(ANTHROPIC.says("Once upon a time."), "upon")
    with vendor(begun, ANTHROPIC.says(" there was a whale.")) as (server, environment):
        with chat("-s", "cli:tale", **environment) as terminal:
            terminal.wait_for_prompt(1)
            terminal.type("Tell me a tale." + ENTER)
            terminal.wait_for("Once upon")
            wait_for_partial(run.store, "cli:tale", "Once upon")
            terminal.kill()
        with chat("-c", **environment) as terminal:
            terminal.wait_for_prompt(2)
            shown = terminal.text
            say(terminal, "", "there was a whale.")
            leave(terminal)

    assert "> Tell me a tale.\nOnce upon\n[this answer was cut off; it is kept]" in shown
    assert "Enter or /resume goes on" in shown
    assert kept(run)[:2] == [("user", "Tell me a tale."), ("assistant", "Once upon")]
    assert kept(run)[-1] == ("assistant", " there was a whale.")
    assert len(server.requests) == 2


def test_somebody_is_asked_before_a_tool_runs_that_wants_it(chat, tmp_path):
    """In whichever process: who does not want to say yet leaves it waiting, and is asked again."""
    tools = tmp_path / "tools.py"
    tools.write_text(
        "from holdfast import tool\n\n\n@tool\ndef look(city: str) -> str:\n"
        '    """See it."""\n    return "rain\\x1b[2J"\n\n\n@tool(approval=True)\n'
        'def pay(city: str) -> str:\n    """Pay."""\n    return "paid"\n'
    )
    answers = (
        ANTHROPIC.says(call="look", thought="Let me see. What is it?"),
        ANTHROPIC.says("It rains.", call="pay", number=2),
        ANTHROPIC.says("Paid."),
        ANTHROPIC.says(call="pay", number=3),
        ANTHROPIC.says("Not paid."),
    )
    with vendor(*answers) as (_, environment):
        with chat("--tools", str(tools), **environment) as terminal:
            terminal.wait_for_prompt(1)
            say(terminal, "/tools", "pay [asks first]")
            terminal.type("Pay if it rains." + ENTER)
            terminal.wait_for('run pay(city="Turin 2")? [y/n]')
            first = terminal.text
            terminal.type("perhaps" + ENTER)
            terminal.wait_until(lambda text: text.count("? [y/n]") == 2)
            say(terminal, "y", "Paid.", '✓ pay(city="Turin 2") → paid')
            terminal.type("Again." + ENTER)
            terminal.wait_for('run pay(city="Turin 3")? [y/n]')
            terminal.type(CTRL_D)
            terminal.wait_for("it waits until somebody agrees to pay; /resume goes on")
            terminal.wait_for_prompt(4)
            leave(terminal)
        with chat("-c", "--tools", str(tools), **environment) as terminal:
            terminal.wait_for('run pay(city="Turin 3")? [y/n]')
            terminal.type("n" + ENTER)
            terminal.wait_for("Not paid.")
            terminal.wait_for_prompt(2)
            declined = leave(terminal)

    assert "[thought, 6 words]" in first and "Let me see" not in first
    assert '✓ look(city="Turin 1") → rain\\x1b[2J' in first
    assert "✗ pay" in declined or "Not paid." in declined


def test_several_lines_are_one_message_however_they_are_typed(run, chat):
    """Alt-Enter, a backslash at the end, or a paste. What was typed comes back with the arrow key,
    also the next time."""
    with vendor(ANTHROPIC.says("Yes.")) as (_, environment):
        with chat(**environment) as terminal:
            terminal.wait_for_prompt(1)
            terminal.type("one" + ALT_ENTER + "two")
            terminal.wait_for("  two")
            say(terminal, "", "Yes.")
            say(terminal, "three\\" + ENTER + "four", "  four", "Yes.")
            terminal.paste("five\nsix\n/quit")
            terminal.wait_for("  /quit")
            say(terminal, "")
            leave(terminal)
        with chat("-c", **environment) as terminal:
            terminal.wait_for("leaves\n>")
            terminal.type("\x1b[A")
            terminal.wait_for("  /quit")
            terminal.type(CTRL_C)
            terminal.wait_for("Ctrl-C again leaves")
            terminal.type(CTRL_C)
            assert terminal.wait_for_end() == 0

    asked = [text for role, text in kept(run) if role == "user"]
    assert asked == ["one\ntwo", "three\nfour", "five\nsix\n/quit"]
    history = run.home / "state" / "chat-history"
    assert history.stat().st_mode & 0o777 == 0o600


def test_commands_are_completed_and_a_wrong_one_is_told_the_nearest(chat):
    """Nothing that begins with a slash is said to the model by mistake."""
    with (
        vendor(ANTHROPIC.says("Yes.", tokens=300)) as (server, environment),
        chat(**environment) as terminal,
    ):
        terminal.wait_for_prompt(1)
        say(terminal, "/usage", "nothing was said yet")
        terminal.type("/he" + TAB)
        terminal.wait_for("> /help")
        say(terminal, "", "/revert N", "// at the beginning says a slash")
        say(terminal, "/modle", "did you mean /model?")
        say(terminal, "//usage", "Yes.")
        say(terminal, "/context", "tokens", "user")
        say(terminal, "/usage", "1 turn on main: 300 tokens read, 20 written, $0.00")
        say(terminal, "/model nobody:x", "there are anthropic")
        say(terminal, "/model anthropic:claude-haiku-5-5", "anthropic:claude-haiku-5-5 answers")
        say(terminal, "Two.", "Yes.\n[300")
        say(terminal, "/undo", "taken back: Two.")
        say(terminal, "/branch aside", "* aside")
        say(terminal, "/new", "a new conversation", "is kept: -s cli:")
        say(terminal, "/resume", "nothing was said yet")
        terminal.type("/quit" + ENTER)
        assert terminal.wait_for_end() == 0

    assert [r.body["model"] for r in server.requests] == ["claude-sonnet-5-5", "claude-haiku-5-5"]
    assert "/usage" in str(server.requests[0].body["messages"])


def test_what_fails_is_told_and_the_conversation_goes_on(run, chat):
    """What was said is kept: Enter tries it again, with another model if one is chosen."""
    with (
        vendor(REFUSED, ANTHROPIC.says("Hello, Ada.")) as (server, environment),
        chat(**environment) as terminal,
    ):
        terminal.wait_for_prompt(1)
        say(terminal, "I am Ada.", "error: ", "invalid x-api-key", "what you said is kept")
        say(terminal, "/model anthropic:claude-haiku-5-5", "claude-haiku-5-5 answers")
        say(terminal, "", "Hello, Ada.")
        text = leave(terminal)

    assert "Traceback" not in text and KEY not in text
    assert kept(run) == [("user", "I am Ada."), ("assistant", "Hello, Ada.")]
    assert server.requests[1].body["model"] == "claude-haiku-5-5"


def test_a_conversation_in_use_elsewhere_is_told_and_waited_for(run, chat):
    """It says so; whoever does not want to wait stops, and then nothing was said."""
    stalled = ANTHROPIC.stops(ANTHROPIC.says("One, two, three."), "two")
    with (
        vendor(stalled, ANTHROPIC.says("Done.")) as (_, environment),
        chat("-s", "cli:1", **environment) as first,
    ):
        first.wait_for_prompt(1)
        first.type("Count." + ENTER)
        first.wait_for("One, two,")
        with chat("-s", "cli:1", **environment) as second:
            second.wait_for_prompt(1)
            told = second.text
            second.type("Hello?" + ENTER)
            second.wait_for("> Hello?")
            second.wait_for("claude-sonnet-5-5 …")
            second.type(CTRL_C)
            second.wait_for("[stopped; nothing was said]")
            second.wait_for_prompt(2)
            second.type("And now?" + ENTER)
            second.wait_for("claude-sonnet-5-5 …")
            first.type(CTRL_C)
            first.wait_for("[stopped; what was said is kept]")
            second.wait_for("Done.")
            leave(second)

    assert "another program is answering here" in told and "waits for it" in told
    assert [text for role, text in kept(run) if role == "user"] == ["Count.", "And now?"]


@pytest.mark.parametrize("how", ["dumb", "without prompt_toolkit"])
def test_a_poorer_terminal_has_a_prompt_too(run, chat, tmp_path, how):
    """Without codes that it does not know, and with the way to a better one where that is an
    extra."""
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['prompt_toolkit'] = None")
    more = {"TERM": "dumb"} if how == "dumb" else {"PYTHONPATH": str(tmp_path)}
    with (
        vendor(ANTHROPIC.says("Yes.", thought="Well.")) as (_, environment),
        chat(**environment, **more) as terminal,
    ):
        terminal.wait_for_prompt(1)
        terminal.type("one\\" + ENTER + "two" + ENTER)
        terminal.wait_for("written")
        terminal.wait_for_prompt(2)
        terminal.type(CTRL_C)
        terminal.wait_for("Ctrl-C again leaves")
        text = leave(terminal)

    assert kept(run) == [("user", "one\ntwo"), ("assistant", "Yes.")]
    if how == "dumb":
        assert b"\x1b" not in terminal.raw
    else:
        assert "holdfast[chat]" in text


def test_a_narrow_terminal_without_colours_breaks_between_words(run, chat):
    """NO_COLOR leaves no colour; no line of ours is cut in the middle of a word."""
    with (
        vendor(ANTHROPIC.says("Yes.")) as (_, environment),
        chat(columns=40, NO_COLOR="1", **environment) as terminal,
    ):
        terminal.wait_for_prompt(1)
        say(terminal, "Hello.", "Yes.")
        text = leave(terminal)

    words = {word for line in text.splitlines() for word in line.split()}
    assert {"conversation", "claude-sonnet-5-5", "vendor:model", "written,"} <= words
    assert set(SGR.findall(terminal.raw)) <= {b"\x1b[0m", b"\x1b[m"}


def test_what_the_model_is_not_shown_is_told(run, chat):
    """Whoever comes back is told how much there is, and that a part of it is folded."""

    async def begin():
        (run.home / "data").mkdir(parents=True)
        model = FakeProvider("One.", "Two.", "Three\x1b[2J.", name="anthropic:claude-haiku-5-5")
        async with holdfast.open(run.store, model=model) as sessions:
            settings = Settings(model=model.name)
            session = await sessions.get_or_create("bot:1", settings=settings)
            for number in range(3):
                await session.send(f"{number}.")
            await session.fold(0, 2, why="to try it")

    asyncio.run(begin())
    with (
        vendor(ANTHROPIC.says("Yes.")) as (_, environment),
        chat("-s", "bot", **environment) as terminal,
    ):
        terminal.wait_for_prompt(2)
        shown = terminal.text
        say(terminal, "/context", "to try it")
        leave(terminal)

    assert "bot:1: 6 messages" in shown and "1 fold shortens" in shown
    assert "> 2.\nThree\\x1b[2J." in shown
    assert "claude-haiku-5-5 answers: as before" in shown


def test_a_conversation_needs_a_terminal_to_be_shown_in(run):
    """Typed at one and piped into something, it would be blind."""
    command = ["sh", "-c", '"$@" | cat; echo "the end"', "sh", *CHAT]
    with Terminal(command, run.environment | {"ANTHROPIC_API_KEY": KEY}) as terminal:
        terminal.wait_for("the end")
        text = terminal.text

    assert "error: a conversation needs a terminal" in text and "Traceback" not in text
    assert not run.home.exists()


def test_the_picture_shows_the_program_as_it_is(tmp_path):
    """docs/chat.svg is what docs/picture.py draws now."""
    pytest.importorskip("rich", reason="rich draws the picture: pip install 'holdfast[dev]'")
    docs = Path(__file__).parents[1] / "docs"

    subprocess.run([sys.executable, docs / "picture.py", tmp_path / "chat.svg"], check=True)

    assert (tmp_path / "chat.svg").read_text() == (docs / "chat.svg").read_text()
