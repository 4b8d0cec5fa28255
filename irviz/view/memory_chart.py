"""The memory of a run, step by step: a curve of the sum, and a bar for each buffer."""

from __future__ import annotations

import math
from xml.etree import ElementTree

from irviz.model.runs.memory_timeline import Allocation, MemoryUse, storage_offsets
from irviz.units import format_bytes
from irviz.view import svg_primitives as svg
from irviz.view.figure import Figure
from irviz.view.graph.node_labels import VALUE_SIZE
from irviz.view.svg_primitives import Rect, Size
from irviz.view.theme import get_theme

_LEFT, _RIGHT, _TOP, _GAP = 78.0, 22.0, 62.0, 40.0
_CURVE_HEIGHT, _BARS_HEIGHT = 110.0, 300.0
_MIN_WIDTH, _MAX_WIDTH, _STEP_WIDTH = 520.0, 1180.0, 44.0
_MIN_NAMED_STEP = 15.0
"""The width of a step from which on its name is written below it."""
_FONT_SIZE = 10.0
_MAX_NAME = 22
_TICKS = 4


def memory_chart(use: MemoryUse, theme: str = "course") -> Figure:
    """Draw the memory held at each step.

    The curve above is the sum, with a mark at its peak. Below, each storage is a dashed frame from
    the step that allocates it to the step that frees it, at an address where it would fit, and the
    buffers in it are bars.

    Raises:
        DrawError: For an unknown theme.
    """
    return _MemoryChart(use, theme).draw()


class _MemoryChart:
    """The parts of the chart; x is by step, y by bytes."""

    def __init__(self, use: MemoryUse, theme: str) -> None:
        self._use, self._theme = use, get_theme(theme)
        self._offsets = storage_offsets(use.storages)
        ends = [at + one.nbytes for at, one in zip(self._offsets, use.storages, strict=True)]
        self._top, self._peak = max([1, *ends]), max(use.peak, 1)
        count = max(len(use.steps), 1)
        self._width = min(max(_MIN_WIDTH, count * _STEP_WIDTH), _MAX_WIDTH)
        self._step = self._width / count
        self._names = [svg.shorten(one.name)[:_MAX_NAME] for one in use.steps]
        below = 26.0
        if self._step >= _MIN_NAMED_STEP:
            below += max((svg.text_width(name, _FONT_SIZE) for name in self._names), default=0.0)
        height = _TOP + _CURVE_HEIGHT + _GAP + _BARS_HEIGHT + below if use.steps else 2 * _TOP
        self._size = Size(_LEFT + self._width + _RIGHT, height)
        self._root = svg.svg_document(
            self._size, "memory", f"memory of {use.function}", self._theme
        )

    def draw(self) -> Figure:
        use = self._use
        if use.steps:
            self._draw_axes()
            self._draw_curve()
        for storage, offset in zip(use.storages, self._offsets, strict=True):
            tooltip = f"{storage.name}: {format_bytes(storage.nbytes)}"
            rect = self._rect(storage.start, storage.stop, offset, storage.nbytes)
            self._draw_bar("storage", rect, tooltip)
        for buffer in use.allocations:
            self._draw_buffer(buffer)
        if use.peak_step is None:
            self._write("nothing runs", _LEFT, _TOP, "start")
        else:
            self._draw_peak(use.peak_step)
            self._draw_steps()
        return Figure(svg.svg_text(self._root), self._size.width, self._size.height)

    def _x(self, step: float) -> float:
        return _LEFT + step * self._step

    def _curve_y(self, nbytes: float) -> float:
        return _TOP + _CURVE_HEIGHT * (1 - nbytes / self._peak)

    def _bar_y(self, offset: float) -> float:
        return _TOP + _CURVE_HEIGHT + _GAP + _BARS_HEIGHT * (1 - offset / self._top)

    def _rect(self, start: int, stop: int, offset: int, nbytes: int) -> Rect:
        """Return the rectangle of memory held from step `start` until before `stop`."""
        left, right = self._x(start), self._x(max(stop, start))
        top, bottom = self._bar_y(offset + nbytes), self._bar_y(offset)
        return Rect(left, top, max(right, left + 1.0), max(bottom, top + 0.8))

    def _write(
        self, text: str, x: float, y: float, anchor: str, *, is_quiet: bool = False
    ) -> ElementTree.Element:
        colour = self._theme.quiet_text if is_quiet else self._theme.text
        return svg.add_text(self._root, text, (x, y), _FONT_SIZE, colour, anchor)

    def _draw_axes(self) -> None:
        """Draw the titles, and the lines that sizes are read at."""
        end = self._x(len(self._use.steps))
        for title, highest, to_y, space in (
            ("held while each step runs", self._peak, self._curve_y, 44),  # above the peak's text
            ("buffers, by their place in memory", self._top, self._bar_y, 12),
        ):
            self._write(title, _LEFT, to_y(highest) - space, "start", is_quiet=True)
            for tick in _ticks(highest):
                y = to_y(tick)
                line, width = svg.path("M", _LEFT, y, "H", end), 0.6 if tick else 1.2
                stroke = self._theme.block_line
                svg.add(self._root, "path", "grid", d=line, stroke=stroke, stroke_width=width)
                self._write(format_bytes(tick), _LEFT - 8, y + 3.5, "end", is_quiet=True)

    def _draw_curve(self) -> None:
        fill, stroke = self._theme.colours["memory"]
        steps: list[str | float] = ["M", self._x(0), self._curve_y(0)]
        for index, nbytes in enumerate(self._use.live):
            steps += ["V", self._curve_y(nbytes), "H", self._x(index + 1)]
        curve = svg.path(*steps, "V", self._curve_y(0), "Z")
        svg.add(self._root, "path", "live", d=curve, fill=fill, stroke=stroke, stroke_width=1.4)

    def _draw_peak(self, step: int) -> None:
        """Mark the first step at the peak."""
        x, colour = self._x(step + 0.5), self._theme.flag
        group = svg.add(self._root, "g", "peak")
        line = {"d": svg.path("M", x, _TOP - 8, "V", self._bar_y(0)), "stroke": colour}
        svg.add(group, "path", **line, stroke_width=1.4, stroke_dasharray="5 3")
        name = svg.shorten(self._use.steps[step].name)
        text = f"peak {format_bytes(self._use.peak)} at step {step}, {name}"
        half = svg.text_width(text, VALUE_SIZE) / 2
        last = max(self._size.width - 4 - half, _LEFT + half)
        middle = min(max(x, _LEFT + half), last)
        svg.add_text(group, text, (middle, _TOP - 16), VALUE_SIZE, colour, font_weight="600")

    def _draw_bar(self, kind: str, rect: Rect, tooltip: str) -> ElementTree.Element:
        """Draw a storage or a buffer; return the group."""
        is_buffer = kind == "buffer"
        fill, stroke = self._theme.colours["memory" if is_buffer else "quiet"]
        style: dict[str, str | float] = {
            "fill": fill if is_buffer else self._theme.block_fill,
            "stroke": stroke,
            "stroke_width": 1 if min(rect.width, rect.height) > 4 else 0.5,
            **({} if is_buffer else {"stroke_dasharray": "3 2"}),
        }
        group = svg.add(self._root, "g", kind)
        svg.add_tooltip(group, tooltip)
        svg.add_rect(group, rect, **style)
        return group

    def _draw_buffer(self, buffer: Allocation) -> None:
        """Draw a buffer, with its name and size if there is space for them."""
        size, storage = format_bytes(buffer.nbytes), self._use.storages[buffer.storage]
        last = max(buffer.stop - 1, buffer.start)
        steps = f"step {last}" if last == buffer.start else f"steps {buffer.start} to {last}"
        tooltip = f"{buffer.name}: {size}, in {storage.name}\n{steps}"
        offset = self._offsets[buffer.storage]
        rect = self._rect(buffer.start, buffer.stop, offset, buffer.nbytes)
        group = self._draw_bar("buffer", rect, tooltip)
        if buffer.node is not None:
            group.set("data-node", svg.printable(buffer.node))
        name = svg.shorten(buffer.name)
        for text in (f"{name} {size}", name):
            if svg.text_width(text, _FONT_SIZE) + 6 <= rect.width and rect.height >= _FONT_SIZE + 1:
                x, y = rect.centre
                svg.add_text(group, text, (x, y + 3.5), _FONT_SIZE, self._theme.text)
                return

    def _draw_steps(self) -> None:
        """Name the steps below the bars, or number some of them if they are too narrow."""
        y, count = self._bar_y(0), len(self._use.steps)
        if self._step >= _MIN_NAMED_STEP:
            for index, (name, step) in enumerate(zip(self._names, self._use.steps, strict=True)):
                x = self._x(index + 0.5) + 3.5
                mark = self._write(name, x, y + 8, "end")
                mark.set("transform", f"rotate(-90 {svg.px(x)} {svg.px(y + 8)})")
                made = f", which makes {step.node}" if step.node else ""
                svg.add_tooltip(mark, f"step {index}: {step.name}{made}")
            return
        for index in _ticks(count):
            if index < count:
                self._write(str(index), self._x(index), y + 14, "middle", is_quiet=True)
        self._write(f"{count:,} steps", self._x(count), y + 26, "end", is_quiet=True)


def _ticks(highest: int) -> list[int]:
    """Return a few round numbers from 0 to the highest; bytes are counted in powers of 1,024."""
    unit = 1 << (10 * int(math.log(highest, 1024))) if highest >= 1024 else 1
    rough = highest / unit / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    each = next((digit * power for digit in (1, 2, 5) if digit * power >= rough), 10 * power)
    count = int(highest / unit / each + 1e-9) + 1
    return sorted({round(index * each * unit) for index in range(count)})
