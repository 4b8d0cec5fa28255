"""A finished picture that shows itself in a notebook and saves itself as a file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from irviz.model.graph import Graph
from irviz.view.dot import dot
from irviz.view.layout import lay_out
from irviz.view.style import theme_of
from irviz.view.svg import MARGIN, svg


@dataclass(frozen=True)
class Figure:
    """A picture of a graph: `svg` is the drawing, `dot` what the layout engine was told.

    `width` and `height` are in px.
    """

    svg: str
    dot: str
    width: float
    height: float

    def __repr__(self) -> str:
        """Return what it is; the picture itself is for notebooks and files."""
        return f"<Figure of {len(self.svg)} bytes of SVG; save it with .save('name.svg')>"

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the picture to a `.svg` file, or its DOT to a `.dot` file; return the path.

        The file is written beside its place and moved there whole. Raises ValueError for
        another suffix, OSError where the place cannot be written.
        """
        target = Path(path)
        texts = {".svg": self.svg, ".dot": self.dot}
        if target.suffix.lower() not in texts:
            raise ValueError(f"cannot save {str(target)!r}: give a name ending in .svg or .dot")
        if not target.parent.is_dir():
            raise ValueError(
                f"cannot save {str(target)!r}: there is no directory {str(target.parent)!r}"
            )
        partial = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            partial.write_text(texts[target.suffix.lower()], encoding="utf-8")
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
        return target


def figure(graph: Graph, theme: str = "course", direction: str = "up") -> Figure:
    """Lay out and draw a graph; raise ValueError for an unknown theme or direction."""
    colours = theme_of(theme)
    source = dot(graph, direction)
    layout = lay_out(source)
    return Figure(
        svg=svg(graph, layout, colours, direction),
        dot=source,
        width=layout.width + 2 * MARGIN,
        height=layout.height + 2 * MARGIN,
    )
