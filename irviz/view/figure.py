"""A finished picture: SVG that shows itself in a notebook and saves itself as a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from irviz.atomic_write import atomic_write
from irviz.errors import SaveError


@dataclass(frozen=True)
class Figure:
    """A picture as the text of an SVG document; `width` and `height` are in px."""

    svg: str
    width: float
    height: float

    def __repr__(self) -> str:
        """Return a short description: the text of the picture is in `svg`."""
        return f"<Figure of {len(self.svg)} bytes of SVG; save it with .save('name.svg')>"

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the picture to a file, completely or not at all; its suffix chooses the format.

        Raises:
            SaveError: If the suffix is another one or the directory does not exist.
            OSError: If the file cannot be written.
        """
        target = Path(path)
        texts = self._texts()
        text = texts.get(target.suffix.lower())
        if text is None:
            suffixes = " or ".join(texts)
            raise SaveError(f"cannot save {str(target)!r}: give a name ending in {suffixes}")
        if not target.parent.is_dir():
            raise SaveError(
                f"cannot save {str(target)!r}: there is no directory {str(target.parent)!r}"
            )
        with atomic_write(target) as partial:
            partial.write_text(text, encoding="utf-8")
        return target

    def _texts(self) -> Mapping[str, str]:
        """Return the text of the file by its suffix."""
        return {".svg": self.svg}
