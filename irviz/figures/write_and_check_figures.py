"""Figures as files, checked against their programs, and the decorator `irviz.figure`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import unified_diff
from functools import cached_property
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from irviz.errors import IrvizError, NotFoundError
from irviz.figures.draw_declared_figures import draw_declaration
from irviz.figures.figure_declarations import Declaration, FigureList
from irviz.session.open_session import load
from irviz.session.stage_diff import diff_modules
from irviz.view.figure import Figure
from irviz.view.module_diff import Diff

_MARK = b'class="irviz figure"'
_HEAD = 400
"""The bytes at the beginning of a file that tell a figure."""


def write_figures(figures: FigureList, names: Sequence[str] = ()) -> list[Path]:
    """Draw figures and write them, in all formats; return the files.

    Args:
        names: Only those of these names.

    Raises:
        NotFoundError: There is no figure of such a name.
        IrvizError: A figure cannot be drawn.
    """
    drawn = dict[str, Figure]()
    for declaration in _chosen(figures, names):
        drawn |= draw_declaration(declaration, figures.root)
    figures.folder.mkdir(parents=True, exist_ok=True)
    return [
        figure.save(figures.folder / f"{name}.{suffix}")
        for name, figure in drawn.items()
        for suffix in figures.formats
    ]


def check_figures(figures: FigureList, names: Sequence[str] = ()) -> list[str]:
    """Return descriptions of the SVG files that no longer match their programs.

    Each is a text that begins with the file. It has the diff of the programs where these changed,
    and that of the words in the picture where only these did.

    Raises:
        NotFoundError: There is no figure of such a name.
    """
    found = []
    known: set[str] = set()
    for declaration in _chosen(figures, names):
        try:
            drawn = draw_declaration(declaration, figures.root)
        except (IrvizError, ImportError, OSError) as error:
            found.append(f"{figures.folder / declaration.name}.svg cannot be drawn: {error}")
            continue
        known.update(drawn)
        for name, figure in drawn.items():
            file = figures.folder / f"{name}.svg"
            if not file.exists():
                found.append(f"{file} is missing: run `irviz figures`")
            elif (old := file.read_text(encoding="utf-8")) != figure.svg:
                found.append(f"{file} is not what its program gives now\n{_why(old, figure.svg)}")
    if not names:
        found += [
            f"{file} is a figure that nothing declares: delete it"
            for file in sorted(figures.folder.glob("*.svg"))
            if file.stem not in known and _MARK in file.read_bytes()[:_HEAD]
        ]
    return found


def _chosen(figures: FigureList, names: Sequence[str]) -> list[Declaration]:
    known = {one.name: one for one in figures.declarations}
    for name in names:
        if name not in known:
            raise NotFoundError(f"there is no figure {name!r}; there are {', '.join(known)}")
    return [one for name, one in known.items() if name in names or not names]


def _why(old: str, new: str) -> str:
    """Return the diff of the programs of two pictures, or else of the words in them."""
    try:
        before = _parts(old)
    except ElementTree.ParseError:
        return "the file is not an SVG that irviz wrote"
    after = _parts(new)
    for one, two in zip(before["program"], after["program"], strict=False):
        if one != two:
            return _program_diff(one, two)
    if len(before["program"]) != len(after["program"]):
        return "it shows another number of programs"
    words = list(_lines(before["text"], after["text"]))
    if words:
        return "\n".join(["the program is the same; the words in the picture differ:", *words])
    return "the program and the words are the same; places or colours differ"


def _parts(svg: str) -> Mapping[str, list[str]]:
    """Return the programs of a picture, and the texts that are seen and read in it."""
    found: dict[str, list[str]] = {"program": [], "text": []}
    for one in ElementTree.fromstring(svg).iter():  # noqa: S314 - the lecturer's own file
        tag = one.tag.rpartition("}")[2]
        if one.get("class") == "program":
            found["program"].append(one.text or "")
        elif tag in ("text", "desc", "title"):
            found["text"].append("".join(one.itertext()))
    return found


def _program_diff(old: str, new: str) -> str:
    """Return what differs between two programs, as `irviz.diff` says it where it can read them."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            stages = []
            for name, text in (("before.py", old), ("after.py", new)):
                file = Path(folder, name)
                file.write_text(text, encoding="utf-8")
                stages.append(load(file).current)
        found = diff_modules(stages[0], stages[1], ("in the file", "now"))
        if found:
            return Diff.of(found).text()
    except IrvizError:  # such as a program with constants, which its text does not hold
        pass
    return "\n".join(_lines(old.splitlines(), new.splitlines()))


def _lines(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    return unified_diff(old, new, "in the file", "now", lineterm="", n=1)


_declared: dict[str, Declaration] = {}


class DeclaredFigure:
    """A declared figure, which shows itself in a notebook; it is drawn when it is first shown."""

    def __init__(self, declaration: Declaration) -> None:
        self.declaration = declaration

    def __repr__(self) -> str:
        """Return its name."""
        return f"<figure {self.declaration.name!r}; save all of them with irviz.figures.save()>"

    @cached_property
    def pictures(self) -> dict[str, Figure]:
        """The pictures by the names of their files: one for each language and step."""
        return draw_declaration(self.declaration)

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
