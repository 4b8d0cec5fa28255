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

from measurement_table import against, end, heading

ROOT = Path(__file__).parents[1]
ROUNDS = 15
_REST = 0.5
"""The seconds after which the page is at rest, and the stages beside the shown one are drawn."""
_CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


def main() -> None:
    """Run the measurements and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--setup", action="store_true", help="measure `make demo` from nothing")
    options = parser.parse_args()
    heading()
    imports()
    page()
    if options.setup:
        setup()
    end()


def imports() -> None:
    """Measure what `import irviz` costs beside Python itself and beside TVM."""
    for statement in ("pass", "import irviz", "import irviz; irviz.draw", "import tvm"):
        runs = [_fresh(statement) for _ in range(7)]
        against(f"python -c '{statement}'", [seconds for seconds, _ in runs])
        peak = statistics.median(memory for _, memory in runs)
        print(f"{'':58} {peak:6.1f} MB of memory at its peak")


def _fresh(statement: str) -> tuple[float, float]:
    code = (
        f"{statement}\nimport resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return time.perf_counter() - start, int(done.stdout) / 1024


def page() -> None:
    """Measure from a click to the new picture and to the verdict, beside TVM alone."""
    if _CHROMIUM is None:
        print("the page: not measured, there is no chromium on this machine")
        return
    from kernels import alone

    from irviz.course.digits import digits, mlp_params

    images, params = digits().images, mlp_params()
    with _demo(sys.executable) as (url, started), _painted(url) as tab:
        against(
            "irviz demo: from the command to the first picture", [time.perf_counter() - started]
        )
        _open_tab(tab, "Transform")
        tab.locator(".irviz-pass-name input").fill("ToNonDataflow")
        tab.get_by_role("button", name="Bind parameters").click()
        tab.get_by_role("treeitem", selected=True).filter(has_text="equal").wait_for()
        own, found = [], dict[str, list[dict[str, float]]]()
        for _ in range(ROUNDS):
            for button, stage, form in (
                ("Bind parameters", 0, "Transform"),
                ("Replace", 1, "Node"),
                ("Apply pass", 1, "Transform"),
            ):
                tab.get_by_role("treeitem").nth(stage).click()
                if form == "Node":
                    tab.locator(".irviz-canvas svg.irviz .node[data-node='lv1']").first.click()
                _open_tab(tab, form)
                tab.get_by_role("button", name=button).first.wait_for()
                time.sleep(_REST)
                found.setdefault(button, []).append(tab.evaluate(_CLICK, button))
                tab.get_by_role("button", name="Undo", exact=True).first.click()
            start = time.perf_counter()
            alone(images, params)
            own.append(time.perf_counter() - start)
        against("MLP: TVM alone: compile, start, 360 calls", own)
        for button, times in found.items():
            pictures = [t["picture"] / 1e3 for t in times]
            against(f"{button}: from the click to the new picture", pictures, "ms", 0.05)
            badges = [t["badge"] / 1e3 for t in times]
            against(f"{button}: from the click to the verdict", badges, "ms", 0.09)
            ratios = [one / other for one, other in zip(badges, own, strict=True)]
            against(f"{button}: to the verdict, over TVM alone", ratios, "x", 0.78)


def _open_tab(tab: Any, name: str) -> None:
    tab.locator(".irviz-tabs").get_by_role("tab", name=name, exact=True).click()


_CLICK = """async words => {
    const rows = () => document.querySelectorAll('.irviz-stage');
    const until = async test => { while (!test()) await new Promise(requestAnimationFrame); };
    const shown = () => document.querySelector('.irviz-caption b').textContent;
    const [count, before] = [rows().length, shown()];
    const buttons = document.querySelectorAll('.irviz-inspector button');
    const button = [...buttons].find(b => b.offsetParent && b.textContent.includes(words));
    const start = performance.now();
    button.click();
    await until(() => shown() !== before);
    const picture = performance.now() - start;
    const verdict = () => rows()[count]?.querySelector('.irviz-stage-verdict')?.textContent;
    await until(() => verdict()?.includes('equal'));
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
