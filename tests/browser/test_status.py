"""What is said of the kernel: busy, gone, and that what is in the page can still be used."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect


@pytest.fixture
def restored(lab: Any) -> Any:
    """At the end the kernel is there again, as it was."""
    yield
    lab.restart()


@pytest.mark.usefixtures("restored")
def test_a_kernel_that_is_gone_is_said_and_the_page_stays_usable(lab: Any) -> None:
    lab.do("from irviz.explorer.background_runner import Jobs")
    viewer = lab.show("fused")
    viewer.click("lv")
    expect(viewer.title).to_have_text("lv")
    viewer.button("Split").click()
    expect(viewer.script.locator(".cm-line").first).to_be_visible()
    lab.do("explorer.dispatch(actions.SetField('jobs', Jobs('stage 1', 'building')))")
    spinner = viewer.root.locator(".irviz-spinner")
    expect(spinner).to_be_visible()
    expect(viewer.button("Cancel")).to_be_visible()
    lab.page.evaluate("() => { window.jupyterapp.shell.currentWidget.sessionContext.shutdown(); }")
    alert = viewer.root.get_by_role("alert").filter(has_text="The kernel does not answer")
    expect(alert).to_be_visible()
    expect(viewer.root.locator(".irviz-connection")).to_have_attribute("data-connection", "lost")
    expect(spinner).to_have_count(0)  # of what was being done nothing more is heard
    viewer.picture().focus()
    lab.page.keyboard.press("ArrowUp")  # and all that the page has is there
    expect(viewer.title).to_have_text("gv")
    viewer.node("w0").hover()
    expect(viewer.root.get_by_role("tooltip")).to_contain_text("w0")
    viewer.button("Zoom in").click()
    expect(viewer.button("Run", exact=True).first).to_be_disabled()
    viewer.picture().focus()
    lab.page.keyboard.press("?")
    expect(viewer.root.get_by_role("dialog")).to_be_visible()
    lab.page.keyboard.press("Escape")
    lab.forgive()
