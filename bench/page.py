"""Measure how long the page of `irviz demo` takes: medians with the smallest and the largest seen.

The page is served before TVM is loaded, so that what is asked of it waits for that.

python bench/page.py
python bench/page.py --rounds 11 --file module.json
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections import defaultdict
from typing import Any

from lab_in_chromium import CHROMIUM
from measurement_table import against, end, heading
from playwright.sync_api import Browser, Error, sync_playwright

_BARS = {
    "command: the page is served": 0.2,
    "page: first picture": 1.5,
    "page: a click is answered": 4.0,
}

# It looks as often as the page is drawn; a click is tried again until it is answered.
_WATCH = """() => {
    const seen = window.seen = {};
    const visible = (part) => part?.getBoundingClientRect().width > 20 && part.complete !== false;
    const look = () => {
        const now = performance.now() / 1e3;
        const graph = document.querySelector("#main svg.irviz");
        if (!seen.picture && (graph || visible(document.querySelector("#first img"))))
            seen.picture = now;
        if (!seen.live && visible(graph)) seen.live = now;
        const node = graph?.querySelector(".node[data-node='lv1']") ??
            graph?.querySelector(".node[data-node]");
        const shown = document.querySelector(".irviz-inspector")?.textContent ?? "";
        if (node && seen.clicked && shown.includes(node.dataset.node)) seen.usable = now;
        else if (node && !(now - seen.clicked < 0.1)) {
            seen.clicked = now;
            const { x, y, width, height } = node.getBoundingClientRect();
            const at = { clientX: x + width / 2, clientY: y + height / 2, bubbles: true };
            for (const kind of ["pointerdown", "pointerup"])
                node.dispatchEvent(new PointerEvent(kind, at));
            node.dispatchEvent(new MouseEvent("click", at));
        }
        if (!seen.usable) requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
}"""
_LIMIT_SECONDS = 60.0


def main() -> None:
    """Measure the page, and print a line for each time."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--file", default="", help="what is opened; default: the demo")
    options = parser.parse_args()
    command = ["open", options.file] if options.file else ["demo"]
    times: dict[str, list[float]] = defaultdict(list)
    flags = ["--no-sandbox", "--disable-gpu"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        for _ in range(options.rounds):
            for what, seconds in _round(browser, command).items():
                times[what].append(seconds)
    heading()
    for what, values in times.items():
        against(what, values, "s", _BARS.get(what))
    end()


def _round(browser: Browser, command: list[str]) -> dict[str, float]:
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "irviz.cli.main", *command, "--no-browser"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().split()[3]
        address = time.perf_counter() - began
        with urllib.request.urlopen(url) as answer:
            answer.read()
        served = time.perf_counter() - began
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        page = context.new_page()
        page.add_init_script(f"({_WATCH})()")
        page.goto(url, wait_until="commit")
        first = _seen(page)
        page.reload(wait_until="commit")
        again = _seen(page)
        context.close()
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()
    return {
        "command: the address is printed, and a browser started": address,
        "command: the page is served": served,
        "page: first picture": first["picture"],
        "command and page: first picture": served + first["picture"],
        "page: the explorer is there": first["live"],
        "page: a click is answered": first["usable"],
        "page loaded again: a click is answered": again["usable"],
        "command and page: a click is answered": served + first["usable"],
    }


def _seen(page: Any) -> dict[str, float]:
    """Wait until a click has been answered; the page's policy lets Playwright's own waits fail."""
    deadline = time.perf_counter() + _LIMIT_SECONDS
    seen: dict[str, float] = {}
    while "usable" not in seen:
        if time.perf_counter() > deadline:
            raise TimeoutError(f"the page answers no click: {seen}")
        time.sleep(0.05)
        try:
            seen = page.evaluate("window.seen") or {}
        except Error:  # the document before is gone, and the next is not there
            seen = {}
    return seen


if __name__ == "__main__":
    main()
