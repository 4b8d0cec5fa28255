"""What a group says of its contents: the layer, parameters, operators, what is called most."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable

from irviz.model.graph.graph import Node

_MAX_NAMES = 3
_SHAPE = re.compile(r"\(([\d, ]+)\)")
_UNITS = ("", " k", " M", " G", " T")

Facts = tuple[tuple[str, str], ...]
"""The attributes of a group."""


def group_facts(
    nodes: Iterable[Node], layer: str = "", copies: int = 1, *, is_repeat: bool
) -> Facts:
    """Return what a group says of its nodes.

    Args:
        nodes: The nodes of this many copies, without parameters and constants.
        layer: The full name of the layer that it shows, "" for none.
        is_repeat: Whether the group has copies that are alike.
    """
    names = Counter(node.callee.removeprefix("relax.") or node.kind.value for node in nodes)
    counts = [(name, count // copies) for name, count in names.most_common(_MAX_NAMES)]
    most = [f"{name} ×{count}" if count > 1 else name for name, count in counts]
    if len(names) > _MAX_NAMES:
        most.append("…")
    held = ("each holds" if is_repeat else "holds", ", ".join(most))
    if not layer:
        return (held,)
    return ("layer", layer), ("operators", f"{names.total():,}"), held


def with_parameters(group: Node, weights: int) -> Node:
    """Return a group that says how many numbers its parameters have, where it has any."""
    if not weights:
        return group
    return group._replace(attributes=(("parameters", short_count(weights)), *group.attributes))


def count_elements(leaf: Node) -> int:
    """Return how many numbers a parameter has, 0 where its shape is not known."""
    shape = _SHAPE.search(leaf.type_label)
    return math.prod(int(size) for size in re.findall(r"\d+", shape[1])) if shape else 0


def short_count(count: float) -> str:
    """Return a number in three digits: `11.7 M`."""
    unit = 0
    while count >= 999.5 and unit < len(_UNITS) - 1:
        count, unit = count / 1000, unit + 1
    return f"{count:.{0 if not unit or count >= 99.95 else 1}f}{_UNITS[unit]}"
