"""CancelToken: one cancel reaches every thread, task and child that looks, waits or listens."""

import asyncio
import gc
import logging
import signal
import subprocess
import sys
import threading
import time
import weakref

import pytest

from holdfast.cancel import CancelToken
from holdfast.errors import Cancelled

SOON_S = 2.0  # far more than a cancel takes, and far less than NEVER_S
NEVER_S = 30.0


def in_thread(function, after_s=0.0):
    """Start `function` in a thread, a little later if asked."""

    def run():
        time.sleep(after_s)
        function()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def run_all_at_once(functions):
    """Run each function in its own thread, all released at the same moment."""
    start = threading.Barrier(len(functions))

    def run(function):
        start.wait()
        function()

    threads = [threading.Thread(target=run, args=(each,)) for each in functions]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # so that threads meet at every step, not at a few
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)


# ---- the flag ----


def test_a_new_token_is_not_cancelled():
    """S2-22: is_cancelled, reason and raise_if_cancelled agree on a fresh token."""
    token = CancelToken()

    token.raise_if_cancelled()

    assert not token.is_cancelled
    assert token.reason is None


def test_cancel_is_idempotent_and_the_first_reason_stays():
    """S2-22: only the call that cancelled it gives True; later ones change nothing."""
    token = CancelToken()

    answers = [token.cancel("first"), token.cancel("second"), token.cancel()]

    assert answers == [True, False, False]
    assert token.is_cancelled
    assert token.reason == "first"


@pytest.mark.parametrize("reason", ["", None])
def test_a_cancel_without_a_reason_cancels_all_the_same(reason):
    """S2-22: the reason is for people; leaving it out does not weaken the cancel."""
    token = CancelToken()

    token.cancel(reason)

    assert token.is_cancelled
    assert token.reason == ""


def test_raise_if_cancelled_tells_the_reason():
    """S2-22: Cancelled carries the reason that was given."""
    token = CancelToken()
    token.cancel("the user left")

    with pytest.raises(Cancelled) as caught:
        token.raise_if_cancelled()

    assert caught.value.reason == "the user left"


def test_a_reset_token_can_be_used_again():
    """S2-22: after reset the token is as new, with a new reason at the next cancel."""
    token = CancelToken()
    token.cancel("first")

    token.reset()

    assert not token.is_cancelled
    assert token.cancel("second")
    assert token.reason == "second"


def test_the_representation_tells_the_state():
    """What a debugger shows is whether it was cancelled and why."""
    token = CancelToken()
    fresh = repr(token)
    token.cancel("enough")

    assert fresh == "<CancelToken, not cancelled>"
    assert repr(token) == "<CancelToken, cancelled: enough>"


# ---- callbacks ----


def test_callbacks_run_once_in_order_when_the_token_is_cancelled():
    """S2-22: each callback runs once, however often cancel is called."""
    token = CancelToken()
    heard = []
    token.on_cancel(lambda: heard.append("a"))
    token.on_cancel(lambda: heard.append("b"))

    token.cancel()
    token.cancel()

    assert heard == ["a", "b"]


def test_a_callback_for_a_cancelled_token_runs_at_once_and_only_once():
    """S2-22: who comes late still hears of the cancel, and not again at the next one."""
    token = CancelToken()
    heard = []
    token.cancel()

    token.on_cancel(lambda: heard.append("late"))

    assert heard == ["late"]
    token.reset()
    token.cancel()
    assert heard == ["late"]


def test_a_removed_callback_does_not_run():
    """S2-22: what on_cancel gives back unregisters, and may be called twice."""
    token = CancelToken()
    heard = []
    remove = token.on_cancel(lambda: heard.append("removed"))
    token.on_cancel(lambda: heard.append("kept"))

    remove()
    remove()
    token.cancel()

    assert heard == ["kept"]


def test_one_function_registered_twice_is_two_callbacks():
    """Removing one registration leaves the other alone."""
    token = CancelToken()
    heard = []

    def listen():
        heard.append("heard")

    token.on_cancel(listen)
    remove = token.on_cancel(listen)

    remove()
    token.cancel()

    assert heard == ["heard"]


def test_an_error_in_a_callback_is_logged_and_stops_nobody(caplog):
    """S2-22: errors of callbacks are swallowed: neither cancel nor the others notice."""
    token = CancelToken()
    heard = []
    token.on_cancel(lambda: 1 / 0)
    token.on_cancel(lambda: heard.append("after"))

    with caplog.at_level(logging.ERROR, logger="holdfast"):
        token.cancel()
        token.on_cancel(lambda: 1 / 0)

    assert heard == ["after"]
    assert [record.exc_info[0] for record in caplog.records] == [ZeroDivisionError] * 2


def test_an_interrupt_in_a_callback_passes_after_the_others_ran():
    """KeyboardInterrupt is not swallowed, and nobody misses the cancel because of it."""
    token = CancelToken()
    heard = []

    def interrupt():
        raise KeyboardInterrupt

    token.on_cancel(interrupt)
    token.on_cancel(lambda: heard.append("after"))

    with pytest.raises(KeyboardInterrupt):
        token.cancel()

    assert heard == ["after"]


def test_callbacks_run_outside_the_lock():
    """S2-22: another thread can use the token while a callback runs."""
    token = CancelToken()
    seen = []

    def ask_in_another_thread():
        thread = in_thread(lambda: token.on_cancel(lambda: seen.append(token.cancel())))
        thread.join(SOON_S)
        seen.append(thread.is_alive())

    token.on_cancel(ask_in_another_thread)
    token.cancel()

    assert seen == [False, False]


@pytest.mark.parametrize("attempt", range(20))
def test_racing_threads_run_each_callback_exactly_once(attempt):
    """
    S2-22: 50 threads register while 50 others cancel; every callback runs exactly once, and
    exactly one cancel is the one that did it.
    """
    token = CancelToken()
    family = (token, token.child())
    heard, answers = [], []

    def register(index):
        family[index % 2].on_cancel(lambda: heard.append(index))

    def cancel():
        answers.append(token.cancel())

    threads = [cancel] * 50
    for index in range(50):
        threads.insert(2 * index, lambda index=index: register(index))
    run_all_at_once(threads)

    assert sorted(heard) == list(range(50))
    assert sorted(answers) == [False] * 49 + [True]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")
def test_a_signal_handler_may_cancel_at_any_moment():
    """A handler runs in the middle of whatever the main thread does with the token."""
    token = CancelToken()
    before = signal.signal(signal.SIGALRM, lambda *_: token.cancel("signal"))
    deadline = time.monotonic() + 0.3
    count = made = 0

    def listen():
        nonlocal count
        count += 1

    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
        while time.monotonic() < deadline:
            token.on_cancel(listen)
            made += 1
            token.reset()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    token.cancel()

    assert made > 0
    assert count == made


# ---- waiting ----


def test_wait_gives_false_when_the_time_is_up():
    """S2-22: wait(timeout) tells whether it was cancelled; no time at all is allowed."""
    token = CancelToken()
    start = time.monotonic()

    answers = [token.wait(0.05), token.wait(0), token.wait(-1)]

    assert answers == [False, False, False]
    assert 0.04 < time.monotonic() - start < SOON_S


def test_wait_on_a_cancelled_token_returns_at_once():
    """S2-22: there is nothing to wait for."""
    token = CancelToken()
    token.cancel()

    assert token.wait()
    assert token.wait(float("inf"))


@pytest.mark.parametrize("timeout", [None, NEVER_S])
@pytest.mark.parametrize("puller", ["token", "parent"])
def test_wait_is_woken_by_a_cancel_from_another_thread(timeout, puller):
    """S2-22: the token's own cancel wakes a waiting thread, and so does its parent's."""
    parent = CancelToken()
    token = parent.child()
    thread = in_thread({"token": token, "parent": parent}[puller].cancel, after_s=0.05)
    start = time.monotonic()

    woken = token.wait(timeout)

    assert woken
    assert time.monotonic() - start < SOON_S
    thread.join()


def test_many_threads_can_wait_at_once():
    """S2-22: one cancel wakes all of them."""
    token = CancelToken()
    answers = []
    cancel = in_thread(token.cancel, after_s=0.1)

    run_all_at_once([lambda: answers.append(token.wait(NEVER_S)) for _ in range(20)])

    assert answers == [True] * 20
    cancel.join()


def test_a_wait_that_ran_out_leaves_nothing_behind():
    """A thread that waits in a loop does not fill the token with callbacks."""
    token = CancelToken()

    for _ in range(10):
        token.wait(0)

    assert token._callbacks == {}


# ---- parents and children ----


def test_a_parent_cancels_its_children_and_never_the_other_way_round():
    """S2-22: propagation goes from parent to child, over any number of generations."""
    parent = CancelToken()
    child = parent.child()
    grandchild = child.child()
    sibling = CancelToken(parent)

    child.cancel("only this branch")

    assert (grandchild.is_cancelled, grandchild.reason) == (True, "only this branch")
    assert not parent.is_cancelled
    assert not sibling.is_cancelled


def test_callbacks_of_children_run_once_when_both_are_cancelled():
    """S2-22: parent first, then the child itself: the callback has heard of it already."""
    parent = CancelToken()
    child = parent.child()
    heard = []
    child.on_cancel(lambda: heard.append("child"))
    parent.on_cancel(lambda: heard.append("parent"))

    parent.cancel("all")
    answer = child.cancel("late")

    assert heard == ["parent", "child"]
    assert answer is False
    assert child.reason == "all"


def test_a_child_of_a_cancelled_parent_is_born_cancelled_and_stays_so():
    """S2-22: a child's reset does not touch its parent, and cannot undo the parent's cancel."""
    parent = CancelToken()
    parent.cancel("over")
    child = parent.child()

    child.reset()

    assert (child.is_cancelled, child.reason) == (True, "over")
    assert parent.is_cancelled


def test_a_parents_reset_frees_the_children_that_were_not_cancelled_themselves():
    """S2-22: a child is cancelled by its own flag or its parent's; each is reset by itself."""
    parent = CancelToken()
    through_parent, by_itself = parent.child(), parent.child()
    parent.cancel("all")
    by_itself.cancel()

    parent.reset()

    assert not through_parent.is_cancelled
    assert by_itself.is_cancelled
    heard = []
    through_parent.on_cancel(lambda: heard.append("again"))
    parent.cancel()
    assert heard == ["again"]


def test_a_long_lived_parent_keeps_no_dead_children_and_no_callbacks_of_theirs():
    """A server's token outlives thousands of turns; each turn's child is gone when it is."""

    class Listener:
        def hear(self):
            raise AssertionError("nobody listens any more")

    parent = CancelToken()
    listeners, children = [], []
    for _ in range(1000):
        child, listener = parent.child(), Listener()
        child.on_cancel(listener.hear)
        children.append(weakref.ref(child))
        listeners.append(weakref.ref(listener))
    del child, listener
    gc.collect()

    assert [each() for each in (*children, *listeners) if each() is not None] == []
    assert len(parent._children) == 0
    assert parent.cancel()


def test_a_child_lives_as_long_as_somebody_may_remove_its_callback():
    """`remove` holds the token, so a callback whose remover is kept is not lost."""
    parent = CancelToken()
    heard = []
    remove = parent.child().on_cancel(lambda: heard.append("heard"))
    gc.collect()

    parent.cancel()

    assert heard == ["heard"]
    remove()


def test_children_made_and_dropped_while_the_parent_is_cancelled_do_no_harm():
    """The family may change in one thread while another walks through it."""
    parent = CancelToken()
    counts = []

    def make_children():
        for _ in range(300):
            heard = []
            child = parent.child()
            remove = child.on_cancel(lambda heard=heard: heard.append(1))
            counts.append((child.is_cancelled, heard))
            remove()

    def pull():
        for _ in range(300):
            parent.cancel()
            parent.reset()

    run_all_at_once([make_children] * 4 + [pull] * 2)

    assert all(len(heard) <= 1 for _, heard in counts)
    gc.collect()
    assert len(parent._children) == 0


def test_a_childs_callbacks_run_exactly_once_while_its_parent_comes_and_goes():
    """S2-22: registering and cancelling meet at every step; none is lost and none runs twice."""
    parent = CancelToken()
    child = parent.child()
    heard = []
    done = threading.Event()

    def register():
        for index in range(5000):
            child.on_cancel(lambda index=index: heard.append(index))
        done.set()

    def pull():
        while not done.is_set():
            parent.cancel()
            parent.reset()

    run_all_at_once([register, pull, pull])
    parent.cancel()

    assert sorted(heard) == list(range(5000))


def test_nobody_registers_with_a_child_in_the_middle_of_its_parents_cancel():
    """S2-22: a family has one lock; a race that shows it is too rare to wait for."""
    parent = CancelToken()
    child = parent.child().child()
    heard = []

    with parent._lock:
        thread = in_thread(lambda: child.on_cancel(lambda: heard.append("heard")))
        thread.join(0.1)
        had_to_wait = thread.is_alive()
        parent.cancel()
    thread.join(SOON_S)

    assert had_to_wait
    assert heard == ["heard"]


# ---- guarding a task ----


async def sleep_guarded(token):
    async with token.guard():
        await asyncio.sleep(NEVER_S)


@pytest.mark.parametrize("puller", ["token", "parent"])
def test_a_cancel_from_another_thread_ends_the_block_within_milliseconds(puller):
    """S2-22: the await is woken at once, without polling, and Cancelled tells the reason."""
    parent = CancelToken()
    token = parent.child()
    pulled = []

    def pull():
        pulled.append(time.monotonic())
        {"token": token, "parent": parent}[puller].cancel("stop")

    async def main():
        thread = in_thread(pull, after_s=0.05)
        with pytest.raises(Cancelled) as caught:
            await sleep_guarded(token)
        ended = time.monotonic()
        thread.join()
        return caught.value, ended, asyncio.current_task().cancelling()

    error, ended, cancelling = asyncio.run(main())

    assert error.reason == "stop"
    assert isinstance(error.__cause__, asyncio.CancelledError)
    assert ended - pulled[0] < 0.5
    assert cancelling == 0


def test_a_cancel_from_another_task_ends_the_block():
    """S2-22: the same from within the loop; the task itself goes on behind the block."""
    token = CancelToken()

    async def work():
        try:
            await sleep_guarded(token)
        except Cancelled:
            await asyncio.sleep(0)
            return "went on"

    async def main():
        task = asyncio.create_task(work())
        await asyncio.sleep(0.01)
        token.cancel()
        return await asyncio.wait_for(task, SOON_S)

    assert asyncio.run(main()) == "went on"


def test_a_cancel_by_the_task_itself_takes_effect_at_its_next_await():
    """S2-22: as with a timeout, the block is left where it waits."""
    token = CancelToken()
    passed = []

    async def main():
        async with token.guard():
            token.cancel()
            passed.append("up to the await")
            await asyncio.sleep(NEVER_S)
            passed.append("behind it")

    with pytest.raises(Cancelled):
        asyncio.run(main())

    assert passed == ["up to the await"]


def test_a_block_that_ends_before_it_is_reached_keeps_its_result(caplog):
    """A cancel that comes too late cancels neither the block nor what the task does next."""
    token = CancelToken()

    async def main():
        async with token.guard() as guarded:
            token.cancel()
        await asyncio.sleep(0.02)
        return guarded is token, asyncio.current_task().cancelling()

    assert asyncio.run(main()) == (True, 0)
    assert caplog.records == []  # the loop would log an error of ours


def test_a_cancelled_token_does_not_let_the_block_begin():
    """S2-22: Cancelled is raised on entry."""
    token = CancelToken()
    token.cancel("before")
    ran = []

    async def main():
        async with token.guard():
            ran.append("block")

    with pytest.raises(Cancelled, match="before"):
        asyncio.run(main())

    assert ran == []


def test_a_cancel_behind_the_block_does_not_reach_the_task():
    """The guard takes its callback back when the block is left, however it is left."""
    token = CancelToken()

    async def main():
        async with token.guard():
            await asyncio.sleep(0)
        with pytest.raises(KeyError):
            async with token.guard():
                raise KeyError
        left = dict(token._callbacks)
        token.cancel()
        await asyncio.sleep(0.02)
        return left, asyncio.current_task().cancelling()

    assert asyncio.run(main()) == ({}, 0)


def test_when_the_task_is_cancelled_from_outside_too_that_wins():
    """Whoever cancels a task waits for CancelledError; Cancelled must not swallow it."""
    token = CancelToken()

    async def main():
        task = asyncio.create_task(sleep_guarded(token))
        await asyncio.sleep(0.01)
        token.cancel("token")
        asyncio.get_running_loop().call_soon(task.cancel)
        await asyncio.wait([task], timeout=SOON_S)
        return task

    task = asyncio.run(main())

    assert task.cancelled()


def test_a_task_that_is_cancelled_from_outside_alone_raises_its_own_error():
    """The guard changes nothing about a cancel that is not the token's."""
    token = CancelToken()

    async def main():
        task = asyncio.create_task(sleep_guarded(token))
        await asyncio.sleep(0.01)
        task.cancel("outside")
        await asyncio.wait([task], timeout=SOON_S)
        return task

    task = asyncio.run(main())

    assert task.cancelled()
    assert token._callbacks == {}


def test_a_timeout_around_or_inside_a_guard_still_works():
    """Both count cancellations in the same way, so neither takes the other's."""
    token = CancelToken()

    async def main():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await sleep_guarded(token)
        with pytest.raises(TimeoutError):
            async with token.guard(), asyncio.timeout(0.02):
                await asyncio.sleep(NEVER_S)
        asyncio.get_running_loop().call_later(0.02, token.cancel)
        with pytest.raises(Cancelled):
            async with asyncio.timeout(NEVER_S):
                await sleep_guarded(token)
        return asyncio.current_task().cancelling()

    assert asyncio.run(main()) == 0


def test_nested_guards_raise_one_cancelled_and_leave_the_task_clean():
    """The same token, or a child inside its parent: the outermost cancelled block is left."""
    token = CancelToken()
    left = []

    async def nested(inner):
        try:
            async with token.guard():
                try:
                    async with inner.guard():
                        await asyncio.sleep(NEVER_S)
                finally:
                    left.append("inner")
        finally:
            left.append("outer")

    async def main():
        for inner in (token, token.child()):
            token.reset()
            asyncio.get_running_loop().call_later(0.01, token.cancel)
            with pytest.raises(Cancelled):
                await nested(inner)
            assert asyncio.current_task().cancelling() == 0
            await asyncio.sleep(0)

    asyncio.run(main())

    assert left == ["inner", "outer"] * 2


def test_cancelling_an_inner_token_leaves_the_outer_block_running():
    """A turn's child token ends the tool; the turn sees Cancelled and may go on."""
    outer = CancelToken()
    inner = outer.child()

    async def main():
        async with outer.guard():
            asyncio.get_running_loop().call_later(0.01, inner.cancel)
            with pytest.raises(Cancelled):
                await sleep_guarded(inner)
            await asyncio.sleep(0.01)
            return "outer went on"

    assert asyncio.run(main()) == "outer went on"


def test_a_guard_works_again_after_a_reset():
    """S2-22: a fresh token guards like a new one."""
    token = CancelToken()

    async def main():
        reasons = []
        for reason in ("first", "second"):
            asyncio.get_running_loop().call_later(0.01, token.cancel, reason)
            with pytest.raises(Cancelled) as caught:
                await sleep_guarded(token)
            reasons.append(caught.value.reason)
            token.reset()
        return reasons

    assert asyncio.run(main()) == ["first", "second"]


def test_a_reset_right_after_the_cancel_does_not_lose_the_cancel_or_its_reason():
    """The task is told of a cancel that took place, even if the token is fresh again by then."""
    token = CancelToken()

    async def main():
        task = asyncio.create_task(sleep_guarded(token))
        await asyncio.sleep(0.01)
        token.cancel("short")
        token.reset()
        with pytest.raises(Cancelled) as caught:
            await asyncio.wait_for(task, SOON_S)
        return caught.value.reason

    assert asyncio.run(main()) == "short"


def test_many_tasks_can_be_guarded_by_one_token():
    """S2-22: one cancel from a thread ends them all."""
    token = CancelToken()

    async def main():
        tasks = [asyncio.create_task(sleep_guarded(token)) for _ in range(50)]
        await asyncio.sleep(0.01)
        before = len(asyncio.all_tasks())
        thread = in_thread(token.cancel)
        done, pending = await asyncio.wait(tasks, timeout=SOON_S)
        thread.join()
        return before, [type(task.exception()) for task in done], pending

    before, errors, pending = asyncio.run(main())

    assert before == 51  # no task of the guards' own
    assert errors == [Cancelled] * 50
    assert pending == set()


def test_a_cancel_after_the_loop_was_closed_is_no_error(caplog):
    """A block that was abandoned with its loop cannot be reached; nobody is bothered."""
    token = CancelToken()
    guard = token.guard()
    loop = asyncio.new_event_loop()

    async def enter():
        await guard.__aenter__()

    loop.run_until_complete(enter())
    loop.close()
    token.cancel()

    assert token.is_cancelled
    assert caplog.records == []


def test_a_guard_in_use_cannot_be_entered_again():
    """A second block would forget the first; it gets its own guard."""
    guard = CancelToken().guard()

    async def main():
        async with guard:
            with pytest.raises(RuntimeError, match="entered already"):
                await guard.__aenter__()

    asyncio.run(main())


def test_racing_cancels_and_blocks_leave_every_task_clean():
    """Whenever the cancel arrives, the block raises Cancelled or ends; the task is as before."""

    async def main():
        outcomes = set()
        for round_number in range(300):
            token = CancelToken()
            thread = in_thread(token.cancel)
            try:
                async with token.guard():
                    for _ in range(round_number % 7):
                        await asyncio.sleep(0)
                outcomes.add("ended")
            except Cancelled:
                outcomes.add("cancelled")
            thread.join()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert asyncio.current_task().cancelling() == 0
            assert token._callbacks == {}
        return outcomes

    assert asyncio.run(main()) <= {"ended", "cancelled"}


def test_importing_the_module_loads_no_event_loop():
    """A program that never waits in a loop does not pay for one."""
    program = "import sys, holdfast.cancel; print({'asyncio', 'logging'} & set(sys.modules))"

    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )

    assert done.stdout.strip() == "set()"
