"""A file is dropped onto the stages, in a real JupyterLab."""

from __future__ import annotations

from typing import Any

OPEN = """
import irviz
from irviz.course.mlp import MyModule
explorer = irviz.explore(MyModule)
explorer
"""

SCRIPT = """
from tvm.script import ir as I, relax as R

@I.ir_module
class Dropped:
    @R.function
    def main(x: R.Tensor((2, 2), "float32")):
        y = R.add(x, x)
        return y
"""

DROP = """([element, name, text]) => {
    const data = new DataTransfer();
    data.items.add(new File([text], name));
    for (const kind of ["dragover", "drop"]) {
        const event = new DragEvent(kind, {
            bubbles: true, cancelable: true, dataTransfer: data,
        });
        element.dispatchEvent(event);
    }
}"""


def drop(lab: Any, cell: Any, name: str, text: str) -> None:
    stages = cell.locator(".irviz-stages").first.element_handle()
    lab.page.evaluate(DROP, [stages, name, text])


def test_a_dropped_file_is_a_stage_of_its_own_and_is_not_run(lab: Any) -> None:
    cell = lab.run(OPEN)
    cell.locator(".irviz-canvas svg.irviz").first.wait_for()
    drop(lab, cell, "dropped.py", SCRIPT)
    row = cell.locator(".irviz-stage", has_text="opened dropped.py")
    row.wait_for()
    assert row.locator(".irviz-badge").inner_text() == "not run"
    assert cell.locator(".irviz-canvas .node[data-node='y']").first.is_visible()
    assert lab.value("len(explorer.session.stages)") == 2


def test_a_dropped_file_that_is_refused_is_named_with_the_place(lab: Any) -> None:
    cell = lab.run(OPEN)
    cell.locator(".irviz-canvas svg.irviz").first.wait_for()
    drop(lab, cell, "bad.py", SCRIPT.replace("(2, 2)", "(__import__('os').getpid(), 2)"))
    said = cell.locator(".irviz-message .irviz-error")
    said.wait_for()
    assert "bad.py" in said.inner_text()
    assert "line 7" in said.inner_text()
    assert lab.value("len(explorer.session.stages)") == 1
