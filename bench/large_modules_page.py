"""Measure large modules on the page: first paint, opening a group, and the tab's memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lab_in_chromium import CHROMIUM, PAINTED, Lab, Tab, lab
from measurement_table import against

BARS = {200: 0.5, 2_000: 0.7, 17_000: 2.0}
_MADE = {"decoder": tuple(BARS), "flat": (200, 2_000)}
_MOST_MEMORY = 100
_ROUNDS = 9

SETUP = f"""
import gc, sys, time
sys.path.insert(0, {str(Path(__file__).parent)!r})
import irviz, made_modules
"""
MODULE = "module = made_modules.{}({}); gc.collect()"
CELL = "began = time.time(); explorer = irviz.explore(module); ended = time.time(); explorer"

# Opens a group where one is closed, else closes a frame and opens that again.
_TOGGLE = f"""async () => {{ {PAINTED}
    const picture = () => sized(document.querySelector('.irviz-canvas svg.irviz'));
    const all = () => [...document.querySelectorAll('.irviz-canvas .toggle[data-toggle]')];
    const isClosed = ({{dataset: {{toggle: id}}}}) => // else it is of a frame
        picture().querySelector(`.node[data-node="${{id}}"]`) !== null;
    const click = async toggle => {{
        const before = picture(), start = performance.now();
        toggle.dispatchEvent(new MouseEvent('click', {{bubbles: true, composed: true}}));
        await until(() => picture() !== before && picture());
        await painted();
        return (performance.now() - start) / 1e3;
    }};
    if (!all().length) return null;
    if (!all().some(isClosed)) await click(all().at(-1));
    const {{toggle: id}} = all().find(isClosed).dataset;
    await new Promise(resolve => setTimeout(resolve, 500));
    const count = () => picture().querySelectorAll('.node').length;
    const closed = count();
    const seconds = await click(all().find(toggle => toggle.dataset.toggle === id));
    if (count() <= closed) throw new Error(`opening ${id} showed no more than before`);
    const again = all().find(toggle => toggle.dataset.toggle === id && !isClosed(toggle));
    if (again) await click(again);
    return seconds;
}}"""


def measure() -> None:
    """Measure in one browser, with a notebook and a kernel of its own for each size."""
    if CHROMIUM is None:
        print("the page: not measured, there is no chromium on this machine")
        return
    with lab() as place:
        for make, sizes in _MADE.items():
            for bindings in sizes:
                _first_paint(place, make, bindings)
        _memory(place)


def _first_paint(place: Lab, make: str, bindings: int) -> None:
    """Run fresh cells on fresh modules; the first of a kernel, which also imports, stands apart."""
    what, bar = f"page, {make} {bindings:,}", BARS[bindings]
    with place.notebook() as tab:
        tab.run(SETUP + MODULE.format(make, bindings))
        first = tab.first_paint(CELL)
        rounds = [_round(tab, make, bindings) for _ in range(_ROUNDS)]
        against(f"{what}: first cell of a kernel -> painted", [first["seconds"]], "ms")
        against(f"{what}: later cell -> painted", [r["seconds"] for r in rounds], "ms", bar)
        for phase in ("to the kernel", "explore()", "from the kernel", "painting"):
            against(f"    … {phase}", [r[phase] for r in rounds], "ms")
        if bindings == max(BARS):
            _opening(tab, what)


def _round(tab: Tab, make: str, bindings: int) -> dict[str, float]:
    tab.clear()
    tab.run(MODULE.format(make, bindings))
    tab.clear()
    found = tab.first_paint(CELL)
    began, ended = tab.value("[began, ended]")
    asked, there = found["asked"] / 1e3, found["there"] / 1e3
    return {
        **found,
        "to the kernel": began - asked,
        "explore()": ended - began,
        "from the kernel": there - ended,
        "painting": found["seconds"] - (there - asked),
    }


def _opening(tab: Tab, what: str) -> None:
    tab.clear()
    tab.first_paint(CELL)
    seconds: list[Any] = [tab.page.evaluate(_TOGGLE) for _ in range(_ROUNDS + 1)]
    if None in seconds:
        print(f"{what}: opening a group: skipped, the page has no .toggle yet")
        return
    against(f"{what}: first click on a group -> painted", seconds[:1], "ms", 0.15)
    against(f"{what}: again", seconds[1:], "ms", 0.15)


def _memory(place: Lab) -> None:
    """Measure the tab before and after the explorer, a notebook of its own each time."""
    for bindings in BARS:
        heaps, processes = [], []
        for _ in range(3):
            with place.notebook() as tab:
                tab.run(SETUP + MODULE.format("decoder", bindings))
                tab.page.wait_for_timeout(3_000)
                before = tab.memory()
                tab.first_paint(CELL)
                tab.page.wait_for_timeout(3_000)
                after = tab.memory()
            heaps.append(after.heap - before.heap)
            processes.append(after.process - before.process)
        what = f"page, decoder {bindings:,}: tab grows by"
        against(f"{what}, JS heap (CDP)", heaps, "MB", _MOST_MEMORY)
        against(f"{what}, PSS of its process", processes, "MB", _MOST_MEMORY)
