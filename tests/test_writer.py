"""Group commit: one sync for everybody who asked, and an answer of their own for each."""

import asyncio
import gc
import threading
import time
from dataclasses import dataclass

import pytest

from holdfast.errors import Conflict, StoreUnavailable
from holdfast.stores.requests import Request
from holdfast.stores.writer import BATCH_MAX, CROWD, GroupCommit, Ticket


@dataclass(slots=True)
class Say(Request):
    """A request that comes to its own name, or to an error."""

    name: str = ""
    error: Exception | None = None

    def run(self, shelf):
        raise AssertionError("the commit of these tests runs no request")


class Long(Say):
    is_long = True


class Disk:
    """Commits by noting who was in which batch, in which thread; and takes its time for it."""

    def __init__(self, seconds=0.0, is_locked=False):
        self.batches = []
        self.threads = []
        self.seconds = seconds
        self.is_locked = is_locked
        self.gate = threading.Event()
        self.gate.set()

    def commit(self, requests, may_wait, answer):
        if self.is_locked and not may_wait:
            return None
        self.gate.wait(10)
        time.sleep(self.seconds)
        self.batches.append([request.name for request in requests])
        self.threads.append(threading.current_thread())
        return [request.error or request.name for request in requests], self.seconds


def say(name, error=None):
    return Say("", 0, name, error)


def run(disk, scenario, **options):
    async def main():
        writer = GroupCommit(disk.commit, **options)
        try:
            return await asyncio.wait_for(scenario(writer), 20)
        finally:
            disk.gate.set()
            await writer.close()

    return asyncio.run(main())


def test_all_who_ask_at_once_share_a_commit():
    """One sync of the disk for a hundred writers."""
    disk = Disk()

    async def scenario(writer):
        return await asyncio.gather(*(writer.submit(say(str(n))) for n in range(100)))

    assert run(disk, scenario) == [str(n) for n in range(100)]
    assert len(disk.batches) == 1


def test_a_batch_has_a_limit():
    """The last of very many does not keep the first waiting for ever."""
    disk = Disk()

    async def scenario(writer):
        await asyncio.gather(*(writer.submit(say(str(n))) for n in range(BATCH_MAX + 1)))

    run(disk, scenario)

    assert [len(batch) for batch in disk.batches] == [BATCH_MAX, 1]


def test_each_is_answered_with_its_own_result():
    """A request that fails says so to the one who asked, and to nobody else."""
    disk = Disk()
    wrong = Conflict("k", 1, 2)

    async def scenario(writer):
        asked = (writer.submit(each) for each in (say("a"), say("b", wrong), say("c")))
        return await asyncio.gather(*asked, return_exceptions=True)

    assert run(disk, scenario) == ["a", wrong, "c"]


def test_quick_commits_run_in_the_loops_own_thread():
    """To hand them over would cost more than they do."""
    disk = Disk()

    async def scenario(writer):
        for n in range(5):
            await writer.submit(say(str(n)))

    run(disk, scenario)

    assert set(disk.threads) == {threading.main_thread()}


def test_a_crowd_runs_in_a_thread():
    """Quick or not: so much work at once would keep the loop from everything else."""
    disk = Disk()

    async def scenario(writer):
        await asyncio.gather(*(writer.submit(say(str(n))) for n in range(CROWD + 1)))
        await asyncio.gather(*(writer.submit(say(str(n))) for n in range(CROWD)))

    run(disk, scenario)

    assert [thread is threading.main_thread() for thread in disk.threads] == [False, True]


def test_slow_commits_run_in_a_thread_and_the_loop_goes_on():
    """After the first ones have shown that the disk is slow."""
    disk = Disk(seconds=0.02)
    ticks = []

    async def tick():
        while True:
            ticks.append(time.monotonic())
            await asyncio.sleep(0.001)

    async def scenario(writer):
        ticking = asyncio.create_task(tick())
        for n in range(10):
            await writer.submit(say(str(n)))
        ticking.cancel()

    run(disk, scenario)

    assert disk.threads[0] is threading.main_thread()
    assert disk.threads[-1] is not threading.main_thread()
    assert len(ticks) > 20


def test_who_would_have_to_wait_for_the_lock_waits_in_a_thread():
    """Another process has it: the loop must not stand still."""
    disk = Disk(is_locked=True)

    async def scenario(writer):
        return await writer.submit(say("a"))

    assert run(disk, scenario) == "a"
    assert disk.threads != [threading.main_thread()]


def test_what_may_take_long_runs_in_a_thread():
    """However quick the disk is."""
    disk = Disk()

    async def scenario(writer):
        await writer.submit(Long("", 0, "a"))

    run(disk, scenario)

    assert disk.threads != [threading.main_thread()]


def test_where_no_thread_can_be_started_it_is_written_all_the_same(monkeypatch):
    """The system has a limit for them. Nobody waits for ever, and later there may be one again."""
    disk = Disk(is_locked=True)

    def refuse(_):
        raise RuntimeError("can't start new thread")

    async def scenario():
        writer = GroupCommit(disk.commit)
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            asked = [asyncio.ensure_future(writer.submit(say(str(n)))) for n in range(CROWD + 1)]
            done, _ = await asyncio.wait(asked, timeout=10)
        said = sorted(int(each.result()) for each in done if each.exception() is None)
        assert said == list(range(CROWD + 1))
        assert await writer.submit(say("later")) == "later"
        await writer.close()

    loop = asyncio.new_event_loop()  # asyncio.run would wait for who is never answered
    loop.run_until_complete(scenario())
    loop.close()
    assert [thread is threading.main_thread() for thread in disk.threads] == [True, False]


def test_what_is_asked_while_a_commit_runs_forms_the_next():
    """All of it together, however much it is."""
    disk = Disk(is_locked=True)
    disk.gate.clear()

    async def scenario(writer):
        first = asyncio.create_task(writer.submit(say("first")))
        await asyncio.sleep(0.01)
        others = [asyncio.create_task(writer.submit(say(str(n)))) for n in range(9)]
        await asyncio.sleep(0.01)
        disk.gate.set()
        await asyncio.gather(first, *others)

    run(disk, scenario)

    assert [len(batch) for batch in disk.batches] == [1, 9]


def test_cancelled_while_queued_it_is_withdrawn():
    """The disk never hears of it."""
    disk = Disk()

    async def scenario(writer):
        task = asyncio.create_task(writer.submit(say("a")))
        other = asyncio.create_task(writer.submit(say("b")))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await other

    run(disk, scenario)

    assert disk.batches == [["b"]]


def test_cancelled_while_it_is_written_it_is_waited_for():
    """However often it is cancelled: the outcome is certain when CancelledError is raised."""
    disk = Disk(is_locked=True)
    disk.gate.clear()

    async def scenario(writer):
        task = asyncio.create_task(writer.submit(say("a")))
        await asyncio.sleep(0.01)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0.005)
            assert not task.done()
        disk.gate.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert disk.batches == [["a"]]

    run(disk, scenario)


def test_closing_answers_everybody_and_takes_no_more():
    """What was asked for before is done, with the one who asked still waiting or not."""
    disk = Disk(is_locked=True, seconds=0.005)

    async def scenario(writer):
        tasks = [asyncio.create_task(writer.submit(say(str(n)))) for n in range(5)]
        await asyncio.sleep(0)
        await writer.close()
        assert [task.result() for task in tasks] == ["0", "1", "2", "3", "4"]
        with pytest.raises(StoreUnavailable):
            await writer.submit(say("late"))

    run(disk, scenario)


def test_closing_when_all_were_withdrawn():
    """Nothing is left that could wake the one who closes; he is not kept waiting."""
    disk = Disk()

    async def scenario(writer):
        task = asyncio.create_task(writer.submit(say("a")))
        await asyncio.sleep(0)
        task.cancel()
        await writer.close()

    run(disk, scenario)

    assert disk.batches == []


def test_an_answer_does_not_wait_for_what_follows_the_commit():
    """What is done to the files afterwards is nobody's business; the next batch waits for it."""
    tidied = threading.Event()

    class Tidy(Disk):
        def commit(self, requests, may_wait, answer):
            outcome = super().commit(requests, may_wait, answer)
            if answer is not None:
                answer(outcome[0])
                tidied.wait(10)
            return outcome

    async def scenario(writer):
        first = await writer.submit(say("first", None))
        is_before = not tidied.is_set()
        second = asyncio.ensure_future(writer.submit(say("second", None)))
        await asyncio.sleep(0.05)
        is_waiting = not second.done()
        tidied.set()
        return first, is_before, is_waiting, await second

    disk = Tidy(is_locked=True)

    assert run(disk, scenario) == ("first", True, True, "second")
    assert disk.batches == [["first"], ["second"]]


def test_nothing_of_a_batch_outlives_its_answers():
    """
    The thread that wrote it gets the interpreter back long after a crowd was answered. What it
    kept until then would stand beside the next batch, for the collector to go over again.
    """

    async def scenario(writer):
        await asyncio.gather(*(writer.submit(say("mine")) for _ in range(CROWD + 1)))
        tickets = [each for each in gc.get_objects() if type(each) is Ticket]
        return [each for each in tickets if getattr(each.request, "name", "") == "mine"]

    assert run(Disk(), scenario) == []
