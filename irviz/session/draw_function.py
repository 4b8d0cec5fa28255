"""Read and draw one function, without a session."""

from __future__ import annotations

from irviz.model.graph.graph import Graph, NodeId
from irviz.session.open_session import load
from irviz.session.visible_function import ViewState
from irviz.view.graph.graph_figure import Direction, GraphFigure
from irviz.view.theme import ThemeName


def graph(mod: object, function: str = "") -> Graph:
    """Read a function as plain data: nodes, edges and regions, without TVM objects.

    Args:
        mod: A module, or anything that `irviz.load` takes.
        function: The name of a Relax function or a PrimFunc; by default "main", or else the
            first by its name.

    Raises:
        LoadError: It is not a model.
        NotFoundError: There is no function of this name.
    """
    return load(mod, function=function).graph()


def draw(
    mod: object,
    function: str = "",
    *,
    around: str = "",
    steps: int = 1,
    to: str = "",
    theme: ThemeName = "course",
    direction: Direction = "up",
) -> GraphFigure:
    """Draw a function as a figure that displays itself in a notebook and can be saved.

    Repeated structure is drawn once, and a large function is folded to at most 300 nodes.

    Args:
        mod: A module, or anything that `irviz.load` takes.
        function: The name of a Relax function or a PrimFunc; by default "main", or else the
            first by its name.
        around: A variable, to draw only the nodes at most `steps` uses away from it.
        steps: How many uses.
        to: Another variable, to draw only the paths between the two.
        theme: The colours.
        direction: Where data flows to.

    Raises:
        LoadError: It is not a model.
        NotFoundError: There is no such function or variable, or no path.
        DrawError: There is no such theme or direction.

    Example:
        ```python
        irviz.draw(MyModule, around="lv3").save("lv3.svg")
        ```
    """
    session = load(mod, function=function)
    return session.draw(view=part(around, steps, to), theme=theme, direction=direction)


def part(around: str, steps: int = 1, to: str = "") -> ViewState:
    """Return the drawn graph of a function, by the arguments of `draw`."""
    if not around:
        return ViewState()
    return ViewState().at(NodeId(around), steps, NodeId(to) if to else None)
