"""The value of the selected node: facts, pictures, and access to the full value."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

import ipywidgets as widgets

from irviz.explorer import actions
from irviz.explorer.background_runner import Job
from irviz.explorer.panels.panel import Panel, classed, field, html, offer, paragraph, show_if
from irviz.explorer.selected_node import ShownValue, selected_trace, selected_value
from irviz.explorer.state import State
from irviz.explorer.store import Store
from irviz.ir.module_functions import prim_funcs
from irviz.model.runs.array_diff import ArraySummary
from irviz.model.runs.execution_trace import Array, NodeValue, Trace
from irviz.units import format_duration
from irviz.view.array_pictures import images_shape, most_images, sliced_sides
from irviz.view.figure import Figure
from irviz.view.graph.graphviz_engine import ENGINE
from irviz.view.node_details import value_html
from irviz.view.value_charts import HEAT_MAP, HISTOGRAM, IMAGES, draw_chart, fitting_charts
from irviz.worker.supervisor import Worker, WorkerError

_WAIT_SECONDS = 0.03
"""How long the kernel waits for a picture: most take less, and the page does not flicker then."""
_UNSAFE = re.compile(r"[^\w.-]+")
"""Characters to avoid in file names."""


class ValuePanel(Panel):
    """Shows the value of the selected node in numbers and pictures, and saves pictures.

    The user's last choices, a tensor of a tuple or a kind of picture, are kept from node to node if
    they fit. `engine` draws in its own process, because a thread shares Matplotlib's settings with
    the user.
    """

    def __init__(self, store: Store, engine: Worker = ENGINE) -> None:
        super().__init__(store)
        self._engine = engine
        self._known, self._value = ShownValue(), NodeValue()
        self._theme = "course"
        self._tensor, self._kind, self._wanted = 0, "", ""  # wanted: what the reader chose last
        self._drawing: Figure | None = None
        self._drawn = ""  # the label of the node that the picture is of
        self._facts, self._picture = html("irviz-value-facts"), html("irviz-value-picture")
        self._tensors = field(widgets.Dropdown, "irviz-value-tensor", "tensor", is_aligned=True)
        self._kinds = field(widgets.Dropdown, "irviz-value-kind", "picture", is_aligned=True)
        self._places = widgets.VBox()
        self._whole = self.button(
            "Fetch whole value",
            "Run again and keep this value",
            actions.FetchValue(),
            "download",
        )
        self._file = ""
        self._saving = self.button(
            "Save SVG", "Save this picture of the value", self._save, "download"
        )
        self.on_change(self._tensors, self._choose_tensor, "index")
        self.on_change(self._kinds, self._choose_kind)
        chosen = [self._tensors, self._whole, self._kinds, self._places]
        parts = [self._facts, *chosen, self._picture, self._saving]
        self.widget = classed(widgets.VBox(parts), "irviz-value")

    def _parts(self, state: State) -> tuple[object, ...]:
        shown = selected_value(state)
        return shown.value, shown.label, shown.words, state.is_dark

    def _show(self, state: State) -> None:
        """Show the value, unless it is already shown."""
        before, theme = (self._known, self._theme), "dark" if state.is_dark else "course"
        self._known, self._theme = selected_value(state), theme
        self._value = self._known.value or NodeValue()
        is_same = (self._known.label, theme) == (before[0].label, before[1])
        if self._known.label != before[0].label or self._tensor >= len(self._value.summaries):
            self._tensor = 0
        if is_same and self._known.value is not None and self._known.value is before[0].value:
            self._show_facts()
        else:
            self._show_value()

    @property
    def _summary(self) -> ArraySummary | None:
        """The statistics of the chosen tensor; None if the value is not a tensor."""
        summaries = self._value.summaries
        return summaries[self._tensor] if summaries else None

    @property
    def _array(self) -> Array | None:
        """The chosen tensor, if it was kept or fetched."""
        arrays = self._value.arrays
        return arrays[self._tensor] if self._tensor < len(arrays) else None

    @property
    def _is_left_out(self) -> bool:
        return self._summary is not None and self._summary.nbytes > 0 and self._array is None

    def _show_value(self) -> None:
        """Update all controls from the choices, and draw."""
        show_if(self.widget, self._known.value is not None or bool(self._known.words))
        summaries = enumerate(self._value.summaries)
        names = [f"{place}: {one.dtype} {one.shape}" for place, one in summaries]
        if names:
            offer(self._tensors, names, names[self._tensor])
        show_if(self._tensors, len(names) > 1)
        show_if(self._whole, self._is_left_out)
        kinds = self._fitting()
        self._kind = self._wanted if self._wanted in kinds else next(iter(kinds), "")
        if kinds:
            offer(self._kinds, kinds, self._kind)
        show_if(self._kinds, len(kinds) > 1)
        self._show_facts()
        self._show_kind()

    def _show_facts(self) -> None:
        left_out = "It is too large to be kept; its numbers are known." if self._is_left_out else ""
        words = " ".join(filter(None, (self._known.words, left_out)))
        facts = value_html(self._known.label, self._summary, self._value.text, words)
        self._facts.value = facts

    def _show_kind(self) -> None:
        """Show the options of a kind of picture, suggest a file name, and draw it."""
        boxes = _places(self._kind, self._summary.shape if self._summary is not None else ())
        for box in boxes:
            box.observe(lambda _: self._draw(), "value")
        self._places.children = boxes
        name = _UNSAFE.sub("-", self._known.label).strip("-.") or "value"
        self._file = f"{name}-{self._kind.replace(' ', '-')}.svg"
        self._draw()

    def _fitting(self) -> tuple[str, ...]:
        """Return the pictures that can be drawn now."""
        summary = self._summary
        if summary is None:
            return ()
        return tuple(
            kind
            for kind in fitting_charts(summary.shape)
            if (summary.counts if kind == HISTOGRAM else self._array is not None)
        )

    def _draw(self) -> None:
        """Draw the picture; until it is there, one of the same node may stay."""
        summary = self._summary
        self._drawing = None
        if summary is None or not self._kind:
            self._store.runner.drop(self)
            self._show_picture("")
            return
        if self._drawn != self._known.label:
            self._show_picture("")
        draw = partial(draw_chart, self._kind, self._array, summary, self._theme)
        index, title = self._index(summary.shape), self._known.label
        work = partial(_drawn, self._engine, partial(draw, index=index, title=title))
        self._store.runner.replace(self, work, self._show_picture, wait=_WAIT_SECONDS)

    def _show_picture(self, drawing: Figure | str) -> None:
        """Show a picture, or why there is none."""
        self._drawing = drawing if isinstance(drawing, Figure) else None
        self._drawn = self._known.label
        self._picture.value = (
            drawing.svg if isinstance(drawing, Figure) else paragraph(drawing, "irviz-error")
        )
        show_if(self._saving, self._drawing is not None)

    def _index(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the chosen slice or image; dimensions of size 1 have no control."""
        chosen = iter(int(box.value) for box in self._places.children)
        if self._kind != HEAT_MAP:
            return tuple(chosen)
        return tuple(next(chosen) if side > 1 else 0 for side in sliced_sides(shape).values())

    def _choose_tensor(self, place: int | None) -> None:
        if place is not None:
            self._tensor = place
            with self.setting_traits():
                self._show_value()

    def _choose_kind(self, kind: str | None) -> None:
        if kind is not None:
            self._kind = self._wanted = kind
            self._show_kind()

    def _save(self) -> actions.Action | None:
        return actions.SaveDrawing(self._drawing, self._file) if self._drawing else None


_NO_VALUES = (
    "Inside a PrimFunc no values are recorded and nothing is replaced: select a call of it in a "
    "Relax function."
)


class RecordButton(Panel):
    """Records the values at every node of the current stage, and shows what that cost."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._record = self.button(
            "Record values",
            "Run once more and keep the value at every node",
            actions.RecordValues(),
            "eye",
            "irviz-record",
        )
        self._cost = html("irviz-record-cost")
        self.widget = widgets.VBox([self._record, self._cost])

    def _show(self, state: State) -> None:
        show_if(self._record, state.can_record(state.stage_id))
        words = _cost_words(selected_trace(state))
        if state.function in prim_funcs(state.stage.module):
            words = _NO_VALUES
        self._cost.value = paragraph(words, "irviz-hint")


def _drawn(engine: Worker, draw: Callable[[], Figure], _: Job) -> Figure | str:
    """Draw in the engine's process; return why if it cannot."""
    try:
        return engine.call(draw, answer=Figure)
    except (ValueError, WorkerError) as failure:
        return str(failure)


def _places(kind: str, shape: Sequence[int]) -> tuple[widgets.BoundedIntText, ...]:
    """Return controls for what one picture does not show: slices, or further images."""
    if kind == IMAGES:
        images = images_shape(shape)
        if images is None or images[0] <= most_images(*images[1:3]):
            return ()
        return (_number(f"first image (0 to {images[0] - 1:,})", images[0]),)
    sliced = sliced_sides(shape) if kind == HEAT_MAP else {}
    return tuple(
        _number(f"index {axis} (0 to {side - 1:,})", side)
        for axis, side in sliced.items()
        if side > 1
    )


def _number(words: str, count: int) -> widgets.BoundedIntText:
    return field(widgets.BoundedIntText, "irviz-value-index", words, min=0, max=count - 1)


def _cost_words(trace: Trace | None) -> str:
    """Describe the cost of recording a trace, "" without one; both times are of recorded calls."""
    if trace is None:
        return ""
    call, cost = format_duration(trace.seconds), format_duration(trace.cost)
    values = len(trace.visits)
    return f"{values} values recorded: a call takes {call}, and recording it takes {cost} more"
