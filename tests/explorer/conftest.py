"""What the tests of the explorer share: a page of widgets, used as a reader uses it."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from xml.etree import ElementTree

import ipywidgets as widgets
import pytest

import irviz
from irviz.explorer.actions import Apply, SetInputs
from irviz.explorer.explorer import Explorer
from irviz.explorer.panels.panel import CheckedField, Panel
from irviz.explorer.state import Side, State
from irviz.explorer.store import Store
from irviz.model.runs.execution_trace import Trace
from irviz.transforms.passes.pass_transform import named_pass
from tests.widget_messages import send_message


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

    def error_at(self, name: str) -> str:
        """Return what is said below the field of a CSS class, as text; "" for nothing."""
        control = self.find(name)
        checked = [one for one in self.all() if isinstance(one, CheckedField)]
        return next((_text(one.error) for one in checked if one.control is control), "")

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


_SVG = "{http://www.w3.org/2000/svg}"
_PLACE = ("x", "y", "width", "height", "cx", "cy", "r", "points", "d")


class Picture:
    """One of the two pictures of an explorer, as the page has it."""

    def __init__(self, explorer: Explorer, side: Side) -> None:
        self._explorer, self.side = explorer, side

    @property
    def data(self) -> Any:
        """All that the page is told of it, None where there is no such picture."""
        return self._explorer.scene[self.side]

    @property
    def svg(self) -> str:
        return str(self.data["svg"])

    @property
    def dimmed(self) -> list[str]:
        return list(self.data["dimmed"])

    def node(self, node: str) -> Any:
        """Return what the page is told of a drawn node."""
        return self.data["nodes"][node]

    @property
    def marked(self) -> list[str]:
        """The nodes that a change is of."""
        changes = self._explorer.scene["changes"]
        return list(dict.fromkeys(node for change in changes for node in change[self.side]))

    @property
    def drawn(self) -> list[str]:
        """The nodes that are drawn."""
        return re.findall(r'class="node [^"]*" data-node="([^"]*)"', self.svg)

    @property
    def places(self) -> dict[str, dict[str, str]]:
        """Where the shape of each node that is drawn stands."""
        nodes = {
            node.get("data-node"): node.find(f".//{_SVG}*[@class='shape']")
            for node in ElementTree.fromstring(self.svg).iter(f"{_SVG}g")
            if node.get("class", "").startswith("node ") and node.get("data-node")
        }
        return {
            name: {key: value for key, value in shape.attrib.items() if key in _PLACE}
            for name, shape in nodes.items()
        }

    @property
    def selected(self) -> str:
        """The node that is selected in this picture, "" for none."""
        selection = self._explorer.selection
        return str(selection["node"]) if selection["side"] == self.side else ""

    @selected.setter
    def selected(self, node: str) -> None:
        self._explorer.set_state({"selection": {"node": node, "side": self.side}})


class ExplorerPage(Page):
    """The page of an explorer: what the widget tells it, and what it writes and sends."""

    def __init__(self, explorer: Explorer) -> None:
        super().__init__()
        self.explorer = explorer
        self.canvas = Picture(explorer, "current")
        self.other = Picture(explorer, "reference")

    def all(self, *, visible: bool = False) -> Iterator[Any]:
        """Return the widgets of the forms that were opened."""
        for form in self.explorer.forms.values():
            yield from Page(form).all(visible=visible)

    @property
    def state(self) -> State:
        return self.explorer.store.state

    @property
    def captions(self) -> list[str]:
        """What stands above the pictures."""
        shown = (picture.data for picture in (self.canvas, self.other))
        return [
            f"stage {one['stage']}: {', '.join([one['label'], *one['facts']])}"
            for one in shown
            if one is not None
        ]

    @property
    def status(self) -> Any:
        return self.explorer.status

    @property
    def message(self) -> str:
        return str(self.status["words"])

    @property
    def doing(self) -> str:
        """What is being done, "" for nothing."""
        job, progress = self.status["job"], self.status["progress"]
        return f"{job}: {progress}" if progress else str(job)

    @property
    def facts(self) -> str:
        """What is said of the selected node, or of the module."""
        selection = self.explorer.selection
        if not selection["node"]:
            return str(self.explorer.details["value"])
        return str(self.explorer.scene[selection["side"]]["nodes"][selection["node"]]["facts"])

    @property
    def code(self) -> str:
        return str(self.explorer.details["code"])

    def node(self, node: str) -> Any:
        """Return what the page is told of a node of the current stage's picture."""
        return self.canvas.node(node)

    def send(self, buffers: Any = (), **content: object) -> None:
        """Let the page send a message."""
        send_message(self.explorer, content, buffers)

    def write(self, name: str, value: object) -> None:
        """Let the page write a trait."""
        self.explorer.set_state({name: value})

    @property
    def rows(self) -> Any:
        """The stages."""
        return self.explorer.rows

    def badge(self, stage: str) -> str:
        """Return how the stage's results compare, and why if it failed."""
        row = next(row for row in self.rows if row["id"] == stage)
        return f"{row['verdict']}\n{row['title']}"

    def part(self) -> None:
        self.send(action="ShowFirstDifference")

    def colour(self, by: str) -> None:
        self.send(action="ColourBy", kind=by)

    def compare(self, stage: str) -> None:
        self.send(action="Compare", reference=stage)

    def toggle(self, container: str, side: Side = "current") -> None:
        self.send(action="Toggle", container=container, side=side)

    def look_around(self, node: str = "", steps: int = 1, to: str = "") -> None:
        self.send(action="LookAround", node=node, steps=steps, to=to)

    def record(self) -> None:
        self.send(action="RecordValues")

    def run(self) -> None:
        self.send(action="Run", again=True)

    def cancel(self) -> None:
        self.send(action="Cancel")

    def search(self, words: str) -> None:
        self.write("search", words)

    def go_to(self, number: int) -> None:
        """Go to one of the nodes that were found."""
        found = self.explorer.found["nodes"][number]
        self.send(action="Reveal", function=found["function"], node=found["node"])

    def open(self, tab: str) -> None:
        """Open a tab of forms."""
        self.write("tab", tab)

    def select(self, node: str) -> None:
        self.canvas.selected = node

    def choose(self, stage: str) -> None:
        self.send(action="Checkout", stage=stage)

    def focus(self, function: str) -> None:
        self.send(action="Focus", function=function)

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
