"""Make files of the shown picture, script or session, for the browser to save."""

from __future__ import annotations

import io
import tempfile
import zipfile
from pathlib import Path
from typing import Literal, NamedTuple

from irviz.explorer.selected_node import shown_selection
from irviz.explorer.stage_pictures import shown_figure
from irviz.explorer.state import File, State, opened_file
from irviz.session.session import Session
from irviz.view.figure import Figure, with_highlight, with_title
from irviz.view.graph.graph_figure import Direction
from irviz.view.theme import ThemeName

SaveFormat = Literal["svg", "pdf", "png", "dot", "python", "session", "html"]
"""What can be saved: a picture, the script of the current stage, or all stages."""

_MOST_WRITTEN = 100_000
"""The most bytes of arrays inside a script; larger arrays go into a file next to it."""


class Saved(NamedTuple):
    """What to save, and how: a picture with a title above it, and its selected node framed."""

    format: SaveFormat
    title: str = ""
    theme: ThemeName = "course"
    direction: Direction = "up"
    has_highlight: bool = False
    has_params: bool = True


def file_of(state: State, wanted: Saved) -> File:
    """Return a file of what is shown; HTML files are made by `save_html`.

    Raises:
        UntrustedError: A script would run a pass on code of an opened file.
        SaveError: A picture of two stages has no DOT.
    """
    name = file_name(state, wanted)
    if wanted.format == "session":
        with tempfile.TemporaryDirectory(prefix="irviz-") as folder:
            path = state.session.save(Path(folder, name), params=wanted.has_params)
            return File(name, path.read_bytes())
    if wanted.format == "python":
        return _script(state.session, name.removesuffix(".py"))
    return File(name, _picture(state, wanted).content(Path(name).suffix))


def file_name(state: State, wanted: Saved) -> str:
    """Return the name of the file: the opened file, the function and the stages.

    A script with large arrays is in an archive.
    """
    if wanted.format in ("session", "html"):
        return {"session": "session.irviz", "html": "session.html"}[wanted.format]
    opened = Path(opened_file(state.session)).stem
    is_script = wanted.format == "python"
    stages = [state.stage_id] if is_script else [state.reference, state.stage_id]
    name = "-".join(filter(None, [opened, state.function or "module", *stages]))
    return f"{name}.{'py' if is_script else wanted.format}"


def _picture(state: State, wanted: Saved) -> Figure:
    """Draw the shown picture, with the options chosen for the file."""
    drawn = shown_figure(state, theme=wanted.theme, direction=wanted.direction)
    if wanted.has_highlight:
        drawn = with_highlight(drawn, {shown_selection(state)}, wanted.theme)
    return with_title(drawn, wanted.title, wanted.theme) if wanted.title else drawn


def _script(session: Session, name: str) -> File:
    """Return a script of the current stage, with its arrays in an archive if they are large."""
    if sum(array.nbytes for array in session.call_inputs.params.values()) <= _MOST_WRITTEN:
        return File(f"{name}.py", session.to_python().encode())
    with tempfile.TemporaryDirectory(prefix="irviz-") as folder:
        arrays = Path(folder, f"{name}.npz")
        text = session.to_python(arrays_file=arrays).replace(repr(str(arrays)), repr(arrays.name))
        if not arrays.exists():
            return File(f"{name}.py", text.encode())
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr(f"{name}.py", text)
            archive.write(arrays, arrays.name)
    return File(f"{name}.zip", packed.getvalue())
