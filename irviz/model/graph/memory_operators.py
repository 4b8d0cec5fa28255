"""The operators that plans of memory are made of: they allocate and free, and compute nothing."""

from collections.abc import Sequence

from irviz.model.graph.graph import Node, NodeKind

STORAGES = ("relax.memory.alloc_storage", "relax.vm.alloc_storage")
PLANNED_TENSORS = ("relax.memory.alloc_tensor", "relax.vm.alloc_tensor")
BUFFERS = ("relax.builtin.alloc_tensor", *PLANNED_TENSORS)
KILLS = ("relax.memory.kill_tensor", "relax.memory.kill_storage", "relax.vm.kill_object")
_ALL = frozenset((*STORAGES, *BUFFERS, *KILLS))


def computing(nodes: Sequence[Node]) -> Sequence[Node]:
    """Return the nodes that do more than plan memory or rename, or all if there are none."""
    found = [one for one in nodes if one.callee not in _ALL and one.kind is not NodeKind.VALUE]
    return found or nodes
