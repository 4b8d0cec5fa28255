"""Measure irviz and print the figures: medians with the smallest and the largest seen.

    python bench/lecture_mlp.py            everything but the set-up from nothing
    python bench/lecture_mlp.py --setup    that too, in a fresh copy: some minutes

Times are of this machine, now: compare ratios within one run, not numbers between runs.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from table import heading, line

ROOT = Path(__file__).parents[1]
ROUNDS = 25
_CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


def main() -> None:
    """Run the measurements and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--setup", action="store_true", help="measure `make demo` from nothing")
    options = parser.parse_args()
    heading()
    imports()
    kernel()
    page()
    if options.setup:
        setup()


def imports() -> None:
    """Measure what `import irviz` costs beside Python itself and beside TVM."""
    for statement in ("pass", "import irviz", "import irviz; irviz.draw", "import tvm"):
        runs = [_fresh(statement) for _ in range(7)]
        line(f"python -c '{statement}'", [seconds for seconds, _ in runs])
        peak = statistics.median(memory for _, memory in runs)
        print(f"{'':58} {peak:6.1f} MB of memory at its peak")


def _fresh(statement: str) -> tuple[float, float]:
    code = (
        f"{statement}\nimport resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return time.perf_counter() - start, int(done.stdout) / 1024


def kernel() -> None:
    """Measure from a click to the new picture and to the new badge, in a warm kernel."""
    import ipywidgets as widgets

    import irviz
    from irviz.cli.demo import demo_session
    from irviz.explorer.actions import Checkout, Select

    explorer = irviz.explore(demo_session().bind())
    explorer.tab = "Transform"
    texts = (part for part in _parts(explorer.forms["Transform"]) if isinstance(part, widgets.Text))
    passes = next(part for part in texts if "irviz-pass-name" in part._dom_classes)
    passes.value = "ToNonDataflow"  # which takes the frame away, so the picture changes
    drawn: list[float] = []
    explorer.observe(lambda _: drawn.append(time.perf_counter()), "scene")
    for button, tab, stage, node in (
        ("Bind parameters", "Transform", "0", ""),
        ("Replace", "Node", "1", "lv1"),
        ("Apply pass", "Transform", "1", ""),
    ):
        pictures, badges = [], []
        for _ in range(ROUNDS + 1):
            explorer.dispatch(Checkout(stage))
            explorer.tab = tab
            explorer.dispatch(Select(node))
            drawn.clear()
            start = time.perf_counter()
            _button(explorer.forms[tab], button).click()  # a new module, so it is built each time
            badges.append(time.perf_counter() - start)
            pictures.append(drawn[0] - start)
            assert explorer.session.current_id in explorer.results
        line(f"{button}: from the click to the new SVG (kernel)", pictures[1:], "50 ms")
        line(f"{button}: to the badge, run on 360 images (kernel)", badges[1:], "150 ms")


def _parts(widget: Any) -> Iterator[Any]:
    yield widget
    for child in getattr(widget, "children", ()):
        yield from _parts(child)


def _button(widget: Any, words: str) -> Any:
    return next(
        part
        for part in _parts(widget)
        if hasattr(part, "click") and part.description.startswith(words)
    )


def page() -> None:
    """Measure the same in the browser: from the click to what it changed on the screen."""
    if _CHROMIUM is None:
        print("the page: not measured, there is no chromium on this machine")
        return
    with _demo(sys.executable) as (url, started), _painted(url) as tab:
        line("irviz demo: from the command to the first picture", [time.perf_counter() - started])
        tab.locator(".irviz-tabs").get_by_role("tab", name="Transform", exact=True).click()
        runs = [tab.evaluate(_BIND) for _ in range(ROUNDS)]
        line("bind: from the click to the new SVG on the page", [r["picture"] / 1e3 for r in runs])
        line("bind: from the click to the badge on the page", [r["badge"] / 1e3 for r in runs])


_BIND = """async () => {
    const stages = () => document.querySelectorAll('.irviz-stage');
    const until = async test => { while (!test()) await new Promise(requestAnimationFrame); };
    stages()[0].click();
    await until(() => document.querySelector('.irviz-canvas .node.param[data-node="w0"]'));
    await new Promise(resolve => setTimeout(resolve, 300));
    const count = stages().length;
    const button = [...document.querySelectorAll('.irviz-inspector button')].find(
        b => b.textContent.includes('Bind parameters'));
    const start = performance.now();
    button.click();
    await until(() => !document.querySelector('.irviz-canvas .node.param[data-node="w0"]'));
    const picture = performance.now() - start;
    await until(() => {
        const badge = stages()[count]?.querySelector('.irviz-badge');
        return badge?.textContent.includes('equal');
    });
    return {picture, badge: performance.now() - start};
}"""


@contextlib.contextmanager
def _demo(python: str) -> Iterator[tuple[str, float]]:
    started = time.perf_counter()
    process = subprocess.Popen(
        [python, "-m", "irviz.cli.main", "demo", "--no-browser"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=tempfile.gettempdir(),
    )
    try:
        assert process.stdout is not None
        found = re.search(r"http\S+", process.stdout.readline())
        assert found is not None
        yield found[0], started
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)


def setup() -> None:
    """Measure `make demo` from nothing: a fresh copy, an empty environment, no cache of pip."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "irviz"
        subprocess.run(["git", "clone", "-q", str(ROOT), str(copy)], check=True)
        environment = {**os.environ, "PIP_NO_CACHE_DIR": "1"}
        start = time.perf_counter()
        subprocess.run(["make", "-s", ".venv/installed"], cwd=copy, env=environment, check=True)
        installed = time.perf_counter() - start
        print(f"{'make demo: install from the registry, no cache':58} {installed:6.1f} s")
        python = str(copy / ".venv" / "bin" / "python")
        with _demo(python) as (url, started), _painted(url):
            shown = time.perf_counter() - started
        print(f"{'make demo: then to the first picture':58} {shown:6.1f} s")
        print(f"{'make demo: from nothing to the first picture':58} {installed + shown:6.1f} s")


@contextlib.contextmanager
def _painted(url: str) -> Iterator[Any]:
    """Open the page in a browser and wait for its first picture."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=_CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-quic"]
        )
        tab = browser.new_page()
        tab.goto(url)
        tab.locator(".irviz-canvas svg.irviz").first.wait_for(timeout=60_000)
        yield tab
        browser.close()


if __name__ == "__main__":
    main()
