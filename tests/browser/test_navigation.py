"""A large function in a real JupyterLab: opened, closed, searched and narrowed."""

from __future__ import annotations

from typing import Any

import pytest

OPEN = """
import irviz
from tvm import relax
from tvm.script import relax as R

def stack(layers):
    builder = relax.BlockBuilder()
    x = relax.Var("x", R.Tensor((2, 8), "float32"))
    params = [x]
    with builder.function("main"):
        with builder.dataflow():
            h = x
            for layer in range(layers):
                w = relax.Var(f"w_{layer}", R.Tensor((8, 8), "float32"))
                params.append(w)
                y = builder.emit(relax.op.matmul(h, w))
                y = builder.emit(relax.op.nn.gelu(y))
                h = builder.emit(relax.op.add(h, y))
            out = builder.emit_output(relax.op.tanh(h))
        builder.emit_func_output(out, params)
    return builder.get()

explorer = irviz.explore(stack(100))
explorer
"""
REPEAT = "repeat100:lv"


@pytest.fixture
def explorer(lab: Any) -> Any:
    """The explorer on a hundred equal layers, painted."""
    cell = lab.run(OPEN)
    cell.locator(".irviz-canvas svg.irviz").first.wait_for()
    return cell


def node(cell: Any, name: str) -> Any:
    return cell.locator(f".irviz-canvas .node[data-node='{name}']")


def sign(cell: Any, name: str) -> Any:
    return cell.locator(f".irviz-canvas .toggle[data-toggle='{name}']").first


def test_a_frame_closes_and_a_group_opens_with_the_mouse(explorer: Any) -> None:
    sign(explorer, REPEAT).click()
    node(explorer, REPEAT).wait_for()
    assert node(explorer, "lv1").count() == 0
    assert "×100" in (node(explorer, REPEAT).text_content() or "")
    sign(explorer, REPEAT).click()
    node(explorer, "lv1").wait_for()
    assert node(explorer, REPEAT).count() == 0


def test_a_double_click_opens_a_group(explorer: Any) -> None:
    sign(explorer, REPEAT).click()
    node(explorer, REPEAT).locator("text").first.dblclick()
    node(explorer, "lv1").wait_for()


def test_enter_opens_and_with_shift_closes_what_is_around(lab: Any, explorer: Any) -> None:
    node(explorer, "lv1").click()
    lab.page.keyboard.press("Shift+Enter")
    node(explorer, REPEAT).wait_for()
    node(explorer, REPEAT).locator("text").first.click()
    lab.page.keyboard.press("Enter")
    node(explorer, "lv1").wait_for()


def test_what_is_found_is_jumped_to(explorer: Any) -> None:
    explorer.locator(".irviz-find input").fill("w_42")
    explorer.locator(".irviz-found option").first.wait_for(state="attached")
    explorer.locator(".irviz-found select").select_option(index=0)
    explorer.locator(".irviz-canvas .node.selected[data-node='w_42']").wait_for()
    explorer.locator(".irviz-canvas .title", has_text="copy 43").wait_for()


def test_the_neighbourhood_of_a_node_and_back(explorer: Any) -> None:
    node(explorer, "lv1").click()
    tabs = explorer.locator(".irviz-tabs")
    tabs.get_by_role("button", name="Nearby").click()
    node(explorer, "more:before").wait_for()
    tabs.get_by_role("button", name="Whole function").click()
    explorer.locator(".irviz-canvas .block.repeat").wait_for()


def test_the_keys_that_open_stay_in_the_picture(lab: Any, explorer: Any) -> None:
    """JupyterLab runs the cell on Shift+Enter, and adds one below."""
    cells = lab.page.locator(".jp-Notebook .jp-Cell").count()
    node(explorer, "lv1").click()
    lab.page.keyboard.press("Shift+Enter")
    node(explorer, REPEAT).wait_for()
    assert lab.page.locator(".jp-Notebook .jp-Cell").count() == cells
