"""One module, one picture: the two verbs that need no session."""

from __future__ import annotations

from tvm import ir

from irviz.app.session import Session
from irviz.model.graph import Graph
from irviz.view.figure import Figure


def graph(mod: ir.IRModule, function: str = "") -> Graph:
    """Read a Relax function of a module as a Graph.

    The function is "main", or the only one there is. Raises ValueError when there is none of
    this name.
    """
    return Session(mod, function=function).graph()


def draw(
    mod: ir.IRModule, function: str = "", *, theme: str = "course", direction: str = "up"
) -> Figure:
    """Draw a Relax function of a module; the result shows itself in a notebook and saves itself.

    `theme` is "course" or "dark", `direction` "up" or "down". Raises ValueError when there is no
    such function, theme or direction.
    """
    return Session(mod, function=function).draw(theme=theme, direction=direction)
