"""A tenant that counts what it is asked, and one whose caller is cut off in the middle."""

import os
import signal


class CutOff(BaseException):
    """The caller is gone: no handler of its own may run on."""


class Watched:
    """A tenant, and a list of the names of all calls.

    At the call number `at` (from 1) the caller is cut off: "before" the store is asked, or "after"
    it has done it. `die` is how.
    """

    def __init__(self, tenant, at=0, when="before", die=None):
        self._tenant = tenant
        self._at = at
        self._when = when
        self._die = die or self._raise
        self.asked = []
        self.rows = 0

    def __getattr__(self, name):
        function = getattr(self._tenant, name)

        async def call(*args, **kwargs):
            self.asked.append(name)
            is_last = len(self.asked) == self._at
            if is_last and self._when == "before":
                self._die()
            result = await function(*args, **kwargs)
            if is_last:
                self._die()
            if name in ("read", "tail"):
                self.rows += len(result)
            return result

        return call

    @staticmethod
    def _raise():
        raise CutOff


def kill():
    """As the kernel does it when memory runs out."""
    os.kill(os.getpid(), signal.SIGKILL)


async def cut_off_everywhere(scenario):
    """Run `scenario(at, when)` for every place at which a caller can be cut off.

    It returns whether it was: the places have come to an end when it was not.
    """
    places = 0
    for when in ("before", "after"):
        at = 1
        while await scenario(at, when):
            at += 1
            places += 1
    return places
