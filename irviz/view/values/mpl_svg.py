"""Matplotlib plots as SVG that can be embedded in a page and has the same bytes each time."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from irviz.view.figure import Figure
from irviz.view.svg_primitives import shorten
from irviz.view.theme import Theme, get_theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MplFigure

WIDTH = 380.0
MARGIN = 12.0
_LINE, _GAP = 17.0, 6.0

Lines = tuple[tuple[str, bool], ...]
"""Lines of text, each with whether it is the title."""

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
    """A matplotlib figure with positions in px from its upper left corner."""

    figure: MplFigure
    theme: Theme
    width: float
    height: float

    def axes(self, x: float, y: float, width: float, height: float) -> Axes:
        """Add a plot with its upper left corner at x, y."""
        box = (
            x / self.width,
            1 - (y + height) / self.height,
            width / self.width,
            height / self.height,
        )
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
        self.figure.text(x / self.width, 1 - y / self.height, text, **merged)

    def write_heading(self, lines: Lines) -> float:
        """Write the lines at the top; return where the contents begin below them."""
        for row, (text, is_title) in enumerate(lines):
            weight = "bold" if is_title else "normal"
            colour = self.theme.text if is_title else self.theme.quiet_text
            y = MARGIN + _LINE * row + 11
            self.write(
                MARGIN, y, text, weight=weight, color=colour, fontsize=11 if is_title else 10
            )
        return content_top(lines)

    def square(self, x: float, y: float, side: float, colour: str) -> None:
        """Draw a square with its upper left corner at x, y."""
        from matplotlib.patches import Rectangle

        corner = (x / self.width, 1 - (y + side) / self.height)
        size = (side / self.width, side / self.height)
        edge = self.theme.quiet_text
        self.figure.add_artist(Rectangle(corner, *size, facecolor=colour, edgecolor=edge, lw=0.8))


def content_top(lines: Lines) -> float:
    """Return where the contents begin below the lines at the top."""
    return MARGIN + _LINE * len(lines) + _GAP


def heading_lines(
    shape: Sequence[int], dtype: str, title: str = "", notes: Sequence[str] = ()
) -> Lines:
    """Return the lines above a plot: a title, dtype and shape, and notes about the plot."""
    size = math.prod(shape)
    count = f", {size:,} numbers" if len(shape) > 1 else ""
    kind = f"{dtype} {'scalar' if not shape else tuple(shape)}{count}"
    lines = [(shorten(title), True)] if title else []
    return (*lines, (kind, False), *((note, False) for note in notes))


def draw_with_matplotlib(
    width: float, height: float, theme: str, label: str, paint: Callable[[MplCanvas], None]
) -> Figure:
    """Return the picture that `paint` draws, without using or changing matplotlib's settings.

    Args:
        label: The picture's description for screen readers.
        paint: Draws on the canvas that it gets.

    Raises:
        DrawError: For an unknown theme.
    """
    colours = get_theme(theme)
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure as MplFigure

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        inches = (width / _UNITS_PER_INCH, height / _UNITS_PER_INCH)
        figure = MplFigure(inches, dpi=_UNITS_PER_INCH, facecolor=colours.background)
        paint(MplCanvas(figure, colours, width, height))
        buffer = io.StringIO()
        FigureCanvasSVG(figure)
        figure.savefig(buffer, format="svg", metadata=_NO_METADATA)
    return Figure(_embeddable(buffer.getvalue(), width, height, label), width, height)


def _embeddable(svg: str, width: float, height: float, label: str) -> str:
    """Return SVG without style rules or ids that would affect the page around it."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'class="irviz-drawing" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(label)}" '
        'style="stroke-linejoin: round; stroke-linecap: butt; max-width: 100%; height: auto">'
    )
    return _ID.sub("", _RULES.sub("", _HEAD.sub(lambda _: head, svg, count=1), count=1))
