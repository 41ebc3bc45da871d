"""Every Python example in the documentation is run, and the README keeps its word."""

import pkgutil
import re
from pathlib import Path

import pytest

import holdfast
from postgres_server import server

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "ARCHITECTURE.md", *(ROOT / "docs").glob("**/*.md")])
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#]+)[^)]*\)")


TUTORIAL = ROOT / "docs" / "tutorial.md"


def blocks(page: Path) -> list[str]:
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


PROGRAMS = [page for page in PAGES if blocks(page) and page != TUTORIAL]


@pytest.mark.parametrize("page", PROGRAMS, ids=name)
def test_the_examples_of_a_page_run_one_after_the_other(page, tmp_path, monkeypatch):
    """The blocks of a page are one program: a reader who types them in order sees them work."""
    monkeypatch.chdir(tmp_path)

    run(page)


def test_the_tutorial_runs_on_a_real_model_and_a_real_server(
    local_name, tmp_path, monkeypatch, capsys
):
    """As its last part says: with another URL, and nothing else, it is on PostgreSQL."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOLDFAST_MODEL", local_name)
    monkeypatch.setenv("HOLDFAST_STORE", server().database("tutorial"))

    run(TUTORIAL)

    assert len(capsys.readouterr().out.splitlines()) >= 5
    assert list(tmp_path.iterdir()) == []


def run(page: Path) -> None:
    names: dict[str, object] = {"__name__": "__main__"}

    for block in blocks(page):
        exec(compile(block, str(page), "exec"), names)

    assert len(names) > 1


def test_the_readme_shows_in_twelve_lines_what_holdfast_is_for():
    """The first example of the README has at most 12 lines that are not blank."""
    first = blocks(ROOT / "README.md")[0]

    assert len([line for line in first.splitlines() if line.strip()]) <= 12
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 150


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_to_a_file_leads_somewhere(page):
    """A link in the documentation names a file of the project, or a page of the web."""
    targets = LINK.findall(page.read_text(encoding="utf-8"))

    missing = [t for t in targets if "://" not in t and not (page.parent / t).exists()]

    assert missing == []


def test_every_command_that_the_readme_names_exists():
    """Scripts and benchmarks named in the README are there to be run."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")

    named = set(re.findall(r"\b((?:scripts|bench)/[\w./-]*\w)", text))

    assert named
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []


def test_the_architecture_names_every_module():
    """ARCHITECTURE.md lists the files in reading order; none is forgotten."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    modules = [p.name for p in (ROOT / "src" / "holdfast").glob("**/*.py")]

    missing = [name for name in modules if name not in text]

    assert missing == []


NAV = re.compile(r"([\w/-]+\.md)$", re.MULTILINE)


def test_every_page_is_in_the_navigation_once():
    """Whoever reads the site finds each page; so does a model that is given llms.txt."""
    pages = sorted(str(p.relative_to(ROOT / "docs")) for p in (ROOT / "docs").glob("**/*.md"))
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    told = LINK.findall((ROOT / "docs" / "llms.txt").read_text(encoding="utf-8"))

    assert sorted(NAV.findall(nav)) == pages
    assert sorted(told) == pages


def test_the_reference_names_what_is_there():
    """A name of the reference that was renamed would be an error only when the site is built."""
    text = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "docs/reference").glob("*.md"))
    named = re.findall(r"^::: ([\w.]+)$", text, re.MULTILINE)

    assert len(named) > 20
    for name in named:
        pkgutil.resolve_name(name)
    assert {n for n in holdfast.__all__ if f"`{n}`" not in text} == set()
