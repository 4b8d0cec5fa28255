"""The program of a figure: found by its name, and with its transforms applied, or called."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType

from tvm import ir, tirx

from irviz.errors import LoadError
from irviz.figures.declaration import Declaration
from irviz.session.open_session import load
from irviz.session.session import Session
from irviz.view.figure import Figure

_REFERENCE = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_][\w.]*)")


def figure_session(declaration: Declaration, root: Path) -> Session:
    """Return the session whose current stage the transforms of a figure end in.

    A program `package.module:attribute` is imported, and called where it is a function: it is the
    lecturer's own. A file goes through `irviz.load`, which runs nothing of it.

    Raises:
        LoadError: There is no such program.
    """
    program = declaration.program
    if isinstance(program, str) and not _REFERENCE.fullmatch(program):
        file = root / program
        session = load(file, name=declaration.module)
    else:
        session = _session(_resolve(program, root))
    for transform in declaration.transforms:
        found = _resolve(transform, root)
        session = session.apply(found() if isinstance(found, FunctionType) else found)
        if error := session.current.error:
            raise LoadError(f"figure {declaration.name!r}: {transform} failed: {error}")
    if declaration.function:  # which a transform may have made
        session = session.select_function(declaration.function)
    if declaration.schedule:
        steps = _resolve(declaration.schedule, root)
        if not callable(steps):
            raise LoadError(f"{declaration.schedule!r} is not a function that takes a Schedule")
        session = session.schedule(session.function, steps)
    return session


def drawn_by_program(declaration: Declaration, root: Path) -> Figure:
    """Return the picture that the program of a figure draws.

    Raises:
        LoadError: There is no such program, or it returns no picture.
    """
    draw = _resolve(declaration.program, root)
    drawn = draw() if callable(draw) else draw
    if not isinstance(drawn, Figure):
        raise LoadError(
            f"{declaration.program!r} gives a value of type {type(drawn).__name__}: a picture is "
            "drawn by a function that returns a Figure, such as that of irviz.draw"
        )
    return drawn


def _session(found: object) -> Session:
    if isinstance(found, FunctionType | type):
        found = found()
    if isinstance(found, Session):
        return found
    if isinstance(found, tirx.PrimFunc):
        name = str((found.attrs or {}).get("global_symbol", "main"))
        found = ir.IRModule({ir.GlobalVar(name): found})
    if isinstance(found, ir.IRModule):
        return Session(found, isolate=False)  # it is not out of a file
    return load(found)


def _resolve(what: object, root: Path) -> object:
    """Return the object that a reference means; anything else is returned as it is."""
    found = _REFERENCE.fullmatch(what) if isinstance(what, str) else None
    if found is None:
        return what
    with _importable(root):
        try:
            one: object = importlib.import_module(found[1])
        except ModuleNotFoundError as error:
            raise LoadError(
                f"{what!r} cannot be imported ({error}): give package.module:attribute, of a "
                f"package that is installed or a module in {str(root)!r}"
            ) from None
    for name in found[2].split("."):
        if not hasattr(one, name):
            raise LoadError(f"{what!r}: {found[1]} has no {found[2]!r}")
        one = getattr(one, name)
    return one


@contextmanager
def _importable(root: Path) -> Iterator[None]:
    """Let modules of a folder be imported, after all that is installed."""
    sys.path.append(str(root))
    try:
        yield
    finally:
        sys.path.remove(str(root))
