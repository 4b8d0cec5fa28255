"""Matplotlib plots as SVG that can be embedded in a page and has the same bytes each time."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from irviz.view.figure import Figure
from irviz.view.svg_primitives import shorten
from irviz.view.theme import Theme, get_theme, page_stand_ins

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MplFigure

WIDTH = 380.0
MARGIN = 12.0
_LINE, _GAP = 17.0, 6.0

_UNITS_PER_INCH = 72  # matplotlib's resolution of SVG: a unit of the figure is one px then
_FONTS = ("DejaVu Sans", "Verdana", "Arial", "sans-serif")
"""The first is part of matplotlib, and none of the others is wider."""

_SETTINGS: dict[Any, object] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "irviz",
    "svg.image_inline": True,
    "font.family": "sans-serif",
    "font.sans-serif": _FONTS,
    "image.composite_image": False,  # composites are blurred
}
_NO_METADATA: dict[str, Any] = dict.fromkeys(("Creator", "Date", "Format", "Type"))
_HEAD = re.compile(r"^.*?<svg [^>]*>", re.DOTALL)
_ID = re.compile(r' id="[A-Za-z0-9.]+_[0-9]+"')
_RULES = re.compile(r"\s*<defs>\s*<style type=\"text/css\">[^<]*</style>\s*</defs>")


@dataclass(frozen=True, eq=False)
class MplCanvas:
    """A matplotlib figure of width WIDTH, with positions in px from its upper left corner."""

    figure: MplFigure
    theme: Theme
    height: float

    def axes(self, x: float, y: float, width: float, height: float) -> Axes:
        """Add a plot with its upper left corner at x, y."""
        box = self._box(x, y, width, height)
        axes = self.figure.add_axes(box, facecolor="none")
        axes.tick_params(
            colors=self.theme.quiet_text, labelsize=10, length=3, width=0.8, pad=3, which="both"
        )
        for spine in axes.spines.values():
            spine.set(color=self.theme.quiet_text, linewidth=0.8)
        return axes

    def write(self, x: float, y: float, text: str, **style: Any) -> None:
        """Write a line of text with its baseline at y."""
        merged = {"fontsize": 11, "color": self.theme.text, "parse_math": False, **style}
        self.figure.text(x / WIDTH, 1 - y / self.height, text, **merged)

    def square(self, x: float, y: float, side: float, colour: str) -> None:
        """Draw a square with its upper left corner at x, y."""
        from matplotlib.patches import Rectangle

        left, bottom, width, height = self._box(x, y, side, side)
        edge = self.theme.quiet_text
        square = Rectangle((left, bottom), width, height, facecolor=colour, edgecolor=edge, lw=0.8)
        self.figure.add_artist(square)

    def _box(
        self, x: float, y: float, width: float, height: float
    ) -> tuple[float, float, float, float]:
        """Return a box in matplotlib's shares of the figure, from its lower left corner."""
        bottom = 1 - (y + height) / self.height
        return (x / WIDTH, bottom, width / WIDTH, height / self.height)


class Heading(NamedTuple):
    """The lines above a plot: a title, "" for none, and remarks."""

    title: str
    remarks: tuple[str, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        """All lines."""
        return (self.title, *self.remarks) if self.title else self.remarks

    @property
    def text(self) -> str:
        """All lines in one."""
        return " ".join(self.lines)

    def draw(self, canvas: MplCanvas) -> None:
        """Write the lines at the top."""
        theme, y = canvas.theme, MARGIN + 11
        if self.title:
            canvas.write(MARGIN, y, self.title, weight="bold")
            y += _LINE
        for row, text in enumerate(self.remarks):
            canvas.write(MARGIN, y + _LINE * row, text, fontsize=10, color=theme.quiet_text)


def array_heading(
    shape: Sequence[int], dtype: str, title: str = "", notes: Sequence[str] = ()
) -> Heading:
    """Return the lines above a plot: a title, dtype and shape, and notes about the plot."""
    size = math.prod(shape)
    count = f", {size:,} numbers" if len(shape) > 1 else ""
    kind = f"{dtype} {tuple(shape) if shape else 'scalar'}{count}"
    return Heading(shorten(title), (kind, *notes))


def draw_with_matplotlib(
    heading: Heading,
    height: float,
    theme: str,
    label: str,
    paint: Callable[[MplCanvas, float], None],
) -> Figure:
    """Return a heading and the plot below it, without using or changing matplotlib's settings.

    Args:
        theme: A theme, or "page" for the page's own where `paint` takes no shades between colours.
        label: The picture's description for screen readers.
        paint: Draws the plot on the canvas that it gets, from a y downwards.
    """
    colours, meant = (get_theme(theme), {}) if theme != "page" else page_stand_ins()
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure as MplFigure

    top = MARGIN + _LINE * len(heading.lines) + _GAP
    total = top + height + MARGIN
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        inches = (WIDTH / _UNITS_PER_INCH, total / _UNITS_PER_INCH)
        figure = MplFigure(inches, dpi=_UNITS_PER_INCH, facecolor=colours.background)
        canvas = MplCanvas(figure, colours, total)
        heading.draw(canvas)
        paint(canvas, top)
        buffer = io.StringIO()
        FigureCanvasSVG(figure)
        figure.savefig(buffer, format="svg", metadata=_NO_METADATA)
    svg = _embeddable(buffer.getvalue(), WIDTH, total, label)
    for number, colour in meant.items():
        svg = svg.replace(number, colour)
    return Figure(svg, WIDTH, total)


def _embeddable(svg: str, width: float, height: float, label: str) -> str:
    """Return SVG without style rules or ids that would affect the page around it."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'class="irviz-drawing" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(label)}" '
        'style="stroke-linejoin: round; stroke-linecap: butt; max-width: 100%; height: auto">'
    )
    return _ID.sub("", _RULES.sub("", _HEAD.sub(lambda _: head, svg, count=1), count=1))
