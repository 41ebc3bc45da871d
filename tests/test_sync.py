"""The synchronous face: real threads, a real file, one loop beneath."""

import asyncio
import gc
import inspect
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import sync_stub
from holdfast import Message, Session, ids, sync, tool
from holdfast.child import Child
from holdfast.errors import Busy, Cancelled, InvalidInput, SessionNotFound
from holdfast.events import Outcome, TextDelta
from holdfast.loop_thread import LoopThread
from holdfast.manager import SessionManager
from holdfast.memory import Memory
from holdfast.peek import Peek
from holdfast.providers.base import Provider
from holdfast.retention import Retention
from holdfast.session import Subagent
from holdfast.stores.base import Store, Tenant
from holdfast.stores.values import LIMITS
from holdfast.streams import Stream
from holdfast.sync.background import background
from holdfast.testing import FakeProvider
from holdfast.testing.fake_provider import calls
from processes import SAY, Script

CANCEL_S = 1.0
KINDS = [SessionManager, Session, Subagent, Child, Stream, Peek, Memory, Store, Tenant, Provider]
KIND_NAMES = [kind.__name__ for kind in KINDS]


def slow(*answers):
    return FakeProvider(*answers, pause_s=0.02)


def words(count):
    return " ".join(f"word{n}" for n in range(count))


@pytest.fixture
def opened(file_url):
    """Opens managers on one file, and closes them."""
    made = []

    def _open(*answers, **options):
        model = (
            answers[0] if answers and isinstance(answers[0], Provider) else FakeProvider(*answers)
        )
        made.append(sync.open(file_url, model=model, **options))
        return made[-1]

    yield _open
    for each in made:
        each.close()


def in_threads(*functions):
    """Run functions at once; what each gave or raised."""
    found = [None] * len(functions)

    def run(place, function):
        try:
            found[place] = function()
        except BaseException as error:
            found[place] = error

    threads = [threading.Thread(target=run, args=each) for each in enumerate(functions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    return found


def until(condition, seconds=5.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.005)


# The surface


@pytest.mark.parametrize("kind", KINDS, ids=KIND_NAMES)
def test_every_public_name_is_there_with_its_arguments_and_its_words(kind):
    """Whatever an asynchronous class has, the face has: nothing is forgotten when it grows."""
    face = sync.Subagent if kind is Child else getattr(sync, kind.__name__)

    for name in dir(kind):
        if not name.startswith("_") and name != "aclose":
            there, here = inspect.getattr_static(kind, name), inspect.getattr_static(face, name)
            assert here.__doc__ == there.__doc__ or kind is Child
            assert not inspect.iscoroutinefunction(here)
            if inspect.isfunction(there):
                assert (
                    inspect.signature(here).parameters.keys()
                    == inspect.signature(there).parameters.keys()
                )
    assert hasattr(face, "__enter__") == hasattr(kind, "__aenter__")
    assert hasattr(face, "__iter__") == hasattr(kind, "__aiter__")


def test_the_types_are_those_of_the_asynchronous_classes():
    """The stub is what `python tests/sync_stub.py` makes of them now."""
    assert sync_stub.STUB.read_text(encoding="utf-8") == sync_stub.stub()


def test_a_conversation_without_await(opened):
    """The example of the design, in a script."""
    sessions = opened("Hello, Ada.", "You are Ada.")
    session = sessions.get_or_create("cli:direct", agent="helper")

    result = session.send("I am Ada.")
    events = list(session.stream("Who am I?"))

    assert str(result) == "Hello, Ada." and result.outcome is Outcome.RESPONSE
    assert "".join(each.text for each in events if isinstance(each, TextDelta)) == "You are Ada."
    assert [each.text for each in session.read(1, 3)] == ["Hello, Ada.", "Who am I?"]
    assert session.count == 4 and session.agent == "helper"


def test_the_same_session_is_the_same_object(opened):
    """For everybody who asks, as below; and other kinds of object have faces too."""
    sessions = opened()
    session = sessions.get_or_create("cli:direct")

    child = session.child("helper")

    assert all(each is session for each in in_threads(*[lambda: sessions.get("cli:direct")] * 8))
    assert isinstance(child, sync.Subagent) and isinstance(child.session, sync.Session)
    assert sessions.get(child.key) is child.session
    assert [type(each) for each in session.children()] == [sync.Subagent]
    assert isinstance(session.fork("cli:fork"), sync.Session)


def test_stores_and_providers(file_url):
    """A store is open when it is given, its tenants answer, and a face may be passed on."""
    provider = FakeProvider("Hello.")
    store = sync.open_store(file_url)
    with (
        sync.open_store("memory:") as other,
        sync.SessionManager(store, model=provider) as sessions,
    ):
        sessions.get_or_create("cli:direct").send("Hi.")

        copied = sessions.copy(other)

        assert copied.sessions == 1
        record = other.tenant().load("cli:direct")
        assert [each.seq for each in other.tenant().read(record.id, kind="message")] == [1, 2]
    with pytest.raises(SessionNotFound), sync.open_store("memory:") as store:
        store.tenant().load("cli:direct")
    with sync.open_provider("openai:gpt-5", api_key="k") as model:
        assert model.name == "openai:gpt-5" and model.context_limit > 1000


def test_what_an_object_says_of_itself_is_its_own():
    """A store that was opened with limits tells these, and not those of its class."""
    with sync.open_store("memory:", limits=LIMITS.replace(page=3)) as store:
        assert store.limits.page == 3


def test_errors_are_those_of_the_asynchronous_face(opened):
    """The same types, raised where the call is made."""
    sessions = opened()

    with pytest.raises(SessionNotFound):
        sessions.get("cli:nobody")
    with pytest.raises(InvalidInput, match="input"):
        sessions.get_or_create("cli:direct").stream(5)
    with pytest.raises(AttributeError, match="sned"):
        sessions.get("cli:direct").sned("Hi.")


# Leaving a stream


def leave_by_break(stream):
    for event in stream:
        if isinstance(event, TextDelta):
            break


def leave_by_close(stream):
    events = iter(stream)
    while not isinstance(next(events), TextDelta):
        pass
    events.close()


def leave_by_with(stream):
    with stream as events:
        leave_by_break(events)


def leave_by_exception(stream):
    try:
        for event in stream:
            if isinstance(event, TextDelta):
                raise ZeroDivisionError
    except ZeroDivisionError:
        return
    raise AssertionError("it was swallowed")


def leave_to_the_collector(stream):
    events = iter(stream)
    while not isinstance(next(events), TextDelta):
        pass
    ring = [events]
    ring.append(ring)
    del events, ring
    gc.collect()


@pytest.mark.parametrize(
    "leave",
    [leave_by_break, leave_by_close, leave_by_with, leave_by_exception, leave_to_the_collector],
    ids=lambda leave: leave.__name__.removeprefix("leave_"),
)
def test_leaving_a_stream_early_cancels_the_turn_and_keeps_what_was_said(opened, leave):
    """When the loop is left, the partial is stored already, and the next turn can begin."""
    session = opened(slow(words(200), "Next.")).get_or_create("cli:direct")

    leave(session.stream("Go."))

    assert session.messages[-1].stop == "cancelled"
    assert 0 < len(session.messages[-1].text) < len(words(200))
    assert str(session.send("And?", wait=0)) == "Next."


def test_a_detached_stream_goes_on_when_it_is_left(opened):
    session = opened(slow(words(10), "Next.")).get_or_create("cli:direct")

    leave_by_break(session.stream("Go.", detach=True))

    assert str(session.send("And?")) == "Next."
    assert session.messages[1].text == words(10)


def test_a_watch_is_a_generator(opened):
    """It is left as a stream is."""
    session = opened().get_or_create("cli:direct")
    session.append(Message.user("I am Ada."))

    watch = session.watch(after=0)

    assert next(watch).entry.text == "I am Ada."
    watch.close()


# Threads and loops


def test_many_threads_talk_in_one_session_one_after_the_other(opened):
    """Each question stands before its own answer: turns never mix."""
    model = FakeProvider(*[lambda request: f"to {request.messages[-1].text}"] * 12)
    session = opened(model).get_or_create("cli:direct")

    results = in_threads(*[lambda n=n: session.send(f"question {n}") for n in range(12)])

    assert [str(each) for each in results] == [f"to question {n}" for n in range(12)]
    said = [message.text for message in session.messages]
    assert all(answer == f"to {asked}" for asked, answer in zip(said[::2], said[1::2], strict=True))


def test_many_threads_that_ask_for_a_new_key_get_one_object(opened):
    """One session is made, however many threads begin at once, and what each says is there."""
    sessions, barrier = opened(), threading.Barrier(16)

    def begin(n):
        barrier.wait()
        session = sessions.get_or_create("cli:new")
        session.append(Message.user(f"from {n}"))
        return session

    found = in_threads(*[lambda n=n: begin(n) for n in range(16)])

    assert len({id(each) for each in found}) == 1 and len(sessions.list().items) == 1
    assert sorted(each.text for each in found[0].read()) == sorted(f"from {n}" for n in range(16))


def test_a_turn_is_cancelled_from_another_thread(opened):
    """`cancel` may be called by any thread; the one that waits has a result, and no error."""
    model = slow(words(500), "Next.")
    session = opened(model).get_or_create("cli:direct")

    def stop():
        until(lambda: model.requests)
        assert session.cancel()

    result, _ = in_threads(lambda: session.send("Go."), stop)

    assert result.outcome is Outcome.CANCELLED
    assert str(session.send("And?", wait=0)) == "Next."


def test_streams_in_many_threads_do_not_mix(opened):
    """Each generator has the events of its own turn, and of no other."""
    model = FakeProvider(*[lambda request: f"to {request.messages[-1].text}"] * 8, pause_s=0.001)
    sessions = opened(model)

    def talk(n):
        said = sessions.get_or_create(f"cli:{n}").stream(f"question {n}")
        return "".join(each.text for each in said if isinstance(each, TextDelta))

    assert in_threads(*[lambda n=n: talk(n) for n in range(8)]) == [
        f"to question {n}" for n in range(8)
    ]


def test_what_a_manager_does_for_all_is_there_without_await(opened, tmp_path, file_url):
    """Lists, search, retention, receipts, backups with progress: values come back as they are."""
    sessions, heard, gone = opened(), [], []
    for key in ("cli:a", "cli:b", "cli:c"):
        sessions.get_or_create(key).append(Message.user("a whale"))

    first = sessions.list(limit=2)
    assert [each.key for each in first.items] == ["cli:c", "cli:b"]
    assert [each.key for each in sessions.list(page=first.next).items] == ["cli:a"]
    assert len(sessions.search("whale").items) == 3
    sessions.backup(tmp_path / "copy.db", on_progress=heard.append)
    assert heard[-1] == 1.0
    sessions.retain(Retention(count=2), on_gone=gone.append)
    assert [each.key for each in gone] == ["cli:a"]
    assert sessions.erase("cli:b").keys == ("cli:b",)
    assert sessions.delete("cli:c") is True and sessions.delete("cli:c") is False
    assert sessions.expire().deleted == 0


def test_it_works_where_a_loop_is_running(opened):
    """As in a notebook, whose cells are run by a loop."""

    async def cell():
        session = opened("Hello.", "Again.").get_or_create("cli:direct")
        first = session.send("Hi.")
        return str(first), list(session.stream("Hi."))[-1].message.text

    assert asyncio.run(cell()) == ("Hello.", "Again.")


def test_the_context_of_the_caller_is_seen(opened):
    """Ids and times of `ids.using` are taken, in this thread alone."""
    session = opened().get_or_create("cli:direct")

    with ids.using(ids.IdSource(clock_ns=lambda: 10**18)):
        session.update(metadata={"a": 1})

    assert session.updated_at.timestamp() == 10**9


def test_on_the_loop_itself_waiting_is_refused_and_looking_is_not(opened):
    """on_event runs there; waiting for the loop would hang for ever. The error says what to do."""
    session = opened("Hello.").get_or_create("cli:direct")
    seen = []

    def on_event(_event):
        seen.append((session.key, session.count))
        with pytest.raises(InvalidInput, match="from another thread") as found:
            session.read()
        with pytest.raises(InvalidInput, match="from another thread"):
            list(session.stream("Hi."))
        seen.append(found.type)

    result = session.send("Hi.", on_event=on_event)

    assert str(result) == "Hello."
    assert seen[0][0] == "cli:direct" and seen[1] is InvalidInput


def test_a_tool_that_is_a_plain_function_may_use_it(opened):
    """It runs in a thread. Another session answers; the one that waits for the tool is Busy."""
    model = FakeProvider(calls("ask"), "Inner.", "Done.")
    found = []

    @tool
    def ask() -> str:
        """Ask another session."""
        with pytest.raises(Busy):
            session.send("Me?")
        found.append(session.read())
        return str(sessions.get_or_create("cli:other").send("You?"))

    sessions = opened(model, tools=[ask])
    session = sessions.get_or_create("cli:direct")

    assert str(session.send("Ask.")) == "Done."
    assert [result.content for result in session.messages[2].results] == ["Inner."]
    assert found[0][0].text == "Ask."


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_who_leaves_in_a_callback_leaves_one_call_and_ends_nothing_for_others(opened, error):
    """It is raised where the turn was asked for, as it would be if nothing ran in a thread."""

    def leave(_):
        raise error

    sessions = opened("One.", "Two.", "Three.")
    session, other = sessions.get_or_create("cli:direct"), sessions.get_or_create("cli:other")

    with pytest.raises(error):
        session.send("Go.", on_event=leave)

    assert str(other.send("Hi.")) == "One."
    assert str(session.send("Again.", wait=0)) == "Two."


# Ctrl-C, forks, the end

INTERRUPTED = (
    SAY
    + """
import signal, sys, time
from holdfast import sync
from holdfast.testing import FakeProvider

model = FakeProvider(" ".join(f"word{n}" for n in range(500)), "Next.", pause_s=0.02)
with sync.open(sys.argv[1], model=model) as sessions:
    session = sessions.get_or_create("cli:direct")
    heard = []

    def on_event(event):
        if type(event).__name__ == "TextDelta":
            heard.append(event)
            if len(heard) == 1:
                say("text")

    try:
        if sys.argv[2] == "send":
            session.send("Go.", on_event=on_event)
        else:
            for event in session.stream("Go."):
                on_event(event)
    except KeyboardInterrupt:
        last = session.messages[-1]
        say(last.stop)
        say(0 < len(last.text) < 4000)
    say(str(session.send("And?", wait=0)))
"""
)


@pytest.mark.parametrize("how", ["send", "stream"])
def test_ctrl_c_cancels_the_turn_and_is_raised_when_its_partial_is_kept(file_url, how):
    """A script ends as every script does; one that catches it finds the partial, and goes on."""
    with Script(INTERRUPTED, file_url, how) as script:
        assert script.hears() == "text"
        time.sleep(0.1)
        start = time.monotonic()
        os.kill(script.process.pid, signal.SIGINT)

        assert script.hears() == "cancelled"
        assert time.monotonic() - start < CANCEL_S
        assert script.hears() == "True" and script.hears() == "Next."
        script.ends()


ANYWHERE = (
    SAY
    + """
import itertools, sys
from holdfast import sync
from holdfast.testing import FakeProvider

def interrupted(what, at):
    "Do it, with a Ctrl-C at this step of Python's own; whether there were so many."
    steps, met = itertools.count(1), []

    def trace(frame, event, _):
        frame.f_trace_opcodes = True
        if event in ("line", "opcode") and next(steps) == at:
            met.append(at)
            raise KeyboardInterrupt
        return trace

    sys.unraisablehook = lambda _: None  # where nothing can be raised, it is lost
    sys.settrace(trace)
    try:
        what()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
    return bool(met)

model = FakeProvider(*["one two"] * 1000, pause_s=0.001)
with sync.open(sys.argv[1], model=model) as sessions:
    def turn():
        if sys.argv[2] == "send":
            session.send("Go.")
        else:
            for _ in session.stream("Go."):
                pass

    for at in itertools.count(1, int(sys.argv[3])):
        session = sessions.get_or_create(f"cli:{at}")
        was_met = interrupted(turn, at)
        session.refresh()
        if session.draft is not None and session.draft.is_running:
            say(f"step {at}: it still runs")
        if not was_met:
            break
    say(at > 200)
    say(session.messages[-1].text.split()[-1])
"""
)


@pytest.mark.parametrize(("how", "every"), [("send", 2), ("stream", 13)])
def test_ctrl_c_at_any_step_leaves_no_turn_running_and_nothing_locked(how, every):
    """Also between two steps of Python's own: nobody waits for ever, and nothing goes on unseen."""
    with Script(ANYWHERE, "memory:", how, every) as script:
        assert script.ends() == ["True", "two"]


WAITING = (
    SAY
    + """
import sys, threading, time
from holdfast import sync
from holdfast.testing import FakeProvider

model = FakeProvider(" ".join(f"word{n}" for n in range(500)), "Mine.", "Next.", pause_s=0.02)
with sync.open(sys.argv[1], model=model) as sessions:
    session = sessions.get_or_create("cli:direct")
    other = threading.Thread(target=session.send, args=("Go.",), daemon=True)
    other.start()
    while not model.requests:
        time.sleep(0.01)
    say("waiting")
    try:
        session.send("And me?")
    except KeyboardInterrupt:
        say("left")
    say(session.cancel())
    other.join()
    say(len([each for each in session.messages if each.role == "user"]))
    say(session.send("Next?", wait=0).outcome)
"""
)


def test_ctrl_c_while_waiting_for_anothers_turn_leaves_that_turn_alone(file_url):
    """The one that waits is withdrawn: it is not said later. The one that runs goes on."""
    with Script(WAITING, file_url) as script:
        assert script.hears() == "waiting"
        time.sleep(0.1)
        os.kill(script.process.pid, signal.SIGINT)

        assert script.hears() == "left"
        assert script.hears() == "True"
        assert script.hears() == "1"
        assert script.hears() == "response"
        script.ends()


IN_A_NOTEBOOK = (
    SAY
    + """
import asyncio, signal, sys
from holdfast import sync
from holdfast.testing import FakeProvider

model = FakeProvider(" ".join(f"word{n}" for n in range(500)), "Next.", pause_s=0.02)

async def kernel():  # as a kernel of Jupyter: cells run in a loop, and Ctrl-C is Python's own
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with sync.open(sys.argv[1], model=model) as sessions:
        session = sessions.get_or_create("cli:direct")
        try:
            session.send("Go.", on_event=lambda event: say(type(event).__name__))
        except KeyboardInterrupt:
            say("stopped")
            say(session.messages[-1].stop)
        say(session.send("And?", wait=0))

asyncio.run(kernel())
"""
)


def test_ctrl_c_in_a_notebook_stops_the_cell_and_not_the_kernel(file_url):
    """Where a loop is running, the turn is cancelled likewise, and the next cell works."""
    with Script(IN_A_NOTEBOOK, file_url) as script:
        while script.hears() != "TextDelta":
            pass
        os.kill(script.process.pid, signal.SIGINT)
        said = script.ends()

    assert said[-3:] == ["stopped", "cancelled", "Next."]


FORKED = (
    SAY
    + """
import os, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)
from holdfast import sync
from holdfast.errors import InvalidInput
from holdfast.testing import FakeProvider

sessions = sync.open(sys.argv[1], model=FakeProvider("Parent.", "Again."))
session = sessions.get_or_create("cli:parent")
session.send("Hi.")
child = os.fork()
if not child:
    try:
        session.send("Hi.")
    except InvalidInput as error:
        say("before_a_fork" if "before a fork" in str(error) else error)
    with sync.open(sys.argv[1], model=FakeProvider("Child.")) as sessions:
        say(sessions.get_or_create("cli:child").send("Hi."))
        say(sessions.get("cli:parent").count)
    sys.exit(7)
say(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
say(session.send("Hi."))
"""
)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_has_a_loop_of_its_own(file_url):
    """What the parent opened is refused there, by name; the parent goes on as before."""
    with Script(FORKED, file_url) as script:
        assert script.ends() == ["before_a_fork", "Child.", "2", "7", "Again."]


UNCLOSED = (
    SAY
    + """
import sys, threading
from holdfast import sync
from holdfast.testing import FakeProvider

model = FakeProvider("one two three four five", "Late.", pause_s=0.05)
sessions = sync.open(sys.argv[1], model=model)
for event in sessions.get_or_create("cli:direct").stream("Go.", detach=True):
    break
threading.Thread(target=lambda: say(sessions.get_or_create("cli:thread").send("Hi."))).start()
"""
)


def test_at_the_end_of_the_program_what_is_open_is_drained(file_url):
    """A detached turn comes to its end, a thread that still talks is heard, the store is closed."""
    with Script(UNCLOSED, file_url) as script:
        said = script.ends()

    with sync.open(file_url) as sessions:
        answers = [sessions.get(key).messages[-1] for key in ("cli:direct", "cli:thread")]
        assert sorted(each.text for each in answers) == ["Late.", "one two three four five"]
        assert {each.stop for each in answers} == {"stop"}
        assert said in (["Late."], ["one", "two", "three", "four", "five"])


def test_what_is_closed_says_so_and_is_not_kept(file_url):
    """Closing lets go of everything; the loop stays for what is opened next."""
    with sync.open(file_url) as sessions:
        kept = len(background()._open)

    assert len(background()._open) == kept - 1
    until(lambda: not background()._works)
    with pytest.raises(Exception, match="closed"):
        sessions.list()


def test_who_waits_when_a_loop_is_closed_is_told():
    """Nobody is left waiting for what a closed loop will never do."""
    loop = LoopThread("a loop")
    started = threading.Event()

    async def wait():
        started.set()
        await asyncio.sleep(60)

    def close():
        started.wait()
        loop.close()

    found, _ = in_threads(lambda: loop.run(wait()), close)

    assert isinstance(found, Cancelled) and "a loop was closed" in str(found)
    with pytest.raises(InvalidInput, match="is closed"):
        loop.run(wait())


def test_dir_shows_the_public_names():
    assert {name for name in dir(sync) if not name.startswith("__")} == set(sync.__all__)


def test_importing_holdfast_does_not_import_it():
    """Whoever does not use it pays nothing for it."""
    code = "import sys, holdfast; holdfast.open; sys.exit('holdfast.sync' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
