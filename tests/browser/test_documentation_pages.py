"""The built documentation: no page is wider than its window, and none lacks a picture."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from docs.gallery_pages import read_sections
from docs.notebook_pages import COURSE, FOLDER, needs_torch

pytest.importorskip("mkdocs", reason="run `make docs` once, which installs it")
pytestmark = [pytest.mark.build, pytest.mark.worker]

ROOT = Path(__file__).parents[2]
WINDOWS = ((1280, 800), (390, 844))
SAMPLED = 6  # the pages of the gallery's entries are alike
_IMAGE = re.compile(r'<img [^>]*?src="([^"]+)"')
_LOOK = """() => {
  const { clientWidth, scrollWidth } = document.documentElement;
  const scrolls = (one) => ["auto", "scroll"].includes(getComputedStyle(one).overflowX);
  const isCut = (one) => {
    if (one.getBoundingClientRect().right <= clientWidth + 1) return false;
    for (let at = one; at; at = at.parentElement) if (scrolls(at)) return false;
    return true;
  };
  const content = [...document.querySelectorAll(".md-content *")];
  const cut = content.filter(isCut).map((one) => one.outerHTML.slice(0, 80));
  return [scrollWidth <= clientWidth, cut];
}"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    return folder


@pytest.fixture
def window(chromium: Any) -> Iterator[Any]:
    page = chromium.new_page()
    yield page
    page.close()


def pages(site: Path) -> list[Path]:
    """Return the pages of text that can be opened from disk, without 404.html."""
    found = [one for one in site.rglob("*.html") if one.parent.name != "explorers"]
    return sorted(one for one in found if one.name != "404.html")


def test_no_page_is_wider_than_its_window(site: Path, window: Any) -> None:
    entries = [one for one in pages(site) if one.parent.name == "gallery"]
    chosen = [one for one in pages(site) if one not in entries] + entries[::SAMPLED]
    wrong: list[object] = []
    window.on("pageerror", lambda error: wrong.append(str(error)))
    for width, height in WINDOWS:
        window.set_viewport_size({"width": width, "height": height})
        for path in chosen:
            window.goto(path.as_uri())
            fits, cut = window.evaluate(_LOOK)
            if cut or not fits:
                wrong.append((path.name, width, cut[:3]))
    assert wrong == []


def test_every_picture_of_a_page_is_there(site: Path) -> None:
    named = {
        (path.name, path.parent / unquote(image))
        for path in pages(site)
        for image in _IMAGE.findall(path.read_text(encoding="utf-8"))
        if not image.startswith("data:")
    }
    assert len(named) > 100
    assert {(page, str(image)) for page, image in named if not image.exists()} == set()


def test_no_page_would_load_something_from_the_web(site: Path) -> None:
    loaded = re.compile(r"<(?:script|link|img|iframe)\b[^>]*(?:src|href)=[\"']?(?:https?:)?//")
    found = [one.name for one in site.rglob("*.html") if loaded.search(one.read_text())]
    assert found == []


def test_each_entry_of_the_gallery_and_each_notebook_has_a_page_with_a_picture(site: Path) -> None:
    entries = [entry.name for section in read_sections() for entry in section.entries]
    pages = [site / f"docs/gallery/{name}.html" for name in entries]
    for name in COURSE:
        if not needs_torch(FOLDER / f"{name}.ipynb"):
            pages.append(site / f"notebooks/{name}.html")
        assert (site / f"notebooks/{name}.ipynb").exists()
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert "<img" in text.partition("<article")[2], page.name
        assert "<pre" in text.partition("<article")[2], page.name


def test_the_front_page_shows_its_text_at_once_and_then_a_live_session(
    site: Path, window: Any
) -> None:
    window.goto((site / "index.html").as_uri())
    window.locator("iframe.explorer").scroll_into_view_if_needed()
    explorer = window.frame_locator("iframe.explorer")
    explorer.get_by_text("LegalizeOps").first.click()
    explorer.get_by_text("2 LegalizeOps").first.wait_for()
    for link in ("Read the notebooks.", "Find the pass.", "Open a file or a model."):
        assert (site / window.get_by_text(link).get_attribute("href")).exists()
    text = (site / "index.html").read_text(encoding="utf-8")
    assert ' src="docs/explorers' not in text  # it is set when the page has been shown


def test_the_theme_that_is_loaded_after_the_text_marks_what_is_being_read(
    site: Path, window: Any
) -> None:
    window.set_viewport_size({"width": 1280, "height": 800})
    window.goto((site / "ARCHITECTURE.html").as_uri())
    contents = window.locator(".md-sidebar--secondary")
    contents.get_by_role("link", name="Dependencies").click()
    contents.locator(".md-nav__link--active", has_text="Dependencies").wait_for()
