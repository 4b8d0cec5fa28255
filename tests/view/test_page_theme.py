"""Pictures in the theme "page" take their colours from the page."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import irviz
import irviz.explorer.viewer
from irviz.course.mlp import MyModule
from irviz.model.runs.array_diff import summarise
from irviz.session.session import Session
from irviz.session.shown_function import stage_view
from irviz.view.mix_colours import mix_colours, oklab
from irviz.view.theme import THEMES, dark_where_the_page_is, page_css, system_css
from irviz.view.value_charts import draw_chart

CSS = Path(irviz.explorer.viewer.__file__).parent / "src" / "graph" / "picture_colours.css"


def test_the_style_sheet_of_the_viewer_has_the_colours_of_the_themes() -> None:
    if os.environ.get("IRVIZ_SNAPSHOTS") == "write":
        CSS.write_text(page_css(), encoding="utf-8")
    assert CSS.read_text(encoding="utf-8") == page_css()


def test_every_colour_of_a_picture_is_one_that_the_style_sheet_defines() -> None:
    session = Session(MyModule)
    svg = stage_view(session.current, "main").figure("page").svg
    named = set(re.findall(r"var\((--irviz-[\w-]+)\)", svg))
    assert named
    assert named <= set(re.findall(r"(--irviz-[\w-]+):", page_css()))
    assert not re.search(r"#[0-9a-f]{3,6}\"", svg)


def test_a_file_has_the_same_colours_light_or_dark_as_the_system_is() -> None:
    rules = [re.findall(r"--irviz-.*;", part) for part in system_css().split("@media")]
    assert rules == [re.findall(r"--irviz-.*;", part) for part in page_css().split('"dark"')]
    assert [bool(colours) for colours in rules] == [True, True]
    assert "@media (prefers-color-scheme: dark) {" in system_css()


def test_a_notebook_shows_a_picture_dark_where_its_page_is_dark_and_a_saved_one_stays_light(
    tmp_path: Path,
) -> None:
    drawn = irviz.draw(MyModule)
    (style,) = re.findall(r"<style>(.*)</style>", drawn._repr_svg_())
    assert style.startswith("@media (prefers-color-scheme: dark) {")
    used = set(re.findall(r'(?:fill|stroke)="(#[0-9a-f]{6})"', drawn.svg))
    assert set(re.findall(r'fill="(#[0-9a-f]{6})"', style)) == used
    dark = irviz.draw(MyModule, theme="dark")
    wanted = set(re.findall(r'(?:fill|stroke)="(#[0-9a-f]{6})"', dark.svg))
    box = THEMES["dark"].colours["call"][0]  # as white as the paper, so it is as dark as that
    assert set(re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", style)) >= wanted - {box}
    assert dark._repr_svg_() == dark.svg
    assert "<style" not in drawn.save(tmp_path / "picture.svg").read_text(encoding="utf-8")


def test_a_picture_with_colours_of_its_own_is_shown_as_it_is() -> None:
    svg = irviz.draw(MyModule).svg.replace("#cfe8c9", "#123456")
    assert dark_where_the_page_is(svg) == svg


FIGURES = sorted((Path(__file__).parents[2] / "assets").glob("**/*.svg"))


@pytest.mark.parametrize("path", FIGURES, ids=lambda path: path.stem)
def test_every_figure_of_the_course_has_dark_colours_too(path: Path) -> None:
    """Slides with black outlines, code, loop nests with tinted lines, and overlays."""
    style = dark_where_the_page_is(path.read_text(encoding="utf-8")).partition("</style>")[0]
    assert "@media (prefers-color-scheme: dark) {" in style
    assert ".irviz [fill" in style


@pytest.mark.parametrize("share", [0, 0.25, 1])
def test_a_tint_becomes_the_dark_tint_of_the_same_share(share: float) -> None:
    light, dark = (mix_colours(*THEMES[name].tints, share) for name in ("course", "dark"))
    shown = dark_where_the_page_is(f'<svg class="irviz"><rect fill="{light}" /></svg>')
    (found,) = re.findall(r" fill: (#[0-9a-f]{6})", shown)
    assert np.linalg.norm(oklab(found) - oklab(dark)) < 0.01


@pytest.mark.parametrize("kind", ["histogram", "heat map"])
def test_the_axes_and_words_of_a_chart_are_dark_too(kind: Literal["histogram", "heat map"]) -> None:
    rng = np.random.default_rng(0)
    array = rng.standard_normal((4, 8), np.float32)
    shown = draw_chart(kind, array, summarise(array), "course", title="x")._repr_svg_()
    style, _, chart = shown.partition("</style>")
    used = re.findall(r"fill: (#[0-9a-f]{6})", chart)
    assert used
    assert all(f'.irviz-drawing [style*="fill: {one}"] {{ fill: #' in style for one in used)
