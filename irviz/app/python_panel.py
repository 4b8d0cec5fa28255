"""The shown stage as a script: on the clipboard, or in a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import anywidget
import ipywidgets as widgets
import traitlets

from irviz.app.message import Say
from irviz.app.session import Session
from irviz.model.whole_file import whole_file

_STATIC = Path(__file__).parent / "static"
_MOST_WRITTEN = 100_000
"""The most bytes of arrays that a copied script holds itself."""


class CopyButton(anywidget.AnyWidget):
    """Ask for a text when it is pressed, and put that on the clipboard.

    Traits:
        label: The words on the button.
        text: What is copied when it comes; `serial` changes with each press that was answered.
    """

    _esm = _STATIC / "copy.js"

    label = traitlets.Unicode("Copy").tag(sync=True)
    text = traitlets.Unicode("").tag(sync=True)
    serial = traitlets.Int(0).tag(sync=True)


class PythonPanel:
    """Give the script that makes the shown stage from the first, with TVM alone."""

    def __init__(self, say: Say) -> None:
        self._session: Session | None = None
        self._say = say
        self.copy = CopyButton(label="Copy as Python")
        self.copy.on_msg(self._hear)
        self._path = widgets.Text(description="file", layout=widgets.Layout(width="auto"))
        self._path.add_class("irviz-python-path")
        save = widgets.Button(
            description="Save as Python",
            tooltip="Write a script with TVM alone that makes the shown stage",
            icon="save",
            layout=widgets.Layout(width="auto"),
        )
        save.on_click(lambda _: self._try(self._save))
        heading = widgets.HTML("<h4>Script</h4>")
        self.widget = widgets.VBox([heading, self.copy, self._path, save])

    def show(self, session: Session) -> None:
        """Suggest a file name for the shown stage."""
        self._session = session
        self._path.value = f"{session.function or 'module'}-{session.shown_id}.py"

    def _hear(self, _: object, content: object, __: object) -> None:
        if content == {"copy": True}:
            self._try(self._copy)

    def _copy(self, session: Session) -> str:
        is_small = sum(array.nbytes for array in session.params.values()) <= _MOST_WRITTEN
        file = "" if is_small else str(Path(self._path.value).with_suffix(".npz"))
        text = session.to_python(arrays_file=file)
        with self.copy.hold_sync():
            self.copy.text = text
            self.copy.serial += 1
        words = f"copied {len(text.splitlines())} lines of Python"
        return f"{words}; its arrays are in {file}" if file and file in text else words

    def _save(self, session: Session) -> str:
        path = Path(self._path.value)
        if path.suffix != ".py":
            raise ValueError(f"{str(path)!r} is no name for a script: give one ending in .py")
        text = session.to_python(arrays_file=path.with_suffix(".npz"))
        with whole_file(path) as partial:
            partial.write_text(text, encoding="utf-8")
        return f"saved {path.resolve()}"

    def _try(self, act: Callable[[Session], str]) -> None:
        if self._session is None:
            return
        try:
            words = act(self._session)
        except Exception as failure:  # whatever it is, the explorer lives on
            self._say(str(failure), True)
            return
        self._say(words, False)
