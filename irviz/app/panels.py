"""The explorer's panels: controls that turn what the reader does into verbs of the session."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

import ipywidgets as widgets

from irviz.app.runs import input_of_case
from irviz.app.session import Session
from irviz.model.graph import NodeId, NodeKind
from irviz.model.result import RunResult
from irviz.transforms.catalog import catalog, named_pass
from irviz.transforms.swap import candidates
from irviz.view.badge import outputs_html
from irviz.view.dot import RANKDIRS
from irviz.view.image import as_image, png
from irviz.view.style import THEMES

Verb = Callable[[Session], Session]
Act = Callable[[Verb], None]
"""Applies a verb to the session and shows what it made, or says why it could not."""


_SWAPPED = (NodeKind.CALL_TIR, NodeKind.CALL_DPS_PACKED)


class BindPanel:
    """Choose parameters and bind them to the session's arrays."""

    def __init__(self, act: Act) -> None:
        self._names = widgets.SelectMultiple(rows=4, layout=_wide())
        self._names.add_class("irviz-bind-names")
        self._button = _button("Bind parameters", "Make the chosen parameters constants", "link")
        self._empty = widgets.HTML()
        self._button.on_click(lambda _: act(self._bind))
        self.widget = widgets.VBox(
            [_heading("Bind parameters"), self._empty, self._names, self._button]
        )

    def show(self, session: Session) -> None:
        """Offer the parameters that are still open and that the session has arrays for."""
        names = tuple(session.bindable)
        self._names.options = names
        self._names.value = names
        self._names.rows = min(max(len(names), 2), 6)
        self._names.layout.display = self._button.layout.display = "" if names else "none"
        why = "all of them are bound" if session.params else "none were given: explore(…, params=…)"
        self._empty.value = "" if names else f"<p>Nothing to bind: {why}.</p>"

    def _bind(self, session: Session) -> Session:
        return session.bind({name: session.bindable[name] for name in self._names.value})


class SwapPanel:
    """Let the selected call call something else."""

    def __init__(self, act: Act) -> None:
        self._node: NodeId | None = None
        self._callee = ""
        self._fitting = widgets.Dropdown(layout=_wide())
        self._fitting.add_class("irviz-swap-to")
        self._everywhere = widgets.Checkbox(value=False, indent=False, layout=_wide())
        self._button = _button("Swap", "Let the call call this instead", "exchange")
        self._reasons = widgets.HTML()
        self._controls = widgets.VBox([self._fitting, self._everywhere, self._button])
        self._button.on_click(lambda _: act(self._swap))
        self.widget = widgets.VBox([_heading("Call something else"), self._controls, self._reasons])

    def show(self, session: Session, selected: str) -> None:
        """Offer what fits the selected call, and say why the others do not."""
        graph = session.graph()
        index = graph.index.get(NodeId(selected))
        node = None if index is None else graph.nodes[index]
        if node is not None and node.kind not in _SWAPPED:
            node = None
        offered = candidates(session.shown.module, session.function, node.id) if node else {}
        self.widget.layout.display = "" if offered else "none"
        if node is None or not offered:
            return
        self._node, self._callee = node.id, node.callee
        fitting = [name for name, reason in offered.items() if not reason]
        self._fitting.options = fitting
        self._fitting.value = fitting[0] if fitting else None
        self._controls.layout.display = "" if fitting else "none"
        calls = sum(other.callee == node.callee for other in graph.nodes)
        self._everywhere.description = f"all {calls} calls of {node.callee}"
        self._everywhere.value = False
        self._everywhere.layout.display = "" if calls > 1 else "none"
        reasons = [(name, reason) for name, reason in offered.items() if reason]
        items = "".join(f"<li><b>{escape(n)}</b>: {escape(r)}</li>" for n, r in reasons)
        self._reasons.value = (
            f"<details><summary>{len(reasons)} do not fit</summary><ul>{items}</ul></details>"
            if items
            else ""
        )

    def _swap(self, session: Session) -> Session:
        node = None if self._everywhere.value else self._node
        return session.swap(self._callee, str(self._fitting.value), node=node)


class PassPanel:
    """Choose a pass of the catalog and apply it."""

    def __init__(self, act: Act) -> None:
        self._summaries = {entry.name: entry.summary for entry in catalog()}
        self._name = widgets.Combobox(
            options=tuple(self._summaries),
            placeholder="type a name, such as LegalizeOps",
            ensure_option=False,
            continuous_update=True,
            layout=_wide(),
        )
        self._name.add_class("irviz-pass-name")
        self._summary = widgets.HTML()
        button = _button("Apply pass", "Apply this pass to the shown stage", "play")
        button.on_click(lambda _: act(lambda s: s.apply(named_pass(self._name.value.strip()))))
        self._name.observe(self._show_summary, "value")
        self.widget = widgets.VBox([_heading("Apply a pass"), self._name, self._summary, button])

    def _show_summary(self, _: object) -> None:
        summary = self._summaries.get(self._name.value.strip(), "")
        self._summary.value = f"<p>{escape(summary)}</p>"


class RunPanel:
    """Run the shown stage, and look at its outputs case by case."""

    def __init__(self, run: Callable[[], None]) -> None:
        self._button = _button("Run", "Build the shown stage and run it on the CPU", "play")
        self._button.on_click(lambda _: run())
        self.automatic = widgets.Checkbox(
            value=True, description="run every new stage", indent=False, layout=_wide()
        )
        self._case = widgets.BoundedIntText(
            min=0, style={"description_width": "initial"}, layout=_wide()
        )
        self._case.add_class("irviz-case")
        self._picture = widgets.Image(format="png", layout=widgets.Layout(display="none"))
        self._picture.add_class("irviz-picture")
        self._outputs = widgets.HTML()
        self._result: RunResult | None = None
        self._session: Session | None = None
        self._case.observe(lambda _: self._show_case(), "value")
        self.widget = widgets.VBox(
            [
                widgets.HBox([self._button, self.automatic]),
                self._case,
                self._picture,
                self._outputs,
            ]
        )

    def show(self, session: Session, result: RunResult | None, error: str) -> None:
        """Show the outputs of a run, or why there are none."""
        self._session, self._result = session, result
        self._case.layout.display = "" if result and result.cases > 1 else "none"
        if result is None:
            self._picture.layout.display = "none"
            words = error or "Not run yet."
            self._outputs.value = f'<p class="{"irviz-error" if error else ""}">{escape(words)}</p>'
            return
        self._case.max = result.cases - 1
        self._case.description = f"input (0 to {result.cases - 1})"
        self._show_case()

    def _show_case(self) -> None:
        if self._result is None or self._session is None:
            return
        case = min(int(self._case.value), self._result.cases - 1)
        self._outputs.value = outputs_html(self._result, case)
        array = input_of_case(self._session.inputs, case)
        image = None if array is None else as_image(array)
        self._picture.layout.display = "none" if image is None else ""
        if image is not None:
            self._picture.value = png(image)


class SavePanel:
    """Save the shown picture as a file."""

    def __init__(self, save: Callable[[str, str, str], None]) -> None:
        self._path = widgets.Text(value="irviz.svg", description="file", layout=_wide())
        self._path.add_class("irviz-save-path")
        self._theme = widgets.Dropdown(options=tuple(THEMES), description="theme", layout=_wide())
        self._direction = widgets.Dropdown(
            options=tuple(RANKDIRS), description="direction", layout=_wide()
        )
        button = _button("Save SVG", "Write the shown stage as a picture", "save")
        button.on_click(lambda _: save(self._path.value, self._theme.value, self._direction.value))
        self.widget = widgets.VBox([self._path, self._theme, self._direction, button])

    def show(self, session: Session) -> None:
        """Suggest a file name for the shown stage."""
        self._path.value = f"{session.function}-{session.shown_id}.svg"


def _wide() -> widgets.Layout:
    return widgets.Layout(width="auto")


def _heading(text: str) -> widgets.HTML:
    return widgets.HTML(f"<h4>{escape(text)}</h4>")


def _button(text: str, tooltip: str, icon: str) -> widgets.Button:
    return widgets.Button(
        description=text, tooltip=tooltip, icon=icon, layout=widgets.Layout(width="auto")
    )
