"""The node that stands for what is closed."""

from __future__ import annotations

from collections import Counter

from irviz.model.graph import Node, NodeId, NodeKind
from irviz.model.repeat import Steps
from irviz.model.tree import Container

_MOST_NAMES = 3


def group(of: Steps, container: Container, span: range) -> Node:
    """Return the node that stands for a closed container: what it holds, and what leaves it.

    Of a repeat it is what each copy holds.
    """
    one = of.nodes[span.start : span.start + container.held]
    names = Counter(node.callee.removeprefix("relax.") or node.kind.value for node in one)
    out = [of.nodes[step] for step in span if of.last[step] >= span.stop]
    most = [f"{name} ×{n}" if n > 1 else name for name, n in names.most_common(_MOST_NAMES)]
    if len(names) > _MOST_NAMES:
        most.append("…")
    holds = "each holds" if container.copies > 1 else "holds"
    return Node(
        NodeId(container.id),
        NodeKind.GROUP,
        container.name,
        f"{out[0].name}: {out[0].type_label}" if len(out) == 1 else f"{len(out)} values",
        attributes=((holds, ", ".join(most)),),
        is_pure=all(node.is_pure for node in one),
        size=len(span),
    )
