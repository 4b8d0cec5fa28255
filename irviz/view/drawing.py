"""A finished picture of a value, that shows itself in a notebook and saves itself as a file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from irviz.view.saving import saved


@dataclass(frozen=True)
class Drawing:
    """A picture as SVG text; `width` and `height` are in px."""

    svg: str
    width: float
    height: float

    def __repr__(self) -> str:
        """Return what it is; the picture itself is for notebooks and files."""
        return f"<Drawing of {len(self.svg)} bytes of SVG; save it with .save('name.svg')>"

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the picture to a `.svg` file, whole or not at all; return the path.

        Raises ValueError for another suffix or no such directory, OSError where the place cannot
        be written.
        """
        return saved(path, {".svg": self.svg})
