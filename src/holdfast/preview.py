"""Preview: exactly what the next request would hold, part by part, before anybody sends it.

    told = session.preview()
    for piece in told.pieces:
        print(piece.message.role, piece.tokens, "measured" if piece.is_measured else "estimated")
    told.request()    # the body, as the model's service would be sent it

It is the window of `session.window()`, and with it what a person asks next: how many tokens each
part has and who says so, what stands for what, which folds would be made before it is sent.
"""

import json
from math import ceil
from typing import Any, NamedTuple

from holdfast.entries import Fold
from holdfast.errors import Unsupported
from holdfast.messages import Message
from holdfast.providers.base import Provider
from holdfast.providers.fields import encode
from holdfast.settings import Settings
from holdfast.steps.targets import Target
from holdfast.steps.windows import Windows
from holdfast.window.budget import Budget, Room
from holdfast.window.ledger import Ledger
from holdfast.window.plan import Plan
from holdfast.window.view import Item
from holdfast.window.window import Window


class Piece(NamedTuple):
    """A message as it would be sent.

    tokens       of the model; measured where its service reported them for this very message
    first, last  the seqs of the messages that it stands for; None where it was made to be sent
    fold         the fold that shows it in the place of these
    """

    message: Message
    tokens: int
    is_measured: bool
    first: int | None = None
    last: int | None = None
    fold: Fold | None = None


class Preview(NamedTuple):
    """What the next request would hold, if nothing more were said.

    window         what is sent
    system_tokens, tools_tokens
                   of what is no message, as estimated
    pieces         its messages, with their tokens
    measured       of `window.used`, so many are known from what was reported
    room           tokens of the model's window: all, kept for the answer, left for the request
    budget         how the window is filled: from which share of `room.prompt` on it is folded
    plan           what would be folded before it is sent. Folds that need a summary are not yet in
                   `window`: somebody has to write it first
    output         how long the answer may be; None is as long as the model can
    """

    model: str
    window: Window
    system_tokens: int
    tools_tokens: int
    pieces: tuple[Piece, ...]
    measured: int
    room: Room
    budget: Budget
    plan: Plan
    output: int | None
    provider: Provider
    settings: Settings
    conversation: str

    def request(self) -> Any:
        """The body of the request, in the words of the model's service; without any credentials.

        Unsupported, where the provider has no such thing to show.
        """
        wire: Any = getattr(self.provider, "wire", None)
        if wire is None:
            raise Unsupported("tell the body of a request", f"the provider of {self.model}")
        ask = wire.ask(
            self.window.messages,
            self.window.system,
            self.window.tools,
            settings=self.settings.replace(max_tokens=self.output),
            conversation=self.conversation,
            stream=True,
        )
        return json.loads(encode(wire.to_wire(ask)))


def preview(
    windows: Windows, target: Target, ledger: Ledger, settings: Settings, conversation: str
) -> Preview:
    """What would be sent to a model now."""
    view, situation, plan = windows.foreseen()
    shown = windows.request(view, situation, settings.max_tokens)
    items = {item.message.id: item for item in view.items}
    base, scale = windows.base, situation.scale
    pieces = [
        _piece(
            each, ceil(counted * scale), items.get(each.id), ledger.message(target.name, each.id)
        )
        for each, counted in zip(shown.window.messages, shown.window.tokens, strict=True)
    ]
    return Preview(
        model=target.name,
        window=shown.window,
        system_tokens=ceil((base.all - base.tools) * scale),
        tools_tokens=ceil(base.tools * scale),
        pieces=tuple(pieces),
        measured=windows.estimate(view).reported,
        room=windows.room,
        budget=windows.budget,
        plan=plan,
        output=shown.output,
        provider=target.provider,
        settings=settings,
        conversation=conversation,
    )


def _piece(message: Message, estimated: int, item: Item | None, reported: int | None) -> Piece:
    tokens = estimated if reported is None else reported
    if item is None:
        return Piece(message, tokens, reported is not None)
    return Piece(message, tokens, reported is not None, item.first, item.last, item.fold)
