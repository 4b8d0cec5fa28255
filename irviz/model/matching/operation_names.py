"""The names of operations before and after they are lowered, cast, laid out otherwise or fused."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from irviz.model.graph.graph import CALL_KINDS, CALLEE, Edge, Node, NodeKind, Resolution

CAST = "cast"
"""The name of a change of dtype."""

_LOWERED_NAMES = {"astype": CAST, "permutedims": "transpose", "concat": "concatenate"}
"""TVM's names for the PrimFuncs of operators, where the two names have nothing in common."""
_SUFFIXES = re.compile(r"(?:like|to|inplace)$")
_COUNTER = re.compile(r"\d+$")
_PREFIX = re.compile(r"^(?:tir|te|topi|NT)_")
REPRESENTATIONS = frozenset({CAST, "transpose", "layouttransform", "vdevice", "hintondevice"})
"""Operations that change a value's dtype, layout or device; the elements stay the same."""
_ATTRIBUTES_OF_REPRESENTATION = frozenset(
    {"dtype", "out_dtype", "data_layout", "kernel_layout", "out_layout", "layout"}
)
_DTYPE = re.compile(r", (?:b?float|u?int)\w+")
_WORD = re.compile(r"\w+")


@lru_cache(maxsize=4096)
def operation_name(callee: str) -> str:
    """Return the name of an operation, equal for an operator and the PrimFunc that it becomes.

    >>> operation_name("relax.nn.leakyrelu"), operation_name("leaky_relu2")
    ('leakyrelu', 'leakyrelu')
    >>> operation_name("relax.permute_dims"), operation_name("transpose")
    ('transpose', 'transpose')
    """
    own = _PREFIX.sub("", callee.rpartition(".")[2])
    plain = own if callee.startswith("relax.") else _COUNTER.sub("", own)
    name = plain.replace("_", "")
    return _LOWERED_NAMES.get(name) or _SUFFIXES.sub("", name) or name


def fused_operations(callee: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return the operations that the name of a fused function lists, none if it lists no two.

    Args:
        callee: A name as FuseOps makes it, such as `fused_matmul1_add_relu`.
        known: The names of operations to look for.

    >>> fused_operations("fused_matmul1_add_tir_tanh2", ["tanh", "add", "matmul"])
    ('matmul', 'add', 'tanh')
    """
    words = callee.removeprefix("fused_").split("_")
    names = set(known)
    found: list[str] = []
    start = 0
    while start < len(words):
        for end in range(len(words), start, -1):
            name = operation_name("_".join(words[start:end]))
            if name in names:
                found.append(name)
                start = end
                break
        else:
            if words[start] not in ("tir", "te") and not words[start].isdecimal():
                return ()
            start += 1
    return tuple(found) if len(found) > 1 else ()


def is_call(node: Node) -> bool:
    """Return whether a node calls a function rather than an operator."""
    return node.kind in CALL_KINDS


def is_representation(node: Node) -> bool:
    """Return whether a node's value has the elements of its operand in another representation."""
    if node.kind is NodeKind.OPERATOR or node.resolution is Resolution.PRIM_FUNC:
        return operation_name(node.callee) in REPRESENTATIONS
    return node.kind is NodeKind.MATCH_CAST


def is_same_representation(operation: str, one: str, other: str) -> bool:
    """Return whether the types of two casts, transpositions or copies make them the same.

    Only casts are told apart by the dtype.
    """
    return one == other or (operation != CAST and without_dtype(one) == without_dtype(other))


def is_allocation(node: Node) -> bool:
    """Return whether a node is a new buffer, in any stage of lowering."""
    return node.callee.endswith(".alloc_tensor")


def is_alias(node: Node, entering: Iterable[Edge]) -> bool:
    """Return whether a node is another name of its only operand."""
    if node.kind is not NodeKind.VALUE:
        return False
    return [edge.position for edge in entering] in ([(0,)], [CALLEE])


@lru_cache(maxsize=1024)
def other_attributes(attributes: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Return the attributes that say nothing of dtype and layout."""
    return tuple(one for one in attributes if one[0] not in _ATTRIBUTES_OF_REPRESENTATION)


def is_cast(node: Node) -> bool:
    """Return whether a node changes the dtype or the known type of a value, and nothing else."""
    return node.kind is NodeKind.MATCH_CAST or operation_name(node.callee) == CAST


def without_dtype(type_label: str) -> str:
    """Return the label of a type without the dtypes in it."""
    return _DTYPE.sub("", type_label)


def may_have_types(one: str, other: str) -> bool:
    """Return whether two types differ at most in dtype and order of dimensions, or one is vague."""
    if one == other:
        return True
    mine, theirs = _sizes(one), _sizes(other)
    return mine == theirs or not (mine and theirs)


@lru_cache(maxsize=1024)
def _sizes(type_label: str) -> tuple[str, ...]:
    """Return the sorted words of a type without dtypes, none for one of unknown shape."""
    text = without_dtype(type_label)
    return tuple(sorted(_WORD.findall(text))) if "(" in text else ()
