"""A session's HTML file in a browser without a network: what was recorded can be looked at."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from tvm import ir, relax

from irviz.cli.main import demo_stages
from irviz.session.session import Session


@pytest.fixture(scope="module")
def lecture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the lecture's session, with its values."""
    return demo_stages().save_html(tmp_path_factory.mktemp("html") / "lecture.html", run=True)


def show(page: Any, layout: str) -> None:
    """Show the graph, the text, or both."""
    page.locator(".irviz-toolbar").get_by_role("button", name=layout).click()


def click_node(page: Any, node: str) -> None:
    """Click the words in a node."""
    page.locator(f".node[data-node='{node}'] text").first.click()


# --- what can be looked at ----------------------------------------------------------------------


def test_the_picture_and_the_stages_are_there(offline: Any, lecture: Path) -> None:
    page = offline.open(lecture)
    assert page.title().endswith(" · irviz")
    expect(page.locator(".node[data-node='lv1']")).to_have_count(1)
    rows = [" ".join(row.split()) for row in page.get_by_role("treeitem").all_inner_texts()]
    assert [row[:6] for row in rows] == ["0 init", "1 Bind", "2 swap"]
    assert "equal" in rows[2]


def test_keys_step_through_the_stages_and_compare_with_the_one_before(
    offline: Any, lecture: Path
) -> None:
    page = offline.open(lecture)
    chosen = page.locator("[role=treeitem][aria-selected=true]")
    page.keyboard.press("Alt+ArrowLeft")
    expect(chosen).to_contain_text("BindParams")
    page.keyboard.press("Alt+ArrowRight")
    expect(chosen).to_contain_text("swap")
    page.keyboard.press("d")
    page.get_by_text("1 changed").first.wait_for()
    expect(page.locator(".node[data-node='lv1']")).to_have_count(2)
    page.keyboard.press("d")
    page.get_by_text("1 changed").first.wait_for(state="detached")


def test_stepping_through_the_stages_nothing_moves_that_both_have(
    offline: Any, lecture: Path
) -> None:
    page = offline.open(lecture)
    nodes = ("x", "lv0", "lv1", "out")

    def places() -> list[object]:
        shapes = (page.locator(f".node[data-node='{one}'] .shape").first for one in nodes)
        return [shape.bounding_box() for shape in shapes]

    first = places()
    assert None not in first
    for stage in ("BindParams", "initial module"):
        page.keyboard.press("Alt+ArrowLeft")
        page.locator(".irviz-caption", has_text=stage).wait_for()
        assert places() == first


def test_a_node_tells_what_it_is_and_its_value(offline: Any, lecture: Path) -> None:
    page = offline.open(lecture)
    click_node(page, "lv1")
    inspector = page.locator(".irviz-inspector")
    inspector.get_by_text("env.relu").first.wait_for()
    expect(inspector).to_contain_text("Tensor[(1, 128)]")
    expect(inspector).to_contain_text("minimum")


def test_functions_can_be_gone_to_and_nodes_found(offline: Any, lecture: Path) -> None:
    page = offline.open(lecture)
    page.locator(".irviz-functions").get_by_role("button", name="relu0").click()
    page.locator(".node[data-node='lv1']").wait_for(state="detached")
    page.keyboard.press("/")
    page.keyboard.type("lv1")
    page.get_by_role("option").first.wait_for()
    page.keyboard.press("Enter")
    page.locator(".node[data-node='lv1']").first.wait_for()


def test_a_line_of_the_text_leads_to_its_node_and_back(offline: Any, lecture: Path) -> None:
    page = offline.open(lecture)
    show(page, "Split")
    line = page.locator(".cm-line", has_text="lv1 = ")
    line.click(position={"x": 110, "y": 6})
    page.locator(".irviz-script-selected", has_text="lv1 = ").wait_for()
    expect(page.locator(".irviz-inspector")).to_contain_text("env.relu")
    click_node(page, "out")
    page.locator(".irviz-script-selected", has_text="out = ").wait_for()


def test_the_texts_of_two_stages_stand_beside_each_other_or_in_a_narrow_window_in_one(
    offline: Any, lecture: Path
) -> None:
    page = offline.open(lecture)
    page.keyboard.press("d")
    show(page, "Split")
    page.locator(".cm-merge-a .cm-changedLine", has_text="relu0").wait_for()
    page.locator(".cm-merge-b .cm-changedLine", has_text="env.relu").wait_for()
    page.set_viewport_size({"width": 640, "height": 700})
    page.locator(".cm-deletedChunk", has_text="relu0").wait_for()
    expect(page.locator(".cm-mergeView")).to_have_count(0)


def test_keys_find_words_in_the_text_and_choose_lines(offline: Any, lecture: Path) -> None:
    page = offline.open(lecture)
    show(page, "Text")
    page.locator(".cm-content").focus()
    page.keyboard.press("Control+f")
    page.keyboard.type("env.relu")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    page.keyboard.press("Enter")
    page.locator(".irviz-script-selected", has_text="lv1 = ").wait_for()
    lines = page.locator(".cm-line").all_inner_texts()
    page.keyboard.type("x")
    assert page.locator(".cm-line").all_inner_texts() == lines


def test_the_name_of_a_prim_func_leads_to_its_definition(offline: Any, lecture: Path) -> None:
    page = offline.open(lecture, height=500)
    show(page, "Text")
    page.locator(".cm-line", has_text="lv0 = ").locator(".irviz-script-link").click()
    page.locator(".cm-line", has_text="def linear0").wait_for()
    expect(page.get_by_role("combobox", name="Function")).to_have_value("linear0")


def test_a_line_of_a_prim_func_leads_to_its_block(offline: Any, lecture: Path) -> None:
    page = offline.open(lecture)
    page.locator(".irviz-functions").get_by_role("button", name="relu0").click()
    show(page, "Split")
    page.locator(".cm-line", has_text="Y[vi, vj] = T.max").click(position={"x": 120, "y": 6})
    page.locator(".irviz-script-selected", has_text='T.sblock("Y")').wait_for()


def test_numpy_stands_beside_the_text_with_its_lines_linked(offline: Any, lecture: Path) -> None:
    page = offline.open(lecture)
    page.locator(".irviz-functions").get_by_role("button", name="relu0").click()
    show(page, "Split")
    page.get_by_role("button", name="NumPy").click()
    numpy = page.locator(".cm-content[aria-label^=NumPy]")
    numpy.locator(".cm-line", has_text="np.maximum").click(position={"x": 120, "y": 6})
    page.locator(".irviz-script-selected", has_text='T.sblock("Y")').wait_for()
    numpy.locator(".irviz-script-selected", has_text="np.maximum").wait_for()
    page.set_viewport_size({"width": 640, "height": 700})
    page.locator(".cm-content[aria-label^=TVMScript]").wait_for(state="hidden")
    expect(numpy).to_be_visible()


def test_all_functions_but_the_current_one_fold_and_open_again(offline: Any, lecture: Path) -> None:
    page = offline.open(lecture)
    show(page, "Text")
    fold = page.get_by_role("button", name="Fold others")
    fold.click()
    expect(page.locator(".cm-foldPlaceholder")).to_have_count(2)
    expect(page.locator(".cm-line", has_text="lv1 = ")).to_have_count(1)
    expect(page.locator(".cm-line", has_text="T.max(")).to_have_count(0)
    fold.click()
    expect(page.locator(".cm-foldPlaceholder")).to_have_count(0)
    page.get_by_role("combobox", name="Function").select_option("relu0")
    page.locator(".cm-line", has_text="T.max(").wait_for()


def test_the_text_goes_to_the_change_that_is_gone_to(offline: Any, lecture: Path) -> None:
    page = offline.open(lecture, height=420)
    page.keyboard.press("Alt+ArrowLeft")
    page.locator(".irviz-caption", has_text="BindParams").wait_for()
    page.keyboard.press("d")
    expect(page.locator(".irviz-caption")).to_have_count(2)
    show(page, "Text")
    page.get_by_role("button", name="Only differences").click()
    page.locator(".cm-mergeView").evaluate("one => { one.scrollTop = 0; }")
    page.locator(".irviz-script-header").click()
    page.keyboard.press("n")
    page.wait_for_function("() => document.querySelector('.cm-mergeView').scrollTop > 0")


def test_the_system_chooses_light_or_dark(offline: Any, lecture: Path) -> None:
    grounds = [
        offline.open(lecture, scheme=scheme).evaluate(
            "() => getComputedStyle(document.querySelector('.irviz-viewer')).backgroundColor"
        )
        for scheme in ("light", "dark")
    ]
    assert grounds[0] == "rgb(255, 255, 255)"
    assert grounds[1] != grounds[0]


# --- what cannot be done ------------------------------------------------------------------------

HURTS = "<img src=x onerror='window.hurt = 1'>"
ENDS = f"</script></style><script>window.hurt = 1</script>{HURTS}"


def hostile_session() -> Session:
    """Return a session whose names all are HTML."""
    x = relax.Var(ENDS, relax.TensorType([4], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        made = builder.emit(relax.op.nn.relu(x), name_hint=HURTS)
        builder.emit_func_output(builder.emit(relax.op.add(made, made), name_hint=ENDS))
    module: ir.IRModule = builder.get().with_attr(HURTS, ENDS)
    session = Session(module).from_file(f"{HURTS}.py")
    return session.apply(relax.transform.LegalizeOps()).rename("0", ENDS).rename("1", HURTS)


def look_at_everything(page: Any) -> None:
    """Show every kind of text that a session has."""
    page.locator(".node text").first.click()
    show(page, "Split")
    page.locator(".cm-line").first.wait_for()
    page.keyboard.press("d")
    page.locator(".cm-mergeView").wait_for()
    page.keyboard.press("/")
    page.keyboard.type("img")
    page.wait_for_timeout(300)


def test_no_name_in_a_session_does_anything(offline: Any, tmp_path: Path) -> None:
    path = hostile_session().save_html(tmp_path / "hostile.html")
    page = offline.open(path)
    look_at_everything(page)
    assert "hurt = 1" in page.locator(".irviz-viewer").inner_text()
    assert page.title() == f"{HURTS}.py · irviz"
    assert page.evaluate("() => window.hurt") is None
    assert page.locator("img[src=x]").count() == 0


def test_text_that_was_not_escaped_would_be_stopped_by_the_policy(
    window: Any, lecture: Path, tmp_path: Path
) -> None:
    text = lecture.read_text("utf-8").replace("<noscript>", f"{ENDS}<noscript>")
    policy = text[text.index("<meta http-equiv") : text.index('<meta name="referrer"')]
    hurt = []
    for name, content in {"with": text, "without": text.replace(policy, "")}.items():
        path = tmp_path / f"{name}.html"
        path.write_text(content, "utf-8")
        window.goto(path.as_uri())
        window.locator(".irviz-frame").wait_for()
        hurt.append(window.evaluate("() => window.hurt"))
    assert hurt == [None, 1]


ATTEMPTS = {
    "fetch": "fetch(url).catch(() => {})",
    "image": "document.body.append(Object.assign(new Image(), {src: url}))",
    "style": "document.head.append(Object.assign(document.createElement('link'), "
    "{rel: 'stylesheet', href: url}))",
    "font": "document.fonts.add(new FontFace('a', `url(${url})`)); document.fonts.load('9px a')",
    "frame": "document.body.append(Object.assign(document.createElement('iframe'), {src: url}))",
    "beacon": "navigator.sendBeacon(url, 'x')",
    "socket": "new WebSocket(url.replace('http', 'ws'))",
    "script": "import(url).catch(() => {})",
    "form": "const form = Object.assign(document.createElement('form'), {action: url}); "
    "document.body.append(form); form.submit()",
}


class Listener(ThreadingHTTPServer):
    """A server of the loopback address that remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: set[str] = set()
        super().__init__(("127.0.0.1", 0), _Answer)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Listener)
        self.server.asked.add(self.path.partition("?")[0])
        self.send_error(404)

    do_POST = do_OPTIONS = do_GET  # noqa: N815 - names that the server looks for

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def listener() -> Iterator[Listener]:
    with Listener() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.mark.parametrize("has_policy", [False, True])
def test_the_page_sends_nothing_though_without_its_policy_it_could(
    window: Any, lecture: Path, tmp_path: Path, listener: Listener, has_policy: bool
) -> None:
    text = lecture.read_text("utf-8")
    policy = text[text.index("<meta http-equiv") : text.index('<meta name="referrer"')]
    path = tmp_path / "page.html"
    path.write_text(text if has_policy else text.replace(policy, ""), "utf-8")
    window.goto(path.as_uri())
    window.locator(".irviz-frame").wait_for()
    for name, attempt in ATTEMPTS.items():
        script = f"url => {{ try {{ {attempt} }} catch {{}} }}"
        window.evaluate(script, f"{listener.url}/{name}")
    wanted = set() if has_policy else {f"/{name}" for name in ATTEMPTS}
    deadline = time.monotonic() + 5
    while not wanted <= listener.asked and time.monotonic() < deadline:
        window.wait_for_timeout(50)
    if has_policy:
        window.wait_for_timeout(500)  # longer than the others take
    assert listener.asked - {"/favicon.ico"} == wanted


def test_a_damaged_file_says_so(window: Any, lecture: Path, tmp_path: Path) -> None:
    text = lecture.read_text("utf-8")
    start = text.index('id="irviz-recording">') + 1000
    path = tmp_path / "damaged.html"
    path.write_text(text[:start] + text[start + 400 :], "utf-8")
    window.goto(path.as_uri())
    window.get_by_text("This file is damaged").wait_for()
