"""Pictures in the theme "page" take their colours from the page."""

from __future__ import annotations

import os
import re
from pathlib import Path

import irviz.explorer.viewer
from irviz.course.mlp import MyModule
from irviz.session.session import Session
from irviz.session.visible_function import stage_view
from irviz.view.theme import page_css, system_css

CSS = Path(irviz.explorer.viewer.__file__).parent / "src" / "theme.css"


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
