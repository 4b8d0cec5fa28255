"""The page of `irviz demo`: its first picture, its reload, its end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from irviz.cli.page_request import DEMO
from irviz.cli.serve import served

GRAPH = "#main svg.irviz"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served(DEMO) as (_, url):
        yield url


@pytest.fixture
def page(chromium: Any, url: str) -> Iterator[Any]:
    page = chromium.new_page(viewport={"width": 1440, "height": 900})
    page.set_default_timeout(30_000)
    page.goto(url)
    yield page
    page.close()


def stage_names(page: Any) -> list[str]:
    return [row.split("\n")[1].strip() for row in page.get_by_role("treeitem").all_inner_texts()]


def test_the_picture_is_there_before_any_script_and_gives_way_to_the_explorer(
    chromium: Any, url: str
) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(url)
    picture = page.locator("#first img")
    assert picture.evaluate("image => image.complete && image.naturalWidth") > 100
    context.close()
    page = chromium.new_page()
    page.goto(url)
    page.locator(GRAPH).first.wait_for()
    page.locator("#first").wait_for(state="detached")
    page.close()


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


def test_a_page_knows_when_its_server_has_ended_and_keeps_what_it_shows(chromium: Any) -> None:
    with served(DEMO) as (process, url):
        page = chromium.new_page()
        page.goto(url)
        page.locator(GRAPH).first.wait_for()
        page.locator("body[data-connection='idle']").wait_for()
        process.kill()
        page.locator("body[data-connection='dead']").wait_for()
        assert page.locator(GRAPH).first.is_visible()
        page.close()
