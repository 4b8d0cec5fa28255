"""Nodes, values, modules and loop nests as HTML."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from irviz.model.folding.expansion import RepeatCopies
from irviz.model.folding.group_tree import count_elements, flops_facts, short_count
from irviz.model.graph.graph import (
    Edge,
    Graph,
    ModuleContents,
    Node,
    NodeId,
    NodeKind,
    RegionKind,
    Resolution,
)
from irviz.model.graph.layers import number_of_inputs
from irviz.model.loop_nest import AxisKind, Loop, LoopKind, LoopNest
from irviz.model.runs.array_diff import ArraySummary, summarise
from irviz.units import beginning, first_names, format_number, short_floats
from irviz.view.graph.node_labels import layers_label, type_in_picture
from irviz.view.graph.node_labels import title as title_of
from irviz.view.templating import escape, render
from irviz.view.theme import STYLES

if TYPE_CHECKING:
    from markupsafe import Markup


Facts: TypeAlias = Sequence[tuple[str, "str | Markup"]]
"""Names with their values, which are text or HTML."""

RESOLUTION_NAMES: dict[Resolution, str] = {
    Resolution.PRIM_FUNC: "a PrimFunc of this module",
    Resolution.FUNCTION: "a Relax function of this module",
    Resolution.PYTHON: "a Python function of this module",
    Resolution.LIBRARY: "a registered library function",
    Resolution.UNKNOWN: "nothing: no function of this name is in the module or registered",
}
assert RESOLUTION_NAMES.keys() == set(Resolution), "every resolution has a description"

_FOLDED = (RegionKind.LAYER, RegionKind.REPEAT, RegionKind.PART)
"""Regions that hold some nodes of a block."""
_BLOCKS = (RegionKind.BINDING_BLOCK, RegionKind.DATAFLOW_BLOCK)
_MAX_USERS = 12
_MAX_COPIES = 6
_MAX_ROWS = 20
_MAX_NAMES = 4
_MAX_VALUE = 30
_MAX_NUMBERS = 8


def node_html(
    graph: Graph, node: Node, more: Facts = (), drawn: Callable[[NodeId], Node | None] | None = None
) -> Markup:
    """Describe a node by its graph and by `more` facts.

    Links to other nodes have the titles of the nodes that are `drawn` for them, by default their
    own, and then the names of their variables.
    """

    def link(node_id: NodeId) -> Markup:
        other = graph[node_id]
        shown = title_of((drawn and drawn(node_id)) or other)
        name = other.name or node_id
        is_said = other.kind is NodeKind.GROUP or name == shown
        return _link(graph.function, node_id, shown, "" if is_said else name)

    facts: list[tuple[str, str | Markup]]
    facts = [("kind", STYLES[node.kind].name), ("type", node.type_label)]
    if node.kind is NodeKind.GROUP:
        facts = [("kind", "group"), ("nodes", f"{node.size:,}")]
        facts += [("gives", node.type_label)] if node.type_label else []
    if node.callee:
        is_here = node.resolution in (Resolution.PRIM_FUNC, Resolution.FUNCTION)
        facts.append(("callee", _link(node.callee, "", node.callee) if is_here else node.callee))
    if node.operator.removeprefix("relax.") not in ("", node.kind.value) and (
        node.kind is not NodeKind.OPERATOR
    ):
        facts.append(("called by", node.operator))
    if node.resolution is not None:
        facts.append(("leads to", RESOLUTION_NAMES[node.resolution]))
    entering = graph.entering.get(node.id, ())
    arguments = [
        (one.position, _sized(link(one.source), graph[one.source]) + _which_copy(one))
        for one in entering
    ]
    literals = ((one.position, short_floats(one.text)) for one in node.literals)
    arguments += [(position, escape(text)) for position, text in literals]
    if arguments:
        facts.append(("arguments", escape("\n").join(text for _, text in sorted(arguments))))
    facts.append(("used by", escape("\n").join(_users(graph, node, link)) or "nothing"))
    facts.append(("block", _block(graph, node)))
    if node.kind is not NodeKind.GROUP and (layers := layers_label(node)):
        facts.append(("layer", layers))
    if node.flops:
        facts.append(("FLOPs", f"{node.flops:,.0f}"))
    if not node.is_pure:
        facts.append(("effects", "it may have some: it is impure"))
    name = node.name or ("constant" if node.kind is NodeKind.CONSTANT else node.id)
    attributes = ((key, short_floats(value)) for key, value in node.attributes)
    return _details(name, (*facts, *more, *attributes))


def function_html(graph: Graph) -> Markup:
    """List what a Relax function takes, returns and computes."""
    params = [one for one in graph.nodes if one.kind is NodeKind.PARAM and one.region is None]
    constants = [one for one in graph.nodes if one.kind is NodeKind.CONSTANT]
    inputs = params[: number_of_inputs(graph) or len(params)]
    weights = [*params[len(inputs) :], *constants]
    takes = [_sized(_link(graph.function, one.id, one.name), one) for one in inputs[:_MAX_USERS]]
    takes += [escape(f"{len(inputs) - len(takes)} more")] if len(takes) < len(inputs) else []
    facts: list[tuple[str, str | Markup]] = [("takes", escape("\n").join(takes) or "nothing")]
    facts.append(("returns", ", ".join(graph[one].type_label for one in graph.outputs)))
    if weights:
        count = short_count(sum(map(count_elements, weights)))
        facts.append(("weights", f"{count} numbers in {len(weights):,} tensors"))
    return _details(graph.function, (*facts, *flops_facts(graph.nodes)))


def module_html(contents: ModuleContents) -> Markup:
    """List the functions of a module, those that are alike in one row, and its attributes."""
    alike: dict[str, list[str]] = {}
    for function in contents.functions:
        words = [function.kind, *(["private"] if function.is_private else [])]
        # a target has hundreds of characters, which are in the text
        words += [f"{name} = {beginning(value, _MAX_VALUE)}" for name, value in function.attributes]
        alike.setdefault(", ".join(words), []).append(function.name)
    facts = [(first_names(names, _MAX_NAMES), words) for words, names in alike.items()]
    if len(facts) > _MAX_ROWS:
        facts[_MAX_ROWS:] = [("…", f"{len(facts) - _MAX_ROWS} more")]
    return _details("module", (*facts, *contents.attributes))


def copies_html(copies: RepeatCopies, graph: Graph) -> Markup:
    """List the nodes at one position in the copies of a repeat, and the arguments that differ."""
    facts = [
        ("copy", f"{copies.copy + 1} of {len(copies.nodes)}"),
        ("each", _first_and_last(copies.nodes)),
    ]
    operands = [[edge.source for edge in graph.entering.get(one, ())] for one in copies.nodes]
    for index, column in enumerate(zip(*operands, strict=False)):
        if len(set(column)) > 1:
            facts.append((f"argument {index}", _first_and_last(column)))
    return _details("in every copy", facts)


def source_html(name: str, prim_func: str, line: str = "", line_number: int = 0) -> Markup:
    """Show a node's line of the module's TVMScript, and the PrimFunc that it calls, "" for none."""
    sources = []
    if line:
        sources.append((f"TVMScript, line {line_number}", code_html(line)))
    if prim_func:
        sources.append((f"PrimFunc {name}", code_html(prim_func)))
    return _details("", (), sources=sources)


@lru_cache(maxsize=256)
def code_html(code: str) -> Markup:
    """Highlight Python or TVMScript with Pygments' short CSS classes."""
    from markupsafe import Markup
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    is_line = "\n" not in code.strip()  # which may wrap, as no indentation is lost
    formatter = HtmlFormatter(cssclass="irviz-code" + " irviz-line" * is_line, wrapcode=True)
    return Markup(highlight(code, PythonLexer(), formatter))  # noqa: S704 - Pygments escapes


def value_html(label: str, summary: ArraySummary | None, text: str = "", hint: str = "") -> Markup:
    """Describe a node's value, with a warning if it has a NaN or an infinity.

    Args:
        label: The node's name, "" if it has none.
        summary: The tensor, or the chosen tensor of a tuple; None if the value is a `text`.
    """
    facts = [("value", text)] if text else []
    warning = ""
    if summary is not None:
        facts += _tensor_facts(summary)
        warning = "" if summary.is_finite else _non_finite(summary)
    title = f"value of {label}" if label else "value"
    return _details(title, facts, hint=hint, warning=warning)


def constant_facts(array: NDArray[np.generic]) -> Facts:
    """Describe the values of a constant; a small array is written in full."""
    if array.size <= _MAX_NUMBERS:
        return (("values", np.array2string(array, separator=", ", precision=6)),)
    try:
        return _statistics(summarise(array))
    except ValueError:  # no numbers
        return ()


def _details(title: str, facts: Facts, **more: object) -> Markup:
    """Render facts; `more` are `hint`, `warning` and `sources`, pairs of a title and HTML."""
    values = {"hint": "", "warning": "", "sources": (), **more}
    return render("details", title=title, facts=facts, **values)


def _tensor_facts(summary: ArraySummary) -> list[tuple[str, str]]:
    shape = str(summary.shape) if summary.shape else "scalar"
    facts = [("shape", shape), ("dtype", summary.dtype), ("bytes", f"{summary.nbytes:,}")]
    if not summary.shape:
        only = summary.minimum
        return facts if only is None else [*facts, ("number", format_number(only, 9))]
    return [*facts, *_statistics(summary)]


def _statistics(summary: ArraySummary) -> list[tuple[str, str]]:
    """Describe the finite numbers by range, mean, standard deviation and share of zeros."""
    statistics = {
        "minimum": summary.minimum,
        "maximum": summary.maximum,
        "mean": summary.mean,
        "std": summary.std,
    }
    facts = [(name, format_number(n, 6)) for name, n in statistics.items() if n is not None]
    facts += [("zeros", f"{summary.zeros:.0%}")] if facts else []
    facts += [] if summary.is_finite else [("not finite", _non_finite(summary))]
    return [*facts, *([("std, zeros", f"of one in {summary.step}")] if summary.step > 1 else [])]


def _non_finite(summary: ArraySummary) -> str:
    counts = ((summary.nans, "NaN"), (summary.infs, "Inf"))
    if math.prod(summary.shape) == 1:
        return f"the number is {next(name for count, name in counts if count)}"
    found = " and ".join(f"{count:,} {name}" for count, name in counts if count)
    return f"{found} among {math.prod(summary.shape):,} numbers"


def _first_and_last(names: Sequence[str]) -> str:
    if len(names) <= _MAX_COPIES:
        return ", ".join(names)
    return f"{', '.join(names[: _MAX_COPIES - 1])}, …, {names[-1]}"


def _users(graph: Graph, node: Node, link: Callable[[NodeId], Markup]) -> list[Markup]:
    users = list(dict.fromkeys(edge.target for edge in graph.leaving.get(node.id, ())))
    names = [link(user) for user in users[:_MAX_USERS]]
    if len(users) > _MAX_USERS:
        names.append(escape(f"{len(users) - _MAX_USERS} more"))
    return names + ([escape("return")] if node.id in graph.outputs else [])


def _link(function: str, node: str, text: str, name: str = "") -> Markup:
    """Return a link to a node, or with "" to its function, that the viewer follows.

    The name of a variable stands behind the text.

    This does not use a template, which takes 0.1 ms: a picture has hundreds of links.
    """
    from markupsafe import Markup

    target = f'data-function="{escape(function)}" data-goto="{escape(node)}"'
    words = f"{escape(text)} <small>{escape(name)}</small>" if name else escape(text)
    return Markup(f'<button type="button" class="irviz-link" {target}>{words}</button>')  # noqa: S704


def _which_copy(edge: Edge) -> str:
    """Return which copy of a repeat takes an argument, "" for the copy that is drawn."""
    if edge.is_carried:
        return " in the next copy"
    return " in another copy" if edge.is_other else ""


def _sized(link: Markup, node: Node) -> Markup:
    """Return the link to a node with its shape and dtype, if it is a tensor."""
    size = type_in_picture(node)
    return escape(" ").join([link, escape(size)]) if size != node.type_label else link


def _block(graph: Graph, node: Node) -> str:
    """Return the block of bindings of a node, or the blocks around one of a PrimFunc."""
    around = list(graph.regions_around(node.region))
    if node.kind is NodeKind.BLOCK:
        regions = [graph.regions[index] for index in around]
        names = [one.name for one in regions if one.kind is RegionKind.OUTER_BLOCK]
        return ", in ".join(names) or "none: a PrimFunc has no blocks of bindings"
    if node.region is None:
        return "none: a parameter" if node.kind is NodeKind.PARAM else "none: returned as it is"
    while len(around) > 1 and graph.regions[around[0]].kind in _FOLDED:
        del around[0]
    own, *outer = around
    region = graph.regions[own]
    if region.kind not in _BLOCKS:
        return f"none: it belongs to {region.owner or graph.function}"
    blocks = [
        index
        for index, other in enumerate(graph.regions)
        if other.parent == region.parent and other.kind in _BLOCKS
    ]
    is_dataflow = region.kind is RegionKind.DATAFLOW_BLOCK
    kind = "dataflow block" if is_dataflow else "binding block, no dataflow"
    words = f"{blocks.index(own) + 1} of {len(blocks)}, {kind}" if len(blocks) > 1 else kind
    others = (graph.regions[index] for index in outer)
    named = (
        f"{one.name} of {one.owner}" if one.owner else one.name
        for one in others
        if one.kind not in _BLOCKS
    )
    return ", in ".join([words, *named])


# --- The loop nest of a PrimFunc ------------------------------------------------------------------


_LOOP_KIND_NAMES = {LoopKind.SERIAL: "", LoopKind.THREAD_BINDING: "thread"}
"""The names of kinds of loops that are not their values; the usual kind has none."""

AXIS_KIND_NAMES: dict[AxisKind, str] = {
    **{kind: kind.value for kind in AxisKind},
    AxisKind.SPATIAL: "spatial (S)",
    AxisKind.REDUCTION: "reduction (R)",
}


def loop_nest_html(nest: LoopNest) -> Markup:
    """Show the parameters and buffers of a PrimFunc, and its loops, blocks and statements."""
    return render("loop_nest", nest=nest, axis_kinds=AXIS_KIND_NAMES, loop_notes=_loop_notes)


def _loop_notes(loop: Loop) -> str:
    kind = _LOOP_KIND_NAMES.get(loop.kind, loop.kind.value)
    notes = [*(axis.value for axis in loop.axes), kind, loop.thread]
    notes += [f"{key} = {value}" for key, value in loop.annotations]
    return " · ".join(note for note in notes if note)
