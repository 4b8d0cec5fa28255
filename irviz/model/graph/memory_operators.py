"""Operators that compute nothing: those of memory plans, and checks of arguments."""

from collections.abc import Sequence

from irviz.model.graph.graph import Node, NodeKind

STORAGES = (
    "relax.memory.alloc_storage",
    "relax.vm.alloc_storage",
    "vm.builtin.alloc_storage",
)
PLANNED_TENSORS = ("relax.memory.alloc_tensor", "relax.vm.alloc_tensor")
BUFFERS = ("relax.builtin.alloc_tensor", *PLANNED_TENSORS)
KILLS = ("relax.memory.kill_tensor", "relax.memory.kill_storage", "relax.vm.kill_object")
ALLOCATIONS = (*STORAGES, *BUFFERS, "vm.builtin.make_shape")
"""Operators that allocate memory, and those that compute the sizes for it."""
CHECKS = (
    "relax.null_value",  # in the place of a heap for shapes
    "vm.builtin.alloc_shape_heap",
    "vm.builtin.check_tensor_info",
    "vm.builtin.check_shape_info",
    "vm.builtin.check_tuple_info",
    "vm.builtin.check_prim_value_info",
    "vm.builtin.match_shape",
    "vm.builtin.match_prim_value",
)
_ALL = frozenset((*ALLOCATIONS, *KILLS, *CHECKS[:2]))


def computing(nodes: Sequence[Node]) -> Sequence[Node]:
    """Return the nodes that do more than plan memory or rename values, or all if none do."""
    found = [one for one in nodes if one.callee not in _ALL and one.kind is not NodeKind.VALUE]
    return found or nodes
