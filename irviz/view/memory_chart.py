"""What a run holds, step by step, as a picture: a curve above, and each buffer as a bar below."""

from __future__ import annotations

import math
from dataclasses import dataclass
from xml.etree import ElementTree

from irviz.model.memory import Allocation, MemoryUse, bytes_text, places
from irviz.view import label
from irviz.view.drawing import Drawing
from irviz.view.element import number, text
from irviz.view.style import Theme, theme_of

_FONT = "Menlo, Consolas, 'DejaVu Sans Mono', monospace"
_LEFT, _RIGHT, _TOP, _GAP = 78.0, 22.0, 62.0, 40.0
_CURVE_HEIGHT, _BARS_HEIGHT = 110.0, 300.0
_LEAST_WIDTH, _MOST_WIDTH, _STEP_WIDTH = 520.0, 1180.0, 44.0
_NAMED_STEP = 15.0
"""How wide a step has to be for its name to stand below it."""
_NAME_SIZE = 10.0
_LONGEST = 22
_TICKS = 4
_ROUND = (1, 2, 5)


@dataclass(frozen=True)
class _Scale:
    """Places in px: of a step along the picture, of a number of bytes from a base line up."""

    step: float
    bars: float
    curve: float

    def x(self, step: float) -> float:
        return _LEFT + step * self.step

    def bar_y(self, place: float) -> float:
        return _TOP + _CURVE_HEIGHT + _GAP + _BARS_HEIGHT - place * self.bars

    def curve_y(self, nbytes: float) -> float:
        return _TOP + _CURVE_HEIGHT - nbytes * self.curve


def memory_chart(use: MemoryUse, theme: str = "course") -> Drawing:
    """Draw what is held at each step; raise ValueError for an unknown theme.

    The curve above is the sum, with the peak marked. Below, each storage is a frame from the step
    it is allocated at to the one it is let go behind, at a place in memory where it would fit, and
    the buffers that stand in it are bars. A colour has no meaning but to tell neighbours apart.
    """
    colours = theme_of(theme)
    count = max(len(use.steps), 1)
    width = min(max(_LEAST_WIDTH, count * _STEP_WIDTH), _MOST_WIDTH)
    step = width / count
    found = places(use.storages)
    top = max((p + s.nbytes for p, s in zip(found, use.storages, strict=True)), default=0)
    scale = _Scale(step, _BARS_HEIGHT / max(top, 1), _CURVE_HEIGHT / max(use.peak, 1))
    names = [label.shortened(one.name)[:_LONGEST] for one in use.steps]
    below = 26.0
    if step >= _NAMED_STEP:
        below += max((label.width(name, _NAME_SIZE) for name in names), default=0.0)
    height = _TOP + _CURVE_HEIGHT + _GAP + _BARS_HEIGHT + below if use.steps else 2 * _TOP
    size = (_LEFT + width + _RIGHT, height)
    root = _root(use, size, colours)
    if use.steps:
        _draw_axes(root, use, scale, max(top, 1), colours)
        _draw_curve(root, use, scale, colours)
    for storage, place in zip(use.storages, found, strict=True):
        words = f"{storage.name}: {bytes_text(storage.nbytes)}"
        box = (storage.start, storage.stop, place, storage.nbytes)
        _draw_box(root, box, scale, "storage", words, colours)
    for one in use.allocations:
        _draw_buffer(root, use, one, found[one.storage], scale, colours)
    _draw_peak(root, use, scale, colours)
    if use.steps:
        _draw_steps(root, use, names, scale, colours)
    svg = ElementTree.tostring(root, encoding="unicode") + "\n"
    return Drawing(svg, *size)


def _root(use: MemoryUse, size: tuple[float, float], theme: Theme) -> ElementTree.Element:
    width, height = map(number, size)
    root = ElementTree.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "class": "irviz memory",
            "width": width,
            "height": height,
            "viewBox": f"0 0 {width} {height}",
            "role": "img",
            "aria-label": label.printable(f"memory of {use.function}"),
            "font-family": _FONT,
        },
    )
    paper = {"class": "paper", "width": "100%", "height": "100%", "fill": theme.background}
    ElementTree.SubElement(root, "rect", paper)
    return root


def _draw_axes(
    root: ElementTree.Element, use: MemoryUse, scale: _Scale, top: int, theme: Theme
) -> None:
    """Draw the lines that sizes are read at."""
    end = scale.x(max(len(use.steps), 1))
    for title, highest, place in (
        ("held while each step runs", max(use.peak, 1), scale.curve_y),
        ("buffers, by their place in memory", top, scale.bar_y),
    ):
        above = 44 if place == scale.curve_y else 12  # the words of the peak stand between
        _write(root, title, (_LEFT, place(highest) - above), "start", theme.quiet_text)
        for tick in _ticks(highest):
            y = place(tick)
            line = {"d": f"M{number(_LEFT)},{number(y)}H{number(end)}", "stroke": theme.block_line}
            line["stroke-width"] = "0.6" if tick else "1.2"
            ElementTree.SubElement(root, "path", {"class": "grid", **line})
            _write(root, bytes_text(tick), (_LEFT - 8, y + 3.5), "end", theme.quiet_text)


def _draw_curve(root: ElementTree.Element, use: MemoryUse, scale: _Scale, theme: Theme) -> None:
    """Draw what is held."""
    fill, stroke = theme.colours["memory"]
    path = f"M{number(scale.x(0))},{number(scale.curve_y(0))}"
    for index, held in enumerate(use.live):
        path += f"V{number(scale.curve_y(held))}H{number(scale.x(index + 1))}"
    path += f"V{number(scale.curve_y(0))}Z"
    curve = {"class": "live", "d": path, "fill": fill, "stroke": stroke, "stroke-width": "1.4"}
    ElementTree.SubElement(root, "path", curve)


def _draw_peak(root: ElementTree.Element, use: MemoryUse, scale: _Scale, theme: Theme) -> None:
    """Mark the first step at which the most is held."""
    if use.peak_step is None:
        _write(root, "nothing runs", (_LEFT, _TOP), "start", theme.text)
        return
    middle = scale.x(use.peak_step + 0.5)
    bottom = scale.bar_y(0)
    line = {
        "d": f"M{number(middle)},{number(_TOP - 8)}V{number(bottom)}",
        "stroke": theme.flag,
        "stroke-width": "1.4",
        "stroke-dasharray": "5 3",
    }
    group = ElementTree.SubElement(root, "g", {"class": "peak"})
    ElementTree.SubElement(group, "path", line)
    name = label.shortened(use.steps[use.peak_step].name)
    words = f"peak {bytes_text(use.peak)} at step {use.peak_step}, {name}"
    half = label.width(words, label.VALUE_SIZE) / 2
    end = scale.x(len(use.steps))
    place = min(max(middle, _LEFT + half), max(end + _RIGHT - 4 - half, _LEFT + half))
    mark = text(group, words, (place, _TOP - 16), label.VALUE_SIZE, theme.flag)
    mark.set("font-weight", "600")


def _draw_box(
    root: ElementTree.Element,
    box: tuple[int, int, int, int],
    scale: _Scale,
    kind: str,
    words: str,
    theme: Theme,
) -> tuple[ElementTree.Element, float, float, float, float]:
    """Draw what is held from a step to another at a place; return the group and its rectangle."""
    start, stop, place, nbytes = box
    left, right = scale.x(start), scale.x(max(stop, start))
    y = scale.bar_y(place + nbytes)
    width, height = max(right - left, 1.0), max(nbytes * scale.bars, 0.8)
    fill, stroke = theme.colours["memory" if kind == "buffer" else "quiet"]
    shape = {
        "x": number(left),
        "y": number(y),
        "width": number(width),
        "height": number(height),
        "fill": fill if kind == "buffer" else theme.block_fill,
        "stroke": stroke,
        "stroke-width": "1" if min(width, height) > 4 else "0.5",
    }
    if kind == "storage":
        shape["stroke-dasharray"] = "3 2"
    group = ElementTree.SubElement(root, "g", {"class": kind})
    ElementTree.SubElement(group, "title").text = label.printable(words)
    ElementTree.SubElement(group, "rect", shape)
    return group, left, y, width, height


def _draw_buffer(
    root: ElementTree.Element,
    use: MemoryUse,
    one: Allocation,
    place: int,
    scale: _Scale,
    theme: Theme,
) -> None:
    """Draw a buffer, with its name and size where there is room for these."""
    size = bytes_text(one.nbytes)
    words = f"{one.name}: {size}, in {use.storages[one.storage].name}\n{_when(one)}"
    box = (one.start, one.stop, place, one.nbytes)
    group, x, y, width, height = _draw_box(root, box, scale, "buffer", words, theme)
    if one.node is not None:
        group.set("data-node", label.printable(one.node))
    name = label.shortened(one.name)
    middle = (x + width / 2, y + height / 2 + 3.5)
    for line in (f"{name} {size}", name):
        if label.width(line, _NAME_SIZE) + 6 <= width and height >= _NAME_SIZE + 1:
            text(group, line, middle, _NAME_SIZE, theme.text)
            return


def _draw_steps(
    root: ElementTree.Element, use: MemoryUse, names: list[str], scale: _Scale, theme: Theme
) -> None:
    """Name the steps below, or number some of them where there are too many."""
    y = scale.bar_y(0)
    count = len(use.steps)
    if scale.step >= _NAMED_STEP:
        for index, (name, step) in enumerate(zip(names, use.steps, strict=True)):
            place = (scale.x(index + 0.5) + 3.5, y + 8)
            mark = _write(root, name, place, "end", theme.text)
            mark.set("transform", f"rotate(-90 {number(place[0])} {number(place[1])})")
            full = f"step {index}: {step.name}" + (f", which makes {step.node}" * bool(step.node))
            ElementTree.SubElement(mark, "title").text = label.printable(full)
        return
    for index in _ticks(count):
        if index < count:
            _write(root, str(index), (scale.x(index), y + 14), "middle", theme.quiet_text)
    _write(root, f"{count:,} steps", (scale.x(count), y + 26), "end", theme.quiet_text)


def _when(one: Allocation) -> str:
    last = max(one.stop - 1, one.start)
    return f"step {one.start}" if last == one.start else f"steps {one.start} to {last}"


def _ticks(highest: int) -> list[int]:
    """Return a few round numbers from 0 to the highest."""
    if highest >= 1024:  # bytes are counted by powers of two
        unit = 1 << (10 * int(math.log(highest, 1024)))
        return [round(one * unit) for one in _round_numbers(highest / unit)]
    return sorted({round(one) for one in _round_numbers(highest)})


def _round_numbers(highest: float) -> list[float]:
    power = 10.0 ** math.floor(math.log10(highest / _TICKS))
    each = next(
        (digit * power for digit in _ROUND if digit * power >= highest / _TICKS), 10 * power
    )
    return [index * each for index in range(int(highest / each + 1e-9) + 1)]


def _write(
    root: ElementTree.Element, words: str, place: tuple[float, float], anchor: str, fill: str
) -> ElementTree.Element:
    mark = text(root, words, place, _NAME_SIZE, fill)
    mark.set("text-anchor", anchor)
    return mark
