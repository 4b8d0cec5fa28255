"""Measure irviz on large modules: medians with the smallest and the largest seen, and the bars.

    python bench/large_modules.py                       everything
    python bench/large_modules.py extraction picture    only these parts

Times are of this machine, now: compare ratios within one run, not numbers between runs.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path

import large_modules_page
import made_modules
from measurement_table import against, end, forget, heading
from tvm import ir

import irviz
from irviz.session.shown_function import ViewState, stage_view
from irviz.view.graph.graph_figure import draw_graph

_BENCH = Path(__file__).parent
_ROUTES = {
    "decoder": made_modules.decoder,
    "legalized": made_modules.legalized,
    "nn": made_modules.exported,
    "flat": made_modules.flat,
    "flat, near": partial(made_modules.flat, reach=32),
}
_PATIENCE = 15.0
PICTURE_BARS = {200: 0.3, 2_000: 0.5, 17_000: 1.5}


def main() -> None:
    """Run the parts that were asked for, all of them by default."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts: dict[str, Callable[[], None]] = {
        "sizes": sizes,
        "extraction": extraction,
        "memory": memory,
        "picture": first_picture,
        "opening": opening,
        "page": large_modules_page.measure,
    }
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(parts)}")
    options = parser.parse_args()
    unknown = set(options.parts) - set(parts)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(parts)}")
    heading("bar")
    for part in options.parts or parts:
        parts[part]()
    end()


def sizes() -> None:
    """Print what the modules have in them."""
    for route, make in _ROUTES.items():
        for bindings in (200, 1_000, 2_000, 4_000, 17_000):
            module = make(bindings)
            graph = irviz.graph(module, _function(module))
            print(
                f"{f'{route} {bindings:,}: bindings, nodes, edges':58} "
                f"{made_modules.bindings_of(module):9,} {len(graph.nodes):9,} {len(graph.edges):9,}"
            )


def extraction() -> None:
    """Measure `irviz.graph`, with all that it derives, beside TVM's own printing, in turns."""
    for route in ("decoder", "legalized", "nn"):
        times: dict[int, float] = {}
        counts: dict[int, int] = {}
        for bindings, rounds in ((1_000, 25), (4_000, 15), (17_000, 9)):
            module = _ROUTES[route](bindings)
            function = _function(module)
            reads, prints = [], []
            for _ in range(rounds + 1):
                forget()
                reads.append(_timed(partial(irviz.graph, module, function)))
                prints.append(_timed(module.script))
            ratios = [read / shown for read, shown in zip(reads[1:], prints[1:], strict=True)]
            times[bindings] = statistics.median(reads[1:])
            counts[bindings] = made_modules.bindings_of(module)
            against(f"{route} {bindings:,}: mod.script(), by TVM", prints[1:], "ms")
            against(f"{route} {bindings:,}: irviz.graph(mod)", reads[1:], "ms")
            against(f"{route} {bindings:,}: irviz.graph(mod) / mod.script()", ratios, "x", 0.5)
        grown = times[17_000] / times[4_000]
        more = counts[17_000] / counts[4_000]
        print(
            f"{f'{route}: 17,000 / 4,000, irviz.graph(mod)':58} {grown:6.2f} x"
            f"{'':22}{more:.2f} x as many bindings"
        )


def memory() -> None:
    """Measure what a graph takes, before and after all labels of its types were read."""
    for route, make in _ROUTES.items():
        for bindings in (1_000, 17_000):
            module = make(bindings)
            function = _function(module)
            gc.collect()
            tracemalloc.start()
            graph = irviz.graph(module, function)
            gc.collect()
            bare = tracemalloc.get_traced_memory()[0]
            for node in graph.nodes:
                assert node.type_label
            gc.collect()
            read = tracemalloc.get_traced_memory()[0]
            tracemalloc.stop()
            each = 1024 * len(graph.nodes)
            against(f"{route} {bindings:,}: Graph, a node", [bare / each], "KB", 2)
            against(f"{route} {bindings:,}: … its type labels read", [read / each], "KB", 2)


def first_picture() -> None:
    """Measure from a module in memory to its picture: in a new process, and later in a kernel.

    Nothing that irviz keeps, such as layouts, is there in either.
    """
    for bindings in PICTURE_BARS:
        seconds = _rounds(partial(_cold, bindings), 5)
        against(f"decoder {bindings:,}: first picture of a process", seconds, "ms")
    irviz.Session(made_modules.decoder(made_modules.BINDINGS)).draw()
    for route in ("decoder", "legalized", "flat", "flat, near"):
        for bindings, bar in PICTURE_BARS.items():
            if "flat" not in route or bindings < 17_000:
                seconds = _rounds(partial(_drawn, _ROUTES[route], bindings), 12)
                against(f"{route} {bindings:,}: picture of a new module", seconds, "ms", bar)


def _drawn(make: Callable[[int], ir.IRModule], bindings: int) -> float:
    module = make(bindings)
    forget()
    return _timed(lambda: irviz.Session(module).draw())


def _cold(bindings: int) -> float:
    code = f"""
import sys, time
sys.path.insert(0, {str(_BENCH)!r})
import irviz, made_modules
irviz.Session
module = made_modules.decoder({bindings})
start = time.perf_counter()
irviz.Session(module).draw()
print(time.perf_counter() - start)"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def opening() -> None:
    """Measure the opening of one group, from the choice to the SVG."""
    for route in ("decoder", "legalized", "flat", "flat, near"):
        session = irviz.Session(_ROUTES[route](17_000))
        look, group = _closed(session)
        opened = look.toggle(group, session.view(state=look).closable)
        seconds = _rounds(partial(_opened_first, session, look, opened), 15)
        nodes = len(session.view(state=opened).graph.nodes)
        what = f"{route} 17,000: open {group}, {nodes} nodes then"
        against(what, seconds, "ms", 0.15)


def _opened_first(session: irviz.Session, closed: ViewState, opened: ViewState) -> float:
    forget()
    _looked(session, closed)
    return _timed(partial(_looked, session, opened))


def _looked(session: irviz.Session, look: ViewState) -> None:
    found = stage_view(session.current, session.function, look)
    draw_graph(found.graph, openable=found.openable)


def _closed(session: irviz.Session) -> tuple[ViewState, str]:
    """Return a look at a picture that has a group in it, and that group."""
    first = session.view()
    look = ViewState()
    if not first.openable:
        look = look.toggle(sorted(first.closable)[-1], first.closable)
        first = session.view(state=look)
    return look, max(sorted(first.openable), key=lambda one: first.graph[one].size)


def _function(module: ir.IRModule) -> str:
    return irviz.Session(module).function


def _rounds(measure: Callable[[], float], most: int) -> list[float]:
    """Measure once in vain, and then so often, or for as long as there is patience."""
    measure()
    found: list[float] = []
    start = time.perf_counter()
    while len(found) < most and (len(found) < 3 or time.perf_counter() < start + _PATIENCE):
        found.append(measure())
    return found


def _timed(act: Callable[[], object]) -> float:
    gc.collect()
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
