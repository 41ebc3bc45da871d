"""What the commands of a conversation show of it: tools, context, branches, turns, usage."""

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from holdfast.cli.chat.talk import Talk
from holdfast.cli.screen import counted, cut, one_line, safe

if TYPE_CHECKING:
    from holdfast.outline import Turn
    from holdfast.usage import Usage
    from holdfast.window.window import Window

_SHOWN_MAX = 20  # messages of a window; holdfast context shows all


def tools(talk: Talk) -> None:
    """What the model may call, whether it asks first, and whether it can be run here."""
    found = talk.tools
    for tool in found:
        facts = ["asks first"] * tool.approval + ["cannot be run here"] * (tool.run is None)
        told = f" [{', '.join(facts)}]" if facts else ""
        said = f"{tool.name}{told}  {tool.description}"
        talk.screen.note(one_line(said, talk.screen.width - 1))
    if not found:
        talk.screen.note("none; holdfast chat --tools FILE.py brings those of a file")


def context(talk: Talk) -> None:
    """What the next request would hold: each message with its tokens, and what is folded."""
    screen, session = talk.screen, talk.session
    assert session is not None
    window = session.window(talk.provider)
    share = 100 * window.used / window.limit
    screen.note(
        f"{window.used:,} of {window.limit:,} tokens ({share:.1f} %) of {safe(talk.provider.name)}"
    )
    if window.system:
        screen.note(cut(f"       system     {one_line(window.system, 500)}", screen.width - 1))
    _messages(talk, window)
    for fold in window.folds:
        what = f"entries {fold.first} to {fold.last} are folded"
        why = f": {one_line(fold.why, 200)}" if fold.why else ""
        screen.note(f"{what}{why}", "yellow")


def _messages(talk: Talk, window: "Window") -> None:
    rows = list(zip(window.messages, window.tokens, strict=False))
    if len(rows) > _SHOWN_MAX:
        talk.screen.note(f"[{len(rows) - _SHOWN_MAX} messages before: holdfast context]")
    for message, tokens in rows[-_SHOWN_MAX:]:
        called = ", ".join(f"{call.name}(…)" for call in message.calls)
        text = message.text or called or "[no words]"
        line = f"{tokens:>6,} {message.role:<10} {one_line(text, 500)}"
        talk.screen.note(cut(line, talk.screen.width - 1))


def branches(talk: Talk) -> None:
    """The branches, the one in use marked."""
    session = talk.session
    assert session is not None
    for branch in session.branches:
        sign = "*" if branch.name == session.branch else " "
        parent = f" from {safe(branch.parent)}" if branch.parent else ""
        talk.screen.note(f"{sign} {safe(branch.name)}{parent}")
    talk.screen.note("/branch NAME uses one, or begins one here")


def turns(talk: Talk, found: "Sequence[Turn]") -> None:
    """The turns, numbered."""
    for turn in found:
        said = one_line(turn.message.text or "", talk.screen.width - 6)
        talk.screen.note(f"{turn.index:>3}  {said}")


async def usage(talk: Talk) -> None:
    """Tokens and cost of the branch in use, and how full the window is."""
    from holdfast.usage import Usage

    session = talk.session
    assert session is not None
    found = await session.turns()
    spent = sum((turn.usage for turn in found), Usage())
    costs = [turn.cost for turn in found if turn.cost is not None]
    cost = sum(costs, Decimal(0)) if costs else None
    talk.screen.note(
        f"{counted(len(found), 'turn')} on {safe(session.branch)}: {in_words(spent, cost)}"
    )
    window = session.window(talk.provider)
    talk.screen.note(
        f"the next request has about {window.used:,} tokens, "
        f"{100 * window.used / window.limit:.1f} % of what fits"
    )


def in_words(usage: "Usage", cost: Decimal | None) -> str:
    """What something took: 1,234 tokens read (90 % from cache), 56 written, $0.0010."""
    if usage.input is None and usage.output is None:
        return "the service did not say how many tokens it took"
    share = ""
    if usage.cache_read and usage.input:
        share = f" ({100 * usage.cache_read / usage.input:.0f} % from the cache)"
    money = "" if cost is None else f", ${cost:,.4f}"
    return f"{usage.input or 0:,} tokens read{share}, {usage.output or 0:,} written{money}"
