"""The loop nest of a PrimFunc as HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irviz.model.loop_nest import AxisKind, Loop, LoopKind, LoopNest
from irviz.view.templating import render

if TYPE_CHECKING:
    from markupsafe import Markup

LOOP_KIND_NAMES: dict[LoopKind, str] = {
    LoopKind.SERIAL: "",  # the usual kind
    LoopKind.PARALLEL: "parallel",
    LoopKind.VECTORIZED: "vectorized",
    LoopKind.UNROLLED: "unrolled",
    LoopKind.THREAD_BINDING: "thread",
}
assert LOOP_KIND_NAMES.keys() == set(LoopKind), "every kind of loop has a name"

AXIS_KIND_NAMES: dict[AxisKind, str] = {
    AxisKind.SPATIAL: "spatial (S)",
    AxisKind.REDUCTION: "reduction (R)",
    **{kind: kind.value for kind in AxisKind if kind not in (AxisKind.SPATIAL, AxisKind.REDUCTION)},
}


def loop_nest_html(nest: LoopNest) -> Markup:
    """Show the parameters and buffers of a PrimFunc, and its loops, blocks and statements."""
    return render(
        "loop_nest",
        nest=nest,
        axis_kinds=AXIS_KIND_NAMES,
        loop_notes=_loop_notes,
    )


def _loop_notes(loop: Loop) -> str:
    notes = [*(kind.value for kind in loop.axes), LOOP_KIND_NAMES[loop.kind], loop.thread]
    notes += [f"{key} = {value}" for key, value in loop.annotations]
    return " · ".join(note for note in notes if note)
