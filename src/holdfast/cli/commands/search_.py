"""`holdfast search`: messages that hold all of these words."""

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from holdfast.cli import times
from holdfast.cli.app import App, NoStore
from holdfast.cli.command import command as make
from holdfast.cli.failures import DAMAGED, FAILED, USAGE, Failure
from holdfast.cli.passages import passage, shown
from holdfast.cli.references import find_key
from holdfast.cli.screen import Screen, one_line

if TYPE_CHECKING:
    from holdfast.manager import SessionManager
    from holdfast.messages import Message
    from holdfast.stores.values import Found

_JSON_WIDTH = 200
_EPILOG = """\b
Whole words count; case and accents do not. The status is 1 when nothing is found.
\b
Examples:
  holdfast search invoice paid
  holdfast search -s @ "rate limit" -n 5
  holdfast search invoice --json | jq -r '.hits[].key' | sort -u"""


@make("search", epilog=_EPILOG)
@click.argument("words", nargs=-1, required=True)
@click.option("-s", "--session", "reference", metavar="REF", help="Only in this conversation")
@click.option(
    "-n", "limit", type=click.IntRange(1, 1_000), default=20, show_default=True, help="How many"
)
@click.option("--page", metavar="TOKEN", help="The next hits, as the page before has told")
@click.option("--json", "is_json", is_flag=True, help="For programs")
@click.option("--no-pager", is_flag=True, help="Never through a pager")
async def command(
    app: App,
    words: tuple[str, ...],
    reference: str | None,
    limit: int,
    page: str | None,
    is_json: bool,
    no_pager: bool,
) -> int:
    """Messages that hold all of these words, the newest first."""
    wanted = " ".join(words)
    _check(wanted)
    hits: list[_Hit] = []
    damaged: list[Found] = []
    next_page = None
    try:
        async with app.sessions() as sessions:
            key = None if reference is None else await find_key(sessions, reference)
            await sessions.index(on_progress=app.screen.progress("making ready to search"))
            found = await sessions.search(wanted, key=key, limit=limit, page=page)
            next_page = found.next
            damaged = [each for each in found.items if each.damage]
            hits = [await _hit(sessions, each) for each in found.items if not each.damage]
    except NoStore:
        if not app.is_default_store:
            raise
    for each in damaged:
        where = f"{each.key}, entry {each.stored.seq}"
        app.screen.note(f"damaged: {one_line(f'{where}: {each.damage}', 500)}")
    if is_json:
        plain = [each.plain(wanted) for each in hits]
        app.screen.json({"query": wanted, "hits": plain, "next": next_page})
        return 0 if hits else DAMAGED if damaged else FAILED
    with app.screen.paged(is_wanted=not no_pager):
        for hit in hits:
            hit.print(app.screen, wanted)
    if next_page is not None:
        app.screen.note(f"there are more: --page {next_page}")
    elif not hits and not damaged:
        app.screen.note("nothing was found: whole words count, and all of them")
    return 0 if hits else DAMAGED if damaged else FAILED


class _Hit(NamedTuple):
    """A message that was found, in which turn, and what is found of it."""

    found: "Found"
    said: "Message"
    turn: int | None
    text: str

    def plain(self, wanted: str) -> dict[str, Any]:
        stored = self.found.stored
        around = passage(self.text, wanted, _JSON_WIDTH)
        return {
            "key": self.found.key,
            "session": self.found.session_id,
            "id": self.said.id,
            "seq": stored.seq,
            "position": stored.position,
            "branch": stored.branch,
            "turn": self.turn,
            "role": str(self.said.role),
            "timestamp": times.plain(self.said.timestamp),
            "passage": around.text,
            "places": [list(place) for place in around.places],
        }

    def print(self, screen: Screen, wanted: str) -> None:
        branch = self.found.stored.branch
        told = [
            str(self.said.role),
            f"turn {self.turn}" if self.turn else "",
            "" if branch == "main" else f"branch {branch}",
            times.shown(self.said.timestamp),
        ]
        rest = f" {screen.sign('·', '-')} ".join(one_line(each, 60) for each in told if each)
        key = screen.styled(one_line(self.found.key, 200), "bold", "blue")
        screen.print(f"{key}  {screen.styled(rest, 'dim')}")
        width = min(_JSON_WIDTH, 3 * screen.width)
        screen.print("  " + shown(screen, passage(self.text, wanted, width)))


def _check(wanted: str) -> None:
    from holdfast.stores.words import query

    if not query(wanted):
        raise Failure(f"{wanted!r} holds no word: a search is for whole words", USAGE)


async def _hit(sessions: "SessionManager", found: "Found") -> _Hit:
    from holdfast.errors import Corrupt
    from holdfast.messages import Message
    from holdfast.stores.searchable import text_of

    said, stored = found.stored.entry, found.stored
    assert isinstance(said, Message)  # nothing else is searched
    try:
        peek = await sessions.peek(found.key)
        turn = await peek.turn_at(stored.position, stored.branch)
    except Corrupt:  # something else in it is damaged
        turn = None
    return _Hit(found, said, turn, text_of(said))
