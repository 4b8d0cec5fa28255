"""Measure what a reader waits for in the viewer: a click, a hover, a stage, a comparison, a pan.

In Chromium, on the page of `irviz open`, from the event until the picture with its answer is
painted: the first time, and the 95th percentile of 49 more. `python bench/viewer.py [bindings]`,
or `python bench/viewer.py recording.irviz` for each stage of a recording and its comparison with
the stage before, each for the first time.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

import tvm
from measurement_table import against, end, heading
from playwright.sync_api import Page, sync_playwright
from tvm import relax
from tvm.script import relax as script

from irviz.cli.page_launcher import DEMO, served

_TIMES = 50
_FLAGS = ["--no-sandbox", "--disable-gpu"]

# Runs `act`, and returns the milliseconds until `found()` holds and is painted.
_TIMED = """async ([act, found]) => {
    const drawn = selector => document.querySelector(selector);
    const isThere = new Function("drawn", `return ${found}`);
    const start = performance.now();
    new Function("drawn", act)(drawn);
    await new Promise(done => {
        const look = () => isThere(drawn)
            ? setTimeout(done)  // after the paint of this frame
            : requestAnimationFrame(look);
        requestAnimationFrame(look);
    });
    return performance.now() - start;
}"""
_FRAMES = """async () => {
    const pane = document.querySelector(".irviz-canvas");
    const { left, top, width, height } = pane.getBoundingClientRect();
    const tell = (type, x, y) => pane.dispatchEvent(new PointerEvent(type, {
        bubbles: true, pointerId: 1, isPrimary: true, button: 0, buttons: 1,
        clientX: x, clientY: y,
    }));
    const [x, y] = [left + width / 2, top + height / 2];
    tell("pointerdown", x, y);
    const frames = [];
    let before = performance.now();
    for (let step = 0; step < 120; step += 1) {
        tell("pointermove", x + 3 * (step % 40), y + 2 * (step % 60));
        await new Promise(requestAnimationFrame);
        const now = performance.now();
        frames.push(now - before);
        before = now;
    }
    tell("pointerup", x, y);
    return frames;
}"""


def main(bindings: int) -> None:
    """Print the figures of the lecture's module, and of one with so many bindings."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    heading()
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=found, args=_FLAGS)
        with served(DEMO) as (_, url):
            page = _opened(browser.new_page(viewport={"width": 1440, "height": 900}), url)
            _of_nodes(page, "MLP", ["lv0", "lv1"])
            page.get_by_role("tab", name="Transform").click()
            page.get_by_role("button", name="Bind").first.click()
            page.get_by_role("treeitem").nth(1).wait_for()
            page.get_by_role("treeitem", selected=True).filter(has_text="equal").wait_for()
            _of_stages(page, "MLP", 0.1)
        for name, module in (
            (f"{bindings} bindings", _layers(bindings // 3)),
            ("300 nodes", _chain(300)),
        ):
            path = Path(folder, "module.json")
            path.write_text(tvm.ir.save_json(module))
            with served(str(path)) as (_, url):
                page = _opened(browser.new_page(viewport={"width": 1440, "height": 900}), url)
                if name == "300 nodes":
                    _of_nodes(page, name, ["lv3", "lv4"])
                    _print_frames(page)
                    continue
                _of_nodes(page, name, ["lv1", "lv2"])
                _of_groups(page, name)
                form = page.get_by_role("tabpanel", name="Transform")
                page.get_by_role("tab", name="Transform").click()
                form.locator(".irviz-pass-name input").fill("LegalizeOps")
                form.get_by_role("button", name="Apply pass").click()
                page.get_by_role("treeitem").nth(1).wait_for()
                _of_stages(page, name, 0.3)
        browser.close()
        _of_second_commands(Path(folder, "module.json"), bindings)
    end()


def of_recording(path: str) -> None:
    """Print the times of the stages that have a picture, and of the comparisons with each."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    heading()
    stages, comparisons = [], []
    with sync_playwright() as playwright, served(path) as (_, url):
        browser = playwright.chromium.launch(executable_path=found, args=_FLAGS)
        page = _opened(browser.new_page(viewport={"width": 1440, "height": 900}), url)
        rows = page.get_by_role("treeitem").filter(has=page.locator(".irviz-stage-id"))
        for stage in range(1, rows.count()):
            act = _pressed('{key: "ArrowRight", altKey: true, bubbles: true}')
            shown = f'drawn(".irviz-caption b")?.textContent.trim().startsWith("{stage} ")'
            took = _timed(page, act, f'{shown} || drawn(".irviz-function-table")')
            if not page.locator(".irviz-canvas svg.irviz .node").count():
                break  # the stages after it lack the function
            stages.append(took)
            both = 'document.querySelectorAll(".irviz-caption").length === {}'
            act = _pressed('{key: "d", bubbles: true}')
            comparisons.append(_timed(page, act, both.format(2)))
            _timed(page, act, both.format(1))
        browser.close()
    for what, times in (("a stage", stages), ("compare", comparisons)):
        against(f"{Path(path).stem}: {what}, {len(times)} of them", sorted(times), "ms")
        against(f"{Path(path).stem}: … the longest", [max(times)], "ms", 0.3)
    end()


def _pressed(event: str) -> str:
    return f'drawn(".irviz-canvas").dispatchEvent(new KeyboardEvent("keydown", {event}))'


def _of_second_commands(path: Path, bindings: int) -> None:
    """Measure from a command, while another irviz runs, until its page has opened the file."""
    path.write_text(tvm.ir.save_json(_layers(bindings // 3)))
    times = []
    with served(DEMO, is_new=True):
        for _ in range(5):
            began = time.perf_counter()
            with served(str(path), is_new=False):
                times.append(time.perf_counter() - began)
    against(f"{bindings} bindings: the file of a second command is open", times, "s", 0.5)


def _opened(page: Page, url: str) -> Page:
    page.set_default_timeout(60_000)
    page.goto(url)
    page.locator("#main svg.irviz .node").first.wait_for()
    return page


def _of_nodes(page: Page, name: str, nodes: list[str]) -> None:
    page.get_by_role("tab", name="Node", exact=True).click()
    clicks, hovers = [], []
    for turn in range(_TIMES):
        node = nodes[turn % 2]
        part = f".irviz-canvas svg.irviz:not(.irviz-marks) .node[data-node='{node}']"
        event = '{bubbles: true, pointerType: "mouse"}'
        hovers.append(
            _timed(
                page,
                f'drawn("{part}").dispatchEvent(new PointerEvent("pointerover", {event}))',
                f"drawn(\".irviz-mark-near [data-node='{node}']\")",
            )
        )
        clicks.append(
            _timed(
                page,
                f'drawn("{part}").dispatchEvent(new MouseEvent("click", {{bubbles: true}}))',
                f"drawn(\".irviz-mark-selected [data-node='{node}']\")"
                f' && drawn(".irviz-node")?.dataset.node === "{node}"',
            )
        )
    _tell(name, "select a node", clicks, 0.05)
    _tell(name, "point at a node", hovers, 0.03)


def _of_stages(page: Page, name: str, bar: float) -> None:
    stages, comparisons = [], []
    for turn in range(_TIMES):
        stage, arrow = (("0", "ArrowLeft"), ("1", "ArrowRight"))[turn % 2]
        act = _pressed(f'{{key: "{arrow}", altKey: true, bubbles: true}}')
        shown = f'drawn(".irviz-caption b").textContent.trim().startsWith("{stage} ")'
        stages.append(_timed(page, act, shown))
    _tell(name, "another stage", stages, bar)
    for turn in range(_TIMES):
        act = _pressed('{key: "d", bubbles: true}')
        shown = f'document.querySelectorAll(".irviz-caption").length === {2 - turn % 2}'
        comparisons.append(_timed(page, act, shown))
    _tell(name, "compare", comparisons[::2], bar)


def _of_groups(page: Page, name: str) -> None:
    sign = ".irviz-canvas .toggle[data-toggle^='repeat']"
    node = ".irviz-canvas svg.irviz:not(.irviz-marks) .node[data-node^='repeat']"
    opened = []
    for turn in range(2 * _TIMES):
        act = f'drawn("{sign}").dispatchEvent(new MouseEvent("click", {{bubbles: true}}))'
        is_closing = turn % 2 == 0
        took = _timed(page, act, f'{"" if is_closing else "!"}drawn("{node}")')
        if not is_closing:
            opened.append(took)
    _tell(name, "open a group", opened, 0.15)


def _print_frames(page: Page) -> None:
    frames = page.evaluate(_FRAMES)
    against("300 nodes: a frame while panning", [one / 1e3 for one in frames], "ms", 0.017)
    against("300 nodes: … the longest", [max(frames) / 1e3], "ms", 0.05)


def _timed(page: Page, act: str, found: str) -> float:
    return float(page.evaluate(_TIMED, [act, found])) / 1e3


def _tell(name: str, what: str, times: list[float], bar: float) -> None:
    first, *others = times
    others.sort()
    against(f"{name}: {what}, the first time", [first], "ms", bar)
    against(f"{name}: {what}, again", others, "ms")
    against(f"{name}: … the 95th percentile", [others[round(0.95 * (len(others) - 1))]], "ms", bar)


def _layers(count: int) -> tvm.IRModule:
    """Return a function of equal layers, with three bindings each."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", script.Tensor((2, 8), "float32"))
    params = [x]
    with builder.function("main"):
        with builder.dataflow():
            h = x
            for layer in range(count):
                w = relax.Var(f"w_{layer}", script.Tensor((8, 8), "float32"))
                params.append(w)
                y = builder.emit(relax.op.matmul(h, w))
                h = builder.emit(relax.op.add(h, builder.emit(relax.op.nn.gelu(y))))
            out = builder.emit_output(h)
        builder.emit_func_output(out, params)
    return builder.get()


def _chain(count: int) -> tvm.IRModule:
    """Return a function in which nothing is repeated."""
    ops = [relax.op.tanh, relax.op.exp, relax.op.nn.relu, relax.op.sigmoid, relax.op.nn.gelu]
    builder = relax.BlockBuilder()
    x = relax.Var("x", script.Tensor((2, 8), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            h = x
            for place in range(count):
                h = builder.emit(ops[place**3 % 1009 % 5](h))
            out = builder.emit_output(h)
        builder.emit_func_output(out)
    return builder.get()


if __name__ == "__main__":
    given = sys.argv[1] if len(sys.argv) > 1 else "2000"
    of_recording(given) if given.endswith(".irviz") else main(int(given))
