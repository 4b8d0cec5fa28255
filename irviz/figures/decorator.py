"""The decorator `irviz.figure`, for figures that are declared in a notebook or a module."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from irviz.figures.declaration import Declaration, FigureList
from irviz.figures.draw_declaration import draw_declaration
from irviz.figures.figure_files import check_figures, write_figures
from irviz.view.figure import Figure

_declared: dict[str, Declaration] = {}


class DeclaredFigure:
    """A declared figure, which shows itself in a notebook; it is drawn when it is first shown.

    Attributes:
        declaration: What it shows.
    """

    def __init__(self, declaration: Declaration) -> None:
        self.declaration = declaration
        self._drawn: dict[str, Figure] = {}

    def __repr__(self) -> str:
        """Return its name."""
        return f"<figure {self.declaration.name!r}; save all of them with irviz.figures.save()>"

    @property
    def pictures(self) -> dict[str, Figure]:
        """The pictures by the names of their files: one for each language and step."""
        if not self._drawn:
            self._drawn = draw_declaration(self.declaration)
        return self._drawn

    def _repr_html_(self) -> str:
        return "".join(f"<div>{one.svg}</div>" for one in self.pictures.values())


def figure(name: str, **options: Any) -> Callable[[Callable[[], object]], DeclaredFigure]:
    """Declare a figure of the program that the decorated function returns.

    Args:
        name: The file name without suffix; declaring a name again replaces the figure.
        **options: Further attributes of `irviz.figures.Declaration`.

    Raises:
        DrawError: An option has an unknown value.

    Example:
        ```python
        @irviz.figure("mlp", callouts={"lv0": "binding"}, languages=["en", "zh"])
        def mlp():
            return MyModule
        ```
    """

    def declare(make: Callable[[], object]) -> DeclaredFigure:
        _declared[name] = Declaration(name, make, **options)
        return DeclaredFigure(_declared[name])

    return declare


def save(folder: str | os.PathLike[str], *formats: str) -> list[Path]:
    """Write all declared figures to a folder, by default as SVG; return the files."""
    return write_figures(_list(folder, formats or ("svg",)))


def check(folder: str | os.PathLike[str]) -> list[str]:
    """Return what is wrong with the SVG files in a folder: see `check_figures`."""
    return check_figures(_list(folder, ("svg",)))


def _list(folder: str | os.PathLike[str], formats: tuple[str, ...]) -> FigureList:
    return FigureList(Path(), Path(folder), tuple(_declared.values()), formats)
