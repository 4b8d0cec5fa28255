"""One module, one picture: the two verbs that need no session."""

from __future__ import annotations

from irviz.app.load import load
from irviz.app.picture import Look
from irviz.model.graph import Graph, NodeId
from irviz.view.figure import Figure


def graph(mod: object, function: str = "") -> Graph:
    """Read a Relax function of a module as a Graph.

    The function is "main", or the only one there is. Raises ValueError when there is none of
    this name.
    """
    return load(mod, function=function).graph()


def draw(
    mod: object,
    function: str = "",
    *,
    around: str = "",
    steps: int = 1,
    to: str = "",
    theme: str = "course",
    direction: str = "up",
) -> Figure:
    """Draw a Relax function of a module; the result shows itself in a notebook and saves itself.

    What repeats itself in a large function is drawn once, and what would be too much as a group
    with a count. With `around`, the name of a variable, only what is at most `steps` uses away
    from it is drawn; with `to` as well, only what lies between the two. `theme` is "course" or
    "dark", `direction` "up" or "down". Raises ValueError when there is no such function, node,
    path, theme or direction.
    """
    look = Look()
    if around:
        look = look.at(NodeId(around), steps, NodeId(to) if to else None)
    session = load(mod, function=function)
    return session.draw(look=look, theme=theme, direction=direction)
