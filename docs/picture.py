"""Draws docs/chat.svg: a real run of `holdfast chat`, in a terminal, as a person sees it.

    python docs/picture.py              writes docs/chat.svg
    python docs/picture.py FILE.svg     writes another

The program is the real one, with its store, its prompt and its tools. The vendor is a server on
this machine that says what a large model might: a picture needs no key, and comes out the same
each time.
"""

import os
import re
import sys
import tempfile
from io import StringIO
from itertools import groupby
from pathlib import Path

import pyte
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests"))

from cli_vendors import ANTHROPIC, vendor, wait_for_partial  # noqa: E402
from terminals import CTRL_D, ENTER, Terminal  # noqa: E402

COLUMNS = 76
TITLE = "holdfast chat"
THEME = TerminalTheme(
    (22, 24, 33),
    (214, 217, 228),
    [
        *((40, 42, 54), (255, 117, 127), (158, 206, 106), (224, 175, 104)),
        *((122, 162, 247), (187, 154, 247), (125, 207, 255), (192, 196, 214)),
    ],
)
DIM = "#8b90a8"
FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
TOOLS = '''
from holdfast import tool


@tool
def read_log(path: str) -> str:
    """The end of a log."""
    return "03:12 disk full, 03:14 restarted"
'''
ANSWERS = (
    ANTHROPIC.says(
        call="read_log",
        arguments='{"path": "sensor.log"}',
        thought="The log will tell. Let me read it before I answer.",
        tokens=412,
    ),
    ANTHROPIC.stops(
        ANTHROPIC.says("The disk was full at 03:12, so the sensor could no", tokens=498),
        "so the sensor",
    ),
    ANTHROPIC.says(
        "longer write. It was restarted two minutes later; make room, and it goes on.", tokens=540
    ),
)
KEY = "cli:sensors"


def main() -> None:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "chat.svg"
    with tempfile.TemporaryDirectory() as folder:
        rows = _talk(Path(folder))
    console = Console(
        width=COLUMNS, record=True, file=StringIO(), force_terminal=True, color_system="truecolor"
    )
    for row in rows:
        console.print(row, no_wrap=True, overflow="crop")
    svg = console.export_svg(title=TITLE, theme=THEME, unique_id="holdfast")
    svg = re.sub(r" *@font-face \{.*?\}\n", "", svg, flags=re.DOTALL)  # it would be fetched
    svg = re.sub(r"font-family: [^;]*;", f"font-family: {FONTS};", svg)
    target.write_text(re.sub(r"[ \t]+\n", "\n", svg).rstrip() + "\n", encoding="utf-8")
    print(f"{target}: {len(rows)} lines")


def _talk(folder: Path) -> list[Text]:
    """A conversation that is killed in the middle of an answer, and gone on with."""
    tools = folder / "tools.py"
    tools.write_text(TOOLS)
    home = folder / "home"
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("HOLDFAST_", "XDG_"))}
    environment = kept | {"HOLDFAST_HOME": str(home), "COLORTERM": "truecolor"}
    bin = Path(sys.executable).parent
    command = [str(bin / "holdfast"), "chat"]
    more = ["--tools", str(tools)]
    with vendor(*ANSWERS) as (_, asked):
        environment |= asked
        with Terminal([*command, "-s", KEY, *more], environment, columns=COLUMNS) as first:
            first.wait_for_prompt(1)
            first.type("Why did the sensor stop last night?" + ENTER)
            first.wait_for("could no")
            wait_for_partial(f"sqlite:{home / 'data/holdfast.db'}", KEY, "could no")
            first.kill()
            rows = [_typed(f"holdfast chat -s {KEY} --tools tools.py"), *_rows(first)]
        with Terminal([*command, "-c", *more], environment, columns=COLUMNS) as second:
            second.wait_for_prompt(2)
            second.type(ENTER)
            second.wait_for("written")
            second.wait_for_prompt(3)
            second.type(CTRL_D)
            second.wait_for_end()
            rows += [_killed(), _typed("holdfast chat -c --tools tools.py"), *_rows(second)]
    return rows


def _typed(command: str) -> Text:
    return Text.assemble(("$ ", Style(color="#9ece6a", bold=True)), command)


def _killed() -> Text:
    return Text("Killed", style=Style(color="#ff757f"))


def _rows(terminal: Terminal) -> list[Text]:
    """What the terminal shows, without what is empty at its end."""
    rows = [_row(cells) for cells in terminal.cells]
    while rows and not rows[-1].plain.strip():
        rows.pop()
    return rows


def _row(cells: list[pyte.screens.Char]) -> Text:
    row = Text()
    for style, same in groupby(cells, key=_style):
        row.append("".join(cell.data for cell in same), style)
    row.rstrip()
    return row


def _style(cell: pyte.screens.Char) -> Style:
    color = {"default": None, "brown": "yellow", "brightblack": DIM}.get(cell.fg, cell.fg)
    color = f"#{color}" if re.fullmatch(r"[\da-f]{6}", color or "") else color
    return Style(color=color, bold=cell.bold, italic=cell.italics)


if __name__ == "__main__":
    main()
