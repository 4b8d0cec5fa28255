"""Each entry of the gallery has a picture and the code that draws it."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.draw_examples import EXAMPLES, draw_example
from docs.gallery_pages import FOLDER, Entry, entry_page, index_page, read_sections

ROOT = Path(__file__).parents[2]
SECTIONS = read_sections()
ENTRIES = [entry for section in SECTIONS for entry in section.entries]
FEWEST = 24


def test_there_are_many_entries_and_no_two_have_one_page() -> None:
    names = [entry.name for entry in ENTRIES]
    assert len(names) >= FEWEST
    assert len(set(names)) == len(names)


def test_every_example_and_every_figure_of_a_lecture_is_in_the_gallery() -> None:
    shown = {entry.name for entry in ENTRIES}
    assert {path.stem for path in EXAMPLES} <= shown
    figures = {path.stem for path in (ROOT / "assets/figures").glob("*.svg")}
    translated = {name for name in figures if "." in name}
    assert figures - translated - shown == {"mlp-bound-swapped"}, "add it to gallery.toml"


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_an_entry_has_a_title_code_and_a_picture(entry: Entry) -> None:
    page = entry_page(entry, has_explorer=False, text="")
    assert f"# {entry.title}\n" in page
    assert f"({entry.picture})" in page
    assert f"```{entry.language}\n{entry.code.strip()}\n```" in page
    assert len(entry.code.split()) > 3
    if entry.is_drawn:
        assert "figure = " in entry.code
    else:
        assert (FOLDER / entry.picture).exists()


def test_the_gallery_has_a_thumbnail_for_each_entry_and_notebook() -> None:
    text = (FOLDER / "index.md").read_text(encoding="utf-8")
    page = index_page(text, SECTIONS, {"mlp": ("The <MLP>", "mlp.svg")})
    for entry in ENTRIES:
        assert f'<a href="{entry.name}.html"><img src="{entry.picture}"' in page
    assert 'href="../../notebooks/mlp.html"' in page
    assert "The &lt;MLP&gt;" in page


@pytest.mark.build
@pytest.mark.worker
@pytest.mark.parametrize("name", ["function", "bisection"])
def test_an_example_writes_its_picture_its_explorer_and_what_it_prints(
    name: str, tmp_path: Path
) -> None:
    draw_example(FOLDER / f"{name}.py", tmp_path)
    assert (tmp_path / f"{name}.svg").read_text(encoding="utf-8").startswith("<svg")
    assert "<script" in (tmp_path / f"{name}.html").read_text(encoding="utf-8")
    printed = tmp_path / f"{name}.txt"
    assert not printed.exists() or "drop_relu" in printed.read_text(encoding="utf-8")
