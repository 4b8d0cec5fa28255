"""Take the README's picture of the explorer anew: `python assets/screenshot.py`; needs Chromium.

A browser draws it with the fonts of its machine, so nothing checks that it is current.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).with_name("explorer.png")


def main() -> None:
    """Write the screenshot."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("no screenshot: install chromium")
    screenshot(browser)


def screenshot(browser_path: str) -> None:
    """Write a picture of the demo's page after a bind, a swap and a comparison."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    from irviz.cli.page_launcher import DEMO, served

    with served(DEMO) as (_, url), sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=browser_path,
            args=["--no-sandbox", "--disable-gpu", "--disable-quic"],
        )
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(url)
        _do_the_main_job(page)
        page.screenshot(path=TARGET)
        Image.open(TARGET).quantize(256, dither=0).save(TARGET, optimize=True)  # a third as large
        print(TARGET)
        browser.close()


def _do_the_main_job(page: Any) -> None:
    node = page.locator(".irviz-canvas .node[data-node='lv1']").first
    node.wait_for(timeout=60_000)
    page.get_by_role("tab", name="Transform", exact=True).click()
    page.get_by_role("button", name="Bind parameters").click()
    rail = page.get_by_role("tree", name="Stages")
    rail.get_by_text("= equal").first.wait_for()
    page.get_by_role("tab", name="Node", exact=True).click()
    node.click()
    page.get_by_role("button", name="Replace", exact=True).click()
    rail.get_by_text("= equal").nth(1).wait_for()
    page.get_by_role("button", name="Split").click()
    page.get_by_text("env.relu").nth(1).wait_for()
    page.wait_for_timeout(1500)  # what is new is outlined for a moment


if __name__ == "__main__":
    main()
