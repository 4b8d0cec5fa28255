"""The page of `irviz demo`: its first picture, its reload, its end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from irviz.cli.page_launcher import DEMO, START, served

from .conftest import SCRIPT
from .shown import Shown

GRAPH = "#main svg.irviz"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served(DEMO) as (_, url):
        yield url


@pytest.fixture
def page(window: Any, url: str) -> Any:
    window.goto(url)
    return window


def stage_names(page: Any) -> list[str]:
    return [row.split("\n")[1].strip() for row in page.get_by_role("treeitem").all_inner_texts()]


def test_the_picture_is_there_before_any_script_and_gives_way_to_the_explorer(
    chromium: Any, window: Any, url: str
) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(url)
    picture = page.locator("#first img")
    assert picture.evaluate("image => image.complete && image.naturalWidth") > 100
    context.close()
    window.goto(url)
    window.locator(GRAPH).first.wait_for()
    window.locator("#first").wait_for(state="detached")


def test_a_page_that_is_loaded_again_shows_the_stages_that_it_had(page: Any) -> None:
    page.locator(GRAPH).first.wait_for()
    page.get_by_role("tab", name="Transform", exact=True).click()
    page.get_by_role("button", name="Bind").first.click()
    page.get_by_role("treeitem", name="BindParams", selected=True).wait_for()
    before = stage_names(page)
    page.reload()
    page.get_by_role("treeitem", name="BindParams", selected=True).wait_for()
    assert stage_names(page) == before
    assert len(before) == 2


def test_a_click_in_one_page_is_seen_in_another_of_the_same_address(
    chromium: Any, page: Any, url: str
) -> None:
    other = chromium.new_page(viewport={"width": 1440, "height": 900})
    other.goto(url)
    for one in (page, other):
        one.locator(GRAPH).first.wait_for()
    page.get_by_role("tab", name="Node", exact=True).click()
    page.locator(f"{GRAPH} .node[data-node='lv1']").first.click()
    other.get_by_role("heading", name="lv1").first.wait_for()
    other.close()


DROP = """([name, text]) => {
    const data = new DataTransfer();
    data.items.add(new File([text], name));
    document.body.dispatchEvent(new DragEvent("drop", {
        bubbles: true, cancelable: true, dataTransfer: data,
    }));
}"""


def test_a_page_without_a_file_opens_one_and_keeps_it_when_its_server_has_ended(
    window: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "bad.py").write_text("hello")
    with served(START) as (process, url):
        window.goto(url)
        window.get_by_label("Open a file").set_input_files(tmp_path / "bad.py")
        said = window.get_by_role("alert")
        assert said.inner_text().startswith("'bad.py' defines no module")
        window.evaluate(DROP, ["dropped.py", SCRIPT])
        shown = window.locator(f"{GRAPH} .node[data-node='y']").first
        shown.wait_for()
        window.locator("body[data-connection='idle']").wait_for()
        process.kill()
        window.locator("body[data-connection='dead']").wait_for()
        assert shown.is_visible()


def test_something_to_try_is_opened_by_a_click_and_its_name_is_said_meanwhile(
    window: Any,
) -> None:
    requests: list[Any] = []
    with served(START) as (_, url):
        window.goto(url)
        window.route("**/open?*", lambda route: requests.append(route))  # each waits
        window.get_by_role("heading", name="irviz").wait_for()
        window.get_by_role("button", name="Four passes").click()
        expect(window.get_by_role("status")).to_have_text(re.compile(r"Opening Four passes.* 1 s"))
        requests[0].continue_()
        window.locator(GRAPH).first.wait_for()
        expect(window.get_by_role("treeitem")).to_have_count(5)


# --- how it looks ---------------------------------------------------------------------------------


def viewer_of(page: Any) -> Shown:
    return Shown(page, page.locator("#main")).wait()


def test_the_viewer_fills_a_window_of_any_size_and_the_body_never_scrolls(page: Any) -> None:
    viewer = viewer_of(page)
    viewer.node("lv1").click()
    larger = "() => [document.scrollingElement.scrollHeight, document.scrollingElement.scrollWidth]"
    for width, height in ((1920, 1080), (1440, 900), (1000, 700), (600, 800)):
        page.set_viewport_size({"width": width, "height": height})
        box = viewer.root.bounding_box()
        assert (box["x"], box["y"], box["width"], box["height"]) == (0, 0, width, height)
        assert page.evaluate(larger) == [height, width]
        viewer.picture().hover()
        page.mouse.wheel(0, 300)
        page.mouse.wheel(0, -300)
        assert page.evaluate("() => document.scrollingElement.scrollTop") == 0


def test_two_graphs_in_the_window_leave_the_stages_a_narrow_column(page: Any) -> None:
    viewer = viewer_of(page)
    if viewer.stages.count() == 1:
        viewer.tab("Transform").get_by_role("button", name="Bind").first.click()
    expect(viewer.stages).to_have_count(2)
    viewer.stages.last.click()
    expect(viewer.stages.last).to_have_attribute("aria-selected", "true")
    wide = viewer.root.locator(".irviz-rail").bounding_box()["width"]
    viewer.picture().hover()
    viewer.picture().focus()
    page.keyboard.press("d")
    expect(viewer.root.locator(".irviz-caption")).to_have_count(2)
    assert viewer.root.locator(".irviz-rail").bounding_box()["width"] < 200 < wide
    page.keyboard.press("d")
    expect(viewer.root.locator(".irviz-caption")).to_have_count(1)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_of_the_system_is_followed_and_accessible(
    page: Any, axe: Any, scheme: str
) -> None:
    page.emulate_media(color_scheme=scheme)
    viewer = viewer_of(page)
    expect(viewer.root).to_have_attribute("data-theme", scheme)
    viewer.tab("Node")
    viewer.node("lv0").click()
    expect(viewer.title).to_have_text("lv0")
    expect(viewer.inspector).to_contain_text("that fit compute the same")
    assert axe(viewer) == []
    viewer.tab("Transform").get_by_role("button", name="Preview").wait_for()
    assert axe(viewer) == []


CONTRAST = """part => {
    const numbers = colour => colour.match(/[\\d.]+/g).slice(0, 3).map(Number);
    const light = colour => {
        const [r, g, b] = colour.map(one => one / 255)
            .map(one => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    let shown = 1;
    for (let one = part; one; one = one.parentElement) shown *= +getComputedStyle(one).opacity;
    const svg = part.closest("svg"), paper = numbers(getComputedStyle(
        svg.closest(".irviz-viewer")).getPropertyValue("background-color"));
    const own = numbers(getComputedStyle(part).fill);
    const seen = own.map((one, at) => one * shown + paper[at] * (1 - shown));
    const [dark, pale] = [light(seen), light(paper)].sort((one, other) => one - other);
    return (pale + 0.05) / (dark + 0.05);
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_is_drawn_pale_can_be_read(page: Any, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    viewer = viewer_of(page)
    expect(viewer.root).to_have_attribute("data-theme", scheme)
    viewer.node("out").evaluate("one => one.classList.add('irviz-pale')")
    pale = viewer.node("out").locator("text")
    expect(pale.first).to_be_visible()
    for text in pale.all():
        assert text.evaluate(CONTRAST) >= 4.5, text.text_content()


def test_what_is_open_or_closed_in_a_form_has_a_caret(page: Any) -> None:
    form = viewer_of(page).tab("Results")
    caret = form.locator(".irviz-limits .fa")
    shape = "icon => getComputedStyle(icon, '::before').maskImage"
    assert "svg" in caret.evaluate(shape)
    form.get_by_text("where it runs, and limits").click()
    expect(form.locator(".irviz-limits-seconds")).to_be_visible()
    assert "svg" in caret.evaluate(shape)


def test_ctrl_z_undoes_a_stage_but_in_a_field_what_was_typed(page: Any) -> None:
    viewer = viewer_of(page)
    form = viewer.tab("Transform")
    name = form.get_by_role("combobox", name="Pass")
    name.fill("ToNonDataflow")
    name.press("Enter")
    before = viewer.stages.count()
    form.get_by_role("button", name="Apply pass").click()
    expect(viewer.stages).to_have_count(before + 1)
    name.fill("fuse")
    name.press("Control+z")
    expect(name).not_to_have_value("fuse")
    expect(viewer.stages).to_have_count(before + 1)
    viewer.picture().focus()
    page.keyboard.press("Control+z")
    expect(viewer.stages).to_have_count(before)
    page.keyboard.press("Control+Shift+z")
    expect(viewer.stages).to_have_count(before + 1)
    page.keyboard.press("Control+z")
    expect(viewer.stages).to_have_count(before)


def test_a_theme_that_is_chosen_holds_whatever_that_of_the_system_and_in_other_pages(
    chromium: Any, url: str
) -> None:
    context = chromium.new_context(
        viewport={"width": 1440, "height": 900}, color_scheme="light"
    )  # with a memory of its own
    page = context.new_page()
    page.goto(url)
    viewer = viewer_of(page)
    expect(viewer.root).to_have_attribute("data-theme", "light")
    viewer.root.locator("[title^='Light or dark']").click()
    viewer.choose("Always dark")
    expect(viewer.root).to_have_attribute("data-theme", "dark")
    page.reload()
    viewer = viewer_of(page)
    expect(viewer.root).to_have_attribute("data-theme", "dark")
    with served(DEMO) as (_, other):  # on another port
        page.goto(other)
        expect(viewer_of(page).root).to_have_attribute("data-theme", "dark")
    page.goto(url)
    viewer.root.locator("[title^='Light or dark']").click()
    viewer.choose("Theme of the system")
    expect(viewer.root).to_have_attribute("data-theme", "light")
    page.emulate_media(color_scheme="dark")
    expect(viewer.root).to_have_attribute("data-theme", "dark")
    second = context.new_page()  # of the same explorer
    second.emulate_media(color_scheme="light")
    second.goto(url)
    expect(viewer_of(second).root).to_have_attribute("data-theme", "light")
    viewer_of(second).zoom.wait_for()
    expect(viewer.root).to_have_attribute("data-theme", "dark")
    context.close()
