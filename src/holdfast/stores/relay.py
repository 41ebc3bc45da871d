"""Progress on its way from a thread of a store to whoever wants to hear of it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Relay:
    """Tells an observer which share of something is done; what it raises is not taken for damage
    of the store that it was called from."""

    def __init__(self, observer: Callable[[float], object] | None) -> None:
        self._observer = observer
        self._raised: BaseException | None = None

    def tell(self, share: float) -> None:
        if self._observer is None:
            return
        try:
            self._observer(share)
        except BaseException as error:
            self._raised = error
            raise

    @contextmanager
    def heard(self) -> Iterator[None]:
        """What the observer has raised is raised as it was."""
        try:
            yield
        except Exception:
            if self._raised is not None:
                raise self._raised from None
            raise
