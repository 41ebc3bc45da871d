"""What the clients of a run did, written down as it happens.

with Journal(path, client="worker-1") as journal:
    start = journal.invoked("s", "v1")
    ...                                             # append "v1" to session "s"
    journal.appended("s", "v1", start)              # or .unknown(...), .refused(...)

anomalies = check(read_journals(paths))             # holdfast.testing.checker
"""

import json
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from holdfast.errors import InvalidInput
from holdfast.testing.checker import Operation


class Journal:
    """What one client did, written down as it happens: one operation a line, flushed at once.

    Each process has its own file. A line that a kill cut short was never completed, so it is an
    operation of unknown outcome; for that its invocation is noted first.
    """

    def __init__(self, path: Path | str, client: str) -> None:
        self._client = client
        self._file = open(path, "a", encoding="ascii", buffering=1)  # noqa: SIM115 - see close

    @staticmethod
    def now() -> int:
        """The clock of the run: monotonic, and one for all processes of a machine."""
        return time.monotonic_ns()

    def invoked(self, session: str, value: str) -> int:
        """Note that an append begins; gives the time for the note that ends it."""
        start = self.now()
        self._write(session, start, None, value=value, outcome="unknown")
        return start

    def appended(self, session: str, value: str, invoked_ns: int) -> None:
        """The append was acknowledged."""
        self._write(session, invoked_ns, self.now(), value=value, outcome="acknowledged")

    def refused(self, session: str, value: str, invoked_ns: int) -> None:
        """The append was refused, and had no effect."""
        self._write(session, invoked_ns, self.now(), value=value, outcome="refused")

    def unknown(self, session: str, value: str, invoked_ns: int) -> None:
        """The append failed in a way that leaves open whether it had an effect."""
        self._write(session, invoked_ns, None, value=value, outcome="unknown")

    def read(self, session: str, values: Sequence[str], invoked_ns: int) -> None:
        """The session was read, and held these values."""
        self._write(session, invoked_ns, self.now(), values=list(values))

    def close(self) -> None:
        """Close the file; nothing waits to be written."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _write(self, session: str, invoked: int, returned: int | None, **rest: Any) -> None:
        note = {"client": self._client, "session": session, "invoked_ns": invoked}
        self._file.write(json.dumps(note | {"returned_ns": returned} | rest) + "\n")


def read_journals(paths: Iterable[Path | str]) -> list[Operation]:
    """The operations of all clients. A note that ends an append takes the place of its first."""
    found: list[Operation] = []
    for path in paths:
        appends: dict[tuple[str, str], int] = {}  # where the note of an append stands in `found`
        lines = Path(path).read_text(encoding="ascii").split("\n")
        for number, line in enumerate(lines, start=1):
            if not line:
                continue
            try:
                operation = _operation(line)
            except (ValueError, TypeError, KeyError) as error:
                if number == len(lines):  # cut short by a kill
                    continue
                raise InvalidInput(f"{path}, line {number}", "is not an operation") from error
            place = (operation.session, operation.value or "")
            if operation.value is not None and place in appends:
                found[appends[place]] = operation
                continue
            if operation.value is not None:
                appends[place] = len(found)
            found.append(operation)
    return found


def _operation(line: str) -> Operation:
    note = json.loads(line)
    values = note.pop("values", None)
    return Operation(**note, values=None if values is None else tuple(values))
