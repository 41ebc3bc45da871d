"""A window: exactly what the next model call would be given, and the account of it."""

import hashlib
import json
from collections.abc import Sequence
from typing import NamedTuple

from holdfast.codec import record
from holdfast.entries import Fold
from holdfast.frozen import FrozenDict
from holdfast.tools import Tool
from holdfast.window.fit import too_large
from holdfast.window.render import Repair, Shown
from holdfast.window.situation import Situation
from holdfast.window.view import View


class Window(NamedTuple):
    """What a model is given.

    messages  as they are sent
    tokens    of each of them, as counted
    used      tokens of the whole request in those of the model, as best known
    margin    so many more it may be
    limit     so many it may have
    folds     that say something, with who made them and why
    repairs   what had to be changed so that it can be sent
    digest    of all that is shown: two windows that are equal have the same
    """

    system: str | None
    messages: Shown
    tools: tuple[Tool, ...]
    tokens: tuple[int, ...]
    used: int
    margin: int
    limit: int
    folds: tuple[Fold, ...]
    repairs: tuple[Repair, ...]
    digest: str

    @property
    def manifest(self) -> FrozenDict:
        """What a receipt keeps of it: how much was shown, and what was not and why."""
        return FrozenDict(
            {
                "messages": len(self.messages),
                "used": self.used,
                "limit": self.limit,
                "folds": [
                    {"first": each.first, "last": each.last, "by": each.by, "why": each.why}
                    for each in self.folds
                ],
                "repairs": len(self.repairs),
            }
        )


def window(
    view: View, situation: Situation, *, system: str | None = None, tools: Sequence[Tool] = ()
) -> Window:
    """The window that a view gives, or DoesNotFit, which names the largest part of it.

    It is judged as `fitting` judges: by the estimate, and not by its margin.
    """
    if situation.is_too_long:
        raise too_large(view, situation)
    rendered = view.rendered()
    return Window(
        system=system,
        messages=rendered.messages,
        tools=tuple(tools),
        tokens=view.tokens,
        used=situation.used,
        margin=situation.margin,
        limit=situation.limit,
        folds=view.folds,
        repairs=rendered.repairs,
        digest=digest(view, system, tools),
    )


def digest(view: View, system: str | None, tools: Sequence[Tool]) -> str:
    """Of what is shown. A message more costs what that message costs."""
    declared = [tool.declaration for tool in tools]
    told = json.dumps([system, declared], ensure_ascii=False, sort_keys=True)
    hashed = view.hashed(record)
    hashed.update(hashlib.sha256(told.encode("utf-8", "surrogatepass")).digest())
    return f"sha256:{hashed.hexdigest()}"
