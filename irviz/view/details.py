"""What a node is, as HTML for the pane beside the picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from irviz.model.contents import Contents
from irviz.model.graph import Graph, Node, NodeId, NodeKind, RegionKind, Resolution
from irviz.model.locate import Copies
from irviz.view.code import code_html

KINDS: dict[NodeKind, str] = {
    NodeKind.PARAM: "parameter",
    NodeKind.CONSTANT: "constant",
    NodeKind.CALL_TIR: "call_tir of a PrimFunc",
    NodeKind.CALL_DPS_PACKED: "call_dps_packed",
    NodeKind.OPERATOR: "operator",
    NodeKind.CALL_FUNCTION: "call of a function",
    NodeKind.CALL_PACKED: "call of a packed function",
    NodeKind.TUPLE: "tuple",
    NodeKind.TUPLE_GET_ITEM: "item of a tuple",
    NodeKind.MATCH_CAST: "match_cast",
    NodeKind.IF: "if, with two branches",
    NodeKind.FUNCTION: "function defined inside of another",
    NodeKind.VALUE: "value written as it is",
    NodeKind.OTHER: "other expression",
    NodeKind.BLOCK: "block of a PrimFunc",
    NodeKind.ALLOC: "buffer",
    NodeKind.GROUP: "group",
}
assert KINDS.keys() == set(NodeKind), "every kind of node has a name"

RESOLUTIONS: dict[Resolution, str] = {
    Resolution.PRIM_FUNC: "a PrimFunc of this module",
    Resolution.FUNCTION: "a Relax function of this module",
    Resolution.PYTHON: "a Python function of this module",
    Resolution.LIBRARY: "a registered library function",
    Resolution.UNKNOWN: "nothing: no function of this name is in the module or registered",
}
assert RESOLUTIONS.keys() == set(Resolution), "every resolution has words"


_BLOCKS = (RegionKind.BINDING_BLOCK, RegionKind.DATAFLOW_BLOCK)
_MOST_USERS = 12
_MOST_COPIES = 6
_MOST_FUNCTIONS = 60


def facts_html(graph: Graph, node: Node, more: Sequence[tuple[str, str]] = ()) -> str:
    """Return what a node is: kind, type, callee and what it leads to, arguments, users, block.

    `more` are facts that the graph does not know, by name.
    """
    facts = [("kind", KINDS[node.kind]), ("type", node.type_label)]
    if node.kind is NodeKind.GROUP:
        facts = [("kind", "group"), ("nodes", f"{node.size:,}")]
        facts += [("gives", node.type_label)] if node.type_label else []
    if node.callee:
        facts.append(("callee", node.callee))
    if node.operator.removeprefix("relax.") not in ("", node.kind.value) and (
        node.kind is not NodeKind.OPERATOR
    ):
        facts.append(("called by", node.operator))
    if node.resolution is not None:
        facts.append(("leads to", RESOLUTIONS[node.resolution]))
    inputs = [(e.position, _name(graph, e.source)) for e in graph.entering.get(node.id, ())]
    inputs += [(literal.position, literal.text) for literal in node.literals]
    if inputs:
        facts.append(("arguments", ", ".join(text for _, text in sorted(inputs))))
    users = dict.fromkeys(edge.target for edge in graph.leaving.get(node.id, ()))
    uses = [_name(graph, user) for user in list(users)[:_MOST_USERS]]
    if len(users) > _MOST_USERS:
        uses.append(f"{len(users) - _MOST_USERS} more")
    uses += ["return"] if node.id in graph.outputs else []
    facts.append(("used by", ", ".join(uses) or "nothing"))
    facts.append(("block", _block(graph, node)))
    if not node.is_pure:
        facts.append(("effects", "it may have some: it is impure"))
    facts += [*node.attributes, *more]
    rows = "".join(f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in facts)
    name = escape(node.name or ("constant" if node.kind is NodeKind.CONSTANT else node.id))
    return f'<div class="irviz-details"><h4>{name}</h4><dl>{rows}</dl></div>'


def contents_html(contents: Contents) -> str:
    """Return what a module holds: its functions with what they are, and its attributes."""
    rows = []
    for one in contents.functions[:_MOST_FUNCTIONS]:
        words = [one.kind, *(["private"] if one.is_private else [])]
        words += [f"{name} = {value}" for name, value in one.attributes]
        rows.append(f"<dt>{escape(one.name)}</dt><dd>{escape(', '.join(words))}</dd>")
    if len(contents.functions) > _MOST_FUNCTIONS:
        rows.append(f"<dt>…</dt><dd>{len(contents.functions) - _MOST_FUNCTIONS} more</dd>")
    rows += [f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in contents.attributes]
    return f'<div class="irviz-details"><h4>module</h4><dl>{"".join(rows)}</dl></div>'


def copies_html(copies: Copies, graph: Graph) -> str:
    """Return which nodes stand in the same place in the copies of a repeat, and what differs."""
    rows = [("copy", f"{copies.copy + 1} of {len(copies.nodes)}"), ("each", _list(copies.nodes))]
    operands = [[edge.source for edge in graph.entering.get(one, ())] for one in copies.nodes]
    for index, column in enumerate(zip(*operands, strict=False)):
        if len(set(column)) > 1:
            rows.append((f"argument {index}", _list(column)))
    cells = "".join(f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in rows)
    return f'<div class="irviz-details"><h5>in every copy</h5><dl>{cells}</dl></div>'


def _list(names: Sequence[str]) -> str:
    if len(names) <= _MOST_COPIES:
        return ", ".join(names)
    return f"{', '.join(names[: _MOST_COPIES - 1])}, …, {names[-1]}"


def source_html(name: str, prim_func: str, line: str = "", line_number: int = 0) -> str:
    """Return a PrimFunc's TVMScript, highlighted, below a node's own line of it.

    `prim_func` is "" where there is none behind the node, `line` "" where it has no own line.
    """
    parts = []
    if line:
        parts.append(f"<h5>TVMScript, line {line_number}</h5>{code_html(line)}")
    if prim_func:
        parts.append(f"<h5>PrimFunc {escape(name)}</h5>{code_html(prim_func)}")
    return f'<div class="irviz-details">{"".join(parts)}</div>'


def _name(graph: Graph, node_id: NodeId) -> str:
    return graph[node_id].name or str(node_id)


def _block(graph: Graph, node: Node) -> str:
    if node.region is None:
        if node.kind is NodeKind.BLOCK:
            return "none: a PrimFunc has no blocks of bindings"
        return "none: a parameter" if node.kind is NodeKind.PARAM else "none: returned as it is"
    region = graph.regions[node.region]
    if region.kind not in _BLOCKS:
        return f"none: it belongs to {region.owner or graph.function}"
    blocks = [
        index
        for index, other in enumerate(graph.regions)
        if other.parent == region.parent and other.kind in _BLOCKS
    ]
    is_dataflow = region.kind is RegionKind.DATAFLOW_BLOCK
    kind = "dataflow block" if is_dataflow else "binding block, no dataflow"
    words = f"{blocks.index(node.region) + 1} of {len(blocks)}, {kind}"
    around = [graph.regions[index] for index in _around(graph, region.parent)]
    inside = [f"{one.name} of {one.owner}" if one.owner else one.name for one in around]
    return ", in ".join([words, *inside])


def _around(graph: Graph, index: int | None) -> Iterator[int]:
    while index is not None:
        if graph.regions[index].kind not in _BLOCKS:
            yield index
        index = graph.regions[index].parent
