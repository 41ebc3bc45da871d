"""Cancelling: one token that any thread or task can pull, and that reaches everything under it.

    token = CancelToken()

    async with token.guard():           # in a task: Cancelled is raised at the await it hangs on
        await provider.complete(...)

    while not token.wait(timeout=1.0):  # in a thread: asleep until the time is up or it is pulled
        ...

    token.cancel("the user pressed stop")

A `child()` is cancelled with its parent, and never the other way round. A parent knows its
children by weak references only, so one that lives as long as the program holds none of them back.
"""

import threading
import weakref
from collections.abc import Callable, Iterable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING

from holdfast.errors import Cancelled

if TYPE_CHECKING:
    import asyncio


class CancelToken:
    """Tells those who look, wait or listen that somebody asked them to stop. Safe for threads."""

    __slots__ = ("__weakref__", "_callbacks", "_children", "_lock", "_parent", "_reason")

    def __init__(self, parent: "CancelToken | None" = None) -> None:
        # One lock for a whole family, so that nobody registers in the middle of a cancel. It can
        # be taken twice by one thread: a signal handler may cancel while this thread registers.
        self._lock: threading.RLock = parent._lock if parent else threading.RLock()
        self._parent = parent
        self._reason: str | None = None
        self._callbacks: dict[object, Callable[[], object]] = {}
        self._children: dict[object, weakref.ref[CancelToken]] = {}
        if parent is not None:
            key = object()
            forget = partial(parent._children.pop, key)  # gets the dead reference as its default
            parent._children[key] = weakref.ref(self, forget)

    def child(self) -> "CancelToken":
        """A token that is cancelled with this one, or by itself."""
        return CancelToken(self)

    @property
    def reason(self) -> str | None:
        """Why it was cancelled ("" if nobody said), its own reason first; None while it is not."""
        token: CancelToken | None = self
        while token is not None:
            reason = token._reason  # read once: another thread may reset it
            if reason is not None:
                return reason
            token = token._parent
        return None

    @property
    def is_cancelled(self) -> bool:
        """Whether this token, or one above it, was cancelled."""
        return self.reason is not None

    def cancel(self, reason: str = "") -> bool:
        """Cancel this token and all under it; True if it was not cancelled before.

        The callbacks run here, in the thread that cancels. A later call changes nothing: the
        first reason stays, also where that was a parent's.
        """
        with self._lock:
            found = self.reason
            self._reason = str(reason or "") if found is None else found
            due = self._take_callbacks()
        _run(due)
        return found is None

    def reset(self) -> None:
        """Make the token fresh again, and with it the children that were cancelled through it.

        A token under a cancelled parent stays cancelled. Callbacks that ran are gone; who wants
        to hear of the next cancel registers again.
        """
        with self._lock:
            self._reason = None

    def raise_if_cancelled(self) -> None:
        """Raise Cancelled, with the reason, if it was cancelled."""
        reason = self.reason
        if reason is not None:
            raise Cancelled(reason)

    def wait(self, timeout: float | None = None) -> bool:
        """Block this thread until the token is cancelled; False if `timeout` seconds passed first.

        In a task use `guard`, or the event loop stands still.
        """
        # A bare lock rather than an Event: a signal handler can release it at any point.
        gate = threading.Lock()
        gate.acquire()
        remove = self.on_cancel(gate.release)
        limit = -1 if timeout is None else min(max(timeout, 0), threading.TIMEOUT_MAX)
        try:
            return gate.acquire(timeout=limit)
        finally:
            remove()

    def on_cancel(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Have `callback` called once, at the next cancel; at once if it was cancelled already.

        It runs in the thread that cancels, with no lock held. An Exception in it is logged and
        goes no further. What is returned takes the callback back; one that another thread is
        about to run may still run. A callback lives as long as its token, or what is returned.
        """
        key = object()

        def remove() -> None:
            self._callbacks.pop(key, None)

        with self._lock:
            self._callbacks[key] = callback  # first, or a cancel in a signal handler would miss it
            due = self._callbacks.pop(key, None) if self.is_cancelled else None
        if due is not None:
            _run([due])
        return remove

    def guard(self, grace_s: float = 0.0) -> "Guard":
        """`async with token.guard():` raises Cancelled in the block when the token is cancelled.

        The task is cancelled at the await it hangs on, from whichever thread or task the cancel
        comes. A block that ends before that is left alone, and so is the task behind the block.
        One that looks at the token itself may be given `grace_s` seconds to end in its own way.
        """
        return Guard(self, grace_s)

    def _take_callbacks(self) -> list[Callable[[], object]]:
        """Every callback of this token and those under it, oldest token first; under the lock."""
        taken: list[Callable[[], object]] = []
        family = [self]
        for token in family:  # grows as it goes
            taken += token._callbacks.values()
            token._callbacks.clear()
            living = (reference() for reference in list(token._children.values()))
            family += (child for child in living if child is not None)
        return taken

    def __repr__(self) -> str:
        reason = self.reason
        state = "not cancelled" if reason is None else f"cancelled: {reason}".rstrip(": ")
        return f"<CancelToken, {state}>"


def _run(callbacks: Iterable[Callable[[], object]]) -> None:
    rest = iter(callbacks)
    for callback in rest:
        try:
            callback()
        except Exception:  # whoever cancels cannot mend what others registered
            import logging  # here, because it is slow to import and seldom needed

            logging.getLogger("holdfast").exception("a callback of a CancelToken failed")
        except BaseException:  # such as KeyboardInterrupt: the others still hear of the cancel
            _run(rest)
            raise


class Guard:
    """A block of a task that a token can cancel; made by `CancelToken.guard`.

    It counts cancellations the way asyncio.timeout does: when somebody else cancels the task at
    the same time, CancelledError goes on to them and Cancelled is not raised.
    """

    def __init__(self, token: CancelToken, grace_s: float = 0.0) -> None:
        self._token = token
        self._grace_s = grace_s
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[object] | None = None  # None outside the block
        self._has_cancelled = False
        self._reason = ""

    async def __aenter__(self) -> CancelToken:
        import asyncio

        if self._task is not None:
            raise RuntimeError("this guard is entered already: make another with token.guard()")
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a guard works inside a task: there is none to cancel here")
        self._token.raise_if_cancelled()
        self._loop = asyncio.get_running_loop()
        self._task = task
        self._cancelling_before = task.cancelling()
        self._remove = self._token.on_cancel(self._call_loop)
        return self._token

    def _call_loop(self) -> None:
        """In the thread that cancels."""
        self._reason = self._token.reason or ""
        try:
            self._loop.call_soon_threadsafe(self._cancel_soon)
        except RuntimeError:  # the loop is closed, and the task with it
            pass

    def _cancel_soon(self) -> None:
        if not self._grace_s:
            self._cancel_task()
        elif self._task is not None:
            self._timer = self._loop.call_later(self._grace_s, self._cancel_task)

    def _cancel_task(self) -> None:
        """In the loop: the block may be left meanwhile, and then the task is not ours any more."""
        if self._task is not None:
            self._has_cancelled = self._task.cancel()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        import asyncio

        self._remove()
        if self._timer is not None:
            self._timer.cancel()
        task, self._task = self._task, None
        if not self._has_cancelled or task is None:
            return
        self._has_cancelled = False
        is_ours_alone = task.uncancel() <= self._cancelling_before
        if is_ours_alone and isinstance(error, asyncio.CancelledError):
            raise Cancelled(self._reason) from error
