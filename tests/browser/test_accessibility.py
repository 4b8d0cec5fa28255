"""axe-core finds nothing serious in the viewer in a notebook; test_page.py tries the page."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_a_notebook(lab: Any, axe: Any, theme: str) -> None:
    viewer = lab.show("fused")
    try:
        lab.theme(theme)
        expect(viewer.root).to_have_attribute("data-theme", theme.split()[1].lower())
        viewer.click("lv")
        expect(viewer.title).to_have_text("lv")
        viewer.button("Split").click()
        expect(viewer.script.locator(".cm-line").first).to_be_visible()
        assert axe(viewer) == []
    finally:
        lab.theme("JupyterLab Light")


def test_the_forms(lab: Any, axe: Any) -> None:
    viewer = lab.show("fused")
    for tab in ("Transform", "Schedule", "Results", "Profile", "Save"):
        form = viewer.tab(tab)
        expect(form.locator("button").filter(visible=True).first).to_be_visible()
        assert axe(viewer) == [], tab


def test_a_comparison(lab: Any, axe: Any) -> None:
    viewer = lab.show("fused")
    viewer.picture().focus()
    lab.page.keyboard.press("d")
    expect(viewer.root.locator(".irviz-caption")).to_have_count(2)
    viewer.button("Split").click()
    expect(viewer.script.locator(".cm-editor")).to_have_count(2)
    assert axe(viewer) == []
