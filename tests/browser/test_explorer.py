"""The main job in a real JupyterLab: look, bind, swap, run, compare, save."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

OPEN = """
import irviz
from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MyModule
held_out = digits()
explorer = irviz.explore(
    MyModule, params=mlp_params(), inputs=held_out.images, labels=held_out.labels
)
explorer
"""


@pytest.fixture
def explorer(lab: Any) -> Any:
    """The explorer on the course's MLP, painted."""
    cell = lab.run(OPEN)
    cell.locator(".irviz-canvas svg.irviz").first.wait_for()
    return cell


def node(cell: Any, name: str, pane: int = 0) -> Any:
    return cell.locator(".irviz-canvas").nth(pane).locator(f".node[data-node='{name}']")


def tab(cell: Any, name: str) -> Any:
    return cell.locator(".irviz-tabs").get_by_role("tab", name=name, exact=True)


def badges(cell: Any) -> list[str]:
    return [text.strip() for text in cell.locator(".irviz-stages .irviz-badge").all_inner_texts()]


def stage_names(cell: Any) -> list[str]:
    return [text.strip() for text in cell.locator(".irviz-stage > button").all_inner_texts()]


def wait_for_badges(cell: Any, *words: str) -> None:
    shown = cell.locator(".irviz-stages .irviz-badge")
    for index, word in enumerate(words):
        shown.nth(index).get_by_text(word).wait_for()


def test_a_click_on_a_node_reaches_python_and_shows_what_the_node_is(
    lab: Any, explorer: Any
) -> None:
    node(explorer, "lv1").click()
    explorer.locator(".irviz-details h5", has_text="PrimFunc relu0").wait_for()
    details = explorer.locator(".irviz-tabs").inner_text()
    assert "a PrimFunc of this module" in details
    assert 'lv1 = R.call_dps_packed("relu0", (lv0,)' in details
    assert "T.max(X[vi, vj], T.float32(0.0))" in details
    assert lab.value("explorer.selected") == "lv1"


def test_keys_walk_the_graph_and_do_not_leak_into_the_notebook(lab: Any, explorer: Any) -> None:
    node(explorer, "lv0").click()
    cells = lab.page.locator(".jp-Notebook .jp-Cell").count()
    lab.page.keyboard.press("ArrowUp")
    explorer.locator(".irviz-details h4", has_text="lv1").wait_for()
    for key in "baxm":
        lab.page.keyboard.press(key)
    assert lab.page.locator(".jp-Notebook .jp-Cell").count() == cells
    assert lab.value("explorer.selected") == "lv1"


def test_the_keys_of_the_stages_do_not_leak_into_the_notebook(lab: Any, explorer: Any) -> None:
    explorer.get_by_role("treeitem").first.focus()
    cells = lab.page.locator(".jp-Notebook .jp-Cell").count()
    for key in "baxm":
        lab.page.keyboard.press(key)
    tab(explorer, "Run").click()  # which the page shows after what the keys would have done
    explorer.locator(".irviz-run").wait_for()
    assert lab.page.locator(".jp-Notebook .jp-Cell").count() == cells


def test_the_wheel_scrolls_the_page_until_the_pane_is_clicked(lab: Any, explorer: Any) -> None:
    svg = explorer.locator(".irviz-canvas svg.irviz").first
    before = svg.get_attribute("viewBox")
    svg.hover()
    lab.page.mouse.wheel(0, 60)
    lab.page.wait_for_timeout(200)
    assert svg.get_attribute("viewBox") == before
    node(explorer, "lv1").click()
    lab.page.mouse.wheel(0, -120)
    lab.page.wait_for_function(
        "([svg, old]) => svg.getAttribute('viewBox') !== old", arg=[svg.element_handle(), before]
    )


def test_bind_swap_run_compare_and_save(lab: Any, explorer: Any) -> None:
    tab(explorer, "Transform").click()
    explorer.get_by_role("button", name="Bind parameters").click()
    wait_for_badges(explorer, "reference", "= equal")
    assert node(explorer, "w0").count() == 0
    assert explorer.locator(".irviz-canvas").first.locator(".node.constant").count() == 4

    tab(explorer, "Node").click()
    node(explorer, "lv1").click()
    explorer.locator(".irviz-swap-to select").wait_for()
    explorer.get_by_text("that fit compute the same").wait_for()
    offered = explorer.locator(".irviz-swap-to option").all_inner_texts()
    assert offered[0] == "env.relu"
    assert {"numpy.relu", "topi.relu"} <= set(offered)
    assert "numpy.tanh" not in offered
    explorer.get_by_role("button", name="Swap").click()
    wait_for_badges(explorer, "reference", "= equal", "= equal")
    swapped = node(explorer, "lv1")
    assert "library" in (swapped.get_attribute("class") or "")
    assert "env.relu" in swapped.text_content()
    names = stage_names(explorer)
    assert [name.split()[0] for name in names] == ["0", "1", "2"]
    assert "swap relu0 → env.relu" in names[2]

    tab(explorer, "Run").click()
    right = explorer.locator(".irviz-outputs, .irviz-scores").first
    right.wait_for()
    assert explorer.get_by_text("predicted class").is_visible()
    assert "of 360 right" in explorer.locator(".irviz-stages small").first.inner_text()

    explorer.locator(".irviz-compare-with select").select_option(index=1)
    explorer.get_by_text("stage 2 against stage 0: equal").wait_for()
    assert node(explorer, "lv1", pane=1).locator(".name").text_content() == "relu0"
    assert node(explorer, "w0", pane=1).is_visible()

    tab(explorer, "Save").click()
    explorer.locator(".irviz-save-path input").fill("figure.svg")
    explorer.get_by_role("button", name="Save SVG").click()
    explorer.get_by_text("saved ").wait_for()
    saved = ElementTree.parse(lab.folder / "figure.svg").getroot()
    library = saved.find(".//*[@class='node call_dps_packed library']")
    assert library is not None
    assert library.get("data-node") == "lv1"


def test_a_pass_that_fails_leaves_a_stage_with_its_error_and_the_rest_alive(
    lab: Any, explorer: Any
) -> None:
    tab(explorer, "Transform").click()
    name = explorer.locator(".irviz-pass-name input")
    button = explorer.get_by_role("button", name="Apply pass")
    name.fill("MergeCompositeFunctions")
    button.click()
    explorer.locator(".irviz-stages .irviz-badge.bad", has_text="failed").wait_for()
    assert "MergeCompositeFunctions failed" in explorer.locator(".irviz-message").inner_text()
    name.fill("NoSuchPass")
    button.click()
    explorer.get_by_text("the catalog has no pass 'NoSuchPass'").wait_for()
    assert len(stage_names(explorer)) == 2
    explorer.locator(".irviz-stage > button").first.click()
    name.fill("CanonicalizeBindings")
    button.click()
    explorer.locator(".irviz-stages .irviz-badge.good", has_text="= equal").wait_for()
    assert lab.value("len(explorer.session.stages)") == 3


def test_text_from_a_module_is_shown_as_text_and_never_run(lab: Any) -> None:
    cell = lab.run(
        """
import irviz, tvm
from tvm import relax
x = relax.Var("<img src=x onerror=alert(1)>", relax.TensorType([1, 4], "float32"))
builder = relax.BlockBuilder()
with builder.function("main", [x]):
    with builder.dataflow():
        out = builder.emit_output(relax.op.nn.relu(x))
    builder.emit_func_output(out)
hostile = irviz.explore(builder.get())
hostile
"""
    )
    cell.locator(".irviz-canvas svg.irviz").first.wait_for()
    circle = cell.locator(".irviz-canvas .node.param").first
    assert "<img" in circle.text_content()
    circle.click()
    cell.locator(".irviz-details h4", has_text="<img src=x onerror").wait_for()
    assert cell.locator("img[src='x']").count() == 0


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
@pytest.mark.parametrize("width", [1400, 900])
def test_it_is_readable_in_both_themes_and_at_two_widths(
    lab: Any, explorer: Any, theme: str, width: int
) -> None:
    """Text stands out from what is behind it (WCAG's 4.5), and nothing is wider than the page."""
    page = lab.page
    try:
        lab.theme(theme)
        page.set_viewport_size({"width": width, "height": 900})
        node(explorer, "lv1").click()
        explorer.locator(".irviz-details h4", has_text="lv1").wait_for()
        contrasts = explorer.evaluate(CONTRASTS)
        assert len(contrasts) > 20
        assert [item for item in contrasts if item["ratio"] < 4.5] == []
        assert (
            explorer.evaluate(
                """cell => [...cell.querySelectorAll('.irviz-body > *')].filter(
                part => part.getBoundingClientRect().right > window.innerWidth).length"""
            )
            == 0
        )
    finally:
        lab.theme("JupyterLab Light")
        page.set_viewport_size({"width": 1400, "height": 900})


CONTRASTS = """cell => {
    const parse = text => {
        const parts = (text.match(/[\\d.]+/g) || []).map(Number);
        return parts.length < 3 || (parts.length > 3 && parts[3] < 0.5) ? null : parts;
    };
    const luminance = ([r, g, b]) => {
        const linear = [r, g, b].map(v => v / 255).map(
            v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
    };
    const behind = element => {
        for (let at = element; at; at = at.parentElement) {
            const shape = at.matches('.node') ? at.querySelector('.shape') : null;
            const fill = shape && parse(getComputedStyle(shape).fill);
            const paper = fill || parse(getComputedStyle(at).backgroundColor);
            if (paper) return paper;
        }
        return [255, 255, 255];
    };
    const found = [];
    for (const element of cell.querySelectorAll(
            '.irviz-canvas text, .irviz-caption, .irviz-badge, .irviz-stages small,' +
            ' .irviz-details dt, .irviz-details dd, .irviz-code span')) {
        if (!element.textContent.trim() || !element.getClientRects().length) continue;
        const style = getComputedStyle(element);
        const isSvg = element.namespaceURI.includes('svg');
        const ink = parse(isSvg ? style.fill : style.color);
        if (!ink) continue;
        const pair = [luminance(ink), luminance(behind(element))].sort((a, b) => b - a);
        const ratio = (pair[0] + 0.05) / (pair[1] + 0.05);
        found.push({text: element.textContent.slice(0, 30), ratio, ink, kind: style.fontSize});
    }
    return found;
}"""


def test_a_stage_is_renamed_dropped_and_brought_back(lab: Any, explorer: Any) -> None:
    lab.run('explorer.session = explorer.session.apply("ToNonDataflow")')
    wait_for_badges(explorer, "reference", "= equal")  # the rows are drawn anew until then
    row = explorer.locator(".irviz-stage > button")
    row.nth(1).focus()
    lab.page.keyboard.press("F2")
    field = explorer.locator("input.irviz-rename")
    field.fill("no <b>dataflow</b>")
    lab.page.keyboard.press("Enter")
    explorer.locator(".irviz-stage > button", has_text="1  no <b>dataflow</b>").wait_for()
    row.nth(1).focus()
    lab.page.keyboard.press("ArrowUp")
    explorer.locator("button[aria-selected='true']", has_text="initial module").wait_for()
    lab.page.keyboard.press("ArrowDown")
    explorer.locator("button[aria-selected='true']", has_text="no <b>").wait_for()
    explorer.get_by_role("button", name="Drop the shown stage").click()
    explorer.locator("button[aria-selected='true']", has_text="initial module").wait_for()
    assert len(stage_names(explorer)) == 1
    explorer.get_by_role("button", name="Undo").click()
    explorer.locator(".irviz-stage > button", has_text="1  no <b>").wait_for()
    assert lab.value("[s.label for s in explorer.session.stages]") == [
        "initial module",
        "no <b>dataflow</b>",
    ]


def test_the_shown_stage_is_copied_and_saved_as_a_script(lab: Any, explorer: Any) -> None:
    lab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    lab.run('explorer.session = explorer.session.apply("ToNonDataflow")')
    tab(explorer, "Save").click()
    explorer.get_by_role("button", name="Copy as Python").click()
    explorer.get_by_text("lines of Python").wait_for()
    copied = lab.page.evaluate("() => navigator.clipboard.readText()")
    assert copied == lab.value("explorer.session.to_python()")
    assert "mod = relax.transform.ToNonDataflow()(mod)" in copied
    explorer.locator(".irviz-python-path input").fill("steps.py")
    explorer.get_by_role("button", name="Save as Python").click()
    explorer.get_by_text("saved ").wait_for()
    assert (lab.folder / "steps.py").read_text(encoding="utf-8") == copied


def test_a_branch_is_replayed_behind_another_stage(lab: Any, explorer: Any) -> None:
    lab.run(
        "s = explorer.session.apply('LegalizeOps').checkout('0').apply('ToNonDataflow')\n"
        "explorer.session = s"
    )
    tab(explorer, "Transform").click()
    explorer.locator(".irviz-replay-on select").select_option(label="1  LegalizeOps")
    explorer.get_by_role("button", name="Replay").click()
    explorer.locator(".irviz-stage > button", has_text="3  ToNonDataflow").wait_for()
    assert lab.value("explorer.session.lineage()") == ["0", "1", "3"]
