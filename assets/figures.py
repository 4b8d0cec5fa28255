"""Draw the pictures of the README and the docs anew: `python assets/figures.py`.

They show what irviz draws. The figures of the course's chapters are declared in `figures.toml`.

The screenshot needs Chromium and the development extra; the SVG figures need irviz alone.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

ASSETS = Path(__file__).parent


def main() -> None:
    """Write the figures, and the screenshot where a browser is found."""
    figures()
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print("no screenshot: install chromium")
    else:
        screenshot(browser)


def figures() -> None:
    """Write the MLP bound with one call swapped, and fused; and a stack of layers."""
    import irviz
    from irviz.cli.demo import demo_stages
    from irviz.course import mm_relu

    session = demo_stages()
    print(session.draw("2").save(ASSETS / "mlp-bound-swapped.svg"))
    print(irviz.draw(stack(48)).save(ASSETS / "folded-layers.svg"))

    print(fused().diff("2", "3").save(ASSETS / "fusion.svg"))
    scheduled = irviz.Session(mm_relu.MyModule).schedule("mm_relu", mm_relu.lecture_schedule)
    print(scheduled.diff("5", "6").save(ASSETS / "schedule-step.svg"))

    @irviz.library.register("env.relu_and_more", "(...)->(...)")
    def relu_and_more(x: Any, out: Any) -> None:
        out[...] = x.clip(0) + 0.5

    wrong = session.checkout("1").swap("relu0", "env.relu_and_more")
    print(wrong.draw_overlay("difference").save(ASSETS / "first-difference.svg"))


def fused() -> Any:
    """Return a session of the MLP up to FuseOps."""
    import irviz
    from irviz.course.mlp import MyModuleHighLevel

    session = irviz.Session(MyModuleHighLevel)
    for name in ("LegalizeOps", "AnnotateTIROpPattern", "FuseOps"):
        session = session.apply(name)
    return session


def stack(layers: int) -> Any:
    """Return the IRModule of a stack of residual layers, as relax.frontend.nn exports it."""
    from tvm.relax.frontend import nn

    class Layer(nn.Module):
        def __init__(self) -> None:
            self.norm = nn.RMSNorm(64, axes=-1, bias=False)
            self.up, self.down = nn.Linear(64, 256, bias=False), nn.Linear(256, 64, bias=False)

        def forward(self, x: nn.Tensor) -> nn.Tensor:
            return nn.add(x, self.down(nn.silu(self.up(self.norm(x)))))

    class Stack(nn.Module):
        def __init__(self) -> None:
            self.layers = nn.ModuleList([Layer() for _ in range(layers)])
            self.norm = nn.RMSNorm(64, axes=-1, bias=False)

        def forward(self, x: nn.Tensor) -> nn.Tensor:
            return self.norm(self.layers(x))

    x = nn.spec.Tensor([1, 64], "float32")
    return Stack().export_tvm({"forward": {"x": x}})[0]


def screenshot(browser_path: str) -> None:
    """Write a picture of the demo's page after a bind, a swap and a comparison."""
    from playwright.sync_api import sync_playwright

    from irviz.cli.page_launcher import served
    from irviz.cli.page_request import DEMO

    with served(DEMO) as (_, url), sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=browser_path,
            args=["--no-sandbox", "--disable-gpu", "--disable-quic"],
        )
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(url)
        _do_the_main_job(page)
        page.screenshot(path=ASSETS / "explorer.png")
        print(ASSETS / "explorer.png")
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
