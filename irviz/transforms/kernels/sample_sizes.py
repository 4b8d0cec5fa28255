"""The sizes at which a call is tried, and the work of a PrimFunc at these sizes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from tvm import ir, relax, sym, tirx
from tvm_ffi import structural_map

from irviz.ir.tir.scoped_names import used_vars
from irviz.ir.tir.statements import flatten, nested_statements
from irviz.transforms.kernels.sample_inputs import small_sizes
from irviz.transforms.kernels.signature import Signature, TensorSignature, call_types

Dim = TypeVar("Dim")

_SCALES = (1, 4, 16)
"""Factors for the small sizes, tried in turn until every size computed from them is positive."""


def sample_signature(call: ir.Call, callee: tirx.PrimFunc | None) -> Signature | None:
    """Return a call's signature with static sizes: small ones stand in for symbolic sizes.

    Sizes that are static in the callee are used as they are. Returns None when no sizes fit.
    """
    inputs, outputs = call_types(call)
    types = [*inputs, *outputs]
    given = {
        dim: int(own.value)
        for own, dim in _paired_dims(callee, [type_.shape.values for type_ in types])
        if isinstance(dim, ir.Var) and isinstance(own, tirx.IntImm)
    }
    symbols = [var for type_ in types for dim in type_.shape.values for var in used_vars(dim)]
    free = [var for var in dict.fromkeys(symbols) if var not in given]
    taken = {dim.value for t in types for dim in t.shape.values if isinstance(dim, tirx.IntImm)}
    for scale in _SCALES:
        small = (size * scale for size in small_sizes() if size * scale not in taken)
        sizes = given | dict(zip(free, small, strict=False))
        tensors = [
            TensorSignature(tuple(str(_value(dim, sizes)) for dim in t.shape.values), str(t.dtype))
            for t in types
        ]
        if all(dim.isdigit() for tensor in tensors for dim in tensor.dims):
            return Signature(tuple(tensors[: len(inputs)]), tuple(tensors[len(inputs) :]))
    return None


def input_types(signature: Signature) -> list[relax.TensorType]:
    """Return the types of the inputs of a static signature."""
    return [relax.TensorType([*map(int, t.dims)], t.dtype) for t in signature.inputs]


def statement_count(function: tirx.PrimFunc, signature: Signature) -> int:
    """Estimate how many statements a PrimFunc executes at these sizes."""
    shapes = [tensor.dims for tensor in (*signature.inputs, *signature.outputs)]
    sizes = {
        own: int(dim) for own, dim in _paired_dims(function, shapes) if isinstance(own, ir.Var)
    }
    total = 0
    stack = [(stmt, 1) for stmt in flatten(function.body)]
    while stack:
        stmt, times = stack.pop()
        if isinstance(stmt, tirx.For):
            extent = _value(stmt.extent, sizes)
            times *= extent if isinstance(extent, int) else 1
        inner = nested_statements(stmt)
        total += 0 if inner else times
        stack += [(each, times) for part in inner for each in flatten(part)]
    return total


def _paired_dims(
    callee: tirx.PrimFunc | None, shapes: Iterable[Iterable[Dim]]
) -> Iterator[tuple[ir.Expr, Dim]]:
    """Yield the dimensions of the callee's buffers, each with that of the tensor given for it."""
    for param, shape in zip(callee.params if callee is not None else (), shapes, strict=False):
        if tirx.is_buffer_var(param):
            yield from zip(param.ty.shape, shape, strict=False)


def _value(value: ir.Expr, sizes: Mapping[ir.Var, int]) -> int | str:
    """Return the value of an expression, "" if it is unknown."""
    if isinstance(value, tirx.IntImm):
        return int(value.value)
    if isinstance(value, ir.Var):
        return sizes.get(value, "")
    known = {
        var: tirx.IntImm(str(var.ty.dtype), sizes[var]) for var in used_vars(value) if var in sizes
    }
    found = sym.Analyzer().simplify(
        structural_map(value, (ir.Var, lambda var: known.get(var, var)), order="post")
    )
    return int(found.value) if isinstance(found, tirx.IntImm) else ""
