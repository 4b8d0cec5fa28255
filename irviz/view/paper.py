"""What matplotlib draws, as SVG that can stand in a page and has the same bytes each time."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from irviz.view.drawing import Drawing
from irviz.view.label import shortened
from irviz.view.style import Theme, theme_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 380.0
MARGIN = 12.0
_LINE, _GAP = 17.0, 6.0

Lines = tuple[tuple[str, bool], ...]
"""Lines of text, and whether each is a title."""

_UNITS_PER_INCH = 72  # of matplotlib's SVG: with it a unit of the picture is a px
_FONTS = ("DejaVu Sans", "Verdana", "Arial", "sans-serif")
"""The first comes with matplotlib, and none of the others is wider."""

_PLAIN: dict[Any, object] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "irviz",
    "svg.image_inline": True,
    "font.family": "sans-serif",
    "font.sans-serif": _FONTS,
    "image.composite_image": False,  # each stays sharp
}
_NO_METADATA: dict[str, Any] = dict.fromkeys(("Creator", "Date", "Format", "Type"))
_HEAD = re.compile(r"^.*?<svg [^>]*>", re.DOTALL)
_HOOK = re.compile(r' id="[A-Za-z0-9.]+_[0-9]+"')
_RULES = re.compile(r"\s*<defs>\s*<style type=\"text/css\">[^<]*</style>\s*</defs>")


@dataclass(frozen=True, eq=False)
class Paper:
    """A sheet to draw on, measured in px from its upper left corner."""

    figure: Figure
    theme: Theme
    width: float
    height: float

    def axes(self, x: float, y: float, width: float, height: float) -> Axes:
        """Return a place for a plot, with its corner at x, y and with thin, quiet lines."""
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

    def write(self, x: float, y: float, words: str, **style: Any) -> None:
        """Write a line of text with its baseline at y."""
        chosen = {"fontsize": 11, "color": self.theme.text, "parse_math": False, **style}
        self.figure.text(x / self.width, 1 - y / self.height, words, **chosen)

    def lines(self, lines: Lines) -> float:
        """Write the lines at the top; return where the room below them begins."""
        for row, (text, is_title) in enumerate(lines):
            weight = "bold" if is_title else "normal"
            colour = self.theme.text if is_title else self.theme.quiet_text
            y = MARGIN + _LINE * row + 11
            self.write(
                MARGIN, y, text, weight=weight, color=colour, fontsize=11 if is_title else 10
            )
        return paper_top(lines)

    def square(self, x: float, y: float, side: float, colour: str) -> None:
        """Draw a square of a colour with its corner at x, y."""
        from matplotlib.patches import Rectangle

        corner = (x / self.width, 1 - (y + side) / self.height)
        size = (side / self.width, side / self.height)
        edge = self.theme.quiet_text
        self.figure.add_artist(Rectangle(corner, *size, facecolor=colour, edgecolor=edge, lw=0.8))


def paper_top(lines: Lines) -> float:
    """Return where the room below the lines at the top begins."""
    return MARGIN + _LINE * len(lines) + _GAP


def heading(shape: Sequence[int], dtype: str, title: str = "", notes: Sequence[str] = ()) -> Lines:
    """Return the lines above a picture: a title, the type, what is to be known of the picture."""
    size = math.prod(shape)
    count = f", {size:,} numbers" if len(shape) > 1 else ""
    kind = f"{dtype} {'scalar' if not shape else tuple(shape)}{count}"
    lines = [(shortened(title), True)] if title else []
    return (*lines, (kind, False), *((note, False) for note in notes))


def drawn(
    width: float, height: float, theme: str, label: str, paint: Callable[[Paper], None]
) -> Drawing:
    """Return what `paint` draws on a paper of this size, in px; `label` says what it shows.

    Raises ValueError for an unknown theme. The settings of matplotlib that others have made
    neither show in the picture nor change by it.
    """
    colours = theme_of(theme)
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_PLAIN)
        inches = (width / _UNITS_PER_INCH, height / _UNITS_PER_INCH)
        figure = Figure(inches, dpi=_UNITS_PER_INCH, facecolor=colours.background)
        paint(Paper(figure, colours, width, height))
        buffer = io.StringIO()
        FigureCanvasSVG(figure)
        figure.savefig(buffer, format="svg", metadata=_NO_METADATA)
    return Drawing(_embeddable(buffer.getvalue(), width, height, label), width, height)


def _embeddable(svg: str, width: float, height: float, label: str) -> str:
    """Return SVG that leaves the page that it stands in alone: no rules for all, no common ids."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'class="irviz-drawing" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(label)}" '
        'style="stroke-linejoin: round; stroke-linecap: butt; max-width: 100%; height: auto">'
    )
    return _HOOK.sub("", _RULES.sub("", _HEAD.sub(lambda _: head, svg, count=1), count=1))
