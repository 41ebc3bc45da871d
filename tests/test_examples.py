"""The examples run as a user runs them: as programs, with the real model, with wrong input too."""

import asyncio
import json
import re
import runpy
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

import holdfast
from holdfast.errors import AuthError
from holdfast.testing import FakeProvider
from local_model import need_model

EXAMPLES = Path(__file__).parent.parent / "examples"


def example(name, *arguments: str, **options) -> subprocess.CompletedProcess[str]:
    """Run an example as a user does."""
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def kept(db, key) -> list[tuple[str, str | None]]:
    """Who said what in a session of a file."""

    async def read():
        async with holdfast.open(f"sqlite:{db}") as sessions:
            session = await sessions.get(key)
            return [(str(each.role), each.text) for each in await session.read()]

    return asyncio.run(read())


# ---- every example ----

WRONG = {
    "approval": [[], ["ask"], ["answer", "db"], ["answer", "db", "perhaps"], ["refund", "db"]],
    "bot": [["--nonsense"], ["hello"]],
    "coding_agent": [["--nonsense"], ["calc.py"]],
    "endpoint": [["--port", "many"], ["--nonsense"]],
    "switch_models": [["--nonsense"], ["gpt"]],
}


def test_every_example_is_run_here():
    """An example that nobody runs stops working one day."""
    assert sorted(path.stem for path in EXAMPLES.glob("*.py")) == sorted(WRONG)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [(name, each) for name, all in WRONG.items() for each in all],
    ids=lambda value: value if isinstance(value, str) else " ".join(value) or "none",
)
def test_wrong_arguments_are_answered_with_usage(name, arguments, tmp_path):
    """Exit status 2, how it is used, no traceback, and no file is made."""
    if name == "endpoint":
        pytest.importorskip("starlette")
        pytest.importorskip("uvicorn")

    failed = example(name, *arguments, cwd=tmp_path)

    assert failed.returncode == 2
    assert failed.stderr.startswith("usage:") and "Traceback" not in failed.stderr
    assert list(tmp_path.iterdir()) == []


# ---- bot ----


def test_the_bot_has_a_memory_for_each_chat(tmp_path):
    """Chats are answered side by side, the messages of one in their order."""
    need_model()
    db = tmp_path / "bot.db"

    talked = example("bot", "--db", str(db), input="ada: I am Ada.\nbob: Hi!\nada: Who am I?\n")

    assert (talked.returncode, talked.stderr) == (0, "")
    assert len(re.findall(r"^ada < .", talked.stdout, re.MULTILINE)) == 2
    assert len(re.findall(r"^bob < .", talked.stdout, re.MULTILINE)) == 1
    ada = kept(db, "telegram:ada")
    assert [role for role, _ in ada] == ["user", "assistant"] * 2
    assert [text for role, text in ada if role == "user"] == ["I am Ada.", "Who am I?"]
    assert len(kept(db, "telegram:bob")) == 2


def test_an_update_that_is_delivered_again_is_not_asked_again(tmp_path):
    """A second run with the same updates gives the answers of the first, and keeps nothing more."""
    need_model()
    arguments = ("bot", "--db", str(tmp_path / "bot.db"))
    first = example(*arguments, input="ada: I am Ada.\n")
    before = kept(tmp_path / "bot.db", "telegram:ada")

    second = example(*arguments, input="ada: I am Ada.\n")

    assert answers(second.stdout) == answers(first.stdout)
    assert kept(tmp_path / "bot.db", "telegram:ada") == before


def test_a_killed_bot_answers_when_the_update_comes_again(tmp_path):
    """What was said survives the kill, and is answered once."""
    need_model()
    db = tmp_path / "bot.db"
    with bot(db) as process:
        say(process, "ada: Tell me a very long story about a whale.")
        assert process.stdout.readline() == "ada ...\n"
        process.kill()

    again = example("bot", "--db", str(db), input="ada: Tell me a very long story about a whale.\n")

    assert answers(again.stdout) and again.returncode == 0
    said = [text for role, text in kept(db, "telegram:ada") if role == "user"]
    assert said.count("Tell me a very long story about a whale.") == 1


def test_the_bot_confirms_what_it_has_answered_and_nothing_else(tmp_path):
    """What waits behind another message of its chat would be lost with the bot otherwise."""
    names = runpy.run_path(str(EXAMPLES / "bot.py"))
    gate = asyncio.Event()
    texts = {1: "One?", 2: "Two?", 3: "Three?"}
    asked, sent = [], []

    class Recorded:
        async def get_updates(self, offset):
            asked.append((offset, len(sent)))
            if len(asked) == 3:
                gate.set()
            message = {"chat": {"id": "ada"}}
            return [
                {"update_id": number, "message": message | {"text": text}}
                for number, text in texts.items()
                if number >= offset
            ]

        def send_message(self, _, text):
            sent.append(text)

        def send_typing(self, _):
            pass

    async def slow(_):
        await gate.wait()
        return "1"

    async def scenario():
        model = FakeProvider(slow, "2", "3")
        async with holdfast.open(f"sqlite:{tmp_path}/bot.db", model=model) as sessions:
            await names["Bot"](Recorded(), sessions).run()

    asyncio.run(scenario())

    assert sent == ["1", "2", "3"] and asked[-1][0] == 4
    assert all(offset <= answered + 1 for offset, answered in asked)


def test_an_answer_of_the_bot_can_be_stopped_and_a_chat_begun_anew(tmp_path):
    """/stop reaches the answer that is being written; what comes meanwhile waits its turn."""
    need_model()
    db = tmp_path / "bot.db"
    with bot(db) as process:
        say(process, "ada: Tell me a very long story about a whale.")
        process.stdout.readline()
        say(process, "ada: Hello?")
        say(process, "ada: /stop")
        stopped = process.stdout.readline()
        assert process.stdout.readline() == "ada ...\n"
        hello = process.stdout.readline()
        before = kept(db, "telegram:ada")
        say(process, "ada: /new")
        anew = process.stdout.readline()
        process.stdin.close()
        process.wait(20)

    assert stopped.startswith("ada < ") and stopped.endswith("[stopped]\n")
    assert hello.startswith("ada < ")
    assert [text for role, text in before if role == "user"][-1] == "Hello?"
    assert anew == "ada < We begin anew.\n"
    assert kept(db, "telegram:ada") == []


def bot(db):
    return subprocess.Popen(
        [sys.executable, str(EXAMPLES / "bot.py"), "--db", str(db)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def say(process, line):
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


def answers(output):
    return [line for line in output.splitlines() if " < " in line]


# ---- approval ----


@pytest.mark.parametrize(
    ("agrees", "paid", "last"),
    [("yes", 1, "Done: refunded 25 euros."), ("no", 0, "I am sorry, I may not.")],
)
def test_an_approval_is_asked_for_in_one_process_and_given_in_another(tmp_path, agrees, paid, last):
    """The tool runs when somebody has agreed, in the process in which they did, and once."""
    db = str(tmp_path / "shop.db")

    asked = example("approval", "ask", db)
    answered = example("approval", "answer", db, agrees)
    again = example("approval", "answer", db, agrees)

    assert "waits for an answer: refund" in asked.stdout and "the bank" not in asked.stdout
    assert answered.stdout.count("the bank pays 25 euros") == paid
    assert answered.stdout.endswith(f"assistant: {last}\n")
    assert again.returncode == 1 and "Traceback" not in again.stderr
    assert "the bank" not in again.stdout
    assert kept(db, "shop:order-17")[-1] == ("assistant", last)


def test_an_answer_to_a_question_that_nobody_asked_is_told_in_words(tmp_path):
    failed = example("approval", "answer", str(tmp_path / "shop.db"), "yes")

    assert failed.returncode == 1
    assert "shop:order-17" in failed.stderr and "Traceback" not in failed.stderr


# ---- coding agent ----


def test_the_agent_mends_the_program():
    """It reads, runs the tests, writes, and runs them again; all of it is told as it happens."""
    done = example("coding_agent", "--yes")

    assert (done.returncode, done.stderr) == (0, "")
    steps = re.findall(r"^-> (\w+)", done.stdout, re.MULTILINE)
    assert steps == ["read_file", "run_tests", "write_file", "run_tests"]
    assert "<- FAILED (failures=1)" in done.stdout and "<- the tests pass" in done.stdout
    assert done.stdout.endswith("-- the program was changed\n")


def test_the_agent_writes_nothing_that_it_may_not():
    """Each call that needs it is asked for; without a yes it is not run, and the model is told."""
    done = example("coding_agent", input="y\nn\ny\n")

    assert done.returncode == 0
    assert done.stdout.count("? [y/N]") == 3
    assert "calc.py is written" not in done.stdout and "the tests pass" not in done.stdout
    assert done.stdout.endswith("-- the program is as it was\n")


# ---- switching models ----


def test_each_model_is_shown_what_it_can_read():
    """Thoughts go back to the model that thought them, and to no other; nothing else is lost."""
    done = example("switch_models")

    assert (done.returncode, done.stderr) == (0, "")
    first, second, third = re.findall(
        r"^  (?:claude|gpt)\n((?:    .*\n)+)", done.stdout, re.MULTILINE
    )
    assert first.split("\n")[:-1] == ["    user: I am Ada."]
    assert "thought" not in second and "    assistant: Hello, Ada.\n" in second
    assert "    assistant: (thought, signed) She is Ada.\n" in third
    assert "    assistant: You are Ada.\n" in third


# ---- endpoint ----


@asynccontextmanager
async def endpoint(db, model):
    """The example's app behind a real server on the loopback interface, and a client."""
    uvicorn = pytest.importorskip("uvicorn")
    pytest.importorskip("starlette")
    app = runpy.run_path(str(EXAMPLES / "endpoint.py"))["make_app"](f"sqlite:{db}", model)
    config = uvicorn.Config(
        app, host="127.0.0.1", port=0, log_level="error", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:
        assert not serving.done()
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:
        yield client
    server.should_exit = True
    await serving


async def events_of(answer):
    """The server-sent events of an answer, as (event, data, id)."""
    fields = {}
    async for line in answer.aiter_lines():
        name, _, value = line.partition(": ")
        if name:
            fields[name] = value
        elif fields:
            yield fields["event"], json.loads(fields["data"]), fields.get("id")
            fields = {}


async def said_in(client, after=0):
    """The messages that a watcher is given at once, with their numbers."""
    found = []
    async with client.stream("GET", f"/chat/ada/watch?after={after}") as answer:
        try:
            async with asyncio.timeout(0.5):
                async for event, data, id in events_of(answer):
                    if event == "message":
                        found.append((int(id), data["role"], data["content"]))
        except TimeoutError:
            return found
    return found


def test_the_endpoint_streams_an_answer_and_keeps_it(tmp_path):
    """The events come as they happen, the words among them; sent again it is not asked again."""

    async def main():
        model = FakeProvider("Hello dear Ada.")
        async with endpoint(tmp_path / "web.db", model) as client:
            said = {"text": "I am Ada.", "once": "1"}
            async with client.stream("POST", "/chat/ada", json=said) as answer:
                first = [event async for event in events_of(answer)]
            async with client.stream("POST", "/chat/ada", json=said) as answer:
                again = [event async for event in events_of(answer)]
            return first, again, await said_in(client), len(model.requests)

    first, again, kept, asked = asyncio.run(main())

    names = [event for event, _, _ in first]
    assert names[0] == "turn_started" and names[-1] == "turn_finished"
    words = [data["text"] for event, data, _ in first if event == "text_delta"]
    assert len(words) > 1 and "".join(words) == "Hello dear Ada."
    assert again[-1][1]["message"]["content"] == "Hello dear Ada."
    assert [(role, text) for _, role, text in kept] == [
        ("user", "I am Ada."),
        ("assistant", "Hello dear Ada."),
    ]
    assert asked == 1


def test_a_client_that_goes_away_stops_its_turn(tmp_path):
    """What was said by then is kept; the next message is answered as ever."""

    async def main():
        model = FakeProvider("one " * 500, "Fine.", pause_s=0.01)
        async with endpoint(tmp_path / "web.db", model) as client:
            async with client.stream("POST", "/chat/ada", json={"text": "Count."}) as answer:
                async for event, _, _ in events_of(answer):
                    if event == "text_delta":
                        break
            async with asyncio.timeout(10):
                while len(said := await said_in(client)) < 2:  # it waits for a while by itself
                    pass
            done = await client.post("/chat/ada", json={"text": "And?"})
            return said, done.text

    said, done = asyncio.run(main())

    words = said[1][2].split()
    assert set(words) == {"one"} and len(words) < 500
    assert '"text":"Fine."' in done


def test_a_detached_turn_goes_on_and_can_be_watched_from_any_place(tmp_path):
    """A watcher gets the words of the running turn, then the message, with its number."""

    async def main():
        model = FakeProvider("one " * 60, pause_s=0.02)
        async with endpoint(tmp_path / "web.db", model) as client:
            async with client.stream("POST", "/chat/ada?detach=1", json={"text": "Count."}) as left:
                async for event, _, _ in events_of(left):
                    if event == "text_delta":
                        break
            partial, message = "", None
            async with client.stream("GET", "/chat/ada/watch") as answer:
                async for event, data, id in events_of(answer):
                    if event == "partial":
                        partial += data["text"]
                    elif data["role"] == "assistant":
                        message = (data["content"], int(id))
                        break
            seen = await said_in(client, after=message[1])
            return partial, message, seen, await said_in(client, after=message[1] - 1)

    partial, message, after, before = asyncio.run(main())

    assert message[0] == "one " * 60
    assert partial and message[0].startswith(partial)
    assert after == []
    assert before == [(message[1], "assistant", message[0])]


def test_a_turn_of_the_endpoint_can_be_stopped(tmp_path):
    async def main():
        model = FakeProvider("one " * 500, pause_s=0.01)
        async with endpoint(tmp_path / "web.db", model) as client:
            events = []
            async with client.stream("POST", "/chat/ada", json={"text": "Count."}) as answer:
                async for event, data, _ in events_of(answer):
                    if not events:
                        stopped = await client.post("/chat/ada/stop")
                    events.append((event, data))
            return stopped.json(), events[-1], (await client.post("/chat/ada/stop")).json()

    stopped, (event, data), again = asyncio.run(main())

    assert (stopped, again) == ({"stopped": True}, {"stopped": False})
    assert (event, data["outcome"]) == ("turn_finished", "cancelled")


def test_a_failing_model_is_told_in_the_stream(tmp_path):
    async def main():
        async with (
            endpoint(tmp_path / "web.db", FakeProvider(AuthError("no key"))) as client,
            client.stream("POST", "/chat/ada", json={"text": "Hi"}) as answer,
        ):
            return [event async for event in events_of(answer)]

    event, data, _ = asyncio.run(main())[-1]

    assert event == "error" and "no key" in data["error"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/chat/ada", b"no JSON", 400),
        ("POST", "/chat/ada", b'{"words": "Hi"}', 400),
        ("POST", "/chat/ada", b"[]", 400),
        ("POST", "/chat/ada", b'{"text": ""}', 400),
        ("POST", "/chat/ada", b'{"text": 5}', 400),
        ("POST", f"/chat/{'a' * 2000}", b'{"text": "Hi"}', 400),
        ("POST", "/chat/nobody/stop", b"", 404),
        ("GET", "/chat/nobody/watch", b"", 404),
        ("GET", f"/chat/{'a' * 2000}/watch", b"", 404),
        ("GET", "/chat/nobody/watch?after=x", b"", 400),
        ("GET", "/chat/ada", b"", 405),
    ],
)
def test_a_wrong_request_is_refused_in_words(tmp_path, method, path, body, status):
    async def main():
        async with endpoint(tmp_path / "web.db", FakeProvider()) as client:
            return await client.request(method, path, content=body)

    answer = asyncio.run(main())

    assert answer.status_code == status
    assert answer.text and "Traceback" not in answer.text
