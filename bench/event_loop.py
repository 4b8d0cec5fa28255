"""Measure how long messages wait in the kernel while the explorer works; end with 1 above the bar.

    python bench/event_loop.py

A timer of the kernel's event loop fires every 2 ms; it is late by as long as a message, such as one
that cancels, would have to wait. A full collection of Python's garbage takes 0.1 s, and is left to
idle times here, as `irviz open` does.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import tvm
from measurement_table import against, end, heading
from small_files import CONSTRUCTIONS
from tvm import ir

import irviz
from irviz.cli.page_server import collect_when_idle
from irviz.course.mlp import MyModule
from irviz.explorer.actions import Action, Apply, Cancel, Checkout, Compare, Look, Select, SetField
from irviz.explorer.explorer import Explorer
from irviz.session.session import Session
from irviz.transforms.passes.pass_transform import as_transform

_BAR = 0.05
_PERIOD = 0.002


@tvm.transform.module_pass(opt_level=0, name="Sleep")
def sleep(mod: ir.IRModule, _context: tvm.transform.PassContext) -> ir.IRModule:
    """Take 3 seconds."""
    time.sleep(3)
    return mod


def _tell(what: str, waits: list[float]) -> None:
    against(f"{what}, the longest", [max(waits)], "ms", _BAR)


class _Timer:
    """Fires again and again; `late` has by how many seconds."""

    def __init__(self) -> None:
        self.late: list[float] = []
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._fire())
        self._collecting = loop.create_task(collect_when_idle(time.monotonic))  # it is never idle

    async def _fire(self) -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(_PERIOD)
            self.late.append(time.perf_counter() - began - _PERIOD)

    async def latest(self, act: Callable[[], None], seconds: float) -> float:
        """Do something, and return by how many seconds the timer was late at most in this time."""
        await asyncio.sleep(0.5)
        self.late.clear()
        act()
        await asyncio.sleep(seconds)
        return max(self.late)


async def _passes() -> None:
    timer, explorer = _Timer(), Explorer(Session(MyModule))
    await asyncio.sleep(3)
    apply = Apply(as_transform(sleep))
    late = [await timer.latest(lambda: explorer.dispatch(apply), 4) for _ in range(3)]
    _tell("a pass of 3 s: messages wait", late)
    cancels = []
    for _ in range(5):
        explorer.dispatch(apply)
        await asyncio.sleep(1)
        began = time.perf_counter()
        explorer.dispatch(Cancel())
        cancels.append(time.perf_counter() - began)
    _tell("Cancel", cancels)
    assert len(explorer.session.stages) == 1 + len(late), "what is cancelled leaves no stage"
    explorer.close()


async def _works(name: str, file: Path) -> None:
    timer, explorer = _Timer(), Explorer(irviz.load(file))
    await asyncio.sleep(3)
    node = explorer.session.graph().nodes[3].id
    wanted: dict[str, Action] = {
        "show the text": SetField("has_script", True),
        "select a node": Select(node, "current"),
        "search": SetField("search", "exp"),
        "apply LegalizeOps": Apply(as_transform("LegalizeOps")),
        "choose a stage": Look(Checkout("0")),
        "choose another": Look(Checkout("1")),
        "compare": Look(Compare("0")),
    }
    for what, action in wanted.items():
        late = await timer.latest(lambda one=action: explorer.dispatch(one), 6)  # type: ignore[misc]
        _tell(f"{name}: {what}", [late])
    explorer.close()


def main() -> None:
    """Measure a pass that sleeps, and modules that were made to be large."""
    heading("bar")
    asyncio.run(_passes())
    with TemporaryDirectory() as folder:
        for name in ("chain", "calls_thirty_times", "nested_ifs"):
            file = Path(folder, f"{name}.py")
            file.write_text(CONSTRUCTIONS[name](), encoding="utf-8")
            asyncio.run(_works(name, file))
            gc.collect()  # else it is freed while the next file is measured
    end()


if __name__ == "__main__":
    main()
