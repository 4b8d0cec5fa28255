"""A finished picture: an SVG that displays itself in a notebook and can be saved."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from irviz.atomic_write import atomic_write, target_path
from irviz.errors import SaveError
from irviz.view.convert_svg import svg_to_pdf, svg_to_png


@dataclass(frozen=True)
class Figure:
    """A picture as an SVG document; `width` and `height` are in px."""

    svg: str
    width: float
    height: float

    def __repr__(self) -> str:
        """Return a short description: the text of the picture is in `svg`."""
        return f"<Figure of {len(self.svg)} bytes of SVG; save it with .save('name.svg')>"

    def _repr_svg_(self) -> str:
        return self.svg

    @property
    def formats(self) -> Sequence[str]:
        """The file suffixes that it can be saved with."""
        return (".svg", ".pdf", ".png")

    def content(self, suffix: str) -> bytes:
        """Return the picture as a file's content; raise SaveError for a suffix not in `formats`."""
        match suffix.lower():
            case ".svg":
                return self.svg.encode()
            case ".pdf":
                return svg_to_pdf(self.svg, self.width, self.height)
            case ".png":
                return svg_to_png(self.svg, self.width, self.height)
        raise SaveError(f"there is no format {suffix!r}: choose one of {', '.join(self.formats)}")

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the picture to a file atomically; the suffix chooses the format.

        Raises:
            SaveError: The suffix is not one of `formats`, or the file cannot be written.
        """
        target = target_path(path, self.formats)
        content = self.content(target.suffix)
        with atomic_write(target) as partial:
            partial.write_bytes(content)
        return target
