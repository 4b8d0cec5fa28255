"""The facts of a group: its layer, parameters, operators, and most frequent callees."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from irviz.model.graph.flops import shape_in
from irviz.model.graph.graph import Node
from irviz.model.graph.memory_accesses import computing

_MAX_NAMES = 3
_UNITS = ("", " k", " M", " G", " T")

UNKNOWN_FLOPS = "not known"
STORAGE_ROTATES = "storage rotates"
"""A remark in the title of a repeat whose copies use different storage from outside."""

Facts = tuple[tuple[str, str], ...]
"""The attributes of a group."""


def group_facts(nodes: Sequence[Node], layer: str = "", copies: int = 1) -> Facts:
    """Return the attributes of a group, over all copies unless they say otherwise.

    Args:
        nodes: The nodes of all copies, without parameters and constants.
        layer: The full name of the layer that it shows, "" for none.
        copies: The number of equal copies that it has.
    """
    names = Counter(map(operation_name, computing(nodes)))
    counts = [(name, count // copies) for name, count in names.most_common(_MAX_NAMES)]
    most = [f"{name} ×{count}" if count > 1 else name for name, count in counts]
    if len(set(map(operation_name, nodes))) > len(counts):
        most.append("…")
    held = ("each holds" if copies > 1 else "holds", ", ".join(most))
    flops = _flops(nodes)
    if not layer:
        return *flops, held
    return ("layer", layer), *flops, ("operators", f"{len(nodes):,}"), held


def operation_name(node: Node) -> str:
    """Return the name of a node's callee, or else its kind."""
    return node.callee.removeprefix("relax.").removeprefix("vm.builtin.") or node.kind.value


def _flops(nodes: Sequence[Node]) -> Facts:
    known = [one.flops for one in nodes if one.flops is not None]
    count = sum(known)
    if len(known) == len(nodes):
        return (("FLOPs", short_count(count)),) if count else ()
    least = f"≥ {short_count(count)}" if count else UNKNOWN_FLOPS
    return (("FLOPs", f"{least}: sizes are symbolic, or code is not of this module"),)


def with_parameters(group: Node, weights: int) -> Node:
    """Return a group with the number of elements in its parameters, if it has any."""
    if not weights:
        return group
    return group._replace(attributes=(("parameters", short_count(weights)), *group.attributes))


def count_elements(leaf: Node) -> int:
    """Return the number of elements in a parameter, 0 if its shape is unknown."""
    shape = shape_in(leaf.type_label)
    return 0 if shape is None else math.prod(shape)


def short_count(count: float) -> str:
    """Format a number with three digits: `11.7 M`."""
    unit = 0
    while count >= 999.5 and unit < len(_UNITS) - 1:
        count, unit = count / 1000, unit + 1
    return f"{count:.{0 if not unit or count >= 99.95 else 1}f}{_UNITS[unit]}"
