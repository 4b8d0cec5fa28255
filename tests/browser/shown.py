"""The viewer as its reader meets it: by roles and words, in whichever host it is shown."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Locator, Page, expect


class Shown:
    """A viewer that is shown in a page."""

    def __init__(self, page: Page, within: Locator | Page) -> None:
        self.page = page
        self.root = within.locator(".irviz-viewer").first

    def wait(self) -> Shown:
        """Wait until a picture is drawn."""
        self.root.locator("svg.irviz :is(.node, .row)").first.wait_for()
        return self

    # --- the graph ---

    def picture(self, side: str = "current") -> Locator:
        """The pane of a picture: of two, the one before is left."""
        panes = self.root.locator(".irviz-canvas")
        return panes.first if side == "reference" else panes.last

    def node(self, name: str, side: str = "current") -> Locator:
        drawn = f"svg.irviz:not(.irviz-marks) .node[data-node='{name}']"
        return self.picture(side).locator(drawn)

    def marked(self, kind: str, side: str = "current") -> Locator:
        """The nodes that are marked as `selected`, `near` (hovered), `pulse` or `new`."""
        return self.picture(side).locator(f".irviz-mark-{kind} .node")

    def sign(self, container: str) -> Locator:
        """The + or − of a container."""
        drawn = f".toggle[data-toggle='{container}']"
        return self.picture().locator(drawn).first

    def click(self, name: str, side: str = "current", **options: Any) -> None:
        """Click a node, and wait until it is selected."""
        self.node(name, side).click(**options)
        expect(self.marked("selected", side).first).to_be_attached()

    @property
    def zoom(self) -> Locator:
        return self.root.locator(".irviz-zoom-percent")

    @property
    def percent(self) -> int:
        return int(self.zoom.inner_text().split()[0])

    # --- around it ---

    @property
    def stages(self) -> Locator:
        return self.root.get_by_role("tree", name="Stages").get_by_role("treeitem")

    def stage(self, words: str) -> Locator:
        return self.stages.filter(has_text=words)

    @property
    def current_stage(self) -> Locator:
        return self.root.locator("[role=treeitem][aria-selected=true]")

    def button(self, name: str, **options: Any) -> Locator:
        return self.root.get_by_role("button", name=name, **options)

    def tab(self, name: str) -> Locator:
        """Open a tab of the inspector, and return its panel."""
        if not self.inspector.is_visible():
            self.button("Show the inspector").click()
        self.root.get_by_role("tab", name=name, exact=True).click()
        return self.root.get_by_role("tabpanel", name=name, exact=True)

    @property
    def inspector(self) -> Locator:
        return self.root.get_by_role("region", name="Inspector")

    @property
    def title(self) -> Locator:
        """The name of the node that the inspector shows."""
        return self.inspector.locator(".irviz-node-head h2 > span").first

    def fact(self, name: str) -> Locator:
        facts = self.inspector.locator("dt").filter(has_text=name)
        return facts.locator("xpath=following-sibling::dd[1]")

    @property
    def said(self) -> Locator:
        """What the status bar says."""
        return self.root.locator(".irviz-words")

    @property
    def menu(self) -> Locator:
        return self.root.get_by_role("menu")

    def choose(self, words: str) -> None:
        """Choose an entry of the menu that is open."""
        self.menu.locator("[role^=menuitem]").filter(has_text=words).first.click()

    @property
    def script(self) -> Locator:
        return self.root.get_by_role("region", name="TVMScript")

    def height(self) -> float:
        box = self.root.bounding_box()
        assert box is not None
        return box["height"]
