"""What the tests of the explorer share: a page of widgets, used as a reader uses it."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import ipywidgets as widgets
import pytest
from irviz.explorer.panels.stage_list import TreeView
from irviz.explorer.panels.stage_picture import Canvas

import irviz
from irviz.explorer.actions import Apply, SetInputs
from irviz.explorer.explorer import Explorer
from irviz.explorer.panels.panel import Panel
from irviz.explorer.state import State
from irviz.explorer.store import Store
from irviz.model.runs.trace import Trace
from irviz.transforms.passes.pass_call import named_pass


class Page:
    """The widgets inside of a box, found by their classes and words."""

    def __init__(self, *roots: widgets.Widget) -> None:
        self.roots = roots

    def all(self, *, visible: bool = False) -> Iterator[Any]:
        """Return all widgets, or those that no box hides."""
        stack = list(self.roots)[::-1]
        while stack:
            widget = stack.pop()
            if not (visible and widget.layout.display == "none"):
                yield widget
                stack += reversed(getattr(widget, "children", ()))

    def find(self, name: str) -> Any:
        """Return the one widget of a CSS class."""
        (found,) = [one for one in self.all() if name in getattr(one, "_dom_classes", ())]
        return found

    def sees(self, name: str) -> bool:
        """Tell whether the widgets of a CSS class are visible."""
        seen = self.all(visible=True)
        return any(name in getattr(one, "_dom_classes", ()) for one in seen)

    def button(self, words: str) -> Any:
        """Return the one visible button, field or box with these words; None for none."""
        found = [one for one in self.all(visible=True) if _words(one) == words]
        assert len(found) < 2, words
        return found[0] if found else None

    def press(self, words: str) -> None:
        self.button(words).click()

    def html(self, name: str = "") -> str:
        """Return the HTML of the widget of a CSS class, or of all; what is hidden has none."""
        if name:
            return str(self.find(name).value) if self.sees(name) else ""
        seen = self.all(visible=True)
        return "\n".join(one.value for one in seen if isinstance(one, widgets.HTML))

    def text(self, name: str = "") -> str:
        """Return the same as text."""
        return _text(self.html(name))


def _text(markup: str) -> str:
    return html.unescape(re.sub("<[^>]*>", "", markup))


def _words(widget: Any) -> str:
    return str(getattr(widget, "description", ""))


class ExplorerPage(Page):
    """The page of an explorer."""

    def __init__(self, explorer: Explorer) -> None:
        super().__init__(explorer)
        self.explorer = explorer

    @property
    def state(self) -> State:
        return self.explorer.store.state

    @property
    def canvases(self) -> list[Canvas]:
        return [one for one in self.all() if isinstance(one, Canvas)]

    @property
    def canvas(self) -> Canvas:
        """The picture of the current stage."""
        return self.canvases[0]

    @property
    def other(self) -> Canvas:
        """The picture of the stage that it is compared with."""
        return self.canvases[1]

    @property
    def captions(self) -> list[str]:
        """The lines above the pictures that are visible."""
        lines = (one for one in self.all(visible=True) if isinstance(one, widgets.HTML))
        return [_text(one.value) for one in lines if "irviz-caption" in one.value]

    @property
    def pictures(self) -> list[SimpleNamespace]:
        """The two pictures: caption, words below it, and canvas."""
        boxes = [one.children for one in self.all() if isinstance(one, widgets.VBox)]
        return [
            SimpleNamespace(caption=caption, words=words, canvas=canvas)
            for caption, words, canvas in (box for box in boxes if len(box) == 3)
            if isinstance(canvas, Canvas)
        ]

    @property
    def message(self) -> str:
        return self.text("irviz-message")

    @property
    def doing(self) -> str:
        """What is being done, "" for nothing."""
        return self.text("irviz-doing")

    def send(self, widget: Any = None, buffers: Any = (), **content: object) -> None:
        """Let the page of a widget, the picture of the current stage by default, send a message."""
        (widget or self.canvas)._handle_custom_msg(content, list(buffers))

    @property
    def tree(self) -> TreeView:
        """The list of stages."""
        (found,) = [one for one in self.all() if isinstance(one, TreeView)]
        return found

    def badge(self, stage: str) -> str:
        return next(str(row["badge"]) for row in self.tree.rows if row["id"] == stage)

    def part(self) -> None:
        self.find("irviz-part").click()

    def colour(self, by: str) -> None:
        self.find("irviz-colour-by").value = by

    def select(self, node: str) -> None:
        self.canvas.selected = node

    def choose(self, stage: str) -> None:
        self.send(self.tree, action="Checkout", stage=stage)

    def focus(self, function: str) -> None:
        self.find("irviz-functions").value = function

    def apply(self, name: str) -> None:
        self.explorer.dispatch(Apply(named_pass(name)))

    def inputs(self, inputs: Any) -> None:
        self.explorer.dispatch(SetInputs(inputs))

    @property
    def value(self) -> str:
        """What is said of the selected node's value, "" where nothing is."""
        return self.html("irviz-value-facts")

    @property
    def traces(self) -> Mapping[str, Trace]:
        return self.state.function_runs.traces

    @property
    def is_coloured(self) -> bool:
        return "tinted" in self.canvas.svg


@pytest.fixture
def opened() -> Callable[..., ExplorerPage]:
    """Return a function that opens the explorer on something, and returns its page."""
    return lambda what, **options: ExplorerPage(irviz.explore(what, **options))


class Desk(Page):
    """Panels with a store of their own, without an explorer around them."""

    def __init__(self, session: Any, *kinds: Any, effects: Any = None) -> None:
        self.store = Store(State.of(session))
        if effects is not None:
            effects(self.store)
        self.panels: list[Panel] = [kind(self.store) for kind in kinds]
        for panel in self.panels:
            self.store.subscribe(panel.update)
        super().__init__(*(panel.widget for panel in self.panels))

    @property
    def panel(self) -> Any:
        return self.panels[0]

    @property
    def state(self) -> State:
        return self.store.state

    @property
    def session(self) -> Any:
        return self.state.session

    def dispatch(self, action: Any) -> None:
        self.store.dispatch(action)

    @property
    def said(self) -> str:
        message = self.state.message
        return "" if message is None else message.words


@pytest.fixture
def desk_class() -> type[Desk]:
    """Return the class of a desk, to be made of a session and the kinds of its panels."""
    return Desk
