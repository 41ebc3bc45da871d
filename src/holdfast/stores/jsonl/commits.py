"""What is written to a folder: batches of requests, each batch under the lock.

Every session has files of its own, so a batch is written session by session. One that cannot be
written fails for those who asked for it, and the others go on.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from holdfast.errors import Corrupt, HoldfastError, StoreUnavailable
from holdfast.stores.disk_errors import translate
from holdfast.stores.jsonl.place import Place
from holdfast.stores.jsonl.shelf import JsonlShelf
from holdfast.stores.jsonl.state import State
from holdfast.stores.requests import Request
from holdfast.stores.shelf import MISFITS, Shelf
from holdfast.stores.writer import Answer, Outcome

LOCK_WAIT_S = 30.0
_Result = TypeVar("_Result")

_FAILURES = (HoldfastError, OSError, MemoryError, *MISFITS)


class Commits:
    """The one who uses the folder, in this process."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def run(
        self,
        requests: Sequence[Request[Any]],
        may_wait: bool,
        answer: Answer | None = None,  # noqa: ARG002 - there is nothing left to do afterwards
    ) -> Outcome | None:
        """One batch; None if it would have to wait and may not."""
        try:
            if not self._lock(may_wait):
                return None
            try:
                return self._batch(requests)
            finally:
                self._place.lock.release()
        except Exception as error:  # noqa: BLE001 - each caller is answered, whatever it is
            return [typed(error, self._place.where)] * len(requests), 0.0
        except BaseException as error:  # noqa: BLE001 - likewise
            return [error] * len(requests), 0.0

    def view(
        self, function: Callable[[Shelf], _Result], *, may_wait: bool
    ) -> tuple[_Result] | None:
        """What a function makes of the sessions; None if it would have to wait and may not."""
        try:
            if not self._lock(may_wait):
                return None
            try:
                return (self._view(function),)
            finally:
                self._place.lock.release()
        except Exception as error:
            found = typed(error, self._place.where)
            if found is error:
                raise
            raise found from error

    def _view(self, function: Callable[[Shelf], _Result]) -> _Result:
        self._place.begin()
        shelf = JsonlShelf(self._place)
        try:
            return function(shelf)
        finally:
            if shelf.changed:  # something was adopted; or that has failed half way
                shelf.half_done()
                self._place.settle()
            self._place.shrink()

    def _lock(self, may_wait: bool) -> bool:
        if self._place.lock.acquire(LOCK_WAIT_S if may_wait else 0):
            return True
        if may_wait:
            raise StoreUnavailable(self._place.where, f"others kept it for {LOCK_WAIT_S:g} s")
        return False

    def _batch(self, requests: Sequence[Request[Any]]) -> Outcome:
        self._place.begin()
        shelf = JsonlShelf(self._place)
        results: list[Any] = []
        touched: list[set[int]] = []
        changed: dict[int, State] = {}
        for each in requests:
            shelf.changed = {}
            try:
                results.append(each.run(shelf))
            except _FAILURES as error:
                results.append(typed(error, self._place.where))
            touched.append(set(shelf.changed))
            changed |= shelf.changed
            if isinstance(results[-1], Exception) and shelf.half_done():
                # In the middle of it: nothing of this batch has happened to these sessions.
                self._fail(shelf, shelf.changed, results, touched, results[-1])
                changed = {number: changed[number] for number in changed.keys() - shelf.changed}
        start = time.perf_counter()
        for number, state in changed.items():
            try:
                shelf.commit(state, is_sync=self._place.is_sync)
            except _FAILURES as error:
                told = typed(error, self._place.where)
                self._fail(shelf, {number: state}, results, touched, told)
        self._place.settle()
        self._place.shrink()
        return results, time.perf_counter() - start

    def _fail(
        self,
        shelf: JsonlShelf,
        states: dict[int, State],
        results: list[Any],
        touched: list[set[int]],
        error: Exception,
    ) -> None:
        """Forget what was done to these sessions, and tell everybody who did something to them."""
        for state in states.values():
            shelf.forget(state)
        for at, numbers in enumerate(touched):
            if numbers.intersection(states) and not isinstance(results[at], BaseException):
                results[at] = error


def typed(error: Exception, where: str) -> Exception:
    """The error of ours that this one is."""
    if isinstance(error, HoldfastError):
        return error
    if isinstance(error, OSError | MemoryError):
        found: Exception = translate(error, where)
    elif isinstance(error, MISFITS):
        found = Corrupt(where, f"a record is not as it was written ({type(error).__name__})")
    else:
        return error
    found.__cause__ = error
    return found
