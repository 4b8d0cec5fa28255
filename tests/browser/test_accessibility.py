"""axe-core finds nothing serious in the viewer, in both themes, in a notebook and on the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

import irviz

AXE = Path(irviz.__file__).parent / "explorer/viewer/node_modules/axe-core/axe.min.js"
CHECK = """async root => {
    const { violations } = await axe.run(root, { resultTypes: ['violations'] });
    return violations.filter(({ impact }) => ['serious', 'critical'].includes(impact))
        .map(({ id, help, nodes }) => [id, help, ...nodes.slice(0, 3).map(
            node => `${node.html.slice(0, 200)} ${node.any.map(one => one.message)}`)]);
}"""


@pytest.fixture(scope="module")
def axe() -> str:
    if not AXE.exists():
        pytest.skip("no axe-core: run `npm ci` in irviz/explorer/viewer")
    return AXE.read_text(encoding="utf-8")


def findings(viewer: Any, axe: str) -> list[Any]:
    viewer.page.evaluate(f"() => {{ {axe} }}")
    return list(viewer.root.evaluate(CHECK))


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_a_notebook(lab: Any, axe: str, theme: str) -> None:
    viewer = lab.show("fused")
    try:
        lab.theme(theme)
        expect(viewer.root).to_have_attribute("data-theme", theme.split()[1].lower())
        viewer.click("lv")
        expect(viewer.title).to_have_text("lv")
        viewer.button("Split").click()
        expect(viewer.script.locator(".cm-line").first).to_be_visible()
        assert findings(viewer, axe) == []
    finally:
        lab.theme("JupyterLab Light")


@pytest.mark.parametrize("tab", ["Transform", "Schedule", "Run", "Profile", "Save"])
def test_the_forms(lab: Any, axe: str, tab: str) -> None:
    viewer = lab.show("fused")
    form = viewer.tab(tab)
    expect(form.locator("button").filter(visible=True).first).to_be_visible()
    assert findings(viewer, axe) == []


def test_a_comparison(lab: Any, axe: str) -> None:
    viewer = lab.show("fused")
    viewer.picture().focus()
    lab.page.keyboard.press("d")
    expect(viewer.root.locator(".irviz-caption")).to_have_count(2)
    viewer.button("Split").click()
    expect(viewer.script.locator(".cm-editor")).to_have_count(2)
    assert findings(viewer, axe) == []
