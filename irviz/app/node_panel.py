"""What the selected node is: facts, its line of TVMScript, the PrimFunc behind it."""

from __future__ import annotations

import ipywidgets as widgets
from tvm import tirx

from irviz.app.picture import Picture
from irviz.app.read import array_of, graph_of, script_of, tree_of
from irviz.ir.contents import contents
from irviz.ir.identity import function_named
from irviz.ir.loops import loop_nest
from irviz.ir.script import prim_func_script
from irviz.model.graph import NodeId, NodeKind, Resolution
from irviz.model.locate import copies
from irviz.transforms.stage import Stage
from irviz.view.constant import summary
from irviz.view.details import contents_html, copies_html, facts_html, source_html
from irviz.view.loops import loops_html

_HINT = "<p class='irviz-hint'>Click a node to see what it is.</p>"


class NodePanel:
    """Say what a node of a picture is; with none selected, what the module holds."""

    def __init__(self) -> None:
        self.facts, self.source = widgets.HTML(_HINT), widgets.HTML()

    def show(self, stage: Stage, picture: Picture, node_id: str, where: str = "") -> None:
        """Show a node of a stage's picture, "" for none; `where` is HTML to stand above it."""
        function, inner, _ = picture.locate(node_id)
        whole = graph_of(stage, function)
        if inner not in whole.index:
            drawn = picture.graph.index.get(NodeId(node_id))
            if drawn is None:
                self.facts.value = _HINT + contents_html(contents(stage.module))
                self.source.value = _source_html(stage, function)
            else:  # a group, or what is left out
                self.source.value = ""
                self.facts.value = where + facts_html(picture.graph, picture.graph.nodes[drawn])
            return
        node = whole[inner]
        array = array_of(stage, function, inner) if node.kind is NodeKind.CONSTANT else None
        facts = facts_html(whole, node, () if array is None else summary(array))
        here = copies(tree_of(stage, function), inner)
        self.facts.value = where + facts + (copies_html(here, whole) if here else "")
        printed = script_of(stage)
        number = printed.lines.get((function, inner), 0)
        is_line = number and node.kind is not NodeKind.PARAM
        is_call = node.resolution is Resolution.PRIM_FUNC
        name = node.callee if is_call else function
        self.source.value = _source_html(
            stage, name, printed.line(number) if is_line else "", number
        )


def _source_html(stage: Stage, name: str, line: str = "", number: int = 0) -> str:
    """Return a line of TVMScript, and the PrimFunc of this name with its loop nest."""
    found = function_named(stage.module, name)
    source = source_html(name, prim_func_script(stage.module, name), line, number)
    if not isinstance(found, tirx.PrimFunc):
        return source
    return f"{source}<h5>loop nest</h5>{loops_html(loop_nest(found, name))}"
