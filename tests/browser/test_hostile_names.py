"""Names in a module are text, wherever they are shown, and what could act is not let in."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import expect

NAME = (
    "<script>window.hurt=1</script><img src=x onerror=window.hurt=1><svg/onload=window.hurt=1>"
    "x' onmouseover='window.hurt=1"
)
HOSTILE = """
def named(name):
    x = relax.Var(name, relax.TensorType([1, 4], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            y = relax.Var(name + "2", relax.TensorType([1, 4], "float32"))
            builder.emit_normalized(relax.VarBinding(y, builder.normalize(relax.op.nn.relu(x))))
            out = builder.emit_output(relax.op.tanh(y))
        builder.emit_func_output(out)
    return irviz.Session(builder.get()).rename("0", name)
"""


def test_a_name_that_is_html_does_nothing_in_any_part(lab: Any) -> None:
    lab.do(HOSTILE)
    viewer = lab.show(f"named({NAME!r})")
    drawn = viewer.picture().locator("svg.irviz:not(.irviz-marks) .node.param").first
    drawn.hover()
    expect(viewer.root.get_by_role("tooltip")).to_contain_text(NAME)
    drawn.click()
    expect(viewer.title).to_have_text(NAME)
    lab.do(f"explorer.session = explorer.session.apply('ToNonDataflow').rename('1', {NAME!r})")
    expect(viewer.stage(NAME)).not_to_have_count(0)
    viewer.button("Split").click()
    expect(viewer.script.locator(".cm-line").first).to_be_visible()
    viewer.root.get_by_role("combobox", name="Find a node").fill("relu")
    expect(viewer.root.get_by_role("option").first).to_be_visible()
    lab.page.keyboard.press("Escape")
    viewer.picture().focus()
    lab.page.keyboard.press("d")
    expect(viewer.root.locator(".irviz-caption")).not_to_have_count(0)
    assert viewer.root.locator("img, script, iframe, [onload], [onerror]").count() == 0
    assert viewer.root.locator("[onmouseover]").count() == 0
    assert lab.page.evaluate("() => window.hurt") is None
