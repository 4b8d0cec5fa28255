"""What the documentation promises: its Python runs, and its reference has every public name."""

from __future__ import annotations

import linecache
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

import irviz

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]
# A block that cannot run stands below a comment that says why: <!-- not run: it needs a server -->
_BLOCK = re.compile(r"^(<!-- not run: .+ -->\n\n?)?```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SOLUTIONS = (ROOT / "docs/solutions.md").read_text(encoding="utf-8")
_PATH = re.compile(r"`((?:[a-z_0-9]+/)+[a-z_0-9.]*)`")
_LINK = re.compile(r"\]\(([\w./-]+\.(?:md|ipynb|svg|png|py))[)#]")


def runnable_blocks(path: Path) -> Iterator[str]:
    """Return the Python of a page, each below as many empty lines as stand above it."""
    text = path.read_text(encoding="utf-8")
    for block in _BLOCK.finditer(text):
        if not block[1]:
            yield "\n" * text.count("\n", 0, block.start(2)) + block[2]


@pytest.mark.build
@pytest.mark.worker
@pytest.mark.usefixtures("forgets_registrations")
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_python_of_a_page_runs_from_top_to_bottom(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = types.ModuleType(f"page_{path.stem}")
    monkeypatch.setitem(sys.modules, page.__name__, page)
    for number, block in enumerate(runnable_blocks(path)):
        page.__file__ = f"{path}, block {number}"  # TVMScript reads the text of what it decorates
        linecache.cache[page.__file__] = (len(block), None, block.splitlines(True), page.__file__)
        exec(compile(block, page.__file__, "exec"), vars(page))


def test_every_link_of_a_page_leads_to_a_file():
    """`make docs` checks it on the built pages, which takes longer."""
    for path in [*PAGES, *ROOT.glob("*.md"), *ROOT.glob("notebooks/*.ipynb")]:
        for link in _LINK.findall(path.read_text(encoding="utf-8")):
            assert (path.parent / link).exists(), f"{path.name} has a link to {link}"


def test_every_path_that_a_page_names_is_there():
    """Paths begin in the root or in irviz/; those of the viewer's sources in its folder."""
    roots = [ROOT, ROOT / "irviz", ROOT / "irviz/explorer/viewer"]
    own = (ROOT / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "docs/extend.md"))
    pages = [*own, *ROOT.glob("docs/decisions/*.md")]
    named = {(path.name, one) for path in pages for one in _PATH.findall(path.read_text())}
    assert len(named) > 50
    lost = {
        (page, one)
        for page, one in named
        if not any((root / f"{one}{end}").exists() for root in roots for end in ("", ".py"))
    }
    assert lost == set()


def test_the_reference_has_every_public_name():
    reference = "".join(path.read_text() for path in ROOT.glob("docs/reference/*.md"))
    listed = set(re.findall(r"^::: irviz\.(\w+)$", reference, re.MULTILINE))
    public = {name for name in irviz.__all__ if not name.endswith("Error")}
    assert public - listed == set(), "add them to a page in docs/reference"
    assert listed - public == {"errors"}


def test_the_reference_has_every_method_of_a_session_and_begins_with_four():
    pages = [ROOT / f"docs/reference/{name}.md" for name in ("session", "compare", "run", "stages")]
    text = "".join(path.read_text() for path in pages)
    listed = re.findall(r"^::: irviz\.Session\.(\w+)$", text, re.MULTILINE)
    assert listed[:4] == ["apply", "draw", "diff", "run"]
    attributes = set(irviz.Session.__dataclass_fields__)
    public = {name for name in dir(irviz.Session) if not name.startswith("_")} - attributes
    assert sorted(listed) == sorted(public)


def test_the_solutions_have_an_answer_to_every_exercise():
    from irviz.course import check

    solved = re.findall(
        r"^assert check\.(\w+)\(.*\)\.mark is Mark\.RIGHT$", SOLUTIONS, re.MULTILINE
    )
    exercises = {name for name in vars(check) if hasattr(vars(check)[name], "__wrapped__")}
    assert len(exercises) > 10
    assert sorted(solved) == sorted(exercises)
