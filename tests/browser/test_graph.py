"""The graph: pointed at, walked, opened, searched and zoomed, with a kernel and without."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

REPEAT = "repeat100:lv"
LARGE = "stack(100)"
TRANSFORM = "layer => layer.style.transform"


@pytest.fixture
def layers(lab: Any) -> Any:
    """The explorer on a hundred equal layers."""
    return lab.show(LARGE)


@pytest.fixture
def viewer(offline: Any) -> Any:
    return offline.show("mlp")


@pytest.fixture
def live(lab: Any) -> Any:
    """The same with a kernel."""
    return lab.show("mlp")


def layer(viewer: Any) -> Any:
    return viewer.picture().locator(".irviz-canvas-layer")


def test_a_click_selects_a_node_here_and_in_python(lab: Any, live: Any) -> None:
    live.click("lv1")
    expect(live.title).to_have_text("lv1")
    lab.expect_value("explorer.selected", "lv1")
    assert live.marked("selected").first.get_attribute("data-node") == "lv1"
    live.picture().click(position={"x": 5, "y": 60})
    expect(live.marked("selected")).to_have_count(0)
    lab.expect_value("explorer.selected", "")


FLOW = """part => {
    const style = getComputedStyle(part, part.localName === "dt" ? "::after" : null);
    return part.localName === "dt" ? style.backgroundColor : style.stroke;
}"""


def test_edges_to_and_from_the_selected_node_differ_as_its_facts_do(viewer: Any) -> None:
    viewer.click("lv1")
    edges = viewer.picture().locator(".irviz-mark-selected .edge")
    colours = {}
    for fact, place in (("arguments", "[data-target=lv1]"), ("used by", "[data-source=lv1]")):
        line = edges.and_(viewer.picture().locator(place)).locator("path").first
        colours[fact] = line.evaluate(FLOW)
        term = viewer.inspector.locator("dt", has_text=fact)
        assert term.evaluate(FLOW) == colours[fact]
    assert len(set(colours.values())) == 2


def test_arrows_walk_the_graph_and_home_and_end_go_to_its_ends(offline: Any, viewer: Any) -> None:
    viewer.click("lv0")
    press = offline.page.keyboard.press
    press("ArrowUp")
    expect(viewer.title).to_have_text("lv1")
    press("ArrowDown")
    expect(viewer.title).to_have_text("lv0")
    press("Home")
    expect(viewer.title).to_have_text("x")
    press("End")
    expect(viewer.title).not_to_have_text("x")
    press("Escape")
    expect(viewer.marked("selected")).to_have_count(0)


def test_a_node_that_keys_select_from_afar_is_made_large_enough_to_be_read(
    offline: Any, viewer: Any
) -> None:
    viewer.picture().click(position={"x": 5, "y": 60})
    for _ in range(8):
        offline.page.keyboard.press("-")
    expect(viewer.zoom).to_have_text("50 %")  # no less: the picture fills half of the pane
    offline.page.keyboard.press("End")
    expect(viewer.zoom).to_have_text("82 %")  # as large as what is fitted is at least


def test_keys_zoom_before_anything_was_clicked(offline: Any, viewer: Any) -> None:
    before = viewer.percent
    offline.page.keyboard.press("-")
    expect(viewer.zoom).not_to_have_text(f"{before} %")
    offline.page.keyboard.press("+")
    expect(viewer.zoom).to_have_text(f"{before} %")


def test_nodes_that_a_search_finds_are_outlined_until_it_is_emptied(
    offline: Any, viewer: Any
) -> None:
    offline.page.keyboard.press("/")
    offline.page.keyboard.type("relu")
    marked = viewer.picture().locator(".irviz-mark-found .irviz-outline")
    expect(marked).to_have_count(1)
    place = viewer.node("lv1").locator("path, rect, ellipse").first.bounding_box()
    assert marked.bounding_box() == pytest.approx(place, abs=6)
    offline.page.keyboard.press("Escape")
    offline.page.keyboard.press("Escape")
    expect(marked).to_have_count(0)


def test_what_is_pointed_at_is_shown_with_its_neighbours_and_explained(
    offline: Any, viewer: Any
) -> None:
    viewer.node("lv1").hover()
    tooltip = viewer.root.get_by_role("tooltip")
    expect(tooltip).to_contain_text("lv1")
    expect(tooltip).to_contain_text("Tensor[(1, n)]")
    near = viewer.picture().locator(".irviz-mark-near .irviz-outline")
    expect(near).to_have_count(3)  # lv0, lv1, out
    offline.page.mouse.move(2, 2)
    expect(near).to_have_count(0)
    expect(tooltip).to_have_count(0)


BESIDE_EDGE = """edge => {
    const line = edge.querySelector("path"), half = line.getTotalLength() / 2;
    const { x, y } = line.getPointAtLength(half).matrixTransform(line.getScreenCTM());
    return [x + 4, y];
}"""


def test_an_edge_is_pointed_at_from_beside_it_and_leads_to_its_source(
    offline: Any, viewer: Any
) -> None:
    edge = viewer.picture().locator(".edge[data-source=lv0][data-target=lv1]")
    place = edge.evaluate(BESIDE_EDGE)
    offline.page.mouse.move(*place)
    tooltip = viewer.root.get_by_role("tooltip")
    expect(tooltip).to_have_text(re.compile(r"^linear0 → relu0\s*lv0: Tensor"))
    shown = viewer.picture().locator(".irviz-mark-edge .edge")
    expect(shown).to_have_attribute("data-target", "lv1")
    offline.page.mouse.click(*place)
    expect(viewer.title).to_have_text("lv0")
    offline.page.mouse.move(2, 2)
    expect(shown).to_have_count(0)


TURNED_OVER = """([canvas, node]) => {
    const { x, y } = canvas.getBoundingClientRect();
    const at = { bubbles: true, cancelable: true, clientX: x + 5, clientY: y + 5 };
    canvas.dispatchEvent(new WheelEvent("wheel", { ...at, ctrlKey: true, deltaY: 5 }));
    node.dispatchEvent(new PointerEvent("pointerover", { ...at, pointerType: "mouse" }));
    return canvas.querySelectorAll(".irviz-mark-near .irviz-outline").length;
}"""


def test_what_passes_below_the_pointer_is_marked_when_the_wheel_rests(viewer: Any) -> None:
    panes = [viewer.picture().element_handle(), viewer.node("lv1").element_handle()]
    assert viewer.page.evaluate(TURNED_OVER, panes) == 0
    expect(viewer.marked("near").first).to_be_attached()


def test_the_explanation_goes_when_what_it_explains_moves_away(offline: Any, viewer: Any) -> None:
    viewer.picture().focus()
    viewer.node("x").hover()
    tooltip = viewer.root.get_by_role("tooltip")
    expect(tooltip).to_contain_text("Tensor")
    for _ in range(4):
        offline.page.keyboard.press("+")
    expect(viewer.node("x")).not_to_be_in_viewport(ratio=1)
    expect(tooltip).to_have_count(0)


def test_a_frame_closes_and_a_group_opens_with_the_mouse(layers: Any) -> None:
    layers.sign(REPEAT).click()
    expect(layers.node(REPEAT)).to_contain_text("×100")
    expect(layers.node("lv1")).to_have_count(0)
    layers.node(REPEAT).locator("text").first.dblclick()
    expect(layers.node("lv1")).to_have_count(1)
    expect(layers.node(REPEAT)).to_have_count(0)


def test_a_weight_is_selected_as_a_line_of_its_call(offline: Any) -> None:
    viewer = offline.show("irviz.Session(linears(), function='forward')")
    weight = viewer.picture().locator("g.weight", has_text="weight (8, 8)").first
    name = weight.get_attribute("data-node")
    before = viewer.picture().locator("svg:first-child g.node").count()
    weight.locator("text").click()
    expect(viewer.title).to_have_text(name)
    expect(viewer.fact("kind")).to_have_text("parameter")
    line = viewer.picture().locator(".irviz-mark-line .irviz-tint")
    expect(line).to_have_count(1)
    above = viewer.picture().locator(".irviz-tint + .weight")
    expect(above).to_have_text("weight (8, 8)")
    outlined, drawn = line.bounding_box(), weight.locator("rect").bounding_box()
    assert abs(outlined["y"] - drawn["y"]) < 3
    assert viewer.picture().locator("svg:first-child g.node").count() == before
    viewer.node("x").click()
    expect(line).to_have_count(0)


def test_enter_in_the_search_leads_from_each_found_node_to_the_next(
    offline: Any, viewer: Any
) -> None:
    viewer.picture().focus()
    offline.page.keyboard.press("/")
    offline.page.keyboard.type("linear0")
    options = viewer.root.locator(".irviz-found [role=option]")
    expect(viewer.root.locator(".irviz-found [role=status]")).to_contain_text("found")
    found = [text.split() for text in options.all_inner_texts()]
    assert ["linear0", "lv0"] in [words[:2] for words in found]  # its title, and then its variable
    names = [words[0] if "parameter" in words else words[1] for words in found]
    assert len(names) > 1
    place = viewer.root.locator(".irviz-search-place")
    for index, name in enumerate((*names, names[0])):
        offline.page.keyboard.press("Enter")
        expect(viewer.title).to_have_text(name)
        expect(place).to_have_text(f"{index % len(names) + 1}/{len(names)}")
    offline.page.keyboard.press("Shift+Enter")
    expect(viewer.title).to_have_text(names[-1])
    expect(place).to_have_text(f"{len(names)}/{len(names)}")
    options.first.wait_for(state="hidden")
    offline.page.keyboard.press("ArrowDown")
    options.first.click()
    expect(viewer.picture()).to_be_focused()
    offline.page.keyboard.press("/")
    offline.page.keyboard.press("Enter")
    expect(viewer.title).to_have_text(names[1])


def test_escape_closes_the_list_of_found_nodes_and_then_clears_the_search(
    offline: Any, viewer: Any
) -> None:
    field = viewer.root.get_by_role("combobox", name="Find a node")
    field.fill("lv")
    found = viewer.root.locator(".irviz-found")
    expect(found).to_contain_text("found")
    offline.page.keyboard.press("Escape")
    expect(found).to_be_hidden()
    expect(field).to_have_value("lv")
    offline.page.keyboard.press("Escape")
    expect(field).to_have_value("")
    expect(viewer.picture()).to_be_focused()


def test_what_was_opened_stays_in_its_place(layers: Any) -> None:
    layers.sign(REPEAT).click()
    node = layers.node(REPEAT)
    expect(node).to_be_visible()
    before = layers.sign(REPEAT).bounding_box()
    layers.sign(REPEAT).click()
    expect(layers.node("lv1")).to_be_visible()
    after = layers.sign(REPEAT).bounding_box()
    assert abs(before["x"] - after["x"]) + abs(before["y"] - after["y"]) < 300


def test_what_was_opened_at_the_edge_is_moved_into_sight(lab: Any, layers: Any) -> None:
    layers.sign(REPEAT).click()
    expect(layers.node(REPEAT)).to_be_visible()
    pane, sign = layers.picture().bounding_box(), layers.sign(REPEAT).bounding_box()
    lab.page.mouse.move(pane["x"] + pane["width"] - 20, pane["y"] + pane["height"] / 2)
    lab.page.mouse.down()
    lab.page.mouse.move(
        pane["x"] + pane["width"] - 20 - (sign["x"] - pane["x"] - 30),
        pane["y"] + pane["height"] / 2,
        steps=4,
    )
    lab.page.mouse.up()
    assert layers.sign(REPEAT).bounding_box()["x"] < pane["x"] + 60
    layers.sign(REPEAT).click()
    expect(layers.node("lv1")).to_be_in_viewport(ratio=1)


def test_keys_open_groups_and_close_what_is_around(lab: Any, layers: Any) -> None:
    cells = lab.page.locator(".jp-Notebook .jp-Cell").count()
    layers.click("lv1")
    lab.page.keyboard.press("Shift+Enter")
    expect(layers.node(REPEAT)).to_be_visible()
    layers.node(REPEAT).locator("text").first.click()
    expect(layers.marked("selected")).to_have_count(1)
    lab.page.keyboard.press("Enter")
    expect(layers.node("lv1")).to_be_visible()
    assert lab.page.locator(".jp-Notebook .jp-Cell").count() == cells


def test_what_is_found_is_zoomed_to(lab: Any, layers: Any) -> None:
    layers.picture().focus()
    for key in "---/":
        lab.page.keyboard.press(key)
    assert layers.percent < 75
    field = layers.root.get_by_role("combobox", name="Find a node")
    expect(field).to_be_focused()
    field.fill("w_42")
    found = layers.root.get_by_role("option")
    expect(found).to_have_count(1)
    lab.page.keyboard.press("Enter")
    expect(layers.title).to_have_text("w_42")
    expect(layers.marked("selected").first).to_be_in_viewport()
    expect(layers.picture().locator(".title", has_text="copy 43")).to_have_count(1)
    assert layers.percent >= 75


def test_a_search_that_finds_nothing_says_so(layers: Any) -> None:
    layers.root.get_by_role("combobox", name="Find a node").fill("nothing has this name")
    expect(layers.root.locator(".irviz-found")).to_contain_text("0 found")


def test_the_neighbourhood_of_a_node_and_back(layers: Any) -> None:
    layers.click("lv1")
    layers.button("Nearby").click()
    expect(layers.node("more:before")).to_have_count(1)
    layers.button("Whole function").click()
    expect(layers.picture().locator(".block.repeat")).to_have_count(1)


def test_the_nodes_between_two(live: Any) -> None:
    live.click("x")
    live.button("Path from here").click()
    live.click("lv1")
    live.button("Path to here").click()
    expect(live.button("Whole function")).to_be_visible()
    expect(live.node("lv0")).to_have_count(1)
    expect(live.node("w1")).to_have_count(0)


def test_another_copy_of_a_repeat_is_shown(layers: Any) -> None:
    layers.click("lv1")
    field = layers.inspector.get_by_label("copy, 1 to 100")
    field.fill("7")
    field.press("Tab")
    expect(layers.picture().locator(".title", has_text="copy 7")).to_have_count(1)
    expect(layers.node("w_6")).to_have_count(1)


def test_the_breadcrumb_says_that_a_part_is_shown_and_leads_back(layers: Any) -> None:
    crumbs = layers.root.get_by_role("navigation", name="Where we are")
    layers.click("lv1")
    layers.button("Nearby").click()
    crumbs.get_by_role("button", name="part").click()
    expect(layers.picture().locator(".block.repeat")).to_have_count(1)
    expect(crumbs.get_by_role("button", name="part")).to_have_count(0)


def test_the_wheel_scrolls_the_notebook_until_the_picture_is_clicked(lab: Any, live: Any) -> None:
    lab.run("print('\\n' * 60)")
    notebook = lab.page.locator(".jp-WindowedPanel-outer").first
    before, top = layer(live).evaluate(TRANSFORM), notebook.evaluate("one => one.scrollTop")
    live.picture().hover()
    lab.page.mouse.wheel(0, 40)
    lab.page.wait_for_function(
        "([one, top]) => one.scrollTop !== top", arg=[notebook.element_handle(), top]
    )
    assert layer(live).evaluate(TRANSFORM) == before
    live.click("lv1")
    percent = live.zoom.inner_text()
    live.picture().hover()
    lab.page.mouse.wheel(0, -240)
    expect(live.zoom).not_to_have_text(percent)


def test_the_picture_is_dragged_and_moved_with_keys(offline: Any, viewer: Any) -> None:
    before = layer(viewer).evaluate(TRANSFORM)
    box = viewer.picture().bounding_box()
    offline.page.mouse.move(box["x"] + 20, box["y"] + 30)
    offline.page.mouse.down()
    offline.page.mouse.move(box["x"] + 90, box["y"] + 80, steps=4)
    offline.page.mouse.up()
    dragged = layer(viewer).evaluate(TRANSFORM)
    assert dragged != before
    expect(viewer.marked("selected")).to_have_count(0)  # a drag is no click
    viewer.picture().focus()
    offline.page.keyboard.press("Shift+ArrowLeft")
    assert layer(viewer).evaluate(TRANSFORM) != dragged
    offline.page.keyboard.press("0")
    offline.page.keyboard.press("0")  # not all of it, but as it was opened
    expect(layer(viewer)).to_have_attribute("style", re.compile(re.escape(before.split("(")[0])))
    assert layer(viewer).evaluate(TRANSFORM) == before


def test_the_zoom_is_said_in_percent_and_changed_by_buttons_and_keys(
    offline: Any, viewer: Any
) -> None:
    opened = viewer.percent
    viewer.button("Zoom in").click()
    assert viewer.percent > opened
    viewer.zoom.click()
    expect(viewer.zoom).to_have_text("100 %")
    viewer.picture().focus()
    offline.page.keyboard.press("-")
    assert viewer.percent < 100
    viewer.button("Fit", exact=True).click()  # all of it, enlarged
    assert viewer.percent > opened
    viewer.button("Fit", exact=True).click()
    expect(viewer.zoom).to_have_text(f"{opened} %")


SMALLEST = """picture => Math.min(...[...picture.querySelectorAll(
    'svg.irviz:not(.irviz-marks) .node text')].filter(one => one.textContent.trim())
    .map(one => parseFloat(getComputedStyle(one).fontSize)))"""


def test_fitted_text_can_be_read_and_the_rest_is_on_a_map(offline: Any) -> None:
    viewer = offline.show("chain(40)")
    size = viewer.picture().evaluate(SMALLEST)
    assert size * viewer.percent / 100 >= 8.9
    overview = viewer.root.locator(".irviz-overview")
    expect(overview).to_be_visible()
    before = layer(viewer).evaluate(TRANSFORM)
    box = overview.bounding_box()
    offline.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] - 3)
    assert layer(viewer).evaluate(TRANSFORM) != before
    viewer.button("Fit", exact=True).click()
    expect(overview).to_be_hidden()
    viewer.button("Fit", exact=True).click()  # again: as much as can be read
    expect(overview).to_be_visible()


def test_the_stage_after_one_that_was_fitted_whole_can_be_read(offline: Any) -> None:
    viewer = offline.show("made_by(irviz.load(chain(60)), 'LegalizeOps')")
    overview = viewer.root.locator(".irviz-overview")
    expect(overview).to_be_visible()
    viewer.button("Fit", exact=True).click()
    expect(overview).to_be_hidden()
    offline.page.keyboard.press("Alt+ArrowLeft")
    expect(viewer.current_stage).to_contain_text("initial")
    expect(overview).to_be_visible()


def test_the_legend_names_what_is_in_the_picture_and_takes_no_height_from_it(
    offline: Any, viewer: Any
) -> None:
    legend = viewer.root.locator(".irviz-legend li")
    expect(legend).to_have_count(2)
    assert set(legend.all_inner_texts()) == {"parameter", "call_dps_packed"}
    viewer.click("lv1")
    expect(legend).to_have_count(4)  # the edges of what is selected, too
    offline.page.set_viewport_size({"width": 640, "height": 900})
    expect(legend.last).not_to_be_in_viewport()
    before = viewer.picture().bounding_box()
    viewer.root.locator(".irviz-graph-foot").get_by_role("button", name="Legend").click()
    expect(legend.last).to_be_in_viewport(ratio=1)
    assert viewer.picture().bounding_box() == before


def test_what_can_be_done_with_a_node_is_a_menu_of_the_right_button(lab: Any, live: Any) -> None:
    lab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    live.node("lv1").click(button="right")
    expect(live.menu).to_have_accessible_name("Node lv1")
    expect(live.title).to_have_text("lv1")
    live.choose("Copy type")
    expect(live.menu).to_have_count(0)
    assert lab.page.evaluate("() => navigator.clipboard.readText()") == "Tensor[(1, n)]"


def test_the_menu_of_a_node_is_opened_and_used_with_keys(lab: Any, live: Any) -> None:
    live.click("lv1")
    lab.page.keyboard.press("Shift+F10")
    expect(live.menu).to_have_accessible_name("Node lv1")
    lab.page.keyboard.press("n")  # Nearby
    lab.page.keyboard.press("Enter")
    expect(live.button("Whole function")).to_be_visible()


def test_back_and_forward_lead_through_what_was_looked_at(offline: Any, viewer: Any) -> None:
    viewer.click("lv0")
    viewer.click("lv1")
    viewer.button("Back").click()
    expect(viewer.title).to_have_text("lv0")
    viewer.picture().focus()
    offline.page.keyboard.press("]")
    expect(viewer.title).to_have_text("lv1")
    viewer.root.get_by_role("button", name="linear0 PrimFunc").click()
    crumbs = viewer.root.get_by_role("navigation", name="Where we are")
    expect(crumbs.get_by_role("button", name="linear0")).to_be_visible()
    viewer.button("Back").click()
    expect(crumbs.get_by_role("button", name="main")).to_be_visible()


def test_a_title_that_is_enlarged_from_afar_covers_the_edges_below_it(offline: Any) -> None:
    viewer = offline.show("stack(6)")
    title = viewer.picture().locator(".title", has=offline.page.locator("text")).first
    for _ in range(6):
        viewer.button("Zoom out").click()
    expect(title).to_have_attribute("style", re.compile("scale"))
    ground, words = (title.locator(one).bounding_box() for one in ("rect", "text"))
    assert ground["width"] > 0.85 * words["width"]  # which have a halo
    assert ground["height"] > 0.5 * words["height"]


def test_edges_are_seen_from_afar_between_the_letters_of_titles_and_where_they_fork(
    offline: Any,
) -> None:
    viewer = offline.show("stack(6)")
    offline.page.set_viewport_size({"width": 900, "height": 330})
    picture = viewer.picture()
    picture.focus()
    for _ in range(8):
        offline.page.keyboard.press("-")
    expect(picture).to_have_attribute("data-distance", "far")
    expect(picture.locator(".title > rect").first).to_have_css("fill-opacity", "0")
    fork = picture.locator(".edge:has(.fork)").first
    width = fork.locator("path").first.evaluate("one => getComputedStyle(one).strokeWidth")
    drawn = float(width.removesuffix("px")) * viewer.percent / 100
    assert fork.locator(".fork").first.bounding_box()["width"] > 2 * drawn


def test_the_group_that_is_looked_at_can_be_read_in_the_breadcrumb(offline: Any) -> None:
    viewer = offline.show("made_by(irviz.Session(stack(6)), 'LegalizeOps')")
    viewer.click("lv1")
    expect(viewer.root.locator(".irviz-crumb-group")).to_have_count(1)
    offline.page.set_viewport_size({"width": 1100, "height": 700})
    crumbs = viewer.root.locator(".irviz-crumb-group .irviz-crumb > span")
    assert crumbs.last.evaluate("one => one.scrollWidth - one.clientWidth") <= 0
    expect(viewer.root.locator(".irviz-crumb-stage")).to_have_text("1 LegalizeOps")
    for width in (1440, 1100, 1000, 900, 800):
        offline.page.set_viewport_size({"width": width, "height": 700})
        line = viewer.root.locator(".irviz-breadcrumb ol")
        beyond = line.evaluate("one => one.scrollWidth - one.clientWidth")
        assert beyond <= 0, f"a crumb is cut at {width} px, without an ellipsis"
    offline.page.set_viewport_size({"width": 1100, "height": 700})
    one = offline.show("stack(6)")
    expect(one.root.get_by_role("group", name="Comparison")).to_have_count(0)


def test_all_groups_are_opened_and_closed_by_buttons_and_keys(offline: Any) -> None:
    viewer = offline.show(LARGE)
    opens, closes = viewer.button("Open all"), viewer.button("Close all")
    closes.click()
    expect(closes).to_be_disabled()
    closed = viewer.picture().locator("svg.irviz:not(.irviz-marks) .node").count()
    viewer.picture().focus()
    offline.page.keyboard.press("o")
    expect(opens).to_be_disabled()
    assert viewer.picture().locator("svg.irviz:not(.irviz-marks) .node").count() > closed
    percent = viewer.root.locator(".irviz-zoom-percent")
    legible = percent.inner_text()
    offline.page.keyboard.press("0")  # it is fitted already, so that all of it is shown
    expect(percent).not_to_have_text(legible)
    offline.page.keyboard.press("c")
    expect(closes).to_be_disabled()


def test_the_list_of_found_nodes_is_inside_of_the_viewer(offline: Any, viewer: Any) -> None:
    field = viewer.root.get_by_role("combobox", name="Find a node")
    for width in (1440, 1068, 820, 620):
        offline.page.set_viewport_size({"width": width, "height": 700})
        field.fill("")
        field.fill("lv")
        found = viewer.root.locator(".irviz-found")
        expect(found).to_contain_text("found")
        box = found.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
