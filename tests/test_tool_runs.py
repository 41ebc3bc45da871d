"""Running the calls of a reply: some at a time, each to its end, whatever the tools do.

Plain functions run in real threads here, and hang in them. Where a test says that something bad
does not happen, a control beside it shows that the same look at a worse way would see it.
"""

import asyncio
import contextvars
import gc
import subprocess
import sys
import textwrap
import threading
import time
import tracemalloc
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from types import MappingProxyType

import pytest

from holdfast.cancel import CancelToken
from holdfast.errors import Cancelled, InvalidInput, ToolUnavailable
from holdfast.messages import Message, Role, ToolCall
from holdfast.steps import tool_runs
from holdfast.steps.tool_runs import Job, run_calls
from holdfast.tools import Running, Tool, running, tool

MIB = 1024 * 1024
MOMENT_S = 0.9  # "within a fraction of a second", also on a machine that is busy


@pytest.fixture
def gate():
    """What the functions that hang wait for; opened when the test is over, so that they end."""
    opened = threading.Event()
    yield opened
    opened.set()


def job_of(made, arguments="", id="call", token=None):
    """A job for a tool, or for a function that becomes one."""
    made = made if isinstance(made, Tool) else Tool(made.__name__, run=made)
    token = CancelToken() if token is None else token
    call = ToolCall(id=id, name=made.name, arguments=arguments)
    return Job(call, made, Running("session", "turn", id, f"session:turn:{id}", token))


def jobs_of(*made, **options):
    return [job_of(each, id=f"call {n}", **options) for n, each in enumerate(made)]


def run(coroutine):
    """The result of a coroutine, in a loop of its own; one that hangs fails."""

    async def limited():
        async with asyncio.timeout(30):
            found = await coroutine
        assert await leaked() == []
        assert timers() == []
        return found

    return asyncio.run(limited())


async def leaked():
    """The tasks that are left beside this one, after those that end anyway have ended."""
    await asyncio.sleep(0)
    return [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]


def timers():
    """What the loop still means to do later."""
    return [each for each in asyncio.get_running_loop()._scheduled if not each.cancelled()]


async def collect(jobs, token=None, into=None, **options):
    """What a run yields, in its order; with `into`, what there was before it raised."""
    found = [] if into is None else into
    async with aclosing(run_calls(jobs, cancel=token or CancelToken(), **options)) as results:
        async for job, message in results:
            found.append((job.call.id, message))
    return found


def messages_of(*made, **options):
    """The messages of these tools, in the order of the calls."""
    found = dict(run(collect(jobs_of(*made), **options)))
    return [found[f"call {n}"] for n in range(len(made))]


def message_of(made, arguments="", **options):
    ((_, message),) = run(collect([job_of(made, arguments)], **options))
    return message


def join_threads():
    """Wait until the threads of tools that have returned have ended."""
    for thread in threading.enumerate():
        if thread.name == "holdfast-tool":
            thread.join(10)


# ---- what a call is told ----


def test_a_tool_is_told_which_call_it_runs_for():
    """`running()` works in async tools and in plain ones, which run in a thread."""

    def plain():
        seen.append((running(), threading.current_thread()))

    async def soon():
        await asyncio.sleep(0)
        seen.append((running(), threading.current_thread()))

    seen = []
    messages_of(plain)
    messages_of(soon)

    for found, _ in seen:
        assert found[:4] == ("session", "turn", "call 0", "session:turn:call 0")
        assert not found.cancel.is_cancelled
    assert seen[0][1] is not threading.main_thread()
    assert seen[1][1] is threading.main_thread()


def test_nothing_runs_outside_of_a_tool():
    """Not before, not in the task that waits, and not for a tool that is called directly."""

    @tool
    async def look():
        return running()

    async def main():
        results = run_calls(jobs_of(look, look), cancel=CancelToken())
        seen = [running() async for _ in results]
        return [*seen, await look.invoke(""), running()]

    assert running() is None
    assert run(main()) == [None] * 4


def test_each_call_has_its_own_copy_of_the_callers_context():
    """What a tool sets reaches neither the caller nor another call, also one that starts later."""
    colour = contextvars.ContextVar("colour", default="none")

    def plain():
        return paint("plain")

    async def soon():
        return paint("async")

    def paint(new):
        before = colour.get()
        colour.set(new)
        return before

    async def main():
        colour.set("the caller's")
        found = await collect(jobs_of(*[plain, soon] * 4), parallel_max=2)
        return colour.get(), {message.text for _, message in found}

    assert run(main()) == ("the caller's", {"the caller's"})


def test_the_child_of_its_token_is_cancelled_with_it(gate):
    """Each call has its own token: one that fails or overruns stops what is left of it alone."""
    tokens = {}

    def remember(name):
        tokens[name] = running().cancel

    def stuck():
        remember("stuck")
        gate.wait(20)

    def broken():
        remember("broken")
        raise LookupError("nothing there")

    def fine():
        remember("fine")

    token = CancelToken()
    made = [Tool("stuck", run=stuck, timeout=0.1), broken, fine]
    run(collect(jobs_of(*made, token=token)))

    assert tokens["stuck"].reason == "error: tool 'stuck' took over 0.1 s"
    assert tokens["broken"].reason == "error: nothing there"
    assert not tokens["fine"].is_cancelled
    assert not token.is_cancelled


# ---- how many, and in which order ----


@pytest.mark.parametrize("kind", ["plain", "async"])
@pytest.mark.parametrize("parallel_max", [1, 3, 8])
def test_so_many_run_at_a_time_and_no_more(kind, parallel_max):
    """S2-35: each waits until all that may run do, and none runs beside them; in their order."""
    lock, now, most, order = threading.Lock(), [0], [0], []
    together = threading.Barrier(parallel_max, timeout=20)
    soon_together = asyncio.Barrier(parallel_max)

    def count(change):
        with lock:
            now[0] += change
            most[0] = max(most[0], now[0])
            order.append(running().call_id)

    def plain():
        count(+1)
        together.wait()
        count(-1)

    async def soon():
        count(+1)
        await soon_together.wait()
        count(-1)

    made = plain if kind == "plain" else soon
    ids = [f"call {n}" for n in range(3 * parallel_max)]
    found = run(collect(jobs_of(*[made] * len(ids)), parallel_max=parallel_max))

    assert not any(message.is_error for _, message in found)
    assert most[0] == parallel_max
    assert sorted(id for id, _ in found) == sorted(ids)
    if kind == "async":  # threads that start one after the other may get here in any order
        assert list(dict.fromkeys(order)) == ids


def test_eight_run_at_a_time_by_default(gate):
    """S2-35: with nothing said, the ninth waits for a place."""
    started = []

    async def wait():
        started.append(running().call_id)
        await asyncio.sleep(30)

    async def main():
        token = CancelToken()
        task = asyncio.create_task(collect(jobs_of(*[wait] * 9), token))
        await asyncio.sleep(0.1)
        token.cancel()
        with pytest.raises(Cancelled):
            await task

    run(main())

    assert started == [f"call {n}" for n in range(8)]


def test_results_come_as_they_finish():
    """S2-35: a quick call does not wait for a slow one before it."""

    async def slow():
        await asyncio.sleep(0.2)

    async def quick():
        pass

    found = run(collect(jobs_of(slow, quick)))

    assert [id for id, _ in found] == ["call 1", "call 0"]


def test_a_caller_who_is_slow_holds_nobody_up():
    """Further calls start and finish while the caller works on a result."""
    ran = []

    async def quick():
        ran.append(running().call_id)

    async def main():
        async with aclosing(
            run_calls(jobs_of(*[quick] * 5), cancel=CancelToken(), parallel_max=1)
        ) as results:
            await anext(results)
            await asyncio.sleep(0.05)
            seen = len(ran)
            return seen, [job.call.id async for job, _ in results]

    seen, rest = run(main())

    assert seen == 5
    assert rest == ["call 1", "call 2", "call 3", "call 4"]


def test_no_calls_give_no_results():
    """A run of nothing is over at once."""
    assert run(collect([])) == []


@pytest.mark.parametrize("number", [0, -1, True, 2.0, None], ids=repr)
def test_a_number_of_places_that_cannot_be_is_refused(number):
    """InvalidInput names it."""
    with pytest.raises(InvalidInput, match="parallel_max"):
        run(collect([], parallel_max=number))


def test_a_thousand_calls_take_no_time_of_their_own():
    """The work for a call does not grow with the number of calls."""

    async def quick():
        return 1

    start = time.monotonic()
    found = run(collect(jobs_of(*[quick] * 1_000)))

    assert len(found) == 1_000
    assert time.monotonic() - start < 5


def test_a_tool_that_nobody_can_run_is_told_before_any_runs():
    """ToolUnavailable is the caller's to mend: nothing has been started."""
    ran = []

    with pytest.raises(ToolUnavailable, match="pay"):
        run(collect(jobs_of(lambda: ran.append(1), Tool("pay"))))

    assert ran == []


# ---- what goes wrong in a tool ----


class Own(BaseException):
    """Not an Exception."""


class Wordless(Exception):
    def __str__(self):
        raise RuntimeError("no words")


class Nameless(Exception):
    def __str__(self):
        return " "


class Odd(Exception):
    def __str__(self):
        return "half \ud800"


RAISED = [
    (LookupError("nothing there"), "error: nothing there"),
    (KeyError("x"), "error: 'x'"),
    (RuntimeError(), "error: RuntimeError"),
    (Nameless(), "error: Nameless"),
    (Wordless(), "error: Wordless"),
    (Odd(), "error: half \ufffd"),
    (TimeoutError("the server slept"), "error: the server slept"),
    (TimeoutError(), "error: TimeoutError"),
    (ToolUnavailable("another"), f"error: {ToolUnavailable('another')}"),
    (Cancelled("by its own token"), "error: cancelled: by its own token"),
    (MemoryError(), "error: MemoryError"),
    (SystemExit(3), "error: 3"),
    (SystemExit(), "error: SystemExit"),
    (GeneratorExit(), "error: GeneratorExit"),
    (Own("mine"), "error: mine"),
    (asyncio.CancelledError(), "error: the tool cancelled itself"),
]


@pytest.mark.parametrize("kind", ["plain", "async", "awaitable"])
@pytest.mark.parametrize(("error", "words"), RAISED, ids=lambda value: ascii(value)[:40])
def test_whatever_a_tool_raises_is_an_error_result(error, words, kind):
    """S2-35, bad input 117: its words, and the loop and the calls beside it go on."""

    def plain():
        raise error

    async def soon():
        await asyncio.sleep(0)
        raise error

    def awaitable():
        return soon()

    async def beside():
        await asyncio.sleep(0.01)
        return "done"

    made = {"plain": plain, "async": soon, "awaitable": awaitable}[kind]
    message, other = messages_of(made, beside)

    assert (message.role, message.tool_call_id) == (Role.TOOL, "call 0")
    assert message.name == made.__name__
    assert (message.text, message.is_error) == (words, True)
    assert (other.text, other.is_error) == ("done", False)


def test_a_loop_ends_when_such_an_error_gets_out():
    """The control: a task that lets SystemExit go takes the whole loop with it."""

    async def main():
        async def soon():
            raise SystemExit(3)

        task = asyncio.create_task(soon())
        await asyncio.sleep(1)
        return task

    with pytest.raises(SystemExit):
        asyncio.run(main())


def test_a_keyboard_interrupt_in_a_thread_is_an_error_result():
    """Bad input 117: nobody pressed a key; Ctrl-C reaches the main thread alone."""

    def plain():
        raise KeyboardInterrupt

    message = message_of(plain)

    assert (message.text, message.is_error) == ("error: the tool raised KeyboardInterrupt", True)


def test_a_stop_iteration_in_a_thread_is_an_error_result():
    """next() on an empty iterator hangs nobody."""
    message = message_of(lambda: next(iter(())))

    assert (message.text, message.is_error) == ("error: the tool raised StopIteration", True)


def test_a_keyboard_interrupt_in_the_main_thread_goes_on(gate):
    """The user pressed Ctrl-C while an async tool ran: the program ends, and the tools with it."""
    ended = []

    async def pressed():
        await asyncio.sleep(0.01)
        raise KeyboardInterrupt

    async def beside():
        try:
            await asyncio.sleep(30)
        finally:
            ended.append("beside")

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(collect(jobs_of(pressed, beside)))

    assert ended == ["beside"]


def test_a_keyboard_interrupt_is_raised_where_the_run_is_awaited(gate):
    """A program that catches Ctrl-C and lets its loop go on does not wait for ever."""

    async def pressed():
        raise KeyboardInterrupt

    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        task = loop.create_task(collect(jobs_of(pressed)))
        for _ in range(2):  # where the tool raised it, and where the run did
            with pytest.raises(KeyboardInterrupt):
                loop.run_until_complete(task)

        assert isinstance(task.exception(), KeyboardInterrupt)


def test_a_keyboard_interrupt_in_a_loop_of_another_thread_is_an_error_result():
    """A loop that runs beside the main thread hears no Ctrl-C: the tool made it up."""

    async def made_up():
        raise KeyboardInterrupt

    with ThreadPoolExecutor(1) as pool:
        message = pool.submit(message_of, made_up).result(20)

    assert (message.text, message.is_error) == ("error: KeyboardInterrupt", True)


def test_a_tool_that_cancels_its_own_task_is_an_error_result():
    """It ends its own call, and no other."""

    async def selfish():
        asyncio.current_task().cancel()
        await asyncio.sleep(1)

    async def beside():
        await asyncio.sleep(0.05)
        return "done"

    message, other = messages_of(selfish, beside)

    assert (message.text, message.is_error) == ("error: the tool cancelled itself", True)
    assert other.text == "done"


def test_an_error_as_long_as_a_book_is_cut_and_says_so():
    """The first part is kept, and the length of the whole is told."""

    def long():
        raise RuntimeError("x" * 5_000)

    message = message_of(long, result_bytes_max=1_000)

    assert message.text == f"error: {'x' * 1_000} [cut: there are 5,000 characters]"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("{", "error: arguments is not JSON: "),
        ("[1]", "error: arguments is one JSON object, not list"),
        ("", "error: argument 'city' is missing: the arguments are city"),
        ('{"city": 5}', "error: argument 'city' is wrong: Expected str, got int"),
        ('{"city": "x", "far": 1}', "error: argument 'far' is unknown"),
    ],
)
def test_arguments_that_do_not_fit_are_told_to_the_model(arguments, words):
    """In words that it can act on; the tool does not run."""
    ran = []

    @tool
    def weather(city: str):
        ran.append(city)

    message = message_of(weather, arguments)

    assert message.text.startswith(words)
    assert message.is_error
    assert ran == []


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_a_tool_that_takes_too_long_is_an_error_result(gate, kind):
    """It says so, and how long it may take."""

    def plain():
        gate.wait(20)

    async def soon():
        await asyncio.sleep(20)

    made = Tool("look", run=plain if kind == "plain" else soon, timeout=0.1)
    start = time.monotonic()
    message = message_of(made)

    assert (message.text, message.is_error) == ("error: tool 'look' took over 0.1 s", True)
    assert time.monotonic() - start < MOMENT_S


def test_an_error_does_not_hold_what_the_tool_held():
    """A traceback holds the values of its frames; it goes with the error, without the collector."""

    class Large:
        pass

    def fail():
        held = Large()
        large.append(weakref.ref(held))
        raise LookupError("no")

    async def fail_soon():
        fail()

    large = []
    gc.collect()
    gc.disable()
    try:
        messages_of(fail, fail_soon)
        join_threads()
        alive = [ref() for ref in large]
    finally:
        gc.enable()

    assert alive == [None, None]


# ---- tools that never return ----


def test_tools_that_never_return_take_nobodys_place(gate):
    """Bad input 117: each keeps its thread; those after them have threads of their own."""
    stuck = Tool("stuck", run=lambda: gate.wait(20), timeout=0.05)
    quick = Tool("quick", run=lambda: "done")

    async def main():
        for _ in range(5):
            await collect(jobs_of(*[stuck] * 8))
        start = time.monotonic()
        found = await collect(jobs_of(*[quick] * 8))
        elsewhere = await asyncio.to_thread(lambda: "the loop's own threads are free")
        return [message.text for _, message in found], elsewhere, time.monotonic() - start

    texts, elsewhere, seconds = run(main())

    assert texts == ["done"] * 8
    assert elsewhere
    assert seconds < MOMENT_S


def test_in_the_loops_own_threads_they_would(gate):
    """The control: with the executor of a loop, those after them wait for ever."""

    async def main():
        loop = asyncio.get_running_loop()
        pool = ThreadPoolExecutor(8)
        loop.set_default_executor(pool)
        hung = [loop.run_in_executor(None, gate.wait, 20) for _ in range(8)]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.to_thread(lambda: "done"), 0.2)
        gate.set()
        await asyncio.gather(*hung)

    asyncio.run(main())


EXIT = """
import asyncio, threading, time
from holdfast.cancel import CancelToken
from holdfast.messages import ToolCall
from holdfast.steps.tool_runs import Job, run_calls
from holdfast.tools import Running, Tool

async def main():
    made = Tool("stuck", run=lambda: time.sleep(60), timeout=0.1)
    call = ToolCall(id="c", name="stuck", arguments="")
    job = Job(call, made, Running("s", "t", "c", "k", CancelToken()))
    async for _, message in run_calls([job], cancel=CancelToken()):
        print(message.text, flush=True)
"""


@pytest.mark.parametrize(
    ("program", "ends"),
    [
        (EXIT + "asyncio.run(main())", True),
        (EXIT + "asyncio.run(asyncio.wait_for(asyncio.to_thread(time.sleep, 60), 0.1))", False),
        (EXIT + "threading.Thread(target=time.sleep, args=(60,)).start()", False),
    ],
    ids=["ours", "control: the loop's executor", "control: a thread that is no daemon"],
)
def test_a_program_can_end_while_a_tool_hangs(program, ends):
    """Neither the loop nor the interpreter waits for a thread of a tool."""
    path = ":".join(sys.path)
    try:
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            timeout=20 if ends else 2,
            env={"PYTHONPATH": path},
        )
    except subprocess.TimeoutExpired:
        assert not ends
        return

    assert ends
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "error: tool 'stuck' took over 0.1 s\n"


def test_an_async_tool_that_ignores_its_limit_is_left(caplog):
    """It is an error result all the same, a moment later; the log names the tool."""
    may_end = asyncio.Event()

    async def stubborn():
        while not may_end.is_set():
            try:
                await may_end.wait()
            except asyncio.CancelledError:
                pass

    async def main():
        start = time.monotonic()
        found = await collect(jobs_of(Tool("stubborn", run=stubborn, timeout=0.1)))
        seconds = time.monotonic() - start
        held = len(tool_runs._left)
        may_end.set()
        await asyncio.sleep(0.01)
        return found, seconds, held

    ((_, message),), seconds, held = run(main())

    assert (message.text, message.is_error) == ("error: tool 'stubborn' took over 0.1 s", True)
    assert seconds < MOMENT_S
    assert "'stubborn' goes on although its time is up" in caplog.text
    assert (held, len(tool_runs._left)) == (1, 0)


# ---- bad input 117: what it writes, and what it goes on with ----


def test_what_a_tool_writes_to_the_terminal_is_not_in_its_result(capfd):
    """Bad input 117: escapes on stdout stay there; escapes in a result are kept as they are."""
    escapes = "\x1b[2J\x1b]0;title\x07\x9b31m\0"

    def noisy():
        print(escapes)
        sys.stderr.write(escapes)
        return "quiet"

    def returned():
        return escapes

    quiet, loud = messages_of(noisy, returned)

    assert quiet.content == "quiet"
    assert loud.content == escapes
    assert capfd.readouterr().out == f"{escapes}\n"


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_what_a_tool_does_later_with_its_result_changes_nothing(kind):
    """Bad input 117: the result is what it was when the tool returned it, also by reference."""
    kept = []

    def plain(items):
        items["seen"] = [1]
        kept.append(items)
        return items

    async def soon(items):
        return plain(items)

    made = Tool("look", run=plain if kind == "plain" else soon)
    ((job, message),) = run(main_of(job_of(made, '{"items": {"a": 1}}')))
    kept[0]["seen"].append(2)
    kept[0]["a"] = "changed"

    assert message.content == '{"a":1,"seen":[1]}'
    assert job.call.arguments == '{"items": {"a": 1}}'


async def main_of(job):
    return [each async for each in run_calls([job], cancel=CancelToken())]


def test_a_plain_tools_result_is_read_in_its_own_thread():
    """Before anybody else can change it, and without holding up the loop."""
    seen = []

    class Looked(dict):
        def keys(self):
            seen.append(threading.current_thread())
            return super().keys()

    def look():
        seen.append(threading.current_thread())
        return MappingProxyType(Looked(a=1))

    message = message_of(look)

    assert message.content == '{"a":1}'
    assert len(seen) == 2
    assert seen[0] is seen[1] is not threading.main_thread()


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_a_result_of_hundreds_of_megabytes_is_an_error_result(kind):
    """Bad input 117: it says how large it was; no second copy of it is made."""
    size = 256 * MIB

    def plain():
        return "x" * size

    async def soon():
        return "x" * size

    peak, message = peak_of(lambda: message_of(plain if kind == "plain" else soon))

    assert message.is_error
    assert message.text == (
        "error: the result is too large: 268,435,456 bytes, and at most 8,388,608 are taken; "
        "ask for a smaller part of it"
    )
    assert peak < 1.2 * size


def test_a_large_result_that_is_not_ascii_is_counted_without_a_copy():
    """Bad input 117: its bytes in UTF-8, piece by piece."""
    size = 64 * MIB

    peak, message = peak_of(lambda: message_of(lambda: "é" * size))

    assert "134,217,728 bytes" in message.text
    assert peak < 1.5 * size


def test_a_large_result_inside_of_another_is_copied_once():
    """Bad input 117: its size is known when it is JSON, and not before."""
    size = 128 * MIB

    peak, message = peak_of(lambda: message_of(lambda: ["x" * size]))

    assert "134,217,732 bytes" in message.text
    assert peak < 3.2 * size  # the value, and JSON in a buffer that grows


def test_copies_would_be_seen():
    """The control: the same look at a function that copies."""
    size = 64 * MIB

    peak, _ = peak_of(lambda: ("x" * size).encode().decode().encode())

    assert peak > 1.9 * size


def peak_of(function):
    """The most memory that Python had at a time for `function`, and what it returned."""
    tracemalloc.start()
    try:
        found = function()
        return tracemalloc.get_traced_memory()[1], found
    finally:
        tracemalloc.stop()


# ---- cancelling ----


@pytest.mark.parametrize("where", ["in the loop", "in another thread"])
def test_a_cancel_is_noticed_in_a_moment(gate, where):
    """Async tools are cancelled, plain ones told; Cancelled has the reason, and no task is left."""
    seen = {}

    def plain():
        seen["told"] = running().cancel.wait(20)
        gate.wait(20)

    async def soon():
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            seen["cancelled"] = True
            raise

    async def main():
        token = CancelToken()
        found = []
        task = asyncio.create_task(collect(jobs_of(plain, soon), token, found))
        await asyncio.sleep(0.05)
        start = time.monotonic()
        if where == "in the loop":
            token.cancel("enough")
        else:
            threading.Thread(target=token.cancel, args=("enough",)).start()
        with pytest.raises(Cancelled) as caught:
            await task
        return caught.value.reason, found, time.monotonic() - start

    reason, found, seconds = run(main())

    assert (reason, found) == ("enough", [])
    assert seconds < MOMENT_S
    assert seen == {"told": True, "cancelled": True}


def test_what_has_finished_when_the_cancel_comes_is_given_first():
    """Also what nobody has taken yet; then Cancelled. What waits for a place never runs."""
    ran = []

    async def quick():
        ran.append(running().call_id)
        return "done"

    async def slow():
        ran.append(running().call_id)
        await asyncio.sleep(30)

    async def main():
        token = CancelToken()
        found = []
        jobs = jobs_of(quick, quick, quick, slow, quick, token=token)
        results = run_calls(jobs, cancel=token, parallel_max=1)
        async with aclosing(results):
            found.append(await anext(results))
            await asyncio.sleep(0.05)  # two more finish, and nobody takes them
            token.cancel()
            found += [await anext(results), await anext(results)]
            with pytest.raises(Cancelled):
                await anext(results)
        return [(job.call.id, message.text) for job, message in found]

    found = run(main())

    assert found == [("call 0", "done"), ("call 1", "done"), ("call 2", "done")]
    assert ran == ["call 0", "call 1", "call 2", "call 3"]


def test_nothing_is_started_after_a_cancel():
    """Also while the caller works on a result, and has not come back to hear of it."""
    ran = []

    async def slow():
        ran.append(running().call_id)
        await asyncio.sleep(0.03)
        return "done"

    async def main():
        token = CancelToken()
        results = run_calls(jobs_of(slow, slow, slow), cancel=token, parallel_max=1)
        async with aclosing(results):
            await anext(results)
            token.cancel()
            await asyncio.sleep(0.1)
            second, _ = await anext(results)
            with pytest.raises(Cancelled):
                await anext(results)
        return second.call.id

    assert run(main()) == "call 1"
    assert ran == ["call 0", "call 1"]


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_what_finishes_in_the_same_moment_is_not_lost(kind):
    """A tool that cancels the turn and returns has finished; so has one that heeds the cancel."""

    def plain():
        token.cancel("by a tool")
        return "done"

    def heeds():
        running().cancel.wait(20)
        return "ended in good order"

    async def soon():
        return plain()

    async def heeds_soon():
        told = asyncio.Event()
        running().cancel.on_cancel(told.set)
        await told.wait()
        return heeds()

    token = CancelToken()
    found = []
    made = [plain, heeds] if kind == "plain" else [soon, heeds_soon]
    with pytest.raises(Cancelled):
        run(collect([*jobs_of(*made, token=token), job_of(asyncio.Event().wait)], token, found))

    assert sorted((id, message.text) for id, message in found) == [
        ("call 0", "done"),
        ("call 1", "ended in good order"),
    ]


def test_a_cancel_after_the_last_result_is_not_of_the_run():
    """When all have finished there is nothing left to cancel."""

    async def last():
        token.cancel()
        return "done"

    token = CancelToken()
    found = run(collect(jobs_of(last), token))

    assert [message.text for _, message in found] == ["done"]


def test_a_tool_that_raises_cancelled_when_it_is_cancelled_did_not_finish(gate):
    """`raise_if_cancelled` in a tool is a way to stop, not an error for the model."""

    def looks():
        running().cancel.wait(20)
        running().cancel.raise_if_cancelled()

    async def main():
        token = CancelToken()
        found = []
        asyncio.get_running_loop().call_later(0.05, token.cancel)
        with pytest.raises(Cancelled):
            await collect(jobs_of(looks, token=token), token, found)
        return found

    assert run(main()) == []


def test_a_run_that_is_cancelled_before_starts_nothing():
    """Cancelled, at once."""
    ran = []
    token = CancelToken()
    token.cancel("before")

    with pytest.raises(Cancelled, match="before"):
        run(collect(jobs_of(lambda: ran.append(1)), token))

    assert ran == []


def test_an_async_tool_that_ignores_a_cancel_is_left(caplog):
    """The run ends in a moment all the same, and the log names the tool."""
    may_end = asyncio.Event()

    async def stubborn():
        while not may_end.is_set():
            try:
                await may_end.wait()
            except asyncio.CancelledError:
                pass
        raise LookupError("long after")

    async def main():
        token = CancelToken()
        asyncio.get_running_loop().call_later(0.05, token.cancel)
        start = time.monotonic()
        with pytest.raises(Cancelled):
            await collect(jobs_of(stubborn), token)
        seconds = time.monotonic() - start
        held = len(tool_runs._left)
        may_end.set()
        await asyncio.sleep(0.01)
        return seconds, held

    seconds, held = run(main())

    assert seconds < MOMENT_S
    assert "'stubborn' goes on although it was cancelled" in caplog.text
    assert (held, len(tool_runs._left)) == (1, 0)


def test_an_async_tool_is_given_time_to_clean_up(caplog):
    """The run ends when it has, and not before; that is nothing to write a log about."""
    ended = []

    async def tidy():
        try:
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0.05)
            ended.append(running().call_id)

    async def main():
        token = CancelToken()
        asyncio.get_running_loop().call_later(0.05, token.cancel)
        with pytest.raises(Cancelled):
            await collect(jobs_of(tidy, tidy), token)
        return list(ended)

    assert run(main()) == ["call 0", "call 1"]
    assert caplog.text == ""


def test_a_cancel_after_the_end_of_the_loop_is_not_heard(caplog):
    """A token lives as long as it likes: who cancels it is not told of a loop that is closed."""
    token = CancelToken()

    async def main():
        return tool_runs._Runs([], token, 1, 1)

    runs = asyncio.run(main())
    token.cancel()

    assert runs.is_over
    assert caplog.text == ""


def test_a_plain_function_that_is_left_may_end_whenever_it_likes(gate):
    """What it returns or raises then reaches nobody: no warning, and no error in its thread."""
    ended = []

    async def never_awaited():
        pass

    def late(what):
        gate.wait(20)
        ended.append(what)
        if what == "raise":
            raise SystemExit(1)
        return never_awaited() if what == "coroutine" else "late"

    made = Tool("late", run=late, timeout=0.05)
    jobs = [job_of(made, f'{{"what": "{what}"}}') for what in ("value", "raise", "coroutine")]

    async def main():
        await collect(jobs)
        gate.set()
        await asyncio.sleep(0.1)

    run(main())

    assert sorted(ended) == ["coroutine", "raise", "value"]


def test_a_plain_function_may_end_after_its_loop(gate):
    """The loop is closed, and the thread notices nothing but that nobody waits."""
    threads = []
    errors = []

    def late():
        threads.append(threading.current_thread())
        gate.wait(20)

    def hook(arguments):
        errors.append(arguments)

    before, threading.excepthook = threading.excepthook, hook
    try:
        message_of(Tool("late", run=late, timeout=0.05))
        gate.set()
        threads[0].join(10)
    finally:
        threading.excepthook = before

    assert not threads[0].is_alive()
    assert errors == []


def test_cancelling_the_task_that_waits_gives_what_has_finished_first(gate):
    """CancelledError comes behind the results that are there, and nothing is left."""
    told = []

    async def quick():
        await asyncio.sleep(0.02)
        task.cancel()
        return "done"

    def plain():
        told.append(running().cancel.wait(20))

    found = []
    task = None

    async def main():
        nonlocal task
        task = asyncio.create_task(collect(jobs_of(quick, plain), None, found))
        with pytest.raises(asyncio.CancelledError):
            await task
        return task.cancelled()

    assert run(main())
    assert [message.text for id, message in found if id == "call 0"] == ["done"]
    assert told == [True]


def test_a_second_cancel_while_the_first_is_carried_out_leaves_nothing():
    """Bad input 119: cancelled twice, and during clean-up."""
    ended = []

    async def slow_to_end():
        try:
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0.05)
            ended.append(1)

    async def main():
        task = asyncio.create_task(collect(jobs_of(slow_to_end)))
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.2)

    run(main())

    assert ended == [1]
    assert not tool_runs._left


def test_closing_the_generator_ends_what_runs(gate):
    """Leaving early cancels async tools, tells plain ones, and leaves no task."""
    told = []
    cancelled = []

    async def quick():
        return "done"

    async def slow():
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            cancelled.append(1)
            raise

    def plain():
        told.append(running().cancel.wait(20))

    async def main():
        token = CancelToken()
        results = run_calls(jobs_of(quick, slow, plain, token=token), cancel=token)
        job, _ = await anext(results)
        start = time.monotonic()
        await results.aclose()
        seconds = time.monotonic() - start
        assert await leaked() == []
        await asyncio.sleep(0.05)
        return job.call.id, seconds, token.is_cancelled, len(token._callbacks)

    id, seconds, was_cancelled, callbacks = run(main())

    assert (id, was_cancelled, callbacks) == ("call 0", False, 0)
    assert seconds < MOMENT_S
    assert cancelled == [1]
    assert told == [True]


def test_a_leak_would_be_seen():
    """The control: a task that is left running is found by the look that all tests here take."""

    async def main():
        task = asyncio.create_task(asyncio.sleep(30))
        found = await leaked()
        task.cancel()
        return found == [task]

    assert asyncio.run(main())


def test_many_cancels_at_any_time_lose_no_result_and_leave_no_task():
    """A call that returned before the cancel has its result; real threads, at many moments."""

    async def once(delay):
        token = CancelToken()
        returned = []

        def plain():
            time.sleep(0.003)
            returned.append((running().call_id, token.is_cancelled))
            return "done"

        found = []
        timer = threading.Timer(delay, token.cancel)
        timer.start()
        try:
            await collect(jobs_of(*[plain] * 6, token=token), token, found, parallel_max=2)
        except Cancelled:
            pass
        timer.join()
        before = {id for id, was_cancelled in returned if not was_cancelled}
        assert await leaked() == []
        return before - {id for id, _ in found}

    async def main():
        return [await once(n * 0.0004) for n in range(40)]

    assert run(main()) == [set()] * 40


def test_the_example_of_the_module_is_how_it_is_used():
    """The message is a tool message that can be appended as it is."""
    message = message_of(Tool("look", run=lambda: "seen"))

    assert message == Message.tool(
        "seen", "call", name="look", id=message.id, timestamp=message.timestamp
    )
    assert "aclosing(run_calls(jobs, cancel=token))" in textwrap.dedent(tool_runs.__doc__)
