"""Count the floating-point operations of nodes from their shapes.

A multiplication and an addition count as one each, so a matrix product takes 2·m·n·k (Golub and Van
Loan, Matrix Computations, 1.1.15). A convolution takes 2 for each element of its result and each
element of a filter, and pooling one for each element of its result and of a window. Other operators
take one for each element of the largest of their operands and result, some several, as in the loops
that TVM's `LegalizeOps` makes of them; those that only move data take none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from irviz.model.graph.graph import Graph, Node, NodeKind, Resolution

FlopsOfFunction = Callable[[str], float | None]
"""Returns the operations of a call of the module's function with this name, None if unknown."""

_SHAPE = re.compile(r"Tensor\[\(([\d, ]*)\)")
_WORD = re.compile(r"\S+")
_MOVING = frozenset(
    _WORD.findall("""
        astype broadcast_to concat expand_dims flatten layout_transform permute_dims reshape split
        squeeze stack repeat tile flip reverse_sequence gather_elements gather_nd index_tensor
        index_put meshgrid scatter_elements scatter_nd slice_scatter one_hot take strided_slice
        dynamic_strided_slice where full full_like ones ones_like zeros zeros_like eye eye_like
        arange tril triu masked_fill wrap_param null_value shape_of shape_to_tensor tensor_to_shape
        to_vdevice hint_on_device nn.pad nn.pixel_shuffle nn.dropout nn.batch_flatten print
        assert_op""")
)
_UNKNOWN = frozenset(
    _WORD.findall("""
        einsum sort argsort topk unique nonzero median nn.attention_var_len image.resize2d
        image.resize3d image.grid_sample image.affine_grid invoke_closure call_py_func""")
)
_FOR_EACH_ELEMENT = {
    "nn.batch_norm": 4,
    "nn.layer_norm": 11,
    "nn.rms_norm": 4,
    "nn.group_norm": 14,
    "nn.instance_norm": 14,
    "nn.softmax": 4,
    "nn.log_softmax": 5,
    "nn.gelu": 4,
    "variance": 4,
    "std": 4,
}
"""What TVM's `estimate_tir_flops` counts in the loops of an operator, for each element."""
_NO_WORK = ("memory.", "vm.", "builtin.", "inspect.")


class NodeFlops:
    """Counts the FLOPs of the node at an index when they are asked for; pickled, it is a number."""

    __slots__ = ("_at", "_count")

    def __init__(self, count: Callable[[int], float | None], at: int) -> None:
        self._count, self._at = count, at

    def __call__(self) -> float | None:
        """Return the FLOPs, None if unknown."""
        return self._count(self._at)

    def __reduce__(self) -> tuple[Callable[[float | None], float | None], tuple[float | None]]:
        return _itself, (self(),)

    def __eq__(self, other: object) -> bool:
        return self() == (other() if isinstance(other, NodeFlops) else other)

    def __hash__(self) -> int:
        return hash(self())


def _itself(flops: float | None) -> float | None:
    return flops


@lru_cache(maxsize=4096)
def shape_in(label: str) -> tuple[int, ...] | None:
    """Return the shape in the label of a tensor's type, None if it is symbolic or there is none."""
    found = _SHAPE.search(label)
    return None if found is None else tuple(int(size) for size in re.findall(r"\d+", found[1]))


def node_flops(graph: Graph, node: Node, of_function: FlopsOfFunction) -> float | None:
    """Count the FLOPs of a node from its shape and those of its operands, None if unknown."""
    if node.resolution in (Resolution.PRIM_FUNC, Resolution.FUNCTION):
        return of_function(node.callee)
    if node.resolution is not None:
        return 0.0 if node.callee.startswith("vm.builtin.") else None
    name = node.callee.removeprefix("relax.")
    if node.kind is not NodeKind.OPERATOR or name in _MOVING or name.startswith(_NO_WORK):
        return 0.0
    labels = [graph[edge.source].type_label for edge in graph.operands(node.id)]
    given = [shape_in(label) for label in (node.type_label, *labels) if "Tensor" in label]
    shapes = [shape for shape in given if shape is not None]
    if name in _UNKNOWN or len(shapes) < len(given) or not shapes:
        return None
    return _by_shapes(name, dict(node.attributes), shapes)


def _by_shapes(
    name: str, attributes: dict[str, str], shapes: Sequence[tuple[int, ...]]
) -> float | None:
    """Return the operations of an operator for a result and operands of these shapes."""
    sizes = [float(math.prod(shape)) for shape in shapes]
    match name, shapes:
        case "matmul", [_, left, _, *_] if left:
            return 2 * sizes[0] * left[-1]
        case "nn.attention" | "nn.attention_bias", [_, (_, length, _, _), *_]:
            return 2 * length * (sizes[2] + sizes[3])
        case str(), [_, _, weight, *_] if name.startswith("nn.conv"):
            is_transposed = name.endswith("_transpose")
            at = attributes.get("kernel_layout", "").find("I" if is_transposed else "O")
            if not 0 <= at < len(weight) or not weight[at]:
                return None
            return 2 * sizes[is_transposed] * sizes[2] / weight[at]
        case str(), _ if window := re.findall(r"\d+", attributes.get("pool_size", "")):
            return sizes[0] * math.prod(map(int, window))
    return max(sizes) * _FOR_EACH_ELEMENT.get(name, 1)
